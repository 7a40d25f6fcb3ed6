"""``discem explain``: what every word or column adds to a decision."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..exceptions import InputError, OptionError
from ..io.documents import STDIN, Document, guess_format
from ._documents import Texts
from ._models import check_options, find_class, is_table, load_model
from ._options import (
    AsJson,
    Format,
    LabelColumn,
    MaxSize,
    ModelFile,
    OutputFile,
    TextColumn,
    of_tables,
    of_text,
    option,
)
from ._output import records
from ._reader import Batch, Source, answers_of, reader_of
from ._screen import Warnings, counted, one_line, show_parts, to_json

if TYPE_CHECKING:
    from .. import Explanation, TextClassifier


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
        str | None, option("The class to explain.", default="the predicted one")
    ] = None,
    against: Annotated[
        str | None, option("The class to compare it with.", default="the next best")
    ] = None,
    output: OutputFile = None,
    top: Annotated[int, option("Words or columns to show.", "N", default=True, min=1)] = 20,
    format: Format = None,
    as_json: AsJson = False,
    max_size: MaxSize = 64,
    words: Annotated[str | None, of_text("List the words of a class.", "LABEL")] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    row: Annotated[
        int | None,
        of_tables("Number of the row to explain; the first row is 1.", "N", default="all", min=1),
    ] = None,
) -> None:
    """Show what each word or column adds to the log-odds of a class, or list the words of a class.

    With -o, the explanations of all rows of a table go to a file, one row each. The ending of its
    name tells the format: CSV, TSV, JSON lines or Parquet.
    """
    if bool(what) == bool(words):
        raise OptionError("give either a text or documents to explain, or --words LABEL")
    source = Source(what or [], format, max_size)
    is_text = not format and _is_text(source.data)
    if not is_text:
        source.check(output, reads=[model])
    classifier = load_model(model)
    text_flags = {"--words": words, "--text-column": text_column, "--label-column": label_column}
    check_options(model, classifier, text_flags, {"--row": row, "-o": output})
    answers = answers_of(classifier)
    answers.refuse(model, {"--label": label, "--against": against}, {})
    if words:
        _show_words(classifier, words, top, as_json)
        return
    if is_text and is_table(classifier):
        raise InputError(
            f"there is no file {one_line(source.data[0])!r}, and {model} is a model of tables: "
            "name a file of rows"
        )
    if is_text:
        asked: Iterator[Batch] = iter([Texts([Document(None, source.data[0])], Warnings())])
    else:
        hint = f"{model} is a model of documents, not of tables"
        asked = reader_of(classifier, source, text_flags, hint).batches(1000)

    with records(output) if output is not None else nullcontext() as file:
        for batch, i in _chosen(asked, row):
            with batch.translated():
                explanation = classifier.explain(batch.one(i))
            shown = top if file is None else len(explanation.columns)
            record = answers.explained(explanation, batch, i, label, against, shown)
            if file is not None:
                wide = _wide(record, explanation)
                file.add({name: [cell] for name, cell in wide.items()})
            elif as_json:
                typer.echo(to_json(record))
            else:
                answers.show_explanation(record, batch, i)


def _chosen(batches: Iterator[Batch], wanted: int | None) -> Iterator[tuple[Batch, int]]:
    """Yield all documents or rows, or the one with that number, counted from 1."""
    done = 0
    for batch in batches:
        if wanted is None:
            yield from ((batch, i) for i in range(len(batch)))
        elif wanted <= done + len(batch):
            yield batch, wanted - 1 - done
            return
        done += len(batch)
    if wanted is not None:
        raise InputError(f"--row {wanted}: there are only {counted(done, 'row')}")


def _is_text(what: list[str]) -> bool:
    """Return whether a single argument is a text: neither a file nor named like one."""
    return len(what) == 1 and what[0] != STDIN and not _named_like_file(what[0])


def _named_like_file(word: str) -> bool:
    is_name = guess_format(word) is not None and not any(c.isspace() for c in word)
    return is_name or os.path.isfile(word)  # also of a text too long for a name


def _wide(record: dict[str, Any], explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as one row, with a column for each contribution."""
    parts = {name: part for name, *_, part in record["columns"]}
    plain = {name: cell for name, cell in record.items() if not name.endswith("columns")}
    row = {name: cell for name, cell in plain.items() if not isinstance(cell, dict)}
    for name in map(str, explanation.columns):
        row[f"column {name}" if name in row else name] = parts.get(name, 0.0)
    return row


def _show_words(model: TextClassifier, label: str, top: int, as_json: bool) -> None:
    if model.n_features is not None:
        raise OptionError("--words: a model that was fitted with --hash keeps no list of its words")
    found = model.top_words(find_class(model, label), top)
    if as_json:
        typer.echo(to_json({"label": label, "words": [[word, score] for word, score in found]}))
    else:
        rows = [(word, f"{score:.3g}") for word, score in found]
        show_parts(f"words of {label}", "word", "score", rows)
