"""When training stops, and what it goes back to where its steps lead astray."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engines import Data
from ..exceptions import warn
from ..schedules import scale
from .learner import Learner, Objective, Record, sample_of

_SHORTER = 0.25  # of the steps, after they have led astray
_CERTAIN = 3.0  # standard errors
_LOST = 0.05  # of what the best epoch had gained: steps that lose more lead astray


class Patience:
    """When to stop: there is no more to hope for, for several epochs in a row."""

    def __init__(self, tol: float | None, patience: int, least: float = 0.0):
        self.tol, self.patience = tol, patience
        self.least = least  # epochs before there is anything to be seen
        self.epochs = 0
        self.forget()

    def forget(self) -> None:
        """Begin anew, from another state."""
        self._best, self._waited = np.inf, 0
        self._trace: list[float] = []
        self._recent: deque[float] = deque(maxlen=self.patience)

    def calm(self, loss: float) -> float:
        """The mean of the last losses: that of a single epoch is noisy."""
        self._recent.append(loss)
        return sum(self._recent) / len(self._recent)

    def ends(self, loss: float) -> bool:
        """Whether a share `tol` of the loss was not gained for too long."""
        enough = np.inf
        if self._best < np.inf:
            enough = self._best - (self.tol or 0.0) * max(abs(self._best), 1e-2)
        return self._wait(loss < enough, loss)

    def ends_calmly(self, objective: float) -> bool:
        """Whether less than `tol` is left to gain.

        The distance to the optimum falls like a power of the epochs: at half of them it was some
        five times what it is now.
        """
        self._trace.append(objective)
        left = abs(self._trace[len(self._trace) // 2 - 1] - objective) / 4.0
        early = len(self._trace) < max(self.least, 2)
        return self._wait(early or left >= (self.tol or 0.0), objective)

    def _wait(self, gained: bool, value: float) -> bool:
        self.epochs += 1
        self._waited = 0 if gained else self._waited + 1
        self._best = min(self._best, value)
        return self.tol is not None and self._waited >= self.patience


class Guard:
    """Training must not end above where it began.

    It watches a sample of the rows, or what the passes themselves have measured, and looks at all
    rows only where these leave a doubt. Where an average of parameters is watched, what is gone
    back to is the best epoch so far; else the start.
    """

    def __init__(self, learner: Learner, data: Data, rows: np.ndarray, plan: Any):
        self.learner, self.data, self.rows, self.guarded = learner, data, rows, plan.guarded
        self.failed, self.schedule = False, learner.rule.schedule
        self.tol = plan.tol or 1e-3  # what is no loss
        self.active = not plan.solved and (plan.guarded or plan.tol is not None)
        if not self.active:
            return
        self.sample = sample_of(rows)
        self.start = self.best = learner.snapshot()
        self.begun = learner.objective(data, self.sample)
        self.least = self.begun.value
        self.whole: Objective | None = self.begun if self.sample is rows else None

    def watch(self, record: Record) -> bool:
        """Put the objective on record; where it is above the start, go back there, if we may."""
        if not self.active:
            return False
        now = None
        if self.learner.state.averages:
            now = self.learner.objective(self.data, self.sample)
            record["objective"] = now.value
            suspect = not now.rise(self.begun)[0] <= 0  # also if it is not a number
            lost = now.value - self.least
            if lost < 0:
                self.best, self.least = self.learner.snapshot(), now.value
            astray = lost > _LOST * (self.begun.value - self.least) + self.tol
        else:
            suspect = not record["loss"] <= float(self.begun.losses.sum()) / self.begun.weight
            astray = False
        if not (self.guarded and (astray or (suspect and self._rose(now)))):
            return False
        self._begin_again()
        record["went_back"] = 1.0
        return True

    def end(self, last: float) -> None:
        """Go back to the best epoch if the objective of the last is above; see that it gained.

        What comes next, such as a stream, takes its own steps, not those shortened here.
        """
        self.learner.rule = self.learner.rule._replace(schedule=self.schedule)
        if self.active and self.guarded and last > self.least + self.tol:
            self._go_back()
        if not self.active or not self._rose():
            return
        if self.best is not self.start:
            self._go_back()
            if not self._rose():
                return
        self.failed = True
        self.best = self.start
        self._go_back()
        warn(
            "training found nothing better than its start"
            + (", which was kept" if self.guarded else "; try smaller steps, or step='auto'"),
            ConvergenceWarning,
        )

    def _go_back(self) -> None:
        if self.guarded:
            self.learner.restore(self.best)

    def _begin_again(self) -> None:
        """From the best average, if one is kept: the states that it is of lay about it."""
        self._go_back()
        if self.learner.state.averages:
            self.learner.restart(self.learner.model)
        rule = self.learner.rule
        self.learner.rule = rule._replace(
            schedule=scale(rule.schedule, _SHORTER), since=self.learner.t
        )

    def _rose(self, now: Objective | None = None) -> bool:
        """Whether the objective, `now` by the sample, is above the start's; by all if need be."""
        now = now or self.learner.objective(self.data, self.sample)
        rise, error = now.rise(self.begun)
        if self.sample is self.rows or not abs(rise) <= _CERTAIN * error:
            return not rise <= 0
        now = self.learner.objective(self.data, self.rows)
        if self.whole is None:
            state = self.learner.snapshot()
            self.learner.restore(self.start)
            self.whole = self.learner.objective(self.data, self.rows)
            self.learner.restore(state)
        return not now.rise(self.whole)[0] <= 0
