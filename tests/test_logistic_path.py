"""Grids of C: warm starts change nothing, folds are scikit-learn's, approximate leave-one-out is nearly the real one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegressionCV as TheirCV
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold

from separatrix import LogisticRegression, LogisticRegressionCV, as_source, logistic_path

CS = np.array([0.01, 0.1, 1.0, 10.0])


def standardised(load):
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def objective(X, y, coef, intercept, C, ratio):
    """C Σ ℓ + (1−ρ)/2‖w‖² + ρ‖w‖₁, written out."""
    eta = X @ coef.T + intercept
    if eta.shape[1] == 1:
        eta = np.hstack([np.zeros_like(eta), eta])
    loss = np.logaddexp.reduce(eta, axis=1) - eta[np.arange(len(y)), y]
    return C * loss.sum() + 0.5 * (1 - ratio) * np.square(coef).sum() + ratio * np.abs(coef).sum()


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_path_is_the_separate_fits(load, ratio, sparse):
    X, y = standardised(load)
    given = sp.csr_array(X) if sparse else X
    path = logistic_path(given, y, Cs=CS, l1_ratio=ratio, tol=1e-10)
    for C, coef, intercept, certificate in zip(path.Cs, path.coefs, path.intercepts, path.certificates, strict=True):
        alone = LogisticRegression(C=C, l1_ratio=ratio, tol=1e-10).fit(given, y)
        theirs, ours = (
            objective(X, y, w, b, C, ratio) for w, b in ((alone.coef_, alone.intercept_), (coef, intercept))
        )
        assert abs(theirs - ours) <= 2e-10 * max(1.0, ours)
        assert certificate.relative_gap <= 1e-10
        np.testing.assert_allclose(certificate.objective, ours, rtol=1e-9)


def test_the_order_of_the_grid_does_not_matter():
    X, y = standardised(load_breast_cancer)
    shuffled = [1.0, 0.01, 10.0, 0.1]
    one, two = (logistic_path(X, y, Cs=Cs, l1_ratio=1.0, tol=1e-10) for Cs in (CS, shuffled))
    np.testing.assert_array_equal(two.Cs, shuffled)
    order = np.argsort(shuffled)
    np.testing.assert_allclose(two.coefs[order], one.coefs, atol=1e-12)


def test_a_path_from_a_source_and_with_weights():
    X, y = standardised(load_iris)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    one = logistic_path(as_source(X, y, weights), Cs=CS, tol=1e-12)
    two = logistic_path(X[repeated], y[repeated], Cs=CS, tol=1e-12)
    np.testing.assert_allclose(one.coefs, two.coefs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("Cs", [0, [], [1.0, -1.0], [[1.0]]])
def test_a_grid_that_is_none_is_refused(Cs):
    X, y = standardised(load_iris)
    with pytest.raises(ValueError, match="Cs"):
        logistic_path(X, y, Cs=Cs)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
@pytest.mark.parametrize("refit", [True, False])
def test_cross_validation_is_scikit_learns(load, scoring, refit):
    X, y = standardised(load)
    folds = KFold(4, shuffle=True, random_state=0)
    ours = LogisticRegressionCV(Cs=CS, cv=folds, scoring=scoring, tol=1e-11, refit=refit).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = TheirCV(
            Cs=CS,
            cv=folds,
            scoring=scoring,
            tol=1e-8,
            max_iter=10_000,
            refit=refit,
            l1_ratios=(0,),
            use_legacy_attributes=False,
        ).fit(X, y)
    np.testing.assert_allclose(ours.scores_, theirs.scores_, rtol=1e-5)
    np.testing.assert_allclose(ours.C_, theirs.C_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3 * np.abs(theirs.coef_).max())
    assert ours.coefs_paths_.shape == theirs.coefs_paths_.shape


def real_leave_one_out(X, y, **parameters):
    total = 0.0
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        model = LogisticRegression(tol=1e-10, **parameters).fit(X[kept], y[kept])
        total -= model.predict_log_proba(X[i : i + 1])[0, y[i]]
    return total / len(y)


@pytest.mark.parametrize(("classes", "rows"), [(2, 120), (3, 150)])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_approximate_leave_one_out_is_within_one_per_cent(classes, rows, C):
    rng = np.random.default_rng(classes)
    X = rng.standard_normal((rows, 4))
    y = np.argmax(X[:, :classes] + rng.gumbel(size=(rows, classes)), axis=1)
    model = LogisticRegressionCV(Cs=[C], cv="alo", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(-model.scores_[0, 0, 0], real_leave_one_out(X, y, C=C), rtol=0.01)


def test_approximate_leave_one_out_with_absolute_values():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 12))
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=300) > 0).astype(int)
    model = LogisticRegressionCV(Cs=[0.1], l1_ratios=[1.0], cv="alo", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(-model.scores_[0, 0, 0], real_leave_one_out(X, y, C=0.1, l1_ratio=1.0), rtol=0.01)


def test_leaving_out_one_of_repeated_rows():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((80, 3))
    y = (X[:, 0] + rng.logistic(size=80) > 0).astype(int)
    weights = rng.integers(1, 4, 80)
    repeated = np.repeat(np.arange(80), weights)
    one = LogisticRegressionCV(Cs=CS, cv="alo", tol=1e-12).fit(X, y, weights)
    two = LogisticRegressionCV(Cs=CS, cv="alo", tol=1e-12).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(one.scores_, two.scores_, rtol=1e-9)


def test_folds_need_rows_and_leave_one_out_does_not():
    X, y = standardised(load_iris)
    with pytest.raises(ValueError, match="cv='alo'"):
        LogisticRegressionCV().fit(as_source(X, y))
    assert LogisticRegressionCV(cv="alo", Cs=3).fit(as_source(X, y)).score(X, y) > 0.9
    with pytest.raises(ValueError, match="neg_log_loss"):
        LogisticRegressionCV(cv="alo", scoring="roc_auc_ovr").fit(X, y)


def test_several_ratios_and_other_scorings():
    X, y = standardised(load_breast_cancer)
    model = LogisticRegressionCV(Cs=[0.01, 1.0], l1_ratios=[0.0, 0.5, 1.0], cv=3, scoring="roc_auc").fit(X, y)
    assert model.scores_.shape == (3, 3, 2)
    assert model.scores_.mean(axis=0).max() > 0.99
    best = clone(LogisticRegression(C=model.C_, l1_ratio=model.l1_ratio_)).fit(X, y)
    np.testing.assert_allclose(model.coef_, best.coef_)
    assert get_scorer("accuracy")(model, X, y) > 0.97


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "newton-cg", "prox_newton", "gradient", "sgd", "dual"])
def test_offsets_stay_with_their_rows_when_others_have_no_weight(solver):
    rng = np.random.default_rng(0)
    X, offset = rng.standard_normal((60, 2)), rng.standard_normal(60)
    y = (X[:, 0] + rng.logistic(size=60) > 0).astype(int)
    weights = np.where(np.arange(60) % 3, 1.0, 0.0)
    kept = weights > 0
    one = LogisticRegression(tol=1e-10, solver=solver, max_iter=5000).fit(X, y, weights, offset=offset)
    two = LogisticRegression(tol=1e-12).fit(X[kept], y[kept], offset=offset[kept])
    np.testing.assert_allclose(one.coef_, two.coef_, atol=3e-5)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_dual_ascent_reaches_the_optimum(sparse, intercept):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 8))
    y = (X[:, 0] + 0.5 + rng.logistic(size=500) > 0).astype(int)
    given = sp.csr_array(X) if sparse else X
    weights = rng.integers(0, 3, 500).astype(float)
    dual = LogisticRegression(solver="dual", fit_intercept=intercept, tol=1e-8, max_iter=2000).fit(given, y, weights)
    best = LogisticRegression(fit_intercept=intercept, tol=1e-12).fit(given, y, weights)
    above = dual.fit_.certificate.objective - best.fit_.certificate.objective
    rounding = 8 * np.finfo(float).eps * best.fit_.certificate.objective  # of the two objectives, as doubles
    assert -1e-9 <= above <= dual.fit_.certificate.gap + rounding
    assert dual.fit_.certificate.gap <= 1e-8 * dual.fit_.certificate.objective
    with pytest.raises(ValueError, match="solver='dual'"):
        LogisticRegression(solver="dual").fit(given, rng.integers(0, 3, 500))
