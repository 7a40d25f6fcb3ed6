"""Tables as models read them: one layout of families for all, and cells that training hides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..families import FAMILIES, multiply
from ..io.columns import FAMILIES as COLUMN_FAMILIES
from ..io.rows import Rows, code_rows, dense_rows
from ..io.tables import Cells, Layout, Seen
from ..priors import Gamma, Levels, NormalBetaPrime, NormalWishart
from ._pieces import Piece, Pieces

# The family of numbers, by what is known of their covariance.
NUMBERS = {"diag": "gaussian", "full": "normal", "tied": "tied"}
# Every table has these three parts, of any width.
TABLES = {
    covariance: multiply(FAMILIES[name], FAMILIES["categorical"], FAMILIES["poisson"])
    for covariance, name in NUMBERS.items()
}

_COMPLETE = 0.35  # of the rows of an epoch have all their cells
_BYTE = 256.0
_FEWEST, _MOST = 2, 32  # patterns of hidden cells, where rows of one pattern share their work


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

    def there(self) -> np.ndarray:
        """Which cells are there, (rows, columns)."""
        there, layout = np.zeros(self.shape, dtype=bool), self.layout
        places = layout.numbers, layout.codes, layout.counts
        for part, own in zip(self.cells, places, strict=True):
            seen = part >= 0 if part.dtype.kind == "i" else ~np.isnan(part)
            for place, j in enumerate(own):
                there[:, j] |= seen[:, place]
        return there

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


def prior_of(strength: float, covariance: str = "diag") -> tuple:
    """The priors of a table, so many times as strong as they are by default."""
    normal, correlated, gamma = NormalBetaPrime(), NormalWishart(), Gamma()
    diagonal = normal._replace(
        nu_mean=strength * normal.nu_mean, nu_variance=strength * normal.nu_variance
    )
    correlated = correlated._replace(nu_mean=strength * correlated.nu_mean, strength=strength)
    return (
        diagonal if covariance == "diag" else correlated,
        Levels(strength=strength),
        gamma._replace(nu=strength * gamma.nu),
    )


def width(layout: Layout) -> tuple:
    """The number of features, as the families of a table count them."""
    levels = tuple(int(size) for size in layout.n_levels)
    return len(layout.numbers), levels, len(layout.counts)


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
        times = min(max(n // (2 * columns + 1), _FEWEST), _MOST, n) if self.shares else n
        kept, rates = rng.random_sample(n) < complete, rng.random_sample(times)
        if self.shares:  # few patterns are of many rates, too
            rates = (np.arange(times) + rates) / max(times, 1)
        draws = np.frombuffer(rng.bytes(times * columns), dtype=np.uint8).reshape(times, columns)
        below = np.minimum(np.ceil(_BYTE * self.rate * rates), _BYTE - 1).astype(np.uint8)
        own = rng.randint(max(times, 1), size=n) if self.shares else np.arange(n)
        hidden = (draws < below[:, None])[own] & ~kept[:, None]
        if layout is None:
            missing = np.nan if rows.values.dtype.kind == "f" else np.int32(-1)
            return rows._replace(values=np.where(hidden, missing, rows.values))
        tells = np.array([role == "missing" for role in layout.code_roles], dtype=bool)
        return _without(rows, layout, hidden, tells)


def singles(rows: Rows, layout: Layout, columns: np.ndarray) -> Rows:
    """Rows once for each of some columns, of which they have that one only, and without any."""
    n, times = rows.n_rows, len(columns) + 1
    hidden = np.ones((times, n, len(layout.columns)), dtype=bool)
    hidden[np.arange(len(columns)), :, columns] = False
    rows = rows.take(np.tile(np.arange(n), times))
    hidden_cells = hidden.reshape(times * n, -1)
    return _without(rows, layout, hidden_cells, np.zeros(len(layout.codes), dtype=bool))


def _without(rows: Rows, layout: Layout, hidden: np.ndarray, tells: np.ndarray) -> Rows:
    """Rows whose `hidden` cells, by row and column, are missing; the codes that `tells` say so."""
    numbers, levels, counts, *answers = rows.parts
    gone, code = hidden[:, layout.codes], np.where(tells, np.int32(1), np.int32(-1))
    return Rows(
        (
            dense_rows(np.where(hidden[:, layout.numbers], np.nan, numbers.values), numbers.base),
            code_rows(np.where(gone, code, levels.values)),
            dense_rows(np.where(hidden[:, layout.counts], np.nan, counts.values), counts.base),
            *answers,
        )
    )


def without_each(table: Encoded) -> tuple[Encoded, np.ndarray]:
    """The rows without the first column, then without the second .., then with all; cells there."""
    layout, (n, columns) = table.layout, table.shape
    cells = table.take(np.tile(np.arange(n), columns + 1)).cells
    hidden = np.repeat(np.eye(columns + 1, columns, dtype=bool), n, axis=0)
    for part, places in zip(cells, (layout.numbers, layout.codes, layout.counts), strict=True):
        for place, j in enumerate(places):
            part[hidden[:, j], place] = -1 if part.dtype.kind == "i" else np.nan
    return Encoded(cells, layout), table.there()
