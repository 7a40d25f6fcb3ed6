"""Files in parts, each read by the worker that processes it.

Each part is read once and stays on its worker. This process only gets a *look*: the number of rows,
their labels, and the kinds of the columns. If a file has fewer parts than there are workers, parts
are split after reading.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import InputError
from . import documents, table_files
from .cells import Content
from .file_rows import NUMBERS, Rows
from .partitions import Lazy
from .sources import STDIN, find_format, row_groups
from .table_files import ReadTable
from .texts import Found, common_kind, merge_kinds

Tell = Callable[[int], None]

_LEAST = 10_000  # rows in groups of Parquet that are read together


class FilePart(NamedTuple):
    """A file, or some row groups of it."""

    path: str
    format: str
    groups: tuple[int, ...] | None = None  # None: the whole file
    before: int = 0  # rows of the file before these groups


def parts_of(paths: Sequence[str], format: str | None, elsewhere: bool = False) -> list[FilePart]:
    """Return the parts of files: one per file; of Parquet, one per large row group.

    With `elsewhere`, for workers in other folders, paths become absolute.
    """
    found: list[FilePart] = []
    for path in paths:
        kind = find_format(path, format)
        if path == STDIN:
            raise InputError("standard input: workers read files; name some, or fit without them")
        path = os.path.abspath(path) if elsewhere else path
        groups = row_groups(path, _LEAST) if kind == "parquet" else []
        if len(groups) > 1:
            found += [FilePart(path, kind, *each) for each in groups]
        else:
            found.append(FilePart(path, kind))
    return found


class Look(NamedTuple):
    """What this process knows of a part that a worker has read."""

    n_rows: int
    labels: Counter[str | None]
    head: Rows | None = None  # of a table
    kinds: dict[str, dict[str, Found]] = {}  # noqa: RUF012  which nobody changes


class Parts:
    """Parts of files on workers.

    Parameters
    ----------
    client : distributed.Client
    parts : list of FilePart
    read : callable
        Reads a part, on a worker.
    look : callable
        Makes a `Look` of the result.
    tell : callable
        Called with the number of rows after a part was read.
    """

    def __init__(
        self, client: Any, parts: list[FilePart], read: Callable, look: Callable, tell: Tell
    ):
        import dask
        from distributed import as_completed

        self.client, self.parts = client, parts
        self.futures = client.compute([dask.delayed(read, pure=False)(part) for part in parts])
        looks = client.map(look, self.futures, pure=False)
        for _, seen in as_completed(looks, with_results=True):
            tell(seen.n_rows)
        self.looks: list[Look] = client.gather(looks)
        threads = max(sum(client.nthreads().values()), 1)
        self.cuts = -(-threads // len(parts))  # pieces of each part, if there are few parts

    @property
    def n_rows(self) -> int:
        return sum(look.n_rows for look in self.looks)

    @property
    def labels(self) -> Counter[str | None]:
        """Return the number of rows of each label."""
        return sum((look.labels for look in self.looks), Counter())

    def partitions(self, function: Callable) -> Lazy:
        """Apply a function to the rows of each part; return a collection."""
        import dask

        make = dask.delayed(_cut, pure=False)
        return Lazy(
            [
                make(future, function, span)
                for future, look in zip(self.futures, self.looks, strict=True)
                for span in self._spans(look)
            ]
        )

    def _spans(self, look: Look) -> list[tuple[int, int]]:
        return list(pairwise(look.n_rows * i // self.cuts for i in range(self.cuts + 1)))

    def place(self, row: int, partition: int | None = None) -> str:
        """Format a row for a message: within a partition, or among all rows."""
        if partition is not None:
            which, cut = divmod(partition, self.cuts)
            row += self._spans(self.looks[which])[cut][0]
        else:
            which = 0
            while row >= self.looks[which].n_rows:
                row -= self.looks[which].n_rows
                which += 1
        place = methodcaller("place", row)
        return self.client.submit(place, self.futures[which], pure=False).result()


def _cut(rows: Any, function: Callable, span: tuple[int, int]) -> Any:
    return function(rows)[slice(*span)]


# --- documents ------------------------------------------------------------------------------------


def read_documents(client: Any, parts: list[FilePart], tell: Tell, **names: Any) -> Parts:
    """Read documents on workers; see `discem.io.documents.read_documents`."""
    return Parts(client, parts, partial(_read_documents, **names), _look_at_documents, tell)


def _read_documents(part: FilePart, **names: Any) -> list[documents.Document]:
    return documents.read_part(*part, **names)


def _look_at_documents(found: list[documents.Document]) -> Look:
    return Look(len(found), Counter(document.label for document in found))


def texts_of(found: list[documents.Document]) -> list[str]:
    """Return the texts of documents."""
    return [document.text for document in found]


def labels_of(found: list[documents.Document]) -> list[str | None]:
    """Return the labels of documents."""
    return [document.label for document in found]


# --- tables ---------------------------------------------------------------------------------------


def read_tables(
    client: Any, parts: list[FilePart], tell: Tell, target: str, apart: Sequence[str], max_size: int
) -> Parts:
    """Read tables on workers, with labels in `target`; columns `apart` are not examined."""
    read = partial(_read_table, max_size=max_size)
    return Parts(client, parts, read, partial(_look_at_table, target=target, apart=apart), tell)


def _read_table(part: FilePart, max_size: int) -> Rows:
    return table_files.read_part(*part, max_size)


def _look_at_table(rows: Rows, target: str, apart: Sequence[str]) -> Look:
    labels = Counter(rows.labels(target)) if target in rows.columns else Counter()
    kinds = {name: rows.kinds(name) for name in rows.names if name not in (target, *apart)}
    return Look(len(rows), labels, rows.head(), kinds)


def head_of(parts: Parts) -> Rows:
    """Return what is known of all rows of a table, without rows; all parts must match."""
    first, *others = [look.head for look in parts.looks if look.head is not None]
    return first.joined(others)


def kinds_of(parts: Parts, names: Sequence[str], given: Sequence[str]) -> dict[str, str | None]:
    """Return the kinds of each column over all parts; None if each part decides."""
    found: dict[str, str | None] = {}
    for name in names:
        kinds = merge_kinds(look.kinds.get(name, {}) for look in parts.looks)
        if NUMBERS in kinds and len(kinds) > 1:
            one, other, *_ = sorted(kinds.values(), key=lambda each: each.first)
            raise InputError(
                f"{other.place}, column {name!r}: {other.text}, unlike {one.text} in {one.place}; "
                "make all of its cells of one kind, or null"
            )
        plain = not kinds or NUMBERS in kinds
        found[name] = None if plain else common_kind(kinds, name, name in given)
    return found


def columns_of(rows: Rows, kinds: dict[str, str | None], ignored: Sequence[str]) -> ReadTable:
    """Return the columns of rows with known kinds, without ignored ones."""
    nothing = Content("number", np.full(len(rows), np.nan))
    return ReadTable(
        {
            name: nothing
            if name in ignored or name not in rows.columns
            # given or not, the kind is fixed, or each cell has its own
            else rows.content(name, kind)
            for name, kind in kinds.items()
        }
    )
