"""Support vector machines against scikit-learn's, an interior-point solver written here, and geometry done by hand."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import pairwise
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import separatrix as sx
from separatrix import SVC, Status
from separatrix.dual.working_set import solve_dual

KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 3, "coef0": 1.0},
    "rbf": {"kernel": "rbf"},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01},
}
GAMMA = 0.3
VALUES: dict[str, tuple[Any, Any]] = {
    "linear": (sx.LinearKernel(), pairwise.linear_kernel),
    "poly": (sx.PolynomialKernel(3, 0.4, 1.5), lambda A, B: pairwise.polynomial_kernel(A, B, 3, 0.4, 1.5)),
    "poly0": (sx.PolynomialKernel(0, 0.4, 1.5), lambda A, B: np.ones((len(A), len(B)))),
    "poly7": (sx.PolynomialKernel(7, 0.4, -0.2), lambda A, B: pairwise.polynomial_kernel(A, B, 7, 0.4, -0.2)),
    "rbf": (sx.RBFKernel(GAMMA), lambda A, B: pairwise.rbf_kernel(A, B, GAMMA)),
    "laplacian": (sx.LaplacianKernel(GAMMA), lambda A, B: pairwise.laplacian_kernel(A, B, GAMMA)),
    "sigmoid": (sx.SigmoidKernel(0.2, 0.1), lambda A, B: pairwise.sigmoid_kernel(A, B, 0.2, 0.1)),
    "sum": (
        sx.RBFKernel(GAMMA) + 2 * sx.LinearKernel(),
        lambda A, B: pairwise.rbf_kernel(A, B, GAMMA) + 2 * A @ B.T,
    ),
    "product": (
        sx.LaplacianKernel(GAMMA) * sx.PolynomialKernel(2, 1.0, 1.0) * 0.5,
        lambda A, B: 0.5 * pairwise.laplacian_kernel(A, B, GAMMA) * (A @ B.T + 1) ** 2,
    ),
    "nested": (
        (sx.RBFKernel(GAMMA) + sx.LinearKernel()) * (sx.RBFKernel(0.1) + 3.0 * sx.LaplacianKernel(GAMMA)),
        lambda A, B: (
            (pairwise.rbf_kernel(A, B, GAMMA) + A @ B.T)
            * (pairwise.rbf_kernel(A, B, 0.1) + 3 * pairwise.laplacian_kernel(A, B, GAMMA))
        ),
    ),
}


def blobs(n: int = 80, d: int = 3, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Classes that overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.standard_normal((n, d)) + 1.2 * rng.standard_normal((classes, d))[y], y


def curved(n: int, d: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.7 * rng.standard_normal(n) > 0).astype(int)


def quadratic_programme(K: np.ndarray, signs: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, float]:
    """The dual's optimum by a primal-dual interior-point method: (α, value)."""
    n = len(signs)
    Q = K * np.outer(signs, signs)
    a, b = 0.5 * bound, 0.0
    low, high = np.ones(n), np.ones(n)
    for _ in range(200):
        r = Q @ a - 1.0 - low + high + b * signs
        mu = float(low @ a + high @ (bound - a)) / (2 * n)
        if mu < 1e-15 * bound.max() and np.abs(r).max() < 1e-11 * (1 + np.abs(Q).max() * bound.max()):
            break
        sigma = 0.1 * mu
        diagonal = low / a + high / (bound - a)
        right = -r + (sigma / a - low) - (sigma / (bound - a) - high)
        system = np.block([[Q + np.diag(diagonal), signs[:, None]], [signs[None], np.zeros((1, 1))]])
        step = np.linalg.solve(system, np.append(right, -signs @ a))
        da, db = step[:n], step[n]
        dlow = sigma / a - low - low / a * da
        dhigh = sigma / (bound - a) - high + high / (bound - a) * da
        length = 1.0
        for value, change in ((a, da), (bound - a, -da), (low, dlow), (high, dhigh)):
            shrinking = change < 0
            length = min(length, 0.995 * float((-value[shrinking] / change[shrinking]).min(initial=np.inf)))
        a, b = a + length * da, b + length * db
        low, high = low + length * dlow, high + length * dhigh
    return a, float(a.sum() - 0.5 * a @ Q @ a)


def dual_value(model: Any, K: np.ndarray) -> float:
    """Of scikit-learn's solution for two classes."""
    beta = model.dual_coef_[0]
    return float(np.abs(beta).sum() - 0.5 * beta @ K[np.ix_(model.support_, model.support_)] @ beta)


# LIBSVM keeps kernel values in single precision, so its own answers have no more digits than this.
LIBSVM = 2e-5


def same_machine(ours: Any, theirs: Any, tol: float = LIBSVM) -> None:
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=tol * np.abs(theirs.dual_coef_).max())
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=tol, atol=tol)


# -- scikit-learn's answers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_the_attributes_are_scikit_learns(kernel, classes):
    # Of 120 rows LIBSVM keeps one whose coefficient is a rounding error of 1e-16, and takes the intercept from it alone.
    X, y = blobs(130, 3, classes)
    ours = SVC(tol=1e-9, **KERNELS[kernel]).fit(X, y)
    theirs = sklearn.svm.SVC(tol=1e-9, **KERNELS[kernel]).fit(X, y)
    same_machine(ours, theirs)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    assert (ours.support_.dtype, ours.n_support_.dtype) == (theirs.support_.dtype, theirs.n_support_.dtype)
    assert ours.shape_fit_ == theirs.shape_fit_ and ours.fit_status_ == theirs.fit_status_ == 0
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    np.testing.assert_array_equal(ours.class_weight_, theirs.class_weight_)
    new = X + 0.1
    for shape in ("ovo", "ovr"):
        ours.set_params(decision_function_shape=shape)
        theirs.set_params(decision_function_shape=shape)
        np.testing.assert_allclose(ours.decision_function(new), theirs.decision_function(new), atol=LIBSVM)
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=LIBSVM)
    else:
        with pytest.raises(AttributeError, match="linear kernel"):
            ours.coef_  # noqa: B018  # reading it is what is tested


@pytest.mark.parametrize("parameters", [{"C": 0.02}, {"C": 40.0}, {"gamma": "auto"}, {"gamma": 2.0}], ids=str)
def test_the_parameters_mean_what_they_mean_in_scikit_learn(parameters):
    X, y = load_iris(return_X_y=True)
    ours, theirs = (kind(tol=1e-9, **parameters).fit(X, y) for kind in (SVC, sklearn.svm.SVC))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-6)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0}, {0: 0.2, 1: 1.5, 2: 4.0}], ids=str)
def test_class_weights_and_sample_weights_are_scikit_learns(class_weight):
    X, y = blobs(90, 2, 3)
    y = y.copy()
    y[:20] = 0
    weights = None if class_weight == "balanced" else np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    parameters = {"class_weight": class_weight, "gamma": 0.5, "tol": 1e-9}
    ours, theirs = (kind(**parameters).fit(X, y, sample_weight=weights) for kind in (SVC, sklearn.svm.SVC))
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)
    same_machine(ours, theirs)


