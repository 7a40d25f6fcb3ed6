"""``discem predict``: a class for every document."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import exp
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.table import Table

from ..exceptions import OptionError
from ..io.documents import Labels
from ..io.files import write_atomically
from ._models import (
    Scored,
    check_options,
    class_names,
    is_table,
    load_model,
    record_of,
    scored,
)
from ._options import (
    DOCUMENTS,
    BatchSize,
    Data,
    Format,
    IdColumn,
    LabelColumn,
    MaxSize,
    ModelFile,
    TextColumn,
)
from ._screen import Meter, one_line, screen, to_json
from ._sources import Source, is_standard_output

_FRAME = 10  # lines and blanks around three columns
_LEAST_TEXT = 20


def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A file to write to, or - for standard output.",
            show_default="-",
        ),
    ] = None,
    format: Format = None,
    proba: Annotated[
        bool,
        typer.Option(
            "--proba", help="Add the probability; of rows, and with --json, that of every class."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON lines instead of lines, or of CSV.")
    ] = False,
    table: Annotated[
        bool, typer.Option("--table", help="A table for people, with the texts' beginnings.")
    ] = False,
    batch_size: BatchSize = 1000,
    max_size: MaxSize = 64,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    no_labels: Annotated[
        bool,
        typer.Option(
            "--no-labels",
            help="Take lines of txt as text, tabs included.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = False,
    id_column: IdColumn = None,
) -> None:
    """Print the class of every document, one per line, or of every row, as CSV.

    Labels in DATA, if there are any, are ignored.
    """
    if as_json and table:
        raise OptionError("give either --json or --table")
    source = Source.of(data, format, max_size)
    source.check(output, reads=[model])
    classifier = load_model(model)
    of_text: dict[str, str | bool | None] = {
        "--text-column": text_column,
        "--label-column": label_column,
        "--no-labels": no_labels or None,
    }
    check_options(model, classifier, of_text, {"--id": id_column})
    if is_table(classifier):
        from ._predict_rows import form_of, write_rows

        form = form_of(output, as_json, table)
        with _output(output) as file:
            write_rows(file, classifier, source, batch_size, id_column, form, proba)
        return
    hint = f"{model} is a model of documents, not of tables"
    labels: Labels = "ignored" if no_labels else "optional"
    documents = source.documents(text_column, label_column, hint, labels)
    names = class_names(classifier)
    write = _write_table if table else _write_json if as_json else _write_lines
    with _output(output) as file, Meter(bar=not file.isatty()) as meter:
        write(file, names, scored(classifier, documents, batch_size, meter), proba)


@contextmanager
def _output(path: Path | None) -> Iterator[IO[str]]:
    """The standard output, or a file that appears when it is whole."""
    from ..report._output import OutputError

    if path is None or is_standard_output(path):
        if sys.stdout is None:
            raise OutputError("cannot write to standard output: it is closed")
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        with write_atomically(path) as file:
            yield file
    except OSError as error:
        raise OutputError(f"cannot write to {path}: {error.strerror}") from error


def _write_lines(file: IO[str], names: list[str], scored: Scored, proba: bool) -> None:
    lines = [one_line(name) for name in names]
    for _, log_proba in scored:
        for row in log_proba:
            best = row.argmax()
            share = f"\t{exp(row[best]):.4f}" if proba else ""
            file.write(f"{lines[best]}{share}\n")
        file.flush()  # whoever reads along a pipe need not wait


def _write_json(file: IO[str], names: list[str], scored: Scored, proba: bool) -> None:
    for _, log_proba in scored:
        for row in log_proba:
            file.write(to_json(record_of(names, row, proba)) + "\n")
        file.flush()


def _write_table(file: IO[str], names: list[str], scored: Scored, proba: bool) -> None:
    console = screen(file)
    room = max(console.width - max(map(len, names)) - len("probability") - _FRAME, _LEAST_TEXT)
    table = Table("class")
    table.add_column("probability", justify="right")
    table.add_column("text")
    for batch, log_proba in scored:
        for (_, text), row in zip(batch, log_proba, strict=True):
            best = row.argmax()
            share = f"{exp(row[best]):.4f}"
            table.add_row(one_line(names[best]), share, one_line(text[:room]))
    console.print(table)
