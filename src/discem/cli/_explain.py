"""``discem explain``: what every word adds to a decision."""

from __future__ import annotations

import os
from math import exp, fsum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ..exceptions import InputError, OptionError
from ..io.documents import STDIN, guess_format
from ._models import (
    Asked,
    check_options,
    class_names,
    find_class,
    is_table,
    load_model,
)
from ._options import (
    DOCUMENTS,
    TABLES,
    AsJson,
    Format,
    LabelColumn,
    MaxSize,
    ModelFile,
    TextColumn,
)
from ._screen import one_line, screen, to_json
from ._sources import Source

if TYPE_CHECKING:
    from .. import TextClassifier


def explain(
    model: ModelFile,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT or DATA",
            help="A text in quotes, files of documents or rows, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The class to explain.", show_default="the predicted one")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="The class to compare it with.", show_default="the next best")
    ] = None,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Words or columns to show.")] = 20,
    format: Format = None,
    as_json: AsJson = False,
    max_size: MaxSize = 64,
    words: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="List the words of a class.",
            show_default=False,
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    row: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="The row to explain, as predictions count them, from 1.",
            show_default="all",
            rich_help_panel=TABLES,
        ),
    ] = None,
) -> None:
    """Show what each word, or column, adds to the log-odds of a class, or the words of a class."""
    if bool(what) == bool(words):
        raise OptionError("give either a text or documents to explain, or --words LABEL")
    source = Source(what or [], format, max_size)
    is_text = not format and _is_text(source.data)
    if not is_text:
        source.check(reads=[model])
    classifier = load_model(model)
    of_text = {"--words": words, "--text-column": text_column, "--label-column": label_column}
    check_options(model, classifier, of_text, {"--row": row})
    if words:
        _show_words(classifier, words, top, as_json)
        return
    if is_table(classifier):
        from ._explain_rows import explained_rows

        asked = explained_rows(classifier, source, row)
    else:
        hint = f"{model} is a model of documents, not of tables"
        documents = source.documents(text_column, label_column, hint, "optional")
        texts = iter(source.data) if is_text else (document.text for document in documents)
        asked = (Asked(classifier.explain(text), "word") for text in texts)
    for each in asked:
        record = _explain(classifier, each, label, against, top)
        if as_json:
            typer.echo(to_json(record))
        else:
            _show_explanation(record, each)


def _is_text(what: list[str]) -> bool:
    """A single argument that neither is a file nor is named like one is the text itself."""
    return len(what) == 1 and what[0] != STDIN and not _named_like_file(what[0])


def _named_like_file(word: str) -> bool:
    is_name = guess_format(word) is not None and not any(c.isspace() for c in word)
    return is_name or os.path.isfile(word)  # also of a text too long for a name


def _explain(
    model: Any, asked: Asked, label: str | None, against: str | None, top: int
) -> dict[str, Any]:
    names, explanation = class_names(model), asked.explanation
    if len(names) < 2:
        raise InputError(f"the model knows a single class, {names[0]!r}: nothing to set it against")
    scores = explanation.scores
    ranked = [names[place] for place in (-scores).argsort()]
    label = label or next(name for name in ranked if name != against)
    against = against or next(name for name in ranked if name != label)
    if label == against:
        raise OptionError(f"--label and --against are both {label!r}")
    one, other = find_class(model, label), find_class(model, against)
    parts = sorted(explanation.against(one, other), key=lambda part: -abs(part[1]))
    if asked.cells is not None:  # of which those that the model does not look at add nothing
        parts = [part for part in parts if part[1]]
    places = [names.index(label), names.index(against)]
    start = explanation.intercept[places]
    return asked.of | {
        "label": label,
        "probability": exp(scores[places[0]] - scores.max())
        / fsum(map(exp, scores - scores.max())),
        "against": against,
        "log_odds": float(scores[places[0]] - scores[places[1]]),
        "start": float(start[0] - start[1]),
        asked.parts: [[word, *asked.cell(word), float(part)] for word, part in parts[:top]],
        f"other_{asked.parts}": float(sum(part for _, part in parts[top:])),
    }


def _show_explanation(record: dict[str, Any], asked: Asked) -> None:
    title = "{label} against {against}, probability {probability:.4f}".format(**record)
    rows = [
        (" = ".join("missing" if w is None else str(w) for w in words), f"{part:+.3f}")
        for *words, part in record[asked.parts]
    ]
    if record[f"other_{asked.parts}"]:
        rows.append((f"(other {asked.parts})", f"{record[f'other_{asked.parts}']:+.3f}"))
    rows.append((f"(before any {asked.part})", f"{record['start']:+.3f}"))
    for key, name in asked.of.items():
        title = f"{key} {name}: {title}"
    _show(title, asked.part, "log-odds", rows, total=f"{record['log_odds']:+.3f}")


def _show_words(model: TextClassifier, label: str, top: int, as_json: bool) -> None:
    if model.n_features is not None:
        raise OptionError("--words: a model that was fitted with --hash keeps no list of its words")
    found = model.top_words(find_class(model, label), top)
    if as_json:
        typer.echo(to_json({"label": label, "words": [[word, score] for word, score in found]}))
    else:
        _show(
            f"words of {label}", "word", "score", [(word, f"{score:.3g}") for word, score in found]
        )


def _show(title: str, part: str, figure: str, rows: list[tuple[str, str]], total: str = "") -> None:
    table = Table(part)
    table.add_column(figure, justify="right")
    for word, value in rows:
        table.add_row(one_line(word), value)
    if total:
        table.add_section()
        table.add_row("sum", total)
    console = screen()
    console.print(one_line(title), soft_wrap=True)
    console.print(table)
