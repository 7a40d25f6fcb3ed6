"""Read tables from files, some rows at a time: CSV, JSON lines and Parquet."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from ..exceptions import InputError
from .cells import Content, join_contents
from .columns import Column
from .file_rows import ArrowRows, ObjectRows, Rows, Stretch, TextRows
from .frames import Table
from .sources import (
    FORMATS,
    STDIN,
    Skip,
    batches,
    check_unpacked,
    csv_rows,
    find_format,
    json_objects,
    parquet_file,
    read_each,
    shown_name,
)

_KINDS = tuple(format for format in FORMATS if format != "txt")
_INDEX = re.compile("__index_level_[0-9]+__")  # index columns of pandas in Parquet files
_AT_ONCE = 1000  # rows at a time when a file is read completely


# --- files ----------------------------------------------------------------------------------------


def read_rows(
    paths: Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    size: int = 1000,
    max_size: int = 64,
    skip: Skip | None = None,
) -> Iterator[Rows]:
    r"""Read the rows of tables lazily, in batches.

    Formats are csv and tsv (with a header), jsonl (an object per line) and parquet. A name that
    ends in ``.gz`` is unpacked. Columns without a name, such as the index of pandas, are left out.

    Parameters
    ----------
    paths : sequence of paths
        "-" is the standard input.
    format : {"csv", "tsv", "jsonl", "parquet"}, optional
        By default the ending of the name.
    size : int
        Number of rows to read at a time.
    max_size : int
        See `discem.io.documents.read_documents`.
    skip : callable, optional
        Called with the name of each file before it is read: how many of its first rows to leave
        out, or None for all of them.

    Yields
    ------
    Rows
        Of one file each.

    Raises
    ------
    InputError
        Naming the file, the line and the column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "fruit.csv")
    ...     length = path.write_text("kind, size\npear, 3\nplum, ?\n")
    ...     (rows,) = read_rows([path])
    >>> rows.cells("kind"), rows.content("size").values
    (['pear', 'plum'], array([ 3., nan]))
    """
    names = [os.fspath(path) for path in paths]
    formats = [_find_table(name, format) for name in names]
    return _read_all(zip(names, formats, strict=True), size, max_size, skip)


def read_part(
    path: str, format: str, groups: Sequence[int] | None, before: int, max_size: int
) -> Rows:
    """Return all rows of a file, or of some row groups of it, after `before` other rows."""
    if groups is None:
        parts = list(_read_all([(path, format)], _AT_ONCE, max_size, None))
    else:
        parts = list(_read_parquet(path, _AT_ONCE, max_size, 0, groups, before))
    return parts[0].joined(parts[1:])


def _find_table(name: str, given: str | None) -> str:
    format = find_format(name, given)
    if format == "txt" and name == STDIN and not given:
        raise InputError(f"standard input: add --format, one of {', '.join(_KINDS)}")
    if format == "txt":
        raise InputError(f"{shown_name(name)}: a table is one of {', '.join(_KINDS)}, not txt")
    return format


def _read_all(
    sources: Iterable[tuple[str, str]], size: int, max_size: int, skip: Skip | None
) -> Iterator[Rows]:
    def read(path: str, format: str, before: int) -> Iterator[Rows]:
        return _READERS[format](path, size, max_size, before)

    return read_each(sources, read, skip, "rows")


def _read_csv(
    path: str, size: int, max_size: int, skip: int, delimiter: str = ""
) -> Iterator[Rows]:
    rows = csv_rows(path, max_size, delimiter, tight=True)
    _, header = next(rows, (0, []))
    names = [name.strip() for name in header]
    _check_names(names, path)
    for batch in batches(islice(rows, skip, None), size):
        yield TextRows.of(names, batch, path)


def _read_jsonl(path: str, size: int, max_size: int, skip: int) -> Iterator[Rows]:
    for batch in batches(islice(json_objects(path, max_size), skip, None), size):
        yield ObjectRows.of(batch, path)


def _read_parquet(
    path: str,
    size: int,
    max_size: int,
    skip: int = 0,
    groups: Sequence[int] | None = None,
    before: int = 0,
) -> Iterator[Rows]:
    with parquet_file(path) as file:
        names = [name for name in file.schema_arrow.names if not _INDEX.fullmatch(name)]
        _check_names(names, path)
        check_unpacked(file.metadata, names, path, max_size)
        done = before
        for full in file.iter_batches(size, row_groups=groups, columns=names):
            batch = full.slice(max(skip - done, 0))
            done += len(full) - len(batch)
            if not len(batch):
                continue
            stretch = Stretch(path, "row", range(done + 1, done + len(batch) + 1))
            done += len(batch)
            yield ArrowRows(dict(zip(batch.schema.names, batch.columns, strict=True)), [stretch])


def _check_names(names: list[str], path: str) -> None:
    for name in names:
        if name and names.count(name) > 1:
            raise InputError(f"{shown_name(path)}: more than one column is named {name!r}")


_READERS: dict[str, Callable[[str, int, int, int], Iterator[Rows]]] = {
    "csv": _read_csv,
    "tsv": partial(_read_csv, delimiter="\t"),
    "jsonl": _read_jsonl,
    "parquet": _read_parquet,
}


# --- tables ---------------------------------------------------------------------------------------


class ReadTable(Table):
    """A table of parsed columns, which can be split and concatenated."""

    def __init__(self, contents: dict[str, Content]):
        self.contents, columns = contents, list(contents.values())
        self.shape = len(columns[0].values) if columns else 0, len(columns)
        super().__init__(
            "dicts", list(contents), self.shape, columns.__getitem__, lambda content, _: content
        )

    def __reduce__(self) -> Any:
        return ReadTable, (self.contents,)

    def __getitem__(self, rows: Any) -> ReadTable:
        return ReadTable({name: content.only(rows) for name, content in self.contents.items()})

    def joined(self, others: Sequence[ReadTable]) -> ReadTable:
        """Append further rows with the same columns."""
        every = [self, *others]
        return ReadTable(
            {
                name: join_contents([table.contents[name] for table in every])
                for name in self.contents
            }
        )


def kind_of(column: Column) -> str:
    """Return the required kind of the cells of a known column, see `read_texts`."""
    if column.is_text or column.written:
        return "level"
    return "whole" if column.kind == "level" else column.kind
