"""What families are asked about: the state of one, a step, the statistics of a batch."""

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
    mass: Any  # (d,) observations behind the factors of a column, all components together
    values: dict[str, Any]  # what training moves
    past: dict[str, Any]  # the running average of it; empty where none is kept
    fixed: dict[str, Any]  # what training leaves as it is, such as units
    prior: Any
    lazy: Any = ()  # scalars by name that act on all values at once; few families have any

    @property
    def has_columns(self) -> bool:
        """Whether there is anything in it: a table may lack columns of a family."""
        return any(array.shape[0] > 0 for array in self.values.values())


class Step(NamedTuple):
    """What a step is made of, beside the statistics of the batch."""

    shares: Any  # (K,) p(component)
    slowness: Any  # (K,) by what the steps of a component are divided
    decay: float  # the share of all statistics that is forgotten
    pull: float  # what the prior pulls by
    floor: float  # what the check-step lifts to
    projection: Any

    def counts(self, mass: Any) -> Any:
        """The counts N of the factors, (d, K), as far as this step is concerned."""
        return mass[:, None] * (self.shares * self.slowness)[None, :]

    def mass(self, mass: Any, seen: Any, missed: Any) -> Any:
        """The mass after the step, which saw so much of each factor, (d, K), and missed some."""
        gained = namespace_of(mass).sum(seen + missed, axis=1)
        return self.projection.positive(mass, gained - self.decay * mass, self.floor)[0]


class Schema(NamedTuple):
    """What the arrays and numbers of a block are, by name."""

    mass: Array
    values: dict[str, Any]  # `Array` each; those that are `positive` need not say so
    fixed: dict[str, Any]
    prior: dict[str, Any] | None  # of its fields that count; None: the block has none
    past: dict[str, Any] | None = None  # where there is an average; None: as `values`
    lazy: dict[str, Any] = {}  # noqa: RUF012  nobody changes it


class Statistics(NamedTuple):
    """The statistics of a batch, as a product with natural parameters wants them."""

    values: Any  # (n, D), dense or sparse; zero for a missing cell
    seen: Any  # (n, d), 0 for a missing cell; None where all are there
    base: Any  # (n,) ln h(x): what all components share; None is 0


def seen_of(values: Any) -> tuple[Any, Any]:
    """The numbers, 0 where one is missing, and which are there; None where all are."""
    xp = namespace_of(values)
    missing = xp.isnan(values)
    if not xp.any(missing):
        return values, None
    seen = xp.astype(~missing, values.dtype)
    return filled(values, seen), seen


class Accepts(NamedTuple):
    """What a cell of X may be."""

    sparse: bool = False
    missing: bool = False  # NaN
    negative: bool = True
