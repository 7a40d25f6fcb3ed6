"""A model in training: passes over rows, their figures, and snapshots to return to."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .._checks import check_count, check_plain, demand
from .._kinds import savable
from ..engines import Data, Rule, Sequential
from ..figures import FIGURES, ROWS, SHORTENED, WEIGHT
from ..io.rows import copied, owned
from ..models import Mixture
from ..schedules import step_sizes

MEASURED = ("loss", "nll", "ncll", "hinge", "accuracy")
WINDOW = 100  # batches of a stream that stay in the record
_ROUNDING = 1e-12
_SAMPLE = 2000  # rows of the sample that represents larger data
_WORK = 2e7  # visits of numbers between two checks of the clock and of Ctrl-C

Record = dict[str, Any]


class Objective(NamedTuple):
    """The objective of training: the mean loss of rows, plus the penalty spread over all rows."""

    losses: np.ndarray  # of each row, times its weight
    weight: float  # of all these rows
    penalty: float

    @property
    def value(self) -> float:
        return float(self.losses.sum()) / self.weight + self.penalty

    def rise(self, before: Objective) -> tuple[float, float]:
        """Return the rise above an earlier objective of the same rows, and its standard error."""
        change = (self.losses - before.losses) * (len(self.losses) / self.weight)
        rise = float(change.mean()) + self.penalty - before.penalty
        if abs(rise) <= _ROUNDING * max(abs(self.value), abs(self.penalty)):
            rise = 0.0
        return rise, float(change.std()) / len(change) ** 0.5


class Snapshot(NamedTuple):
    """A state that training can return to."""

    state: Any
    t: int
    since: int  # the step from which on states are averaged


@savable
class Learner:
    """A model in training: the only owner of its state.

    Parameters
    ----------
    state : state of a model
        It is changed in place. It keeps a running average if it has one.
    rule : Rule
        Loss, projection, steps, the number of rows that share the prior, rows per step.
    engine : Sequential, or one like it, optional
    """

    _light = False  # whether large tables are in single precision

    def __init__(self, state: Any, rule: Rule, engine: Sequential | None = None):
        self.engine: Sequential = engine or Sequential()
        self.state = state
        self.rule = rule
        self.t = 0  # steps taken
        self.epochs = 0
        self.history: list[Record] = []
        self.stream: Record = {}  # means over all batches of a stream, and their sums
        self._model: Any = None
        self._own: Any = None  # the last state whose arrays this learner owns

    @property
    def model(self) -> Any:
        """Return the model for predictions: the average of the states if one is kept."""
        if self._model is None:
            self._model = self.state.averaged()
        return self._model

    @property
    def step_size(self) -> float:
        """The size of the last step taken."""
        return float(step_sizes(self.rule.schedule, max(self.t, 1), 1)[0])

    # --- the state --------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the current state."""
        return Snapshot(copied(self.state), self.t, self.rule.since)

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a snapshot, which stays usable."""
        self.state, self.t, self._model = copied(snapshot.state), snapshot.t, None
        self.rule = self.rule._replace(since=snapshot.since)

    def restart(self, state: Any) -> None:
        """Continue from another state; if an average was kept, a new one starts."""
        if self.state.averages and not state.averages:
            state = state.with_average()
        self.state, self._model = state, None

    def accept(self, state: Any, rows: int) -> None:
        """Take a state that was trained on this number of rows."""
        self.state, self._model = state, None
        self.t += self.rule.counted(rows)

    def own(self) -> None:
        """Copy the state into writable memory; a loaded pickle may share memory with its file."""
        if self.state is not self._own:  # a stream of single rows would ask for each of them
            self.state, self._model = owned(self.state), None

    @contextmanager
    def in_single_precision(self) -> Iterator[None]:
        """Keep large tables in single precision within a `with`, if the engine uses host memory."""
        if not self.engine.in_place:
            yield
            return
        self._light = True
        try:
            self.state, self._model = self.state.in_precision(np.float32), None
            yield
        finally:
            self.state, self._model = self._in_full(), None
            self._light = False

    def _in_full(self) -> Any:
        """The state in double precision: a callback may save it in the midst of a fit."""
        return self.state.in_precision(np.float64) if self._light else self.state

    def average(self) -> None:
        """Start a running average, if there is none."""
        if not self.state.averages:
            self.state, self._model = self.state.with_average(), None

    def forget(self, steps: int) -> None:
        """Give the average so far the weight of an average of `steps` steps, if one is kept."""
        if self.state.averages:
            weight = steps * (steps + 1) * (2 * steps + 1) / 6  # the sum of t^2
            self.state, self._model = self.state.reweighed(weight), None
            self.rule = self.rule._replace(since=self.t - steps)

    # --- passes over rows -------------------------------------------------------------------------

    def learn(self, data: Any, order: Any, show: Callable | None = None) -> np.ndarray:
        """Take one pass and return its figures; `show(rows, figures)` is called on the way.

        `data` are rows in this process or on workers; `order` is the result of `shuffled`, or the
        rows.
        """
        figures = np.zeros(len(FIGURES))
        self.own()
        self._model = None  # before anything else: Ctrl-C may come after the state has changed
        for done in self.engine.learn(
            self.state, self.rule, self.t, data, order, figures, self._chunk(data.rows)
        ):
            self.state, self.t, self._model = done.state, done.t, None
            self._own = self.state
            if show is not None:
                show(done.rows, figures)
        return figures

    def epoch(self, data: Any, order: Any, show: Callable | None = None) -> Record:
        """Take one pass, and record its figures."""
        begun = time.perf_counter()
        figures = self.learn(data, order, show)
        return self.put_on_record(figures, data, order, self.step_size, begun)

    def look(self, data: Data, order: np.ndarray, show: Callable | None = None) -> Record:
        """Record the figures of a pass without learning."""
        begun = time.perf_counter()
        figures, _ = self._measure(data, order)
        if show is not None:
            show(len(order), figures)
        return self.put_on_record(figures, data, order, 0.0, begun)

    def put_on_record(self, figures, data: Any, order, step: float, begun: float) -> Record:
        """Record the figures of a pass."""
        self.epochs += 1
        record: Record = {"epoch": self.epochs} | self._summary(figures, data, order)
        record["step"] = step
        record["shortened"] = float(figures[SHORTENED] / max(figures[ROWS], 1.0))
        record["seconds"] = time.perf_counter() - begun
        self.history.append(record)
        return record

    def batch(self, data: Data, order: np.ndarray) -> Record:
        """Take one pass over the next rows of a stream; record the last batches, and the totals."""
        record = self.epoch(data, order)
        del self.history[:-WINDOW]
        weight = float(data.weights[order][data.targets.labelled[order]].sum())
        parts = {"rows": len(order), "weight": weight, "seconds": record["seconds"], "batches": 1}
        sums = {name: self.stream.get(name, 0) + value for name, value in parts.items()}
        share = weight / max(sums["weight"], 1e-300)
        for name in filter(record.__contains__, MEASURED):
            mean = self.stream.get(name, 0.0)
            sums[name] = mean + share * (record[name] - mean)
        self.stream = sums
        return record

    def score(self, rows: Any, order: np.ndarray | None = None) -> np.ndarray:
        """Return the scores ``ln p(y=k, x)`` of all rows, or of those in `order`, as (n, K)."""
        return self.engine.score(self.model, rows, order)

    def measure(self, data: Data, order: np.ndarray, prefix: str) -> Record:
        """Return the figures of an epoch for the given rows, under the current model."""
        summary = self._summary(self._measure(data, order)[0], data, order)
        return {prefix + name: value for name, value in summary.items()}

    def objective(self, data: Data, order: np.ndarray) -> Objective:
        """Return the objective of the rows in `order`, under the current model."""
        _, losses = self._measure(data, order)
        weight = max(float(data.weights[order].sum()), 1e-300)
        return Objective(losses, weight, self.model.penalty() / self.rule.n)

    def _measure(self, data: Data, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the figures of all rows in `order`, and the loss of each."""
        figures = np.zeros(len(FIGURES))
        return figures, self.engine.measure(self.model, self.rule.loss, data, order, figures)

    def _summary(self, figures: np.ndarray, data: Any, order: Any) -> Record:
        total = figures[WEIGHT] or max(figures[ROWS], 1.0)  # unlabelled rows only have a loss
        means = {name: float(figures[FIGURES.index(name)] / total) for name in MEASURED}
        family = self.state.family
        figures, data, order = data.in_sample(figures, order)
        if not data.targets.has_classes:
            means = {name: means[name] for name in ("loss", "nll", "ncll")}
        return means | family.extra_figures(figures, data.rows, order, data.weights)

    def _chunk(self, rows: Any) -> int:
        cells = rows.n_cells / max(rows.n_rows, 1)
        return max(int(_WORK / max(cells * self.state.work_per_cell, 1.0)), 1)

    # --- files ------------------------------------------------------------------------------------

    def check(self, n_classes: int, n_features: Any) -> None:
        """Validate the state of training, which may come from any file."""
        kind = type(self.state).__name__
        demand(isinstance(self.state, Mixture), f"it holds a {kind} where a model belongs")
        self._in_full().check(n_classes, n_features)
        demand(isinstance(self.rule, Rule), "it has no rule to learn by")
        self.rule.check(self.t)
        check_count("epochs", self.epochs)
        demand(isinstance(self.history, list), "what is on record of its training is no list")
        for record in (*self.history, self.stream):
            demand(isinstance(record, dict), "what is on record of its training is no record")
            check_plain("the record of its training", record)
        for name, value in self.stream.items():
            demand(isinstance(value, int | float), f"{name} of the stream is not a number")

    def __getstate__(self) -> dict[str, Any]:
        full = {"state": self._in_full(), "_light": False}  # a callback may copy the model
        return self.__dict__ | full | {"_model": None, "_own": None}

    def to_fields(self) -> dict[str, Any]:
        """Return what a file stores of a learner: all but the engine and the training time.

        Engine and time are left out so that the same training gives the same file.
        """
        # thousands of small dicts are slow to write one by one
        history = json.dumps([_untimed(record) for record in self.history])
        fields = {"state": self._in_full(), "rule": self.rule, "t": self.t, "epochs": self.epochs}
        return fields | {"history": history, "stream": json.dumps(_untimed(self.stream))}

    @classmethod
    def from_fields(cls, state, rule, t=0, epochs=0, history="[]", stream="{}") -> Learner:
        learner = cls(state, rule)
        learner.t, learner.epochs, learner.history = t, epochs, json.loads(history)
        learner.stream = json.loads(stream)
        return learner


def sample_of(rows: np.ndarray) -> np.ndarray:
    """Return a small sample of the rows, always the same, or all rows if there are few."""
    if len(rows) <= _SAMPLE:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, _SAMPLE, replace=False))


def best_start(
    states: list[Any], rule: Rule, data: Data, engine: Sequential | None = None
) -> Learner:
    """Return a learner at the state with the smallest objective, on a sample of the rows."""
    learners = [Learner(state, rule, engine) for state in states]
    if len(learners) == 1:
        return learners[0]
    rows = sample_of(np.flatnonzero(data.weights > 0))
    return min(learners, key=lambda learner: learner.objective(data, rows).value)


def _untimed(record: Record) -> Record:
    return {name: value for name, value in record.items() if name != "seconds"}
