"""Schedules: map the number of a step to its size. A schedule is any callable t -> rho.

Steps count from t = 1; `t` may be an array.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._kinds import savable
from .exceptions import OptionError

Schedule = Any  # a callable t -> rho; the tuples below are callable


@savable
class inverse(NamedTuple):
    """The paper's step, 1 / (1 + lam * t).

    >>> inverse(0.1)(10)
    0.5
    """

    lam: float

    def __call__(self, t: Any) -> Any:
        return 1.0 / (1.0 + self.lam * t)


@savable
class power(NamedTuple):
    """rho0 * (t0 / (t0 + t)) ** kappa: near rho0 for t0 steps, then a decay like t ** -kappa.

    >>> power(rho0=0.5, t0=100, kappa=1.0)(100)
    0.25
    """

    rho0: float
    t0: float
    kappa: float = 0.6

    def __call__(self, t: Any) -> Any:
        return self.rho0 * (self.t0 / (self.t0 + t)) ** self.kappa


@savable
class constant(NamedTuple):
    """Give every step the same size.

    >>> constant(0.01)(1_000_000)
    0.01
    """

    rho: float

    def __call__(self, t: Any) -> Any:
        return self.rho + 0.0 * t


@savable
class scaled(NamedTuple):
    """Multiply the steps of another schedule by a factor.

    >>> scaled(constant(0.1), 0.5)(1)
    0.05
    """

    schedule: Schedule
    factor: float

    def __call__(self, t: Any) -> Any:
        return self.factor * self.schedule(t)


def scale(schedule: Schedule, factor: float) -> scaled:
    """Multiply the steps of a schedule by a factor; scaling twice does not nest.

    >>> scale(scale(constant(0.1), 0.5), 0.5)
    scaled(schedule=constant(rho=0.1), factor=0.25)
    """
    if isinstance(schedule, scaled):
        return schedule._replace(factor=schedule.factor * factor)
    return scaled(schedule, factor)


@savable
class held(NamedTuple):
    """Follow another schedule for a number of steps, then keep its last step size for ever.

    >>> float(held(inverse(0.1), 10)(1_000_000))
    0.5
    """

    schedule: Schedule
    steps: float

    def __call__(self, t: Any) -> Any:
        return self.schedule(np.minimum(t, self.steps))


@savable
class by_row(NamedTuple):
    """Give each batch the sum of the steps that another schedule gives to its rows.

    The size of the batches is automatic. As with automatic steps, training goes back and shortens
    its steps if the objective rises.

    >>> by_row(constant(0.1))(1)
    0.1
    """

    schedule: Schedule

    def __call__(self, t: Any) -> Any:
        return self.schedule(t)


def step_sizes(schedule: Schedule, first: int, count: int) -> np.ndarray:
    """Return the sizes of `count` steps, starting with step `first`."""
    return sizes_at(schedule, np.arange(first, first + count, dtype=np.float64))


def sizes_at(schedule: Schedule, t: np.ndarray) -> np.ndarray:
    """Return the sizes of the steps `t`; also works for schedules that take a single t."""
    try:
        rho = np.asarray(schedule(t), dtype=np.float64)
    except (TypeError, ValueError):  # a schedule written for one step at a time
        rho = np.array([schedule(step) for step in t], dtype=np.float64)
    rho = np.array(np.broadcast_to(rho, t.shape))
    if not np.all(np.isfinite(rho)) or np.any(rho < 0):
        near = f"{t[0]:g}" if len(t) else "the start"
        raise OptionError(f"step: {schedule!r} gave a negative or non-finite size near t={near}")
    return rho
