r"""Patterns of words that are quick whatever the document.

Python's `re` backtracks, so ``(\w+)+!`` takes exponential time on a long word. As a pattern may
come from a file, only patterns that are provably fast are accepted:

- a repeat, as in ``\w+``, is of one character, or of a group that can be read in one way only: of
  fixed length, as in ``(?:[A-Z]\.)+``, or with one part that varies, after a first character that
  is not in it, as in ``\w+(?:-\w+)*``;
- at most three repeats follow each other, and what may repeat over white space comes last;
- groups are not nested, and there are no lookaheads or lookbehinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..exceptions import OptionError

_MOST_REPEATS = 3
_ALL = "".join(map(chr, range(1 << 16)))
_TIMES = r"(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?"
_TOKEN = re.compile(
    rf"""
    (?P<flags>\A\(\?[aims]*u?[aims]*\)) | (?P<edge>\\[bBAZ]|[\^$]) | (?P<bar>\|)
    | (?P<group>\((?:\?:|\?P<\w+>)?(?P<body>(?:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^()\[\]\\])+)\)
        (?P<group_times>{_TIMES})?)
    | (?P<char>\\x[0-9a-fA-F]{{2}}|\\u[0-9a-fA-F]{{4}}|\\[^0-9xuUNbBAZ]
        |\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[\](){{}}|*+?^$]) (?P<times>{_TIMES})?
    """,
    re.VERBOSE | re.DOTALL,
)


class Item(NamedTuple):
    """A character of a pattern, or a group of alternatives, and its number of repetitions."""

    char: str
    times: str
    group: list[list[Item]]

    @property
    def repeats(self) -> bool:
        return self.times[:1] in ("*", "+") or "," in self.times

    @property
    def varies(self) -> bool:
        return self.repeats or self.times[:1] == "?"


def check_pattern(pattern: str) -> None:
    r"""Refuse a pattern that may take for ever on some document.

    >>> check_pattern(r"\b\w\w+\b")
    >>> check_pattern(r"(\w+)+!")
    Traceback (most recent call last):
        ...
    discem.exceptions.OptionError: token_pattern='(\\w+)+!' may take for ever: a repeated group ...
    """
    flags = re.match(r"\(\?[a-zA-Z]+\)", pattern)
    try:
        for sequence in _alternatives(pattern):
            _check_sequence(sequence, flags[0] if flags else "")
    except _SlowError as error:
        raise OptionError(
            f"token_pattern={pattern!r} may take for ever: {error}; documents may also be given "
            "as lists of words"
        ) from None


class _SlowError(Exception):
    pass


def _alternatives(pattern: str) -> list[list[Item]]:
    """Parse a pattern: its alternatives, each a sequence of items."""
    found: list[list[Item]] = [[]]
    for token in _tokens(pattern):
        if token["bar"]:
            found.append([])
        elif token["group"]:
            body = _alternatives(token["body"])
            found[-1].append(Item("", token["group_times"] or "", body))
        elif not token["flags"]:  # an edge is a part, too, that has no character
            found[-1].append(Item(token["char"] or "", token["times"] or "", []))
    return found


def _tokens(pattern: str) -> Iterator[re.Match[str]]:
    place = 0
    while place < len(pattern):
        token = _TOKEN.match(pattern, place)
        if token is None:
            raise _SlowError(f"{pattern[place:][:20]!r} is not understood")
        yield token
        place = token.end()


def _check_sequence(parts: list[Item], flags: str) -> None:
    repeats = 0
    for place, part in enumerate(parts):
        if part.group and part.times and part.times[0] != "?":
            _check_repeated_group(part, flags)
        for sequence in part.group:
            _check_sequence(sequence, flags)
        inner = [each for sequence in part.group for each in sequence]
        loops = [each for each in (part, *inner) if each.repeats]
        repeats += len(loops)
        over = [*loops, *(inner if part.repeats else ())]
        last = place == len(parts) - 1
        if not last and any(_matches(each, space, flags) for each in over for space in " \n\t"):
            raise _SlowError("what repeats over white space must come last")
    if repeats > _MOST_REPEATS:
        raise _SlowError(f"more than {_MOST_REPEATS} repeats follow each other")


def _check_repeated_group(part: Item, flags: str) -> None:
    """Check that a repeated group can only match in one way."""
    if len(part.group) > 1:
        raise _SlowError("a repeated group has alternatives")
    first, *others = part.group[0]
    varying = [each for each in others if each.varies]
    if first.varies or len(varying) > 1:
        raise _SlowError("a repeated group can be read in several ways")
    begins = "".join(re.findall(flags + first.char, _ALL)) if varying else ""
    if varying and re.search(flags + varying[0].char, begins):
        raise _SlowError("where a repeated group begins again cannot be told")


def _matches(part: Item, letter: str, flags: str) -> bool:
    return bool(part.char) and re.fullmatch(flags + part.char, letter) is not None
