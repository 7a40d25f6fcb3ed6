"""Decide when training stops, and which state to return to if its steps diverge."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engines import Data
from ..exceptions import warn
from ..schedules import scale
from .learner import Learner, Objective, Record, sample_of

_SHORTER = 0.25  # factor of the steps after they have diverged
_CERTAIN = 3.0  # standard errors
_LOST = 0.05  # of the gain of the best epoch: steps that lose more than this have diverged


class Patience:
    """Stop training after several epochs in a row with too little to gain."""

    def __init__(self, tol: float | None, patience: int, least: float = 0.0):
        self.tol, self.patience = tol, patience
        self.least = least  # epochs before the first judgement
        self.epochs = 0
        self.forget()

    def forget(self) -> None:
        """Start again from another state."""
        self._best, self._waited = np.inf, 0
        self._trace: list[float] = []
        self._recent: deque[float] = deque(maxlen=self.patience)

    def calm(self, loss: float) -> float:
        """Return the mean of the last losses, as the loss of a single epoch is noisy."""
        self._recent.append(loss)
        return sum(self._recent) / len(self._recent)

    def ends(self, loss: float) -> bool:
        """Return whether the loss has not fallen by a share `tol` for too many epochs."""
        enough = np.inf
        if self._best < np.inf:
            enough = self._best - (self.tol or 0.0) * max(abs(self._best), 1e-2)
        return self._wait(loss < enough, loss)

    def ends_calmly(self, objective: float) -> bool:
        """Return whether less than `tol` is left to gain.

        The distance to the optimum falls like a power of the epochs: after half of them, it was
        about five times the present distance.
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
    """Ensure that training does not end above its start.

    The guard watches the objective of a sample of rows, or the figures of the passes. It checks all
    rows only if these are inconclusive. If it watches an average of parameters, it returns to the
    best epoch so far, otherwise to the start.
    """

    def __init__(self, learner: Learner, data: Data, rows: np.ndarray, plan: Any):
        self.learner, self.data, self.rows, self.guarded = learner, data, rows, plan.guarded
        self.failed, self.schedule = False, learner.rule.schedule
        self.tol = plan.tol or 1e-3  # a smaller rise does not count as a loss
        self.active = not plan.solved and (plan.guarded or plan.tol is not None)
        if not self.active:
            return
        self.sample = sample_of(rows)
        self.start = self.best = learner.snapshot()
        self.begun = learner.objective(data, self.sample)
        self.least = self.begun.value
        self.whole: Objective | None = self.begun if self.sample is rows else None

    def watch(self, record: Record) -> bool:
        """Record the objective; return to an earlier state if it has risen and this is allowed."""
        if not self.active:
            return False
        now = None
        if self.learner.state.averages:
            now = self.learner.objective(self.data, self.sample)
            record["objective"] = now.value
            suspect = not now.rise(self.begun)[0] <= 0  # also true if it is NaN
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
        """Return to the best epoch if the last objective is above it; warn if nothing was gained.

        Later training, such as a stream, uses its own steps, not those shortened here.
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
        """Restart with shorter steps, from the best average if one is kept."""
        self._go_back()
        if self.learner.state.averages:
            self.learner.restart(self.learner.model)
        rule = self.learner.rule
        self.learner.rule = rule._replace(
            schedule=scale(rule.schedule, _SHORTER), since=self.learner.t
        )

    def _rose(self, now: Objective | None = None) -> bool:
        """Return whether the objective is above the start; `now` is that of the sample."""
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