def test_ties_of_the_vote_are_broken_by_the_scores_when_asked():
    X, y = blobs(60, 2, 4)
    grid = np.stack(np.meshgrid(np.linspace(-4, 4, 60), np.linspace(-4, 4, 60)), axis=-1).reshape(-1, 2)
    plain, broken = SVC(tol=1e-9).fit(X, y), SVC(tol=1e-9, break_ties=True).fit(X, y)
    theirs = sklearn.svm.SVC(tol=1e-9, break_ties=True).fit(X, y)
    np.testing.assert_array_equal(broken.predict(grid), theirs.predict(grid))
    np.testing.assert_array_equal(broken.predict(grid), broken.decision_function(grid).argmax(axis=1))
    assert (broken.predict(grid) != plain.predict(grid)).any()
    with pytest.raises(ValueError, match="break_ties"):
        SVC(break_ties=True, decision_function_shape="ovo").fit(X, y)


def test_one_machine_a_class_is_one_against_the_rest():
    X, y = blobs(90, 3, 3)
    model = SVC(multi_class="ovr", gamma=0.4, tol=1e-9).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (90, 3) and len(model.machines_) == 3
    for k in range(3):
        each = sklearn.svm.SVC(gamma=0.4, tol=1e-9).fit(X, y == k)
        np.testing.assert_allclose(scores[:, k], each.decision_function(X), atol=1e-6)
        assert (model.machines_[k].positive, model.machines_[k].negative) == (k, "rest")
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))
    assert model.dual_coef_.shape == (3, len(model.support_))


# -- more rows than are solved at once --------------------------------------------------------------------------------

LARGE: dict[str, dict[str, Any]] = {
    "rbf": {"kernel": "rbf", "C": 1.0},
    "steep": {"kernel": "rbf", "gamma": 1.0, "C": 20.0},
    "linear": {"kernel": "linear", "C": 0.5},
    "poly": {"kernel": "poly", "coef0": 1.0, "C": 0.2},
    "laplacian": {"kernel": "laplacian", "gamma": 0.1, "C": 2.0},
}


@pytest.fixture(scope="module")
def large() -> dict[str, Any]:
    X, y = curved(2500)
    found: dict[str, Any] = {}
    for name, parameters in LARGE.items():
        if name == "laplacian":
            K = pairwise.laplacian_kernel(X, X, 0.1)
            model = sklearn.svm.SVC(kernel="precomputed", C=2.0, tol=1e-8, cache_size=500).fit(K, y)
            found[name] = model, model.decision_function(K), dual_value(model, K)
        else:
            model = sklearn.svm.SVC(tol=1e-8, cache_size=500, **parameters).fit(X, y)
            scores = model.decision_function(X)
            beta = model.dual_coef_[0]
            value = np.abs(beta).sum() - 0.5 * beta @ (scores - model.intercept_[0])[model.support_]
            found[name] = model, scores, float(value)
    return found


@pytest.mark.parametrize("cache_size", [0.001, 200], ids=["computed", "stored"])
@pytest.mark.parametrize("name", LARGE)
def test_many_rows_by_working_sets(name, cache_size, large):
    X, y = curved(2500)
    theirs, scores, value = large[name]
    loose = SVC(cache_size=cache_size, **LARGE[name]).fit(X, y)
    assert loose.fit_.status is Status.CONVERGED
    machine = loose.machines_[0]
    assert machine.dual_objective == pytest.approx(value, rel=1e-6)
    assert machine.dual_objective <= value * (1 + 1e-9) <= machine.primal_objective * (1 + 2e-9)
    assert machine.kkt["stationarity"] <= 1e-3
    np.testing.assert_allclose(loose.decision_function(X), scores, atol=1e-3 * max(1.0, np.abs(scores).max()))
    tight = SVC(cache_size=cache_size, tol=1e-8, **LARGE[name]).fit(X, y)
    assert tight.fit_.status is Status.CONVERGED
    exact = tight.decision_function(X)
    np.testing.assert_allclose(exact, scores, atol=LIBSVM * max(1.0, np.abs(scores).max()))
    if name in ("rbf", "laplacian"):
        np.testing.assert_allclose(exact, scores, atol=5e-6)
    np.testing.assert_array_equal(tight.support_, theirs.support_)
    assert tight.fit_.certificate.relative_gap < 1e-7
    # The conditions of the optimum, from values of the kernel that were computed here.
    beta, C, signs = np.zeros(2500), LARGE[name]["C"], 2.0 * y - 1.0
    beta[tight.support_] = tight.dual_coef_[0]
    kernel = dict(LARGE[name])
    width = tight._kernel.gamma if name != "linear" else 0.0
    K = {
        "rbf": lambda: pairwise.rbf_kernel(X, X, width),
        "linear": lambda: X @ X.T,
        "poly": lambda: pairwise.polynomial_kernel(X, X, 3, width, 1.0),
        "laplacian": lambda: pairwise.laplacian_kernel(X, X, width),
    }[kernel["kernel"]]()
    v = signs - K @ beta
    rising, falling = np.where(signs > 0, beta < C, beta < 0), np.where(signs > 0, beta > 0, beta > -C)
    assert v[rising].max() - v[falling].min() <= 1.1e-8
    assert abs(beta.sum()) <= 1e-12 * C * 2500


def test_many_rows_of_three_classes_in_every_storage():
    X, _ = curved(2400, 4)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.3 * np.random.default_rng(1).standard_normal(2400), [0.3, 1.3])
    theirs = sklearn.svm.SVC(gamma=0.3, tol=1e-8).fit(X, y)
    for rows in (X, sp.csr_array(X)):
        for cache_size in (0.001, 200):
            ours = SVC(gamma=0.3, tol=1e-8, cache_size=cache_size).fit(rows, y)
            np.testing.assert_allclose(ours.decision_function(rows), theirs.decision_function(X), atol=1e-6)
    single = SVC(gamma=0.3, cache_size=0.001).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.decision_function(X), theirs.decision_function(X), atol=3e-3)
    assert single.support_vectors_.dtype == np.float32


def test_columns_that_are_kept_give_the_same_machine():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2300, 100))  # enough columns that values are worth keeping
    y = (X[:, :5].sum(axis=1) + rng.standard_normal(2300) > 0).astype(int)
    answers = [SVC(tol=1e-6, cache_size=size).fit(X, y) for size in (0.001, 12.0, 25.0, 200.0)]
    for model in answers:
        assert model.fit_.status is Status.CONVERGED
        np.testing.assert_allclose(model.decision_function(X[:300]), answers[0].decision_function(X[:300]), atol=1e-5)


def test_the_megabytes_are_a_bound():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 120))
    y = (X[:, :4].sum(axis=1) + 0.5 * rng.standard_normal(6000) > 0).astype(int)
    SVC(max_iter=100).fit(X[:50], y[:50])  # compiled before memory is measured
    tracemalloc.start()
    model = SVC(cache_size=20, max_iter=20_000).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.fit_.iterations > 1000
    assert peak < 3 * 20e6 + 8 * 6000 * 1024  # the matrix itself would be 288 MB


