"""Kernel machines whose matrix is nearly singular: many rows in few columns under a large C.

Steps of two rows are millions there, for LIBSVM too. Optimality is shown by values that are computed here: a feasible dual
point and a rule whose objectives meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_svm import VALUES
from test_svm_convergence import KINDS, noisy, quiet, shaped

from separatrix import SVC, RBFKernel, Status
from separatrix.dual import low_rank
from separatrix.dual.kernel_matrix import KernelMatrix
from separatrix.dual.low_rank import LowRank, partial_cholesky
from separatrix.dual.points import Points
from separatrix.models.svm import kernel_problem


def meeting_objectives(model: SVC, K: np.ndarray, y: np.ndarray, bound: Any) -> tuple[float, float]:
    """The primal and the dual value of what is published, once it is feasible."""
    signs, beta = 2.0 * y - 1.0, np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    alpha, scores = signs * beta, K @ beta
    assert (alpha >= 0).all() and (alpha <= bound).all()
    assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
    slack = np.maximum(0.0, 1.0 - signs * (scores + model.intercept_[0]))
    return 0.5 * beta @ scores + float(np.sum(bound * slack)), alpha.sum() - 0.5 * beta @ scores


@pytest.mark.parametrize(
    ("n", "d", "gamma", "kind"),
    [
        (2500, 1, 1.0, "plain"),
        (2500, 1, 100.0, "plain"),
        (2500, 2, 0.5, "plain"),
        (2500, 1, 1.0, "repeated"),
        (2500, 2, 0.5, "sorted rows"),
        (1200, 1, 100.0, "sorted classes"),
    ],
)
def test_a_large_price_of_slack_is_reached_in_few_steps(n, d, gamma, kind):
    X, y = shaped(kind, *noisy(n, d, seed=5))
    model = SVC(C=1000.0, gamma=gamma, max_iter=200_000).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    primal, dual = meeting_objectives(model, RBFKernel(gamma)(X), y, 1000.0)
    assert dual <= primal * (1 + 1e-12)
    assert primal - dual <= 1e-5 * primal
    assert model.fit_.certificate.gap >= primal - dual - 1e-9 * primal


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(8, 60),
    d=st.integers(1, 3),
    kind=st.sampled_from(KINDS),
    gamma=st.sampled_from([0.0, 0.01, 0.5]),
    smallest=st.sampled_from([1e-1, 1e-6, 1e-12]),
)
def test_the_factor_leaves_no_more_than_was_asked_for(seed, n, d, kind, gamma, smallest):
    X, _ = shaped(kind, *noisy(n, d, seed))
    K = np.exp(-gamma * np.square(X[:, None] - X[None]).sum(axis=2))
    factor = partial_cholesky(K.diagonal().copy(), lambda i: K[i], smallest, n)
    assert factor is not None
    left = K - factor @ factor.T
    # A positive semi-definite matrix has no entry above its diagonal's largest: scores are off by at most that times Σ|β|.
    assert np.abs(left).max() <= smallest + 1e-13 * n
    assert np.linalg.eigvalsh(left).min() >= -1e-13 * n
    rank = factor.shape[1]
    assert rank <= len(np.unique(X, axis=0))
    assert rank == 0 or partial_cholesky(K.diagonal().copy(), lambda i: K[i], smallest, rank - 1) is None


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(20, 60),
    d=st.integers(1, 2),
    kind=st.sampled_from(KINDS),
    C=st.sampled_from([0.01, 1.0, 1000.0]),
    tol=st.sampled_from([1e-2, 1e-3, 1e-5]),
    weighted=st.booleans(),
    limit=st.sampled_from([0, 1, 5, 100]),
)
def test_its_machine_is_feasible_and_the_optimum(seed, n, d, kind, C, tol, weighted, limit):
    X, y = shaped(kind, *noisy(n, d, seed))
    assume(0 < y.sum() < n)
    signs, K = 2.0 * y - 1.0, RBFKernel(0.05)(X)
    bound = C * (1.0 + np.arange(n) % 3) if weighted else np.full(n, C)
    search = LowRank(KernelMatrix(RBFKernel(0.05), Points(X), 1e8, False), signs, bound, tol)
    search.most = n
    beta, value, steps = search.solve(float(bound.sum()), limit)
    assert steps <= limit
    if beta is None:
        assert limit < 100
        return
    alpha = signs * beta
    assert (alpha >= 0).all() and (alpha <= bound).all()
    assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
    assert value == pytest.approx(alpha.sum() - 0.5 * beta @ K @ beta, abs=tol * bound.sum())
    if limit == 100:
        # The objective is linear in b between the values where a row meets the margin.
        v = signs - K @ beta
        slacks = (bound * np.maximum(0.0, signs * (v - v[:, None]))).sum(axis=1)
        primal = 0.5 * beta @ K @ beta + slacks.min()
        assert primal - (alpha.sum() - 0.5 * beta @ K @ beta) <= tol * bound.sum()


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_way_to_the_optimum_does_not_show(monkeypatch, kernel, weighted):
    X, y = noisy(300, 1, seed=2)
    weight = 1.0 + np.arange(300) % 2 if weighted else np.ones(300)
    found = []
    for cost in (0.0, np.inf):
        monkeypatch.setattr(low_rank, "_USUAL", cost)
        monkeypatch.setattr(kernel_problem, "WHOLE", 0)  # working sets, whatever the size
        found.append(SVC(kernel=VALUES[kernel][0], C=3.0, tol=1e-6).fit(X, y, sample_weight=weight))
    at_once, never = found
    assert at_once.fit_.status is never.fit_.status is Status.CONVERGED
    np.testing.assert_allclose(at_once.decision_function(X), never.decision_function(X), atol=1e-4)
    ours, theirs = at_once.machines_[0].dual_objective, never.machines_[0].dual_objective
    assert ours == pytest.approx(theirs, rel=1e-8)


def test_a_weight_of_two_is_the_row_twice_under_a_large_price():
    X, y = noisy(700, 1, seed=4)
    weight = 1 + np.arange(700) % 3
    weighted = SVC(C=1000.0, gamma=1.0).fit(X, y, sample_weight=weight)
    repeated = SVC(C=1000.0, gamma=1.0).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.fit_.status is repeated.fit_.status is Status.CONVERGED
    ours, theirs = weighted.machines_[0].dual_objective, repeated.machines_[0].dual_objective
    assert ours == pytest.approx(theirs, rel=1e-6)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=0.02)


@pytest.mark.parametrize("steps", [1, 3, 12])
def test_its_steps_count(monkeypatch, steps):
    monkeypatch.setattr(low_rank, "_USUAL", 0.0)
    X, y = noisy(400, 1)
    model = quiet(SVC(C=1000.0, gamma=1.0, max_iter=steps), X, y)
    assert model.n_iter_[0] <= steps and model.fit_.status is Status.MAX_ITER
    primal, dual = meeting_objectives(model, RBFKernel(1.0)(X), y, 1000.0)
    assert model.fit_.certificate.gap >= primal - dual - 1e-9 * primal


def test_an_interrupt_of_its_steps_leaves_a_usable_model(monkeypatch):
    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    X, y = noisy(2500, 1)
    monkeypatch.setattr(low_rank, "interior_points", interrupted)
    model = quiet(SVC(C=1000.0, gamma=1.0), X, y)
    assert model.fit_.status is Status.INTERRUPTED
    assert np.isfinite(model.decision_function(X)).all() and model.score(X, y) > 0.5


def test_a_matrix_of_full_rank_is_left_alone(monkeypatch):
    def never(*arguments: Any) -> Any:
        raise AssertionError("the rank of these rows is not low")

    monkeypatch.setattr(LowRank, "solve", never)
    monkeypatch.setattr(low_rank, "_USUAL", 1e-300)
    X, y = noisy(2500, 20)
    assert SVC().fit(X, y).fit_.status is Status.CONVERGED


def test_the_linear_kernel_has_the_rank_of_its_columns(monkeypatch):
    monkeypatch.setattr(low_rank, "_USUAL", 0.0)
    X, y = noisy(2500, 3, seed=1)
    model = SVC(kernel="linear", C=1000.0, max_iter=100_000).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    beta, w = np.zeros(len(y)), model.coef_[0]
    beta[model.support_] = model.dual_coef_[0]
    slack = np.maximum(0.0, 1.0 - (2.0 * y - 1.0) * (X @ w + model.intercept_[0]))
    primal = 0.5 * w @ w + 1000.0 * slack.sum()
    dual = np.abs(beta).sum() - 0.5 * np.square(beta @ (X - X.mean(axis=0))).sum()
    assert primal - dual <= 1e-5 * primal
