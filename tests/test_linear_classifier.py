"""The linear classifier of every margin loss: its certificate against optima found by other means, and its peers.

    min  C Σ sᵢ ℓ(ỹᵢ(wᵀxᵢ + b)) + (1−ρ)/2 ‖w‖² + ρ‖w‖₁

F is written down here again, from its definition. A reference need not be exact: it is a point, so its F is never below the
optimum, and no certificate may promise more than F(fit) − F(reference).
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from separatrix import LinearClassifier, LogisticRegression, SeparationWarning, Status, as_source, scan_parquet
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.margin_losses import MARGIN_LOSSES, Sigmoid, SigmoidSquared, SmoothedHinge

FORMULAS: dict[str, Any] = {
    "logistic": lambda m: np.logaddexp(0.0, -m),
    "hinge": lambda m: np.maximum(0.0, 1.0 - m),
    "squared_hinge": lambda m: np.maximum(0.0, 1.0 - m) ** 2,
    "squared": lambda m: 0.5 * (1.0 - m) ** 2,
    "perceptron": lambda m: np.maximum(0.0, -m),
    "huberised": lambda m: np.where(m >= -1.0, np.maximum(0.0, 1.0 - m) ** 2, -4.0 * m),
    "exponential": lambda m: np.exp(-m),
    "sigmoid": lambda m: 1.0 / (1.0 + np.exp(m)),
    "sigmoid_squared": lambda m: 1.0 / (1.0 + np.exp(m)) ** 2,
}
SLOPES: dict[str, Any] = {
    "logistic": lambda m: -1.0 / (1.0 + np.exp(m)),
    "squared_hinge": lambda m: -2.0 * np.maximum(0.0, 1.0 - m),
    "squared": lambda m: m - 1.0,
    "exponential": lambda m: -np.exp(-m),
    "huberised": lambda m: np.where(m >= -1.0, -2.0 * np.maximum(0.0, 1.0 - m), -4.0),
}
RATIOS: dict[str | None, float] = {"l2": 0.0, "l1": 1.0, "elasticnet": 0.4, None: 0.0}
PENALTIES = list(RATIOS)
# Proven by a solver for smooth losses; the others need the sequence of smoothing.py.
CONVEX = ["logistic", "squared", "hinge", "squared_hinge", "huberised", "exponential"]
SOLVERS = ["newton", "lbfgs", "newton-cg", "prox_newton"]
EPS = float(np.finfo(float).eps)

each_loss = pytest.mark.parametrize("loss", CONVEX)
each_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=str)


@cache
def problem(n: int = 40, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, codes and weights of two classes that overlap; the rows are numbers of single precision."""
    rng = np.random.default_rng(seed)
    codes = (np.arange(n) % 3 == 0).astype(int)
    X = rng.normal(size=(n, d)) + 0.8 * codes[:, None] * (np.arange(d) < 2)
    X[rng.random(X.shape) < 0.2] = 0.0
    return X.astype(np.float32).astype(float), codes, rng.integers(1, 4, n).astype(float)


def value(
    loss: str, penalty: str | None, C: float, X: Any, codes: Any, weights: Any, coef: Any, intercept: Any
) -> float:
    """F, from its definition; without a penalty C has no meaning and is left out."""
    coef, ratio = np.ravel(coef), RATIOS[penalty]
    margins = (2.0 * codes - 1.0) * (X @ coef + float(np.ravel(intercept)[0]))
    losses = float(np.sum(weights * FORMULAS[loss](margins)))
    if penalty is None:
        return losses
    return C * losses + 0.5 * (1.0 - ratio) * float(coef @ coef) + ratio * float(np.abs(coef).sum())


