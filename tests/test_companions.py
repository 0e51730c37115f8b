"""The companion pages (coming-from, esl, bishop): every call named there exists, and the scales are those of the others."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as TheirSVC
from sklearn.svm import LinearSVC as TheirLinearSVC
from sklearn.svm import NuSVC as TheirNuSVC

import separatrix
from separatrix import (
    SVC,
    LinearClassifier,
    LinearSVC,
    LogisticRegression,
    MultinomialNB,
    NuSVC,
    OrderedLogisticRegression,
    RegularizedDiscriminantAnalysis,
)

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["coming-from", "esl", "bishop"]
NAMES = {name for name in dir(separatrix) if not name.startswith("_")}
MEMBERS = {member for name in separatrix.__all__ for member in dir(getattr(separatrix, name))}
# Attributes that a fit leaves; tests of their estimators read them.
FITTED = {"masked_classes_", "fit_", "n_mistakes_", "coef_cov_"}


def ours(page: str) -> list[str]:
    """The code in the last column of the tables of a page."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    cells = [line.strip().strip("|").split(" | ")[-1] for line in text.splitlines() if line.startswith("| ")]
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def unknown(code: str) -> list[str]:
    """What a piece of code calls or passes that this library has not."""
    try:
        tree = ast.parse(code.lstrip(".").replace("…", "..."))
    except SyntaxError:  # an argument or an option on its own: `C=c`, `-B 1`
        return []
    missing = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
            known = inspect.signature(getattr(separatrix, node.func.id)).parameters
            missing += [f"{node.func.id}({word.arg}=)" for word in node.keywords if word.arg not in known]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and code[0] != ".":
            if node.func.id not in {"CalibratedClassifierCV", "PolynomialFeatures"} and node.func.id not in MEMBERS:
                missing.append(node.func.id)
        elif isinstance(node, ast.Attribute) and node.attr not in MEMBERS | FITTED | NAMES | {"inf"}:
            missing.append(f".{node.attr}")
    return missing


@pytest.mark.parametrize("page", PAGES)
def test_every_call_named_exists_with_its_arguments(page):
    codes = ours(page)
    assert len(codes) > 10
    assert [wrong for code in codes for wrong in unknown(code)] == []


def test_a_call_that_does_not_exist_is_noticed():
    assert unknown("LogisticRegression(strength=2)") == ["LogisticRegression(strength=)"]
    assert unknown("model.forget(X)") == [".forget"]
    assert unknown("forest(X)") == ["forest"]


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:, :3], y


@pytest.fixture(scope="module")
def wines():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X)[:, :2], y


def agree(model, theirs, X, y, tolerance=1e-4):
    model.fit(X, y), theirs.fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=tolerance)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, atol=tolerance)


@pytest.mark.parametrize(
    ("model", "theirs"),
    [
        (LogisticRegression(C=0.3, penalize_intercept=True), TheirLogistic(solver="liblinear", C=0.3)),
        (LogisticRegression(l1_ratio=1, C=0.1, penalize_intercept=True), "l1"),
        (LinearSVC(loss="squared_hinge", intercept_scaling=1.0), TheirLinearSVC()),
        (LinearSVC(loss="hinge", intercept_scaling=1.0), TheirLinearSVC(loss="hinge")),
        (LinearSVC(penalty="l1", C=0.1, intercept_scaling=1.0), TheirLinearSVC(penalty="l1", dual=False, C=0.1)),
    ],
    ids=["-s 0", "-s 6", "-s 2", "-s 3", "-s 5"],
)
def test_liblinears_objectives_are_those_of_the_table(model, theirs, rows):
    if theirs == "l1":  # by the name that every version has
        theirs = TheirLogistic(solver="liblinear", C=0.1)
        theirs.set_params(**({"l1_ratio": 1.0} if theirs.penalty == "deprecated" else {"penalty": "l1"}))
    agree(model.set_params(tol=1e-9), theirs.set_params(tol=1e-9, max_iter=1_000_000), *rows)


def test_crammer_and_singers_machine_is_liblinears(wines):
    model = LinearSVC(multi_class="crammer_singer", tol=1e-8)
    agree(model, TheirLinearSVC(multi_class="crammer_singer", tol=1e-8, max_iter=1_000_000), *wines)


def test_libsvms_machines_are_those_of_the_table(rows):
    X, y = rows
    for ours_, theirs in (
        (SVC(C=2.0, gamma=0.3, tol=1e-8), TheirSVC(C=2.0, gamma=0.3, tol=1e-8)),
        (NuSVC(nu=0.2, tol=1e-8), TheirNuSVC(nu=0.2, tol=1e-8)),
    ):
        np.testing.assert_allclose(
            ours_.fit(X, y).decision_function(X), theirs.fit(X, y).decision_function(X), atol=1e-3
        )
    assert CalibratedClassifierCV(SVC(), cv=2).fit(X, y).predict_proba(X).shape == (len(X), 2)


