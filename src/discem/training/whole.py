"""Steps of all rows at once: for data so small that a step may look at all of them.

Each step is the method's natural gradient, in coordinates without bounds; a step that does not make
the penalised objective smaller is not taken. So training cannot end above its start, needs no step
size, and is the same on every run. Conjugate gradients come first: they are slow where columns are
correlated, but nothing leads them astray. After some steps in a row that went as planned the
objective is smooth enough for L-BFGS; whatever goes wrong begins anew.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..engines import Data, Rule
from ..engines.sequential import add_figures
from ..figures import FIGURES
from ..io.rows import joined
from ..models.free import placed, reach_of, slope_of, vector_of
from ..targets import Targets
from ..update import Judged, judge
from .learner import Learner

_REACH = 0.5  # the most that a step may move a coordinate: deviations of a mean, else logarithms
_MEMORY = 10  # pairs that quasi-Newton steps remember
_CALM = 3  # steps in a row that went as planned, before quasi-Newton steps are trusted
_LONGER, _SHORTER, _MOMENTUM = 1.2, 0.5, 0.95
_LEAST = 10  # steps before training may stop
_TINY = 1e-12
_COPIES, _AS_THEY_ARE = 4, 0.35  # of rows with hidden cells, and the weight of the rows themselves


class Place(NamedTuple):
    """A model, and the penalised objective where it stands."""

    model: Any
    judged: Judged
    vector: np.ndarray  # its free coordinates
    value: float  # mean loss + penalty / n
    gradient: np.ndarray
    metric: np.ndarray  # positive, by coordinate


class Descent:
    """Steps of all rows, each from the best place so far; each costs one pass over the rows."""

    def __init__(self, model: Any, rule: Rule, data: Data):
        self.rule, self.data = rule, data
        self.batch = model.read(data.rows)
        self.share = data.weights / max(float(data.weights.sum()), 1e-300)
        self.here = self._look(model)
        self.values = [self.here.value]
        self.conjugate, self.quasi, self.calm = Conjugate(self.here), QuasiNewton(), 0
        self.ended = False  # whether no step gains anything more

    def _look(self, model: Any, vector: np.ndarray | None = None) -> Place:
        judged = judge(self.rule.loss, model, self.batch, self.data.targets)
        value = float(self.share @ judged.losses) + model.penalty() / self.rule.n
        weights = judged.weights * self.share[:, None]
        slope = slope_of(model, self.batch, judged.posterior, weights, self.rule.n)
        vector = vector_of(model) if vector is None else vector
        return Place(model, judged, vector, value if np.isfinite(value) else np.inf, *slope)

    def step(self) -> None:
        """Try one step, and take it if it is downhill."""
        here, conjugate = self.here, self.conjugate
        trusted = self.calm >= _CALM and self.quasi.ready
        step = self.quasi.step(here) if trusted else conjugate.step()
        if not step @ here.gradient < 0 and conjugate.restart(here):  # rounding, or the end
            step, trusted = conjugate.step(), False
        short = np.minimum(1.0, _REACH / np.maximum(reach_of(here.model, step), 1e-300))
        model = placed(here.model, here.vector + short * step)
        there = self._look(model)
        if there.value < here.value:
            self.quasi.remember(here, there)
            conjugate.went(here, there, step, trusted)
            self.calm = self.calm + 1 if short.min(initial=1.0) == 1.0 else 0
            self.here = there
        else:
            self.calm = 0
            if trusted:
                self.quasi = QuasiNewton()
            else:
                conjugate.shorten(here, there, step)
            self.ended = not conjugate.restart(here)
        self.values.append(self.here.value)

    @property
    def left(self) -> float:
        """What more steps may still gain.

        The distance to the optimum falls like a power of the steps: at half of them it was some
        five times what it is now.
        """
        steps = len(self.values) - 1
        if self.ended:
            return 0.0
        return (self.values[steps // 2] - self.values[-1]) / 4.0 if steps >= _LEAST else np.inf


class Conjugate:
    """Natural gradients that keep their momentum (Fletcher and Reeves), and a length of step."""

    def __init__(self, here: Place):
        self.length = 1.0
        self.direction = -here.gradient / here.metric

    def step(self) -> np.ndarray:
        return self.length * self.direction

    def went(self, old: Place, new: Place, step: np.ndarray, trusted: bool) -> None:
        """Turn, after a step downhill; let the next be longer, unless this went too far."""
        before, now = old.gradient @ step, new.gradient @ step
        if not trusted:
            self.length *= _LONGER if now < 0 else max(_SHORTER, before / (before - now))
        natural = -new.gradient / new.metric
        size = old.gradient @ (old.gradient / old.metric)
        momentum = min(-(new.gradient @ natural) / max(size, 1e-300), _MOMENTUM)
        last = step / self.length if trusted else self.direction
        self.direction = natural + momentum * last

    def shorten(self, old: Place, new: Place, step: np.ndarray) -> None:
        """After a step uphill: where a parabola through what is known has its bottom."""
        rate = old.gradient @ step
        rise = new.value - old.value - rate
        bottom = -rate / (2.0 * rise) if np.isfinite(rise) and rise > 0 else 0.0
        self.length *= float(np.clip(bottom, 0.1, 0.5))

    def restart(self, here: Place) -> bool:
        """Forget momentum; return whether there is any way downhill."""
        self.direction = -here.gradient / here.metric
        return self.length > _TINY and bool(self.direction @ here.gradient < 0)


class QuasiNewton:
    """L-BFGS in coordinates that the metric scales where the model stands.

    What was learnt of the curvature in one place holds elsewhere in units of the metric: variances
    change by orders of magnitude on the way.
    """

    def __init__(self) -> None:
        self.pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=_MEMORY)
        self.scale = 1.0

    @property
    def ready(self) -> bool:
        return len(self.pairs) >= 2

    def remember(self, old: Place, new: Place) -> None:
        before, after = np.sqrt(old.metric), np.sqrt(new.metric)
        s = (new.vector - old.vector) * np.sqrt(before * after)
        y = new.gradient / after - old.gradient / before
        bent = float(s @ y)
        if bent > 1e-8 * np.sqrt((s @ s) * (y @ y)):
            self.pairs.append((s, y, bent))
            self.scale = bent / float(y @ y)

    def step(self, here: Place) -> np.ndarray:
        root = np.sqrt(here.metric)
        q, shares = here.gradient / root, []
        for s, y, bent in reversed(self.pairs):
            shares.append((s @ q) / bent)
            q = q - shares[-1] * y
        q = self.scale * q
        for (s, y, bent), share in zip(self.pairs, reversed(shares), strict=True):
            q = q + (share - (y @ q) / bent) * s
        return -q / root


def with_holes(data: Data, hide: Any, rng: Any) -> Data:
    """The rows as they are, and copies of them in which cells are hidden, once and for all."""
    copies = [hide(data.rows, rng, complete=0.0) for _ in range(_COPIES)]
    times, share = 1 + _COPIES, (1.0 - _AS_THEY_ARE) / _COPIES
    weights = [_AS_THEY_ARE * data.weights] + [share * data.weights] * _COPIES
    codes, given = data.targets
    given = given if data.targets.plain else np.tile(given, (times, 1))
    targets = Targets(np.tile(codes, times), given)
    return Data(joined([data.rows, *copies]), targets, np.concatenate(weights))


def descend(learner: Learner, data: Data, rule: Rule) -> Iterator[tuple[Any, float]]:
    """Take steps of all rows; yield the record of each, and what may still be gained.

    They end where they gain nothing more; the learner has the best state.
    """
    descent = Descent(learner.state, rule, data)
    order = np.arange(data.rows.n_rows)
    while not descent.ended:
        begun, before = time.perf_counter(), descent.here
        figures = np.zeros(len(FIGURES))
        add_figures(figures, before.judged, data)
        descent.step()
        if descent.here is not before:
            learner.accept(descent.here.model, len(order))
        length = float(descent.conjugate.length)
        record = learner.put_on_record(figures, data, order, length, begun)
        record["objective"] = descent.here.value
        yield record, descent.left
