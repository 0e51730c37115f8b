"""Small logistic regressions are solved on rows at hand, by columns or in the Gram matrix of the rows.

the optimum is that of the methods which read in passes;   0 ≤ F(θ) − F* ≤ certificate.gap;   weights ≡ repeated rows
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import LogisticRegression, Status, as_source
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers import registry
from separatrix.solvers.at_hand import row_lines, row_newton, small_newton
from separatrix.solvers.at_hand.row_lines import LINE_NEWTON
from separatrix.solvers.at_hand.row_newton import ROW_NEWTON
from separatrix.solvers.at_hand.rows import RowsAtHand
from separatrix.solvers.at_hand.small_newton import SMALL_NEWTON
from separatrix.solvers.at_hand.sparse_newton import SPARSE_NEWTON
from separatrix.solvers.driver import run
from separatrix.solvers.method import Method, Start
from separatrix.solvers.registry import minimise

METHODS = {"columns": SMALL_NEWTON, "lines": LINE_NEWTON, "rows": ROW_NEWTON, "sparse": SPARSE_NEWTON}
SHAPES = [(40, 6), (30, 90), (25, 25)]


@pytest.fixture(autouse=True, params=["compiled", "without numba"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over the columns by the compiled loop, and by NumPy as before numba is there."""
    monkeypatch.setattr(registry, "lines_pay", lambda n_rows, n_parameters: request.param == "compiled")


def data(n: int, d: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + rng.standard_normal(d)
    codes = (X[:, 0] + rng.standard_normal(n) * np.abs(X[:, 0]).mean() > X[:, 0].mean()).astype(int)
    codes[:2] = 0, 1
    return X, codes


def solved(problem: LinearProblem, method: Method, **limits: Any) -> Any:
    return run(method, problem, Start(problem.start()), **{"tol": 1e-9, "max_iter": 100, **limits})


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["plain", "weighted", "offset", "factors", "fortran", "single", "sparse", "far"])
def test_the_optimum_is_that_of_other_methods(name: str, shape: tuple[int, int], intercept: bool, kind: str) -> None:
    X, codes = data(*shape)
    rng = np.random.default_rng(1)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], len(X)) if kind == "weighted" else None
    if weights is not None:
        weights[:2] = 1.0
    options: dict[str, Any] = {"C": 0.7, "fit_intercept": intercept}
    if kind == "offset":
        options["offset"] = rng.standard_normal(len(X))
    if kind == "factors":
        options["penalty_factors"] = rng.uniform(0.1, 5.0, X.shape[1])
    if name == "sparse":
        X = sp.csr_array(np.where(X > 0, X, 0.0)[:, np.arange(X.shape[1]) % 5 < 4])
        if kind in ("fortran", "single", "sparse", "far"):
            X = X.astype(np.float32)
        if kind == "factors":
            options["penalty_factors"] = options["penalty_factors"][: X.shape[1]]
    stored: Any = (
        X
        if name == "sparse"
        else {
            "fortran": np.asfortranarray(X),
            "single": X.astype(np.float32),
            "sparse": sp.csr_array(np.where(X > 0, X, 0.0)),
            "far": X + 1e6,
        }.get(kind, X)
    )
    problem = LinearProblem.of(as_source(stored, codes, weights).labelled(), **options)
    found = solved(problem, METHODS[name])
    other = minimise(problem, "lbfgs", tol=1e-12, max_iter=2000)
    if kind != "far":
        assert found.status is Status.CONVERGED
        assert found.certificate.gap <= problem.target(1e-9, found.certificate.objective)
    published = problem.publish(found, 1e-9).certificate.gap / problem.units
    assert found.certificate.objective - other.certificate.objective <= published + 1e-12
    if found.status is Status.CONVERGED:
        scale = np.abs(other.theta).max()
        np.testing.assert_allclose(found.theta, other.theta, atol=1e-3 * scale)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("seed", range(40))
