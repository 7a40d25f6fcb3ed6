"""The start of Gaussian factors: moments of the data, units of columns, and the prior."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import filled
from ..exceptions import OptionError
from ..priors import NormalGamma
from ._block import Block
from ._gaussian_priors import rule_of

_NARROWEST = 0.1  # of the variance within classes: the least variance expected in components
_FAINT = 1e-150  # squares of smaller numbers underflow
_FAR_OUT = 3.0  # deviations; points further out should not form a cluster
_AT_ONCE = 1 << 20  # cells processed at a time
_SLOWEST = 2.0**20  # the most by which the steps of a column far from normal are shortened


def collect(values: np.ndarray, parts: list, n_features: int, n_classes: int) -> np.ndarray:
    """Return mean, variance, weight and kurtosis of observed cells: (4, d, K)."""
    moments = np.zeros((4, n_features, n_classes))
    for codes, weights in parts:
        order = np.argsort(codes, kind="stable")
        first = np.searchsorted(codes[order], np.arange(n_classes + 1))
        for k in np.unique(codes[codes >= 0]):
            members = order[first[k] : first[k + 1]]
            size = max(_AT_ONCE // len(members), 1)
            for begin in range(0, n_features, size):  # there may be no room for all squares
                some = slice(begin, begin + size)
                moments[:, some, k] = _moments(values[members, some], weights[members, None])
    return moments


def _moments(cells: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return mean, variance, weight and kurtosis of columns."""
    there = (~np.isnan(cells)).astype(np.float64)
    cells, seen = filled(cells, there), weight * there
    count = seen.sum(axis=0)
    share = seen / np.maximum(count, 1e-300)
    mean = (share * cells).sum(axis=0)
    squares = (there * (cells - mean)) ** 2
    variance = (share * squares).sum(axis=0)
    squares /= np.where(variance > 0, variance, 1.0)
    return mean, variance, count, (share * squares**2).sum(axis=0)


def merged(tallies: list[np.ndarray]) -> np.ndarray:
    """Merge the moments of parts of the rows; kurtosis as if no part was skewed."""
    means, variances, counts, kurtoses = np.stack(tallies, axis=1)
    count = counts.sum(axis=0)
    share = counts / np.maximum(count, 1e-300)
    mean = (share * means).sum(axis=0)
    off = np.where(counts > 0, means - mean, 0.0) ** 2
    variance = (share * (variances + off)).sum(axis=0)
    scale = np.where(variance > 0, variance, 1.0)
    within, between = variances / scale, off / scale
    fourth = kurtoses * within**2 + 6.0 * within * between + between**2
    return np.stack([mean, variance, count, (share * fourth).sum(axis=0)])


def start(name: str, prior: Any, tally: np.ndarray, total: float, init: str, stream: bool) -> Block:
    """The initial block, see `Family.start`.

    If the prior is in the data's units, a constant column has no unit. It tells nothing about the
    class, so its scale is NaN, which excludes it (unless more rows of a stream may come).

    Discriminative training may start with the variances of the data, or with the prior's variance
    in every class. The second start helps if a flag is constant in a class: its variance there is
    almost zero, which makes the first other value decisive. Natural gradients scale a step by the
    variance of x^2 in a Gaussian. For a rare flag, or heavy tails, x^2 varies more, and the usual
    step would overshoot. Such a column gets more mass, which shortens its steps. Components of
    mixtures adapt to the shape of a column, and need no extra mass.
    """
    _, d, K = tally.shape
    rule = rule_of(prior)
    if not rule.in_units:
        shift, scale = np.zeros(d), np.ones(d)
        nu_mean = nu_variance = prior.nu
    else:
        shift, scale, within, constant = units_of(tally)
        mean = column("mean", prior.mean, d, shift, shift, scale)
        variance = column("variance", prior.variance, d, within * scale**2, 0.0, scale**2)
        if np.any(variance <= 0):
            raise OptionError("prior: variance must be > 0 in every column")
        if not stream:
            scale = np.where(constant, np.nan, scale)
        nu_mean, nu_variance = float(prior.nu_mean), float(prior.nu_variance)
        prior = type(prior)(nu_mean, nu_variance, mean, variance)
    m0, v0 = (each[:, None] for each in rule.centre(prior, d))
    if init == "prior":
        mass = np.full(d, float(K))
        m, v = np.repeat(m0, K, axis=1), np.repeat(v0, K, axis=1)
    else:
        raw_mean, raw_variance, n, _ = tally
        known = (n > 0) & np.isfinite(scale)[:, None]
        data_mean = np.where(known, (raw_mean - shift[:, None]) / scale[:, None], m0)
        data_variance = np.where(known, raw_variance / scale[:, None] ** 2, v0)
        m = (n * data_mean + nu_mean * m0) / np.maximum(n + nu_mean, 1e-300)
        spread = n * (data_variance + (data_mean - m) ** 2) + nu_mean * (m - m0) ** 2
        v = (spread + nu_variance * v0) / np.maximum(n + nu_variance, 1e-300)
        v = np.maximum(v, 1e-9 * v0)
        mass = (n.sum(axis=1) + 1.0) / (max(total, 1.0) + 1.0)
        if init != "generative" and isinstance(prior, NormalGamma):
            mass *= _excess(tally, v * scale[:, None] ** 2)
        if init == "pooled":
            v = np.repeat(v0, K, axis=1)
    values, fixed = {"mean": m, "variance": v}, {"shift": shift, "scale": scale}
    return Block(name, mass, values, {}, fixed, prior)


