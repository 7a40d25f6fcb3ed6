"""The tied family: correlated columns, with one known covariance for all components.

It is the normal family with an infinitely strong prior of covariances: all components have the
covariance of the prior, and only means are learnt. So scores are linear in ``y = S_oo^-1 x_o``,
with zeros for missing cells, and a step costs as much as with independent columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import clipped, count_true, namespace_of, segment_sum
from . import _moments, _wishart
from ._block import Block
from ._family import register
from ._given import FARTHEST, inverses, log_units
from ._patterns import Grouped, Slab, group
from .normal import NormalFamily, moments, precisions


class Linear(NamedTuple):
    """A batch of rows in the form that means need."""

    rows: Grouped
    y: Any  # (G, size, d)
    base: Any  # (G, size) the score for a mean of 0
    far: Any  # (G, size) x' y
    inverse: Any  # (P, d, d) S_oo^-1; None if it needs too much memory

    def of_groups(self, numbers: Any) -> Any:
        """Expand numbers of patterns to their groups."""
        return namespace_of(numbers).take(numbers, self.rows.pattern, axis=0)


class TiedFamily(NormalFamily):
    """Numbers with a normal distribution, and one covariance for all components."""

    name = "tied"
    starts = ("generative",)

    # --- the three things a model asks for --------------------------------------------------------

    def read(self, block, rows):
        xp, fixed = namespace_of(block.mass), block.fixed
        grouped = group(rows.values, fixed["shift"], fixed["scale"], FARTHEST, rows.base)
        y, normalizers, kept = [], [], []
        for slab in grouped.slabs(rows.values.shape[1] ** 2):
            inverse, log_det = _inverses(block, grouped, slab)
            y.append(grouped.cells[slab.groups, ...] @ xp.take(inverse, slab.own, axis=0))
            normalizer = 0.5 * log_det + grouped.there[slab.patterns, :] @ log_units(block)
            normalizers.append(xp.take(normalizer, slab.own, axis=0))
            kept.append(inverse)
        y = xp.concat(y, axis=0)
        far = xp.sum(grouped.cells * y, axis=-1)
        base = -0.5 * far - xp.concat(normalizers, axis=0)[:, None]
        return Linear(grouped, y, base, far, kept[0] if len(kept) == 1 else None)

    def scores(self, block, batch):
        xp, mean = namespace_of(block.mass), block.values["mean"]
        half = batch.of_groups(0.5 * xp.sum(mean * _means(block, batch), axis=1))
        a = batch.y @ mean - half[:, None, :] + batch.base[:, :, None]
        a = batch.rows.by_row(xp.moveaxis(a, -1, 0))
        return a if batch.rows.base is None else a + batch.rows.base[:, None]

    def expected(self, block, batch, weights, least=0.0):
        """Return weighted sums of ``S_oo^-1 (x_o - m_o)``, and of weights."""
        xp, W, rows = namespace_of(weights), batch.rows.by_place(weights), batch.rows
        K, d, places = W.shape[0], batch.y.shape[-1], W.shape[1] * W.shape[2]
        sums = xp.reshape(W, (K, places)) @ xp.reshape(batch.y, (places, d))
        by_pattern = segment_sum(xp.sum(W, axis=2).T, rows.first)[:, None, :]
        sums = sums.T - xp.sum(by_pattern * _means(block, batch), axis=0)
        return sums, xp.sum(weights, axis=0)[None, :]

    def leverage(self, block, batch, weights, step, least=0.0):
        """Return d a_k / d r_k: the squared distance from the mean."""
        xp, mean = namespace_of(block.mass), block.values["mean"]
        size = batch.of_groups(xp.sum(mean * _means(block, batch), axis=1))
        far = batch.far[:, :, None] - 2.0 * (batch.y @ mean) + size[:, None, :]
        far = xp.moveaxis(xp.clip(far, 0.0, None), -1, 0)
        return batch.rows.by_row(far) / step.counts(block.mass)

    def moved(self, block, found, step):
        (sums, seen), mean, prior = found, block.values["mean"], block.prior
        xp, count = namespace_of(mean), step.counts(block.mass)
        pull = xp.clip(step.pull * prior.nu_mean * xp.ones_like(count), None, 0.5 * count)
        change = seen - step.decay / step.slowness * count
        to_sum = prior.covariance @ sums + pull * (prior.mean[:, None] - mean)
        new, short = step.projection.positive(count, change, step.floor)
        taken = (new - count) / xp.where(short, change, xp.ones_like(change))
        taken = xp.where(short, xp.clip(xp.abs(taken), 0.0, 1.0), xp.ones_like(count))
        mean = mean + taken * to_sum / new
        missed = xp.where(short, new - count - change, xp.zeros_like(count))
        mass = step.mass(block.mass, seen, missed)
        values = {"mean": clipped(mean, -_wishart.WIDE, _wishart.WIDE)}
        return block._replace(mass=mass, values=values), count_true(short)

    def free(self, block):
        return {"mean": _white(_root(block), block.values["mean"])}

    def placed(self, block, free):
        return block._replace(values={"mean": _times(_root(block), free["mean"])})

    def slope(self, block, found, counts, n):
        xp, prior, root = namespace_of(counts), block.prior, _root(block)
        off = _white(root, block.values["mean"] - prior.mean[:, None])
        metric = xp.ones_like(off) * (counts + prior.nu_mean / n)
        return {"mean": prior.nu_mean / n * off - _times(_turned(root), found[0])}, {"mean": metric}

    def reach(self, block, step):
        return {"mean": namespace_of(block.mass).abs(step["mean"])}

    def strength(self, block):
        return block.prior.nu_mean

    # --- the start --------------------------------------------------------------------------------

    def start(self, prior, tally, total, init, stream):
        begin = _moments.start(
            prior, tally, total, "prior" if init == "prior" else "pooled", stream
        )
        return Block(self.name, begin.mass, {"mean": begin.mean}, {}, begin.fixed, begin.prior)

    # --- the state --------------------------------------------------------------------------------

    def schema(self, block, n_components, n_features):
        schema = super().schema(block, n_components, n_features)
        return schema._replace(values={"mean": schema.values["mean"]})

    def centre(self, block):
        return {"mean": block.prior.mean}

    def moments(self, block):
        return block.values

    def of_moments(self, moments):
        return moments

    def penalty(self, block):
        xp = namespace_of(block.mass)
        off = _white(_root(block), block.values["mean"] - block.prior.mean[:, None])
        return float(0.5 * block.prior.nu_mean * xp.sum(off * off))

    # --- what users meet --------------------------------------------------------------------------

    def expectations(self, block):
        return {"x": moments(block)[0]}

    def slopes(self, block):
        mean, covariance = moments(block)
        precision, *_ = precisions(covariance)
        slope = mean @ precision[0]
        return -0.5 * (mean * slope).sum(axis=1), {"x": slope}

    def features_of(self, X):
        return np.asarray(X, dtype=np.float64)


def _root(block: Block) -> Any:
    """Return the Cholesky factor of the covariance; the diagonal for independent columns."""
    covariance = block.prior.covariance
    xp = namespace_of(covariance)
    variances = xp.linalg.diagonal(covariance)
    stored = count_true(covariance != 0)
    if stored == count_true(variances > 0) == variances.shape[0]:
        return xp.sqrt(variances)  # needs no matrix products
    return _wishart.rooted(covariance)


def _times(root: Any, columns: Any) -> Any:
    return root[:, None] * columns if root.ndim == 1 else root @ columns


def _turned(root: Any) -> Any:
    return root if root.ndim == 1 else root.T


def _white(root: Any, columns: Any) -> Any:
    """Undo `_times` the root."""
    if root.ndim == 1:
        return columns / root[:, None]
    return namespace_of(root).linalg.solve(root, columns)


def _inverses(block: Block, rows: Grouped, slab: Slab) -> tuple[Any, Any]:
    covariance, there = block.prior.covariance[None, ...], rows.there[slab.patterns, :]
    inverse, log_det = inverses(covariance, there)
    return inverse[:, 0, :, :], log_det[:, 0]


def _means(block: Block, batch: Linear) -> Any:
    """Return S_oo^-1 m_o of each pattern, (P, d, K)."""
    mean = block.values["mean"]
    if batch.inverse is not None:
        return batch.inverse @ mean
    slabs = batch.rows.slabs(mean.shape[0] ** 2)
    parts = [_inverses(block, batch.rows, slab)[0] @ mean for slab in slabs]
    return namespace_of(mean).concat(parts, axis=0)


register(TiedFamily())
