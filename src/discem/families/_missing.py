"""The distribution of missing cells in each component, given the observed cells.

A result has `column(j)`, the distribution of one column in each component, and `drawn(codes, rng)`,
the rows with every missing cell drawn from the given component of the row.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..io.rows import DenseRows
from ._block import Block
from ._family import family_of
from ._given import conditionals


class Independent(NamedTuple):
    """Independent columns: the parameters do not depend on the row."""

    block: Block
    cells: np.ndarray  # (n, d)
    missing: np.ndarray  # (n, d)
    parameters: list[tuple[np.ndarray, ...]]  # by column, each with an axis of rows in front

    def column(self, j: int) -> tuple[np.ndarray, ...]:
        """Return the parameters of a column, of shape (1, K) or (1, K, levels)."""
        return self.parameters[j]

    def drawn(self, codes: np.ndarray, rng: Any) -> np.ndarray:
        """Return the cells, with each missing one drawn."""
        draws = family_of(self.block).sample(self.block, codes, rng)
        return np.where(self.missing, draws, self.cells)


class Correlated(NamedTuple):
    """Correlated columns of numbers."""

    missing: np.ndarray  # (n, d)
    mean: np.ndarray  # (n, K, d)
    covariance: np.ndarray  # (groups, K, d, d); tied components have one
    group: np.ndarray  # (n,)

    def column(self, j: int) -> tuple[np.ndarray, ...]:
        """Return mean and variance of a column, (n, K)."""
        variance = np.maximum(self.covariance[:, :, j, j], 0.0)[self.group]
        return self.mean[:, :, j], np.broadcast_to(variance, self.mean.shape[:2])

    def drawn(self, codes: np.ndarray, rng: Any) -> np.ndarray:
        """Return the cells, with each missing one drawn."""
        own = np.minimum(codes, self.covariance.shape[1] - 1)
        pairs, place = np.unique(np.stack([self.group, own]), axis=1, return_inverse=True)
        root = _root(self.covariance[pairs[0], pairs[1]])[place.ravel()]
        noise = rng.normal(size=(len(codes), self.mean.shape[2], 1))
        return self.mean[np.arange(len(codes)), codes] + (root @ noise)[:, :, 0]


def independent(block: Block, rows: DenseRows, *parameters: np.ndarray) -> Independent:
    """Return the result of a family whose parameters are (K, d)."""
    cells = np.asarray(rows.values)
    by_column = zip(*(each.T[:, None, :] for each in parameters), strict=True)
    return Independent(block, cells, np.isnan(cells), list(by_column))


def of_levels(block: Block, rows: DenseRows, share: np.ndarray) -> Independent:
    """Return the result for levels, whose shares are (L, K), column after column."""
    cells = np.asarray(rows.values)
    parts = pairwise(block.fixed["first"])
    return Independent(block, cells, cells < 0, [(share[a:b].T[None],) for a, b in parts])


def correlated(block: Block, rows: DenseRows) -> Correlated | Independent:
    """Return the result for correlated numbers."""
    if not block.has_columns:
        return independent(block, rows)
    return Correlated(np.isnan(rows.values), *map(np.asarray, conditionals(block, rows)))


def _root(covariance: np.ndarray) -> np.ndarray:
    """Return roots of covariances, which may be singular, in units of their own."""
    deviation = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0))
    unit = np.where(deviation > 0.0, deviation, 1.0)
    values, vectors = np.linalg.eigh(covariance / unit[:, :, None] / unit[:, None, :])
    return deviation[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