@pytest.mark.parametrize("gamma", [0.01, "scale"])
def test_single_precision_is_not_copied(gamma):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 200), dtype=np.float32)
    y = (X[:, 0] > 0).astype(int)
    SVC(max_iter=1, gamma=gamma, cache_size=1).fit(X[:3000], y[:3000])
    tracemalloc.start()
    SVC(max_iter=1, gamma=gamma, cache_size=1).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes + 8 * 1024**2  # 24 MB of rows, 8 MB of a working set


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("scale", [1e-3, 1e3, 1e25])
def test_many_rows_in_any_units(kernel, scale):
    X, y = curved(2100, 4)
    parameters: dict[str, Any] = {"kernel": kernel, "cache_size": 0.001}
    if kernel == "poly":
        parameters["gamma"] = "scale"
    price = scale**-2 if kernel == "linear" else 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        here = SVC(**parameters).fit(X, y)
        there = SVC(C=price, **parameters).fit(scale * X, y)
    assert here.fit_.status is there.fit_.status is Status.CONVERGED
    first, second = here.machines_[0].dual_objective, there.machines_[0].dual_objective / price
    assert first == pytest.approx(second, rel=2e-6)


# -- an optimum of our own --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "sum"])
@pytest.mark.parametrize("C", [1e-2, 1.0, 30.0])
def test_the_optimum_is_that_of_an_interior_point_method(kernel, C):
    X, y = blobs(60, 3)
    bound = C * np.random.default_rng(1).uniform(0.5, 2.0, 60)
    K = VALUES[kernel][1](X, X)
    alpha, value = quadratic_programme(K, 2.0 * y - 1.0, bound)
    model = SVC(kernel=VALUES[kernel][0], C=C, tol=1e-9).fit(X, y, sample_weight=bound / C)
    machine = model.machines_[0]
    assert machine.dual_objective == pytest.approx(value, rel=1e-8)
    assert machine.primal_objective == pytest.approx(value, rel=1e-8)
    w = alpha * (2.0 * y - 1.0)
    np.testing.assert_allclose(machine.decision - machine.intercept, K @ w, atol=1e-5 * (1 + np.abs(K @ w).max()))


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from(["linear", "rbf", "poly", "laplacian"]),
    C=st.sampled_from([1e-3, 0.5, 10.0, 300.0]),
    steps=st.sampled_from([0, 1, 5, 40, 1000, -1]),
    tol=st.sampled_from([1e-1, 1e-3, 1e-8]),
)
def test_the_gap_bounds_the_distance_to_the_optimum(seed, kernel, C, steps, tol):
    X, y = blobs(40, 2, seed=seed)
    kernel_of, values = VALUES[kernel]
    K, signs = values(X, X), 2.0 * y - 1.0
    _, best = quadratic_programme(K, signs, np.full(40, C))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(kernel=kernel_of, C=C, max_iter=steps, tol=tol).fit(X, y)
    machine, proof = model.machines_[0], model.fit_.certificate
    beta = np.zeros(40)
    beta[model.support_] = model.dual_coef_[0]
    slack = np.maximum(0.0, 1.0 - signs * (K @ beta + model.intercept_[0]))
    primal, dual = 0.5 * beta @ K @ beta + C * slack.sum(), signs @ beta - 0.5 * beta @ K @ beta
    assert proof.objective == pytest.approx(primal, rel=1e-9)
    assert proof.gap >= primal - best - 1e-8 * best
    assert proof.gap == pytest.approx(primal - dual, rel=1e-5, abs=1e-9 * primal)
    assert machine.dual_objective == pytest.approx(dual, rel=1e-9, abs=1e-12)
    assert (np.abs(beta) <= C).all() and abs(beta.sum()) <= 1e-12 * C * 40
    # Nothing is claimed that was not reached.
    v = signs - K @ beta
    rising, falling = np.where(signs > 0, beta < C, beta < 0), np.where(signs > 0, beta > 0, beta > -C)
    violation = max(0.0, v[rising].max() - v[falling].min())
    assert machine.kkt["stationarity"] == pytest.approx(violation, abs=1e-9 * (1 + np.abs(v).max()))
    assert (model.fit_.status is Status.CONVERGED) == (violation <= tol)
    assert model.fit_.status in (Status.CONVERGED, Status.MAX_ITER)
    assert model.fit_status_ == (model.fit_.status is not Status.CONVERGED)


def test_a_fit_that_stops_early_says_so():
    X, y = curved(2500)
    with pytest.warns(ConvergenceWarning, match="limit on iterations"):  # as scikit-learn's, and as LinearSVC
        model = SVC(max_iter=50).fit(X, y)
    assert model.fit_.status is Status.MAX_ITER and model.fit_status_ == 1
    assert model.fit_.certificate.gap > 1.0


def test_a_kernel_that_is_not_known_to_be_convex_is_not_proven():
    X, y = blobs(60)
    model = SVC(kernel="sigmoid", coef0=-1.0, gamma=2.0, C=10.0).fit(X, y)
    assert model.fit_.status is Status.STATIONARY and model.fit_.certificate.gap == np.inf
    K = np.tanh(2.0 * X @ X.T - 1.0)
    assert np.linalg.eigvalsh(K)[0] < -1.0
    for other, rows in ((lambda A, B: np.tanh(2.0 * A @ B.T - 1.0), X), ("precomputed", K)):
        model = SVC(kernel=other, C=10.0).fit(rows, y)
        assert model.fit_.status is not Status.CONVERGED  # the sentence of CONVERGED says that it is proven


# -- geometry by hand -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "shift"), [(0.01, 0.0), (2.0, 0.0), (500.0, 0.0), (2.0, 3.0), (0.01, 1e3), (2.0, 1e6), (500.0, 1e6)]
)
def test_two_points_have_their_bisector(gap, shift):
    digits = max(1e-6, 1e-14 * (shift / gap) ** 2)  # what is left of the digits of xᵀz
    X = np.array([[shift, 1.0], [shift + gap, 1.0]])
    model = SVC(kernel="linear", C=np.inf).fit(X, ["left", "right"])
    machine = model.machines_[0]
    assert machine.geometric_margin == pytest.approx(gap / 2, rel=digits)
    np.testing.assert_allclose(model.coef_, [[2 / gap, 0.0]], rtol=digits, atol=1e-9)
    np.testing.assert_allclose(machine.alpha, 2 / gap**2, rtol=digits)
    np.testing.assert_allclose(model.decision_function(X), [-1.0, 1.0], atol=10 * digits)
    assert model.fit_.status is Status.CONVERGED


def test_four_points_with_a_known_margin():
    # Two of each class on lines x = 0 and x = 3, and one further row of each that does not matter.
    X = np.array([[0.0, 0.0], [0.0, 2.0], [-4.0, 1.0], [3.0, 0.5], [3.0, 5.0], [9.0, 1.0]])
    y = np.array([0, 0, 0, 1, 1, 1])
    model = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(X, y)
    machine = model.machines_[0]
    np.testing.assert_allclose(model.coef_, [[2 / 3, 0.0]], atol=1e-9)
    np.testing.assert_allclose(model.intercept_, [-1.0], atol=1e-9)
    assert machine.geometric_margin == pytest.approx(1.5)
    assert machine.dual_objective == pytest.approx(0.5 * (2 / 3) ** 2)
    assert set(machine.support) <= {0, 1, 3, 4}
    np.testing.assert_array_equal(machine.support, machine.margin_vectors)
    assert len(machine.outliers) == 0 and not machine.slacks.max() > 1e-8
    assert (machine.bound == np.inf).all()


