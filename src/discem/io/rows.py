"""Row views with one compiled type each, whatever array they came from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp


class DenseRows(NamedTuple):
    """Rows of an (n, d) table; NaN is a missing cell."""

    values: np.ndarray
    base: np.ndarray  # (n,) ln h(x): what all classes share of ``ln p(x | k)``

    @property
    def n_rows(self) -> int:
        return self.values.shape[0]

    @property
    def n_cells(self) -> int:
        """Stored cells of all rows."""
        return self.values.size


class CodeRows(NamedTuple):
    """Rows of an (n, d) table of levels, by number; -1 is a missing cell."""

    values: np.ndarray

    @property
    def n_rows(self) -> int:
        return self.values.shape[0]

    @property
    def n_cells(self) -> int:
        """Stored cells of all rows."""
        return self.values.size


class SparseRows(NamedTuple):
    """Rows in compressed form: row i holds `indices[indptr[i]:indptr[i+1]]`."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_cells(self) -> int:
        """Stored cells of all rows."""
        return self.values.size


class RowPair(NamedTuple):
    """Rows that have two parts, for two families."""

    first: Any
    second: Any

    @property
    def n_rows(self) -> int:
        return self.first.n_rows

    @property
    def n_cells(self) -> int:
        """Stored cells of all rows."""
        return self.first.n_cells + self.second.n_cells


def _view(array, dtype) -> np.ndarray:
    """The array in a fixed type and layout; read-only, whatever it was, for one compiled type."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def dense_rows(X: np.ndarray, base: np.ndarray | None = None) -> DenseRows:
    shared = np.zeros(len(X)) if base is None else base
    return DenseRows(_view(X, np.float64), _view(shared, np.float64))


def code_rows(X: np.ndarray) -> CodeRows:
    """View whole numbers as rows of levels; what is negative or NaN is missing."""
    if X.dtype.kind == "f":
        X = np.where(np.isnan(X), -1.0, X)
    return CodeRows(_view(X, np.int32))


def sparse_rows(X) -> SparseRows:
    """View any matrix as sparse rows; a CSR matrix of float64 is not copied."""
    csr = X if sp.issparse(X) and X.format == "csr" else sp.csr_array(X)
    # unsigned indices: compiled code then need not ask whether one counts from the end
    indices = _view(csr.indices, np.int32).view(np.uint32)
    return SparseRows(_view(csr.data, np.float64), indices, _view(csr.indptr, np.int64))


def taken(rows: Any, chosen: np.ndarray) -> Any:
    """Some of the rows."""
    if isinstance(rows, RowPair):
        return RowPair(*(taken(part, chosen) for part in rows))
    if not isinstance(rows, SparseRows):
        return type(rows)(*(_view(part[chosen], part.dtype) for part in rows))
    sizes = np.diff(rows.indptr)[chosen]
    ends = np.cumsum([0, *sizes], dtype=np.int64)
    place = np.arange(ends[-1]) + np.repeat(rows.indptr[:-1][chosen] - ends[:-1], sizes)
    values, indices = (_view(part[place], part.dtype) for part in (rows.values, rows.indices))
    return SparseRows(values, indices, _view(ends, np.int64))


def joined(pieces: list[Any]) -> Any:
    """The rows of all pieces, one after the other."""
    kind = type(pieces[0])
    if kind is RowPair:
        return RowPair(*map(joined, zip(*pieces, strict=True)))  # type: ignore[arg-type]
    columns = list(zip(*pieces, strict=True))
    if kind is SparseRows:
        begins = np.cumsum([0, *(len(piece.values) for piece in pieces[:-1])])
        ends = [piece.indptr[1:] + begin for piece, begin in zip(pieces, begins, strict=True)]
        columns[2] = ([0], *ends)
    dtypes = [part.dtype for part in pieces[0]]
    parts = (np.concatenate(column) for column in columns)
    return kind(*(_view(part, dtype) for part, dtype in zip(parts, dtypes, strict=True)))


def sealed(rows: Any) -> Any:
    """The same rows, none of which can be written to; they may have come over a network."""
    if isinstance(rows, np.ndarray):
        return _view(rows, rows.dtype)
    return type(rows)(*map(sealed, rows))


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


def owned(state: Any) -> Any:
    """A tuple of arrays and of such tuples, whose arrays may all be written to.

    Those that may not, or that are a file, are copied; the tuple itself comes back if there are
    none.
    """
    if isinstance(state, np.ndarray):
        own = state.flags.writeable and not isinstance(state, np.memmap)
        return state if own else np.array(state)
    if not isinstance(state, tuple):
        return state
    parts = [owned(part) for part in state]
    if all(part is old for part, old in zip(parts, state, strict=True)):
        return state
    return type(state)(*parts)


_LINE = 128  # bytes: a core that writes to one of them takes all of them from the others


def copied(state: Any) -> Any:
    """A tuple of arrays and of such tuples, with arrays of its own: a deep copy, but faster.

    Arrays are so far apart that threads do not disturb each other, each at a copy of its own.
    """
    if isinstance(state, np.ndarray):
        return _apart(state)
    if not isinstance(state, tuple):
        return state
    parts = [copied(part) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)


def _apart(array: np.ndarray) -> np.ndarray:
    """A copy that shares no cache line with anything else."""
    if array.nbytes > 64 * _LINE:  # of so many few are at an end
        return array.copy()
    room = np.empty(array.nbytes + 2 * _LINE, dtype=np.uint8)
    begin = -room.ctypes.data % _LINE
    own = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    own[...] = array
    return own
