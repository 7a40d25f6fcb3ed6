"""The only input validation: what comes from a user is checked here, once, and named if wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from .._checks import NUMBER, demand
from ..exceptions import InputError, NoNumberError
from ..families import Accepts
from ..io.cells import LARGEST, as_floats, first, is_missing, shown
from ..io.file_rows import in_place
from ..io.frames import check_shape
from ..io.labels import (
    ONCE,
    are_same,
    is_kind_of_label,
    known_labels,
    missing_labels,
    places_of,
    read_labels,
)
from ..io.vectors import cells_of, columns_of, unmasked
from ..targets import UNKNOWN, UNLABELLED, Targets, label_sets, labels, soft_labels
from ._types import ClassifierMixin, Labels, Table, Weights

_NO_DATES = "make numbers of them, such as days since one"
_ROWS = list | tuple | np.ndarray
_SETS = set | frozenset


class Classifier(ClassifierMixin):
    """A classifier of scikit-learn that is scored on labels of every kind."""

    def score(self, X: Table, y: Labels, sample_weight: Weights = None) -> float:
        """The accuracy: the share of the rows with a label that are predicted right."""
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


def by_class(rows: np.ndarray, codes: np.ndarray, rng) -> np.ndarray:
    """The rows, one class after the other, in a random order within each."""
    order = rng.permutation(rows)
    return order[np.argsort(codes[order], kind="stable")]


def hold_out(codes: np.ndarray, weights: np.ndarray, fraction: float, rng) -> np.ndarray:
    """Rows to judge by: a share of each class (codes >= 0), of rows with a weight, at random.

    A class keeps what is not a whole number of rows: one of a single row is only trained on.
    """
    order = by_class(np.flatnonzero((weights > 0) & (codes >= 0)), codes, rng)
    sizes = np.bincount(codes[order])
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[rank < np.floor(fraction * sizes)[codes[order]]]


def read_X(estimator, X, accepts: Accepts, fresh: bool) -> tuple[Any, dict[str, Any]]:
    """X as `check_X` has it, and the fitted attributes that it determines.

    With `fresh`, columns may be any; the estimator itself is left as it is.
    """
    if _is_ready(X, accepts) and (fresh or _is_known(estimator, X)):
        return check_values(estimator, X, accepts), {"n_features_in_": X.shape[1]} if fresh else {}
    if not fresh:
        return check_X(estimator, X, accepts, reset=False), {}
    like = type(estimator)(**estimator.get_params(deep=False))
    X = check_X(like, X, accepts, reset=True)
    names = ("n_features_in_", "feature_names_in_")
    return X, {name: getattr(like, name) for name in names if hasattr(like, name)}


def check_X(estimator, X, accepts: Accepts, reset: bool):
    """A float64 matrix (dense, or CSR where sparse ones are accepted) of acceptable values."""
    _check_table(X)
    if isinstance(X, np.ndarray) and X.ndim == 1:
        check_shape(X.shape)
    X = _without_objects(estimator, X)
    try:
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if accepts.sparse else False,
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,
        )
    except MemoryError:
        raise
    except Exception as error:  # libraries of data frames have their own
        cell = None if sp.issparse(X) else _first_other(X)
        if cell is None:
            refused = NoNumberError if isinstance(error, TypeError) else InputError
            raise refused(str(error)) from error
        row, column, value = cell
        where = _place(estimator, row, column)
        if isinstance(value, str):
            told = f"X has the text {shown(value)} at {where}: expected a number"
            raise InputError(told) from error
        why = str(error).partition("\n")[0]
        raise NoNumberError(f"X has {shown(value)} at {where}: {why}") from error
    return check_values(estimator, X, accepts)


def _without_objects(estimator, X):
    """Cells that are objects, in which what is missing is NaN; dates, of which NumPy would make
    numbers, are refused.
    """
    X = unmasked(X) if isinstance(X, np.ma.MaskedArray) else X
    dtypes = getattr(X, "dtypes", [getattr(X, "dtype", np.dtype(object))])
    if sp.issparse(X) or all(getattr(dtype, "kind", "") != "O" for dtype in dtypes):
        return X
    cells = _as_objects(X)
    if cells is None or set(map(type, cells.ravel().tolist())) <= {int, float, bool, str}:
        return X
    missing = []
    for place, cell in np.ndenumerate(cells):
        if is_missing(cell):
            missing.append(place)
        elif isinstance(cell, np.datetime64 | np.timedelta64):
            where = _place(estimator, *place)
            raise InputError(f"X has the date or time {cell!r} at {where}: {_NO_DATES}")
    if not missing:
        return X
    cells[tuple(zip(*missing, strict=True))] = np.nan
    if hasattr(X, "iloc"):
        return type(X)(cells, columns=X.columns, index=X.index, dtype=object)
    return cells


def _as_objects(X) -> np.ndarray | None:
    """The cells of a table as they are; None if they are not to be had."""
    try:
        cells = np.array(X, dtype=object)
    except MemoryError:
        raise
    except Exception:  # rows of several lengths, say, or what NumPy has no type for
        return None
    return cells if cells.ndim == 2 else None


def _check_table(X) -> None:
    """Refuse tables that would be taken for something else, or be refused without a reason."""
    if hasattr(X, "collect"):
        raise InputError(f"X is a {type(X).__name__}, whose rows are not there yet: collect() them")
    names, _ = columns_of(X) or ([], None)
    if not names:
        _check_kind("X", getattr(X, "dtype", None))
        return
    if len(set(names)) < len(names):
        ((name, _),) = Counter(names).most_common(1)
        raise InputError(f"X has two columns of the name {name!r}")
    dtypes = getattr(X, "dtypes", None)
    for name, dtype in zip(names, X.schema.types if dtypes is None else dtypes, strict=False):
        _check_kind(f"column {name!r} of X", dtype)


def _check_kind(what: str, dtype) -> None:
    """Dates are no numbers: their unit, and where they start, are anybody's."""
    dtype = getattr(dtype, "pyarrow_dtype", dtype)
    dtype = getattr(dtype, "value_type", dtype)  # of codes, in pyarrow and in pandas
    if hasattr(dtype, "categories"):
        dtype = getattr(dtype.categories, "dtype", dtype)
    if getattr(dtype, "kind", "") == "c":
        raise InputError(f"Complex data not supported: {what} holds {dtype}")
    times = str(dtype).startswith(("timestamp", "date", "time", "duration"))  # of pyarrow, too
    if getattr(dtype, "kind", "") in ("m", "M") or getattr(dtype, "is_temporal", bool)() or times:
        raise InputError(f"{what} holds dates or times ({dtype}): {_NO_DATES}")


