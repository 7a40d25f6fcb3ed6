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
from ..io.rows import dense_rows
from ..priors import NormalBetaPrime, NormalGamma, PaperNormalGamma
from ..projections import Check, Interior
from ._logs import logs, set_exponents_aside
from ._protocol import (
    LEVERAGE,
    SHARES,
    add_scores,
    add_to_average,
    gather,
    move,
    settle,
)
from ._record import Accepts, Family, register
from .arrays import namespace_of

SHIFT, SCALE, LOG_UNIT = range(3)
MEAN, VARIANCE = range(2)
_FAR_OUT = 3.0  # deviations; what is further out should not be a cluster of its own
_NARROWEST = 0.1  # of the variance within classes: the least that the prior expects in components


class Gaussian(NamedTuple):
    """Factors of all features and classes, in units of the columns."""

    units: np.ndarray  # (3, d): shift, scale, ln(scale * sqrt(2 pi)); value = shift + scale * unit
    mass: np.ndarray  # (d,) observations behind the factors of a feature, all classes together
    factors: np.ndarray  # (d, 2, K): mean S / N, variance V / N - mean^2
    lags: np.ndarray  # (d, 2, K), or (0, 2, K) without an average: what it lacks, times its weight
    weight: np.ndarray  # (1,) total weight of the average so far
    prior: Any


class GaussianRoom(NamedTuple):
    numbers: np.ndarray
    bits: np.ndarray
    pending: np.ndarray  # (d, 3, K) sums of r, r u and r u^2 of a batch, u being about the mean


