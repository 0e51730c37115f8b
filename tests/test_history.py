"""Recorded paths: every step is the one of the textbook, and recording changes no answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression as Peer

from separatrix import SVC, LinearClassifier, LogisticRegression, Perceptron, Status, load_model, save_model
from separatrix.result import ConvergenceWarning


@pytest.fixture(scope="module")
def overlapping() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 2)) + np.array([1.0, -0.5])
    return X, (X @ [1.0, -0.5] + rng.standard_normal(60) > 1.0).astype(int)


def with_ones(X: Any) -> Any:
    return np.column_stack([X, np.ones(len(X))])


def test_nothing_is_recorded_unless_asked_for(overlapping: Any) -> None:
    for model in (LogisticRegression(), Perceptron(max_iter=5, tol=None), SVC(), LinearClassifier()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # five epochs are few
            assert model.fit(*overlapping).fit_.history is None


@pytest.mark.parametrize("solver", ["newton", "irls", "lbfgs", "newton-cg", "prox_newton", "gradient", "sgd", "dual"])
def test_recording_changes_no_answer(overlapping: Any, solver: str) -> None:
    plain = LogisticRegression(solver=solver).fit(*overlapping)
    model = LogisticRegression(solver=solver, record=True).fit(*overlapping)
    assert np.array_equal(model.coef_, plain.coef_) and np.array_equal(model.intercept_, plain.intercept_)
    path = model.fit_.history
    assert np.array_equal(path.coef[-1], model.coef_) and np.array_equal(path.intercept[-1], model.intercept_)
    assert not path.coef[0].any() and len(path) > 2


def test_the_objective_on_the_path_is_the_published_one(overlapping: Any) -> None:
    X, y = overlapping
    path = (
        LogisticRegression(C=0.3, solver="gradient", eta0=0.02, max_iter=20, tol=1e-3, record=True)
        .fit(X, y)
        .fit_.history
    )
    for w, b, value in zip(path.coef, path.intercept, path.objective, strict=True):
        margins = (2 * y - 1) * (X @ w[0] + b)
        assert value == pytest.approx(0.3 * np.logaddexp(0.0, -margins).sum() + 0.5 * w[0] @ w[0], rel=1e-12)
    assert (np.diff(path.objective) < 0).all()  # the rate is below 2/L


def test_a_step_of_irls_is_a_weighted_least_squares(overlapping: Any) -> None:
    X, y = overlapping
    model = LogisticRegression(C=np.inf, solver="irls", record=True).fit(X, y)
    Z = with_ones(X)
    assert len(model.fit_.history.step) >= 4
    for theta, step in zip(model.fit_.history.theta[:, 0], model.fit_.history.step[:, 0], strict=False):
        p = expit(Z @ theta)
        weights = p * (1.0 - p)
        response = Z @ theta + (y - p) / weights
        root = np.sqrt(weights)
        solved = np.linalg.lstsq(root[:, None] * Z, root * response, rcond=None)[0]
        assert np.allclose(theta + step, solved, rtol=1e-9, atol=1e-12)
    assert np.allclose(model.coef_, Peer(C=np.inf, tol=1e-10).fit(X, y).coef_, rtol=1e-4)


@pytest.mark.parametrize("C", [np.inf, 0.5])
def test_a_fixed_rate_takes_the_steps_of_the_textbook(overlapping: Any, C: float) -> None:
    X, y = overlapping
    rho, Z, held = 0.03, with_ones(X), np.array([1.0, 1.0, 0.0])
    model = LogisticRegression(C=C, solver="gradient", eta0=rho, max_iter=2000, tol=1e-9, record=True).fit(X, y)
    theta = np.zeros(3)
    for recorded in model.fit_.history.theta[:, 0]:
        assert np.allclose(recorded, theta, rtol=1e-10, atol=1e-12)
        theta = theta + rho * (Z.T @ (y - expit(Z @ theta)) - held * theta / C)
    assert model.fit_.status is Status.CONVERGED and model.solver_ == "gradient"
    best = LogisticRegression(C=C, tol=1e-12).fit(X, y)
    truth = model.fit_.certificate.objective - best.fit_.certificate.objective
    assert -1e-9 <= truth <= model.fit_.certificate.gap


@pytest.mark.parametrize("C", [np.inf, 0.5])
def test_one_row_at_a_time(overlapping: Any, C: float) -> None:
    X, y = overlapping
    weights = np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.0 + np.arange(len(y)) % 3)
    rho, Z, held = 0.05, with_ones(X), np.array([1.0, 1.0, 0.0])
    model = LogisticRegression(C=C, solver="sgd", eta0=rho, max_iter=3, record=True)
    with pytest.warns(ConvergenceWarning):  # a noisy path does not reach the optimum
        model.fit(X, y, weights)
    theta, expected = np.zeros(3), [np.zeros(3)]
    for i in np.tile(np.flatnonzero(weights), 3):
        slope = (y[i] - expit(Z[i] @ theta)) * Z[i] - held * theta / (C * weights.sum())
        theta = theta + rho * weights[i] * slope
        expected.append(theta)
    path = model.fit_.history
    assert np.allclose(path.theta[:, 0], expected, rtol=1e-10, atol=1e-12)
    at = len(path) // 2  # between two epochs, where the method itself did not evaluate it
    margins = (2 * y - 1) * (Z @ path.theta[at, 0])
    value = weights @ np.logaddexp(0.0, -margins) * (1.0 if np.isinf(C) else C) + (
        0.0 if np.isinf(C) else 0.5 * path.coef[at, 0] @ path.coef[at, 0]
    )
    assert path.objective[at] == pytest.approx(value, rel=1e-12)
    assert model.fit_.iterations == 3


@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("solver", ["gradient", "sgd"])
def test_too_large_a_rate_diverges_and_the_status_says_so(overlapping: Any, solver: str, C: float) -> None:
    model = LogisticRegression(C=C, solver=solver, eta0=100.0, max_iter=30)
    with pytest.warns(ConvergenceWarning, match="Lower eta0"):
        model.fit(*overlapping)
    assert model.fit_.status is Status.DIVERGED and model.fit_.history is None


def test_the_border_of_the_rate_is_two_over_the_curvature() -> None:
    """Without columns but the intercept ∇²F at the optimum is n p(1−p): just below 2/L the steps settle, just above not."""
    X, y = np.zeros((40, 1)), np.repeat([0, 1], [10, 30])
    border = 2.0 / (40 * 0.75 * 0.25)
    for factor, status in ((0.95, Status.CONVERGED), (1.2, Status.DIVERGED)):
        model = LogisticRegression(solver="gradient", eta0=factor * border, max_iter=2000, tol=1e-8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            assert model.fit(X, y).fit_.status is status, factor


def test_several_classes_and_dependent_columns(overlapping: Any) -> None:
    X, _ = overlapping
    y = np.digitize(X[:, 0] + 0.5 * np.sin(40 * X[:, 1]), [0.4, 1.4])
    for kind in ("softmax", "reference"):
        model = LogisticRegression(solver="irls", multi_class=kind, record=True).fit(X, y)
        assert model.fit_.history.coef.shape[1:] == model.coef_.shape
        assert np.array_equal(model.fit_.history.coef[-1], model.coef_)
    twice = LogisticRegression(C=np.inf, record=True).fit(np.column_stack([X, X[:, 0]]), y > 0)
    assert not twice.fit_.history.coef[:, :, 2].any() and twice.fit_.history.coef[-1, 0, 0] != 0


def test_columns_keep_their_units_under_a_fixed_rate() -> None:
    rng = np.random.default_rng(0)
    X = 1e4 + rng.standard_normal((30, 1))  # other solvers would centre it
    y = (rng.random(30) < 0.5).astype(int)
    model = LogisticRegression(solver="gradient", eta0=1e-9, max_iter=1, record=True)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    step = model.fit_.history.step[0, 0]
    assert np.allclose(step, 1e-9 * with_ones(X).T @ (y - 0.5), rtol=1e-10)


def test_rates_that_mean_nothing_are_refused(overlapping: Any) -> None:
    for options, sentence in (
        ({"solver": "newton", "eta0": 0.1}, "solver='gradient'"),
        ({"eta0": 0.1}, "not of 'auto'"),
        ({"solver": "gradient", "eta0": 0.1, "penalty": "l1"}, "leave eta0 out"),
        ({"solver": "gradient", "eta0": -1.0}, "eta0"),
        ({"penalty": "firth", "record": True}, "leave them out"),
    ):
        with pytest.raises(ValueError, match=sentence):
            LogisticRegression(**options).fit(*overlapping)


@pytest.mark.parametrize("variant", ["plain", "averaged", "pocket"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_perceptron_moves_on_mistakes_alone(variant: Any, classes: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(50), [0.0, 0.8][: classes - 1])
    options: dict[str, Any] = {"variant": variant, "max_iter": 6, "tol": None}
    plain, model = Perceptron(**options).fit(X, y), Perceptron(**options, record=True).fit(X, y)
    assert np.array_equal(plain.coef_, model.coef_) and np.array_equal(plain.n_mistakes_, model.n_mistakes_)
    path = model.fit_.history
    if variant == "plain":
        assert np.array_equal(path.coef[-1], model.coef_)
    if classes == 2:
        assert len(path) == model.n_mistakes_[0] + 1
    codes = [1] if classes == 2 else [0, 1, 2]
    Z = with_ones(X)
    signs = np.where(y[:, None] == codes, 1.0, -1.0)
    for theta, step, row, value in zip(path.theta, path.step, path.rows[1:], path.objective, strict=False):
        scores = Z @ theta.T
        wrong = signs[row] * scores[row] <= 1e-12
        moved = np.where(wrong[:, None], signs[row][:, None] * Z[row], 0.0)
        assert np.allclose(step, moved, atol=1e-12)
        assert value == pytest.approx(np.maximum(0.0, -signs * scores).sum(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_step_of_smo_moves_two_multipliers(overlapping: Any, kernel: Any) -> None:
    X, y = overlapping[0] + np.array([20.0, -3.0]), overlapping[1]
    model = SVC(C=2.0, kernel=kernel, record=True).fit(X, y)
    path = model.fit_.history
    moved = path.step[:-1, 0]  # the last step is to the digits that are published
    assert ((moved != 0).sum(axis=1) == 2).all() and np.allclose(moved.sum(axis=1), 0.0, atol=1e-14)
    assert (np.diff(path.objective) >= -1e-12).all() and path.objective[0] == 0.0
    assert path.objective[-1] == pytest.approx(model.fit_.certificate.objective, rel=1e-9)
    assert np.allclose(path.dual[-1][model.support_], model.dual_coef_[0]) and (np.abs(path.dual) <= 2.0).all()
    assert np.array_equal(path.rows[1:-1], moved.argmax(axis=1)) and path.rows[0] == path.rows[-1] == -1
    if kernel == "linear":
        assert np.allclose(path.coef[:, 0], path.dual @ X, atol=1e-9)
        assert np.array_equal(path.coef[-1], model.coef_) and np.array_equal(path.intercept[-1], model.intercept_)
        before = path.dual[-2] @ X @ X.T + path.intercept[-2]
        free = np.flatnonzero((np.abs(path.dual[-2]) > 0) & (np.abs(path.dual[-2]) < 2.0))
        assert np.allclose(before[free], np.where(y[free] == 1, 1.0, -1.0), atol=2e-3)
    else:
        assert path.coef is None and path.theta.shape == (len(path), 1, len(y))


def test_what_no_path_is_kept_of_is_refused(overlapping: Any) -> None:
    X, _ = overlapping
    with pytest.raises(ValueError, match="3 classes have 3"):
        SVC(record=True).fit(X, np.digitize(X[:, 0], [0.5, 1.5]))
    with pytest.raises(ValueError, match="record is 'yes'"):
        SVC(record="yes").fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="at most 2000 rows"):
        SVC(record=True).fit(np.arange(2001.0)[:, None], np.arange(2001) > 1000)


def test_margin_losses_record_each_machine(overlapping: Any) -> None:
    X, y = overlapping
    model = LinearClassifier("hinge", record=True).fit(X, y)
    assert model.fit_.history.objective[-1] == pytest.approx(model.fit_.certificate.objective, rel=1e-9)
    several = LinearClassifier(record=True).fit(X, np.digitize(X[:, 0], [0.5, 1.5]))
    assert several.fit_.history is None and len(several.machines_) == 3
    for k, fit in enumerate(several.machines_):
        assert np.array_equal(fit.history.coef[-1, 0], several.coef_[k])


def test_a_path_is_kept_in_model_files(overlapping: Any, tmp_path: Any) -> None:
    model = LogisticRegression(solver="irls", record=True).fit(*overlapping)
    save_model(model, tmp_path / "model.sepx")
    again = load_model(tmp_path / "model.sepx").fit_.history
    assert np.array_equal(again.theta, model.fit_.history.theta)
    assert np.array_equal(again.objective, model.fit_.history.objective)
    assert repr(again).startswith("History(") and "→" in repr(again)
