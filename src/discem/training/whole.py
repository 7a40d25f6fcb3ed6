"""Steps of all rows at once: for data so small that each step can use all rows.

Each step is a natural gradient of the method, in unbounded coordinates. A step is rejected unless
it reduces the penalised objective. So training cannot end above its start, needs no step size, and
gives the same result on every run. It begins with conjugate gradients, which are slow for
correlated columns but robust. After several accepted steps in a row the objective is smooth enough
for L-BFGS. After a rejected step it starts again with conjugate gradients.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._arrays import beside
from ..engines import Data, Rule, Sequential, one_thread_each
from ..engines.sequential import add_figures
from ..figures import FIGURES
from ..io.rows import joined
from ..models.free import placed, reach_of, slope_of, sums_of, vector_of
from ..update import judge
from .learner import Learner

_REACH = 0.5  # the longest step of a coordinate: in deviations for means, else in logarithms
_MEMORY = 10  # pairs that quasi-Newton steps remember
_CALM = 3  # accepted steps in a row before quasi-Newton steps are used
_LONGER, _SHORTER, _MOMENTUM = 1.2, 0.5, 0.95
_LEAST = 10  # steps before training may stop
_TINY = 1e-12
_ROUNDING = 1e-6  # nats per row
_OF_A_PART = 4  # a part may take one of so many of the remaining steps
_WIDTH = 1.0  # nats: the width of smoothed corners of a loss; narrower ones fit noise
_KEPT = 1 << 24  # the most cells whose statistics are kept
_COPIES = 2  # copies of rows with hidden cells; one is enough
_MANY = 4_000  # .. from so many rows on
_AS_THEY_ARE = 0.35  # the weight of the complete rows
_FRESH = 5  # steps after which other cells are hidden
_AVERAGED = 4  # draws of hidden cells whose last models are averaged
_FIRST, _GROWTH = 2_000, 4  # rows of the first part of large data, and the growth of parts
_OF_A_CLASS = 20  # rows of each class in every part, at least


class Place(NamedTuple):
    """A model, and the penalised objective and its derivatives there."""

    model: Any
    vector: np.ndarray  # its free coordinates
    value: float  # mean loss + penalty / n
    gradient: np.ndarray
    metric: np.ndarray  # positive, for each coordinate
    figures: np.ndarray  # of a pass over the rows


class Seen(NamedTuple):
    """The results of a pass over some of the rows."""

    loss: Any
    sums: list[tuple]  # see `sums_of`
    figures: Any


class Passes:
    """Passes over the same rows; if there are few rows, their statistics are kept between passes.

    The engine keeps the rows where it works, and results come back here. An engine with threads
    reads several parts at the same time; results are added in a fixed order.
    """

    def __init__(self, model: Any, rule: Rule, data: Data, engine: Sequential):
        self.rule, self.data, self.engine = rule, data, engine
        self.weight = max(float(data.weights.sum()), 1e-300)
        size, n = engine.rows_at_once(data.rows, model), data.rows.n_rows
        self.cuts = [slice(i, i + size) for i in range(0, n, size)]
        self.jobs = min(engine.n_jobs, len(self.cuts))
        self.there, model = engine.moved(data), engine.placed(model)
        self.kept = [self._read(model, cut) for cut in self.cuts] if self._keeps else []

    @property
    def _keeps(self) -> bool:
        return self.data.rows.n_cells <= _KEPT

    def _read(self, model: Any, cut: slice) -> tuple[Data, Any]:
        some = self.engine.moved(self.there.take(cut))
        return some, model.read(some.rows)

    def look(self, model: Any, vector: np.ndarray | None = None) -> Place:
        """Take a pass over the rows."""
        places, there = range(len(self.cuts)), self.engine.placed(model)
        if self.jobs == 1:
            seen = _added(self._look(there, place) for place in places)
        else:
            with one_thread_each(), ThreadPoolExecutor(self.jobs) as pool:
                seen = _added(pool.map(lambda place: self._look(there, place), places))
        seen = self.engine.fetched(seen)
        value = seen.loss / self.weight + model.penalty() / self.rule.n
        gradient, metric = slope_of(model, seen.sums, self.rule.n)
        vector = vector_of(model) if vector is None else vector
        value = value if np.isfinite(value) else np.inf
        return Place(model, vector, value, gradient, metric, seen.figures)

    def _look(self, model: Any, place: int) -> Seen:
        some, batch = self.kept[place] if self.kept else self._read(model, self.cuts[place])
        judged = judge(self.rule.loss, model, batch, some.targets)
        figures = beside(np.zeros(len(FIGURES)), judged.losses)
        add_figures(figures, judged, some)
        weights = judged.weights * (some.weights / self.weight)[:, None]
        sums = sums_of(model, batch, judged.posterior, weights)
        return Seen(some.weights @ judged.losses, sums, figures)


def _added(found: Iterable[Seen]) -> Seen:
    """Add the results of all rows; later results are added to the first."""
    first, *others = found
    for each in others:
        pairs = zip(first.sums, each.sums, strict=True)
        sums = [tuple(a + b for a, b in zip(own, other, strict=True)) for own, other in pairs]
        first = Seen(first.loss + each.loss, sums, first.figures + each.figures)
    return first


class Descent:
    """Steps of all rows, each from the best place so far; each step costs one pass."""

    def __init__(
        self,
        model: Any,
        rule: Rule,
        data: Data,
        engine: Sequential,
        quasi: QuasiNewton | None = None,
    ):
        self.passes = Passes(model, rule, data, engine)
        quasi = quasi or QuasiNewton()
        self.here = self.passes.look(model)
        self.values = [self.here.value]
        self.conjugate, self.quasi = Conjugate(self.here), quasi
        self.calm = _CALM if quasi.ready else 0  # other rows have about the same curvature
        self.ended = False  # whether no step improves the objective any more

    def turn_to(self, data: Data) -> None:
        """Continue with other rows of the same kind, and keep the estimate of the curvature."""
        here = self.here
        self.passes = Passes(here.model, self.passes.rule, data, self.passes.engine)
        self.here = self.passes.look(here.model, here.vector)
        shift = self.here.value - here.value
        self.values = [value + shift for value in self.values]
        self.ended = False

    def step(self) -> None:
        """Try one step, and accept it if it reduces the objective."""
        here, conjugate = self.here, self.conjugate
        trusted = self.calm >= _CALM and self.quasi.ready
        step = self.quasi.step(here) if trusted else conjugate.step()
        if not step @ here.gradient < 0 and conjugate.restart(here):  # rounding, or the optimum
            step, trusted = conjugate.step(), False
        short = np.minimum(1.0, _REACH / np.maximum(reach_of(here.model, step), 1e-300))
        model = placed(here.model, here.vector + short * step)
        there = self.passes.look(model)
        if there.value < here.value:
            self.quasi.remember(here, there)
            conjugate.went(here, there, step, trusted)
            self.calm = self.calm + 1 if short.min(initial=1.0) == 1.0 else 0
            self.here = there
        else:
            self.calm = 0
            if trusted:
                self.quasi.forget()
            else:
                conjugate.shorten(here, there, step)
            self.ended = not conjugate.restart(here)
            return
        self.values.append(there.value)  # rejected steps tell nothing about what is left to gain

    @property
    def left(self) -> float:
        """Return an estimate of what further steps can gain; infinite if it is unknown.

        The distance to the optimum falls like a power of the steps: after half of them, it was
        about five times the present distance. If no step reduces the objective, the gradient gives
        the estimate.
        """
        if self.ended:
            slope = self.here.gradient
            left = 0.5 * float(slope @ (slope / self.here.metric))
            return 0.0 if left < _ROUNDING else left
        steps = len(self.values) - 1
        return (self.values[steps // 2] - self.values[-1]) / 4.0 if steps >= _LEAST else np.inf


class Conjugate:
    """Conjugate natural gradients (Fletcher and Reeves) with an adaptive step length."""

    def __init__(self, here: Place):
        self.length = 1.0
        self.direction = -here.gradient / here.metric

    def step(self) -> np.ndarray:
        return self.length * self.direction

    def went(self, old: Place, new: Place, step: np.ndarray, trusted: bool) -> None:
        """Turn after an accepted step, and lengthen the next step unless this one was too long."""
        before, now = old.gradient @ step, new.gradient @ step
        if not trusted:
            self.length *= _LONGER if now < 0 else max(_SHORTER, before / (before - now))
        natural = -new.gradient / new.metric
        size = old.gradient @ (old.gradient / old.metric)
        momentum = min(-(new.gradient @ natural) / max(size, 1e-300), _MOMENTUM)
        last = step / self.length if trusted else self.direction
        self.direction = natural + momentum * last

    def shorten(self, old: Place, new: Place, step: np.ndarray) -> None:
        """Shorten the step after a rejected one, to the minimum of a fitted parabola."""
        rate = old.gradient @ step
        rise = new.value - old.value - rate
        bottom = -rate / (2.0 * rise) if np.isfinite(rise) and rise > 0 else 0.0
        self.length *= float(np.clip(bottom, 0.1, 0.5))

    def restart(self, here: Place) -> bool:
        """Forget momentum; return whether the objective can still be reduced."""
        self.direction = -here.gradient / here.metric
        return self.length > _TINY and bool(self.direction @ here.gradient < 0)


class QuasiNewton:
    """L-BFGS in coordinates scaled by the metric at the current place.

    The curvature learnt at one place also holds elsewhere if it is in units of the metric, although
    variances change by orders of magnitude during training.
    """

    def __init__(self) -> None:
        self.pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=_MEMORY)
        self.scale = 1.0

    def forget(self) -> None:
        """Forget the curvature."""
        self.pairs.clear()

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
    """Return the complete rows, and copies of them with hidden cells."""
    copies = _COPIES if data.rows.n_rows < _MANY else 1
    hidden = [hide(data.rows, rng, complete=0.0) for _ in range(copies)]
    share = (1.0 - _AS_THEY_ARE) / copies
    weights = [_AS_THEY_ARE * data.weights] + [share * data.weights] * copies
    targets = data.targets.take(np.tile(np.arange(data.rows.n_rows), 1 + copies))
    return Data(joined([data.rows, *hidden]), targets, np.concatenate(weights))


def parts_of(data: Data, rng: Any) -> Iterator[np.ndarray]:
    """Yield parts of growing size to train on, one after the other; the last is all rows.

    A few rows are enough for most of training. Every part has some rows of each class.
    """
    n = data.rows.n_rows
    if n > _FIRST * _GROWTH:
        order = rng.permutation(n)
        order = order[data.weights[order] > 0]
        codes = data.targets.codes[order]
        rank = np.empty(len(order), dtype=np.int64)  # the rank of a row within its class
        for code in np.unique(codes):
            own = np.flatnonzero(codes == code)
            rank[own] = np.arange(len(own))
        order = np.concatenate([order[rank < _OF_A_CLASS], order[rank >= _OF_A_CLASS]])
        size = _FIRST
        while size * _GROWTH <= n:
            yield np.sort(order[:size])
            size *= _GROWTH


def descend(
    learner: Learner, data: Data, hide: Any, rng: Any, tol: float | None, most: int
) -> Iterator[tuple[bool, Iterator[tuple[dict[str, Any], float]]]]:
    """Take at most `most` steps of all rows, in phases; yield whether it is the last, and steps.

    Each step is its record, and an estimate of what is left to gain. A phase may be left early, or
    skipped. Large data are trained on in parts, and a loss with corners is smoothed. At the end the
    learner holds the better of the last state and the start, judged on all rows with the original
    loss.
    """
    start, begun = learner.model, learner.epochs
    rule = learner.rule.smoothed(_WIDTH)
    parts, quasi = list(parts_of(data, rng)), QuasiNewton()

    def draw(own: Data) -> Data:
        """Return the rows; if cells are hidden, other ones are hidden on each call."""
        return own if hide is None else with_holes(own, hide, rng)

    def steps(own: Data, tol: float | None, share: int) -> Iterator:
        left = (most - (learner.epochs - begun)) // share
        return _steps(learner, rule, partial(draw, own), hide is not None, tol, left, quasi)

    for rows in parts:  # smaller gains on few rows are noise of the sample
        yield False, steps(data.take(rows), None if tol is None else 3.0 * tol, _OF_A_PART)
    watched = bool(parts) or rule != learner.rule
    judges = Passes(start, learner.rule, draw(data), learner.engine) if watched else None
    best = judges.look(start) if judges else None
    yield True, steps(data, tol, 1)
    if judges and best:
        now = judges.look(learner.model)
        learner.accept(now.model if now.value < best.value else best.model, 0)


def _steps(
    learner: Learner,
    rule: Rule,
    draw: Any,
    varies: bool,
    tol: float | None,
    most: int,
    quasi: QuasiNewton,
) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield steps until too little is left to gain.

    If cells are hidden, the rows vary: a model that fits one draw of hidden cells well is not the
    best for others. So hidden cells are drawn again every few steps, and the last models are
    averaged.
    """
    if most < 1:
        return
    start, engine = learner.model, learner.engine
    descent = Descent(start, rule, draw(), engine, quasi)
    order = np.arange(descent.passes.data.rows.n_rows)
    ends: deque[np.ndarray] = deque(maxlen=_AVERAGED - 1)
    for step in range(most):
        if varies and step and step % _FRESH == 0:
            ends.append(descent.here.vector)
            descent.turn_to(draw())
        begun, before = time.perf_counter(), descent.here
        descent.step()
        if descent.here is not before:
            learner.accept(descent.here.model, len(order))
        length = float(descent.conjugate.length)
        record = learner.put_on_record(before.figures, descent.passes.data, order, length, begun)
        record["objective"] = descent.here.value
        yield record, descent.left
        if (descent.ended and not varies) or (tol is not None and descent.left <= tol):
            break
    if ends:
        mean = np.mean([*ends, descent.here.vector], axis=0)
        fresh = Passes(start, rule, draw(), engine)
        average = fresh.look(placed(descent.here.model, mean))
        better = average.value < fresh.look(start).value
        learner.accept(average.model if better else start, 0)
