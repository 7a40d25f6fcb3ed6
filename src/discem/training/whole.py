"""The whole batch with a line search: for data so small that a step may look at all of them.

Each step is that of the one update for all rows at once, plus a share of the last move (momentum).
It is kept if the penalised objective fell; else the momentum is dropped and the step shortened. So
training cannot end above its start, needs no step size, and is the same on every run.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..engines import Data, Rule
from ..engines.sequential import add_figures
from ..figures import FIGURES, ROWS, SHORTENED
from ..io.rows import copied, joined
from ..projections import Interior
from ..targets import Targets
from ..update import Judged, judge, move
from .learner import Learner

_FIRST, _LONGER, _SHORTER = 1.0, 1.4, 0.5  # step sizes: the first, after a gain, after a loss
_MOMENTUM = 0.9
_SMALLEST = 1e-9  # a step that does not gain even so is at an optimum
WINDOW = 10  # steps that together gain less than tol are the last
_COPIES, _AS_THEY_ARE = 4, 0.35  # of rows with hidden cells, and the weight of the rows themselves


class Descent:
    """Steps of the whole batch, each from the last state that was better than all before."""

    def __init__(self, model: Any, rule: Rule, data: Data):
        self.rule, self.data = rule, data
        self.batch = model.read(data.rows)
        self.weight = max(float(data.weights.sum()), 1e-300)
        self.size, self.momentum, self.last, self.shortened = _FIRST, 0.0, None, 0
        self.model, self.judged, self.value = model, *self._look(model)

    def _look(self, model: Any) -> tuple[Judged, float]:
        judged = judge(self.rule.loss, model, self.batch, self.data.targets)
        loss = float(self.data.weights @ judged.losses) / self.weight
        value = loss + model.penalty() / self.rule.n
        return judged, value if np.isfinite(value) else np.inf

    def step(self) -> bool:
        """Try a step; return whether it was better."""
        model = copied(self.model) if self.model.is_in_place else self.model
        model, self.shortened = move(
            model, self.batch, self.judged, self.data.weights, self.rule, self.size
        )
        if self.last is not None and self.momentum:
            model = model.pushed(self.model, self.last, self.momentum)
        judged, value = self._look(model)
        if value < self.value:
            self.last, self.model, self.judged, self.value = self.model, model, judged, value
            self.momentum = _MOMENTUM
            self.size *= _LONGER if self.size < 4 else 1.0
            return True
        if self.momentum and self.last is not None:
            self.last = None
        else:
            self.size *= _SHORTER
        return False

    @property
    def ended(self) -> bool:
        """Whether steps have become too small to gain anything."""
        return self.size < _SMALLEST


def with_holes(data: Data, hide: Any, rng: Any) -> Data:
    """The rows as they are, and copies of them in which cells are hidden, once and for all."""
    copies = [hide(data.rows, rng, complete=0.0) for _ in range(_COPIES)]
    times, share = 1 + _COPIES, (1.0 - _AS_THEY_ARE) / _COPIES
    weights = [_AS_THEY_ARE * data.weights] + [share * data.weights] * _COPIES
    codes, given = data.targets
    given = given if data.targets.plain else np.tile(given, (times, 1))
    targets = Targets(np.tile(codes, times), given)
    return Data(joined([data.rows, *copies]), targets, np.concatenate(weights))


def descend(learner: Learner, data: Data, rule: Rule) -> Any:
    """Take steps of the whole batch, and yield the record of each; the learner has the best state.

    They end where they gain nothing more.
    """
    plain = Interior(rule.projection.share, damping=0.0)
    descent = Descent(learner.state, rule._replace(projection=plain), data)
    order = np.arange(data.rows.n_rows)
    while not descent.ended:
        begun = time.perf_counter()
        figures, judged = np.zeros(len(FIGURES)), descent.judged
        add_figures(figures, judged, data)
        size = descent.size
        if descent.step():
            learner.accept(descent.model, len(order))
        figures[SHORTENED] = figures[ROWS] if descent.shortened else 0.0
        record = learner.put_on_record(figures, data, order, size, begun)
        record["objective"] = descent.value
        yield record
