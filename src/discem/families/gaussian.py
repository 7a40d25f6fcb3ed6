"""The Gaussian family: one factor per feature and class, with missing cells.

Statistics of x are (1, x, x^2); their expectations (N, S, V) are held as a mean S/N and a variance
V/N - (S/N)^2, in units of the column (a shift and a scale), because moments do not lose digits to
cancellation where sums of squares do. The count N of a factor is the share of its class in the mass
of its feature: the expected number of observed cells, one where every row has one.
"""

from __future__ import annotations

from math import isnan, sqrt
from typing import Any, NamedTuple

import numpy as np

from .._compile import generic, helper
from ..exceptions import OptionError
from ..priors import NormalBetaPrime, NormalGamma, PaperNormalGamma
from ..projections import Check, Interior
from ._logs import logs, set_exponents_aside
from ._protocol import LEVERAGE, SHARES, joint_scores, move, tick

# --- the family in numbers: the last axis is (x, x^2) or its dual --------------------------------


def statistics(x):
    x = np.asarray(x, dtype=np.float64)
    return np.stack([x, x * x], axis=-1)


def natural(mu):
    """theta(mu) = (m / v, -1 / 2v) for mu = (E x, E x^2)."""
    mean, square = mu[..., 0], mu[..., 1]
    variance = square - mean**2
    return np.stack([mean / variance, -0.5 / variance], axis=-1)


def mean(theta):
    variance = -0.5 / theta[..., 1]
    m = theta[..., 0] * variance
    return np.stack([m, variance + m * m], axis=-1)


def log_normalizer(theta):
    """A(theta) = m^2 / 2v + ln(2 pi v) / 2."""
    return -(theta[..., 0] ** 2) / (4 * theta[..., 1]) + 0.5 * np.log(-np.pi / theta[..., 1])


LIFTS_TO_PRIOR = False  # where the paper's check-step lifts a class count to


def keeps_mass(prior) -> bool:
    """Whether the prior leaves the mass of the statistics as it is, or adds to it for ever."""
    return not isinstance(prior, PaperNormalGamma)


# --- state ---------------------------------------------------------------------------------------


class Gaussian(NamedTuple):
    """Factors of all features and classes, in units of the columns."""

    units: np.ndarray  # (3, d): shift, scale, ln(scale * sqrt(2 pi)); value = shift + scale * unit
    mass: np.ndarray  # (d,) observations behind the factors of a feature, all classes together
    factors: np.ndarray  # (d, 2, K): mean S / N, variance V / N - mean^2
    lags: np.ndarray  # (d, 2, K), or (0, 2, K) without averaging: see `tick`
    weight: np.ndarray  # (1,) total weight of the average so far
    prior: Any


SHIFT, SCALE, LOG_UNIT = range(3)
MEAN, VARIANCE = range(2)


def _state(shift, scale, mass, mean, variance, prior, average) -> Gaussian:
    units = np.stack([shift, scale, np.log(scale) + 0.5 * np.log(2 * np.pi)])
    factors = np.stack([mean, variance], axis=1)
    lags = np.zeros(factors.shape if average else (0, *factors.shape[1:]))
    return Gaussian(units, mass, factors, lags, np.zeros(1), prior)


def collect(rows, parts, n_features: int, n_classes: int) -> np.ndarray:
    """Mean, variance and weight of the cells seen of each feature in each class, as (3, d, K)."""
    moments = np.zeros((3, n_features, n_classes))
    for codes, weights in parts:
        order = np.argsort(codes, kind="stable")
        first = np.searchsorted(codes[order], np.arange(n_classes + 1))
        for k in np.unique(codes[codes >= 0]):
            members = order[first[k] : first[k + 1]]
            cells, weight = rows.values[members], weights[members, None]
            seen = np.where(np.isnan(cells), 0.0, weight)
            count = seen.sum(axis=0)
            share = seen / np.maximum(count, 1e-300)
            mean = (share * np.nan_to_num(cells)).sum(axis=0)
            off = np.nan_to_num(cells - mean)
            moments[:, :, k] = mean, (share * off * off).sum(axis=0), count
    return moments


