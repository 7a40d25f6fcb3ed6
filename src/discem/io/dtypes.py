"""Types of the columns of data frames, as plain values that a file keeps, and the way back."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

_ARGUMENTS = ("time_unit", "time_zone", "precision", "scale")  # of types of polars
_DICTIONARY = re.compile(r"dictionary<values=(\w+), indices=(\w+), ordered=([01])>")
_TIMESTAMP = re.compile(r"timestamp\[(\w+), tz=(.+)\]")


def dtype_of(backend: str, column: Any) -> list[Any]:
    """The type of a column of a data frame: its name, and what else makes it; [] is none."""
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
    """A column of a new frame, of a type that `dtype_of` told, if its cells can have it."""
    if not dtype:
        return column
    try:
        return {"pandas": _as_pandas, "polars": _as_polars, "pyarrow": _as_arrow}[backend](
            column, *dtype
        )
    except Exception:  # cells are missing that may not be, or the library of today lacks the type
        return column


def _as_pandas(column: Any, name: str, *levels: Any) -> Any:
    import pandas as pd

    dtype = pd.CategoricalDtype(*levels) if levels else pd.api.types.pandas_dtype(name)
    if column.dtype.kind == "M" and "tz" in str(dtype) + type(dtype).__name__.lower():
        column = column.dt.tz_localize("UTC")
    return column if dtype == np.dtype(object) else column.astype(dtype)


def _as_polars(column: Any, name: str, *arguments: Any) -> Any:
    import polars as pl

    dtype = getattr(pl, name)(*arguments)
    zone = getattr(dtype, "time_zone", None)
    if zone:
        column = column.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    return column.cast(dtype)


def _as_arrow(column: Any, name: str) -> Any:
    import pyarrow as pa

    dictionary, zoned = _DICTIONARY.fullmatch(name), _TIMESTAMP.fullmatch(name)
    if dictionary:
        values, indices = map(pa.type_for_alias, dictionary.groups()[:2])
        return column.cast(pa.dictionary(indices, values, dictionary[3] == "1"))
    if zoned:
        return column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp(*zoned.groups()))
    return column.cast(pa.type_for_alias(name), safe=False)
