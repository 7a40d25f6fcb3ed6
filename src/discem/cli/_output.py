"""Files and formats that commands write."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..io.files import write_atomically
from ..io.sources import guess_format
from ._sources import is_standard_output


@contextmanager
def opened(path: Path | None) -> Iterator[IO[str]]:
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


def form_of(path: Path | None, as_json: bool, table: bool, otherwise: str) -> str:
    """What to write: as it is asked for, or as the name of the file tells."""
    if as_json or table:
        return "table" if table else "jsonl"
    format = guess_format(str(path or ""))
    return format if format in ("tsv", "jsonl") and otherwise == "csv" else otherwise


class _Lines:
    """Writes lines that end by LF, of a writer that ends them by CR LF and so quotes a CR."""

    def __init__(self, file: IO[str]):
        self.file = file

    def write(self, line: str) -> None:
        self.file.write(line.removesuffix("\r\n") + "\n")


def csv_writer(file: IO[str], delimiter: str = ",") -> Any:
    """Writes rows of CSV, or TSV."""
    return csv.writer(_Lines(file), delimiter=delimiter, lineterminator="\r\n")
