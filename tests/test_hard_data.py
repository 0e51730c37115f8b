"""Hard but honest data: far from the origin, in wild units, dependent, constant, wide, weighted, in parts."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from operator import mul
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import REGISTRY, each, having, named, tight
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import discriminant_analysis, linear_model
from sklearn.base import clone, is_regressor
from sklearn.covariance import ledoit_wolf_shrinkage

from separatrix import (
    FisherDiscriminant,
    LinearDiscriminantAnalysis,
    LinearRegression,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    Ridge,
    RidgeClassifier,
    as_source,
)
from separatrix.statistics import ClassMoments

every = each(
    "model",
    named("lda", "lda lsqr", "qda", "rda between", "fisher", "ridge classifier without penalty", "least squares"),
)


def classes(n: int, d: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping Gaussian classes with dependent columns; every class has rows."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    rows = rng.standard_normal((n, d)) @ (np.eye(d) + rng.standard_normal((d, d)) / (2 * np.sqrt(d)))
    return rows + 1.5 * np.random.default_rng(99).standard_normal((k, d))[y], y


@contextmanager
def quietly() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def answer(model: Any, X: Any) -> np.ndarray:
    """What a model says about rows: log posteriors, scores, coordinates or predictions."""
    for name in ("predict_log_proba", "decision_function", "transform", "predict"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(X))
    raise AssertionError(model)


def assert_close(found: np.ndarray, expected: np.ndarray, rtol: float) -> None:
    """Relative to the size of the answers: some of them vanish by chance."""
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * max(1.0, np.abs(expected).max()))


# -- far from the origin ----------------------------------------------------------------------------------------------


def inverse_and_determinant(matrix: list[list[Fraction]]) -> tuple[list[list[Fraction]], Fraction]:
    """Gauss and Jordan; positive definite, so no pivot vanishes."""
    d, determinant = len(matrix), Fraction(1)
    rows = [[*row, *(Fraction(i == j) for j in range(d))] for i, row in enumerate(matrix)]
    for i in range(d):
        determinant *= rows[i][i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for other in range(d):
            if other != i:
                rows[other] = [a - rows[other][i] * b for a, b in zip(rows[other], rows[i], strict=True)]
    return [row[d:] for row in rows], determinant


class Exact:
    """Gaussian discriminants in rational numbers; only the logarithms are rounded."""

    def __init__(self, X: np.ndarray, y: np.ndarray, shared: bool) -> None:
        self.means: list[list[Fraction]] = []
        self.scatters: list[list[list[Fraction]]] = []
        counts = np.bincount(y).tolist()
        for k, n in enumerate(counts):
            columns = [[Fraction(value) for value in column] for column in X[y == k].T.tolist()]
            mean = [sum(column) / n for column in columns]
            pairs = [[sum(map(mul, one, two)) for two in columns] for one in columns]
            self.means.append(mean)
            self.scatters.append(
                [
                    [sums - n * a * b for sums, b in zip(row, mean, strict=True)]
                    for row, a in zip(pairs, mean, strict=True)
                ]
            )
        pooled = [[sum(entries) for entries in zip(*rows, strict=True)] for rows in zip(*self.scatters, strict=True)]
        self.metrics = []
        for scatter, n in zip(self.scatters, counts, strict=True):
            divided = [[value / len(y) for value in row] for row in pooled] if shared else []
            inverse, determinant = inverse_and_determinant(divided or [[value / n for value in row] for row in scatter])
            self.metrics.append((inverse, np.log(float(determinant))))
        self.log_priors = np.log(counts) - np.log(len(y))

    def log_posteriors(self, X: np.ndarray) -> np.ndarray:
        scores = np.empty((len(X), len(self.means)))
        for i, row in enumerate(X.tolist()):
            for k, (mean, (inverse, log_determinant)) in enumerate(zip(self.means, self.metrics, strict=True)):
                z = [Fraction(value) - m for value, m in zip(row, mean, strict=True)]
                length = sum(map(mul, z, (sum(map(mul, line, z)) for line in inverse)))
                scores[i, k] = self.log_priors[k] - 0.5 * (log_determinant + float(length))
        return scores - np.logaddexp.reduce(scores, axis=1)[:, None]


@pytest.fixture(params=[0.0, 1e4, 1e8], ids="offset {:g}".format)
def far(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """Columns of unit variance at an offset, in several blocks, with exact references within reach."""
    monkeypatch.setattr("separatrix.data.source._TARGET_BYTES", 1)
    X, y = classes(1200, 3, 3)
    order = np.argsort(y[200:], kind="stable") + 200  # blocks of few classes: merging has to carry the means
    order = np.concatenate([np.arange(200), order])
    return X[order] + request.param * np.array([1.0, -1.0, 0.0]), y[order]


@each("model", named("lda", "lda lsqr", "lda eigen", "qda", "rda as lda", "rda as qda"))
def test_posteriors_far_from_the_origin_are_those_of_rational_numbers(
    model: Any, far: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = far
    shared = not isinstance(model, QuadraticDiscriminantAnalysis) and getattr(model, "alpha", 0.0) == 0.0
    expected = Exact(X, y, shared).log_posteriors(X[::60])
    fitted = clone(model).fit(X, y)
    assert_close(np.exp(fitted.predict_log_proba(X[::60])), np.exp(expected), 1e-8)
    parts = clone(model)
    for rows in np.array_split(np.arange(len(y)), 9):
        parts.partial_fit(X[rows], y[rows])
    assert_close(parts.predict_proba(X[::60]), np.exp(expected), 1e-8)


def test_moments_far_from_the_origin_are_those_of_rational_numbers(far: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = far
    exact = Exact(X, y, shared=False)
    means, scatters = np.array(exact.means, dtype=float), np.array(exact.scatters, dtype=float)
    moments = ClassMoments.of_source(as_source(X, y).labelled(), "per_class")
    np.testing.assert_allclose(moments.means, means, rtol=3e-16, atol=1e-15)
    size = np.sqrt(np.einsum("kii->ki", scatters))
    for k in range(3):
        error = np.abs(moments.of_class(k).matrix() - scatters[k]) / np.outer(size[k], size[k])
        assert error.max() < 1e-12


def test_few_rows_far_from_the_origin_keep_their_digits_too() -> None:
    """The thin form, which holds the rows: here fewer than columns."""
    rng = np.random.default_rng(0)
    X, y = np.round(rng.standard_normal((30, 40)) * 64) / 64, np.arange(30) % 3
    for offset in (1e8, 1e12):
        for form in ("pooled", "per_class"):
            near, away = (
                ClassMoments.of_source(as_source(rows, y).labelled(), form).pooled().matrix()
                for rows in (X, X + offset)
            )
            assert_close(away, near, 1e-9)


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(),
        FisherDiscriminant(),
        RidgeClassifier(alpha=0.0),
        LinearRegression(),
        Ridge(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_shift_of_a_column_moves_nothing_but_the_intercept(
    model: Any, storage: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("separatrix.data.source._TARGET_BYTES", 1)
    X, y = classes(10_000, 4, 3)
    X = np.round(X * 64) / 64 * (np.random.default_rng(0).random(X.shape) < [0.3, 0.6, 1.0, 1.0])
    away = X + np.array([0.0, 0.0, 1e8, 0.0])  # exact: nothing is rounded
    near, shifted = clone(model).fit(X, y), clone(model).fit(storage(away), y)
    if isinstance(model, QuadraticDiscriminantAnalysis):
        for one, two in zip(shifted.set_params(store_covariance=True).covariance_, near._covariances, strict=True):
            assert_close(one, two[0].matrix(), 1e-10)
    else:
        name = "scalings_" if isinstance(model, FisherDiscriminant) else "coef_"
        assert_close(getattr(shifted, name), getattr(near, name), 1e-10)


# -- wild units -------------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n", [150, 2500], ids=["one block", "several blocks"])
def test_units_from_1e_minus_150_to_1e150_change_nothing(
    model: Any, k: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("separatrix.data.source._TARGET_BYTES", 1)
    X, y = classes(n, 5, k)
    units = np.array([1e150, 1e-150, 1.0, 1e-75, 1e75])
    target = X[:, 0] + y if is_regressor(model) else y
    with quietly():
        expected = answer(clone(model).fit(X, target), X[:100])
        fitted = clone(model).fit(X * units, target)
        assert_close(answer(fitted, X[:100] * units), expected, 1e-8)
        parts = clone(model).partial_fit(X[::2] * units, target[::2]).partial_fit(X[1::2] * units, target[1::2])
        assert_close(answer(parts, X[:100] * units), expected, 1e-8)
    assert fitted.fit_.passes >= 1
    assert "nan" not in str(fitted.fit_)


@pytest.mark.parametrize(
    "model",
    [LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), FisherDiscriminant()],
    ids=repr,
)
def test_units_change_nothing_with_more_columns_than_rows(model: Any) -> None:
    X, y = classes(40, 80, 3)
    units = 10.0 ** np.random.default_rng(0).permutation(np.linspace(-150, 150, 80))
    with quietly():
        assert_close(answer(clone(model).fit(X * units, y), X * units), answer(clone(model).fit(X, y), X), 1e-8)


@each("model", named("ridge classifier without penalty", "least squares"))
@pytest.mark.parametrize("spread", [4, 10, 150])
def test_wide_least_squares_in_wild_units_prove_no_more_than_is_true(model: Any, spread: int) -> None:
    """With more columns than rows some coefficients fit every row: the least sum of squares is zero."""
    X, y = classes(40, 80, 2)
    units = 10.0 ** np.random.default_rng(0).permutation(np.linspace(-spread, spread, 80))
    with quietly():
        fitted = clone(model).fit(X * units, y)
    target = y if is_regressor(model) else 2.0 * y - 1.0
    residuals = answer(fitted, X * units) - target
    proof = fitted.fit_.certificate
    assert np.isfinite([proof.gap, proof.objective]).all()
    assert proof.objective == pytest.approx(residuals @ residuals, abs=1e-6)
    assert proof.objective - proof.gap <= 1e-6


# -- constant and dependent columns -----------------------------------------------------------------------------------

CONSTANTS = [0.0, 1.0, -7.7, 1 / 3, 1e8 + 0.1]


@pytest.mark.parametrize("constant", CONSTANTS, ids="{:g}".format)
@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(solver="lsqr"),
        QuadraticDiscriminantAnalysis(singular="pseudo"),
        FisherDiscriminant(),
        RidgeClassifier(alpha=0.0),
        RidgeClassifier(),
        LinearRegression(),
    ],
    ids=repr,
)
def test_constant_columns_carry_no_evidence(model: Any, constant: float) -> None:
    with quietly():
        for n, d, k in ((150, 5, 3), (2000, 4, 3), (2000, 4, 2), (40, 60, 3)):
            X, y = classes(n, d, k)
            wider = np.column_stack([np.full(n, constant), X, np.full(n, 3.0 * constant)])
            target = X[:, 0] + y if is_regressor(model) else y
            expected = answer(clone(model).fit(X, target), X)
            assert_close(answer(clone(model).fit(wider, target), wider), expected, 1e-8)
            assert_close(answer(clone(model).fit(sp.csr_array(wider), target), wider), expected, 1e-8)
            parts = clone(model)
            for rows in np.array_split(np.arange(n), 7):
                parts.partial_fit(wider[rows], target[rows], sample_weight=np.full(len(rows), 0.7))
            if not isinstance(model, RidgeClassifier) or model.alpha == 0.0:  # a penalty feels the weights
                assert_close(answer(parts, wider), expected, 1e-8)


def test_a_constant_column_is_refused_by_plain_qda() -> None:
    X, y = classes(300, 3, 2)
    for constant in CONSTANTS:
        with quietly(), pytest.raises(np.linalg.LinAlgError, match="class 0 is not full rank"):
            QuadraticDiscriminantAnalysis().fit(np.column_stack([X, np.full(300, constant)]), y)


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(solver="eigen"),
        QuadraticDiscriminantAnalysis(singular="pseudo"),
        FisherDiscriminant(),
        RidgeClassifier(alpha=0.0),
        LinearRegression(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("scale", [1.0, 1e-120, 1e120], ids="{:g}".format)
def test_dependent_columns_carry_no_more_evidence(model: Any, scale: float) -> None:
    X, y = classes(400, 4, 3)
    target = X[:, 0] + y if is_regressor(model) else y
    if isinstance(model, QuadraticDiscriminantAnalysis) and scale != 1.0:
        pytest.skip("the pseudo-inverse is taken in the user's units")
    wider = np.column_stack([X, scale * X[:, 0], X[:, 0] + X[:, 1] - 2.0 * X[:, 2]])
    with quietly():
        fitted = clone(model).fit(wider, target)
        assert_close(answer(fitted, wider), answer(clone(model).fit(X, target), X), 1e-8)
    assert fitted.fit_.status.name in ("PSEUDO", "RANK_DEFICIENT")
    assert "4" in fitted.fit_.detail or isinstance(model, QuadraticDiscriminantAnalysis)


def test_least_squares_of_dependent_columns_have_minimum_norm() -> None:
    X, y = classes(300, 3, 2)
    wider = np.column_stack([X, X[:, 0], 5.0 * X[:, 1]])
    for model in (LinearRegression(), RidgeClassifier(alpha=0.0)):
        target = y * 1.0 if is_regressor(model) else y
        expected = np.linalg.lstsq(
            wider - wider.mean(axis=0), 2.0 * y - 1 if not is_regressor(model) else y, rcond=1e-10
        )[0]
        with quietly():
            assert_close(np.ravel(clone(model).fit(wider, target).coef_), expected, 1e-9)


def test_a_column_that_separates_the_classes_without_varying_is_left_out_or_refused() -> None:
    X, y = classes(200, 2, 2)
    wider = np.column_stack([X, 0.1 * y])
    with quietly():
        fitted = LinearDiscriminantAnalysis().fit(wider, y)
        assert_close(answer(fitted, wider), answer(LinearDiscriminantAnalysis().fit(X, y), X), 1e-8)
        with pytest.raises(np.linalg.LinAlgError, match="class 0"):
            QuadraticDiscriminantAnalysis().fit(wider, y)


# -- classes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(),
        RegularizedDiscriminantAnalysis(),
        FisherDiscriminant(),
        RidgeClassifier(),
        RidgeClassifier(class_weight="balanced"),
        RidgeClassifier(solver="cg"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", [int, str, object])
def test_a_class_without_weight_has_a_place_and_no_rows(model: Any, kind: type) -> None:
    X, y = classes(200, 4, 3)
    names = np.array(["x", "y", "z"]).astype(object if kind is object else str) if kind is not int else np.arange(3)
    labels = names[y]
    w = np.where(y == 1, 0.0, 1.0 + np.arange(200) % 2)
    fitted = clone(model).fit(X, labels, sample_weight=w)
    kept = y != 1
    expected = clone(model).fit(X[kept], labels[kept], sample_weight=w[kept])
    assert fitted.classes_.tolist() == names.tolist()
    assert expected.classes_.tolist() == names[[0, 2]].tolist()
    if isinstance(model, FisherDiscriminant):
        assert_close(answer(fitted, X), answer(expected, X), 1e-10)
        return
    scores, own = fitted.decision_function(X), expected.decision_function(X)
    assert np.isneginf(scores[:, 1]).all()
    # One score of two classes is a difference of log posteriors; the targets of least squares are −1 and 1.
    assert_close(scores[:, 2] - scores[:, 0], 2.0 * own if isinstance(model, RidgeClassifier) else own, 1e-10)
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))


def test_classes_of_one_row_are_fine_for_lda_and_named_by_qda() -> None:
    X, y = classes(60, 3, 2)
    rows, labels = np.concatenate([X, [[9.0, 9.0, 9.0]], [[-9.0, 0.0, 9.0]]]), np.concatenate([y, [7, 8]])
    for ours, theirs in (
        (LinearDiscriminantAnalysis(), discriminant_analysis.LinearDiscriminantAnalysis()),
        (LinearDiscriminantAnalysis(solver="lsqr"), discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr")),
    ):
        assert_close(answer(ours.fit(rows, labels), rows), answer(theirs.fit(rows, labels), rows), 1e-9)
        assert ours.predict(rows[-2:]).tolist() == [7, 8]
    with pytest.raises(ValueError, match="class 7"):
        QuadraticDiscriminantAnalysis().fit(rows, labels)
    assert RegularizedDiscriminantAnalysis().fit(rows, labels).predict(rows[-2:]).tolist() == [7, 8]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LinearDiscriminantAnalysis(), discriminant_analysis.LinearDiscriminantAnalysis()),
        (LinearDiscriminantAnalysis(solver="lsqr"), discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr")),
        (RidgeClassifier(), linear_model.RidgeClassifier()),
    ],
    ids=lambda model: repr(model) if model.__module__.startswith("separatrix") else "",
)
def test_a_thousand_classes(ours: Any, theirs: Any) -> None:
    X, y = classes(20_000, 10, 1000)
    expected = clone(theirs).fit(X, y).decision_function(X[:200])
    assert_close(clone(ours).fit(X, y).decision_function(X[:200]), expected, 1e-10)
    parts = clone(ours)
    for rows in np.array_split(np.argsort(y), 10):  # every part has classes of its own
        parts.partial_fit(X[rows], y[rows])
    assert_close(parts.decision_function(X[:200]), expected, 1e-9)


# -- more columns than rows -------------------------------------------------------------------------------------------

WIDE = (200, 4000)


@pytest.fixture(scope="module")
def wide() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(WIDE[0]) % 3
    return rng.standard_normal(WIDE) * rng.uniform(0.5, 2.0, WIDE[1]) + 0.2 * rng.standard_normal((3, WIDE[1]))[y], y


@pytest.fixture(scope="module")
def span(wide: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The directions in which these rows differ at all."""
    return np.linalg.qr(wide[0].T)[0]


