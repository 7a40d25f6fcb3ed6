"""The data types of families: the state (block), a step, the statistics of a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._arrays import filled, namespace_of
from .._checks import Array
from .._kinds import savable


@savable
class Block(NamedTuple):
    """The state of a family: counts and mean parameters, in named arrays.

    The last axis of every array of `values` is that of the components.
    """

    family: str
    mass: Any  # (d,) observations behind the factors of a column, over all components
    values: dict[str, Any]  # the parameters that training moves
    past: dict[str, Any]  # their running average; empty if none is kept
    fixed: dict[str, Any]  # constants of training, such as units
    prior: Any
    lazy: Any = ()  # scalars by name that act on all values at once; used by few families

    @property
    def has_columns(self) -> bool:
        """Return whether the block has any columns; a table may have none of a family."""
        return any(array.shape[0] > 0 for array in self.values.values())


class Step(NamedTuple):
    """The parameters of a step, beside the statistics of the batch."""

    shares: Any  # (K,) p(component)
    slowness: Any  # (K,) divisors of the steps of each component
    decay: float  # the share of all statistics that is forgotten
    pull: float  # the factor of the prior's pull
    floor: float  # the least value after the check-step
    projection: Any

    def counts(self, mass: Any) -> Any:
        """Return the counts N of the factors, (d, K), for this step."""
        return mass[:, None] * (self.shares * self.slowness)[None, :]

    def mass(self, mass: Any, seen: Any, missed: Any) -> Any:
        """Return the mass after the step, from the weights of seen and missed cells, (d, K)."""
        gained = namespace_of(mass).sum(seen + missed, axis=1)
        return self.projection.positive(mass, gained - self.decay * mass, self.floor)[0]


class Schema(NamedTuple):
    """Describe the arrays and numbers of a block, by name, to validate it."""

    mass: Array
    values: dict[str, Any]  # an `Array` each; those in `positive` need not repeat it
    fixed: dict[str, Any]
    prior: dict[str, Any] | None  # fields that are numbers; None: the block has no prior
    past: dict[str, Any] | None = None  # if an average is kept; None: like `values`
    lazy: dict[str, Any] = {}  # noqa: RUF012  nobody changes it


class Statistics(NamedTuple):
    """The statistics of a batch, for a product with natural parameters."""

    values: Any  # (n, D), dense or sparse; zero for a missing cell
    seen: Any  # (n, d), 0 for a missing cell; None if no cell is missing
    base: Any  # (n,) ln h(x), the same for all components; None is 0


def seen_of(values: Any) -> tuple[Any, Any]:
    """Return the numbers, 0 for missing ones, and which are observed; None if all are."""
    xp = namespace_of(values)
    missing = xp.isnan(values)
    if not xp.any(missing):
        return values, None
    seen = xp.astype(~missing, values.dtype)
    return filled(values, seen), seen


class Accepts(NamedTuple):
    """The values that cells of X may have."""

    sparse: bool = False
    missing: bool = False  # NaN
    negative: bool = True
