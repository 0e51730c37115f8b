"""Kernel machines reach their optimum on hostile data, and what they say of it is true at the point that is published.

Independent of the library: a primal-dual interior-point method in double precision, LIBSVM, and rational arithmetic.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC as LIBSVM
from test_svm import VALUES, quadratic_programme

from separatrix import SVC, Status
from separatrix.dual.kernel_matrix import KernelMatrix
from separatrix.models.svm import kernel_problem

REACHED = (Status.CONVERGED, Status.ROUNDED)


def quiet(model: SVC, X: Any, y: Any, **named: Any) -> SVC:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **named)


def noisy(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns that are normal, of which the first tells the class with logistic noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + rng.logistic(size=n) > 0).astype(int)


def shaped(kind: str, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same data with repeated rows, whole numbers, few rows of one class, or sorted."""
    n = len(X)
    if kind == "repeated":
        X = X.copy()
        X[n // 2 :] = X[: n - n // 2]
    if kind == "whole numbers":
        X = np.round(2 * X)
    if kind == "rare class":
        y = (np.arange(n) < max(1, n // 1000)).astype(int)
    if kind == "sorted rows":
        order = np.argsort(X[:, 0])
        X, y = X[order], y[order]
    if kind == "sorted classes":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    return X, y


KINDS = ["plain", "repeated", "whole numbers", "rare class", "sorted rows", "sorted classes"]


def exact_objective(X: np.ndarray, y: np.ndarray, w: np.ndarray, b: float, C: float) -> float:
    """½‖w‖² + CΣ max(0, 1 − ỹ(wᵀx + b)) in rational arithmetic, rounded once."""
    weights, slack = [Fraction(float(v)) for v in w], Fraction(0)
    for x, label in zip(X, y, strict=True):
        score = sum((a * Fraction(float(v)) for a, v in zip(weights, x, strict=True)), Fraction(float(b)))
        slack += max(Fraction(0), 1 - (1 if label else -1) * score)
    return float(Fraction(1, 2) * sum(a * a for a in weights) + Fraction(C) * slack)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(6, 45),
    d=st.integers(1, 5),
    kind=st.sampled_from(KINDS),
    kernel=st.sampled_from(["rbf", "poly", "laplacian", "sum"]),
    C=st.sampled_from([0.01, 1.0, 30.0, 1000.0]),
    tol=st.sampled_from([1e-1, 1e-3, 1e-7]),
    scale=st.sampled_from([1e-2, 1.0, 30.0]),
    steps=st.sampled_from([-1, -1, 0, 3, 40]),
)
def test_the_gap_and_the_status_are_true(seed, n, d, kind, kernel, C, tol, scale, steps):
    X, y = shaped(kind, *noisy(n, d, seed))
    assume(0 < y.sum() < n)
    X = X * scale
    kernel_of, values = VALUES[kernel]
    signs, K = 2.0 * y - 1.0, values(X, X)
    K = 0.5 * (K + K.T)
    model = quiet(SVC(kernel=kernel_of, C=C, tol=tol, max_iter=steps), X, y)
    proof, machine = model.fit_.certificate, model.machines_[0]
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    scores = K @ beta
    slack = np.maximum(0.0, 1.0 - signs * (scores + model.intercept_[0]))
    primal, dual = 0.5 * beta @ scores + C * slack.sum(), signs @ beta - 0.5 * beta @ scores
    rounding = 1e-13 * C * np.abs(K).max() * (np.abs(beta).sum() + 1.0) * n
    try:
        _, best = quadratic_programme(K, signs, np.full(n, C))
    except np.linalg.LinAlgError:  # too singular for that method
        reject()
    assert proof.kind == "proven"
    assert proof.gap >= primal - max(best, dual) - rounding - 1e-9 * best
    assert proof.objective == pytest.approx(primal, rel=1e-9, abs=rounding)
    v = signs - scores
    rising, falling = np.where(signs > 0, beta < C, beta < 0), np.where(signs > 0, beta > 0, beta > -C)
    violation = max(0.0, v[rising].max(initial=-np.inf) - v[falling].min(initial=np.inf))
    noise = 1e-13 * np.abs(K).max() * (np.abs(beta).sum() + 1.0)
    assert machine.certificate.stationarity == pytest.approx(violation, abs=noise)
    if model.fit_.status is Status.CONVERGED:
        assert violation <= tol + noise and proof.gap <= tol * C * n
    elif steps < 0:
        assert model.fit_.status in (Status.ROUNDED, Status.STALLED)
        assert tol < 1e3 * noise  # rounding is the only reason left
    if steps >= 0:
        assert model.n_iter_[0] <= steps
    else:
        theirs = LIBSVM(kernel="precomputed", C=C, tol=tol).fit(K, y)
        other = np.zeros(n)
        other[theirs.support_] = theirs.dual_coef_[0]
        # Either is within its tolerance of the optimum, and LIBSVM's values have single precision.
        assert dual >= signs @ other - 0.5 * other @ K @ other - tol * C * n - 1e-6 * max(1.0, best)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(6, 30),
    d=st.integers(1, 4),
    kind=st.sampled_from(KINDS),
    C=st.sampled_from([0.01, 1.0, 100.0]),
    unit=st.sampled_from([1e-3, 1.0, 1e3, 1e6]),
    far=st.sampled_from([0.0, 1e3, 1e6, 1e9, 1e12]),
)
def test_a_linear_machine_is_proven_at_its_published_coefficients(seed, n, d, kind, C, unit, far):
    X, y = shaped(kind, *noisy(n, d, seed))
    assume(0 < y.sum() < n)
    X = unit * (X + far)
    C = C / unit**2
    model = quiet(SVC(kernel="linear", C=C, max_iter=200_000), X, y)
    centred = (X - X[0]) / unit  # exact but for one rounding of what is given
    signs = 2.0 * y - 1.0
    _, best = quadratic_programme(centred @ centred.T, signs, np.full(n, C * unit**2))
    best /= unit**2
    primal = exact_objective(X, y, model.coef_[0], model.intercept_[0], C)
    proof = model.fit_.certificate
    assert proof.kind == "proven"
    assert proof.gap >= primal - best * (1 + 1e-7)
    assert proof.objective >= primal * (1 - 1e-12)
    if model.fit_.status is Status.CONVERGED:
        assert primal - best <= 1e-3 * C * n + 1e-7 * best
    # The best that numbers so large allow: the intercept has its last digit, the weights theirs.
    last = 2.0**-52 * (np.abs(X) @ np.abs(model.coef_[0]) + abs(model.intercept_[0])).max()
    if model.fit_.status in REACHED:
        assert primal - best <= C * n * (1e-3 + 8 * n * last) + 1e-7 * best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d"), [(2600, 1), (2600, 2), (2300, 5)])
def test_many_rows_in_few_columns_are_libsvms(kind, n, d):
    X, y = shaped(kind, *noisy(n, d))
    model = SVC(gamma=1.0 / d, tol=1e-4, cache_size=0.01).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    theirs = LIBSVM(gamma=1.0 / d, tol=1e-4).fit(X, y)
    beta = np.zeros(n)
    beta[theirs.support_] = theirs.dual_coef_[0]
    value = np.abs(beta).sum() - 0.5 * beta @ VALUES["rbf"][0].__class__(1.0 / d)(X) @ beta
    assert model.machines_[0].dual_objective >= value - 1e-4 * n - 1e-6 * value
    assert model.fit_.certificate.gap <= 1e-4 * n


@pytest.mark.parametrize("kind", ["plain", "sorted rows"])
def test_a_crowd_of_rows_does_not_stall(kind):
    # Rows that violate most are next to each other: taken alone they overshoot for hundreds of rounds.
    X, y = shaped(kind, *noisy(30_000, 1, seed=3))
    model = SVC().fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    assert model.fit_.certificate.relative_gap < 1e-4
    assert model.fit_.passes < 200


def test_no_reason_is_given_but_lack_of_progress(monkeypatch):
    # The largest violation rises and falls on the way; only the dual value tells that there is no progress.
    X, y = noisy(2500, 1)
    monkeypatch.setattr("separatrix.dual.working_set._PATIENCE", 1)
    monkeypatch.setattr("separatrix.dual.working_set._SET", 16)
    model = SVC(cache_size=0.01).fit(X, y)
    assert model.fit_.status is Status.CONVERGED


@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("steps", [0, 1, 7, 60])
def test_the_limit_on_steps_is_kept(C, steps):
    X = np.random.default_rng(0).standard_normal((200, 2))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += 0.2 * (2 * y - 1)
    model = quiet(SVC(C=C, kernel="linear", max_iter=steps, tol=1e-8), X, y)
    assert model.n_iter_[0] <= steps and model.fit_.iterations <= steps
    assert model.fit_.status in (Status.MAX_ITER, Status.CONVERGED)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_interrupt_leaves_a_usable_model(monkeypatch, multi_class, kernel, at):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.standard_normal((120, 2)) + 2.0 * rng.standard_normal((3, 2))[y]
    calls, add = [], KernelMatrix.add

    def interrupted(self, *arguments, **named):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return add(self, *arguments, **named)

    monkeypatch.setattr(KernelMatrix, "add", interrupted)
    monkeypatch.setattr(kernel_problem, "WHOLE", 0)  # working sets, whatever the size
    model = SVC(kernel=kernel, multi_class=multi_class).fit(X, y, sample_weight=1.0 + (y == 1))
    monkeypatch.undo()
    assert model.fit_.status is Status.INTERRUPTED and model.fit_status_ == 1
    assert len(model.machines_) == 3 and model.intercept_.shape == (3,)
    assert set(model.predict(X)) <= {0, 1, 2} and np.isfinite(model.decision_function(X)).all()
    done = SVC(kernel=kernel, multi_class=multi_class).fit(X, y, sample_weight=1.0 + (y == 1))
    proof = model.fit_.certificate
    assert proof.gap >= proof.objective - done.fit_.certificate.objective - 1e-9
    for machine in model.machines_:
        if machine.status is Status.INTERRUPTED and not len(machine.support):
            # Not begun: every row to the side of the larger total bound.
            heavier = np.sign(machine.signs @ machine.bound)
            assert (np.abs(machine.decision) == 1).all() and (machine.decision * heavier >= 0).all()


def test_an_interrupt_while_values_are_computed_leaves_a_constant(monkeypatch):
    X, y = noisy(50, 2)

    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelMatrix, "__init__", interrupted)
    model = SVC().fit(X, y)
    assert model.fit_.status is Status.INTERRUPTED
    assert set(model.predict(X)) == {int(y.mean() > 0.5)}


