"""Tables as they come: data frames, arrays and lists, opened to read one column after the other."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from decimal import Decimal
from importlib import import_module
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..exceptions import InputError, MissingExtraError, reading
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

BACKENDS = ("pandas", "polars", "pyarrow", "array", "dicts")
_TIMES = ("date", "duration", "timestamp")  # types that Python rounds, or does not have
_TABLES = "a data frame, an array with two axes, or a list of dicts or of lists"


class Table:
    """A table that is open for reading; a column is read when it is asked for.

    What took time to find, its levels, is kept. `find` gives a column by its number, and `read` its
    content, of which errors say `where`.
    """

    def __init__(
        self,
        backend: str,
        names: Sequence[Any] | None,
        shape: tuple[int, int],
        find: Callable[[int], Any],
        read: Callable[[Any, str], Content],
    ):
        if backend == "dicts":  # rows of which nothing is known
            check_shape((shape[0], 1))
        else:
            check_shape(shape)
        self.backend = backend
        self.n_rows = shape[0]
        self.named = names is not None
        self.names = list(range(shape[1])) if names is None else [*map(plain_name, names)]
        self._find, self._read = find, read
        self._levels: dict[int, Content] = {}
        if len(set(self.names)) < len(self.names):
            ((name, _),) = Counter(self.names).most_common(1)
            raise InputError(f"X has two columns of the name {name!r}")

    def content(self, column: int) -> Content:
        """What a column holds."""
        content = self._levels.get(column)
        if content is None:
            where = f"column {self.names[column]!r}"
            with reading(where):
                content = self._read(self._find(column), where)
            if content.kind == "level":
                self._levels[column] = content
        return content


def plain_name(name: Any) -> str | int:
    """A name that can stand in a file; those of several levels become texts."""
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return int(name)
    return str(name)


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse what has no cells; scikit-learn's tests know these words."""
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
    """Open a table, or say in one line what is wrong with it.

    Parameters
    ----------
    X : table
        A data frame of pandas or polars, a Table or a RecordBatch of pyarrow, any other data frame
        that narwhals knows, an array with two axes, a list of dicts (a key that a row lacks is a
        missing cell), or a list of lists. A `Table` is returned as it is.

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
        library = sys.modules.get(backend)  # if it is not there, X cannot be its data frame
        if library and isinstance(X, tuple(getattr(library, kind) for kind in kinds)):
            return open_it(X)
    if hasattr(X, "collect"):
        raise _not_there(X)
    if hasattr(X, "columns"):
        return _open_other(X)
    if hasattr(X, "__array__"):
        return _open_array(np.asarray(X))
    raise InputError(f"X is a {type(X).__name__}: expected {_TABLES}")


# --- vectors, and columns of any library ----------------------------------------------------------


def cells_of(y: Any, what: str) -> list[Any] | np.ndarray:
    """The cells of a vector as they are: an array of a type of NumPy's, or a list of objects.

    Whole numbers beside missing cells stay whole: as floats, large ones would be rounded.
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
    """Whether a column of pandas is an array of NumPy, or can be without loss."""
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


def _refuse_zone(dtype: Any, what: str) -> None:
    if getattr(dtype, "tz", None) or getattr(dtype, "time_zone", None):
        raise InputError(
            f"{what} holds {dtype}, times with a time zone, which labels do not keep: make them "
            "texts, or leave the zone out"
        )


def columns_of(frame: Any) -> tuple[list[Any], Callable[[int], Any]] | None:
    """The names of the columns of a data frame, and what gives each; None if it is no frame."""
    if hasattr(frame, "to_native"):  # of narwhals
        frame = frame.to_native()
    if hasattr(frame, "schema") and hasattr(frame, "column"):
        return list(frame.schema.names), frame.column
    if hasattr(frame, "columns") and hasattr(frame, "iloc"):
        return list(frame.columns), lambda j: frame.iloc[:, j]
    if hasattr(frame, "columns") and hasattr(frame, "to_series"):
        return list(frame.columns), frame.to_series
    return None


# --- arrays and lists -----------------------------------------------------------------------------


def unmasked(X: np.ndarray) -> np.ndarray:
    """A plain array, in which cells that were masked are None, or NaT."""
    mask = np.ma.getmask(X)
    X = np.asarray(X)
    if mask is not np.ma.nomask:
        X = X.copy() if X.dtype.kind in "mM" else X.astype(object)
        X[mask] = None
    return X


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
    return Table("pandas", X.columns, X.shape, lambda j: X.iloc[:, j], _read_pandas)


def _read_pandas(column: Any, where: str) -> Content:
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        levels = dtype.categories.tolist()
        return read_levels(column.array.codes, levels, where)._replace(named=True)
    if isinstance(dtype, pd.StringDtype) or (
        dtype == np.dtype(object) and pd.api.types.infer_dtype(column) == "string"
    ):
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
    if dtype == pl.String:
        column = column.cast(pl.Enum(column.unique().drop_nulls()))
    if dtype in (pl.String, pl.Enum):
        codes = column.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        content = read_levels(codes, column.dtype.categories.to_list(), where)
        return content._replace(named=dtype == pl.Enum)
    if dtype == pl.Categorical:  # all of them share their codes: look at those that are here
        levels = column.unique().drop_nulls()
        place = levels.to_physical().cast(pl.Int64).to_numpy()
        lookup = np.full(place.max(initial=-1) + 2, -1)
        lookup[place] = np.arange(len(place))
        codes = column.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        content = read_levels(lookup[codes], levels.cast(pl.String).to_list(), where)
        return content._replace(named=True)
    if str(dtype) in ("Int128", "UInt128"):  # NumPy has none
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
    if str(dtype) in ("string", "large_string", "string_view"):
        column = column.dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.DictionaryArray):
        named = pa.types.is_dictionary(dtype)
        return _read_arrow_levels(column, where)._replace(named=named)
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


