"""Levels of columns: their indicators, where their shares begin, and how to add levels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import beside, namespace_of, segment_sum
from .._sparse import add_product, add_transposed
from ..exceptions import OptionError
from ..priors import Levels
from ._block import Block

_PER_LEVEL, _MOST = 2.0, 20.0  # pseudo-observations per level, and their maximum per column
_POINTS = 16  # the most levels of a column used for clustering


class LevelCounts(NamedTuple):
    """The weight of each level in each class."""

    first: np.ndarray  # (d + 1,) where the levels of each column begin
    counts: np.ndarray  # (L, K)


def collect(codes: np.ndarray, parts: list, sizes: tuple, n_classes: int) -> LevelCounts:
    """Add up the weights of the rows by level and class."""
    found = [
        max(int(codes[:, d].max(initial=0)) + 1, 1) if size is None else size
        for d, size in enumerate(sizes)
    ]
    first = np.cumsum([0, *found], dtype=np.int64)
    counts = np.zeros((int(first[-1]), n_classes))
    for classes, weights in parts:
        known = np.flatnonzero((classes >= 0) & (weights > 0))
        own, weight = classes[known], weights[known]
        for d, size in enumerate(found):
            level = codes[known, d]
            seen = (level >= 0) & (level < size)
            place = level[seen] * n_classes + own[seen]
            cells = np.bincount(place, weight[seen], minlength=size * n_classes)
            counts[first[d] : first[d + 1]] += cells.reshape(size, n_classes)
    return LevelCounts(first, counts)


def start(name: str, prior: Levels, tally: LevelCounts, total: float, init: str) -> Block:
    """Return the initial block, see `Family.start`."""
    first, counts = tally
    d, K = len(first) - 1, counts.shape[1]
    column, sizes = np.repeat(np.arange(d), np.diff(first)), np.diff(first)
    nu = strength(prior, sizes)
    if prior.centre is None:
        seen = segment_sum(counts.sum(axis=1), first)
        # a level without cells may still occur
        centre = (counts.sum(axis=1) + 1.0 / sizes[column]) / (seen + 1.0)[column]
    else:
        centre = np.asarray(prior.centre, dtype=np.float64)
        if centre.shape != column.shape:
            raise OptionError(f"prior: centre needs {len(column)} numbers, one for each level")
    total_of = segment_sum(counts, first)
    if init == "prior":
        mass, p = np.full(d, float(K)), np.repeat(centre[:, None], K, axis=1)
    else:
        mass = (total_of.sum(axis=1) + 1.0) / (max(total, 1.0) + 1.0)
        if init != "generative":  # rare levels need shorter steps: see `start` of Gaussians
            mass = mass * 2.0 ** np.floor(np.log2(np.clip(sizes / 4.0, 1.0, 64.0)))
        p = counts + (nu[column] * centre)[:, None]
        p /= (total_of + nu[:, None])[column]
    fixed = {"first": first, "column": column}
    return Block(name, mass, {"share": p}, {}, fixed, Levels(nu, centre, float(prior.strength)))


def strength(prior: Levels, sizes: np.ndarray) -> np.ndarray:
    """Return the pseudo-observations of each column."""
    if prior.nu is None:
        return prior.strength * np.minimum(_PER_LEVEL * sizes, _MOST)
    return np.array(np.broadcast_to(np.asarray(prior.nu, dtype=np.float64), sizes.shape))


def widened(block: Block, old: np.ndarray, new: np.ndarray) -> Block:
    """Return the block with `new` levels per column, instead of `old`."""
    first = np.cumsum([0, *new], dtype=np.int64)
    column = np.repeat(np.arange(len(new)), new)
    place = np.arange(first[-1]) - first[:-1][column]  # the index of each level in its column
    fresh = place >= old[column]
    source = np.where(fresh, 0, place + block.fixed["first"][:-1][column])
    rarest = np.minimum.reduceat(block.prior.centre, block.fixed["first"][:-1])
    rarest = np.minimum(rarest, 0.5 / new)
    left = (1.0 - rarest * (new - old))[column][:, None]  # for the earlier levels

    def wide(p: np.ndarray) -> np.ndarray:
        return np.where(fresh[:, None], rarest[column][:, None], p[source] * left)

    centre = wide(block.prior.centre[:, None])[:, 0]
    return block._replace(
        values={"share": wide(block.values["share"])},
        past={name: wide(p) for name, p in block.past.items()},
        fixed={"first": first, "column": column},
        prior=block.prior._replace(centre=centre),
    )


class Indicators(NamedTuple):
    """Indicators of levels, (n, L), as sparse rows with one 1 per cell.

    Each column has an extra place before its levels for the 1 of a missing cell; products skip it.
    """

    values: np.ndarray  # (n * d,) ones
    places: np.ndarray  # (n * d,)
    pointers: np.ndarray  # (n + 1,)
    levels: np.ndarray  # (L,) the places of the levels

    @classmethod
    def of(cls, codes: np.ndarray, first: np.ndarray) -> Indicators:
        """Return the indicators of codes; -1 and codes beyond the levels are missing."""
        (n, d), sizes, column = codes.shape, np.diff(first), np.arange(len(first) - 1)
        if (codes >= sizes).any() or (codes < -1).any():
            codes = np.where((codes >= 0) & (codes < sizes), codes, np.int32(-1))
        places = codes + (first[:-1] + column + 1).astype(np.int32)
        levels = np.arange(first[-1]) + np.repeat(column, sizes) + 1
        pointers = np.arange(n + 1, dtype=np.int32) * np.int32(d)
        return cls(np.ones(n * d), places.reshape(-1), pointers, levels)

    def times(self, table: np.ndarray) -> np.ndarray:
        """Return the product with a table, (L, K), as (n, K)."""
        wide, into = self._room(table), np.zeros((len(self.pointers) - 1, table.shape[1]))
        wide[self.levels] = table
        add_product(into, self.values, self.places, self.pointers, wide)
        return into

    def sums(self, numbers: np.ndarray) -> np.ndarray:
        """Return the product of the transpose with numbers of the rows, (n, K), as (L, K)."""
        into, numbers = self._room(numbers), np.ascontiguousarray(numbers)
        add_transposed(into, self.values, self.places, self.pointers, numbers)
        return into[self.levels]

    def dense(self) -> np.ndarray:
        """Return the indicators as a dense array, (n, L)."""
        return self.times(np.eye(len(self.levels)))

    def _room(self, numbers: np.ndarray) -> np.ndarray:
        """Return zeros for each place."""
        return np.zeros((self.levels[-1] + 1 if len(self.levels) else 0, numbers.shape[1]))


def indicators(codes: np.ndarray, first: np.ndarray, like: Any) -> Any:
    """Return indicators of levels, (n, L), one column after the other."""
    if isinstance(like, np.ndarray):
        return Indicators.of(codes, first)
    codes, sizes = beside(codes, like), np.diff(first)
    column = np.repeat(np.arange(len(sizes)), sizes)
    level = np.arange(first[-1], dtype=np.int32) - first[:-1][column].astype(np.int32)
    xp = namespace_of(like)
    hot = xp.take(codes, beside(column, codes), axis=1) == beside(level, codes)[None, :]
    return xp.astype(hot, like.dtype)


def points(codes: np.ndarray) -> np.ndarray:
    """Return centred indicators, scaled so that two levels are two deviations apart."""
    columns = []
    for column in codes.T:
        counts = np.bincount(column[column >= 0], minlength=1)
        frequent = np.argsort(-counts)[:_POINTS]
        hot = np.zeros((len(counts) + 1, len(frequent)))  # of each level, and of a missing cell
        hot[frequent, np.arange(len(frequent))] = 1.0
        hot[:-1] -= counts[frequent] / max(counts.sum(), 1)
        columns.append((np.sqrt(2.0) * hot)[column])
    return np.hstack(columns) if columns else np.zeros((len(codes), 0))
