"""Softmax regressions with fewer rows than columns are solved in the span of the rows.

the optimum is that of other methods;   0 ≤ F(θ) − F* ≤ certificate.gap;   weights ≡ repeated rows;   repeated rows are no harm
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import LogisticRegression, Status, as_source
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers.driver import run
from separatrix.solvers.method import Start
from separatrix.solvers.newton_cg import NEWTON_CG
from separatrix.solvers.registry import minimise
from separatrix.solvers.row_span import RowSpan

SHAPES = [(30, 100, 3), (20, 130, 5)]


def data(n: int, d: int, K: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + rng.standard_normal(d)
    codes = ((X / X.std(axis=0)) @ rng.standard_normal((d, K)) + d**0.5 * rng.gumbel(size=(n, K))).argmax(axis=1)
    codes[:K] = np.arange(K)
    return X, codes


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["plain", "weighted", "factors", "single", "scales", "repeated", "offset"])
def test_the_optimum_is_that_of_other_methods(shape: Any, intercept: bool, kind: str) -> None:
    X, codes = data(*shape)
    rng = np.random.default_rng(1)
    weights = None
    if kind == "weighted":
        weights = rng.choice([0.0, 0.5, 1.0, 3.0], len(X))
        weights[: shape[2]] = 1.0
    options: dict[str, Any] = {"C": 0.7, "fit_intercept": intercept}
    if kind == "factors":
        options["penalty_factors"] = rng.uniform(0.1, 5.0, X.shape[1])
    if kind == "offset":
        options["offset"] = rng.standard_normal((len(X), shape[2]))
    X = {"single": X.astype(np.float32), "scales": X * 10.0 ** rng.uniform(-3, 3, X.shape[1])}.get(kind, X)
    if kind == "repeated":
        X, codes = np.concatenate([X, X[:9]]), np.concatenate([codes, codes[:9]])
    problem = LinearProblem.of(as_source(X, codes, weights).labelled(), **options)
    assert RowSpan.of(problem) is not None
    found = run(NEWTON_CG, problem, Start(problem.start()), tol=1e-8, max_iter=100)
    other = minimise(problem, "newton", tol=1e-11, max_iter=500)
    assert found.status is Status.CONVERGED
    gap = problem.publish(found, 1e-8).certificate.gap / problem.units
    assert found.certificate.objective - other.certificate.objective <= gap + 1e-12
    np.testing.assert_allclose(found.theta, other.theta, atol=1e-3 * np.abs(other.theta).max())


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("max_iter", [0, 1, 2, 100])
def test_certificates_hold_wherever_it_stops(intercept: bool, C: float, max_iter: int) -> None:
    X, codes = data(30, 120, 4, seed=2)
    problem = LinearProblem.of(as_source(X, codes).labelled(), C=C, fit_intercept=intercept)
    best = minimise(problem, "newton", tol=1e-13, max_iter=500).certificate
    found = run(NEWTON_CG, problem, Start(problem.start()), max_iter=max_iter, tol=1e-8)
    truth = problem.evaluate(found.theta).value - best.objective
    gap = problem.publish(found, 1e-8).certificate.gap / problem.units
    assert -1e-13 * max(1.0, best.objective) <= truth <= gap
    assert found.iterations <= max_iter


def test_weights_are_repeated_rows() -> None:
    X, codes = data(40, 300, 4, seed=3)
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    counts[:4] = 1
    options = {"tol": 1e-10, "C": 0.1, "solver": "newton-cg"}
    weighted = LogisticRegression(**options).fit(X, codes, sample_weight=counts)
    repeated = LogisticRegression(**options).fit(np.repeat(X, counts, axis=0), np.repeat(codes, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6 * np.abs(repeated.coef_).max())


def test_classes_with_penalties_of_their_own_and_sparse_rows_are_left_alone() -> None:
    X, codes = data(40, 150, 3)
    factors = np.ones((3, 150))
    factors[1] = 2.0
    own = LinearProblem.of(as_source(X, codes).labelled(), penalty_factors=factors)
    sparse = LinearProblem.of(as_source(sp.csr_array(X * (X > 0)), codes).labelled())
    tall = LinearProblem.of(as_source(*data(200, 20, 3)).labelled())
    assert [RowSpan.of(each) for each in (own, sparse, tall)] == [None, None, None]


def test_a_hole_is_named() -> None:
    X, codes = data(40, 150, 3)
    X[7, 11] = np.nan
    with pytest.raises(ValueError, match="column 11"):
        LogisticRegression(solver="newton-cg").fit(X, codes)
