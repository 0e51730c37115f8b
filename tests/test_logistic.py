"""Logistic regression against arithmetic in forty digits, against its peers, and against itself.

    min  C Σ sᵢ ℓᵢ + (1−ρ)/2 ‖W‖² + ρ‖W‖₁

The truth of a certificate is F(coef_, intercept_) − min F for the model as it stands, both computed with mpmath from the
rows themselves.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn.linear_model
import statsmodels.api as sm
from mpmath import mpf
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import separatrix
from separatrix import LogisticRegression, SeparationWarning, Status, as_source, scan_csv, scan_parquet
from separatrix.objectives.linear import LinearObjective

SOLVERS = ["auto", "newton", "lbfgs", "newton-cg", "prox_newton", "gradient", "sgd"]
SMOOTH_SOLVERS = ["newton", "lbfgs", "newton-cg"]
PENALTIES: dict[str, dict[str, Any]] = {
    "l2": {"C": 1.0},
    "l1": {"C": 0.5, "l1_ratio": 1.0},
    "elastic net": {"C": 2.0, "l1_ratio": 0.4},
    "none": {"C": np.inf},
}
CLASSES = [2, 3]
STORAGES: dict[str, Any] = {
    "dense": lambda X: X,
    "sparse": sp.csr_array,
    "float32": lambda X: X.astype(np.float32),
}
EPS = float(np.finfo(float).eps)


def steps(solver: str, penalty: str = "l2") -> int:
    """Enough for the solver; those that need a penalty for their proof have no reason to stop without one."""
    if penalty == "none":
        return {"gradient": 800, "sgd": 400, "prox_newton": 40}.get(solver, 200)
    return {"gradient": 2000, "sgd": 1500}.get(solver, 200)


# -- the truth --------------------------------------------------------------------------------------------------------


def number(value: Any) -> mpf:
    return mpf(float(value))


@pytest.fixture(autouse=True)
def forty_digits() -> Iterator[None]:
    with mpmath.workdps(40):
        yield


@dataclass
class Exact:
    """F(W, b) = C Σ s ℓ + (1−ρ)/2 Σ f w² + ρ Σ f |w| in forty digits; C = ∞ is Σ s ℓ alone."""

    X: np.ndarray
    codes: np.ndarray
    C: float = 1.0
    ratio: float = 0.0
    weights: np.ndarray | None = None
    offset: np.ndarray | None = None
    intercept: bool = True
    factors: np.ndarray | None = None

    def __post_init__(self) -> None:
        n, self.d = self.X.shape
        self.K = int(self.codes.max()) + 1
        self.m = 1 if self.K == 2 else self.K
        weights = np.ones(n) if self.weights is None else np.asarray(self.weights)
        kept = np.flatnonzero(weights)
        self.rows = [[*map(number, self.X[i]), mpf(1)] for i in kept]
        self.y = [int(self.codes[i]) for i in kept]
        self.s = [number(weights[i]) for i in kept]
        offset = np.zeros((n, self.m)) if self.offset is None else np.reshape(self.offset, (n, -1))
        self.o = [[number(value) for value in offset[i]] for i in kept]
        plain = np.isinf(self.C)
        self.scale = mpf(1) if plain else number(self.C)
        strength = np.ones(self.d) if self.factors is None else np.asarray(self.factors)
        self.q = [mpf(0) if plain else (1 - number(self.ratio)) * number(f) for f in strength]
        self.l = [mpf(0) if plain else number(self.ratio) * number(f) for f in strength]

    def table(self, coef: Any, intercept: Any) -> list[list[mpf]]:
        """θ, a row a score, the intercept last."""
        W, b = np.atleast_2d(coef), np.atleast_1d(intercept)
        return [[*(number(value) for value in W[k]), number(b[k])] for k in range(self.m)]

    def probabilities(self, theta: list[list[mpf]], i: int) -> list[mpf]:
        scores = [mpmath.fdot(self.rows[i], theta[k]) + self.o[i][k] for k in range(self.m)]
        scores = [mpf(0), *scores] if self.m == 1 else scores
        top = max(scores)
        powers = [mpmath.exp(score - top) for score in scores]
        total = mpmath.fsum(powers)
        return [power / total for power in powers]

    def value(self, coef: Any, intercept: Any) -> mpf:
        return self._value(self.table(coef, intercept))

    def _value(self, theta: list[list[mpf]]) -> mpf:
        loss = mpmath.fsum(
            -s * mpmath.log(self.probabilities(theta, i)[y])
            for i, (s, y) in enumerate(zip(self.s, self.y, strict=True))
        )
        penalty = mpmath.fsum(
            self.q[j] * row[j] ** 2 / 2 + self.l[j] * abs(row[j]) for row in theta for j in range(self.d)
        )
        return self.scale * loss + penalty

    def minimum(self, model: Any) -> mpf:
        """min F by Newton's method on the support of a model near it, with the optimality of the support checked."""
        theta = self.table(model.coef_, model.intercept_)
        absolute = any(self.l)
        sign = [[int(np.sign(float(v))) if self.l[j] else 0 for j, v in enumerate(row[:-1])] for row in theta]
        free = [
            (k, j)
            for k in range(self.m)
            for j in range(self.d + self.intercept)
            if not (j < self.d and self.l[j] and sign[k][j] == 0)
        ]
        if self.m > 1:  # adding one vector to all classes changes no score: hold the last class where nothing else does
            for j in range(self.d + 1):
                if j == self.d or not (self.q[j] or self.l[j]):
                    free = [at for at in free if at != (self.m - 1, j)]
        for _ in range(60):
            gradient, hessian = self._derivatives(theta, sign, free)
            step = mpmath.lu_solve(hessian, -gradient)
            t = mpf(1)
            before = self._value(theta)
            while True:
                moved = [row[:] for row in theta]
                for (k, j), change in zip(free, step, strict=True):
                    moved[k][j] += t * change
                if self._value(moved) <= before + mpf(10) ** -30 * abs(before):
                    break
                t /= 2
            theta = moved
            if mpmath.norm(step) < mpf(10) ** -18 * (1 + max(abs(v) for row in theta for v in row)):
                break
        else:
            raise AssertionError("no optimum found")
        if absolute:
            everything = [(k, j) for k in range(self.m) for j in range(self.d)]
            slopes, _ = self._derivatives(theta, sign, everything)
            for (k, j), slope in zip(everything, slopes, strict=True):
                if sign[k][j]:
                    assert mpmath.sign(theta[k][j]) == sign[k][j], "another support"
                elif self.l[j]:
                    assert abs(slope) <= self.l[j], "another support"
        return self._value(theta)

    def _derivatives(self, theta: Any, sign: Any, at: Any) -> tuple[mpmath.matrix, mpmath.matrix]:
        gradient, hessian = mpmath.matrix(len(at), 1), mpmath.matrix(len(at), len(at))
        shift = 1 if self.m == 1 else 0
        for i, (s, y) in enumerate(zip(self.s, self.y, strict=True)):
            p, x, weight = self.probabilities(theta, i), self.rows[i], self.scale * s
            for a, (k, j) in enumerate(at):
                k += shift
                gradient[a] += weight * (p[k] - (k == y)) * x[j]
                for b, (l, h) in enumerate(at[: a + 1]):  # noqa: E741  # name of the formula
                    l += shift  # noqa: E741
                    entry = weight * p[k] * ((k == l) - p[l]) * x[j] * x[h]
                    hessian[a, b] += entry
                    if a != b:
                        hessian[b, a] += entry
        for a, (k, j) in enumerate(at):
            if j < self.d:
                gradient[a] += self.q[j] * theta[k][j] + self.l[j] * sign[k][j]
                hessian[a, a] += self.q[j]
        return gradient, hessian


