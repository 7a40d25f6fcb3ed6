"""The categorical family: one factor per column and component, with missing cells.

The statistics of a cell are the indicators of its levels. Their expectations are stored as the mass
of the column and the shares p(level | component). New levels may be added.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import numpy as np

from .._arrays import (
    beside,
    clipped,
    count_true,
    may_be_true,
    namespace_of,
    segment_max,
    segment_sum,
)
from .._checks import Array, Number, demand
from ..exceptions import InputError, OptionError
from ..io.rows import DenseRows, code_rows
from ..priors import Levels
from . import _levels
from ._block import Accepts, Block, Schema, Statistics
from ._family import FAMILIES, Family, register
from ._missing import of_levels

_LEAST = 1e-250  # the smallest share after a step
_VERY_MANY = 100_000  # shares: a step should not touch all of them, see `levels`


class CategoricalFamily(Family):
    """Unordered levels, given by number; columns may get new levels.

    The number of features is the number of columns, or a tuple of their numbers of levels.
    """

    name = "categorical"
    priors = (Levels,)
    accepts = Accepts(missing=True, negative=False)
    positive = frozenset({"share"})
    levels: ClassVar[int | None] = None  # levels of every column; None: as many as there are

    # --- the three things a model asks for --------------------------------------------------------

    view = staticmethod(code_rows)

    def read(self, block, rows: DenseRows):
        hot = _levels.indicators(rows.values, block.fixed["first"], block.values["share"])
        return Statistics(hot, None, None)

    def table(self, block):
        """Return theta = ln p, whose log-normalizer is 0."""
        p = block.values["share"]
        return namespace_of(p).log(p), None

    def scores(self, block, batch):
        return self._times(batch.values, self.table(block)[0])

    def _times(self, hot, table):
        """Return indicators times a table of levels; the numbers of a class are contiguous."""
        if isinstance(hot, _levels.Indicators):
            return np.asfortranarray(hot.times(table))
        return (table.T @ hot.T).T

    def expected(self, block, batch, weights, least=0.0):
        hot = batch.values
        plain = not isinstance(hot, _levels.Indicators)
        sums = (weights.T @ hot).T if plain else hot.sums(weights)
        return sums, segment_sum(sums, block.fixed["first"])

    def leverage(self, block, batch, weights, step, least=0.0):
        """Return d a_k / d r_k = (1 / p - 1) / N of each observed level."""
        mass = self._of_levels(block, block.mass)[:, None]
        effect = (1.0 / block.values["share"] - 1.0) / (mass * step.shares * step.slowness)
        return self._times(batch.values, effect)

    def moved(self, block, found, step):
        """Shorten the step of a whole column of a component if one of its levels loses too much."""
        (sums, seen), p, first = found, block.values["share"], block.fixed["first"]
        prior, xp, projection = block.prior, namespace_of(p), step.projection
        count = step.counts(block.mass)
        change = seen - step.decay / step.slowness * count
        new_count, short = projection.positive(count, change, step.floor)
        pull = step.pull * prior.nu[:, None] * xp.ones_like(count)
        to_prior = xp.minimum(pull, 0.5 * count)  # at most half-way
        centre = prior.centre[:, None]
        gain = sums + self._of_levels(block, to_prior) * centre
        total, new = self._of_levels(block, seen + to_prior), self._of_levels(block, new_count)
        step_of = (gain - total * p) / new
        worst, most = segment_max(-step_of / p, first), projection.most_lost
        over = worst > most
        if may_be_true(over):
            one = xp.ones_like(worst)
            f = xp.where(over, most / xp.where(over, worst, one), one)
            step_of = step_of * self._of_levels(block, f)
        values = {"share": clipped(p + step_of, _LEAST, None)}
        missed = xp.where(short, new_count - count - change, xp.zeros_like(count))
        mass = step.mass(block.mass, seen, missed)
        return block._replace(mass=mass, values=values), count_true(over)

    def strength(self, block):
        return float(namespace_of(block.mass).max(block.prior.nu)) if block.mass.shape[0] else 0.0

    def _of_levels(self, block: Block, numbers):
        """Repeat one number per column for each of its levels."""
        xp = namespace_of(numbers)
        return xp.take(numbers, beside(block.fixed["column"], numbers), axis=0)

    # --- what answers may be linear in ------------------------------------------------------------

    def features(self, block, batch):
        hot = batch.values
        hot = hot.dense() if isinstance(hot, _levels.Indicators) else hot
        first, xp = block.fixed["first"], namespace_of(hot)
        missing = 1.0 - segment_sum(hot, first, axis=1)
        return hot, missing if bool(xp.any(missing > 0.0)) else None

    def hidden(self, block):
        share = block.values["share"]
        return np.diff(block.fixed["first"]), True, share, share

    def with_answers(self, block, found, to_mean, to_spread):
        (sums, seen), p, first = found, block.values["share"], block.fixed["first"]
        slope = to_mean + to_spread
        mean = self._of_levels(block, segment_sum(p * slope, first))
        return sums + p * (slope - mean), seen

    # --- coordinates without bounds ---------------------------------------------------------------

    def placed(self, block, free):
        first, logs = block.fixed["first"], free["share"]
        xp = namespace_of(logs)
        p = xp.exp(logs - self._of_levels(block, segment_max(logs, first)))
        p = p / self._of_levels(block, segment_sum(p, first))
        return block._replace(values={"share": clipped(p, _LEAST, None)})

    def slope(self, block, found, counts, n):
        (sums, seen), p, prior = found, block.values["share"], block.prior
        count, total = self._of_levels(block, counts), self._of_levels(block, seen)
        nu = self._of_levels(block, prior.nu)[:, None]
        gradient = p * total - sums - nu * (prior.centre[:, None] - p) / n
        return {"share": gradient}, {"share": (count + nu / n) * p}

    # --- the start --------------------------------------------------------------------------------

    def sizes(self, n_features) -> tuple:
        """Return the number of levels of each column; None if unknown."""
        return n_features if isinstance(n_features, tuple) else (self.levels,) * n_features

    def collect(self, rows, parts, n_features, n_classes):
        return _levels.collect(rows.values, parts, self.sizes(n_features), n_classes)

    def merged(self, tallies):
        return tallies[0]._replace(counts=sum(tally.counts for tally in tallies))

    def start(self, prior, tally, total, init, stream):
        block = _levels.start(self.name, prior, tally, total, init)
        if block.values["share"].size > _VERY_MANY:
            return FAMILIES["levels"].thinned(block)  # type: ignore[attr-defined]
        return block

    def perturbed(self, block, components, rng):
        p = block.values["share"].copy()
        p[:, components] *= rng.uniform(0.5, 1.5, size=(len(p), len(components)))
        p /= self._of_levels(block, segment_sum(p, block.fixed["first"]))
        return block._replace(values={"share": p})

    # --- the state --------------------------------------------------------------------------------

    def schema(self, block, n_components, n_features):
        d = len(self.sizes(n_features))
        first = Array((d + 1,), least=0, dtype=np.int64)
        first.check("first of the levels", block.fixed.get("first"))
        L, row = int(block.fixed["first"][-1]), Array((d,), above=0.0)
        fixed = {"first": first, "column": Array((L,), dtype=np.int64)}
        prior = {"nu": row, "centre": Array((L,), above=0.0), "strength": Number(above=0.0)}
        return Schema(row, {"share": Array((L, n_components), most=1.0 + 1e-6)}, fixed, prior)

    def check_sense(self, block, n_components, n_features, averages):
        first, column = block.fixed["first"], block.fixed["column"]
        sizes = np.diff(first)
        demand(first[0] == 0 and (sizes > 0).all(), "columns without levels")
        if isinstance(n_features, tuple):
            demand(tuple(sizes.tolist()) == n_features, "levels are not its own")
        demand((column == np.repeat(np.arange(len(sizes)), sizes)).all(), "levels are mixed up")

    def centre(self, block):
        return {"share": block.prior.centre}

    def by_factor(self, block, numbers):
        return self._of_levels(block, numbers)

    def with_features(self, block, n_features):
        """Add levels, each as rare as the rarest level of its column."""
        old, new = np.diff(block.fixed["first"]), np.array(self.sizes(n_features), dtype=np.int64)
        if len(old) != len(new) or (new < old).any():
            raise InputError(f"the family {self.name!r} does not take new columns")
        return block if (old == new).all() else _levels.widened(block, old, new)

    def penalty(self, block):
        p = block.values["share"]
        weight = self._of_levels(block, block.prior.nu) * block.prior.centre
        xp = namespace_of(p)
        return -float(xp.sum(weight[:, None] * xp.log(p)))

    def sample(self, block, codes, rng):
        p, first = block.values["share"], block.fixed["first"]
        drawn = np.empty((len(codes), len(block.mass)))
        for d, (low, high) in enumerate(pairwise(first)):
            steps = np.cumsum(p[low:high], axis=0).T[codes]
            drawn[:, d] = (rng.random(len(codes))[:, None] * steps[:, -1:] > steps).sum(axis=1)
        return drawn

    def given(self, block, rows):
        return of_levels(block, rows, block.values["share"])

    # --- what users meet --------------------------------------------------------------------------

    def named_priors(self, generative, n_features, mixed):
        return {"data": (Levels(), 1.0)}

    def prior_of_strength(self, strength):
        return Levels(strength=strength)

    def check_prior(self, prior):
        if prior.nu is not None and not np.all(np.asarray(prior.nu) > 0):
            raise OptionError(f"prior={prior!r}: nu must be > 0")
        if not 0 < prior.strength < np.inf:
            raise OptionError(f"prior={prior!r}: strength must be > 0")

    def prior_of_components(self, prior, by_class, by_component):
        if prior.nu is not None:
            return prior
        share = by_class().counts.shape[1] / by_component.counts.shape[1]
        return prior._replace(nu=share * _levels.strength(prior, np.diff(by_component.first)))

    def expectations(self, block):
        return {"level": block.values["share"].T}

    def slopes(self, block):
        p = block.values["share"].T
        return np.zeros(len(p)), {"level": np.log(p)}

    def points(self, rows, weights, n_features):
        return _levels.points(rows.values)

    def example(self, codes, n_features, rng):
        size = (int(codes.max()) + 1, n_features)
        shares = rng.dirichlet(np.ones(self.levels or 3), size=size)
        steps = np.cumsum(shares, axis=-1)[codes]
        drawn = (rng.random((len(codes), n_features, 1)) > steps).sum(axis=-1).astype(np.float64)
        drawn[: self.levels or 3] = np.arange(self.levels or 3)[: len(drawn), None]
        return drawn


CATEGORICAL = register(CategoricalFamily())
