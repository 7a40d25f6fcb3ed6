"""``discem predict``: a class for every document."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import exp
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.table import Table

from ..exceptions import OptionError
from ..io.documents import read_documents
from ..io.files import write_atomically
from ._models import Scored, class_names, load_model, scored
from ._options import BatchSize, Data, Format, LabelColumn, ModelFile, TextColumn
from ._screen import Meter, one_line, screen, to_json

_FRAME = 10  # lines and blanks around three columns
_LEAST_TEXT = 20


def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write there.", show_default="stdout"),
    ] = None,
    format: Format = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    no_labels: Annotated[
        bool,
        typer.Option("--no-labels", help="A line of txt is all text, tabs too."),
    ] = False,
    proba: Annotated[
        bool,
        typer.Option("--proba", help="Add the probability; with --json, that of every class."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines.")] = False,
    table: Annotated[bool, typer.Option("--table", help="A table with the texts' beginnings.")] = (
        False
    ),
    batch_size: BatchSize = 1000,
) -> None:
    """Print the class of every document, one a line.

    Labels in DATA, if there are any, are not looked at.
    """
    if as_json and table:
        raise OptionError("--json and --table exclude each other")
    documents = read_documents(
        data,
        format=format,
        text=text_column,
        label=label_column,
        labels="ignored" if no_labels else "optional",
    )
    classifier = load_model(model)
    names = class_names(classifier)
    write = _write_table if table else _write_json if as_json else _write_lines
    with _output(output) as file, Meter(bar=not file.isatty()) as meter:
        write(file, names, scored(classifier, documents, batch_size, meter), proba)


@contextmanager
def _output(path: Path | None) -> Iterator[IO[str]]:
    """The standard output, or a file that appears when it is whole."""
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    from ..report._output import OutputError, output_file

    output_file(path)
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
            best = row.argmax()
            record: dict[str, Any] = {"label": names[best], "probability": exp(row[best])}
            if proba:
                record["probabilities"] = dict(zip(names, map(exp, row), strict=True))
            file.write(to_json(record) + "\n")
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