def problem(K: int, n: int = 48, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes; the values are short, so float32 holds them, and some are zero."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, d)) * 32) / 32
    X[:, -1] = np.where(rng.random(n) < 0.5, 0.0, X[:, -1])
    scores = X @ rng.standard_normal((d, K)) + rng.gumbel(size=(n, K))
    codes = scores.argmax(axis=1)
    codes[:K] = np.arange(K)
    return X, codes


def floats(X: Any, codes: np.ndarray, model: Any, C: float, ratio: float = 0.0, **more: Any) -> float:
    """F in ordinary arithmetic, of a model or of another with coef_ and intercept_."""
    W, b = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    eta = X @ W.T + b + np.reshape(more.get("offset", np.zeros(X.shape[0])), (X.shape[0], -1))
    eta = np.column_stack([np.zeros(len(eta)), eta]) if eta.shape[1] == 1 else eta
    losses = np.logaddexp.reduce(eta, axis=1) - eta[np.arange(len(eta)), codes]
    loss = float((losses * more.get("weights", 1.0)).sum())
    return loss if np.isinf(C) else C * loss + (1 - ratio) / 2 * float((W**2).sum()) + ratio * float(np.abs(W).sum())


@cache
def truth(penalty: str, K: int) -> tuple[Exact, mpf]:
    X, codes = problem(K)
    parameters = PENALTIES[penalty]
    exact = Exact(X, codes, parameters["C"], parameters.get("l1_ratio", 0.0))
    with mpmath.workdps(40):
        return exact, exact.minimum(LogisticRegression(**parameters, tol=1e-12).fit(X, codes))


def fitted(*args: Any, weights: Any = None, offset: Any = None, **parameters: Any) -> LogisticRegression:
    """A fit whose warnings are not of interest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(**parameters).fit(*args, sample_weight=weights, offset=offset)


def assert_bounds(model: Any, exact: Exact, minimum: mpf) -> mpf:
    """Certificate ≥ truth; returns the truth."""
    above = exact.value(model.coef_, model.intercept_) - minimum
    gap = model.fit_.certificate.gap
    assert gap >= above, f"claims {gap:.3g}, but is {float(above):.3g} above the optimum ({model.fit_.status.name})"
    return above


# -- all solvers, all penalties, all storages -------------------------------------------------------------------------


each_solver = pytest.mark.parametrize("solver", SOLVERS)
each_penalty = pytest.mark.parametrize("penalty", list(PENALTIES))
each_number = pytest.mark.parametrize("K", CLASSES)
each_storage = pytest.mark.parametrize("storage", list(STORAGES))


@each_solver
@each_penalty
@each_number
@each_storage
def test_every_solver_reaches_the_optimum(solver: str, penalty: str, K: int, storage: str) -> None:
    X, codes = problem(K)
    exact, minimum = truth(penalty, K)
    tol = 1e-11 if solver in ("gradient", "sgd") else 1e-12
    model = fitted(
        STORAGES[storage](X), codes, **PENALTIES[penalty], solver=solver, tol=tol, max_iter=steps(solver, penalty)
    )
    above = assert_bounds(model, exact, minimum)
    assert above <= 1e-8 * minimum
    certificate = model.fit_.certificate
    assert certificate.objective == pytest.approx(float(minimum + above), rel=1e-12)
    if model.fit_.status is Status.CONVERGED:
        assert certificate.relative_gap <= tol
    assert np.isfinite(model.coef_).all()


@each_solver
@each_penalty
@each_number
def test_certificates_are_above_the_truth_at_every_tolerance_and_wherever_it_stops(
    solver: str, penalty: str, K: int
) -> None:
    X, codes = problem(K)
    exact, minimum = truth(penalty, K)
    hopeless = penalty == "none" and solver in ("gradient", "sgd")  # nothing for their proof to rest on
    for tol in (1e-2, 1e-4) if hopeless else (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8):
        most = 100 if hopeless else steps(solver, penalty)
        model = fitted(X, codes, **PENALTIES[penalty], solver=solver, tol=tol, max_iter=most)
        above, certificate = assert_bounds(model, exact, minimum), model.fit_.certificate
        if model.fit_.status is Status.CONVERGED:
            assert certificate.gap <= tol * max(1.0, certificate.objective)
            assert above <= tol * max(1, minimum + above)
    for most in (0, 1, 2, 3, 5):
        model = fitted(X, codes, **PENALTIES[penalty], solver=solver, tol=1e-15, max_iter=most)
        assert_bounds(model, exact, minimum)
        assert model.n_iter_[0] <= most


@each_solver
@each_penalty
@each_number
def test_certificates_hold_to_the_last_digit(solver: str, penalty: str, K: int) -> None:
    """Asked for more than double precision has: rounding of the rows' sums and of the answer itself count too."""
    X, codes = problem(K)
    exact, minimum = truth(penalty, K)
    for tol in (1e-14, 0.0):
        most = 100 if solver in ("gradient", "sgd") else 30
        model = fitted(X, codes, **PENALTIES[penalty], solver=solver, tol=tol, max_iter=most)
        assert model.fit_.certificate.gap >= 0
        assert_bounds(model, exact, minimum)


@each_solver
@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic net"])
@each_number
def test_certificates_are_not_much_above_the_truth(solver: str, penalty: str, K: int) -> None:
    X, codes = problem(K)
    exact, minimum = truth(penalty, K)
    for tol in (1e-4, 1e-6, 1e-8):
        model = fitted(X, codes, **PENALTIES[penalty], solver=solver, tol=tol, max_iter=2000)
        above = assert_bounds(model, exact, minimum)
        if model.fit_.status is Status.STALLED and solver == "sgd" and penalty == "l1":
            continue  # it can only be too close to the optimum to prove it by a bound of first order
        assert model.fit_.status is Status.CONVERGED
        allowed = 100 * above + 1e3 * EPS * minimum
        if penalty == "l1":  # a dual point scaled into its box is of first order where the truth is of second
            allowed += 30 * mpmath.sqrt(above * minimum)
        assert model.fit_.certificate.gap <= allowed


CASES = ["weights", "offset", "no intercept", "zero weights and offset"]


@cache
def weighted_truth(penalty: str, case: str) -> tuple[Exact, mpf]:
    X, codes = problem(2, seed=1)
    rng, parameters = np.random.default_rng(2), PENALTIES[penalty]
    weights = rng.uniform(0.2, 3.0, len(X)) if case == "weights" else None
    offset = rng.standard_normal(len(X)) if "offset" in case else None
    if case.startswith("zero"):
        weights = (rng.random(len(X)) < 0.8) * 1.0
    intercept = case != "no intercept"
    ratio = parameters.get("l1_ratio", 0.0)
    exact = Exact(X, codes, parameters["C"], ratio, weights, offset, intercept)
    model = at_zero(3)
    if ratio:  # the support has to be found first
        model = fitted(X, codes, tol=1e-13, weights=weights, offset=offset, fit_intercept=intercept, **parameters)
    with mpmath.workdps(40):
        return exact, exact.minimum(model)


@pytest.mark.parametrize("case", CASES)
@each_penalty
@each_solver
def test_certificates_with_weights_and_offsets(solver: str, penalty: str, case: str) -> None:
    exact, minimum = weighted_truth(penalty, case)
    X, codes = exact.X, exact.codes
    held: dict[str, Any] = {"weights": exact.weights, "offset": exact.offset, "fit_intercept": exact.intercept}
    held |= PENALTIES[penalty]
    for tol, most in ((1e-4, 200), (1e-10, steps(solver, penalty)), (0.0, 1), (0.0, 3)):
        model = fitted(X, codes, solver=solver, tol=tol, max_iter=most, **held)
        above = assert_bounds(model, exact, minimum)
        if tol == 1e-10:
            assert above <= 1e-8 * minimum


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("K", [2, 3, 4])
def test_no_fit_is_further_above_another_than_its_certificate_allows(seed: int, K: int) -> None:
    """F(θ) − F(θ') ≤ gap(θ) for every θ': fits that stop anywhere hold each other to their word."""
    X, codes = problem(K, n=40, seed=seed)
    strengths = ((1.0, 0.5), (1.0, 5.0), (0.4, 2.0), (0.0, 1.0), (0.0, np.inf))
    for ratio, C in strengths:
        models = []
        for tol, most in ((1e-1, 100), (1e-3, 100), (1e-5, 100), (1e-10, 100), (0.0, 1), (0.0, 2), (0.0, 3), (0.0, 5)):
            for solver in ("prox_newton",) if ratio else ("newton", "lbfgs", "newton-cg", "prox_newton"):
                models.append(fitted(X, codes, C=C, l1_ratio=ratio, solver=solver, tol=tol, max_iter=most))
        values = np.array([floats(X, codes, model, C, ratio) for model in models])
        best = values.min()
        for model, value in zip(models, values, strict=True):
            if model.fit_.status is not Status.SEPARATED:
                gap = model.fit_.certificate.gap
                assert gap >= value - best - 1e-12 * best, (ratio, C, model, model.fit_.status.name)


# -- certificates on harder data --------------------------------------------------------------------------------------


def at_zero(d: int) -> LogisticRegression:
    """Where Newton's method in forty digits may start whatever the columns are like."""
    model = LogisticRegression()
    model.coef_, model.intercept_ = np.zeros((1, d)), np.zeros(1)
    return model


@cache
def nearly_equal(nearness: float, C: float) -> tuple[Exact, mpf]:
    X, codes = problem(2, d=2, seed=3)
    X = np.column_stack([X, X[:, 1] + nearness * np.random.default_rng(4).standard_normal(len(X))])
    exact = Exact(X, codes, C)
    with mpmath.workdps(40):
        return exact, exact.minimum(at_zero(3))


@pytest.mark.parametrize("nearness", [1e-4, 1e-6, 1e-7, 1e-8, 1e-9])
@pytest.mark.parametrize("C", [np.inf, 1.0, 1e6])
@pytest.mark.parametrize("solver", SOLVERS)
def test_certificates_of_nearly_equal_columns(solver: str, C: float, nearness: float) -> None:
    """A direction that rounding hides from the Hessian may still lead far down: what is not seen is not proven."""
    exact, minimum = nearly_equal(nearness, C)
    assert_bounds(fitted(exact.X, exact.codes, C=C, solver=solver, tol=1e-8, max_iter=50), exact, minimum)


@pytest.mark.parametrize("solver", ["auto", *SMOOTH_SOLVERS])
def test_a_column_missing_from_the_sample_is_not_missing_from_the_proof(solver: str) -> None:
    rng = np.random.default_rng(5)
    n = 20_000
    X = np.column_stack([rng.standard_normal((n, 2)), np.zeros(n)])
    drawn = as_source(X).sample(2000)
    assert drawn is not None
    rare = np.setdiff1d(np.arange(n), drawn[1])[:40]
    X[rare, 2] = 0.01 * rng.standard_normal(40)
    codes = (X[:, 0] + rng.logistic(size=n) > 0).astype(int)
    codes[rare] = (X[rare, 2] + 0.01 * rng.standard_normal(40) > 0).astype(int)
    best = floats(X, codes, fitted(X, codes, C=np.inf, tol=1e-13, solver="newton"), np.inf)
    for tol in (1e-4, 1e-6, 1e-8):
        model = fitted(X, codes, C=np.inf, tol=tol, solver=solver)
        above = floats(X, codes, model, np.inf) - best
        assert model.fit_.certificate.gap >= above - 1e-9, (tol, model.fit_.status.name)


@cache
def far_away(far: float, C: float) -> tuple[Exact, mpf]:
    X, codes = problem(2, seed=6)
    exact = Exact(X + np.array([far, 0.0, -far]), codes, C)
    with mpmath.workdps(40):
        return exact, exact.minimum(at_zero(3))


@pytest.mark.parametrize("far", [100.0, 999.0, 1e5, 1e8])
@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("solver", SOLVERS)
def test_certificates_far_from_the_origin(solver: str, far: float, C: float) -> None:
    """The intercept in the units of the data is large there, and its last digit moves every score."""
    exact, minimum = far_away(far, C)
    X, codes = exact.X, exact.codes
    for tol in (1e-4, 1e-8, 1e-13):
        model = fitted(X, codes, C=C, solver=solver, tol=tol, max_iter=50)
        above = assert_bounds(model, exact, minimum)
        if model.fit_.status is Status.CONVERGED:
            assert above <= max(tol, 1e-13) * max(1, minimum)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("separable", [False, True], ids=["overlap", "separable"])
def test_tol_is_a_promise_whatever_the_strength(solver: str, C: float, separable: bool) -> None:
    X, codes = problem(2, seed=7)
    if separable:
        X, codes = X[np.abs(X[:, 0]) > 0.3], codes[np.abs(X[:, 0]) > 0.3]
        codes = (X[:, 0] > 0).astype(int)
    for tol in (1e-1, 1e-2, 1e-4):
        model = fitted(X, codes, C=C, solver=solver, tol=tol, max_iter=200)
        certificate = model.fit_.certificate
        assert certificate.objective == pytest.approx(floats(X, codes, model, C), rel=1e-10)
        if model.fit_.status is Status.CONVERGED:
            assert certificate.relative_gap <= tol


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_certificate_has_the_objective_at_the_answer(solver: str) -> None:
    X, codes = problem(2, n=100, seed=8)
    for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6):
        model = fitted(X, codes, solver=solver, tol=tol, max_iter=1000)
        assert model.fit_.certificate.objective == pytest.approx(floats(X, codes, model, 1.0), rel=1e-11)


