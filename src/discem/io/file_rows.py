"""Rows of table files, by column; cells are parsed when they are needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import InputError, reading
from .cells import Content, read_objects, shown
from .frames import check_table
from .sources import label_of, listed, shown_name
from .texts import Found, is_missing, kinds_of, read_texts
from .vectors import NAMED_ROW, categories_in, in_place

_END = "\0"
NUMBERS = "numbers"  # numbers of JSON need no parsing


class Stretch(NamedTuple):
    """Consecutive rows of one file."""

    path: str
    word: str  # the unit of row numbers, "line" or "row"
    numbers: Sequence[int]


class Rows(ABC):
    """Rows of files, by column; cells are parsed when they are needed."""

    complete = True  # whether all rows have all columns

    def __init__(self, columns: dict[str, Any], stretches: list[Stretch]):
        self.columns, self.stretches = columns, stretches
        self._ends = np.cumsum([len(stretch.numbers) for stretch in stretches]).tolist()

    def __len__(self) -> int:
        return self._ends[-1]

    @property
    def path(self) -> str:
        """The first file."""
        return shown_name(self.stretches[0].path)

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def place(self, row: int) -> str:
        """Format a row for a message."""
        which = bisect_right(self._ends, row)
        stretch = self.stretches[which]
        number = stretch.numbers[row - (self._ends[which] - len(stretch.numbers))]
        return f"{shown_name(stretch.path)}, {stretch.word} {number:,}"

    @abstractmethod
    def cells(self, name: str) -> list[Any]:
        """Return the cells of a column as Python objects; None is missing."""

    def content(self, name: str, kind: str | None = None, given: bool = False) -> Content:
        """Return the cells of a column in the form that models read.

        `kind` is their required kind, see `read_texts`; `given` says whether the family is given.
        """
        try:
            return self._content(name, kind, given)
        except InputError as error:
            raise InputError(in_place(str(error), self.place)) from error

    @abstractmethod
    def _content(self, name: str, kind: str | None, given: bool) -> Content:
        """Do the same; errors may count rows from the first row of these."""

    @abstractmethod
    def kinds(self, name: str) -> dict[str, Found]:
        """Return the kinds of the cells of a column, if all parts are needed to decide."""

    def head(self) -> Rows:
        """Return no rows, but everything known about them."""
        stretch = self.stretches[0]._replace(numbers=[])
        return type(self)(
            {name: self._nothing(self.columns[name]) for name in self.names}, [stretch]
        )

    def labels(self, name: str) -> list[str | None]:
        """Return the cells of a column as labels, which are texts."""
        cells = enumerate(self.cells(name))
        return [label_of(cell, f"{self.place(row)}, {name!r}") for row, cell in cells]

    def joined(self, others: list[Any]) -> Rows:
        """Append further rows with the same columns and kind."""
        every = [self, *others]
        for rows in others:
            self._check_like(rows)
        stretches = [stretch for rows in every for stretch in rows.stretches]
        columns = {name: self._chain([rows.columns[name] for rows in every]) for name in self.names}
        return type(self)(columns, stretches)

    def _check_like(self, rows: Rows) -> None:
        if type(rows) is not type(self):
            raise InputError(f"{rows.path}: not of the format of {self.path}: give files of one")
        lacking = [name for name in self.columns if name not in rows.columns]
        more = [name for name in rows.columns if name not in self.columns]
        if lacking or more:
            what = f"there is no {listed(lacking)}" if lacking else f"there is also {listed(more)}"
            raise InputError(f"{rows.path}: its columns are not those of {self.path}: {what}")

    @staticmethod
    @abstractmethod
    def _chain(parts: list[Any]) -> Any:
        """Concatenate the parts of a column."""

    @staticmethod
    @abstractmethod
    def _nothing(column: Any) -> Any:
        """Return an empty column of the same type."""


class TextRows(Rows):
    """Rows of texts; each column is one text of cells that end with NUL, to save memory."""

    @classmethod
    def of(cls, names: list[str], rows: list[tuple[int, list[str]]], path: str) -> TextRows:
        stretch = Stretch(path, "line", [number for number, _ in rows])
        columns = zip(*(row for _, row in rows), strict=True)
        kept = {name: _END.join(cells) for name, cells in zip(names, columns, strict=True) if name}
        for name, text in kept.items():
            if text.count(_END) != len(rows) - 1:
                place = names.index(name)
                number = next(number for number, cells in rows if _END in cells[place])
                raise InputError(
                    f"{shown_name(path)}, line {number}, column {name!r}: the cell holds a NUL "
                    "character; remove it"
                )
        return cls(kept, [stretch])

    def cells(self, name: str) -> list[Any]:
        cells = self.columns[name].split(_END)
        return [None if is_missing(cell) else cell.strip() for cell in cells]

    def _content(self, name: str, kind: str | None, given: bool) -> Content:
        cells = self.columns[name].split(_END)
        return read_texts(cells, name, self.place, kind=kind, given=given)

    def kinds(self, name: str) -> dict[str, Found]:
        return kinds_of(self.columns[name].split(_END), self.place)

    @staticmethod
    def _chain(parts: list[Any]) -> str:
        return _END.join(parts)

    @staticmethod
    def _nothing(column: str) -> str:
        return ""


class ObjectRows(Rows):
    """Rows of JSON: numbers, texts, booleans; absent fields are missing."""

    complete = False

    @classmethod
    def of(cls, rows: list[tuple[int, dict[str, Any], str]], path: str) -> ObjectRows:
        names = dict.fromkeys(name for _, fields, _ in rows for name in fields)
        columns = {name: [fields.get(name) for _, fields, _ in rows] for name in names}
        return cls(columns, [Stretch(path, "line", [number for number, _, _ in rows])])

    def cells(self, name: str) -> list[Any]:
        return self.columns[name]

    def _content(self, name: str, kind: str | None, given: bool) -> Content:
        cells = self.columns[name]
        known = "" if kind is None else "text" if kind in ("level", "date") else "numbers"
        if str in self._types(name, known):
            return read_texts(cells, name, self.place, kind=kind, typed=True)
        return read_objects(cells, f"column {name!r}")

    def _types(self, name: str, known: str = "") -> dict[type, str | None]:
        """Return the types of cells and their kinds; all must be of one kind, the known one."""
        kinds = {each: _JSON_KINDS.get(each) for each in set(map(type, self.columns[name]))}
        if {*kinds.values(), known} - {""} not in ({"text"}, {"numbers"}, set()):
            self._refuse(name, kinds, known)
        return kinds

    def _refuse(self, name: str, kinds: dict[type, str | None], known: str) -> None:
        """Raise an error for the first cell of another kind."""
        for row, cell in enumerate(self.columns[name]):
            kind = kinds[type(cell)]
            if kind is None:
                raise InputError(
                    f"{self.place(row)}, column {name!r}: {shown(cell)} is nested; a cell is a "
                    "number, a text, true, false or null"
                )
            if kind and known and kind != known:
                raise InputError(
                    f"{self.place(row)}, column {name!r}: {shown(cell)}, but the column holds "
                    f"{known}; make all of its cells of one kind, or null"
                )
            known = known or kind

    def joined(self, others: list[Any]) -> Rows:
        every = [self, *others]
        names = dict.fromkeys(name for rows in every for name in rows.columns)
        for rows in every:
            for name in names:
                rows.columns.setdefault(name, [None] * len(rows))
        return super().joined(others)

    def kinds(self, name: str) -> dict[str, Found]:
        cells = self.columns[name]
        if str in self._types(name):
            return kinds_of(cells, self.place, typed=True)
        seen = [row for row, cell in enumerate(cells) if cell is not None]
        if not seen:
            return {}
        row = seen[0]
        return {NUMBERS: Found(len(seen), (row,), shown(cells[row]), self.place(row))}

    @staticmethod
    def _chain(parts: list[Any]) -> list[Any]:
        return [cell for part in parts for cell in part]

    @staticmethod
    def _nothing(column: list[Any]) -> list[Any]:
        return []


_JSON_KINDS = {type(None): "", bool: "numbers", int: "numbers", float: "numbers", str: "text"}


class ArrowRows(Rows):
    """Rows of pyarrow arrays."""

    def labels(self, name: str) -> list[str | None]:
        with reading(f"{self.path}, column {name!r}"):
            found = categories_in(self.columns[name])
        if found is None:
            return super().labels(name)
        codes, levels = found  # of which there are few, beside the cells
        _, rows = np.unique(codes, return_index=True)
        labels: dict[int, str | None] = {-1: None}
        for row in rows.tolist():
            code = int(codes[row])
            if code >= 0:
                labels[code] = label_of(levels[code], f"{self.place(row)}, {name!r}")
        return [labels[code] for code in codes.tolist()]

    def cells(self, name: str) -> list[Any]:
        with reading(f"{self.path}, column {name!r}"):
            cells = self.columns[name].to_pylist()
        return [None if cell != cell else cell for cell in cells]

    def _content(self, name: str, kind: str | None, given: bool) -> Content:
        import pyarrow as pa

        if self._is_text(name) and kind in (None, "date"):
            return read_texts(self.cells(name), name, self.place, kind=kind, typed=True)
        try:
            return check_table(pa.table({name: self.columns[name]})).content(0)
        except InputError as error:
            where = "" if NAMED_ROW.search(str(error)) else f"{self.path}: "
            raise InputError(f"{where}{error}") from error

    def joined(self, others: list[Any]) -> Rows:
        for rows in others:
            for name, cells in self.columns.items():
                if name in rows.columns and rows.columns[name].type != cells.type:
                    raise InputError(
                        f"{rows.path}: column {name!r} holds {rows.columns[name].type}, "
                        f"and in {self.path} it holds {cells.type}: make them of one type"
                    )
        return super().joined(others)

    def kinds(self, name: str) -> dict[str, Found]:
        if not self._is_text(name):
            return {}
        return kinds_of(self.cells(name), self.place, typed=True)

    def _is_text(self, name: str) -> bool:
        return str(self.columns[name].type) in ("string", "large_string", "string_view")

    @staticmethod
    def _chain(parts: list[Any]) -> Any:
        import pyarrow as pa

        chunks = (getattr(part, "chunks", [part]) for part in parts)
        return pa.chunked_array([chunk for each in chunks for chunk in each], parts[0].type)

    @staticmethod
    def _nothing(column: Any) -> Any:
        return column.slice(0, 0)
