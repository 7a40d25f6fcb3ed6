"""Read vectors and columns of any library: their cells, unchanged, and their names."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from operator import attrgetter
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..exceptions import InputError, reading
from .cells import shown

NAMED_ROW = re.compile(r"\b(in|at) row ([0-9]+)")  # in a message
_TIMES = ("date", "duration", "timestamp")  # types that Python rounds, or lacks


def plain_name(name: Any) -> str | int:
    """Return a name that files can hold; names with several levels become texts."""
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return int(name)
    return str(name)


def unmasked(X: np.ndarray) -> np.ndarray:
    """Return a plain array, with None or NaT for masked cells."""
    mask = np.ma.getmask(X)
    X = np.asarray(X)
    if mask is not np.ma.nomask:
        X = X.copy() if X.dtype.kind in "mM" else X.astype(object)
        X[mask] = None
    return X


def cells_of(y: Any, what: str) -> list[Any] | np.ndarray:
    """Return the cells of a vector, unchanged: a NumPy array, or a list of objects.

    Whole numbers beside missing cells stay whole, as floats would round large ones.
    """
    if isinstance(y, np.ndarray):
        return _cells_of_array(y, what)
    for backend, kinds, read in (
        ("pandas", ("Series", "Index", "api.extensions.ExtensionArray"), _cells_of_pandas),
        ("polars", ("Series",), _cells_of_polars),
        ("pyarrow", ("Array", "ChunkedArray"), _cells_of_arrow),
    ):
        library = sys.modules.get(backend)
        if library and any(isinstance(y, attrgetter(kind)(library)) for kind in kinds):
            with reading(what):
                return read(y, what)
    if hasattr(y, "to_native"):  # of narwhals
        return cells_of(y.to_native(), what)
    if sp.issparse(y):
        raise InputError(f"{what} is a sparse matrix: give it as an array, by toarray()")
    if hasattr(y, "__array__") or isinstance(y, memoryview):
        return _cells_of_array(np.asarray(y), what)
    if isinstance(y, str | bytes | Mapping | Set) or not isinstance(y, Collection):
        raise InputError(
            f"{what} should be a 1d array or a list, got {shown(y)}: give one cell for each row"
        )
    return list(y)


def _cells_of_array(y: np.ndarray, what: str) -> list[Any] | np.ndarray:
    if y.ndim != 1:
        raise InputError(f"{what} should be a 1d array, got an array of shape {y.shape} instead.")
    y = unmasked(y)
    return y.tolist() if y.dtype.kind in "OT" else y


def _cells_of_pandas(y: Any, what: str) -> list[Any] | np.ndarray:
    if hasattr(y.dtype, "pyarrow_dtype"):
        return _cells_of_arrow(getattr(y, "array", y).__arrow_array__(), what)
    _refuse_zone(y.dtype, what)
    return np.asarray(y) if _kind_of_numpy(y.dtype) else y.tolist()


def _kind_of_numpy(dtype: Any) -> bool:
    """Return whether a column of pandas is a NumPy array, or can become one without loss."""
    if type(dtype).__name__ == "SparseDtype":
        return _kind_of_numpy(dtype.subtype)
    return isinstance(dtype, np.dtype) and dtype.kind != "O"


def _cells_of_polars(y: Any, what: str) -> list[Any] | np.ndarray:
    _refuse_zone(y.dtype, what)
    return y.to_numpy() if str(y.dtype).lower().startswith(_TIMES) else y.to_list()


def _cells_of_arrow(y: Any, what: str) -> list[Any] | np.ndarray:
    import pyarrow as pa

    _refuse_zone(y.type, what)
    if pa.types.is_date64(y.type):  # days, in milliseconds
        y = y.cast(pa.date32())
    return np.asarray(y) if str(y.type).startswith(_TIMES) else y.to_pylist()


def categories_in(column: Any) -> tuple[np.ndarray, list[Any]] | None:
    """Return the codes of a column of categories or texts, -1 missing, and their values.

    None for other columns, and for libraries without codes.
    """
    for backend, find in (
        ("pandas", _categories_in_pandas),
        ("polars", _categories_in_polars),
        ("pyarrow", _categories_in_arrow),
    ):
        library = sys.modules.get(backend)
        found = find(column, library) if library else None
        if found is not None:
            return found
    return None


def _categories_in_pandas(column: Any, pd: Any) -> tuple[np.ndarray, list[Any]] | None:
    if isinstance(column, pd.Series):
        column = column.array
    if isinstance(column, pd.Categorical):
        return column.codes, column.categories.tolist()
    if isinstance(getattr(column, "dtype", None), pd.StringDtype):
        codes, levels = pd.factorize(column)
        return codes, levels.tolist()
    return None


def _categories_in_polars(column: Any, pl: Any) -> tuple[np.ndarray, list[Any]] | None:
    if not isinstance(column, pl.Series):
        return None
    if column.dtype == pl.String:
        column = column.cast(pl.Enum(column.unique().drop_nulls()))
    if column.dtype == pl.Enum:
        codes = column.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        return codes, column.dtype.categories.to_list()
    if column.dtype == pl.Categorical:  # all of them share their codes: look at those that are here
        levels = column.unique().drop_nulls()
        place = levels.to_physical().cast(pl.Int64).to_numpy()
        lookup = np.full(place.max(initial=-1) + 2, -1)
        lookup[place] = np.arange(len(place))
        codes = column.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        return lookup[codes], levels.cast(pl.String).to_list()
    return None


def _categories_in_arrow(column: Any, pa: Any) -> tuple[np.ndarray, list[Any]] | None:
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        return None
    if str(column.type) in ("string", "large_string", "string_view"):
        column = column.dictionary_encode()
    if not pa.types.is_dictionary(column.type):
        return None
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    codes = column.indices
    if codes.null_count or pa.types.is_unsigned_integer(codes.type):
        codes = codes.cast(pa.int64()).fill_null(-1)
    return codes.to_numpy(), column.dictionary.to_pylist()


def _refuse_zone(dtype: Any, what: str) -> None:
    if getattr(dtype, "tz", None) or getattr(dtype, "time_zone", None):
        raise InputError(
            f"{what} holds {dtype}, times with a time zone, which labels do not keep: make them "
            "texts, or leave the zone out"
        )


def check_there(given: Any, what: str) -> None:
    """Raise an error for a lazy frame."""
    if hasattr(given, "collect"):
        raise not_there(given, what)


def not_there(given: Any, what: str) -> InputError:
    kind = type(given).__name__
    return InputError(f"{what} is a {kind}, whose rows are not there yet: collect() them")


def check_names(names: Sequence[Any], what: str) -> None:
    """Raise an error if two columns have the same name."""
    if len(set(names)) < len(names):
        ((name, _),) = Counter(names).most_common(1)
        raise InputError(f"{what} has two columns of the name {name!r}")


def columns_of(frame: Any) -> tuple[list[Any], Callable[[int], Any]] | None:
    """Return the column names of a data frame, and a function that reads one; else None."""
    if hasattr(frame, "to_native"):  # of narwhals
        frame = frame.to_native()
    if hasattr(frame, "schema") and hasattr(frame, "column"):
        return list(frame.schema.names), frame.column
    if hasattr(frame, "columns") and hasattr(frame, "iloc"):
        return list(frame.columns), lambda j: frame.iloc[:, j]
    if hasattr(frame, "columns") and hasattr(frame, "to_series"):
        return list(frame.columns), frame.to_series
    return None


def has_names(X: Any) -> bool:
    """Return whether the columns have names: in a data frame, or a list of dicts."""
    if hasattr(X, "columns") or hasattr(X, "column_names"):  # of pyarrow
        return True
    return isinstance(X, list) and len(X) > 0 and isinstance(X[0], dict)


def in_place(message: str, place: Callable[[int], str]) -> str:
    """Replace row numbers in a message by what `place` returns."""
    message = message.replace("Input X contains", "there is")  # words of scikit-learn
    return NAMED_ROW.sub(lambda found: f"{found[1]} {place(int(found[2]))}", message)
