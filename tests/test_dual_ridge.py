"""Ridge regression on the side of the rows: sparse rows by conjugate gradients, few dense rows by their Gram matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model as sk

import separatrix
from separatrix import Ridge, RidgeClassifier, Status
from separatrix.solvers import choose_least_squares
from separatrix.solvers.least_squares.choose import affordable_steps
from separatrix.solvers.least_squares.normal_equations import solve_ridge
from separatrix.solvers.least_squares.penalised_metric import penalised_metric
from separatrix.solvers.least_squares.primal_gradient import expected_steps
from separatrix.solvers.least_squares.weighted_rows import FewDenseRows
from separatrix.statistics.gram import Gram


def sparse_problem(n: int, d: int, classes: int = 2, seed: int = 0) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density=0.05, format="csr", random_state=seed)
    return X, (X @ rng.standard_normal((d, classes)) + 0.1 * rng.standard_normal((n, classes))).argmax(axis=1)


def wide_problem(n: int = 60, d: int = 3000, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X @ rng.standard_normal((d, classes))).argmax(axis=1)


def objective(model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None = None) -> float:
    """F of a ridge classifier, from its definition."""
    codes = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    codes = codes[:, 1:] if len(model.classes_) == 2 else codes
    left = codes - X @ model.coef_.T.astype(float) - model.intercept_
    s = np.ones(len(y)) if weights is None else weights
    return float(s @ np.square(left).sum(axis=1) + model.alpha * np.square(model.coef_.astype(float)).sum())


@pytest.mark.parametrize("shape", [(300, 900), (900, 300)])
@pytest.mark.parametrize("classes", [2, 6])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_duality_gap_holds_the_true_gap(
    shape: tuple[int, int], classes: int, alpha: float, intercept: bool
) -> None:
    X, y = sparse_problem(*shape, classes)
    model = RidgeClassifier(alpha, fit_intercept=intercept, solver="cg").fit(X, y)
    exact = RidgeClassifier(alpha, fit_intercept=intercept, solver="gram").fit(X.toarray(), y)
    certificate = model.fit_.certificate
    assert model.fit_.status is Status.CONVERGED and certificate.method == "duality gap"
    value, least = objective(model, X, y), objective(exact, X, y)
    assert certificate.objective == pytest.approx(value, rel=1e-9)
    assert value - least <= certificate.gap + 1e-12 * least
    assert certificate.gap <= 1e-8 * value


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scales", [0, 2])
def test_more_rows_than_columns_are_solved_in_columns_of_about_unit_size(dtype: Any, scales: int) -> None:
    X, _ = sparse_problem(2000, 150)
    rng = np.random.default_rng(0)
    X = sp.csr_array(X @ sp.diags_array(10.0 ** rng.uniform(-scales, scales, 150)), dtype=dtype)
    Y = X @ rng.standard_normal((150, 2)) + rng.standard_normal((2000, 2)) + 3.0
    alpha, weights = np.array([0.1, 10.0]), rng.integers(0, 3, 2000).astype(float)
    model = Ridge(alpha, solver="cg").fit(X, Y, sample_weight=weights)
    exact = Ridge(alpha, solver="gram").fit(X.toarray().astype(float), Y, sample_weight=weights)

    def value(one: Ridge) -> float:
        left = Y - X.astype(float) @ one.coef_.T.astype(float) - one.intercept_
        return float(weights @ np.square(left).sum(axis=1) + alpha @ np.square(one.coef_.astype(float)).sum(axis=1))

    certificate = model.fit_.certificate
    assert model.fit_.status is Status.CONVERGED and model.n_iter_ < 40
    assert -1e-12 * value(exact) <= value(model) - value(exact) <= certificate.gap <= 1e-8 * value(exact)


def test_weights_are_repeated_rows_and_rows_without_weight_do_not_count() -> None:
    X, y = sparse_problem(200, 500, 3)
    weights = np.random.default_rng(1).integers(0, 3, 200).astype(float)
    model = RidgeClassifier(solver="cg", tol=1e-7).fit(X, y, sample_weight=weights)
    repeated = np.repeat(np.arange(200), weights.astype(int))
    other = RidgeClassifier(solver="cg", tol=1e-7).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
    W, z = wide_problem()
    s = np.random.default_rng(1).integers(0, 3, len(z)).astype(float)
    model = RidgeClassifier().fit(W, z, sample_weight=s)
    repeated = np.repeat(np.arange(len(z)), s.astype(int))
    np.testing.assert_allclose(model.coef_, RidgeClassifier().fit(W[repeated], z[repeated]).coef_, atol=1e-12)


def test_an_ill_conditioned_sparse_problem_goes_to_the_closed_form() -> None:
    X, y = sparse_problem(600, 900)
    X = sp.csr_array(X @ sp.diags_array(np.logspace(-4, 4, 900)))
    assert choose_least_squares(*X.shape, entries=X.nnz) == "cg"
    model = RidgeClassifier(1e-4).fit(X, y)
    assert model.fit_.status is Status.EXACT
    np.testing.assert_allclose(model.coef_, RidgeClassifier(1e-4, solver="gram").fit(X, y).coef_)


def test_steps_are_counted_against_the_closed_form() -> None:
    assert affordable_steps(1_333, 4_000, 107_000, 1) > 100 > affordable_steps(300, 300, 9_000, 5)
    assert affordable_steps(100_000, 50_000, 5_000_000, 1) == float("inf")


def test_steps_on_an_array_pay_for_their_vectors_and_not_for_few_columns() -> None:
    """A step keeps some numbers per row: beside few columns they cost more than the entries, and more than the closed form."""
    for n, d in ((142_896, 23), (85_986, 46), (58_381, 40), (29_331, 39)):
        assert choose_least_squares(n, d, dense=True) == "gram"
    for n, d in ((2_836, 294), (4_000, 1_000)):
        assert choose_least_squares(n, d, dense=True) == "cg"
    few, many = (affordable_steps(400_000 // d, d, None, 1) for d in (10, 200))
    assert few < many


def tall_problem(kind: str, n: int = 2400, d: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, d))
    if kind == "walks":
        X = np.cumsum(X, axis=1)
    elif kind == "common part":
        X += rng.standard_normal((n, 1))
    return X, X @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(n)


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 300.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scales", [0, 3])
def test_many_dense_rows_of_independent_columns_take_the_steps_that_are_expected(
    alpha: float, dtype: Any, scales: int
) -> None:
    X, y = tall_problem("independent")
    X = np.asarray(X * np.logspace(-scales, scales, X.shape[1]) + 3.0, dtype=dtype)
    model, exact = Ridge(alpha).fit(X, y), Ridge(alpha, solver="gram").fit(X.astype(float), y)
    assert model.solver_ == "cg" and model.fit_.status in (Status.CONVERGED, Status.ROUNDED)
    assert model.n_iter_ <= 1.5 * expected_steps(X, alpha, 1e-8)

    def value(one: Ridge) -> float:
        w = one.coef_.astype(float)
        return float(np.square(y - X.astype(float) @ w - float(one.intercept_)).sum() + alpha * np.square(w).sum())

    gap = value(model) - value(exact)
    assert -1e-11 * value(exact) <= gap <= model.fit_.certificate.gap + 1e-11 * value(exact)


@pytest.mark.parametrize("kind", ["walks", "common part"])
def test_many_dense_rows_of_columns_that_depend_on_each_other_are_left_to_the_closed_form(kind: str) -> None:
    X, y = tall_problem(kind)
    assert expected_steps(X, 1.0, 1e-8) == np.inf
    model, exact = Ridge(1.0).fit(X, y), Ridge(1.0, solver="gram").fit(X, y)
    assert model.fit_.status is Status.EXACT and model.fit_.passes == 1
    np.testing.assert_array_equal(model.coef_, exact.coef_)


@pytest.mark.parametrize("size", [1e-170, 1e160])
def test_columns_without_squares_are_refused_by_many_dense_rows_too(size: float) -> None:
    X, y = tall_problem("independent")
    X[:, 7] *= size
    with pytest.raises(ValueError, match="column 7"):
        Ridge().fit(X, y)


@pytest.mark.parametrize("shift", [0.0, 1e3])
@pytest.mark.parametrize("scales", [0, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
def test_few_dense_rows_have_the_exact_answer(shift: float, scales: int, intercept: bool, alpha: float) -> None:
    X, y = wide_problem()
    X = (X + shift) * np.logspace(-scales, scales, X.shape[1])
    model = RidgeClassifier(alpha, fit_intercept=intercept).fit(X, y)
    exact = RidgeClassifier(alpha, fit_intercept=intercept, solver="gram").fit(X, y)
    assert model.fit_.status is exact.fit_.status
    assert model.fit_.status is Status.EXACT or (shift and scales and not intercept)
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-6, atol=1e-9 * np.abs(exact.coef_).max())
    gap = objective(model, X, y) - objective(exact, X, y)
    assert gap <= model.fit_.certificate.gap + 1e-9 * exact.fit_.certificate.objective


@pytest.mark.parametrize("held", ["F order", "float32", "integers"])
def test_few_dense_rows_of_any_storage(held: str) -> None:
    X, y = wide_problem()
    X = np.round(4.0 * X) if held == "integers" else X
    stored = {"F order": np.asfortranarray(X), "float32": X.astype(np.float32), "integers": X.astype(int)}[held]
    model, other = RidgeClassifier().fit(stored, y), sk.RidgeClassifier(solver="cholesky").fit(stored.astype(float), y)
    assert model.coef_.dtype == (np.float32 if held == "float32" else np.float64)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-8)
    assert model.fit_.certificate.gap >= objective(model, stored, y) - objective(other, stored.astype(float), y) - 1e-12


def test_regression_on_few_dense_rows() -> None:
    X, _ = wide_problem()
    Y = np.random.default_rng(1).standard_normal((len(X), 3))
    model = Ridge([0.1, 1.0, 1.0]).fit(X, Y)
    assert model.solver_ == "dual" and model.fit_.status is Status.EXACT
    np.testing.assert_allclose(model.coef_, sk.Ridge([0.1, 1.0, 1.0]).fit(X, Y).coef_, atol=1e-10)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_the_same_bits_on_any_number_of_threads(kind: str) -> None:
    X, y = sparse_problem(4000, 4000, 5) if kind == "sparse" else wide_problem(500, 4000)
    found = []
    for threads in (1, 3):
        with separatrix.config(threads=threads):
            found.append(RidgeClassifier().fit(X, y).coef_)
    np.testing.assert_array_equal(*found)


def test_a_fit_without_a_statistic_says_so() -> None:
    X, y = wide_problem()
    model = RidgeClassifier().fit(X, y)
    with pytest.raises(ValueError, match="keeps no statistic to add to"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="keeps no statistic to merge"):
        model.merge(model)
    assert not model.reads_statistic(X)
    kept = RidgeClassifier(solver="gram").fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    np.testing.assert_allclose(kept.coef_, model.coef_, atol=1e-10)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_bad_values_are_named(kind: str) -> None:
    X, y = wide_problem()
    X[3, 7] = np.nan
    rows = sp.csr_array(X * (np.random.default_rng(0).random(X.shape) < 0.05)) if kind == "sparse" else X
    with pytest.raises(ValueError, match="column 7 has 1 such row"):
        RidgeClassifier(solver="cg" if kind == "sparse" else "auto").fit(rows, y)


def array_problem(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.1 * rng.standard_normal(d)
    return X, X[:, :5].sum(axis=1) + rng.standard_normal(n)


@pytest.mark.parametrize("shape", [(900, 640), (900, 1000)])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("held", ["C", "F", "float32"])
def test_arrays_of_moderate_condition_take_steps_with_a_proof(
    shape: tuple[int, int], intercept: bool, held: str
) -> None:
    X, y = array_problem(*shape)
    X = X.astype(np.float32) if held == "float32" else np.asarray(X, order=held)
    model = Ridge(400.0, fit_intercept=intercept).fit(X, y)
    exact = Ridge(400.0, fit_intercept=intercept, solver="gram").fit(X.astype(float), y)

    def value(of: Any) -> float:
        coef = of.coef_.astype(float)
        return float(np.square(y - X.astype(float) @ coef - float(of.intercept_)).sum() + 400.0 * coef @ coef)

    assert model.solver_ == "cg" and model.fit_.status is Status.CONVERGED
    certificate = model.fit_.certificate
    assert certificate.objective == pytest.approx(value(model), rel=1e-6 if held == "float32" else 1e-9)
    assert value(model) - value(exact) <= certificate.gap + 1e-12 * value(exact)
    assert certificate.gap <= 1e-8 * certificate.objective


def test_steps_on_arrays_know_weights_and_threads() -> None:
    X, y = array_problem(900, 640)
    weights = np.random.default_rng(1).integers(0, 3, 900).astype(float)
    one, repeated = Ridge(4000.0, tol=1e-5), Ridge(4000.0, solver="gram")
    one.fit(X, y, sample_weight=weights)
    repeated.fit(np.repeat(X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int)))
    assert one.solver_ == "cg"
    np.testing.assert_allclose(one.coef_, repeated.coef_, atol=1e-4 * np.abs(repeated.coef_).max())
    with separatrix.config(threads=1):
        alone = Ridge(4000.0, tol=1e-5).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(alone.coef_, one.coef_)


@pytest.mark.parametrize("shape", [(900, 640), (900, 1000)])
def test_arrays_of_bad_condition_go_to_a_closed_form(shape: tuple[int, int]) -> None:
    X, y = array_problem(*shape)
    X *= 10.0 ** np.random.default_rng(2).uniform(-2, 2, shape[1])
    model, exact = Ridge(1.0).fit(X, y), Ridge(1.0, solver="gram").fit(X, y)
    assert model.fit_.status is Status.EXACT
    np.testing.assert_allclose(X @ model.coef_, X @ exact.coef_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e4])
def test_the_metric_of_a_penalty_is_that_of_its_matrix(alpha: float) -> None:
    X, y = array_problem(60, 9)
    equations = Gram.of_source(separatrix.as_source(X, y).valued()).normal_equations()
    metric, matrix = penalised_metric(equations, alpha), equations.scatter.matrix() + alpha * np.eye(9)
    assert metric is not None and np.linalg.eigvalsh(matrix)[0] >= alpha
    rows = np.random.default_rng(3).standard_normal((4, 9))
    np.testing.assert_allclose(metric.solve(rows), np.linalg.solve(matrix, rows.T).T, rtol=1e-9, atol=1e-12)
    lengths = np.linalg.norm(metric.half(rows), axis=1)
    np.testing.assert_allclose(np.square(lengths), np.einsum("ij,ij->i", rows, metric.solve(rows)), rtol=1e-9)
    assert (lengths <= metric.half_bound(np.abs(rows)) * (1 + 1e-12)).all()
    assert metric.log_det == pytest.approx(np.linalg.slogdet(matrix)[1])
    sizes = np.sqrt(matrix.diagonal())
    assert metric.condition >= 1.0 / np.linalg.eigvalsh(matrix / sizes / sizes[:, None])[0] * (1 - 1e-9)
    assert penalised_metric(equations, 0.0) is None and penalised_metric(equations, 1e-9) is None


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_a_factor_of_a_little_less_bounds_the_metric_and_gives_the_answer(alpha: float) -> None:
    X, y = array_problem(200, 60)
    X = X * np.logspace(-3, 3, 60)
    equations = Gram.of_source(separatrix.as_source(X, y).valued()).normal_equations()
    metric, matrix = penalised_metric(equations, alpha), equations.scatter.matrix() + alpha * np.eye(60)
    sizes = np.sqrt(matrix.diagonal())
    assert metric is not None
    assert metric.condition >= 1.0 / np.linalg.eigvalsh(matrix / sizes / sizes[:, None])[0]
    rows = np.random.default_rng(3).standard_normal((4, 60)) * sizes
    exact = np.einsum("ij,ji->i", rows, np.linalg.solve(matrix, rows.T))
    lengths = np.square(metric.half(rows)).sum(axis=1)
    assert (lengths >= exact * (1 - 1e-9)).all() and (lengths <= exact * 1.01).all()
    assert (np.sqrt(exact) <= metric.half_bound(np.abs(rows))).all()
    solution = solve_ridge(equations, np.array([alpha]))
    np.testing.assert_allclose(
        solution.coef[0] * sizes, np.linalg.solve(matrix, equations.cross)[:, 0] * sizes, rtol=1e-9
    )
    assert solution.exact() and solution.rank == 60


def test_columns_that_nearly_depend_have_no_such_factor() -> None:
    X, y = array_problem(200, 60)
    X[:, 1] = X[:, 0] + 1e-4 * X[:, 1]
    equations = Gram.of_source(separatrix.as_source(X, y).valued()).normal_equations()
    assert penalised_metric(equations, 0.0) is None
    X[:, 1] = 0.0
    assert penalised_metric(Gram.of_source(separatrix.as_source(X, y).valued()).normal_equations(), 0.0) is None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-5, 1e-2, 10.0])
def test_centred_rows_are_solved_from_one_gram_matrix_in_single_precision(
    alpha: float, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Centred rows have no component along the weights' roots, where a small penalty is all that the Gram matrix has."""
    made, gram = [], FewDenseRows.gram

    def counted(self: FewDenseRows, dtype: Any) -> Any:
        made.append(dtype)
        return gram(self, dtype)

    monkeypatch.setattr(FewDenseRows, "gram", counted)
    rng = np.random.default_rng(3)
    X, weights = rng.standard_normal((180, 3000)), rng.integers(1, 4, 180) if weighted else np.ones(180, int)
    y = X[:, :5].sum(axis=1) + rng.standard_normal(180)
    model = Ridge(alpha=alpha).fit(X, y, sample_weight=weights)
    assert made == [np.float32]
    assert model.fit_.status is Status.EXACT
    A, t = np.repeat(X, weights, axis=0), np.repeat(y, weights)
    A, t = A - A.mean(axis=0), t - t.mean()
    u = np.linalg.solve(A @ A.T + alpha * np.eye(len(A)) + np.ones((len(A), len(A))), t)
    np.testing.assert_allclose(model.coef_, A.T @ u, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scales", [0, 3])
@pytest.mark.parametrize("alpha", [1e-2, 10.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_few_sparse_rows_are_solved_from_the_gram_matrix_of_their_entries(
    dtype: Any, scales: int, alpha: float, intercept: bool
) -> None:
    n, d = 90, 4000
    rng = np.random.default_rng(scales)
    X = sp.random(n, d, density=0.005, format="csr", random_state=scales)
    X = sp.csr_array(X @ sp.diags_array(10.0 ** rng.uniform(-scales, scales, d)), dtype=dtype)
    assert choose_least_squares(n, d, entries=X.nnz, n_targets=2) == "dual"
    weights = rng.integers(0, 3, n).astype(float)
    Y = X.toarray()[:, :2] + rng.standard_normal((n, 2)) + 3.0
    model = Ridge(alpha, fit_intercept=intercept).fit(X, Y, sample_weight=weights)
    again = np.repeat(np.arange(n), weights.astype(int))
    repeated = Ridge(alpha, fit_intercept=intercept).fit(X[again], Y[again])
    dense = Ridge(alpha, fit_intercept=intercept, solver="gram").fit(
        X.toarray().astype(float), Y, sample_weight=weights
    )

    def value(one: Ridge) -> float:
        left = Y - X.astype(float) @ one.coef_.T.astype(float) - one.intercept_
        return float(weights @ np.square(left).sum(axis=1) + alpha * np.square(one.coef_.astype(float)).sum())

    certificate, least = model.fit_.certificate, value(dense)
    assert certificate.kind == "proven" and certificate.gap <= (1e-4 if dtype == np.float32 else 1e-9) * least
    assert -1e-12 * least <= value(model) - least <= certificate.gap + 1e-12 * least
    tolerance = {"rtol": 1e-3, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-6, "atol": 1e-9}
    np.testing.assert_allclose(repeated.coef_, model.coef_, **tolerance)
    np.testing.assert_allclose(dense.coef_, model.coef_, **tolerance)
