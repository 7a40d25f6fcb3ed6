"""Projections keep a step inside the domain of the statistics (counts, variances > 0).

Each family defines how its own factors use them; see `families`.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from ._arrays import namespace_of
from ._kinds import savable
from .exceptions import OptionError


@savable
class Interior(NamedTuple):
    """Shorten and damp steps, so that counts and variances stay positive.

    The step of one factor (one class, one feature) is shortened until nothing that must stay
    positive loses more than `share` of itself. This is the fraction-to-the-boundary rule of
    interior-point methods. The step of a row is divided by 1 + damping * (its effect on its own
    scores), much like an implicit step (Toulis and Airoldi 2017), so that an outlier does not move
    the parameters too far. With `caution`, classes with few rows take shorter steps: between two
    rows of such a class, the prior undoes at most a share 1 / caution of what the rows taught. All
    these corrections vanish as steps become small.
    """

    share: float = 0.5
    damping: float = 0.03
    caution: float = 0.0

    @property
    def negligible(self) -> float:
        """Weights below this share of the prior's pull are ignored."""
        return 0.01

    @property
    def most_lost(self) -> float:
        """The share of itself that a probability may lose in one step."""
        return self.share

    def damp(self, effect: Any) -> Any:
        """Return the factor for the step of a row that changes its own scores by `effect`."""
        return 1.0 / (1.0 + self.damping * effect)

    def slowness(self, pull: float, shares: Any) -> Any:
        """Return the divisor for the step of a factor whose class has the given share of the rows.

        In one step the prior pulls the factor by pull / share of itself, and 1 / share steps pass
        from one row of the class to the next.
        """
        slow = self.caution * pull / shares**2
        xp = namespace_of(slow)
        return xp.where(slow > 1.0, slow, xp.ones_like(slow))

    def positive(self, count: Any, change: Any, floor: float) -> tuple[Any, Any]:
        """Return counts after a step that keeps them positive, and where it was shortened."""
        bound = -self.share * count
        short = change < bound
        return count + namespace_of(count).where(short, bound, change), short


@savable
class Check(NamedTuple):
    """The check-step of the paper: take the whole step, then raise counts that are too small."""

    @property
    def damping(self) -> float:
        """No damping: steps are taken whole."""
        return 0.0

    @property
    def negligible(self) -> float:
        """No weight is ignored."""
        return 0.0

    @property
    def most_lost(self) -> float:
        """The share of itself that a probability may lose: almost all."""
        return 1.0 - 1e-6

    def damp(self, effect: Any) -> Any:
        """Steps are taken whole."""
        return namespace_of(effect).ones_like(effect)

    def slowness(self, pull: float, shares: Any) -> Any:
        """Steps are taken whole."""
        return namespace_of(shares).ones_like(shares)

    def positive(self, count: Any, change: Any, floor: float) -> tuple[Any, Any]:
        """Raise counts below `floor` to it; return the new counts, and which were raised."""
        short = count + change < floor
        xp = namespace_of(count)
        return xp.where(short, floor * xp.ones_like(count), count + change), short


def check_projection(projection: Any) -> None:
    """Raise an error unless `projection` is a projection with valid numbers."""
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
