"""Few rows and many columns: what is found in one pass, and without an eigendecomposition."""

import numpy as np
import pytest

import separatrix
from separatrix import LinearRegression, Ridge
from separatrix.data import as_source
from separatrix.result import Status
from separatrix.solvers.least_squares.weighted_rows import DenseRows


def wide(n, d, order="C", dtype=np.float64, scales=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = np.asarray(rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-scales, scales, d) + 1.0, dtype, order)
    return X, rng.standard_normal((n, 2))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_there_and_back_is_both_products_in_one_pass(order, dtype, intercept, weighted):
    X, Y = wide(150, 9000, order, dtype)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, 150) if weighted else None
    rows = DenseRows(as_source(X, Y, weights).valued(), intercept)
    before = rows.source.passes
    found = []
    for threads in (1, 2):
        with separatrix.config(threads=threads):
            found.append(rows.there_and_back(Y))
    assert rows.source.passes == before + 2
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
    w = rows.transposed(Y)
    np.testing.assert_allclose(found[0][0], w, atol=1e-12 * np.abs(w).max())
    product = rows.times(w)
    np.testing.assert_allclose(found[0][1], product, atol=1e-11 * np.abs(product).max())


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("shape", [(70, 2600), (210, 3000), (170, 20_000)])
def test_ridge_on_few_rows_is_exact_in_few_passes(shape, alpha):
    X, Y = wide(*shape)
    model = Ridge(alpha).fit(X, Y)
    Z, T = X - X.mean(axis=0), Y - Y.mean(axis=0)
    exact = Z.T @ np.linalg.solve(Z @ Z.T + alpha * np.eye(len(Z)), T)
    np.testing.assert_allclose(model.coef_, exact.T, atol=1e-9 * np.abs(exact).max())
    assert model.fit_.status is Status.EXACT and model.fit_.passes <= 4


def shortest(Z, T):
    """Rank, in columns of unit size, and the least squares of minimum norm."""
    sizes = np.sqrt(np.square(Z).sum(axis=0))
    left, singular, _ = np.linalg.svd(Z / np.where(sizes > 0, sizes, 1.0), full_matrices=False)
    left = left[:, singular > 1e-12 * singular.max(initial=0.0)]
    inner = left.T @ Z
    return left.shape[1], inner.T @ np.linalg.solve(inner @ inner.T, left.T @ T)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dependent", [0, 1, 3, 12])
@pytest.mark.parametrize("shape", [(8, 20), (60, 61), (50, 2000), (100, 300)])
def test_least_squares_of_minimum_norm_whatever_directions_are_missing(shape, dependent, intercept):
    X, Y = wide(*shape, scales=2.0)
    for k in range(min(dependent, len(X) // 2)):
        X[k] = X[-1 - k] if k % 2 else 0.5 * (X[-1] + X[-1 - k])
    Z, T = (X - X.mean(axis=0), Y - Y.mean(axis=0)) if intercept else (X, Y)
    rank, exact = shortest(Z, T)
    model = LinearRegression(fit_intercept=intercept).fit(X, Y)
    assert model.rank_ == rank
    np.testing.assert_allclose(model.coef_, exact.T, atol=1e-6 * np.abs(exact).max())


def test_a_few_missing_directions_are_found_without_an_eigendecomposition(monkeypatch):
    def dear(*_):
        raise AssertionError("an eigendecomposition costs ten Cholesky factors")

    X, Y = wide(120, 200, scales=3.0)
    X[3] = X[8]
    monkeypatch.setattr(np.linalg, "eigh", dear)
    monkeypatch.setattr(np.linalg, "svd", dear)
    assert LinearRegression().fit(X, Y).rank_ == 118
