"""Pieces of words beside the words: what misspelt or inflected words have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

LENGTHS = (3, 5)  # characters of a piece; a blank marks where its word begins or ends
MARK = "~"  # before a piece, which is no word
_OF_WORDS = ("preprocessor", "tokenizer", "ngram_range", "stop_words", "lowercase", "strip_accents")


def options_of_pieces(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a vectoriser that counts words and pieces, from those of one for words."""
    from sklearn.feature_extraction.text import CountVectorizer

    words = CountVectorizer(**options).build_analyzer()
    pieces = CountVectorizer(analyzer="char_wb", ngram_range=LENGTHS, lowercase=False)
    found = {name: value for name, value in options.items() if name not in _OF_WORDS}
    both = partial(_words_and_pieces, options["preprocessor"], words, pieces.build_analyzer())
    return found | {"analyzer": both}


def _words_and_pieces(
    prepare: Callable[[Any], Any],
    words: Callable[[Any], list[str]],
    pieces: Callable[[str], list[str]],
    document: Any,
) -> list[str]:
    prepared = prepare(document)
    text = prepared if isinstance(prepared, str) else " ".join(prepared)
    return words(document) + [MARK + piece for piece in pieces(text)]
