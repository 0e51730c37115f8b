"""Least squares where columns nearly depend on each other or differ in units: digits, bounds, statuses, bits.

References are NIST's certified coefficients and solves in sixty digits.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from separatrix import (
    LinearDiscriminantAnalysis,
    LinearRegression,
    Ridge,
    RidgeClassifier,
    Status,
    load_model,
    ridge_path,
    save_model,
    scan_csv,
    scan_parquet,
)
from separatrix.data import as_source
from separatrix.data.dense import DenseBlock
from separatrix.solvers.least_squares import row_factors
from separatrix.solvers.least_squares.normal_equations import solve_ridge
from separatrix.statistics.gram import Gram
from separatrix.statistics.triangular import Triangular

sys.path.insert(0, str(Path(__file__).parent / "references"))
import nist

DIGITS = {name: 7.0 if name == "Filip" else 10.0 for name in nist.NAMES}


def digits(found: Any, expected: Any) -> float:
    """Correct digits of the worst coefficient."""
    error = np.abs(np.asarray(found) - expected) / np.abs(expected)
    return float(-np.log10(np.maximum(error, 1e-16)).min())


def coefficients(model: Any) -> np.ndarray:
    return np.concatenate([np.ravel(model.intercept_)[:1], np.ravel(model.coef_)])


def numbers(values: Any) -> list[mpf]:
    return [mpf(float(value)) for value in np.ravel(values)]


class Truth:
    """F(w, b) = Σ sᵢ(yᵢ − wᵀxᵢ − b)² + α‖w‖² and its minimum, in sixty digits, for any rank."""

    def __init__(self, X: Any, y: Any, alpha: float = 0.0, weights: Any = None, intercept: bool = True) -> None:
        with mpmath.workdps(60):
            self.rows, self.y = [numbers(row) for row in np.asarray(X, dtype=np.float64)], numbers(y)
            self.s = numbers(np.ones(len(self.y)) if weights is None else weights)
            self.alpha, self.intercept = mpf(alpha), intercept
            columns = [self._centred(column) for column in zip(*self.rows, strict=True)]
            t = self._centred(self.y)
            scaled = [[s * value for s, value in zip(self.s, column, strict=True)] for column in columns]
            self.gram = [[mpmath.fdot(a, b) for b in columns] for a in scaled]
            for j, row in enumerate(self.gram):
                row[j] += self.alpha
            self.cross = [mpmath.fdot(a, t) for a in scaled]
            self.total = mpmath.fdot([s * value for s, value in zip(self.s, t, strict=True)], t)

    def _centred(self, column: Any) -> list[mpf]:
        mean = mpmath.fdot(self.s, column) / mpmath.fsum(self.s) if self.intercept else mpf(0)
        return [value - mean for value in column]

    def value(self, coef: Any, intercept: Any) -> mpf:
        with mpmath.workdps(60):
            w, b = numbers(coef), numbers(intercept)[0]
            residuals = [t - mpmath.fdot(row, w) - b for row, t in zip(self.rows, self.y, strict=True)]
            return mpmath.fsum(s * r * r for s, r in zip(self.s, residuals, strict=True)) + self.alpha * mpmath.fdot(
                w, w
            )

    def minimum(self, columns: Any = None) -> tuple[mpf, list[mpf]]:
        """min F over some columns by pivoted elimination, and the coefficients of the pivots (others are 0)."""
        with mpmath.workdps(60):
            active = [j for j in (range(len(self.cross)) if columns is None else columns) if self.gram[j][j] > 0]
            A = {(i, k): self.gram[i][k] for i in active for k in active}
            c, value, order = {i: self.cross[i] for i in active}, self.total, []
            while active:
                p = max(active, key=lambda i: A[i, i] / self.gram[i][i])
                if A[p, p] < mpf(10) ** -45 * self.gram[p][p]:
                    break
                value -= c[p] ** 2 / A[p, p]
                active.remove(p)
                order.append(p)
                for i in active:
                    factor = A[i, p] / A[p, p]
                    c[i] -= factor * c[p]
                    for k in active:
                        A[i, k] -= factor * A[p, k]
            w = {}
            for at, p in reversed(list(enumerate(order))):
                w[p] = (c[p] - mpmath.fsum(A[p, k] * w[k] for k in order[at + 1 :])) / A[p, p]
            return value, [w.get(j, mpf(0)) for j in range(len(self.cross))]

    def minimum_nonnegative(self) -> mpf:
        best = self.total
        for size in range(1, len(self.cross) + 1):
            for chosen in combinations(range(len(self.cross)), size):
                value, w = self.minimum(chosen)
                best = min(best, value) if min(w) >= 0 else best
        return best

    def solution(self) -> np.ndarray:
        """Intercept and coefficients of a problem of full rank."""
        with mpmath.workdps(60):
            _, w = self.minimum()
            total = mpmath.fsum(self.s)
            means = [mpmath.fdot(self.s, column) / total for column in zip(*self.rows, strict=True)]
            b = mpmath.fdot(self.s, self.y) / total - mpmath.fdot(means, w) if self.intercept else mpf(0)
            return np.array([float(value) for value in (b, *w)])


# -- NIST's reference data -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", nist.NAMES)
def test_the_stored_data_have_the_certified_coefficients(name: str) -> None:
    X, y, certified = nist.load(name)
    # The powers of Filip's x are rounded to doubles, which alone costs eight of the certified digits.
    assert digits(Truth(X, y).solution(), certified) > (7.8 if name == "Filip" else 13.0)


@pytest.mark.parametrize("name", nist.NAMES)
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(0.0)], ids=str)
def test_certified_coefficients_from_arrays_and_files(name: str, model: Any, tmp_path: Path) -> None:
    X, y, certified = nist.load(name)
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names).assign(y=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    given = (
        (X, y),
        (sp.csr_array(X), y),
        (scan_csv(tmp_path / "rows.csv", target="y"), None),
        (scan_parquet(tmp_path / "rows.parquet", target="y"), None),
    )
    for rows, targets in given:
        model.fit(rows, targets)
        assert digits(coefficients(model), certified) >= DIGITS[name]
        assert model.fit_.status is Status.EXACT
        assert model.fit_.certificate.kind == "proven"
        assert model.fit_.passes >= 1


@pytest.mark.parametrize("name", nist.NAMES)
def test_weights_penalties_and_classes_keep_their_digits_too(name: str) -> None:
    X, y, _ = nist.load(name)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(np.float64)
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    for alpha in (0.0, 1e-6):
        expected = Truth(X, y, alpha, weights).solution()
        model = Ridge(alpha).fit(X, y, weights)
        assert digits(coefficients(model), expected) >= 10
        assert digits(coefficients(Ridge(alpha).fit(X[repeated], y[repeated])), expected) >= 10
    labels = np.where(y > np.median(y), "high", "low")
    expected = Truth(X, np.where(labels == "low", 1.0, -1.0), 0.0, weights).solution()
    model = RidgeClassifier(0.0).fit(X, labels, weights)
    assert digits(coefficients(model), expected) >= 10
    assert model.fit_.status is Status.EXACT


@pytest.mark.parametrize("cut", [13, 41, 70])
def test_parts_and_merges_resolve_what_the_rows_do(cut: int, tmp_path: Path) -> None:
    X, y, certified = nist.load("Filip")
    halves = [(X[:cut], y[:cut]), (X[cut:], y[cut:])]
    parts = LinearRegression()
    for rows, targets in halves:
        parts.partial_fit(rows, targets)
    first, second = (LinearRegression().fit(*half) for half in halves)
    for model in (parts, first.merge(second), second.merge(first)):
        assert digits(coefficients(model), certified) >= 6.5
        assert model.fit_.status is Status.EXACT
        truth = Truth(X, y)
        assert truth.value(model.coef_, model.intercept_) - truth.minimum()[0] <= model.fit_.certificate.gap
    save_model(first, tmp_path / "first.model")
    again = load_model(tmp_path / "first.model").merge(second)
    np.testing.assert_array_equal(again.coef_, first.merge(second).coef_)


def test_a_path_has_the_digits_of_separate_fits() -> None:
    X, y, _ = nist.load("Filip")
    alphas = [0.0, 1e-12, 1e-6, 1e-2, 1e4]
    path = ridge_path(X, y, alphas=alphas)
    for alpha, coef, intercept in zip(alphas, path.coefs, path.intercepts, strict=True):
        assert digits([intercept[0], *coef[0]], Truth(X, y, alpha).solution()) >= 9


def test_leave_one_out_on_nearly_dependent_columns() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    X[:, 2] = X[:, 1] + 1e-6 * X[:, 2]
    model = Ridge("loo", alphas=[1e-12, 1e-6]).fit(X, y)
    for alpha, error in zip(model.alphas, model.loo_errors_, strict=True):
        losses = []
        for i in range(len(y)):
            kept = np.arange(len(y)) != i
            with mpmath.workdps(60):
                b, *w = Truth(X[kept], y[kept], alpha).solution()
                losses.append(float((mpf(float(y[i])) - mpf(b) - mpmath.fdot(numbers(X[i]), numbers(w))) ** 2))
        assert error == pytest.approx(np.mean(losses), rel=1e-5)


def test_singular_values_are_those_of_the_rows() -> None:
    X, y, _ = nist.load("Filip")
    model = LinearRegression().fit(X, y)
    with mpmath.workdps(60):
        columns = [numbers(column) for column in X.T]
        centred = mpmath.matrix([[v - mpmath.fsum(c) / len(c) for v in c] for c in columns]).T
        values = [float(v) for v in mpmath.svd_r(centred, compute_uv=False)]
    # The smallest is below the rounding of the largest, in these units.
    np.testing.assert_allclose(model.singular_, values[: len(model.singular_)], rtol=1e-6)
    assert len(model.singular_) >= 9


# -- the triangular statistic ------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 8), st.integers(1, 3), st.booleans())
def test_any_split_of_the_rows_has_the_factor_of_the_whole(seed: int, n: int, d: int, m: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-8, 9, d) + rng.standard_normal(d)
    Y = rng.standard_normal((n, m))
    weights = rng.integers(0, 3, n).astype(np.float64) if weighted else None
    if weights is not None and not weights.any():
        weights[0] = 1.0
    whole = Triangular.of_block(DenseBlock(X, Y, weights))
    cuts = np.sort(rng.integers(0, n + 1, 3))
    split = Triangular.empty(d, m)
    for rows in np.split(np.arange(n), cuts):
        split.merge(Triangular.of_block(DenseBlock(X[rows], Y[rows], None if weights is None else weights[rows])))
    assert split.total == pytest.approx(whole.total)
    mine, theirs = split.normal_equations(), whole.normal_equations()
    scale = np.sqrt(whole.total) * (np.abs(X).max(axis=0) + 1e-300)
    close = dict(rtol=0, atol=1e-13)
    units = np.outer(scale, scale)
    for a, b in ((mine, theirs), (mine.without_intercept(), theirs.without_intercept())):
        np.testing.assert_allclose(a.scatter.matrix() / units, b.scatter.matrix() / units, **close)
        np.testing.assert_allclose(a.cross / scale[:, None], b.cross / scale[:, None], rtol=0, atol=1e-12 * whole.total)
    if weights is None:
        return
    repeated = np.repeat(np.arange(n), weights.astype(int))
    again = Triangular.of_block(DenseBlock(X[repeated], Y[repeated])).normal_equations()
    np.testing.assert_allclose(again.scatter.matrix() / units, theirs.scatter.matrix() / units, **close)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 1e-3, 1.0]), st.booleans())
def test_both_ways_agree_where_both_resolve(seed: int, alpha: float, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((40, 5)) + 3.0) * 10.0 ** rng.integers(-4, 5, 5)
    y = X @ (rng.standard_normal(5) / np.abs(X).max(axis=0)) + rng.standard_normal(40)
    source = as_source(X, y).valued()
    gram = Gram.of_source(source)
    answers = []
    for statistic in (gram, Triangular.of_source(source, gram.mean()), Triangular.of_gram(gram)):
        equations = statistic.normal_equations()
        answers.append(
            solve_ridge(equations if intercept else equations.without_intercept(), np.array([alpha])).coef[0]
        )
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-9, atol=1e-11 * np.abs(answers[0]).max())


@pytest.mark.parametrize("nearness", [1e-5, 1e-7, 1e-9])
def test_columns_that_agree_in_many_digits_are_not_called_dependent(nearness: float) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3))
    X[:, 2] = X[:, 1] + nearness * X[:, 2]
    y = X @ [1.0, 2.0, 3.0] + rng.standard_normal(60)
    model = LinearRegression().fit(X, y)
    assert model.fit_.status is Status.EXACT and model.rank_ == 3
    assert digits(coefficients(model), Truth(X, y).solution()) >= 9
    twice = LinearRegression().fit(np.c_[X[:, :2], X[:, 1]], y)
    assert twice.fit_.status is Status.RANK_DEFICIENT and twice.rank_ == 2
    np.testing.assert_allclose(twice.coef_[1], twice.coef_[2], rtol=1e-10)


# -- proofs against sixty digits ---------------------------------------------------------------------------------------------


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, float, bool]:
    """Rows with duplicates, nearly dependent columns, offsets and units, targets, weights, a penalty, an intercept or none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 13)), draw(st.integers(1, 8))
    X = rng.standard_normal((n, d))
    if draw(st.booleans()):
        X = np.round(2.0 * X)
    nearness = draw(st.sampled_from([None, None, 0.0, 1e-3, 1e-6, 1e-9, 1e-12]))
    if nearness is not None and d > 1:
        X[:, -1] = X[:, 0] + nearness * X[:, -1]
    if draw(st.booleans()) and n > 2:
        X[-1] = X[0]
    X = X + draw(st.sampled_from([0.0, 0.0, 1.0, 1e3, 1e6]))
    if draw(st.booleans()):
        X = X * 10.0 ** rng.integers(-8, 9, d)
    y = rng.standard_normal(n) if draw(st.booleans()) else X @ rng.standard_normal(d)
    y = y * draw(st.sampled_from([1.0, 1.0, 1e-8, 1e8]))
    weights = rng.integers(0, 4, n) * rng.random() if draw(st.booleans()) else None
    if weights is not None and not weights.any():
        weights = None
    alpha = draw(st.sampled_from([0.0, 0.0, 1e-12, 1e-6, 1e-3, 1.0, 1e3]))
    return X, y, weights, alpha, draw(st.booleans())


