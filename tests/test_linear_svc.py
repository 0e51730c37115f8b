"""Linear support vector machines against LIBLINEAR, against the machine with the linear kernel, and against their duals."""

from __future__ import annotations

import pickle
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
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import separatrix as sx
from separatrix import SVC, LinearSVC, Status
from separatrix.dual.centred_rows import CentredRows
from separatrix.dual.linear_machine import LinearMachine
from separatrix.dual.linear_proof import Sides
from separatrix.solvers.choose import choose_svm, svm_costs

LOSSES = ["hinge", "squared_hinge"]
STORAGES: dict[str, Any] = {"dense": np.asarray, "sparse": sp.csr_array}
each_loss = pytest.mark.parametrize("loss", LOSSES)


def blobs(n: int = 80, d: int = 3, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Classes that overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.standard_normal((n, d)) + 1.2 * rng.standard_normal((classes, d))[y], y


def objective(w: np.ndarray, b: float, X: Any, signs: np.ndarray, price: Any, loss: str) -> float:
    slack = np.maximum(0.0, 1.0 - signs * (X @ w + b))
    return float(0.5 * w @ w + (price * slack ** (1 if loss == "hinge" else 2)).sum())


def joint_objective(W: np.ndarray, b: np.ndarray, X: np.ndarray, y: np.ndarray, price: Any) -> float:
    """Crammer and Singer's, without a penalty on b."""
    f = X @ W.T + b
    cost = 1.0 + f - f[np.arange(len(y)), y][:, None]
    cost[np.arange(len(y)), y] = 0.0
    return float(0.5 * (W**2).sum() + (price * cost.max(axis=1)).sum())


def liblinear(**parameters: Any) -> Any:
    return sklearn.svm.LinearSVC(tol=1e-10, max_iter=200_000, dual=True, random_state=0, **parameters)


# -- LIBLINEAR's answers ----------------------------------------------------------------------------------------------


@each_loss
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_with_a_penalised_intercept_the_answer_is_scikit_learns(loss, storage, classes, C):
    X, y = blobs(90, 3, classes)
    rows = STORAGES[storage](X)
    ours = LinearSVC(loss=loss, C=C, intercept_scaling=1.0, tol=1e-11, max_iter=50_000).fit(rows, y)
    theirs = liblinear(loss=loss, C=C).fit(X, y)
    assert ours.fit_.status is Status.CONVERGED
    assert ours.coef_.shape == theirs.coef_.shape and ours.intercept_.shape == theirs.intercept_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(X))