def reference(
    loss: str, penalty: str | None, C: float, X: Any, codes: Any, weights: Any, intercept: bool
) -> tuple[np.ndarray, float]:
    """(w, b) by SciPy: a linear programme, a quadratic one, or a smooth one; in all w = p − q with p, q ≥ 0."""
    n, d = X.shape
    signs, scale, ratio = 2.0 * codes - 1.0, 1.0 if penalty is None else C, RATIOS[penalty]
    held = penalty is not None
    A = signs[:, None] * np.column_stack([X, -X, np.full(n, float(intercept))])
    absolute = np.r_[np.full(2 * d, ratio * held), 0.0]

    def quadratic(z: np.ndarray) -> tuple[float, np.ndarray]:
        w = (1.0 - ratio) * held * (z[:d] - z[d : 2 * d])
        slope = np.zeros_like(z)
        slope[: 2 * d] = np.r_[w, -w]
        return 0.5 * float(w @ (z[:d] - z[d : 2 * d])), slope

    bounds = [(0, None)] * (2 * d) + [(None, None)]
    if loss == "hinge":
        costs = np.r_[absolute, scale * weights]
        inequality = np.column_stack([A, np.eye(n)])
        if held and ratio < 1.0:
            # SLSQP on the slacks: min ½wᵀw + costs·z  with  Az + ξ ≥ 1
            def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
                part, slope = quadratic(z)
                return part + float(costs @ z), slope + costs

            found = scipy.optimize.minimize(
                objective,
                np.r_[np.zeros(2 * d + 1), np.ones(n)],
                jac=True,
                method="SLSQP",
                bounds=bounds + [(0, None)] * n,
                constraints={"type": "ineq", "fun": lambda z: inequality @ z - 1.0, "jac": lambda z: inequality},
                options={"ftol": 1e-15, "maxiter": 500},
            )
            z = found.x
        else:
            z = scipy.optimize.linprog(costs, -inequality, -np.ones(n), bounds=bounds + [(0, None)] * n).x
    else:

        def smooth(z: np.ndarray) -> tuple[float, np.ndarray]:
            margins, (part, slope) = A @ z, quadratic(z)
            losses = scale * float(weights @ FORMULAS[loss](margins))
            return losses + part + float(absolute @ z), slope + absolute + scale * A.T @ (
                weights * SLOPES[loss](margins)
            )

        options = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 20_000, "maxfun": 200_000}
        z = scipy.optimize.minimize(
            smooth, np.zeros(2 * d + 1), jac=True, method="L-BFGS-B", bounds=bounds, options=options
        ).x
    return z[:d] - z[d : 2 * d], float(z[2 * d]) if intercept else 0.0


@cache
def best(loss: str, penalty: str | None, C: float, intercept: bool) -> float:
    """F of the reference on the weighted problem."""
    X, codes, weights = problem()
    w, b = reference(loss, penalty, C, X, codes, weights, intercept)
    return value(loss, penalty, C, X, codes, weights, w, b)


def fitted(X: Any, codes: Any, weights: Any = None, *, quiet: bool = True, **parameters: Any) -> LinearClassifier:
    parameters.setdefault("l1_ratio", RATIOS["elasticnet"])
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearClassifier(**parameters).fit(X, codes, weights)


# -- certificates -----------------------------------------------------------------------------------------------------


@each_loss
@each_penalty
@pytest.mark.parametrize(
    ("storage", "intercept"),
    [(np.asarray, True), (np.asarray, False), (sp.csr_array, True), (np.float32, True)],
    ids=["dense", "without intercept", "sparse", "float32"],
)
def test_the_certificate_is_true_and_keeps_the_tolerance(
    loss: str, penalty: str | None, storage: Any, intercept: bool
) -> None:
    X, codes, weights = problem()
    for C, tol in ((0.05, 1e-2), (1.0, 1e-7), (20.0, 1e-3)):
        parameters = {"loss": loss, "penalty": penalty, "C": C, "tol": tol, "fit_intercept": intercept}
        model = fitted(storage(X), codes, weights, **parameters)
        F = value(loss, penalty, C, X, codes, weights, model.coef_, model.intercept_)
        certificate = model.fit_.certificate
        assert certificate.objective == pytest.approx(F, rel=1e-12)
        optimum = best(loss, penalty, C, intercept)
        assert F - optimum <= certificate.gap + 64 * EPS * F
        if penalty is None and loss not in ("squared", "logistic", "exponential"):
            assert model.fit_.status is Status.UNPROVEN
            assert optimum - 1e-9 <= F <= optimum + tol * F  # not proven, and true all the same
        else:
            assert model.fit_.status is Status.CONVERGED
            assert certificate.gap <= tol * max(1.0, F)
        assert (model.intercept_ == 0.0).all() or intercept


