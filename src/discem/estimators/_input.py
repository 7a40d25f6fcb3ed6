"""Check labels and weights that users give; errors name the row."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from .._checks import NUMBER, demand
from ..exceptions import InputError, reading
from ..io.cells import LARGEST, as_floats, first, is_missing, shown
from ..io.labels import (
    ONCE,
    are_same,
    is_kind_of_label,
    known_labels,
    missing_labels,
    places_of,
    read_labels,
)
from ..io.vectors import (
    categories_in,
    cells_of,
    check_names,
    check_there,
    columns_of,
    in_place,
    unmasked,
)
from ..targets import UNKNOWN, UNLABELLED, Targets, label_sets, labels, soft_labels
from ._types import ClassifierMixin, Labels, Table, Weights

_ROWS = list | tuple | np.ndarray
_SETS = set | frozenset


class Classifier(ClassifierMixin):
    """A scikit-learn classifier whose `score` accepts labels of every kind."""

    def score(self, X: Table, y: Labels, sample_weight: Weights = None) -> float:
        """Return the accuracy: the share of labelled rows that are predicted correctly."""
        model: Any = self
        found = np.asarray(model.predict(X))
        y = check_y(y, len(found))
        if y.ndim == 2:
            raise InputError("score needs plain labels, not label sets or shares")
        weights = np.where(missing_labels(y), 0.0, check_weights(sample_weight, found))
        if not weights.any():
            raise InputError("score needs labelled rows of a weight > 0")
        right = _codes(y, model.classes_) == _codes(found, model.classes_)
        return float(np.average(right, weights=weights))


def check_y(y, n_rows: int, needed: bool = True) -> np.ndarray:
    """Return labels as a vector (None, NaN, NaT: unlabelled), or sets and shares as a matrix.

    If `needed`, there must be at least one label.
    """
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    y = _matrix(y)
    if getattr(y, "ndim", 1) != 2:
        y = read_labels(y)
    _check_length(y, n_rows, needed and y.ndim == 1 and bool(missing_labels(y).all()))
    return y


def _check_length(y: Any, n_rows: int, lacks: bool) -> None:
    """Check that there is one answer per row, and that not all rows `lack` a label."""
    if len(y) != n_rows:
        raise InputError(f"X has {n_rows} rows but y has {len(y)}")
    if lacks:
        raise InputError("y has no label at all: every row is None or NaN")


def _matrix(y: Any) -> Any:
    """Return sets or shares as a matrix, a single column as a vector, and others unchanged."""
    if isinstance(y, Shares):
        return y.values
    names, column = columns_of(y) or ([], None)
    if column is not None and len(names) > 1:
        y = _stacked([_share_column(column(j), f"column {names[j]!r}") for j in range(len(names))])
    elif column is not None and names:
        y = cells_of(column(0), "y")
        if isinstance(y, list):
            y = np.fromiter(y, dtype=object, count=len(y))
        y = y[:, None]
    if isinstance(y, list | tuple) and _has(y, _ROWS) and any(map(_is_row, y)):
        y = _stack_rows(y)
    if sp.issparse(y):
        raise InputError("y is a sparse matrix: give it as an array, by toarray()")
    if getattr(y, "ndim", 1) != 2:
        return y
    y = unmasked(y)
    if y.shape[1] == 1:
        if y.dtype.kind == "c":  # scikit-learn would print every row
            return y[:, 0]
        return column_or_1d(y, warn=True)
    if not y.shape[1]:
        raise InputError("y has no columns")
    if y.dtype.kind not in "buif":
        y = _stacked([_share_column(y[:, j], f"column {j}") for j in range(y.shape[1])])
    return y


def _is_row(cells: Any) -> bool:
    """Return whether the object is a row of a matrix; a masked cell is an array without length."""
    return isinstance(cells, _ROWS) and getattr(cells, "ndim", 1) > 0


def _has(cells: Sequence[Any], kinds: Any) -> bool:
    """Return whether any cell has one of these types."""
    return any(issubclass(each, kinds) for each in set(map(type, cells)))


def _stack_rows(y: Any) -> np.ndarray:
    """Stack rows that are lists to a matrix."""
    for row, cells in enumerate(y):
        if _is_row(cells) != _is_row(y[0]) or (_is_row(cells) and len(cells) != len(y[0])):
            raise InputError(
                f"y has {shown(cells)} in row {row} and {shown(y[0])} in row 0: give a label, a "
                "set of labels, or one share of each class, for every row"
            )
    with suppress(ValueError):  # cells that are lists
        plain = np.asarray(y)
        if plain.ndim == 2 and plain.dtype.kind in "buif":
            return plain
    matrix = np.empty((len(y), len(y[0])), dtype=object)
    for row, cells in enumerate(y):
        for column, cell in enumerate(cells):
            matrix[row, column] = cell
    return matrix


def _share_column(cells: Any, where: str) -> np.ndarray:
    """Return shares as numbers, or possible classes as booleans."""
    cells = cells_of(cells, "y")
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "buif":
        return cells
    for row, cell in enumerate(cells):
        plain = isinstance(cell, NUMBER | Decimal | Fraction | np.bool_)
        if not (plain or is_missing(cell)) or isinstance(cell, np.timedelta64):
            raise InputError(
                "y with several columns must hold booleans (label sets) or shares, and has "
                f"{shown(cell)} in row {row}, {where}"
            )
    if all(isinstance(cell, bool | np.bool_) for cell in cells):
        return np.array(cells, dtype=bool)
    return as_floats([None if is_missing(cell) else cell for cell in cells])


def _stacked(columns: list[np.ndarray]) -> np.ndarray:
    """Stack columns: all booleans, or all shares."""
    kind = bool if all(column.dtype == bool for column in columns) else np.float64
    return np.column_stack([column.astype(kind) for column in columns])


class Shares(NamedTuple):
    """Label sets or shares, and the classes that their columns stand for."""

    values: np.ndarray
    classes: np.ndarray


@dataclass(frozen=True)
class Coded:
    """The labels of many rows as codes, so that no later step reads row by row."""

    labels: np.ndarray  # sorted and unique
    codes: np.ndarray  # (n,) the index of the label of each row; -1 is missing
    ndim: ClassVar = 1  # like a vector

    def __len__(self) -> int:
        return len(self.codes)


def coded(y: Any) -> Any:
    """Return categories or texts as codes; return any other y unchanged."""
    with reading("y"):
        found = _texts_in(y) if isinstance(y, list | np.ndarray) else categories_in(y)
    if found is None:
        return y
    codes, levels = found
    try:
        given = read_labels(levels)
    except InputError:  # let the error name the row
        return y
    known = np.unique(known_labels(given))
    return Coded(known, np.append(_codes(given, known), UNLABELLED)[codes])


def _texts_in(y: Any) -> tuple[np.ndarray, list[Any]] | None:
    """Return the codes of texts, -1 missing, and the texts; None if some cells are not texts."""
    cells = y.tolist() if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1 else y
    if not isinstance(cells, list) or not set(map(type, cells)) <= {str, type(None)}:
        return None
    levels = [label for label in dict.fromkeys(cells) if label is not None]
    place: dict[Any, int] = {label: code for code, label in enumerate(levels)} | {None: -1}
    codes = np.fromiter(map(place.__getitem__, cells), dtype=np.int64, count=len(cells))
    return codes, levels


def read_y(y, n_rows: int, needed: bool = True) -> tuple[Any, np.ndarray | None]:
    """Return labels as `check_y` does, and the classes if the columns of y name them.

    Frames with several columns name the classes, and so do sequences of sets of labels.
    """
    if isinstance(y, Coded):
        _check_length(y, n_rows, needed and bool((y.codes < 0).all()))
        return y, None
    named = y if isinstance(y, Shares) else _named_columns(y)
    if named is None and y is not None:
        y = _matrix(y)
        named = _sets(y) if getattr(y, "ndim", 1) == 1 else None
    if named is None:
        return check_y(y, n_rows, needed), None
    if len(named.classes) < 2:  # sets with one element are labels
        y = [next(iter(each)) if isinstance(each, _SETS) else each for each in cells_of(y, "y")]
        return check_y(y, n_rows, needed), None
    return check_y(named.values, n_rows, needed), named.classes


def _named_columns(y) -> Shares | None:
    """Read a frame whose columns are the classes."""
    check_there(y, "y")
    names, column = columns_of(y) or ([], None)
    if column is None or len(names) < 2:
        return None
    classes = _read_some(names, "the header of y", "column", range(len(names)))
    if missing_labels(classes).any():
        j = first(missing_labels(classes))
        raise InputError(f"the header of y has {names[j]!r} in column {j}, which can be no label")
    check_names(names, "y")
    classes, order = np.unique(classes, return_index=True)
    values = _stacked([_share_column(column(j), f"column {names[j]!r}") for j in order.tolist()])
    return Shares(values, classes)


def _sets(y) -> Shares | None:
    """Read a vector with label sets; a label is a set of one, None is no answer."""
    cells = cells_of(y, "y")
    if isinstance(cells, np.ndarray) or not _has(cells, _SETS):
        return None
    given: list[Any] = []
    rows: list[int] = []
    for row, each in enumerate(cells):
        if isinstance(each, _SETS):
            if not each:
                raise InputError(f"y: the label set of row {row} is empty")
            for label in each:
                if is_missing(label):
                    raise InputError(
                        f"y: the label set of row {row} holds {label!r}, which is no label; for a "
                        "row of which nothing is known, give None"
                    )
        elif is_missing(each):
            continue
        labels = each if isinstance(each, _SETS) else [each]
        given += labels
        rows += [row] * len(labels)
    found = _read_some(given, "y", "row", rows)
    classes, codes = np.unique(found, return_inverse=True)
    values = np.zeros((len(cells), len(classes)), dtype=bool)
    values[rows, codes] = True
    values[~values.any(axis=1)] = True
    return Shares(values, classes)


def _read_some(cells: list[Any], what: str, word: str, numbers: Sequence[int]) -> np.ndarray:
    """Read labels from scattered rows; errors use these row numbers."""
    try:
        return read_labels(cells, what)
    except InputError as error:
        message = in_place(str(error), lambda place: f"{word} {numbers[place]}")
        raise InputError(message) from None


def spread_over(y: np.ndarray, classes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Spread the columns over all known classes."""
    if len(classes) == len(known):
        return y
    wide = np.zeros((len(y), len(known)), dtype=y.dtype)
    wide[:, places_of(classes, known)] = y
    return wide


