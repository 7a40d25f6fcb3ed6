"""The sequential engine: the paper's Algorithm 1, compiled.

`sweep` is the method. For each batch of observations (by default one) it takes the scores of the
model, asks the loss for weights, and moves the statistics:

    mu <- mu + rho [ sum_k w_k E[s(k, z, x)]  -  (sum_k w_k) mu  +  (alpha - nu mu) / n ]
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

import numpy as np

from .._compile import generic, helper, kernel
from ..families import LEVERAGE, add_to_average, family_of, settle
from ..figures import CORRECT, HINGE_SUM, LOSS, NCLL_SUM, NLL_SUM, ROWS, SHORTENED, WEIGHT
from ..io.rows import copied
from ..losses import compiled_form, evaluate
from ..models import find_leverage, gather_row, make_room, n_classes, update, write_scores
from ..projections import damp
from ..schedules import step_sizes
from ..targets import UNLABELLED, infer
from ._protocol import Data, Done, Rule


@helper
def judge(loss, a, targets, i, weight, w, p, figures):
    """Turn the scores `a` of row i into the weights `w` of its loss; measure the row."""
    seen = infer(a, targets, i, w, p)
    figures[ROWS] += 1.0
    if targets.codes[i] == UNLABELLED:  # learnt by NLL: w is p(y | x) already
        figures[LOSS] -= weight * seen.clamped
        return
    margin = a[seen.right] - a[seen.wrong] if seen.wrong >= 0 else inf
    figures[WEIGHT] += weight
    figures[NLL_SUM] -= weight * seen.clamped
    figures[NCLL_SUM] += weight * (seen.free - seen.clamped)
    if margin < 1.0:
        figures[HINGE_SUM] += weight * (1.0 - margin)
    if margin > 0.0 or (margin == 0.0 and seen.right < seen.wrong):  # as argmax breaks ties
        figures[CORRECT] += weight
    figures[LOSS] += weight * evaluate(loss, a, seen, p, w)


class ByRow(NamedTuple):
    """Every step is that of one row, which moves the statistics at one go."""


class ByBatch(NamedTuple):
    """A step may be that of several rows: their statistics are summed, and projected once."""


@generic
def take_step(stride, model, rows, chosen, w, decay, pull, floor, projection, room):
    """Move the statistics by the rows chosen; return how many factors had their step shortened.

    Which way is known when code is compiled: few need batches, and none should wait for them.
    """


@take_step.register(ByRow)
def _step_by_row(stride, model, rows, chosen, w, decay, pull, floor, projection, room):
    return update(model, rows, chosen[0], 0, w[0], decay, pull, floor, projection, room)


@take_step.register(ByBatch)
def _step_by_batch(stride, model, rows, chosen, w, decay, pull, floor, projection, room):
    for b in range(chosen.shape[0]):
        gather_row(model, rows, chosen[b], b, w[b], room)
    return settle(model, decay, pull, floor, projection, room)


@kernel
def sweep(
    model, loss, projection, stride, rows, targets, weights, order, rho, share, n, w, room, figures
):
    """Run one update per batch of rows, in the given order.

    `rho` and `share` hold, per update, the step size and the weight in the running average; `n` is
    the number of observations that the prior is spread over; `w` is room for the weights of a
    batch, for scores and for a posterior.
    """
    K, batch = n_classes(model), w.shape[0] - 2
    a, p = w[batch], w[batch + 1]
    for step in range(rho.shape[0]):
        first = step * batch
        size = min(batch, order.shape[0] - first)
        decay, weight = 0.0, 0.0
        for b in range(size):
            i = order[first + b]
            write_scores(model, rows, i, b, a, room)
            judge(loss, a, targets, i, weights[i], w[b], p, figures)
            weight += weights[i] / size
            effect = 0.0
            for k in range(K):
                w[b, k] *= rho[step] * weights[i] / size
            if damp(projection, 1.0) < 1.0:
                find_leverage(model, rows, i, b, w[b], rho[step] / n, room)
                for k in range(K):
                    effect += abs(w[b, k]) * room.numbers[LEVERAGE, k]
            gain = damp(projection, effect)
            for k in range(K):
                w[b, k] *= gain
                decay += w[b, k]
        pull, floor = rho[step] * weight / n, rho[step] / n
        chosen = order[first : first + size]
        shortened = take_step(stride, model, rows, chosen, w, decay, pull, floor, projection, room)
        figures[SHORTENED] += size if shortened > 0 else 0.0
        add_to_average(model, share[step])


@kernel
def score_all(model, rows, order, room, scores):
    """Write the scores of the rows in `order`."""
    for j in range(order.shape[0]):
        write_scores(model, rows, order[j], 0, scores[j], room)


@kernel
def measure_all(scores, targets, loss, weights, w, p, figures, losses):
    """Measure rows whose scores are known, as `sweep` does on the way, and the loss of each."""
    for i in range(scores.shape[0]):
        before = figures[LOSS]
        figures[LOSS] = 0.0
        judge(loss, scores[i], targets, i, weights[i], w, p, figures)
        losses[i] = figures[LOSS]
        figures[LOSS] += before


class Part(NamedTuple):
    """Some steps of a pass: each `of`-th one, beginning with number `place`."""

    place: int
    of: int


WHOLE = Part(0, 1)


def take_steps(
    state, rule: Rule, t: int, data: Data, order, figures, chunk: int = 0, part: Part = WHOLE
) -> Iterator[int]:
    """Take the steps of a part of a pass, whose rows are in `order`; change `state` in place.

    A step is as large, and weighs as much in the average, as its number in the whole pass says,
    which comes after `t` steps; but for what the family makes of a part, whose state is to be
    averaged with those of the others. Yields the number of steps done, chunk after chunk.
    """
    batch = max(min(rule.batch, len(order)), 1)
    w = copied(np.empty((batch + 2, n_classes(state))))  # other threads may have theirs beside it
    room = make_room(state, data.rows, batch)
    stride = ByBatch() if batch > 1 else ByRow()
    chunk = max(chunk // batch, 1) * batch if chunk else max(len(order), 1)
    family, done = family_of(state.features), 0
    for begin in range(0, len(order), chunk):
        rows = order[begin : begin + chunk]
        steps = -(-len(rows) // batch)
        first = t + 1 + part.place + done * part.of
        rho = step_sizes(rule.schedule, first, steps, part.of)
        if part.of > 1:
            rho = family.step_of_part(rho, part.of)
        number = np.arange(first, first + steps * part.of, part.of, dtype=np.float64)
        share = part.of * (number - rule.since) ** 2
        sweep(
            state, compiled_form(rule.loss), rule.projection, stride, *data, rows,
            rho, share, rule.n, w, room, figures,
        )  # fmt: skip
        done += steps
        yield done


class Sequential:
    """One batch of rows after the other, each a step; by default one row."""

    needs: tuple[str, ...] = ("add_scores", "gather", "settle", "move", "add_to_average")

    def __repr__(self) -> str:
        return "Sequential()"

    def learn(
        self, state, rule: Rule, t: int, data: Data, order, figures, chunk: int = 0
    ) -> Iterator[Done]:
        """Take one pass over the rows in `order`, in chunks; see `Engine`."""
        for steps in take_steps(state, rule, t, data, order, figures, chunk):
            yield Done(state, t + steps, min(steps * rule.batch, len(order)))

    def score(self, model, rows, order=None) -> np.ndarray:
        """The scores ``ln p(y=k, x)`` of all rows, or of those in `order`, as (n, K)."""
        chosen = np.arange(rows.n_rows) if order is None else order
        scores = np.empty((len(chosen), n_classes(model)))
        score_all(model, rows, chosen, make_room(model, rows, 1), scores)
        return scores