@each_loss
@pytest.mark.parametrize("parameters", [{"fit_intercept": False}, {"intercept_scaling": 5.0}], ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_parameters_mean_what_they_mean_in_scikit_learn(loss, parameters, weighted):
    # Of more than two classes LIBLINEAR weighs the one, and not the rest by their classes: two tell the same story.
    X, y = blobs(90, 3, 2)
    X = X + 0.5
    weights = np.random.default_rng(0).uniform(0.2, 2.0, 90) if weighted else None
    common = {"loss": loss, "C": 0.2, "class_weight": {0: 2.0, 1: 0.5} if weighted else None, **parameters}
    ours = LinearSVC(tol=1e-11, max_iter=50_000, **common).fit(X, y, sample_weight=weights)
    theirs = liblinear(**common).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_lasso_machine_is_scikit_learns(C, classes):
    X, y = blobs(120, 6, classes)
    ours = LinearSVC("l1", C=C, fit_intercept=False, tol=1e-10).fit(X, y)
    theirs = sklearn.svm.LinearSVC(penalty="l1", dual=False, C=C, fit_intercept=False, tol=1e-10, max_iter=100_000)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_array_equal(ours.coef_ == 0, np.abs(theirs.coef_) < 1e-9)
    for k, w in enumerate(ours.coef_):
        signs = np.where(y == (1 if classes == 2 else k), 1.0, -1.0)
        slack = np.maximum(0.0, 1.0 - signs * (X @ w))
        other = np.maximum(0.0, 1.0 - signs * (X @ theirs.coef_[k]))
        mine, best = np.abs(w).sum() + C * (slack @ slack), np.abs(theirs.coef_[k]).sum() + C * (other @ other)
        assert mine <= best * (1 + 1e-8)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("parameters", [{"C": 1.0}, {"C": 0.1, "class_weight": {0: 1.0, 1: 2.0, 2: 3.0}}], ids=str)
def test_crammer_and_singers_machine_is_scikit_learns(storage, parameters):
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    common = {"multi_class": "crammer_singer", **parameters}
    ours = LinearSVC(intercept_scaling=1.0, tol=1e-9, max_iter=20_000, **common).fit(STORAGES[storage](X), y)
    theirs = liblinear(**common).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@each_loss
def test_crammer_and_singers_machine_of_two_classes_is_scikit_learns(loss):
    # ½‖w₁‖² + ½‖w₂‖² = ¼‖w₁ − w₂‖² at the optimum: the hinge at twice the price, whatever `loss` says.
    X, y = blobs(80, 3)
    ours = LinearSVC(multi_class="crammer_singer", loss=loss, intercept_scaling=1.0, C=0.3, tol=1e-10, max_iter=50_000)
    theirs = liblinear(multi_class="crammer_singer", C=0.3).fit(X, y)
    ours.fit(X, y)
    assert ours.coef_.shape == theirs.coef_.shape == (1, 3)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)


# -- a free intercept -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [100, 1300, 2600])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_the_hinge_is_the_machine_with_the_linear_kernel(n, storage, C):
    X, y = blobs(n, 4)
    X = X + 2.0
    C = C * 100 / n
    ours = LinearSVC(loss="hinge", C=C, tol=1e-9, max_iter=20_000).fit(STORAGES[storage](X), y)
    kernel = sklearn.svm.SVC(kernel="linear", C=C, tol=1e-9).fit(X, y)
    assert ours.fit_.status is Status.CONVERGED
    signs = 2.0 * y - 1.0
    best = objective(kernel.coef_[0], kernel.intercept_[0], X, signs, C, "hinge")
    assert ours.fit_.certificate.objective == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(ours.coef_, kernel.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.decision_function(X), kernel.decision_function(X), atol=1e-3)
    again = SVC(kernel="linear", C=C, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.coef_, again.coef_, atol=1e-4)


@pytest.mark.parametrize("n", [60, 1200])
@pytest.mark.parametrize("dual", [True, False])
def test_the_squared_hinge_is_at_the_zero_of_its_gradient(n, dual):
    X, y = blobs(n, 3, 3)
    X = X + 1.0
    model = LinearSVC(C=10 / n, dual=dual, tol=1e-12, max_iter=20_000, random_state=0).fit(X, y)
    # ‖∇F‖² ≤ 2L(F − F*) for a gradient of Lipschitz constant L, and the gap bounds F − F*.
    steepest = 1.0 + 20 / n * np.linalg.norm(np.column_stack([X, np.ones(n)]), 2) ** 2
    bound = np.sqrt(2.0 * steepest * model.fit_.certificate.gap) + 1e-12
    assert bound < 1e-4
    for k in range(3):
        signs = np.where(y == k, 1.0, -1.0)
        slack = np.maximum(0.0, 1.0 - signs * (X @ model.coef_[k] + model.intercept_[k]))
        slope = np.append(model.coef_[k] - 20 / n * (signs * slack) @ X, 20 / n * (signs @ slack))
        assert np.linalg.norm(slope) <= bound


@each_loss
def test_the_free_intercept_does_not_feel_where_the_data_lie(loss):
    X, y = blobs(150, 3)
    here = LinearSVC(loss=loss, tol=1e-9).fit(X, y)
    there = LinearSVC(loss=loss, tol=1e-9).fit(X + 50.0, y)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4)
    np.testing.assert_allclose(there.decision_function(X + 50.0), here.decision_function(X), atol=1e-3)