def test_the_exclusive_or_has_a_hard_margin_in_the_space_of_a_kernel():
    X, y = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]), [0, 0, 1, 1]
    model = SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=np.inf, tol=1e-9).fit(X, y)
    # The textbook's solution: α = 1/8 each, f(x) = −x₁x₂, margin √2.
    np.testing.assert_allclose(model.machines_[0].alpha, 0.125, rtol=1e-9)
    new = np.random.default_rng(0).standard_normal((20, 2))
    np.testing.assert_allclose(model.decision_function(new), -new[:, 0] * new[:, 1], atol=1e-9)
    assert model.machines_[0].geometric_margin == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("seed", range(4))
def test_a_hard_margin_is_a_soft_one_whose_price_nobody_pays(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, 3))
    X = X[np.abs(X[:, 0]) > 0.2]
    y = (X[:, 0] > 0).astype(int)
    hard, soft = SVC(kernel="linear", C=np.inf, tol=1e-9).fit(X, y), sklearn.svm.SVC(kernel="linear", C=1e6, tol=1e-9)
    soft.fit(X, y)
    np.testing.assert_allclose(hard.coef_, soft.coef_, rtol=LIBSVM, atol=5e-5)
    np.testing.assert_allclose(hard.intercept_, soft.intercept_, rtol=LIBSVM, atol=5e-5)
    margin = hard.machines_[0].geometric_margin
    assert margin == pytest.approx((np.abs(hard.decision_function(X)) / np.linalg.norm(hard.coef_)).min(), rel=1e-6)
    # The certificate compares the rule, scaled until no row is inside, with the dual.
    assert hard.machines_[0].primal_objective >= hard.machines_[0].dual_objective
    assert hard.fit_.certificate.relative_gap < 1e-6


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_no_hard_margin_is_said_in_a_sentence(kernel):
    X, y = blobs(60)
    X, y = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])  # one row on both sides
    words = "No hard margin between the classes 0 and 1.*finite C" if kernel != "linear" else "overlap.*finite C"
    with pytest.raises(ValueError, match=words):
        SVC(kernel=kernel, C=np.inf).fit(X, y)


def test_the_textbooks_scale_is_one_half():
    # min ‖w‖² + Σξ has multipliers λ ∈ [0, 1] and w = ½Σλỹx: maximise Σλ − ¼Σλλỹỹxᵀx.
    X, y = blobs(50, 2)
    signs = 2.0 * y - 1.0
    lam, value = quadratic_programme(0.5 * X @ X.T, signs, np.ones(50))
    model = SVC(kernel="linear", C=0.5, tol=1e-9).fit(X, y)
    machine = model.machines_[0]
    np.testing.assert_allclose(model.coef_[0], 0.5 * (lam * signs) @ X, atol=1e-6)
    np.testing.assert_allclose(2.0 * machine.alpha, lam, atol=1e-6)
    w = model.coef_[0]
    assert w @ w + machine.slacks.sum() == pytest.approx(value, rel=1e-8)
    assert 2.0 * machine.primal_objective == pytest.approx(value, rel=1e-8)


# -- what a machine says about itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "nested"])
@pytest.mark.parametrize("n", [90, 2200])
def test_every_machine_keeps_the_conditions_of_its_optimum(kernel, n):
    X, y = blobs(n, 2, 3)
    kernel_of, values = VALUES[kernel]
    tol = 1e-6
    C = 0.05 if n > 1000 else 1.0
    model = SVC(kernel=kernel_of, C=C, tol=tol).fit(X, y, sample_weight=1.0 + (np.arange(n) % 2))
    assert [(m.positive, m.negative) for m in model.machines_] == [(0, 1), (0, 2), (1, 2)]
    pairs = model.set_params(decision_function_shape="ovo").decision_function(X)
    for m, machine in enumerate(model.machines_):
        np.testing.assert_array_equal(machine.rows, np.flatnonzero(np.isin(y, [machine.positive, machine.negative])))
        np.testing.assert_array_equal(machine.signs, np.where(y[machine.rows] == machine.positive, 1.0, -1.0))
        np.testing.assert_allclose(machine.bound, C * (1.0 + machine.rows % 2))
        np.testing.assert_allclose(machine.decision, pairs[machine.rows, m], atol=1e-8 * np.abs(pairs).max())
        alpha, f, signs = machine.alpha, machine.decision, machine.signs
        assert (alpha >= 0).all() and (alpha <= machine.bound).all()
        np.testing.assert_allclose(machine.slacks, np.maximum(0.0, 1.0 - signs * f))
        free = (alpha > 0) & (alpha < machine.bound)
        np.testing.assert_array_equal(machine.support, machine.rows[alpha > 0])
        np.testing.assert_array_equal(machine.margin_vectors, machine.rows[free])
        np.testing.assert_allclose(signs[free] * f[free], 1.0, atol=tol)
        assert set(machine.outliers) <= set(machine.support)
        assert set(machine.rows[machine.slacks > tol]) == set(machine.outliers)
        assert (alpha[machine.slacks > tol] == machine.bound[machine.slacks > tol]).all()
        K = values(X[machine.rows], X[machine.rows])
        beta = signs * alpha
        np.testing.assert_array_equal(machine.beta, beta)
        length = beta @ K @ beta
        assert machine.squared_length == pytest.approx(length, rel=1e-9)
        assert machine.geometric_margin == pytest.approx(1.0 / np.sqrt(length), rel=1e-9)
        assert machine.dual_objective == pytest.approx(alpha.sum() - 0.5 * length, rel=1e-9)
        primal = 0.5 * length + machine.bound @ machine.slacks
        assert machine.primal_objective == pytest.approx(primal, rel=1e-9)
        assert machine.primal_objective == pytest.approx(machine.dual_objective, rel=1e-6)
        # The intercept puts the margin vectors on the margin in the mean.
        assert machine.intercept == pytest.approx(float(np.mean((signs - K @ beta)[free])), abs=1e-8)
        kkt = machine.kkt
        assert set(kkt) == {"stationarity", "primal_feasibility", "dual_feasibility", "complementary_slackness"}
        assert kkt["stationarity"] <= tol and kkt["primal_feasibility"] == 0.0
        assert kkt["dual_feasibility"] == pytest.approx(abs(beta.sum()), abs=1e-12)
        assert kkt["complementary_slackness"] <= tol * machine.bound.max()
    proof = model.fit_.certificate
    assert proof.gap == pytest.approx(sum(m.certificate.gap for m in model.machines_))
    assert proof.objective == pytest.approx(sum(m.primal_objective for m in model.machines_))


def test_without_margin_vectors_the_intercept_is_between_the_bounds():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    model = SVC(kernel="linear", C=1e-3).fit(X, y)
    machine = model.machines_[0]
    assert len(machine.margin_vectors) == 0 and len(machine.support) == 4
    slack = [np.maximum(0, 1 - machine.signs * (machine.decision + t)).sum() for t in (-1e-3, 0.0, 1e-3)]
    assert slack[1] <= min(slack[0], slack[2]) + 1e-12


