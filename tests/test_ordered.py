"""The cumulative logit of ordered classes, against statsmodels, binary logistic regression and its own definitions."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from statsmodels.miscmodels.ordinal_model import OrderedModel

from separatrix import (
    LogisticRegression,
    OrderedLogisticRegression,
    Status,
    as_source,
    load_model,
    save_model,
    scan_parquet,
)
from separatrix.inference import likelihood_ratio_test
from separatrix.objectives.cumulative_problem import CumulativeProblem
from separatrix.solvers.curvature import Curvature
from separatrix.solvers.ordered.cumulative import minimise_cumulative, proven_gap

RNG = np.random.default_rng(51)
N, D, K = 250, 3, 4
X = RNG.normal(size=(N, D)) * np.array([1.0, 2.0, 0.5]) + np.array([0.0, 10.0, 0.0])
ETA = (X - X.mean(axis=0)) @ [1.0, -0.4, 0.3]
Y = np.digitize(ETA + RNG.logistic(size=N), [-1.0, 0.0, 1.5])
WEIGHTS = RNG.integers(1, 4, size=N).astype(float)
OFFSET = RNG.normal(size=N)
WORDS = np.array(["poor", "fair", "good", "fine"])
PLAIN: dict[str, Any] = {"C": np.inf, "tol": 1e-12}


def peer(X: Any, y: Any, offset: Any = None) -> tuple[Any, np.ndarray, np.ndarray]:
    """statsmodels' fit, with thresholds and the covariance of coefficients and thresholds as we have them."""
    found = OrderedModel(y, X, offset=offset, distr="logit").fit(method="newton", disp=0, maxiter=100, tol=1e-13)
    d, params = X.shape[1], np.asarray(found.params)
    thresholds = np.asarray(found.model.transform_threshold_params(params))[1:-1]
    steps = np.exp(params[d + 1 :])  # their parameters are the first threshold and logarithms of steps
    jacobian = np.eye(len(params))
    jacobian[d:, d] = 1.0
    for k, step in enumerate(steps):
        jacobian[d + 1 + k :, d + 1 + k] = step
    return found, thresholds, jacobian @ np.asarray(found.cov_params()) @ jacobian.T