@each_loss
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_a_fit_cut_short_has_a_true_certificate(loss: str, penalty: str) -> None:
    X, codes, weights = problem()
    optimum = best(loss, penalty, 1.0, True)
    for steps in (0, 1, 2, 5):
        model = fitted(X, codes, weights, loss=loss, penalty=penalty, tol=1e-12, max_iter=steps)
        F = value(loss, penalty, 1.0, X, codes, weights, model.coef_, model.intercept_)
        assert F - optimum <= model.fit_.certificate.gap + 64 * EPS * F
        assert model.n_iter_[0] <= max(1, steps)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(["hinge", "squared_hinge", "huberised"]),
    penalty=st.sampled_from(["l2", "l1", "elasticnet"]),
    C=st.floats(1e-3, 1e3),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    intercept=st.booleans(),
)
def test_no_certificate_promises_more_than_a_better_fit_shows(
    seed: int, loss: str, penalty: str, C: float, scale: float, intercept: bool
) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 6))
    codes = rng.permutation(np.r_[0, 1, rng.integers(0, 2, n - 2)])
    X = scale * (rng.normal(size=(n, d)) + codes[:, None])
    weights = rng.choice([0.0, 0.5, 3.0], n)
    weights[[codes.argmin(), codes.argmax()]] = 1.0
    parameters = {"loss": loss, "penalty": penalty, "C": C, "fit_intercept": intercept}
    values = []
    for tol in (1e-1, 1e-3, 1e-9):
        model = fitted(X, codes, weights, tol=tol, **parameters)
        values.append(value(loss, penalty, C, X, codes, weights, model.coef_, model.intercept_))
        assert model.fit_.certificate.objective == pytest.approx(values[-1], rel=1e-9)
        lowest = values[-1] - model.fit_.certificate.gap
        assert lowest <= min(values) * (1 + 1e-12)
    assert value(loss, penalty, C, X, codes, weights, np.zeros(d), 0.0) >= values[-1] * (1 - 1e-12)


def test_the_slopes_of_the_heavier_class_shrink_to_meet_the_intercept() -> None:
    # Without a column F(b) = 3 max(0, 1−b) + max(0, 1+b): 4 at zero, 2 at its minimum b = 1.
    model = fitted(np.zeros((2, 1)), [1, 0], [3.0, 1.0], loss="hinge", max_iter=0)
    assert model.fit_.certificate.objective == 4.0
    assert model.fit_.certificate.gap == pytest.approx(2.0, rel=1e-12)
    assert fitted(np.zeros((2, 1)), [1, 0], [3.0, 1.0], loss="hinge").intercept_[0] == pytest.approx(1.0, abs=1e-3)


def test_columns_far_from_the_origin_keep_their_certificate() -> None:
    X, codes, weights = problem()
    for loss in ("hinge", "squared_hinge"):
        model = fitted(X + 1e7, codes, weights, loss=loss, tol=1e-6)
        near = fitted(X, codes, weights, loss=loss, tol=1e-6)
        assert model.fit_.status is Status.CONVERGED
        assert model.fit_.certificate.objective == pytest.approx(near.fit_.certificate.objective, rel=2e-6)
        np.testing.assert_allclose(model.coef_, near.coef_, atol=2e-2)


def test_columns_of_extreme_size_give_finite_answers() -> None:
    X, codes, weights = problem()
    for loss in CONVEX:
        for penalty in PENALTIES:
            model = fitted(X * [1e150, 1e-150, 1.0], codes, weights, loss=loss, penalty=penalty)
            assert np.isfinite(model.coef_).all()
            assert np.isfinite(model.intercept_).all()
            # At worst that of a bound of zero, and the rounding of the objective.
            assert 0.0 <= model.fit_.certificate.gap <= model.fit_.certificate.objective * (1 + 1e-12)


# -- peers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_the_logistic_loss_is_logistic_regression(penalty: str) -> None:
    X, codes, weights = problem()
    ours = fitted(X, codes, weights, loss="logistic", penalty=penalty, C=0.7, tol=1e-12)
    peer = LogisticRegression(penalty=penalty, C=0.7, tol=1e-12).fit(X, codes, weights)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.fit_.certificate.objective, peer.fit_.certificate.objective, rtol=1e-12)
    theirs = sklearn.linear_model.LogisticRegression(C=0.7, tol=1e-12, max_iter=5000).fit(X, codes, weights)
    if penalty == "l2":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5)