# -- kernels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [(False, False), (True, True), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
@pytest.mark.parametrize("name", VALUES)
def test_values_of_kernels(name, dtype, sparse):
    kernel, values = VALUES[name]
    rng = np.random.default_rng(0)
    A, B = (
        (rng.integers(-20, 20, (n, 5)) if dtype is np.int8 else rng.standard_normal((n, 5))).astype(dtype)
        for n in (9, 7)
    )
    if dtype is np.int8 and not name.startswith("poly"):
        A, B = A * (rng.random((9, 5)) < 0.3), B * (rng.random((7, 5)) < 0.3)
    one, two = (sp.csr_array(M) if s else M for M, s in zip((A, B), sparse, strict=True))
    expected = values(A.astype(float), B.astype(float))
    np.testing.assert_allclose(kernel(one, two), expected, rtol=1e-6 if dtype is np.float32 else 1e-10, atol=1e-12)
    alone = values(A.astype(float), A.astype(float))
    np.testing.assert_allclose(kernel(one), alone, rtol=1e-6 if dtype is np.float32 else 1e-10, atol=1e-12)


@pytest.mark.parametrize("name", VALUES)
def test_a_kernel_a_function_and_a_matrix_give_one_machine(name):
    X, y = blobs(70, 3, 3)
    kernel, values = VALUES[name]
    new = X[:20] + 0.2
    model = SVC(kernel=kernel, tol=1e-9).fit(X, y)
    function = SVC(kernel=values, tol=1e-9).fit(X, y)
    matrix = SVC(kernel="precomputed", tol=1e-9).fit(values(X, X), y)
    theirs = sklearn.svm.SVC(kernel="precomputed", tol=1e-9).fit(values(X, X), y)
    expected, size = theirs.decision_function(values(new, X)), LIBSVM
    if name in ("poly7", "sigmoid"):  # not positive semi-definite: where the search ends depends on its path
        expected = model.decision_function(new)
    for other, rows in ((model, new), (function, new), (matrix, values(new, X))):
        np.testing.assert_allclose(other.decision_function(rows), expected, atol=size)
    assert matrix.support_vectors_.shape == (0, 0)
    np.testing.assert_array_equal(matrix.support_, model.support_)


def test_kernels_can_be_asked_for_and_compared():
    assert sx.RBFKernel(0.5) == sx.RBFKernel(0.5) != sx.RBFKernel(0.6)
    assert clone(SVC(kernel=sx.RBFKernel(0.5) + sx.LinearKernel())).kernel == sx.RBFKernel(0.5) + sx.LinearKernel()
    X, y = blobs(40)
    kernels = [sx.LinearKernel(), sx.RBFKernel(0.3), sx.RBFKernel(0.3) * 2.0]
    search = GridSearchCV(SVC(), {"kernel": kernels}, cv=2).fit(X, y)
    assert search.best_params_["kernel"] in kernels
    both = np.float64(2.0) * sx.LinearKernel()
    np.testing.assert_allclose(both(X, X), 2 * X @ X.T)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sx.PolynomialKernel(degree=-1),
        lambda: sx.PolynomialKernel(degree=2.5),
        lambda: sx.RBFKernel(-1.0),
        lambda: sx.LaplacianKernel(-1.0),
        lambda: sx.RBFKernel(np.nan),
    ],
    ids=["degree-1", "degree2.5", "rbf-1", "laplacian-1", "nan"],
)
def test_kernels_that_are_none_are_refused_when_they_are_made(make):
    with pytest.raises(ValueError, match=r"degree|gamma"):
        make()


def test_only_kernels_add_and_only_positive_numbers_multiply():
    with pytest.raises(TypeError):
        sx.RBFKernel() + 1.0
    with pytest.raises(TypeError):
        sx.RBFKernel() * "two"
    for factor in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="positive number"):
            factor * sx.RBFKernel()


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "sigmoid"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.bool_])
def test_sparse_rows_are_dense_rows(kernel, dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(-90, 90, (90, 6)) * (rng.random((90, 6)) < 0.4)
    X = (X if dtype is np.int8 else X / 50).astype(dtype)
    y = np.arange(90) % 3
    parameters = {"kernel": kernel, "tol": 1e-9, "C": 0.5}
    if kernel == "sigmoid":
        parameters["gamma"] = 1e-6
    dense, sparse = SVC(**parameters).fit(X.astype(float), y), SVC(**parameters).fit(sp.csr_matrix(X), y)
    size = 1e-4 if dtype is np.float32 else 1e-6
    expected = dense.decision_function(X.astype(float))
    for model in (dense, sparse):
        for rows in (X, sp.csr_array(X), sp.csc_matrix(X)):
            np.testing.assert_allclose(
                model.decision_function(rows), expected, atol=size * (1 + np.abs(expected).max())
            )
    assert sp.issparse(sparse.support_vectors_) and sparse.support_vectors_.shape == dense.support_vectors_.shape
    if kernel == "linear":
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-5)


# -- symmetries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "poly"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_a_weight_counts_rows(kernel, multi_class):
    X, y = blobs(60, 2, 3)
    counts = np.random.default_rng(0).integers(0, 4, 60)
    parameters = {"kernel": kernel, "multi_class": multi_class, "tol": 1e-10}
    weighted = SVC(**parameters).fit(X, y, sample_weight=counts)
    repeated = SVC(**parameters).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-7)
    assert weighted.fit_.certificate.objective == pytest.approx(repeated.fit_.certificate.objective, rel=1e-9)
    assert (counts[weighted.support_] > 0).all()
    np.testing.assert_array_equal(weighted.support_vectors_, X[weighted.support_])


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "poly"])
@pytest.mark.parametrize("n", [70, 2100])
def test_the_order_of_rows_and_columns_does_not_matter(kernel, n):
    X, y = blobs(n, 4, 2)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(n), rng.permutation(4)
    parameters = {"kernel": kernel, "tol": 1e-7, "cache_size": 1.0, "C": 0.1}
    here = SVC(**parameters).fit(X, y)
    there = SVC(**parameters).fit(X[rows][:, columns], y[rows])
    np.testing.assert_allclose(there.decision_function(X[:, columns]), here.decision_function(X), atol=1e-5)
    assert set(rows[there.support_]) == set(here.support_)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("n", [80, 2100])
def test_kernels_of_distances_do_not_see_where_the_data_lie(kernel, n):
    rng = np.random.default_rng(0)
    X = rng.integers(-1024, 1024, (n, 3)) / 256  # sums with 1e6 are exact
    y = (X[:, 0] + rng.standard_normal(n) > 0).astype(int)
    parameters = {"kernel": kernel, "gamma": 0.4, "tol": 1e-7, "cache_size": 1.0}
    here, there = SVC(**parameters).fit(X, y), SVC(**parameters).fit(X + 1e6, y)
    np.testing.assert_allclose(there.decision_function(X + 1e6), here.decision_function(X), atol=1e-5)
    scale = SVC(kernel=kernel).fit(X + 1e6, y), SVC(kernel=kernel).fit(X, y)
    np.testing.assert_allclose(scale[0].decision_function(X + 1e6), scale[1].decision_function(X), atol=5e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_rotations_do_not_matter(kernel):
    X, y = blobs(80, 4)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    parameters = {"kernel": kernel, "gamma": 0.3, "tol": 1e-9}
    here, there = SVC(**parameters).fit(X, y), SVC(**parameters).fit(X @ turn, y)
    np.testing.assert_allclose(there.decision_function(X @ turn), here.decision_function(X), atol=1e-6)


@pytest.mark.parametrize(
    "labels",
    [np.array(["ant", "bee"]), np.array([False, True]), np.array([-3, 12]), np.array([0.0, 1.0]), ["x", "y"]],
    ids=str,
)
def test_labels_of_any_kind(labels):
    X, codes = blobs(60)
    names = np.asarray(labels)
    model = SVC(calibration="sigmoid", random_state=0).fit(X, names[codes].tolist())
    plain = SVC().fit(X, codes)
    np.testing.assert_array_equal(model.classes_, names)
    np.testing.assert_array_equal(model.predict(X), names[plain.predict(X)])
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X))


