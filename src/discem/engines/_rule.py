"""The input and output of engines: data, the rule of steps, and the progress of a pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._checks import check_count, check_number, demand
from .._kinds import savable
from ..losses import resolve_loss
from ..projections import check_projection
from ..schedules import Schedule, sizes_at, step_sizes


class Data(NamedTuple):
    """Rows, their targets, and their weights."""

    rows: Any  # in the form of the family's `view`
    targets: Any  # see `discem.targets`
    weights: np.ndarray

    def take(self, chosen: Any) -> Data:
        """Return the given rows with their targets and weights."""
        return Data(self.rows.take(chosen), self.targets.take(chosen), self.weights[chosen])

    def shuffled(self, rows: np.ndarray, rng: Any) -> Any:
        """Return a random order of the rows, in the form that engines take."""
        return rng.permutation(rows)

    def in_sample(self, figures: np.ndarray, order: Any) -> tuple[np.ndarray, Data, Any]:
        """Return the figures of a pass, and the rows they belong to: here, all rows of the pass."""
        return figures, self, order


_MANY = 8  # rows per step from which single precision is enough for their sum
_MOVED = 0.4  # the largest share of the mass in a step of a batch that has grown, or of a part


@savable
class Rule(NamedTuple):
    """The parts of the update, beside the model."""

    loss: Any
    projection: Any
    schedule: Schedule  # step number -> step size
    n: float  # number of observations that share the prior
    batch: int  # rows per step
    since: int = 0  # steps before the running average starts
    by_row: bool = False  # the schedule is for single rows; a batch takes the sum of their steps
    most: int = 0  # the largest number of rows per step to which batches may grow; 0: no growth

    def smoothed(self, width: float) -> Rule:
        """Return the rule for steps of several rows: the loss has corners `width` nats wide.

        With sharp corners, all rows of a step could pull at the same class.
        """
        if not hasattr(self.loss, "smoothed"):
            return self
        return self._replace(loss=self.loss.smoothed(width))

    def steps(self, t: int, place: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the step sizes of some batches, and their weights in the running average.

        `place` is the position of each batch in the pass, which starts after a count of `t`.
        """
        # with `by_row`, the earlier batches are full, however many are asked for at a time
        number = t + (place * self.batch + rows if self.by_row else place + 1.0)
        rho, share = sizes_at(self.schedule, number), (number - self.since) ** 2
        if self.by_row:
            return rows * rho, rows * share
        return rho, share

    @property
    def is_large(self) -> bool:
        """Return whether steps have so many rows that single precision is enough for their sums."""
        return self.batch >= _MANY

    @property
    def grows(self) -> bool:
        """Return whether batches grow."""
        return self.by_row and self.most > self.batch

    def grown(self, t: int) -> Rule:
        """Return the rule after a count of `t`: as steps of rows shrink, a batch takes more rows.

        One step then moves as much as before, and no more than the first steps.
        """
        if not self.grows:
            return self
        rho = float(sizes_at(self.schedule, np.array([t + 1.0]))[0])
        return self._replace(batch=max(min(int(_MOVED / max(rho, 1e-9)), self.most), self.batch))

    def of_part(self, t: int, factor: float) -> Rule:
        """Return the rule of a part of the rows, whose steps after `t` are longer by `factor`.

        Each row of the part represents several rows, so a step takes fewer of them. This limits how
        far rows that are judged together can pull. A step that moves no more than one of the whole
        is never too long.
        """
        if not self.by_row or factor <= 1.0:
            return self
        rho = factor * float(sizes_at(self.schedule, np.array([t + 1.0]))[0])
        few = max(int(_MOVED / max(rho, 1e-9)), int(self.batch / factor), 1)
        return self._replace(batch=min(few, self.batch))

    def counted(self, rows: int) -> int:
        """Return how much a pass over this number of rows adds to the count."""
        return rows if self.by_row else -(-rows // self.batch)

    def check(self, t: int) -> None:
        """Validate the rule after `t` steps; it may come from any file."""
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
    """The progress of a pass."""

    state: Any
    t: int  # steps or rows counted, including earlier passes
    rows: int  # of this pass
