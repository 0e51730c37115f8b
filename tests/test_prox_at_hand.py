"""Small logistic regressions with absolute values are solved on rows at hand, dense and sparse.

the optimum is that of prox_newton in passes;   0 ≤ F(θ) − F* ≤ certificate.gap;   sparse ≡ dense;   weights ≡ repeated rows
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from separatrix import LogisticRegression, Status, as_source
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers.at_hand import prox
from separatrix.solvers.at_hand.prox import SMALL_PROX, offered_prox
from separatrix.solvers.driver import run
from separatrix.solvers.method import Start
from separatrix.solvers.registry import minimise

SHAPES = [(60, 5), (30, 250), (25, 25)]


def data(n: int, d: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + rng.standard_normal(d)
    X[:, 1] = X[:, 0] + 1e-3 * X[:, 1]
    X = np.where(rng.random((n, d)) < 0.6, X, 0.0)
    codes = (X[:, 0] + rng.standard_normal(n) * np.abs(X[:, 0]).mean() > X[:, 0].mean()).astype(int)
    codes[:2] = 0, 1
    return X, codes


def solved(problem: LinearProblem, **limits: Any) -> Any:
    assert offered_prox(problem)
    return run(SMALL_PROX, problem, Start(problem.start()), **{"tol": 1e-8, "max_iter": 200, **limits})


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["plain", "weighted", "offset", "factors", "single", "far", "net", "empty"])
def test_the_optimum_is_that_of_other_methods(sparse: bool, shape: tuple[int, int], intercept: bool, kind: str) -> None:
    X, codes = data(*shape)
    rng = np.random.default_rng(1)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], len(X)) if kind == "weighted" else None
    if weights is not None:
        weights[:2] = 1.0
    options: dict[str, Any] = {"C": 2.0, "l1_ratio": 0.3 if kind == "net" else 1.0, "fit_intercept": intercept}
    if kind == "offset":
        options["offset"] = rng.standard_normal(len(X))
    if kind == "factors":
        options["penalty_factors"] = rng.uniform(0.1, 5.0, X.shape[1])
    if kind == "single":
        X = X.astype(np.float32)
    if kind == "far":
        X = X + 1e4
    if kind == "empty":
        X[:, 2] = 0.0
    problem = LinearProblem.of(as_source(sp.csr_array(X) if sparse else X, codes, weights).labelled(), **options)
    found = solved(problem)
    other = minimise(problem, "prox_newton", tol=1e-10, max_iter=4 if kind == "far" else 500)
    if kind != "far":
        assert found.status is Status.CONVERGED
    published = problem.publish(found, 1e-8).certificate.gap / problem.units
    assert found.certificate.objective - other.certificate.objective <= published + 1e-12
    assert other.certificate.objective - found.certificate.objective <= other.certificate.gap + 1e-12
    np.testing.assert_allclose(problem.evaluate(found.theta).value, found.certificate.objective, rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [1e-3, 0.5, 1e3])
@pytest.mark.parametrize("ratio", [1.0, 0.4])
@pytest.mark.parametrize("max_iter", [0, 1, 2, 3, 5, 100])
def test_certificates_hold_wherever_it_stops(sparse: bool, C: float, ratio: float, max_iter: int) -> None:
    X, codes = data(80, 40, seed=2)
    problem = LinearProblem.of(as_source(sp.csr_array(X) if sparse else X, codes).labelled(), C=C, l1_ratio=ratio)
    best = minimise(problem, "prox_newton", tol=1e-12, max_iter=500).certificate
    found = solved(problem, max_iter=max_iter, tol=1e-7)
    truth = problem.evaluate(found.theta).value - best.objective
    assert -best.gap - 1e-14 * max(1.0, best.objective) <= truth <= found.certificate.gap
    assert len(found.trace) - 1 <= found.iterations <= max_iter
    assert (found.status is Status.CONVERGED) == (found.certificate.gap <= problem.target(1e-7, best.objective))


@pytest.mark.parametrize("sparse", [False, True])
def test_more_digits_than_there_are_may_be_asked_for(sparse: bool) -> None:
    X, codes = data(60, 12, seed=3)
    problem = LinearProblem.of(as_source(sp.csr_array(X) if sparse else X, codes).labelled(), C=1.0, l1_ratio=1.0)
    found = solved(problem, tol=0.0, max_iter=60)
    assert found.status is not Status.CONVERGED
    assert 0 < found.certificate.gap <= 1e-9 * found.certificate.objective


@pytest.mark.parametrize("intercept", [True, False])
def test_a_penalty_that_leaves_nothing_is_proven(intercept: bool) -> None:
    X, codes = data(50, 8, seed=3)
    model = LogisticRegression(C=1e-6, l1_ratio=1.0, fit_intercept=intercept).fit(X, codes)
    assert model.fit_.status is Status.CONVERGED
    assert not model.coef_.any()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_weights_are_repetitions_and_columns_may_be_permuted(sparse: bool, shape: tuple[int, int]) -> None:
    X, codes = data(*shape, seed=4)
    rng = np.random.default_rng(5)
    repeated = rng.integers(0, 3, len(X))
    repeated[:2] = 1
    every, order = np.repeat(np.arange(len(X)), repeated), rng.permutation(X.shape[1])
    stored = sp.csr_array if sparse else np.asarray
    options: dict[str, Any] = {"l1_ratio": 0.8, "tol": 1e-9}
    one = LogisticRegression(**options).fit(stored(X), codes, sample_weight=repeated)
    two = LogisticRegression(**options).fit(stored(X[every][:, order]), codes[every])
    size = np.abs(one.coef_).max()
    np.testing.assert_allclose(one.coef_[:, order], two.coef_, atol=1e-3 * size)
    np.testing.assert_allclose(one.fit_.certificate.objective, two.fit_.certificate.objective, rtol=1e-8)


def test_sparse_and_dense_rows_have_the_same_optimum() -> None:
    X, codes = data(200, 30, seed=6)
    one, two = (LogisticRegression(l1_ratio=0.9, tol=1e-9).fit(rows, codes) for rows in (X, sp.csr_array(X)))
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-4 * np.abs(one.coef_).max())


def test_what_cannot_be_proven_here_is_left_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    X, codes = data(60, 12, seed=7)
    monkeypatch.setattr(prox, "_lower", lambda *_: -np.inf)
    model = LogisticRegression(l1_ratio=1.0).fit(X, codes)
    assert model.fit_.status is Status.CONVERGED
    best = LogisticRegression(l1_ratio=1.0, tol=1e-10, solver="prox_newton").fit(X, codes).fit_.certificate
    assert model.fit_.certificate.objective - best.objective <= model.fit_.certificate.gap


def objective_of(X: Any, codes: Any, weights: Any, coef: Any, intercept: float, C: float, ratio: float) -> float:
    """The user's objective in extended precision."""
    rows = np.asarray(X, dtype=np.longdouble)
    margins = (rows @ coef.astype(np.longdouble) + intercept) * (2 * codes - 1)
    losses = np.logaddexp(np.longdouble(0), -margins)
    size = np.abs(coef.astype(np.longdouble))
    return float(C * (weights * losses).sum() + ratio * size.sum() + (1 - ratio) / 2 * (size**2).sum())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("ratio", [1.0, 0.5])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.02, 1.0, 300.0])
