"""Blocks of the Hessian, from all rows or a sample: what they are near, and that fits in their metric are the same optimum."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from separatrix import LogisticRegression
from separatrix.data import as_source
from separatrix.objectives import hessian_blocks
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers import newton_cg, preconditioners
from separatrix.solvers.preconditioners import preconditioner
from separatrix.solvers.sample import Sample


def problem_of(n, d, classes, *, seed=0, C=1.0, intercept=True, spread=0.0, order="C", dtype=np.float64, **more):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + rng.standard_normal((d, d)) / np.sqrt(d))
    X *= 10.0 ** (spread * rng.uniform(-1, 1, d))
    scores = (X / (1e-9 + X.std(axis=0))) @ rng.standard_normal((d, classes))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    y[:classes] = np.arange(classes)
    X = np.asarray(X, dtype=dtype, order=order)
    weights = more.pop("weights", None)
    source = as_source(X, y, weights).labelled()
    return LinearProblem.of(source, C=C, fit_intercept=intercept, **more), X, y


def objective(X, y, model, C):
    scores = np.asarray(X @ model.coef_.T) + model.intercept_
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    loss = float((logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]).sum())
    return C * loss + 0.5 * float(np.square(model.coef_).sum())


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_two_scores_or_one_are_solved_exactly(classes, intercept, weighted):
    """With one score the block is H; of a softmax it is H along the differences, up to the coupling of three and more."""
    weights = np.random.default_rng(1).integers(0, 3, 400).astype(float) if weighted else None
    problem, _, _ = problem_of(400, 6, classes, intercept=intercept, weights=weights)
    theta = 0.3 * np.random.default_rng(2).standard_normal(problem.shape)
    theta -= theta.mean(axis=0) if classes > 2 else 0.0
    evaluation = problem.evaluate(theta, 1, keep=True)
    near = preconditioner(problem, None).at(theta, evaluation, 0)
    v = np.random.default_rng(3).standard_normal(problem.shape)
    if intercept and classes > 2:
        v[:, -1] -= v[:, -1].mean()
    if classes > 2 and intercept:  # no score notices the same intercept for all classes
        v[:, :-1] += 1.0
    product = evaluation.times(v)
    found = near.solve(product)
    if classes == 2:
        np.testing.assert_allclose(found, v, rtol=1e-6, atol=1e-8)
        return
    # All directions are within a small factor: eigenvalues of M⁻¹H between those of the coupling.
    ratio = float((product * found).sum()) / float((v * product).sum())
    assert 0.5 < ratio < 2.0
    # Along one vector for all classes the penalty alone counts, and it is exact.
    same = np.zeros(problem.shape)
    same[:, : problem.shape[1] - intercept] = np.random.default_rng(4).standard_normal(problem.shape[1] - intercept)
    np.testing.assert_allclose(near.solve(evaluation.times(same)), same, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n", [300, 5000])
def test_gram_matrices_at_once_and_by_pairs_of_columns_are_the_weighted_ones(n):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((n, 7)), rng.random((20, n))
    block = next(iter(as_source(X, None).blocks()))
    found = preconditioners._weighted_grams(block, weights)
    np.testing.assert_allclose(found, np.einsum("ki,ia,ib->kab", weights, X, X), rtol=1e-12)


@pytest.mark.parametrize("singular", [False, True])
def test_inverses_at_once_are_those_one_by_one(singular):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((5, 3 if singular else 30, 6)) * 10.0 ** rng.uniform(-3, 3, 6)
    matrices = np.matmul(rows.transpose(0, 2, 1), rows)
    found = preconditioners._inverses(matrices)
    np.testing.assert_array_equal(found, found.transpose(0, 2, 1))
    root = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    units = root[:, :, None] * root[:, None, :]
    np.testing.assert_allclose(matrices @ found @ matrices / units, matrices / units, atol=1e-2 if singular else 1e-9)
    if not singular:
        alone = np.stack([preconditioners._inverse(matrix) for matrix in matrices])
        np.testing.assert_allclose(found, alone, rtol=1e-9)


@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("n", "d", "classes"), [(60, 90, 5), (400, 12, 30), (300, 40, 3)])
def test_the_intercepts_shift_proves_no_more_than_is_true(n, d, classes, strength):
    """Few rows, or many classes, and blocks: F less the proven gap is below the optimum, and the gap is below the tolerance."""
    _, X, y = problem_of(n, d, classes, seed=n)
    best = objective(X, y, LogisticRegression(C=strength, tol=1e-8, max_iter=500).fit(X, y), strength)
    for tol in (1e-2, 1e-4):
        model = LogisticRegression(C=strength, tol=tol, solver="newton-cg").fit(X, y)
        value, gap = objective(X, y, model, strength), model.fit_.certificate.gap
        assert model.fit_.status.name == "CONVERGED"
        assert gap <= tol * max(1.0, value) * (1.0 + 1e-9)
        assert value - gap <= best * (1.0 + 1e-10)


@pytest.mark.parametrize("classes", [2, 4, 24])
@pytest.mark.parametrize(("C", "spread"), [(1e-3, 0.0), (1.0, 0.0), (1e3, 0.0), (1.0, 3.0)])
@pytest.mark.parametrize(("order", "dtype"), [("C", np.float64), ("F", np.float64), ("C", np.float32)])
def test_fits_with_blocks_of_a_sample_are_the_optimum(classes, C, spread, order, dtype):
    drawn = (problem_of(6000, 8, classes, seed=k, C=C, spread=spread, order=order, dtype=dtype) for k in range(20))
    rows = preconditioners.block_rows((classes, 9))
    _, X, y = next(one for one in drawn if Sample.of(one[0], rows) is not None)  # every class is in the sample
    assert 4 * rows <= len(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression(C=C, solver="newton-cg", tol=1e-7).fit(X, y)
        exact = LogisticRegression(C=C, solver="newton", tol=1e-11).fit(X, y)
    gap = objective(X, y, model, C) - objective(X, y, exact, C)
    scale = max(1.0, objective(X, y, exact, C))
    assert gap <= 1.01 * model.fit_.certificate.gap + 1e-10 * scale
    assert model.fit_.certificate.gap <= 1e-7 * scale


@pytest.mark.parametrize("entries", [0, 1 << 24])
def test_one_block_for_all_scores_and_one_for_each_find_the_same(monkeypatch, entries):
    monkeypatch.setattr(preconditioners, "_BLOCK_ENTRIES", entries)
    _, X, y = problem_of(3000, 10, 5)
    model = LogisticRegression(solver="newton-cg", tol=1e-9).fit(X, y)
    exact = LogisticRegression(solver="newton", tol=1e-11).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-4)


def test_sparse_rows_reference_classes_and_uneven_penalties():
    _, X, y = problem_of(4000, 9, 4)
    thin = np.where(np.abs(X) > 1.0, X, 0.0)
    dense = LogisticRegression(solver="newton-cg", tol=1e-10).fit(thin, y)
    sparse = LogisticRegression(solver="newton-cg", tol=1e-10).fit(sp.csr_matrix(thin), y)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-5)
    factors = np.linspace(0.5, 2.0, X.shape[1])
    for more in ({"multi_class": "reference"}, {"penalty_factors": factors}, {"prior": (0.1, 2.0)}):
        one = LogisticRegression(solver="newton-cg", tol=1e-10, **more).fit(X, y)
        two = LogisticRegression(solver="newton", tol=1e-11, **more).fit(X, y)
        np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-4)


def test_columns_of_zeros_and_of_one_value_are_no_obstacle():
    _, X, y = problem_of(3000, 12, 3)
    X[:, 3], X[:, 5] = 0.0, 1.0
    model = LogisticRegression(solver="newton-cg", tol=1e-8).fit(X, y)
    assert model.fit_.certificate.relative_gap <= 1e-8
    np.testing.assert_allclose(model.coef_[:, 3], 0.0, atol=1e-12)


def test_the_same_bits_on_any_number_of_threads():
    _, X, y = problem_of(6000, 8, 4)
    one, two = (LogisticRegression(solver="newton-cg", n_jobs=jobs, tol=1e-7).fit(X, y) for jobs in (1, 3))
    assert newton_cg.NEWTON_CG.name == one.solver_
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_softmax_hessian_by_one_product_is_that_of_its_pairs(monkeypatch, weighted, intercept):
    weights = np.random.default_rng(1).integers(0, 3, 500).astype(float) if weighted else None
    problem, _, _ = problem_of(500, 5, 5, intercept=intercept, weights=weights)
    theta = np.random.default_rng(2).standard_normal(problem.shape)
    one = problem.evaluate(theta, 2).hessian
    monkeypatch.setattr(hessian_blocks, "_ONE_PRODUCT", 0)
    np.testing.assert_allclose(one, problem.evaluate(theta, 2).hessian, rtol=1e-12, atol=1e-11)