def traced_fit(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    """Fitted without ever holding anything like a d×d matrix, which would be 128 MB."""
    tracemalloc.start()
    try:
        with quietly():
            fitted = clone(model).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 80e6, f"{peak / 1e6:.0f} MB"
    return fitted


def shrunk_discriminant(X: np.ndarray, y: np.ndarray, T: np.ndarray) -> np.ndarray:
    """LDA with Ledoit–Wolf shrinkage by standardised columns, on the side of the rows (Woodbury)."""
    floor, rows, means, priors = np.zeros(X.shape[1]), [], [], []
    for k in range(y.max() + 1):
        group = X[y == k]
        prior, mean, scale = len(group) / len(X), group.mean(axis=0), group.std(axis=0)
        intensity = ledoit_wolf_shrinkage((group - mean) / scale, assume_centered=True)
        rows.append(np.sqrt(prior * (1 - intensity) / len(group)) * (group - mean))
        floor += prior * intensity * scale**2  # the mean variance of standardised columns is 1
        means.append(mean)
        priors.append(prior)
    F, M = np.concatenate(rows), np.array(means)
    M_solved = M / floor - (F / floor).T.dot(np.linalg.solve(np.eye(len(F)) + (F / floor) @ F.T, (F / floor) @ M.T)).T
    scores = T @ M_solved.T - 0.5 * np.einsum("ij,ij->i", M, M_solved) + np.log(priors)
    return scores - np.logaddexp.reduce(scores, axis=1)[:, None]


def test_wide_lda_is_scikit_learns(wide: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = wide
    T = X + 0.5
    expected = discriminant_analysis.LinearDiscriminantAnalysis().fit(X, y).predict_log_proba(T)
    fitted = traced_fit(LinearDiscriminantAnalysis(), X, y)
    assert_close(fitted.predict_log_proba(T), expected, 1e-8)


def test_wide_lda_with_ledoit_wolf_is_woodburys(wide: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = wide
    narrow = discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X[:, :300], y)
    assert_close(shrunk_discriminant(X[:, :300], y, X[:, :300]), narrow.predict_log_proba(X[:, :300]), 1e-8)
    fitted = traced_fit(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), X, y)
    assert_close(fitted.predict_log_proba(X + 0.5), shrunk_discriminant(X, y, X + 0.5), 1e-8)


@pytest.mark.parametrize(
    "model",
    [
        QuadraticDiscriminantAnalysis(reg_param=0.5),
        RegularizedDiscriminantAnalysis(0.5, 0.5, target="identity"),
        RegularizedDiscriminantAnalysis(0.0, 0.5, target="identity"),
        RidgeClassifier(),
        RidgeClassifier(alpha=0.0),
        Ridge(),
        LinearRegression(),
    ],
    ids=repr,
)
def test_wide_models_are_those_of_the_same_rows_in_their_own_span(
    model: Any, wide: tuple[np.ndarray, np.ndarray], span: np.ndarray
) -> None:
    """A rotation to the directions of the rows: an identity target and norms do not notice."""
    X, y = wide
    T = X[:50] + np.random.default_rng(1).standard_normal((50, 1)) * X[50:100]
    fitted = traced_fit(model, X, y)
    expected = clone(model).fit(X @ span, y)
    assert_close(answer(fitted, T), answer(expected, T @ span), 1e-8)


def test_wide_fisher_coordinates_whiten_the_classes(wide: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = wide
    fitted = traced_fit(FisherDiscriminant(), X, y)
    scores = fitted.transform(X)
    within = sum(np.cov(scores[y == k].T, bias=True) * (y == k).sum() for k in range(3)) / len(y)
    assert_close(within, np.eye(2), 1e-8)
    lda = LinearDiscriminantAnalysis().fit(X, y)
    difference = lda.decision_function(X)[:, :2] - lda.decision_function(X)[:, 2:]
    centred = scores - scores.mean(axis=0)
    explained = centred @ np.linalg.lstsq(centred, difference - difference.mean(axis=0), rcond=None)[0]
    assert_close(explained, difference - difference.mean(axis=0), 1e-8)


def test_wide_regularised_discriminants_with_trace_and_leave_one_out(wide: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = wide
    fitted = traced_fit(RegularizedDiscriminantAnalysis(0.5, 0.9), X, y)
    # The trace target of d columns is the identity target, once the columns are divided by its root.
    pooled = sum(X[y == k].var(axis=0) * (y == k).mean() for k in range(3)).mean()
    for k in range(3):
        level = 0.5 * X[y == k].var() + 0.5 * pooled
        assert np.isclose(fitted._covariances[k][1][0], 0.1 * level, rtol=0.05)
    assert fitted.score(X, y) == 1.0
    chosen = traced_fit(RegularizedDiscriminantAnalysis("loo", "loo", alphas=[0.0, 1.0], gammas=[0.1, 0.5]), X, y)
    assert np.isfinite(chosen.selection_["log_loss"]).all()


# -- weights, parts, order, rotation ----------------------------------------------------------------------------------

INVARIANT = tight(having(family=("discriminant", "least_squares"), folds=False))
each_invariant = each("model", INVARIANT)


def target_of(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return X @ np.arange(X.shape[1]) + y if is_regressor(model) else y


@each_invariant
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_weights_are_repetitions_and_zero_is_removal(model: Any, storage: Callable[..., Any]) -> None:
    X, y = classes(120, 4, 3)
    target = target_of(model, X, y)
    w = np.random.default_rng(4).integers(0, 4, 120)
    repeated = np.repeat(np.arange(120), w)
    weighted = clone(model).fit(storage(X), target, sample_weight=w)
    assert_close(answer(weighted, X), answer(clone(model).fit(X[repeated], target[repeated]), X), 1e-8)
    kept = w > 0
    removed = clone(model).fit(storage(X[kept]), target[kept], sample_weight=w[kept])
    assert_close(answer(weighted, X), answer(removed, X), 1e-10)


def test_rows_of_weight_zero_unmask_no_class() -> None:
    """A class is masked if no training row is given to it, and a row of weight zero is not there."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 50)
    # The middle cluster stands a little to the left and to the right, so that no row of it is a close call.
    X = np.column_stack([5.0 * (y - 1) + np.tile([-0.8, 0.8], 75), 0.1 * rng.standard_normal(150)])
    model = RidgeClassifier(alpha=0.0).fit(X, y)
    assert model.masked_classes_.tolist() == [1]
    far = np.column_stack([np.zeros(2001), np.linspace(-1e5, 1e5, 2001)])
    lone = far[model.predict(far) == 1][:1]
    assert len(lone) == 1, "some place belongs to the middle class"
    weighted = RidgeClassifier(alpha=0.0).fit(
        np.concatenate([X, lone]), np.append(y, 0), sample_weight=np.append(np.ones(150), 0.0)
    )
    np.testing.assert_allclose(weighted.coef_, model.coef_, rtol=1e-10)
    assert weighted.masked_classes_.tolist() == [1]


@each_invariant
def test_the_order_of_rows_does_not_matter(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.data.source._TARGET_BYTES", 1)
    X, y = classes(1300, 4, 3)
    target = target_of(model, X, y)
    order = np.random.default_rng(5).permutation(1300)
    one, two = clone(model).fit(X, target), clone(model).fit(X[order], target[order])
    assert_close(answer(two, X), answer(one, X), 1e-10)


IN_PARTS = named(
    "lda",
    "lda lsqr, shrunk",
    "lda unbiased",
    "qda",
    "qda unbiased",
    "rda",
    "fisher unbiased",
    "ridge classifier",
    "ridge classifier, balanced",
    "least squares",
)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 1000),
    cuts=st.lists(st.integers(0, 200), max_size=5),
    d=st.sampled_from([3, 80]),
)
def test_any_parts_in_any_order_are_the_whole(seed: int, cuts: list[int], d: int) -> None:
    X, y = classes(200, d, 3, seed)
    X = X + 10.0 ** np.random.default_rng(seed).integers(-1, 3, d)
    rng = np.random.default_rng(seed)
    order, edges = rng.permutation(200), [0, *sorted(cuts), 200]
    parts = [order[a:b] for a, b in pairwise(edges) if b > a]
    for model in IN_PARTS.values():
        if d > 60 and (
            isinstance(model, QuadraticDiscriminantAnalysis) or model.get_params().get("covariance") == "unbiased"
        ):
            continue
        target = target_of(model, X, y)
        whole = clone(model).fit(X, target)
        running = clone(model)
        for part in parts:
            running.partial_fit(X[part], target[part])
        assert_close(answer(running, X), answer(whole, X), 1e-12 if d == 3 else 1e-10)
        if is_regressor(model):
            models = [clone(model).fit(X[part], target[part]) for part in parts]
        else:
            models = [clone(model).partial_fit(X[part], target[part]) for part in parts]
        rng.shuffle(models)
        merged = models[0]
        for other in models[1:]:
            merged = other.merge(merged) if rng.random() < 0.5 else merged.merge(other)
        assert_close(answer(merged, X), answer(whole, X), 1e-12 if d == 3 else 1e-10)


def test_merging_is_of_two_that_stay_as_they_were() -> None:
    X, y = classes(200, 3, 3)
    for model in IN_PARTS.values():
        target = target_of(model, X, y)
        one, two = clone(model).fit(X[:100], target[:100]), clone(model).fit(X[100:], target[100:])
        before = answer(one, X), answer(two, X)
        merged = one.merge(two)
        merged.partial_fit(X, target)
        np.testing.assert_array_equal(answer(one, X), before[0])
        np.testing.assert_array_equal(answer(two, X), before[1])
        assert_close(answer(one.merge(two), X), answer(two.merge(one), X), 1e-10)


@each("model", {name: model for name, model in IN_PARTS.items() if not REGISTRY[name].regressor})
def test_classes_may_appear_in_any_part(model: Any) -> None:
    X, y = classes(300, 3, 5)
    labels = np.array(["d", "b", "e", "a", "c"])[y]
    whole = clone(model).fit(X, labels)
    late = clone(model)
    for first, last in ((0, 2), (3, 5), (2, 3)):
        rows = (y >= first) & (y < last)
        late.partial_fit(X[rows], labels[rows])
        assert np.isin(late.predict(X) if hasattr(late, "predict") else late.classes_, labels[y < 5]).all()
    assert late.classes_.tolist() == list("abcde")
    assert_close(answer(late, X), answer(whole, X), 1e-10)
    known = clone(model).partial_fit(X[:150], labels[:150], classes=list("abcde"))
    assert_close(answer(known.partial_fit(X[150:], labels[150:]), X), answer(whole, X), 1e-10)


@each("model", named("lda", "lda lsqr, shrunk", "qda", "qda, shrunk", "rda", "ridge classifier", "least squares"))
def test_rotations_of_the_columns_change_no_answer(model: Any) -> None:
    X, y = classes(300, 6, 3)
    target = X[:, 0] + y if is_regressor(model) else y
    rotation = np.linalg.qr(np.random.default_rng(6).standard_normal((6, 6)))[0]
    expected = answer(clone(model).fit(X, target), X)
    assert_close(answer(clone(model).fit(X @ rotation, target), X @ rotation), expected, 1e-10)


@each("model", named("lda", "qda", "ridge classifier without penalty"))
def test_any_affine_map_of_the_columns_changes_no_answer(model: Any) -> None:
    X, y = classes(300, 5, 3)
    A = np.random.default_rng(7).standard_normal((5, 5)) + 3.0 * np.eye(5)
    expected = answer(clone(model).fit(X, y), X)
    moved = X @ A + [5.0, -2.0, 0.0, 100.0, 1.0]
    assert_close(answer(clone(model).fit(moved, y), moved), expected, 1e-9)