def test_crammer_and_singers_machine_with_free_intercepts():
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    model = LinearSVC(multi_class="crammer_singer", tol=1e-8, max_iter=20_000).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    value = joint_objective(model.coef_, model.intercept_, X, y, 1.0)
    assert model.fit_.certificate.objective == pytest.approx(value, rel=1e-12)
    # A very weak penalty on the intercept is none.
    theirs = sklearn.svm.LinearSVC(
        multi_class="crammer_singer", tol=1e-9, max_iter=200_000, intercept_scaling=30.0, random_state=0
    ).fit(X, y)
    assert value <= joint_objective(theirs.coef_, theirs.intercept_, X, y, 1.0) + 1e-6
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=5e-3)
    # No direction goes down.
    rng = np.random.default_rng(0)
    for _ in range(50):
        W, b = model.coef_ + 1e-3 * rng.standard_normal((3, 4)), model.intercept_ + 1e-3 * rng.standard_normal(3)
        assert joint_objective(W, b, X, y, 1.0) >= value - model.fit_.certificate.gap


# -- proofs -----------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(LOSSES),
    scaling=st.sampled_from([None, 1.0, 4.0]),
    intercept=st.booleans(),
    C=st.sampled_from([1e-3, 0.1, 3.0]),
    sweeps=st.sampled_from([0, 1, 3, 30, 5000]),
    n=st.sampled_from([30, 1100]),
    sparse=st.booleans(),
)
def test_the_gap_bounds_the_distance_to_the_optimum(seed, loss, scaling, intercept, C, sweeps, n, sparse):
    X, y = blobs(n, 2, seed=seed)
    C = C * 30 / n
    parameters: dict[str, Any] = {"loss": loss, "C": C, "fit_intercept": intercept, "intercept_scaling": scaling}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows = sp.csr_array(X) if sparse else X
        model = LinearSVC(max_iter=sweeps, dual=True, random_state=seed, **parameters).fit(rows, y)
        best = LinearSVC(max_iter=100_000, tol=1e-10, random_state=0, **parameters).fit(X, y)
    signs = 2.0 * y - 1.0

    def value(m: Any) -> float:
        extra = 0.5 * (m.intercept_[0] / scaling) ** 2 if scaling is not None and intercept else 0.0
        return objective(m.coef_[0], m.intercept_[0], X, signs, C, loss) + extra

    proof = model.fit_.certificate
    assert proof.objective == pytest.approx(value(model), rel=1e-9)
    assert best.fit_.certificate.objective == pytest.approx(value(best), rel=1e-9)
    assert proof.gap >= value(model) - value(best) - 1e-10
    assert model.fit_.status in (Status.CONVERGED, Status.MAX_ITER)
    if model.fit_.status is Status.CONVERGED:
        assert proof.gap <= 1e-4 * max(1.0, proof.objective)
    if not intercept:
        assert (model.intercept_ == 0).all()


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    scaling=st.sampled_from([None, 1.0]),
    sweeps=st.sampled_from([0, 1, 4, 40, 5000]),
    intercept=st.booleans(),
)
def test_the_joint_gap_bounds_the_distance_to_the_optimum(seed, scaling, sweeps, intercept):
    X, y = blobs(45, 2, 3, seed=seed)
    parameters: dict[str, Any] = {
        "multi_class": "crammer_singer",
        "C": 0.3,
        "fit_intercept": intercept,
        "intercept_scaling": scaling,
        "random_state": 0,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(max_iter=sweeps, **parameters).fit(X, y)
        best = LinearSVC(max_iter=5000, tol=1e-9, **parameters).fit(X, y)
    extra = [0.5 * float((m.intercept_**2).sum()) if scaling is not None and intercept else 0.0 for m in (model, best)]
    values = [joint_objective(m.coef_, m.intercept_, X, y, 0.3) + e for m, e in zip((model, best), extra, strict=True)]
    assert model.fit_.certificate.objective == pytest.approx(values[0], rel=1e-9)
    assert model.fit_.certificate.gap >= values[0] - values[1] - 1e-9
    if sweeps == 5000:
        assert model.fit_.status is Status.CONVERGED


@each_loss
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_tolerance_is_in_units_of_the_objective(loss, fit_intercept, size):
    # Columns a thousand times larger at a price a million times lower are the same problem.
    X, y = blobs(100, 3)
    plain = LinearSVC(loss=loss, fit_intercept=fit_intercept, tol=1e-9, max_iter=50_000).fit(X, y)
    other = LinearSVC(loss=loss, fit_intercept=fit_intercept, C=size**-2, max_iter=50_000).fit(size * X, y)
    assert other.fit_.status is Status.CONVERGED
    signs = 2.0 * y - 1.0
    values = [objective(m.coef_[0] * s, m.intercept_[0], X, signs, 1.0, loss) for m, s in ((plain, 1), (other, size))]
    assert values[1] <= values[0] * (1 + 2e-4)


def test_a_fit_that_stops_early_says_so_in_its_own_name():
    X, y = blobs(2500, 4)
    for parameters in ({"loss": "hinge"}, {"loss": "squared_hinge"}, {"penalty": "l1"}):
        with pytest.warns(ConvergenceWarning, match="^LinearSVC: Stopped at the limit") as caught:
            model = LinearSVC(max_iter=1, **parameters).fit(X, y)
        assert caught[0].filename == __file__
        assert model.fit_.status is Status.MAX_ITER and model.fit_.certificate.gap > 0.1


def test_the_table_of_solvers():
    assert choose_svm(2000, 100, "hinge") == choose_svm(200, 10**5, "hinge") == "interior"
    assert choose_svm(200, 10**5, "squared_hinge") == choose_svm(2000, 100, "squared_hinge") == "newton"
    for loss in LOSSES:
        assert choose_svm(10**6, 100, loss) == choose_svm(None, 1000, loss) == "primal"
        assert choose_svm(10**6, 1001, loss) == choose_svm(None, 1001, loss) == "dual"
        assert choose_svm(10**4, 10**5, loss, entries=10**6) == "dual"
        assert choose_svm(10**5, 1000, loss, entries=10**6) == ("interior" if loss == "hinge" else "conjugate")
        assert "primal" not in svm_costs(400, 900, loss)  # a Hessian of more columns than rows
        costs = svm_costs(3000, 50, loss)
        assert choose_svm(3000, 50, loss) == min(costs, key=costs.__getitem__) and len(costs) == 3


def test_primal_and_dual_agree():
    rng = np.random.default_rng(0)
    X = sp.random_array((1100, 1200), density=0.01, rng=rng, format="csr")
    y = (X @ rng.standard_normal(1200) > 0).astype(int)
    dual, primal = (LinearSVC(dual=kind, tol=1e-8, max_iter=10_000).fit(X, y) for kind in (True, False))
    assert dual.fit_.certificate.method != primal.fit_.certificate.method
    np.testing.assert_allclose(dual.coef_, primal.coef_, atol=1e-4)
    np.testing.assert_allclose(dual.intercept_, primal.intercept_, atol=1e-4)
    auto = LinearSVC(tol=1e-4).fit(X, y)
    assert auto.fit_.certificate.method == dual.fit_.certificate.method


# -- symmetries -------------------------------------------------------------------------------------------------------

VARIANTS: list[dict[str, Any]] = [
    {"loss": "hinge"},
    {"loss": "squared_hinge"},
    {"loss": "hinge", "intercept_scaling": 1.0},
    {"loss": "squared_hinge", "intercept_scaling": 1.0},
    {"loss": "hinge", "fit_intercept": False},
    {"penalty": "l1", "C": 0.5},
    {"multi_class": "crammer_singer"},
]
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str)


