"""The Poisson family: one rate per column and component, with missing cells.

The statistic of x is x itself, and its expectation the rate m: theta = ln m, A = m, h(x) = 1 / x!.
Rows carry ln h(x), which is the same for all components.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from .._arrays import beside, clipped, count_true, namespace_of
from .._checks import Array, Number
from ..exceptions import OptionError
from ..io.column_kinds import ColumnKind, Found, Slot, register_column
from ..io.rows import DenseRows, dense_rows
from ..priors import Gamma
from ._block import Accepts, Block, Schema, Statistics, seen_of
from ._distributions import OfCounts
from ._family import Family, register
from ._missing import independent
from ._units import column

_LEAST = 1e-12  # the smallest rate of a column
_SMALLEST, _LARGEST = 1e-200, 1e200  # limits of the rate of a factor


class PoissonFamily(Family):
    """Counts 0, 1, 2 ..., with a rate that depends on the component."""

    name = "poisson"
    priors = (Gamma,)
    accepts = Accepts(missing=True, negative=False)
    positive = frozenset({"rate"})

    # --- the three things a model asks for --------------------------------------------------------

    def view(self, X):
        return dense_rows(X, -np.nansum(gammaln(X + 1.0), axis=1))

    def read(self, block, rows: DenseRows):
        x = beside(rows.values, block.mass)
        x, seen = seen_of(x)
        return Statistics(x, seen, None if rows.base is None else beside(rows.base, x))

    def table(self, block):
        """Return theta = ln m, and A = m."""
        rate = block.values["rate"]
        return namespace_of(rate).log(rate), rate

    def leverage(self, block, batch, weights, step, least=0.0):
        """Return d a_k / d r_k = (x - m)^2 / (m N)."""
        rate, count = block.values["rate"][None, :, :], step.counts(block.mass)[None, :, :]
        effect = (batch.values[:, :, None] - rate) ** 2 / (rate * count)
        if batch.seen is not None:
            effect = effect * batch.seen[:, :, None]
        return namespace_of(effect).sum(effect, axis=1)

    def moved(self, block, found, step):
        (sums, seen), rate = found, block.values["rate"]
        xp, positive = namespace_of(rate), step.projection.positive
        count = step.counts(block.mass)
        change = seen - step.decay / step.slowness * count
        new_count, short = positive(count, change, step.floor)
        to_prior = xp.minimum(step.pull * block.prior.nu * xp.ones_like(count), 0.5 * count)
        about_mean = sums - rate * seen + to_prior * (block.prior.rate[:, None] - rate)
        new, shorter = positive(rate, about_mean / new_count, step.floor)
        missed = xp.where(short, new_count - count - change, xp.zeros_like(count))
        mass = step.mass(block.mass, seen, missed)
        values = {"rate": clipped(new, _SMALLEST, _LARGEST)}
        n_short = count_true(short | shorter)
        return block._replace(mass=mass, values=values), n_short

    def slope(self, block, found, counts, n):
        (sums, seen), rate, prior = found, block.values["rate"], block.prior
        gradient = rate * seen - sums - prior.nu * (prior.rate[:, None] - rate) / n
        return {"rate": gradient}, {"rate": (counts + prior.nu / n) * rate}

    def strength(self, block):
        return block.prior.nu

    def features(self, block, batch):
        scale = _unit(block)
        missing = None if batch.seen is None else 1.0 - batch.seen
        return batch.values / scale, missing

    def hidden(self, block):
        rate, scale = block.values["rate"], _unit(block)[:, None]
        return np.ones(rate.shape[0], dtype=np.int64), False, rate / scale, rate / scale**2

    def with_answers(self, block, found, to_mean, to_spread):
        (sums, seen), rate, scale = found, block.values["rate"], _unit(block)[:, None]
        return sums + rate * (to_mean / scale + to_spread / scale**2), seen

    # --- the start --------------------------------------------------------------------------------

    def collect(self, rows, parts, n_features, n_classes):
        """Return weights and sums of observed cells, as (2, d, K)."""
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
        # not 0 without counts, as the next row may have one
        usual = (sums.sum(axis=1) + 0.5) / (count.sum(axis=1) + 1.0)
        rate = np.maximum(column("rate", prior.rate, d, usual), _LEAST)
        if init == "prior":
            mass, rates = np.full(d, float(K)), np.repeat(rate[:, None], K, axis=1)
        else:
            mass = (count.sum(axis=1) + 1.0) / (max(total, 1.0) + 1.0)
            rates = (sums + prior.nu * rate[:, None]) / (count + prior.nu)
        return Block(self.name, mass, {"rate": rates}, {}, {}, Gamma(float(prior.nu), rate))

    def perturbed(self, block, components, rng):
        rates = block.values["rate"].copy()
        rates[:, components] *= rng.uniform(0.5, 1.5, size=(len(rates), len(components)))
        return block._replace(values={"rate": rates})

    # --- the state --------------------------------------------------------------------------------

    def schema(self, block, n_components, n_features):
        row = Array((n_features,), above=0.0)
        values = {"rate": Array((n_features, n_components))}
        return Schema(row, values, {}, {"nu": Number(above=0.0), "rate": row})

    def centre(self, block):
        return {"rate": block.prior.rate}

    def penalty(self, block):
        rate, centre = block.values["rate"], block.prior.rate[:, None]
        xp = namespace_of(rate)
        return float(block.prior.nu * xp.sum(rate - centre * xp.log(rate)))

    def sample(self, block, codes, rng):
        return rng.poisson(np.minimum(block.values["rate"].T[codes], 1e15)).astype(np.float64)

    def given(self, block, rows):
        return independent(block, rows, block.values["rate"].T)

    # --- what users meet --------------------------------------------------------------------------

    def named_priors(self, generative, n_features, mixed):
        return {"data": (Gamma(), 1.0)}

    def check_prior(self, prior):
        if not prior.nu > 0:
            raise OptionError(f"prior={prior!r}: nu must be > 0")

    def expectations(self, block):
        return {"x": block.values["rate"].T}

    def slopes(self, block):
        rate = block.values["rate"].T
        return -rate.sum(axis=1), {"x": np.log(rate)}

    def features_of(self, X):
        return np.asarray(X, dtype=np.float64)

    def points(self, rows, weights, n_features):
        """Return centred square roots, whose variance depends little on the rate."""
        roots = 2.0 * np.sqrt(np.nan_to_num(rows.values))
        seen = ~np.isnan(rows.values)
        mean = (roots * seen).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        return np.clip(np.where(seen, roots - mean, 0.0), -3.0, 3.0)

    def example(self, codes, n_features, rng):
        rates = 0.5 + 8.0 * rng.random((int(codes.max()) + 1, n_features))
        return rng.poisson(rates[codes]).astype(np.float64)


def _unit(block: Block) -> Any:
    """Return the unit of counts for planes."""
    return namespace_of(block.prior.rate).clip(block.prior.rate, 1.0, None)


class PoissonColumn(ColumnKind):
    """Whole numbers from 0 with many values, whose variance is close to their mean."""

    name = "poisson"
    slots = (Slot("poisson"),)
    turn = 30
    takes = "whole numbers from 0"

    def recognise(self, sample):
        if sample.kind != "number" or sample.has_few_values or not sample.is_whole:
            return None
        low, mean, variance = sample.values.min(), sample.values.mean(), sample.values.var()
        return Found("counts") if low == 0 and mean / 2 <= variance <= mean * 2 else None

    def outside(self, values):
        return (values < 0.0) | (np.abs(values - np.rint(values)) > 0.0)

    def log_base(self, parts):
        return -np.nansum(gammaln(parts + 1.0), axis=1)

    def distribution(self, column, said):
        (rate,) = said.of()
        return OfCounts(said.shares, rate, *(column.span or (0.0, np.inf)))


register(PoissonFamily())
register_column(PoissonColumn())