def test_the_squared_loss_is_ridge_classification() -> None:
    X, codes, weights = problem()
    ours = fitted(X, codes, weights, loss="squared", C=0.3, tol=1e-12)
    peer = sklearn.linear_model.RidgeClassifier(alpha=1 / 0.3).fit(X, codes, weights)
    np.testing.assert_allclose(ours.coef_[0], peer.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-9)


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_the_hinge_is_the_linear_support_vector_machine(C: float) -> None:
    X, codes, weights = problem()
    ours = fitted(X, codes, weights, loss="hinge", C=C, tol=1e-11)
    peer = sklearn.svm.SVC(kernel="linear", C=C, tol=1e-10).fit(X, codes, weights)
    distance = np.linalg.norm(ours.coef_ - peer.coef_)
    assert distance <= np.sqrt(2.0 * ours.fit_.certificate.gap) + 1e-6  # F − F* ≥ ½‖w − w*‖²
    theirs = value("hinge", "l2", C, X, codes, weights, peer.coef_, peer.intercept_)
    assert ours.fit_.certificate.objective <= theirs * (1 + 1e-10)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_the_squared_hinge_is_liblinears(penalty: str) -> None:
    X, codes, weights = problem()
    ours = fitted(X, codes, weights, loss="squared_hinge", penalty=penalty, C=0.5, tol=1e-11)
    # An intercept that is scaled up is hardly penalised.
    peer = sklearn.svm.LinearSVC(penalty=penalty, dual=False, C=0.5, tol=1e-8, intercept_scaling=100, max_iter=100_000)
    peer.fit(X, codes, weights)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=2e-3)
    theirs = value("squared_hinge", penalty, 0.5, X, codes, weights, peer.coef_, peer.intercept_)
    assert ours.fit_.certificate.objective <= theirs * (1 + 1e-10)


def test_the_conditions_of_karush_kuhn_and_tucker_for_hinge_and_l2() -> None:
    X, codes, weights = problem()
    signs, C = 2.0 * codes - 1.0, 2.0
    model = fitted(X, codes, weights, loss="hinge", C=C, tol=1e-13)
    margins = signs * model.decision_function(X)
    # w = C Σ s u ỹ x and Σ s u ỹ = 0 with u = 1 inside the margin, 0 outside and anything between on it
    on, inside = np.abs(margins - 1.0) < 1e-5, margins < 1.0 - 1e-5
    assert 1 <= on.sum() <= 5
    Z = (C * weights * signs)[:, None] * np.column_stack([X, np.ones(len(X))])
    wanted = np.append(model.coef_[0], 0.0) - Z[inside].sum(axis=0)
    between = scipy.optimize.lsq_linear(Z[on].T, wanted, bounds=(0, 1), tol=1e-14)
    np.testing.assert_allclose(Z[on].T @ between.x, wanted, atol=1e-5)


# -- solvers, weights, scales -----------------------------------------------------------------------------------------


@each_loss
@each_penalty
def test_solvers_agree(loss: str, penalty: str | None) -> None:
    X, codes, weights = problem()
    values = []
    for solver in SOLVERS:
        model = fitted(X, codes, weights, loss=loss, penalty=penalty, solver=solver, tol=1e-8)
        assert model.solver_ in SOLVERS
        assert model.fit_.status in (Status.CONVERGED, Status.UNPROVEN)
        values.append(value(loss, penalty, 1.0, X, codes, weights, model.coef_, model.intercept_))
    np.testing.assert_allclose(values, best(loss, penalty, 1.0, True), rtol=2e-8)


@pytest.mark.parametrize("loss", sorted(MARGIN_LOSSES))
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_weights_are_repetitions(loss: str, penalty: str) -> None:
    X, codes, weights = problem()
    weights = np.where(np.arange(len(X)) % 7 == 3, 0.0, weights)
    rows = np.repeat(np.arange(len(X)), weights.astype(int))
    weighted = fitted(X, codes, weights, loss=loss, penalty=penalty, tol=1e-10)
    repeated = fitted(X[rows], codes[rows], loss=loss, penalty=penalty, tol=1e-10)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-4)
    mine, other = weighted.fit_.certificate.objective, repeated.fit_.certificate.objective
    assert mine == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("loss", CONVEX)
