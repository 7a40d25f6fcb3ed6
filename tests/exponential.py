"""A family of one's own, in one file: waiting times, exponentially distributed in each class.

`docs/add-a-family.md` walks through it, and shows all of it. The package knows nothing of it;
`register` is enough for every law of the tests, for mixtures, products, streams and files.
"""

from typing import Any, NamedTuple

import numpy as np

from discem.exceptions import OptionError
from discem.families import (
    SHARES,
    Accepts,
    Family,
    add_scores,
    add_to_average,
    check_array,
    check_number,
    gather,
    register,
    settle,
)
from discem.families.arrays import namespace_of
from discem.io.rows import dense_rows
from discem.projections import positive

# --- the prior and the state ----------------------------------------------------------------------


class InverseGamma(NamedTuple):
    """Prior of a mean waiting time: `nu` observations of the mean `mean` (None: the data's own).

    It adds ``nu (ln m + mean / m)`` to the loss of each factor.
    """

    nu: float = 2.0
    mean: Any = None


class Exponential(NamedTuple):
    """Mean waiting times of all features and classes."""

    mass: np.ndarray  # (d,) observations behind the factors of a feature, all classes together
    means: np.ndarray  # (d, K)
    lags: np.ndarray  # (d, K), or (0, K) without an average: what it lacks, times its weight
    weight: np.ndarray  # (1,) total weight of the average so far
    prior: InverseGamma


class ExponentialRoom(NamedTuple):
    """Scratch memory; the first two are what all families of a model share."""

    numbers: np.ndarray
    bits: np.ndarray
    pending: np.ndarray  # (2, d, K) sums of r and r (x - m) of a batch


# --- the record -----------------------------------------------------------------------------------


class ExponentialFamily(Family):
    """Numbers >= 0, exponentially distributed in each class: theta = -1 / m, A = ln m."""

    name = "exponential"
    state = Exponential
    priors = (InverseGamma,)
    accepts = Accepts(missing=True, negative=False)

    # the family in numbers

    def statistics(self, x):
        xp = namespace_of(x)
        return xp.where(xp.isnan(x), xp.zeros_like(x), x)[..., None]

    def natural(self, mu):
        return -1.0 / mu

    def mean(self, theta):
        return -1.0 / theta

    def log_normalizer(self, theta):
        return -namespace_of(theta).log(-theta[..., 0])

    def pull(self, prior, pull, count, mu):
        xp = namespace_of(mu)
        nu = xp.minimum(pull * prior.nu * xp.ones_like(count), count / 2)  # half-way at most
        return xp.zeros_like(count), (nu * (prior.mean - mu[..., 0]))[..., None]

    def inside(self, share, count, mu, d_count, d_sum):
        xp, keep, m = namespace_of(mu), 1 - share, mu[..., 0]
        new_count = xp.maximum(count + d_count, keep * count)
        about_mean = d_sum[..., 0] - m * d_count
        new_mean = xp.maximum(m + about_mean / new_count, keep * m)
        return new_count, new_mean[..., None]

    # the state

    def check(self, block, n_classes, n_features, averages):
        d, K = n_features, n_classes
        check_array("mass", block.mass, (d,), above=0.0)
        check_array("means", block.means, (d, K), above=0.0)
        check_array("lags", block.lags, (d if averages else 0, K))
        check_array("weight", block.weight, (1,), least=0.0)
        check_number("nu of the prior", block.prior.nu, above=0.0)
        check_array("mean of the prior", block.prior.mean, (d,), above=0.0)

    def view(self, X):
        return dense_rows(X)

    def make_room(self, block, rows, batch, classes):
        return ExponentialRoom(*classes, np.zeros((2, *block.means.shape)))

    def collect(self, rows, parts, n_features, n_classes):
        """Counts and sums of the cells seen, as (2, d, K)."""
        tally = np.zeros((2, n_features, n_classes))
        for codes, weights in parts:
            weight = np.where(np.isnan(rows.values), 0.0, weights[:, None])
            for k in np.unique(codes[codes >= 0]):
                own = codes == k
                tally[0, :, k] += weight[own].sum(axis=0)
                tally[1, :, k] += (weight[own] * np.nan_to_num(rows.values[own])).sum(axis=0)
        return tally

    def start(self, prior, tally, total, init, stream):
        count, sums = tally
        d, K = count.shape
        centre = prior.mean
        if centre is None:
            centre = sums.sum(axis=1) / np.maximum(count.sum(axis=1), 1e-300)
        centre = np.maximum(np.broadcast_to(centre, d).astype(float), 1e-12)
        if init == "prior":
            mass, means = np.full(d, float(K)), np.repeat(centre[:, None], K, axis=1)
        else:
            mass = (count.sum(axis=1) + 1.0) / (max(total, 1.0) + 1.0)
            means = (sums + prior.nu * centre[:, None]) / (count + prior.nu)
        prior = InverseGamma(float(prior.nu), centre)
        return Exponential(mass, means, np.zeros((0, K)), np.zeros(1), prior)

    def averaged(self, block):
        if not block.lags.size:
            return block
        means = block.means - block.lags / max(block.weight[0], 1e-300)
        return self.with_average(block._replace(means=means), None, 0.0)

    def with_average(self, block, past, weight):
        lags = block.lags[:0] if past is None else (block.means - past.means) * weight
        return block._replace(lags=lags, weight=np.array([float(weight)]))

    def with_classes(self, block, order, mass):
        means = np.concatenate([block.means, block.prior.mean[:, None]], axis=1)
        lags = np.concatenate([block.lags, np.zeros((len(block.lags), 1))], axis=1)
        return block._replace(
            means=np.ascontiguousarray(means[:, order]), lags=np.ascontiguousarray(lags[:, order])
        )

    def mean_of(self, blocks, shares, classes):
        mass, count, sums = 0.0, 0.0, 0.0
        for block, share, p in zip(blocks, shares, classes, strict=True):
            own = share * block.mass[:, None] * p  # N = mass p(y), and S = N m
            mass, count = mass + share * block.mass, count + own
            sums = sums + own * block.means
        return blocks[0]._replace(mass=mass, means=sums / count)

    def penalty(self, block):
        ratio = block.prior.mean[:, None] / block.means
        return float(block.prior.nu * (np.log(block.means) + ratio).sum())

    def perturbed(self, block, columns, rng):
        means = block.means.copy()
        means[:, columns] *= rng.uniform(0.5, 1.5, size=(len(means), len(columns)))
        return block._replace(means=means)

    def sample(self, block, codes, rng):
        return rng.exponential(block.means.T[codes])

    def arrays(self, block, class_counts):
        count = class_counts[:, None] / class_counts.sum() * block.mass
        return count, block.means.T[:, :, None]

    # what users meet

    def named_priors(self, generative, n_features, mixed):
        return {"data": (InverseGamma(), 1.0)}

    def check_prior(self, prior):
        if not prior.nu > 0:
            raise OptionError(f"prior={prior!r}: nu must be > 0")

    def expectations(self, block):
        return {"x": block.means.T}

    def slopes(self, block):
        return -np.log(block.means).sum(axis=0), {"x": -1.0 / block.means.T}

    def features_of(self, X):
        return np.asarray(X, dtype=np.float64)

    def points(self, rows, weights, n_features):
        return np.log1p(np.nan_to_num(rows.values))

    def example(self, codes, n_features, rng):
        return rng.exponential(0.2 + 5.0 * rng.random((codes.max() + 1, n_features))[codes])


