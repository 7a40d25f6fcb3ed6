"""The classes or components of a model, p(y): a categorical with a flat Dirichlet prior.

Each class gets `alpha` pseudo-counts. The total mass either stays constant, or grows by what the
prior adds. In the second case steps matter less and less, as in the paper's model of words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import count_true, namespace_of
from .._checks import check_array, check_number, demand
from .._kinds import savable
from ..families import Step


class ClassPrior(NamedTuple):
    """How to smooth the counts of the classes."""

    alpha: float = 1.0  # pseudo-count of each class
    keeps_mass: bool = True
    lifts_to_prior: bool = False  # the check-step lifts to what the prior gave, not rho / n


@savable
class Classes(NamedTuple):
    """The expected counts of the classes."""

    counts: Any  # (K,)
    past: Any  # (K,) their running average; None if none is kept
    alpha: float  # the prior pulls by alpha - nu * count
    nu: float
    granted: float  # what the prior has given each class so far
    lift: float  # where the check-step lifts a count to: rho / n (0) or what the prior gave (1)

    @property
    def shares(self) -> Any:
        """p(y)."""
        return self.counts / namespace_of(self.counts).sum(self.counts)

    def moved(self, sums: Any, step: Step) -> tuple[Classes, int]:
        """Return the classes after a step with these sums of weights, and the number shortened."""
        granted = self.granted + step.pull * self.alpha
        change = sums - step.decay * self.counts
        change = (change + step.pull * (self.alpha - self.nu * self.counts)) / step.slowness
        floor = granted if self.lift > 0.0 else step.floor
        counts, short = step.projection.positive(self.counts, change, floor)
        return self._replace(counts=counts, granted=granted), count_true(short)

    def with_average(self) -> Classes:
        """Return the classes with a running average that starts at the current counts."""
        return self._replace(past=self.counts)

    def averaged_in(self, weight: float, total: float) -> Classes:
        """Return the classes after adding the current counts to their average."""
        return self._replace(past=self.past + weight / total * (self.counts - self.past))

    def averaged(self) -> Classes:
        """Return the classes at their running average, without an average of their own."""
        return self if self.past is None else self._replace(counts=self.past, past=None)

    def arranged(self, order: np.ndarray, mass: float) -> Classes:
        """Return the classes in the given order; -1 is a new class."""
        past = None if self.past is None else np.append(self.past, mass)[order]
        return self._replace(counts=np.append(self.counts, mass)[order], past=past)

    def penalty(self) -> float:
        """Return -ln of the prior, up to a constant."""
        shares = self.shares
        xp = namespace_of(shares)
        return -self.alpha * float(xp.sum(xp.log(shares)))

    def check(self, n_classes: int) -> bool:
        """Validate the counts, which may come from any file; return whether an average is kept."""
        check_array("counts of the classes", self.counts, (n_classes,), least=0.0)
        demand(self.counts.sum() > 0, "counts of the classes are all 0")
        if self.past is not None:
            check_array("average of the classes", self.past, (n_classes,), least=0.0)
            demand(self.past.sum() > 0, "the average of the classes is 0")
        for name in ("alpha", "nu", "granted", "lift"):
            check_number(f"{name} of the classes", getattr(self, name), least=0.0, kind=float)
        return self.past is not None


def start_classes(weights: np.ndarray, prior: ClassPrior, init: str) -> Classes:
    """Start at one observation per class, or at the smoothed shares of the data."""
    K, alpha = len(weights), float(prior.alpha)
    counts = np.ones(K)
    if init != "prior":
        counts = (weights + alpha) / (float(weights.sum()) + K * alpha)
    nu = float(alpha * K / counts.sum()) if prior.keeps_mass else 0.0
    return Classes(counts, None, alpha, nu, 0.0, float(prior.lifts_to_prior))


def mean_classes(classes: list[Classes], shares: np.ndarray) -> Classes:
    """Return the mean of classes that were trained apart."""
    return classes[0]._replace(
        counts=sum(s * each.counts for s, each in zip(shares, classes, strict=True)),
        granted=float(sum(s * each.granted for s, each in zip(shares, classes, strict=True))),
        past=None,
    )
