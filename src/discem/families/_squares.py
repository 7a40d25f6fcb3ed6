"""Rows of correlated columns, with the products of their cells.

With few columns, the products of pairs of cells are computed once, like further columns. The scores
of all components are then one matrix product, and so are the sums. With many columns, products are
computed for each component.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._arrays import beside, namespace_of
from ._block import Block
from ._given import Solved, solve
from ._patterns import Grouped, Slab

_WIDE = 8  # columns per component from which their pairs are too many


class Squared(NamedTuple):
    """A batch of rows in groups with the same observed cells."""

    rows: Grouped
    pairs: Any  # (G, d (d + 1) / 2, size) products of pairs of cells; None if they are too many
    memo: list[Any]  # the last results, and the state they belong to

    def solved(self, block: Block) -> Any:
        """Return the results of `solve`; a single slab is cached for the next call."""
        if self.memo and self.memo[0] is block.values:
            return self.memo[1]
        d, K = block.values["mean"].shape
        found = solve(block, self.rows)
        if len(self.rows.slabs(K * d * d)) > 1:
            return found
        self.memo[:] = [block.values, list(found)]
        return self.memo[1]

    def forms(self, inverse: Any, some: slice) -> Any:
        """Return squared lengths x' J x of rows, (G, K, size), for the J of each group."""
        xp = namespace_of(inverse)
        if self.pairs is None:
            cells = self.rows.cells[some, ...][:, None, :, :]
            return xp.sum((cells @ inverse) * cells, axis=-1)
        K, d = inverse.shape[1:3]
        flat, twice, _ = _places(d)
        taken = xp.take(
            xp.reshape(inverse, (inverse.shape[0], K, d * d)), beside(flat, inverse), axis=-1
        )
        return (taken * beside(twice, inverse)) @ self.pairs[some, ...]

    def sums(self, W: Any, slab: Slab) -> tuple[Any, Any, Any]:
        """Return weighted sums of 1, cells and products of cells, for each pattern."""
        xp, rows, cells = namespace_of(W), self.rows, self.rows.cells[slab.groups, ...]
        d = cells.shape[-1]
        first = W @ cells
        if self.pairs is None:
            second = (W[:, :, None, :] * xp.matrix_transpose(cells)[:, None, ...]) @ cells[
                :, None, ...
            ]
        else:
            second = W @ xp.matrix_transpose(self.pairs[slab.groups, ...])
            second = xp.take(second, beside(_places(d)[2], second), axis=-1)
            second = xp.reshape(second, (*first.shape, d))
        parts = xp.sum(W, axis=-1), first, second
        return tuple(rows.by_pattern(each, slab) for each in parts)


def squared(rows: Grouped, n_components: int) -> Squared:
    """Return the rows, with the products of pairs of cells if these pay off."""
    xp, d = namespace_of(rows.cells), rows.cells.shape[-1]
    if d > _WIDE * n_components:
        return Squared(rows, None, [])
    flat = _places(d)[0]
    cells = xp.matrix_transpose(rows.cells)
    one, other = (beside(each, cells) for each in np.divmod(flat, d))
    pairs = xp.take(cells, one, axis=1) * xp.take(cells, other, axis=1)
    return Squared(rows, pairs, [])


def distances(block: Block, batch: Squared, solved: Solved) -> Any:
    """Return (x - m)' J (x - m) of the rows of some patterns, (G, K, size)."""
    xp, slab, mean = namespace_of(block.mass), solved.slab, block.values["mean"].T
    offset = xp.sum(solved.slope * mean, axis=-1)
    cells = xp.matrix_transpose(batch.rows.cells[slab.groups, ...])
    far = batch.forms(solved.of_groups(solved.inverse), slab.groups)
    far = far - 2.0 * (solved.of_groups(solved.slope) @ cells)
    return xp.clip(far + solved.of_groups(offset)[:, :, None], 0.0, None)


@cache
def _places(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for pairs of columns, their index in a matrix, multiplicity, and the inverse."""
    one, other = np.tril_indices(d)
    back = np.empty((d, d), dtype=np.int64)
    back[one, other] = back[other, one] = np.arange(len(one))
    return one * d + other, np.where(one == other, 1.0, 2.0), back.ravel()
