"""Fit and predict rows that are on workers, or still to be computed.

An estimator that gets `Pieces` instead of X fits a *sample* of the rows as usual, with three
differences: classes, levels and words are those of all rows; the statistics of the generative start
are, too; and the steps are taken on the workers. If there are few rows, the sample is all of them,
and options are chosen as in a local fit.
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

SAMPLE = 50_000  # rows in the sample
_FACTS = attrgetter("facts")


def spreads(fit: Method) -> Method:
    """Let a fit accept Dask collections; with the option `engine`, send any rows to workers."""

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
    """Return the rows of a fit: a `Piece`, or `Pieces` on workers."""
    return X if isinstance(X, Pieces) else Piece(X, y, sample_weight)


class Pieces:
    """Rows on workers, by partition, and a local sample of them.

    Parameters
    ----------
    session : Session
    futures : list
        Futures of `Piece`, each with rows.
    numbers : list of int
        The numbers of the partitions, for errors.
    sizes : list of int
        The number of rows of each partition.
    sample : Piece
    places : list of arrays
        The rows of each partition that are in the sample.
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
        """Return whether the sample has all rows."""
        return sum(map(len, self.places)) == self.n_rows

    @classmethod
    def read(cls, session: Session, X, y, sample_weight, seed: int) -> Pieces:
        """Put rows on workers: collections are read there, other rows are sent."""
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
        """Apply a function to X of every piece and of the sample.

        Each warning is shown once. Without `here`, the sample is taken from the results of the
        workers.
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
        """Return the same rows, with a weight of 0 for those without a label."""
        futures = [self.session.submit(tasks.without_unlabelled, each) for each in self.futures]
        sample = tasks.without_unlabelled(self.sample)
        return Pieces(self.session, futures, self.numbers, self.sizes, sample, self.places)

    def survey(self, look: Callable, merge: Callable) -> Any:
        """Apply `look` to each piece, and `merge` the results in a tree."""
        return self.session.gather(self.session.reduce(merge, self._submit(tasks.seen, look)))

    def labels(self, unlabelled: Any = None) -> LabelCounts:
        """Return the classes of all rows and their counts; one label may mean "no label"."""
        found = self.session.reduce(tasks.merge_labels, self._submit(tasks.labels_of, unlabelled))
        return self.session.gather(found)

    def batch(self, estimator: Any) -> Any:
        """Return the sample and all rows as the estimator checks them; workers check their rows."""
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
        """Submit a task for each piece; shared content is sent once."""
        sent = self.session.send(content)
        pairs = zip(self.numbers, self.futures, strict=True)
        return [self.session.submit(task, future, sent, number=p) for p, future in pairs]


def _spread(session: Session, X, y, sample_weight) -> list[Any]:
    """Return futures of pieces: the partitions of X, with their labels and weights."""
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
    """Return some rows of each piece in one."""
    chosen = [(i, rows) for i, rows in enumerate(places) if len(rows)]
    taken = session.gather(
        [session.submit(tasks.take, futures[i], rows=rows) for i, rows in chosen]
    )
    return Piece(
        *(None if each[0] is None else together(each) for each in zip(*taken, strict=True))
    )


def _draw(sizes: Sequence[int], seed: int) -> list[np.ndarray]:
    """Draw the rows of the sample from each partition."""
    if sum(sizes) <= SAMPLE:
        return [np.arange(size) for size in sizes]
    rng = np.random.default_rng(seed)
    wanted = rng.multivariate_hypergeometric(sizes, SAMPLE, method="marginals")
    return [
        np.sort(rng.choice(size, int(some), replace=False))
        for size, some in zip(sizes, wanted, strict=True)
    ]


def _worker(estimator: Any, labels: LabelCounts, X: Any) -> Any:
    """Return the estimator for workers, with all settings that depend on all rows."""
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
    """All rows of a batch: checked on the workers, with their totals here."""

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
        """Return the number of rows with a given weight."""
        return sum(facts.given for facts in self.facts)

    @property
    def total(self) -> float:
        """Return the weight of all rows."""
        return sum(facts.weight for facts in self.facts)

    @property
    def unit(self) -> float:
        """Return the mean weight of labelled rows, or of all rows if none has a label."""
        weight, rows = np.sum([facts.labelled for facts in self.facts], axis=0)
        if not rows:
            weight, rows = self.total, sum(facts.rows for facts in self.facts)
        return float(weight / max(rows, 1))

    def without(self, held: np.ndarray) -> CheckedPieces:
        """Exclude some rows of the sample from training."""
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
        """Return the tally of all rows; ``collect(rows, targets, weights)`` tallies some rows.

        With a seed, `collect` also gets an `rng`, one per partition.
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
        """Return rows to train on, in as many parts as pay off, each with its share of classes."""
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
    """Let a method with argument X work by partition if X is a Dask collection.

    Parameters
    ----------
    width : callable, optional
        From a model to the number of columns of the result; None means one number or class per row.
    dtype : callable, optional
        From a model to the type of the result; None is float.
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
    """Return the number of columns of a result with one number per class."""
    return len(model.classes_)


class _Question:
    """A method of a model that can be sent to workers."""

    def __init__(self, model: Any, method: str):
        self.model, self.method = model, method

    def __call__(self, X: Any) -> Any:
        return getattr(self.model, self.method)(X)


def _alone(model: Any) -> Any:
    """Return the model without what belongs to this process."""
    alone = copy(model)
    alone.set_params(callback=None, engine=None)
    return alone