@pytest.mark.parametrize("solver", SOLVERS)
def test_large_problems_that_start_on_a_sample(solver: str) -> None:
    rng = np.random.default_rng(9)
    n = 9000
    X = rng.standard_normal((n, 4))
    weights, offset = rng.integers(0, 3, n) * 1.0, rng.standard_normal(n)
    codes = (X @ [1.0, -1.0, 0.5, 0.0] + offset + rng.logistic(size=n) > 0).astype(int)
    kept = weights > 0
    want = sm.GLM(
        codes[kept], sm.add_constant(X[kept]), sm.families.Binomial(), offset=offset[kept], freq_weights=weights[kept]
    ).fit(tol=1e-14, maxiter=50)
    model = fitted(
        X,
        codes,
        C=1e12,
        solver=solver,
        weights=weights,
        offset=offset,
        tol=1e-13,
        max_iter=300 if solver != "sgd" else 30,
    )
    if solver not in ("gradient", "sgd"):
        np.testing.assert_allclose(model.coef_[0], want.params[1:], rtol=1e-6, atol=1e-7)
        assert model.intercept_[0] == pytest.approx(want.params[0], rel=1e-6, abs=1e-7)
    best = -float(want.llf)
    above = floats(X[kept], codes[kept], model, np.inf, weights=weights[kept], offset=offset[kept]) - best
    assert model.fit_.certificate.gap / 1e12 >= above - 1e-9 * best
    assert above <= 1e-8 * best


# -- what a fit says --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_stopping_early_is_said_with_the_gap(solver: str) -> None:
    X, codes = problem(3)
    with pytest.warns(ConvergenceWarning) as caught:
        model = LogisticRegression(solver=solver, tol=1e-12, max_iter=1).fit(X, codes)
    assert model.fit_.status is Status.MAX_ITER
    message = str(caught[0].message)
    assert "max_iter" in message and f"{model.fit_.certificate.gap:.3g} above the optimum" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression(solver=solver, tol=1e-3, max_iter=2000).fit(X, codes)
    assert model.fit_.status is Status.CONVERGED
    assert model.fit_.certificate.relative_gap <= 1e-3
    assert model.fit_.passes >= 1 and model.fit_.iterations == model.n_iter_[0] == len(model.fit_.trace) - 1


def test_the_solver_in_use_is_named() -> None:
    X, codes = problem(2)
    assert fitted(X, codes).solver_ == "newton"
    assert fitted(X, codes, l1_ratio=0.5).solver_ == "prox_newton"
    assert fitted(X, codes, solver="newton", penalty="l1").solver_ == "prox_newton"
    assert fitted(X, codes, solver="liblinear").solver_ == "newton"
    assert fitted(np.tile(X, 120), codes).solver_ == "newton"  # in the Gram matrix of the rows
    for solver in ("newton", "lbfgs", "newton-cg", "prox_newton", "gradient", "sgd"):
        assert fitted(X, codes, solver=solver).solver_ == solver


@pytest.mark.parametrize("solver", ["auto", *SMOOTH_SOLVERS, "prox_newton"])
@pytest.mark.parametrize("K", CLASSES)
def test_separable_classes_without_a_penalty_are_diagnosed(solver: str, K: int) -> None:
    rng = np.random.default_rng(10)
    codes = np.arange(60) % K
    X = rng.uniform(-1, 1, (60, 2)) + 4.0 * np.column_stack([codes == 0, codes == 1])
    with pytest.warns(SeparationWarning):
        model = LogisticRegression(C=np.inf, solver=solver, max_iter=300).fit(X, codes)
    assert model.fit_.status is Status.SEPARATED
    assert np.isfinite(model.coef_).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LogisticRegression().fit(X, codes).fit_.status is Status.CONVERGED


@pytest.mark.parametrize("solver", SOLVERS)
def test_classes_that_are_separable_in_part_are_no_fault_of_the_columns(solver: str) -> None:
    X, codes = problem(3, n=40, seed=3)  # one class can be told from the others, these overlap
    for tol in (1e-4, 1e-13):
        model = fitted(X, codes, C=np.inf, solver=solver, tol=tol, max_iter=100)
        assert np.isfinite(model.coef_).all()
        if solver in ("auto", "newton", "lbfgs", "prox_newton"):
            assert model.fit_.status is Status.SEPARATED


# -- peers ------------------------------------------------------------------------------------------------------------


SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "balanced": {"class_weight": "balanced"},
    "class weights": {"class_weight": {0: 0.5, 1: 3.0}},
    "no intercept": {"fit_intercept": False},
    "weights": {"weights": True},
    "weights, balanced": {"weights": True, "class_weight": "balanced"},
    "small C": {"C": 1e-4},
    "large C": {"C": 1e4},
}


@pytest.mark.parametrize("setting", list(SETTINGS))
@each_number
def test_coefficients_of_scikit_learn(setting: str, K: int) -> None:
    X, codes = problem(K, n=150, d=4, seed=11)
    parameters = dict(SETTINGS[setting])
    weights = np.random.default_rng(12).uniform(0, 2, len(X)) if parameters.pop("weights", False) else None
    peer = sklearn.linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-13, max_iter=200, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its last line search may run out of digits
        peer.fit(X, codes, sample_weight=weights)
    model = fitted(X, codes, tol=1e-15, weights=weights, **parameters)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        model.intercept_ - model.intercept_.mean() * (K > 2),
        peer.intercept_ - peer.intercept_.mean() * (K > 2),
        rtol=1e-8,
        atol=1e-8,
    )
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=1e-7)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))


@pytest.mark.parametrize("ratio", [0.5, 1.0])
@each_number
def test_sparse_coefficients_of_scikit_learn(ratio: float, K: int) -> None:
    X, codes = problem(K, n=150, d=6, seed=13)
    peer = sklearn.linear_model.LogisticRegression(solver="saga", l1_ratio=ratio, C=0.1, tol=1e-12, max_iter=20_000)
    peer.fit(X, codes)
    model = fitted(X, codes, l1_ratio=ratio, C=0.1, tol=1e-14)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-7)
    assert ((model.coef_ == 0) == (np.abs(peer.coef_) < 1e-9)).all()
    assert (model.coef_ == 0).any()


def test_older_names_of_penalties() -> None:
    X, codes = problem(2)
    plain = fitted(X, codes, tol=1e-12)
    np.testing.assert_allclose(fitted(X, codes, penalty="l2", l1_ratio=0.7, tol=1e-12).coef_, plain.coef_)
    one = fitted(X, codes, penalty="l1", tol=1e-12)
    np.testing.assert_allclose(one.coef_, fitted(X, codes, l1_ratio=1.0, tol=1e-12).coef_)
    none = fitted(X, codes, penalty=None, tol=1e-12)
    np.testing.assert_allclose(none.coef_, fitted(X, codes, C=np.inf, tol=1e-12).coef_)


