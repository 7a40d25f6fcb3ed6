"""Counts of words, for all families of words: their state, averages, and typical values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .._arrays import namespace_of
from ..exceptions import InputError, OptionError
from ..priors import Dirichlet
from ._block import Block

_SLICE = 1 << 20  # numbers processed at a time
_LEAST = 0.02  # pseudo-counts are at least this share of the counts
_SEEN = 5000  # rows used to find typical values
_TINY = 1e-37  # the smallest positive number of single precision
_ROUNDING = 1e-7  # its relative rounding error


def collect(rows: Any, parts: list, n_features: int, n_classes: int) -> np.ndarray:
    """Return weighted counts of each word in each class, as (W, K)."""
    counts = np.zeros((n_features, n_classes))
    lengths = np.diff(rows.indptr)
    cuts = np.searchsorted(rows.indptr, np.arange(0, rows.indptr[-1], _SLICE))
    for codes, weights in parts:
        codes = np.maximum(codes, 0)  # an unlabelled row adds nothing, anywhere
        for first, last in pairwise(np.unique([0, *cuts, len(lengths)])):
            stored = slice(rows.indptr[first], rows.indptr[last])
            size = lengths[first:last]
            cells = rows.indices[stored].astype(np.int64) * n_classes
            cells += np.repeat(codes[first:last], size)
            weight = np.repeat(weights[first:last], size)
            np.add.at(counts.reshape(-1), cells, rows.values[stored] * weight)
    return counts


def averaged(block: Block) -> Block:
    """Return the block at its running average, without an average of its own."""
    lazy, values, past = block.lazy, block.values, block.past
    weight, alpha = lazy["weight"], block.fixed["alpha"]
    count = values["count"]
    if weight == 0.0:
        lazy = lazy | {"lag_scale": 0.0, "lag_gamma": 0.0}
        return block._replace(past={}, lazy=lazy)
    scale, gamma = lazy["lag_scale"] / weight, lazy["lag_gamma"] / weight
    most = scale * count.max(initial=0.0) + gamma * alpha.max(initial=0.0)
    floor = 1e-12 * most  # rounding may leave less in a collapsed cell
    mean, total = np.empty_like(count), np.zeros(count.shape[1])
    for part in _slices(count):  # intermediate results for all cells may not fit into memory
        cells = np.multiply(count[part], scale, out=mean[part])
        cells -= past["lag"][part] * (1.0 / weight)
        cells += gamma * alpha[part, None]
        np.maximum(cells, floor, out=cells)
        total += np.ones(len(cells), dtype=cells.dtype) @ cells  # faster here than a sum
    unseen = scale * values["unseen"] - past["unseen"] / weight + gamma
    own = {"scale": 1.0, "gamma": 0.0, "lag_scale": 0.0, "lag_gamma": 0.0, "weight": 0.0}
    return block._replace(
        values={"count": mean, "total": total, "unseen": unseen},
        past={},
        lazy=lazy | own,
    )


def mean_of(blocks: list[Block], shares: np.ndarray) -> Block:
    """Return the mean of blocks without averages: counts and pseudo-counts are linear."""
    first = blocks[0]
    lazy = first.lazy | {
        "scale": 1.0,
        "gamma": float(sum(s * b.lazy["gamma"] for s, b in zip(shares, blocks, strict=True))),
    }
    factors = [float(s * b.lazy["scale"]) for s, b in zip(shares, blocks, strict=True)]
    count = weighted_sum(factors, [block.values["count"] for block in blocks])
    total = sum(s * b.values["total"] for s, b in zip(shares, blocks, strict=True))
    unseen = sum(
        s * b.lazy["scale"] * b.values["unseen"] for s, b in zip(shares, blocks, strict=True)
    )
    length = sum(s * b.fixed["length"] for s, b in zip(shares, blocks, strict=True))
    return first._replace(
        values={"count": count, "total": total, "unseen": unseen},
        past={},
        fixed=first.fixed | {"length": length},
        lazy=lazy,
    )


def in_precision(block: Block, kind: Any) -> Block:
    """Return the block with its tables in single or in double precision."""
    count = block.values["count"]
    if count.dtype == kind:
        return block
    wide = count.astype(kind)
    if kind == np.float64:  # rounding may have made a collapsed cell negative
        prior = block.lazy["gamma"] / block.lazy["scale"] * block.fixed["alpha"][:, None]
        np.maximum(wide, (_ROUNDING - 1.0) * prior, out=wide)
    past = {"lag": block.past["lag"].astype(kind)} if block.past else {}
    return block._replace(values=block.values | {"count": wide}, past=block.past | past)


def weighted_sum(factors: list[float], arrays: list[np.ndarray]) -> np.ndarray:
    """Return the weighted sum of arrays, computed in pieces that stay in the cache."""
    total = np.empty_like(arrays[0])
    for part in _slices(total):
        np.multiply(arrays[0][part], factors[0], out=total[part])
        for factor, array in zip(factors[1:], arrays[1:], strict=True):
            total[part] += factor * array[part]
    return total


def _slices(count: np.ndarray) -> list[slice]:
    size = max(_SLICE // max(count[:1].size, 1) // 16, 1)
    return [slice(first, first + size) for first in range(0, len(count), size)]


def draw_lengths(block: Block, n: int, rng) -> np.ndarray:
    """Draw the lengths of n documents."""
    length = block.fixed["length"][0]
    if not length < 1e9:
        raise InputError(f"documents of {length:g} words are too long to draw")
    return rng.poisson(length, size=n)


def typical_square(rows: Any, parts: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the weighted |x|^2 of a document in which every word has its typical count.

    A mean of squares would depend on the longest document, or on one word that fills it. The weight
    is that of the class with the smallest weight, which should still have an effect.
    """
    pairs = [(codes[w > 0], w[w > 0]) for codes, w in parts]  # rows without a label have no weight
    codes, weights = (np.concatenate(each) for each in zip(*pairs, strict=True))
    if not len(codes):
        return 1.0
    sizes = np.bincount(codes)
    lightest = float((np.bincount(codes, weights)[sizes > 0] / sizes[sizes > 0]).min())
    values, n_rows = _cells(rows, np.sum([w for _, w in parts], axis=0))
    often, n_words = _geometric_mean(values), max(int(np.count_nonzero(values)), 1)
    return lightest * often * max(often * n_words / n_rows, _LEAST)


