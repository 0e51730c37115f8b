"""Kernel values of rows that are longer than they are many, from a few columns at a time, are those of the sides' product."""

from __future__ import annotations

import numpy as np
import pytest

from separatrix import SVC, RBFKernel
from separatrix.dual import kernel_matrix
from separatrix.dual.kernel_matrix import KernelMatrix
from separatrix.dual.kernels import CentredLinear, PolynomialKernel
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