def check(model: Any, truth: Truth, minimum: mpf, tol: float = 0.0) -> None:
    """The gap bounds the truth, and the status claims no more than is true."""
    value = truth.value(model.coef_, model.intercept_)
    above, proof, status = value - minimum, model.fit_.certificate, model.fit_.status
    assert proof.kind == "proven"
    assert above <= proof.gap + mpf(10) ** -40 * value, f"claims {proof.gap:.3g}, is {float(above):.3g} ({status.name})"
    if status is Status.EXACT:
        assert above <= 1e-8 * value + mpf(1e-18) * truth.total
    if status is Status.CONVERGED:
        assert above <= tol * value * (1 + 1e-9)


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from(["double", "single", "sparse", "parts"]))
def test_closed_forms_claim_no_more_than_is_true(problem: Any, how: str) -> None:
    X, y, weights, alpha, intercept = problem
    if how == "single":
        X = X.astype(np.float32)
    model = LinearRegression(fit_intercept=intercept) if alpha == 0 else Ridge(alpha, fit_intercept=intercept)
    cut = len(y) // 2
    if how == "parts" and cut and (weights is None or (weights[:cut].any() and weights[cut:].any())):
        for rows in (slice(None, cut), slice(cut, None)):
            model.partial_fit(X[rows], y[rows], None if weights is None else weights[rows])
    else:
        model.fit(sp.csr_array(X) if how == "sparse" else X, y, weights)
    truth = Truth(X, y, alpha, weights, intercept)
    check(model, truth, truth.minimum()[0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scales", [0, 3])
@pytest.mark.parametrize("alpha", [1e-2, 1e3])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_dual_point_proves_wide_rows_in_any_units(
    intercept: bool, alpha: float, scales: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    X = (rng.standard_normal((9, 14)) * 10.0 ** np.linspace(-scales, scales, 14)).astype(dtype)
    y = rng.standard_normal(9)
    truth, wanted = Truth(X, y, alpha, None, intercept), []
    careful = row_factors._SortedFactor
    monkeypatch.setattr(row_factors, "_SortedFactor", lambda rows: wanted.append(len(rows)) or careful(rows))
    model = Ridge(alpha, fit_intercept=intercept).fit(X, y)
    check(model, truth, truth.minimum()[0])
    assert model.fit_.status is (Status.EXACT if dtype is np.float64 else model.fit_.status)
    assert model.fit_.certificate.gap <= 1e-11 * truth.total
    assert not wanted or (alpha < 1 and scales)  # the factor of a penalty that rounding reaches


@settings(max_examples=80, deadline=None)
@given(problems(), st.sampled_from([1, 3, 1000]), st.sampled_from(["double", "single", "sparse"]))
def test_conjugate_gradients_claim_no_more_than_is_true(problem: Any, max_iter: int, how: str) -> None:
    X, y, weights, alpha, intercept = problem
    if how == "single":
        X = X.astype(np.float32)
    model = Ridge(alpha, solver="cg", tol=1e-5, max_iter=max_iter, fit_intercept=intercept)
    model.fit(sp.csr_array(X) if how == "sparse" else X, y, weights)
    truth = Truth(X, y, alpha, weights, intercept)
    check(model, truth, truth.minimum()[0], tol=1e-10)


@settings(max_examples=40, deadline=None)
@given(problems())
def test_nonnegative_answers_claim_no_more_than_is_true(problem: Any) -> None:
    X, y, weights, alpha, intercept = problem
    X = X[:, :4]
    model = Ridge(alpha, positive=True, fit_intercept=intercept).fit(X, y, weights)
    truth = Truth(X, y, alpha, weights, intercept)
    assert (model.coef_ >= 0).all()
    check(model, truth, truth.minimum_nonnegative())


@settings(max_examples=40, deadline=None)
@given(problems())
def test_classifiers_claim_no_more_than_is_true(problem: Any) -> None:
    X, y, weights, alpha, intercept = problem
    labels = y > np.median(y)
    if len(np.unique(labels if weights is None else labels[weights > 0])) < 2:
        return
    model = RidgeClassifier(alpha, fit_intercept=intercept).fit(X, labels, weights)
    truth = Truth(X, np.where(labels, 1.0, -1.0), alpha, weights, intercept)
    check(model, truth, truth.minimum()[0])


@pytest.mark.parametrize("unit", [1e-12, 1e3, 1e7, 1e12, 1e30, 1e100])
@pytest.mark.parametrize("seed", range(3))
def test_one_column_in_other_units_in_wide_rows(unit: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((10, 15)), rng.standard_normal(10)
    X[:, 3] *= unit
    truth = Truth(X, y, 1.0)
    model = Ridge(1.0).fit(X, y)
    check(model, truth, truth.minimum()[0])
    assert model.fit_.status is Status.EXACT
    labels = y > 0
    truth = Truth(X, np.where(labels, 1.0, -1.0), 1.0)
    classifier = RidgeClassifier(1.0).fit(X, labels)
    check(classifier, truth, truth.minimum()[0])
    assert classifier.fit_.status is Status.EXACT
    # The ball of the radius that the penalty leads to has that ridge answer as its optimum.
    ball = RidgeClassifier(max_norm=float(np.linalg.norm(classifier.coef_))).fit(X, labels)
    assert ball.fit_.status is Status.EXACT
    np.testing.assert_allclose(ball.alpha_, 1.0, rtol=1e-4)
    np.testing.assert_allclose(ball.predict(X), classifier.predict(X))


@pytest.mark.parametrize("unit", [1e7, 1e10])
def test_shrunken_discriminants_see_every_direction_beside_a_column_in_large_units(unit: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 20)), np.arange(12) % 2
    X[:, 0] *= unit
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=1e-16 * (1e7 / unit) ** 2, covariance="mle").fit(X, y)
    with mpmath.workdps(60):
        means = [[mpmath.fsum(numbers(X[y == k][:, j])) / 6 for j in range(20)] for k in (0, 1)]
        rows = [[mpf(float(v)) - m for v, m in zip(row, means[k], strict=True)] for row, k in zip(X, y, strict=True)]
        sigma = mpmath.matrix(20, 20)
        for row in rows:
            z = mpmath.matrix(row)
            sigma += z * z.T / 12
        share = mpf(1e-16 * (1e7 / unit) ** 2)
        mean_variance = mpmath.fsum(sigma[j, j] for j in range(20)) / 20
        sigma = sigma * (1 - share) + mpmath.eye(20) * share * mean_variance
        w = mpmath.lu_solve(sigma, mpmath.matrix([b - a for a, b in zip(*means, strict=True)]))
        expected = np.array([float(value) for value in w])
    np.testing.assert_allclose(model.coef_[0, 1:], expected[1:], rtol=1e-4, atol=1e-6 * np.abs(expected[1:]).max())


# -- the number of BLAS threads ----------------------------------------------------------------------------------------------

_FITS = """
import hashlib, warnings
import numpy as np
from separatrix import LinearDiscriminantAnalysis, LinearRegression, LogisticRegression, Ridge, RidgeClassifier, ridge_path
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
wide, tall = rng.standard_normal((120, 700)), rng.standard_normal((900, 150))
near = tall.copy()
near[:, 1] = near[:, 0] + 1e-6 * near[:, 1]
for name, X in (("wide", wide), ("tall", tall), ("near", near)):
    y = rng.standard_normal(len(X))
    label = (X[:, 0] + y > 0).astype(int)
    three = np.digitize(y, [-0.5, 0.5])
    models = [LinearRegression(), Ridge(), Ridge(solver="cg"), Ridge("loo", alphas=[0.1, 1.0])]
    found = [(model, y) for model in models] + [(RidgeClassifier(), three), (RidgeClassifier(max_norm=0.1), label)]
    found += [(LogisticRegression(solver=solver), label) for solver in ("auto", "newton", "newton-cg", "lbfgs")]
    found += [(LogisticRegression(), three), (LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), label)]
    for model, target in found:
        model.fit(X, target)
        bits = np.ravel(model.coef_).tobytes() + np.ravel(model.intercept_).tobytes()
        gap = np.float64(model.fit_.certificate.gap).tobytes()
        print(name, model, hashlib.sha1(bits + gap).hexdigest())
    path = ridge_path(X, y, alphas=[0.1, 10.0])
    print(name, hashlib.sha1(path.coefs.tobytes() + path.intercepts.tobytes()).hexdigest())
"""


def test_the_number_of_blas_threads_changes_no_bit() -> None:
    bits = []
    for threads in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run([sys.executable, "-c", _FITS], env=environment, capture_output=True, text=True, check=True)
        bits.append(ran.stdout.splitlines())
    assert len(bits[0]) > 30
    assert bits[0] == bits[1]


@pytest.mark.parametrize("scales", [0.0, 3.0])
@pytest.mark.parametrize("small", [1e-3, 1e-5, 3e-8, 1e-10])
def test_wide_rows_keep_what_their_singular_values_resolve(small: float, scales: float) -> None:
    """The eigenvalue of a direction is the square of its singular value: below rounding is not absent."""
    rng = np.random.default_rng(0)
    n, d = 20, 40
    left, right = np.linalg.qr(rng.normal(size=(n, n)))[0], np.linalg.qr(rng.normal(size=(d, n)))[0]
    X = (left * np.append(np.ones(n - 1), small)) @ right.T * 10.0 ** rng.uniform(-scales, scales, d)
    y = left[:, 0] + 3.0 * small * left[:, -1]
    model = LinearRegression(fit_intercept=False).fit(X, y)
    assert model.rank_ == n
    np.testing.assert_allclose(X @ model.coef_, y, atol=1e-4 * small)
