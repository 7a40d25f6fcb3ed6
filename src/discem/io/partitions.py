"""Dask collections: their partitions, and how results become one collection again.

Dask is only imported if there is a collection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..exceptions import InputError


def is_collection(X: Any) -> bool:
    """Return whether X is a Dask collection."""
    return hasattr(X, "__dask_graph__")


def partitions(X: Any, what: str) -> list[Any]:
    """Return the partitions of a collection in order, not yet computed.

    Parameters
    ----------
    X : dask array, data frame, series or bag
        An array may have chunks along both axes.
    what : str
        The name of X in errors.
    """
    if hasattr(X, "chunks"):
        if X.ndim > 2 or X.ndim < 1:
            raise InputError(f"{what} has {X.ndim} axes: expected one or two")
        if X.ndim == 2 and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return list(X.to_delayed().ravel())
    if hasattr(X, "npartitions") and hasattr(X, "to_delayed"):
        return list(X.to_delayed())
    raise InputError(
        f"{what} is a {type(X).__name__} of dask: expected an array, a data frame, or a bag"
    )


def row_counts(X: Any) -> list[int] | None:
    """Return the number of rows of each partition, if known."""
    if not hasattr(X, "chunks") or np.isnan(X.chunks[0]).any():
        return None
    return [int(size) for size in X.chunks[0]]


def lazily(X: Any, answer: Callable, width: int | None, dtype: Any) -> Any:
    """Return a Dask array of results for the rows of X, by partition.

    Parameters
    ----------
    X : collection of dask
    answer : callable
        From the rows of a partition (at least one) to an array. It is sent once.
    width : int or None
        The number of columns of the result; None for one axis.
    dtype : dtype
        The type of the result.
    """
    import dask
    import dask.array as da

    parts, sizes = partitions(X, "X"), row_counts(X)
    columns = () if width is None else (width,)
    ask = dask.delayed(_ask, pure=False)
    sent = dask.delayed(_Sealed(answer), pure=False)
    blocks = []
    for place, part in enumerate(parts):
        size = np.nan if sizes is None else sizes[place]
        block = ask(sent, part, columns, np.dtype(dtype))
        blocks.append(da.from_delayed(block, (size, *columns), dtype=dtype))
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)


class _Sealed:
    """An object that Dask need not traverse."""

    def __init__(self, content: Any):
        self.content = content

    def __dask_tokenize__(self) -> Any:
        from uuid import uuid4

        return uuid4().hex


def _ask(sent: _Sealed, part: Any, columns: tuple[int, ...], dtype: Any) -> np.ndarray:
    rows = listed(part)
    if not n_rows(rows):
        return np.empty((0, *columns), dtype=dtype)
    return np.asarray(sent.content(rows), dtype=dtype)


class Lazy:
    """Lazy partitions: the part of the interface of a collection that a fit needs."""

    def __init__(self, parts: Sequence[Any]):
        self._parts = list(parts)

    @property
    def npartitions(self) -> int:
        return len(self._parts)

    def __dask_graph__(self) -> Any:
        import dask

        return dask.delayed(self._parts).__dask_graph__()

    def to_delayed(self) -> list[Any]:
        """Return the partitions."""
        return self._parts


# --- what a partition is when it is there ---------------------------------------------------------


def listed(part: Any) -> Any:
    """Return a partition with a length: those of a bag may be readable only once."""
    return part if hasattr(part, "shape") or isinstance(part, list | tuple) else list(part)


def n_rows(part: Any) -> int:
    """Return the number of rows of a partition."""
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)


def some_rows(part: Any, rows: Any) -> Any:
    """Return some rows of a partition, or of anything that has rows."""
    if hasattr(part, "iloc"):
        return part.iloc[rows]
    if isinstance(part, list | tuple):
        return [part[i] for i in rows]
    if type(part).__module__.startswith("pyarrow"):
        return part.take(rows)
    return part[rows]


def together(parts: Sequence[Any]) -> Any:
    """Concatenate the rows of all parts."""
    import scipy.sparse as sp

    first = parts[0]
    if isinstance(first, list | tuple):
        return [row for part in parts for row in part]
    if hasattr(first, "joined"):  # a table of parsed columns
        return first.joined(parts[1:])
    if sp.issparse(first):
        return sp.vstack(parts, format="csr")
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(list(parts), ignore_index=True)
    if hasattr(first, "column_names") or hasattr(first, "columns"):  # pyarrow, polars ..
        import narwhals as nw

        return nw.concat([nw.from_native(part) for part in parts]).to_native()
    return np.concatenate([np.asarray(part) for part in parts])
