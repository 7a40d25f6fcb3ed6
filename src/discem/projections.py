"""How a step is kept inside the domain of the statistics (counts and variances stay positive).

Each family says what its own factors do under each of these; see `families`.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from ._compile import generic
from ._kinds import savable
from .exceptions import OptionError


@savable
class Interior(NamedTuple):
    """Stay well inside, and never overshoot.

    The step of one factor (one class, one feature) is shortened until nothing that must stay
    positive loses more than `share` of itself: the fraction-to-the-boundary rule of interior-point
    methods. And the step of a row is divided by 1 + damping * (its effect on its own scores), much
    as an implicit step would be (Toulis and Airoldi 2017): a row far out moves the parameters until
    it is explained, and not a hundred times further. With `caution`, the factors of a class that
    has few rows take shorter steps, such that between two of its rows the prior does not undo more
    than a share 1 / caution of what they taught. All this vanishes as steps become small.
    """

    share: float = 0.5
    damping: float = 0.03
    caution: float = 0.0


@savable
class Check(NamedTuple):
    """The paper's check-step: take the whole step, then lift what fell out of the domain."""


def check_projection(projection: Any) -> None:
    """Refuse what is no projection, and senseless numbers in one."""
    if not isinstance(projection, Interior | Check):
        raise OptionError(f"projection={projection!r} is neither Interior(...) nor Check()")
    if isinstance(projection, Interior):
        share, *others = projection
        numbers = all(isinstance(number, int | float) for number in projection)
        if not (numbers and 0 < share < 1 and all(0 <= other < inf for other in others)):
            raise OptionError(
                f"projection={projection!r}: share must be between 0 and 1, damping and caution "
                "numbers >= 0"
            )


@generic
def damp(projection, effect):
    """What is left of the step of a row that would change its own scores by `effect` in all."""


@damp.register(Interior)
def _damp_interior(projection, effect):
    return 1.0 / (1.0 + projection.damping * effect)


@damp.register(Check)
def _damp_check(projection, effect):
    return 1.0


@generic
def slow_down(projection, pull, share):
    """What to divide the step of a factor by, whose class has that `share` of the rows.

    In one step the prior pulls the factor by pull / share of itself, and 1 / share steps pass from
    one row of the class to the next.
    """


@slow_down.register(Interior)
def _slow_down_interior(projection, pull, share):
    return max(projection.caution * pull / (share * share), 1.0)


@slow_down.register(Check)
def _slow_down_check(projection, pull, share):
    return 1.0


@generic
def most_lost(projection):
    """The share of itself that a probability may lose in one step; its class has others to give."""


@most_lost.register(Interior)
def _most_lost_interior(projection):
    return projection.share


@most_lost.register(Check)
def _most_lost_check(projection):
    return 1.0 - 1e-6  # next to nothing is what it is lifted to


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


@generic
def stays_positive(projection, count, inverse, floor):
    """Whether `positive` lets a count become 1 / inverse."""


@stays_positive.register(Interior)
def _stays_positive_interior(projection, count, inverse, floor):
    return (inverse > 0.0) & ((1.0 - projection.share) * count * inverse <= 1.0)


@stays_positive.register(Check)
def _stays_positive_check(projection, count, inverse, floor):
    return (inverse > 0.0) & (floor * inverse <= 1.0)
