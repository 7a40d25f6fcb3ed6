"""The only input validation: what comes from a user is checked here, once, and named if wrong."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from .._checks import NUMBER, demand
from ..engines import count_jobs, resolve_engine
from ..exceptions import InputError, NoNumberError, OptionError, UnknownOptionError
from ..families import Accepts
from ..targets import UNKNOWN, UNLABELLED, Targets, label_sets, labels, soft_labels

LARGEST = 1e150  # squares of what is beyond overflow


class Named:
    """An estimator whose options have names; one that does not exist is refused by name."""

    def __new__(cls, *args, **options):
        known = cls._get_param_names()  # type: ignore[attr-defined]
        for name in options:
            if name not in known:
                meant = get_close_matches(name, known, 1)
                hint = f"did you mean {meant[0]!r}?" if meant else f"there are: {known}"
                raise UnknownOptionError(f"{cls.__name__} has no option {name!r}; {hint}")
        return super().__new__(cls)


def is_count(value) -> bool:
    """Whether an option is a whole number >= 1."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def check_common_options(estimator) -> None:
    """See that options which several estimators share are of the kind that they should be."""
    for name in ("early_stopping", "shuffle", "warm_start", "rescore"):
        value = getattr(estimator, name, False)
        if not isinstance(value, bool | np.bool_):
            raise OptionError(f"{name}={value!r} must be True or False")
    verbose, callback = estimator.verbose, estimator.callback
    if not (isinstance(verbose, int | np.integer) and verbose >= 0):
        raise OptionError(f"verbose={verbose!r} must be a whole number >= 0")
    if callback is not None and not callable(callback):
        raise OptionError(f"callback={callback!r} must be None or a function of (model, record)")
    count_jobs(estimator.n_jobs)
    resolve_engine(estimator.engine)
    try:
        check_random_state(estimator.random_state)
    except ValueError as error:
        raise OptionError(f"random_state: {error}") from error


def check_share(name: str, value) -> None:
    """See that an option is a share of something, neither all of it nor nothing."""
    if not (isinstance(value, NUMBER) and 0 < value < 1):
        raise OptionError(f"{name}={value!r} must be between 0 and 1")


def check_unlabelled_weight(value) -> None:
    """See that an option can be the weight of what has no label."""
    if value != "auto" and not (isinstance(value, NUMBER) and 0 <= value < np.inf):
        raise OptionError(f"unlabelled_weight={value!r} must be 'auto' or a number >= 0")


def place_of(classes: np.ndarray, label) -> int:
    """Where a class stands among the classes."""
    place = np.flatnonzero(classes == label)
    if not len(place):
        raise InputError(f"there is no class {label!r}; there are: {classes.tolist()[:20]}")
    return int(place[0])


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
    except (TypeError, ValueError) as error:
        refused = "could not convert" in str(error) or "float() argument" in str(error)
        cell = _first_other(X) if refused else None
        if cell is None:
            raise
        row, column, value = cell
        if _is_missing(value) and hasattr(X, "notna"):  # pandas.NA, in a column of objects
            return check_X(estimator, X.where(X.notna(), np.nan), accepts, reset)
        where = _place(estimator, row, column)
        if isinstance(value, str):
            raise InputError(f"X has the text {value!r} at {where}: expected a number") from error
        raise NoNumberError(f"X has {value!r} at {where}: {error}") from error
    return check_values(estimator, X, accepts)


def _check_table(X) -> None:
    """Refuse tables that would be taken for something else, or be refused without a reason."""
    if hasattr(X, "collect"):
        raise InputError(f"X is a {type(X).__name__}, whose rows are not there yet: collect() them")
    if not hasattr(X, "columns"):
        _check_kind("X", getattr(X, "dtype", None))
        return
    names = list(X.columns)
    if len(set(names)) < len(names):
        ((name, _),) = Counter(names).most_common(1)
        raise InputError(f"X has two columns of the name {name!r}")
    for name, dtype in zip(names, getattr(X, "dtypes", ()), strict=False):
        _check_kind(f"column {name!r} of X", dtype)


def _check_kind(what: str, dtype) -> None:
    """Dates are no numbers: their unit, and where they start, are anybody's."""
    if getattr(dtype, "kind", "") in ("m", "M") or getattr(dtype, "is_temporal", bool)():
        raise InputError(
            f"{what} holds dates or times ({dtype}): make numbers of them, such as days since one"
        )


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
    """Labels (None or NaN: unlabelled) as a vector, or label sets or soft labels as a matrix.

    `needed` says that there must be at least one.
    """
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        if len(y) != n_rows:
            raise InputError(f"X has {n_rows} rows but y has {len(y)}")
        if y.dtype.kind not in "buif":
            raise InputError("y with several columns must hold booleans (label sets) or shares")
        return y
    if y.ndim != 1:
        y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise InputError(f"X has {n_rows} rows but y has {len(y)}")
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise InputError(f"Input y contains infinity at row {int(np.argmax(np.isinf(y)))}")
    known = _known(y)
    if known.dtype.kind in "biuUS" and len(known):
        return y  # can be nothing but classes
    if len(known):
        from sklearn.utils.multiclass import check_classification_targets  # not in sklearn.base

        check_classification_targets(y[~missing_labels(y)].astype(known.dtype))
    elif needed:
        raise InputError("y has no label at all: every row is None or NaN")
    return y


