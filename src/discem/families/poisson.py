"""The Poisson family: one rate per column and class, with missing cells.

The statistic of x is x itself, and its expectation the rate m: theta = ln m, A = m, h(x) = 1 / x!.
Rows bring ln h(x) along, which all classes share: it is found once, not whenever a row is scored.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .._checks import check_array, check_number, check_weight, demand
from ..exceptions import OptionError
from ..io.rows import dense_rows
from ..priors import Gamma
from ..projections import positive, slow_down
from ._protocol import (
    LEVERAGE,
    SHARES,
    SLOWNESS,
    add_scores,
    add_to_average,
    gather,
    settle,
)
from ._record import Accepts, Family, register
from .arrays import namespace_of

_LEAST = 1e-12  # the smallest rate of a column


class Poisson(NamedTuple):
    """Rates of all columns and classes."""

    mass: np.ndarray  # (d,) observations behind the factors of a column, all classes together
    rates: np.ndarray  # (d, K)
    lags: np.ndarray  # (d, K), or (0, K) without an average: what it lacks, times its weight
    weight: np.ndarray  # (1,) total weight of the average so far
    prior: Gamma


class PoissonRoom(NamedTuple):
    numbers: np.ndarray
    bits: np.ndarray
    pending: np.ndarray  # (2, d, K) sums of r and r (x - m) of a batch


class PoissonFamily(Family):
    """Counts, 0, 1, 2 ..., of a rate that depends on the class."""

    name = "poisson"
    state = Poisson
    priors = (Gamma,)
    accepts = Accepts(missing=True, negative=False)

    # --- the family in numbers: the statistic is x ------------------------------------------------

    def statistics(self, x):
        xp = namespace_of(x)
        return xp.where(xp.isnan(x), xp.zeros_like(x), x)[..., None]

    def natural(self, mu):
        return namespace_of(mu).log(mu)

    def mean(self, theta):
        return namespace_of(theta).exp(theta)

    def log_normalizer(self, theta):
        return namespace_of(theta).exp(theta[..., 0])

    def log_base(self, x):
        xp = namespace_of(x)
        return xp.asarray(_log_base(np.asarray(x)))

    def pull(self, prior, pull, count, mu):
        xp = namespace_of(mu)
        nu = xp.minimum(pull * prior.nu * xp.ones_like(count), count / 2)  # half-way at most
        return xp.zeros_like(count), (nu * (prior.rate - mu[..., 0]))[..., None]

    def inside(self, share, count, mu, d_count, d_sum):
        xp, keep, m = namespace_of(mu), 1 - share, mu[..., 0]
        new = xp.maximum(count + d_count, keep * count)
        step = (d_sum[..., 0] - m * d_count) / new
        return new, xp.maximum(m + step, keep * m)[..., None]

    # --- the state --------------------------------------------------------------------------------

    def check(self, block, n_classes, n_features, averages):
        d, K = n_features, n_classes
        check_array("mass", block.mass, (d,), above=0.0)
        check_array("rates", block.rates, (d, K), above=0.0)
        check_array("lags", block.lags, (d if averages else 0, K))
        check_array("weight", block.weight, (1,))
        check_weight("weight", block.weight[0])
        demand(isinstance(block.prior, Gamma), "the prior is of another family")
        check_number("nu of the prior", block.prior.nu, above=0.0, kind=float)
        check_array("rate of the prior", block.prior.rate, (d,), above=0.0)

    def view(self, X):
        return dense_rows(X, _log_base(X))

    def make_room(self, block, rows, batch, classes):
        return PoissonRoom(classes.numbers, classes.bits, np.zeros((2, *block.rates.shape)))

    def collect(self, rows, parts, n_features, n_classes):
        """Weights and sums of the cells seen, as (2, d, K)."""
        tally, seen = np.zeros((2, n_features, n_classes)), ~np.isnan(rows.values)
        values = np.where(seen, rows.values, 0.0)
        for codes, weights in parts:
            for k in np.unique(codes[codes >= 0]):
                own = np.flatnonzero(codes == k)
                tally[0, :, k] += weights[own] @ seen[own]
                tally[1, :, k] += weights[own] @ values[own]
        return tally

    def start(self, prior, tally, total, init, stream):
        count, sums = tally
        d, K = count.shape
        rate = prior.rate
        if rate is None:  # not quite 0 where nothing was counted: the next row may be the first
            rate = (sums.sum(axis=1) + 0.5) / (count.sum(axis=1) + 1.0)
        try:
            rate = np.maximum(np.broadcast_to(rate, d).astype(np.float64), _LEAST)
        except ValueError as error:
            raise OptionError(
                f"prior: rate needs one number, or one for each of {d} columns"
            ) from error
        if init == "prior":
            mass, rates = np.full(d, float(K)), np.repeat(rate[:, None], K, axis=1)
        else:
            mass = (count.sum(axis=1) + 1.0) / (max(total, 1.0) + 1.0)
            rates = (sums + prior.nu * rate[:, None]) / (count + prior.nu)
        prior = Gamma(float(prior.nu), rate)
        return Poisson(mass, rates, np.zeros((0, K)), np.zeros(1), prior)

    def averaged(self, block):
        if not block.lags.size:
            return block
        rates = block.rates
        if block.weight[0] > 0:
            rates = np.maximum(rates - block.lags / block.weight[0], _LEAST * 1e-100)
        return self.with_average(block._replace(rates=rates), None, 0.0)

    def with_average(self, block, past, weight):
        lags = block.lags[:0] if past is None else (block.rates - past.rates) * weight
        return block._replace(lags=lags, weight=np.array([float(weight)]))

    def with_classes(self, block, order, mass):
        rates = np.concatenate([block.rates, block.prior.rate[:, None]], axis=1)
        lags = np.concatenate([block.lags, np.zeros((len(block.lags), 1))], axis=1)
        return block._replace(
            rates=np.ascontiguousarray(rates[:, order]), lags=np.ascontiguousarray(lags[:, order])
        )

    def mean_of(self, blocks, shares, classes):
        mass, count, sums = 0.0, 0.0, 0.0
        for block, share, p in zip(blocks, shares, classes, strict=True):
            own = share * block.mass[:, None] * p
            mass, count = mass + share * block.mass, count + own
            sums = sums + own * block.rates
        return blocks[0]._replace(mass=mass, rates=sums / count)

    def penalty(self, block):
        rate = block.prior.rate[:, None]
        return float(block.prior.nu * (block.rates - rate * np.log(block.rates)).sum())

    def perturbed(self, block, columns, rng):
        rates = block.rates.copy()
        rates[:, columns] *= rng.uniform(0.5, 1.5, size=(len(rates), len(columns)))
        return block._replace(rates=rates)

    def sample(self, block, codes, rng):
        return rng.poisson(np.minimum(block.rates.T[codes], 1e15)).astype(np.float64)

    def arrays(self, block, class_counts):
        count = class_counts[:, None] / class_counts.sum() * block.mass
        return count, block.rates.T[:, :, None]

    # --- what users meet --------------------------------------------------------------------------

    def named_priors(self, generative, n_features, mixed):
        return {"data": (Gamma(), 1.0)}

    def check_prior(self, prior):
        if not prior.nu > 0:
            raise OptionError(f"prior={prior!r}: nu must be > 0")

    def expectations(self, block):
        return {"x": block.rates.T}

    def slopes(self, block):
        return -block.rates.sum(axis=0), {"x": np.log(block.rates.T)}

    def features_of(self, X):
        return np.asarray(X, dtype=np.float64)

    def points(self, rows, weights, n_features):
        """Roots, whose variance depends little on the rate, about their mean."""
        roots = 2.0 * np.sqrt(np.nan_to_num(rows.values))
        seen = ~np.isnan(rows.values)
        mean = (roots * seen).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        return np.clip(np.where(seen, roots - mean, 0.0), -3.0, 3.0)

    def example(self, codes, n_features, rng):
        rates = 0.5 + 8.0 * rng.random((int(codes.max()) + 1, n_features))
        return rng.poisson(rates[codes]).astype(np.float64)


def _log_base(x: np.ndarray) -> np.ndarray:
    """-ln x! of all cells that are seen, (n,)."""
    return -np.nansum(gammaln(x + 1.0), axis=1)


# --- compiled ------------------------------------------------------------------------------------


@add_scores.register(Poisson)
def _add_scores(block, rows, i, a, room):
    for k in range(a.shape[0]):
        a[k] += rows.base[i]
    for d in range(block.rates.shape[0]):
        x = rows.values[i, d]
        if np.isnan(x):
            continue
        for k in range(a.shape[0]):
            m = block.rates[d, k]
            a[k] += x * log(m) - m
            share = room.numbers[SHARES, k] * room.numbers[SLOWNESS, k]
            room.numbers[LEVERAGE, k] += (x - m) * (x - m) / (m * block.mass[d] * share)


@gather.register(Poisson)
def _gather(block, rows, i, r, room):
    for d in range(block.rates.shape[0]):
        x = rows.values[i, d]
        if np.isnan(x):
            continue
        for k in range(r.shape[0]):
            room.pending[0, d, k] += r[k]
            room.pending[1, d, k] += r[k] * (x - block.rates[d, k])


@settle.register(Poisson)
def _settle(block, decay, pull, floor, projection, room):
    shortened, nu = 0, block.prior.nu
    for d in range(block.rates.shape[0]):
        mass, gained = block.mass[d], 0.0
        for k in range(block.rates.shape[1]):
            slowness = slow_down(projection, pull * nu, room.numbers[SHARES, k])
            m, count = block.rates[d, k], mass * room.numbers[SHARES, k] * slowness
            to_prior = min(pull * nu, 0.5 * count)  # half-way at most
            total = room.pending[0, d, k]
            change = total - decay / slowness * count
            about_mean = room.pending[1, d, k] + to_prior * (block.prior.rate[d] - m)
            new_count, short = positive(projection, count, change, floor)
            new_rate, shorter = positive(projection, m, about_mean / new_count, floor)
            new_rate = min(max(new_rate, 1e-200), 1e200)
            if block.lags.shape[0] > 0:
                block.lags[d, k] += block.weight[0] * (new_rate - m)
            block.rates[d, k] = new_rate
            gained += total + (new_count - count - change)
            room.numbers[SLOWNESS, k] = max(room.numbers[SLOWNESS, k], slowness)
            shortened += short + shorter
            room.pending[0, d, k] = 0.0
            room.pending[1, d, k] = 0.0
        block.mass[d], _ = positive(projection, mass, gained - decay * mass, floor)
    return shortened


@add_to_average.register(Poisson)
def _add_to_average(block, weight):
    block.weight[0] += weight


POISSON = register(PoissonFamily())
