"""``discem explain``: what every word adds to a decision."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import exp
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ..exceptions import InputError, OptionError
from ..io.documents import STDIN, guess_format, read_documents
from ._models import class_names, find_class, load_model
from ._options import AsJson, Format, LabelColumn, MaxSize, ModelFile, TextColumn
from ._screen import one_line, screen, to_json

if TYPE_CHECKING:
    from .. import TextClassifier


def explain(
    model: ModelFile,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT or DATA",
            help="A text in quotes, files of documents, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The class to explain.", show_default="the predicted one")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="The class to compare it with.", show_default="the next best")
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="List the words of a class.", show_default=False),
    ] = None,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Words to show.")] = 20,
    format: Format = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    as_json: AsJson = False,
    max_size: MaxSize = 64,
) -> None:
    """Show what each word adds to the log-odds of a class, or the words of a class."""
    if bool(what) == bool(words):
        raise OptionError("give either a text or documents to explain, or --words LABEL")
    texts = _texts(what or [], format, text_column, label_column, max_size)
    classifier = load_model(model)
    if words:
        _show_words(classifier, words, top, as_json)
    for text in texts:
        record = _explain(classifier, text, label, against, top)
        if as_json:
            typer.echo(to_json(record))
        else:
            _show_explanation(record)


def _texts(
    what: list[str], format: str | None, text: str, label: str, max_size: int
) -> Iterator[str]:
    """A single argument that neither is a file nor is named like one is the text itself."""
    if len(what) == 1 and what[0] != STDIN and not format and not _named_like_file(what[0]):
        return iter(what)
    documents = read_documents(
        what, format=format, text=text, label=label, labels="optional", max_size=max_size
    )
    return (document.text for document in documents)


def _named_like_file(word: str) -> bool:
    is_name = guess_format(word) is not None and not any(c.isspace() for c in word)
    return is_name or os.path.isfile(word)  # also of a text too long for a name


def _explain(
    model: TextClassifier, text: str, label: str | None, against: str | None, top: int
) -> dict[str, Any]:
    names = class_names(model)
    if len(names) < 2:
        raise InputError(f"the model knows a single class, {names[0]!r}: nothing to set it against")
    log_proba = model.predict_log_proba([text])[0]
    ranked = [names[place] for place in (-log_proba).argsort()]
    label = label or next(name for name in ranked if name != against)
    against = against or next(name for name in ranked if name != label)
    if label == against:
        raise OptionError(f"--label and --against are both {label!r}")
    one, other = find_class(model, label), find_class(model, against)
    explanation = model.explain(text)
    parts = sorted(explanation.against(one, other), key=lambda part: -abs(part[1]))
    places = [names.index(label), names.index(against)]
    odds = {name: getattr(explanation, name)[places] for name in ("scores", "intercept")}
    log_odds, start = (float(pair[0] - pair[1]) for pair in odds.values())
    return {
        "label": label,
        "probability": exp(log_proba[places[0]]),
        "against": against,
        "log_odds": log_odds,
        "start": start,
        "words": [[word, float(part)] for word, part in parts[:top]],
        "other_words": float(sum(part for _, part in parts[top:])),
    }


def _show_explanation(record: dict[str, Any]) -> None:
    title = "{label} against {against}, probability {probability:.4f}".format(**record)
    rows = [(word, f"{part:+.3f}") for word, part in record["words"]]
    if record["other_words"]:
        rows.append(("(other words)", f"{record['other_words']:+.3f}"))
    rows.append(("(before any word)", f"{record['start']:+.3f}"))
    _show(title, "log-odds", rows, total=f"{record['log_odds']:+.3f}")


def _show_words(model: TextClassifier, label: str, top: int, as_json: bool) -> None:
    if model.n_features is not None:
        raise OptionError("--words: a model that was fitted with --hash keeps no list of its words")
    found = model.top_words(find_class(model, label), top)
    if as_json:
        typer.echo(to_json({"label": label, "words": [[word, score] for word, score in found]}))
    else:
        _show(f"words of {label}", "score", [(word, f"{score:.3g}") for word, score in found])


def _show(title: str, figure: str, rows: list[tuple[str, str]], total: str = "") -> None:
    table = Table("word")
    table.add_column(figure, justify="right")
    for word, value in rows:
        table.add_row(one_line(word), value)
    if total:
        table.add_section()
        table.add_row("sum", total)
    console = screen()
    console.print(one_line(title), soft_wrap=True)
    console.print(table)
