"""Linear machines as they are published: certificates against independent solves, raw units, limits, interrupts, extremes.

A reference need not be exact: it is a point, so its objective is never below the optimum, and no certificate may promise
more than F(fit) − F(reference). F is evaluated here again, in exact rational arithmetic where that matters.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from separatrix import LinearClassifier, LinearSVC, Status
from separatrix.dual.centred_rows import CentredRows, exact_dot
from separatrix.dual.linear_machine import LinearMachine
from separatrix.kernels.circulation import cycles

RAW = {"cancer": load_breast_cancer, "wine": load_wine, "iris": load_iris, "digits": load_digits}
INTERCEPTS: dict[str, dict[str, Any]] = {
    "free": {},
    "penalised": {"intercept_scaling": 1.0},
    "none": {"fit_intercept": False},
}


def blobs(n: int, d: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.standard_normal((n, d)) + 1.2 * rng.standard_normal((classes, d))[y], y


def true_value(model: Any, X: np.ndarray, y: np.ndarray, penalty: str = "l2") -> float:
    """The objective of a two-class model at its published coefficients, in rational arithmetic."""
    w = [Fraction(float(v)) for v in model.coef_[0]]
    b, C = Fraction(float(model.intercept_[0])), Fraction(float(model.C))
    power = 2 if getattr(model, "loss", "") == "squared_hinge" else 1
    total = Fraction(0)
    for row, label in zip(X, y, strict=True):
        score = b + sum((v * Fraction(float(x)) for v, x in zip(w, row, strict=True)), Fraction(0))
        total += max(Fraction(0), 1 - (score if label else -score)) ** power
    held = list(w)
    scaling = getattr(model, "intercept_scaling", None)
    if scaling is not None and model.fit_intercept:
        held.append(b / Fraction(float(scaling)))
    size = sum((abs(v) for v in held), Fraction(0)) if penalty == "l1" else sum((v * v for v in held), Fraction(0)) / 2
    return float(C * total + size)


def best_value(X: np.ndarray, y: np.ndarray, C: float, power: int, scaling: float | None, intercept: bool) -> float:
    """The optimum by sequential quadratic programming on slacks, for columns of unit size."""
    (n, d), signs = X.shape, 2.0 * y - 1.0
    weight = 0.0 if scaling is None or not intercept else scaling**-2.0

    def value(p: np.ndarray) -> float:
        return float(0.5 * p[:d] @ p[:d] + 0.5 * weight * p[d] ** 2 + C * (p[d + 1 :] ** power).sum())

    def slope(p: np.ndarray) -> np.ndarray:
        return np.concatenate([p[:d], [weight * p[d]], C * power * p[d + 1 :] ** (power - 1)])

    matrix = np.hstack([signs[:, None] * X, signs[:, None] * float(intercept), np.eye(n)])
    limits = {"type": "ineq", "fun": lambda p: matrix @ p - 1.0, "jac": lambda p: matrix}
    bounds = [(None, None)] * (d + 1) + [(0.0, None)] * n
    start = np.concatenate([np.zeros(d + 1), np.ones(n)])
    options = {"maxiter": 500, "ftol": 1e-13}
    found = minimize(value, start, jac=slope, bounds=bounds, constraints=[limits], method="SLSQP", options=options)
    slack = np.maximum(0.0, 1.0 - signs * (X @ found.x[:d] + intercept * found.x[d]))
    return value(np.concatenate([found.x[: d + 1], slack]))


# -- raw units --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", RAW)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("dual", ["auto", True])
def test_raw_units_are_solved_within_the_default_limits(data, intercept, loss, dual):
    X, y = RAW[data](return_X_y=True)
    model = LinearSVC(loss=loss, dual=dual, random_state=0, **INTERCEPTS[intercept]).fit(X, y)
    assert model.fit_.status is Status.CONVERGED and model.fit_.certificate.relative_gap <= 1e-4
    assert model.score(X, y) > 0.92


@pytest.mark.parametrize("data", ["cancer", "wine", "iris"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_crammer_and_singers_machine_solves_raw_units(data, intercept, C):
    X, y = RAW[data](return_X_y=True)
    model = LinearSVC(multi_class="crammer_singer", C=C, random_state=0, **INTERCEPTS[intercept]).fit(X, y)
    assert model.fit_.status is Status.CONVERGED and model.fit_.certificate.relative_gap <= 1e-4


def test_crammer_and_singers_machine_solves_raw_digits():
    X, y = load_digits(return_X_y=True)
    model = LinearSVC(multi_class="crammer_singer", random_state=0).fit(X, y)
    assert model.fit_.status is Status.CONVERGED


# -- proofs -----------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(["hinge", "squared_hinge"]),
    intercept=st.sampled_from(list(INTERCEPTS)),
    C=st.sampled_from([1e-2, 1.0, 100.0]),
    limit=st.sampled_from([0, 1, 3, 10, 1000]),
    tol=st.sampled_from([1e-4, 1e-8]),
    dual=st.sampled_from(["auto", True]),
    rows=st.sampled_from([24, 230]),
)
def test_the_certificate_holds_at_the_published_point(seed, loss, intercept, C, limit, tol, dual, rows):
    X, y = blobs(rows, 3, 2, seed)
    parameters = {"loss": loss, "C": C, **INTERCEPTS[intercept]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(max_iter=limit, tol=tol, dual=dual, random_state=0, **parameters).fit(X, y)
        longer = LinearSVC(max_iter=5000, tol=1e-11, random_state=1, **parameters).fit(X, y)
    value, proof = true_value(model, X, y), model.fit_.certificate
    best = true_value(longer, X, y)
    if rows == 24:
        scaling = INTERCEPTS[intercept].get("intercept_scaling")
        power = 1 if loss == "hinge" else 2
        best = min(best, best_value(X, y, C, power, scaling, intercept != "none"))
    assert proof.objective == pytest.approx(value, rel=1e-12)
    assert proof.gap >= value - best - 1e-14 * value
    assert model.n_iter_ <= max(1, limit)
    if model.fit_.status is Status.CONVERGED:
        assert proof.gap <= tol * max(1.0, proof.objective)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    intercept=st.sampled_from(list(INTERCEPTS)),
    limit=st.sampled_from([1, 3, 10, 25, 1000]),
    classes=st.sampled_from([2, 3, 5]),
    size=st.sampled_from([1.0, 1e4]),
)
def test_the_joint_certificate_holds_at_the_published_point(seed, intercept, limit, classes, size):
    X, y = blobs(40, 2, classes, seed)
    X[:, 0] *= size
    parameters = {"multi_class": "crammer_singer", "C": 0.5, "random_state": 0, **INTERCEPTS[intercept]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(max_iter=limit, **parameters).fit(X, y)
        best = LinearSVC(max_iter=2000, tol=1e-9, **parameters).fit(X, y)

    def value(m: Any) -> float:
        W, b = m.coef_, m.intercept_
        if classes == 2:
            W, b = np.vstack([-0.5 * W, 0.5 * W]), np.concatenate([-0.5 * b, 0.5 * b])
        f = X @ W.T + b
        cost = 1.0 + f - f[np.arange(40), y][:, None]
        cost[np.arange(40), y] = 0.0
        extra = 0.5 * float(b @ b) if intercept == "penalised" else 0.0
        return float(0.5 * (W**2).sum() + 0.5 * cost.max(axis=1).sum()) + extra

    assert model.fit_.certificate.objective == pytest.approx(value(model), rel=1e-9)
    assert model.fit_.certificate.gap >= value(model) - value(best) - 1e-12 * value(model)
    assert model.n_iter_ <= max(1, limit)
    if limit == 1000:
        assert model.fit_.status is Status.CONVERGED


def test_raw_breast_cancer_at_a_large_price_is_as_good_as_it_says():
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearSVC(loss="hinge", C=100.0).fit(X, y)
    value = true_value(model, X, y)
    assert model.fit_.certificate.objective == pytest.approx(value, rel=1e-11)
    other = LinearClassifier("hinge", C=100.0, tol=1e-8).fit(X, y)
    assert model.fit_.certificate.gap >= value - true_value(other, X, y)


@pytest.mark.parametrize("tol", [1e-4, 1e-10])
def test_the_tolerance_is_the_gap_and_the_limit_is_a_limit(tol):
    X, y = blobs(400, 3, 2, 0)
    model = LinearSVC(loss="hinge", tol=tol).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    assert model.fit_.certificate.gap <= tol * model.fit_.certificate.objective
    for limit in (1, 2, 5):
        with pytest.warns(ConvergenceWarning):
            assert LinearSVC(loss="hinge", tol=tol, max_iter=limit).fit(X, y).n_iter_ == limit


@pytest.mark.parametrize("kind", ["hinge", "squared_hinge", "joint", "classifier"])
def test_timestamps_converge_only_where_the_published_point_does(kind):
    rng = np.random.default_rng(0)
    since = 1e9 * rng.standard_normal(60)
    X = np.column_stack([1.7e18 + since, rng.standard_normal(60)])
    y = (since / 1e9 + X[:, 1] + rng.standard_normal(60) > 0).astype(int)
    models: dict[str, Any] = {
        "hinge": LinearSVC(loss="hinge", tol=1e-8),
        "squared_hinge": LinearSVC(tol=1e-8),
        "joint": LinearSVC(multi_class="crammer_singer", tol=1e-8),
        "classifier": LinearClassifier("hinge", tol=1e-8),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = models[kind].fit(X, y)
    if kind != "joint":
        assert model.fit_.certificate.objective == pytest.approx(true_value(model, X, y), rel=1e-8)
    if model.fit_.status is Status.CONVERGED:
        assert model.fit_.certificate.relative_gap <= 1e-8


def test_a_dot_product_is_rounded_once():
    rng = np.random.default_rng(0)
    for _ in range(50):
        v, c = rng.standard_normal(7) * 10.0 ** rng.integers(-9, 9, 7), rng.standard_normal(7) * 1e9
        start = -float(v @ c)
        exact = Fraction(start) + sum(Fraction(float(a)) * Fraction(float(x)) for a, x in zip(v, c, strict=True))
        assert exact_dot(v, c, start) == float(exact)


def test_cycles_are_circulations_below_the_flow():
    rng = np.random.default_rng(0)
    for trial in range(60):
        K = int(rng.integers(2, 8))
        flow = rng.random((K, K)) * (rng.random((K, K)) < 0.7)
        np.fill_diagonal(flow, 0.0)
        if trial % 2:  # a circulation: all of it is kept
            flow = flow + flow.T
        kept = cycles(flow.copy())
        np.testing.assert_allclose(kept.sum(axis=0), kept.sum(axis=1), atol=1e-13)
        assert (kept >= 0).all() and (kept <= flow * (1 + 1e-12)).all()
        if trial % 2:
            np.testing.assert_allclose(kept, flow, atol=1e-12)


# -- limits, interrupts, extremes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("direct", [False, True])
def test_an_interrupt_gives_the_best_model_so_far(direct):
    X, y = blobs(300, 3, 2, 0)
    X[:, 0] *= 1e3
    machine = LinearMachine(CentredRows.of(X, True), 2.0 * y - 1.0, np.ones(300), 1, None)

    def stop(state: dict[str, Any]) -> None:
        if state["iteration"] == 4:
            raise KeyboardInterrupt

    dual = machine.solve(1e-12, 1000, callback=stop, direct=direct)
    assert dual.status is Status.INTERRUPTED and dual.sweeps == 4
    proof = dual.certificate
    slack = np.maximum(0.0, 1.0 - (2.0 * y - 1.0) * (X @ dual.w + dual.b))
    assert proof.objective == pytest.approx(0.5 * dual.w @ dual.w + slack.sum(), rel=1e-9)
    assert proof.gap >= proof.objective - machine.solve(1e-10, 1000, direct=True).certificate.objective


@pytest.mark.parametrize("parameters", [{"loss": "hinge"}, {"dual": True}, {"multi_class": "crammer_singer"}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("at", [1, 3])
def test_an_interrupt_in_the_middle_of_a_fit(monkeypatch, parameters, classes, at):
    small = parameters.get("loss") != "hinge"  # small machines of the hinge are proven all at once
    X, y = blobs(300, 3, classes, 0) if small else blobs(1500, 40, classes, 0)
    judged = {"count": 0}
    for where in (LinearMachine, __import__("separatrix.dual.crammer_singer", fromlist=["x"]).CrammerSinger):
        original = where.prove

        def prove(self: Any, *state: Any, original: Any = original) -> Any:
            judged["count"] += 1
            if judged["count"] == at:
                raise KeyboardInterrupt
            return original(self, *state)

        monkeypatch.setattr(where, "prove", prove)
    model = LinearSVC(tol=1e-12, random_state=0, **parameters).fit(X, y)
    assert model.fit_.status is Status.INTERRUPTED
    assert np.isfinite(model.coef_).all() and np.isfinite(model.fit_.certificate.gap)


@pytest.mark.parametrize("scaling", [0.5, 10.0])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_the_lasso_machine_penalises_its_intercept_as_scikit_learn_does(scaling, storage):
    X, y = blobs(120, 4, 2, 0)
    X = X + 0.7
    common: dict[str, Any] = {"penalty": "l1", "C": 0.5, "intercept_scaling": scaling}
    ours = LinearSVC(tol=1e-10, **common).fit(storage(X), y)
    theirs = sklearn.svm.LinearSVC(dual=False, tol=1e-11, max_iter=100_000, **common).fit(X, y)
    assert ours.fit_.status is Status.CONVERGED
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    assert ours.fit_.certificate.objective == pytest.approx(true_value(ours, X, y, "l1"), rel=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e155, 1e250, 1.7e308])
@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearSVC(loss="hinge"),
        lambda: LinearSVC(),
        lambda: LinearSVC(intercept_scaling=1.0),
        lambda: LinearSVC(penalty="l1"),
        lambda: LinearSVC(multi_class="crammer_singer"),
        lambda: LinearClassifier("hinge"),
        lambda: LinearClassifier("huberised", "elasticnet"),
    ],
)
def test_extreme_values_get_numbers_or_a_sentence(size, make):
    rng = np.random.default_rng(0)
    X, y = size * np.sign(rng.standard_normal((40, 2))), rng.integers(0, 2, 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = make().fit(X, y)
        except ValueError as error:
            assert "column" in str(error)
            return
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    assert np.isfinite(model.fit_.certificate.objective) and model.fit_.certificate.gap >= 0


# -- few rows with many columns, and Newton's method -------------------------------------------------------------------


def wide(n: int, d: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of rows with more columns than rows; `kind` says what is special about them."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d))
    if kind == "repeated":
        X[n // 2 :] = X[: n - n // 2]
    elif kind == "far":
        X += 1e4
    elif kind == "low rank":
        X = X[:, :5] @ rng.standard_normal((5, d))
    elif kind == "units":
        X *= 10.0 ** rng.uniform(-3, 3, d)
    return X, np.arange(n) % 2


@pytest.mark.parametrize("kind", ["plain", "repeated", "far", "low rank", "units"])
@pytest.mark.parametrize("intercept", [{}, {"intercept_scaling": 1.0}, {"fit_intercept": False}])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_few_rows_are_solved_on_their_side(kind, intercept, loss):
    (X, y), C = wide(60, 300, kind), 0.1
    model = LinearSVC(loss=loss, C=C, tol=1e-6, max_iter=5000, **intercept).fit(X, y)
    assert model.fit_.status in (Status.CONVERGED, Status.ROUNDED)
    # With as many columns of zeros the rows are sparse, and solved another way.
    other = LinearSVC(loss=loss, C=C, tol=1e-6, max_iter=5000, **intercept).fit(
        sp.csr_array(np.hstack([X, 0 * X, 0 * X])), y
    )
    value, gap = model.fit_.certificate.objective, model.fit_.certificate.gap
    assert abs(value - other.fit_.certificate.objective) <= gap + other.fit_.certificate.gap + 1e-12 * value


@pytest.mark.parametrize("shape", [(300, 400), (700, 40), (250, 3)])
@pytest.mark.parametrize("C", [1e-3, 10.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_newtons_method_agrees_with_the_sweeps(shape, C, classes):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal(shape) * 10.0 ** rng.uniform(-1, 1, shape[1]), rng.integers(classes, size=shape[0])
    X[:, 0] += y
    direct = LinearSVC(C=C, tol=1e-6, max_iter=20_000).fit(X, y)
    swept = LinearSVC(C=C, tol=1e-6, max_iter=20_000, dual=True).fit(X, y)
    assert direct.fit_.status is Status.CONVERGED
    gaps = direct.fit_.certificate.gap + swept.fit_.certificate.gap
    assert abs(direct.fit_.certificate.objective - swept.fit_.certificate.objective) <= gaps


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_penalised_intercept_is_found_by_few_sweeps(loss):
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 2000), density=0.01, rng=rng, format="csr")
    y = (X @ rng.standard_normal(2000) + 0.3 > 0).astype(int)
    counts = [
        LinearSVC(loss=loss, tol=1e-6, random_state=0, intercept_scaling=scaling).fit(X, y).n_iter_
        for scaling in (None, 1.0, 100.0)
    ]
    assert max(counts) <= 3 * min(counts)


def texts(n: int, d: int, classes: int) -> tuple[Any, np.ndarray]:
    """Sparse rows of length one with columns that most of them have, and many that few have."""
    rng = np.random.default_rng(n + d)
    columns = (rng.pareto(0.7, size=20 * n) * 3).astype(np.int64) % d
    X = sp.csr_array((rng.random(20 * n) + 0.5, (np.repeat(np.arange(n), 20), columns)), shape=(n, d))
    X = sp.csr_array(sp.diags_array(1.0 / np.sqrt(X.multiply(X).sum(axis=1))) @ X)
    return X, (X @ rng.standard_normal((d, classes))).argmax(axis=1)


@pytest.mark.parametrize("shape", [(150, 2000), (400, 3000), (900, 60)])
@pytest.mark.parametrize("C", [1e-3, 1.0, 300.0])
@pytest.mark.parametrize("intercept", [{}, {"intercept_scaling": 1.0}, {"fit_intercept": False}])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_sparse_rows_have_the_optimum_of_dense_ones(shape, C, intercept, loss):
    X, y = texts(*shape, 3 if shape[0] < 300 else 2)
    sparse = LinearSVC(loss=loss, C=C, tol=1e-6, random_state=0, **intercept).fit(X, y)
    dense = LinearSVC(loss=loss, C=C, tol=1e-6, random_state=0, **intercept).fit(X.toarray(), y)
    assert sparse.fit_.status is Status.CONVERGED
    one, two = sparse.fit_.certificate, dense.fit_.certificate
    assert abs(one.objective - two.objective) <= one.gap + two.gap + 1e-12 * one.objective


def test_sweeps_need_few_rounds_where_rows_have_much_in_common():
    # In an order that repeats, even in part, it is ten times as many.
    X, y = texts(1000, 20_000, 2)
    model = LinearSVC(tol=1e-6, random_state=0).fit(X, y)
    assert model.fit_.status is Status.CONVERGED and model.n_iter_ <= 60


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", [{}, {"intercept_scaling": 2.0}, {"fit_intercept": False}])
@pytest.mark.parametrize("kind", ["plain", "repeated", "low rank"])
def test_small_machines_side_by_side_are_those_one_by_one(kind, C, intercept):
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((120, 6)), rng.integers(4, size=120)
    X[:, 0] += y
    X = np.vstack([X[:60], X[:60]]) if kind == "repeated" else X[:, :2] @ X[:2] if kind == "low rank" else X
    model = LinearSVC(loss="hinge", C=C, **intercept).fit(X, y)
    assert model.fit_.status is Status.CONVERGED and model.fit_.certificate.relative_gap <= 1e-6
    total, gaps = 0.0, model.fit_.certificate.gap
    for k in range(4):
        one = LinearSVC(loss="hinge", C=C, **intercept).fit(X, y == k)
        total, gaps = total + one.fit_.certificate.objective, gaps + one.fit_.certificate.gap
    assert abs(model.fit_.certificate.objective - total) <= gaps


def test_rows_on_the_margin_that_depend_on_each_other_have_the_shortest_solution():
    from separatrix.dual.interior import interior_points, on_the_margin

    A, signs = np.array([[1.0], [1.0], [-1.0], [-1.0]]), np.array([1.0, 1.0, -1.0, -1.0])
    *_, last = islice(interior_points(A, np.ones(1), signs, np.ones(4), 1, None), 10)
    theta, beta, alpha = on_the_margin(A, np.ones(1), signs, np.ones(4), None, last)
    np.testing.assert_allclose([theta[0], beta, *alpha], [1.0, 0.0, 0.25, 0.25, 0.25, 0.25], atol=1e-9)
