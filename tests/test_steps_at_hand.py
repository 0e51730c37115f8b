"""Newton's method in compiled calls of many steps: their factors, sums and gaps, and that calls may end anywhere.

LLᵀ = H;   gap_at ≡ proof;   one call ≡ a call per step;   F falls along the trace
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import as_source
from separatrix.kernels.gaps import gap_at
from separatrix.kernels.lines.newton_lines import factor, solve
from separatrix.kernels.sparse.newton import sparse_derivatives, weighted_size
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers.at_hand import row_lines, sparse_newton
from separatrix.solvers.at_hand.row_lines import LINE_NEWTON
from separatrix.solvers.at_hand.rows import RowsAtHand, SummedLosses, proof
from separatrix.solvers.at_hand.sparse_newton import SPARSE_NEWTON
from separatrix.solvers.driver import run
from separatrix.solvers.method import Method, Start

NOTHING = np.empty(0)
MODULES: dict[str, tuple[Any, Method]] = {
    "dense": (row_lines, LINE_NEWTON),
    "sparse": (sparse_newton, SPARSE_NEWTON),
}


@pytest.mark.parametrize("p", [1, 3, 4, 5, 8, 17, 60])
@pytest.mark.parametrize("scales", [0.0, 6.0])
def test_the_factor_is_that_of_the_matrix(p: int, scales: float) -> None:
    rng = np.random.default_rng(p)
    A = rng.standard_normal((p + 5, p)) * 10.0 ** rng.uniform(-scales, scales, p)
    side = -(-p // 4) * 4
    H = np.eye(side)
    H[:p, :p] = A.T @ A
    L = H.copy()
    assert factor(L)
    units = np.sqrt(np.diag(H))
    np.testing.assert_allclose(
        np.tril(L) @ np.tril(L).T / np.outer(units, units), H / np.outer(units, units), atol=1e-14
    )
    x = rng.standard_normal(p)
    right = H[:p, :p] @ x
    solve(L, right)
    np.testing.assert_allclose(right * units[:p], x * units[:p], rtol=1e-5, atol=1e-6 * np.abs(x * units[:p]).max())


@pytest.mark.parametrize("at", [0, 3, 6])
@pytest.mark.parametrize("pivot", [-1.0, 0.0, np.nan])
def test_what_is_not_positive_has_no_factor(at: int, pivot: float) -> None:
    H = np.eye(8)
    H[at, at] = pivot
    assert not factor(H)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(1, 3), (5, 2), (130, 9), (400, 31)])
def test_sums_over_sparse_rows_are_those_of_the_formula(shape: tuple[int, int], weighted: bool) -> None:
    n, d = shape
    rng = np.random.default_rng(n)
    X = sp.random_array(shape, density=0.5, rng=rng, format="csr")
    signs, w, b = rng.choice([-1.0, 1.0], n), rng.standard_normal(d), 0.3
    s, o = (rng.random(n) + 0.1, rng.standard_normal(n)) if weighted else (NOTHING, NOTHING)
    weights, offset = (s, o) if weighted else (np.ones(n), np.zeros(n))
    bends, sums = np.empty(n), np.zeros((d, 3))
    found = sparse_derivatives(X.data, X.indices, X.indptr, signs, s, o, w, b, bends, sums)
    eta = X @ w + b + offset
    slopes = -signs * weights / (1.0 + np.exp(signs * eta))
    bent = weights / (2.0 + np.exp(eta) + np.exp(-eta))
    expected = ((weights * np.logaddexp(0.0, -signs * eta)).sum(), (slopes**2 / weights).sum(), np.abs(eta).max())
    np.testing.assert_allclose(found, (*expected, slopes.sum(), bent.sum()), rtol=1e-12, atol=1e-13 * n)
    np.testing.assert_allclose(bends, bent, rtol=1e-12)
    squares = X.power(2)
    np.testing.assert_allclose(sums, np.stack([X.T @ slopes, X.T @ bent, squares.T @ bent], axis=1), atol=1e-12 * n)
    q = rng.random(d) + 0.1
    np.testing.assert_allclose(weighted_size(X.data, X.indices, X.indptr, s, q), (squares.T @ weights / q).sum())


def problem_of(kind: str, seed: int, intercept: bool) -> LinearProblem:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 200)), int(rng.integers(2, 40))
    X: Any = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2, d)
    y = (X[:, 0] / np.abs(X[:, 0]).max() + 0.3 * rng.standard_normal(n) > 0).astype(int)
    y[:2] = 0, 1
    weights = rng.choice([0.5, 1.0, 4.0], n) if seed % 2 else None
    stored = sp.csr_array(np.where(rng.random((n, d)) < 0.4, X, 0.0)) if kind == "sparse" else X
    return LinearProblem.of(
        as_source(stored, y, weights).labelled(), C=10.0 ** rng.uniform(-3, 3), fit_intercept=intercept
    )


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_one_call_is_a_call_for_every_step(
    kind: str, intercept: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, method = MODULES[kind]
    problem = problem_of(kind, seed, intercept)
    start = Start(problem.start())
    together = run(method, problem, start, tol=1e-6, max_iter=100)
    monkeypatch.setattr(module, "_AT_ONCE", 0)
    apart = run(method, problem, start, tol=1e-6, max_iter=100)
    assert together.status is apart.status
    for found in (together, apart):
        values = np.array([entry["objective"] for entry in found.trace])
        assert len(values) == found.iterations + 1 == found.trace[-1]["iteration"] + 1
        assert (np.diff(values) <= 1e-12 * values[0]).all()
        assert all(entry["gap"] >= 0.0 for entry in found.trace)
        truth = problem.evaluate(found.theta).value - min(together.certificate.objective, apart.certificate.objective)
        assert truth <= found.certificate.gap
    alone = kind == "sparse" and not intercept  # sweeps, where there are some, are those of the first call
    if not alone:
        np.testing.assert_array_equal(together.theta, apart.theta)
        assert [entry["gap"] for entry in together.trace[:-1]] == pytest.approx(
            [entry["gap"] for entry in apart.trace[:-1]], rel=1e-9
        )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_the_gap_between_steps_is_that_of_the_proof(seed: int, intercept: bool) -> None:
    problem = problem_of("dense", seed, intercept)
    rows, d = RowsAtHand.of(problem), len(problem.scale)
    X, quadratic = rows.block.dense(), problem.objective.penalty.quadratic[0]
    for share in (0.0, 0.9, 0.99999):
        theta = share * run(LINE_NEWTON, problem, Start(problem.start()), tol=1e-9, max_iter=100).theta[0]
        at = rows.losses(X @ theta)
        gradient, border = X.T @ at.slopes + quadratic * theta, X.T @ at.bends
        value = at.value + 0.5 * float((quadratic * theta) @ theta)
        size = float((np.square(X[:, :d]).T @ rows.block.row_weights / quadratic[:d]).sum())
        sums = (at.value, at.residual, at.steepest, at.bend)
        found = gap_at(value, sums, gradient, border, quadratic, d, rows.total, size)
        summed = SummedLosses(at.value, at.residual, at.steepest, at.slope, at.bend)
        right = proof(rows, summed, value, gradient[:d], border[:d] if intercept else None, quadratic[:d], size).gap
        assert found == pytest.approx(min(right, value), rel=1e-7)
