"""``discem predict``: a class for every document, or row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import exp
from typing import IO, TYPE_CHECKING, Annotated

from rich.table import Table

from ..exceptions import OptionError
from ..io.documents import LabelsNeeded
from ._models import check_options, class_names, is_regressor, load_model, record_of, refuse
from ._options import (
    BatchSize,
    Data,
    Format,
    IdColumn,
    LabelColumn,
    MaxSize,
    ModelFile,
    OutputFile,
    TextColumn,
    of_tables,
    of_text,
    option,
)
from ._output import csv_writer, form_of, opened
from ._reader import Batch, reader_of
from ._screen import Meter, one_line, screen, to_json
from ._sources import Source

if TYPE_CHECKING:
    import numpy as np

    Scored = Iterator[tuple[Batch, np.ndarray]]

_FRAME = 10  # lines and blanks around three columns
_LEAST_TEXT = 20


def predict(
    model: ModelFile,
    data: Data,
    output: OutputFile = None,
    format: Format = None,
    proba: Annotated[
        bool,
        option(
            "Add the probability. For tables, and with --json, add that of every class.",
            None,
            "--proba",
        ),
    ] = False,
    as_json: Annotated[
        bool, option("Write JSON lines instead of text or CSV.", None, "--json")
    ] = False,
    table: Annotated[
        bool, option("Write a table for people, with the beginning of each text.", None, "--table")
    ] = False,
    batch_size: BatchSize = 1000,
    max_size: MaxSize = 64,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    no_labels: Annotated[
        bool, of_text("Read whole lines of txt files as text, tabs included.", None, "--no-labels")
    ] = False,
    id_column: IdColumn = None,
    quantiles: Annotated[
        str | None,
        of_tables("For regression: the quantiles to write.", "Q,Q,..", default="0.05,0.5,0.95"),
    ] = None,
) -> None:
    """Print the class of each document, one per line, or of each row of a table, as CSV.

    A model of numbers prints their mean, standard deviation and quantiles instead.

    Labels in DATA, if there are any, are ignored.
    """
    if as_json and table:
        raise OptionError("give either --json or --table")
    source = Source.of(data, format, max_size)
    source.check(output, reads=[model])
    classifier = load_model(model)
    text_flags = {"--text-column": text_column, "--label-column": label_column}
    table_flags = {"--id": id_column}
    check_options(model, classifier, text_flags | {"--no-labels": no_labels or None}, table_flags)
    hint = f"{model} is a model of documents, not of tables"
    reader = reader_of(classifier, source, text_flags | table_flags, hint)
    form = form_of(output, as_json, table, reader.in_files)
    if is_regressor(classifier):
        from ._numbers import quantiles_of, refuse_classes, write_predictions

        refuse_classes(classifier, {"--proba": proba or None})
        asked = quantiles_of(quantiles)
        with opened(output) as file, Meter(bar=not file.isatty()) as meter:
            write_predictions(file, form, reader, batch_size, asked, meter)
        return
    refuse({"--quantiles": quantiles}, f"is for numbers, and {model} tells classes")
    names = class_names(classifier)
    labels: LabelsNeeded = "ignored" if no_labels else "optional"
    with opened(output) as file, Meter(bar=not file.isatty()) as meter:
        _WRITERS[form](file, names, reader.scored(batch_size, meter, labels), proba)


def _write_lines(file: IO[str], names: list[str], scored: Scored, proba: bool) -> None:
    lines = [one_line(name) for name in names]
    for _, log_proba in scored:
        for row in log_proba:
            best = row.argmax()
            share = f"\t{exp(row[best]):.4f}" if proba else ""
            file.write(f"{lines[best]}{share}\n")
        file.flush()  # whoever reads along a pipe need not wait


def _write_json(file: IO[str], names: list[str], scored: Scored, proba: bool) -> None:
    for batch, log_proba in scored:
        for i, row in enumerate(log_proba):
            file.write(to_json(batch.identity(i) | record_of(names, row, proba)) + "\n")
        file.flush()


def _write_csv(
    file: IO[str], names: list[str], scored: Scored, proba: bool, delimiter: str = ","
) -> None:
    writer, header = csv_writer(file, delimiter), False
    for batch, log_proba in scored:
        if not header:
            columns = [f"p({name})" for name in names] if proba else []
            writer.writerow([batch.key, "label", *columns])
            header = True
        for name, row in zip(batch.names, log_proba, strict=True):
            shares = [f"{exp(value):.6g}" for value in row] if proba else []
            writer.writerow([name, names[row.argmax()], *shares])
        file.flush()


def _write_table(file: IO[str], names: list[str], scored: Scored, proba: bool) -> None:
    """For people: what names a row comes first, and the beginning of a text last."""
    console, table, turn = screen(file), Table(), 0
    room = max(console.width - max(map(len, names)) - len("probability") - _FRAME, _LEAST_TEXT)
    for batch, log_proba in scored:
        if not table.columns:
            turn = 0 if batch.identity(0) else 1
            columns = [one_line(batch.key), "class", "probability"]
            for name in columns[turn:] + columns[:turn]:
                table.add_column(name, justify="right" if name == columns[2] else "left")
        for name, row in zip(batch.names, log_proba, strict=True):
            best = row.argmax()
            shown = "" if name is None else one_line(str(name)[:room])
            cells = [shown, one_line(names[best]), f"{exp(row[best]):.4f}"]
            table.add_row(*cells[turn:], *cells[:turn])
    console.print(table)


_WRITERS: dict[str, Callable[..., None]] = {
    "lines": _write_lines,
    "jsonl": _write_json,
    "csv": _write_csv,
    "tsv": partial(_write_csv, delimiter="\t"),
    "table": _write_table,
}
