"""Fits of small and medium shape: ways to the same sums and the same optimum, whatever the layout of the rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import LogisticRegression
from separatrix.data.dispatch import as_source
from separatrix.objectives import fused
from separatrix.objectives.column_units import column_units
from separatrix.objectives.linear_problem import LinearProblem


def _rows(n, d, seed=0, dtype=np.float64, classes=2):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d)).astype(dtype)
    y = np.argmax(X @ generator.standard_normal((d, classes)) + generator.gumbel(size=(n, classes)), axis=1)
    return X, y


def _problem(X, y, weights=None, **parameters):
    return LinearProblem.of(as_source(X, y, weights).labelled(), **parameters)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_products_with_the_hessian_are_those_of_its_matrix(monkeypatch, intercept, dtype, weighted, sparse):
    X, y = _rows(700, 9, dtype=dtype)
    X[np.abs(X) < 0.5] = 0.0
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weighted else None
    problem = _problem(sp.csr_array(X) if sparse else X, y, weights, C=0.5, fit_intercept=intercept)
    generator = np.random.default_rng(2)
    theta, directions = generator.standard_normal(problem.shape), generator.standard_normal((3, *problem.shape))
    expected = problem.evaluate(theta, 2)
    for compiled in (False, True):
        monkeypatch.setattr("separatrix.objectives.linear.worth_compiling", lambda *_, told=compiled: told)
        monkeypatch.setattr(fused, "_FEW_ENTRIES", 0)
        found = problem.evaluate(theta, keep=True)
        np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.total_curvature, expected.total_curvature, rtol=1e-9)
        passes = problem.source.passes
        for direction in directions:  # the second and third from rows that are held
            product = (expected.hessian @ direction.ravel()).reshape(problem.shape)
            np.testing.assert_allclose(found.times(direction), product, rtol=1e-9, atol=1e-9)
        assert problem.source.passes == passes + 3


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_the_order_of_an_array_in_memory_does_not_matter(classes, dtype):
    X, y = _rows(400, 7, classes=classes)
    X = (3.0 * X).astype(dtype)
    kept = X.copy()
    first = LogisticRegression(C=0.3).fit(X, y)
    laid = np.asfortranarray(X)
    for other in (laid, np.repeat(X, 2, axis=1)[:, ::2]):
        found = LogisticRegression(C=0.3).fit(other, y)
        np.testing.assert_array_equal(found.coef_, first.coef_)
        assert found.fit_.passes == first.fit_.passes
    np.testing.assert_array_equal(laid, kept)
    assert laid.flags.f_contiguous


@pytest.mark.parametrize("intercept", [True, False])
def test_units_of_sparse_columns_are_those_of_dense_ones(intercept):
    X, y = _rows(300, 6, seed=3)
    X[np.abs(X) < 1.0] = 0.0
    X[:, 4] = 0.0
    for factor in (1.0, 1e80, 1e-80, 1e-170):
        scaled = X * np.where(np.arange(6) == 2, factor, 1.0)
        dense = column_units(as_source(scaled, y).labelled(), intercept)
        sparse = column_units(as_source(sp.csr_array(scaled), y).labelled(), intercept)
        for one, other in zip(dense, sparse, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        assert (dense[1][2] == 1.0) == (factor == 1.0)
        assert dense[2][4] == 0.0
        assert len(dense[2]) == 6 + intercept


@pytest.mark.parametrize("shape", [(150, 4, 3), (200, 12, 2), (60, 90, 2), (90, 30, 5)])
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_small_fits_with_absolute_values_are_proven_and_agree_with_gradient_steps(shape, ratio):
    n, d, classes = shape
    X, y = _rows(n, d, seed=n, classes=classes)
    found = LogisticRegression(l1_ratio=ratio, C=0.5, tol=1e-8).fit(X, y)
    other = LogisticRegression(l1_ratio=ratio, C=0.5, tol=1e-6, solver="gradient", max_iter=5000).fit(X, y)
    one, two = found.fit_.certificate, other.fit_.certificate
    assert one.kind == "proven"
    assert one.gap <= 1e-8 * max(1.0, one.objective) * 1.01
    assert one.objective - two.objective <= one.gap
    assert two.objective - one.objective <= two.gap
