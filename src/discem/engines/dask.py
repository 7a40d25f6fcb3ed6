"""Dask: rows in parts, on the workers of a cluster, whose states are averaged.

Rows are sent, or read, and prepared once, and stay where they are; but where parts would differ in
their classes, as in files that are sorted, rows are first dealt over all parts. A round is this:
the state goes to the workers, each part copies it and takes the steps of its share of the rows,
with the prior and the units of the whole; states become their mean, a few at a time, in a tree; the
mean comes back. So a round costs one state to each worker and one back, whatever the number of
rows.

All that is random in a part follows from the seed of the epoch and the number of the part. What a
worker had that died is made again by others, from the start if need be, and is the same.
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

DEAR = 8.0  # a round is so many times as dear as one of threads, which share a memory
_FAN = 4  # states that become one at a time
_SKEWED = 0.01  # of the variance of a class within parts, between them: then rows are dealt anew
_UNEVEN = 1.5  # times the mean size of a part
_LARGE = {"distributed.admin.large-graph-warning-threshold": 1 << 62}  # states are large, and sent


class Dask(Sequential):
    """Rows on the workers of a cluster of dask, in parts whose states are averaged.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        None is the current client; where there is none, a local cluster of one process a core, for
        as long as a fit takes.
    parts : int or None, default=None
        The most parts that rows are trained in. None is one for each thread of the workers. There
        are fewer where rows are few: then partitions are trained together.

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
        return {"client": None, "parts": self.parts}  # a client is of one process

    def __deepcopy__(self, memo: Any) -> Dask:
        return type(self)(self.client, self.parts)

    def check(self) -> None:
        """Refuse what cannot be an engine."""
        whole = isinstance(self.parts, int | np.integer) and not isinstance(self.parts, bool)
        if self.parts is not None and not (whole and self.parts >= 1):
            raise OptionError(f"Dask: parts={self.parts!r} must be None or a whole number >= 1")
        if self.client is not None and not hasattr(self.client, "submit"):
            raise OptionError(f"Dask: client={self.client!r} is not a client of dask.distributed")

    @contextmanager
    def open(self) -> Iterator[Session]:
        """The workers, for as long as a fit takes."""
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
        """Take one pass over rows on workers, in rounds; `order` is then a seed."""
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
    """Workers that belong to a fit, and what it has asked of them."""

    def __init__(self, client: Any, engine: Dask):
        self.client, self.engine = client, engine
        self._futures: WeakSet[Any] = WeakSet()
        with self._translated():
            self.threads = max(sum(client.nthreads().values()), 1)

    @property
    def parts(self) -> int:
        """The most parts that rows are trained in."""
        return self.engine.parts or self.threads

    def read(self, function: Callable, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """Let workers compute partitions of collections, and keep what a function makes of each.

        A row is what the function is given: partitions, or what is here already; and its number.
        """
        import dask

        read = dask.delayed(function, pure=False)
        delayed = [read(*row, number=place) for place, row in enumerate(rows)]
        with self._translated(), dask.config.set(_LARGE):
            return self._keep(self.client.compute(delayed))

    def submit(self, function: Callable, *futures: Any, **given: Any) -> Any:
        """Let a worker call a function of what is on workers already, and of what is given."""
        import dask

        key = _unique(getattr(function, "__name__", "task").strip("_"))
        with self._translated(), dask.config.set(_LARGE):
            task = self.client.submit(partial(function, **given), *futures, pure=False, key=key)
            return self._keep([task])[0]

    def send(self, content: Any) -> Any:
        """Let something be on the workers; it can be sent again if they die."""
        return self.submit(_same, content=content)

    def reduce(self, function: Callable, futures: Sequence[Any]) -> Any:
        """What a function of any number makes of all, a few at a time, in a tree."""
        futures = list(futures)
        while len(futures) > 1:
            pairs = range(0, len(futures), _FAN)
            futures = [self.submit(function, *futures[i : i + _FAN]) for i in pairs]
        return futures[0]

    def gather(self, futures: Any) -> Any:
        """Wait for what workers compute."""
        with self._translated():
            return self.client.gather(futures)

    def close(self) -> None:
        """Let go of all that was asked of the workers."""
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
        """Say in one line what has happened to the workers."""
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
            if not gone and self.client.status == "running":  # then it is of what was asked for
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
    """Where a part, or several, ended a round."""

    state: Any
    rows: int
    figures: np.ndarray


class Shards:
    """Rows on workers, in parts to train apart; from here they are seen by a sample.

    Parameters
    ----------
    session : Session
    groups : list of lists of futures
        Of `Data`; those of a list are trained together.
    sizes : list of int
        Rows to train on, of each group.
    n_cells : int
        Stored cells of all rows.
    unit : float
        The weight of a row that takes a whole step.
    sample : Data
    order : array of int
        The rows of the sample that stand for those of the workers.
    parts : int or None
        In how many parts rows are dealt, each with its share of every group; None is that the
        groups are the parts.
    """

    def __init__(
        self, session, groups, sizes, n_cells: int, unit: float, sample: Data, order, parts=None
    ):
        self.session, self.sample, self.order = session, sample, order
        self.sizes = sizes if parts is None else _sizes_of_parts(sizes, parts)
        self.n_rows, self.n_cells = int(sum(sizes)), n_cells
        self.hide: Callable | None = None
        self.record: dict[str, Any] = {"parts": len(self.sizes)}  # of every epoch
        if parts is not None:
            self.record["dealt"] = 1.0
        self._groups, self._unit, self._dealt = groups, unit, parts is not None

    @cached_property
    def parts(self) -> list[Any]:
        """The rows of each part, in one piece of memory; nobody asks for them before training."""
        groups = self._groups
        if self._dealt:
            groups = _deal_all(self.session, groups, len(self.sizes))
        return [self.session.submit(_together, *group, unit=self._unit) for group in groups]

    @property
    def rows(self) -> Shards:
        """What is known here of the rows: how many there are."""
        return self

    def shuffled(self, rows: np.ndarray, rng: Any) -> int:
        """What the order of all rows follows from: each part mixes its own."""
        return rng.randint(2**31 - 1)

    def in_sample(self, figures: np.ndarray, order: Any) -> tuple[np.ndarray, Data, np.ndarray]:
        """Figures of a pass as if it had been over the sample, and the rows of that."""
        return figures * (len(self.order) / max(self.n_rows, 1)), self.sample, self.order

    def round(self, state, rule: Rule, t: int, seed: int, span: tuple[int, int]) -> End:
        """Let every part take its steps of a round; `span` is where it begins and ends."""
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
    """The steps of a part that has such a share of the rows: about each so-manieth one."""
    of = max(round(1.0 / share), 1)
    return Stride(place % of, of)


def _together(*pieces: Data, unit: float) -> Data:
    """Partitions that are trained together, in one piece of memory."""
    rows = pieces[0].rows if len(pieces) == 1 else joined([piece.rows for piece in pieces])
    weights = np.concatenate([piece.weights for piece in pieces]) / unit
    return Data(rows, join_targets([piece.targets for piece in pieces]), weights)


def _deal_all(session: Session, groups: Sequence[Sequence[Any]], parts: int) -> list[list[Any]]:
    """Groups of futures of `Data` in so many other ones, each with its share of the rows of all."""
    dealt = [
        session.submit(_deal, *group, parts=parts, place=place)
        for place, group in enumerate(groups)
    ]
    return [[session.submit(itemgetter(place), each) for each in dealt] for place in range(parts)]


def _sizes_of_parts(sizes: Sequence[int], parts: int) -> list[int]:
    turns = [_turns(size, parts, place) for place, size in enumerate(sizes)]
    return [sum(map(len, own)) for own in zip(*turns, strict=True)]


def _deal(*pieces: Data, parts: int, place: int) -> list[Data]:
    """Rows to train on in so many slices, each with its share of every class."""
    data = _together(*pieces, unit=1.0)
    order = np.random.RandomState(place).permutation(np.flatnonzero(data.weights > 0))
    order = order[np.argsort(data.targets.codes[order], kind="stable")]
    return [data.take(np.sort(order[list(own)])) for own in _turns(len(order), parts, place)]


def _turns(size: int, parts: int, first: int) -> list[range]:
    """Which of so many rows each part gets, one after the other in turns."""
    return [range((part + first) % parts, size, parts) for part in range(parts)]


def is_skewed(counts: np.ndarray) -> bool:
    """Whether parts, by rows of each class, (parts, K), are not what chance makes of all rows.

    It is asked of the sizes of parts, and of what a test of independence asks of their classes.

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
    """The targets of all rows; where some have shares, all have room for them."""
    codes = np.concatenate([piece.codes for piece in pieces])
    width = max(piece.share.shape[1] for piece in pieces)
    if not width:
        return Targets(codes, np.zeros((0, 0)))
    shares = [np.zeros((len(p.codes), width)) if p.plain else p.share for p in pieces]
    return Targets(codes, np.concatenate(shares))


def _take_part(state, data: Data, rule: Rule, t, seed, span, stride: Stride, hide) -> End:
    """Take the steps of a part of a round; the order of its rows is that of the epoch."""
    rng = np.random.RandomState(seed)
    order = rng.permutation(np.flatnonzero(data.weights > 0))
    n_batches = -(-len(order) // rule.batch)
    first, last = (rule.batch * round(n_batches * place) for place in span)
    order = order[first:last]
    if hide is not None:  # cells of the rows of this round only
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
    """The mean of states, by the rows that they have seen."""
    seen = [end for end in ends if end.rows] or list(ends[:1])
    figures = np.sum([end.figures for end in ends], axis=0)
    if len(seen) == 1:
        return seen[0]._replace(figures=figures)
    sizes = [end.rows for end in seen]
    return End(mean_of([end.state for end in seen], sizes), sum(sizes), figures)


def balanced(sizes: Sequence[int], parts: int) -> list[list[int]]:
    """Partitions in so many groups of neighbours, of about as many rows; none is without rows.

    >>> balanced([5, 1, 1, 1, 4, 0], 3)
    [[0], [1, 2, 3], [4, 5]]
    """
    groups, group, held, left = list[list[int]](), list[int](), 0, sum(sizes)
    for place, size in enumerate(sizes):
        group.append(place)
        held += size
        later, missing = sizes[place + 1 :], parts - len(groups)
        # with half of the next one it would be too large, or too few would be left for the others
        full = held + sum(later[:1]) / 2 >= left / missing or np.count_nonzero(later) < missing
        if missing > 1 and held and full and any(later):
            groups.append(group)
            group, held, left = [], 0, left - held
    return [*groups, group]


def resolve_engine(engine: Any) -> Dask | None:
    """The engine that an option names; None is that threads of this process do the work."""
    if engine is None:
        return None
    if isinstance(engine, str) and engine == "dask":
        return Dask()
    if not isinstance(engine, Dask):
        raise OptionError(f"engine={engine!r} must be None, 'dask' or a discem.Dask(client)")
    engine.check()
    return engine
