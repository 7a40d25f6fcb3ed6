"""Steps of a mean and a covariance that stay in the domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import clipped, count_true, namespace_of, within
from ._block import Block, Step
from ._inside import fractions

WIDE = 1e75  # the largest mean of a factor
_COUNT = 1e-50  # the smallest count
_MOST = 1e8  # the most by which a covariance grows in one step; beyond, rounding loses digits
_FAR = 1e150  # longer steps have no direction
_RIDGES = (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0)  # shares of variances, against rounding
_LEAST = 1e-290  # the smallest variance


def first(array: Any) -> Any:
    """Move the axis of components to the front."""
    return namespace_of(array).moveaxis(array, -1, 0)


def last(array: Any) -> Any:
    """Move the axis of components to the end, in contiguous memory."""
    moved = namespace_of(array).moveaxis(array, 0, -1)
    return np.ascontiguousarray(moved) if isinstance(moved, np.ndarray) else moved


def symmetric(matrices: Any) -> Any:
    """Return the matrices without rounding errors of their symmetry."""
    return 0.5 * (matrices + namespace_of(matrices).matrix_transpose(matrices))


def definite(covariance: Any) -> tuple[Any, Any]:
    """Return covariances made positive definite with the smallest ridge that is enough.

    Also return their Cholesky factors.
    """
    xp = namespace_of(covariance)
    one = xp.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
    for ridge in _RIDGES:
        try:
            if ridge:
                variance = xp.abs(xp.sum(covariance * one, axis=-1))[..., None] * one
                covariance = (
                    (1.0 - ridge) * covariance + ridge * variance + within(_LEAST, one) * one
                )
            return covariance, xp.linalg.cholesky(covariance)
        except (np.linalg.LinAlgError, RuntimeError):
            continue
    return one, one


def rooted(covariance: Any) -> Any:
    """Return Cholesky factors of covariances, which may be singular by rounding."""
    return definite(covariance)[1]


def moved(block: Block, found: Any, step: Step, landed: Any) -> tuple[Block, int]:
    """Return the block after ``mu + sums - decay mu + pull (alpha - nu mu)``, in its domain."""
    (sums, products, seen), mean = found, block.values["mean"]
    xp, S = namespace_of(mean), first(block.values["covariance"])
    count, lost = step.counts(block.mass)[0, :], step.decay / step.slowness
    N, prior = count[:, None, None], block.prior
    half = 0.5 * count  # a prior that outweighs the data moves a factor half-way at most
    to_mean = xp.clip(step.pull * prior.nu_mean * xp.ones_like(half), None, half)
    to_covariance = xp.clip(step.pull * prior.nu_covariance * xp.ones_like(half), None, half)
    off = (prior.mean[:, None] - mean).T
    to_count = seen[0, :] - lost * count
    to_sum = (S @ sums.T[:, :, None])[:, :, 0] + to_mean[:, None] * off
    to_square = S @ first(products) @ S + seen[0, :, None, None] * S - lost[:, None, None] * N * S
    to_square = to_square + to_covariance[:, None, None] * (prior.covariance - S)
    to_square = to_square + to_mean[:, None, None] * off[:, :, None] * off[:, None, :]
    new, shift, S, short = landed(step, count, S, to_count, to_sum, to_square)
    values = {
        "mean": clipped(mean + shift.T, -WIDE, WIDE),
        "covariance": last(definite(symmetric(S))[0]),
    }
    # steps that were shortened add less mass
    missed = xp.where(short, new - count - to_count, xp.zeros_like(count))
    mass = step.mass(block.mass, seen, missed[None, :])
    return block._replace(mass=mass, values=values), count_true(short)


def land_inside(
    step: Step, count: Any, S: Any, to_count: Any, to_sum: Any, to_square: Any
) -> tuple:
    """Return counts, moves of means and covariances, keeping enough in every direction."""
    xp, share = namespace_of(S), step.projection.share
    root = rooted(S)
    n, s, v = _white(root, count, to_count, to_sum, to_square)
    size = xp.sqrt(xp.sum(s * s, axis=-1))
    lowest = -xp.sqrt(xp.sum(v * v, axis=(-2, -1)))
    if not xp.all(_keeps(share, n, size, lowest)):
        lowest = xp.linalg.eigvalsh(symmetric(v))[:, 0]
    grown = xp.sqrt(xp.sum(v * v, axis=(-2, -1))) + size * size
    short = ~_keeps(share, n, size, lowest) | (grown > _MOST)
    f = xp.where(short, fractions(share, n, size, lowest), xp.ones_like(n))
    f = xp.minimum(f, _MOST / xp.clip(grown, _MOST, None))
    stays = short & (f == 0.0)  # an infinite step has no direction
    new = count + f * to_count
    shift = (f / new)[:, None] * to_sum
    moves = (f / new)[:, None, None] * (to_square - to_count[:, None, None] * S)
    moved = S + moves - shift[:, :, None] * shift[:, None, :]
    none = xp.zeros_like(shift)
    shift = xp.where(stays[:, None], none, shift)
    moved = xp.where(stays[:, None, None], S, moved)
    return xp.where(stays, count, new), shift, moved, short


def _white(root: Any, count: Any, to_count: Any, to_sum: Any, to_square: Any) -> tuple:
    """Return a step in units of the factor, with infinite numbers made finite."""
    xp = namespace_of(root)
    back = xp.linalg.inv(root)
    s = (back @ to_sum[:, :, None])[:, :, 0] / count[:, None]
    v = back @ to_square @ xp.matrix_transpose(back) / count[:, None, None]
    return tuple(
        xp.where(
            xp.isfinite(each), clipped(each, -_FAR, _FAR), xp.full_like(each, -within(_FAR, each))
        )
        for each in (to_count / count, s, v)
    )


def _keeps(share: float, n: Any, s: Any, v: Any) -> Any:
    """Return whether a whole step keeps enough of the count and of the variance."""
    keep, c = 1.0 - share, 1.0 + n
    return (c >= keep) & (c * (1.0 + v) - s * s >= keep * c * c)


def land_check(step: Step, count: Any, S: Any, to_count: Any, to_sum: Any, to_square: Any) -> tuple:
    """Take the check-step of the paper: counts and eigenvalues are lifted to rho / n."""
    xp, floor = namespace_of(S), step.floor
    new = count + to_count
    low = new < floor
    kept = clipped(xp.where(low, floor * xp.ones_like(new), new), _COUNT, None)
    shift = to_sum / kept[:, None]
    square = (count[:, None, None] * S + to_square) / kept[:, None, None]
    square = square - shift[:, :, None] * shift[:, None, :]
    square = xp.where(xp.isfinite(square), clipped(square, -_FAR, _FAR), xp.zeros_like(square))
    values, vectors = xp.linalg.eigh(symmetric(square))
    least = (floor / kept)[:, None] + 1e-12 * xp.sum(xp.abs(values), axis=1, keepdims=True)
    short = low | xp.any(values < least, axis=1)
    values = xp.maximum(values, least)
    lifted = (vectors * values[:, None, :]) @ xp.matrix_transpose(vectors)
    return kept, shift, xp.where(short[:, None, None], lifted, square), short