# -- probabilities ----------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    classes=st.sampled_from([2, 3, 4]),
    calibration=st.sampled_from(["sigmoid", "isotonic"]),
    multi_class=st.sampled_from(["ovo", "ovr"]),
    break_ties=st.booleans(),
    kernel=st.sampled_from(["linear", "rbf"]),
    noise=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_probabilities_never_contradict_the_prediction(
    seed, classes, calibration, multi_class, break_ties, kernel, noise
):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (12 * classes, 2)).astype(float)  # many rows are equal, so that scores tie
    y = np.arange(12 * classes) % classes
    X += noise * 2.0 * np.column_stack([np.cos(y), np.sin(y)])
    model = SVC(
        kernel=kernel, calibration=calibration, multi_class=multi_class, break_ties=break_ties, random_state=seed
    ).fit(X, y)
    new = np.vstack([X, 3 * rng.standard_normal((60, 2)), 100 * rng.standard_normal((5, 2)), np.zeros((1, 2))])
    p = model.predict_proba(new)
    assert p.shape == (len(new), classes) and (p > 0).all() and (p < 1).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(new))
    np.testing.assert_allclose(model.predict_log_proba(new), np.log(p))
    if classes == 2:
        order = np.argsort(model.decision_function(new))
        assert (np.diff(p[order, 1]) >= 0).all()


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_probabilities_are_calibrated_on_rows_that_were_left_out(calibration):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    chance = 1 / (1 + np.exp(-2.5 * X[:, 0]))
    y = (rng.random(600) < chance).astype(int)
    new = rng.standard_normal((2000, 2))
    p = SVC(calibration=calibration, random_state=0).fit(X, y).predict_proba(new)[:, 1]
    assert np.abs(p - 1 / (1 + np.exp(-2.5 * new[:, 0]))).mean() < 0.1
    # Labels without any pattern, fitted to the last row: only rows that were left out tell that nothing was learnt.
    noise = rng.integers(0, 2, 600)
    model = SVC(gamma=50.0, C=1e3, calibration=calibration, random_state=0).fit(X, noise)
    assert (model.predict(X) == noise).mean() > 0.95
    assert np.abs(model.predict_proba(X) - 0.5).mean() < 0.1


def test_platts_curve_is_that_of_a_logistic_regression_of_his_targets():
    from separatrix.models.svm.score_calibration import Platt

    rng = np.random.default_rng(0)
    scores = rng.standard_normal(200)
    positive = (scores + rng.standard_normal(200) > 0.4).astype(int)
    curve = Platt.fitted(scores, positive, np.ones(200))
    up, down = positive.sum(), (1 - positive).sum()
    target = np.where(positive > 0, (up + 1) / (up + 2), 1 / (down + 2))
    p = 1 / (1 + np.exp(curve.slope * scores + curve.constant))
    np.testing.assert_allclose([(p - target).sum(), (p - target) @ scores], 0.0, atol=1e-6)


@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-5])
def test_scores_that_fall_with_the_class_leave_its_share(spread):
    from separatrix.models.svm.score_calibration import Platt

    # The optimum among curves that do not fall: with slope 0 the constant has its own optimum, and p is the mean target.
    rng = np.random.default_rng(0)
    positive = (rng.random(200) < 0.8).astype(int)
    scores = 3.0 + spread * (0.3 * rng.standard_normal(200) - positive)
    weights = rng.integers(1, 4, 200).astype(float)
    curve = Platt.fitted(scores, positive, weights)
    up, down = weights @ positive, weights @ (1 - positive)
    target = np.where(positive > 0, (up + 1) / (up + 2), 1 / (down + 2))
    assert curve.slope == 0.0
    np.testing.assert_allclose(curve.probability(scores), np.average(target, weights=weights), rtol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_machine_that_predicts_one_class_has_its_share_as_probability(kernel):
    # Visits of patients of whom most have the class: the machine gives all rows about the same score.
    rng = np.random.default_rng(4)
    patient = np.repeat(np.arange(50), 4)
    X = np.column_stack([rng.integers(0, 2, 50)[patient], rng.integers(0, 2, 50)[patient], np.tile([0, 2, 4, 11], 50)])
    y = (rng.random(200) < np.clip(0.8 + 0.1 * rng.standard_normal(50), 0, 1)[patient]).astype(int)
    model = SVC(kernel=kernel, C=0.1, calibration="sigmoid", random_state=0).fit(X, y)
    assert (model.predict(X) == 1).all()
    share = y.mean()
    guessing = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert -np.log(model.predict_proba(X)[np.arange(200), y]).mean() < 1.05 * guessing


def test_coupling_recovers_probabilities_that_agree():
    from separatrix.models.svm.score_calibration import couple

    p = np.random.default_rng(0).dirichlet(np.ones(4), 50)
    first, second = np.triu_indices(4, 1)
    pairs = p[:, first] / (p[:, first] + p[:, second])
    np.testing.assert_allclose(couple(pairs, 4), p, atol=1e-6)


def test_probabilities_have_to_be_asked_for():
    X, y = blobs(40)
    model = SVC().fit(X, y)
    assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
    for name in ("predict_proba", "predict_log_proba"):
        with pytest.raises(AttributeError, match=f"no {name}.*calibration='sigmoid'"):
            getattr(model, name)
    assert hasattr(SVC(calibration="isotonic"), "predict_proba")
    assert SVC(probability=True, random_state=0).fit(X, y).predict_proba(X).shape == (40, 2)
    with pytest.raises(ValueError, match="at least two different rows"):
        SVC(calibration="sigmoid").fit(X[:5], [0, 0, 0, 0, 1])
    with pytest.raises(ValueError, match="calibration is 'platt'"):
        SVC(calibration="platt").fit(X, y)


# -- hard cases -------------------------------------------------------------------------------------------------------


def finite(model: Any, X: Any) -> None:
    assert np.isfinite(model.decision_function(X)).all() and np.isfinite(model.intercept_).all()
    assert np.isfinite(model.dual_coef_).all()
    proof = model.fit_.certificate
    assert not np.isnan(proof.gap) and proof.gap >= 0 and np.isfinite(proof.objective)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian"])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("data", ["overlap", "contradiction", "separable", "wide"])
def test_prices_over_twelve_orders_of_magnitude(kernel, C, data):
    X, y = blobs(50, 2)
    if data == "contradiction":
        X, y = np.vstack([X, X]), np.append(y, 1 - y)
    elif data == "separable":
        y = (X[:, 0] > 0).astype(int)
    elif data == "wide":
        X, y = np.random.default_rng(0).standard_normal((20, 60)), np.arange(20) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = SVC(kernel=kernel, C=C).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    finite(model, X)
    assert model.fit_.certificate.gap <= 1e-3 * C * len(y)


def test_rows_with_both_labels_cancel():
    X, y = blobs(30, 2)
    model = SVC(C=5.0).fit(np.vstack([X, X]), np.append(y, 1 - y))
    np.testing.assert_allclose(model.decision_function(X), 0.0, atol=1e-3)
    assert model.machines_[0].primal_objective == pytest.approx(5.0 * 60)
    assert model.machines_[0].geometric_margin > 1e2


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("gamma", [1e9, 1e12, 1e20, 1e300])
def test_every_row_far_from_every_other(kernel, sparse, gamma):
    # K = I: α solves ½Σα² − Σα, balanced: the fewer rows are at min(C, …), the more share what balances them.
    X = np.random.default_rng(0).standard_normal((30, 3)) + 4.0
    y = np.array([1] * 10 + [0] * 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = SVC(kernel=kernel, gamma=gamma, C=10.0, tol=1e-9).fit(sp.csr_array(X) if sparse else X, y)
    few, many = 4 / 3, 2 / 3  # α₊ + b = 1, α₋ − b = 1, 10α₊ = 20α₋
    np.testing.assert_allclose(model.machines_[0].alpha, np.where(y == 1, few, many), rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, [-1 / 3], rtol=1e-6)
    np.testing.assert_allclose(model.decision_function(X + 1.0), -1 / 3, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [0, 1e-12, 1e-300])
def test_every_row_close_to_every_other(kernel, gamma):
    X, y = blobs(30, 2)
    y = (np.arange(30) < 12).astype(int)
    model = SVC(kernel=kernel, gamma=gamma).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    finite(model, X)
    # Nothing tells the rows apart: the larger class is predicted, at a cost of two a row of the other.
    assert (model.predict(X) == 0).all()
    assert model.machines_[0].primal_objective == pytest.approx(24.0, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e-9, 1e9, 1e150])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian"])
def test_units_do_not_matter(scale, kernel):
    X, y = blobs(50, 2)
    parameters: dict[str, Any] = {"kernel": kernel, "tol": 1e-6}
    price = 1.0
    if kernel == "linear":
        price = scale**-2
    widths = (0.3, 0.3 / scale) if kernel == "laplacian" else ("scale", "scale")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        here = SVC(gamma=widths[0], **parameters).fit(X, y)
        there = SVC(gamma=widths[1], C=price, **parameters).fit(scale * X, y)
    assert there.fit_.status is Status.CONVERGED
    np.testing.assert_allclose(there.decision_function(scale * X), here.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "sigmoid"])
