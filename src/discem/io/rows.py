"""Rows in the forms that the families read, whatever array they came from."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._arrays import mapped
from .._sparse import taken


class DenseRows(NamedTuple):
    """Rows of an (n, d) table: numbers, NaN missing, or levels by number, -1 missing."""

    values: np.ndarray
    base: np.ndarray | None = None  # (n,) ln h(x): what all components share; None is 0

    @property
    def parts(self) -> tuple[DenseRows]:
        """The rows as each block of a model reads them: here, there is one."""
        return (self,)

    @property
    def n_rows(self) -> int:
        return self.values.shape[0]

    @property
    def n_cells(self) -> int:
        """Stored cells of all rows."""
        return prod(self.values.shape)

    def take(self, chosen: Any) -> DenseRows:
        """Some of the rows."""
        return DenseRows(self.values[chosen], None if self.base is None else self.base[chosen])


class SparseRows(NamedTuple):
    """Rows in compressed form: row i holds `indices[indptr[i]:indptr[i+1]]`."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray

    @property
    def parts(self) -> tuple[SparseRows]:
        return (self,)

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_cells(self) -> int:
        """Stored cells of all rows."""
        return prod(self.values.shape)

    def take(self, chosen: Any) -> SparseRows:
        """Some of the rows; a slice of them is a view."""
        if isinstance(chosen, slice):
            first, last, _ = chosen.indices(self.n_rows)
            part = slice(self.indptr[first], self.indptr[last])
            ends = self.indptr[first : last + 1] - self.indptr[first]
            return SparseRows(self.values[part], self.indices[part], ends)
        return SparseRows(*taken(self.values, self.indices, self.indptr, chosen))


class Rows(NamedTuple):
    """Rows that have several parts, one for each block of a model."""

    parts: tuple[Any, ...]

    @property
    def n_rows(self) -> int:
        return self.parts[0].n_rows

    @property
    def n_cells(self) -> int:
        """Stored cells of all rows."""
        return sum(part.n_cells for part in self.parts)

    def take(self, chosen: Any) -> Rows:
        """Some of the rows."""
        return Rows(tuple(part.take(chosen) for part in self.parts))


def dense_rows(X: np.ndarray, base: np.ndarray | None = None) -> DenseRows:
    """View numbers as rows of a table."""
    return DenseRows(np.asarray(X, dtype=np.float64), base)


def code_rows(X: np.ndarray) -> DenseRows:
    """View whole numbers as rows of levels; what is negative or NaN is missing."""
    if X.dtype.kind == "f":
        X = np.where(np.isnan(X), -1.0, X)
    return DenseRows(np.asarray(X, dtype=np.int32))


def sparse_rows(X: Any) -> SparseRows:
    """View any matrix as sparse rows; a CSR matrix of float64 is not copied."""
    csr = X if sp.issparse(X) and X.format == "csr" else sp.csr_array(X)
    return SparseRows(np.asarray(csr.data, dtype=np.float64), csr.indices, csr.indptr)


def joined(pieces: list[Any]) -> Any:
    """The rows of all pieces, one after the other."""
    kind = type(pieces[0])
    if kind is Rows:
        parts = zip(*(piece.parts for piece in pieces), strict=True)
        return Rows(tuple(joined(list(part)) for part in parts))
    columns = list(zip(*pieces, strict=True))
    if kind is SparseRows:
        begins = np.cumsum([0, *(len(piece.values) for piece in pieces)])
        narrow = np.int32 if begins[-1] < 2**31 else np.int64  # SciPy wants those of indices
        pairs = zip(pieces, begins[:-1], strict=True)
        ends = [(piece.indptr[1:] + begin).astype(narrow) for piece, begin in pairs]
        columns[2] = (np.zeros(1, dtype=narrow), *ends)
    return kind(*(None if part[0] is None else np.concatenate(part) for part in columns))


def extended(array: np.ndarray, new: int, value: float) -> np.ndarray:
    """The array with `new` more rows, all `value`.

    It is a view of memory larger than needed, so that one which grows again and again is copied
    now and then only. Memory that is not an array's own, as that of a file or of a pickle, is never
    written to: then all is copied.
    """
    old, size = len(array), len(array) + new
    memory = array if array.base is None else array.base
    if not _is_begin_of(array, memory) or len(memory) < size:
        memory = np.empty((size + size // 2, *array.shape[1:]))
        memory[:old] = array
    memory[old:size] = value
    return memory[:size]


def _is_begin_of(array: np.ndarray, memory: Any) -> bool:
    """Whether an array is the first rows of another one, which owns its memory and may change."""
    return (
        type(memory) is np.ndarray
        and memory.flags.owndata
        and memory.flags.writeable
        and memory.dtype == array.dtype
        and memory.strides == array.strides
        and memory.shape[1:] == array.shape[1:]
        and memory.ctypes.data == array.ctypes.data
    )


def copied(state: Any) -> Any:
    """A deep copy of arrays in tuples, dicts and dataclasses."""
    return mapped(np.array, state)


def owned(state: Any) -> Any:
    """The same, whose arrays may all be written to: those that may not are copied."""
    return mapped(_owned, state)


def _owned(array: np.ndarray) -> np.ndarray:
    own = array.flags.writeable and not isinstance(array, np.memmap)
    return array if own else np.array(array)
