"""Predictions for the rows of tables, as CSV, JSON lines, or a table for people."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from math import exp
from typing import IO, Any, NamedTuple

import numpy as np
from rich.table import Table

from ..io.sources import guess_format
from ._models import class_names, record_of
from ._screen import Meter, Warnings, one_line, screen, to_json
from ._sources import Source
from ._tables import Reader, Roles, names_of, need_column, scored_rows


class Prediction(NamedTuple):
    """What is said of a row: what names it, its name, and ``ln p(y | x)``."""

    key: str
    name: Any
    log_proba: np.ndarray


def form_of(path: Any, as_json: bool, table: bool) -> str:
    """What to write: as it is asked for, or as the name of the file tells."""
    if as_json or table:
        return "table" if table else "jsonl"
    format = guess_format(str(path or ""))
    return format if format in ("tsv", "jsonl") else "csv"


def write_rows(
    file: IO[str], model: Any, source: Source, size: int, id: str | None, form: str, proba: bool
) -> None:
    """Predict the rows of a table, in their order."""
    names = class_names(model)
    with Meter(bar=not file.isatty()) as meter:
        found = _predictions(model, source, size, id, meter)
        if form == "table":
            _write_table(file, names, found)
        elif form == "jsonl":
            _write_json(file, names, found, proba)
        else:
            _write_csv(file, names, found, proba, "\t" if form == "tsv" else ",")


def _predictions(
    model: Any, source: Source, size: int, id: str | None, meter: Meter
) -> Iterator[list[Prediction]]:
    roles = Roles.of(model, None, id)
    reader = Reader(model, roles, Warnings("row"))
    done = 0
    for rows, log_proba in scored_rows(model, reader, source.rows(size), meter):
        if id is not None:
            need_column(rows, id, "--id")
        key, cells = names_of(rows, roles.id, done)
        done += len(rows)
        yield [Prediction(key, *each) for each in zip(cells, log_proba, strict=True)]


def _write_csv(
    file: IO[str], names: list[str], found: Iterator[list[Prediction]], proba: bool, delimiter: str
) -> None:
    columns = [f"p({name})" for name in names] if proba else []
    writer = csv.writer(_Lines(file), delimiter=delimiter, lineterminator="\r\n")
    header = False
    for batch in found:
        if not header:
            writer.writerow([batch[0].key, "label", *columns])
            header = True
        for _, name, row in batch:
            shares = [f"{exp(value):.6g}" for value in row] if proba else []
            writer.writerow([name, names[row.argmax()], *shares])
        file.flush()  # whoever reads along a pipe need not wait


class _Lines:
    """Writes lines that end by LF, of a writer that ends them by CR LF and so quotes a CR."""

    def __init__(self, file: IO[str]):
        self.file = file

    def write(self, line: str) -> None:
        self.file.write(line.removesuffix("\r\n") + "\n")


def _write_json(
    file: IO[str], names: list[str], found: Iterator[list[Prediction]], proba: bool
) -> None:
    for batch in found:
        for key, name, row in batch:
            file.write(to_json({key: name} | record_of(names, row, proba)) + "\n")
        file.flush()


def _write_table(file: IO[str], names: list[str], found: Iterator[list[Prediction]]) -> None:
    table = None
    for batch in found:
        if table is None:
            table = Table(one_line(batch[0].key), "class")
            table.add_column("probability", justify="right")
        for _, name, row in batch:
            best = row.argmax()
            shown = "" if name is None else one_line(str(name))
            table.add_row(shown, one_line(names[best]), f"{exp(row[best]):.4f}")
    screen(file).print(table)
