"""Files and formats that commands write."""

from __future__ import annotations

import csv
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Literal

from ..exceptions import InputError
from ..io.files import write_atomically
from ..io.sources import guess_format
from ._reader import is_standard_output
from ._screen import plain_cell, to_json

_NONE: Mapping[str, Any] = MappingProxyType({})


@contextmanager
def opened(path: Path | None, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """Open the standard output, or a file that appears when it is complete."""
    from ..report._output import OutputError

    if path is None or is_standard_output(path):
        if sys.stdout is None:
            raise OutputError("cannot write to standard output: it is closed")
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        with write_atomically(path, mode) as file:
            yield file
    except OSError as error:
        raise OutputError(f"cannot write to {path}: {error.strerror}") from error


def form_of(path: Path | None, as_json: bool, table: bool, otherwise: str) -> str:
    """Return the output format: the requested one, or that of the file name."""
    if as_json or table:
        return "table" if table else "jsonl"
    format = guess_format(str(path or ""))
    return format if format in ("tsv", "jsonl") and otherwise == "csv" else otherwise


class _Lines:
    """Convert CR LF line ends of a csv writer, which quotes CR, to LF."""

    def __init__(self, file: IO[str]):
        self.file = file

    def write(self, line: str) -> None:
        self.file.write(line.removesuffix("\r\n") + "\n")


def csv_writer(file: IO[str], delimiter: str = ",") -> Any:
    """Return a writer of CSV or TSV rows."""
    return csv.writer(_Lines(file), delimiter=delimiter, lineterminator="\r\n")


# --- records --------------------------------------------------------------------------------------


@contextmanager
def records(path: Path | None) -> Iterator[Records]:
    """Open a file of records, in the format of its name: CSV, TSV, JSON lines or Parquet."""
    form = guess_format(str(path or "")) or "csv"
    with opened(path, "wb" if form == "parquet" else "w") as file:
        yield (found := _FORMS.get(form, CsvRecords)(file))
        found.end()


class Records(ABC):
    """Records that are written in batches."""

    typed = False  # whether the format distinguishes numbers from texts

    def __init__(self, file: IO[Any]):
        self.file = file

    @abstractmethod
    def add(self, columns: Mapping[str, list[Any]], types: Mapping[str, Any] = _NONE) -> None:
        """Write some records by column; Parquet keeps the types of columns that have one."""

    def end(self) -> None:
        """Write what is left."""
        self.file.flush()


class JsonRecords(Records):
    typed = True

    def add(self, columns: Mapping[str, list[Any]], types: Mapping[str, Any] = _NONE) -> None:
        for row in zip(*columns.values(), strict=True):
            self.file.write(to_json(dict(zip(columns, map(plain_cell, row), strict=True))) + "\n")


class CsvRecords(Records):
    """Records as CSV; the first batch fixes the columns."""

    delimiter = ","
    names: list[str] | None = None

    def add(self, columns: Mapping[str, list[Any]], types: Mapping[str, Any] = _NONE) -> None:
        writer = csv_writer(self.file, self.delimiter)
        if self.names is None:
            self.names = list(columns)
            writer.writerow(self.names)
        check_names(self.names, columns)
        for row in zip(*(columns[name] for name in self.names), strict=True):
            writer.writerow(row)


class TsvRecords(CsvRecords):
    delimiter = "\t"


class ParquetRecords(Records):
    """Records as Parquet, written at the end, when the types are known."""

    typed = True

    def __init__(self, file: IO[Any]):
        super().__init__(file)
        self.columns: dict[str, list[Any]] = {}
        self.types: dict[str, Any] = {}

    def add(self, columns: Mapping[str, list[Any]], types: Mapping[str, Any] = _NONE) -> None:
        if not self.columns:
            self.columns = {name: [] for name in columns}
        check_names(list(self.columns), columns)
        for name, cells in columns.items():
            self.columns[name] += cells
        self.types.update(types)

    def end(self) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        arrays = {}
        for name, cells in self.columns.items():
            try:
                arrays[name] = pa.array(cells, self.types.get(name))
            except (pa.ArrowInvalid, pa.ArrowTypeError):  # a mean of whole numbers, for example
                arrays[name] = pa.array(cells)
        parquet.write_table(pa.table(arrays), self.file)
        super().end()


_FORMS: dict[str, Callable[[Any], Records]] = {
    "csv": CsvRecords,
    "tsv": TsvRecords,
    "jsonl": JsonRecords,
    "parquet": ParquetRecords,
}


def check_names(names: list[str], columns: Mapping[str, Any]) -> None:
    """Check that records have the columns of the first ones."""
    if set(names) != set(columns):
        other = sorted(set(names) ^ set(columns))[0]
        raise InputError(
            f"column {other!r} is not in all of the rows: write JSON lines, to a name that ends "
            "in .jsonl"
        )