def test_glmnets_scaling() -> None:
    """(1/n) Σ ℓ + λ((1−ρ)/2 ‖w‖² + ρ‖w‖₁) has its minimum where C = 1/(nλ) has it: no gradient is left there."""
    X, codes = problem(2, n=80)
    n, strength, ratio = len(X), 0.03, 0.4
    model = fitted(X, codes, C=1 / (n * strength), l1_ratio=ratio, tol=1e-15)
    w = model.coef_[0]
    p = model.predict_proba(X)[:, 1]
    slope = X.T @ (p - codes) / n + strength * (1 - ratio) * w
    used = w != 0
    assert used.any()
    np.testing.assert_allclose(slope[used], -strength * ratio * np.sign(w[used]), atol=1e-9)
    assert (np.abs(slope[~used]) <= strength * ratio).all()
    assert (p - codes).mean() == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize("solver", ["auto", *SMOOTH_SOLVERS])
@pytest.mark.parametrize("case", ["plain", "offset", "freq weights", "both", "both with zeros"])
def test_maximum_likelihood_of_statsmodels(solver: str, case: str) -> None:
    X, codes = problem(2, n=200, d=3, seed=14)
    rng = np.random.default_rng(15)
    offset = rng.standard_normal(len(X)) if case.startswith(("offset", "both")) else None
    weights = rng.integers(1, 4, len(X)) * 1.0 if case.startswith(("freq", "both")) else None
    if case.endswith("zeros"):
        assert weights is not None
        weights[::3] = 0.0
    kept = slice(None) if weights is None else weights > 0
    want = sm.GLM(
        codes[kept],
        sm.add_constant(X[kept]),
        sm.families.Binomial(),
        offset=None if offset is None else offset[kept],
        freq_weights=None if weights is None else weights[kept],
    ).fit(tol=1e-15, maxiter=100)
    model = fitted(X, codes, C=np.inf, solver=solver, weights=weights, offset=offset, tol=1e-15)
    # A gap of 1e-15 · 100 leaves √(2γ/H) = 1e-7 to the coefficients where the last step is not one of Newton's.
    close = 1e-8 if solver in ("auto", "newton") else 3e-7
    np.testing.assert_allclose(model.coef_[0], want.params[1:], rtol=close, atol=close)
    assert model.intercept_[0] == pytest.approx(want.params[0], rel=close, abs=close)
    assert model.fit_.certificate.objective == pytest.approx(-want.llf, rel=1e-10)


def test_a_step_of_newtons_method_is_weighted_least_squares() -> None:
    X, codes = problem(2)
    one = fitted(X, codes, C=np.inf, solver="newton", max_iter=1, tol=0.0)
    Z = np.column_stack([X, np.ones(len(X))])
    working = (codes - 0.5) / 0.25  # z = η + W⁻¹(y − p) at θ = 0
    want = np.linalg.lstsq(0.5 * Z, 0.5 * working, rcond=None)[0]
    np.testing.assert_allclose(np.append(one.coef_[0], one.intercept_), want, rtol=1e-10)


# -- priors, factors and bounds ---------------------------------------------------------------------------------------


def newton_float(X: np.ndarray, codes: np.ndarray, K: int, Q: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, float]:
    """min Σ ℓ + ½(w − μ)ᵀQ(w − μ) with SciPy's trust region, the intercept last in each row of θ and without penalty."""
    Z, m = np.column_stack([X, np.ones(len(X))]), 1 if K == 2 else K
    p = Z.shape[1]
    at = (np.arange(m)[:, None] * p + np.arange(p - 1)).ravel()

    def parts(flat: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        eta = Z @ flat.reshape(m, p).T
        eta = np.column_stack([np.zeros(len(Z)), eta]) if m == 1 else eta
        log_sum = np.logaddexp.reduce(eta, axis=1)
        P = np.exp(eta - log_sum[:, None])
        R = P - np.eye(K)[codes]
        P, R = (P[:, 1:], R[:, 1:]) if m == 1 else (P, R)
        gone = flat[at] - mean.ravel()
        value = float((log_sum - eta[np.arange(len(Z)), codes]).sum() + 0.5 * gone @ Q @ gone)
        gradient = (R.T @ Z).ravel()
        gradient[at] += Q @ gone
        hessian = np.einsum("ik,kl,ij,ih->kjlh", P, np.eye(m), Z, Z) - np.einsum("ik,il,ij,ih->kjlh", P, P, Z, Z)
        hessian = hessian.reshape(m * p, m * p)
        hessian[np.ix_(at, at)] += Q
        return value, gradient, hessian

    found = scipy.optimize.minimize(
        lambda f: parts(f)[0],
        np.zeros(m * p),
        jac=lambda f: parts(f)[1],
        hess=lambda f: parts(f)[2],
        method="trust-ncg",
        options={"gtol": 1e-9},
    )
    flat = found.x
    for _ in range(3):  # to the last digit
        _, gradient, hessian = parts(flat)
        flat = flat - np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
    return flat.reshape(m, p), parts(flat)[0]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["scalar", "vector", "matrix"])
@each_number
def test_gaussian_priors(solver: str, kind: str, K: int) -> None:
    X, codes = problem(K, n=60, seed=16)
    rng, m, d = np.random.default_rng(17), 1 if K == 2 else K, 3
    root = rng.standard_normal((d, d))
    mean: Any = {"scalar": 0.5, "vector": np.array([0.5, -1.0, 0.0]), "matrix": rng.standard_normal(d)}[kind]
    covariance: Any = {"scalar": 0.7, "vector": np.array([0.1, 2.0, 1.0]), "matrix": root @ root.T + 0.3 * np.eye(d)}[
        kind
    ]
    full = covariance if kind == "matrix" else np.diag(np.broadcast_to(covariance, d))
    Q = np.kron(np.eye(m), np.linalg.inv(full))
    theta, best = newton_float(X, codes, K, Q, np.broadcast_to(mean, (m, d)))
    model = fitted(X, codes, prior=(mean, covariance), solver=solver, tol=1e-13, max_iter=steps(solver))
    # A gap of 1e-10 · F leaves √(2γ/λ) to the coefficients.
    np.testing.assert_allclose(model.coef_, theta[:, :d], atol=2e-4)
    if K == 2:
        np.testing.assert_allclose(model.intercept_, theta[:, d], atol=2e-4)
    gone = (model.coef_ - mean).ravel()
    value = floats(X, codes, model, np.inf) + 0.5 * gone @ Q @ gone
    assert value <= best * (1 + 1e-10)
    assert model.fit_.certificate.objective == pytest.approx(value, rel=1e-10)
    assert model.fit_.certificate.gap >= value - best - 1e-12 * best
    if solver in ("auto", "newton"):
        np.testing.assert_allclose(model.coef_, theta[:, :d], rtol=1e-8, atol=1e-9)
        assert model.fit_.certificate.relative_gap < 1e-11


def test_a_prior_of_all_coefficients_at_once() -> None:
    X, codes = problem(3, n=60, seed=18)
    rng = np.random.default_rng(19)
    root, mean = rng.standard_normal((9, 9)), rng.standard_normal((3, 3))
    covariance = root @ root.T + np.eye(9)
    theta, _ = newton_float(X, codes, 3, np.linalg.inv(covariance), mean)
    model = fitted(X, codes, prior=(mean, covariance), tol=1e-13)
    np.testing.assert_allclose(model.coef_, theta[:, :3], rtol=1e-8, atol=1e-8)


def test_a_prior_of_variance_v_is_C() -> None:
    X, codes = problem(3)
    np.testing.assert_allclose(
        fitted(X, codes, prior=(0.0, 0.3), tol=1e-14).coef_,
        fitted(X, codes, C=0.3, tol=1e-14).coef_,
        rtol=1e-9,
        atol=1e-10,
    )


def test_a_prior_holds_far_from_the_origin_and_in_any_units() -> None:
    """The penalty is on the coefficients as they are, though the solver sees centred and rescaled columns."""
    X, codes = problem(2, n=60, seed=20)
    want, _ = newton_float(X, codes, 2, np.diag([1.0, 0.5, 2.0]), np.array([0.3, -0.2, 1.0]))
    far = fitted(X + np.array([1e5, 0, 0]), codes, prior=([0.3, -0.2, 1.0], [1.0, 2.0, 0.5]), tol=1e-13)
    np.testing.assert_allclose(far.coef_[0], want[0, :3], rtol=1e-6)
    unit = np.array([1e100, 1.0, 1e-100])
    prior = (np.array([0.3, -0.2, 1.0]) / unit, np.array([1.0, 2.0, 0.5]) / unit**2)
    other = fitted(X * unit, codes, prior=prior, tol=1e-13)
    np.testing.assert_allclose(other.coef_[0] * unit, want[0, :3], rtol=1e-8)


def kkt(X: np.ndarray, codes: np.ndarray, model: Any, low: Any, high: Any, l1: Any, l2: Any) -> float:
    """The largest violation of the optimality conditions of Σ ℓ + Σ l₂w²/2 + l₁|w| within bounds."""
    w, p = model.coef_[0], model.predict_proba(X)[:, 1]
    slope = X.T @ (p - codes) + np.asarray(l2) * w
    low, high, l1 = (np.broadcast_to(np.asarray(a, dtype=float), w.shape) for a in (low, high, l1))
    assert ((w >= low) & (w <= high)).all()
    least = np.where(w > 0, slope + l1, slope - l1)
    most = np.where(w < 0, slope - l1, slope + l1)
    least, most = np.where(w <= low, -np.inf, least), np.where(w >= high, np.inf, most)
    return max(float(np.maximum(least, 0).max()), float(np.maximum(-most, 0).max()), abs(float((p - codes).sum())))


