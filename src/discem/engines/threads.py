"""Threads: the rows of a pass in parts, one a thread, whose states are averaged.

A round is this: every thread copies the state and takes the steps of its part of the rows, with
the prior and the units of the whole; then the state is the mean of theirs, over their expected
statistics, whose set is convex. NumPy does not hold Python's lock while it works, so parts are
learnt at the same time. Which thread is done first does not matter: the result is the same to the
last bit for the same number of parts.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Event
from typing import Any

import numpy as np

from .._arrays import mapped
from ..exceptions import OptionError
from ..figures import FIGURES
from ..io.rows import copied
from ..models import mean_of
from ._rule import Data, Done, Rule
from .device import Device, resolve_device
from .sequential import Sequential, Stride, take_steps

_PAYS = 2.0  # visits of a part for each number of the state, which is copied and averaged
_FIRST, _LATER = 4.0, 30.0  # .. in a round, where rows are many: the first ones, and the longest
_OF_A_CLASS = 60  # rows of a part, in the mean: rarer classes are learnt by few parts only
_GROWTH = 0.2  # of all rows so far, to be seen until the next average: steps become smaller
_SCORED = 2e6  # visits of a prediction that are worth another thread


class Threads(Sequential):
    """Rows in parts, one a thread; few rows stay on one.

    Parameters
    ----------
    n_jobs : int
        The most threads, and parts, there are.
    """

    def __init__(self, n_jobs: int):
        self.n_jobs = n_jobs

    def __repr__(self) -> str:
        return f"Threads({self.n_jobs})"

    def parts(self, state: Any, rows: Any, n_rows: int) -> int:
        """In how many parts so many rows are learnt: as many as are worth it."""
        family = state.family
        least = max(family.least_visits, _PAYS * _size(state))
        visits = n_rows * _visits_per_row(state, rows)
        few = max(family.least_rows, _OF_A_CLASS * state.n_classes)
        return max(min(self.n_jobs, int(visits / least), n_rows // few), 1)

    def learn(
        self, state, rule: Rule, t: int, data: Data, order, figures, chunk: int = 0
    ) -> Iterator[Done]:
        """Take one pass over the rows in `order`, in rounds; see `Sequential`.

        It needs memory for a state of each part, beside the one before and the mean.
        """
        n_batches = -(-len(order) // rule.batch)
        parts = min(self.parts(state, data.rows, len(order)), n_batches)
        if parts == 1:
            yield from super().learn(state, rule, t, data, order, figures, chunk)
            return
        begun, stop = t, Event()

        def train(place: int, first: int, last: int) -> tuple[Any, int, np.ndarray]:
            """A state that has learnt a part of a round, the rows of it, and their figures."""
            own, seen = copied(state), np.zeros(len(FIGURES))
            rows = _deal(order[first:last], rule.batch, place, parts)
            for now, _ in take_steps(own, rule, t, data, rows, seen, chunk, Stride(place, parts)):
                own = now
                if stop.is_set():
                    break
            return own, len(rows), seen

        with one_thread_each(), ThreadPoolExecutor(parts) as pool:
            try:
                begins = self.rounds(state, rule, t, data, len(order), parts, chunk)
                for first, last in pairwise(begins):
                    jobs = [pool.submit(train, place, first, last) for place in range(parts)]
                    ends = [job.result() for job in jobs]
                    states, sizes, seen = zip(*ends, strict=True)
                    state = mean_of(states, sizes, pool.map)
                    del jobs, ends, states
                    for each in seen:
                        figures += each
                    t = begun + rule.counted(last)
                    yield Done(state, t, last)
            except MemoryError as error:
                raise MemoryError(
                    f"n_jobs={self.n_jobs}: {parts} threads need memory for {parts + 2} models "
                    f"of {8e-6 * _size(state):.0f} MB each; use fewer"
                ) from error
            finally:
                stop.set()

    def rounds(
        self, state: Any, rule: Rule, t: int, data: Any, n_rows: int, parts: int, chunk: int,
        dear: float = 1.0,
    ) -> list[int]:  # fmt: skip
        """Where rounds begin, and where the last ends.

        Parts that are far apart are of little use to each other, and training goes furthest at
        first: so rounds are short at first, and longer as steps become smaller. But to average
        takes time, too, `dear` times as much as in one memory, and nobody should wait long for an
        interruption to be heard.
        """
        rows_of_state = _size(state) / _visits_per_row(state, data.rows)
        few = state.family.least_rows / 4
        least = max(dear * _FIRST * rows_of_state, dear * few, rule.batch)
        most, begins = max(_LATER * rows_of_state, chunk or n_rows, least), [0]
        while begins[-1] < n_rows:
            so_far = (t if rule.by_row else t * rule.batch) + begins[-1]
            size = parts * min(max(least, _GROWTH * so_far / parts), most)
            if n_rows - begins[-1] < 1.5 * size:  # no short one at the end
                size = n_rows
            size = -(-int(size) // rule.batch) * rule.batch
            begins.append(min(begins[-1] + size, n_rows))
        return begins

    def score(self, model, rows, order=None) -> np.ndarray:
        """The scores ``ln p(y=k, x)`` of all rows, or of those in `order`, as (n, K)."""
        chosen = np.arange(rows.n_rows) if order is None else order
        parts = int(len(chosen) * _visits_per_row(model, rows) / _SCORED)
        parts = min(self.n_jobs, parts, len(chosen))
        if parts < 2:
            return super().score(model, rows, chosen)
        shares = np.array_split(chosen, parts)
        with one_thread_each(), ThreadPoolExecutor(parts) as pool:
            score = super().score
            return np.concatenate(list(pool.map(lambda own: score(model, rows, own), shares)))


def _deal(order: np.ndarray, batch: int, place: int, parts: int) -> np.ndarray:
    """The rows of each of the batches that a part takes, one after the other in turns."""
    if batch == 1:
        return np.ascontiguousarray(order[place::parts])
    return order[np.arange(len(order)) // batch % parts == place]


def _size(state: Any) -> int:
    """How many numbers a state holds."""
    sizes: list[int] = []
    mapped(lambda array: sizes.append(array.size), state)
    return sum(sizes)


def _visits_per_row(state: Any, rows: Any) -> float:
    """How many numbers of a model the usual row is held against."""
    return max(rows.n_cells / max(rows.n_rows, 1) * state.work_per_cell, 1.0)


@functools.cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()  # it looks at all libraries that are loaded, which takes time


def one_thread_each() -> Any:
    """Keep libraries of linear algebra to the threads that call them, within a `with`."""
    return _libraries().limit(limits=1)


def count_jobs(n_jobs: Any) -> int:
    """How many threads `n_jobs` is: None is one, -1 as many as there are cores, -2 one less."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise OptionError(f"n_jobs={n_jobs!r} must be None, a whole number >= 1, or -1: all cores")
    if n_jobs > 0:
        return int(n_jobs)
    from joblib import cpu_count

    return max(cpu_count() + 1 + int(n_jobs), 1)


def with_jobs(engine: Sequential, n_jobs: Any, device: Any = None) -> Sequential:
    """An engine of so many threads, or of a device; the one that is there, if it is such."""
    there = resolve_device(device)
    if there is not None:
        return engine if repr(engine) == repr(there) else there
    jobs = count_jobs(n_jobs)
    if jobs == engine.n_jobs and not isinstance(engine, Device):
        return engine
    return Threads(jobs) if jobs > 1 else Sequential()
