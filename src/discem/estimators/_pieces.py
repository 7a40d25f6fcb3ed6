"""Rows that are on workers: what a fit asks of them, and what it sees of them from here.

An estimator that is given `Pieces` in place of X fits a *sample* of the rows, as it would fit any,
but for three things: classes, levels and words are those of all rows; so are the statistics of the
generative start; and steps are taken on the workers. Where rows are few the sample is all of them,
and what is chosen is what a local fit chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial, wraps
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from .. import models
from ..engines import Data, Session, Shards, Threads, balanced, is_skewed, resolve_engine
from ..exceptions import DiscemError, Heard, InputError, NoNumberError, listening, warn
from ..io.labels import join_labels, places_of, plain_labels
from ..io.partitions import (
    is_collection,
    listed,
    n_rows,
    partitions,
    row_counts,
    some_rows,
    together,
)
from . import _input
from ._by_label import balance
from ._threads import Method

SAMPLE = 50_000  # rows that stand for all
_SEED = 2**31 - 1


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
        seed = _seed(self.random_state)
        with engine.open() as session:
            return fit(self, Pieces.read(session, X, y, sample_weight, seed), None, None)

    return call  # type: ignore[return-value]


def _seed(random_state: Any) -> int:
    """A seed for all that is drawn before training; what training draws does not change by it."""
    return int(deepcopy(check_random_state(random_state)).randint(_SEED))


class Piece(NamedTuple):
    """The rows of a partition, or a sample of all."""

    X: Any
    y: Any
    weights: np.ndarray | None

    def take(self, rows: np.ndarray) -> Piece:
        """Some of the rows."""
        return Piece(*(each if each is None else some_rows(each, rows) for each in self))


class Labels(NamedTuple):
    """What is known of the answers of all rows."""

    classes: np.ndarray
    counts: np.ndarray  # rows of each class, where every row has one or none
    missing: int  # rows without a label


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
        sizes = session.gather([session.submit(_size, future) for future in futures])
        numbers = [p for p, size in enumerate(sizes) if size]
        if not numbers:
            raise InputError("X has no rows: all its partitions are empty")
        futures, sizes = [futures[p] for p in numbers], [sizes[p] for p in numbers]
        places = _draw(sizes, seed)
        chosen = [(i, rows) for i, rows in enumerate(places) if len(rows)]
        taken = session.gather([session.submit(_take, futures[i], rows=rows) for i, rows in chosen])
        sample = Piece(
            *(None if each[0] is None else together(each) for each in zip(*taken, strict=True))
        )
        return cls(session, futures, numbers, sizes, sample, places)

    def map(self, function: Callable) -> Pieces:
        """Let X of every piece, and of the sample, be what a function makes of it.

        What it warns of, here or there, is said once.
        """
        submit, mapped = self.session.submit, self._submit(_mapped, function)
        told = self.session.gather([submit(_heard_of, each) for each in mapped])
        futures = [submit(_piece_of, each) for each in mapped]
        with listening() as heard:
            sample = self.sample._replace(X=function(self.sample.X))
        for message, category in dict.fromkeys(sum(told, heard)):
            warn(message, category)
        return Pieces(self.session, futures, self.numbers, self.sizes, sample, self.places)

    def survey(self, look: Callable, merge: Callable) -> Any:
        """What `merge` makes of all that `look` sees in a piece, a few at a time, in a tree."""
        return self.session.gather(self.session.reduce(merge, self._submit(_seen, look)))

    def labels(self, unlabelled: Any = None) -> Labels:
        """The classes of all rows, and how many each has; one label may stand for none."""
        found = self.session.reduce(_join_labels, self._submit(_labels_of, unlabelled))
        return self.session.gather(found)

    def batch(self, estimator: Any) -> Any:
        """The sample as the estimator checks it, and all rows, checked where they are."""
        labels = self.labels(getattr(estimator, "unlabelled", None))
        if not len(labels.classes):
            raise InputError("y has no label at all: every row is None or NaN")
        worker = _worker(estimator, labels, self.sample.X)
        check = partial(worker._check_data, fresh=True, classes=labels.classes, part=True)
        futures = self._submit(_checked, check)
        facts = self.session.gather([self.session.submit(_facts, each) for each in futures])
        batch = check(*self.sample)
        return batch._replace(whole=Whole(self, futures, facts))

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
        cuts = _cuts(X, session.parts)
        return [
            session.submit(_sent, piece=_cut(given, slice(*cut)), number=p)
            for p, cut in enumerate(cuts)
        ]
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
        sizes = session.gather(session.read(_length, [[part] for part in lazy["X"]]))
    for name in rest:
        whole, ends = listed(given[name]), np.cumsum([0, *(sizes or [])])
        if n_rows(whole) != ends[-1]:
            raise InputError(f"X has {ends[-1]} rows but {name} has {n_rows(whole)}")
        lazy[name] = [some_rows(whole, np.arange(a, b)) for a, b in pairwise(ends)]
    nothing = [None] * len(lazy["X"])
    columns = [lazy.get(name, nothing) for name in given]
    return session.read(_piece, list(zip(*columns, strict=True)))


def _cuts(X: Any, parts: int) -> list[tuple[int, int]]:
    ends = np.arange(parts + 1) * n_rows(listed(X)) // parts
    return [(int(a), int(b)) for a, b in pairwise(ends) if b > a]


def _cut(given: dict[str, Any], own: slice) -> Piece:
    rows = np.arange(own.start, own.stop)
    return Piece(*(None if e is None else some_rows(listed(e), rows) for e in given.values()))


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


def _worker(estimator: Any, labels: Labels, X: Any) -> Any:
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


# --- tasks, on workers ----------------------------------------------------------------------------


@contextmanager
def _naming(number: int) -> Iterator[None]:
    """Let errors say in which partition a row is."""
    try:
        yield
    except DiscemError as error:
        raise _told(error, number) from None
    except (TypeError, ValueError) as error:
        raise InputError(f"partition {number}: {error}") from error


def _told(error: DiscemError, number: int) -> DiscemError:
    message = f"partition {number}: {error}"
    if isinstance(error, NoNumberError):
        return NoNumberError(message)
    return InputError(message) if isinstance(error, InputError) else type(error)(message)


def _piece(X: Any, y: Any, weights: Any, number: int) -> Piece:
    with _naming(number):
        X = listed(X)
        y = None if y is None else listed(y)
        weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        for name, each in (("y", y), ("sample_weight", weights)):
            if each is not None and n_rows(each) != n_rows(X):
                raise InputError(f"X has {n_rows(X)} rows but {name} has {n_rows(each)}")
        return Piece(X, y, weights)


def _sent(piece: Piece, number: int) -> Piece:
    return _piece(*piece, number)


def _length(X: Any, number: int) -> int:
    return n_rows(listed(X))


def _size(piece: Piece) -> int:
    return n_rows(piece.X)


def _take(piece: Piece, rows: np.ndarray) -> Piece:
    return piece.take(rows) if len(rows) < n_rows(piece.X) else piece


class Mapped(NamedTuple):
    """What a function has made of a piece, and what it has warned of."""

    piece: Piece
    heard: Heard


def _mapped(piece: Piece, function: Callable, number: int) -> Mapped:
    with _naming(number), listening() as heard:
        return Mapped(piece._replace(X=function(piece.X)), heard)


def _piece_of(mapped: Mapped) -> Piece:
    return mapped.piece


def _heard_of(mapped: Mapped) -> Heard:
    return mapped.heard


def _seen(piece: Piece, look: Callable, number: int) -> Any:
    with _naming(number):
        return look(piece)


def _labels_of(piece: Piece, unlabelled: Any, number: int) -> Labels:
    with _naming(number):
        y = _input.unmarked(piece.y, unlabelled)
        y, named = _input.read_y(y, n_rows(piece.X), needed=False)
        if y.ndim == 2:
            classes = np.arange(y.shape[1]) if named is None else named
            return Labels(classes, np.zeros(len(classes)), 0)
        classes = _input.find_classes(y)
        codes = _input.encode(y, classes).codes if len(classes) else np.full(len(y), -1)
        counts = np.bincount(codes[codes >= 0], minlength=len(classes)).astype(np.float64)
        return Labels(classes, counts, int(np.count_nonzero(codes < 0)))


def _join_labels(*found: Labels) -> Labels:
    known = [each for each in found if len(each.classes)]
    if not known:
        return found[0]._replace(missing=sum(each.missing for each in found))
    classes = known[0].classes
    for each in known[1:]:
        classes = join_labels(classes, each.classes)
    counts = np.zeros(len(classes))
    for each in known:
        counts[places_of(each.classes, classes)] += each.counts
    return Labels(classes, counts, sum(each.missing for each in found))


class Facts(NamedTuple):
    """What is known here of the rows of a partition that were checked."""

    rows: int  # with a weight
    n_rows: int
    n_cells: int
    given: int  # rows that were given a weight
    weight: float
    labelled: tuple[float, int]  # the weight of labelled rows, and how many have one
    classes: np.ndarray  # rows of each class, and of none


class Checked(NamedTuple):
    """The rows of a partition as families view them."""

    data: Data
    facts: Facts


def _checked(piece: Piece, check: Callable, number: int) -> Checked:
    with _naming(number):
        batch = check(*piece)
        data, given = Data(batch.rows, batch.targets, batch.weights), np.count_nonzero(batch.given)
        return _with_facts(data, int(given), len(batch.classes))


def _with_facts(data: Data, given: int, n_classes: int) -> Checked:
    rows, targets, weights = data
    kept = weights > 0
    own = targets.labelled & kept
    labelled = float(weights[own].sum()), int(np.count_nonzero(own))
    classes = models.count_classes(list(targets.parts(kept.astype(float))), n_classes)
    facts = Facts(
        int(np.count_nonzero(kept)), rows.n_rows, rows.n_cells, given, float(weights.sum()),
        labelled, np.append(classes, np.count_nonzero(kept) - labelled[1]),
    )  # fmt: skip
    return Checked(data, facts)


def _facts(checked: Checked) -> Facts:
    return checked.facts


def _data(checked: Checked) -> Data:
    return checked.data


def _held_out(checked: Checked, held: np.ndarray) -> Checked:
    weights = checked.data.weights.copy()
    weights[held] = 0.0
    data, (*_, given, _, _, classes) = checked.data._replace(weights=weights), checked.facts
    return _with_facts(data, given, len(classes) - 1)


def _collected(checked: Checked, collect: Callable, seed: tuple[int, int] | None) -> Any:
    if seed is None:
        return collect(*checked.data)
    return collect(*checked.data, rng=np.random.RandomState(seed))


def _merge_tallies(*tallies: models.Tally) -> models.Tally:
    family = tallies[0].family
    classes = np.sum([tally.classes for tally in tallies], axis=0)
    return models.Tally(family, classes, family.merged([tally.features for tally in tallies]))


# --- all rows, from here --------------------------------------------------------------------------


class Whole:
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

    def without(self, held: np.ndarray) -> Whole:
        """Let some rows of the sample not be trained on."""
        if not len(held):
            return self
        place = np.repeat(np.arange(len(self.futures)), [len(each) for each in self.pieces.places])
        row = np.concatenate(self.pieces.places)
        futures = [
            self.session.submit(_held_out, future, held=row[held[place[held] == i]])
            for i, future in enumerate(self.futures)
        ]
        facts = self.session.gather([self.session.submit(_facts, each) for each in futures])
        return Whole(self.pieces, futures, facts)

    def collect(self, collect: Callable, seed: int | None = None) -> Any:
        """The tally of all rows; ``collect(rows, targets, weights)`` is that of some.

        With a seed it is also given an `rng`, of its own for each partition.
        """
        sent = self.session.send(collect)
        tallies = [
            self.session.submit(
                _collected, future, sent, seed=None if seed is None else (seed, number)
            )
            for number, future in zip(self.pieces.numbers, self.futures, strict=True)
        ]
        return self.session.gather(self.session.reduce(_merge_tallies, tallies))

    def shards(self, state: Any, sample: Data, order: np.ndarray, unit: float) -> Shards:
        """Rows to train on, in as many parts as are worth it; each has its share of the classes."""
        sizes = [facts.rows for facts in self.facts]
        cells = sum(facts.n_cells for facts in self.facts)
        total = _Count(sum(facts.n_rows for facts in self.facts), cells)
        parts = Threads(self.session.parts).parts(state, total, sum(sizes))
        groups = balanced(sizes, parts)
        counts = np.stack([sum(self.facts[i].classes for i in group) for group in groups])
        mixed = len(groups) == parts and not is_skewed(counts)
        data = [self.session.submit(_data, future) for future in self.futures]
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