def test_the_order_of_the_rows_and_the_names_of_the_classes_do_not_matter(loss: str) -> None:
    X, codes, weights = problem()
    model = fitted(X, codes, weights, loss=loss, tol=1e-10)
    order = np.random.default_rng(1).permutation(len(X))
    shuffled = fitted(X[order], np.array(["no", "yes"])[codes[order]], weights[order], loss=loss, tol=1e-10)
    np.testing.assert_allclose(model.coef_, shuffled.coef_, atol=1e-4)
    assert shuffled.predict(X).tolist() == np.array(["no", "yes"])[model.predict(X)].tolist()
    mirrored = fitted(X, 1 - codes, weights, loss=loss, tol=1e-10)
    np.testing.assert_allclose(model.coef_, -mirrored.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, -mirrored.intercept_, atol=1e-4)


@each_loss
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_C_multiplies_the_weights(loss: str, penalty: str) -> None:
    X, codes, weights = problem()
    one = fitted(X, codes, 8.0 * weights, loss=loss, penalty=penalty, C=0.25, tol=1e-10)
    two = fitted(X, codes, weights, loss=loss, penalty=penalty, C=2.0, tol=1e-10)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-4)
    assert one.fit_.certificate.objective == pytest.approx(two.fit_.certificate.objective, rel=1e-9)


def test_no_penalty_is_an_infinite_C_and_the_elastic_net_ends_in_l1_and_l2() -> None:
    X, codes, weights = problem()
    one = fitted(X, codes, weights, loss="huberised", penalty=None)
    two = fitted(X, codes, weights, loss="huberised", penalty="l1", C=np.inf)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    for ratio, penalty in ((0.0, "l2"), (1.0, "l1")):
        mixed = fitted(X, codes, weights, penalty="elasticnet", l1_ratio=ratio, C=0.1)
        plain = fitted(X, codes, weights, penalty=penalty, C=0.1)
        np.testing.assert_array_equal(mixed.coef_, plain.coef_)


def test_class_weights_multiply_weights() -> None:
    X, codes, weights = problem()
    for given_weight in ("balanced", {0: 2.0, 1: 0.5}):
        model = fitted(X, codes, weights, loss="hinge", class_weight=given_weight, tol=1e-10)
        totals = np.bincount(codes, weights)
        factors = totals.sum() / (2 * totals) if given_weight == "balanced" else np.array([2.0, 0.5])
        direct = fitted(X, codes, weights * factors[codes], loss="hinge", tol=1e-10)
        np.testing.assert_allclose(model.coef_, direct.coef_, atol=1e-5)


# -- the losses of smoothing.py ---------------------------------------------------------------------------------------


def test_losses_are_those_of_the_table() -> None:
    margins = np.linspace(-3, 3, 61)
    for name, loss in MARGIN_LOSSES.items():
        for code in (0, 1):
            eta = ((2 * code - 1) * margins)[:, None]
            np.testing.assert_allclose(loss.value(np.full(61, code), eta), FORMULAS[name](margins), atol=1e-14)


@pytest.mark.parametrize(
    "loss", [SmoothedHinge(0.3), Sigmoid(), SigmoidSquared()], ids=["smoothed", "sigmoid", "squared"]
)
def test_slopes_of_the_losses_are_derivatives(loss: Any) -> None:
    eta, codes, step = np.linspace(-3.03, 3, 83)[:, None], np.arange(83) % 2, 1e-6
    differences = (loss.value(codes, eta + step) - loss.value(codes, eta - step)) / (2 * step)
    np.testing.assert_allclose(loss.gradient(codes, eta)[:, 0], differences, atol=1e-8)
    bends = (loss.gradient(codes, eta + step) - loss.gradient(codes, eta - step)) / (2 * step)
    away = np.abs(np.abs(eta * (2 * codes[:, None] - 1) - 0.85) - 0.15) > 1e-5
    np.testing.assert_allclose(loss.curvature(codes, eta)[away], np.maximum(bends, 0.0)[away], atol=1e-6)
    assert (bends <= loss.steepest + 1e-6).all()


