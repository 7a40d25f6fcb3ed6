"""Sparse rows: some of them, and products that are added to memory which is there.

SciPy's operators check their matrix and make a new array each time, which costs a step over a batch
of words as much as the products do. Here are the same compiled loops, without that: they want
arrays in C order, and indices that are in range.

Rows are in compressed form: row i holds `values[indptr[i]:indptr[i + 1]]` in the columns `indices`.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import _sparsetools


def taken(
    values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some of the rows, in that order."""
    rows = np.asarray(rows)
    if rows.dtype == bool:
        rows = np.flatnonzero(rows)
    ends = np.zeros(len(rows) + 1, dtype=indptr.dtype)
    np.cumsum(np.diff(indptr)[rows], out=ends[1:])
    own = np.empty(ends[-1], dtype=values.dtype), np.empty(ends[-1], dtype=indices.dtype)
    where = rows.astype(indptr.dtype, copy=False)
    _sparsetools.csr_row_index(len(rows), where, indptr, indices, values, own[1], own[0])
    return own[0], own[1], ends


def add_product(
    into: np.ndarray, values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, table: np.ndarray
) -> None:
    """Add rows @ table, (n, K), to an array; all numbers are of one type."""
    (n, K), u = into.shape, len(table)
    _sparsetools.csr_matvecs(n, u, K, indptr, indices, values, table.reshape(-1), into.reshape(-1))


def add_transposed(
    into: np.ndarray, values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, table: np.ndarray
) -> None:
    """Add rows.T @ table, (u, K), to an array; all numbers are of one type."""
    (u, K), n = into.shape, len(table)
    _sparsetools.csc_matvecs(u, n, K, indptr, indices, values, table.reshape(-1), into.reshape(-1))


def add_rows(table: np.ndarray, rows: np.ndarray, changes: np.ndarray, factor: float) -> None:
    """Add `factor * changes` to some rows of a table, in one pass."""
    one_each, factors = np.arange(len(rows) + 1), np.full(len(rows), factor)
    add_transposed(table, factors, rows, one_each, changes)