def _is_ready(X, accepts: Accepts) -> bool:
    """Whether X is what scikit-learn would make of it; to find that out takes it longer."""
    if type(X) in (sp.csr_matrix, sp.csr_array):
        kind = accepts.sparse and X.indices.dtype == np.int32
    else:
        kind = type(X) is np.ndarray and X.ndim == 2 and X.flags.c_contiguous
    return kind and X.dtype == np.float64 and 0 not in X.shape


def _is_known(estimator, X) -> bool:
    """Whether the columns of X are those of the model, neither having names."""
    return not hasattr(estimator, "feature_names_in_") and X.shape[1] == estimator.n_features_in_


def check_values(estimator, X, accepts: Accepts):
    """A matrix that is one already, if its values are acceptable."""
    values = X.data if sp.issparse(X) else X
    if not values.size:
        return X
    low, high = values.min(), values.max()
    has_nan = bool(np.isnan(low))
    if has_nan:
        low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    name = type(estimator).__name__
    if high > LARGEST or low < -LARGEST:
        row, column = _where(X, lambda v: np.abs(v) > LARGEST)
        problem = "infinity" if np.isinf(max(high, -low)) else f"a value beyond {LARGEST:g}"
        raise InputError(f"Input X contains {problem} at {_place(estimator, row, column)}")
    if has_nan and not accepts.missing:
        row, column = _where(X, np.isnan)
        raise InputError(
            f"Input X contains NaN at {_place(estimator, row, column)}: "
            f"{name} takes counts, and a missing count is not a number"
        )
    if low < 0 and not accepts.negative:
        row, column = _where(X, lambda v: v < 0)
        raise InputError(
            f"Negative values in data passed to {name}: {_place(estimator, row, column)}"
        )
    return X


