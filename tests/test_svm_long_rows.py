"""Kernel values of long rows, from a few columns at a time, and of sparse rows are those of the sides' product."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import SVC, RBFKernel, config
from separatrix.dual import kernel_matrix, long_rows
from separatrix.dual.kernel_matrix import KernelMatrix
from separatrix.dual.kernels import CentredLinear, LinearKernel, PolynomialKernel
from separatrix.dual.long_rows import long_products
from separatrix.dual.points import Points


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kernel", [RBFKernel(1e-3), CentredLinear(), PolynomialKernel(2, 0.01, 1.0)])
def test_values_are_those_of_pairs_of_rows(kernel, order, dtype):
    X = np.asarray(5.0 + np.random.default_rng(0).standard_normal((40, 9001)), dtype=dtype, order=order)
    points = Points(X)
    values = KernelMatrix(kernel, points, 1e9, False).values
    assert long_products(kernel, points) is not None
    np.testing.assert_allclose(values, kernel.between(points, points), rtol=1e-11, atol=1e-9)


def test_rows_far_apart_are_left_to_differences():
    X = np.random.default_rng(0).standard_normal((10, 200))
    assert long_products(RBFKernel(1e9), Points(X)) is None
    assert long_products(RBFKernel(1.0), Points(X[:, :5])) is None


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_machines_and_proofs_are_the_same(monkeypatch, kernel):
    rng = np.random.default_rng(1)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 700)) + rng.standard_normal((3, 700))[y]
    long = SVC(kernel=kernel, tol=1e-8).fit(X, y)
    monkeypatch.setattr(kernel_matrix, "long_products", lambda kernel, points: None)
    sides = SVC(kernel=kernel, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(long.decision_function(X), sides.decision_function(X), atol=1e-7)
    for machine in long.machines_:
        assert machine.certificate.gap >= machine.primal_objective - machine.dual_objective - 1e-9


def test_stripes_give_the_same_products(monkeypatch):
    X = np.random.default_rng(2).standard_normal((301, 500))
    whole = long_products(CentredLinear(), Points(X))
    monkeypatch.setattr(long_rows, "_MOST", 100)
    np.testing.assert_allclose(long_products(CentredLinear(), Points(X)), whole, rtol=1e-12, atol=1e-12)


def test_the_number_of_threads_changes_no_bit():
    X = np.random.default_rng(3).standard_normal((60, 4001))
    with config(threads=1):
        alone = long_products(RBFKernel(1e-3), Points(X))
    with config(threads=3):
        np.testing.assert_array_equal(long_products(RBFKernel(1e-3), Points(X)), alone)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_order_in_memory_changes_nothing(kernel):
    rng = np.random.default_rng(4)
    y = np.arange(50) % 3
    X = rng.standard_normal((50, 900)) + rng.standard_normal((3, 900))[y]
    rows, columns = (SVC(kernel=kernel, tol=1e-8).fit(np.asarray(X, order=order), y) for order in "CF")
    np.testing.assert_allclose(rows.decision_function(X), columns.decision_function(X), atol=1e-7)
    np.testing.assert_array_equal(columns.support_vectors_, X[columns.support_])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [RBFKernel(0.3), LinearKernel(), PolynomialKernel(2, 0.5, 1.0)])
def test_sparse_values_are_those_of_dense_rows(kernel, dtype):
    X = sp.random_array((700, 3000), density=0.01, format="csr", rng=np.random.default_rng(5)).astype(dtype)
    X[1], X[301] = X[0], X[0]  # equal rows
    dense, sparse = Points(X.toarray()), Points(sp.csr_array(X))
    values = KernelMatrix(kernel, sparse, 1e9, False).values
    np.testing.assert_array_equal(values, values.T)
    np.testing.assert_allclose(values, kernel.between(dense, dense), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(kernel.between(sparse, dense), values, rtol=1e-9, atol=1e-9)
    if isinstance(kernel, RBFKernel):
        assert values[0, 1] == values[0, 301] == 1.0