BOUNDS: dict[str, tuple[Any, Any]] = {
    "box": (-0.2, 0.3),
    "above": (0.0, np.inf),
    "below": (None, 0.1),
    "away from zero": (0.5, 2.0),
    "a column each": ([-np.inf, 0.0, -0.1], [0.1, np.inf, np.inf]),
    "fixed": ([0.25, -np.inf, -np.inf], [0.25, np.inf, np.inf]),
}


@pytest.mark.parametrize("solver", ["auto", "gradient", "sgd"])
@pytest.mark.parametrize("bounds", list(BOUNDS))
@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic net", "none"])
def test_bounds_of_coefficients(solver: str, bounds: str, penalty: str) -> None:
    X, codes = problem(2, seed=21)
    low, high = (
        np.broadcast_to(side, 3)
        for side in (
            np.array(-np.inf if BOUNDS[bounds][0] is None else BOUNDS[bounds][0], dtype=float),
            np.array(np.inf if BOUNDS[bounds][1] is None else BOUNDS[bounds][1], dtype=float),
        )
    )
    C, ratio = PENALTIES[penalty]["C"], PENALTIES[penalty].get("l1_ratio", 0.0)
    l1, l2 = (0.0, 0.0) if np.isinf(C) else (ratio / C, (1 - ratio) / C)
    model = fitted(
        X,
        codes,
        **PENALTIES[penalty],
        bounds=BOUNDS[bounds],
        solver=solver,
        tol=1e-12,
        max_iter=200 if solver == "auto" else 600,
    )
    # A gap γ allows a gradient of √(2γH); H is about n/4 here.
    assert kkt(X, codes, model, low, high, l1, l2) < 1e-4
    if solver == "auto":
        assert kkt(X, codes, model, low, high, l1, l2) < 1e-5

    def split(parts: np.ndarray) -> tuple[float, np.ndarray]:
        up, down, b = parts[:3], parts[3:6], parts[6]
        w = up - down
        eta = X @ w + b
        slope = 1 / (1 + np.exp(-eta)) - codes
        value = np.logaddexp(0, eta).sum() - eta[codes == 1].sum() + l2 / 2 * w @ w + l1 * (up + down).sum()
        step = X.T @ slope + l2 * w
        return value, np.concatenate([step + l1, l1 - step, [slope.sum()]])

    limits = [*zip(np.maximum(low, 0), np.maximum(high, 0), strict=True)]
    limits += [*zip(np.maximum(-high, 0), np.maximum(-low, 0), strict=True), (-np.inf, np.inf)]
    peer = scipy.optimize.minimize(
        split,
        [np.clip(0.0, a, b) for a, b in limits],
        jac=True,
        method="L-BFGS-B",
        bounds=limits,
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )
    value = floats(X, codes, model, C, ratio) / (1.0 if np.isinf(C) else C)
    assert value == pytest.approx(peer.fun, rel=1e-9)
    assert model.fit_.certificate.gap >= 0
    if not np.isinf(C):
        assert model.fit_.certificate.gap >= C * (value - peer.fun) - 1e-9
        assert solver != "auto" or model.fit_.status is Status.CONVERGED


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "newton-cg", "prox_newton", "gradient"])
@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_penalty_factors(solver: str, ratio: float) -> None:
    """w of a column of factor f is that of the column divided by f (L1) or √f (L2); factor 0 is no penalty."""
    X, codes = problem(2, seed=22)
    factors, most = np.array([1.0, 4.0, 0.0]), 1000 if solver == "gradient" else 60
    model = fitted(X, codes, C=0.2, l1_ratio=ratio, penalty_factors=factors, solver=solver, tol=1e-12, max_iter=most)
    exact = Exact(X, codes, 0.2, ratio, factors=factors)
    minimum = exact.minimum(model)
    above = assert_bounds(model, exact, minimum)
    assert above <= 1e-9 * minimum
    unit = np.array([1.0, 4.0 if ratio else 2.0])
    other = fitted(X[:, :2] / unit, codes, C=0.2, l1_ratio=ratio, tol=1e-13)
    same = fitted(
        X[:, :2], codes, C=0.2, l1_ratio=ratio, penalty_factors=factors[:2], solver=solver, tol=1e-13, max_iter=most
    )
    np.testing.assert_allclose(same.coef_ * unit, other.coef_, atol=1e-5)


def test_a_column_without_a_penalty_beside_absolute_values_has_a_proof_too() -> None:
    X, codes = problem(2, seed=22)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = LogisticRegression(l1_ratio=1.0, penalty_factors=[1.0, 1.0, 0.0]).fit(X, codes)
    assert model.fit_.status is Status.CONVERGED


# -- several classes --------------------------------------------------------------------------------------------------


def test_maximum_likelihood_does_not_depend_on_the_baseline() -> None:
    X, codes = problem(4, n=120, seed=23)
    labels = np.array(["ant", "bee", "cow", "dog"])[codes]
    softmax = fitted(X, labels, C=np.inf, tol=1e-14)
    for baseline in ("ant", "bee", "cow", "dog"):
        model = fitted(X, labels, C=np.inf, tol=1e-14, multi_class="reference", baseline=baseline)
        at = list(model.classes_).index(baseline)
        assert not model.coef_[at].any() and model.intercept_[at] == 0
        np.testing.assert_allclose(model.predict_proba(X), softmax.predict_proba(X), rtol=1e-7)
        np.testing.assert_allclose(model.coef_, softmax.coef_ - softmax.coef_[at], rtol=1e-7, atol=1e-8)
    assert fitted(X, labels, C=np.inf, multi_class="reference").intercept_[0] == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_reference_coding_with_a_penalty_is_its_own_optimum(solver: str) -> None:
    X, codes = problem(3, seed=24)
    model = fitted(X, codes, multi_class="reference", baseline=1, solver=solver, tol=1e-12, max_iter=steps(solver))
    P = model.predict_proba(X)
    slope = (P - np.eye(3)[codes]).T @ X + model.coef_
    np.testing.assert_allclose(slope[[0, 2]], 0, atol=2e-4 if solver in ("gradient", "sgd") else 1e-5)
    assert not model.coef_[1].any()
    assert model.fit_.certificate.relative_gap <= 1e-8


def test_two_classes_are_the_softmax_of_half_the_strength() -> None:
    """Softmax of two classes with L2: w₁ = −w₀ = w/2, so its penalty is that of one vector at twice the C."""
    X, codes = problem(2, seed=25)
    binary = fitted(X, codes, C=2.0, tol=1e-14)
    from separatrix.objectives.linear_problem import LinearProblem
    from separatrix.objectives.losses import Softmax
    from separatrix.objectives.penalties import Penalty
    from separatrix.solvers.registry import minimise

    source = as_source(X, codes).labelled()
    built = LinearProblem.of(source)
    factors = np.ones((2, 4)) * [1, 1, 1, 0]
    objective = LinearObjective(Softmax(2), Penalty.of_scikit_learn(1.0, 0.0, factors))
    solution = minimise(LinearProblem.plain(objective, built.source), "newton", tol=1e-14, max_iter=50)
    np.testing.assert_allclose(
        solution.theta[1] - solution.theta[0], np.append(binary.coef_, binary.intercept_), rtol=1e-8
    )
    for multi_class in ("reference", "multinomial", "auto"):
        np.testing.assert_array_equal(fitted(X, codes, C=2.0, tol=1e-14, multi_class=multi_class).coef_, binary.coef_)


def test_coefficients_of_the_softmax_sum_to_zero() -> None:
    X, codes = problem(4, n=120, seed=26)
    for C in (1.0, np.inf):
        model = fitted(X, codes, C=C, tol=1e-13)
        np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-8)
        assert model.intercept_.sum() == pytest.approx(0, abs=1e-10)


# -- invariances ------------------------------------------------------------------------------------------------------


@each_penalty
@each_number
def test_weights_are_repetitions_and_order_does_not_matter(penalty: str, K: int) -> None:
    X, codes = problem(K, seed=27)
    rng = np.random.default_rng(28)
    weights = rng.integers(0, 4, len(X))
    weights[:6] = 1
    tight = {**PENALTIES[penalty], "tol": 1e-14}
    model = fitted(X, codes, weights=weights, **tight)
    again = np.repeat(np.arange(len(X)), weights)
    repeated = fitted(X[again], codes[again], **tight)
    np.testing.assert_allclose(model.coef_, repeated.coef_, rtol=1e-6, atol=1e-7)
    order, columns = rng.permutation(len(X)), rng.permutation(3)
    np.testing.assert_allclose(
        fitted(X[order], codes[order], weights=weights[order], **tight).coef_, model.coef_, atol=1e-7
    )
    moved = fitted(X[:, columns], codes, weights=weights, **tight)
    np.testing.assert_allclose(moved.coef_, model.coef_[:, columns], atol=1e-7)
    dirty = X.copy()
    dirty[weights == 0] = np.nan
    np.testing.assert_allclose(fitted(dirty, codes, weights=weights, **tight).coef_, model.coef_, atol=1e-7)


