"""Tables as models read them: one layout of families for all, and cells that training hides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..families import FAMILIES, multiply
from ..io.columns import FAMILIES as COLUMN_FAMILIES
from ..io.rows import Rows, code_rows, dense_rows
from ..io.tables import Cells, Layout, Seen
from ..priors import Gamma, Levels, NormalBetaPrime
from ._pieces import Piece, Pieces

# Every table has these three parts, of any width.
TABLE = multiply(FAMILIES["gaussian"], FAMILIES["categorical"], FAMILIES["poisson"])

_COMPLETE = 0.35  # of the rows of an epoch have all their cells
_BYTE = 256.0


def is_table(X: Any, families: Any) -> bool:
    """Whether the columns of X are to be looked at one by one; arrays of numbers need not be."""
    if not isinstance(families, str):
        return True
    own = families != "auto" and families not in COLUMN_FAMILIES
    if own or families == "gaussian" or sp.issparse(X):
        return False
    if families != "auto" or hasattr(X, "columns") or hasattr(X, "column_names"):
        return True
    return isinstance(X, list) and len(X) > 0 and isinstance(X[0], dict)


class Encoded(NamedTuple):
    """Rows of a table that were read, and what its columns are."""

    cells: Cells
    layout: Layout

    @classmethod
    def read(cls, layout: Layout, X: Any) -> Encoded:
        """The rows of a table whose columns are known."""
        return cls(layout.encode(X), layout)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.cells.codes), len(self.layout.columns)

    def take(self, rows: Any) -> Encoded:
        """Some of the rows."""
        return self._replace(cells=Cells(*(part[rows] for part in self.cells)))

    def view(self) -> Rows:
        """In the form that the families of a table read."""
        numbers, codes, counts = self.cells
        base = self.layout.log_base(self.cells)
        return Rows((dense_rows(numbers), code_rows(codes), dense_rows(counts, base)))


def layout_of(pieces: Pieces, families: Any, informative: bool = False) -> Layout:
    """What the columns of rows on workers are: families by a sample, levels by all of them."""
    layout = Layout.learn(pieces.sample.X, families, informative)
    if pieces.complete:
        return layout
    return layout.completed(pieces.survey(_look, Seen.merge))


def _look(piece: Piece) -> Seen:
    return Seen.look(piece.X)


def prior_of(strength: float) -> tuple:
    """The priors of a table, so many times as strong as they are by default."""
    normal, gamma = NormalBetaPrime(), Gamma()
    return (
        normal._replace(
            nu_mean=strength * normal.nu_mean, nu_variance=strength * normal.nu_variance
        ),
        Levels(strength=strength),
        gamma._replace(nu=strength * gamma.nu),
    )


def width(layout: Layout) -> tuple:
    """The number of features, as the families of a table count them."""
    levels = tuple(int(size) for size in layout.n_levels)
    return len(layout.numbers), levels, len(layout.counts)


class Hider(NamedTuple):
    """What hides cells of rows: a share of up to `rate` of the cells of each.

    All parts of a column are hidden together. Where it tells that a cell is missing, a hidden one
    is missing as well: in prediction nobody knows why.
    """

    layout: Layout
    rate: float

    def __call__(self, rows: Rows, rng: Any, complete: float = _COMPLETE) -> Rows:
        """The rows, of which a share `complete` keeps all cells."""
        n, columns = rows.n_rows, len(self.layout.columns)
        share = np.where(rng.random_sample(n) < complete, 0.0, self.rate * rng.random_sample(n))
        draws = np.frombuffer(rng.bytes(n * columns), dtype=np.uint8).reshape(n, columns)
        below = np.minimum(np.ceil(_BYTE * share), _BYTE - 1).astype(np.uint8)
        tells = np.array([role == "missing" for role in self.layout.code_roles], dtype=bool)
        return _without(rows, self.layout, draws < below[:, None], tells)


def singles(row: Rows, layout: Layout, columns: np.ndarray) -> Rows:
    """A row once for each of some columns, of which it has that one only, and once without any."""
    times = len(columns) + 1
    rows = row.take(np.zeros(times, dtype=np.int64))
    hidden = np.ones((times, len(layout.columns)), dtype=bool)
    hidden[np.arange(len(columns)), columns] = False
    return _without(rows, layout, hidden, np.zeros(len(layout.codes), dtype=bool))


def _without(rows: Rows, layout: Layout, hidden: np.ndarray, tells: np.ndarray) -> Rows:
    """Rows whose `hidden` cells, by row and column, are missing; the codes that `tells` say so."""
    numbers, levels, counts = rows.parts
    gone, code = hidden[:, layout.codes], np.where(tells, np.int32(1), np.int32(-1))
    return Rows(
        (
            dense_rows(np.where(hidden[:, layout.numbers], np.nan, numbers.values), numbers.base),
            code_rows(np.where(gone, code, levels.values)),
            dense_rows(np.where(hidden[:, layout.counts], np.nan, counts.values), counts.base),
        )
    )
