"""Small softmax regressions are solved on rows at hand.

the optimum is that of the methods which read in passes;   0 ≤ F(θ) − F* ≤ certificate.gap;   weights ≡ repeated rows
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import LogisticRegression, Status, as_source
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers.at_hand import small_softmax
from separatrix.solvers.at_hand.small_softmax import SMALL_SOFTMAX
from separatrix.solvers.driver import run
from separatrix.solvers.method import Method, Start
from separatrix.solvers.registry import minimise

METHODS = {"exact": SMALL_SOFTMAX}
SHAPES = [(60, 5, 3), (30, 40, 4), (80, 3, 7)]


@pytest.fixture(autouse=True, params=["compiled", "without numba"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums by the compiled loop, and by NumPy as before numba is there."""
    monkeypatch.setattr(small_softmax, "lines_pay", lambda n_rows, n_parameters: request.param == "compiled")


def data(n: int, d: int, K: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + rng.standard_normal(d)
    scores = (X / X.std(axis=0)) @ rng.standard_normal((d, K)) + rng.gumbel(size=(n, K))
    codes = scores.argmax(axis=1)
    codes[:K] = np.arange(K)
    return X, codes


def solved(problem: LinearProblem, method: Method, **limits: Any) -> Any:
    return run(method, problem, Start(problem.start()), **{"tol": 1e-9, "max_iter": 100, **limits})


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["plain", "weighted", "factors", "fortran", "single", "sparse", "far"])
def test_the_optimum_is_that_of_other_methods(name: str, shape: Any, intercept: bool, kind: str) -> None:
    X, codes = data(*shape)
    rng = np.random.default_rng(1)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], len(X)) if kind == "weighted" else None
    if weights is not None:
        weights[: shape[2]] = 1.0
    options: dict[str, Any] = {"C": 0.7, "fit_intercept": intercept}
    if kind == "factors":
        options["penalty_factors"] = rng.uniform(0.1, 5.0, X.shape[1])
    stored: Any = {
        "fortran": np.asfortranarray(X),
        "single": X.astype(np.float32),
        "sparse": sp.csr_array(np.where(X > 0, X, 0.0)),
        "far": X + 1e6,
    }.get(kind, X)
    problem = LinearProblem.of(as_source(stored, codes, weights).labelled(), **options)
    found = solved(problem, METHODS[name])
    other = minimise(problem, "newton", tol=1e-12, max_iter=2000)
    if kind != "far":
        assert found.status is Status.CONVERGED
    published = problem.publish(found, 1e-9).certificate.gap / problem.units
    assert found.certificate.objective - other.certificate.objective <= published + 1e-12
    if found.status is Status.CONVERGED:
        np.testing.assert_allclose(found.theta, other.theta, atol=1e-3 * np.abs(other.theta).max())


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("max_iter", [0, 1, 2, 3, 100])
@pytest.mark.parametrize("columns", [20, 30])  # Hessians of double, and of single precision where C is not too large
def test_certificates_hold_wherever_it_stops(name: str, intercept: bool, C: float, max_iter: int, columns: int) -> None:
    X, codes = data(45, columns, 4, seed=2)
    problem = LinearProblem.of(as_source(X, codes).labelled(), C=C, fit_intercept=intercept)
    best = minimise(problem, "newton", tol=1e-13, max_iter=500).certificate
    found = solved(problem, METHODS[name], max_iter=max_iter, tol=1e-8)
    truth = problem.evaluate(found.theta).value - best.objective
    assert -1e-14 * max(1.0, best.objective) <= truth <= found.certificate.gap
    assert found.iterations <= max_iter and len(found.trace) == found.iterations + 1
    assert (found.status is Status.CONVERGED) == (found.certificate.gap <= problem.target(1e-8, best.objective))


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_are_repetitions_and_sums_are_zero(shape: Any) -> None:
    X, codes = data(*shape, seed=3)
    repeated = np.random.default_rng(4).integers(0, 3, len(X))
    repeated[: shape[2]] = 1
    every = np.repeat(np.arange(len(X)), repeated)
    one = LogisticRegression(tol=1e-10).fit(X, codes, sample_weight=repeated)
    two = LogisticRegression(tol=1e-10).fit(X[every], codes[every])
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6 * np.abs(two.coef_).max())
    np.testing.assert_allclose(one.intercept_, two.intercept_, atol=1e-5)
    np.testing.assert_allclose(one.coef_.sum(axis=0), 0.0, atol=1e-9 * np.abs(one.coef_).max())
    np.testing.assert_allclose(one.intercept_.sum(), 0.0, atol=1e-8 * max(1.0, np.abs(one.intercept_).max()))


def test_what_cannot_be_factored_here_is_left_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        @staticmethod
        def dpotrf(matrix: Any, **_: Any) -> tuple[Any, int]:
            return matrix, 1

    X, codes = data(*SHAPES[0], seed=6)
    expected = LogisticRegression(tol=1e-8).fit(X, codes)
    monkeypatch.setattr(small_softmax, "lapack", Failing)
    model = LogisticRegression(tol=1e-8).fit(X, codes)
    assert model.fit_.status is Status.CONVERGED
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4 * np.abs(expected.coef_).max())


@pytest.mark.parametrize("shape", [(200, 8, 3), (60, 30, 5)])
def test_hard_columns_and_strengths_end_with_a_proof(shape: Any) -> None:
    X, codes = data(*shape, seed=7)
    X = X * 10.0 ** np.random.default_rng(8).uniform(-4, 4, X.shape[1])
    for C in (1e-6, 1e-2, 1e2, 1e6):
        model = LogisticRegression(C=C).fit(X, codes)
        assert model.fit_.status is Status.CONVERGED, (C, model.fit_)


def test_nan_is_reported_by_column() -> None:
    for shape in SHAPES:
        X, codes = data(*shape, seed=9)
        X[3, 2] = np.nan
        with pytest.raises(ValueError, match="column 2"):
            LogisticRegression().fit(X, codes)