def test_weights_and_C_are_one_number() -> None:
    X, codes = problem(3)
    one, two = fitted(X, codes, C=3.0, tol=1e-14), fitted(X, codes, weights=np.full(len(X), 3.0), tol=1e-14)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9, atol=1e-10)
    assert one.fit_.certificate.objective == pytest.approx(two.fit_.certificate.objective, rel=1e-12)


@each_penalty
@pytest.mark.parametrize("held", [np.asarray, sp.csr_array, pd.DataFrame, pl.DataFrame])
def test_class_weights_are_weights_of_rows(penalty: str, held: Any) -> None:
    X, codes = problem(3, seed=47)
    factors, weights = np.array([0.5, 2.0, 1.0]), np.random.default_rng(48).integers(0, 3, len(X)) * 1.0
    tight = {**PENALTIES[penalty], "tol": 1e-13}
    want = fitted(X, codes, weights=weights * factors[codes], **tight)
    model = fitted(held(X), codes, weights=weights, class_weight={0: 0.5, 1: 2.0}, **tight)
    np.testing.assert_allclose(model.coef_, want.coef_, atol=1e-6)
    assert model.fit_.certificate.objective == pytest.approx(want.fit_.certificate.objective, rel=1e-10)


def test_a_class_of_weight_zero_has_no_say() -> None:
    X, codes = problem(3, seed=49)
    model = fitted(X, codes, class_weight={2: 0.0}, tol=1e-12)
    two = fitted(X[codes < 2], codes[codes < 2], tol=1e-12)
    np.testing.assert_allclose(model.coef_, np.stack([-two.coef_[0] / 2, two.coef_[0] / 2, np.zeros(3)]), atol=1e-10)
    np.testing.assert_allclose(model.intercept_, [-two.intercept_[0] / 2, two.intercept_[0] / 2, -np.inf], atol=1e-10)
    assert (model.predict(X) < 2).all()
    assert (model.predict_proba(X)[:, 2] == 0).all()


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "newton-cg"])
@each_number
def test_units_do_not_matter_to_the_likelihood(solver: str, K: int) -> None:
    X, codes = problem(K, n=80, d=4, seed=29)
    unit = np.array([1e-6, 1e-2, 1e2, 1e6])
    one, two = (fitted(Z, codes, C=np.inf, solver=solver, tol=1e-13) for Z in (X, X * unit))
    np.testing.assert_allclose(two.predict_proba(X * unit), one.predict_proba(X), atol=1e-6)
    first, second = (
        W - W.mean(axis=0) * (K > 2) for W in (one.coef_, two.coef_ * unit)
    )  # as far as they mean anything
    np.testing.assert_allclose(second, first, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS[1:])
@pytest.mark.parametrize("scale", [1e-150, 1e-80, 1e-30, 1e30, 1e80, 1e150])
@pytest.mark.parametrize("C", [1.0, np.inf])
def test_columns_of_any_size(solver: str, scale: float, C: float) -> None:
    X, codes = problem(2, seed=30)
    slow = solver in ("gradient", "sgd")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = fitted(X * [scale, 1.0, 1.0], codes, C=C, solver=solver, tol=1e-10, max_iter=500 if slow else 40)
        P = model.predict_proba(X * [scale, 1.0, 1.0])
    assert np.isfinite(model.coef_).all() and np.isfinite(P).all()
    if np.isinf(C) or scale > 1:  # the penalty of a large column vanishes
        want = fitted(X, codes, C=C, penalty_factors=[1e-12 if C == 1.0 else 1.0, 1.0, 1.0], tol=1e-13)
    else:  # a tiny column cannot be used within the penalty
        want = fitted(X[:, 1:], codes, C=C, tol=1e-13)
    np.testing.assert_allclose(P, want.predict_proba(X if want.n_features_in_ == 3 else X[:, 1:]), rtol=1e-3)
    assert model.fit_.certificate.gap >= 0


