"""Tables as models read them: one layout of families for all, and cells that training hides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..exceptions import InputError, OptionError
from ..families import FAMILIES, Family, multiply
from ..io.column_kinds import MISSING, column_names
from ..io.doubts import warn_of_doubts
from ..io.frames import check_table
from ..io.rows import Rows, code_rows, dense_rows
from ..io.tables import ALWAYS, Cells, Layout, LevelsSeen
from ..io.vectors import has_names
from ._pieces import Piece

# The family of numbers, by what is known of their covariance.
NUMBERS = {"diag": "gaussian", "full": "normal", "tied": "tied"}

_HAS_BASE = "poisson"  # the part that carries what no parameter has a say in, of all columns
_COMPLETE = 0.35  # of the rows of an epoch have all their cells
_BYTE = 256.0
_FEWEST, MOST_PATTERNS = 2, 32  # patterns of hidden cells, whose rows share their work


def is_table(X: Any, families: Any) -> bool:
    """Whether the columns of X are to be looked at one by one; arrays of numbers need not be."""
    if isinstance(X, Encoded):  # which is done
        return False
    if not isinstance(families, str):
        return True
    own = families != "auto" and families not in column_names()
    if own or families == "gaussian" or sp.issparse(X):
        return False
    return families != "auto" or has_names(X)


def family_of_table(layout: Layout | None = None, covariance: str = "diag") -> Family:
    """The family of the rows of a table; without a layout, of one that has no kinds of its own."""
    parts = ALWAYS if layout is None else [part.family for part in layout.parts]
    return multiply(*(FAMILIES[NUMBERS[covariance] if p == "gaussian" else p] for p in parts))


_ENOUGH = 30  # rows that a column names the class of


class Encoded(NamedTuple):
    """Rows of a table that were read, and the layout of its columns."""

    cells: Cells
    layout: Layout

    @classmethod
    def learn(cls, X: Any, families: Any, informative: bool, stream: bool = False) -> Encoded:
        """The rows of a table, and what they say that its columns are."""
        table = check_table(X)
        layout = Layout.learn(table, families, informative, 1 if stream else 2)
        warn_of_doubts(table, layout)
        return cls.read(layout, table)

    @classmethod
    def read(cls, layout: Layout, X: Any) -> Encoded:
        """The rows of a table whose columns are known; those that were read are as they are."""
        return X if isinstance(X, cls) else cls(layout.encode(X), layout)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.cells.codes), len(self.layout.columns)

    def take(self, rows: Any) -> Encoded:
        """Return the given rows."""
        return self._replace(cells=Cells(part[rows] for part in self.cells))

    @property
    def is_empty(self) -> bool:
        """Return whether no family reads any column."""
        return not any(part.shape[1] for part in self.cells)

    def check_varied(self) -> None:
        """Raise an error if no column is left."""
        if self.is_empty and not self.layout.texts:
            n = self.shape[0]
            raise InputError(f"no column varies in a table of n_samples = {n}: it teaches nothing")

    def as_before(self, layout: Layout) -> Encoded:
        """For a model of fewer levels, the first of those of the rows: others are missing."""
        numbers, codes, *rest = self.cells
        known = np.where(codes < layout.n_levels, codes, np.int32(-1))
        return Encoded(Cells((numbers, known, *rest)), layout)

    def there(self) -> np.ndarray:
        """Return which cells are observed, (rows, columns)."""
        there = np.zeros(self.shape, dtype=bool)
        for part, array in zip(self.layout.parts, self.cells, strict=True):
            seen = array >= 0 if part.is_code else ~np.isnan(array)
            for place, (j, slot) in enumerate(zip(part.columns, part.slots, strict=True)):
                if slot != MISSING:  # which only says whether the others are there
                    there[:, j] |= seen[:, place]
        return there

    def complete(self) -> np.ndarray:
        """Which rows lack no cell of a column that a family reads."""
        read = np.zeros(self.shape[1], dtype=bool)
        for part in self.layout.parts:
            read[[*part.columns]] = True
        return np.asarray(self.there()[:, read].all(axis=1))

    def view(self) -> Rows:
        """In the form that the families of a table read."""
        base = self.layout.log_base(self.cells)
        bases = [base if part.family == _HAS_BASE else None for part in self.layout.parts]
        return Rows(tuple(map(_view, self.cells, bases)))


def _view(cells: np.ndarray, base: np.ndarray | None) -> Any:
    return code_rows(cells) if cells.dtype.kind == "i" else dense_rows(cells, base)


def refuse_texts(layout: Layout, reader: str, instead: str = "use TableClassifier") -> None:
    """Raise an error for text columns, which the reader does not read."""
    for column in layout.texts:
        kind = OptionError if column.why == "given" else InputError
        raise kind(
            f"column {column.name!r} is text ({column.why}), which {reader} does not read: "
            f"{instead}, or leave the column out"
        )


def layout_of(X: Any) -> Layout | None:
    """What the columns of rows are that were read by their columns; None of other rows."""
    return X.layout if isinstance(X, Encoded) else None


def take(X: Any, rows: Any) -> Any:
    """Return some rows of a matrix, or of a table that was read."""
    return X.take(rows) if isinstance(X, Encoded) else X[rows]


def learn_layout(table: Any, rows: Any, families: Any, informative: bool = False) -> Layout:
    """What the columns are of rows, of which a table is a sample: levels are those of all rows."""
    layout = Layout.learn(table, families, informative)
    if rows.complete:
        return layout
    return layout.completed(rows.survey(_look, LevelsSeen.merge))


def _look(piece: Piece) -> LevelsSeen:
    return LevelsSeen.look(piece.X)


def width(layout: Layout) -> tuple:
    """The number of features, as the families of a table count them."""
    levels = tuple(int(size) for size in layout.n_levels)
    return tuple(
        levels if part.family == "categorical" else len(part.columns) for part in layout.parts
    )


class Hider(NamedTuple):
    """What hides cells of rows: a share of up to `rate` of the cells of each.

    All parts of a column of a table are hidden together. Where it tells that a cell is missing, a
    hidden one is missing as well: in prediction nobody knows why. Where rows with the same cells
    `share` their work, the rows have a few patterns only.
    """

    layout: Layout | None  # None: the rows are those of an array
    rate: float
    shares: bool = False

    def __call__(self, rows: Any, rng: Any, complete: float = _COMPLETE) -> Any:
        """The rows, of which a share `complete` keeps all cells."""
        layout, n = self.layout, rows.n_rows
        columns = rows.values.shape[1] if layout is None else len(layout.columns)
        times = min(max(n // (2 * columns + 1), _FEWEST), MOST_PATTERNS, n) if self.shares else n
        kept, rates = rng.random_sample(n) < complete, rng.random_sample(times)
        if self.shares:  # few patterns are of many rates, too
            rates = (np.arange(times) + rates) / max(times, 1)
        draws = np.frombuffer(rng.bytes(times * columns), dtype=np.uint8).reshape(times, columns)
        below = np.minimum(np.ceil(_BYTE * self.rate * rates), _BYTE - 1).astype(np.uint8)
        own = rng.randint(max(times, 1), size=n) if self.shares else np.arange(n)
        if self.shares:
            hidden = (draws < below[:, None])[own]
            hidden[kept] = False
        else:
            below[kept] = 0
            hidden = draws < below[:, None]
        if layout is None:
            return rows._replace(values=_blank(rows.values, hidden))
        return _without(rows, layout, hidden, tells=True)


def singles(rows: Rows, layout: Layout, columns: np.ndarray) -> Rows:
    """Rows once for each of some columns, of which they have that one only, and without any."""
    n, times = rows.n_rows, len(columns) + 1
    hidden = np.ones((times, n, len(layout.columns)), dtype=bool)
    hidden[np.arange(len(columns)), :, columns] = False
    rows = rows.take(np.tile(np.arange(n), times))
    return hidden_in(rows, layout, hidden.reshape(times * n, -1))


def hidden_in(rows: Rows, layout: Layout, hidden: np.ndarray) -> Rows:
    """Return rows whose `hidden` cells, by row and column, have no effect at all."""
    return _without(rows, layout, hidden)


def _without(rows: Rows, layout: Layout, hidden: np.ndarray, tells: bool = False) -> Rows:
    """Rows whose `hidden` cells, by row and column, are missing; if it `tells`, they say so."""
    parts = list(rows.parts)  # of a regression, there are answers, too
    for p, part in enumerate(layout.parts):
        gone, cells = hidden[:, part.columns], parts[p].values
        says = np.array([tells and slot == MISSING for slot in part.slots], dtype=bool)
        left = _blank(cells, gone)
        if says.any():
            left[:, says] = np.where(gone[:, says], np.int32(1), cells[:, says])
        parts[p] = parts[p]._replace(values=left)
    return Rows(tuple(parts))


def _blank(cells: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """Numbers, NaN where they are `gone`, or codes, -1 there: in both, all bits are set.

    A choice between two numbers takes longer, for what is hidden is in no order.
    """
    bits = np.dtype(f"i{cells.itemsize}")
    return (cells.view(bits) | -gone.astype(bits)).view(cells.dtype)


def without_each(table: Encoded) -> tuple[Encoded, np.ndarray]:
    """The rows without the first column, then without the second .., then with all; cells there."""
    layout, (n, columns) = table.layout, table.shape
    cells = table.take(np.tile(np.arange(n), columns + 1)).cells
    hidden = np.repeat(np.eye(columns + 1, columns, dtype=bool), n, axis=0)
    for part, array in zip(layout.parts, cells, strict=True):
        for place, j in enumerate(part.columns):
            array[hidden[:, j], place] = -1 if part.is_code else np.nan
    return Encoded(cells, layout), table.there()


def renamed_labels(rows: Encoded, codes: np.ndarray) -> list[Any]:
    """The columns that name the class of each row, one level for each class; codes are of classes.

    Of a few rows any column might do so by chance.
    """
    found = []
    for part, array in zip(rows.layout.parts, rows.cells, strict=True):
        for level, j in zip(array.T, part.columns, strict=False) if part.is_code else ():
            known = (level >= 0) & (codes >= 0)
            pairs = np.unique(np.stack([level[known], codes[known]]), axis=1)
            levels, classes = (len(np.unique(each)) for each in pairs)
            if known.sum() >= _ENOUGH and levels == classes == pairs.shape[1] > 1:
                found.append(rows.layout.columns[j].name)
    return found
