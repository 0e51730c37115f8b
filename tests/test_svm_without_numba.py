"""Machines that NumPy solves while numba is not worth its import are those of the compiled loops, with proofs that are true."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from test_svm import VALUES
from test_svm_convergence import quiet
from test_svm_small_machines import groups

from separatrix import SVC, Status
from separatrix.dual import duality_gap, small_machines
from separatrix.dual.duality_gap import margin_intercept, soft_gap
from separatrix.dual.plain import free_rows, plain_machines
from separatrix.dual.plain.free_rows import newton_on_free_rows


def without_numba(monkeypatch):
    monkeypatch.setattr(small_machines, "compiled_pays_by_now", lambda seconds: False)
    monkeypatch.setattr(duality_gap, "compiled_pays", lambda seconds: False)


def both_ways(monkeypatch, X, y, weight=None, **given):
    compiled = quiet(SVC(**given), X, y, sample_weight=weight)
    without_numba(monkeypatch)
    solved = []
    plain = plain_machines._solve_plainly
    monkeypatch.setattr(plain_machines, "_solve_plainly", lambda *a: solved.append(plain(*a)) or solved[-1])
    return quiet(SVC(**given), X, y, sample_weight=weight), compiled, solved


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "sum"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
def test_they_are_the_machines_of_the_compiled_loops(monkeypatch, kernel, multi_class, C):
    X, y = groups(120, 4, 4)
    kernel_of = "linear" if kernel == "linear" else VALUES[kernel][0]
    given = {"kernel": kernel_of, "C": C, "multi_class": multi_class}
    plain, compiled, solved = both_ways(monkeypatch, X, y, 1.0 + np.arange(120) % 3, **given)
    assert all(solved)
    for ours, theirs in zip(plain.machines_, compiled.machines_, strict=True):
        assert ours.status is Status.CONVERGED
        assert ours.dual_objective == pytest.approx(theirs.dual_objective, rel=1e-9)
        assert ours.primal_objective == pytest.approx(theirs.primal_objective, rel=1e-9)
        assert ours.certificate.gap >= ours.primal_objective - theirs.dual_objective - 1e-12 * ours.primal_objective
        np.testing.assert_allclose(ours.decision, theirs.decision, atol=1e-6)


@pytest.mark.parametrize("case", ["sparse", "far away", "one against many", "equal rows", "sigmoid"])
def test_hard_rows(monkeypatch, case):
    X, y = groups(90, 3, 3, seed=1)
    given = {"kernel": "sigmoid"} if case == "sigmoid" else {"kernel": "linear"} if case != "equal rows" else {}
    if case == "far away":
        X = X + 1e6
    elif case == "one against many":
        y = (np.arange(90) == 5).astype(int)
    elif case == "equal rows":
        X = np.repeat(X[:30], 3, axis=0)
    rows = sp.csr_array(X) if case == "sparse" else X
    plain, compiled, _ = both_ways(monkeypatch, rows, y, **given)
    assert plain.fit_.status is compiled.fit_.status
    if case != "sigmoid":  # which has several stationary points
        np.testing.assert_allclose(plain.decision_function(rows), compiled.decision_function(rows), atol=1e-5)
        assert plain.fit_.certificate.gap <= compiled.fit_.certificate.gap + 1e-6


def test_what_does_not_end_soon_is_left_to_compiled_loops(monkeypatch):
    X, y = groups(100, 3, 2)
    monkeypatch.setattr(plain_machines, "_TURNS", 1)
    monkeypatch.setattr(plain_machines, "_STEPS_A_ROW", 0)
    monkeypatch.setattr(free_rows, "_STEPS", 0)
    plain, compiled, solved = both_ways(monkeypatch, X, y)
    assert solved == [False]
    np.testing.assert_array_equal(plain.dual_coef_, compiled.dual_coef_)


@pytest.mark.parametrize("seed", range(20))
def test_the_gap_at_any_point_is_that_of_the_compiled_loop(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    signs, bound = np.where(np.arange(n) % 2, 1.0, -1.0), rng.uniform(0.1, 10.0, n)
    beta = signs * bound * np.clip(rng.uniform(-0.5, 1.5, n), 0.0, 1.0)
    scores, errors = rng.standard_normal(n), 1e-12 * rng.random(n)
    low, high = np.minimum(0.0, signs * bound), np.maximum(0.0, signs * bound)
    found = []
    for _ in range(2):
        intercept = margin_intercept(beta, signs - scores, low, high)
        found.append((intercept, *soft_gap(signs, bound, beta, scores, errors, intercept, 3.0)))
        without_numba(monkeypatch)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-12)


def test_an_interrupt_leaves_the_machines_that_are_solved(monkeypatch):
    X, y = groups(90, 3, 3)
    without_numba(monkeypatch)
    plain = plain_machines._solve_plainly

    def broken_off(*given):
        if given[9] == 1:
            raise KeyboardInterrupt
        return plain(*given)

    monkeypatch.setattr(plain_machines, "_solve_plainly", broken_off)
    model = SVC().fit(X, y)
    assert model.fit_.status is Status.INTERRUPTED
    assert [machine.status is Status.INTERRUPTED for machine in model.machines_] == [False, True, True]


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_a_small_first_fit_imports_no_numba(kernel):
    code = (
        "import sys; from sklearn.datasets import load_iris; from separatrix import SVC\n"
        "X, y = load_iris(return_X_y=True)\n"
        f"SVC(kernel='{kernel}').fit(X, y).predict(X)\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def machine(seed, n, rank):
    """K = ZZᵀ of this rank, labels, bounds and the interval of each multiplier."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, rank))
    y, price = np.where(np.arange(n) % 2, 1.0, -1.0), rng.uniform(0.5, 2.0, n)
    return Z @ Z.T, y, np.where(y > 0, 0.0, -price), np.where(y > 0, price, 0.0)