class GaussianFamily(Family):
    """Numbers, normally distributed in each class."""

    name = "gaussian"
    state = Gaussian
    priors = (NormalGamma, NormalBetaPrime, PaperNormalGamma)
    accepts = Accepts(missing=True)

    # --- the family in numbers: statistics are x and x^2 ------------------------------------------

    def statistics(self, x):
        xp = namespace_of(x)
        x = xp.where(xp.isnan(x), xp.zeros_like(x), x)
        return xp.stack([x, x * x], axis=-1)

    def natural(self, mu):
        """theta(mu) = (m / v, -1 / 2v) for mu = (E x, E x^2)."""
        xp = namespace_of(mu)
        m = mu[..., 0]
        v = mu[..., 1] - m**2
        return xp.stack([m / v, -0.5 / v], axis=-1)

    def mean(self, theta):
        v = -0.5 / theta[..., 1]
        m = theta[..., 0] * v
        return namespace_of(theta).stack([m, v + m * m], axis=-1)

    def log_normalizer(self, theta):
        """A(theta) = m^2 / 2v + ln(2 pi v) / 2."""
        log = namespace_of(theta).log
        return -(theta[..., 0] ** 2) / (4 * theta[..., 1]) + 0.5 * log(-np.pi / theta[..., 1])

    def pull(self, prior, pull, count, mu):
        xp = namespace_of(mu)
        m = mu[..., 0]
        v = mu[..., 1] - m**2
        if isinstance(prior, PaperNormalGamma):
            d_count = pull * prior.alpha_count * xp.ones_like(count)
            d_square = pull * (prior.alpha_square - prior.nu * count * mu[..., 1])
            return d_count, xp.stack([-pull * prior.nu * count * m, d_square], axis=-1)
        off, v0 = prior.mean - m, prior.variance
        share = 2 * v / (v + v0) if isinstance(prior, NormalBetaPrime) else xp.ones_like(v)
        # a prior stronger than all the data may come half-way in one step, not beyond its centre
        to_mean = xp.minimum(pull * prior.nu_mean * share, count / 2)
        to_variance = xp.minimum(pull * prior.nu_variance * xp.ones_like(count), count / 2)
        step = to_mean * off
        square = to_variance * share * (v0 - v)
        if isinstance(prior, NormalBetaPrime):
            square = square + step * off * share / 2 + step**2 / count
        else:
            square = square + step * off
        return xp.zeros_like(count), xp.stack([step, square + 2 * m * step], axis=-1)

    def inside(self, share, count, mu, d_count, d_sum):
        xp = namespace_of(mu)
        m = mu[..., 0]
        v = mu[..., 1] - m**2
        step = d_sum[..., 0] - m * d_count  # about the current mean
        square = d_sum[..., 1] - 2 * m * step - m**2 * d_count
        f = _fractions(
            xp, share, d_count / count, step / (count * xp.sqrt(v)), square / (count * v)
        )
        new = count + f * d_count
        shift = f * step / new
        variance = (count * v + f * square) / new - shift**2
        return new, xp.stack([m + shift, variance + (m + shift) ** 2], axis=-1)

    # --- the state --------------------------------------------------------------------------------

    def view(self, X):
        return dense_rows(X)

    def make_room(self, block, rows, batch, classes):
        d, _, K = block.factors.shape
        return GaussianRoom(classes.numbers, classes.bits, np.zeros((d if batch > 1 else 0, 3, K)))

    def collect(self, rows, parts, n_features, n_classes):
        """Mean, variance and weight of the cells seen of each feature and class, as (3, d, K)."""
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

    def start(self, prior, tally, total, init, stream):
        """Where the prior is in the data's units, a column that never varies has none: it says
        nothing of the class, and is left out by giving it NaN for a scale, unless more of a stream
        may yet come.
        """
        _, d, K = tally.shape
        if isinstance(prior, PaperNormalGamma):  # the paper's equations are in raw units
            shift, scale = np.zeros(d), np.ones(d)
            nu_mean = nu_variance = prior.nu
        else:
            shift, scale, within, constant = _units(tally)
            mean = _column("mean", prior.mean, d, shift, shift, scale)
            variance = _column("variance", prior.variance, d, within * scale**2, 0.0, scale**2)
            if np.any(variance <= 0):
                raise OptionError("prior: variance must be > 0 in every column")
            if not stream:
                scale = np.where(constant, np.nan, scale)
            nu_mean, nu_variance = float(prior.nu_mean), float(prior.nu_variance)
            prior = type(prior)(nu_mean, nu_variance, mean, variance)
        m0, v0 = (each[:, None] for each in _centre(prior, d))
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
            mass = (n.sum(axis=1) + 1.0) / (max(total, 1.0) + 1.0)
        units = np.stack([shift, scale, np.log(scale) + 0.5 * np.log(2 * np.pi)])
        return Gaussian(
            units, mass, np.stack([m, v], axis=1), np.zeros((0, 2, K)), np.zeros(1), prior
        )

    def averaged(self, block):
        if not block.lags.size:
            return block
        factors = block.factors.copy()
        if block.weight[0] > 0:
            factors -= block.lags / block.weight[0]
        collapsed = factors[:, VARIANCE] <= 0  # by rounding alone
        factors[:, VARIANCE][collapsed] = block.factors[:, VARIANCE][collapsed]
        return self.with_average(block._replace(factors=factors), None, 0.0)

    def with_average(self, block, past, weight):
        lags = block.lags[:0] if past is None else (block.factors - past.factors) * weight
        return block._replace(lags=lags, weight=np.array([float(weight)]))

    def with_classes(self, block, order, mass):
        new = np.stack(_centre(block.prior, len(block.factors)), axis=1)[:, :, None]
        # a new class has always been at its start, as far as the average is concerned
        none = np.zeros((len(block.lags), 2, 1))
        return block._replace(
            factors=np.concatenate([block.factors, new], axis=2).take(order, axis=2, mode="wrap"),
            lags=np.concatenate([block.lags, none], axis=2).take(order, axis=2, mode="wrap"),
        )

    def mean_of(self, blocks, shares, classes):
        count = np.stack(
            [s * b.mass[:, None] * p for b, s, p in zip(blocks, shares, classes, strict=True)]
        )
        count /= count.sum(axis=0)
        factors = np.stack([block.factors for block in blocks])  # (blocks, d, 2, K)
        mean = (count * factors[:, :, MEAN]).sum(axis=0)
        spread = factors[:, :, VARIANCE] + (factors[:, :, MEAN] - mean) ** 2
        return blocks[0]._replace(
            mass=sum(s * block.mass for block, s in zip(blocks, shares, strict=True)),
            factors=np.stack([mean, (count * spread).sum(axis=0)], axis=1),
        )

    def penalty(self, block):
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

    def perturbed(self, block, columns, rng):
        """Means move about, by a deviation of theirs or so."""
        factors = block.factors.copy()
        off = rng.normal(size=(len(factors), len(columns)))
        factors[:, MEAN, columns] += off * np.sqrt(factors[:, VARIANCE, columns])
        return block._replace(factors=factors)

    def sample(self, block, codes, rng):
        m, v = moments(block)
        return rng.normal(m[codes], np.sqrt(v)[codes])

    def arrays(self, block, class_counts):
        m, v = block.factors[:, MEAN].T, block.factors[:, VARIANCE].T
        count = class_counts[:, None] / class_counts.sum() * block.mass
        return count, np.stack([m, v + m * m], axis=-1)

    def in_units(self, block, x):
        jacobian = -(~np.isnan(x) @ np.log(block.units[SCALE]))
        return (x - block.units[SHIFT]) / block.units[SCALE], jacobian

    # --- what users meet --------------------------------------------------------------------------

    def named_priors(self, generative, n_features, mixed):
        data = NormalBetaPrime() if mixed else NormalGamma()
        return {"data": (data, 1.0), "paper": (PaperNormalGamma(), 1.0)}

    def check_prior(self, prior):
        if isinstance(prior, PaperNormalGamma):
            return
        if not (prior.nu_mean >= 0 and prior.nu_variance > 0):
            raise OptionError(f"prior={prior!r}: nu_mean must be >= 0 and nu_variance > 0")

    def prior_of_components(self, prior, by_class, by_component):
        if isinstance(prior, PaperNormalGamma) or prior.variance is not None:
            return prior
        within = np.maximum(_NARROWEST * _within(by_class()), _within(by_component))
        return prior._replace(variance=within)

    def keeps_mass(self, prior):
        return not isinstance(prior, PaperNormalGamma)

    def expectations(self, block):
        m, v = moments(block)
        return {"x": m, "x^2": v + m**2}

    def slopes(self, block):
        m, v = moments(block)
        varies = v > 0  # a constant column takes no part
        safe = np.where(varies, v, 1.0)
        theta = np.stack([m / safe, -0.5 / safe], axis=-1)
        offset = -np.where(varies, self.log_normalizer(theta), 0.0).sum(axis=1)
        slope, curve = np.where(varies[..., None], theta, 0.0).transpose(2, 0, 1)
        return offset, {"x": slope, "x^2": curve}

    def features_of(self, X):
        X = np.asarray(X, dtype=np.float64)
        return np.hstack([X, X**2])

    def points(self, rows, weights, n_features):
        """Columns in units of their deviation; what is missing is in the middle."""
        seen = ~np.isnan(rows.values)
        weight = np.where(seen, weights[:, None], 0.0)
        weight /= np.maximum(weight.sum(axis=0), 1e-300)
        off = rows.values - (weight * np.where(seen, rows.values, 0.0)).sum(axis=0)
        off[~seen] = 0.0
        deviation = np.sqrt((weight * off**2).sum(axis=0))
        return np.clip(off / np.where(deviation > 0, deviation, 1.0), -_FAR_OUT, _FAR_OUT)

    def example(self, codes, n_features, rng):
        size = codes.max() + 1, n_features
        means, deviations = rng.normal(size=size), 0.5 + rng.random(size)
        return 1.0 + 3.0 * rng.normal(means[codes], deviations[codes])


