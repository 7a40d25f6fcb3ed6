"""The Gaussian family: one factor per feature and class, with missing cells.

Statistics of x are (1, x, x^2); their expectations (N, S, V) are held as a mean S/N and a variance
V/N - (S/N)^2, in units of the column (a shift and a scale), because moments do not lose digits to
cancellation where sums of squares do. The count N of a factor is the share of its class in the mass
of its feature: the expected number of observed cells, one where every row has one.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._checks import check_array, check_number, check_weight, demand
from .._compile import generic, helper, vectorised
from ..exceptions import OptionError
from ..io.rows import dense_rows
from ..priors import NormalBetaPrime, NormalGamma, PaperNormalGamma
from ..projections import Check, Interior, positive, slow_down
from ._logs import logs, set_exponents_aside
from ._protocol import (
    LEVERAGE,
    SHARES,
    SLOWNESS,
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
# Rows of `GaussianRoom.work`. Of columns: whether they vary. Of a row: its cells in units, 0 if
# missing; whether they are seen; 1 / mass if so. Of a class: 1 / its new count, the change of its
# mean, its new variance. Of all: the change of the mass.
VARIES, UNIT, SEEN, LIGHTNESS, INVERSE, SHIFTED, NEW_VARIANCE, D_MASS = range(8)
_FAR_OUT = 3.0  # deviations; what is further out should not be a cluster of its own
_NARROWEST = 0.1  # of the variance within classes: the least that the prior expects in components
_FAINT = 1e-150  # squares of what is below vanish
_SLOWEST = 2.0**20  # by how much steps of a column may be shortened that is far from normal


class Gaussian(NamedTuple):
    """Factors of all features and classes, in units of the columns."""

    units: np.ndarray  # (3, d): shift, scale, ln(scale * sqrt(2 pi)); value = shift + scale * unit
    mass: np.ndarray  # (d,) observations behind the factors of a feature, all classes together
    factors: np.ndarray  # (2, K, d): mean S / N, variance V / N - mean^2
    lags: np.ndarray  # (2, K, d), or (0, K, d) without an average: what it lacks, times its weight
    weight: np.ndarray  # (1,) total weight of the average so far
    prior: Any


class GaussianRoom(NamedTuple):
    """Beside scratch memory, what would have to be divided or logged again for every row."""

    numbers: np.ndarray
    bits: np.ndarray
    precisions: np.ndarray  # (K, d) 1 / variance
    log_volumes: np.ndarray  # (K,) sum of ln(2 pi variance) of columns that vary, in raw units
    work: np.ndarray  # (8, d), see VARIES and what follows
    pending: np.ndarray  # (K, 3, d) what a batch adds to N, and to S and V about the mean


class GaussianFamily(Family):
    """Numbers, normally distributed in each class."""

    name = "gaussian"
    state: ClassVar[Any] = Gaussian
    priors = (NormalGamma, NormalBetaPrime, PaperNormalGamma)
    accepts = Accepts(missing=True)
    starts = ("tempered", "pooled")

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

    def check(self, block, n_classes, n_features, averages):
        K, d = n_classes, n_features
        check_array("units", block.units, (3, d), holes=True)
        shift, scale, log_unit = block.units
        check_array("shifts", shift, (d,))
        same = np.isnan(scale) == np.isnan(log_unit)  # a column that never varies has neither
        demand(same.all() and not (scale <= 0.0).any(), "scales are not above 0")
        check_array("mass", block.mass, (d,), above=0.0)
        check_array("factors", block.factors, (2, K, d))
        check_array("variances", block.factors[VARIANCE], (K, d), above=0.0)
        check_array("lags", block.lags, (2 if averages else 0, K, d))
        check_array("weight", block.weight, (1,))
        check_weight("weight", block.weight[0])
        prior = block.prior
        demand(isinstance(prior, self.priors), "the prior is of another family")
        if isinstance(prior, PaperNormalGamma):
            for name, value in prior._asdict().items():
                check_number(name, value, least=0.0)
            return
        check_number("nu_mean", prior.nu_mean, least=0.0, kind=float)
        check_number("nu_variance", prior.nu_variance, above=0.0, kind=float)
        check_array("mean of the prior", prior.mean, (d,))
        check_array("variance of the prior", prior.variance, (d,), above=0.0)

    def view(self, X):
        return dense_rows(X)

    def make_room(self, block, rows, batch, classes):
        _, K, d = block.factors.shape
        varies, variances = np.isfinite(block.units[SCALE]), block.factors[VARIANCE]
        volume = np.log(variances[:, varies]) + 2.0 * block.units[LOG_UNIT, varies]
        work = np.zeros((8, d))
        work[VARIES] = varies
        return GaussianRoom(
            classes.numbers,
            classes.bits,
            1.0 / variances,
            volume.sum(axis=1),
            work,
            np.zeros((K if batch > 1 else 0, 3, d)),
        )

    def collect(self, rows, parts, n_features, n_classes):
        """Mean, variance, weight and kurtosis of cells seen, by feature and class: (4, d, K)."""
        moments = np.zeros((4, n_features, n_classes))
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
                squares = np.nan_to_num(cells - mean) ** 2
                variance = (share * squares).sum(axis=0)
                squares /= np.where(variance > 0, variance, 1.0)
                moments[:, :, k] = mean, variance, count, (share * squares**2).sum(axis=0)
        return moments

    def merged(self, tallies):
        """By what is within the parts and between them; of kurtosis, as if none were skewed."""
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

    def start(self, prior, tally, total, init, stream):
        """Where the prior is in the data's units, a column that never varies has none: it says
        nothing of the class, and is left out by giving it NaN for a scale, unless more of a stream
        may yet come.

        Discriminative training may begin with the variances of the data, or with that of the prior
        in every class: a flag that a class has never shown has next to none, and is the surest of
        signs until it is shown. And natural gradients measure a step by how much x^2 varies in a
        Gaussian. In a rare flag, or where tails are heavy, it varies more, and the step that suits
        the other columns would overshoot: such a column is given more mass, so that its steps are
        shorter. Not so in components of mixtures, which take on the shape of a column themselves.
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
        units = np.stack([shift, scale, np.log(scale) + 0.5 * np.log(2 * np.pi)])
        factors = np.ascontiguousarray(np.stack([m.T, v.T]))
        return self.state(units, mass, factors, np.zeros((0, K, d)), np.zeros(1), prior)

    def averaged(self, block):
        if not block.lags.size:
            return block
        factors = block.factors.copy()
        if block.weight[0] > 0:
            factors -= block.lags / block.weight[0]
        collapsed = factors[VARIANCE] <= 0  # by rounding alone
        factors[VARIANCE][collapsed] = block.factors[VARIANCE][collapsed]
        return self.with_average(block._replace(factors=factors), None, 0.0)

    def with_average(self, block, past, weight):
        lags = block.lags[:0] if past is None else (block.factors - past.factors) * weight
        return block._replace(lags=lags, weight=np.array([float(weight)]))

    def with_classes(self, block, order, mass):
        d = len(block.mass)
        new = np.stack(_centre(block.prior, d))[:, None]
        # a new class has always been at its start, as far as the average is concerned
        none = np.zeros((len(block.lags), 1, d))
        return block._replace(
            factors=np.concatenate([block.factors, new], axis=1).take(order, axis=1, mode="wrap"),
            lags=np.concatenate([block.lags, none], axis=1).take(order, axis=1, mode="wrap"),
        )

    def mean_of(self, blocks, shares, classes):
        count = np.stack(
            [s * b.mass * p[:, None] for b, s, p in zip(blocks, shares, classes, strict=True)]
        )
        count /= count.sum(axis=0)
        factors = np.stack([block.factors for block in blocks], axis=1)  # (2, blocks, K, d)
        mean = (count * factors[MEAN]).sum(axis=0)
        spread = factors[VARIANCE] + (factors[MEAN] - mean) ** 2
        return blocks[0]._replace(
            mass=sum(s * block.mass for block, s in zip(blocks, shares, strict=True)),
            factors=np.stack([mean, (count * spread).sum(axis=0)]),
        )

    def penalty(self, block):
        (m, v), prior = block.factors, block.prior
        if isinstance(prior, PaperNormalGamma):
            terms = prior.alpha_square / v + prior.nu * (m**2 / v + np.log(v))
            return float(0.5 * terms.sum())
        m0, v0 = prior.mean, prior.variance
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
        off = rng.normal(size=(factors.shape[2], len(columns))).T
        factors[MEAN, columns] += off * np.sqrt(factors[VARIANCE, columns])
        return block._replace(factors=factors)

    def sample(self, block, codes, rng):
        m, v = moments(block)
        return rng.normal(m[codes], np.sqrt(v)[codes])

    def arrays(self, block, class_counts):
        m, v = block.factors
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
    shift, scale = block.units[SHIFT], np.nan_to_num(block.units[SCALE])
    return shift + scale * block.factors[MEAN], block.factors[VARIANCE] * scale**2


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
    mean, variance, count, _ = tally
    share = count / np.maximum(count.sum(axis=1, keepdims=True), 1e-300)
    shift = (share * mean).sum(axis=1)
    size = np.maximum(np.abs(shift), np.abs(mean).max(axis=1, initial=0.0))
    within = (share * variance).sum(axis=1)
    between = (share * (mean - shift[:, None]) ** 2).sum(axis=1)
    scale = np.sqrt(within + between)
    # but for rounding; and squares that vanish say nothing of how much it varies
    constant = (scale <= 1e-14 * size) | (scale <= _FAINT)
    scale = np.where(constant, np.where(size > _FAINT, size, 1.0), scale)
    # no narrower than n rows can tell, of which the next might be the first to be different
    least = np.maximum(1.0 / (count.sum(axis=1) + 2.0), 1e-6)
    within = np.where(constant, 1.0, np.maximum(within / scale**2, least))
    return shift, scale, within, constant


