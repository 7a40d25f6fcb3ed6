"""Tables as models read them: one layout of families for all, and cells that training hides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..families import FAMILIES, multiply
from ..io.rows import RowPair, code_rows, dense_rows
from ..io.tables import Cells, Layout

# Every table has these three parts, of any width: a second table compiles nothing new.
TABLE = multiply(FAMILIES["gaussian"], FAMILIES["categorical"], FAMILIES["poisson"])

_COMPLETE = 0.35  # of the rows of an epoch have all their cells
_BYTE = 256.0


def is_table(X: Any, families: Any) -> bool:
    """Whether the columns of X are to be looked at one by one; arrays of numbers need not be."""
    if not isinstance(families, str):
        return True
    if families in ("words", "gaussian") or sp.issparse(X):
        return False
    if families != "auto" or hasattr(X, "columns") or hasattr(X, "column_names"):
        return True
    return isinstance(X, list) and len(X) > 0 and isinstance(X[0], dict)


class Encoded(NamedTuple):
    """Rows of a table that were read, and what its columns are."""

    cells: Cells
    layout: Layout

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.cells.codes), len(self.layout.columns)

    def take(self, rows: Any) -> Encoded:
        """Some of the rows."""
        return self._replace(cells=Cells(*(part[rows] for part in self.cells)))

    def view(self) -> RowPair:
        """As compiled code reads them."""
        numbers, codes, counts = self.cells
        base = self.layout.log_base(self.cells)
        return RowPair(dense_rows(numbers), RowPair(code_rows(codes), dense_rows(counts, base)))


def width(layout: Layout) -> tuple:
    """The number of features, as the families of a table count them."""
    levels = tuple(int(size) for size in layout.n_levels)
    return len(layout.numbers), (levels, len(layout.counts))


def hider(layout: Layout, rate: float) -> Callable[[RowPair, Any], RowPair]:
    """What hides cells of rows: in some rows none, in others a share up to `rate` of them.

    All parts of a column are hidden together, but for whether it is missing by itself.
    """
    seen = np.array([role != "missing" for role in layout.code_roles], dtype=bool)
    columns, code_of = len(layout.columns), np.array(layout.codes, dtype=np.int64)

    def hide(rows: RowPair, rng: Any) -> RowPair:
        n = rows.n_rows
        share = np.where(rng.random_sample(n) < _COMPLETE, 0.0, rate * rng.random_sample(n))
        draws = np.frombuffer(rng.bytes(n * columns), dtype=np.uint8).reshape(n, columns)
        hidden = draws < (_BYTE * share)[:, None]
        numbers, codes, counts = rows.first, rows.second.first, rows.second.second
        return RowPair(
            dense_rows(np.where(hidden[:, layout.numbers], np.nan, numbers.values), numbers.base),
            RowPair(
                code_rows(np.where(hidden[:, code_of] & seen, np.int32(-1), codes.values)),
                dense_rows(np.where(hidden[:, layout.counts], np.nan, counts.values), counts.base),
            ),
        )

    return hide
