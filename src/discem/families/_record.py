"""The record of a family: all that the rest of the library knows of it.

Models, estimators, files, documentation and tests read it; nothing else needs to be told of a
family. Three parts, in this order in every family's file: the family in numbers, its state, and
what users meet. The compiled part is registered beside it, see `_protocol`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._kinds import savable
from ..exceptions import InputError, OptionError
from ..schedules import Schedule, power
from ._protocol import (
    COMPILED,
    ClassRoom,
    add_leverage,
    gather_and_settle,
    move,
    no_leverage,
)
from .arrays import namespace_of


class Accepts(NamedTuple):
    """What a cell of X may be."""

    sparse: bool = False
    missing: bool = False  # NaN
    negative: bool = True


class Family:
    """An exponential family for some columns of a row, given the class.

    Subclass it, fill in what has no default, and `register` an instance. Arrays of parameters have
    the shape (class, factor, statistic): a table of d columns has d factors, a document is one
    factor whose statistics are the counts of all words.
    """

    name: ClassVar[str]
    state: ClassVar[type]  # a NamedTuple of arrays
    priors: ClassVar[tuple[type, ...]]  # kinds of priors it can take
    accepts: ClassVar[Accepts] = Accepts()
    starts: ClassVar[tuple[str, ...]] = ("generative",)  # of discriminative training, see `start`

    def provides(self, name: str) -> bool:
        """Whether it has a compiled function, or a method of its own, of that name."""
        if name in COMPILED:
            return self.state in COMPILED[name].kinds
        return getattr(type(self), name) is not getattr(Family, name)

    # --- the family in numbers, for any array namespace -------------------------------------------

    def statistics(self, x: Any) -> Any:
        """s(x) of every row, as (n, factor, statistic); zero for a missing cell."""
        raise NotImplementedError

    def exposure(self, x: Any) -> Any:
        """How often each factor is drawn from, (n, factor): not where a cell is missing."""
        xp = namespace_of(x)
        return xp.where(xp.isnan(x), xp.zeros_like(x), xp.ones_like(x))

    def natural(self, mu: Any) -> Any:
        """theta(mu), of the mean parameters mu = E s."""
        raise NotImplementedError

    def mean(self, theta: Any) -> Any:
        """mu(theta), the gradient of the log-normalizer."""
        raise NotImplementedError

    def log_normalizer(self, theta: Any) -> Any:
        """A(theta), without the last axis."""
        raise NotImplementedError

    def log_base(self, x: Any) -> Any:
        """Ln h(x) of every row, (n,): what all classes share of ``ln p(x | k)``."""
        xp = namespace_of(x)
        return xp.zeros_like(x[:, 0])

    def pull(self, prior: Any, pull: float, count: Any, mu: Any) -> tuple[Any, Any]:
        """Pull * (alpha - nu mu): the change of counts (class, factor) and of sums (.., statistic).

        It is the natural gradient of minus the penalty, times `pull`.
        """
        raise NotImplementedError

    def inside(self, share: float, count: Any, mu: Any, d_count: Any, d_sum: Any) -> tuple:
        """Land a step of counts and sums: new counts and means, of which nothing lost > `share`."""
        raise NotImplementedError

    # --- the state --------------------------------------------------------------------------------

    def check(self, block: Any, n_classes: int, n_features: Any, averages: bool) -> None:
        """Refuse a block that is not as training leaves one, by what is in `discem._checks`.

        It may come from anywhere: every array must have the type, the shape and the range that
        compiled code takes for granted. `averages` says whether an average is kept.
        """
        raise NotImplementedError

    def view(self, X: Any) -> Any:
        """Rows as compiled code reads them."""
        raise NotImplementedError

    def make_room(self, block: Any, rows: Any, batch: int, classes: ClassRoom) -> Any:
        """Scratch memory, which begins with the fields of `classes`; `batch` rows are gathered."""
        raise NotImplementedError

    def collect(self, rows: Any, parts: list, n_features: Any, n_classes: int) -> Any:
        """Add up the statistics of the data in each class.

        `parts` are pairs of class codes and weights, one of each a row; a code may be negative,
        then its weight is zero.
        """
        raise NotImplementedError

    def merged(self, tallies: list) -> Any:
        """What `collect` says of all rows, of what it says of parts of them."""
        return sum(tallies[1:], tallies[0])

    def start(self, prior: Any, tally: Any, total: float, init: str, stream: bool) -> Any:
        """The initial state, without an average, from the prior and the rows' tally and weight.

        init="prior" is at the prior, with one observation per class; init="generative" at the
        closed-form estimate under NLL, with the mass of one observation over all classes. Where
        that is a poor start for discriminative training, `starts` names better ones, of which the
        one with the least objective is taken. More of a `stream` may yet come.
        """
        raise NotImplementedError

    def averaged(self, block: Any) -> Any:
        """The block at its running average, of which it keeps none; itself where there is none."""
        raise NotImplementedError

    def with_average(self, block: Any, past: Any, weight: float) -> Any:
        """The same state, whose running average is so far `past`, with a total `weight`.

        None keeps no average; to start a new one is to have a weight of zero.
        """
        raise NotImplementedError

    def with_classes(self, block: Any, order: np.ndarray, mass: float) -> Any:
        """Arrange the classes in `order`; -1 is a new one at the prior's centre, with `mass`."""
        raise NotImplementedError

    def with_features(self, block: Any, n_features: Any) -> Any:
        """Add features that have not been met so far."""
        raise InputError(f"the family {self.name!r} does not take new features")

    def mean_of(self, blocks: list, shares: np.ndarray, classes: list[np.ndarray]) -> Any:
        """The block of the mean expected statistics; `classes` holds p(y) of each."""
        raise NotImplementedError

    def joined(
        self,
        blocks: list,
        shares: np.ndarray,
        classes: list[np.ndarray],
        past: list[np.ndarray] | None,
        weight: float,
        run: Callable = map,
    ) -> Any:
        """The mean of blocks, and of their averages where they keep some, with a total `weight`.

        `past` holds p(y) of each average; None is that none is kept. A large block may be made
        piece by piece, by ``run(function, pieces)``, which may be that of a pool of threads.
        """
        plain = [self.with_average(block, None, 0.0) for block in blocks]
        mean = self.mean_of(plain, shares, classes)
        if past is None:
            return mean
        averages = [self.averaged(block) for block in blocks]
        return self.with_average(mean, self.mean_of(averages, shares, past), weight)

    def penalty(self, block: Any) -> float:
        """-ln of the prior, up to a constant: what training adds to the sum of the losses."""
        raise NotImplementedError

    def perturbed(self, block: Any, columns: np.ndarray, rng: Any) -> Any:
        """Make classes differ, at random, that would stay alike for ever."""
        raise NotImplementedError

    def prepare(self, block: Any, rows: Any) -> None:
        """Get ready for rows that may be unlike those of the start."""

    def sample(self, block: Any, codes: np.ndarray, rng: Any) -> Any:
        """Draw one row of each of the given classes."""
        raise OptionError(f"the family {self.name!r} cannot draw rows")

    def arrays(self, block: Any, class_counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state as counts N (class, factor) and means mu (class, factor, statistic)."""
        raise NotImplementedError

    def in_units(self, block: Any, x: Any) -> tuple[Any, Any]:
        """Rows in the units that the state is held in, and what that adds to ``ln p(x)``, (n,)."""
        return x, np.zeros(len(x))

    # --- what users meet --------------------------------------------------------------------------

    def named_priors(
        self, generative: bool, n_features: Any, mixed: bool
    ) -> dict[str, tuple[Any, float]]:
        """By name: the prior, and the pseudo-count of each class that goes with it.

        The first is the default. `generative` training is by NLL, `mixed` factors are those of
        components within classes.
        """
        raise NotImplementedError

    def resolve_prior(
        self, prior: Any, generative: bool, n_features: Any, mixed: bool = False
    ) -> tuple[Any, float]:
        """The prior of that name, or the one given, and the pseudo-count of each class."""
        names = self.named_priors(generative, n_features, mixed)
        if isinstance(prior, str) and prior in names:
            return names[prior]
        if not isinstance(prior, self.priors):
            raise OptionError(
                f"prior={prior!r} is unknown: use one of {list(names)} "
                f"or {self.priors[0].__name__}(...)"
            )
        self.check_prior(prior)
        return prior, 1.0

    def complete_prior(self, prior: Any, rows: Any, parts: list, components: float = 1.0) -> Any:
        """The prior, with what it leaves to the data but a tally does not tell.

        `parts` are as for `collect`, `components` those of a class, which share its prior.
        """
        return prior

    def check_prior(self, prior: Any) -> None:
        """Refuse senseless numbers with an `OptionError`."""

    def prior_of_components(
        self, prior: Any, by_class: Callable[[], Any], by_component: Any
    ) -> Any:
        """The prior where classes are mixtures; `by_class()` collects as if they were none."""
        return prior

    def keeps_mass(self, prior: Any) -> bool:
        """Whether class counts should keep their mass, or grow for ever as the prior gives."""
        return True

    lifts_to_prior: ClassVar[bool] = False  # where the paper's check-step lifts a class count to

    def auto_step(
        self, generative: bool, n: float, block: Any, shares: np.ndarray, mixed: bool = False
    ) -> Schedule:
        """Steps that need no tuning from the start `block`, for n rows of the usual weight.

        `shares` are those of the classes, or of their components, in the mass of all.
        """
        if not generative:
            return power(0.1, 400.0, 0.9)
        # go on averaging as if the start had been n rows; of components, about EM at first
        return power(1.0 / (n + 1.0), (10.0 if mixed else 1.0) * (n + 1.0), 1.0)

    # Rows in parts, whose states are averaged: how many rows a part needs to learn as well, and how
    # many visits of the numbers of the model to be worth a thread.
    least_rows: ClassVar[int] = 400
    least_visits: ClassVar[float] = 4e6

    def step_of_part(self, rho: np.ndarray, parts: int) -> np.ndarray:
        """The steps to take in one of so many parts, of those that all rows together would take."""
        return rho

    def auto_average(self, generative: bool) -> bool:
        """Whether predicting with the average of the parameters is worth its cost."""
        return not generative

    def auto_unlabelled(self, generative: bool, ratio: float) -> float:
        """The weight of an unlabelled row, of which there are `ratio` for each labelled one."""
        return 1.0

    def expectations(self, block: Any) -> dict[str, np.ndarray]:
        """E[s | class] by the name of the statistic, (class, feature), in the units of the data."""
        raise NotImplementedError

    def slopes(self, block: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """``ln p(x | k) = offset_k + sum slopes_k s(x)`` up to what classes share, by statistic."""
        raise NotImplementedError

    def features_of(self, X: Any) -> Any:
        """The statistics of rows in the order of `slopes`, side by side."""
        raise NotImplementedError

    def points(self, rows: Any, weights: np.ndarray, n_features: Any) -> Any:
        """Where rows are, as far as clusters are concerned: (n, d), dense or sparse."""
        raise NotImplementedError

    def extra_figures(self, figures: np.ndarray, rows: Any, order: Any, weights: Any) -> dict:
        """What else a pass over `order` says of these rows, for `history_`."""
        return {}

    def example(self, codes: np.ndarray, n_features: int, rng: np.random.Generator) -> np.ndarray:
        """Make up rows of the given classes that can be told apart: for trying and testing."""
        raise NotImplementedError


FAMILIES: dict[str, Family] = {}
_OF_STATE: dict[type, Callable[[Any], Family]] = {}  # of a state of that type


def register(family: Family) -> Family:
    """Make a family known to estimators, mixtures, files and tests."""
    if family.state not in move.kinds:
        move.register(family.state)(gather_and_settle)
    if family.state not in add_leverage.kinds:
        add_leverage.register(family.state)(no_leverage)
    for kind in family.priors:
        savable(kind)
    FAMILIES[family.name] = family
    recognise(family.state, lambda block: family)
    return family


def recognise(state: type, find: Callable[[Any], Family]) -> None:
    """Say how to find the family of a state of this type."""
    _OF_STATE[savable(state)] = find


def family_of(block: Any) -> Family:
    """The family that a state belongs to."""
    return _OF_STATE[type(block)](block)