def check_y(y, n_rows: int, needed: bool = True) -> np.ndarray:
    """Labels (None, NaN or NaT: unlabelled) as a vector, or label sets or shares as a matrix.

    `needed` says that there must be at least one.
    """
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    y = _matrix(y)
    if getattr(y, "ndim", 1) != 2:
        y = read_labels(y)
    if len(y) != n_rows:
        raise InputError(f"X has {n_rows} rows but y has {len(y)}")
    if y.ndim == 1 and needed and missing_labels(y).all():
        raise InputError("y has no label at all: every row is None or NaN")
    return y


def _matrix(y: Any) -> Any:
    """Label sets or shares as a matrix, the vector of what has one column, and others as is."""
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
        if y.dtype.kind == "c":  # of which scikit-learn would show every row
            return y[:, 0]
        return column_or_1d(y, warn=True)
    if not y.shape[1]:
        raise InputError("y has no columns")
    if y.dtype.kind not in "buif":
        y = _stacked([_share_column(y[:, j], f"column {j}") for j in range(y.shape[1])])
    return y


def _is_row(cells: Any) -> bool:
    """Whether it is the part of a matrix: a masked cell is an array, too, but has no length."""
    return isinstance(cells, _ROWS) and getattr(cells, "ndim", 1) > 0


def _has(cells: Sequence[Any], kinds: Any) -> bool:
    """Whether one of the cells is of some kinds; there are many cells, and of few types."""
    return any(issubclass(each, kinds) for each in set(map(type, cells)))


def _stack_rows(y: Any) -> np.ndarray:
    """Rows that are lists as a matrix."""
    for row, cells in enumerate(y):
        if _is_row(cells) != _is_row(y[0]) or (_is_row(cells) and len(cells) != len(y[0])):
            raise InputError(
                f"y has {shown(cells)} in row {row} and {shown(y[0])} in row 0: give a label, a "
                "set of labels, or one share of each class, for every row"
            )
    with suppress(ValueError):  # of cells that are lists
        plain = np.asarray(y)
        if plain.ndim == 2 and plain.dtype.kind in "buif":
            return plain
    matrix = np.empty((len(y), len(y[0])), dtype=object)
    for row, cells in enumerate(y):
        for column, cell in enumerate(cells):
            matrix[row, column] = cell
    return matrix


def _share_column(cells: Any, where: str) -> np.ndarray:
    """Shares as numbers, or whether a class may be the answer as booleans."""
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
    """Columns side by side: all of booleans, or all of shares."""
    kind = bool if all(column.dtype == bool for column in columns) else np.float64
    return np.column_stack([column.astype(kind) for column in columns])


class Shares(NamedTuple):
    """What is known of the answers by class: label sets, or shares, and whose columns they are."""

    values: np.ndarray
    classes: np.ndarray


