"""The classes of a model, p(y): a categorical with a flat Dirichlet prior.

Each class gets `alpha` pseudo-counts. Their mass is kept, or it grows by what the prior gives: then
steps matter less and less, which is the paper's way with words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._checks import check_array, check_number, check_weight, demand
from .._compile import helper
from .._kinds import savable
from ..families import LEVERAGE, PENDING, POWER, PRODUCT, SHARES, SLOWNESS
from ..families._logs import forget_calls, logs, set_exponents_aside
from ..projections import positive

_MANY_CALLS = 2.0**30  # powers of two are counted from far above 0: no sign is needed
_POWER_ZERO = np.uint64(1023 << 30)


class ClassPrior(NamedTuple):
    """How the counts of the classes are smoothed."""

    alpha: float = 1.0  # pseudo-count of each class
    keeps_mass: bool = True
    lifts_to_prior: bool = False  # by the check-step: to what the prior gave so far, or to rho / n


@savable
class Classes(NamedTuple):
    """Expected counts of the classes."""

    counts: np.ndarray  # (K,)
    lag: np.ndarray  # (K,), or (0,) without an average: what it lacks, times its weight
    weight: np.ndarray  # (1,) total weight of the average so far
    alpha: float  # the prior pulls by alpha - nu * count
    nu: float
    granted: np.ndarray  # (1,) what the prior has given each class so far
    lift: float  # where the check-step lifts a count to: rho / n (0) or what the prior gave (1)

    @property
    def shares(self) -> np.ndarray:
        """p(y)."""
        return self.counts / self.counts.sum()


def start_classes(weights: np.ndarray, prior: ClassPrior, init: str) -> Classes:
    """At one observation per class, or at the smoothed shares of the data."""
    K, alpha = len(weights), float(prior.alpha)
    counts = np.ones(K)
    if init != "prior":
        counts = (weights + alpha) / (float(weights.sum()) + K * alpha)
    nu = alpha * K / counts.sum() if prior.keeps_mass else 0.0
    lift = float(prior.lifts_to_prior)
    return Classes(counts, np.zeros(0), np.zeros(1), alpha, nu, np.zeros(1), lift)


def check_classes(classes: Classes, n_classes: int) -> bool:
    """See that classes are as training leaves them; return whether an average is kept."""
    demand(isinstance(classes, Classes), "it has no classes")
    demand(isinstance(classes.lag, np.ndarray), "lag of the classes is not an array")
    averages = classes.lag.size > 0
    check_array("counts of the classes", classes.counts, (n_classes,), least=0.0)
    demand(classes.counts.sum() > 0, "counts of the classes are all 0")
    check_array("lag of the classes", classes.lag, (n_classes if averages else 0,))
    check_array("weight of the classes", classes.weight, (1,))
    check_weight("weight of the classes", classes.weight[0])
    check_array("granted", classes.granted, (1,), least=0.0)
    for name in ("alpha", "nu", "lift"):
        check_number(f"{name} of the classes", getattr(classes, name), least=0.0, kind=float)
    return averages


def averaged_classes(classes: Classes) -> Classes:
    counts = classes.counts
    if classes.lag.size and classes.weight[0] > 0:
        counts = np.maximum(counts - classes.lag / classes.weight[0], 1e-300)
    return with_class_average(classes._replace(counts=counts), None, 0.0)


def with_class_average(classes: Classes, past: Classes | None, weight: float) -> Classes:
    lag = np.zeros(0) if past is None else (classes.counts - past.counts) * weight
    return classes._replace(lag=lag, weight=np.array([float(weight)]))


def arranged(classes: Classes, order: np.ndarray, mass: float) -> Classes:
    """The classes in `order`; -1 is a new one."""
    return classes._replace(
        counts=np.append(classes.counts, mass)[order],
        lag=np.append(classes.lag, 0.0)[order] if classes.lag.size else classes.lag,
    )


def join_classes(
    classes: list[Classes], shares: np.ndarray
) -> tuple[Classes, list[np.ndarray], list[np.ndarray] | None]:
    """The mean of classes, and of their averages; p(y) of each, and of each average if any."""
    mean = _mean_classes([with_class_average(each, None, 0.0) for each in classes], shares)
    by_class = [each.shares for each in classes]
    if not classes[0].lag.size:
        return mean, by_class, None
    past = [averaged_classes(each) for each in classes]
    weight = float(shares @ [each.weight[0] for each in classes])
    mean = with_class_average(mean, _mean_classes(past, shares), weight)
    return mean, by_class, [each.shares for each in past]


def _mean_classes(classes: list[Classes], shares: np.ndarray) -> Classes:
    return classes[0]._replace(
        counts=shares @ np.stack([each.counts for each in classes]),
        granted=shares @ np.stack([each.granted for each in classes]),
    )


def class_penalty(classes: Classes) -> float:
    return -classes.alpha * float(np.log(classes.shares).sum())


# --- compiled ------------------------------------------------------------------------------------
#
# Not the whole room: a call hands over all arrays of what it is given, one by one.


@helper
def fill_shares(classes, numbers):
    """Leave p(y) in the room."""
    total = 0.0
    for k in range(classes.counts.shape[0]):
        total += classes.counts[k]
    for k in range(classes.counts.shape[0]):
        numbers[SHARES, k] = classes.counts[k] / total


@helper
def begin_step(classes, numbers):
    """Leave p(y) in the room; no class is slow as yet."""
    fill_shares(classes, numbers)
    for k in range(classes.counts.shape[0]):
        numbers[SLOWNESS, k] = 1.0


@helper
def begin_scores(classes, a, numbers, bits):
    """Leave p(y) in the room, also as the product to come; no scores and no leverage as yet."""
    fill_shares(classes, numbers)
    for k in range(a.shape[0]):
        a[k] = 0.0
        numbers[LEVERAGE, k] = 0.0
        numbers[PRODUCT, k] = numbers[SHARES, k]
        bits[POWER, k] = _POWER_ZERO
    set_exponents_aside(bits, PRODUCT, POWER)
    forget_calls(bits, POWER, 1)


@helper
def end_scores(a, numbers, bits):
    """Add the logarithm of the product to the scores."""
    logs(numbers, bits, PRODUCT, POWER, _MANY_CALLS)
    for k in range(a.shape[0]):
        a[k] += numbers[PRODUCT, k]


@helper
def move_counts(classes, r, decay, pull, floor, projection, numbers):
    """Move the counts of the classes; return how many had their step shortened."""
    shortened = 0
    classes.granted[0] += pull * classes.alpha
    lifted = classes.granted[0] if classes.lift > 0.0 else floor
    for k in range(r.shape[0]):
        prior = classes.alpha - classes.nu * classes.counts[k]
        change = r[k] - decay * classes.counts[k] + pull * prior
        change /= numbers[SLOWNESS, k]
        new, short = positive(projection, classes.counts[k], change, lifted)
        if classes.lag.shape[0] > 0:
            classes.lag[k] += classes.weight[0] * (new - classes.counts[k])
        classes.counts[k] = new
        shortened += short
    return shortened


@helper
def gather_counts(r, numbers):
    """Let the weights of a row wait in the room for `settle_counts`."""
    for k in range(r.shape[0]):
        numbers[PENDING, k] += r[k]


@helper
def settle_counts(classes, decay, pull, floor, projection, numbers):
    """Move the counts of the classes by the weights gathered, of which none is left."""
    r = numbers[PENDING]
    shortened = move_counts(classes, r, decay, pull, floor, projection, numbers)
    for k in range(r.shape[0]):
        r[k] = 0.0
    return shortened
