"""Stochastic gradient descent: scikit-learn's coefficients, in order and shuffled, and what is said of the last iterate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_iris, make_classification

import separatrix as sx

pytestmark = pytest.mark.filterwarnings("ignore")
# Steps so short that rounding does not grow.
SETTINGS: list[dict[str, Any]] = [
    {"shuffle": False, "learning_rate": "constant"},
    {"penalty": "l1", "shuffle": False, "learning_rate": "invscaling"},
    {"penalty": "elasticnet", "average": 10, "learning_rate": "adaptive"},
    {"penalty": None, "learning_rate": "constant", "average": True},
    {"learning_rate": "constant", "class_weight": {0: 2.0, 1: 0.5}, "fit_intercept": False},
]
LOSSES = [
    *("hinge", "squared_hinge", "perceptron", "log_loss", "modified_huber"),
    *("squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"),
]


def data(classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(200, 7, n_informative=5, n_redundant=0, n_classes=classes, random_state=0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("number", range(len(SETTINGS)))
@pytest.mark.parametrize("sparse", [False, True])
def test_the_coefficients_are_scikit_learns(loss: str, number: int, sparse: bool) -> None:
    X, y = data(2 + number % 2)
    rows = sp.csr_array(X * (np.abs(X) > 0.5)) if sparse else X
    given = {"loss": loss, "random_state": 1, "max_iter": 6, "alpha": 0.01, "eta0": 0.001} | SETTINGS[number]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    ours = sx.SGDClassifier(**given).fit(rows, y, sample_weight=weight)
    theirs = sklearn.linear_model.SGDClassifier(**given).fit(rows, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-10, atol=1e-12)
    assert ours.n_iter_ == theirs.n_iter_ and ours.t_ == theirs.t_


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_the_default_schedule_and_parts(loss: str) -> None:
    X, y = data()
    ours = sx.SGDClassifier(loss, shuffle=False)
    theirs = sklearn.linear_model.SGDClassifier(loss, shuffle=False)
    for start in range(0, 200, 50):
        part = slice(start, start + 50)
        ours.partial_fit(X[part], y[part], classes=[0, 1, 2])
        theirs.partial_fit(X[part], y[part], classes=[0, 1, 2])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("rate", ["pa1", "pa2"])
def test_passive_aggressive_steps(rate: str) -> None:
    X, y = data()
    given: dict[str, Any] = {"learning_rate": rate, "penalty": None, "eta0": 0.5, "random_state": 0}
    ours, theirs = sx.SGDClassifier(**given).fit(X, y), sklearn.linear_model.SGDClassifier(**given).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)


@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities(loss: str, classes: int) -> None:
    X, y = data(classes)
    ours = sx.SGDClassifier(loss, alpha=0.01, learning_rate="constant", random_state=0).fit(X, y)
    theirs = sklearn.linear_model.SGDClassifier(loss, alpha=0.01, learning_rate="constant", random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    assert not hasattr(sx.SGDClassifier("hinge"), "predict_proba")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log_loss"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_distance_bounds_the_true_one(loss: str, intercept: bool) -> None:
    X, y = data(2)
    alpha, n = 0.01, len(X)
    steps: dict[str, Any] = {
        "learning_rate": "invscaling",
        "eta0": 0.05,
        "max_iter": 50,
        "tol": None,
        "random_state": 0,
    }
    model = sx.SGDClassifier(loss, alpha=alpha, fit_intercept=intercept, average=True, **steps)
    found = model.fit(X, y).fit_.certificate
    names = {"log_loss": "logistic"}
    best = sx.LinearClassifier(names.get(loss, loss), C=1 / (alpha * n), fit_intercept=intercept, tol=1e-10).fit(X, y)

    def value(w: np.ndarray, b: float) -> float:
        m = np.where(y == 1, 1.0, -1.0) * (X @ w + b)
        below = np.maximum(0.0, 1.0 - m)
        each = {"hinge": below, "squared_hinge": below**2, "log_loss": np.logaddexp(0.0, -m)}[loss]
        return float(each.mean() + 0.5 * alpha * w @ w)

    at = value(model.coef_[0], float(model.intercept_[0]))
    np.testing.assert_allclose(found.objective, at)
    optimum = value(np.ravel(best.coef_), float(np.ravel(best.intercept_)[0]))
    assert -1e-9 <= at - optimum <= found.gap + 1e-12


def test_early_stopping_and_warm_start() -> None:
    X, y = data()
    model = sx.SGDClassifier(early_stopping=True, random_state=0, warm_start=True).fit(X, y)
    assert model.score(X, y) > 0.5 and model.fit(X, y).n_iter_ >= 1
    with pytest.raises(ValueError, match="alpha must be > 0"):
        sx.SGDClassifier(alpha=0.0).fit(X, y)
    with pytest.raises(ValueError, match="only works with loss"):
        sx.SGDClassifier("log_loss", learning_rate="pa1").fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_early_stopping_is_scikit_learns(n_classes: int) -> None:
    X, y = load_iris(return_X_y=True)
    y = np.minimum(y, n_classes - 1)
    settings = {"alpha": 1e-3, "early_stopping": True, "random_state": 0}
    mine, peer = sx.SGDClassifier(**settings).fit(X, y), sklearn.linear_model.SGDClassifier(**settings).fit(X, y)
    assert mine.n_iter_ == peer.n_iter_ and mine.t_ == peer.t_
    np.testing.assert_allclose(mine.coef_, peer.coef_, rtol=1e-9)


@pytest.mark.filterwarnings("error")
def test_a_number_of_epochs_without_a_tolerance_is_no_reason_to_warn() -> None:
    X, y = data()
    assert sx.SGDClassifier(tol=None, max_iter=3, random_state=0).fit(X, y).n_iter_ == 3
    with pytest.warns(UserWarning, match="limit"):
        sx.SGDClassifier(max_iter=1, random_state=0).fit(X, y)


def test_means_and_last_coefficients_are_both_kept_while_there_are_means() -> None:
    X, y = data()
    model = sx.SGDClassifier(average=True, random_state=0, max_iter=3, tol=None).fit(X, y)
    np.testing.assert_array_equal(model.average_coef_, model.coef_)
    last = sx.SGDClassifier(random_state=0, max_iter=3, tol=None).fit(X, y)
    np.testing.assert_allclose(model.standard_coef_, last.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.standard_intercept_, last.intercept_, rtol=1e-9)
    assert not hasattr(model.set_params(average=False).fit(X, y), "average_coef_")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_passive_aggressive_classifier_is_scikit_learns(loss: str, sparse: bool) -> None:
    X, y = data()
    rows = sp.csr_array(X) if sparse else X
    given: dict[str, Any] = {"C": 0.1, "loss": loss, "random_state": 3}
    ours = sx.PassiveAggressiveClassifier(**given).fit(rows, y)
    theirs = sklearn.linear_model.PassiveAggressiveClassifier(**given).fit(rows, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-10)
    ours.partial_fit(rows, y)
    theirs.partial_fit(rows, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("epochs", [1, 30])
def test_the_distance_of_a_logistic_fit_is_that_of_the_best_multiple_of_its_slopes(epochs, seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.standard_normal((80, 3)), rng.random(80) + 0.1
    y, alpha = (X[:, 0] + rng.standard_normal(80) > 0).astype(int), 10.0 ** -rng.integers(1, 4)
    rule = {"loss": "log_loss", "alpha": alpha, "tol": None, "random_state": 0, "fit_intercept": False}
    model = sx.SGDClassifier(max_iter=epochs, **rule).fit(X, y, sample_weight=weights)
    c, signs, w = weights / (alpha * 80), 2.0 * y - 1.0, model.coef_[0]
    margins = signs * (X @ w)
    u, primal = c / (1.0 + np.exp(margins)), 0.5 * w @ w + c @ np.log1p(np.exp(-margins))

    def against(share: float) -> float:
        p = share * u / c
        return c @ (p * np.log(p) + (1.0 - p) * np.log1p(-p)) + 0.5 * np.square((share * u * signs) @ X).sum()

    found = minimize_scalar(against, bounds=(1e-6, 1.0), method="bounded", options={"xatol": 1e-9})
    gap = alpha * (primal + min(found.fun, against(1.0)))
    rounding = 1e-9 * alpha * primal
    assert gap - rounding <= model.fit_.certificate.gap <= 1.05 * gap + rounding
