"""Fill cells into a copy of a table, of the same library and with the same types.

A column whose type cannot hold the new cells gets a wider type: whole numbers become floats if a
mean is not whole, and categories get missing levels.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._checks import NUMBER
from .vectors import plain_name, unmasked


class Filling(NamedTuple):
    """The cells to fill into a column."""

    mask: np.ndarray  # (n,)
    values: np.ndarray  # floats, times or objects, one for each True in the mask

    @property
    def is_whole(self) -> bool:
        """Return whether the values are whole numbers, if they are numbers."""
        return self.values.dtype.kind != "f" or bool((self.values == np.rint(self.values)).all())


def filled(X: Any, fillings: Mapping[str | int, Filling]) -> Any:
    """Return a copy of a table with cells filled in, by column."""
    if hasattr(X, "to_native"):  # of narwhals
        X = X.to_native()
    if isinstance(X, list | tuple):
        named = isinstance(X[0], Mapping)
        return _filled_dicts(X, fillings) if named else _filled_rows(X, fillings)
    for backend, kinds, fill in (
        ("pandas", ("DataFrame",), _filled_pandas),
        ("polars", ("DataFrame",), _filled_polars),
        ("pyarrow", ("Table", "RecordBatch"), _filled_arrow),
    ):
        library = sys.modules.get(backend)
        if library and isinstance(X, tuple(getattr(library, kind) for kind in kinds)):
            return fill(X, fillings)
    if hasattr(X, "columns"):  # another library that narwhals supports
        import narwhals as nw

        return _filled_pandas(nw.from_native(X).to_pandas(), fillings)
    return _filled_array(np.asarray(X) if not isinstance(X, np.ndarray) else X, fillings)


def _filled_array(X: np.ndarray, fillings: Mapping[Any, Filling]) -> np.ndarray:
    X = np.array(unmasked(X))
    for j, (mask, values) in fillings.items():
        X[mask, j] = values.tolist() if X.dtype == object else values
    return X


def _filled_rows(X: Any, fillings: Mapping[str | int, Filling]) -> np.ndarray:
    """Convert lists of cells to an array, of floats if all cells are numbers."""
    cells = np.empty((len(X), len(X[0])), dtype=object)
    for i, row in enumerate(X):
        cells[i] = list(row)
    cells = _filled_array(cells, fillings)
    plain = all(isinstance(cell, NUMBER) for cell in cells.ravel().tolist())
    return cells.astype(np.float64) if plain else cells


def _filled_dicts(X: Any, fillings: Mapping[str | int, Filling]) -> list[dict[Any, Any]]:
    rows = [dict(row) for row in X]
    keys = {plain_name(key): key for row in rows for key in row}
    for name, (mask, values) in fillings.items():
        key = keys.get(name, name)
        for row, value in zip(np.flatnonzero(mask).tolist(), values.tolist(), strict=True):
            rows[row][key] = value
    return rows


# --- pandas ---------------------------------------------------------------------------------------


def _filled_pandas(X: Any, fillings: Mapping[str | int, Filling]) -> Any:
    columns = {plain_name(name): j for j, name in enumerate(X.columns)}
    X = X.copy()
    for name, filling in fillings.items():
        j = columns[name]
        X.isetitem(j, _filled_series(X.iloc[:, j], filling))
    return X


def _filled_series(column: Any, filling: Filling) -> Any:
    import pandas as pd

    dtype, (mask, values) = column.dtype, filling
    if isinstance(dtype, pd.CategoricalDtype):
        new = [level for level in dict.fromkeys(values.tolist()) if level not in dtype.categories]
        column = column.cat.add_categories(new) if new else column.copy()
        column.iloc[mask] = values.tolist()
        return column
    if isinstance(dtype, pd.SparseDtype):
        return _filled_series(column.sparse.to_dense(), filling).astype(dtype)
    if isinstance(dtype, pd.PeriodDtype):
        cells = pd.Series(values).dt.to_period(dtype.freq)
    elif isinstance(dtype, pd.DatetimeTZDtype):
        cells = pd.Series(values).dt.tz_localize("UTC").dt.tz_convert(dtype.tz).astype(dtype)
    elif isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        array = _filled_arrow_column(pa.chunked_array(column.array.__arrow_array__()), filling)
        return pd.Series(pd.arrays.ArrowExtensionArray(array), column.index, name=column.name)
    else:
        if not (filling.is_whole or dtype.kind in "fO"):
            column = column.astype("Float64" if hasattr(dtype, "numpy_dtype") else float)
        cells = pd.Series(values)
        if dtype.kind == "O":
            cells = cells.astype(object)
        elif column.dtype.kind in "mMiufb":
            cells = cells.astype(column.dtype)
    column = column.copy()
    column.iloc[mask] = cells.array
    return column


# --- polars ---------------------------------------------------------------------------------------


def _filled_polars(X: Any, fillings: Mapping[str | int, Filling]) -> Any:
    new = [_filled_polars_column(X.get_column(str(name)), f) for name, f in fillings.items()]
    return X.with_columns(new)


def _filled_polars_column(column: Any, filling: Filling) -> Any:
    import polars as pl

    if (column.dtype.is_integer() or column.dtype == pl.Boolean) and not filling.is_whole:
        column = column.cast(pl.Float64)
    if column.dtype == pl.Enum:
        known = column.dtype.categories.to_list()
        new = [level for level in dict.fromkeys(filling.values.tolist()) if level not in known]
        column = column.cast(pl.Enum([*known, *new]))
    dtype = column.dtype
    if filling.values.dtype.kind in "mM":
        cells = pl.Series(column.name, filling.values)
        zone = getattr(dtype, "time_zone", None)
        if zone:
            cells = cells.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    else:
        cells = pl.Series(column.name, filling.values.tolist())
    places = np.zeros(len(filling.mask), dtype=np.int64)
    places[filling.mask] = np.arange(len(cells))
    spread = cells.cast(dtype).gather(pl.Series(places))
    return column.zip_with(pl.Series(~filling.mask), spread)


# --- pyarrow --------------------------------------------------------------------------------------


def _filled_arrow(X: Any, fillings: Mapping[str | int, Filling]) -> Any:
    import pyarrow as pa

    columns, fields = list(X.columns), list(X.schema)
    places = {plain_name(name): j for j, name in enumerate(X.schema.names)}
    for name, filling in fillings.items():
        j = places[name]
        columns[j] = _filled_arrow_column(columns[j], filling)
        fields[j] = fields[j].with_type(columns[j].type)
    return type(X).from_arrays(columns, schema=pa.schema(fields, metadata=X.schema.metadata))


def _filled_arrow_column(column: Any, filling: Filling) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, dtype = pa.types, column.type
    if kind.is_dictionary(dtype):
        return _filled_arrow_column(column.cast(dtype.value_type), filling).dictionary_encode()
    if not filling.is_whole and (kind.is_integer(dtype) or kind.is_boolean(dtype)):
        column = column.cast(pa.float64())
    cells = filling.values
    cells = pa.array(cells if cells.dtype.kind in "mMf" else cells.tolist())
    if kind.is_timestamp(column.type) and column.type.tz:
        cells = cells.cast(pa.timestamp("us", "UTC"))
    cells = cells.cast(column.type, safe=False)
    places = np.zeros(len(filling.mask), dtype=np.int64)
    places[filling.mask] = np.arange(len(cells))
    return pc.if_else(pa.array(filling.mask), cells.take(pa.array(places)), column)
