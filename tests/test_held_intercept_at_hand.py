"""An intercept under the penalty on few rows: methods for rows at hand know only free ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression as Reference

import separatrix.kernels.sparse.newton  # noqa: F401  # loads numba: compiled steps are taken from then on
from separatrix import LogisticRegression


@pytest.mark.parametrize("shape", [(60, 900), (300, 20)])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_a_penalised_intercept_is_that_of_liblinear(shape, storage, l1_ratio):
    rng = np.random.default_rng(0)
    X = storage(rng.standard_normal(shape) * (rng.random(shape) < 0.3))
    y = (rng.random(shape[0]) < 0.8).astype(int)
    C = 0.1 if l1_ratio == 0.0 else 1.0
    model = LogisticRegression(C=C, l1_ratio=l1_ratio, penalize_intercept=True, tol=1e-8).fit(X, y)
    expected = Reference(C=C, l1_ratio=l1_ratio, solver="liblinear", tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=2e-4)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=2e-4)


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(90, 400), (200, 8)])
def test_many_classes_with_a_penalised_intercept_are_those_with_a_column_of_ones(shape, l1_ratio):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal(shape), rng.choice(3, shape[0], p=[0.7, 0.2, 0.1])
    settings = {"C": 0.3, "l1_ratio": l1_ratio, "tol": 1e-9}
    model = LogisticRegression(penalize_intercept=True, **settings).fit(X, y)
    other = LogisticRegression(fit_intercept=False, **settings).fit(np.column_stack([X, np.ones(len(X))]), y)
    np.testing.assert_allclose(model.coef_, other.coef_[:, :-1], atol=1e-4)
    np.testing.assert_allclose(model.intercept_, other.coef_[:, -1], atol=1e-4)
