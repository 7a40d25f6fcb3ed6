"""Tables as families read them: the layout of the columns, and their cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._checks import demand
from .._kinds import savable
from ..exceptions import InputError, OptionError, hint_of, warn
from .cells import Content, shown
from .column_kinds import COLUMN_KINDS, IGNORED, MISSING, ColumnKind, Slot, column_names
from .columns import Column, merged_counts, place, seen_of
from .frames import BACKENDS, Table, check_shape, check_table
from .making import make_table
from .vectors import plain_name

_NAMED = 5  # columns named in a warning


# The families of all tables, any of which may have no column: model files know them by their order.
ALWAYS = ("gaussian", "categorical", "poisson")


class FamilyColumns(NamedTuple):
    """The cells that one family reads, side by side."""

    family: str
    columns: list[int]  # indices of the columns in the table
    slots: list[Slot]

    @property
    def is_code(self) -> bool:
        return self.family == "categorical" or any(slot.is_code for slot in self.slots)

    def empty(self, n_rows: int) -> np.ndarray:
        shape = n_rows, len(self.columns)
        return np.empty(shape, dtype=np.int32 if self.is_code else np.float64)


class Cells(tuple[np.ndarray, ...]):
    """A table for families: one contiguous array for each of `Layout.parts`."""

    @property
    def numbers(self) -> np.ndarray:
        """Return (n, dn) float64, NaN missing: numbers, with logarithms of skewed columns."""
        return self[0]

    @property
    def codes(self) -> np.ndarray:
        """Return (n, dc) int32, -1 missing."""
        return self[1]

    @property
    def counts(self) -> np.ndarray:
        """Return (n, dp) float64, NaN missing."""
        return self[2]

    @property
    def n_rows(self) -> int:
        return self[0].shape[0]


class LevelsSeen(NamedTuple):
    """The levels of columns in many rows; a sample tells the rest of the layout."""

    n_rows: int
    columns: dict[str | int, tuple[dict[Any, int] | None, bool]]  # cells by level, and any missing

    @classmethod
    def look(cls, X: Any) -> LevelsSeen:
        """Count the levels of columns with few values, or without numbers."""
        table = check_table(X)
        contents = {name: table.content(j) for j, name in enumerate(table.names)}
        return cls(table.n_rows, {name: seen_of(content) for name, content in contents.items()})

    @classmethod
    def merge(cls, *parts: LevelsSeen) -> LevelsSeen:
        """Merge all parts; a column that a part lacks is missing there."""
        names = dict.fromkeys(name for part in parts for name in part.columns)
        columns = {}
        for name in names:
            found = [part.columns.get(name, ({}, True)) for part in parts]
            columns[name] = (
                merged_counts(name, [counts for counts, _ in found]),
                any(holes for _, holes in found),
            )
        return cls(sum(part.n_rows for part in parts), columns)


@savable
@dataclass
class Layout:
    """The columns of a table, determined by its first rows.

    Parameters
    ----------
    columns : list of Column
    named : bool
        Whether columns are found by name, or else by position.
    informative : bool
        Whether missing cells are informative. Each column with missing cells in the first rows then
        has one more code: 0 seen, 1 missing.
    backend : str
        The library of the table, which `decode` uses.

    Examples
    --------
    >>> rows = [{"size": 1.5, "sort": "a"}, {"size": 2.0}, {"size": 4.0, "sort": "b"}]
    >>> layout = Layout.learn(rows, rare=1)
    >>> layout.families_
    {'size': 'gaussian: numbers', 'sort': 'categorical: text, 2 levels'}
    >>> cells = layout.encode(rows)
    >>> cells.numbers.ravel(), cells.codes.ravel()
    (array([1.5, 2. , 4. ]), array([ 0, -1,  1], dtype=int32))
    >>> layout.decode(cells)
    [{'size': 1.5, 'sort': 'a'}, {'size': 2.0}, {'size': 4.0, 'sort': 'b'}]
    """

    columns: list[Column]
    named: bool
    informative: bool = False
    backend: str = "array"

    # --- learning ---------------------------------------------------------------------------------

    @classmethod
    def learn(
        cls,
        X: Any,
        families: str | Mapping[Any, str] = "auto",
        informative: bool = False,
        rare: int = 2,
    ) -> Layout:
        """Decide what each column is.

        Parameters
        ----------
        X : table
            As `check_table` takes them.
        families : str or mapping
            "auto", the family of all columns, or those of some; others are "auto".
        informative : bool
            Whether it tells something that a cell is missing.
        rare : int
            A level of a categorical column with fewer cells has no code.
        """
        table = check_table(X)
        check_shape((table.n_rows, len(table.names)))
        columns = []
        for j, (name, family) in enumerate(_given(families, table.names).items()):
            if family == IGNORED:  # and not looked at
                column = Column(name, family, "given", "number", [])
            else:
                column = Column.learn(name, table.content(j), family, rare)
            columns.append(replace(column, dtype=table.dtype(j)))
        return cls(columns, table.named, informative, table.backend)

    def completed(self, seen: LevelsSeen, rare: int = 2) -> Layout:
        """Return the layout of a sample with the levels of all rows."""
        columns = []
        for column in self.columns:
            counts, holes = seen.columns.get(column.name, ({}, True))
            column = replace(column, holes=column.holes or holes)
            if column.grows and counts is not None and not column.written:
                column = column.with_levels(counts, rare)
            columns.append(column)
        return replace(self, columns=columns)

    def extended(self, X: Any) -> Layout:
        """Return the layout with the new levels of a table appended.

        A third value of a bernoulli column is an error.
        """
        table = check_table(X)
        columns = list(self.columns)
        for j, source in enumerate(self._sources(table)):
            column = columns[j]
            if source is None or not column.has_levels:
                continue
            new = column.unknown(table.content(source))
            if new and not column.grows:
                known = " and ".join(map(shown, column.levels))
                raise InputError(
                    f"{place(column.name)} had the values {known} in the first rows, and now "
                    f"{shown(new[0])}: give it the family 'categorical', which may have more"
                )
            if new:
                columns[j] = replace(column, levels=column.levels + new)
        unchanged = all(old is new for old, new in zip(self.columns, columns, strict=True))
        return self if unchanged else replace(self, columns=columns)

    # --- where the parts of a column are ----------------------------------------------------------

    @cached_property
    def parts(self) -> tuple[FamilyColumns, ...]:
        """The parts that families read: those of all tables, then others that a column needs."""
        parts = {family: FamilyColumns(family, [], []) for family in ALWAYS}
        for j, column in enumerate(self.columns):
            for slot in self._slots_of(column):
                part = parts.setdefault(slot.family, FamilyColumns(slot.family, [], []))
                part.columns.append(j)
                part.slots.append(slot)
        return tuple(parts[family] for family in (*ALWAYS, *sorted(parts.keys() - set(ALWAYS))))

    @cached_property
    def slots(self) -> list[list[tuple[int, int]]]:
        """The position of the slots of each column: part, and index in it."""
        number = {part.family: p for p, part in enumerate(self.parts)}
        width, found = [0] * len(self.parts), []
        for column in self.columns:
            own = []
            for slot in self._slots_of(column):
                p = number[slot.family]
                own.append((p, width[p]))
                width[p] += 1
            found.append(own)
        return found

    def _slots_of(self, column: Column) -> tuple[Slot, ...]:
        return (*column.slots, MISSING) if self._tells_missing(column) else column.slots

    @property
    def numbers(self) -> list[int]:
        """The column of each number."""
        return self.parts[0].columns

    @property
    def codes(self) -> list[int]:
        """The column of each code."""
        return self.parts[1].columns

    @property
    def counts(self) -> list[int]:
        """The column of each count."""
        return self.parts[2].columns

    @property
    def n_levels(self) -> np.ndarray:
        """The number of levels of each code."""
        pairs = zip(self.parts[1].columns, self.parts[1].slots, strict=True)
        sizes = [len(self.columns[j].levels) if slot.role == "level" else 2 for j, slot in pairs]
        return np.array(sizes, dtype=np.int64)

    @property
    def families_(self) -> dict[str | int, str]:
        """The family of each column, and the reason."""
        return {column.name: f"{column.family}: {column.why}" for column in self.columns}

    def _tells_missing(self, column: Column) -> bool:
        return self.informative and column.holes

    def _takes(self, column: Column) -> bool:
        """Return whether any part reads a column."""
        return column.family != IGNORED or self._tells_missing(column)

    # --- rows -------------------------------------------------------------------------------------

    @property
    def texts(self) -> list[Column]:
        """Return the text columns, which no family of the table reads."""
        return [column for column in self.columns if column.has_texts]

    def texts_of(self, X: Any) -> dict[str | int, list[str]]:
        """Return the cells of text columns by name; a missing one is an empty text."""
        if not self.texts:
            return {}
        table, found = check_table(X), {}
        for column, source in zip(self.columns, self._sources(table), strict=True):
            if column.has_texts:
                content = self._nothing(table) if source is None else table.content(source)
                found[column.name] = column.texts(content)
        return found

    def encode(self, X: Any) -> Cells:
        """Return the cells of a table.

        Columns are found by name, in any order. An absent column is missing in all rows; unknown
        columns are ignored with a warning. Unknown levels are missing cells. Numbers without
        probability under their family are missing cells, with a warning.
        """
        table = check_table(X)
        sources = self._sources(table)
        self._warn_of_columns(table, sources)
        cells = Cells(part.empty(table.n_rows) for part in self.parts)
        nothing = self._nothing(table)
        outside = []
        for column, source, slots in zip(self.columns, sources, self.slots, strict=True):
            content = nothing if source is None else table.content(source)
            vectors, wrong = column.encode(content)
            if self._tells_missing(column):
                vectors = (*vectors, column.read(content).missing)
            for (part, at), vector in zip(slots, vectors, strict=True):
                cells[part][:, at] = vector
            if wrong:
                outside.append(column)
        if outside:
            column = outside[0]
            warn(
                f"cells of {_listed([each.name for each in outside])} are outside of what their "
                f"columns take, as {COLUMN_KINDS[column.family].takes} in {column.name!r}, and "
                "count as missing",
                UserWarning,
            )
        return cells

    @staticmethod
    def _nothing(table: Table) -> Content:
        """Return a column of missing cells."""
        return Content("number", np.full(table.n_rows, np.nan))

    def cells(self, arrays: Sequence[np.ndarray]) -> Cells:
        """Return cells from arrays by part; models of arrays have only the first part."""
        rest = (part.empty(len(arrays[0])) for part in self.parts[len(arrays) :])
        pairs = zip(self.parts, (*arrays, *rest), strict=True)
        return Cells(a.astype(np.int32) if part.is_code else a for part, a in pairs)

    def _sources(self, table: Table) -> list[int | None]:
        """Return the index of each column in a table; None if it is absent or not needed."""
        names = [column.name for column in self.columns]
        places = {name: j for j, name in enumerate(table.names)}
        if self._by_place(table):
            if len(places) != len(names):
                raise InputError(
                    f"X has {len(places)} features, but it is expecting {len(names)} features "
                    "as input"
                )
            places = {name: j for j, name in enumerate(names)}
        elif places and places.keys().isdisjoint(names):
            raise InputError(
                f"X has none of the columns of the model: it has {_listed(table.names)}, "
                f"the model has {_listed(names)}"
            )
        return [places.get(c.name) if self._takes(c) else None for c in self.columns]

    def named_by_keys(self) -> Layout:
        """Return the layout for tables that are dicts."""
        return replace(self, named=True, backend="dicts")

    def _by_place(self, table: Table) -> bool:
        """Return whether columns are identified by position; keys of dicts are not ordered."""
        return not table.named or not (self.named or table.backend == "dicts")

    def _warn_of_columns(self, table: Table, sources: list[int | None]) -> None:
        """Warn of absent and unknown columns."""
        if self._by_place(table):
            return
        pairs = zip(self.columns, sources, strict=True)
        lacking = [c.name for c, source in pairs if source is None and self._takes(c)]
        if lacking and table.backend != "dicts":  # an absent key of a dict is a missing cell
            warn(f"X has no columns {_listed(lacking)}: all their cells are missing", UserWarning)
        known = {column.name for column in self.columns}
        extra = [name for name in table.names if name not in known]
        if extra:
            warn(f"X has columns that the model does not know: {_listed(extra)}", UserWarning)

    def log_base(self, cells: Cells) -> np.ndarray:
        """Return ln h(x) of each row, the part of the density without parameters."""
        base = np.zeros(cells.n_rows)
        for kind, part, places in self._first_slots:
            found = kind.log_base(cells[part][:, places])
            if found is not None:
                base += found
        return base

    @cached_property
    def _first_slots(self) -> list[tuple[ColumnKind, int, list[int]]]:
        """Return the first slots of all columns of a kind: the part, and indices in it."""
        places: dict[str, list[tuple[int, int]]] = {}
        for column, slots in zip(self.columns, self.slots, strict=True):
            if column.slots:
                places.setdefault(column.family, []).append(slots[0])
        kinds = [(COLUMN_KINDS[family], own) for family, own in places.items()]
        return [(kind, own[0][0], [place for _, place in own]) for kind, own in kinds]

    def decode(self, cells: Cells) -> Any:
        """Return a table like the original one, with the types of its columns.

        Ignored columns get their only cell if they are constant, else missing cells.
        """
        names, dtypes = zip(*((column.name, column.dtype) for column in self.columns), strict=True)
        return make_table(self.backend, names, self.values(cells), dtypes)

    def values(self, cells: Cells) -> list[np.ndarray]:
        """Return the original cells of each column, see `Column.decode`."""
        columns = []
        for column, slots in zip(self.columns, self.slots, strict=True):
            vectors = tuple(cells[part][:, place] for part, place in slots)
            values = column.as_written(column.decode(vectors[: len(column.slots)], cells.n_rows))
            if self._tells_missing(column):
                values[vectors[-1] == 1] = None  # NaN and NaT, where it is of such
            columns.append(values)
        return columns

    # --- files ------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self) -> None:
        """Validate the layout, which may come from any file."""
        columns = self.columns
        listed = isinstance(columns, list) and all(isinstance(c, Column) for c in columns)
        demand(listed and columns, "a table has no columns")
        for column in columns:
            column.check()
        names = [column.name for column in columns]
        demand(len(set(names)) == len(names), "a table has two columns of one name")
        demand(isinstance(self.informative, bool), "informative is neither True nor False")
        demand(self.backend in BACKENDS, "a table is of no known kind")
        demand(self.named is (self.backend != "array"), "a table has names, or none, by mistake")
        demand(self.named or names == list(range(len(names))), "an array has columns with names")


def _given(families: str | Mapping[Any, str], names: Sequence[Any]) -> dict[str | int, str]:
    """Return the family of each column; "auto" unless given."""
    if isinstance(families, str):
        families = dict.fromkeys(names, families)
    if not isinstance(families, Mapping):
        raise OptionError(f"families={families!r} must be 'auto', a family, or a dict of families")
    given = dict.fromkeys(names, "auto")
    for key, family in families.items():
        name = plain_name(key)
        if name not in given:
            hint = hint_of(str(name), map(str, names), f"there are: {_listed(names)}")
            raise OptionError(f"families: X has no column {key!r}; {hint}")
        if family not in ("auto", *column_names()):
            raise OptionError(
                f"families: {family!r} of {place(name)} is not one of {('auto', *column_names())}"
            )
        given[name] = family
    return given


def _listed(names: Sequence[Any]) -> str:
    """Format the first names for a message."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(repr, names[:_NAMED])) + more