def test_the_smoothed_hinge_touches_the_hinge_and_its_conjugate() -> None:
    margins, ones = np.linspace(-3, 3, 121)[:, None], np.ones(121, dtype=int)
    for width in (2.0, 0.5, 1e-3):
        loss = SmoothedHinge(width)
        below = FORMULAS["hinge"](margins[:, 0]) - loss.value(ones, margins)
        assert (below >= 0).all()
        assert (below <= width / 2 + 1e-15).all()
        a = loss.gradient(ones, margins)
        fenchel = loss.value(ones, margins) + loss.conjugate(ones, a) - (a * margins)[:, 0]
        np.testing.assert_allclose(fenchel, 0.0, atol=1e-14)
        assert np.isinf(loss.conjugate(ones, a - 1.5)).all()
    wide = 4.0 * SmoothedHinge(2.0).value(ones, margins)
    np.testing.assert_allclose(wide, MARGIN_LOSSES["huberised"].value(ones, margins), atol=1e-14)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_a_narrowing_parabola_tends_to_the_hinge(penalty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, codes, weights = problem()
    hinge = fitted(X, codes, weights, loss="hinge", penalty=penalty, tol=1e-10)
    F, before = hinge.fit_.certificate.objective, -np.inf
    for width in (1.0, 0.1, 0.01, 0.001):
        monkeypatch.setitem(MARGIN_LOSSES, "huberised", SmoothedHinge(width))
        smooth = fitted(X, codes, weights, loss="huberised", penalty=penalty, tol=1e-10)
        assert smooth.fit_.status is Status.CONVERGED
        optimum = smooth.fit_.certificate.objective
        assert before < optimum <= F * (1 + 1e-9)
        assert F - optimum <= 0.5 * width * weights.sum()
        before = optimum
    np.testing.assert_allclose(smooth.coef_, hinge.coef_, atol=5e-3)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_the_perceptron_loss_has_its_optimum_at_zero(penalty: str | None) -> None:
    X, codes, weights = problem()
    model = fitted(X, codes, weights, loss="perceptron", penalty=penalty)
    assert not model.coef_.any()
    assert not model.intercept_.any()
    assert model.fit_.status is Status.EXACT
    assert "w = 0" in model.fit_.detail
    assert (model.fit_.certificate.gap, model.fit_.certificate.objective) == (0.0, 0.0)


@pytest.mark.parametrize("loss", ["sigmoid", "sigmoid_squared"])
@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
def test_the_sigmoid_gets_a_stationary_point_and_no_proof(penalty: str, loss: str) -> None:
    X, codes, weights = problem(200, 4, seed=3)
    model = fitted(X, codes, weights, loss=loss, penalty=penalty, tol=1e-9)
    assert model.fit_.status is Status.STATIONARY
    assert model.fit_.certificate.gap == np.inf
    theta = np.append(model.coef_[0], model.intercept_)

    def F(theta: np.ndarray) -> float:
        return value(loss, penalty, 1.0, X, codes, weights, theta[:-1], theta[-1])

    assert model.fit_.certificate.objective == pytest.approx(F(theta), rel=1e-12)
    for direction in np.eye(5)[theta != 0]:
        slope = (F(theta + 1e-5 * direction) - F(theta - 1e-5 * direction)) / 2e-5
        assert abs(slope) < 1e-3
    logistic = fitted(X, codes, weights, loss="logistic", penalty=penalty)
    assert F(theta) <= F(np.append(logistic.coef_[0], logistic.intercept_))


# -- without a penalty ------------------------------------------------------------------------------------------------


def separable() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    codes = np.arange(30) % 2
    return rng.normal(size=(30, 2)) + 8.0 * codes[:, None], codes


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "huberised"])
def test_separable_classes_have_a_finite_optimum_where_the_loss_reaches_zero(loss: str) -> None:
    X, codes = separable()
    model = fitted(X, codes, loss=loss, penalty=None, tol=1e-6)
    assert model.fit_.status is Status.CONVERGED
    assert value(loss, None, 1.0, X, codes, np.ones(30), model.coef_, model.intercept_) <= 1e-6
    assert model.score(X, codes) == 1.0


def test_separable_classes_have_no_logistic_optimum() -> None:
    X, codes = separable()
    with pytest.warns(SeparationWarning, match="completely separable"):
        model = LinearClassifier("logistic", None).fit(X, codes)
    assert model.fit_.status is Status.SEPARATED
    assert np.isfinite(model.coef_).all()
    three = np.where(X[:, 0] > 8, 2, codes)
    with pytest.warns(SeparationWarning, match="'the rest' and '0'"):
        model = LinearClassifier("logistic", None).fit(X, three)
    assert model.fit_.status is Status.SEPARATED
    assert "0" in model.fit_.detail.split("against the rest")[0]


def test_the_sigmoid_of_separable_classes_ends() -> None:
    X, codes = separable()
    model = fitted(X, codes, loss="sigmoid", penalty=None)
    assert model.fit_.status in (Status.STATIONARY, Status.STALLED)
    assert np.isfinite(model.coef_).all()
    assert model.score(X, codes) == 1.0


