"""Categories with very many levels: the cost of a step depends on its batch only.

A step multiplies all shares of a column by the same factor, except for the levels in the batch, and
the prior pulls them to its centre. So shares are stored as ``scale * base + pulled * centre``, with
a scale and a pull for each column and component, and the running average as its lag. Before and
after training a block is `settled`: an ordinary block of categories.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._checks import Array, Number
from . import _levels
from ._block import Block
from ._documents import distinct
from ._family import register
from ._lazily import Lazily
from .categorical import CATEGORICAL, CategoricalFamily

_LEAST = 1e-250  # the smallest share after a step
_FOLDED = 1e-4  # smaller scales are folded into the shares, before digits are lost
_CANCELS = 1e3  # lengths of moves from which sums over a column lose digits
_LAZY = ("scale", "pulled", "lag_scale", "lag_pulled")  # (d, K) each


class Found(NamedTuple):
    """The levels of a batch."""

    hot: sp.csr_array  # (n, u) indicators
    levels: np.ndarray  # (u,) their indices among all levels
    columns: np.ndarray  # (u,) their columns
    first: np.ndarray  # the first level of each column in the batch


class ManyLevels(Lazily, CategoricalFamily):
    """Categories with very many levels; blocks of categories are converted by `thinned`."""

    name = "levels"
    scalars = ("scale", "pulled")
    positive: ClassVar[frozenset[str]] = frozenset()  # shares are stored in units of their own

    @property
    def known(self):
        return CATEGORICAL

    # --- the three things a model asks for --------------------------------------------------------

    def read(self, block, rows):
        ends = block.fixed["first"]
        known = (rows.values >= 0) & (rows.values < np.diff(ends))
        place = (rows.values + ends[:-1])[known]
        levels, place = distinct(place, int(ends[-1]))
        pointers = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        shape = len(rows.values), len(levels)
        hot = sp.csr_array((np.ones(len(place)), place, pointers), shape=shape)
        columns = block.fixed["column"][levels]
        return Found(hot, levels, columns, np.flatnonzero(np.diff(columns, prepend=-1)))

    def _shares(self, block: Block, levels: Any, columns: np.ndarray) -> np.ndarray:
        own = block.lazy["scale"][columns] * block.values["share"][levels]
        return own + block.lazy["pulled"][columns] * block.prior.centre[levels, None]

    def scores(self, block, batch: Found):
        return batch.hot @ np.log(self._shares(block, batch.levels, batch.columns))

    def expected(self, block, batch: Found, weights, least=0.0):
        sums = batch.hot.T @ weights
        seen = np.zeros((len(block.mass), weights.shape[1]))
        if len(sums):
            seen[batch.columns[batch.first]] = np.add.reduceat(sums, batch.first, axis=0)
        return batch, sums, seen

    def leverage(self, block, batch: Found, weights, step, least=0.0):
        p = self._shares(block, batch.levels, batch.columns)
        effect = (1.0 / p - 1.0) / block.mass[batch.columns, None]
        return (batch.hot @ effect) / (step.shares * step.slowness)

    def moved(self, block, found, step):
        """Move as in `CategoricalFamily`; levels outside the batch lose as much as any may."""
        (batch, sums, seen), projection, lazy = found, step.projection, block.lazy
        levels, columns, prior = batch.levels, batch.columns, block.prior
        count = step.counts(block.mass)
        change = seen - step.decay / step.slowness * count
        new_count, short = projection.positive(count, change, step.floor)
        to_prior = np.minimum(step.pull * prior.nu[:, None], 0.5 * count)  # at most half-way
        p = self._shares(block, levels, columns)
        total = (seen + to_prior) / new_count
        gain = (sums + to_prior[columns] * prior.centre[levels, None]) / new_count[columns]
        worst = np.maximum(total, 0.0)
        if len(levels):
            there = columns[batch.first]
            own = np.maximum.reduceat(total[columns] - gain / p, batch.first, axis=0)
            worst[there] = np.maximum(worst[there], own)
        over = worst > projection.most_lost
        f = np.where(over, projection.most_lost / np.where(over, worst, 1.0), 1.0)
        if np.abs(f * seen / new_count).max(initial=0.0) > _CANCELS:
            whole = CATEGORICAL.moved(self.settled(block), self.gathered(block, found), step)
            return self._through(block, lambda _: whole[0]), whole[1]
        toward = f * to_prior / new_count
        keep = 1.0 - f * seen / new_count - toward
        lazy["scale"] *= keep
        lazy["pulled"] *= keep
        lazy["pulled"] += toward
        wider = (f / new_count / lazy["scale"])[columns] * sums
        block.values["share"][levels] += wider
        if block.past:
            block.past["share"][levels] += wider * lazy["lag_scale"][columns]
        if lazy["scale"].min(initial=1.0) < _FOLDED:
            block = self._through(block)
        mass = step.mass(block.mass, seen, np.where(short, new_count - count - change, 0.0))
        return block._replace(mass=mass), int(np.count_nonzero(over))

    # --- the state --------------------------------------------------------------------------------

    def start(self, prior, tally, total, init, stream):
        return self.thinned(_levels.start(CATEGORICAL.name, prior, tally, total, init))

    def thinned(self, block: Block) -> Block:
        """Convert a block of categories, without an average, to one of many levels."""
        scale = np.ones((len(block.mass), block.values["share"].shape[1]))
        lazy: dict[str, Any] = {name: np.zeros_like(scale) for name in _LAZY}
        lazy |= {"scale": scale, "weight": 0.0}
        return block._replace(family=self.name, lazy=lazy)

    def settled(self, block: Block) -> Block:
        """Convert back to a block of categories, with its average if one is kept."""
        column, lazy, centre = block.fixed["column"], block.lazy, block.prior.centre[:, None]
        p = np.maximum(self._shares(block, slice(None), column), _LEAST)
        past = {}
        if block.past:
            sums = lazy["lag_scale"][column] * block.values["share"] - block.past["share"]
            sums += lazy["lag_pulled"][column] * centre
            average = np.maximum(sums / lazy["weight"], _LEAST) if lazy["weight"] else p
            past = {"share": average}
        return block._replace(family=CATEGORICAL.name, values={"share": p}, past=past, lazy=())

    def _plain(self, block: Block) -> Block:
        """Return the shares as a block of categories without an average."""
        return self.settled(block._replace(past={}))

    def _through(self, block: Block, change: Any = lambda plain: plain) -> Block:
        """Apply a change of a block of categories to this block; its scales become 1."""
        plain = change(self.settled(block))
        new = self.thinned(plain._replace(past={}))
        if not block.past:
            return new
        return self.with_past(new, plain._replace(values=plain.past), block.lazy["weight"])

    def with_average(self, block):
        past = {"share": np.zeros_like(block.values["share"])}
        none = np.zeros_like(block.lazy["scale"])
        own = {"lag_scale": none, "lag_pulled": none.copy(), "weight": 0.0}
        return block._replace(past=past, lazy=block.lazy | own)

    def with_past(self, block, past, weight):
        block = self.thinned(self._plain(block))
        past = self.settled(past) if past.lazy else past
        lags = {"share": weight * (block.values["share"] - past.values["share"])}
        own = {"lag_scale": weight * block.lazy["scale"], "weight": float(weight)}
        return block._replace(past=lags, lazy=block.lazy | own)

    def averaged(self, block):
        if not block.past:
            return block
        plain = self.settled(block)
        return self.thinned(plain._replace(values=plain.past, past={}))

    def mean_of(self, blocks, shares, by_component):
        return self.thinned(super().mean_of([*map(self._plain, blocks)], shares, by_component))

    def with_components(self, block, order, mass):
        return self._through(block, lambda b: CATEGORICAL.with_components(b, order, mass))

    def with_features(self, block, n_features):
        return self._through(block, lambda b: CATEGORICAL.with_features(b, n_features))

    def perturbed(self, block, components, rng):
        return self._through(block, lambda b: CATEGORICAL.perturbed(b, components, rng))

    def free(self, block):
        return CATEGORICAL.free(self.settled(block))

    def placed(self, block, free):
        return self.thinned(CATEGORICAL.placed(self.settled(block), free))

    def gathered(self, block, found):
        batch, some, seen = found
        sums = np.zeros_like(block.values["share"])
        sums[batch.levels] = some
        return sums, seen

    def slope(self, block, found, counts, n):
        return CATEGORICAL.slope(self.settled(block), found, counts, n)

    def schema(self, block, n_components, n_features):
        schema = CATEGORICAL.schema(block, n_components, n_features)
        share = {"share": Array(schema.values["share"].shape)}
        each = schema.mass.shape[0], n_components
        lazy: dict[str, Any] = {
            name: Array(each, least=0.0 if name.startswith("lag") else -np.inf) for name in _LAZY
        }
        lazy["weight"] = Number(least=0.0)
        return schema._replace(values=share, past=share if block.past else {}, lazy=lazy)

    def check_sense(self, block, n_components, n_features, averages):
        super().check_sense(block, n_components, n_features, averages)
        CATEGORICAL.check(self.settled(block), n_components, n_features, averages)

    def penalty(self, block):
        return CATEGORICAL.penalty(self._plain(block))

    def sample(self, block, codes, rng):
        return CATEGORICAL.sample(self._plain(block), codes, rng)

    def expectations(self, block):
        return CATEGORICAL.expectations(self._plain(block))

    def slopes(self, block):
        return CATEGORICAL.slopes(self._plain(block))


MANY_LEVELS = ManyLevels()
register(MANY_LEVELS)
