"""Row views with one compiled type each, whatever array they came from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class DenseRows(NamedTuple):
    """Rows of an (n, d) table; NaN is a missing cell."""

    values: np.ndarray


class SparseRows(NamedTuple):
    """Rows in compressed form: row i holds `indices[indptr[i]:indptr[i+1]]`."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


def _view(array, dtype) -> np.ndarray:
    """The array in a fixed type and layout; read-only, whatever it was, for one compiled type."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def dense_rows(X: np.ndarray) -> DenseRows:
    return DenseRows(_view(X, np.float64))


def sparse_rows(X) -> SparseRows:
    """View any matrix as sparse rows; a CSR matrix of float64 is not copied."""
    csr = X if sp.issparse(X) and X.format == "csr" else sp.csr_array(X)
    # unsigned indices: compiled code then need not ask whether one counts from the end
    indices = _view(csr.indices, np.int32).view(np.uint32)
    return SparseRows(_view(csr.data, np.float64), indices, _view(csr.indptr, np.int64))
