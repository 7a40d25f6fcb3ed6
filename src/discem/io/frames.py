"""Open tables of any library (data frames, arrays, lists) to read them column by column."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..exceptions import InputError, needing, reading
from .cells import (
    Content,
    may_be_rounded,
    read_array,
    read_integers,
    read_levels,
    read_objects,
    refusal,
    shown,
)
from .making import dtype_of
from .vectors import (
    categories_in,
    check_names,
    check_there,
    not_there,
    plain_name,
    unmasked,
)

BACKENDS = ("pandas", "polars", "pyarrow", "array", "dicts")
_TABLES = "a data frame, an array with two axes, or a list of dicts or of lists"


class Table:
    """A table that is open for reading; columns are read when they are needed.

    The levels of columns are cached. `find` returns a column by its number, `read` its content;
    errors use `where`.
    """

    def __init__(
        self,
        backend: str,
        names: Sequence[Any] | None,
        shape: tuple[int, int],
        find: Callable[[int], Any],
        read: Callable[[Any, str], Content],
    ):
        if backend == "dicts":  # rows whose columns are unknown
            check_shape((shape[0], 1))
        else:
            check_shape(shape)
        self.backend = backend
        self.n_rows = shape[0]
        self.named = names is not None
        self.names = list(range(shape[1])) if names is None else [*map(plain_name, names)]
        self._find, self._read = find, read
        self._levels: dict[int, Content] = {}
        check_names(self.names, "X")

    def dtype(self, column: int) -> list[Any]:
        """Return the type of a column of a data frame, see `dtype_of`."""
        return dtype_of(self.backend, self._find(column))

    def content(self, column: int) -> Content:
        """Return the content of a column."""
        content = self._levels.get(column)
        if content is None:
            where = f"column {self.names[column]!r}"
            with reading(where):
                content = self._read(self._find(column), where)
            if content.kind == "level":
                self._levels[column] = content
        return content


def check_shape(shape: tuple[int, ...]) -> None:
    """Raise an error for tables without cells; scikit-learn's tests expect these words."""
    if len(shape) == 1:
        raise InputError(
            f"Expected 2D array, got 1D array instead, of {shape[0]} cells. Reshape your data: "
            "X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row"
        )
    if len(shape) != 2:
        raise InputError(f"Found array with dim {len(shape)}: expected a table, of dim 2")
    for size, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if not size:
            raise InputError(
                f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required."
            )


def check_table(X: Any) -> Table:
    """Open a table, or raise an error in one line.

    Parameters
    ----------
    X : table
        A data frame of pandas or polars, a Table or a RecordBatch of pyarrow, any other data frame
        that narwhals supports, an array with two axes, a list of dicts (absent keys are missing
        cells), or a list of lists. A `Table` is returned unchanged.

    Returns
    -------
    Table

    Examples
    --------
    >>> check_table([{"size": 3}, {"size": 4, "colour": "red"}]).names
    ['size', 'colour']
    """
    if isinstance(X, Table):
        return X
    if sp.issparse(X):
        raise InputError(
            "X is a sparse matrix, and tables are dense: "
            "for counts use MultinomialNB or MixtureClassifier"
        )
    if isinstance(X, list | tuple):
        return _open_list(X)
    if isinstance(X, np.ndarray):
        return _open_array(X)
    for backend, kinds, open_it in (
        ("pandas", ("DataFrame",), _open_pandas),
        ("polars", ("DataFrame",), _open_polars),
        ("pyarrow", ("Table", "RecordBatch"), _open_arrow),
    ):
        library = sys.modules.get(backend)  # if it is not imported, X cannot be its data frame
        if library and isinstance(X, tuple(getattr(library, kind) for kind in kinds)):
            return open_it(X)
    check_there(X, "X")
    if hasattr(X, "columns"):
        return _open_other(X)
    if hasattr(X, "__array__"):
        return _open_array(np.asarray(X))
    raise InputError(f"X is a {type(X).__name__}: expected {_TABLES}")


# --- arrays and lists -----------------------------------------------------------------------------


def _open_array(X: Any) -> Table:
    if X.dtype.kind == "c":
        raise InputError(f"Complex data not supported: X holds {X.dtype}")
    check_shape(X.shape)
    X = unmasked(X)
    return Table("array", None, X.shape, lambda j: X[:, j], read_array)


def _open_list(X: Sequence[Any]) -> Table:
    if not X:
        check_shape((0, 0))
    kind = Mapping if isinstance(X[0], Mapping) else Sequence | np.ndarray
    if not isinstance(X[0], kind) or isinstance(X[0], str | bytes):
        check_shape((len(X),))
    for row, cells in enumerate(X):
        if not isinstance(cells, kind) or isinstance(cells, str | bytes):
            raise InputError(f"row {row} of X is {shown(cells)}, unlike row 0: expected {_TABLES}")
        if kind is not Mapping and len(cells) != len(X[0]):
            raise InputError(f"row {row} of X has {len(cells)} cells, but row 0 has {len(X[0])}")
    if kind is Mapping:
        keys = list(dict.fromkeys(chain.from_iterable(X)))
        shape = len(X), len(keys)
        return Table("dicts", keys, shape, lambda j: [r.get(keys[j]) for r in X], read_objects)
    columns = list(zip(*X, strict=True))
    shape = len(X), len(columns)
    return Table("array", None, shape, lambda j: list(columns[j]), read_objects)