def test_dependent_columns_are_no_obstacle() -> None:
    X, codes, weights = problem()
    doubled = np.column_stack([X, X, np.ones(len(X)), np.zeros(len(X))])
    for loss in CONVEX:
        for penalty in ("l1", None):
            plain = fitted(X, codes, weights, loss=loss, penalty=penalty, tol=1e-7)
            model = fitted(doubled, codes, weights, loss=loss, penalty=penalty, tol=1e-7)
            assert model.fit_.status is plain.fit_.status
            one, two = (m.fit_.certificate.objective for m in (plain, model))
            assert one == pytest.approx(two, rel=1e-6)


# -- more than two classes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared", "logistic"])
def test_machines_are_one_class_against_the_rest(loss: str) -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    weights = np.random.default_rng(2).uniform(0.5, 2, len(y))
    model = fitted(X, names, weights, loss=loss, tol=1e-9)
    assert model.coef_.shape == (3, 4)
    assert model.n_iter_.shape == model.intercept_.shape == (3,)
    for k, label in enumerate(model.classes_):
        alone = fitted(X, names == label, weights, loss=loss, tol=1e-9)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], atol=1e-4)
        proof, other = model.machines_[k].certificate, alone.fit_.certificate
        assert proof is not None
        assert proof.objective == pytest.approx(other.objective, rel=1e-8)
    total = model.fit_.certificate
    assert total.gap == pytest.approx(sum(fit.certificate.gap for fit in model.machines_))
    assert total.objective == pytest.approx(sum(fit.certificate.objective for fit in model.machines_))
    assert total.gap <= 1e-9 * max(1.0, total.objective)
    assert model.fit_.iterations == sum(fit.iterations for fit in model.machines_)
    assert model.fit_.passes == sum(fit.passes for fit in model.machines_)
    assert {entry["machine"] for entry in model.fit_.trace} == {"'a'", "'b'", "'c'"}
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    assert set(model.predict(X)) == {"a", "b", "c"}


def test_the_worst_status_speaks_for_all_machines() -> None:
    X, y = load_iris(return_X_y=True)
    model = fitted(X, y, loss="squared_hinge", penalty=None)  # the first class is separable, the others are not
    assert [fit.status for fit in model.machines_] == [Status.CONVERGED, Status.UNPROVEN, Status.UNPROVEN]
    assert model.fit_.status is Status.UNPROVEN
    assert "This is so for 1, 2 against the rest." in str(model.fit_)


def test_small_objectives_of_many_machines_still_sum_to_the_tolerance() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 6
    X = 20.0 * np.eye(6)[y] + 0.1 * rng.normal(size=(60, 6))
    model = fitted(X, y, loss="squared_hinge", C=1.0, tol=1e-3)
    proof = model.fit_.certificate
    assert proof.objective < 1.0
    assert proof.gap <= 1e-3


# -- storage, limits, conventions -------------------------------------------------------------------------------------


def test_storage_makes_no_difference(tmp_path: Any) -> None:
    X, codes, weights = problem()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for loss in ("hinge", "squared_hinge"):
        model = fitted(X, codes, weights, loss=loss, tol=1e-8)
        for rows in (sp.csr_array(X), sp.csc_matrix(X), frame, X.tolist()):
            other = fitted(rows, codes, weights, loss=loss, tol=1e-8)
            np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-6)
            np.testing.assert_allclose(other.decision_function(rows), model.decision_function(X), atol=1e-5)
        pq.write_table(pa.Table.from_pandas(frame.assign(y=codes, w=weights)), tmp_path / "rows.parquet")
        for source in (as_source(X, codes, weights), scan_parquet(tmp_path / "rows.parquet", target="y", weight="w")):
            other = LinearClassifier(loss, tol=1e-8).fit(source)
            np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-6)
    assert fitted(frame, codes).feature_names_in_.tolist() == ["a", "b", "c"]


def test_a_warm_start_saves_steps_and_a_refused_fit_changes_nothing() -> None:
    X, codes, weights = problem(300, 5)
    model = LinearClassifier("squared_hinge", warm_start=True, tol=1e-6).fit(X, codes, weights)
    cold, coef = model.n_iter_[0], model.coef_.copy()
    model.fit(X, codes, weights)
    assert model.n_iter_[0] < cold
    np.testing.assert_allclose(model.coef_, coef, atol=1e-4)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.zeros(300), weights)
    np.testing.assert_allclose(model.coef_, coef, atol=1e-4)
    three = np.arange(300) % 3
    assert model.fit(X, three).coef_.shape == (3, 5)  # other classes: from the beginning