@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e150, 1e200])
def test_columns_of_absurd_size_end_in_a_status_or_a_sentence(kernel, scale):
    X, y = blobs(40, 2)
    X[:, 1] *= scale
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model = SVC(kernel=kernel, max_iter=100_000).fit(X, y)
        except ValueError as error:
            assert "kernel" in str(error) or "column" in str(error)
            return
    finite(model, X)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "sigmoid"])
def test_small_and_degenerate_data(kernel):
    for X, y in (
        (np.array([[0.0], [1.0]]), [0, 1]),
        (np.zeros((6, 2)), [0, 1, 0, 1, 0, 0]),
        (np.ones((6, 2)), [0, 1, 0, 1, 0, 0]),
        (np.column_stack([np.arange(8.0), np.full(8, 3.0)]), [0, 0, 0, 0, 1, 1, 1, 1]),
        (np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), ["a", "b", "c"]),
        (np.vstack([np.zeros((3, 2)), np.ones((3, 2))]), [0, 0, 0, 1, 1, 1]),
        (np.random.default_rng(0).standard_normal((40, 2)), [1] + [0] * 39),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = SVC(kernel=kernel).fit(X, y)
        assert model.fit_.status in (Status.CONVERGED, Status.STATIONARY)
        finite(model, X)
        if kernel != "sigmoid" and len(y) < 40:  # LIBSVM takes minutes for the one row against the others
            theirs = sklearn.svm.SVC(kernel=kernel if kernel != "laplacian" else pairwise.laplacian_kernel)
            width = 0.5 if kernel == "laplacian" else "scale"
            ours = clone(model).set_params(gamma=width, tol=1e-9, decision_function_shape="ovo").fit(X, y)
            if kernel == "laplacian":
                theirs.set_params(kernel=lambda A, B: pairwise.laplacian_kernel(A, B, 0.5))
            theirs.set_params(tol=1e-9, decision_function_shape="ovo").fit(X, y)
            np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_one_far_row_does_not_blur_the_others():
    X, y = blobs(60, 2)
    X = np.vstack([X, [[1e8, 0.0]]])
    y = np.append(y, 0)
    ours, theirs = (kind(gamma=0.5, tol=1e-9).fit(X, y) for kind in (SVC, sklearn.svm.SVC))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_many_classes_of_few_rows():
    X, y = load_digits(return_X_y=True)
    X, y = X[:250], y[:250]
    ours, theirs = (kind(tol=1e-8).fit(X, y) for kind in (SVC, sklearn.svm.SVC))
    assert len(ours.machines_) == 45
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(ours.support_, theirs.support_)


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"C": 0.0}, "C is 0.0; give a positive number"),
        ({"C": -1}, "C is -1"),
        ({"C": np.nan}, "C is nan"),
        ({"C": "one"}, "C is 'one'"),
        ({"tol": 0.0}, "tol is 0.0"),
        ({"tol": -1.0}, "tol is -1.0"),
        ({"kernel": "cosine"}, "kernel is 'cosine'; give one of linear, poly, rbf"),
        ({"kernel": None}, "kernel is None"),
        ({"gamma": -0.1}, "gamma is -0.1"),
        ({"gamma": "wide"}, "gamma is 'wide'"),
        ({"gamma": np.inf}, "gamma is inf"),
        ({"kernel": "poly", "degree": -1}, "degree is -1"),
        ({"kernel": "poly", "degree": 2.5}, "degree is 2.5"),
        ({"kernel": "poly", "coef0": np.nan}, "coef0 is nan"),
        ({"kernel": "poly", "coef0": "one"}, "coef0 is 'one'"),
        ({"cache_size": -1}, "cache_size is -1"),
        ({"max_iter": None}, "max_iter is None"),
        ({"max_iter": 2.5}, "max_iter is 2.5"),
        ({"multi_class": "all"}, "multi_class is 'all'"),
        ({"decision_function_shape": "all"}, "decision_function_shape is 'all'"),
        ({"class_weight": {7: 2.0}}, "class_weight names 7"),
        ({"class_weight": {0: -2.0}}, "class_weight has the value -2.0"),
        ({"kernel": lambda A, B: np.ones((3, 2))}, r"kernel function returned an array of shape \(3, 2\)"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "kernel.*NaN"),
        ({"kernel": lambda A, B: np.where(A @ B.T > 1.0, np.nan, A @ B.T)}, "kernel.*NaN"),
        ({"kernel": "precomputed"}, "square matrix: X is 40 × 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "given",
)
def test_bad_parameters_are_named(parameters, words):
    X, y = blobs(40)
    with pytest.raises(ValueError, match=words):
        SVC(**parameters).fit(X, y)