def tight(variant: dict[str, Any]) -> LinearSVC:
    return LinearSVC(**{"C": 0.1, "tol": 1e-10, "max_iter": 50_000, "random_state": 0, **variant})


@each_variant
def test_a_weight_counts_rows(variant):
    X, y = blobs(60, 2, 3)
    counts = np.random.default_rng(0).integers(0, 4, 60)
    weighted = tight(variant).fit(X, y, sample_weight=counts)
    repeated = tight(variant).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=5e-4)
    assert weighted.fit_.certificate.objective == pytest.approx(repeated.fit_.certificate.objective, rel=1e-8)
    balanced = tight({**variant, "class_weight": "balanced"})
    there = clone(balanced).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    balanced.fit(X, y, sample_weight=counts)
    assert balanced.fit_.certificate.objective == pytest.approx(there.fit_.certificate.objective, rel=1e-8)


@each_variant
def test_orders_and_storages_do_not_matter(variant):
    X, y = blobs(70, 4, 3)
    X[np.abs(X) < 0.5] = 0.0
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(70), rng.permutation(4)
    here = tight(variant).fit(X, y)
    value, scores = here.fit_.certificate.objective, here.decision_function(X)
    moved = tight(variant).fit(X[rows][:, columns], y[rows])
    assert moved.fit_.certificate.objective == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(moved.decision_function(X[:, columns]), scores, atol=5e-4)
    for other in (sp.csr_array(X), sp.csc_matrix(X), np.asfortranarray(X), pd.DataFrame(X), X.tolist()):
        model = tight(variant).fit(other, y)
        assert model.fit_.certificate.objective == pytest.approx(value, rel=1e-8)
        np.testing.assert_allclose(model.decision_function(other), scores, atol=5e-4)
    single = tight({**variant, "tol": 1e-6}).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.decision_function(X.astype(np.float32)), scores, atol=2e-2)
    sparse = tight({**variant, "tol": 1e-6}).fit(sp.csr_array(X.astype(np.float32)), y)
    np.testing.assert_allclose(sparse.decision_function(X), scores, atol=2e-2)