# --- compiled -------------------------------------------------------------------------------------


@add_scores.register(Exponential)
def _add_scores(block, rows, i, a, room):
    for d in range(block.means.shape[0]):
        x = rows.values[i, d]
        if np.isnan(x):
            continue
        for k in range(a.shape[0]):
            a[k] -= x / block.means[d, k] + np.log(block.means[d, k])


@gather.register(Exponential)
def _gather(block, rows, i, r, room):
    for d in range(block.means.shape[0]):
        x = rows.values[i, d]
        if np.isnan(x):
            continue
        for k in range(r.shape[0]):
            room.pending[0, d, k] += r[k]
            room.pending[1, d, k] += r[k] * (x - block.means[d, k])


@settle.register(Exponential)
def _settle(block, decay, pull, floor, projection, room):
    shortened = 0
    for d in range(block.means.shape[0]):
        mass, gained = block.mass[d], 0.0
        for k in range(block.means.shape[1]):
            m, count = block.means[d, k], mass * room.numbers[SHARES, k]
            nu = min(pull * block.prior.nu, 0.5 * count)  # half-way at most
            d_count = room.pending[0, d, k] - decay * count
            about_mean = room.pending[1, d, k] + nu * (block.prior.mean[d] - m)
            new_count, short = positive(projection, count, d_count, floor)
            new_mean, shorter = positive(projection, m, about_mean / new_count, floor)
            if block.lags.shape[0] > 0:
                block.lags[d, k] += block.weight[0] * (new_mean - m)
            block.means[d, k] = new_mean
            gained += new_count - count
            shortened += short + shorter
            room.pending[0, d, k] = 0.0
            room.pending[1, d, k] = 0.0
        block.mass[d] = max(mass + gained, 1e-50)
    return shortened


@add_to_average.register(Exponential)
def _add_to_average(block, weight):
    block.weight[0] += weight


EXPONENTIAL = register(ExponentialFamily())
