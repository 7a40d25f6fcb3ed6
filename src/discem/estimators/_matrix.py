"""Check arrays and frames of numbers that users give; errors name the row and column."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from ..exceptions import InputError, NoNumberError
from ..families import Accepts
from ..io.cells import LARGEST, is_missing, shown
from ..io.frames import check_shape
from ..io.vectors import check_names, check_there, columns_of, unmasked

_NO_DATES = "make numbers of them, such as days since one"


def read_X(estimator, X, accepts: Accepts, fresh: bool) -> tuple[Any, dict[str, Any]]:
    """Return X as `check_X` does, and the fitted attributes that it determines.

    With `fresh`, any columns are valid. The estimator itself is not changed.
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
    """Return a float64 matrix (dense, or CSR if accepted) of valid values."""
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
    except Exception as error:  # libraries of data frames raise their own errors
        cell = None if sp.issparse(X) else _first_other(X)
        if cell is None:
            refused = NoNumberError if isinstance(error, TypeError) else InputError
            raise refused(str(error)) from error
        row, column, value = cell
        where = _place(estimator, row, column)
        if isinstance(value, str):
            message = f"X has the text {shown(value)} at {where}: expected a number"
            raise InputError(message) from error
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
    """Return the cells of a table as objects; None if that is not possible."""
    try:
        cells = np.array(X, dtype=object)
    except MemoryError:
        raise
    except Exception:  # rows of different lengths, for example, or types unknown to NumPy
        return None
    return cells if cells.ndim == 2 else None


def _check_table(X) -> None:
    """Refuse tables that would be misread, or refused without a clear reason."""
    check_there(X, "X")
    names, _ = columns_of(X) or ([], None)
    if not names:
        _check_kind("X", getattr(X, "dtype", None))
        return
    check_names(names, "X")
    dtypes = getattr(X, "dtypes", None)
    for name, dtype in zip(names, X.schema.types if dtypes is None else dtypes, strict=False):
        _check_kind(f"column {name!r} of X", dtype)


def _check_kind(what: str, dtype) -> None:
    """Refuse dates: as numbers they would depend on an arbitrary unit and origin."""
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
    """Return whether X needs no conversion; scikit-learn takes longer to find out."""
    if type(X) in (sp.csr_matrix, sp.csr_array):
        kind = accepts.sparse and X.indices.dtype == np.int32
    else:
        kind = type(X) is np.ndarray and X.ndim == 2 and X.flags.c_contiguous
    return kind and X.dtype == np.float64 and 0 not in X.shape


def _is_known(estimator, X) -> bool:
    """Return whether X has the columns of the model, and neither has names."""
    return not hasattr(estimator, "feature_names_in_") and X.shape[1] == estimator.n_features_in_


def check_values(estimator, X, accepts: Accepts):
    """Return the matrix if its values are valid."""
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


def _where(X, bad) -> tuple[int, int]:
    """Return row and column of the first value that is `bad`."""
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
    """Return the first cell of a table that is not a number."""
    cells = _as_objects(X)
    if cells is None:
        return None
    for (row, column), value in np.ndenumerate(cells):
        if isinstance(value, np.complexfloating):  # NumPy would drop the imaginary part
            return row, column, value
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            return row, column, value
    return None
