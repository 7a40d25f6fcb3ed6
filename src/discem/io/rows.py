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


def dense_rows(X: np.ndarray) -> DenseRows:
    return DenseRows(np.ascontiguousarray(X, dtype=np.float64))


def sparse_rows(X) -> SparseRows:
    """View any matrix as sparse rows; a CSR matrix of float64 is not copied."""
    csr = X if sp.issparse(X) and X.format == "csr" else sp.csr_array(X)
    return SparseRows(
        np.ascontiguousarray(csr.data, dtype=np.float64),
        np.ascontiguousarray(csr.indices, dtype=np.int32),
        np.ascontiguousarray(csr.indptr, dtype=np.int64),
    )
