"""How a step is kept inside the domain of the statistics (counts and variances stay positive).

Each family says what its own factors do under each of these; see `families`.
"""

from __future__ import annotations

from typing import NamedTuple

from ._compile import generic


class Interior(NamedTuple):
    """Shorten the step of one factor until nothing that must stay positive loses more than `share`.

    This is the fraction-to-the-boundary rule of interior-point methods.
    """

    share: float = 0.5


class Check(NamedTuple):
    """The paper's check-step: take the whole step, then lift what fell out of the domain."""


@generic
def positive(projection, count, change, floor):
    """Land a single positive count: the new count, and 1 if the step was shortened."""


@positive.register(Interior)
def _positive_interior(projection, count, change, floor):
    bound = -projection.share * count
    if change < bound:
        return count + bound, 1
    return count + change, 0


@positive.register(Check)
def _positive_check(projection, count, change, floor):
    if count + change < floor:
        return floor, 1
    return count + change, 0

