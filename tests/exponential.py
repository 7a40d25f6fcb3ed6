"""A family of one's own, in one file: waiting times, exponentially distributed in each class.

`docs/add-a-family.md` walks through it, and shows all of it. The package knows nothing of it;
`register` is enough for every law of the tests, for mixtures, products, streams and files.
"""

from typing import Any, NamedTuple

import numpy as np

from discem._arrays import beside, count_true, namespace_of
from discem._checks import Array, Number
from discem.exceptions import OptionError
from discem.families import (
    Accepts,
    Block,
    ColumnKind,
    Family,
    Schema,
    Slot,
    Statistics,
    register,
)
from discem.families._missing import independent
from discem.io.rows import dense_rows

_LEAST, _MOST = 1e-200, 1e200  # the means that a step may leave


class InverseGamma(NamedTuple):
    """Prior of a mean waiting time: `nu` observations of the mean `mean` (None: the data's own).

    It adds ``nu (ln m + mean / m)`` to the loss of each factor.
    """

    nu: float = 2.0
    mean: Any = None


class ExponentialFamily(Family):
    """Numbers >= 0, exponentially distributed in each class: theta = -1 / m, A = ln m."""

    name = "exponential"
    priors = (InverseGamma,)
    accepts = Accepts(missing=True, negative=False)
    positive = frozenset({"mean"})

    # --- the three things a model asks for --------------------------------------------------------

    def view(self, X):
        return dense_rows(X)

    def read(self, block, rows):
        x = beside(rows.values, block.mass)
        xp = namespace_of(x)
        missing = xp.isnan(x)
        x = xp.where(missing, xp.zeros_like(x), x)
        return Statistics(x, xp.where(missing, xp.zeros_like(x), xp.ones_like(x)), None)

    def table(self, block):
        mean = block.values["mean"]
        return -1.0 / mean, namespace_of(mean).log(mean)

    def moved(self, block, found, step):
        (sums, seen), mean = found, block.values["mean"]
        xp, positive = namespace_of(mean), step.projection.positive
        count = step.counts(block.mass)
        change = seen - step.decay / step.slowness * count
        new_count, short = positive(count, change, step.floor)
        to_prior = xp.minimum(step.pull * block.prior.nu * xp.ones_like(count), 0.5 * count)
        about_mean = sums - mean * seen + to_prior * (block.prior.mean[:, None] - mean)
        new, shorter = positive(mean, about_mean / new_count, step.floor)
        beyond = xp.where(short, new_count - count - change, xp.zeros_like(count))
        gained = xp.sum(seen + beyond, axis=1) - step.decay * block.mass
        mass, _ = positive(block.mass, gained, step.floor)
        block = block._replace(mass=mass, values={"mean": xp.clip(new, _LEAST, _MOST)})
        return block, count_true(short | shorter)

    def slope(self, block, found, counts, n):
        (sums, seen), mean = found, block.values["mean"]
        xp, nu = namespace_of(mean), block.prior.nu / n
        ratio = block.prior.mean[:, None] / mean
        gradient = seen - sums / mean + nu * (1.0 - ratio)
        metric = counts + nu * xp.maximum(ratio, xp.ones_like(ratio))
        return {"mean": gradient}, {"mean": metric}

    def strength(self, block):
        return block.prior.nu

    # --- the start --------------------------------------------------------------------------------

    def collect(self, rows, parts, n_features, n_classes):
        """Weights and sums of the cells seen, as (2, d, K)."""
        tally, seen = np.zeros((2, n_features, n_classes)), ~np.isnan(rows.values)
        values = np.where(seen, rows.values, 0.0)
        for codes, weights in parts:
            for k in np.unique(codes[codes >= 0]):
                own = codes == k
                tally[0, :, k] += weights[own] @ seen[own]
                tally[1, :, k] += weights[own] @ values[own]
        return tally

    def start(self, prior, tally, total, init, stream):
        count, sums = tally
        d, K = count.shape
        centre = prior.mean
        if centre is None:
            centre = sums.sum(axis=1) / np.maximum(count.sum(axis=1), 1e-300)
        centre = np.maximum(np.broadcast_to(centre, d).astype(float), 1e-12)
        if init == "prior":
            mass, mean = np.full(d, float(K)), np.repeat(centre[:, None], K, axis=1)
        else:
            mass = (count.sum(axis=1) + 1.0) / (max(total, 1.0) + 1.0)
            mean = (sums + prior.nu * centre[:, None]) / (count + prior.nu)
        prior = InverseGamma(float(prior.nu), centre)
        return Block(self.name, mass, {"mean": mean}, {}, {}, prior)

    def perturbed(self, block, components, rng):
        mean = block.values["mean"].copy()
        mean[:, components] *= rng.uniform(0.5, 1.5, size=(len(mean), len(components)))
        return block._replace(values={"mean": mean})

    # --- the state --------------------------------------------------------------------------------

    def schema(self, block, n_components, n_features):
        row = Array((n_features,), above=0.0)
        values = {"mean": Array((n_features, n_components))}
        return Schema(row, values, {}, {"nu": Number(above=0.0), "mean": row})

    def centre(self, block):
        return {"mean": block.prior.mean}

    def penalty(self, block):
        mean, prior = block.values["mean"], block.prior
        xp = namespace_of(mean)
        return float(prior.nu * xp.sum(xp.log(mean) + prior.mean[:, None] / mean))

    def sample(self, block, codes, rng):
        return rng.exponential(block.values["mean"].T[codes])

    def given(self, block, rows):
        return independent(block, rows, block.values["mean"].T)

    # --- what users meet --------------------------------------------------------------------------

    def named_priors(self, generative, n_features, mixed):
        return {"data": (InverseGamma(), 1.0)}

    def check_prior(self, prior):
        if not prior.nu > 0:
            raise OptionError(f"prior={prior!r}: nu must be > 0")

    def expectations(self, block):
        return {"x": block.values["mean"].T}

    def slopes(self, block):
        mean = block.values["mean"].T
        return -np.log(mean).sum(axis=1), {"x": -1.0 / mean}

    def features_of(self, X):
        return np.asarray(X, dtype=np.float64)

    def points(self, rows, weights, n_features):
        return np.log1p(np.nan_to_num(rows.values))

    def example(self, codes, n_features, rng):
        return rng.exponential(0.2 + 5.0 * rng.random((codes.max() + 1, n_features))[codes])


class Waits(ColumnKind):
    """Columns of waiting times, which the user names."""

    name = "exponential"
    slots = (Slot("exponential"),)
    takes = "numbers from 0"

    def outside(self, values):
        return values < 0.0


EXPONENTIAL = register(ExponentialFamily())
