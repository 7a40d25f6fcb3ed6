"""Make tables of a given library, with the types of the table that was read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from importlib import import_module
from typing import Any

import numpy as np

from ..exceptions import InputError, needing

_ARGUMENTS = ("time_unit", "time_zone", "precision", "scale")  # of types of polars
_DICTIONARY = re.compile(r"dictionary<values=(\w+), indices=(\w+), ordered=([01])>")
_TIMESTAMP = re.compile(r"timestamp\[(\w+), tz=(.+)\]")


def make_table(
    backend: str,
    names: Sequence[str | int],
    columns: Sequence[np.ndarray],
    dtypes: Iterable[list[Any]] | None = None,
) -> Any:
    """Make a table of a backend; columns hold floats, times, or objects with None for missing.

    Columns of data frames get the given `dtypes`, see `dtype_of`.
    """
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
    with needing(f"the table to be made is one of {backend}, as that of the fit", backend):
        library = import_module(backend)
    try:
        make = {"pandas": _as_pandas, "polars": _as_polars, "pyarrow": _as_arrow}[backend]
        made = [make(library, column) for column in columns]
        if dtypes is not None:
            made = [typed(backend, *pair) for pair in zip(made, dtypes, strict=True)]
        if backend == "pandas":
            table = library.DataFrame(dict(enumerate(made)))
            table.columns = library.Index(names, dtype=None if are_texts(names) else object)
            return table
        texts = list(map(str, names))
        if backend == "polars":
            pairs = zip(texts, made, strict=True)
            return library.DataFrame([column.alias(name) for name, column in pairs])
        return library.table(made, names=texts)
    except (OverflowError, TypeError, ValueError) as error:  # one that came later, of another kind
        raise InputError(f"a cell or name has no place in a table of {backend}: {error}") from error


def _as_objects(column: np.ndarray) -> list[Any]:
    """Return cells as Python objects; NaN and NaT become None."""
    return [None if cell != cell else cell for cell in column.tolist()]


def are_texts(cells: Iterable[Any]) -> bool:
    """Return whether strings can be encoded; lone surrogates cannot."""
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
    dtypes = {bool: "boolean", int: object}  # pandas would make floats of them if one is missing
    if kinds == {str} and not are_texts(cells):
        return pd.Series(cells, dtype=object)
    return pd.Series(cells, dtype=dtypes.get(kinds.pop()) if len(kinds) == 1 else None)


def _as_polars(pl: Any, column: np.ndarray) -> Any:
    if column.dtype != object:
        return pl.Series(column, nan_to_null=True)
    cells = column.tolist()
    return pl.Series(cells, dtype=_holding(cells, ("Int64", "UInt64", "Int128", "UInt128"), pl))


def _as_arrow(pa: Any, column: np.ndarray) -> Any:
    if column.dtype != object:
        return pa.array(column, from_pandas=True)
    cells = column.tolist()
    dtype = _holding(cells, ("int64", "uint64"), pa)
    if dtype is None and any(type(cell) is int for cell in cells):  # of more bits than any type has
        cells = [None if cell is None else Decimal(cell) for cell in cells]
    return pa.array(cells, dtype)


def _holding(cells: list[Any], names: Sequence[str], library: Any) -> Any:
    """Return the first type that holds the whole numbers, if there is one."""
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


# --- types of columns, as plain values that a file keeps, and the way back ------------------------


def dtype_of(backend: str, column: Any) -> list[Any]:
    """Return the type of a data frame column: its name and parameters; [] is none."""
    if backend == "pandas":
        return _of_pandas(column.dtype)
    if backend == "polars":
        return _of_polars(column.dtype)
    return [str(column.type)] if backend == "pyarrow" else []


def _of_pandas(dtype: Any) -> list[Any]:
    if not hasattr(dtype, "categories"):
        return [str(dtype)]
    levels = dtype.categories.tolist()
    plain = all(isinstance(level, str | int | float) for level in levels)
    return [str(dtype), levels, bool(dtype.ordered)] if plain else []


def _of_polars(dtype: Any) -> list[Any]:
    name = dtype.base_type().__name__
    if name == "Enum":
        return [name, dtype.categories.to_list()]
    return [name, *(getattr(dtype, each) for each in _ARGUMENTS if hasattr(dtype, each))]


def typed(backend: str, column: Any, dtype: list[Any]) -> Any:
    """Return a column with the type given by `dtype_of`, if its cells allow it."""
    if not dtype:
        return column
    try:
        return {"pandas": _typed_pandas, "polars": _typed_polars, "pyarrow": _typed_arrow}[backend](
            column, *dtype
        )
    except Exception:  # cells are missing that may not be, or the library of today lacks the type
        return column


def _typed_pandas(column: Any, name: str, *levels: Any) -> Any:
    import pandas as pd

    dtype = pd.CategoricalDtype(*levels) if levels else pd.api.types.pandas_dtype(name)
    if column.dtype.kind == "M" and "tz" in str(dtype) + type(dtype).__name__.lower():
        column = column.dt.tz_localize("UTC")
    return column if dtype == np.dtype(object) else column.astype(dtype)


def _typed_polars(column: Any, name: str, *arguments: Any) -> Any:
    import polars as pl

    dtype = getattr(pl, name)(*arguments)
    zone = getattr(dtype, "time_zone", None)
    if zone:
        column = column.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    return column.cast(dtype)


def _typed_arrow(column: Any, name: str) -> Any:
    import pyarrow as pa

    dictionary, zoned = _DICTIONARY.fullmatch(name), _TIMESTAMP.fullmatch(name)
    if dictionary:
        values, indices = map(pa.type_for_alias, dictionary.groups()[:2])
        return column.cast(pa.dictionary(indices, values, dictionary[3] == "1"))
    if zoned:
        return column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp(*zoned.groups()))
    return column.cast(pa.type_for_alias(name), safe=False)
