"""The sequential engine: the paper's Algorithm 1, compiled.

`sweep` is the method. For each observation it takes the scores of the model, asks the loss for
weights, and moves the statistics:

    mu <- mu + rho [ sum_k w_k E[s(k, z, x)]  -  (sum_k w_k) mu  +  (alpha - nu mu) / n ]
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .._compile import helper, kernel
from ..families import LEVERAGE
from ..losses import best_answers, claim, evaluate, log_sum_exp, unlabelled
from ..models import averaged, make_room, n_classes, remember, scores, update
from ..projections import damp
from ..schedules import Schedule, step_sizes

# what a sweep measures on the way, from the scores it takes before each update
FIGURES = ("weight", "loss", "nll", "ncll", "hinge", "accuracy", "shortened", "rows")
WEIGHT, LOSS, NLL_SUM, NCLL_SUM, HINGE_SUM, CORRECT, SHORTENED, ROWS = range(len(FIGURES))


@helper
def measure(a, targets, i, weight, unused, figures):
    """Add the three losses and the accuracy of a labelled row to `figures`."""
    figures[ROWS] += 1.0
    if unlabelled(targets, i):
        return
    right, wrong = best_answers(a, targets, i)
    margin = a[right] - a[wrong] if wrong >= 0 else inf
    claimed = claim(targets, i, a, unused)
    figures[WEIGHT] += weight
    figures[NLL_SUM] -= weight * claimed
    figures[NCLL_SUM] += weight * (log_sum_exp(a) - claimed)
    if margin < 1.0:
        figures[HINGE_SUM] += weight * (1.0 - margin)
    if margin > 0.0 or (margin == 0.0 and right < wrong):  # as argmax breaks ties
        figures[CORRECT] += weight


@kernel
def sweep(model, loss, projection, rows, targets, weights, order, rho, share, n, w, room, figures):
    """Run one update per batch of rows, in the given order.

    `rho` and `share` hold, per update, the step size and the weight in the running average; `n` is
    the number of observations that the prior is spread over; `w` is room for the scores and for the
    weights of a batch.
    """
    K, batch = n_classes(model), w.shape[0] - 2
    a, unused = w[batch], w[batch + 1]
    for step in range(rho.shape[0]):
        first = step * batch
        size = min(batch, order.shape[0] - first)
        total, weight = 0.0, 0.0
        for b in range(size):
            i = order[first + b]
            scores(model, rows, i, b, a, room)
            measure(a, targets, i, weights[i], unused, figures)
            if unlabelled(targets, i):
                value = -claim(targets, i, a, w[b])  # NLL over all classes
            else:
                value = evaluate(loss, a, targets, i, w[b])
            figures[LOSS] += weights[i] * value
            weight += weights[i] / size
            effect = 0.0
            for k in range(K):
                w[b, k] *= rho[step] * weights[i] / size
                effect += abs(w[b, k]) * room.numbers[LEVERAGE, k]
            gain = damp(projection, effect)
            for k in range(K):
                w[b, k] *= gain
                total += w[b, k]
        for b in range(size):
            decay = total if b == 0 else 0.0
            pull = rho[step] * weight / n if b == 0 else 0.0
            i = order[first + b]
            floor = rho[step] / n
            shortened = update(model, rows, i, b, w[b], decay, pull, floor, projection, room)
            figures[SHORTENED] += 1.0 if shortened > 0 else 0.0
        remember(model, share[step])


@kernel
def score_rows(model, rows, order, room, out):
    """Write the joint log-probabilities of the rows in `order` into `out`."""
    for j in range(order.shape[0]):
        scores(model, rows, order[j], 0, out[j], room)


@kernel
def measure_rows(scored, targets, loss, weights, unused, figures):
    """Measure rows whose scores are known, as `sweep` measures them on the way."""
    for i in range(scored.shape[0]):
        figures[LOSS] += weights[i] * evaluate(loss, scored[i], targets, i, unused)
        measure(scored[i], targets, i, weights[i], unused, figures)


class Learner:
    """A model in training: its state, the loss, the steps, and how far it has come.

    Parameters
    ----------
    state : state of a model
    loss, projection : see `discem.losses`, `discem.projections`
    schedule : callable t -> rho
    average : bool
        Whether `model` is the running average of the states, weighted by t^2: the early steps fade.
    n : float
        Observations that the prior is spread over.
    batch : int
        Rows per step.
    """

    def __init__(self, state, loss, projection, schedule: Schedule, average: bool, n, batch: int):
        self.state = state
        self.loss = loss
        self.projection = projection
        self.schedule = schedule
        self.average = average
        self.n = float(n)
        self.batch = batch
        self.t = 0
        self._model: Any = None

    @property
    def model(self):
        """The model to predict with: averaged where averaging is on."""
        if self._model is None:
            self._model = averaged(self.state) if self.average else self.state
        return self._model

    def replace(self, state) -> None:
        """Go on from another state, such as one with more classes."""
        self.state, self._model = state, None

    def adopt(self, model) -> None:
        """Predict with `model` from now on; training, if it goes on, goes on from the state."""
        self._model = model

    def learn(self, rows, targets, weights, order, figures, chunk: int = 0):
        """Take one pass over `order`, in chunks; yield the rows done so far after each chunk.

        `figures` is added to as rows are seen. Between chunks the caller may draw a progress bar,
        and Ctrl-C is heard.
        """
        K = n_classes(self.state)
        w, room = np.empty((self.batch + 2, K)), make_room(self.state, rows, self.batch)
        chunk = max(chunk // self.batch, 1) * self.batch if chunk else max(len(order), 1)
        for first in range(0, len(order), chunk):
            part = order[first : first + chunk]
            steps = -(-len(part) // self.batch)
            rho = step_sizes(self.schedule, self.t + 1, steps)
            share = np.arange(self.t + 1, self.t + steps + 1, dtype=np.float64) ** 2
            self._model = None
            sweep(
                self.state, self.loss, self.projection, rows, targets, weights, part,
                rho, share, self.n, w, room, figures,
            )  # fmt: skip
            self.t += steps
            yield first + len(part)

    def step_size(self) -> float:
        """The size of the last step taken."""
        return float(step_sizes(self.schedule, max(self.t, 1), 1)[0])


def score(model, rows, n_rows: int, order: np.ndarray | None = None) -> np.ndarray:
    """Joint log-probabilities ``ln p(y=k, x)`` of all rows, or of those in `order`, as (n, K)."""
    chosen = np.arange(n_rows) if order is None else order
    out = np.empty((len(chosen), n_classes(model)))
    score_rows(model, rows, chosen, make_room(model, rows, 1), out)
    return out
