"""Read files of lines, cells and objects: formats by name, and errors that name the place."""

from __future__ import annotations

import csv
import glob
import gzip
import json
import math
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeVar

from ..exceptions import DiscemError, InputError, needing

STDIN = "-"
_FORMATS = {
    ".txt": "txt",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",  # what many call their JSON lines; a real array is refused in line 1
    ".parquet": "parquet",
}
FORMATS = tuple(dict.fromkeys(_FORMATS.values()))
_MEGABYTE = 2**20
_LEAST = 64  # bytes of memory per document besides its text
_MOST_TIMES = 100  # that packed text comes to its size: prose 3, logs 20, what is made to harm 1000
_NAMED = 10  # columns named in a message
_DELIMITERS = (",", ";", "\t", "|")

Item = TypeVar("Item")
Skip = Callable[[str], int | None]
"""How many of the first rows of a file to leave out; None is all of them."""


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` items, the last maybe shorter; an error comes after what came before it.

    Examples
    --------
    >>> list(batches("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    batch: list[Item] = []
    try:
        for item in items:
            batch.append(item)
            if len(batch) == size:
                full, batch = batch, []
                yield full
    except DiscemError:  # of a bad line, say
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def guess_format(name: str) -> str | None:
    """Return the format that the name of a file implies, if any."""
    return _FORMATS.get(Path(name.removesuffix(".gz")).suffix)


def find_format(name: str, given: str | None) -> str:
    if given is not None and given not in FORMATS:
        raise InputError(f"format {given!r} is unknown: use {', '.join(FORMATS)}")
    format = given or ("txt" if name == STDIN else guess_format(name))
    if name != STDIN and os.path.isdir(name):
        raise InputError(f"{name}: it is a folder; give the files in it")
    if format is None:
        raise InputError(
            f"{name}: its name does not tell the format; add --format, one of {', '.join(FORMATS)}"
        )
    if format == "parquet" and (name == STDIN or name.endswith(".gz")):
        raise InputError(f"{shown_name(name)}: Parquet is read from a file of its own, not packed")
    if name != STDIN and not os.path.exists(name):
        raise InputError(f"{name}: there is no such file")
    return format


def expanded(names: Iterable[str]) -> list[str]:
    """Return file names; patterns such as ``parts/*.csv`` become the matching files, in order."""
    found: list[str] = []
    for name in names:
        if name == STDIN or not glob.has_magic(name) or os.path.exists(name):
            found.append(name)
            continue
        matches = sorted(each for each in glob.glob(name, recursive=True) if os.path.isfile(each))
        if not matches:
            raise InputError(f"{name}: no file has such a name")
        found += matches
    return found


def check_sources(paths: Iterable[str], format: str | None) -> None:
    """Check that the files exist and that their formats are known."""
    for path in paths:
        find_format(path, format)


def shown_name(name: str) -> str:
    return "standard input" if name == STDIN else name


def listed(names: Iterable[str]) -> str:
    """Format the first names for a message."""
    names = list(names)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (", ".join(map(repr, names[:_NAMED])) or "none") + more


def read_each(
    sources: Iterable[tuple[str, str]],
    read: Callable[[str, str, int], Iterator[Item]],
    skip: Skip | None,
    what: str,
) -> Iterator[Item]:
    """Yield what ``read(path, format, before)`` finds in each file.

    An empty file is an error.
    """
    for path, format in sources:
        before = skip(path) if skip is not None else 0
        if before is None:
            continue
        empty = True
        for item in read(path, format, before):
            empty = False
            yield item
        if empty and not before:
            raise InputError(f"{shown_name(path)}: no {what} in it")


# --- lines ----------------------------------------------------------------------------------------


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path == STDIN:
        if sys.stdin is None:
            raise InputError("standard input: it is closed")
        yield sys.stdin.buffer
    else:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            yield file  # type: ignore[misc]


def read_lines(path: str, max_size: int) -> Iterator[str]:
    """Yield lines with their ends, decoded one by one, so that an error names its line."""
    number = unpacked = 0
    longest = max_size * _MEGABYTE
    most = _most_unpacked(path, max_size) if path.endswith(".gz") else math.inf
    try:
        with _opened(path) as file:
            while line := file.readline(longest + 1):
                number += 1
                unpacked += len(line) + _LEAST
                if len(line) > longest:
                    raise InputError(
                        f"{shown_name(path)}, line {number}: longer than {max_size} MB; "
                        "raise --max-size if that is right"
                    )
                if unpacked > most:
                    raise _too_much(path, max_size)
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{shown_name(path)}, line {number}: cannot be read as UTF-8 text: {error.reason} "
            f"at byte {error.start + 1} of the line"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        after = f" after line {number}" if number else ""
        raise InputError(f"{shown_name(path)} cannot be read{after}: {reason}") from error


def _most_unpacked(path: str, max_size: int) -> float:
    """Return the most bytes a packed file may unpack to; infinite without a known size."""
    packed = os.path.getsize(path) if os.path.isfile(path) else math.inf
    return max(max_size * _MEGABYTE, _MOST_TIMES * packed)


def _too_much(path: str, max_size: int) -> InputError:
    return InputError(
        f"{path}: unpacks to more than {max_size} MB and than {_MOST_TIMES} times its size; "
        "raise --max-size if that is right"
    )


# --- cells ----------------------------------------------------------------------------------------


def csv_rows(
    path: str, max_size: int, delimiter: str = "", tight: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield the header and the rows, of equal length, with the number of their last line.

    Without a delimiter, use the comma, or another separator of the header if it has no comma.
    `tight` strips blanks before a cell.
    """
    csv.field_size_limit(min(max_size * _MEGABYTE, 2**31 - 1))  # 128 KiB by default
    lines = read_lines(path, max_size)
    first = next(lines, "")
    delimiter = delimiter or next((each for each in _DELIMITERS if each in first), ",")
    rows = csv.reader(
        chain((first,), lines), delimiter=delimiter, strict=True, skipinitialspace=tight
    )
    try:
        header = next(rows, [])
        if not header:
            return
        yield rows.line_num, header
        for row in rows:
            if not row:
                continue  # an empty line
            if len(row) != len(header):
                raise InputError(
                    f"{shown_name(path)}, line {rows.line_num}: {len(row)} columns, but the header "
                    f"has {len(header)}; quote a field that holds {delimiter!r}"
                )
            yield rows.line_num, row
    except csv.Error as error:
        message = str(error)
        if "field limit" in message:
            message += "; raise --max-size if that is right"
        elif "new-line character" in message:  # of which Python says how to open the file
            message = (
                "a carriage return (CR) that ends no line; end lines by LF or CR LF, or put the "
                "cell in quotes"
            )
        raise InputError(f"{shown_name(path)}, line {rows.line_num}: {message}") from error


# --- objects --------------------------------------------------------------------------------------


def json_objects(
    path: str, max_size: int, wanted: tuple[str, ...] = ()
) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield the JSON object of every line, its line number, and the line itself.

    The `wanted` fields (or all) must not occur twice.
    """
    fields_of = partial(_distinct, wanted)
    for number, line in enumerate(read_lines(path, max_size), 1):
        if not line.strip():
            continue
        where = f"{shown_name(path)}, line {number}"
        try:
            fields = json.loads(line, object_pairs_hook=fields_of)
        except RecursionError as error:
            raise InputError(f"{where}: cannot be read as JSON: it is nested too deep") from error
        except ValueError as error:
            reason = str(error).split("; use sys.")[0]  # what Python says of endless numbers
            raise InputError(f"{where}: cannot be read as JSON: {reason}") from error
        if not isinstance(fields, dict):
            raise InputError(f"{where}: expected a JSON object, got {line.strip()[:20]!r}")
        yield number, fields, line


def _distinct(wanted: tuple[str, ...], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a JSON object; a repeated name is an error."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        for name in wanted or names:
            if names.count(name) > 1:
                raise ValueError(f"more than one field is named {name!r}")
    return fields


def label_of(value: Any, where: str) -> str | None:
    """Return a label as text; None if there is none."""
    if isinstance(value, bool | int):
        value = json.dumps(value)
    elif isinstance(value, Decimal | date | timedelta):  # of Parquet
        value = str(value)
    elif isinstance(value, float):
        value = None if value != value else json.dumps(value)  # NaN is a missing cell
    if value is not None and not isinstance(value, str):
        raise InputError(f"{where}: expected one label, got {str(value)[:20]!r}")
    if value and value.endswith("\0"):
        raise InputError(f"{where}: the label {value[:20]!r} ends with a NUL character; remove it")
    return value or None


# --- Parquet --------------------------------------------------------------------------------------


@contextmanager
def parquet_file(path: str) -> Iterator[Any]:
    """Open a Parquet file; errors in the block are reported in one line."""
    with needing("Parquet files need pyarrow", "'discem[parquet]'"):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    try:
        with ParquetFile(path) as file:
            yield file
    except (ArrowException, OSError, UnicodeError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from error


def row_groups(path: str, least: int) -> list[tuple[tuple[int, ...], int]]:
    """Return the row groups of a file, and the rows before them; small neighbours are merged."""
    with parquet_file(path) as file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    found: list[tuple[tuple[int, ...], int]] = []
    some: tuple[int, ...] = ()
    begun = rows = 0
    for place, size in enumerate(sizes):
        some, rows = (*some, place), rows + size
        if rows - begun >= least:
            found.append((some, begun))
            some, begun = (), rows
    if some and found:  # too few to be read alone
        groups, begun = found.pop()
        some = (*groups, *some)
    return [*found, (some, begun)] if some else found


def expected_rows(path: str, format: str) -> float | None:
    """Return the approximate number of rows of a file, if it is fast to find."""
    if path == STDIN or not os.path.isfile(path):
        return None
    if format == "parquet":
        with parquet_file(path) as file:
            return float(file.metadata.num_rows)
    if path.endswith(".gz"):
        return None
    with open(path, "rb") as text:
        head = text.read(_MEGABYTE)
    return head.count(b"\n") * os.path.getsize(path) / max(len(head), 1)


def check_unpacked(metadata: Any, wanted: list[str], path: str, max_size: int) -> None:
    """Check the unpacked size of the wanted columns, as stated in the file."""
    groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
    columns = (group.column(place) for group in groups for place in range(group.num_columns))
    sizes = (each.total_uncompressed_size for each in columns if each.path_in_schema in wanted)
    if sum(sizes) > _most_unpacked(path, max_size):
        raise _too_much(path, max_size)
