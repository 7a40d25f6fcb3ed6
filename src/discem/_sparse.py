"""Sparse rows: some of them, and products that are added to memory which is there.

SciPy's operators check their matrix and make a new array each time, which costs a step over a batch
of words as much as the products do. Here are the same compiled loops, without that: they want
arrays in C order, and indices that are in range.

Rows are in compressed form: row i holds `values[indptr[i]:indptr[i + 1]]` in the columns `indices`.
Arrays of PyTorch are added up where they are, by its own functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import _sparsetools

_AT_ONCE = 1 << 28  # numbers to have in memory, on their way into a table on a device


def taken(values: Any, indices: Any, indptr: Any, rows: Any) -> tuple[Any, Any, Any]:
    """Some of the rows, in that order."""
    if not isinstance(values, np.ndarray):
        begins = indptr[:-1][rows]
        sizes = indptr[1:][rows] - begins
        ends = indptr.new_zeros(len(sizes) + 1)
        ends[1:] = sizes.cumsum(0)
        stored = (begins - ends[:-1]).repeat_interleave(sizes)
        stored += stored.new_ones(len(stored)).cumsum(0, dtype=stored.dtype) - 1
        return values[stored], indices[stored], ends
    rows = np.asarray(rows)
    if rows.dtype == bool:
        rows = np.flatnonzero(rows)
    ends = np.zeros(len(rows) + 1, dtype=indptr.dtype)
    np.cumsum(np.diff(indptr)[rows], out=ends[1:])
    kind = np.promote_types(indices.dtype, indptr.dtype)  # of large matrices, they may differ
    own = np.empty(ends[-1], dtype=values.dtype), np.empty(ends[-1], dtype=kind)
    where = rows.astype(kind, copy=False)
    _sparsetools.csr_row_index(len(rows), where, indptr, indices, values, own[1], own[0])
    return own[0], own[1], ends


def row_sums(values: Any, indptr: Any) -> Any:
    """The sum of each row, (n,), in double precision."""
    if not isinstance(values, np.ndarray):
        from torch import float64

        sizes = indptr.diff()
        found, rows = values.new_zeros(len(sizes), dtype=float64), sizes.new_ones(len(sizes))
        rows = (rows.cumsum(0) - 1).repeat_interleave(sizes, output_size=len(values))
        return found.index_add_(0, rows, values.to(float64))
    found, filled = np.zeros(len(indptr) - 1), np.diff(indptr) > 0
    if len(values):
        found[filled] = np.add.reduceat(values, indptr[:-1][filled], dtype=np.float64)
    return found


def add_product(into: Any, values: Any, indices: Any, indptr: Any, table: Any) -> None:
    """Add rows @ table, (n, K), to an array; all numbers are of one type."""
    if not isinstance(values, np.ndarray):
        from torch.nn.functional import embedding_bag

        begins = indptr[:-1].to(indices.dtype)
        into += embedding_bag(indices, table, begins, mode="sum", per_sample_weights=values)
        return
    (n, K), u = into.shape, len(table)
    _sparsetools.csr_matvecs(n, u, K, indptr, indices, values, table.reshape(-1), into.reshape(-1))


def add_transposed(into: Any, values: Any, indices: Any, indptr: Any, table: Any) -> None:
    """Add rows.T @ table, (u, K), to an array; all numbers are of one type."""
    if not isinstance(values, np.ndarray):
        from torch import repeat_interleave

        nnz, size = len(values), max(_AT_ONCE // into.shape[1], 1)
        rows = repeat_interleave(indptr.diff(), output_size=nnz)  # nobody waits for a length
        for first in range(0, nnz, size):
            some = slice(first, first + size)
            into.index_add_(0, indices[some], table[rows[some]] * values[some, None])
        return
    (u, K), n = into.shape, len(table)
    _sparsetools.csc_matvecs(u, n, K, indptr, indices, values, table.reshape(-1), into.reshape(-1))


def add_rows(table: Any, rows: Any, changes: Any, factor: float) -> None:
    """Add `factor * changes` to some rows of a table, in one pass; a row may occur again."""
    if isinstance(rows, slice):
        table[rows] += factor * changes
        return
    if not isinstance(table, np.ndarray):
        table.index_add_(0, rows, changes, alpha=factor)
        return
    one_each, factors = np.arange(len(rows) + 1), np.full(len(rows), factor, dtype=table.dtype)
    add_transposed(table, factors, rows, one_each, changes)