def unmarked(y: Any, unlabelled: Any) -> Any:
    """Replace the label that means "no label" by None."""
    if unlabelled is None or y is None or isinstance(y, Shares) or columns_of(y):
        return y
    y = _matrix(y)
    if getattr(y, "ndim", 1) != 1:
        return y
    cells = [None if is_missing(cell) else cell for cell in cells_of(y, "y")]
    kinds = set(filter(is_kind_of_label, set(map(type, cells))))
    # compare types too: not all pairs of types can be compared
    found = dict.fromkeys((type(cell), cell) for cell in cells if type(cell) in kinds)
    marks = {(kind, cell) for kind, cell in found if are_same(cell, unlabelled)}
    return [None if type(cell) in kinds and (type(cell), cell) in marks else cell for cell in cells]


def find_classes(y: np.ndarray | Coded) -> np.ndarray:
    """Return the sorted classes of checked labels."""
    if isinstance(y, Coded):
        counts = np.bincount(y.codes[y.codes >= 0], minlength=len(y.labels))
        return y.labels[counts > 0]
    if y.ndim == 2:
        return np.arange(y.shape[1])
    return np.unique(known_labels(y))


def check_classes(classes: Any) -> int:
    """Check that classes are sorted and valid; return their number."""
    vector = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 0
    demand(vector, "classes_ is not a list of labels")
    if classes.dtype == object:
        plain = all(isinstance(label, str | NUMBER) for label in classes)
        demand(plain, "classes_ holds what is no label")
    ordered = bool((classes[:-1] < classes[1:]).all()) and bool((classes == classes).all())
    demand(ordered, "classes_ are not in order, each of them once")
    return len(classes)


