"""What estimators ask of a family: priors by name, what is automatic, and what users read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..exceptions import OptionError
from ..priors import Default
from ..schedules import Schedule, power
from ._block import Block


class Surface:
    """A family as estimators see it, beside the update; see `Family`."""

    name: ClassVar[str]
    priors: ClassVar[tuple[type, ...]]  # kinds of priors it can take

    # --- priors -----------------------------------------------------------------------------------

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
        if isinstance(prior, Default):
            prior = self.prior_of_strength(prior.strength)
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

    def prior_of_strength(self, strength: float) -> Any:
        """The prior of columns in a mixture, so many times as strong as it is by default."""
        (prior, _), *_ = self.named_priors(False, 1, True).values()
        return prior._replace(nu=strength * prior.nu) if hasattr(prior, "nu") else prior

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

    # --- what is automatic ------------------------------------------------------------------------

    def auto_step(self, generative: bool, n: float, block: Block, mixed: bool = False) -> Schedule:
        """Steps that need no tuning from the start `block`, for n rows of the usual weight."""
        if not generative:
            return power(0.1, 400.0, 0.9)
        # go on averaging as if the start had been n rows; of components, about EM at first
        return power(1.0 / (n + 1.0), (10.0 if mixed else 1.0) * (n + 1.0), 1.0)

    def auto_batch(self, rows: Any, n_classes: int) -> int:
        """Rows per step."""
        return 16

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

    # --- parameters, and rows ---------------------------------------------------------------------

    def expectations(self, block: Block) -> dict[str, np.ndarray]:
        """E[s | component] by the name of the statistic, (K, feature), in the data's units."""
        raise NotImplementedError

    def slopes(self, block: Block) -> tuple[np.ndarray, dict[str, np.ndarray]]:
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
