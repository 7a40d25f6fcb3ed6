"""What workers do with a piece of the rows, and what they tell of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .. import models
from ..engines import Data
from ..exceptions import DiscemError, InputError, NoNumberError, Warned, collecting
from ..io.labels import join_labels, places_of
from ..io.partitions import listed, n_rows, some_rows
from . import _input


class Piece(NamedTuple):
    """Rows that are here: all that a fit was given, those of a partition, or a sample of all.

    A fit asks of it what it asks of `Pieces`, whose rows are on workers.
    """

    X: Any
    y: Any
    weights: Any

    @property
    def on_workers(self) -> bool:
        return False

    @property
    def complete(self) -> bool:
        """Whether the sample is all there is."""
        return True

    @property
    def sample(self) -> Piece:
        return self

    @property
    def n_rows(self) -> int:
        return n_rows(self.X)

    def batch(self, estimator: Any) -> Any:
        """The rows as the estimator checks them."""
        return estimator._check_data(*self, fresh=True)

    def take(self, rows: np.ndarray) -> Piece:
        """Some of the rows."""
        return Piece(*(each if each is None else some_rows(each, rows) for each in self))


class LabelCounts(NamedTuple):
    """What is known of the answers of all rows."""

    classes: np.ndarray
    counts: np.ndarray  # rows of each class, where every row has one or none
    missing: int  # rows without a label


@contextmanager
def naming(number: int) -> Iterator[None]:
    """Let errors say in which partition a row is."""
    try:
        yield
    except DiscemError as error:
        raise _named(error, number) from None
    except (TypeError, ValueError) as error:
        raise InputError(f"partition {number}: {error}") from error


def _named(error: DiscemError, number: int) -> DiscemError:
    message = f"partition {number}: {error}"
    if isinstance(error, NoNumberError):
        return NoNumberError(message)
    return InputError(message) if isinstance(error, InputError) else type(error)(message)


def read_piece(X: Any, y: Any, weights: Any, number: int) -> Piece:
    with naming(number):
        X = listed(X)
        y = None if y is None else listed(y)
        weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        for name, each in (("y", y), ("sample_weight", weights)):
            if each is not None and n_rows(each) != n_rows(X):
                raise InputError(f"X has {n_rows(X)} rows but {name} has {n_rows(each)}")
        return Piece(X, y, weights)


def length_of(X: Any, number: int) -> int:
    return n_rows(listed(X))


def size_of(piece: Piece) -> int:
    return piece.n_rows


def take(piece: Piece, rows: np.ndarray) -> Piece:
    return piece.take(rows) if len(rows) < piece.n_rows else piece


def without_unlabelled(piece: Piece) -> Piece:
    y, _ = _input.read_y(piece.y, piece.n_rows, needed=False)
    if y.ndim == 2:
        return piece
    weights = np.ones(len(y)) if piece.weights is None else np.asarray(piece.weights, np.float64)
    return piece._replace(weights=np.where(_input.missing_labels(y), 0.0, weights))


class Mapped(NamedTuple):
    """What a function has made of a piece, and what it has warned of."""

    piece: Piece
    warned: Warned


def mapped(piece: Piece, function: Callable, number: int) -> Mapped:
    with naming(number), collecting() as warned:
        return Mapped(piece._replace(X=function(piece.X)), warned)


def seen(piece: Piece, look: Callable, number: int) -> Any:
    with naming(number):
        return look(piece)


def labels_of(piece: Piece, unlabelled: Any, number: int) -> LabelCounts:
    with naming(number):
        y = _input.unmarked(piece.y, unlabelled)
        y, named = _input.read_y(y, piece.n_rows, needed=False)
        if y.ndim == 2:
            classes = np.arange(y.shape[1]) if named is None else named
            return LabelCounts(classes, np.zeros(len(classes)), 0)
        classes = _input.find_classes(y)
        codes = _input.encode(y, classes).codes if len(classes) else np.full(len(y), -1)
        counts = np.bincount(codes[codes >= 0], minlength=len(classes)).astype(np.float64)
        return LabelCounts(classes, counts, int(np.count_nonzero(codes < 0)))


def merge_labels(*found: LabelCounts) -> LabelCounts:
    known = [each for each in found if len(each.classes)]
    if not known:
        return found[0]._replace(missing=sum(each.missing for each in found))
    classes = known[0].classes
    for each in known[1:]:
        classes = join_labels(classes, each.classes)
    counts = np.zeros(len(classes))
    for each in known:
        counts[places_of(each.classes, classes)] += each.counts
    return LabelCounts(classes, counts, sum(each.missing for each in found))


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


def checked(piece: Piece, check: Callable, number: int) -> Checked:
    with naming(number):
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


def held_out(checked: Checked, held: np.ndarray) -> Checked:
    weights = checked.data.weights.copy()
    weights[held] = 0.0
    data, (*_, given, _, _, classes) = checked.data._replace(weights=weights), checked.facts
    return _with_facts(data, given, len(classes) - 1)


def collected(checked: Checked, collect: Callable, seed: tuple[int, int] | None) -> Any:
    if seed is None:
        return collect(*checked.data)
    return collect(*checked.data, rng=np.random.RandomState(seed))


def merge_tallies(*tallies: models.Tally) -> models.Tally:
    family = tallies[0].family
    classes = np.sum([tally.classes for tally in tallies], axis=0)
    return models.Tally(family, classes, family.merged([tally.features for tally in tallies]))
