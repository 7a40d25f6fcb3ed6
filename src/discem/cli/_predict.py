"""``discem predict``: predict a class for every document or row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Annotated, Any

from rich.table import Table

from ..exceptions import OptionError
from ..io.documents import LabelsNeeded
from ._models import load_model
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
from ._reader import Batch, Source, reader_for
from ._screen import Meter, one_line, screen, to_json

Answered = Iterator[tuple[Batch, Any]]

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
    text_flags: dict[str, Any] = {"--text-column": text_column, "--label-column": label_column}
    text_flags |= {"--no-labels": no_labels or None}
    table_flags = {"--id": id_column}
    reader = reader_for(model, classifier, source, text_flags, table_flags)
    form = form_of(output, as_json, table, reader.in_files)
    answers = reader.answers
    answers.refuse(model, {"--proba": proba or None}, {"--quantiles": quantiles})
    answers.prepare(proba, quantiles)
    labels: LabelsNeeded = "ignored" if no_labels else "optional"
    with opened(output) as file, Meter(bar=not file.isatty()) as meter:
        _WRITERS[form](file, answers, reader.answered(batch_size, meter, labels))


def _write_lines(file: IO[str], answers: Any, answered: Answered) -> None:
    for _, found in answered:
        for row in answers.rows(found):
            file.write(answers.line(row) + "\n")
        file.flush()  # so that the reader of a pipe need not wait


def _write_json(file: IO[str], answers: Any, answered: Answered) -> None:
    for batch, found in answered:
        for i, row in enumerate(answers.rows(found)):
            file.write(to_json(batch.identity(i) | answers.record(row)) + "\n")
        file.flush()


def _write_csv(file: IO[str], answers: Any, answered: Answered, delimiter: str = ",") -> None:
    writer, header = csv_writer(file, delimiter), False
    for batch, found in answered:
        if not header:
            writer.writerow([batch.key, *answers.titles])
            header = True
        for name, row in zip(batch.names, answers.rows(found), strict=True):
            writer.writerow([name, *answers.cells(row)])
        file.flush()


def _write_table(file: IO[str], answers: Any, answered: Answered) -> None:
    """Write a table for people: names of rows first, the start of the text last."""
    console, table, turn = screen(file), Table(), 0
    taken = max(map(len, answers.words), default=0) + len("probability") + _FRAME
    width = max(console.width - taken, _LEAST_TEXT)
    for batch, found in answered:
        if not table.columns:
            turn = 0 if batch.identity(0) else 1
            columns = [one_line(batch.key), *answers.heads]
            for name in columns[turn:] + columns[:turn]:
                left = name in (columns[0], "class")
                table.add_column(name, justify="left" if left else "right")
        for name, row in zip(batch.names, answers.rows(found), strict=True):
            cells = ["" if name is None else one_line(str(name)[:width]), *answers.shown(row)]
            table.add_row(*cells[turn:], *cells[:turn])
    console.print(table)


_WRITERS: dict[str, Callable[..., None]] = {
    "lines": _write_lines,
    "jsonl": _write_json,
    "csv": _write_csv,
    "tsv": partial(_write_csv, delimiter="\t"),
    "table": _write_table,
}