FUNCTIONS = {
    "sparse values": lambda A, B: A @ B.T,
    "dot": lambda A, B: A.dot(B.T),
    "dense values": lambda A, B: (A @ B.T).toarray(),
}


@pytest.mark.parametrize("storage", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize("name", [*FUNCTIONS, "star"])
def test_kernel_functions_of_sparse_rows_are_as_in_scikit_learn(storage, name):
    if name == "star" and not issubclass(storage, sp.spmatrix):
        pytest.skip("* is not a product of matrices for sparse arrays, there either")
    function = FUNCTIONS.get(name, lambda A, B: A * B.T)
    rng = np.random.default_rng(1)
    X = np.where(rng.random((60, 4)) < 0.4, 0.0, rng.standard_normal((60, 4)))
    y = np.arange(60) % 3
    ours = SVC(kernel=function, tol=1e-6).fit(storage(X), y)
    theirs = LIBSVM(kernel=function, tol=1e-6).fit(storage(X), y)
    expected = theirs.decision_function(storage(X))
    np.testing.assert_allclose(ours.decision_function(storage(X)), expected, atol=1e-3)
    np.testing.assert_allclose(ours.decision_function(X), expected, atol=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "sigmoid"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [1.7e308, 1e200, 1e154, 1e-160, 1e-200, 5e-324])
def test_finite_values_of_any_size_end_in_finite_numbers_or_a_sentence(kernel, sparse, size):
    X, y = noisy(30, 2)
    X = np.sign(X) * size if size in (1.7e308, 5e-324) else X * size
    rows = sp.csr_array(X) if sparse else X
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model = quiet(SVC(kernel=kernel, max_iter=20_000), rows, y)
        except ValueError as error:
            assert "so large" in str(error) or "so small" in str(error)
            return
        scores = model.decision_function(rows)
    proof = model.fit_.certificate
    assert np.isfinite(scores).all() and np.isfinite(proof.objective) and not np.isnan(proof.gap)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("size", [1.7e308, -1.7e308, 1e200])
def test_a_prediction_far_away_is_finite_or_refused(kernel, size):
    X, y = noisy(40, 3)
    model = SVC(kernel=kernel).fit(X, y)
    rows = np.vstack([X[:2], [[size, -size, 1.0]]])
    try:
        scores = model.decision_function(rows)
    except ValueError as error:
        assert "row 2" in str(error) and "overflow" in str(error)
        return
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("far", [0.0, 3e8])
def test_polynomials_of_columns_in_raw_units_end_soon(seed, far):
    """Kernel values from 1 to 1e24, or 1e25 with twelve digits in common: a dozen rows must not take ten million steps."""
    rng = np.random.default_rng(seed)
    X = np.round(1.2 * rng.standard_normal((14, 3))) * [800.0, 16.0, 0.012] + far
    y = np.tile([0, 1], 7)
    model = quiet(SVC(C=100.0, kernel="poly", degree=3, gamma=31.0 if far == 0 else 0.33, coef0=1.0), X, y)
    assert model.n_iter_.sum() <= 5_000_000  # half of the limit, which most of these used to meet
    assert model.fit_.status in (*REACHED, Status.STALLED)
