"""Products of sparse rows in parts (dual/at_hand/sparse_parts.py)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import separatrix
from separatrix.dual.at_hand import sparse_parts
from separatrix.dual.at_hand.sparse_parts import SparseParts


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (40, 3), (300, 7)])
@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_in_parts_are_those_of_the_matrix(monkeypatch, shape, columns, dtype):
    monkeypatch.setattr(sparse_parts, "_ENTRIES", 20)
    monkeypatch.setattr(sparse_parts, "_PER_COLUMN", 1)
    rng = np.random.default_rng(sum(shape))
    dense = (rng.normal(size=shape) * (rng.random(shape) < 0.3)).astype(dtype)
    dense[shape[0] // 3 : shape[0] // 2] = 0.0  # rows, and perhaps parts, without an entry
    parts = SparseParts(sp.csr_array(dense))
    w, r = rng.normal(size=(shape[1], *columns)), rng.normal(size=(shape[0], *columns))
    assert parts.scores(w).dtype == parts.products(r).dtype == np.float64
    np.testing.assert_allclose(parts.scores(w), dense.astype(np.float64) @ w, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(parts.products(r), dense.astype(np.float64).T @ r, rtol=1e-12, atol=1e-13)


def test_products_of_a_large_matrix_are_the_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = sp.random_array((20_000, 600), density=0.1, format="csr", rng=rng)
    w, r, found = rng.normal(size=600), rng.normal(size=20_000), []
    for threads in (1, 2, 3):
        with separatrix.config(threads=threads):
            parts = SparseParts(X)
            found.append((parts.scores(w), parts.products(r)))
    assert parts.count == 2
    for scores, products in found[1:]:
        assert np.array_equal(scores, found[0][0]) and np.array_equal(products, found[0][1])
    np.testing.assert_allclose(found[0][1], X.T @ r, rtol=1e-11, atol=1e-12)
