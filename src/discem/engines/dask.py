"""Dask: train on partitions on the workers of a cluster, and average the states.

Rows are read (or sent) and prepared once, and stay on the workers. If partitions differ in their
classes, as in sorted files, the rows are first dealt over all parts. In each round, the state is
sent to the workers, and each part copies it and takes the steps of its share of the rows, with the
prior and the units of all rows. The states are averaged in a tree, a few at a time, and the mean is
sent back. So a round sends one state to each worker and receives one, regardless of the number of
rows.

The random numbers of a part depend only on the seed of the epoch and the number of the part. If a
worker dies, others recompute its results, from the start if necessary, and these are identical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np

from ..exceptions import DiscemError, EngineError, OptionError, needing
from ..figures import FIGURES
from ..io.rows import copied, joined, owned
from ..models import mean_of
from ..targets import Targets
from ._rule import Data, Done, Rule
from .clusters import local_cluster
from .sequential import Sequential, Stride, take_steps
from .threads import Threads

DEAR = 8.0  # a round costs this many times as much as one of threads, which share memory
_FAN = 4  # states that are averaged at a time
_SKEWED = 0.01  # of the variance of a class within parts, between them; above, rows are dealt again
_UNEVEN = 1.5  # times the mean size of a part
_LARGE = {"distributed.admin.large-graph-warning-threshold": 1 << 62}  # states are large, and sent


class Dask(Sequential):
    """Train on the workers of a Dask cluster, in parts whose states are averaged.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        None is the current client. If there is none, a local cluster with one process per core runs
        during each fit.
    parts : int or None, default=None
        The largest number of parts of the rows. None is one for each thread of the workers. Small
        partitions are trained together, so there may be fewer parts.

    Examples
    --------
    >>> from discem import Dask, GaussianNB
    >>> model = GaussianNB(engine=Dask(parts=8))
    """

    def __init__(self, client: Any = None, parts: int | None = None):
        self.client = client
        self.parts = parts

    def __repr__(self) -> str:
        given = {"client": self.client, "parts": self.parts}
        shown = (f"{name}={value!r}" for name, value in given.items() if value is not None)
        return f"Dask({', '.join(shown)})"

    def __getstate__(self) -> dict[str, Any]:
        return {"client": None, "parts": self.parts}  # a client belongs to one process

    def __deepcopy__(self, memo: Any) -> Dask:
        return type(self)(self.client, self.parts)

    def check(self) -> None:
        """Validate the engine."""
        whole = isinstance(self.parts, int | np.integer) and not isinstance(self.parts, bool)
        if self.parts is not None and not (whole and self.parts >= 1):
            raise OptionError(f"Dask: parts={self.parts!r} must be None or a whole number >= 1")
        if self.client is not None and not hasattr(self.client, "submit"):
            raise OptionError(f"Dask: client={self.client!r} is not a client of dask.distributed")

    @contextmanager
    def open(self) -> Iterator[Session]:
        """Open the workers for a fit."""
        with needing("engine='dask' needs dask and distributed", "'discem[dask]'"):
            import distributed
        client, cluster = self.client, None
        if client is None:
            with suppress(ValueError):
                client = distributed.default_client()
        try:
            if client is None:
                cluster = local_cluster()
                client = distributed.Client(cluster)
            session = Session(client, self)
            try:
                yield session
            finally:
                session.close()
        finally:
            if cluster is not None:
                client.close()
                cluster.close()

    def learn(
        self, state, rule: Rule, t: int, data: Any, order: Any, figures, chunk: int = 0
    ) -> Iterator[Done]:
        """Take one pass over rows on workers, in rounds; here `order` is a seed."""
        if not isinstance(data, Shards):
            yield from super().learn(state, rule, t, data, order, figures, chunk)
            return
        begun, parts, begins = t, len(data.sizes), [0, data.n_rows]
        if parts > 1:
            begins = Threads(parts).rounds(state, rule, t, data, data.n_rows, parts, 0, DEAR)
        for first, last in pairwise(begins):
            end = data.round(state, rule, t, order, (first, last))
            state, t = owned(end.state), begun + rule.counted(last)
            figures += end.figures
            yield Done(state, t, last)


class Session:
    """The workers of a fit, and the tasks it has submitted."""

    def __init__(self, client: Any, engine: Dask):
        self.client, self.engine = client, engine
        self._futures: WeakSet[Any] = WeakSet()
        with self._translated():
            self.threads = max(sum(client.nthreads().values()), 1)

    @property
    def parts(self) -> int:
        """Return the largest number of parts of the rows."""
        return self.engine.parts or self.threads

    def read(self, function: Callable, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """Let workers compute partitions of collections, and keep the result of a function of each.

        Each row holds the arguments of the function (partitions, or local values) and its number.
        """
        import dask

        read = dask.delayed(function, pure=False)
        delayed = [read(*row, number=place) for place, row in enumerate(rows)]
        with self._translated(), dask.config.set(_LARGE):
            return self._keep(self.client.compute(delayed))

    def submit(self, function: Callable, *futures: Any, **given: Any) -> Any:
        """Call a function on a worker; arguments are futures, or local values."""
        import dask

        key = _unique(getattr(function, "__name__", "task").strip("_"))
        with self._translated(), dask.config.set(_LARGE):
            task = self.client.submit(partial(function, **given), *futures, pure=False, key=key)
            return self._keep([task])[0]

    def send(self, content: Any) -> Any:
        """Send a value to the workers; it can be sent again if they die."""
        return self.submit(_same, content=content)

    def reduce(self, function: Callable, futures: Sequence[Any]) -> Any:
        """Reduce all futures with a function, a few at a time, in a tree."""
        futures = list(futures)
        while len(futures) > 1:
            pairs = range(0, len(futures), _FAN)
            futures = [self.submit(function, *futures[i : i + _FAN]) for i in pairs]
        return futures[0]

    def gather(self, futures: Any) -> Any:
        """Wait for the results of workers."""
        with self._translated():
            return self.client.gather(futures)

    def close(self) -> None:
        """Release all futures of this session."""
        futures = [future for future in self._futures if not future.done()]
        with suppress(Exception):
            if futures:
                self.client.cancel(futures)

    def _keep(self, futures: list[Any]) -> list[Any]:
        for future in futures:
            self._futures.add(future)
        return futures

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Report errors of the workers in one line."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        try:
            yield
        except DiscemError:
            raise
        except KilledWorker as error:
            raise EngineError(
                f"workers died again and again at {error.task!r}: is there enough memory for it?"
            ) from error
        except Exception as error:
            gone = isinstance(error, CancelledError | CommClosedError | TimeoutError)
            if not gone and self.client.status == "running":  # else the error belongs to the task
                raise
            raise EngineError(
                "the scheduler of dask does not answer any more, or has dropped what it was asked "
                f"for ({type(error).__name__}): what was learnt until then is kept"
            ) from error


def _unique(name: str) -> str:
    from uuid import uuid4

    return f"discem_{name}-{uuid4().hex}"


def _same(content: Any) -> Any:
    return content


# --- rows on workers ------------------------------------------------------------------------------


class End(NamedTuple):
    """The state at the end of a round, for one or several parts."""

    state: Any
    rows: int
    figures: np.ndarray


class Shards:
    """Rows on workers, in parts that train separately; this process only has a sample.

    Parameters
    ----------
    session : Session
    groups : list of lists of futures
        Futures of `Data`; those in one list are trained together.
    sizes : list of int
        Number of rows to train on in each group.
    n_cells : int
        Stored cells of all rows.
    unit : float
        The weight of a row that takes a whole step.
    sample : Data
    order : array of int
        The rows of the sample that represent those of the workers.
    parts : int or None
        The number of parts, each with its share of every group. If None, each group is one part.
    """

    def __init__(
        self, session, groups, sizes, n_cells: int, unit: float, sample: Data, order, parts=None
    ):
        self.session, self.sample, self.order = session, sample, order
        self.sizes = sizes if parts is None else _sizes_of_parts(sizes, parts)
        self.n_rows, self.n_cells = int(sum(sizes)), n_cells
        self.hide: Callable | None = None
        self.record: dict[str, Any] = {"parts": len(self.sizes)}  # added to every epoch
        if parts is not None:
            self.record["dealt"] = 1.0
        self._groups, self._unit, self._dealt = groups, unit, parts is not None

    @cached_property
    def parts(self) -> list[Any]:
        """Return the rows of each part in contiguous memory; computed when training starts."""
        groups = self._groups
        if self._dealt:
            groups = _deal_all(self.session, groups, len(self.sizes))
        return [self.session.submit(_together, *group, unit=self._unit) for group in groups]

    @property
    def rows(self) -> Shards:
        """Return what this process knows of the rows: how many there are."""
        return self

    def shuffled(self, rows: np.ndarray, rng: Any) -> int:
        """Return the seed of the order of all rows; each part shuffles its own rows."""
        return rng.randint(2**31 - 1)

    def in_sample(self, figures: np.ndarray, order: Any) -> tuple[np.ndarray, Data, np.ndarray]:
        """Return the figures of a pass, scaled to the sample, and the rows of the sample."""
        return figures * (len(self.order) / max(self.n_rows, 1)), self.sample, self.order

    def round(self, state, rule: Rule, t: int, seed: int, span: tuple[int, int]) -> End:
        """Let every part take its steps of a round; `span` holds its begin and end."""
        session, sent = self.session, self.session.send(state)
        begin, end = (place / self.n_rows for place in span)
        ends = [
            session.submit(
                _take_part, sent, rows,
                rule=rule, t=t, seed=(int(seed), place), span=(begin, end),
                stride=_stride_of(place, size / self.n_rows), hide=self.hide,
            )
            for place, (rows, size) in enumerate(zip(self.parts, self.sizes, strict=True))
        ]  # fmt: skip
        return session.gather(session.reduce(_join_ends, ends))


def _stride_of(place: int, share: float) -> Stride:
    """Return the steps of a part with the given share of the rows, evenly spaced."""
    of = max(round(1.0 / share), 1)
    return Stride(place % of, of)


def _together(*pieces: Data, unit: float) -> Data:
    """Concatenate partitions that are trained together."""
    rows = pieces[0].rows if len(pieces) == 1 else joined([piece.rows for piece in pieces])
    weights = np.concatenate([piece.weights for piece in pieces]) / unit
    return Data(rows, join_targets([piece.targets for piece in pieces]), weights)


def _deal_all(session: Session, groups: Sequence[Sequence[Any]], parts: int) -> list[list[Any]]:
    """Deal groups of futures of `Data` into new groups, each with its share of all rows."""
    dealt = [
        session.submit(_deal, *group, parts=parts, place=place)
        for place, group in enumerate(groups)
    ]
    return [[session.submit(itemgetter(place), each) for each in dealt] for place in range(parts)]


def _sizes_of_parts(sizes: Sequence[int], parts: int) -> list[int]:
    turns = [_turns(size, parts, place) for place, size in enumerate(sizes)]
    return [sum(map(len, own)) for own in zip(*turns, strict=True)]


def _deal(*pieces: Data, parts: int, place: int) -> list[Data]:
    """Deal rows into slices, each with its share of every class."""
    data = _together(*pieces, unit=1.0)
    order = np.random.RandomState(place).permutation(np.flatnonzero(data.weights > 0))
    order = order[np.argsort(data.targets.codes[order], kind="stable")]
    return [data.take(np.sort(order[list(own)])) for own in _turns(len(order), parts, place)]


def _turns(size: int, parts: int, first: int) -> list[range]:
    """Return the rows of each part: parts take turns."""
    return [range((part + first) % parts, size, parts) for part in range(parts)]


def is_skewed(counts: np.ndarray) -> bool:
    """Return whether the class counts of parts, (parts, K), are too uneven to be chance.

    It compares the sizes of parts, and tests the independence of parts and classes.

    >>> is_skewed(np.array([[50, 40], [40, 50]])), is_skewed(np.array([[90, 0], [0, 90]]))
    (False, True)
    """
    counts = counts[:, counts.sum(axis=0) > 0]
    (parts, classes), n, sizes = counts.shape, counts.sum(), counts.sum(axis=1)
    expected = np.outer(sizes, counts.sum(axis=0)) / n
    freedom = (parts - 1) * (classes - 1)
    chance = freedom + 4.0 * np.sqrt(2.0 * freedom)
    excess = ((counts - expected) ** 2 / np.maximum(expected, 1e-300)).sum() - chance
    return bool(excess > _SKEWED * n or sizes.max() > _UNEVEN * sizes.mean())


def join_targets(pieces: list[Targets]) -> Targets:
    """Concatenate targets; if some have shares, all get room for shares."""
    codes = np.concatenate([piece.codes for piece in pieces])
    width = max(piece.share.shape[1] for piece in pieces)
    if not width:
        return Targets(codes, np.zeros((0, 0)))
    shares = [np.zeros((len(p.codes), width)) if p.plain else p.share for p in pieces]
    return Targets(codes, np.concatenate(shares))


def _take_part(state, data: Data, rule: Rule, t, seed, span, stride: Stride, hide) -> End:
    """Take the steps of a part in a round; its rows are in the order of the epoch."""
    rng = np.random.RandomState(seed)
    order = rng.permutation(np.flatnonzero(data.weights > 0))
    n_batches = -(-len(order) // rule.batch)
    first, last = (rule.batch * round(n_batches * place) for place in span)
    order = order[first:last]
    if hide is not None:  # hide cells of the rows of this round only
        data, order = data.take(order), np.arange(len(order))
    rows, targets, weights = data
    if rule.is_large:
        rows = state.family.lightened(rows)
    if hide is not None and len(order):
        rows = hide(rows, np.random.RandomState((*seed, first)))
    own, figures = copied(state), np.zeros(len(FIGURES))
    data = Data(rows, targets, weights)
    for now, _ in take_steps(own, rule, t, data, order, figures, stride=stride):
        own = now
    return End(own, len(order), figures)


def _join_ends(*ends: End) -> End:
    """Return the mean of states, weighted by the rows that each has seen."""
    seen = [end for end in ends if end.rows] or list(ends[:1])
    figures = np.sum([end.figures for end in ends], axis=0)
    if len(seen) == 1:
        return seen[0]._replace(figures=figures)
    sizes = [end.rows for end in seen]
    return End(mean_of([end.state for end in seen], sizes), sum(sizes), figures)


def balanced(sizes: Sequence[int], parts: int) -> list[list[int]]:
    """Group neighbouring partitions into groups of similar size; no group is empty.

    >>> balanced([5, 1, 1, 1, 4, 0], 3)
    [[0], [1, 2, 3], [4, 5]]
    """
    groups, group, held, left = list[list[int]](), list[int](), 0, sum(sizes)
    for place, size in enumerate(sizes):
        group.append(place)
        held += size
        later, missing = sizes[place + 1 :], parts - len(groups)
        # half of the next partition would make it too large, or leave too few for the others
        full = held + sum(later[:1]) / 2 >= left / missing or np.count_nonzero(later) < missing
        if missing > 1 and held and full and any(later):
            groups.append(group)
            group, held, left = [], 0, left - held
    return [*groups, group]


def resolve_engine(engine: Any) -> Dask | None:
    """Return the engine that an option names; None means threads of this process."""
    if engine is None:
        return None
    if isinstance(engine, str) and engine == "dask":
        return Dask()
    if not isinstance(engine, Dask):
        raise OptionError(f"engine={engine!r} must be None, 'dask' or a discem.Dask(client)")
    engine.check()
    return engine