def test_bad_data_are_named():
    X, y = blobs(40)
    bad = X.copy()
    bad[3, 1] = np.nan
    for rows in (bad, sp.csr_array(bad)):
        with pytest.raises(ValueError, match=r"column 1 has 1 such row \(first: row 3\)"):
            SVC().fit(rows, y)
    frame = pd.DataFrame(bad, columns=["ant", "bee", "cow"])
    with pytest.raises(ValueError, match="column 'bee'"):
        SVC().fit(frame, y)
    with pytest.raises(ValueError, match="only one class: 0"):
        SVC().fit(X, np.zeros(40, dtype=int))
    with pytest.raises(ValueError, match="sample_weight is negative"):
        SVC().fit(X, y, sample_weight=np.where(y > 0, 1.0, -1.0))
    with pytest.raises(ValueError, match="Unknown label type"):
        SVC().fit(X, X[:, 0])
    with pytest.raises(TypeError, match="dense"):
        SVC(kernel="precomputed").fit(sp.csr_array(np.eye(40)), y)
    with pytest.raises(NotFittedError):
        SVC().predict(X)
    with pytest.raises(ValueError, match="expecting 3 features"):
        SVC().fit(X, y).predict(X[:, :2])
    gram = SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="expecting 40 features"):
        gram.predict(np.ones((2, 39)))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "sigmoid", "function"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_prediction_from_values_that_are_not_numbers(kernel, sparse, value):
    X, y = blobs(40)
    choice: Any = (lambda A, B: np.tanh(np.asarray(A @ B.T))) if kernel == "function" else kernel
    if kernel == "function" and sparse:
        choice = lambda A, B: np.tanh((A @ B.T).toarray())  # noqa: E731  # a kernel of sparse rows
    rows, bad = X, np.array([[0.0, 1.0, 0.5], [0.0, value, 0.5]])
    if sparse:
        rows, bad = sp.csr_array(rows), sp.csr_array(bad)
    model = SVC(kernel=choice).fit(rows, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match="column 1"):
            model.predict(bad)


# -- conventions ------------------------------------------------------------------------------------------------------


def test_pickles_clones_pipelines_and_searches():
    X, y = load_iris(return_X_y=True)
    model = SVC(kernel=sx.RBFKernel(0.3) + sx.LinearKernel(), calibration="isotonic", random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert clone(model).get_params().keys() == sklearn.svm.SVC().get_params().keys() | {
        "multi_class",
        "calibration",
        "record",
    }
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1.0, 10.0]}, cv=3).fit(X, y)
    theirs = GridSearchCV(make_pipeline(StandardScaler(), sklearn.svm.SVC()), {"svc__C": [0.1, 1.0, 10.0]}, cv=3)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], theirs.fit(X, y).cv_results_["mean_test_score"])
    matrix = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=3).fit(X @ X.T, y)
    plain = GridSearchCV(SVC(kernel="linear"), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(matrix.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])


def test_names_of_columns_and_files(tmp_path):
    X, y = blobs(300, 3, 3)
    frame = pd.DataFrame(X, columns=["ant", "bee", "cow"])
    model = SVC(calibration="sigmoid", random_state=0).fit(frame, y)
    assert list(model.feature_names_in_) == ["ant", "bee", "cow"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["bee", "ant", "cow"]])
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({**{name: X[:, j] for j, name in enumerate(frame.columns)}, "y": y}), path)
    source = sx.scan_parquet(path, target="y")
    np.testing.assert_array_equal(model.predict(source), model.predict(frame))
    np.testing.assert_array_equal(model.decision_function(source), model.decision_function(frame))
    np.testing.assert_array_equal(model.predict_proba(source), model.predict_proba(frame))
    from_file = SVC(tol=1e-9).fit(sx.scan_parquet(path, target="y"))
    np.testing.assert_allclose(from_file.decision_function(X), SVC(tol=1e-9).fit(X, y).decision_function(X), atol=1e-8)
    assert list(from_file.feature_names_in_) == ["ant", "bee", "cow"]


def test_a_repeated_fit_is_the_same_and_forgets_the_last():
    X, y = blobs(100, 3, 3)
    model = SVC(calibration="sigmoid", random_state=3).fit(X, y)
    first = model.predict_proba(X)
    np.testing.assert_array_equal(model.fit(X, y).predict_proba(X), first)
    model.set_params(kernel="precomputed", calibration=None).fit(X @ X.T, y)
    assert not hasattr(model, "predict_proba") and model.n_features_in_ == 100
    model.set_params(calibration="isotonic")
    with pytest.raises((NotFittedError, AttributeError)):  # it was fitted without
        model.predict_proba(X @ X.T)


def test_ctrl_c_gives_the_best_machine_so_far(monkeypatch):
    X, y = curved(2500)
    from separatrix.dual.kernel_matrix import KernelMatrix

    calls, add = [], KernelMatrix.add

    def interrupted(self, *arguments, **named):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return add(self, *arguments, **named)

    monkeypatch.setattr(KernelMatrix, "add", interrupted)
    model = SVC(cache_size=0.001).fit(X, y)
    assert model.fit_.status is Status.INTERRUPTED
    monkeypatch.undo()
    # The record describes the machine that is kept.
    machine = model.machines_[0]
    K = pairwise.rbf_kernel(X, X, model._kernel.gamma)
    np.testing.assert_allclose(machine.decision, K @ machine.beta + machine.intercept, atol=1e-6)
    slack = np.maximum(0, 1 - machine.signs * machine.decision)
    primal = 0.5 * machine.beta @ K @ machine.beta + slack.sum()
    assert machine.primal_objective == pytest.approx(primal, rel=1e-6)
    assert abs(machine.beta.sum()) < 1e-9


def test_ctrl_c_in_the_calibration_is_not_swallowed(monkeypatch):
    X, y = blobs(80)
    calls = []

    def interrupted(*arguments, **named):
        calls.append(1)
        found = solve_dual(*arguments, **named)
        if len(calls) < 3:
            return found
        from dataclasses import replace

        return replace(found, status=Status.INTERRUPTED)

    monkeypatch.setattr("separatrix.models.svm.kernel_problem.solve_dual", interrupted)
    monkeypatch.setattr("separatrix.models.svm.kernel_problem.WHOLE", 0)  # working sets, whatever the size
    with pytest.raises(KeyboardInterrupt):
        SVC(calibration="sigmoid").fit(X, y)


def test_progress_is_written_when_asked(capsys):
    X, y = blobs(60)
    SVC(verbose=True).fit(X, y)
    assert "SVC" in "".join(capsys.readouterr())
    SVC().fit(X, y)
    assert "".join(capsys.readouterr()) == ""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_planes_of_many_machines_are_proven_as_published(dtype):
    rng = np.random.default_rng(8)
    y = np.arange(240) % 6
    X = sp.random_array((240, 300), density=0.05, format="csr", rng=rng).astype(dtype)
    model = SVC(kernel="linear", C=3.0).fit(X, y)
    rows, bound = X.toarray().astype(np.float64), 3.0
    for w, b, machine in zip(model.coef_, model.intercept_, model.machines_, strict=True):
        margins = machine.signs * (rows[machine.rows] @ w + b)
        primal = 0.5 * w @ w + bound * np.maximum(0.0, 1.0 - margins).sum()
        beta = machine.signs * machine.alpha
        value = machine.alpha.sum() - 0.5 * np.square(beta @ rows[machine.rows]).sum()
        assert machine.certificate.objective >= primal * (1.0 - 1e-13)
        assert machine.certificate.gap >= primal - value - 1e-12 * primal
        assert machine.status.name == "CONVERGED"