def start(
    spec: Any, tally: np.ndarray, total: float, init: str, average: bool, stream: bool
) -> Gaussian:
    """Build the initial state from the prior and the class moments of the data (`tally`).

    init="prior" puts one observation per class at the prior's centre; init="generative" takes the
    closed-form estimate under NLL, at a mass of one observation over all classes. Where the prior
    is in the data's units, a column that never varies has none: it says nothing of the class, and
    is left out by giving it NaN for a scale, unless more of a `stream` may yet come.
    """
    _, d, K = tally.shape
    prior: NormalGamma | NormalBetaPrime | PaperNormalGamma
    if isinstance(spec, PaperNormalGamma):  # the paper's equations are in raw units
        shift, scale, prior = np.zeros(d), np.ones(d), spec
        center_mean = np.zeros(d)
        center_variance = np.full(d, spec.alpha_square)
        nu_mean = nu_variance = spec.nu
    else:
        shift, scale, within, constant = _units(tally)
        center_mean = _column("mean", spec.mean, d, shift, shift, scale)
        center_variance = _column("variance", spec.variance, d, within * scale**2, 0.0, scale**2)
        if np.any(center_variance <= 0):
            raise OptionError("prior: variance must be > 0 in every column")
        if not stream:
            scale = np.where(constant, np.nan, scale)
        nu_mean, nu_variance = float(spec.nu_mean), float(spec.nu_variance)
        prior = type(spec)(nu_mean, nu_variance, center_mean, center_variance)
    m0, v0 = center_mean[:, None], center_variance[:, None]
    if init == "prior":
        mass = np.full(d, float(K))
        m, v = np.repeat(m0, K, axis=1), np.repeat(v0, K, axis=1)
    else:
        raw_mean, raw_variance, n = tally
        known = (n > 0) & np.isfinite(scale)[:, None]
        data_mean = np.where(known, (raw_mean - shift[:, None]) / scale[:, None], m0)
        data_variance = np.where(known, raw_variance / scale[:, None] ** 2, v0)
        m = (n * data_mean + nu_mean * m0) / np.maximum(n + nu_mean, 1e-300)
        spread = n * (data_variance + (data_mean - m) ** 2) + nu_mean * (m - m0) ** 2
        v = (spread + nu_variance * v0) / np.maximum(n + nu_variance, 1e-300)
        v = np.maximum(v, 1e-9 * v0)
        mass = (n.sum(axis=1) + 1.0) / (total + 1.0)
    return _state(shift, scale, mass, m, v, prior, average)


def _units(tally: np.ndarray) -> tuple[np.ndarray, ...]:
    """Overall mean and deviation, within-class variance in units of it, and what is constant."""
    mean, variance, count = tally
    share = count / np.maximum(count.sum(axis=1, keepdims=True), 1e-300)
    shift = (share * mean).sum(axis=1)
    size = np.maximum(np.abs(shift), np.abs(mean).max(axis=1, initial=0.0))
    within = (share * variance).sum(axis=1)
    between = (share * (mean - shift[:, None]) ** 2).sum(axis=1)
    scale = np.sqrt(within + between)
    constant = scale <= 1e-14 * size  # but for rounding
    scale = np.where(constant, np.where(size > 0, size, 1.0), scale)
    within = np.where(constant, 1.0, np.maximum(within / scale**2, 1e-6))
    return shift, scale, within, constant


def _column(name, given, d, default, shift, scale):
    """One number per column, in units, from a number, an array or the data's own default."""
    if given is None:
        return (default - shift) / scale
    try:
        values = np.broadcast_to(np.asarray(given, dtype=np.float64), (d,))
    except ValueError as error:
        raise OptionError(
            f"prior: {name} needs one number, or one for each of {d} columns"
        ) from error
    return (values - shift) / scale