def test_certificates_are_true_against_a_slow_and_independent_solver(
    sparse: bool, ratio: float, intercept: bool, C: float
) -> None:
    """L-BFGS-B on the positive and negative parts of the coefficients, from the optimum and from nothing."""
    from scipy.optimize import minimize

    X, codes = data(70, 6, seed=8)
    signs, d = 2.0 * codes - 1.0, X.shape[1]

    def parts(v: Any) -> tuple[float, Any]:
        w, b = v[:d] - v[d : 2 * d], v[2 * d] if intercept else 0.0
        margins = signs * (X @ w + b)
        slopes = -C * signs / (1.0 + np.exp(np.minimum(margins, 700.0)))
        g = X.T @ slopes + (1.0 - ratio) * w
        value = C * np.logaddexp(0, -margins).sum() + ratio * v[: 2 * d].sum() + 0.5 * (1.0 - ratio) * w @ w
        return value, np.concatenate([g + ratio, -g + ratio, [slopes.sum()] if intercept else []])

    model = LogisticRegression(C=C, l1_ratio=ratio, fit_intercept=intercept).fit(
        sp.csr_array(X) if sparse else X, codes
    )
    coef, b = model.coef_[0], float(model.intercept_[0]) if intercept else 0.0
    best = np.inf
    for scale in (0.0, 1.0):
        start = np.concatenate([np.maximum(coef, 0), np.maximum(-coef, 0), [b] if intercept else []]) * scale
        limits = [(0, None)] * (2 * d) + [(None, None)] * intercept
        options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-10}
        best = min(best, float(minimize(parts, start, jac=True, bounds=limits, method="L-BFGS-B", options=options).fun))
    mine = objective_of(X, codes, np.ones(len(X)), coef, b, C, ratio)
    certificate = model.fit_.certificate
    assert model.fit_.status is Status.CONVERGED and certificate.kind == "proven"
    np.testing.assert_allclose(certificate.objective, mine, rtol=1e-12)
    assert mine - best <= certificate.gap <= 1e-4 * mine
    assert best - mine <= 1e-9 * mine


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [0.05, 3.0, 200.0])
def test_slopes_meet_the_conditions_of_the_optimum(sparse: bool, C: float) -> None:
    """As well as the gap says: a slope that misses by v is worth v²/2L, L the largest curvature of its coordinate."""
    X, codes = data(120, 40, seed=9)
    model = LogisticRegression(C=C, l1_ratio=1.0, tol=1e-10).fit(sp.csr_array(X) if sparse else X, codes)
    w, gap = model.coef_[0], model.fit_.certificate.gap
    scores = X @ w + model.intercept_[0]
    slopes = C * (1.0 / (1.0 + np.exp(-scores)) - codes)
    products, curvatures = X.T @ slopes, C * np.square(X).sum(axis=0) / 4.0
    room = np.sqrt(2.0 * curvatures * gap) + 1e-8
    assert abs(slopes.sum()) <= np.sqrt(2.0 * C * len(X) / 4.0 * gap) + 1e-8
    assert (np.abs(products) <= 1.0 + room).all()
    far = np.abs(w) > room / curvatures  # the best of a coordinate alone has the same sign
    assert (np.abs(products + np.sign(w))[far] <= room[far]).all()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_odd_problems_end_and_their_certificates_hold(drawn: Any) -> None:
    """Constant, empty and repeated columns, columns of any size, separable rows, any C: an end, and no false proof."""
    seed = drawn.draw(st.integers(0, 2**32 - 1), label="seed")
    n, d = drawn.draw(st.integers(2, 40), label="n"), drawn.draw(st.integers(1, 60), label="d")
    C = 10.0 ** drawn.draw(st.integers(-8, 8), label="log C")
    ratio = drawn.draw(st.sampled_from([1.0, 0.5, 1e-3]), label="ratio")
    intercept, sparse = drawn.draw(st.booleans(), label="intercept"), drawn.draw(st.booleans(), label="sparse")
    kinds = drawn.draw(st.lists(st.sampled_from(["plain", "one", "zero", "same", "large", "far", "label"]), max_size=5))
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.7, rng.standard_normal((n, d)), 0.0)
    codes = rng.integers(0, 2, n)
    codes[:2] = 0, 1
    for kind in kinds:
        j = rng.integers(d)
        column = {
            "one": 1.0,
            "zero": 0.0,
            "same": X[:, 0],
            "large": X[:, j] * 1e5,
            "far": X[:, j] + 1e3,
            "label": codes,
        }
        X[:, j] = column.get(kind, X[:, j])
    weights = rng.choice([0.5, 1.0, 3.0], n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=C, l1_ratio=ratio, fit_intercept=intercept, max_iter=30)
        model.fit(sp.csr_array(X) if sparse else X, codes, sample_weight=weights)
        other = LogisticRegression(C=C, l1_ratio=ratio, fit_intercept=intercept, max_iter=30, solver="prox_newton")
        other.fit(X, codes, sample_weight=weights)
    values = [objective_of(X, codes, weights, m.coef_[0], float(m.intercept_[0]), C, ratio) for m in (model, other)]
    for value, fitted in zip(values, (model, other), strict=True):
        assert np.isfinite(fitted.coef_).all()
        assert value - min(values) <= fitted.fit_.certificate.gap * (1.0 + 1e-9)


@pytest.mark.parametrize("kind", ["C", "F", "single", "weighted", "net", "weak"])
def test_columns_that_were_left_out_join_until_the_proof_holds_for_all(kind: str) -> None:
    """More columns than are swept together: the proof is about every one of them."""
    X, codes = data(80, 1500, seed=21)
    weights = np.random.default_rng(22).choice([0.5, 1.0, 3.0], len(X)) if kind == "weighted" else None
    stored = {"F": np.asfortranarray(X), "single": X.astype(np.float32)}.get(kind, X)
    options: dict[str, Any] = {"C": 1e3 if kind == "weak" else 0.5, "l1_ratio": 0.3 if kind == "net" else 1.0}
    problem = LinearProblem.of(as_source(stored, codes, weights).labelled(), **options)
    found = solved(problem, tol=1e-6)
    other = minimise(problem, "prox_newton", tol=1e-9, max_iter=500)
    assert found.status is Status.CONVERGED
    assert problem.evaluate(found.theta).value - other.certificate.objective + other.certificate.gap >= -1e-12
    assert problem.evaluate(found.theta).value - other.certificate.objective <= found.certificate.gap + 1e-12
