"""Certificates against arithmetic in sixty digits: the gap is an upper bound, whatever the solver and the data.

The truth is F(coef_, intercept_) − min F for the model as it stands, both computed with mpmath from the rows themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from mpmath import mpf

from separatrix import LinearDiscriminantAnalysis, LinearRegression, Ridge, RidgeClassifier, Status
from separatrix.objectives.least_squares import LeastSquares

SEEDS = range(4)


@pytest.fixture(autouse=True)
def sixty_digits() -> Iterator[None]:
    with mpmath.workdps(60):
        yield


def number(value: Any) -> mpf:
    return mpf(float(value))


@dataclass
class Exact:
    """F(w, b) = Σ sᵢ(yᵢ − wᵀxᵢ − b)² + α‖w‖² of one target, in sixty digits."""

    X: np.ndarray
    y: np.ndarray
    alpha: float = 0.0
    weights: np.ndarray | None = None
    intercept: bool = True

    def __post_init__(self) -> None:
        self.rows = [[number(value) for value in row] for row in self.X]
        self.targets = [number(value) for value in self.y]
        self.s = [number(value) for value in (np.ones(len(self.y)) if self.weights is None else self.weights)]
        self.d = self.X.shape[1]

    def mean(self, values: Any) -> mpf:
        return mpmath.fdot(self.s, values) / mpmath.fsum(self.s) if self.intercept else mpf(0)

    def value(self, coef: Any, intercept: Any) -> mpf:
        w, b = [number(value) for value in np.ravel(coef)], number(np.ravel(intercept)[0])
        residuals = (t - mpmath.fdot(row, w) - b for row, t in zip(self.rows, self.targets, strict=True))
        loss = mpmath.fsum(s * r * r for s, r in zip(self.s, residuals, strict=True))
        return loss + number(self.alpha) * mpmath.fdot(w, w)

    def equations(self) -> tuple[mpmath.matrix, mpmath.matrix, mpf]:
        """S + αI, c and S_yy, columns and targets centred."""
        columns = [list(column) for column in zip(*self.rows, strict=True)]
        columns = [[value - self.mean(column) for value in column] for column in columns]
        t = [value - self.mean(self.targets) for value in self.targets]
        gram, cross = mpmath.matrix(self.d, self.d), mpmath.matrix(self.d, 1)
        for j, column in enumerate(columns):
            weighted = [s * value for s, value in zip(self.s, column, strict=True)]
            cross[j] = mpmath.fdot(weighted, t)
            for k, other in enumerate(columns):
                gram[j, k] = mpmath.fdot(weighted, other) + (number(self.alpha) if j == k else 0)
        return gram, cross, mpmath.fdot([s * value for s, value in zip(self.s, t, strict=True)], t)

    def minimum(self, columns: Any = None) -> mpf:
        """min F, over the given columns alone (the others have coefficient 0)."""
        gram, cross, total = self.equations()
        return _minimum(gram, cross, total, range(self.d) if columns is None else columns)

    def minimum_in_ball(self, radius: float) -> mpf:
        """min F over ‖w‖ ≤ radius, from the eigenvalues and bisection of the secular equation."""
        gram, cross, total = self.equations()
        values, vectors = mpmath.eigsy(gram)
        c = vectors.T * cross

        def answer(multiplier: mpf) -> list[mpf]:
            return [c[j] / (values[j] + multiplier) for j in range(self.d)]

        low, high = mpf(0), mpf(0)
        if mpmath.norm(answer(low)) > number(radius):
            high = mpf(1)
            while mpmath.norm(answer(high)) > number(radius):
                high *= 4
            for _ in range(260):
                middle = (low + high) / 2
                low, high = (middle, high) if mpmath.norm(answer(middle)) > number(radius) else (low, middle)
        w = answer(high)
        return total + mpmath.fsum(values[j] * w[j] ** 2 - 2 * c[j] * w[j] for j in range(self.d))

    def minimum_nonnegative(self) -> mpf:
        """min F over w ≥ 0: the least over all sets of free columns whose own answer is feasible."""
        gram, cross, total = self.equations()
        best = total
        for size in range(1, self.d + 1):
            for chosen in combinations(range(self.d), size):
                best = min(best, _minimum(gram, cross, total, chosen, feasible=True))
        return best


def _minimum(gram: Any, cross: Any, total: mpf, columns: Any, feasible: bool = False) -> mpf:
    chosen = list(columns)
    scale = [mpmath.sqrt(gram[j, j]) for j in chosen]  # in any units
    A = mpmath.matrix(len(chosen), len(chosen))
    for p, j in enumerate(chosen):
        for q, k in enumerate(chosen):
            A[p, q] = gram[j, k] / scale[p] / scale[q]
    c = mpmath.matrix([cross[j] / a for j, a in zip(chosen, scale, strict=True)])
    w = mpmath.lu_solve(A, c)
    if feasible and min(w) < 0:
        return mpf("inf")
    return total - mpmath.fdot(list(c), list(w))


def problem(seed: int, n: int = 20, d: int = 3, nearness: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose last two columns differ by `nearness`, and noisy targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, -1] = X[:, -2] + nearness * X[:, -1]
    return X, X @ rng.standard_normal(d) + rng.standard_normal(n)


def assert_bounds(model: Any, truth: mpf) -> None:
    gap = model.fit_.certificate.gap
    assert gap >= truth, f"claims {gap:.3g}, but is {float(truth):.3g} above the optimum ({model.fit_.status.name})"


# -- closed forms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("nearness", [1.0, 1e-3, 1e-6])
def test_ridge_gap_bounds_the_truth(seed: int, intercept: bool, alpha: float, nearness: float) -> None:
    X, y = problem(seed, nearness=nearness)
    w = np.random.default_rng(seed).uniform(0.1, 2.0, len(y)) if seed % 2 else None
    exact = Exact(X, y, alpha, w, intercept)
    model = LinearRegression(fit_intercept=intercept) if alpha == 0 else Ridge(alpha, fit_intercept=intercept)
    minimum = exact.minimum()
    for held in (X, sp.csr_array(X)):
        model.fit(held, y, w)
        assert_bounds(model, exact.value(model.coef_, model.intercept_) - minimum)
        proof = model.fit_.certificate
        assert proof.gap <= 1e-3 * proof.objective  # a bound that says something
        assert proof.objective == pytest.approx(float(exact.value(model.coef_, model.intercept_)), rel=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("nearness", [1.0, 1e-4])
def test_gap_of_a_model_fitted_in_parts_bounds_the_truth(seed: int, nearness: float) -> None:
    X, y = problem(seed, nearness=nearness)
    model = Ridge(1e-3).partial_fit(X[:7], y[:7]).partial_fit(X[7:], y[7:])
    exact = Exact(X, y, 1e-3)
    assert_bounds(model, exact.value(model.coef_, model.intercept_) - exact.minimum())


@pytest.mark.parametrize("seed", SEEDS)
def test_gap_of_several_targets_bounds_the_sum(seed: int) -> None:
    X, _ = problem(seed)
    Y = np.random.default_rng(seed).standard_normal((len(X), 3))
    alpha = [0.0, 0.5, 20.0]
    model = Ridge(alpha).fit(X, Y)
    truth = mpf(0)
    for j in range(3):
        exact = Exact(X, Y[:, j], alpha[j])
        truth += exact.value(model.coef_[j], model.intercept_[j]) - exact.minimum()
    assert_bounds(model, truth)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("units", [(1.0, 1e100, 1e-100), (1e-150, 1.0, 1e150)])
def test_gap_bounds_the_truth_in_any_units(seed: int, units: tuple[float, ...]) -> None:
    X, y = problem(seed)
    X = X * np.array(units)
    model, exact = LinearRegression().fit(X, y), Exact(X, y)
    assert_bounds(model, exact.value(model.coef_, model.intercept_) - exact.minimum())


@pytest.mark.parametrize("seed", SEEDS)
def test_gap_bounds_the_truth_when_columns_depend_on_each_other(seed: int) -> None:
    X, y = problem(seed)
    wide = np.c_[X, X[:, 0], X[:, 1] + X[:, 2]]
    model = LinearRegression().fit(wide, y)
    assert model.fit_.status is Status.RANK_DEFICIENT
    # The rounded sum is an independent column in exact arithmetic; leave the truth to the columns that are not.
    model = LinearRegression().fit(wide[:, :4], y)
    assert_bounds(model, Exact(wide[:, :4], y).value(model.coef_, model.intercept_) - Exact(X, y).minimum())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 1.0])
def test_gap_bounds_the_truth_for_more_columns_than_rows(seed: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((6, 9)), rng.standard_normal(6)
    model = Ridge(alpha).fit(X, y)
    exact = Exact(X, y, alpha)
    assert_bounds(model, exact.value(model.coef_, model.intercept_) - (exact.minimum() if alpha else 0))


@pytest.mark.parametrize("shape", [(20, 40), (60, 8)])
@pytest.mark.parametrize("digits", [6, 8, 10])
def test_columns_dropped_for_rounding_are_not_claimed_as_solved(shape: tuple[int, int], digits: int) -> None:
    rng = np.random.default_rng(0)
    r = min(shape)
    left, right = (np.linalg.qr(rng.standard_normal((size, r)))[0] for size in shape)
    X, y = (left * np.logspace(0, -digits, r)) @ right.T, rng.standard_normal(shape[0])
    model = LinearRegression(fit_intercept=False).fit(X, y)
    exact = Exact(X, y, intercept=False)
    assert_bounds(model, exact.value(model.coef_, 0.0) - (0 if shape[0] < shape[1] else exact.minimum()))


@pytest.mark.parametrize("seed", SEEDS)
def test_gap_bounds_the_truth_when_the_targets_do_not_depend_on_the_rows(seed: int) -> None:
    X, y = problem(seed)
    y = np.linalg.qr(np.c_[np.ones(len(y)), X, y])[0][:, -1]  # orthogonal to every column
    for model, alpha in ((LinearRegression(), 0.0), (Ridge(1.0), 1.0)):
        exact = Exact(X, y, alpha)
        model.fit(X, y)
        assert_bounds(model, exact.value(model.coef_, model.intercept_) - exact.minimum())


@pytest.mark.parametrize("offset", [1e4, 1e8])
@pytest.mark.parametrize("seed", SEEDS)
def test_gap_counts_the_rounding_of_the_intercept(seed: int, offset: float) -> None:
    X, y = problem(seed)
    X = X + offset
    for model in (Ridge(), Ridge(solver="cg", tol=1e-6)):
        model.fit(X, y)
        exact = Exact(X, y, 1.0)
        assert_bounds(model, exact.value(model.coef_, model.intercept_) - exact.minimum())


@pytest.mark.parametrize("seed", SEEDS)
def test_gap_counts_the_rounding_of_float32_coefficients(seed: int) -> None:
    X, y = problem(seed)
    X = X.astype(np.float32)
    for model in (Ridge(), Ridge(solver="cg")):
        model.fit(X, y)
        assert model.coef_.dtype == np.float32
        exact = Exact(X, y, 1.0)
        assert_bounds(model, exact.value(model.coef_, model.intercept_) - exact.minimum())


# -- the classifier, constraints -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("nearness", [1.0, 1e-3])
def test_classifier_gap_bounds_the_truth(seed: int, alpha: float, nearness: float) -> None:
    X, y = problem(seed, n=30, nearness=nearness)
    for n_classes in (2, 3):
        codes = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
        for weight in (None, "balanced"):
            model = RidgeClassifier(alpha, class_weight=weight).fit(X, codes)
            w = None if weight is None else (len(y) / n_classes / np.bincount(codes))[codes]
            truth = mpf(0)
            for j, k in enumerate([1] if n_classes == 2 else range(3)):
                exact = Exact(X, np.where(codes == k, 1.0, -1.0), alpha, w)
                truth += exact.value(model.coef_[j], model.intercept_[j]) - exact.minimum()
            assert_bounds(model, truth)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("share", [0.01, 0.5, 0.999, 1.5])
@pytest.mark.parametrize("nearness", [1.0, 1e-3, 1e-5])
def test_norm_ball_gap_bounds_the_truth(seed: int, share: float, nearness: float) -> None:
    X, y = problem(seed, nearness=nearness)
    labels = (y > np.median(y)).astype(int)
    radius = share * float(np.linalg.norm(RidgeClassifier(alpha=0).fit(X, labels).coef_))
    model = RidgeClassifier(max_norm=radius).fit(X, labels)
    exact = Exact(X, 2.0 * labels - 1.0)
    assert_bounds(model, exact.value(model.coef_, model.intercept_) - exact.minimum_in_ball(radius))
    proof = model.fit_.certificate
    assert proof.gap < 1e-3
    assert min(proof.stationarity, proof.primal_feasibility, proof.dual_feasibility, model.alpha_) >= 0
    assert proof.complementary_slackness <= max(proof.gap, 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("nearness", [1.0, 1e-4])
def test_nonnegative_gap_bounds_the_truth(seed: int, alpha: float, nearness: float) -> None:
    X, y = problem(seed, nearness=nearness)
    exact = Exact(X, y, alpha)
    minimum = exact.minimum_nonnegative()
    model = Ridge(alpha, positive=True).fit(X, y)
    assert (model.coef_ >= 0).all()
    assert_bounds(model, exact.value(model.coef_, model.intercept_) - minimum)
    assert model.fit_.certificate.gap <= 1e-6


def test_nonnegative_with_dependent_columns_claims_nothing_it_cannot_prove() -> None:
    X, y = problem(0)
    wide = np.c_[X, X[:, 0]]
    model = LinearRegression(positive=True).fit(wide, y)
    truth = Exact(wide, y).value(model.coef_, model.intercept_) - Exact(X, y).minimum_nonnegative()
    assert_bounds(model, truth)
    assert truth < 1e-20


# -- conjugate gradients --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
def test_conjugate_gradient_gap_bounds_the_truth(seed: int, alpha: float, tol: float) -> None:
    X, y = problem(seed)
    exact = Exact(X, y, alpha)
    model = Ridge(alpha, solver="cg", tol=tol).fit(X, y)
    assert_bounds(model, exact.value(model.coef_, model.intercept_) - exact.minimum())


@pytest.mark.parametrize("max_iter", [1, 2, 3])
@pytest.mark.parametrize("nearness", [1.0, 1e-4])
def test_a_fit_that_stops_early_says_how_far_it_can_be(max_iter: int, nearness: float) -> None:
    X, y = problem(0, n=30, d=6, nearness=nearness)
    exact = Exact(X, y, 1e-2)
    model = Ridge(1e-2, solver="cg", max_iter=max_iter, tol=1e-8).fit(X, y)
    assert model.fit_.status is Status.MAX_ITER
    assert model.n_iter_ == max_iter
    truth = exact.value(model.coef_, model.intercept_) - exact.minimum()
    assert_bounds(model, truth)
    assert truth > 1e-6  # it did stop early
    assert "Raise max_iter" in str(model.fit_)
    labels = (y > 0).astype(int)
    classifier = RidgeClassifier(1e-2, solver="cg", max_iter=max_iter, tol=1e-8).fit(X, labels)
    exact = Exact(X, 2.0 * labels - 1.0, 1e-2)
    assert classifier.fit_.status is Status.MAX_ITER
    assert_bounds(classifier, exact.value(classifier.coef_, classifier.intercept_) - exact.minimum())


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-12])
def test_converged_means_that_the_certificate_proves_the_tolerance(offset: float, tol: float) -> None:
    X, y = problem(0, n=50)
    model = Ridge(1e-3, solver="cg", tol=tol).fit(X + offset, y)
    proof = model.fit_.certificate
    assert (model.fit_.status is Status.CONVERGED) == (proof.gap <= tol**2 * proof.objective)


@pytest.mark.parametrize("call", [1, 3])
def test_an_interrupted_fit_keeps_its_answer_and_its_proof(call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = problem(0, n=30, d=6, nearness=1e-2)
    product, calls = LeastSquares.hvp, []

    def interrupted(self: LeastSquares, *args: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return product(self, *args)

    monkeypatch.setattr(LeastSquares, "hvp", interrupted)
    model = Ridge(1e-2, solver="cg", tol=1e-8).fit(X, y)
    assert model.fit_.status is Status.INTERRUPTED
    assert len(model.fit_.trace) == call - 1
    exact = Exact(X, y, 1e-2)
    truth = exact.value(model.coef_, model.intercept_) - exact.minimum()
    assert 0 < truth < float("inf")
    assert_bounds(model, truth)
    assert np.isfinite(model.fit_.certificate.gap)
    assert model.predict(X).shape == y.shape


def test_the_gap_falls_as_iterations_are_allowed() -> None:
    X, y = problem(0, n=40, d=8)
    gaps = [Ridge(0.1, solver="cg", tol=1e-10, max_iter=k).fit(X, y).fit_.certificate.gap for k in (1, 3, 5, 40)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-12 * gaps[0]


# -- linear discriminant analysis ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("nearness", [1.0, 1e-2])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_discriminant_gap_bounds_the_truth(seed: int, nearness: float, n_classes: int) -> None:
    X, y = problem(seed, n=30, nearness=nearness)
    codes = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model = LinearDiscriminantAnalysis().fit(X, codes)
    assert model.fit_.status is Status.EXACT
    n, d = X.shape
    rows = [[number(value) for value in row] for row in X]
    members = [[row for row, code in zip(rows, codes, strict=True) if code == k] for k in range(n_classes)]
    means = [[mpmath.fsum(column) / len(group) for column in zip(*group, strict=True)] for group in members]
    centre = [mpmath.fsum(column) / n for column in zip(*rows, strict=True)]
    within = mpmath.matrix(d, d)
    for group, mean in zip(members, means, strict=True):
        for row in group:
            z = mpmath.matrix([value - m for value, m in zip(row, mean, strict=True)])
            within += z * z.T / n
    # The objective of class k is ½wᵀΣw − wᵀ(μ_k−μ); with two classes coef_ holds the difference of their answers.
    shares = [mpf(len(group)) / n for group in members]
    coefs = [[number(value) for value in row] for row in model.coef_]
    if n_classes == 2:
        coefs = [[-shares[1] * value for value in coefs[0]], [shares[0] * value for value in coefs[0]]]
    truth = mpf(0)
    for coef, mean in zip(coefs, means, strict=True):
        best = mpmath.lu_solve(within, mpmath.matrix([m - c for m, c in zip(mean, centre, strict=True)]))
        error = mpmath.matrix(coef) - best
        truth += (error.T * within * error)[0] / 2
    assert_bounds(model, truth)
