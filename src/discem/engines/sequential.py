"""The sequential engine: one batch of rows after the other, each a step of the one update."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from .._arrays import namespace_of
from ..figures import CORRECT, HINGE_SUM, LOSS, NCLL_SUM, NLL_SUM, ROWS, SHORTENED, WEIGHT
from ..update import Judged, judge, update
from ._rule import Data, Done, Rule

_ALIKE = 64  # batches of one size before they may grow
_WIDTH = 0.1  # nats: the width of smoothed corners of a loss
_AT_ONCE = 1 << 22  # numbers of the model visited at a time
_LARGEST = 4096  # the most rows per step of a stream, after many rows
_SUMMED = 1 << 17  # cells to add up at a time
_SHARED = 4  # rows per column to add up at a time, at least


def add_figures(figures: Any, judged: Judged, data: Data) -> None:
    """Add the results of a batch to the figures of a pass."""
    seen, weights, xp = judged.seen, data.weights, namespace_of(judged.losses)
    labelled = weights if data.targets.certain else weights * data.targets.labelled
    figures[ROWS] += len(weights)
    figures[LOSS] += weights @ judged.losses
    figures[WEIGHT] += xp.sum(labelled)
    figures[NLL_SUM] -= labelled @ seen.clamped
    figures[NCLL_SUM] += labelled @ (seen.free - seen.clamped)
    figures[HINGE_SUM] += labelled @ xp.clip(1.0 - seen.margin, 0.0, None)
    # ties are broken as by argmax
    right = (seen.margin > 0.0) | ((seen.margin == 0.0) & (seen.right < seen.wrong))
    figures[CORRECT] += labelled @ xp.astype(right, labelled.dtype)


class Stride(NamedTuple):
    """Some steps of a pass: every `of`-th one, starting with number `place`."""

    place: int
    of: int


EACH = Stride(0, 1)


def feed(
    given: Any, rows: Any, model: Any, order: Any = None, batch: int = 1, most: int = 0
) -> Iterator[Any]:
    """Yield rows, or data with these rows, in whole batches."""
    size = rows_in_cache(rows, model)
    return (given.take(span(some)) for some in chunks_of(rows, order, size, batch, most))


def span(chosen: np.ndarray) -> Any:
    """Return a slice for consecutive rows, as in a stream, so that nothing is copied."""
    first = int(chosen[0]) if len(chosen) else 0
    if np.array_equal(chosen, np.arange(first, first + len(chosen))):
        return slice(first, first + len(chosen))
    return chosen


def take_steps(
    state: Any, rule: Rule, t: int, data: Data, order, figures, chunk: int = 0,
    stride: Stride = EACH, feed: Callable = feed,
) -> Iterator[tuple[Any, int]]:  # fmt: skip
    """Take the steps of a part of a pass, with rows in `order`.

    The size of a step and its weight in the average depend on its place in the whole pass. The
    family may adapt the steps of a part whose state will be averaged with others. Yields the state
    and the number of rows done, chunk after chunk.
    """
    if stride.of > 1:
        rule = rule.of_part(t, float(state.family.step_of_part(np.ones(1), stride.of)[0]))
    batch, done = max(min(rule.batch, len(order)), 1), 0
    if batch > 1:
        rule = rule.smoothed(_WIDTH)
    average = state.averages
    for rows in feed(data, data.rows, state, order, batch, chunk):
        n = len(rows.weights)
        steps = -(-n // batch)
        place = stride.place + stride.of * (done // batch + np.arange(steps))
        sizes = np.minimum(n - batch * np.arange(steps), batch)
        rho, shares = rule.steps(t, place, sizes)
        if stride.of > 1:
            rho, shares = state.family.step_of_part(rho, stride.of), stride.of * shares
        for step in range(steps):
            some = rows.take(slice(step * batch, (step + 1) * batch))
            statistics = state.read(some.rows)
            state, judged, shortened = update(
                state, statistics, some.targets, some.weights, rule, float(rho[step])
            )
            add_figures(figures, judged, some)
            figures[SHORTENED] += len(some.weights) * (shortened > 0)
            if average:
                state = state.averaged_in(float(shares[step]))
        done += n
        yield state, done


def rows_in_cache(rows: Any, model: Any) -> int:
    """Return how many rows fit into the cache at a time."""
    cells = max(rows.n_cells / max(rows.n_rows, 1), 1.0)
    return int(max(_AT_ONCE / (cells * model.work_per_cell), 1.0))


def chunks_of(rows: Any, order: Any, size: int, batch: int = 1, most: int = 0) -> Iterator[Any]:
    """Yield the rows of a pass in whole batches, about `size` at a time, at most `most`."""
    order = np.arange(rows.n_rows) if order is None else order
    size = max(min(size, most or size) // batch, 1) * batch
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


def measure(
    model: Any, loss: Any, data: Data, order: Any, figures: Any, feed: Callable = feed
) -> Any:
    """Add the figures of a pass without learning, and return the loss of each row."""
    losses = []
    for some in feed(data, data.rows, model, order):
        judged = judge(loss, model, model.read(some.rows), some.targets)
        add_figures(figures, judged, some)
        losses.append(some.weights * judged.losses)
    return namespace_of(losses[0]).concat(losses) if losses else np.zeros(0)


class Sequential:
    """Take steps with one batch of rows after the other. Other engines parallelise this.

    The engine does not depend on the loss or the model.
    """

    n_jobs = 1  # threads for callers that take passes of their own
    in_place = True  # steps change the arrays of a given state, which define the precision
    feed = staticmethod(feed)

    def __repr__(self) -> str:
        return "Sequential()"

    def learn(
        self, state, rule: Rule, t: int, data: Data, order, figures, chunk: int = 0
    ) -> Iterator[Done]:
        """Take one pass over the rows in `order`, after `t` steps have been taken.

        Yields after each chunk of about `chunk` rows (0: all), so that the caller can show progress
        and handle interruptions. The given state may be changed, so do not use it again. The pass
        adds to `figures`, see `discem.figures`.
        """
        done = 0
        while True:
            now, some = rule.grown(t + done), order[done:]
            if rule.grows and now.batch < rule.most:
                some = some[: _ALIKE * now.batch]
            steps = take_steps(state, now, t + done, data, some, figures, chunk, feed=self.feed)
            for reached, rows in steps:
                state = reached
                yield Done(state, t + rule.counted(done + rows), done + rows)
            done += len(some)
            if done >= len(order):
                return

    def score(self, model, rows, order=None) -> np.ndarray:
        """Return the scores ``ln p(y=k, x)`` of all rows, or of those in `order`, as (n, K)."""
        parts = [model.scores(model.read(some))[0] for some in self.feed(rows, rows, model, order)]
        return np.concatenate(parts) if parts else np.empty((0, model.n_classes))

    def measure(self, model, loss, data: Data, order, figures) -> np.ndarray:
        """Add the figures of a pass without learning, and return the loss of each row."""
        return measure(model, loss, data, order, figures, self.feed)

    # --- where arrays are: here; an engine may work on arrays that are elsewhere ------------------

    def holding(self, data: Any) -> AbstractContextManager[Any]:
        """Keep these data where steps are taken, within a `with` around several passes."""
        return nullcontext()

    def placed(self, state: Any) -> Any:
        """Return a state where steps are taken."""
        return state

    def moved(self, data: Any) -> Any:
        """Return data where steps are taken."""
        return data

    def fetched(self, found: Any) -> Any:
        """Return results as arrays of NumPy."""
        return found

    def rows_at_once(self, rows: Any, model: Any) -> int:
        """Return how many rows to add up at a time, so that they stay in the cache."""
        columns = rows.n_cells / max(rows.n_rows, 1)
        # as many rows as columns share the work of a covariance
        return max(int(_SUMMED / max(columns, 1e-9)), _SHARED * int(columns), 256)

    def batch(self, size: int, n_rows: int) -> int:
        """Return the rows per step; `size` is the choice for one core."""
        return size

    def largest(self, rows: Any, model: Any) -> int:
        """Return the most rows per step of a stream, after many rows."""
        return _LARGEST