def moments(block: Gaussian) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances in raw units, as (class, feature); a constant column has variance 0."""
    shift, scale = block.units[SHIFT][:, None], np.nan_to_num(block.units[SCALE])[:, None]
    m = shift + scale * block.factors[:, MEAN]
    return m.T.copy(), (block.factors[:, VARIANCE] * scale**2).T.copy()


def _centre(prior, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean and variance that the prior pulls to."""
    if isinstance(prior, PaperNormalGamma):
        return np.zeros(d), np.full(d, prior.alpha_square)
    return prior.mean, prior.variance


def _within(tally: np.ndarray) -> np.ndarray:
    """The pooled variance of each feature within the classes, in raw units, never zero."""
    _, scale, within, _ = _units(tally)
    return within * scale**2


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


def _fractions(xp: Any, share: float, n: Any, s: Any, v: Any) -> Any:
    """`interior_fraction` of many factors."""
    keep = 1.0 - share
    f = xp.where(n < -share, -share / xp.where(n < -share, n, -xp.ones_like(n)), xp.ones_like(n))
    b, a = v + n - 2.0 * keep * n, n * v - s * s - keep * n * n
    inside = b * b - 4.0 * a * share
    real = inside >= 0
    bottom = xp.sqrt(xp.where(real, inside, xp.zeros_like(b))) - b
    crosses = real & (bottom > 0)
    root = 2.0 * share / xp.where(crosses, bottom, xp.ones_like(b))
    return xp.where(crosses, xp.minimum(f, root), f)


# --- compiled ------------------------------------------------------------------------------------

_FAR = 1e140  # a squared distance beyond any use, so that no score and no leverage overflows
_COUNT = 1e-50  # the least count and the widest moments a factor may hold
_WIDE = 1e150
_NARROW = 1e-290


