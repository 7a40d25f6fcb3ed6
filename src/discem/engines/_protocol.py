"""What an engine is: a way to run the one update over many rows, and to score them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._kinds import savable
from ..exceptions import OptionError
from ..families import Family, family_of
from ..schedules import Schedule
from ..targets import Targets


class Data(NamedTuple):
    """Rows, what is known of their answers, and how much each counts."""

    rows: Any  # as the family views them
    targets: Targets
    weights: np.ndarray


@savable
class Rule(NamedTuple):
    """What the update is made of, beside the model."""

    loss: Any
    projection: Any
    schedule: Schedule  # step number -> step size
    n: float  # observations that the prior is spread over
    batch: int  # rows per step
    since: int = 0  # steps before those that the running average is of


class Done(NamedTuple):
    """How far a pass has come."""

    state: Any
    t: int  # steps taken, those before this pass included
    rows: int  # of this pass


class Engine(Protocol):
    """Runs the update. It knows neither which loss nor which model it runs."""

    needs: tuple[str, ...]  # of a family: compiled functions or methods of its record

    def learn(
        self,
        state: Any,
        rule: Rule,
        t: int,
        data: Data,
        order: np.ndarray,
        figures: np.ndarray,
        chunk: int = 0,
    ) -> Iterator[Done]:
        """Take one pass over the rows in `order`, after `t` steps have been taken.

        Yields after each chunk of about so many rows (0: all), where a caller may show progress
        and an interruption is heard. The state given may be changed and must not be used again.
        `figures` is added to as rows are seen, see `discem.figures`.
        """
        ...

    def score(self, model: Any, rows: Any, order: np.ndarray | None = None) -> np.ndarray:
        """The scores ``ln p(y=k, x)`` of all rows, or of those in `order`, as (n, K)."""
        ...


def check_needs(engine: Engine, model: Any) -> None:
    """See that the family of a model has all that the engine needs."""
    family: Family = family_of(model.features)
    missing = [name for name in engine.needs if not family.provides(name)]
    if missing:
        raise OptionError(
            f"the family {family.name!r} lacks {', '.join(missing)}, "
            f"which the engine {type(engine).__name__} needs"
        )
