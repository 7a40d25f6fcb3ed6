"""The classes or components of a model, p(y): a categorical with a flat Dirichlet prior.

Each gets `alpha` pseudo-counts. Their mass is kept, or it grows by what the prior gives: then steps
matter less and less, which is the paper's way with words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import count_true, namespace_of
from .._checks import check_array, check_number, demand
from .._kinds import savable
from ..families import Step


class ClassPrior(NamedTuple):
    """How the counts of the classes are smoothed."""

    alpha: float = 1.0  # pseudo-count of each class
    keeps_mass: bool = True
    lifts_to_prior: bool = False  # by the check-step: to what the prior gave so far, or to rho / n


@savable
class Classes(NamedTuple):
    """Expected counts of the classes."""

    counts: Any  # (K,)
    past: Any  # (K,) their running average; None where none is kept
    alpha: float  # the prior pulls by alpha - nu * count
    nu: float
    granted: float  # what the prior has given each class so far
    lift: float  # where the check-step lifts a count to: rho / n (0) or what the prior gave (1)

    @property
    def shares(self) -> Any:
        """p(y)."""
        return self.counts / namespace_of(self.counts).sum(self.counts)

    def moved(self, sums: Any, step: Step) -> tuple[Classes, int]:
        """The classes after a step with these sums of weights, and how many were shortened."""
        granted = self.granted + step.pull * self.alpha
        change = sums - step.decay * self.counts
        change = (change + step.pull * (self.alpha - self.nu * self.counts)) / step.slowness
        floor = granted if self.lift > 0.0 else step.floor
        counts, short = step.projection.positive(self.counts, change, floor)
        return self._replace(counts=counts, granted=granted), count_true(short)

    def with_average(self) -> Classes:
        """The same, with a running average that starts where they stand."""
        return self._replace(past=self.counts)

    def averaged_in(self, weight: float, total: float) -> Classes:
        """The classes whose average has heard of where they stand."""
        return self._replace(past=self.past + weight / total * (self.counts - self.past))

    def averaged(self) -> Classes:
        """The classes at their running average, of which they keep none."""
        return self if self.past is None else self._replace(counts=self.past, past=None)

    def arranged(self, order: np.ndarray, mass: float) -> Classes:
        """The classes in `order`; -1 is a new one."""
        past = None if self.past is None else np.append(self.past, mass)[order]
        return self._replace(counts=np.append(self.counts, mass)[order], past=past)

    def penalty(self) -> float:
        """-ln of the prior, up to a constant."""
        shares = self.shares
        xp = namespace_of(shares)
        return -self.alpha * float(xp.sum(xp.log(shares)))

    def check(self, n_classes: int) -> bool:
        """Refuse what training cannot have left; return whether an average is kept."""
        check_array("counts of the classes", self.counts, (n_classes,), least=0.0)
        demand(self.counts.sum() > 0, "counts of the classes are all 0")
        if self.past is not None:
            check_array("average of the classes", self.past, (n_classes,), least=0.0)
            demand(self.past.sum() > 0, "the average of the classes is 0")
        for name in ("alpha", "nu", "granted", "lift"):
            check_number(f"{name} of the classes", getattr(self, name), least=0.0, kind=float)
        return self.past is not None


def start_classes(weights: np.ndarray, prior: ClassPrior, init: str) -> Classes:
    """At one observation per class, or at the smoothed shares of the data."""
    K, alpha = len(weights), float(prior.alpha)
    counts = np.ones(K)
    if init != "prior":
        counts = (weights + alpha) / (float(weights.sum()) + K * alpha)
    nu = float(alpha * K / counts.sum()) if prior.keeps_mass else 0.0
    return Classes(counts, None, alpha, nu, 0.0, float(prior.lifts_to_prior))


def mean_classes(classes: list[Classes], shares: np.ndarray) -> Classes:
    """The mean of classes that were trained apart."""
    return classes[0]._replace(
        counts=sum(s * each.counts for s, each in zip(shares, classes, strict=True)),
        granted=float(sum(s * each.granted for s, each in zip(shares, classes, strict=True))),
        past=None,
    )
