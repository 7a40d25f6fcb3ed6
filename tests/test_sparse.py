"""Sparse rows in memory that is there: the same as by SciPy's own operators."""

import numpy as np
import pytest
import scipy.sparse as sp

from discem import _sparse

every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])
every_index = pytest.mark.parametrize("index", [np.int32, np.int64])


def made_up(dtype, index):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((30, 12)) < 0.3, rng.random((30, 12)), 0.0)
    dense[4] = 0.0  # an empty row
    X = sp.csr_array(dense)
    return X, (X.data.astype(dtype), X.indices.astype(index), X.indptr.astype(index))


@every_type
@every_index
def test_products_are_added(dtype, index):
    X, rows = made_up(dtype, index)
    rng = np.random.default_rng(1)
    of_rows, of_columns = rng.random((30, 5)).astype(dtype), rng.random((12, 5)).astype(dtype)
    product, transposed = np.ones((30, 5), dtype), np.ones((12, 5), dtype)
    _sparse.add_product(product, *rows, of_columns)
    _sparse.add_transposed(transposed, *rows, of_rows)
    np.testing.assert_allclose(product, 1.0 + X @ of_columns, rtol=1e-5)
    np.testing.assert_allclose(transposed, 1.0 + X.T @ of_rows, rtol=1e-5)


@every_type
@every_index
def test_rows_are_summed_in_double_precision(dtype, index):
    for chosen in (slice(None), slice(4, 5), slice(4, 4), slice(0, 5)):  # the fifth one is empty
        X, _ = made_up(dtype, index)
        X = X[chosen]
        found = _sparse.row_sums(X.data.astype(dtype), X.indptr.astype(index))
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, X.sum(axis=1), rtol=1e-6)


@every_index
@pytest.mark.parametrize("ends", [np.int32, np.int64])  # words of a batch are found anew as int32
@pytest.mark.parametrize("chosen", [[7, 4, 7, 0], [], np.arange(30) % 3 == 0])
def test_rows_are_taken_in_order(index, ends, chosen):
    X, (values, indices, indptr) = made_up(np.float64, index)
    rows = values, indices, indptr.astype(ends)
    chosen = np.asarray(chosen, dtype=bool if len(chosen) > 4 else int)
    taken = sp.csr_array(_sparse.taken(*rows, chosen), shape=(np.arange(30)[chosen].size, 12))
    np.testing.assert_array_equal(taken.toarray(), X.toarray()[chosen])


@every_type
def test_rows_of_a_table_are_added_to(dtype):
    table, changes = np.ones((6, 3), dtype), np.arange(6.0, dtype=dtype).reshape(2, 3)
    _sparse.add_rows(table, np.array([4, 1]), changes, 0.5)
    expected = np.ones((6, 3))
    expected[[4, 1]] += 0.5 * changes
    np.testing.assert_array_equal(table, expected)
