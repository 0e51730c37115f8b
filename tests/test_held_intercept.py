"""Intercepts of logistic regression under the penalty, against scikit-learn's liblinear and columns of ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression as Theirs

from separatrix import LogisticRegression

RNG = np.random.default_rng(444)
N, D = 120, 4
X = RNG.normal(size=(N, D)) + np.array([0.0, 3.0, 0.0, -1.0])
Y = (RNG.logistic(size=N) < X @ [1.0, -0.6, 0.0, 0.4] + 1.0).astype(int)
Y3 = (X @ RNG.normal(size=(D, 3)) + RNG.gumbel(size=(N, 3))).argmax(axis=1)
WEIGHTS = RNG.integers(1, 4, size=N).astype(float)
ONES = np.column_stack([X, np.ones(N)])
TIGHT: dict[str, Any] = {"penalize_intercept": True, "tol": 1e-11}


@pytest.mark.parametrize("ratio", [0.0, 1.0])
@pytest.mark.parametrize("scaling", [1.0, 5.0])
@pytest.mark.parametrize("C", [0.1, 3.0])
def test_it_is_the_objective_of_liblinear(C: float, scaling: float, ratio: float) -> None:
    theirs = Theirs(C=C, solver="liblinear", l1_ratio=ratio, intercept_scaling=scaling, tol=1e-10, max_iter=100000)
    theirs.fit(X, Y, WEIGHTS)
    ours = LogisticRegression(C=C, l1_ratio=ratio, intercept_scaling=scaling, **TIGHT).fit(X, Y, WEIGHTS)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)
    assert ours.fit_.certificate.relative_gap < 1e-10 and ours.fit_.certificate.kind == "proven"


@pytest.mark.parametrize("target", [Y, Y3], ids=["two", "three"])
@pytest.mark.parametrize(
    "options",
    [
        {"C": 0.5},
        {"C": 0.5, "multi_class": "reference"},
        {"C": 2.0, "l1_ratio": 0.5},
        {"prior": (0.3, 2.0)},
        {"C": 0.5, "solver": "lbfgs"},
        {"C": 0.5, "solver": "newton-cg"},
    ],
    ids=str,
)
def test_it_is_the_coefficient_of_a_column_of_ones(options: dict[str, Any], target: Any) -> None:
    plain = LogisticRegression(fit_intercept=False, tol=1e-11, **options).fit(ONES, target)
    for rows in (X, sp.csr_array(X)):
        model = LogisticRegression(**TIGHT, **options).fit(rows, target)
        np.testing.assert_allclose(model.coef_, plain.coef_[:, :-1], atol=1e-5)
        np.testing.assert_allclose(model.intercept_, plain.coef_[:, -1], atol=1e-5)
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(ONES), atol=1e-5)
        np.testing.assert_allclose(model.fit_.certificate.objective, plain.fit_.certificate.objective, rtol=1e-9)


def test_a_prior_with_an_entry_for_the_intercept() -> None:
    mean, root = np.array([0.5, 0.0, -0.5, 0.0, 2.0]), RNG.normal(size=(D + 1, D + 1))
    covariance = root @ root.T + np.eye(D + 1)
    for given in (covariance, covariance.diagonal()):
        plain = LogisticRegression(fit_intercept=False, prior=(mean, given), tol=1e-11).fit(ONES, Y)
        model = LogisticRegression(prior=(mean, given), **TIGHT).fit(X, Y)
        np.testing.assert_allclose([*model.coef_[0], *model.intercept_], plain.coef_[0], atol=1e-5)
    with pytest.raises(ValueError, match="shape"):
        LogisticRegression(prior=(mean[:-1], 1.0), **TIGHT).fit(X, Y)


def test_factors_bounds_and_warm_starts() -> None:
    options: dict[str, Any] = {"penalty_factors": [1.0, 0.5, 2.0, 1.0], "bounds": (0.0, [1.0, 1.0, 1.0, 0.2])}
    model = LogisticRegression(C=0.7, **TIGHT, **options).fit(X, Y)
    plain = LogisticRegression(
        C=0.7,
        fit_intercept=False,
        tol=1e-11,
        penalty_factors=[1.0, 0.5, 2.0, 1.0, 1.0],
        bounds=([0.0] * D + [-np.inf], [1.0, 1.0, 1.0, 0.2, np.inf]),
    ).fit(ONES, Y)
    np.testing.assert_allclose([*model.coef_[0], *model.intercept_], plain.coef_[0], atol=1e-5)
    warm = LogisticRegression(C=0.7, warm_start=True, intercept_scaling=3.0, **TIGHT).fit(X, Y)
    before = warm.intercept_.copy()
    np.testing.assert_allclose(warm.fit(X, Y).intercept_, before, atol=1e-6)
    assert warm.n_iter_[0] <= 2


def test_maximum_likelihood_has_no_penalty_to_extend() -> None:
    plain = LogisticRegression(C=np.inf).fit(X, Y)
    model = LogisticRegression(C=np.inf, penalize_intercept=True).fit(X, Y)
    np.testing.assert_allclose(model.intercept_, plain.intercept_)
    assert str(model.summary()) == str(plain.summary())
    with pytest.raises(ValueError, match="under a penalty"):
        LogisticRegression(penalize_intercept=True).fit(X, Y).summary()