# --- data frames ----------------------------------------------------------------------------------


def _open_pandas(X: Any) -> Table:
    @cache
    def columns() -> list[Any]:  # all at once: `iloc` takes longer for a column than its only row
        return [column for _, column in X.items()]

    return Table("pandas", X.columns, X.shape, lambda j: columns()[j], _read_pandas)


def _read_pandas(column: Any, where: str) -> Content:
    import pandas as pd

    dtype = column.dtype
    found = categories_in(column)
    if found is not None:
        named = isinstance(dtype, pd.CategoricalDtype)
        return read_levels(*found, where)._replace(named=named)
    if dtype == np.dtype(object) and pd.api.types.infer_dtype(column) == "string":
        codes, levels = pd.factorize(column)
        return read_levels(codes, levels.tolist(), where)
    if isinstance(dtype, np.dtype):
        return read_array(column.to_numpy(), where)
    if isinstance(dtype, pd.ArrowDtype):
        return _read_arrow(column.array.__arrow_array__(), where)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return read_array(column.dt.tz_convert(None).to_numpy(), where)
    if isinstance(dtype, pd.PeriodDtype):
        return read_array(column.dt.to_timestamp().to_numpy(), where)
    if isinstance(dtype, pd.SparseDtype):
        return _read_pandas(column.sparse.to_dense(), where)
    if dtype.kind in "iu" and hasattr(dtype, "numpy_dtype"):  # numbers and a mask
        missing = column.isna().to_numpy()
        return read_integers(column.to_numpy(dtype=dtype.numpy_dtype, na_value=0), missing)
    if dtype.kind in "bf" and hasattr(dtype, "numpy_dtype"):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return Content("bool", values) if dtype.kind == "b" else read_array(values, where)
    return read_objects(column.tolist(), where)


def _open_polars(X: Any) -> Table:
    return Table("polars", X.columns, X.shape, X.to_series, _read_polars)


def _read_polars(column: Any, where: str) -> Content:
    import polars as pl

    dtype = column.dtype
    found = categories_in(column)
    if found is not None:
        return read_levels(*found, where)._replace(named=dtype != pl.String)
    if str(dtype) in ("Int128", "UInt128"):  # NumPy has no such type
        return read_objects(column.to_list(), where)
    if dtype.is_integer():
        missing = column.is_null().to_numpy() if column.null_count() else None
        return read_integers(column.fill_null(0).to_numpy(), missing)
    if dtype.is_numeric() or dtype == pl.Boolean:
        values = column.cast(pl.Float64).to_numpy()
        if dtype.is_decimal() and may_be_rounded(values):
            return read_objects(column.to_list(), where)
        return Content("bool", values) if dtype == pl.Boolean else read_array(values, where)
    if dtype.is_nested() or dtype in (pl.Time, pl.Binary):
        raise refusal(where, dtype)
    return read_array(column.to_numpy(), where)


def _open_arrow(X: Any) -> Table:
    return Table("pyarrow", X.schema.names, X.shape, X.column, _read_arrow)


def _read_arrow(column: Any, where: str) -> Content:
    import pyarrow as pa

    kind, dtype = pa.types, column.type
    found = categories_in(column)
    if found is not None:
        return read_levels(*found, where)._replace(named=kind.is_dictionary(dtype))
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if kind.is_integer(dtype) and column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        return read_integers(column.fill_null(0).to_numpy(), missing)
    if kind.is_boolean(dtype):
        values = column.cast(pa.uint8()).cast(pa.float64()).to_numpy(zero_copy_only=False)
        return Content("bool", values)
    if kind.is_nested(dtype) or kind.is_time(dtype):
        raise refusal(where, dtype)
    try:
        if not kind.is_decimal(dtype):
            return read_array(column.to_numpy(zero_copy_only=False), where)
        values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if may_be_rounded(values):
            return read_objects(column.to_pylist(), where)
        return read_array(values, where)
    except pa.ArrowException as error:
        raise refusal(where, dtype) from error


def _open_other(X: Any) -> Table:
    """Return a frame of another library, if it is not lazy."""
    with needing(f"a {type(X).__name__} is read by narwhals", "'discem[frames]'"):
        import narwhals as nw
    try:
        frame = nw.from_native(X)
    except TypeError as error:
        raise InputError(f"X is a {type(X).__name__}: expected {_TABLES}") from error
    if isinstance(frame, nw.LazyFrame):
        raise not_there(X, "X")
    native = frame.to_native()
    return _open_pandas(frame.to_pandas()) if native is X else check_table(native)