def points(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return columns in units of their deviation; missing cells are 0."""
    seen = ~np.isnan(values)
    weight = np.where(seen, weights[:, None], 0.0)
    weight /= np.maximum(weight.sum(axis=0), 1e-300)
    off = values - (weight * np.where(seen, values, 0.0)).sum(axis=0)
    off[~seen] = 0.0
    deviation = np.sqrt((weight * off**2).sum(axis=0))
    return np.clip(off / np.where(deviation > 0, deviation, 1.0), -_FAR_OUT, _FAR_OUT)


def within_components(by_class: np.ndarray, by_component: np.ndarray) -> np.ndarray:
    """Return the variance expected in components: that within them, with a lower bound."""
    return np.maximum(_NARROWEST * _within(by_class), _within(by_component))


def _within(tally: np.ndarray) -> np.ndarray:
    """Return the pooled variance of each feature within the classes, in raw units, above zero."""
    _, scale, within, _ = units_of(tally)
    return within * scale**2


def units_of(tally: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return overall mean and deviation, within-class variance in units, and constant columns."""
    mean, variance, count, _ = tally
    share = count / np.maximum(count.sum(axis=1, keepdims=True), 1e-300)
    shift = (share * mean).sum(axis=1)
    size = np.maximum(np.abs(shift), np.abs(mean).max(axis=1, initial=0.0))
    within = (share * variance).sum(axis=1)
    between = (share * (mean - shift[:, None]) ** 2).sum(axis=1)
    scale = np.sqrt(within + between)
    # up to rounding; squares that underflow tell nothing about the variance
    constant = (scale <= 1e-14 * size) | (scale <= _FAINT)
    scale = np.where(constant, np.where(size > _FAINT, size, 1.0), scale)
    # no smaller than n rows can show: the next row might be the first to differ
    least = np.maximum(1.0 / (count.sum(axis=1) + 2.0), 1e-6)
    within = np.where(constant, 1.0, np.maximum(within / scale**2, least))
    return shift, scale, within, constant


def _excess(tally: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return how much more the statistics of each feature vary than in a Gaussian.

    (E z^2 + E (z^2 - 1)^2 / 2) / 2 is 1 for a normal z. It is rounded down to a power of two, so
    that all columns close to normal get the same value.
    """
    _, within, count, kurtosis = tally
    share = count / np.maximum(count.sum(axis=1, keepdims=True), 1e-300)
    ratio = np.nan_to_num(within / variance, nan=0.0, posinf=1e9)
    excess = 0.25 * (1.0 + (share * kurtosis * ratio**2).sum(axis=1))
    return 2.0 ** np.floor(np.log2(np.clip(excess, 1.0, _SLOWEST)))


def column(name, given, d, default, shift=0.0, scale=1.0):
    """Return one number per column, in units, from a number, an array or the default."""
    if given is None:
        return (default - shift) / scale
    try:
        values = np.broadcast_to(np.asarray(given, dtype=np.float64), (d,))
    except ValueError as error:
        raise OptionError(
            f"prior: {name} needs one number, or one for each of {d} columns"
        ) from error
    return (values - shift) / scale
