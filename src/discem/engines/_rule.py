"""What an engine is given, and what it tells: data, the rule of steps, how far a pass has come."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._checks import check_count, check_number, demand
from .._kinds import savable
from ..losses import resolve_loss
from ..projections import check_projection
from ..schedules import Schedule, sizes_at, step_sizes


class Data(NamedTuple):
    """Rows, what is known of their answers, and how much each counts."""

    rows: Any  # as the family views them
    targets: Any  # of `discem.targets`
    weights: np.ndarray

    def take(self, chosen: Any) -> Data:
        """Some of the rows, and what is known of them."""
        return Data(self.rows.take(chosen), self.targets.take(chosen), self.weights[chosen])

    def shuffled(self, rows: np.ndarray, rng: Any) -> Any:
        """An order to take some of the rows in, as engines take it."""
        return rng.permutation(rows)

    def in_sample(self, figures: np.ndarray, order: Any) -> tuple[np.ndarray, Data, Any]:
        """Figures of a pass, and rows that tell what it was of: here, all of them."""
        return figures, self, order


_MANY = 8  # rows of a step, whose sum is more certain than single precision is wrong
_MOVED = 0.4  # of the mass, at most, in a step of a batch that has grown, or of one of a part


@savable
class Rule(NamedTuple):
    """What the update is made of, beside the model."""

    loss: Any
    projection: Any
    schedule: Schedule  # step number -> step size
    n: float  # observations that the prior is spread over
    batch: int  # rows per step
    since: int = 0  # steps before those that the running average is of
    by_row: bool = False  # the schedule is that of single rows: a batch takes the sum of theirs
    most: int = 0  # rows per step, of the largest to which batches may grow; 0 if they may not

    def smoothed(self, width: float) -> Rule:
        """The rule for steps of several rows: its loss has no edges, but turns so many nats wide.

        At an edge all rows of a step would pull at the same class.
        """
        if not hasattr(self.loss, "smoothed"):
            return self
        return self._replace(loss=self.loss.smoothed(width))

    def steps(self, t: int, place: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sizes of the steps of some batches, and their weights in the running average.

        `place` is that of each batch in the pass, which comes after a count of `t`.
        """
        # by row, what comes before are whole batches, however many of them are asked for at a time
        number = t + (place * self.batch + rows if self.by_row else place + 1.0)
        rho, share = sizes_at(self.schedule, number), (number - self.since) ** 2
        if self.by_row:
            return rows * rho, rows * share
        return rho, share

    @property
    def is_large(self) -> bool:
        """Whether steps are of so many rows that single precision is enough for their sums."""
        return self.batch >= _MANY

    @property
    def grows(self) -> bool:
        """Whether batches become larger."""
        return self.by_row and self.most > self.batch

    def grown(self, t: int) -> Rule:
        """The rule after a count of `t`: as steps of rows become small, more of them are one step.

        As much is then moved in one step, and no more than in the first ones.
        """
        if not self.grows:
            return self
        rho = float(sizes_at(self.schedule, np.array([t + 1.0]))[0])
        return self._replace(batch=max(min(int(_MOVED / max(rho, 1e-9)), self.most), self.batch))

    def of_part(self, t: int, factor: float) -> Rule:
        """The rule of a part of the rows, whose steps after a count of `t` are so much longer.

        Each of its rows stands for several, so fewer of them are a step: no step moves so much that
        the rows in it, which were judged together, pull too far. A step that moves no more than one
        of the whole is never too long.
        """
        if not self.by_row or factor <= 1.0:
            return self
        rho = factor * float(sizes_at(self.schedule, np.array([t + 1.0]))[0])
        few = max(int(_MOVED / max(rho, 1e-9)), int(self.batch / factor), 1)
        return self._replace(batch=min(few, self.batch))

    def counted(self, rows: int) -> int:
        """How far a pass over so many rows counts."""
        return rows if self.by_row else -(-rows // self.batch)

    def check(self, t: int) -> None:
        """Refuse a rule that nobody can have given, after `t` steps; it may be from anywhere."""
        demand(not isinstance(self.loss, str), "the loss is a name only")
        resolve_loss(self.loss)
        check_projection(self.projection)
        demand(callable(self.schedule), "the schedule gives no steps")
        check_count("steps", t)
        step_sizes(self.schedule, t + 1, 1)
        check_number("n", self.n, above=0.0, kind=float)
        check_count("batch", self.batch, least=1)
        check_count("since", self.since, most=t)
        check_count("most", self.most)
        demand(isinstance(self.by_row, bool), "by_row is neither True nor False")


class Done(NamedTuple):
    """How far a pass has come."""

    state: Any
    t: int  # steps or rows counted, those before this pass included
    rows: int  # of this pass