def test_columns_far_from_the_origin() -> None:
    X, codes = problem(3, n=80, seed=31)
    near = fitted(X, codes, tol=1e-13)
    for held in (X + 1e8, sp.csr_array(X + np.array([1e8, 0, 0]))):
        model = fitted(held, codes, tol=1e-13)
        # Values at 1e8 are rounded to 1.5e-8.
        np.testing.assert_allclose(model.coef_, near.coef_, atol=1e-6)
        np.testing.assert_allclose(model.predict_proba(held), near.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@each_number
def test_odd_columns_and_rows(solver: str, K: int) -> None:
    X, codes = problem(K, n=80, seed=32)
    X[3:6] = 0.0
    plain = fitted(X, codes, solver=solver, tol=1e-10, max_iter=steps(solver))
    odd = np.column_stack([X, np.zeros(len(X)), np.full(len(X), 7.0), X[:, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for C in (1.0, np.inf):
            most = 300 if solver in ("gradient", "sgd") else 60
            model = fitted(odd, codes, solver=solver, C=C, tol=1e-10, max_iter=most)
            assert np.isfinite(model.coef_).all()
            assert (np.abs(model.coef_[:, 3]) < 1e-4).all()  # nothing says what it is, but nothing needs it
            if solver in ("gradient", "sgd"):
                continue  # a constant beside the intercept is slow going for steps along the gradient
            if C == 1.0:
                # A constant is the intercept without a penalty, so its own coefficient is zero.
                np.testing.assert_allclose(model.coef_[:, 4], 0, atol=1e-4)
                np.testing.assert_allclose(model.coef_[:, 0], model.coef_[:, 5], atol=1e-4)
            else:
                want = fitted(X, codes, C=C, tol=1e-12)
                np.testing.assert_allclose(model.predict_proba(odd), want.predict_proba(X), atol=1e-4)
    # Two copies share the coefficient: the penalty of w/2 twice is half of w's.
    twice = fitted(np.column_stack([X, X[:, 0]]), codes, solver=solver, tol=1e-10, max_iter=steps(solver))
    half = fitted(X, codes, penalty_factors=[0.5, 1.0, 1.0], tol=1e-12)
    np.testing.assert_allclose(twice.coef_[:, 0] + twice.coef_[:, 3], half.coef_[:, 0], atol=2e-4)
    assert plain.fit_.status is Status.CONVERGED


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_more_columns_than_rows(solver: str, penalty: str) -> None:
    rng = np.random.default_rng(33)
    X, codes = rng.standard_normal((30, 150)), np.arange(30) % 3
    for Z in (X, sp.csr_array(np.where(rng.random(X.shape) < 0.7, 0, X))):
        dense = Z if isinstance(Z, np.ndarray) else Z.toarray()
        model = fitted(Z, codes, **PENALTIES[penalty], solver=solver, tol=1e-5, max_iter=2000)
        best = fitted(dense, codes, **PENALTIES[penalty], tol=1e-11, max_iter=500)
        assert model.fit_.status is Status.CONVERGED
        C, ratio = PENALTIES[penalty]["C"], PENALTIES[penalty].get("l1_ratio", 0.0)
        above = floats(dense, codes, model, C, ratio) - floats(dense, codes, best, C, ratio)
        assert -1e-10 * 30 <= above <= model.fit_.certificate.gap + 1e-12


def test_classes_of_one_row() -> None:
    X, codes = problem(2)
    codes = codes.copy()
    codes[0], codes[1] = 2, 3
    for parameters in PENALTIES.values():
        if not np.isinf(parameters["C"]):
            model = fitted(X, codes, **parameters)
            assert model.fit_.status is Status.CONVERGED and model.coef_.shape == (4, 3)


@pytest.mark.parametrize("labels", [["no", "yes", "zebra"], [False, True], [-1, 1], [2.0, 5.0, 9.0], [10**12, 5, 7]])
def test_labels_of_any_type(labels: list[Any]) -> None:
    X, codes = problem(len(labels))
    names = np.sort(np.array(labels))
    plain, model = fitted(X, codes), fitted(X, names[codes])
    np.testing.assert_array_equal(model.classes_, names)
    assert model.predict(X).dtype == names.dtype
    np.testing.assert_array_equal(model.predict(X), names[plain.predict(X)])
    np.testing.assert_array_equal(model.coef_, plain.coef_)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    rng = np.random.default_rng(34)
    X = rng.standard_normal((140_000, 3))
    codes = (X[:, 0] + rng.logistic(size=len(X)) > 0).astype(int)
    results = []
    for threads in (1, 2, 8):
        with separatrix.config(threads=threads):
            results.append(fitted(X, codes).coef_)
    results.append(fitted(X, codes, n_jobs=2).coef_)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_what_is_given_is_not_changed() -> None:
    X, codes = problem(3)
    weights, offset = np.ones(len(X)), np.zeros((len(X), 3))
    factors, bounds, prior = np.ones(3), (np.full(3, -1.0), np.full(3, 1.0)), (np.zeros(3), np.eye(3))
    given = [X, codes, weights, offset, factors, *bounds, *prior]
    before = [a.copy() for a in given]
    for parameters in ({"penalty_factors": factors, "bounds": bounds}, {"prior": prior}, {"l1_ratio": 0.5}):
        model = LogisticRegression(**parameters)
        model.fit(X, codes, sample_weight=weights, offset=offset)
        for name, value in parameters.items():
            assert getattr(model, name) is value
    for one, two in zip(given, before, strict=True):
        np.testing.assert_array_equal(one, two)


# -- starting from a previous fit -------------------------------------------------------------------------------------


@each_solver
@each_number
def test_a_warm_start_is_shorter_and_ends_where_a_cold_one_does(solver: str, K: int) -> None:
    X, codes = problem(K, seed=35)
    model = LogisticRegression(solver=solver, tol=1e-9, warm_start=True, max_iter=steps(solver)).fit(X, codes)
    first, before = int(model.n_iter_[0]), model.coef_.copy()
    model.fit(X, codes)
    assert model.n_iter_[0] < first
    np.testing.assert_allclose(model.coef_, before, atol=1e-4)
    model.set_params(C=1.1).fit(X, codes)
    cold = fitted(X, codes, solver=solver, tol=1e-9, C=1.1, max_iter=steps(solver))
    assert model.n_iter_[0] <= cold.n_iter_[0]
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-3)
    assert model.fit_.status is Status.CONVERGED


def test_a_warm_start_keeps_what_still_fits() -> None:
    X, codes = problem(3, seed=36)
    model = LogisticRegression(warm_start=True, tol=1e-10, multi_class="reference", baseline=2)
    cold = fitted(X, codes, tol=1e-10, multi_class="reference", baseline=2)
    for rows, labels in ((X[:, :2], codes), (X, codes), (X, codes), (X[codes < 2], codes[codes < 2])):
        if len(labels) < len(codes):
            model.set_params(baseline=None)
        model.fit(rows, labels)
        if len(labels) == len(codes) and rows.shape[1] == 3:
            np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-5)
    far = LogisticRegression(warm_start=True, tol=1e-10)
    for _ in range(2):
        far.fit(X + 1e6, codes)
    assert far.n_iter_[0] <= 1


def test_a_warm_start_gives_up_a_coefficient_whose_column_has_become_zero() -> None:
    X, codes = problem(2, seed=37)
    model = LogisticRegression(l1_ratio=1.0, tol=1e-8, warm_start=True).fit(X, codes)
    assert model.coef_[0, 0] != 0
    gone = X.copy()
    gone[:, 0] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(gone, codes)
    assert model.coef_[0, 0] == 0
    assert model.fit_.status is Status.CONVERGED


def test_a_warm_start_outside_the_bounds_is_brought_inside() -> None:
    X, codes = problem(2, seed=38)
    model = LogisticRegression(warm_start=True, tol=1e-10).fit(X, codes)
    model.set_params(bounds=(-0.1, 0.1)).fit(X, codes)
    assert (np.abs(model.coef_) <= 0.1).all()
    np.testing.assert_allclose(model.coef_, fitted(X, codes, bounds=(-0.1, 0.1), tol=1e-10).coef_, atol=1e-6)


# -- sources ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@each_number
def test_every_storage_gives_the_numbers_of_the_array(penalty: str, K: int, tmp_path: Path) -> None:
    X, codes = problem(K, n=300, d=4, seed=39)
    names = ["a", "b", "c", "d"]
    labels = np.array(["x", "y", "z"])[codes]
    weights = np.random.default_rng(40).integers(0, 3, len(X)) * 1.0
    columns = {name: X[:, j] for j, name in enumerate(names)}
    table = pa.table({**columns, "y": labels, "w": weights})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=64)
    pyarrow.csv.write_csv(table, tmp_path / "rows.csv")
    tight = {**PENALTIES[penalty], "tol": 1e-13}
    want = fitted(X, labels, weights=weights, **tight)
    models = [
        fitted(held, labels, weights=weights, **tight)
        for held in (
            pd.DataFrame(columns),
            pl.DataFrame(columns),
            pa.table(columns),
            sp.csc_array(X),
            np.asfortranarray(X),
        )
    ]
    models += [
        fitted(scan(tmp_path / f"rows{suffix}", target="y", weight="w"), **tight)
        for scan, suffix in ((scan_parquet, ".parquet"), (scan_csv, ".csv"))
    ]
    for model in models:
        np.testing.assert_allclose(model.coef_, want.coef_, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(model.intercept_, want.intercept_, rtol=1e-8, atol=1e-8)
    for model in models[:3] + models[-2:]:
        assert list(model.feature_names_in_) == names
    P = want.predict_proba(X)
    np.testing.assert_allclose(models[-1].predict_proba(pd.DataFrame(columns)), P, rtol=1e-6)
    np.testing.assert_allclose(models[0].predict_proba(pl.DataFrame(columns)), P, rtol=1e-6)


@pytest.mark.parametrize("scan", [scan_csv, scan_parquet])
def test_an_offset_for_rows_of_a_file(scan: Any, tmp_path: Path) -> None:
    X, codes = problem(2, n=100, seed=41)
    offset = np.random.default_rng(42).standard_normal(100)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": codes})
    path = tmp_path / ("rows.csv" if scan is scan_csv else "rows.parquet")
    (pyarrow.csv.write_csv if scan is scan_csv else pq.write_table)(table, path)
    model = fitted(scan(path, target="y"), offset=offset, tol=1e-12)
    np.testing.assert_allclose(model.coef_, fitted(X, codes, offset=offset, tol=1e-12).coef_, atol=1e-8)


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "newton-cg", "prox_newton", "gradient", "sgd"])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("call", [3, 4, 5])
def test_an_interrupted_fit_is_a_model_with_a_valid_certificate(
    solver: str, penalty: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, codes = problem(2)
    exact, minimum = truth(penalty, 2)
    whole, calls = LinearObjective.evaluate, 0

    def evaluate(self: LinearObjective, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(LinearObjective, "evaluate", evaluate)
    model = LogisticRegression(**PENALTIES[penalty], solver=solver, tol=1e-15).fit(X, codes)
    assert model.fit_.status is Status.INTERRUPTED
    assert_bounds(model, exact, minimum)
    assert model.predict(X).shape == (len(X),)
    assert calls == call


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_an_interrupt_while_on_the_sample_ends_the_fit(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(43)
    X = rng.standard_normal((9000, 3))
    codes = (X[:, 0] + rng.logistic(size=len(X)) > 0).astype(int)
    whole, calls, passes = LinearObjective.evaluate, 0, 0

    def evaluate(self: LinearObjective, theta: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls, passes
        calls += 1
        passes += source.n_rows == len(X)
        if calls == 2:
            assert source.n_rows < len(X), "this is not the sample"
            raise KeyboardInterrupt
        return whole(self, theta, source, *args, **kwargs)

    monkeypatch.setattr(LinearObjective, "evaluate", evaluate)
    model = LogisticRegression(solver=solver, tol=1e-12).fit(X, codes)
    assert model.fit_.status is Status.INTERRUPTED
    assert passes <= 1  # one, to say how good it is
    assert model.fit_.certificate.gap > 0


# -- scikit-learn's conventions ---------------------------------------------------------------------------------------


def test_clones_pipelines_and_searches() -> None:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(C=0.3, l1_ratio=0.2, bounds=(-1, 1), multi_class="reference", baseline=2)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert set(copy.get_params()) >= set(sklearn.linear_model.LogisticRegression().get_params())
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()),
        {"logisticregression__C": [0.01, 1.0, np.inf], "logisticregression__l1_ratio": [0.0, 0.5]},
        cv=3,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(X, y)
    assert search.best_score_ > 0.9
    scores = cross_val_score(LogisticRegression(), X, y, cv=5)
    peer = cross_val_score(sklearn.linear_model.LogisticRegression(max_iter=1000), X, y, cv=5)
    np.testing.assert_allclose(scores, peer, atol=0.04)


def test_weights_and_offsets_are_routed() -> None:
    X, codes = problem(2, n=120)
    weights, offset = np.random.default_rng(44).uniform(0, 2, 120), np.full(120, 0.5)
    with config_context(enable_metadata_routing=True):
        model = LogisticRegression(tol=1e-12).set_fit_request(sample_weight=True, offset=True)
        model = model.set_score_request(sample_weight=True)
        result = cross_validate(
            model,
            X,
            codes,
            params={"sample_weight": weights, "offset": offset},
            return_estimator=True,
            return_indices=True,
            cv=3,
        )
        for estimator, train in zip(result["estimator"], result["indices"]["train"], strict=True):
            want = fitted(X[train], codes[train], weights=weights[train], offset=offset[train], tol=1e-12)
            np.testing.assert_allclose(estimator.coef_, want.coef_, rtol=1e-9)
        search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3)
        search.fit(X, codes, sample_weight=weights, offset=offset)
        assert search.best_estimator_.fit_.status is Status.CONVERGED


# -- predictions and geometry -----------------------------------------------------------------------------------------


@each_number
def test_probabilities(K: int) -> None:
    X, codes = problem(K, n=100)
    model = fitted(X, codes)
    for scale in (1.0, 30.0, 1e4, 1e300):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            P, logarithms, scores = (
                f(X * scale) for f in (model.predict_proba, model.predict_log_proba, model.decision_function)
            )
        assert np.isfinite(P).all() and (P >= 0).all() and (P <= 1).all()
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-14)
        assert np.isfinite(logarithms).all()  # where P itself is too small for a number
        np.testing.assert_allclose(np.exp(logarithms), P, rtol=1e-9, atol=1e-300)
        best = np.abs(scores) > 1e-9 if K == 2 else np.sort(scores, axis=1)[:, -1] > np.sort(scores, axis=1)[:, -2]
        np.testing.assert_array_equal(model.classes_[logarithms.argmax(axis=1)][best], model.predict(X * scale)[best])
    mild = X[np.abs(model.decision_function(X)).reshape(len(X), -1).max(axis=1) < 30]
    assert (model.predict_proba(mild) > 0).all() and (model.predict_proba(mild) < 1).all()


def test_predictions_leave_the_offset_out() -> None:
    X, codes = problem(2)
    model = fitted(X, codes, offset=np.full(len(X), 5.0), tol=1e-13)
    plain = fitted(X, codes, tol=1e-13)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-9)
    assert model.intercept_[0] == pytest.approx(plain.intercept_[0] - 5.0, abs=1e-8)
    three, K = problem(3)
    offset = np.random.default_rng(45).standard_normal((len(three), 3))
    shifted = fitted(three, K, offset=offset + 7.0, tol=1e-13)  # the same number for all classes says nothing
    np.testing.assert_allclose(shifted.coef_, fitted(three, K, offset=offset, tol=1e-13).coef_, atol=1e-8)