def test_a_limit_on_the_steps_is_kept_and_told() -> None:
    X, codes, weights = problem()
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        model = LinearClassifier("hinge", max_iter=2).fit(X, codes, weights)
    assert model.fit_.status is Status.MAX_ITER
    assert model.fit_.iterations <= 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearClassifier("hinge").fit(X, codes, weights)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_an_interrupted_fit_is_a_model(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_iris(return_X_y=True)
    whole, calls = LinearObjective.evaluate, 0

    def evaluate(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(LinearObjective, "evaluate", evaluate)
    model = LinearClassifier(loss, tol=1e-10).fit(X, y)
    assert [fit.status for fit in model.machines_] == [Status.INTERRUPTED] * 3
    assert model.machines_[1].iterations == 0
    assert np.isfinite(model.fit_.certificate.gap)
    assert model.predict(X).shape == (150,)


def test_verbose_reports(capsys: pytest.CaptureFixture[str]) -> None:
    X, codes, weights = problem()
    fitted(X, codes, weights, loss="hinge", verbose=1)
    assert "LinearClassifier: iteration 0" in capsys.readouterr().err


def test_pipelines_searches_and_routing() -> None:
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LinearClassifier()),
        {"linearclassifier__loss": ["hinge", "squared"], "linearclassifier__penalty": ["l2", "l1"]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.8
    model = LinearClassifier("hinge", "elasticnet", C=3, l1_ratio=0.2, class_weight={0: 2.0})
    assert clone(model).get_params() == model.get_params()
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    with config_context(enable_metadata_routing=True):
        routed = LinearClassifier(tol=1e-9).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        parameters = {"params": {"sample_weight": weights}, "return_estimator": True, "return_indices": True, "cv": 3}
        result = cross_validate(routed, X, y, **parameters)
        for estimator, train in zip(result["estimator"], result["indices"]["train"], strict=True):
            want = fitted(X[train], y[train], weights[train], tol=1e-9)
            np.testing.assert_allclose(estimator.coef_, want.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"loss": "absolute"}, "'loss' parameter of LinearClassifier must be a str among"),
        ({"penalty": "l0"}, "'penalty' parameter"),
        ({"C": 0.0}, "'C' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"l1_ratio": 1.5}, "'l1_ratio' parameter"),
        ({"solver": "simplex"}, "'solver' parameter"),
        ({"max_iter": -1}, "'max_iter' parameter"),
        ({"tol": -1.0}, "'tol' parameter"),
        ({"class_weight": {0: -1.0}}, "weights must be finite and ≥ 0"),
        ({"class_weight": {7: 1.0}}, "class_weight names 7"),
        ({"class_weight": {0: 0.0, 1: 0.0}}, "class_weight is 0 for every class"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], words: str) -> None:
    X, codes, _ = problem()
    with pytest.raises(ValueError, match=words):
        LinearClassifier(**parameters).fit(X, codes)


@pytest.mark.parametrize("loss", sorted(MARGIN_LOSSES))
def test_bad_rows_are_named(loss: str) -> None:
    X, codes, weights = problem()
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"column 1 has 1 such row \(first: row 3\)"):
        LinearClassifier(loss).fit(broken, codes)
    with pytest.raises(ValueError, match="'b' has 1 such"):
        LinearClassifier(loss).fit(pd.DataFrame(broken, columns=list("abc")), codes)
    ignored = np.where(np.arange(len(X)) == 3, 0.0, weights)
    assert np.isfinite(LinearClassifier(loss).fit(broken, codes, ignored).coef_).all()  # a row that does not count
    with pytest.raises(ValueError, match="only one class: 0"):
        LinearClassifier(loss).fit(X, np.zeros(len(X), dtype=int))
    with pytest.raises(ValueError, match="negative in 1 rows"):
        LinearClassifier(loss).fit(X, codes, np.where(np.arange(len(X)) == 0, -1.0, 1.0))
    with pytest.raises(ValueError, match="Unknown label type"):
        LinearClassifier(loss).fit(X, codes + 0.5)
