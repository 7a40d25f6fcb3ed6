"""Rows that are on workers, or still to be computed: how estimators fit them and answer for them.

An estimator that is given `Pieces` in place of X fits a *sample* of the rows, as it would fit any,
but for three things: classes, levels and words are those of all rows; so are the statistics of the
generative start; and steps are taken on the workers. Where rows are few the sample is all of them,
and what is chosen is what a local fit chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from functools import partial, wraps
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ..engines import Data, Session, Shards, Threads, balanced, is_skewed, resolve_engine
from ..exceptions import InputError, collecting, warn
from ..io.labels import plain_labels
from ..io.partitions import (
    is_collection,
    lazily,
    listed,
    n_rows,
    partitions,
    row_counts,
    some_rows,
    together,
)
from . import _tasks as tasks
from ._by_label import balance
from ._tasks import Facts, LabelCounts, Piece
from ._threads import Method

SAMPLE = 50_000  # rows that stand for all
_FACTS = attrgetter("facts")


def spreads(fit: Method) -> Method:
    """Let a fit take collections of dask and, with the option `engine`, put any rows on workers."""

    @wraps(fit)
    def call(self, X, y=None, sample_weight=None):
        engine = resolve_engine(self.engine)
        if isinstance(X, Pieces) or (engine is None and not is_collection(X)):
            return fit(self, X, y, sample_weight)
        if engine is None:
            raise InputError(
                f"X is a {type(X).__name__} of dask: fit it with engine='dask', or compute() it"
            )
        self._check_options()
        rng = deepcopy(check_random_state(self.random_state))  # training draws as if there was none
        seed = int(rng.randint(2**31 - 1))
        with engine.open() as session:
            return fit(self, Pieces.read(session, X, y, sample_weight, seed), None, None)

    return call  # type: ignore[return-value]


def rows_of(X: Any, y: Any, sample_weight: Any) -> Any:
    """The rows that a fit is given: a `Piece`, or `Pieces` on workers."""
    return X if isinstance(X, Pieces) else Piece(X, y, sample_weight)


class Pieces:
    """Rows on workers, by partition, and a sample of them that is here.

    Parameters
    ----------
    session : Session
    futures : list
        Of `Piece`, each with rows.
    numbers : list of int
        Which partitions these are, for errors.
    sizes : list of int
        How many rows each has.
    sample : Piece
    places : list of arrays
        Which rows of each partition are in the sample.
    """

    on_workers = True

    def __init__(self, session: Session, futures, numbers, sizes, sample: Piece, places):
        self.session, self.futures, self.numbers = session, futures, numbers
        self.sizes, self.sample, self.places = sizes, sample, places

    @property
    def n_rows(self) -> int:
        return int(sum(self.sizes))

    @property
    def complete(self) -> bool:
        """Whether the sample is all there is."""
        return sum(map(len, self.places)) == self.n_rows

    @classmethod
    def read(cls, session: Session, X, y, sample_weight, seed: int) -> Pieces:
        """Put rows on workers: those of collections are read there, others are sent."""
        futures = _spread(session, X, y, sample_weight)
        sizes = session.gather([session.submit(tasks.size_of, future) for future in futures])
        numbers = [p for p, size in enumerate(sizes) if size]
        if not numbers:
            raise InputError("X has no rows: all its partitions are empty")
        futures, sizes = [futures[p] for p in numbers], [sizes[p] for p in numbers]
        places = _draw(sizes, seed)
        sample = _taken(session, futures, places)
        return cls(session, futures, numbers, sizes, sample, places)

    def map(self, function: Callable, here: bool = True) -> Pieces:
        """Let X of every piece, and of the sample, be what a function makes of it.

        What it warns of, here or there, is said once. If it is not to be called `here`, the sample
        comes from the workers.
        """
        submit, mapped = self.session.submit, self._submit(tasks.mapped, function)
        warnings = self.session.gather([submit(attrgetter("warned"), each) for each in mapped])
        futures = [submit(attrgetter("piece"), each) for each in mapped]
        with collecting() as warned:
            if here:
                sample = self.sample._replace(X=function(self.sample.X))
            else:
                sample = _taken(self.session, futures, self.places)
        for message, category in dict.fromkeys(sum(warnings, warned)):
            warn(message, category)
        return Pieces(self.session, futures, self.numbers, self.sizes, sample, self.places)

    def without_unlabelled(self) -> Pieces:
        """The same rows, of which those without a label weigh nothing."""
        futures = [self.session.submit(tasks.without_unlabelled, each) for each in self.futures]
        sample = tasks.without_unlabelled(self.sample)
        return Pieces(self.session, futures, self.numbers, self.sizes, sample, self.places)

    def survey(self, look: Callable, merge: Callable) -> Any:
        """What `merge` makes of all that `look` sees in a piece, a few at a time, in a tree."""
        return self.session.gather(self.session.reduce(merge, self._submit(tasks.seen, look)))

    def labels(self, unlabelled: Any = None) -> LabelCounts:
        """The classes of all rows, and how many each has; one label may stand for none."""
        found = self.session.reduce(tasks.merge_labels, self._submit(tasks.labels_of, unlabelled))
        return self.session.gather(found)

    def batch(self, estimator: Any) -> Any:
        """The sample as the estimator checks it, and all rows, checked where they are."""
        labels = self.labels(getattr(estimator, "unlabelled", None))
        if not len(labels.classes):
            raise InputError("y has no label at all: every row is None or NaN")
        worker = _worker(estimator, labels, self.sample.X)
        check = partial(worker._check_data, fresh=True, classes=labels.classes, part=True)
        futures = self._submit(tasks.checked, check)
        facts = self.session.gather([self.session.submit(_FACTS, each) for each in futures])
        batch = check(*self.sample)
        return batch._replace(whole=CheckedPieces(self, futures, facts))

    def _submit(self, task: Callable, content: Any) -> list[Any]:
        """A task for each piece; what it needs is sent once."""
        sent = self.session.send(content)
        pairs = zip(self.numbers, self.futures, strict=True)
        return [self.session.submit(task, future, sent, number=p) for p, future in pairs]


def _spread(session: Session, X, y, sample_weight) -> list[Any]:
    """Futures of pieces: the partitions of X, and of what goes with them."""
    given = {"X": X, "y": y, "sample_weight": sample_weight}
    lazy = {name: partitions(each, name) for name, each in given.items() if is_collection(each)}
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    if not lazy:
        whole = Piece(*(None if each is None else listed(each) for each in given.values()))
        cuts = pairwise(np.arange(session.parts + 1) * whole.n_rows // session.parts)
        pieces = (whole.take(np.arange(a, b)) for a, b in cuts if b > a)
        read = tasks.read_piece
        return [session.submit(partial(read, *own), number=p) for p, own in enumerate(pieces)]
    if "X" not in lazy:
        raise InputError(f"{min(lazy)} is a collection of dask, and X is not: give both as one")
    sizes = row_counts(X)
    for name in lazy.keys() - {"X"}:
        own = row_counts(given[name])
        if sizes is not None and own is not None and own != sizes and sum(own) == sum(sizes):
            lazy[name] = partitions(given[name].rechunk({0: tuple(sizes)}), name)
        if len(lazy[name]) != len(lazy["X"]):
            raise InputError(
                f"X has {len(lazy['X'])} partitions, {name} has {len(lazy[name])}: "
                "they must be those of the same rows"
            )
    rest = [name for name in given if name not in lazy and given[name] is not None]
    if rest and sizes is None:
        sizes = session.gather(session.read(tasks.length_of, [[part] for part in lazy["X"]]))
    for name in rest:
        whole, ends = listed(given[name]), np.cumsum([0, *(sizes or [])])
        if n_rows(whole) != ends[-1]:
            raise InputError(f"X has {ends[-1]} rows but {name} has {n_rows(whole)}")
        lazy[name] = [some_rows(whole, np.arange(a, b)) for a, b in pairwise(ends)]
    nothing = [None] * len(lazy["X"])
    columns = [lazy.get(name, nothing) for name in given]
    return session.read(tasks.read_piece, list(zip(*columns, strict=True)))


def _taken(session: Session, futures: list[Any], places: list[np.ndarray]) -> Piece:
    """Some rows of each piece, together."""
    chosen = [(i, rows) for i, rows in enumerate(places) if len(rows)]
    taken = session.gather(
        [session.submit(tasks.take, futures[i], rows=rows) for i, rows in chosen]
    )
    return Piece(
        *(None if each[0] is None else together(each) for each in zip(*taken, strict=True))
    )


def _draw(sizes: Sequence[int], seed: int) -> list[np.ndarray]:
    """Which rows of each partition are in the sample: as many of all rows as there are for it."""
    if sum(sizes) <= SAMPLE:
        return [np.arange(size) for size in sizes]
    rng = np.random.default_rng(seed)
    wanted = rng.multivariate_hypergeometric(sizes, SAMPLE, method="marginals")
    return [
        np.sort(rng.choice(size, int(some), replace=False))
        for size, some in zip(sizes, wanted, strict=True)
    ]


def _worker(estimator: Any, labels: LabelCounts, X: Any) -> Any:
    """The estimator as workers need it; what depends on all rows is settled."""
    given = estimator.get_params(deep=False)
    options: dict[str, Any] = {"callback": None, "engine": None, "verbose": 0}
    rows = labels.counts.sum()
    if isinstance(given["class_weight"], str) and given["class_weight"] == "balanced" and rows:
        weights = balance(labels.counts)
        options["class_weight"] = dict(zip(plain_labels(labels.classes), weights, strict=True))
    if given.get("unlabelled_weight") == "auto" and labels.missing:
        family, ratio = estimator._choose_family(X), labels.missing / max(rows, 1)
        options["unlabelled_weight"] = estimator._auto_unlabelled(family, float(ratio))
    return type(estimator)(**(given | options))


# --- all rows, from here --------------------------------------------------------------------------


class CheckedPieces:
    """All rows of a batch that holds a sample of them: on workers, checked, and what is known."""

    def __init__(self, pieces: Pieces, futures: list[Any], facts: list[Facts]):
        self.pieces, self.session, self.futures, self.facts = pieces, pieces.session, futures, facts

    @property
    def engine(self) -> Any:
        return self.session.engine

    @property
    def complete(self) -> bool:
        return self.pieces.complete

    @property
    def n_given(self) -> int:
        """Rows that were given a weight."""
        return sum(facts.given for facts in self.facts)

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return sum(facts.weight for facts in self.facts)

    @property
    def unit(self) -> float:
        """The mean weight of the labelled rows; of all, if there are none."""
        weight, rows = np.sum([facts.labelled for facts in self.facts], axis=0)
        if not rows:
            weight, rows = self.total, sum(facts.rows for facts in self.facts)
        return float(weight / max(rows, 1))

    def without(self, held: np.ndarray) -> CheckedPieces:
        """Let some rows of the sample not be trained on."""
        if not len(held):
            return self
        place = np.repeat(np.arange(len(self.futures)), [len(each) for each in self.pieces.places])
        row = np.concatenate(self.pieces.places)
        futures = [
            self.session.submit(tasks.held_out, future, held=row[held[place[held] == i]])
            for i, future in enumerate(self.futures)
        ]
        facts = self.session.gather([self.session.submit(_FACTS, each) for each in futures])
        return CheckedPieces(self.pieces, futures, facts)

    def collect(self, collect: Callable, seed: int | None = None) -> Any:
        """The tally of all rows; ``collect(rows, targets, weights)`` is that of some.

        With a seed it is also given an `rng`, of its own for each partition.
        """
        sent = self.session.send(collect)
        tallies = [
            self.session.submit(
                tasks.collected, future, sent, seed=None if seed is None else (seed, number)
            )
            for number, future in zip(self.pieces.numbers, self.futures, strict=True)
        ]
        return self.session.gather(self.session.reduce(tasks.merge_tallies, tallies))

    def shards(self, state: Any, sample: Data, order: np.ndarray, unit: float) -> Shards:
        """Rows to train on, in as many parts as are worth it; each has its share of the classes."""
        sizes = [facts.rows for facts in self.facts]
        cells = sum(facts.n_cells for facts in self.facts)
        total = _Count(sum(facts.n_rows for facts in self.facts), cells)
        parts = Threads(self.session.parts).parts(state, total, sum(sizes))
        groups = balanced(sizes, parts)
        counts = np.stack([sum(self.facts[i].classes for i in group) for group in groups])
        mixed = len(groups) == parts and not is_skewed(counts)
        data = [self.session.submit(attrgetter("data"), future) for future in self.futures]
        return Shards(
            self.session,
            [[data[i] for i in group] for group in groups],
            [sum(sizes[i] for i in group) for group in groups],
            cells,
            unit,
            sample,
            order,
            None if mixed else parts,
        )


class _Count(NamedTuple):
    n_rows: int
    n_cells: int


# --- questions about rows that are not there yet --------------------------------------------------


def by_partition(
    width: Callable[[Any], int | None] | None = None, dtype: Any = None
) -> Callable[[Method], Method]:
    """Let a question about X be one about each partition, where X is a collection of dask.

    Parameters
    ----------
    width : callable, optional
        From a model to the columns of the answer; None is that an answer is one number, or class.
    dtype : callable, optional
        From a model to the type of the answer; None is float.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def call(self, X, *args, **kwargs):
            if not is_collection(X):
                return method(self, X, *args, **kwargs)
            if args or kwargs:
                raise InputError(f"{method.__name__} of a collection of dask takes X alone")
            columns = None if width is None else width(self)
            answer = _Question(_alone(self), method.__name__)
            return lazily(X, answer, columns, np.float64 if dtype is None else dtype(self))

        return call  # type: ignore[return-value]

    return decorate


def n_classes(model: Any) -> int:
    """The columns of what is said of every class."""
    return len(model.classes_)


class _Question:
    """A method of a model that can be sent to others."""

    def __init__(self, model: Any, method: str):
        self.model, self.method = model, method

    def __call__(self, X: Any) -> Any:
        return getattr(self.model, self.method)(X)


def _alone(model: Any) -> Any:
    """The model as it is now, without what belongs to this process."""
    alone = copy(model)
    alone.set_params(callback=None, engine=None)
    return alone
