"""The planes family: answers that are linear in the other columns, given the component.

``p(y | x, c)`` is normal. Its mean is a plane over the features of the other blocks (numbers in
units, and an indicator of each level). Missing features are summed out: the component knows their
mean and variance, which enter those of y. So the score of a row depends on what the other blocks
predict for its missing cells; `Regression` combines them.

A plane is stored as its coefficients in units of the columns. In its free coordinates, the features
of the component, as they were at the start, have unit moments.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

from .._arrays import beside, count_true, namespace_of, segment_of, segment_sum
from .._checks import Array, Number
from ..io.rows import DenseRows, dense_rows
from ..priors import Planes
from ._block import Block, Schema
from ._family import Family, register_answer

_LOG_ROOT = float(0.5 * np.log(2 * np.pi))
_REACH = 0.5  # the longest step of a batch: deviations of y, or of a log-variance
_FADES = 10.0  # times the usual variance, beyond which degrees of freedom count less and less
_NARROW, _WIDE = 1e-12, 1e12  # limits of variances, in units of y
_FAINT = 1e-30  # shorter steps are ignored


class Features(NamedTuple):
    """The features of a batch of rows, in units, with the answers."""

    values: Any  # (n, P), the first is 1; 0 for a missing cell
    missing: Any  # (n, g) 1 if a row lacks a column; None if none is missing
    cells: Any  # (n, q) the answers in units, 0 for a missing one
    seen: Any  # (n, q) 1 where there is an answer


class Hidden(NamedTuple):
    """What components know about missing features."""

    first: np.ndarray  # (g + 1,) the first feature of each column; feature 0 is 1
    levels: np.ndarray  # (g,) whether a column has levels: exactly one of its features is 1
    mean: Any  # (P - 1, M)
    spread: Any  # (P - 1, M) the variance; for a level E[x^2], its probability


class Sums(NamedTuple):
    """The contribution of missing columns to an answer, by component."""

    mean: Any  # (g, M)
    variance: Any  # (g, M)


class PlanesFamily(Family):
    """Answers with a normal distribution about a plane in each component."""

    name = "planes"
    priors = (Planes,)
    positive = frozenset({"variance"})

    # --- scores and their slopes ------------------------------------------------------------------

    def view(self, X):
        return dense_rows(X)

    def units(self, block: Block, rows: DenseRows) -> tuple[Any, Any]:
        """Return answers in units, and which of them are observed."""
        y = (beside(rows.values, block.mass) - block.fixed["shift"]) / block.fixed["scale"]
        xp = namespace_of(y)
        seen = ~xp.isnan(y)
        return xp.where(seen, y, xp.zeros_like(y)), xp.astype(seen, y.dtype)

    def moments_of(
        self, block: Block, batch: Features, hidden: Hidden
    ) -> tuple[list[Any], list[Any]]:
        """Return mean and variance of each answer in each component, (n, M), in units."""
        means, variances = [], []
        for k in range(batch.cells.shape[1]):
            plane = block.values["plane"][:, k, :]
            mean, variance = batch.values @ plane, block.values["variance"][k, :][None, :]
            if batch.missing is not None:
                sums = sums_of(plane, hidden)
                mean = mean + batch.missing @ sums.mean
                variance = variance + batch.missing @ sums.variance
            means.append(mean)
            variances.append(variance)
        return means, variances

    def log_density(self, block: Block, batch: Features, means: list, variances: list) -> Any:
        """Return ``ln p(y | x, c)`` of each row, (n, M), in the units of the data."""
        total: Any = 0.0
        for k, (mean, variance) in enumerate(zip(means, variances, strict=True)):
            xp, off = namespace_of(mean), batch.cells[:, k : k + 1] - mean
            unit = _LOG_ROOT + xp.log(block.fixed["scale"][k : k + 1])
            log = -0.5 * (off * off / variance + xp.log(variance)) - unit
            total = total + batch.seen[:, k : k + 1] * log
        return total

    def gradient(
        self, block: Block, batch: Features, hidden: Hidden, moments: tuple, weights: Any
    ) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """Return slopes of the weighted sum of ``ln p(y | x, c)``.

        The first pair is in planes and variances, the second in means and spreads of missing
        features.
        """
        planes, variances, to_mean, to_spread = [], [], 0.0, 0.0
        xp = namespace_of(weights)
        for k, (mean, variance) in enumerate(zip(*moments, strict=True)):
            plane, own = block.values["plane"][:, k, :], weights * batch.seen[:, k : k + 1]
            off = (batch.cells[:, k : k + 1] - mean) / variance
            a, b = own * off, 0.5 * own * (off * off - 1.0 / variance)
            slope = batch.values.T @ a
            if batch.missing is not None:
                lacking = batch.missing.T @ a, batch.missing.T @ b
                slope, to_hidden = _of_hidden(plane, hidden, *lacking, slope)
                to_mean, to_spread = to_mean + to_hidden[0], to_spread + to_hidden[1]
            planes.append(slope)
            variances.append(xp.sum(b, axis=0))
        found = xp.stack(planes, axis=1), xp.stack(variances)
        return found, (to_mean, to_spread)

    # --- steps ------------------------------------------------------------------------------------

    def moved(self, block, found, step):
        """Take natural-gradient steps of limited length."""
        (slope, wide), prior = found, block.prior
        plane, v = block.values["plane"], block.values["variance"]
        count, white, xp = step.counts(block.mass), block.fixed["white"], namespace_of(v)
        pull = xp.clip(step.pull * prior.nu_plane / count, None, 0.5)
        by_white = _through(xp.permute_dims(white, (0, 2, 1)), slope) * v / count
        far = xp.sqrt(xp.sum(by_white**2, axis=0) / v)
        short = xp.clip(_REACH / xp.clip(far, _FAINT, None), None, 1.0)
        new = plane + _through(white, short * by_white) + pull * (prior.plane[:, :, None] - plane)
        pull = xp.clip(step.pull * prior.nu_variance / count, None, 0.5)
        wider = 2.0 * wide * v / count + pull * (prior.variance[:, None] / v - 1.0)
        v = xp.clip(v * xp.exp(xp.clip(wider, -_REACH, _REACH)), _NARROW, _WIDE)
        return block._replace(values={"plane": new, "variance": v}), count_true(short < 1.0)

    def strength(self, block):
        return max(block.prior.nu_plane, block.prior.nu_variance)

    # --- coordinates without bounds ---------------------------------------------------------------

    def free(self, block):
        pairs = zip(block.fixed["white"], np.moveaxis(block.values["plane"], -1, 0), strict=True)
        plane = np.stack([dtrtrs(white, own)[0] for white, own in pairs], axis=-1)
        return {"plane": plane, "variance": np.log(block.values["variance"])}

    def placed(self, block, free):
        variance = np.clip(np.exp(free["variance"]), _NARROW, _WIDE)
        plane = _through(block.fixed["white"], free["plane"])
        return block._replace(values={"plane": plane, "variance": variance})

    def slope(self, block, found, counts, n):
        (slope, wide), prior, v = found, block.prior, block.values["variance"]
        off = block.values["plane"] - prior.plane[:, :, None]
        bent = prior.nu_plane / n * np.tensordot(prior.gram, off, 1)
        plane = _through(block.fixed["white"].swapaxes(1, 2), bent / v - slope)
        far = (off * bent).sum(axis=0) / v
        nu, ratio = prior.nu_variance / n, prior.variance[:, None] / v
        most = _FADES * prior.variance[:, None]
        spent = block.fixed["spent"] / n * most / (v + most)
        log = -wide * v - 0.5 * far + 0.5 * nu * (1.0 - ratio) - 0.5 * spent
        metric = np.broadcast_to((counts + prior.nu_plane / n) / v, plane.shape)
        bends = 0.5 * (counts + nu * np.maximum(ratio, 1.0))
        return {"plane": plane, "variance": log}, {"plane": metric, "variance": bends}

    def reach(self, block, step):
        far = np.abs(step["plane"]) / np.sqrt(block.values["variance"])
        return {"plane": far, "variance": np.abs(step["variance"])}

    def penalty(self, block):
        prior, v = block.prior, block.values["variance"]
        off, xp = block.values["plane"] - prior.plane[:, :, None], namespace_of(v)
        far = xp.sum(off * xp.tensordot(prior.gram, off, axes=1), axis=0)
        most = _FADES * prior.variance[:, None]
        terms = prior.nu_plane * far / v - block.fixed["spent"] * xp.log(v / (v + most))
        terms = terms + prior.nu_variance * (xp.log(v) + prior.variance[:, None] / v)
        return float(0.5 * xp.sum(terms))

    # --- the state --------------------------------------------------------------------------------

    def schema(self, block, n_components, n_features):
        (P, q), M = n_features, n_components
        each, answers = Array((q, M)), Array((q,), above=0.0)
        fixed = {
            "white": Array((M, P, P)),
            "spent": each,
            "low": Array((P,)),
            "high": Array((P,)),
            "shift": Array((q,)),
            "scale": answers,
        }
        prior = {
            "nu_plane": Number(above=0.0),
            "nu_variance": Number(above=0.0),
            "plane": Array((P, q)),
            "variance": answers,
            "gram": Array((P, P)),
        }
        return Schema(answers, {"plane": Array((P, q, M)), "variance": each}, fixed, prior)


def sums_of(plane: Any, hidden: Hidden) -> Sums:
    """Return the contribution of missing columns to mean and variance of an answer."""
    w, first, xp = plane[1:, :], hidden.first - 1, namespace_of(plane)
    mean = segment_sum(w * hidden.mean, first)
    square = segment_sum(w * w * hidden.spread, first)
    levels = beside(hidden.levels, plane)[:, None]
    return Sums(mean, square - xp.where(levels, mean**2, xp.zeros_like(mean)))


def _of_hidden(plane: Any, hidden: Hidden, a: Any, b: Any, slope: Any) -> tuple[Any, tuple]:
    """Return the slope in a plane, including missing columns, and the slopes in `hidden`."""
    w, xp = plane[1:, :], namespace_of(plane)
    own = beside(segment_of(hidden.first - 1, w.shape[0]), plane)
    mean = sums_of(plane, hidden).mean
    mean = xp.where(beside(hidden.levels, plane)[:, None], mean, xp.zeros_like(mean))
    a, b, mean = (xp.take(each, own, axis=0) for each in (a, b, mean))
    to_plane = a * hidden.mean + 2.0 * b * (w * hidden.spread - mean * hidden.mean)
    slope = xp.concat([slope[:1, :], slope[1:, :] + to_plane], axis=0)
    return slope, (a * w - 2.0 * b * mean * w, b * w * w)


def _through(matrices: Any, planes: Any) -> Any:
    """Multiply the matrix of each component, (M, P, P), by its planes, (P, q, M)."""
    xp = namespace_of(planes)
    found = xp.permute_dims(matrices @ xp.permute_dims(planes, (2, 0, 1)), (1, 2, 0))
    return np.ascontiguousarray(found) if isinstance(found, np.ndarray) else found


PLANES = PlanesFamily()
register_answer(PLANES)