@each_number
def test_geometry(K: int) -> None:
    X, codes = problem(K)
    labels = np.array(["ant", "bee", "cow"])[codes]
    model = fitted(X, labels)
    W, b = model.linear_form()
    scores = X @ W.T + b
    np.testing.assert_allclose(scores if K > 2 else scores[:, 0], model.decision_function(X), rtol=1e-12)
    distances = model.signed_distance(X)
    np.testing.assert_allclose(distances.reshape(len(X), -1), scores / np.linalg.norm(W, axis=1), rtol=1e-12)
    plane: Any = model.boundary("ant", "bee")
    difference = (scores[:, 0] - scores[:, 1]) if K > 2 else -scores[:, 0]
    np.testing.assert_allclose(
        plane.signed_distance(X) * np.linalg.norm(plane.normal), difference, rtol=1e-10, atol=1e-12
    )
    # On the boundary the two classes are equally likely.
    on = X - plane.signed_distance(X)[:, None] * plane.normal / np.linalg.norm(plane.normal)
    P = model.predict_proba(on)
    np.testing.assert_allclose(P[:, 0], P[:, 1], rtol=1e-8)


# -- bad input --------------------------------------------------------------------------------------------------------


@contextmanager
def refused(*words: str, kind: Any = ValueError) -> Iterator[None]:
    """Refused with a sentence that has all the words in it, and without a warning before it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(kind) as error:
            yield
    for word in words:
        assert re.search(word, str(error.value)), f"{word!r} is not in: {error.value}"


@each_solver
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("held", ["array", "sparse", "frame", "many columns"])
def test_nan_and_infinity_are_named(solver: str, value: float, held: str) -> None:
    X, codes = problem(2)
    X[7, 1] = value
    Z: Any = X
    if held == "sparse":
        Z = sp.csr_array(X)
    elif held == "frame":
        Z = pd.DataFrame(X, columns=["ant", "bee", "cow"])
    elif held == "many columns":
        Z = np.column_stack([X, np.ones((len(X), 400))])
    with refused("NaN or infinity", "'bee'" if held == "frame" else "column 1", "row 7"):
        LogisticRegression(solver=solver).fit(Z, codes)


def test_bad_targets_weights_and_offsets() -> None:
    X, codes = problem(3)
    n, model = len(X), LogisticRegression()
    with refused("only one class", "7"):
        model.fit(X, np.full(n, 7))
    with refused("negative in 1 row"):
        model.fit(X, codes, sample_weight=np.r_[-1.0, np.ones(n - 1)])
    with refused("sample_weight contains NaN"):
        model.fit(X, codes, sample_weight=np.r_[np.nan, np.ones(n - 1)])
    with refused("zero"):
        model.fit(X, codes, sample_weight=np.zeros(n))
    with refused("continuous"):
        model.fit(X, codes + 0.5)
    for offset in (np.zeros(n), np.zeros((n, 2)), np.zeros((n + 1, 3)), 0.0):
        with refused("offset has shape", rf"\({n}, 3\)"):
            model.fit(X, codes, offset=offset)
    with refused("offset has shape", rf"\({n},\)"):
        model.fit(X, codes == 1, offset=np.zeros((n, 2)))
    with refused("offset contains NaN"):
        model.fit(X, codes, offset=np.full((n, 3), np.nan))
    with refused("class_weight"):
        LogisticRegression(class_weight={0: -1.0}).fit(X, codes)
    with refused("class_weight", "9"):
        LogisticRegression(class_weight={9: 1.0}).fit(X, codes)


BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "C=0": ({"C": 0.0}, ["C"]),
    "C<0": ({"C": -1.0}, ["C"]),
    "C is NaN": ({"C": np.nan}, ["C"]),
    "l1_ratio": ({"l1_ratio": 1.5}, ["l1_ratio"]),
    "solver": ({"solver": "magic"}, ["solver", "magic"]),
    "penalty": ({"penalty": "l3"}, ["penalty"]),
    "tol": ({"tol": -1.0}, ["tol"]),
    "tol is NaN": ({"tol": np.nan}, ["tol"]),
    "max_iter": ({"max_iter": -1}, ["max_iter"]),
    "factors' shape": ({"penalty_factors": [1.0, 1.0]}, ["penalty_factors has shape", "3 columns"]),
    "factors' sign": ({"penalty_factors": [1.0, -1.0, 1.0]}, ["penalty_factors", "negative"]),
    "factors are NaN": ({"penalty_factors": [1.0, np.nan, 1.0]}, ["penalty_factors", "NaN"]),
    "factors are infinite": ({"penalty_factors": [1.0, np.inf, 1.0]}, ["penalty_factors"]),
    "bounds' shape": ({"bounds": ([0.0, 0.0], 1.0)}, ["lower bounds", "3 columns"]),
    "bounds crossed": ({"bounds": ([0.0, 2.0, 0.0], 1.0)}, ["column 1", "above"]),
    "bounds are one": ({"bounds": 3.0}, ["bounds", "pair"]),
    "bounds are three": ({"bounds": (0, 1, 2)}, ["bounds", "pair"]),
    "bounds are NaN": ({"bounds": (np.nan, 1.0)}, ["bounds", "NaN"]),
    "bounds leave nothing": ({"bounds": (np.inf, np.inf)}, ["bound"]),
    "bounds beside a full prior": ({"bounds": (0, 1), "prior": (0.0, np.eye(3))}, ["bounds", "covariance"]),
    "prior is one": ({"prior": 3.0}, ["prior", "pair"]),
    "prior's mean": ({"prior": ([0.0, 1.0], 1.0)}, ["mean of prior", "3 columns"]),
    "prior's mean is infinite": ({"prior": (np.inf, 1.0)}, ["mean of prior"]),
    "prior's shape": ({"prior": (0.0, np.eye(2))}, ["covariance of prior", r"\(2, 2\)"]),
    "prior's variance": ({"prior": (0.0, [1.0, 0.0, 1.0])}, ["covariance of prior", "positive"]),
    "prior is lopsided": ({"prior": (0.0, np.eye(3) + np.triu(np.ones((3, 3)), 1))}, ["covariance", "symmetric"]),
    "prior is indefinite": ({"prior": (0.0, np.diag([1.0, 1.0, -1.0]))}, ["covariance", "positive definite"]),
    "prior and l1": ({"prior": (0.0, 1.0), "l1_ratio": 0.5}, ["prior", "l1_ratio"]),
    "prior and factors": ({"prior": (0.0, 1.0), "penalty_factors": [1, 1, 1]}, ["prior", "penalty_factors"]),
    "baseline": ({"multi_class": "reference", "baseline": "zebra"}, ["'zebra' is not a class"]),
    "baseline of a softmax": ({"baseline": 1}, ["baseline", "reference"]),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_parameters_get_a_sentence(case: str) -> None:
    X, codes = problem(3)
    parameters, words = BAD[case]
    with refused(*words):
        LogisticRegression(**parameters).fit(X, codes)


def test_a_refused_fit_leaves_no_half_a_model() -> None:
    X, codes = problem(3)
    two, labels = problem(2)
    before = fitted(X, codes).predict(X)
    for parameters, Z, y in (({"prior": 3.0}, two, labels), ({}, np.full_like(two, np.nan), labels)):
        model = fitted(X, codes).set_params(**parameters)
        with refused():
            model.fit(Z, y)
        try:  # it may keep the model it had, whole, or have none
            np.testing.assert_array_equal(model.predict(X), before)
            assert model.predict_proba(X).shape[1] == len(model.classes_)
        except NotFittedError:
            pass


def test_absolute_values_that_leave_nothing_are_an_answer() -> None:
    X, codes = problem(2)
    model = fitted(X, codes, l1_ratio=1.0, C=1e-6, tol=1e-10)
    assert not model.coef_.any()
    assert model.intercept_[0] == pytest.approx(np.log(codes.mean() / (1 - codes.mean())), abs=1e-6)
    assert model.fit_.status is Status.CONVERGED
    with refused("constant score"):
        model.signed_distance(X)


@pytest.mark.parametrize("parameters", [{"l1_ratio": 1.0, "penalty_factors": [1.0, 1.0, 0.0]}, {"C": np.inf}])
def test_a_solver_that_is_at_the_optimum_stops(parameters: dict[str, Any]) -> None:
    """Without a proof it may say so, but not go on for hundreds of passes in the same place."""
    X, codes = problem(2, seed=46)
    model = fitted(X, codes, solver="prox_newton", max_iter=400, tol=1e-6, **parameters)
    assert model.n_iter_[0] < 100