def encode(y: np.ndarray | Coded, classes: np.ndarray) -> Targets:
    """Return the targets of checked labels; a label outside `classes` is UNKNOWN."""
    if isinstance(y, Coded):
        return labels(np.append(_codes(y.labels, classes), UNLABELLED)[y.codes])
    if y.ndim == 1:
        return labels(_codes(y, classes))
    if y.shape[1] != len(classes):
        raise InputError(f"y has {y.shape[1]} columns but the model has {len(classes)} classes")
    if y.dtype == bool:
        if not y.any(axis=1).all():
            row = int(np.argmin(y.any(axis=1)))
            raise InputError(f"y: the label set of row {row} is empty")
        return label_sets(y)
    share = np.asarray(y, dtype=np.float64)
    good = np.isfinite(share).all(axis=1) & (share >= 0).all(axis=1)
    good &= np.abs(np.where(good, share.sum(axis=1), 0.0) - 1.0) < 1e-6
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(f"y: the soft label of row {row} is not a distribution over the classes")
    return soft_labels(share)


def _codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the index of each label among the classes."""
    codes, known = np.full(len(y), UNLABELLED, dtype=np.int64), known_labels(y)
    place = places_of(known, classes)
    place = np.where(place < 0, UNKNOWN, place)
    if y.dtype.kind in ONCE:
        code_of = dict(zip(known.tolist(), place.tolist(), strict=True))
        cells = y.tolist()
        try:  # the fastest way if no label is missing
            return np.fromiter(map(code_of.__getitem__, cells), dtype=np.int64, count=len(cells))
        except KeyError:
            return np.array([code_of.get(label, UNLABELLED) for label in cells], dtype=np.int64)
    codes[~missing_labels(y)] = place
    return codes


def check_weights(sample_weight, X, part: bool = False) -> np.ndarray:
    """Return non-negative weights, one per row; all may be 0 if X is a `part` of the rows."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    weights = sample_weight
    ready = type(weights) is np.ndarray and weights.dtype == np.float64
    if not (ready and weights.shape == X.shape[:1] and np.isfinite(weights).all()):
        weights = _check_sample_weight(weights, X, dtype=np.float64)
    if (weights < 0).any():
        raise InputError(f"sample_weight of row {int(np.argmax(weights < 0))} is negative")
    if weights.max(initial=0.0) > LARGEST:
        raise InputError(f"sample_weight of row {int(np.argmax(weights))} is beyond {LARGEST:g}")
    if not (part or weights.any()):
        raise InputError("sample_weight is zero for every row")
    return weights