@each_variant
@pytest.mark.parametrize("dtype", [np.int8, np.bool_])
def test_whole_numbers_are_numbers(variant, dtype):
    rng = np.random.default_rng(0)
    X = (rng.integers(-90, 90, (60, 3)) if dtype is np.int8 else rng.random((60, 3)) > 0.5).astype(dtype)
    y = np.arange(60) % 3
    variant = {**variant, "C": 1e-3, "tol": 1e-6}
    expected = tight(variant).fit(X.astype(float), y)
    for rows in (X, sp.csr_array(X)):
        model = tight(variant).fit(rows, y)
        assert model.fit_.certificate.objective == pytest.approx(expected.fit_.certificate.objective, rel=1e-5)


@pytest.mark.parametrize("names", [["ant", "bee", "cow"], [-5, 0, 7], [1.0, 2.0, 3.0]], ids=str)
def test_labels_of_any_kind(names):
    X, codes = blobs(60, 2, 3)
    names = np.asarray(names)
    for variant in VARIANTS:
        model, plain = LinearSVC(random_state=0, **variant), LinearSVC(random_state=0, **variant)
        np.testing.assert_array_equal(model.fit(X, names[codes]).predict(X), names[plain.fit(X, codes).predict(X)])
        np.testing.assert_array_equal(model.classes_, names)
    two = LinearSVC().fit(X, codes == 1)
    assert two.predict(X).dtype == bool and two.coef_.shape == (1, 2)


# -- hard cases -------------------------------------------------------------------------------------------------------