def _excess(tally: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """How much more the statistics of each feature vary than in Gaussians of these variances.

    (E z^2 + E (z^2 - 1)^2 / 2) / 2 is 1 for a normal z. It is rounded down to a power of two, so
    that columns that are about normal stay alike.
    """
    _, within, count, kurtosis = tally
    share = count / np.maximum(count.sum(axis=1, keepdims=True), 1e-300)
    ratio = np.nan_to_num(within / variance, nan=0.0, posinf=1e9)
    excess = 0.25 * (1.0 + (share * kurtosis * ratio**2).sum(axis=1))
    return 2.0 ** np.floor(np.log2(np.clip(excess, 1.0, _SLOWEST)))


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
    if block.mass.shape[0] == 0:
        return
    volume, exponent = 0, 1  # rows of `room.numbers`: the volume of what is missing
    K, work = a.shape[0], room.work
    missing = read_row(rows.values[i], block.units, block.mass, work)
    for k in range(K):
        squares, leverage = distances(work, block.factors[MEAN, k], room.precisions[k])
        a[k] += rows.base[i] - 0.5 * (squares + room.log_volumes[k])
        share = room.numbers[SHARES, k] * room.numbers[SLOWNESS, k]
        room.numbers[LEVERAGE, k] += leverage / share
    if missing == 0.0:
        return
    constant, calls = 0.0, 1.0
    for k in range(K):
        room.numbers[volume, k] = 1.0
        room.numbers[exponent, k] = 0.0
    for d in range(work.shape[1]):
        if work[SEEN, d] < work[VARIES, d]:
            constant += 2.0 * block.units[LOG_UNIT, d]
            for k in range(K):
                room.numbers[volume, k] *= block.factors[VARIANCE, k, d]
            set_exponents_aside(room.bits, volume, exponent)
            calls += 1.0
    set_exponents_aside(room.bits, volume, exponent)
    logs(room.numbers, room.bits, volume, exponent, calls)
    for k in range(K):
        a[k] += 0.5 * (room.numbers[volume, k] + constant)


# Loops below write one array each, so that the compiler can turn them into vector instructions.


@vectorised
def read_row(x, units, mass, work):
    """Put a row into units; return how many cells are missing from columns that vary."""
    n, missing = x.shape[0], 0.0
    for d in range(n):
        unit = (x[d] - units[SHIFT, d]) / units[SCALE, d]
        work[UNIT, d] = unit if unit == unit else 0.0
    for d in range(n):
        unit = x[d] * units[SCALE, d]
        seen = 1.0 if unit == unit else 0.0
        work[SEEN, d] = seen
        missing += work[VARIES, d] - seen
    if all_alike(mass):  # a division costs as much as all else
        lightness = 1.0 / mass[0]
        for d in range(n):
            work[LIGHTNESS, d] = work[SEEN, d] * lightness
    else:
        for d in range(n):
            work[LIGHTNESS, d] = work[SEEN, d] / mass[d]
    return missing


@vectorised
def all_alike(x):
    """Whether all numbers are the same."""
    first, others = x[0], 0
    for d in range(x.shape[0]):
        others += 1 if x[d] != first else 0
    return others == 0


@vectorised
def distances(work, means, precisions):
    """The squared distance of a row from a class, and how far a step would move its own score."""
    squares, leverage = 0.0, 0.0
    for d in range(means.shape[0]):
        z = work[UNIT, d] - means[d]
        square = min(z * z * precisions[d], _FAR)
        squares += square * work[SEEN, d]
        # d a_k / d r_k = s(x)' I(mu)^-1 s(x), of a mean and of a variance
        leverage += work[LIGHTNESS, d] * (0.5 + 0.5 * square * square)
    return squares, leverage


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


@generic
def strength_of(prior):
    """Pseudo-observations, of what the prior pulls by most."""


@strength_of.register(NormalGamma)
@strength_of.register(NormalBetaPrime)
def _strength(prior):
    return max(prior.nu_mean, prior.nu_variance)


@strength_of.register(PaperNormalGamma)
def _strength_paper(prior):
    return prior.nu


class OneRow(NamedTuple):
    """What moves the classes is the row that was read last, with weights r."""

    r: np.ndarray


class Gathered(NamedTuple):
    """What moves the classes is what a batch has added up."""

    pending: np.ndarray


@generic
def weight_of(source, k):
    """The weight of a row in class k."""


@weight_of.register(OneRow)
def _weight_of_row(source, k):
    return source.r[k]


@weight_of.register(Gathered)
def _weight_of_batch(source, k):
    return 0.0


@generic
def added(source, r, k, d, mean, work):
    """What the source adds to N, and to S and V about the mean, of one factor."""


@added.register(OneRow)
def _added_by_row(source, r, k, d, mean, work):
    seen, u = r * work[SEEN, d], work[UNIT, d] - mean
    return seen, seen * u, seen * u * u


@added.register(Gathered)
def _added_by_batch(source, r, k, d, mean, work):
    return source.pending[k, 0, d], source.pending[k, 1, d], source.pending[k, 2, d]


@generic
def fits(projection, count, variance, inverse, new_variance, floor):
    """Whether a whole step stays inside, so that there is no need to `land` it.

    `inverse` is 1 / the new count.
    """


@fits.register(Interior)
def _fits_interior(projection, count, variance, inverse, new_variance, floor):
    keep = 1.0 - projection.share
    least = max(keep * variance, _NARROW)
    return (inverse > 0.0) & (keep * count * inverse <= 1.0) & (new_variance >= least)


@fits.register(Check)
def _fits_check(projection, count, variance, inverse, new_variance, floor):
    return (inverse > 0.0) & (floor * inverse < 1.0) & (new_variance >= floor * inverse)


@vectorised
def shift_classes(
    source, prior, projection, mass, means, variances, precisions, lags, weight, numbers,
    log_volumes, decay, pull, floor, even, work,
):  # fmt: skip
    """Move all factors by what the source adds to them, decay and prior.

    One loop for each array that is written: these the compiler can turn into vector instructions.
    With `even`, what rows add to the count is the same for all factors, and so is their mass.
    Returns how many factors had their step shortened.
    """
    K, n = means.shape
    shortened = 0
    for k in range(K):
        r = weight_of(source, k)
        slowness = slow_down(projection, pull * strength_of(prior), numbers[SHARES, k])
        share, lost = numbers[SHARES, k] * slowness, decay / slowness
        if even:
            to_count, _, _ = pull_of(prior, pull, 0, mass[0] * share, 0.0, 1.0)
            inverse = 1.0 / ((1.0 - lost) * mass[0] * share + to_count + r)
            for d in range(n):
                work[INVERSE, d] = inverse
        else:
            for d in range(n):
                to_count, _, _ = pull_of(prior, pull, d, mass[d] * share, 0.0, 1.0)
                r_count, _, _ = added(source, r, k, d, 0.0, work)
                work[INVERSE, d] = 1.0 / ((1.0 - lost) * mass[d] * share + to_count + r_count)
        for d in range(n):
            _, to_sum, _ = pull_of(prior, pull, d, mass[d] * share, means[k, d], variances[k, d])
            _, r_sum, _ = added(source, r, k, d, means[k, d], work)
            work[SHIFTED, d] = (to_sum + r_sum) * work[INVERSE, d]
        for d in range(n):
            _, _, to_square = pull_of(prior, pull, d, mass[d] * share, means[k, d], variances[k, d])
            _, _, r_square = added(source, r, k, d, means[k, d], work)
            work[NEW_VARIANCE, d] = to_square + r_square
        for d in range(n):
            square = (1.0 - lost) * mass[d] * share * variances[k, d] + work[NEW_VARIANCE, d]
            new = square * work[INVERSE, d] - work[SHIFTED, d] * work[SHIFTED, d]
            work[NEW_VARIANCE, d] = min(new, _WIDE * _WIDE)
        astray, growth = 0, 1.0
        for d in range(n):
            inside = fits(
                projection, mass[d] * share, variances[k, d],
                work[INVERSE, d], work[NEW_VARIANCE, d], floor,
            )  # fmt: skip
            astray += 0 if inside else 1
            growth *= work[NEW_VARIANCE, d] * precisions[k, d]
        if astray > 0:
            bring_back(
                source, prior, projection, mass, means, variances, r, k, share, lost, pull, floor,
                work,
            )  # fmt: skip
        if astray > 0 or not 1e-300 < growth < 1e300:
            log_volumes[k] += log_growth(work, precisions, k)
        else:
            log_volumes[k] += log(growth)
        numbers[SLOWNESS, k] = max(numbers[SLOWNESS, k], slowness)
        shortened += astray
        if lags.shape[0] > 0:
            for d in range(n):
                lags[MEAN, k, d] += weight * work[SHIFTED, d]
            for d in range(n):
                lags[VARIANCE, k, d] += weight * (work[NEW_VARIANCE, d] - variances[k, d])
        for d in range(n):
            means[k, d] = min(max(means[k, d] + work[SHIFTED, d], -_WIDE), _WIDE)
        for d in range(n):
            variances[k, d] = work[NEW_VARIANCE, d]
            precisions[k, d] = 1.0 / work[NEW_VARIANCE, d]
    return shortened


@helper
def bring_back(
    source, prior, projection, mass, means, variances, r, k, share, decay, pull, floor, work
):
    """Land the steps that go astray; the mass lacks what they were shortened by."""
    for d in range(means.shape[1]):
        count, mean, variance = mass[d] * share, means[k, d], variances[k, d]
        if fits(projection, count, variance, work[INVERSE, d], work[NEW_VARIANCE, d], floor):
            continue
        to_count, to_sum, to_square = pull_of(prior, pull, d, count, mean, variance)
        r_count, r_sum, r_square = added(source, r, k, d, mean, work)
        d_count = to_count - decay * count + r_count
        d_square = to_square - decay * count * variance + r_square
        new_count, new_mean, new_variance, _ = land(
            projection, count, mean, variance, d_count, to_sum + r_sum, d_square, floor
        )
        work[D_MASS, d] += new_count - count - d_count
        work[SHIFTED, d] = new_mean - mean
        work[NEW_VARIANCE, d] = new_variance


@helper
def log_growth(work, precisions, k):
    """By how much the logarithms of the variances of a class grow in all."""
    grown = 0.0
    for d in range(precisions.shape[1]):
        grown += log(work[NEW_VARIANCE, d]) + log(precisions[k, d])
    return grown


@helper
def change_mass(mass, prior, K, decay, pull, floor, projection, work):
    """Change the mass of each feature by D_MASS, decay and prior."""
    to_count, _, _ = pull_of(prior, pull, 0, 1.0, 0.0, 1.0)
    for d in range(mass.shape[0]):
        change = work[D_MASS, d] + K * to_count - decay * mass[d]
        mass[d], _ = positive(projection, mass[d], change, floor)


@move.register(Gaussian)
def _move(block, rows, i, r, decay, pull, floor, projection, room):
    if block.mass.shape[0] == 0:
        return 0
    work, mass = room.work, block.mass
    missing = read_row(rows.values[i], block.units, mass, work)
    even = missing == 0.0 and all_alike(mass)
    for d in range(mass.shape[0]):
        work[D_MASS, d] = 0.0
    shortened = shift_classes(
        OneRow(r), block.prior, projection, mass, block.factors[MEAN], block.factors[VARIANCE],
        room.precisions, block.lags, block.weight[0], room.numbers, room.log_volumes,
        decay, pull, floor, even, work,
    )  # fmt: skip
    total = 0.0
    for k in range(r.shape[0]):
        total += r[k]
    for d in range(mass.shape[0]):
        work[D_MASS, d] += total * work[SEEN, d]
    change_mass(mass, block.prior, r.shape[0], decay, pull, floor, projection, work)
    return shortened


@gather.register(Gaussian)
def _gather(block, rows, i, r, room):
    read_row(rows.values[i], block.units, block.mass, room.work)
    for k in range(r.shape[0]):
        for d in range(room.pending.shape[2]):
            more = added(OneRow(r), r[k], k, d, block.factors[MEAN, k, d], room.work)
            for j in range(3):
                room.pending[k, j, d] += more[j]


@settle.register(Gaussian)
def _settle(block, decay, pull, floor, projection, room):
    work, pending = room.work, room.pending
    for d in range(work.shape[1]):
        work[D_MASS, d] = 0.0
    shortened = shift_classes(
        Gathered(pending), block.prior, projection, block.mass, block.factors[MEAN],
        block.factors[VARIANCE], room.precisions, block.lags, block.weight[0], room.numbers,
        room.log_volumes, decay, pull, floor, False, work,
    )  # fmt: skip
    for k in range(pending.shape[0]):
        for d in range(work.shape[1]):
            work[D_MASS, d] += pending[k, 0, d]
            for j in range(3):
                pending[k, j, d] = 0.0
    K = pending.shape[0]
    change_mass(block.mass, block.prior, K, decay, pull, floor, projection, work)
    return shortened


@add_to_average.register(Gaussian)
def _add_to_average(block, weight):
    """Lazily: a change at weight W is missing from the share W / total of the average."""
    block.weight[0] += weight


GAUSSIAN = register(GaussianFamily())
