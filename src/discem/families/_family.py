"""What a family is: distributions of some columns, given the component; and the state of one.

A model asks a block for three things only: its `scores`, the statistics that it `expected` of a
batch, and to stay inside its domain when it is `moved`. For a family whose scores are linear in
its statistics, the first two are one product each, written once below. The file of a family says
what its statistics and natural parameters are, what the prior pulls to, and what staying inside
means. What estimators ask of it, beside the update, is in `_surface`.
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

    Subclass it, fill in what has no default, and `register` an instance.
    """

    accepts: ClassVar[Accepts] = Accepts()
    starts: ClassVar[tuple[str, ...]] = ("generative",)  # of discriminative training, see `start`

    @property
    def factors(self) -> tuple[Family, ...]:
        """The families of the blocks of a model."""
        return (self,)

    @property
    def known(self) -> Family:
        """The family that it stands in for, as far as anything but the update is concerned."""
        return self

    # --- the three things a model asks for --------------------------------------------------------

    def view(self, X: Any) -> Any:
        """Rows of a matrix in the form that `read` takes."""
        raise NotImplementedError

    def lightened(self, rows: Any) -> Any:
        """The rows, as precise as steps of many of them need: products may then take less time."""
        return rows

    def in_precision(self, block: Block, kind: Any) -> Block:
        """The same block for such steps, its large tables in single precision; or in double."""
        return block

    def settled(self, block: Block) -> Block:
        """The same block with all its numbers in whole arrays, as a device wants them."""
        return block

    def read(self, block: Block, rows: Any) -> Statistics:
        """The statistics of a batch of rows, in the units of the block."""
        raise NotImplementedError

    def table(self, block: Block) -> tuple[Any, Any]:
        """Natural parameters, (D, K), and log-normalizers, (d, K) or None where all are 0."""
        raise NotImplementedError

    def scores(self, block: Block, batch: Any) -> Any:
        """``ln p(x | component)`` of each row, (n, K); a missing cell adds nothing."""
        theta, normalizer = self.table(block)
        # the scores of a class side by side in memory: what follows works on one class at a time
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
        """Sums over the rows of weights times statistics, (D, K), and times cells seen, (d, K).

        Rows whose weights are below `least` may be left out.
        """
        sums = (weights.T @ batch.values).T  # weights, too, have rows side by side in memory
        if batch.seen is None:
            return sums, namespace_of(weights).sum(weights, axis=0)[None, :]
        return sums, batch.seen.T @ weights

    def leverage(
        self, block: Block, batch: Any, weights: Any, step: Step, least: float = 0.0
    ) -> Any:
        """How far a step of weight 1 would move the row's own score, by component, (n, K).

        None: the family has no need of damping.
        """
        return None

    def moved(self, block: Block, found: Any, step: Step) -> tuple[Block, int]:
        """The block after ``mu + sums - decay mu + pull (alpha - nu mu)``, inside its domain.

        Returns how many factors had their step shortened, too.
        """
        raise NotImplementedError

    def strength(self, block: Block) -> float:
        """Pseudo-observations, of what the prior pulls by most."""
        return 0.0

    # --- coordinates without bounds, for steps of all rows at once --------------------------------

    def free(self, block: Block) -> dict[str, Any]:
        """The values, of what must stay positive the logarithms."""
        values = block.values.items()
        log = namespace_of(block.mass).log
        return {name: log(v) if name in self.positive else v for name, v in values}

    def placed(self, block: Block, free: dict[str, Any]) -> Block:
        """The block elsewhere."""
        exp = namespace_of(block.mass).exp
        values = {name: exp(v) if name in self.positive else v for name, v in free.items()}
        return block._replace(values=values)

    def gathered(self, block: Block, found: Any) -> tuple[Any, ...]:
        """What `expected` says of a batch, as arrays that may be added up."""
        return found

    def slope(self, block: Block, found: Any, counts: Any, n: float) -> tuple[dict, dict]:
        """Gradient of the objective in free coordinates, and its metric, by name.

        `found` is what `expected` says of the weights of all rows, `counts` are those of the
        factors, and the penalty is spread over n rows. The metric is the Fisher information, and
        the curvature of the prior, so that no prior overshoots its centre.
        """
        raise OptionError(f"the family {self.name!r} takes no steps of all rows at once")

    def reach(self, block: Block, step: dict[str, Any]) -> dict[str, Any]:
        """How far a step goes, in units in which a half is far."""
        return {name: namespace_of(move).abs(move) for name, move in step.items()}

    # --- what answers may be linear in, see `planes` ----------------------------------------------

    def features(self, block: Block, batch: Any) -> tuple[Any, Any]:
        """The features of a batch, (n, p), 0 where missing, and which columns are missing, (n, g).

        The second is None where none is.
        """
        raise OptionError(f"no answer is linear in columns of the family {self.name!r}")

    def hidden(self, block: Block) -> tuple[np.ndarray, bool, Any, Any]:
        """Of features that a row lacks: sizes of columns, if they are levels, means and spreads."""
        raise OptionError(f"no answer is linear in columns of the family {self.name!r}")

    def with_answers(self, block: Block, found: Any, to_mean: Any, to_spread: Any) -> Any:
        """What `expected` found, and what answers say of hidden features, by slopes in these."""
        raise OptionError(f"no answer is linear in columns of the family {self.name!r}")

    # --- the start --------------------------------------------------------------------------------

    def collect(self, rows: Any, parts: list, n_features: Any, n_classes: int) -> Any:
        """Add up the statistics of the data in each class.

        `parts` are pairs of class codes and weights, one of each a row; a code may be negative,
        then its weight is zero.
        """
        raise NotImplementedError

    def merged(self, tallies: list) -> Any:
        """What `collect` says of all rows, of what it says of parts of them."""
        return sum(tallies[1:], tallies[0])

    def start(self, prior: Any, tally: Any, total: float, init: str, stream: bool) -> Block:
        """The initial state, without an average, from the prior and the rows' tally and weight.

        init="prior" is at the prior, with one observation per class; init="generative" at the
        closed-form estimate under NLL, with the mass of one observation over all classes. Where
        that is a poor start for discriminative training, `starts` names better ones, of which the
        one with the least objective is taken. More of a `stream` may yet come.
        """
        raise NotImplementedError

    def blocks(self, prior: Any, tally: Any, total: float, init: str, stream: bool) -> tuple:
        """The blocks of a model, one for each of the `factors`."""
        return (self.start(prior, tally, total, init, stream),)

    def perturbed(self, block: Block, components: np.ndarray, rng: Any) -> Block:
        """Make components differ, at random, that would stay alike for ever."""
        raise NotImplementedError

    # --- the state --------------------------------------------------------------------------------

    positive: ClassVar[frozenset[str]] = frozenset()  # values that must be above 0

    def schema(self, block: Block, n_components: int, n_features: Any) -> Schema:
        """What the arrays of a block are; nothing in the block can be trusted."""
        raise NotImplementedError

    def check(self, block: Block, n_components: int, n_features: Any, averages: bool) -> None:
        """Refuse a block that is not as training leaves one; it may come from anywhere."""
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
        """Refuse what has the right form, and cannot be."""

    def with_average(self, block: Block) -> Block:
        """The block with a running average that starts where it stands."""
        return block._replace(past=dict(block.values))

    def with_past(self, block: Block, past: Block, weight: float) -> Block:
        """The block whose running average so far is another one, with such a weight."""
        return block._replace(past=dict(past.values))

    def averaged_in(self, block: Block, weight: float, total: float) -> Block:
        """The block whose average has heard of where it stands, with such a weight of a total."""
        share = weight / total
        past = {name: old + share * (block.values[name] - old) for name, old in block.past.items()}
        return block._replace(past=past)

    def reweighed(self, block: Block, factor: float) -> Block:
        """The block whose average so far weighs so many times as much."""
        return block

    def averaged(self, block: Block) -> Block:
        """The block at its running average, of which it keeps none."""
        return block._replace(values=block.past, past={}) if block.past else block

    def centre(self, block: Block) -> dict[str, Any]:
        """What the prior pulls each of the values to, without the axis of components."""
        raise NotImplementedError

    def with_components(self, block: Block, order: np.ndarray, mass: float) -> Block:
        """Arrange the components in `order`; -1 is a new one at the prior's centre."""
        centre = self.centre(block)

        def arranged(values: dict[str, Any]) -> dict[str, Any]:
            new = {name: centre[name][..., None] for name in values}
            wide = {name: np.concatenate([a, new[name]], axis=-1) for name, a in values.items()}
            return {name: np.ascontiguousarray(a[..., order]) for name, a in wide.items()}

        return block._replace(values=arranged(block.values), past=arranged(block.past))

    def with_features(self, block: Block, n_features: Any) -> Block:
        """Add features that have not been met so far."""
        raise InputError(f"the family {self.name!r} does not take new features")

    def mean_of(self, blocks: list[Block], shares: Any, by_component: list) -> Block:
        """The mean of blocks that were trained apart: a mean of expected statistics.

        `shares` say how much each block has to say, `by_component` hold p(component) of each.
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
        """The mean parameters: what may be averaged over data."""
        return block.values

    def of_moments(self, moments: dict[str, Any]) -> dict[str, Any]:
        """The values that have these mean parameters."""
        return moments

    def by_factor(self, block: Block, numbers: Any) -> Any:
        """One number for each factor, (d, K), repeated for each of its statistics."""
        return numbers

    def penalty(self, block: Block) -> float:
        """-ln of the prior, up to a constant: what training adds to the sum of the losses."""
        raise NotImplementedError

    def sample(self, block: Block, codes: np.ndarray, rng: Any) -> Any:
        """Draw one row of each of the given components."""
        raise OptionError(f"the family {self.name!r} cannot draw rows")

    def given(self, block: Block, rows: Any) -> Any:
        """What each component says of the cells that rows lack, see `_missing`."""
        raise OptionError(f"the family {self.name!r} cannot say what missing cells are")

    @property
    def whole(self) -> bool:
        """Whether `fit` takes steps of all rows at once, for which a family needs a `slope`."""
        return type(self).slope is not Family.slope


FAMILIES: dict[str, Family] = {}
ANSWERS: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Make a family known to estimators, mixtures, files and tests."""
    for kind in family.priors:
        savable(kind)
    FAMILIES[family.name] = family
    return family


def register_answer(family: Family) -> Family:
    """Make a family known that is of no cells of a row, but of its answer given these."""
    for kind in family.priors:
        savable(kind)
    ANSWERS[family.name] = family
    return family


def family_of(block: Block) -> Family:
    """The family that a block belongs to."""
    return ANSWERS.get(block.family) or FAMILIES[block.family]