def averaged(block: Gaussian) -> Gaussian:
    """The running average of the moments (the block itself where none is kept)."""
    if not block.lags.size or block.weight[0] == 0:
        return block
    factors = block.factors - block.lags / block.weight[0]
    collapsed = factors[:, VARIANCE] <= 0  # by rounding alone
    factors[:, VARIANCE][collapsed] = block.factors[:, VARIANCE][collapsed]
    return block._replace(factors=factors, lags=block.lags[:0])


def with_classes(block: Gaussian, order: np.ndarray, mass: float) -> Gaussian:
    """Arrange the classes in `order`; -1 is a new one, at the prior's centre."""
    d = len(block.factors)
    if isinstance(block.prior, PaperNormalGamma):
        m0, v0 = np.zeros(d), np.full(d, block.prior.alpha_square)
    else:
        m0, v0 = block.prior.mean, block.prior.variance
    new = np.stack([m0, v0], axis=1)[:, :, None]
    # a new class has always been at its start, as far as the average is concerned
    none = np.zeros((len(block.lags), 2, 1))
    return block._replace(
        factors=np.concatenate([block.factors, new], axis=2).take(order, axis=2, mode="wrap"),
        lags=np.concatenate([block.lags, none], axis=2).take(order, axis=2, mode="wrap"),
    )


def stir(block: Gaussian, columns: np.ndarray, rng) -> Gaussian:
    """Move the means of some columns about, by a deviation of theirs or so."""
    factors = block.factors.copy()
    off = rng.normal(size=(len(factors), len(columns)))
    factors[:, MEAN, columns] += off * np.sqrt(factors[:, VARIANCE, columns])
    return block._replace(factors=factors)


def within_variance(tally: np.ndarray) -> np.ndarray:
    """The pooled variance of each feature within the classes, in raw units, never zero."""
    _, scale, within, _ = _units(tally)
    return within * scale**2


def penalty(block: Gaussian) -> float:
    """-ln of the prior, up to a constant."""
    m, v = block.factors[:, MEAN], block.factors[:, VARIANCE]
    prior = block.prior
    if isinstance(prior, PaperNormalGamma):
        terms = prior.alpha_square / v + prior.nu * (m**2 / v + np.log(v))
        return float(0.5 * terms.sum())
    m0, v0 = prior.mean[:, None], prior.variance[:, None]
    if isinstance(prior, NormalBetaPrime):
        terms = 2.0 * prior.nu_mean * (m - m0) ** 2 / (v + v0)
        terms = terms + 2.0 * prior.nu_variance * np.log((v + v0) ** 2 / (4.0 * v * v0))
    else:
        terms = prior.nu_mean * (m - m0) ** 2 / v
        terms = terms + prior.nu_variance * (np.log(v) + v0 / v)
    return float(0.5 * terms.sum())