@add_scores.register(Gaussian)
def _add_scores(block, rows, i, a, room):
    squares, product, exponent, leverage = 0, 1, 2, 3
    for k in range(a.shape[0]):
        room.numbers[squares, k] = 0.0
        room.numbers[product, k] = 1.0
        room.numbers[exponent, k] = 0.0
        room.numbers[leverage, k] = 0.0
    constant, calls = 0.0, 0.0
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
            room.numbers[leverage, k] += weight * (0.5 + 0.5 * square * square)
        set_exponents_aside(room.bits, product, exponent)
        calls += 1.0
    logs(room.numbers, room.bits, product, exponent, calls)
    for k in range(a.shape[0]):
        a[k] += -constant - 0.5 * (room.numbers[squares, k] + room.numbers[product, k])
        room.numbers[LEVERAGE, k] += room.numbers[leverage, k] / room.numbers[SHARES, k]


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
def land(projection, count, mean, variance, d_count, d_sum, d_square, floor):
    """Land a step of (N, S, V), given about the current mean, inside N > 0 and variance > 0.

    Returns the new count, mean and variance, and 1 if the step was shortened.
    """


@land.register(Interior)
def _land_interior(projection, count, mean, variance, d_count, d_sum, d_square, floor):
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


@land.register(Check)
def _land_check(projection, count, mean, variance, d_count, d_sum, d_square, floor):
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


@helper
def shift_factor(block, d, k, count, d_count, d_sum, d_square, decay, pull, floor, projection):
    """Move one factor by what rows add to it, decay and prior; return the count gained, and 1 if
    the step was shortened.
    """
    mean, variance = block.factors[d, MEAN, k], block.factors[d, VARIANCE, k]
    to_count, to_sum, to_square = pull_of(block.prior, pull, d, count, mean, variance)
    new_count, new_mean, new_variance, short = land(
        projection,
        count,
        mean,
        variance,
        to_count - decay * count + d_count,
        to_sum + d_sum,
        to_square - decay * count * variance + d_square,
        floor,
    )
    block.factors[d, MEAN, k] = new_mean
    block.factors[d, VARIANCE, k] = new_variance
    if block.lags.shape[0] > 0:
        block.lags[d, MEAN, k] += block.weight[0] * (new_mean - mean)
        block.lags[d, VARIANCE, k] += block.weight[0] * (new_variance - variance)
    return new_count - count, short


@move.register(Gaussian)
def _move(block, rows, i, r, decay, pull, floor, projection, room):
    shortened = 0
    for d in range(block.factors.shape[0]):
        x = (rows.values[i, d] - block.units[SHIFT, d]) / block.units[SCALE, d]
        missing = isnan(x)  # adds to no count and moves no moment
        mass = block.mass[d]
        gained = 0.0
        for k in range(r.shape[0]):
            own = 0.0 if missing else r[k]
            u = 0.0 if missing else x - block.factors[d, MEAN, k]
            count = mass * room.numbers[SHARES, k]
            gain, short = shift_factor(
                block, d, k, count, own, own * u, own * u * u, decay, pull, floor, projection
            )
            gained += gain
            shortened += short
        block.mass[d] = max(mass + gained, _COUNT)
    return shortened


@gather.register(Gaussian)
def _gather(block, rows, i, r, room):
    for d in range(block.factors.shape[0]):
        x = (rows.values[i, d] - block.units[SHIFT, d]) / block.units[SCALE, d]
        if isnan(x):
            continue
        for k in range(r.shape[0]):
            u = x - block.factors[d, MEAN, k]
            room.pending[d, 0, k] += r[k]
            room.pending[d, 1, k] += r[k] * u
            room.pending[d, 2, k] += r[k] * u * u


@settle.register(Gaussian)
def _settle(block, decay, pull, floor, projection, room):
    shortened = 0
    for d in range(block.factors.shape[0]):
        mass = block.mass[d]
        gained = 0.0
        for k in range(block.factors.shape[2]):
            d_count, d_sum, d_square = (
                room.pending[d, 0, k],
                room.pending[d, 1, k],
                room.pending[d, 2, k],
            )
            count = mass * room.numbers[SHARES, k]
            gain, short = shift_factor(
                block, d, k, count, d_count, d_sum, d_square, decay, pull, floor, projection
            )
            gained += gain
            shortened += short
            for j in range(3):
                room.pending[d, j, k] = 0.0
        block.mass[d] = max(mass + gained, _COUNT)
    return shortened


@add_to_average.register(Gaussian)
def _add_to_average(block, weight):
    """Lazily: a change at weight W is missing from the share W / total of the average."""
    block.weight[0] += weight


GAUSSIAN = register(GaussianFamily())