def typical_count(rows: Any, weights: np.ndarray) -> float:
    """Return the typical count of a word in documents where it occurs."""
    return _geometric_mean(_cells(rows, weights)[0])


def typical_length(rows: Any, weights: np.ndarray) -> float:
    """Return the length of a document in which every word has its typical count."""
    values, n_rows = _cells(rows, weights)
    return _geometric_mean(values) * np.count_nonzero(values) / max(n_rows, 1)


def _cells(rows: Any, weights: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the stored cells of some rows with a weight, and the number of these rows."""
    chosen = np.flatnonzero(weights)
    chosen = chosen[:: -(-len(chosen) // _SEEN)]
    cells = [rows.values[rows.indptr[i] : rows.indptr[i + 1]] for i in chosen]
    return np.concatenate(cells), len(chosen)


def _geometric_mean(values: np.ndarray) -> float:
    values = values[values > 0]
    return float(np.exp(np.log(values).mean())) if len(values) else 1.0


# --- the state ------------------------------------------------------------------------------------

LAGS = {"lag": "count", "unseen": "unseen"}  # arrays whose averages are stored as differences


def block_of(count, gamma, alpha, length, unseen=0.0) -> Block:
    """Return the state whose expected counts are ``count + gamma * alpha``."""
    K, alpha_total = count.shape[1], float(alpha.sum())
    lazy = {"scale": 1.0, "gamma": float(gamma), "lag_scale": 0.0, "lag_gamma": 0.0}
    lazy |= {"weight": 0.0, "alpha_total": alpha_total}
    total = count.sum(axis=0) + gamma * alpha_total
    values = {"count": count, "total": total, "unseen": np.full(K, 1.0) * unseen}
    return Block("words", np.zeros(0), values, {}, {"alpha": alpha, "length": length}, None, lazy)


def arranged(values: dict[str, Any], new: dict[str, Any], order: np.ndarray) -> dict[str, Any]:
    """Arrange the components of arrays in `order`; -1 is the new one."""
    wide = {n: np.concatenate([a, new[n][..., None]], axis=-1) for n, a in values.items()}
    return {name: np.ascontiguousarray(array[..., order]) for name, array in wide.items()}


def fold(block: Block) -> None:
    """Fold the scale into the counts, and the sums of the average into the lags."""
    lazy = block.lazy
    for lag, name in LAGS.items():
        if block.past:
            block.past[lag] -= lazy["lag_scale"] * block.values[name]
        block.values[name] *= lazy["scale"]
    lazy["lag_scale"], lazy["scale"] = 0.0, 1.0


def least_count(block: Block) -> float:
    """Return the smallest expected count, apart from rounding errors of collapsed cells."""
    prior = (1.0 + 1e-9) * block.lazy["gamma"] * block.fixed["alpha"]
    return float((block.lazy["scale"] * block.values["count"].min(axis=1) + prior).min())


def pseudo_counts(prior: Dirichlet, tally: np.ndarray) -> np.ndarray:
    """Return the pseudo-count of each word."""
    W = len(tally)
    try:
        alpha = np.array(np.broadcast_to(np.asarray(prior.alpha, dtype=np.float64), (W,)))
    except ValueError as error:
        raise OptionError(f"prior: alpha needs one number, or one for each of {W} words") from error
    if not np.all((alpha > 0) & np.isfinite(alpha)):
        raise OptionError("prior: alpha must be > 0 for every word")
    return alpha


def reweighed(block: Block, factor: np.ndarray, components=slice(None)) -> Block:
    """Multiply the expected counts of all words in some components."""
    lazy, values = block.lazy, {name: array.copy() for name, array in block.values.items()}
    count = values["count"]
    own = lazy["scale"] * count[:, components]
    own += lazy["gamma"] * block.fixed["alpha"][:, None]
    off = own * (factor - 1.0)
    count[:, components] += off / lazy["scale"]
    values["total"][components] += off.sum(axis=0)
    return block._replace(values=values, lazy=dict(lazy))


def log_probabilities(block: Block, chosen: Any = slice(None)) -> np.ndarray:
    """Return ln p(word | component), (component, word), of all or the chosen words."""
    cells = expected_counts(block, chosen)
    cells = np.log(cells, out=cells).T
    return np.subtract(cells, np.log(block.values["total"])[:, None], order="C")


def expected_counts(block: Block, chosen: Any = slice(None)) -> np.ndarray:
    """Return the expected counts of all or the chosen words, (W, K)."""
    cells = block.lazy["scale"] * block.values["count"][chosen]
    prior = (block.lazy["gamma"] * block.fixed["alpha"][chosen])[:, None]
    cells += prior
    return cells if cells.dtype == np.float64 else lifted(cells, prior)


def lifted(cells: Any, prior: Any) -> Any:
    """Add the prior to cells, and lift those that rounding made negative."""
    if not isinstance(cells, np.ndarray):
        return namespace_of(cells).clip(cells, _TINY, None, out=cells)
    if cells.min(initial=1.0) >= _TINY:
        return cells  # checking is faster than changing
    return np.maximum(cells, np.maximum(_ROUNDING * np.asarray(prior), _TINY), out=cells)
