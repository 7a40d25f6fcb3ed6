"""The sequential engine: one batch of rows after the other, each a step of the one update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..figures import CORRECT, HINGE_SUM, LOSS, NCLL_SUM, NLL_SUM, ROWS, SHORTENED, WEIGHT
from ..update import Judged, judge, update
from ._protocol import Data, Done, Rule

_ALIKE = 64  # batches of a size, until they may grow
_WIDTH = 0.1  # nats, of the turns of a loss with edges
_AT_ONCE = 1 << 22  # visits of numbers of the model at a time


def add_figures(figures: np.ndarray, judged: Judged, data: Data) -> None:
    """Add what a batch says of its rows to the figures of a pass."""
    seen, weights = judged.seen, data.weights
    labelled = weights if data.targets.certain else weights * data.targets.labelled
    figures[ROWS] += len(weights)
    figures[LOSS] += weights @ judged.losses
    figures[WEIGHT] += labelled.sum()
    figures[NLL_SUM] -= labelled @ seen.clamped
    figures[NCLL_SUM] += labelled @ (seen.free - seen.clamped)
    figures[HINGE_SUM] += labelled @ np.maximum(1.0 - seen.margin, 0.0)
    # as argmax breaks ties
    right = (seen.margin > 0.0) | ((seen.margin == 0.0) & (seen.right < seen.wrong))
    figures[CORRECT] += labelled @ right


class Part(NamedTuple):
    """Some steps of a pass: each `of`-th one, beginning with number `place`."""

    place: int
    of: int


WHOLE = Part(0, 1)


def take_steps(
    state: Any, rule: Rule, t: int, data: Data, order, figures, chunk: int = 0, part: Part = WHOLE
) -> Iterator[tuple[Any, int]]:
    """Take the steps of a part of a pass, whose rows are in `order`.

    A step is as large, and weighs as much in the average, as its place in the whole pass says; but
    for what the family makes of a part, whose state is to be averaged with those of the others.
    Yields the state and the number of rows done, chunk after chunk.
    """
    batch, done = max(min(rule.batch, len(order)), 1), 0
    if batch > 1:
        rule = rule.smoothed(_WIDTH)
    average = state.averages
    for chosen in chunks_of(data.rows, state, order, batch, chunk):
        rows, steps = data.take(chosen), -(-len(chosen) // batch)
        place = part.place + part.of * (done // batch + np.arange(steps))
        sizes = np.minimum(len(chosen) - batch * np.arange(steps), batch)
        rho, shares = rule.steps(t, place, sizes)
        if part.of > 1:
            rho, shares = state.family.step_of_part(rho, part.of), part.of * shares
        for step in range(steps):
            some = rows.take(slice(step * batch, (step + 1) * batch))
            statistics = state.read(some.rows)
            state, judged, shortened = update(
                state, statistics, some.targets, some.weights, rule, float(rho[step])
            )
            add_figures(figures, judged, some)
            figures[SHORTENED] += len(some.weights) if shortened else 0.0
            if average:
                state = state.averaged_in(float(shares[step]))
        done += len(chosen)
        yield state, done


def chunks_of(
    rows: Any, model: Any, order: np.ndarray | None = None, batch: int = 1, most: int = 0
) -> Iterator[np.ndarray]:
    """The rows of a pass, so many at a time that they fit into the cache: whole batches."""
    order = np.arange(rows.n_rows) if order is None else order
    cells = max(rows.n_cells / max(rows.n_rows, 1), 1.0)
    size = int(max(_AT_ONCE / (cells * model.work_per_cell), 1.0))
    size = max(min(size, most or size) // batch, 1) * batch
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


def measure(
    model: Any, loss: Any, data: Data, order: np.ndarray, figures: np.ndarray
) -> np.ndarray:
    """Add to the figures what a pass would see, and return the loss of each row."""
    losses = []
    for chosen in chunks_of(data.rows, model, order):
        some = data.take(chosen)
        judged = judge(loss, model, model.read(some.rows), some.targets)
        add_figures(figures, judged, some)
        losses.append(some.weights * judged.losses)
    return np.concatenate(losses) if losses else np.zeros(0)


class Sequential:
    """One batch of rows after the other, each a step."""

    def __repr__(self) -> str:
        return "Sequential()"

    def learn(
        self, state, rule: Rule, t: int, data: Data, order, figures, chunk: int = 0
    ) -> Iterator[Done]:
        """Take one pass over the rows in `order`, in chunks; see `Engine`."""
        done = 0
        while True:
            now, some = rule.grown(t + done), order[done:]
            if rule.grows and now.batch < rule.most:
                some = some[: _ALIKE * now.batch]
            for reached, rows in take_steps(state, now, t + done, data, some, figures, chunk):
                state = reached
                yield Done(state, t + rule.counted(done + rows), done + rows)
            done += len(some)
            if done >= len(order):
                return

    def score(self, model, rows, order=None) -> np.ndarray:
        """The scores ``ln p(y=k, x)`` of all rows, or of those in `order`, as (n, K)."""
        parts = [
            model.scores(model.read(rows.take(some)))[0] for some in chunks_of(rows, model, order)
        ]
        return np.concatenate(parts) if parts else np.empty((0, model.n_classes))