class Shares(NamedTuple):
    """What is known of the answers by class: label sets, or shares, and whose columns they are."""

    values: np.ndarray
    classes: np.ndarray


def read_y(y, n_rows: int, needed: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels as `check_y` has them, and the classes where these are named by the columns of y.

    Frames with several columns are named so, and so are sequences of sets of labels.
    """
    named = y if isinstance(y, Shares) else _named_columns(y)
    if named is None:
        named = _sets(y)
    if named is None:
        return check_y(y, n_rows, needed), None
    if len(named.classes) < 2:
        raise InputError(f"y names one class only, {named.classes.tolist()[0]!r}")
    return check_y(named.values, n_rows, needed), named.classes


def _named_columns(y) -> Shares | None:
    """Of a frame whose columns are the classes."""
    if not hasattr(y, "columns") or len(y.columns) < 2:
        return None
    names, values = np.array(list(y.columns)), np.asarray(y)
    if values.dtype == object:
        raise InputError("y with several columns must hold booleans (label sets) or shares")
    order = np.argsort(names, kind="stable")
    if len(np.unique(names)) < len(names):
        raise InputError("y has two columns of one name")
    return Shares(np.ascontiguousarray(values[:, order]), names[order])


def _sets(y) -> Shares | None:
    """Of a sequence in which some answers are sets; a label is a set of one, None is no answer."""
    many = (set, frozenset)
    if not isinstance(y, list | tuple) and getattr(y, "dtype", None) != np.dtype(object):
        return None
    if getattr(y, "ndim", 1) != 1 or not any(isinstance(each, many) for each in y):
        return None
    sets = [each if isinstance(each, many) else {each} - {None} for each in y]
    classes = find_classes(np.array([label for each in sets for label in each], dtype=object))
    place = {label: k for k, label in enumerate(classes.tolist())}
    values = np.zeros((len(sets), len(classes)), dtype=bool)
    for row, (given, each) in enumerate(zip(y, sets, strict=True)):
        values[row, [place[label] for label in each]] = True
        if not each and isinstance(given, many):
            raise InputError(f"y: the label set of row {row} is empty")
        if not each:
            values[row] = True
    return Shares(values, classes)


def spread_over(y: np.ndarray, classes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Columns of all known classes, of which those given are some."""
    if len(classes) == len(known):
        return y
    wide = np.zeros((len(y), len(known)), dtype=y.dtype)
    wide[:, np.searchsorted(known, classes)] = y
    return wide


def unmarked(y: Any, unlabelled: Any) -> Any:
    """Labels with None where they are the one that stands for none."""
    if unlabelled is None or y is None or isinstance(y, Shares) or np.ndim(y) != 1:
        return y
    known = [None if label == unlabelled else label for label in np.asarray(y).tolist()]
    return np.array(known, dtype=object)


def missing_labels(y: np.ndarray) -> np.ndarray:
    """Which rows are unlabelled."""
    if y.dtype.kind == "f":
        return np.isnan(y)
    missing = set()
    if y.dtype == object:
        missing = {label for label in _distinct(y) if _is_missing(label)}
    if not missing:
        return np.zeros(len(y), dtype=bool)
    return np.fromiter((label in missing for label in y.tolist()), dtype=bool, count=len(y))


def _distinct(y: np.ndarray) -> list:
    """Each of the labels once: they are few, and to look at every row takes time."""
    try:
        return list(dict.fromkeys(y.tolist()))
    except TypeError as error:
        raise InputError("y holds what can be no label: lists, or other collections") from error


def _is_missing(value) -> bool:
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ == "NAType"  # that of pandas


def _known(y: np.ndarray) -> np.ndarray:
    """The labels that are there, each at least once, in an array of their own type."""
    if y.dtype.kind not in "OUS":
        return y[~missing_labels(y)]
    known = [label for label in _distinct(y) if not _is_missing(label)]
    text = [isinstance(label, str) for label in known]
    if any(text) and not all(text):
        one, other = known[text.index(True)], known[text.index(False)]
        raise InputError(f"y mixes text, as {one!r}, with other labels, as {other!r}")
    return np.array(known)


def find_classes(y: np.ndarray) -> np.ndarray:
    """The sorted classes of checked labels."""
    if y.ndim == 2:
        return np.arange(y.shape[1])
    return np.unique(_known(y))


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


def join_classes(classes: np.ndarray, more: np.ndarray) -> np.ndarray:
    """The sorted classes of both."""
    if len(more) and (classes.dtype.kind in "US") != (more.dtype.kind in "US"):
        raise InputError(f"the classes {classes} and {more} are not of one kind")
    return np.union1d(classes, more) if len(more) else classes


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
    codes, known = np.full(len(y), UNLABELLED, dtype=np.int64), _known(y)
    if not len(known):
        return codes
    place = np.minimum(np.searchsorted(classes, known), len(classes) - 1)
    place = np.where(classes[place] == known, place, UNKNOWN)
    if y.dtype.kind in "OUS":  # what is known is each label once
        code_of = dict(zip(known.tolist(), place.tolist(), strict=True))
        return np.array([code_of.get(label, UNLABELLED) for label in y.tolist()], dtype=np.int64)
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
    cells = np.asarray(X, dtype=object)
    if cells.ndim != 2:
        return None
    for (row, column), value in np.ndenumerate(cells):
        try:
            float(value)
        except (TypeError, ValueError):
            return row, column, value
    return None
