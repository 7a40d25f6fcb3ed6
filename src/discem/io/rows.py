"""The row formats that families read."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._arrays import mapped
from .._sparse import taken


class DenseRows(NamedTuple):
    """Rows of an (n, d) table: numbers with NaN for missing, or level codes with -1."""

    values: np.ndarray
    base: np.ndarray | None = None  # (n,) ln h(x), the same for all components; None is 0

    @property
    def parts(self) -> tuple[DenseRows]:
        """The rows as each block of a model reads them: here one part."""
        return (self,)

    @property
    def n_rows(self) -> int:
        return self.values.shape[0]

    @property
    def n_cells(self) -> int:
        """The number of stored cells of all rows."""
        return prod(self.values.shape)

    def take(self, chosen: Any) -> DenseRows:
        """Return the given rows."""
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
        """The number of stored cells of all rows."""
        return prod(self.values.shape)

    def take(self, chosen: Any) -> SparseRows:
        """Return the given rows; for a slice, a view."""
        if isinstance(chosen, slice):
            first, last, _ = chosen.indices(self.n_rows)
            part = slice(self.indptr[first], self.indptr[last])
            ends = self.indptr[first : last + 1] - self.indptr[first]
            return SparseRows(self.values[part], self.indices[part], ends)
        return SparseRows(*taken(self.values, self.indices, self.indptr, chosen))


class Rows(NamedTuple):
    """Rows with several parts, one for each block of a model."""

    parts: tuple[Any, ...]

    @property
    def n_rows(self) -> int:
        return self.parts[0].n_rows

    @property
    def n_cells(self) -> int:
        """The number of stored cells of all rows."""
        return sum(part.n_cells for part in self.parts)

    def take(self, chosen: Any) -> Rows:
        """Return the given rows."""
        return Rows(tuple(part.take(chosen) for part in self.parts))


def dense_rows(X: np.ndarray, base: np.ndarray | None = None) -> DenseRows:
    """View numbers as rows of a table."""
    return DenseRows(np.asarray(X, dtype=np.float64), base)


def code_rows(X: np.ndarray) -> DenseRows:
    """View whole numbers as rows of level codes; negative numbers and NaN are missing."""
    if X.dtype.kind == "f":
        X = np.where(np.isnan(X), -1.0, X)
    return DenseRows(np.asarray(X, dtype=np.int32))


def sparse_rows(X: Any) -> SparseRows:
    """View any matrix as sparse rows; a CSR matrix of float64 is not copied."""
    csr = X if sp.issparse(X) and X.format == "csr" else sp.csr_array(X)
    return SparseRows(np.asarray(csr.data, dtype=np.float64), csr.indices, csr.indptr)


def joined(pieces: list[Any]) -> Any:
    """Concatenate the rows of all pieces."""
    kind = type(pieces[0])
    if kind is Rows:
        parts = zip(*(piece.parts for piece in pieces), strict=True)
        return Rows(tuple(joined(list(part)) for part in parts))
    columns = list(zip(*pieces, strict=True))
    if kind is SparseRows:
        begins = np.cumsum([0, *(len(piece.values) for piece in pieces)])
        narrow = np.int32 if begins[-1] < 2**31 else np.int64  # SciPy expects the type of indices
        pairs = zip(pieces, begins[:-1], strict=True)
        ends = [(piece.indptr[1:] + begin).astype(narrow) for piece, begin in pairs]
        columns[2] = (np.zeros(1, dtype=narrow), *ends)
    return kind(*(None if part[0] is None else np.concatenate(part) for part in columns))


def extended(array: np.ndarray, new: int, value: float) -> np.ndarray:
    """Append `new` rows with `value` to an array.

    The result is a view of a larger buffer, so that repeated growth rarely copies. Memory that the
    array does not own, as that of a file or a pickle, is copied, never written to.
    """
    old, size = len(array), len(array) + new
    memory = array if array.base is None else array.base
    if not _is_begin_of(array, memory) or len(memory) < size:
        memory = np.empty((size + size // 2, *array.shape[1:]))
        memory[:old] = array
    memory[old:size] = value
    return memory[:size]


def _is_begin_of(array: np.ndarray, memory: Any) -> bool:
    """Return whether an array is the start of another one that owns writable memory."""
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
    """Return a deep copy of the arrays in tuples, dicts and dataclasses."""
    return mapped(np.array, state)


def owned(state: Any) -> Any:
    """Return the same with writable arrays; read-only ones are copied."""
    return mapped(_owned, state)


def _owned(array: np.ndarray) -> np.ndarray:
    own = array.flags.writeable and not isinstance(array, np.memmap)
    return array if own else np.array(array)