@each_variant
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("data", ["overlap", "contradiction", "separable", "wide", "zeros", "constant", "rare"])
def test_every_price_and_shape_of_data_ends_in_numbers_and_an_honest_status(variant, C, data):
    X, y = blobs(45, 2, 3)
    if data == "contradiction":
        X, y = np.vstack([X, X]), np.append(y, (y + 1) % 3)
    elif data == "separable":
        y = (X[:, 0] > 0).astype(int)
    elif data == "wide":
        X, y = np.random.default_rng(0).standard_normal((12, 40)), np.arange(12) % 3
    elif data == "zeros":
        X[:5] = 0.0
    elif data == "constant":
        X[:, 1] = 3.0
    elif data == "rare":
        y = np.array([0] * 43 + [1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(**{**variant, "C": C, "max_iter": 200, "random_state": 0}).fit(X, y)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    proof = model.fit_.certificate
    assert np.isfinite(proof.objective) and proof.gap >= 0
    if model.fit_.status is Status.CONVERGED:
        assert proof.relative_gap <= 1.01e-4 * len(model.classes_)


@each_variant
def test_rows_of_zeros_are_counted(variant):
    # Where there is no intercept nothing can be done for them, and the proof must know.
    X, y = blobs(60, 2, 3)
    X[:4] = 0.0
    for rows in (X, sp.csr_array(X)):
        model = tight({**variant, "tol": 1e-6}).fit(rows, y)
        assert model.fit_.status is Status.CONVERGED
        assert model.fit_.certificate.relative_gap <= 3e-6


@pytest.mark.parametrize("variant", VARIANTS[:6], ids=str)
@pytest.mark.parametrize("size", [1e-150, 1e-20, 1e20, 1e150])
def test_columns_of_absurd_size_end_in_a_status_or_a_sentence(variant, size):
    X, y = blobs(40, 2)
    X = size * X
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model = LinearSVC(**{**variant, "max_iter": 200}).fit(X, y)
        except ValueError as error:
            assert "column" in str(error)
            return
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    assert not np.isnan(model.fit_.certificate.gap)


@each_loss
def test_two_rows(loss):
    model = LinearSVC(loss=loss, C=100.0, tol=1e-10, max_iter=100_000).fit([[0.0, 1.0], [2.0, 1.0]], ["a", "b"])
    expected = 1.0 if loss == "hinge" else 400.0 / 401.0  # ½w² + 200·max(0, 1 − w)²
    np.testing.assert_allclose(model.coef_, [[expected, 0.0]], atol=1e-6)
    np.testing.assert_allclose(model.intercept_, [-expected], atol=1e-6)


def test_thebest_intercept_by_brute_force():
    from separatrix.dual.linear_proof import best_intercepts

    rng = np.random.default_rng(0)
    for trial in range(40):
        n = int(rng.integers(2, 12))
        v = rng.integers(-3, 4, n).astype(float) if trial % 2 else rng.standard_normal(n)
        signs, price = np.where(np.arange(n) % 2, 1.0, -1.0), rng.uniform(0.1, 2.0, n)
        for power in (1, 2):

            def cost(b, v=v, signs=signs, price=price, power=power):
                return float(price @ np.maximum(0.0, signs * (v - b)) ** power)

            found = cost(best_intercepts(v[None], signs[None], price, power)[0])
            around = [cost(b) for b in np.linspace(v.min() - 1, v.max() + 1, 2001)]
            exact = minimize(lambda b: cost(b[0]), [v.mean()], method="Nelder-Mead", options={"xatol": 1e-10}).fun
            assert found <= min(*around, exact) + 1e-9


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"C": 0.0}, "'C'"),
        ({"C": -1.0}, "'C'"),
        ({"tol": 0.0}, "'tol'"),
        ({"loss": "logistic"}, "'loss'"),
        ({"penalty": "l0"}, "'penalty'"),
        ({"penalty": "l1", "loss": "hinge"}, "penalty='l1' goes with loss='squared_hinge'"),
        ({"penalty": "l1", "multi_class": "crammer_singer"}, "penalty='l1' goes with"),
        ({"intercept_scaling": 0.0}, "'intercept_scaling'"),
        ({"multi_class": "ovo"}, "'multi_class'"),
        ({"class_weight": {9: 1.0}}, "class_weight names 9"),
        ({"class_weight": {0: -1.0}}, "class_weight has the value -1.0"),
        ({"max_iter": -1}, "'max_iter'"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(parameters, words):
    X, y = blobs(40)
    with pytest.raises(ValueError, match=words):
        LinearSVC(**parameters).fit(X, y)


@each_variant
def test_bad_data_are_named(variant):
    X, y = blobs(40, 3, 3)
    bad = X.copy()
    bad[3, 1] = np.nan
    for rows in (bad, sp.csr_array(bad)):
        with pytest.raises(ValueError, match=r"column 1 has 1 such row \(first: row 3\)"):
            LinearSVC(**variant).fit(rows, y)
    with pytest.raises(ValueError, match="column 'bee'"):
        LinearSVC(**variant).fit(pd.DataFrame(bad, columns=["ant", "bee", "cow"]), y)
    with pytest.raises(ValueError, match="only one class: 0"):
        LinearSVC(**variant).fit(X, np.zeros(40, dtype=int))
    with pytest.raises(ValueError, match="sample_weight is negative"):
        LinearSVC(**variant).fit(X, y, sample_weight=-np.ones(40))
    with pytest.raises(ValueError, match="Unknown label type"):
        LinearSVC(**variant).fit(X, X[:, 0])
    with pytest.raises(NotFittedError):
        LinearSVC(**variant).predict(X)
    model = LinearSVC(**variant).fit(X, y)
    with pytest.raises(ValueError, match="column 1"):
        model.predict(bad)


# -- conventions ------------------------------------------------------------------------------------------------------


def test_pickles_clones_pipelines_and_searches():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(loss="hinge", random_state=0).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))
    assert clone(model).get_params().keys() == sklearn.svm.LinearSVC().get_params().keys()
    search = GridSearchCV(make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    plane = LinearSVC().fit(X[y > 0], y[y > 0]).boundary()
    assert isinstance(plane, sx.geometry.Hyperplane)


@each_variant
def test_names_of_columns_and_files(tmp_path, variant):
    X, y = blobs(90, 3, 3)
    frame = pd.DataFrame(X, columns=["ant", "bee", "cow"])
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({**{name: X[:, j] for j, name in enumerate(frame.columns)}, "y": y}), path)
    source = sx.scan_parquet(path, target="y")
    model = tight({**variant, "tol": 1e-6}).fit(frame, y)
    from_file = tight({**variant, "tol": 1e-6}).fit(source)
    assert list(model.feature_names_in_) == list(from_file.feature_names_in_) == ["ant", "bee", "cow"]
    np.testing.assert_allclose(from_file.coef_, model.coef_, atol=1e-9)
    np.testing.assert_array_equal(model.predict(source), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["bee", "ant", "cow"]])