def _read_arrow_levels(column: Any, where: str) -> Content:
    import pyarrow as pa

    codes, levels = column.indices, column.dictionary
    if codes.null_count or pa.types.is_unsigned_integer(codes.type):
        codes = codes.cast(pa.int64()).fill_null(-1)
    return read_levels(codes.to_numpy(), levels.to_pylist(), where)


def _open_other(X: Any) -> Table:
    """A frame of another library, if all of it is there."""
    try:
        import narwhals as nw
    except ImportError as error:
        raise MissingExtraError(
            f"a {type(X).__name__} is read by narwhals: pip install 'discem[frames]'"
        ) from error
    try:
        frame = nw.from_native(X)
    except TypeError as error:
        raise InputError(f"X is a {type(X).__name__}: expected {_TABLES}") from error
    if isinstance(frame, nw.LazyFrame):
        raise _not_there(X)
    native = frame.to_native()
    return _open_pandas(frame.to_pandas()) if native is X else check_table(native)


def _not_there(X: Any) -> InputError:
    return InputError(f"X is a {type(X).__name__}, whose rows are not there yet: collect() them")


# --- the way back ---------------------------------------------------------------------------------


def make_table(backend: str, names: Sequence[str | int], columns: Sequence[np.ndarray]) -> Any:
    """A table like those of a backend; columns hold floats, times, or objects, None missing."""
    if backend == "array" and all(column.dtype == np.float64 for column in columns):
        return np.column_stack(columns)
    if backend == "array":
        table = np.empty((len(columns[0]), len(columns)), dtype=object)
        for j, column in enumerate(columns):
            table[:, j] = _as_objects(column)
        return table
    if backend == "dicts":
        rows = zip(*map(_as_objects, columns), strict=True)
        named = (zip(names, row, strict=True) for row in rows)
        return [{name: cell for name, cell in row if cell is not None} for row in named]
    try:
        library = import_module(backend)
    except ImportError as error:
        raise MissingExtraError(
            f"the table to be made is one of {backend}, as that of the fit: pip install {backend}"
        ) from error
    try:
        if backend == "pandas":
            table = library.DataFrame({j: _as_pandas(library, c) for j, c in enumerate(columns)})
            table.columns = library.Index(names, dtype=None if are_texts(names) else object)
            return table
        texts = list(map(str, names))
        if backend == "polars":
            pairs = zip(texts, columns, strict=True)
            return library.DataFrame([_as_polars(library, *pair) for pair in pairs])
        return library.table([_as_arrow(library, column) for column in columns], names=texts)
    except (OverflowError, TypeError, ValueError) as error:  # one that came later, of another kind
        raise InputError(f"a cell or name has no place in a table of {backend}: {error}") from error


def _as_objects(column: np.ndarray) -> list[Any]:
    """Cells as Python has them; NaN and NaT are None."""
    return [None if cell != cell else cell for cell in column.tolist()]


def are_texts(cells: Iterable[Any]) -> bool:
    """Whether cells that are strings can be written: half of a pair of characters cannot."""
    try:
        "".join(cell for cell in cells if isinstance(cell, str)).encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_pandas(pd: Any, column: np.ndarray) -> Any:
    if column.dtype != object:
        return pd.Series(column)
    cells = column.tolist()
    kinds = set(map(type, cells)) - {type(None)}
    dtypes = {bool: "boolean", int: object}  # what pandas would make numbers of if one is missing
    if kinds == {str} and not are_texts(cells):
        return pd.Series(cells, dtype=object)
    return pd.Series(cells, dtype=dtypes.get(kinds.pop()) if len(kinds) == 1 else None)


def _as_polars(pl: Any, name: str, column: np.ndarray) -> Any:
    if column.dtype != object:
        return pl.Series(name, column, nan_to_null=True)
    cells = column.tolist()
    return pl.Series(
        name, cells, dtype=_holding(cells, ("Int64", "UInt64", "Int128", "UInt128"), pl)
    )


def _as_arrow(pa: Any, column: np.ndarray) -> Any:
    if column.dtype != object:
        return pa.array(column, from_pandas=True)
    cells = column.tolist()
    dtype = _holding(cells, ("int64", "uint64"), pa)
    if dtype is None and any(type(cell) is int for cell in cells):  # of more bits than any type has
        cells = [None if cell is None else Decimal(cell) for cell in cells]
    return pa.array(cells, dtype)


def _holding(cells: list[Any], names: Sequence[str], library: Any) -> Any:
    """The first type that holds the cells, if they are whole numbers, and there is one."""
    seen = [cell for cell in cells if cell is not None]
    if set(map(type, seen)) != {int}:
        return None
    for name in names:
        bits, signed = int(name.lower().lstrip("uint")), not name.lower().startswith("u")
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
        if low <= min(seen) and max(seen) < high:
            dtype = getattr(library, name)
            return dtype() if library.__name__ == "pyarrow" else dtype
    return None
