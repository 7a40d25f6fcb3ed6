"""What the cells that are there say: of the score of a row, and of the cells that are missing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import namespace_of
from ..io.rows import DenseRows
from ._family import Block
from ._patterns import Grouped, group
from ._wishart import definite

FARTHEST = 1e60  # units: squares of squares of what is further out would overflow
LOG_ROOT = float(0.5 * np.log(2 * np.pi))


class Solved(NamedTuple):
    """Groups of rows beside the components."""

    some: slice  # which groups
    u: Any  # (G, K, size, d)
    far: Any  # (G, K, size) (x - m)' u, the squared distance
    inverse: Any  # (G, K, d, d)
    log_det: Any  # (G, K)


def covariances(block: Block) -> Any:
    """Of the components, in units, the component last; of tied ones there is one."""
    tied = "covariance" not in block.values
    return block.prior.covariance[:, :, None] if tied else block.values["covariance"]


def conditionals(block: Block, rows: DenseRows) -> tuple[Any, Any, Any]:
    """Of rows given the cells that they have: mean and covariance in each component, in raw units.

    Means are (n, K, d), at a cell that is there the cell. Covariances are those of groups of rows,
    (G, K, d, d), zero for cells that are there; tied components have one. The third says the group
    of each row, (n,).
    """
    batch = group(rows.values, block.fixed["shift"], block.fixed["scale"], FARTHEST)
    xp, scale = namespace_of(block.mass), block.fixed["scale"]
    scale = xp.where(xp.isfinite(scale), scale, xp.zeros_like(scale))
    S = xp.moveaxis(covariances(block), -1, 0)
    m = block.values["mean"].T
    means, spreads = [], []
    for solved in solve(block, batch):
        there = batch.there[solved.some, :]
        gone = 1.0 - there
        expected = m[None, :, None, :] + solved.u @ S
        cells = batch.cells[solved.some, ...][:, None, :, :]
        means.append(xp.where(there[:, None, None, :] > 0, cells, expected))
        spread = S - S @ solved.inverse @ S
        spreads.append(spread * gone[:, None, :, None] * gone[:, None, None, :])
    mean = xp.moveaxis(xp.concat(means, axis=0), 1, 2)
    K, d = mean.shape[2:]
    mean = xp.take(xp.reshape(mean, (-1, K, d)), batch.place, axis=0)
    spread = xp.concat(spreads, axis=0) * scale[:, None] * scale
    return block.fixed["shift"] + scale * mean, spread, batch.place // batch.cells.shape[1]


def log_units(block: Block) -> Any:
    """What the unit of each column adds to a normalizer, and its share of the constant."""
    scale = block.fixed["scale"]
    xp = namespace_of(scale)
    varies = xp.isfinite(scale)
    one = xp.where(varies, scale, xp.ones_like(scale))
    return xp.where(varies, xp.log(one) + LOG_ROOT, xp.zeros_like(scale))


def solve(block: Block, batch: Grouped) -> list[Solved] | Any:
    """Solve for u, some groups at a time; what is worked out at once is kept for the next one."""
    if batch.memo and batch.memo[0] is block.values:
        return batch.memo[1]
    d, K = block.values["mean"].shape
    slabs = batch.slabs(K * d * d)
    solved = (_solved(block, batch, some) for some in slabs)
    if len(slabs) > 1:
        return solved
    batch.memo[:] = [block.values, list(solved)]
    return batch.memo[1]


def _solved(block: Block, batch: Grouped, some: slice) -> Solved:
    """Some groups of rows, beside the components."""
    xp, there = namespace_of(block.mass), batch.there[some, :]
    inverse, log_det = inverses(xp.moveaxis(covariances(block), -1, 0), there)
    m = block.values["mean"].T[None, :, None, :]
    off = batch.cells[some, ...][:, None, :, :] - m
    u = off @ inverse
    return Solved(some, u, xp.sum(off * u, axis=-1), inverse, log_det)


def inverses(covariance: Any, there: Any) -> tuple[Any, Any]:
    """Inverses of what the cells of each group share, zero elsewhere, and ln of determinants."""
    xp = namespace_of(covariance)
    both = (there[:, :, None] * there[:, None, :])[:, None, :, :]
    one = xp.eye(there.shape[1], dtype=there.dtype, device=there.device)
    full = covariance[None, ...] * both + (one * (1.0 - there)[:, :, None])[:, None, :, :]
    full, root = definite(full)
    diagonal = xp.sum(root * one, axis=-1)
    return xp.linalg.inv(full) * both, 2.0 * xp.sum(xp.log(diagonal), axis=-1)
