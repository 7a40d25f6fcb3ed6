"""Training: epochs, their order, when to stop, the best model, history, interruption.

The mathematics is elsewhere: a `Learner` owns a model in training and lets an engine run the one
update over rows; `train` decides what happens from epoch to epoch.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import models
from ._kinds import savable
from .engines import Data, Engine, Rule, Sequential, check_needs
from .engines.sequential import measure_all
from .families import family_of
from .figures import FIGURES, ROWS, SHORTENED, WEIGHT
from .losses import compiled_form
from .progress import Progress
from .schedules import step_sizes

MEASURED = ("loss", "nll", "ncll", "hinge", "accuracy")
WINDOW = 100  # batches of a stream that stay on record
_WORK = 2e7  # visits of numbers between two looks at the clock and at Ctrl-C

Record = dict[str, Any]


class Snapshot(NamedTuple):
    """A state to go back to."""

    state: Any
    t: int


@savable
class Learner:
    """A model in training: the only owner of its state.

    Parameters
    ----------
    state : state of a model
        It is changed in place, and keeps a running average if it was made to.
    rule : Rule
        Loss, projection, steps, the n that the prior is spread over, rows per step.
    engine : Engine, optional
    """

    def __init__(self, state: Any, rule: Rule, engine: Engine | None = None):
        self.engine: Engine = engine or Sequential()
        check_needs(self.engine, state)
        self.state = state
        self.rule = rule
        self.t = 0  # steps taken
        self.epochs = 0
        self.history: list[Record] = []
        self.stream: Record = {}  # the means of all batches of a stream, and their sums
        self._model: Any = None

    @property
    def model(self) -> Any:
        """The model to predict with: the average of the states where one is kept."""
        if self._model is None:
            self._model = models.averaged(self.state)
        return self._model

    @property
    def step_size(self) -> float:
        """The size of the last step taken."""
        return float(step_sizes(self.rule.schedule, max(self.t, 1), 1)[0])

    # --- the state --------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Keep what is there now."""
        return Snapshot(deepcopy(self.state), self.t)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, which may be used again."""
        self.state, self.t, self._model = deepcopy(snapshot.state), snapshot.t, None

    def restart(self, state: Any) -> None:
        """Go on from another state; where an average was kept, a new one starts."""
        if models.averages(self.state) and not models.averages(state):
            state = models.with_average(state, state, 0.0)
        self.state, self._model = state, None

    def forget(self, steps: int) -> None:
        """Let the average so far weigh what that of so many steps would, if one is kept."""
        if models.averages(self.state):
            weight = steps * (steps + 1) * (2 * steps + 1) / 6  # the sum of t^2
            past = models.averaged(self.state)
            self.state, self._model = models.with_average(self.state, past, weight), None
            self.rule = self.rule._replace(since=self.t - steps)

    # --- passes over rows -------------------------------------------------------------------------

    def learn(self, data: Data, order: np.ndarray, show: Callable | None = None) -> np.ndarray:
        """Take one pass, and return what was measured; `show(rows, figures)` may watch."""
        figures = np.zeros(len(FIGURES))
        for done in self.engine.learn(
            self.state, self.rule, self.t, data, order, figures, self._chunk(data.rows)
        ):
            self.state, self.t, self._model = done.state, done.t, None
            if show is not None:
                show(done.rows, figures)
        return figures

    def epoch(self, data: Data, order: np.ndarray, show: Callable | None = None) -> Record:
        """Take one pass, and put it on record."""
        begun = time.perf_counter()
        figures = self.learn(data, order, show)
        seconds = time.perf_counter() - begun
        self.epochs += 1
        record: Record = {"epoch": self.epochs} | self._summary(figures, data, order)
        record["step"] = self.step_size
        record["shortened"] = float(figures[SHORTENED] / max(figures[ROWS], 1.0))
        record["seconds"] = seconds
        self.history.append(record)
        return record

    def batch(self, data: Data, order: np.ndarray) -> Record:
        """Take one pass over the next rows of a stream; the last ones, and all, are on record."""
        record = self.epoch(data, order)
        del self.history[:-WINDOW]
        weight = float(data.weights[order][data.targets.labelled[order]].sum())
        parts = {"rows": len(order), "weight": weight, "seconds": record["seconds"], "batches": 1}
        sums = {name: self.stream.get(name, 0) + value for name, value in parts.items()}
        share = weight / max(sums["weight"], 1e-300)
        for name in MEASURED:
            mean = self.stream.get(name, 0.0)
            sums[name] = mean + share * (record[name] - mean)
        self.stream = sums
        return record

    def score(self, rows: Any, order: np.ndarray | None = None) -> np.ndarray:
        """The scores ``ln p(y=k, x)`` of all rows, or of those in `order`, as (n, K)."""
        return self.engine.score(self.model, rows, order)

    def measure(self, data: Data, order: np.ndarray, prefix: str) -> Record:
        """The figures of an epoch for given rows, at the model as it is."""
        scores, figures = self.score(data.rows, order), np.zeros(len(FIGURES))
        measure_all(
            scores, data.targets.take(order), compiled_form(self.rule.loss), data.weights[order],
            *np.empty((2, scores.shape[1])), figures,
        )  # fmt: skip
        summary = self._summary(figures, data, order)
        return {prefix + name: value for name, value in summary.items()}

    def _summary(self, figures: np.ndarray, data: Data, order: np.ndarray) -> Record:
        total = figures[WEIGHT] or max(figures[ROWS], 1.0)  # unlabelled rows have a loss alone
        means = {name: float(figures[FIGURES.index(name)] / total) for name in MEASURED}
        family = family_of(self.state.features)
        return means | family.extra_figures(figures, data.rows, order, data.weights)

    def _chunk(self, rows: Any) -> int:
        cells = rows.n_cells / max(rows.n_rows, 1)
        return max(int(_WORK / max(cells * models.work_per_cell(self.state), 1.0)), 1)

    # --- files ------------------------------------------------------------------------------------

    def to_fields(self) -> dict[str, Any]:
        """What a file says of a learner: all but the engine, which is not of the model."""
        history = json.dumps(self.history)  # thousands of small dicts are slow to write one by one
        fields = {"state": self.state, "rule": self.rule, "t": self.t, "epochs": self.epochs}
        return fields | {"history": history, "stream": json.dumps(self.stream)}

    @classmethod
    def from_fields(cls, state, rule, t=0, epochs=0, history="[]", stream="{}") -> Learner:
        learner = cls(state, rule)
        learner.t, learner.epochs, learner.history = t, epochs, json.loads(history)
        learner.stream = json.loads(stream)
        return learner


@dataclass(frozen=True)
class Plan:
    """How long to train, and who watches."""

    epochs: int
    tol: float | None = None  # share of the loss that must be gained ..
    patience: int = 10  # .. within so many epochs; None: all epochs
    shuffle: bool = True
    rescore: bool = False  # measure the training rows again after each epoch
    verbose: int = 0
    callback: Callable[[Record], bool] | None = None  # says whether to stop


def train(
    learner: Learner, data: Data, rows: np.ndarray, held: np.ndarray, plan: Plan, rng: Any
) -> None:
    """Train on `rows`, epoch after epoch; with rows `held` out, keep the model that is best there.

    After an interruption the learner has learnt what it has learnt so far.
    """
    best, kept, waited = np.inf, None, 0
    recent: deque[float] = deque(maxlen=plan.patience)
    progress = Progress(plan.verbose, plan.epochs, len(rows))
    for _ in range(plan.epochs):
        order = rng.permutation(rows) if plan.shuffle else rows
        record = learner.epoch(data, order, progress.rows)
        recent.append(record["loss"])
        watched = sum(recent) / len(recent)  # that of a single epoch is noisy
        if len(held):
            record |= learner.measure(data, held, "validation_")
            watched = record["validation_loss"]
        if plan.rescore:
            record |= learner.measure(data, rows, "rescored_")
        progress.epoch(record)
        stop = plan.callback is not None and plan.callback(record)
        if plan.tol is not None:
            enough = best - plan.tol * max(abs(best), 1e-2) if best < np.inf else best
            waited = 0 if watched < enough else waited + 1
        if watched < best and len(held):
            kept = learner.snapshot()
        best = min(best, watched)
        if stop or (plan.tol is not None and waited >= plan.patience):
            break
    if kept is not None:
        learner.restore(kept)
    progress.close()