def information(coef: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Second derivatives of −log L as it is defined: differences of gradients by complex steps."""
    at = np.concatenate([coef, thresholds])

    def gradient(at: np.ndarray) -> np.ndarray:
        slopes = []
        for step in 1e-30j * np.eye(len(at)):
            moved = at + step
            edges = np.concatenate([[-60.0], moved[D:], [60.0]])  # σ is 0 and 1 there, to rounding
            eta = X @ moved[:D]
            shares = 1.0 / (1.0 + np.exp(eta - edges[Y + 1])) - 1.0 / (1.0 + np.exp(eta - edges[Y]))
            slopes.append(-np.log(shares).sum().imag / 1e-30)
        return np.array(slopes)

    rows = [(gradient(at + h) - gradient(at - h)) / 2e-5 for h in 1e-5 * np.eye(len(at))]
    return 0.5 * (np.array(rows) + np.array(rows).T)


def test_maximum_likelihood_agrees_with_statsmodels() -> None:
    model = OrderedLogisticRegression(**PLAIN).fit(X, Y)
    found, thresholds, covariance = peer(X, Y)
    np.testing.assert_allclose(model.coef_, found.params[:D], rtol=1e-6)
    np.testing.assert_allclose(model.thresholds_, thresholds, rtol=1e-6)
    table = model.summary()
    np.testing.assert_allclose(table.log_likelihood, found.llf, rtol=1e-10)
    np.testing.assert_allclose([table.aic, table.bic], [found.aic, found.bic], rtol=1e-9)
    np.testing.assert_allclose(model.vcov(), np.linalg.inv(information(found.params[:D], thresholds)), rtol=1e-6)
    # statsmodels' own covariance comes from second differences of the likelihood, which have five digits.
    np.testing.assert_allclose(model.vcov(), covariance, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose([row.standard_error for row in table.rows[:D]], found.bse[:D], rtol=1e-5)
    np.testing.assert_allclose([row.p_value for row in table.rows[:D]], found.pvalues[:D], rtol=1e-4)
    np.testing.assert_allclose(model.conf_int()[:D], np.asarray(found.conf_int())[:D], rtol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), found.predict(X), atol=1e-8)
    assert table.lr_degrees == D and table.lr_statistic == pytest.approx(found.llr, rel=1e-6)
    assert [row.name for row in table.rows] == ["x0", "x1", "x2", "0|1", "1|2", "2|3"]
    assert "proportional odds" in str(table) and model.fit_.status is Status.CONVERGED
    assert model.fit_.certificate.kind == "proven" and model.fit_.certificate.relative_gap < 1e-12


def test_offsets_agree_with_statsmodels() -> None:
    model = OrderedLogisticRegression(**PLAIN).fit(X, Y, offset=OFFSET)
    found, thresholds, _ = peer(X, Y, OFFSET)
    np.testing.assert_allclose(model.coef_, found.params[:D], rtol=1e-6)
    np.testing.assert_allclose(model.thresholds_, thresholds, rtol=1e-6)
    np.testing.assert_allclose(model.summary().log_likelihood, found.llf, rtol=1e-10)

    def loss(thresholds: np.ndarray) -> float:
        edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
        shares = expit(edges[Y + 1] - OFFSET) - expit(edges[Y] - OFFSET)
        return -float(np.log(np.maximum(shares, 1e-300)).sum())

    null = minimize(loss, [-1.0, 0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).fun
    np.testing.assert_allclose(model.summary().inference.null_log_likelihood, -null, rtol=1e-9)


@pytest.mark.parametrize("C", [0.2, np.inf])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_two_classes_are_logistic_regression(C: float, weights: Any) -> None:
    labels = np.where(Y > 1, "b", "a")
    ours = OrderedLogisticRegression(C, tol=1e-12).fit(X, labels, weights)
    binary = LogisticRegression(C=C, tol=1e-12).fit(X, labels, weights)
    np.testing.assert_allclose(ours.coef_, binary.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(-ours.thresholds_, binary.intercept_, rtol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), binary.decision_function(X), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ours.fit_.certificate.objective, binary.fit_.certificate.objective, rtol=1e-10)
    turned = OrderedLogisticRegression(C, tol=1e-12, order=["b", "a"]).fit(X, labels, weights)
    np.testing.assert_allclose(turned.coef_, -ours.coef_, rtol=1e-6)
    np.testing.assert_allclose(turned.predict_proba(X), ours.predict_proba(X), rtol=1e-6)
    if np.isinf(C):
        rows, others = ours.summary().rows, binary.summary().rows
        np.testing.assert_allclose([r.standard_error for r in rows], [r.standard_error for r in others], rtol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 100.0), st.integers(2, 6))
def test_derivatives_and_proofs(seed: int, C: float, n_classes: int) -> None:
    """Finite differences, and that the bound holds at points away from the optimum."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, size=N)
    y[:n_classes] = np.arange(n_classes)
    source = as_source(X, y, WEIGHTS).labelled()
    problem = CumulativeProblem.of(source, np.bincount(y, WEIGHTS), rng.permutation(n_classes), C)
    start = problem.start()
    beta = start + 0.1 * rng.normal(size=start.shape) * np.append(np.ones(D), np.zeros(n_classes - 1))
    at, h = problem.evaluate(beta, 2), 1e-5
    steps = h * np.eye(beta.size)[:, None, :]
    slopes = [(problem.evaluate(beta + v).value - problem.evaluate(beta - v).value) / (2 * h) for v in steps]
    np.testing.assert_allclose(at.gradient[0], slopes, rtol=1e-5, atol=1e-3)
    bends = [(problem.evaluate(beta + v).gradient - problem.evaluate(beta - v).gradient)[0] / (2 * h) for v in steps]
    np.testing.assert_allclose(at.hessian, bends, rtol=1e-5, atol=1e-3)
    best = minimise_cumulative(problem, start, tol=1e-13, max_iter=100)
    assert best.status is Status.CONVERGED
    for distance in (1e-4, 1e-2, 0.03):
        away = best.theta + distance * rng.normal(size=beta.shape) * np.append(np.ones(D), 0.1 * np.ones(n_classes - 1))
        there = problem.evaluate(away, 2)
        if there.hessian is None:
            continue
        curvature = Curvature(there.hessian.copy(), problem.shape)
        largest = problem.evaluate(away, 1, curvature.metric).largest_row
        gap = proven_gap(problem, away, there, curvature, curvature.spread(largest))
        assert gap >= there.value - best.certificate.objective - 1e-9


def test_weights_files_and_sparse_rows(tmp_path: Path) -> None:
    often = np.repeat(np.arange(N), WEIGHTS.astype(int))
    expected = OrderedLogisticRegression(**PLAIN).fit(X[often], Y[often])
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y, w=WEIGHTS)
    frame.to_parquet(tmp_path / "rows.parquet")
    models = [
        OrderedLogisticRegression(**PLAIN).fit(X, Y, WEIGHTS),
        OrderedLogisticRegression(**PLAIN).fit(sp.csr_array(X), Y, WEIGHTS),
        OrderedLogisticRegression(**PLAIN).fit(scan_parquet(tmp_path / "rows.parquet", target="y", weight="w")),
    ]
    for model in models:
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-7)
        np.testing.assert_allclose(model.thresholds_, expected.thresholds_, rtol=1e-7)
        np.testing.assert_allclose(model.vcov(), expected.vcov(), rtol=1e-6)
    assert models[-1].summary().rows[0].name == "a"
    save_model(models[0], tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), models[0].predict_proba(X))
    assert str(loaded.summary()) == str(models[0].summary())