def read_y(y, n_rows: int, needed: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels as `check_y` has them, and the classes where these are named by the columns of y.

    Frames with several columns are named so, and so are sequences of sets of labels.
    """
    named = y if isinstance(y, Shares) else _named_columns(y)
    if named is None and y is not None:
        y = _matrix(y)
        named = _sets(y) if getattr(y, "ndim", 1) == 1 else None
    if named is None:
        return check_y(y, n_rows, needed), None
    if len(named.classes) < 2:  # sets of one are labels
        y = [next(iter(each)) if isinstance(each, _SETS) else each for each in cells_of(y, "y")]
        return check_y(y, n_rows, needed), None
    return check_y(named.values, n_rows, needed), named.classes


def _named_columns(y) -> Shares | None:
    """Of a frame whose columns are the classes."""
    if hasattr(y, "collect"):
        raise InputError(f"y is a {type(y).__name__}, whose rows are not there yet: collect() them")
    names, column = columns_of(y) or ([], None)
    if column is None or len(names) < 2:
        return None
    classes = _read_some(names, "the header of y", "column", range(len(names)))
    if missing_labels(classes).any():
        j = first(missing_labels(classes))
        raise InputError(f"the header of y has {names[j]!r} in column {j}, which can be no label")
    classes, order = np.unique(classes, return_index=True)
    if len(classes) < len(names):
        ((name, _),) = Counter(names).most_common(1)
        raise InputError(f"y has two columns of the name {name!r}")
    values = _stacked([_share_column(column(j), f"column {names[j]!r}") for j in order.tolist()])
    return Shares(values, classes)


def _sets(y) -> Shares | None:
    """Of a vector in which some answers are sets; a label is a set of one, None is no answer."""
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
    """Labels that are not one below the other: errors say by these numbers where each is."""
    try:
        return read_labels(cells, what)
    except InputError as error:
        told = in_place(str(error), lambda place: f"{word} {numbers[place]}")
        raise InputError(told) from None


def spread_over(y: np.ndarray, classes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Columns of all known classes, of which those given are some."""
    if len(classes) == len(known):
        return y
    wide = np.zeros((len(y), len(known)), dtype=y.dtype)
    wide[:, places_of(classes, known)] = y
    return wide


def unmarked(y: Any, unlabelled: Any) -> Any:
    """Labels with None where they are the one that stands for none."""
    if unlabelled is None or y is None or isinstance(y, Shares) or columns_of(y):
        return y
    y = _matrix(y)
    if getattr(y, "ndim", 1) != 1:
        return y
    cells = [None if is_missing(cell) else cell for cell in cells_of(y, "y")]
    kinds = set(filter(is_kind_of_label, set(map(type, cells))))
    # by type, too: of others, not all can be compared
    found = dict.fromkeys((type(cell), cell) for cell in cells if type(cell) in kinds)
    marks = {(kind, cell) for kind, cell in found if are_same(cell, unlabelled)}
    return [None if type(cell) in kinds and (type(cell), cell) in marks else cell for cell in cells]


def find_classes(y: np.ndarray) -> np.ndarray:
    """The sorted classes of checked labels."""
    if y.ndim == 2:
        return np.arange(y.shape[1])
    return np.unique(known_labels(y))


def read_classes(classes: Any) -> np.ndarray:
    """The sorted classes of a list of them."""
    return np.unique(known_labels(read_labels(classes, "classes")))


def check_classes(classes: Any) -> int:
    """Refuse what are not the sorted classes of a model; return how many they are."""
    vector = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 0
    demand(vector, "classes_ is not a list of labels")
    if classes.dtype == object:
        plain = all(isinstance(label, str | NUMBER) for label in classes)
        demand(plain, "classes_ holds what is no label")
    ordered = bool((classes[:-1] < classes[1:]).all()) and bool((classes == classes).all())
    demand(ordered, "classes_ are not in order, each of them once")
    return len(classes)


def encode(y: np.ndarray, classes: np.ndarray) -> Targets:
    """The targets of checked labels; one outside `classes` is UNKNOWN."""
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
    """The place of each label among the classes."""
    codes, known = np.full(len(y), UNLABELLED, dtype=np.int64), known_labels(y)
    place = places_of(known, classes)
    place = np.where(place < 0, UNKNOWN, place)
    if y.dtype.kind in ONCE:
        code_of = dict(zip(known.tolist(), place.tolist(), strict=True))
        cells = y.tolist()
        try:  # the quickest way, if no label is missing
            return np.fromiter(map(code_of.__getitem__, cells), dtype=np.int64, count=len(cells))
        except KeyError:
            return np.array([code_of.get(label, UNLABELLED) for label in cells], dtype=np.int64)
    codes[~missing_labels(y)] = place
    return codes


def check_weights(sample_weight, X, part: bool = False) -> np.ndarray:
    """Non-negative weights, one per row; all may be zero where X is a `part` of the rows."""
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


def _where(X, bad) -> tuple[int, int]:
    """Row and column of the first value that is `bad`."""
    if sp.issparse(X):
        position = int(np.argmax(bad(X.data)))
        row = int(np.searchsorted(X.indptr, position, side="right")) - 1
        return row, int(X.indices[position])
    place = np.unravel_index(int(np.argmax(bad(X))), X.shape)
    return int(place[0]), int(place[1])


def _place(estimator, row: int, column: int) -> str:
    names = getattr(estimator, "feature_names_in_", None)
    return f"row {row}, column {column}" + (f" ({names[column]!r})" if names is not None else "")


def _first_other(X) -> tuple[int, int, Any] | None:
    """The first cell of a table that is not a number."""
    cells = _as_objects(X)
    if cells is None:
        return None
    for (row, column), value in np.ndenumerate(cells):
        if isinstance(value, np.complexfloating):  # of which NumPy would drop a part
            return row, column, value
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            return row, column, value
    return None
