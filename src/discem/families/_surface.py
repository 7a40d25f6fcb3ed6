"""What estimators need of a family: named priors, automatic options, and results for users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..exceptions import OptionError
from ..priors import Default
from ..schedules import Schedule, power
from ._block import Block


class Surface:
    """The part of a family that only estimators use, beside the update; see `Family`."""

    name: ClassVar[str]
    priors: ClassVar[tuple[type, ...]]  # the kinds of priors it accepts

    # --- priors -----------------------------------------------------------------------------------

    def named_priors(
        self, generative: bool, n_features: Any, mixed: bool
    ) -> dict[str, tuple[Any, float]]:
        """Return, by name, the priors and the matching pseudo-count of each class.

        The first is the default. `generative` means training by NLL, `mixed` means components
        within classes.
        """
        raise NotImplementedError

    def resolve_prior(
        self, prior: Any, generative: bool, n_features: Any, mixed: bool = False
    ) -> tuple[Any, float]:
        """Return the named or given prior, and the pseudo-count of each class."""
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
        """Complete a prior with values that need the data, beyond a tally.

        `parts` are as for `collect`; the `components` of a class share its prior.
        """
        return prior

    def prior_of_strength(self, strength: float) -> Any:
        """Return the default prior of columns in a mixture, `strength` times as strong."""
        (prior, _), *_ = self.named_priors(False, 1, True).values()
        return prior._replace(nu=strength * prior.nu) if hasattr(prior, "nu") else prior

    def check_prior(self, prior: Any) -> None:
        """Raise an `OptionError` if the prior has invalid numbers."""

    def prior_of_components(
        self, prior: Any, by_class: Callable[[], Any], by_component: Any
    ) -> Any:
        """Return the prior if classes are mixtures; `by_class()` collects without components."""
        return prior

    def keeps_mass(self, prior: Any) -> bool:
        """Return whether class counts keep their mass, or grow by what the prior gives."""
        return True

    lifts_to_prior: ClassVar[bool] = False  # where the paper's check-step lifts a class count to

    # --- what is automatic ------------------------------------------------------------------------

    def auto_step(self, generative: bool, n: float, block: Block, mixed: bool = False) -> Schedule:
        """Return steps that need no tuning, from the start `block`, for n rows of usual weight."""
        if not generative:
            return power(0.1, 400.0, 0.9)
        # continue averaging as if the start had been n rows; for components, about EM at first
        return power(1.0 / (n + 1.0), (10.0 if mixed else 1.0) * (n + 1.0), 1.0)

    def auto_batch(self, rows: Any, n_classes: int) -> int:
        """Return the rows per step."""
        return 16

    # Rows in parts, whose states are averaged: how many rows a part needs to learn as well, and how
    # many visits of the numbers of the model to be worth a thread.
    least_rows: ClassVar[int] = 400
    least_visits: ClassVar[float] = 4e6

    def step_of_part(self, rho: np.ndarray, parts: int) -> np.ndarray:
        """Return the steps of one of `parts` parts, from the steps of all rows together."""
        return rho

    def auto_average(self, generative: bool) -> bool:
        """Return whether averaging parameters for prediction is worth its cost."""
        return not generative

    def auto_unlabelled(self, generative: bool, ratio: float) -> float:
        """Return the weight of an unlabelled row; there are `ratio` of them per labelled row."""
        return 1.0

    # --- parameters, and rows ---------------------------------------------------------------------

    def expectations(self, block: Block) -> dict[str, np.ndarray]:
        """Return E[s | component] by name of the statistic, (K, feature), in the data's units."""
        raise NotImplementedError

    def slopes(self, block: Block) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """``ln p(x | k) = offset_k + sum slopes_k s(x)`` up to what classes share, by statistic."""
        raise NotImplementedError

    def features_of(self, X: Any) -> Any:
        """Return the statistics of rows in the order of `slopes`, side by side."""
        raise NotImplementedError

    def points(self, rows: Any, weights: np.ndarray, n_features: Any) -> Any:
        """Return coordinates of rows for clustering: (n, d), dense or sparse."""
        raise NotImplementedError

    def extra_figures(self, figures: np.ndarray, rows: Any, order: Any, weights: Any) -> dict:
        """Return further figures of a pass over `order` for `history_`."""
        return {}

    def example(self, codes: np.ndarray, n_features: int, rng: np.random.Generator) -> np.ndarray:
        """Generate rows of the given classes that can be separated, for tests."""
        raise NotImplementedError