def test_the_order_of_the_classes() -> None:
    words = WORDS[Y]
    expected = OrderedLogisticRegression(tol=1e-10).fit(X, Y)
    named = OrderedLogisticRegression(tol=1e-10, order=WORDS).fit(X, words)
    categorical = pd.Series(pd.Categorical(words, categories=WORDS, ordered=True))
    ordered = OrderedLogisticRegression(tol=1e-10).fit(X, categorical)
    for model in (named, ordered):
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
        assert list(model.order_) == list(WORDS) and list(model.classes_) == sorted(WORDS)
        columns = [list(model.classes_).index(word) for word in WORDS]
        np.testing.assert_allclose(model.predict_proba(X)[:, columns], expected.predict_proba(X), rtol=1e-8)
        assert np.array_equal(model.predict(X), WORDS[expected.predict(X)])
        np.testing.assert_allclose(model.score_form().probabilities(X), model.predict_proba(X), rtol=1e-10)
    assert not np.allclose(OrderedLogisticRegression().fit(X, words).coef_, expected.coef_, rtol=1e-2)
    with pytest.raises(ValueError, match="name every class once"):
        OrderedLogisticRegression(order=WORDS[:3]).fit(X, words)


def test_probabilities_follow_from_the_thresholds_even_where_they_are_tiny() -> None:
    model = OrderedLogisticRegression().fit(X, Y)
    below = expit(model.thresholds_ - (X @ model.coef_)[:, None])
    shares = np.diff(np.column_stack([np.zeros(N), below, np.ones(N)]), axis=1)
    np.testing.assert_allclose(model.predict_proba(X), shares, rtol=1e-9, atol=1e-12)
    far = X + np.array([1e5, 0.0, 0.0])
    logs = model.predict_log_proba(far)
    assert np.isfinite(logs).all() and (logs[:, 0] < -1e3).all()


def test_columns_far_away_of_other_units_and_dependent() -> None:
    expected = OrderedLogisticRegression(**PLAIN).fit(X, Y)
    moved = X * [1e80, 1.0, 1.0] + np.array([0.0, 0.0, 1e7])
    model = OrderedLogisticRegression(**PLAIN).fit(moved, Y)
    np.testing.assert_allclose(model.coef_ * [1e80, 1.0, 1.0], expected.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.predict_proba(moved), expected.predict_proba(X), atol=1e-6)
    double = np.column_stack([X, X[:, 0] - X[:, 2]])
    dependent = OrderedLogisticRegression(**PLAIN).fit(double, Y)
    np.testing.assert_allclose(dependent.predict_proba(double), expected.predict_proba(X), atol=1e-6)
    with pytest.raises(ValueError, match="linear combinations"):
        dependent.summary()


def test_separable_classes_are_found_out() -> None:
    y = np.digitize(X[:, 0], [-0.5, 0.7])
    with pytest.warns(UserWarning, match="separate the ordered classes"):
        model = OrderedLogisticRegression(C=np.inf).fit(X, y)
    assert model.fit_.status is Status.SEPARATED
    with pytest.raises(ValueError, match="infinite"):
        model.summary()
    assert OrderedLogisticRegression(C=10.0).fit(X, y).score(X, y) > 0.9