@pytest.mark.parametrize("n", [2, 9, 60])
@pytest.mark.parametrize("rank", [1, 4, 80])
@pytest.mark.parametrize("goal", [1e-1, 1e-4])
@pytest.mark.parametrize("seed", range(3))
def test_steps_of_pairs_keep_their_sums_and_end_within_the_goal(n, rank, goal, seed):
    K, y, low, high = machine(seed, n, rank)
    v, beta = y.copy(), np.zeros(n)
    taken = plain_machines._pairs(K, plain_machines._Roots(K), v, beta, low, high, goal, 100_000)
    assert taken < 100_000 and abs(beta.sum()) <= 1e-12 * n
    assert (beta >= low).all() and (beta <= high).all()
    np.testing.assert_allclose(v, y - K @ beta, atol=1e-9)
    assert v[beta < high].max(initial=-np.inf) - v[beta > low].min(initial=np.inf) <= goal
    before = beta.copy()
    assert plain_machines._pairs(K, plain_machines._Roots(K), v, beta, low, high, goal, 10) == 0
    np.testing.assert_array_equal(beta, before)


@pytest.mark.parametrize("rank", [1, 5, 80])
@pytest.mark.parametrize("split", [None, 20])
@pytest.mark.parametrize("seed", range(4))
def test_newtons_steps_go_on_where_more_rows_are_free_than_the_kernel_has_ranks(rank, split, seed):
    K, y, low, high = machine(seed, 60, rank)
    beta, sides = 0.5 * (low + high), [slice(None)] if split is None else [slice(split), slice(split, None)]
    v, sums = y - K @ beta, [beta[side].sum() for side in sides]
    begun = beta @ y - 0.5 * beta @ K @ beta
    taken = [newton_on_free_rows(K, v, beta, low, high, 40, split) for _ in range(3)]
    assert taken[0] > 0
    assert (beta >= low).all() and (beta <= high).all()
    np.testing.assert_allclose(v, y - K @ beta, atol=1e-6)
    np.testing.assert_allclose([beta[side].sum() for side in sides], sums, atol=1e-9)
    assert beta @ y - 0.5 * beta @ K @ beta > begun
    assert ((beta > low) & (beta < high)).sum() <= rank + len(sides)


def test_what_a_fit_is_said_to_have_cost_does_not_depend_on_the_clock(monkeypatch):
    X, y = groups(120, 4, 3)
    monkeypatch.setattr(duality_gap, "compiled_pays", lambda seconds: False)
    told = []
    monkeypatch.setattr(small_machines, "compiled_pays_by_now", lambda seconds: told.append(seconds))
    monkeypatch.setattr(plain_machines, "took_longer", told.append)
    for _ in range(3):
        SVC(C=10.0).fit(X, y)
    assert len(told) == 6 and len(set(told[::2])) == len(set(told[1::2])) == 1
