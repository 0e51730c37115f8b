"""Machines that are solved whole, side by side in compiled code, are those of the working sets, with proofs that are true."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.svm import SVC as LIBSVM
from test_svm import VALUES
from test_svm_convergence import noisy, quiet

import separatrix
from separatrix import SVC, RBFKernel, Status, config
from separatrix.dual import interior, kernel_matrix, machine, small_machines
from separatrix.dual.kernels import CentredLinear, PolynomialKernel, SigmoidKernel
from separatrix.dual.plain import plain_machines
from separatrix.dual.points import Points
from separatrix.kernels.support_vectors.machines import free_steps
from separatrix.kernels.support_vectors.smo import neighbours, smo
from separatrix.models.svm import kernel_problem, svc


def groups(n: int, d: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((classes, d))[y], y


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "sum"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
def test_they_are_the_machines_of_the_working_sets(monkeypatch, kernel, multi_class, C):
    X, y = groups(150, 4, 5)
    weight = 1.0 + np.arange(150) % 3
    kernel_of = "linear" if kernel == "linear" else VALUES[kernel][0]
    model = SVC(kernel=kernel_of, C=C, multi_class=multi_class)
    found = [quiet(model, X, y, sample_weight=weight)]
    monkeypatch.setattr(kernel_problem, "WHOLE", 0)
    found.append(quiet(SVC(kernel=kernel_of, C=C, multi_class=multi_class), X, y, sample_weight=weight))
    whole, sets = found
    for ours, theirs in zip(whole.machines_, sets.machines_, strict=True):
        assert ours.status is Status.CONVERGED
        assert ours.dual_objective == pytest.approx(theirs.dual_objective, rel=1e-8)
        assert ours.primal_objective == pytest.approx(theirs.primal_objective, rel=1e-8)
        assert ours.certificate.gap >= ours.primal_objective - ours.dual_objective - 1e-9 * ours.primal_objective
        np.testing.assert_allclose(ours.decision, theirs.decision, atol=1e-5)


def test_the_number_of_threads_does_not_show():
    X, y = groups(600, 6, 6)
    found = []
    for threads in (1, 2, 3):
        with separatrix.config(threads=threads):
            found.append(SVC().fit(X, y))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].dual_coef_, other.dual_coef_)
        np.testing.assert_array_equal(found[0].intercept_, other.intercept_)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_interrupt_keeps_the_machines_that_are_solved(monkeypatch, at):
    X, y = groups(900, 3, 4)
    monkeypatch.setattr(small_machines, "_CALL", 1)

    def interrupted(work, items):
        for k, item in enumerate(items):
            if k == at:
                raise KeyboardInterrupt
            work(item)

    monkeypatch.setattr(small_machines, "in_parallel", interrupted)
    model = quiet(SVC(), X, y)
    statuses = [machine.status for machine in model.machines_]
    assert statuses == [Status.CONVERGED] * at + [Status.INTERRUPTED] * (6 - at)
    assert np.isfinite(model.decision_function(X)).all() and model.fit_.status is Status.INTERRUPTED


@pytest.mark.parametrize("C", [1.0, 1e5])
def test_a_machine_that_takes_long_is_left_to_the_working_sets(C):
    X, y = noisy(300, 1)
    model = SVC(C=C, gamma=20.0, tol=1e-6).fit(X, y)
    assert model.fit_.status in (Status.CONVERGED, Status.ROUNDED)
    assert model.fit_.certificate.gap <= 1e-3 * model.fit_.certificate.objective


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_sparse_rows_and_given_values_give_the_same_machines(kernel):
    X, y = groups(120, 5, 3)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    settings = {"C": 2.0, "gamma": 0.2, "coef0": 1.0}
    dense, sparse = (SVC(kernel=kernel, **settings).fit(rows, y) for rows in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.decision_function(X), sparse.decision_function(X), atol=1e-6)
    theirs = LIBSVM(kernel=kernel, tol=1e-8, **settings).fit(X, y)
    np.testing.assert_allclose(dense.decision_function(X), theirs.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(
    "rows", [np.arange(5, 65), np.r_[3:20, 30:73], np.r_[40:70, 0:30], np.arange(0, 79)[::-1][:60]]
)
def test_rows_are_copied_only_when_needed(rows):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    K, y = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2)), np.where(X[:, 0] > 0, 1.0, -1.0)
    known, cut = np.zeros(60, dtype=np.bool_), neighbours(rows)
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    assert cut == (60 if not len(breaks) else breaks[0] if len(breaks) == 1 else -1)
    v, beta = y[rows].copy(), np.zeros(60)
    high, low, values = np.where(v > 0, 1.0, 0.0), np.where(v > 0, 0.0, -1.0), np.full((60, 60), np.nan)
    steps, left = smo(K, rows, values, known, cut, v, beta, low, high, 1e-6, 10_000)
    assert 0 < steps < 10_000 and left <= 1e-6 and abs(beta.sum()) < 1e-12
    np.testing.assert_allclose(v, y[rows] - K[np.ix_(rows, rows)] @ beta, atol=1e-12)
    assert known[beta != 0].all() and not known.all()
    np.testing.assert_array_equal(values[known], K[np.ix_(rows[known], rows)])
    assert np.isnan(values[~known]).all()


@pytest.mark.parametrize("form", ["C", "F", "float32", "sparse"])
@pytest.mark.parametrize("classes", [3, 7])
def test_rows_are_put_side_by_side_by_class_where_nobody_sees_it(form, classes):
    rng = np.random.default_rng(classes)
    X, y = groups(40 + svc._APART, 5, classes)
    order, weight = rng.permutation(len(X)), rng.integers(0, 3, len(X)).astype(float)
    X, y = np.round(X[order], 2).astype(np.float32), y[order]
    given = {"C": X.astype(float), "F": np.asfortranarray(X.astype(float)), "float32": X, "sparse": sp.csr_array(X)}[
        form
    ]
    before, model = given.copy(), SVC(gamma=0.2, C=3.0)
    model.fit(given, y, sample_weight=weight)
    same = given != before
    assert not (same.nnz if form == "sparse" else same.any())
    again = SVC(gamma=0.2, C=3.0).fit(
        np.repeat(X.astype(float), weight.astype(int), axis=0), np.repeat(y, weight.astype(int))
    )
    theirs = LIBSVM(gamma=0.2, C=3.0, tol=1e-8, decision_function_shape="ovo").fit(
        X.astype(float), y, sample_weight=weight
    )
    scores = (
        SVC(gamma=0.2, C=3.0, tol=1e-8, decision_function_shape="ovo").fit(given, y, weight).decision_function(given)
    )
    np.testing.assert_allclose(scores, theirs.decision_function(X.astype(float)), atol=1e-4)
    np.testing.assert_allclose(again.decision_function(X.astype(float)), model.decision_function(given), atol=5e-3)
    assert (np.diff(y[model.support_]) >= 0).all() and (weight[model.support_] > 0).all()
    stored = model.support_vectors_.toarray() if form == "sparse" else model.support_vectors_
    np.testing.assert_array_equal(stored, X[model.support_])
    for fitted in model.machines_:
        wanted = np.flatnonzero(np.isin(y, [fitted.negative, fitted.positive]) & (weight > 0))
        np.testing.assert_array_equal(fitted.rows, wanted)
        np.testing.assert_array_equal(fitted.signs, np.where(y[wanted] == fitted.positive, 1.0, -1.0))
        np.testing.assert_allclose(fitted.bound, 3.0 * weight[wanted])
        K = np.exp(-0.2 * np.square(X[wanted][:, None].astype(float) - X[wanted]).sum(axis=2))
        np.testing.assert_allclose(fitted.decision, K @ fitted.beta + fitted.intercept, atol=1e-9)
        primal = 0.5 * fitted.beta @ K @ fitted.beta + fitted.bound @ fitted.slacks
        dual = fitted.alpha.sum() - 0.5 * fitted.beta @ K @ fitted.beta
        assert fitted.certificate.gap >= primal - dual - 1e-12 * primal and fitted.certificate.gap < 1e-2 * primal


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_many_machines_of_few_rows_are_each_the_machine_of_its_rows(kernel, multi_class):
    rng = np.random.default_rng(3)
    X, y = groups(150, 4, 20)
    y, weight = rng.permutation(y), 0.5 + rng.random(150)
    model = SVC(kernel=kernel, multi_class=multi_class, gamma=0.3).fit(X, y, sample_weight=weight)
    assert len(model.machines_) == (190 if multi_class == "ovo" else 20) == len(list(model.machines_))
    assert model.machines_[-1].positive == model.machines_[len(model.machines_) - 1].positive
    with pytest.raises(IndexError, match="machines"):
        model.machines_[len(model.machines_)]
    for m in (0, 7, len(model.machines_) - 1):
        machine = model.machines_[m]
        wanted = np.flatnonzero(np.isin(y, [machine.negative, machine.positive]))
        np.testing.assert_array_equal(machine.rows, wanted if multi_class == "ovo" else np.arange(150))
        np.testing.assert_array_equal(machine.signs, np.where(y[machine.rows] == machine.positive, 1.0, -1.0))
        np.testing.assert_array_equal(machine.bound, weight[machine.rows])
        side = machine.signs > 0
        alone = SVC(kernel=kernel, gamma=0.3).fit(X[machine.rows], side, sample_weight=machine.bound)
        assert alone.machines_[0].dual_objective == pytest.approx(machine.dual_objective, rel=1e-6)
        assert machine.certificate.gap >= machine.primal_objective - machine.dual_objective - 1e-9
        np.testing.assert_allclose(machine.decision, alone.decision_function(X[machine.rows]), atol=2e-3)
    assert model.fit_.certificate.gap == pytest.approx(sum(machine.certificate.gap for machine in model.machines_))
    assert model.fit_.certificate.objective == pytest.approx(sum(m.primal_objective for m in model.machines_))


def test_coefficients_of_many_pairs_are_laid_out_as_libsvms():
    X, y = groups(160, 4, 8)
    ours, theirs = SVC(gamma=0.3, tol=1e-9).fit(X, y), LIBSVM(gamma=0.3, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


@pytest.mark.parametrize("support", [3, 900])
def test_scores_do_not_depend_on_how_many_rows_are_asked_for(support):
    X, y = groups(1800, 6, 2)
    used = slice(None) if support > 3 else slice(0, 4)
    model = SVC(gamma=0.3, C=0.1).fit(X[used], y[used])
    once = model.decision_function(X)
    parts = np.concatenate([model.decision_function(X[at : at + 300]) for at in range(0, 1800, 300)])
    np.testing.assert_allclose(once, parts, rtol=0, atol=1e-12 * np.abs(once).max())
    exact = np.exp(-0.3 * ((X[:, None] - model.support_vectors_[None]) ** 2).sum(axis=2)) @ model.dual_coef_[0]
    np.testing.assert_allclose(once, exact + model.intercept_[0], rtol=0, atol=1e-9 * np.abs(once).max())


@pytest.mark.parametrize("gamma", [0.05, 20.0])
@pytest.mark.parametrize("classes", [2, 4])
def test_scores_of_many_rows_are_those_of_few(monkeypatch, gamma, classes):
    rng = np.random.default_rng(9)
    y = np.arange(300) % classes
    X = rng.standard_normal((300, 9)) + rng.standard_normal((classes, 9))[y]
    model = SVC(gamma=gamma).fit(X, y)
    new = np.concatenate([X, 30.0 + X, rng.standard_normal((101, 9))])  # values of the second part underflow
    few = model.decision_function(new)
    monkeypatch.setattr(machine, "_MANY", 1)
    many = model.decision_function(new)
    np.testing.assert_allclose(many, few, rtol=1e-12, atol=1e-12)
    with config(threads=1):
        np.testing.assert_array_equal(model.decision_function(new), many)
    values = RBFKernel(gamma)(new, model.support_vectors_)
    if classes == 2:
        np.testing.assert_allclose(many, values @ model.dual_coef_[0] + model.intercept_, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_many_rows_of_few_columns_do_not_take_steps_of_two_rows_to_the_end(kernel: str) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((700, 3))
    y = X.sum(axis=1) + rng.logistic(size=700) > 0
    model = SVC(kernel=kernel, C=200.0).fit(X, y)
    reference = LIBSVM(kernel=kernel, C=200.0, tol=1e-6).fit(X, y)
    assert model.fit_.certificate.kind == "proven" and model.fit_.iterations < 40 * 700
    assert_allclose(model.decision_function(X), reference.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("shape", [(60, 150), (200, 40), (90, 2)])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_guessed_rows_at_their_bounds_end_where_steps_of_two_rows_do(
    shape: tuple[int, int], C: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal(shape)
    y = X[:, 0] + rng.standard_normal(shape[0]) > 0
    monkeypatch.setattr(small_machines, "compiled_pays_by_now", lambda seconds: False)
    found = SVC(C=C).fit(X, y)
    monkeypatch.setattr(plain_machines, "_GUESSES", 0)
    stepped = SVC(C=C).fit(X, y)
    np.testing.assert_array_equal(found.support_, stepped.support_)
    assert_allclose(found.dual_coef_, stepped.dual_coef_, atol=1e-9 * C)
    assert found.fit_.certificate.gap <= 1e-3 * C * len(y)


@pytest.mark.parametrize("sparse", [False, True])
def test_machines_of_long_rows_share_values_that_others_compute_for_themselves(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    X = np.where(rng.random((2100, 400)) < 0.05, rng.random((2100, 400)), 0.0)
    y = (X @ rng.standard_normal((400, 4))).argmax(axis=1)
    rows = sp.csr_array(X) if sparse else X
    made = []
    matrix = kernel_problem.KernelMatrix
    monkeypatch.setattr(kernel_problem, "KernelMatrix", lambda *given: made.append(len(given[1])) or matrix(*given))
    shared = SVC().fit(rows, y)
    assert made == [2100]
    monkeypatch.setattr(kernel_problem, "_ROOM", np.inf)
    apart = SVC().fit(rows, y)
    assert len(made) == 7
    np.testing.assert_array_equal(shared.support_, apart.support_)
    assert_allclose(shared.decision_function(rows), apart.decision_function(rows), atol=1e-6)
    assert shared.fit_.certificate.kind == "proven" and shared.fit_.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize(
    ("n", "columns", "classes", "scheme", "shared"),
    [
        (2000, 2, 2, "ovo", True),
        (2100, 20, 10, "ovo", False),  # the room for the values costs more
        (2100, 900, 10, "ovo", True),
        (2100, 900, 2, "ovo", False),  # one machine
        (2100, 900, 10, "ovr", False),  # every machine is on all rows
        (9000, 900, 10, "ovo", False),  # too many to be kept
    ],
)
def test_values_are_shared_where_products_cost_more_than_room(n, columns, classes, scheme, shared):
    points = Points(np.zeros((n, columns)))
    found = kernel_problem.share_values(RBFKernel(1.0), points, 2e8, np.arange(n) % classes, scheme)
    assert found is shared


@pytest.mark.parametrize(
    "which", [np.arange(90), np.arange(90)[::-1], np.r_[0, 0, 5:80], np.r_[7, 3, 60], np.arange(0)]
)
def test_values_of_some_rows_among_themselves(which):
    X = np.random.default_rng(1).standard_normal((90, 3))
    matrix = kernel_matrix.KernelMatrix(RBFKernel(0.4), Points(X), 1e9, False)
    np.testing.assert_array_equal(matrix.square(which), matrix.values[np.ix_(which, which)])
    np.testing.assert_array_equal(matrix.restricted(which).values, matrix.values[np.ix_(which, which)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("shape", [(30, 5000), (3000, 4), (1, 1)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_weights_of_the_columns_are_found_a_few_columns_at_a_time(monkeypatch, dtype, shape, order):
    monkeypatch.setattr(kernel_problem, "_ENTRIES", 1 << 12)
    rng = np.random.default_rng(2)
    vectors = np.asarray(rng.integers(-9, 9, shape) + 1000, dtype=dtype, order=order)
    beta, centre = rng.standard_normal((shape[0], 3)), vectors.mean(axis=0, dtype=np.float64)
    exact = beta.T @ (vectors.astype(float) - centre)
    np.testing.assert_allclose(kernel_problem._combined(beta, vectors, centre), exact, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1.0, 1e8, 1e200])
def test_the_longest_step_of_interior_points_keeps_all_positive(scale):
    rng = np.random.default_rng(3)
    for _ in range(50):
        pairs = [(scale * rng.random(20) ** 9 + 1e-300, scale * rng.standard_normal(20)) for _ in range(3)]
        length = interior._longest(pairs, 0.99)
        assert 0.0 <= length <= 1.0 and all((value + length * change > 0.0).all() for value, change in pairs)
        rooms = [(value[change < 0] / -change[change < 0]).min(initial=np.inf) for value, change in pairs]
        assert length == pytest.approx(min(1.0, 0.99 * min(rooms)), rel=1e-12)
    assert interior._longest([(np.ones(3), np.ones(3))]) == 1.0


def test_a_factor_serves_while_the_same_rows_are_free():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 6))
    K = np.exp(-0.3 * np.square(X[:, None] - X).sum(axis=2))
    y, every, known = np.where(X[:, 0] > 0, 1.0, -1.0), np.arange(40), np.ones(40, dtype=np.bool_)
    low, high, held, factor = np.full(40, -1e3), np.full(40, 1e3), np.empty(40, np.intp), np.empty((0, 0)).T
    for turn, closed in enumerate([(), (), (3, 5), (3, 5), (3, 6), ()]):
        beta = rng.standard_normal(40) * 1e-2
        beta -= beta.mean()
        bounds = low.copy(), high.copy()
        for bound in bounds:
            bound[list(closed)] = beta[list(closed)]  # these cannot move
        v, before, total = y - K @ beta, factor, beta.sum()
        rows = (K, every, K, known, 40)
        taken, factor = free_steps(*rows, v, beta, *bounds, 100, held, factor)
        assert taken >= 1 and beta.sum() == pytest.approx(total, abs=1e-9)
        free = np.setdiff1d(every, closed)
        np.testing.assert_allclose(v, y - K @ beta, atol=1e-8)
        np.testing.assert_allclose(v[free], v[free].mean(), atol=1e-6)
        assert sorted(held[: len(free)]) == free.tolist()
        if turn in (1, 3):
            np.testing.assert_array_equal(before, factor)


@pytest.mark.parametrize("kernel", [RBFKernel(0.3), PolynomialKernel(3, 0.2, 1.0), SigmoidKernel(0.1), CentredLinear()])
@pytest.mark.parametrize("rows", [40, 700])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_matrix_of_all_rows_has_the_kernels_values(kernel, rows, order):
    X = np.asarray(np.random.default_rng(5).standard_normal((rows, 30)) + 100.0, order=order)
    before, points = X.copy(), Points(X)
    left = kernel.left(points, np.float64)
    np.testing.assert_array_equal(kernel.opposite(left), kernel.right(points, np.float64))
    values = kernel_matrix.KernelMatrix(kernel, points, 1e9, False).values
    np.testing.assert_allclose(values, kernel.between(points, points), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(values, values.T, rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(X, before)