def test_summaries_after_a_penalty_are_refused_and_nested_fits_compared() -> None:
    with pytest.raises(ValueError, match="under a penalty"):
        OrderedLogisticRegression().fit(X, Y).summary()
    small, large = (OrderedLogisticRegression(**PLAIN).fit(X[:, :k], Y) for k in (1, 3))
    found = likelihood_ratio_test(small, large)
    expected = 2.0 * (peer(X, Y)[0].llf - peer(X[:, :1], Y)[0].llf)
    np.testing.assert_allclose(found.statistic, expected, rtol=1e-7)
    assert found.degrees == 2


def test_brant_is_the_wald_test_of_separate_logits() -> None:
    model = OrderedLogisticRegression(**PLAIN).fit(X, Y)
    found = model.proportionality_test(X, Y)
    design = np.column_stack([X, np.ones(N)])
    fits = [sm.Logit((k < Y).astype(int), design).fit(disp=0, method="newton", tol=1e-14) for k in range(K - 1)]
    shares = [fit.predict(design) for fit in fits]
    V = np.zeros((K - 1, D, K - 1, D))
    for k in range(K - 1):
        for l in range(k, K - 1):  # noqa: E741  # name of the formula
            bend = design.T @ (design * (shares[l] * (1 - shares[k]))[:, None])
            block = (fits[k].cov_params() @ bend @ fits[l].cov_params())[:D, :D]
            V[k, :, l], V[l, :, k] = block, block.T
    b = np.array([fit.params[:D] for fit in fits])
    contrast = np.kron(np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]]), np.eye(D))
    apart = contrast @ b.ravel()
    spread = contrast @ V.reshape(9, 9) @ contrast.T
    np.testing.assert_allclose(found.coef, b, rtol=1e-6)
    np.testing.assert_allclose(found.statistic, apart @ np.linalg.solve(spread, apart), rtol=1e-6)
    one = [0, 3]
    expected = apart[one] @ np.linalg.solve(spread[np.ix_(one, one)], apart[one])
    np.testing.assert_allclose(found.columns[0].statistic, expected, rtol=1e-6)
    assert found.degrees == 6 and found.columns[0].degrees == 2 and "Brant" in str(found)
    often = np.repeat(np.arange(N), WEIGHTS.astype(int))
    weighted, repeated = model.proportionality_test(X, Y, WEIGHTS), model.proportionality_test(X[often], Y[often])
    np.testing.assert_allclose(weighted.statistic, repeated.statistic, rtol=1e-6)


def test_brant_tells_proportional_odds_from_others() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3000, 1))
    noise = rng.logistic(size=3000)
    kept = np.digitize(x[:, 0] + noise, [-1.0, 1.0])
    broken = np.where(noise + 2.0 * x[:, 0] < -1.0, 0, np.where(noise - 1.0 * x[:, 0] < 1.0, 1, 2))
    model = OrderedLogisticRegression(C=np.inf)
    assert model.fit(x, kept).proportionality_test(x, kept).p_value > 0.01
    assert model.fit(x, broken).proportionality_test(x, broken).p_value < 1e-10
    with pytest.raises(ValueError, match="one threshold"):
        model.fit(x, kept > 0).proportionality_test(x, kept > 0)


def test_from_a_formula() -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(grade=Y)
    model = OrderedLogisticRegression.from_formula("grade ~ a + b:c", table, C=np.inf)
    plain = OrderedLogisticRegression(C=np.inf).fit(np.column_stack([X[:, 0], X[:, 1] * X[:, 2]]), Y)
    np.testing.assert_allclose(
        model.predict_proba(table), plain.predict_proba(np.column_stack([X[:, 0], X[:, 1] * X[:, 2]]))
    )
    with pytest.raises(ValueError, match="always has intercepts"):
        OrderedLogisticRegression.from_formula("grade ~ a - 1", table)


@pytest.mark.parametrize("seed", range(8))
def test_steps_that_lead_nowhere_end_with_the_proof_that_there_is(seed: int) -> None:
    """Weights over sixteen decades: thresholds that hardly any weight holds; the limit on steps is not what ends the fit."""
    rng = np.random.default_rng(seed)
    X, y, weights = rng.standard_normal((30, 36)), rng.integers(0, 2, 30), 10.0 ** rng.uniform(-8, 8, 30)
    y[:5] = np.arange(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        long, short = (
            OrderedLogisticRegression(C=1e3, tol=1e-9, max_iter=steps).fit(X, y, weights) for steps in (400, 100)
        )
    assert long.n_iter_ < 400 and long.fit_.status is not Status.MAX_ITER
    certificates = long.fit_.certificate, short.fit_.certificate
    assert certificates[0].gap <= certificates[1].gap * (1 + 1e-6)