@each_variant
@pytest.mark.parametrize("n", [60, 1200])
def test_progress_is_written_when_asked(capsys, variant, n):
    X, y = blobs(n, 2, 2)
    LinearSVC(verbose=1, **variant).fit(X, y)
    capsys.readouterr()
    LinearSVC(**variant).fit(X, y)
    assert "".join(capsys.readouterr()) == ""


@each_variant
def test_one_seed_is_one_answer(variant):
    X, y = blobs(1100, 3, 3)
    first, second = (LinearSVC(random_state=5, max_iter=100, **variant) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(first.fit(X, y).coef_, second.fit(X, y).coef_)


# -- machines together, and on the rows' side -------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scaling", [None, 1.0, 0.0])
def test_machines_that_are_proven_together_are_proven_as_they_are_alone(loss, scaling):
    rng = np.random.default_rng(3)
    X, power = rng.standard_normal((40, 5)) + 3.0, 1 + LOSSES.index(loss)
    rows, price = CentredRows.of(X, scaling is None), rng.uniform(0.5, 2.0, 40)
    signs = np.where(rng.random((4, 40)) < 0.4, 1.0, -1.0)
    machines = [LinearMachine(rows, side, price, power, scaling) for side in signs]
    W, beta, alpha = rng.standard_normal((4, 5)), rng.standard_normal(4), rng.uniform(0.0, 0.5, (4, 40))
    pull = machines[0].pull
    for one, machine, w, b, a in zip(
        Sides(rows, signs, price, power, scaling, pull).prove(W, beta, alpha), machines, W, beta, alpha, strict=True
    ):
        own = machine.prove(w, b, a)
        for name in ("b", "value", "upper", "lower", "imbalance", "complementary"):
            assert getattr(one, name) == pytest.approx(getattr(own, name), rel=1e-12, abs=1e-12)
        assert own.lower <= own.value <= own.upper


@pytest.mark.parametrize("scaling", [None, 1.0, 0.0])
@pytest.mark.parametrize("C", [0.01, 100.0])
def test_newton_on_the_rows_ends_at_the_optimum(scaling, C):
    rng = np.random.default_rng(4)
    X = sp.random_array((60, 200), density=0.1, rng=rng, format="csr") @ sp.diags_array(10.0 ** rng.uniform(-3, 3, 200))
    rows = CentredRows.of(sp.csr_array(X), scaling is None)
    machine = LinearMachine(rows, np.where(rng.random(60) < 0.5, 1.0, -1.0), np.full(60, C), 2, scaling)
    points = machine.row_points()
    assert rows.has_row_gram and points is not None
    *_, last = points
    proven = machine.prove(*last)
    assert proven.upper - proven.lower <= 1e-9 * proven.value


def test_sparse_rows_in_any_units_are_fitted_as_dense_ones():
    rng = np.random.default_rng(5)
    X = sp.csr_array(
        sp.random_array((300, 500), density=0.05, rng=rng) @ sp.diags_array(10.0 ** rng.uniform(-3, 3, 500))
    )
    y = rng.integers(0, 3, 300)
    sparse, dense = (LinearSVC(tol=1e-7, C=10.0).fit(each, y) for each in (X, X.toarray()))
    assert sparse.fit_.status is Status.CONVERGED
    assert sparse.fit_.certificate.objective == pytest.approx(dense.fit_.certificate.objective, rel=1e-6)


@pytest.mark.parametrize("scaling", [None, 1.0])
def test_the_hinge_by_interior_points_of_many_rows_and_machines(scaling):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((3000, 6)) * [1e-2, 1.0, 1.0, 10.0, 1.0, 1e2]
    y = np.argmax(X / [1e-2, 1.0, 1.0, 10.0, 1.0, 1e2] + rng.gumbel(size=(3000, 6)), axis=1)
    assert choose_svm(3000, 6, "hinge") == "interior"
    model = LinearSVC(loss="hinge", C=0.3, tol=1e-6, intercept_scaling=scaling).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    tight = LinearSVC(loss="hinge", C=0.3, tol=1e-9, intercept_scaling=scaling).fit(X, y)
    proof = model.fit_.certificate
    assert proof.objective - tight.fit_.certificate.objective + tight.fit_.certificate.gap >= 0.0
    assert proof.objective - tight.fit_.certificate.objective <= proof.gap + 1e-9 * proof.objective


@pytest.mark.parametrize("order", ["drawn", "by class"])
def test_newtons_method_that_begins_with_a_sample_ends_at_the_optimum(order):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((12_000, 3)) * [1.0, 10.0, 0.1]
    y = np.argmax(np.column_stack([X[:, 0], X[:, 1] / 10.0, np.zeros(len(X))]) + rng.gumbel(size=(12_000, 3)), axis=1)
    if order == "by class":
        X, y = X[np.argsort(y)], np.sort(y)
    assert choose_svm(12_000, 3, "squared_hinge") == "newton"
    model = LinearSVC(tol=1e-8).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    weighted = LinearSVC(tol=1e-8).fit(X[::2], y[::2], sample_weight=np.full(6000, 2.0))
    repeated = LinearSVC(tol=1e-8).fit(np.repeat(X[::2], 2, axis=0), np.repeat(y[::2], 2))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-3, atol=1e-6)
