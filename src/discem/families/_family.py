"""The base class of families: distributions of some columns given the component, and their state.

A model only needs three methods of a block: its `scores`, the statistics `expected` of a batch, and
a step (`moved`) that stays inside the domain. If the scores of a family are linear in its
statistics, the first two are one product each, implemented here. The file of a family defines its
statistics, its natural parameters, the pull of the prior, and the domain. What estimators need
beside the update is in `_surface`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._arrays import namespace_of
from .._checks import Array, Number, demand
from .._kinds import savable
from ..exceptions import InputError, OptionError
from ._block import Accepts, Block, Schema, Statistics, Step
from ._surface import Surface


class Family(Surface):
    """An exponential family for some columns of a row, given the component.

    Subclass it, implement the methods without a default, and `register` an instance.
    """

    accepts: ClassVar[Accepts] = Accepts()
    starts: ClassVar[tuple[str, ...]] = ("generative",)  # starts of training, see `start`

    @property
    def factors(self) -> tuple[Family, ...]:
        """Return the families of the blocks of a model."""
        return (self,)

    @property
    def known(self) -> Family:
        """Return the family that this one replaces in training; all other code uses that one."""
        return self

    # --- the three things a model asks for --------------------------------------------------------

    def view(self, X: Any) -> Any:
        """Return the rows of a matrix in the form that `read` takes."""
        raise NotImplementedError

    def lightened(self, rows: Any) -> Any:
        """Return the rows in the precision that steps of many rows need, which may be faster."""
        return rows

    def in_precision(self, block: Block, kind: Any) -> Block:
        """Return the block with its large tables in single or in double precision."""
        return block

    def settled(self, block: Block) -> Block:
        """Return the block with all numbers in whole arrays, as devices need them."""
        return block

    def read(self, block: Block, rows: Any) -> Statistics:
        """Return the statistics of a batch of rows, in the units of the block."""
        raise NotImplementedError

    def table(self, block: Block) -> tuple[Any, Any]:
        """Return natural parameters, (D, K), and log-normalizers, (d, K), or None if all are 0."""
        raise NotImplementedError

    def scores(self, block: Block, batch: Any) -> Any:
        """Return ``ln p(x | component)`` of each row, (n, K); a missing cell adds nothing."""
        theta, normalizer = self.table(block)
        # the scores of one class are contiguous, as later code works class by class
        a = (theta.T @ batch.values.T).T
        if normalizer is not None:
            xp = namespace_of(normalizer)
            a -= xp.sum(normalizer, axis=0) if batch.seen is None else batch.seen @ normalizer
        if batch.base is not None:
            a += batch.base[:, None]
        return a

    def expected(
        self, block: Block, batch: Any, weights: Any, least: float = 0.0
    ) -> tuple[Any, Any]:
        """Return sums over rows of weights times statistics, (D, K), and times seen cells, (d, K).

        Rows with weights below `least` may be left out.
        """
        sums = (weights.T @ batch.values).T  # the weights of one class are contiguous, too
        if batch.seen is None:
            return sums, namespace_of(weights).sum(weights, axis=0)[None, :]
        return sums, batch.seen.T @ weights

    def leverage(
        self, block: Block, batch: Any, weights: Any, step: Step, least: float = 0.0
    ) -> Any:
        """Return how far a step of weight 1 moves a row's own score, by component, (n, K).

        None: the family needs no damping.
        """
        return None

    def moved(self, block: Block, found: Any, step: Step) -> tuple[Block, int]:
        """Return the block after ``mu + sums - decay mu + pull (alpha - nu mu)``, in its domain.

        Also return the number of factors whose step was shortened.
        """
        raise NotImplementedError

    def strength(self, block: Block) -> float:
        """Return the largest pseudo-count of the prior."""
        return 0.0

    # --- coordinates without bounds, for steps of all rows at once --------------------------------

    def free(self, block: Block) -> dict[str, Any]:
        """Return the values, with logarithms of those that must stay positive."""
        values = block.values.items()
        log = namespace_of(block.mass).log
        return {name: log(v) if name in self.positive else v for name, v in values}

    def placed(self, block: Block, free: dict[str, Any]) -> Block:
        """Return the block at other free coordinates."""
        exp = namespace_of(block.mass).exp
        values = {name: exp(v) if name in self.positive else v for name, v in free.items()}
        return block._replace(values=values)

    def gathered(self, block: Block, found: Any) -> tuple[Any, ...]:
        """Return the results of `expected` as arrays that can be added over batches."""
        return found

    def slope(self, block: Block, found: Any, counts: Any, n: float) -> tuple[dict, dict]:
        """Return the gradient of the objective in free coordinates, and its metric, by name.

        `found` is the result of `expected` for the weights of all rows, `counts` are the counts of
        the factors, and the penalty is spread over n rows. The metric is the Fisher information
        plus the curvature of the prior, so that no prior overshoots its centre.
        """
        raise OptionError(f"the family {self.name!r} takes no steps of all rows at once")

    def reach(self, block: Block, step: dict[str, Any]) -> dict[str, Any]:
        """Return the length of a step, in units in which 0.5 is long."""
        return {name: namespace_of(move).abs(move) for name, move in step.items()}

    # --- what answers may be linear in, see `planes` ----------------------------------------------

    def features(self, block: Block, batch: Any) -> tuple[Any, Any]:
        """Return the features of a batch, (n, p), 0 if missing, and missing columns, (n, g).

        The second is None if no column is missing.
        """
        raise OptionError(f"no answer is linear in columns of the family {self.name!r}")

    def hidden(self, block: Block) -> tuple[np.ndarray, bool, Any, Any]:
        """Describe missing features: column sizes, whether they are levels, means and spreads."""
        raise OptionError(f"no answer is linear in columns of the family {self.name!r}")

    def with_answers(self, block: Block, found: Any, to_mean: Any, to_spread: Any) -> Any:
        """Add to `found` what answers tell about missing features, by the slopes in these."""
        raise OptionError(f"no answer is linear in columns of the family {self.name!r}")

    # --- the start --------------------------------------------------------------------------------

    def collect(self, rows: Any, parts: list, n_features: Any, n_classes: int) -> Any:
        """Add up the statistics of the data in each class.

        `parts` are pairs of class codes and weights, one entry per row. A code may be negative if
        its weight is zero.
        """
        raise NotImplementedError

    def merged(self, tallies: list) -> Any:
        """Merge the results of `collect` for parts of the rows."""
        return sum(tallies[1:], tallies[0])

    def start(self, prior: Any, tally: Any, total: float, init: str, stream: bool) -> Block:
        """Return the initial state, without an average, from the prior, the tally and the weight.

        With init="prior" it is at the prior, with one observation per class. With init="generative"
        it is at the closed-form estimate under NLL, with the mass of one observation over all
        classes. If that is a poor start for discriminative training, `starts` names better ones;
        the one with the smallest objective is used. With `stream`, more data may follow.
        """
        raise NotImplementedError

    def blocks(self, prior: Any, tally: Any, total: float, init: str, stream: bool) -> tuple:
        """Return the blocks of a model, one for each of the `factors`."""
        return (self.start(prior, tally, total, init, stream),)

    def perturbed(self, block: Block, components: np.ndarray, rng: Any) -> Block:
        """Perturb components at random that would otherwise stay identical."""
        raise NotImplementedError

    # --- the state --------------------------------------------------------------------------------

    positive: ClassVar[frozenset[str]] = frozenset()  # values that must be above 0

    def schema(self, block: Block, n_components: int, n_features: Any) -> Schema:
        """Describe the arrays of a block; the block itself is not trusted."""
        raise NotImplementedError

    def check(self, block: Block, n_components: int, n_features: Any, averages: bool) -> None:
        """Validate a block, which may come from any file."""
        for part in (block.values, block.past, block.fixed):
            demand(isinstance(part, dict), "a part of a block is no dict")
        schema = self.schema(block, n_components, n_features)
        if schema.prior is not None:
            demand(isinstance(block.prior, self.priors), "the prior is of another family")
        past = (schema.values if schema.past is None else schema.past) if averages else {}
        self._check_part("", block.values, schema.values)
        self._check_part("average of ", block.past, past)
        self._check_part("", block.fixed, schema.fixed)
        schema.mass.check(f"mass of {self.name}", block.mass)
        if schema.prior is None:
            demand(block.prior is None, f"{self.name} has another prior")
        for name, what in (schema.prior or {}).items():
            what.check(f"{name} of the prior of {self.name}", getattr(block.prior, name))
        scalars = isinstance(block.lazy, dict) if schema.lazy else block.lazy == ()
        demand(scalars, f"{self.name} has scalars that it does not know, or lacks some")
        self._check_part("", block.lazy or {}, schema.lazy)
        self.check_sense(block, n_components, n_features, averages)

    def _check_part(self, whose: str, part: dict, declared: dict[str, Array | Number]) -> None:
        demand(part.keys() == declared.keys(), f"{whose}a block lacks arrays, or has others")
        for name, what in declared.items():
            if isinstance(what, Array) and name in self.positive:
                what = what._replace(above=0.0)
            what.check(f"{whose}{name} of {self.name}", part[name])

    def check_sense(self, block: Block, n_components: int, n_features: Any, averages: bool) -> None:
        """Check values of a block that have the right form but may be impossible."""

    def with_average(self, block: Block) -> Block:
        """Return the block with a running average that starts at the current values."""
        return block._replace(past=dict(block.values))

    def with_past(self, block: Block, past: Block, weight: float) -> Block:
        """Return the block with the given running average and its weight."""
        return block._replace(past=dict(past.values))

    def averaged_in(self, block: Block, weight: float, total: float) -> Block:
        """Return the block after adding its current values to the average, with a weight."""
        share = weight / total
        past = {name: old + share * (block.values[name] - old) for name, old in block.past.items()}
        return block._replace(past=past)

    def reweighed(self, block: Block, factor: float) -> Block:
        """Return the block with the weight of its average so far multiplied by `factor`."""
        return block

    def averaged(self, block: Block) -> Block:
        """Return the block at its running average, without an average of its own."""
        return block._replace(values=block.past, past={}) if block.past else block

    def centre(self, block: Block) -> dict[str, Any]:
        """Return the centre of the prior for each value, without the axis of components."""
        raise NotImplementedError

    def with_components(self, block: Block, order: np.ndarray, mass: float) -> Block:
        """Arrange the components in `order`; -1 is a new component at the centre of the prior."""
        centre = self.centre(block)

        def arranged(values: dict[str, Any]) -> dict[str, Any]:
            new = {name: centre[name][..., None] for name in values}
            wide = {name: np.concatenate([a, new[name]], axis=-1) for name, a in values.items()}
            return {name: np.ascontiguousarray(a[..., order]) for name, a in wide.items()}

        return block._replace(values=arranged(block.values), past=arranged(block.past))

    def with_features(self, block: Block, n_features: Any) -> Block:
        """Add new features."""
        raise InputError(f"the family {self.name!r} does not take new features")

    def mean_of(self, blocks: list[Block], shares: Any, by_component: list) -> Block:
        """Return the mean of blocks that were trained apart: a mean of expected statistics.

        `shares` are the weights of the blocks; `by_component` holds p(component) of each.
        """
        trios = zip(shares, blocks, by_component, strict=True)
        counts = [share * block.mass[:, None] * p for share, block, p in trios]
        total = sum(counts[1:], counts[0])
        mean: dict[str, Any] = {}
        for count, block in zip(counts, blocks, strict=True):
            weight = self.by_factor(block, count / total)
            for name, moment in self.moments(block).items():
                mean[name] = mean.get(name, 0.0) + weight * moment
        mass = sum(s * block.mass for s, block in zip(shares, blocks, strict=True))
        return blocks[0]._replace(mass=mass, values=self.of_moments(mean), past={})

    def moments(self, block: Block) -> dict[str, Any]:
        """Return the mean parameters, which can be averaged over data."""
        return block.values

    def of_moments(self, moments: dict[str, Any]) -> dict[str, Any]:
        """Return the values with these mean parameters."""
        return moments

    def by_factor(self, block: Block, numbers: Any) -> Any:
        """Repeat one number per factor, (d, K), for each of its statistics."""
        return numbers

    def penalty(self, block: Block) -> float:
        """Return -ln of the prior, up to a constant: training adds it to the sum of the losses."""
        raise NotImplementedError

    def sample(self, block: Block, codes: np.ndarray, rng: Any) -> Any:
        """Draw one row from each of the given components."""
        raise OptionError(f"the family {self.name!r} cannot draw rows")

    def given(self, block: Block, rows: Any) -> Any:
        """Return the conditionals of missing cells in each component, see `_missing`."""
        raise OptionError(f"the family {self.name!r} cannot say what missing cells are")

    @property
    def whole(self) -> bool:
        """Return whether `fit` takes steps of all rows at once; this needs a `slope`."""
        return type(self).slope is not Family.slope


FAMILIES: dict[str, Family] = {}
ANSWERS: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Register a family for estimators, mixtures, files and tests."""
    for kind in family.priors:
        savable(kind)
    FAMILIES[family.name] = family
    return family


def register_answer(family: Family) -> Family:
    """Register a family of answers, which depend on the cells of a row."""
    for kind in family.priors:
        savable(kind)
    ANSWERS[family.name] = family
    return family


def family_of(block: Block) -> Family:
    """Return the family of a block."""
    return ANSWERS.get(block.family) or FAMILIES[block.family]