def moments(block: Gaussian) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances in raw units, as (class, feature); a constant column has variance 0."""
    shift, scale = block.units[SHIFT][:, None], np.nan_to_num(block.units[SCALE])[:, None]
    m = shift + scale * block.factors[:, MEAN]
    return m.T.copy(), (block.factors[:, VARIANCE] * scale**2).T.copy()


def sample(block: Gaussian, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    m, v = moments(block)
    return rng.normal(m[codes], np.sqrt(v)[codes])


# --- compiled ------------------------------------------------------------------------------------

_FAR = 1e140  # a squared distance beyond any use, so that no score and no leverage overflows
_COUNT = 1e-50  # the least count and the widest moments a factor may hold
_WIDE = 1e150
_NARROW = 1e-290


@joint_scores.register(Gaussian)
def _joint_scores(block, rows, i, a, room):
    squares, product, exponent = 0, 1, 2
    for k in range(a.shape[0]):
        room.numbers[squares, k] = 0.0
        room.numbers[product, k] = 1.0 / (room.numbers[SHARES, k] * room.numbers[SHARES, k])
        room.numbers[exponent, k] = 0.0
        room.numbers[LEVERAGE, k] = 0.0
    set_exponents_aside(room, product, exponent)
    constant, calls = 0.0, 1.0
    for d in range(block.factors.shape[0]):
        x = (rows.values[i, d] - block.units[SHIFT, d]) / block.units[SCALE, d]
        if isnan(x):
            continue
        constant += block.units[LOG_UNIT, d]
        weight = 1.0 / block.mass[d]
        for k in range(a.shape[0]):
            z = x - block.factors[d, MEAN, k]
            variance = block.factors[d, VARIANCE, k]
            square = min(z * z / variance, _FAR)
            room.numbers[squares, k] += square
            room.numbers[product, k] *= variance
            # d a_k / d r_k = s(x)' I(mu)^-1 s(x), of a mean and of a variance
            room.numbers[LEVERAGE, k] += weight * (0.5 + 0.5 * square * square)
        set_exponents_aside(room, product, exponent)
        calls += 1.0
    logs(room, product, exponent, calls)
    for k in range(a.shape[0]):
        a[k] = -constant - 0.5 * (room.numbers[squares, k] + room.numbers[product, k])
        room.numbers[LEVERAGE, k] /= room.numbers[SHARES, k]


@generic
def pull_of(prior, pull, d, count, mean, variance):
    """Pull * (alpha - nu mu) of one factor, as changes of N, and of S and V about the mean."""


@pull_of.register(NormalGamma)
def _pull_normal_gamma(prior, pull, d, count, mean, variance):
    # a prior stronger than all the data may come half-way in one step, not beyond its centre
    to_mean = min(pull * prior.nu_mean, 0.5 * count)
    to_variance = min(pull * prior.nu_variance, 0.5 * count)
    off = prior.mean[d] - mean
    return 0.0, to_mean * off, to_variance * (prior.variance[d] - variance) + to_mean * off * off


@pull_of.register(NormalBetaPrime)
def _pull_beta_prime(prior, pull, d, count, mean, variance):
    # natural gradients: that of a mean is v / N times, of a variance 2 v^2 / N times the plain one
    center = prior.variance[d]
    share = 2.0 * variance / (variance + center)
    to_mean = min(pull * prior.nu_mean * share, 0.5 * count)
    to_variance = min(pull * prior.nu_variance, 0.5 * count)
    off = prior.mean[d] - mean
    step = to_mean * off
    wider = to_variance * share * (center - variance) + 0.5 * step * off * share
    return 0.0, step, wider + step * step / count


@pull_of.register(PaperNormalGamma)
def _pull_paper(prior, pull, d, count, mean, variance):
    d_count = prior.alpha_count
    d_sum = -prior.nu * count * mean - mean * d_count
    d_square = prior.alpha_square + prior.nu * count * (mean * mean - variance)
    return pull * d_count, pull * d_sum, pull * (d_square + mean * mean * d_count)


@generic
def settle(projection, count, mean, variance, d_count, d_sum, d_square, floor):
    """Land a step of (N, S, V), given about the current mean, inside N > 0 and variance > 0.

    Returns the new count, mean and variance, and 1 if the step was shortened.
    """


@settle.register(Interior)
def _settle_interior(projection, count, mean, variance, d_count, d_sum, d_square, floor):
    keep = 1.0 - projection.share
    new_count = count + d_count
    shift = d_sum / new_count
    new_variance = (count * variance + d_square) / new_count - shift * shift
    shortened = 0
    if not (new_count >= keep * count and new_variance >= keep * variance):
        shortened = 1
        f = interior_fraction(
            projection.share,
            d_count / count,
            d_sum / (count * sqrt(variance)),
            d_square / (count * variance),
        )
        if f == 0.0:  # a step beyond all bounds has no direction
            return count, mean, variance, 1
        new_count = count + f * d_count
        shift = f * d_sum / new_count
        new_variance = (count * variance + f * d_square) / new_count - shift * shift
        new_variance = max(new_variance, keep * variance)  # rounding at the edge
    return (
        new_count,
        min(max(mean + shift, -_WIDE), _WIDE),
        min(max(new_variance, _NARROW), _WIDE * _WIDE),
        shortened,
    )


@settle.register(Check)
def _settle_check(projection, count, mean, variance, d_count, d_sum, d_square, floor):
    new_count = count + d_count
    shift = d_sum / max(new_count, floor)
    square = (count * variance + d_square) / max(new_count, floor)
    if new_count < floor:  # lifting N alone moves S/N and V/N, which are about zero
        new_count = floor
        total = count * mean + d_sum + mean * d_count
        square = count * (variance + mean * mean) + d_square
        square = (square + 2.0 * mean * (d_sum + mean * d_count) - mean * mean * d_count) / floor
        shift = total / floor - mean
        square -= mean * mean + 2.0 * mean * shift
    new_variance = square - shift * shift
    lifted = 1 if new_count == floor or not new_variance >= floor / new_count else 0
    new_variance = new_variance if new_variance > floor / new_count else floor / new_count
    return (
        max(new_count, _COUNT),
        min(max(mean + shift, -_WIDE), _WIDE),
        min(max(new_variance, _NARROW), _WIDE * _WIDE),
        lifted,
    )


@helper
def interior_fraction(share, n, s, v):
    """The largest f <= 1 such that a step f * (n, s, v) costs no positive quantity above `share`.

    In units of the factor the step makes the count c = 1 + f n and the variance
    (c (1 + f v) - f^2 s^2) / c^2. Both are to keep 1 - share of what they were; for the variance
    this is a quadratic inequality in f.
    """
    keep = 1.0 - share
    f = 1.0
    if n < -share:
        f = -share / n
    return min(f, first_root(share, v + n - 2.0 * keep * n, n * v - s * s - keep * n * n))


@helper
def first_root(c, b, a):
    """The least positive f with c + b f + a f^2 = 0 for c > 0, or 1 if that is larger or none."""
    size = max(abs(a), abs(b))
    if not size < 1e300:
        return 0.0
    if size == 0.0:
        return 1.0
    a, b, c = a / size, b / size, c / size
    inside = b * b - 4.0 * a * c
    if inside < 0.0:
        return 1.0
    bottom = sqrt(inside) - b
    return min(2.0 * c / bottom, 1.0) if bottom > 0.0 else 1.0


@move.register(Gaussian)
def _move(block, rows, i, r, decay, pull, floor, projection, room):
    shortened = 0
    averaging = block.lags.shape[0] > 0
    lag = block.weight[0]
    for d in range(block.factors.shape[0]):
        x = (rows.values[i, d] - block.units[SHIFT, d]) / block.units[SCALE, d]
        missing = isnan(x)
        mass = block.mass[d]
        gained = 0.0
        for k in range(r.shape[0]):
            count = mass * room.numbers[SHARES, k]
            mean = block.factors[d, MEAN, k]
            variance = block.factors[d, VARIANCE, k]
            d_count, d_sum, d_square = pull_of(block.prior, pull, d, count, mean, variance)
            d_count -= decay * count
            d_square -= decay * count * variance
            if not missing:  # a missing cell adds to no count and moves no moment
                u = x - mean
                d_count += r[k]
                d_sum += r[k] * u
                d_square += r[k] * u * u
            new_count, new_mean, new_variance, short = settle(
                projection, count, mean, variance, d_count, d_sum, d_square, floor
            )
            shortened += short
            gained += new_count - count
            block.factors[d, MEAN, k] = new_mean
            block.factors[d, VARIANCE, k] = new_variance
            if averaging:
                block.lags[d, MEAN, k] += lag * (new_mean - mean)
                block.lags[d, VARIANCE, k] += lag * (new_variance - variance)
        block.mass[d] = max(mass + gained, _COUNT)
    return shortened


@tick.register(Gaussian)
def _tick(block, weight):
    """Average lazily: a change at weight W is missing from the share W / total of the average."""
    block.weight[0] += weight
