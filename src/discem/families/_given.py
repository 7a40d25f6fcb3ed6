"""Conditionals of correlated columns given the observed cells of a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .._arrays import namespace_of
from ..io.rows import DenseRows
from ._block import Block
from ._patterns import Grouped, Slab, group
from ._wishart import definite

FARTHEST = 1e60  # units: fourth powers of numbers beyond would overflow
LOG_ROOT = float(0.5 * np.log(2 * np.pi))


class Solved(NamedTuple):
    """Results for some patterns of observed cells, in each component."""

    slab: Slab
    inverse: Any  # (P, K, d, d)
    slope: Any  # (P, K, d) the inverse times the mean
    log_det: Any  # (P, K)

    def of_groups(self, numbers: Any) -> Any:
        """Expand numbers of patterns to their groups."""
        own = self.slab.own
        same = own.shape[0] == numbers.shape[0]
        return numbers if same else namespace_of(numbers).take(numbers, own, axis=0)


def covariances(block: Block) -> Any:
    """Return the covariances of components, in units, component last; tied ones have one."""
    tied = "covariance" not in block.values
    return block.prior.covariance[:, :, None] if tied else block.values["covariance"]


def conditionals(block: Block, rows: DenseRows) -> tuple[Any, Any, Any]:
    """Return mean and covariance of rows given their observed cells, in raw units.

    Means are (n, K, d), with observed cells unchanged. Covariances are per group of rows, (G, K, d,
    d), zero for observed cells; tied components have one. The third result is the group of each
    row, (n,).
    """
    batch = group(rows.values, block.fixed["shift"], block.fixed["scale"], FARTHEST)
    xp, scale = namespace_of(block.mass), block.fixed["scale"]
    scale = xp.where(xp.isfinite(scale), scale, xp.zeros_like(scale))
    S = xp.moveaxis(covariances(block), -1, 0)
    m = block.values["mean"].T
    means, spreads = [], []
    for solved in solve(block, batch):
        gone = 1.0 - batch.there[solved.slab.patterns, :]
        spread = S - S @ solved.inverse @ S
        spread = spread * gone[:, None, :, None] * gone[:, None, None, :]
        spreads.append(solved.of_groups(spread))
        there = solved.of_groups(1.0 - gone)[:, None, None, :]
        cells = batch.cells[solved.slab.groups, ...][:, None, :, :]
        off = cells - m[None, :, None, :] * there
        expected = m[None, :, None, :] + off @ solved.of_groups(solved.inverse @ S)
        means.append(xp.where(there > 0, cells, expected))
    mean = xp.moveaxis(xp.concat(means, axis=0), 1, 2)
    K, d = mean.shape[2:]
    mean = xp.take(xp.reshape(mean, (-1, K, d)), batch.place, axis=0)
    spread = xp.concat(spreads, axis=0) * scale[:, None] * scale
    return block.fixed["shift"] + scale * mean, spread, batch.place // batch.cells.shape[1]


def log_units(block: Block) -> Any:
    """Return what each column adds to a normalizer: ln of its unit, and a constant."""
    scale = block.fixed["scale"]
    xp = namespace_of(scale)
    varies = xp.isfinite(scale)
    one = xp.where(varies, scale, xp.ones_like(scale))
    return xp.where(varies, xp.log(one) + LOG_ROOT, xp.zeros_like(scale))


def solve(block: Block, batch: Grouped) -> Iterator[Solved]:
    """Yield the results for the patterns of a batch, some at a time."""
    d, K = block.values["mean"].shape
    xp, mean = namespace_of(block.mass), block.values["mean"].T[None, :, :, None]
    covariance = xp.moveaxis(covariances(block), -1, 0)
    for slab in batch.slabs(K * d * d):
        inverse, log_det = inverses(covariance, batch.there[slab.patterns, :])
        yield Solved(slab, inverse, (inverse @ mean)[..., 0], log_det)


def inverses(covariance: Any, there: Any) -> tuple[Any, Any]:
    """Return inverses of the covariances of observed cells, zero elsewhere, and ln determinants."""
    xp = namespace_of(covariance)
    both = (there[:, :, None] * there[:, None, :])[:, None, :, :]
    one = xp.eye(there.shape[1], dtype=there.dtype, device=there.device)
    full = covariance[None, ...] * both + (one * (1.0 - there)[:, :, None])[:, None, :, :]
    full, root = definite(full)
    diagonal = xp.sum(root * one, axis=-1)
    return xp.linalg.inv(full) * both, 2.0 * xp.sum(xp.log(diagonal), axis=-1)