def test_weights_and_units_may_differ_by_any_factor(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 8)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-8, 8, d)
    weights, C = 10.0 ** rng.uniform(-12, 12, n), 10.0 ** rng.uniform(-6, 6)
    stored = sp.csr_array(X) if name == "sparse" else X
    problem = LinearProblem.of(as_source(stored, np.arange(n) % 2, weights).labelled(), C=C, fit_intercept=seed % 4 > 0)
    found = solved(problem, METHODS[name], tol=1e-5)
    assert np.isfinite(found.theta).all()
    other = minimise(problem, "lbfgs", tol=1e-12, max_iter=200)
    slack = 1e-12 * found.certificate.objective
    assert found.certificate.objective - other.certificate.objective <= found.certificate.gap + slack


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("max_iter", [0, 1, 2, 3, 100])
def test_certificates_hold_wherever_it_stops(name: str, C: float, max_iter: int) -> None:
    X, codes = data(35, 50, seed=2)
    if name == "sparse":
        X = sp.csr_array(np.where(np.arange(50) % 7 == 0, 0.0, X))
    problem = LinearProblem.of(as_source(X, codes).labelled(), C=C)
    best = minimise(problem, "newton", tol=1e-13, max_iter=500).certificate
    found = solved(problem, METHODS[name], max_iter=max_iter, tol=1e-8)
    truth = problem.evaluate(found.theta).value - best.objective
    assert -1e-14 * max(1.0, best.objective) <= truth <= found.certificate.gap
    assert found.iterations <= max_iter and len(found.trace) == found.iterations + 1
    assert (found.status is Status.CONVERGED) == (found.certificate.gap <= problem.target(1e-8, best.objective))


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_are_repetitions(shape: tuple[int, int]) -> None:
    X, codes = data(*shape, seed=3)
    repeated = np.random.default_rng(4).integers(0, 3, len(X))
    repeated[:2] = 1
    every = np.repeat(np.arange(len(X)), repeated)
    one = LogisticRegression(tol=1e-10).fit(X, codes, sample_weight=repeated)
    two = LogisticRegression(tol=1e-10).fit(X[every], codes[every])
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6 * np.abs(two.coef_).max())
    np.testing.assert_allclose(one.intercept_, two.intercept_, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_interruption_gives_a_model_with_its_proof(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    X, codes = data(*shape, seed=5)
    best = LogisticRegression(tol=1e-12).fit(X, codes).fit_.certificate.objective
    calls: list[int] = []

    def interrupt(kind: Any, name: str, call: int) -> None:
        look = getattr(kind, name)

        def interrupted(*arguments: Any, **more: Any) -> Any:
            calls.append(1)
            if len(calls) == call:
                raise KeyboardInterrupt
            return look(*arguments, **more)

        monkeypatch.setattr(kind, name, interrupted)

    monkeypatch.setattr(row_lines, "_AT_ONCE", 0)  # a step per call
    interrupt(RowsAtHand, "losses", 3)
    interrupt(row_lines, "_moved", 2)
    model = LogisticRegression().fit(X, codes)
    assert model.fit_.status is Status.INTERRUPTED
    scores = (2 * codes - 1) * model.decision_function(X)
    value = np.logaddexp(0.0, -scores).sum() + 0.5 * np.square(model.coef_).sum()
    assert 0 < value - best <= model.fit_.certificate.gap


def test_what_cannot_be_proven_here_is_left_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        @staticmethod
        def dpotrf(matrix: Any, **_: Any) -> tuple[Any, int]:
            return matrix, 1

        spotrf, spotrs, dpotrs = dpotrf, None, None

    for module, shape in ((small_newton, (60, 5)), (row_newton, (20, 60)), (row_newton, (200, 260))):
        X, codes = data(*shape, seed=6)
        expected = LogisticRegression(tol=1e-8).fit(X, codes)
        monkeypatch.setattr(module, "lapack", Failing)
        model = LogisticRegression(tol=1e-8).fit(X, codes)
        assert model.fit_.status is Status.CONVERGED
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4 * np.abs(expected.coef_).max())


@pytest.mark.parametrize("shape", [(200, 8), (40, 3000)])
def test_hard_columns_and_strengths_end_with_a_proof(shape: tuple[int, int]) -> None:
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


@pytest.mark.parametrize("kind", ["C", "F", "single", "weighted", "factors", "far", "strong"])
def test_single_precision_of_the_products_costs_no_digits(kind: str) -> None:
    X, codes = data(200, 1300, seed=11)
    rng = np.random.default_rng(12)
    options: dict[str, Any] = {"C": 1e3 if kind == "strong" else 0.7}
    if kind == "factors":
        options["penalty_factors"] = rng.uniform(0.1, 5.0, X.shape[1])
    weights = rng.choice([0.5, 1.0, 3.0], len(X)) if kind == "weighted" else None
    stored = {"F": np.asfortranarray(X), "single": X.astype(np.float32), "far": X + 50.0}.get(kind, X)
    problem = LinearProblem.of(as_source(stored, codes, weights).labelled(), **options)
    found = solved(problem, ROW_NEWTON, tol=1e-9)
    other = minimise(problem, "lbfgs", tol=1e-11, max_iter=2000)
    assert found.status is Status.CONVERGED
    assert found.certificate.gap <= problem.target(1e-9, found.certificate.objective)
    truth = problem.evaluate(found.theta).value - other.certificate.objective
    assert -other.certificate.gap <= truth + 1e-13 * found.certificate.objective <= found.certificate.gap + 1e-12


@pytest.mark.parametrize("C", [1.0, 1e4, 1e7])
def test_rows_that_single_precision_does_not_resolve_end_as_in_double(
    C: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(13)
    X = 1e-4 * rng.standard_normal((200, 400)) + 10.0 * rng.standard_normal((200, 2)) @ rng.standard_normal((2, 400))
    codes = (X[:, 0] - X[:, 1] + rng.standard_normal(200) > 0).astype(int)
    problem = LinearProblem.of(as_source(X, codes).labelled(), C=C)
    found = solved(problem, ROW_NEWTON, tol=1e-8)
    monkeypatch.setattr(row_newton, "_ROWS_IN_SINGLE", 1000)
    other = solved(problem, ROW_NEWTON, tol=1e-8)
    assert found.status is other.status
    least = min(found.certificate.objective, other.certificate.objective)
    assert problem.evaluate(found.theta).value - least <= found.certificate.gap


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_factors_of_single_precision_lead_to_the_same_point(C: float, monkeypatch: pytest.MonkeyPatch) -> None:
    X, codes = data(220, 300, seed=11)
    factored: list[bool] = []
    solved = row_newton._solved

    def watched(gram: Any, roots: Any, sides: Any, single: bool) -> Any:
        found = solved(gram, roots, sides, single)
        factored.append(single and found is not None)
        return found

    monkeypatch.setattr(row_newton, "_solved", watched)
    narrow = LogisticRegression(C=C, tol=1e-8).fit(X, codes)
    assert any(factored)
    factored.clear()
    monkeypatch.setattr(row_newton, "_FIRM", 0.0)  # none is firm enough
    wide = LogisticRegression(C=C, tol=1e-8).fit(X, codes)
    assert factored and not any(factored)
    assert narrow.fit_.status is wide.fit_.status is Status.CONVERGED
    assert narrow.n_iter_[0] <= wide.n_iter_[0] + 2
    np.testing.assert_allclose(narrow.coef_, wide.coef_, atol=1e-5 * np.abs(wide.coef_).max())
