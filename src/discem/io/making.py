"""Tables that are made: of the library, and with the types, of those that were read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from importlib import import_module
from typing import Any

import numpy as np

from ..exceptions import InputError, needing
from .dtypes import typed


def make_table(
    backend: str,
    names: Sequence[str | int],
    columns: Sequence[np.ndarray],
    dtypes: Iterable[list[Any]] | None = None,
) -> Any:
    """A table like those of a backend; columns hold floats, times, or objects, None missing.

    Columns of data frames get their `dtypes`, as `dtype_of` tells them, where they are given.
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