def test_statsmodels_scales_are_those_of_the_table(rows, wines):
    sm = pytest.importorskip("statsmodels.api", reason="a development package")
    ordinal = pytest.importorskip("statsmodels.miscmodels.ordinal_model", reason="a development package")
    X, y = rows
    wide = sm.add_constant(X)
    a = 10.0
    lasso = sm.Logit(y, wide).fit_regularized(alpha=np.array([0, a, a, a]), disp=False, acc=1e-12, trim_mode="off")
    model = LogisticRegression(l1_ratio=1, C=1 / a, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], lasso.params[1:], atol=1e-4)

    times = np.random.default_rng(0).integers(1, 4, len(y))
    glm = sm.GLM(y, wide, family=sm.families.Binomial(), freq_weights=times).fit(tol=1e-12)
    model = LogisticRegression(C=np.inf, tol=1e-12).fit(X, y, sample_weight=times)
    np.testing.assert_allclose(model.coef_[0], glm.params[1:], atol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(model.vcov()))[:3], glm.bse[1:], rtol=1e-5)

    X, kinds = wines
    several = sm.MNLogit(kinds, sm.add_constant(X)).fit(disp=False, tol=1e-12, maxiter=200)
    model = LogisticRegression(C=np.inf, multi_class="reference", tol=1e-12).fit(X, kinds)
    np.testing.assert_allclose(model.coef_[1:], np.asarray(several.params)[1:].T, atol=1e-6)
    in_order = ordinal.OrderedModel(kinds, X, distr="logit").fit(method="bfgs", disp=False, gtol=1e-9)
    model = OrderedLogisticRegression(C=np.inf, tol=1e-12).fit(X, kinds)
    np.testing.assert_allclose(model.coef_.ravel(), in_order.params[:2], atol=1e-6)


def test_an_objective_per_row_has_c_of_one_over_n_lambda(rows):
    """glmnet's and Spark's scale: the mean loss plus λ times the penalty has its minimum at the fit of C = 1/(nλ)."""
    X, y = rows
    scale, signs = 0.02, 2 * y - 1
    for model, loss, penalty in (
        (LogisticRegression(l1_ratio=1), lambda m: np.logaddexp(0, -m), lambda w: np.abs(w).sum()),
        (LogisticRegression(), lambda m: np.logaddexp(0, -m), lambda w: 0.5 * w @ w),
        (LinearSVC(loss="hinge"), lambda m: np.maximum(0, 1 - m), lambda w: 0.5 * w @ w),
    ):
        model.set_params(C=1 / (len(y) * scale), tol=1e-10).fit(X, y)

        def objective(w, b, loss=loss, penalty=penalty):
            return loss(signs * (X @ w + b)).mean() + scale * penalty(w)

        least = objective(model.coef_[0], model.intercept_[0])
        rng = np.random.default_rng(0)
        for size in (1e-1, 1e-2, 1e-3):
            for step in rng.normal(scale=size, size=(20, 4)):
                assert objective(model.coef_[0] + step[:3], model.intercept_[0] + step[3]) >= least - 1e-9


def test_klars_corners_are_ours_the_other_way_round(wines):
    """klaR's λ = 1 is the pooled covariance, our α = 0; its γ = 1 the sphere, our γ = 0."""
    X, y = wines
    pooled = RegularizedDiscriminantAnalysis(alpha=1 - 1.0, gamma=1 - 0.0).fit(X, y)
    lda = separatrix.LinearDiscriminantAnalysis().fit(X, y)
    np.testing.assert_allclose(pooled.predict_proba(X), lda.predict_proba(X), atol=1e-9)
    sphere = RegularizedDiscriminantAnalysis(alpha=1 - 1.0, gamma=1 - 1.0).fit(X, y)
    ratio = np.asarray(sphere.boundary(0, 1).normal) / (X[y == 0].mean(axis=0) - X[y == 1].mean(axis=0))
    assert np.ptp(ratio) < 1e-9 * abs(ratio).max()


def test_what_else_the_tables_name_is_taken(rows):
    X, y = rows
    assert LinearSVC(class_weight={0: 2.0}).fit(X, y).fit_.status.name == "CONVERGED"
    assert LinearClassifier("hinge").fit(X, y).fit_.certificate.kind == "proven"
    assert MultinomialNB(alpha=0.5).fit(np.abs(X), y).classes_.tolist() == [0, 1]
