"""Least squares, ridge and the least-squares classifier: scikit-learn's answers, and the properties that make them right."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from estimators import each, having, named, tight
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.preprocessing import PolynomialFeatures

from separatrix import (
    FeatureMap,
    LinearDiscriminantAnalysis,
    LinearRegression,
    Ridge,
    RidgeClassifier,
    Status,
    condition_gaussian,
    ridge_path,
)

few = settings(max_examples=25, deadline=None)
close = dict(rtol=1e-8, atol=1e-10)

# Small whole numbers are exact in every storage, so each of these holds the same rows.
STORAGES: dict[str, Any] = {
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "float32": lambda X: X.astype(np.float32),
    "int64": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "list": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]),
}


def problem(seed: int = 0, n: int = 120, d: int = 6, m: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of small whole numbers, many of them zero, and noisy targets that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (n, d)) * (rng.random((n, d)) < 0.7).astype(np.float64)
    slopes = rng.standard_normal((d, max(1, m)))
    y = X @ slopes + rng.standard_normal((n, max(1, m))) + 3.0
    return X, y if m else y[:, 0]


def labels(X: np.ndarray, n_classes: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scores = X @ rng.standard_normal((X.shape[1], n_classes)) + 2.0 * rng.standard_normal((len(X), n_classes))
    return np.array(["ash", "birch", "cedar", "date", "elm"])[scores.argmax(axis=1)]


def weights_for(n: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 3.0, n)


def shrink_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred rows become several blocks."""
    monkeypatch.setattr("separatrix.data.source._TARGET_BYTES", 1)


# -- linear and ridge regression against scikit-learn -----------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1.7])
def test_every_storage_gives_scikit_learn_s_answer(storage: str, intercept: bool, weighted: bool, alpha: float) -> None:
    X, y = problem()
    w = weights_for(len(y)) if weighted else None
    held = STORAGES[storage](X)
    mine = LinearRegression(fit_intercept=intercept) if alpha == 0 else Ridge(alpha, fit_intercept=intercept)
    theirs = sk.LinearRegression(fit_intercept=intercept) if alpha == 0 else sk.Ridge(alpha, fit_intercept=intercept)
    mine.fit(held, y, w)
    theirs.fit(X, y, w)
    tolerance = dict(rtol=1e-6, atol=1e-6) if "float32" in storage else close
    assert mine.coef_.shape == theirs.coef_.shape
    np.testing.assert_allclose(mine.coef_, theirs.coef_, **tolerance)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, **tolerance)
    np.testing.assert_allclose(mine.predict(held), theirs.predict(X), **(tolerance | {"rtol": 1e-5}))
    assert mine.fit_.status is Status.EXACT
    assert mine.fit_.passes == 1


def test_input_is_left_as_it_was() -> None:
    X, y = problem()
    w = weights_for(len(y))
    kept = X.copy(), y.copy(), w.copy()
    for model in (LinearRegression(), Ridge(positive=True), Ridge(solver="cg")):
        model.fit(X, y, w).predict(X)
    Ridge("loo").fit(X, y)
    for now, before in zip((X, y, w), kept, strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize("storage", ["C order", "csr"])
def test_several_targets_and_a_penalty_for_each(storage: str) -> None:
    X, Y = problem(m=3)
    w, alpha = weights_for(len(Y)), np.array([0.0, 0.5, 40.0])
    held = STORAGES[storage](X)
    mine, theirs = Ridge(alpha).fit(held, Y, w), sk.Ridge(alpha).fit(X, Y, w)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, **close)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, **close)
    for j, penalty in enumerate(alpha):
        np.testing.assert_allclose(mine.coef_[j], Ridge(penalty).fit(held, Y[:, j], w).coef_, **close)
    ols = LinearRegression().fit(held, Y, w)
    np.testing.assert_allclose(ols.coef_, sk.LinearRegression().fit(X, Y, w).coef_, **close)
    np.testing.assert_allclose(mine.predict(held), theirs.predict(X), **close)


def test_a_wrong_number_of_penalties_is_refused() -> None:
    X, Y = problem(m=3)
    with pytest.raises(ValueError, match="do not correspond: 2 != 3"):
        Ridge([1.0, 2.0]).fit(X, Y)
    with pytest.raises(ValueError, match="finite and ≥ 0"):
        Ridge([1.0, -2.0, 1.0]).fit(X, Y)


@pytest.mark.parametrize("storage", ["C order", "csr"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 25.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_positive_coefficients_are_those_of_nnls(storage: str, alpha: float, intercept: bool) -> None:
    X, Y = problem(m=2)
    w = weights_for(len(Y))
    model = Ridge(alpha, positive=True, fit_intercept=intercept).fit(STORAGES[storage](X), Y, w)
    root, d = np.sqrt(w)[:, None], X.shape[1]
    Z, T = (X - np.average(X, 0, w), Y - np.average(Y, 0, w)) if intercept else (X, Y)
    A = np.concatenate([root * Z, np.sqrt(alpha) * np.eye(d)])
    for j in range(2):
        expected, _ = nnls(A, np.concatenate([root[:, 0] * T[:, j], np.zeros(d)]))
        np.testing.assert_allclose(model.coef_[j], expected, **close)
        assert (model.coef_[j] >= 0).all() and (expected == 0).any()  # some bound is active
    if alpha == 0:
        theirs = sk.LinearRegression(positive=True, fit_intercept=intercept).fit(X, Y, w)
        np.testing.assert_allclose(model.coef_, theirs.coef_, **close)
        np.testing.assert_allclose(model.intercept_, theirs.intercept_, **close)


def test_longley_has_the_certified_coefficients() -> None:
    from statsmodels.datasets import longley

    # NIST Statistical Reference Datasets, Longley: certified to 15 digits.
    certified = [15.0618722713733, -0.0358191792925910, -2.02022980381683, -1.03322686717359, -0.0511041056535807]
    certified.append(1829.15146461355)
    data = longley.load_pandas()
    X, y = data.exog.to_numpy(dtype=np.float64), data.endog.to_numpy(dtype=np.float64)
    model = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, certified, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, -3482258.63459582, rtol=1e-9)
    np.testing.assert_allclose(model.fit_.certificate.objective, 836424.055505915, rtol=1e-9)
    parts = LinearRegression().partial_fit(X[:9], y[:9]).partial_fit(X[9:], y[9:])  # from the statistic alone
    np.testing.assert_allclose(parts.coef_, certified, rtol=1e-6)


# -- weights, parts, merging ------------------------------------------------------------------------------------------


def target_for(model: Any, X: np.ndarray, seed: int) -> np.ndarray:
    if isinstance(model, RidgeClassifier):
        return labels(X, 3, seed)
    return problem(seed, len(X), X.shape[1], 2)[1]


def assert_same_rule(a: Any, b: Any, rtol: float = 1e-8) -> None:
    scale = max(1e-300, np.abs(b.coef_).max())
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(a.intercept_, b.intercept_, rtol=rtol, atol=rtol * max(1.0, np.abs(b.intercept_).max()))


@each("model", tight(having(family="least_squares", only_for=("", "two targets", "label ash"))))
@pytest.mark.parametrize("storage", ["C order", "csr"])
def test_a_weight_is_a_number_of_repeated_rows(model: Any, storage: str) -> None:
    X, _ = problem(5, 60, 4)
    y, counts = target_for(model, X, 5), np.random.default_rng(6).integers(0, 4, len(X))
    assert (counts == 0).any()
    held = STORAGES[storage]
    weighted = type(model)(**model.get_params()).fit(held(X), y, counts)
    repeated = type(model)(**model.get_params()).fit(held(np.repeat(X, counts, axis=0)), np.repeat(y, counts, axis=0))
    assert_same_rule(weighted, repeated)
    kept = counts > 0
    removed = type(model)(**model.get_params()).fit(held(X[kept]), y[kept], counts[kept])
    assert_same_rule(weighted, removed, 1e-12 if "cg" not in str(model) else 1e-8)


def test_balanced_multi_label_weights_count_repeated_rows_too() -> None:
    X, _ = problem(5, 60, 4)
    rng = np.random.default_rng(0)
    Y, counts = (rng.random((60, 3)) < 0.3).astype(int), rng.integers(0, 4, 60)
    for class_weight in (None, "balanced"):
        model = RidgeClassifier(class_weight=class_weight)
        weighted = model.fit(X, Y, counts).coef_
        repeated = model.fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0)).coef_
        np.testing.assert_allclose(weighted, repeated, **close)


def test_masked_classes_do_not_see_rows_of_weight_zero() -> None:
    X, y = three_clusters()
    masked = RidgeClassifier().fit(X, y)
    far = np.random.default_rng(0).uniform(-300, 300, (5000, 2))
    far = far[masked.predict(far) == "middle"][:1]
    assert masked.masked_classes_.tolist() == ["middle"] and len(far) == 1
    w = np.r_[np.ones(len(y)), 0.0]
    again = RidgeClassifier().fit(np.r_[X, far], np.r_[y, ["middle"]], w)
    np.testing.assert_array_equal(again.coef_, masked.coef_)
    assert again.masked_classes_.tolist() == ["middle"]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@each("model", named("least squares", "ridge", "ridge by cg", "ridge, leave one out"))
def test_a_bad_value_in_a_row_of_weight_zero_is_refused_or_left_out(model: Any, bad: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    X[:, 2] = X[:, 1] + 1e-5 * X[:, 2]  # ill-conditioned enough for a second pass
    y, w = rng.standard_normal(60), np.ones(60)
    X[7, 0], w[7] = bad, 0.0
    kept = w > 0
    expected = model.fit(X[kept], y[kept]).coef_.copy()
    try:
        found = model.fit(X, y, w).coef_
    except ValueError as error:
        assert "column 0" in str(error)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@few
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 12), st.integers(1, 3), st.booleans())
def test_parts_and_merges_equal_one_fit(seed: int, n: int, d: int, m: int, sparse: bool) -> None:
    X, Y = problem(seed, n, d, m)
    rng = np.random.default_rng(seed)
    w = rng.integers(0, 3, n) + (np.arange(n) == 0)
    held = sp.csr_array(X) if sparse else X
    cuts = np.unique(np.r_[0, rng.integers(0, n + 1, 3), n])
    parts = [slice(a, b) for a, b in pairwise(cuts) if w[a:b].any()]
    whole = Ridge(1.3).fit(held, Y, w)
    stream = Ridge(1.3)
    for part in parts:
        stream.partial_fit(held[part], Y[part], w[part])
    assert_same_rule(stream, whole, 1e-12)
    models = [Ridge(1.3).fit(held[part], Y[part], w[part]) for part in parts]
    merged = models[0]
    before = merged.coef_.copy()
    for other in models[1:]:
        merged = merged.merge(other)
    assert_same_rule(merged, whole, 1e-12)
    np.testing.assert_array_equal(models[0].coef_, before)


@few
@given(st.integers(0, 10_000), st.booleans())
def test_classifier_parts_and_merges_equal_one_fit(seed: int, balanced: bool) -> None:
    X, _ = problem(seed, 80, 4)
    y, rng = labels(X, 4, seed), np.random.default_rng(seed)
    order = np.argsort(y, kind="stable") if seed % 2 else rng.permutation(len(y))  # parts may lack classes
    X, y = X[order], y[order]
    make = lambda: RidgeClassifier(0.4, class_weight="balanced" if balanced else None)  # noqa: E731
    whole, stream = make().fit(X, y), make()
    cuts = np.unique(np.r_[0, rng.integers(1, 80, 4), 80])
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    for part in parts:
        stream.partial_fit(X[part], y[part])
    assert stream.classes_.tolist() == whole.classes_.tolist()
    assert_same_rule(stream, whole, 1e-11)
    halves = [make().partial_fit(X[a:b], y[a:b]) for a, b in ((0, 40), (40, 80))]
    assert_same_rule(halves[0].merge(halves[1]), whole, 1e-11)


def test_blocks_and_threads_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    import separatrix

    X, y = problem(3, 3000, 5)
    whole = Ridge().fit(X, y)
    shrink_blocks(monkeypatch)
    cut = Ridge().fit(X, y)
    with separatrix.config(threads=1):
        alone = Ridge().fit(X, y)
    assert_same_rule(cut, whole, 1e-12)
    np.testing.assert_array_equal(cut.coef_, alone.coef_)


def test_a_refused_part_leaves_the_model_as_it_was() -> None:
    X, y = problem()
    model = Ridge().partial_fit(X[:50], y[:50])
    for refused in (np.c_[y, y], y[:, None]):
        with pytest.raises(ValueError):
            model.partial_fit(X[50:], refused[50:])
        assert model.predict(X).shape == y.shape
    model.partial_fit(X[50:], y[50:])
    assert_same_rule(model, Ridge().fit(X, y), 1e-12)


def test_partial_fit_goes_on_from_a_fit_or_refuses() -> None:
    X, y = problem()
    expected = Ridge().fit(X, y)
    for solver in ("gram", "cg"):
        model = Ridge(solver=solver, tol=1e-9).fit(X[:60], y[:60])
        try:
            model.partial_fit(X[60:], y[60:])
        except AttributeError:
            assert solver == "cg"
        else:
            assert_same_rule(model, expected)


# -- scale, rank, shape -----------------------------------------------------------------------------------------------


@few
@given(st.lists(st.integers(-150, 150), min_size=5, max_size=5), st.booleans())
def test_least_squares_follows_the_units_of_the_columns(exponents: list[int], intercept: bool) -> None:
    X, y = problem(4, 80, 5)
    units = 10.0 ** np.array(exponents)
    plain = LinearRegression(fit_intercept=intercept).fit(X, y)
    scaled = LinearRegression(fit_intercept=intercept).fit(X * units, y)
    np.testing.assert_allclose(scaled.coef_ * units, plain.coef_, **close)
    np.testing.assert_allclose(scaled.intercept_, plain.intercept_, **close)
    assert scaled.fit_.status is Status.EXACT
    assert np.isfinite(scaled.fit_.certificate.gap) and np.isfinite(scaled.fit_.certificate.objective)


@pytest.mark.parametrize("x_unit", [1e-150, 1e-60, 1.0, 1e60, 1e150])
@pytest.mark.parametrize("y_unit", [1e-150, 1.0, 1e150])
def test_units_of_rows_and_targets_from_tiny_to_huge(x_unit: float, y_unit: float) -> None:
    X, y = problem(4, 80, 5)
    plain = LinearRegression().fit(X, y)
    scaled = LinearRegression().fit(X * x_unit, y * y_unit)
    np.testing.assert_allclose(scaled.coef_ * x_unit / y_unit, plain.coef_, rtol=1e-8)
    np.testing.assert_allclose(scaled.intercept_ / y_unit, plain.intercept_, rtol=1e-8)
    assert np.isfinite([scaled.fit_.certificate.gap, scaled.fit_.certificate.objective]).all()
    bounded = LinearRegression(positive=True).fit(X * x_unit, y * y_unit)
    expected = LinearRegression(positive=True).fit(X, y).coef_
    np.testing.assert_allclose(bounded.coef_ * x_unit / y_unit, expected, **close)


@pytest.mark.parametrize("unit", [1e-9, 1e-30, 1e12])
def test_positive_coefficients_follow_the_units_of_one_column(unit: float) -> None:
    X, y = problem(4, 80, 3)
    y = X @ [1.0, 2.0, 3.0] + np.random.default_rng(0).standard_normal(80)
    units = np.array([1.0, unit, 1.0])
    plain = LinearRegression(positive=True).fit(X, y).coef_
    np.testing.assert_allclose(LinearRegression(positive=True).fit(X * units, y).coef_ * units, plain, **close)


def test_huge_targets_are_named_when_their_squares_overflow() -> None:
    X, y = problem()
    with pytest.raises(ValueError, match=r"\by\b"):
        Ridge().fit(X, y * 1e200)
    with pytest.raises(ValueError, match="X"):
        Ridge().fit(X * 1e200, y)


@pytest.mark.parametrize("value", [0.0, 1.0, -4.0, 0.1, 1 / 3, 7.3, 1e8 / 3, 1e-150 / 3])
@pytest.mark.parametrize("how", ["fit", "weights", "parts", "csr"])
def test_a_constant_column_gets_no_weight(value: float, how: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1000, 3)), rng.standard_normal(1000)
    X[:, 1] = value
    w = weights_for(1000) if how in ("weights", "csr") else None
    model = LinearRegression()
    if how == "parts":
        for part in np.array_split(np.arange(1000), 7):
            model.partial_fit(X[part], y[part])
    else:
        model.fit(sp.csr_array(X) if how == "csr" else X, y, w)
    expected = sk.LinearRegression().fit(X[:, [0, 2]], y, w)
    np.testing.assert_allclose(model.coef_[[0, 2]], expected.coef_, **close)
    assert abs(model.coef_[1]) * max(abs(value), 1e-150) < 1e-8
    np.testing.assert_allclose(model.intercept_, expected.intercept_, **close)
    assert model.fit_.status is Status.RANK_DEFICIENT
    assert model.rank_ == 2


@pytest.mark.parametrize("storage", ["C order", "csr"])
@pytest.mark.parametrize("intercept", [True, False])
def test_dependent_columns_give_the_answer_of_minimum_norm(storage: str, intercept: bool) -> None:
    X, y = problem(7, 60, 4)
    dummies = np.eye(3)[np.arange(60) % 3]
    X = np.c_[X, X[:, 0], 2.0 * X[:, 1] - X[:, 2], dummies, np.zeros(60)]
    model = LinearRegression(fit_intercept=intercept).fit(STORAGES[storage](X), y)
    Z, t = (X - X.mean(0), y - y.mean()) if intercept else (X, y)
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(Z, rcond=1e-10) @ t, **close)
    assert model.fit_.status is Status.RANK_DEFICIENT
    assert model.rank_ == np.linalg.matrix_rank(Z, tol=1e-8) == (6 if intercept else 7)
    assert f"{model.rank_} of 10 columns" in str(model.fit_)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 7), st.booleans())
def test_minimum_norm_for_any_small_shape(seed: int, n: int, d: int, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-2, 3, (n, d)).astype(float), rng.integers(-9, 10, n).astype(float)
    model = LinearRegression(fit_intercept=intercept).fit(X, y)
    Z, t = (X - X.mean(0), y - y.mean()) if intercept else (X, y)
    expected = np.linalg.pinv(Z, rcond=1e-9) @ t
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-7, atol=1e-9 * (1 + np.abs(expected).max()))
    assert (model.fit_.status is Status.RANK_DEFICIENT) == (np.linalg.matrix_rank(Z, tol=1e-9) < d)
    ridge = Ridge(0.5, fit_intercept=intercept).fit(X, y)
    np.testing.assert_allclose(
        ridge.coef_, sk.Ridge(0.5, fit_intercept=intercept, solver="svd").fit(X, y).coef_, **close
    )
    assert ridge.fit_.status is Status.EXACT


def test_ten_thousand_columns_equal_the_dual_solution() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((200, 10_000)), rng.standard_normal((200, 2))
    Z, T = X - X.mean(0), Y - Y.mean(0)
    dual = Z.T @ np.linalg.solve(Z @ Z.T + 3.0 * np.eye(200), T)
    for held in (X, sp.csr_array(X)):
        np.testing.assert_allclose(Ridge(3.0).fit(held, Y).coef_, dual.T, rtol=1e-8, atol=1e-12)
    ols = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(ols.coef_, np.linalg.lstsq(Z, T, rcond=1e-10)[0].T, rtol=1e-8, atol=1e-12)
    assert ols.fit_.status is Status.RANK_DEFICIENT and ols.rank_ == 199
    np.testing.assert_allclose(ols.predict(X), Y, atol=1e-9)


@pytest.mark.parametrize("digits", [3, 6, 8, 10])
def test_wide_rows_are_interpolated_however_unequal_their_sizes(digits: int) -> None:
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((size, 20)))[0] for size in (20, 60))
    X, y = (left * np.logspace(0, -digits, 20)) @ right.T, rng.standard_normal(20)
    model = LinearRegression(fit_intercept=False).fit(X, y)
    assert model.rank_ == np.linalg.matrix_rank(X) == 20
    np.testing.assert_allclose(model.predict(X), y, atol=1e-4)


def exact_coef(X: np.ndarray, y: np.ndarray, alpha: float = 0.0) -> np.ndarray:
    """Ridge coefficients in 60 digits."""
    with mpmath.workdps(60):
        rows = [[mpmath.mpf(float(value)) for value in (*row, target)] for row, target in zip(X, y, strict=True)]
        means = [mpmath.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
        centred = [[value - mean for value, mean in zip(row, means, strict=True)] for row in rows]
        columns, d = list(zip(*centred, strict=True)), X.shape[1]
        gram = mpmath.matrix(d, d)
        for j in range(d):
            for k in range(d):
                gram[j, k] = mpmath.fdot(columns[j], columns[k]) + (alpha if j == k else 0)
        cross = mpmath.matrix([mpmath.fdot(columns[j], columns[d]) for j in range(d)])
        return np.array([float(value) for value in mpmath.lu_solve(gram, cross)])


@pytest.mark.parametrize("nearness", [1.0, 1e-2, 1e-3, 1e-4])
def test_columns_at_a_hundred_million_keep_their_digits(nearness: float, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_blocks(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 3))
    X[:, 2] = X[:, 1] + nearness * X[:, 2]
    y = X @ [1.0, 2.0, 3.0] + rng.standard_normal(1200)
    X = X + 1e8
    expected = exact_coef(X, y)
    # The condition number of the centred columns is about 1/nearness; a statistic squares it.
    tolerance = max(1e-10, 3e-13 / nearness**2)
    for held in (X, sp.csr_array(X)):
        np.testing.assert_allclose(LinearRegression().fit(held, y).coef_, expected, rtol=tolerance)


def test_the_iterative_solver_too_keeps_digits_far_from_the_origin() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) + 1e8
    y = (X - 1e8) @ [1.0, 2.0, 3.0] + rng.standard_normal(200)
    model = Ridge(1e-3, solver="cg", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact_coef(X, y, 1e-3), rtol=1e-5)


def test_one_row_and_one_column() -> None:
    row = np.array([[2.0, 1.0, -2.0]])
    for model in (LinearRegression(), Ridge(), Ridge(positive=True), Ridge(solver="cg")):
        model.fit(row, [5.0])
        np.testing.assert_array_equal(model.coef_, np.zeros(3))
        assert model.intercept_ == 5.0 and model.predict(row) == [5.0]
    through_origin = LinearRegression(fit_intercept=False).fit(row, [9.0])
    np.testing.assert_allclose(through_origin.coef_, row[0], rtol=1e-12)
    x, y = problem(0, 30, 1)
    np.testing.assert_allclose(LinearRegression().fit(x, y).coef_, sk.LinearRegression().fit(x, y).coef_, **close)
    np.testing.assert_allclose(Ridge(2.0).fit(x, y).coef_, sk.Ridge(2.0).fit(x, y).coef_, **close)
    np.testing.assert_allclose(Ridge(2.0).fit(x, y).predict([[3.0]]), sk.Ridge(2.0).fit(x, y).predict([[3.0]]), **close)


# -- path, leave one out, Bayes, conditioning -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(120, 6), (15, 40)])
@pytest.mark.parametrize("storage", ["C order", "csr"])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_path_is_made_of_separate_fits(shape: tuple[int, int], storage: str, intercept: bool) -> None:
    X, Y = problem(8, *shape, 2)
    w, alphas = weights_for(shape[0]), [0.0, 1e-3, 1.0, 1e4]
    held = STORAGES[storage](X)
    path = ridge_path(held, Y, alphas=alphas, sample_weight=w, fit_intercept=intercept)
    assert path.coefs.shape == (4, 2, shape[1]) and path.intercepts.shape == (4, 2)
    for alpha, coef, constant in zip(path.alphas, path.coefs, path.intercepts, strict=True):
        one = Ridge(alpha, fit_intercept=intercept).fit(held, Y, w)
        np.testing.assert_allclose(coef, one.coef_, **close)
        np.testing.assert_allclose(constant, np.broadcast_to(one.intercept_, (2,)), **close)


def test_the_path_follows_the_units_of_the_columns() -> None:
    X, y = problem(8, 80, 3)
    X = X * [1.0, 1e-10, 1e5]
    path = ridge_path(X, y, alphas=[0.0, 1e-3])
    for coef, alpha in zip(path.coefs, [0.0, 1e-3], strict=True):
        np.testing.assert_allclose(coef[0], Ridge(alpha).fit(X, y).coef_, rtol=1e-6)


@pytest.mark.parametrize("alphas", [[], [-1.0], [np.nan], [[1.0]]])
def test_a_senseless_grid_is_refused(alphas: list[Any]) -> None:
    X, y = problem()
    with pytest.raises(ValueError, match="alphas must be a list of finite numbers"):
        ridge_path(X, y, alphas=alphas)
    with pytest.raises(ValueError, match="alphas must be a list of finite numbers"):
        Ridge("loo", alphas=alphas).fit(X, y)


def leave_one_out(
    X: np.ndarray, Y: np.ndarray, counts: np.ndarray, alpha: float, intercept: bool, solver: str = "svd"
) -> float:
    """Mean squared error of really leaving each unit of weight out, averaged over the targets."""
    total = 0.0
    for i in np.flatnonzero(counts):
        left = counts - (np.arange(len(X)) == i)
        model = sk.Ridge(alpha, fit_intercept=intercept, solver=solver).fit(X[left > 0], Y[left > 0], left[left > 0])
        total += counts[i] * np.square(Y[i] - model.predict(X[i : i + 1])[0]).mean()
    return total / counts.sum()


@pytest.mark.parametrize("shape", [(40, 4), (12, 11), (12, 30)])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_errors_are_those_of_refits(shape: tuple[int, int], intercept: bool, weighted: bool) -> None:
    X, Y = problem(9, *shape, 2)
    counts = np.random.default_rng(0).integers(0, 3, shape[0]) if weighted else np.ones(shape[0], dtype=int)
    grid = [0.01, 1.0, 100.0]
    expected = [leave_one_out(X, Y, counts, alpha, intercept) for alpha in grid]
    for held in (X, sp.csr_array(X)):
        model = Ridge("loo", alphas=grid, fit_intercept=intercept).fit(held, Y, counts if weighted else None)
        np.testing.assert_allclose(model.loo_errors_, expected, rtol=1e-8)
        assert model.alpha_ == grid[int(np.argmin(expected))]
        assert_same_rule(model, Ridge(model.alpha_, fit_intercept=intercept).fit(held, Y, counts))
        assert model.fit_.passes == 2


@pytest.mark.parametrize("unit", [1e3, 1e4])
def test_leave_one_out_of_wide_rows_in_large_units(unit: float) -> None:
    rng = np.random.default_rng(0)
    X, Y, counts = unit * rng.standard_normal((15, 30)), rng.standard_normal((15, 1)), np.ones(15, dtype=int)
    found = Ridge("loo", alphas=[1e-4, 1.0]).fit(X, Y).loo_errors_
    np.testing.assert_allclose(found, [leave_one_out(X, Y, counts, alpha, True) for alpha in (1e-4, 1.0)], rtol=1e-6)


def test_leave_one_out_refuses_what_it_cannot_do() -> None:
    X, y = problem()
    with pytest.raises(ValueError, match="weights are not whole numbers; use cross-validation"):
        Ridge("loo").fit(X, y, weights_for(len(y)))
    with pytest.raises(ValueError, match="no closed form for positive=True"):
        Ridge("loo", positive=True).fit(X, y)
    assert not hasattr(Ridge("loo"), "partial_fit")
    assert not hasattr(Ridge("loo"), "merge")


def test_ridge_is_the_posterior_mean() -> None:
    X, y = problem()
    noise, prior = 0.7, 1.9  # variances
    Z, t = X - X.mean(0), y - y.mean()
    precision = Z.T @ Z / noise + np.eye(X.shape[1]) / prior
    posterior_mean = np.linalg.solve(precision, Z.T @ t / noise)
    np.testing.assert_allclose(Ridge(noise / prior).fit(X, y).coef_, posterior_mean, rtol=1e-10)


def test_conditioning_a_gaussian_is_regression_on_its_moments() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 5))
    cov, mean = A @ A.T, rng.standard_normal(5)
    # Rows that have exactly these moments stand for the population.
    Z = rng.standard_normal((200, 5))
    Z -= Z.mean(0)
    Z = Z @ np.linalg.inv(np.linalg.cholesky(Z.T @ Z / 200)).T
    rows = mean + Z @ np.linalg.cholesky(cov).T
    known, free = [3, 0], [1, 2, 4]
    given_values = {3: 0.4, 0: -1.1}
    m, c = condition_gaussian(mean, cov, given_values)
    model = LinearRegression().fit(rows[:, known], rows[:, free])
    np.testing.assert_allclose(m, model.predict([[0.4, -1.1]])[0], rtol=1e-8)
    residual = rows[:, free] - model.predict(rows[:, known])
    np.testing.assert_allclose(c, residual.T @ residual / 200, rtol=1e-8, atol=1e-10)
    again, _ = condition_gaussian(mean, cov, {-2: 0.4, 0: -1.1})  # negative indices count from the end
    np.testing.assert_allclose(again, m)
    same_mean, same_cov = condition_gaussian(mean, cov, {})
    np.testing.assert_array_equal(same_mean, mean)
    np.testing.assert_array_equal(same_cov, cov)
    assert condition_gaussian(mean, cov, dict.fromkeys(range(5), 0.0))[0].shape == (0,)


def test_conditioning_on_the_same_thing_twice_changes_nothing() -> None:
    cov = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    once, twice = condition_gaussian([0, 0, 0], cov, {0: 2.0}), condition_gaussian([0, 0, 0], cov, {0: 2.0, 1: 2.0})
    np.testing.assert_allclose(twice[0], once[0][1:], atol=1e-12)
    np.testing.assert_allclose(twice[1], once[1][1:, 1:], atol=1e-12)


@pytest.mark.parametrize(
    ("mean", "cov", "observed", "sentence"),
    [
        ([0, 0, 0], np.eye(2), {0: 1.0}, r"must be \(d,\) and \(d, d\)"),
        ([0, np.nan], np.eye(2), {0: 1.0}, "must be finite"),
        ([0, 0], [[1.0, 0.5], [0.2, 1.0]], {0: 1.0}, "not symmetric"),
        ([0, 0], np.eye(2), {2: 1.0}, "names coordinate 2, but there are only 2"),
        ([0, 0], np.eye(2), {0: 1.0, -2: 1.0}, "twice"),
        ([0, 0], np.eye(2), {0: np.inf}, "leave unobserved coordinates out"),
        ([0, 0], [[1.0, 2.0], [2.0, 1.0]], {0: 1.0}, "positive semi-definite|not a covariance"),
        ([0, 0], np.eye(2), {0.5: 1.0}, "coordinate"),
    ],
)
def test_conditioning_refuses_nonsense(mean: Any, cov: Any, observed: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        condition_gaussian(mean, cov, observed)


def test_conditioning_takes_a_covariance_that_is_symmetric_up_to_rounding() -> None:
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))
    cov = turn @ (0.3 * np.eye(4)) @ turn.T  # zero off the diagonal, but for the last digit
    assert (cov != cov.T).any()
    mean, rest = condition_gaussian(np.zeros(4), cov, {0: 1.0})
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(rest, 0.3 * np.eye(3), atol=1e-12)


# -- the least-squares classifier -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("storage", ["C order", "csr", "frame"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"ash": 5.0, "birch": 0.3}])
@pytest.mark.parametrize("intercept", [True, False])
def test_classifier_has_scikit_learn_s_coefficients(
    n_classes: int, storage: str, class_weight: Any, intercept: bool
) -> None:
    X, _ = problem(10, 200, 5)
    y, options = labels(X, n_classes), dict(alpha=0.8, class_weight=class_weight, fit_intercept=intercept)
    mine, theirs = RidgeClassifier(**options).fit(STORAGES[storage](X), y), sk.RidgeClassifier(**options).fit(X, y)
    np.testing.assert_allclose(mine.coef_.reshape(theirs.coef_.shape), theirs.coef_, **close)
    np.testing.assert_allclose(mine.intercept_, np.broadcast_to(theirs.intercept_, mine.intercept_.shape), **close)
    np.testing.assert_array_equal(mine.predict(STORAGES[storage](X)), theirs.predict(X))
    np.testing.assert_allclose(mine.decision_function(STORAGES[storage](X)), theirs.decision_function(X), **close)
    assert mine.masked_classes_.tolist() == sorted(set(y) - set(mine.predict(X)))


def test_sample_weights_multiply_class_weights() -> None:
    X, _ = problem(10, 200, 5)
    y, w = labels(X, 3), weights_for(200)
    options = dict(class_weight={"ash": 5.0, "birch": 0.3})
    mine, theirs = RidgeClassifier(**options).fit(X, y, w), sk.RidgeClassifier(**options).fit(X, y, w)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, **close)


@pytest.mark.parametrize("class_weight", [{"ash": -1.0}, {"ash": np.nan}, {"ash": np.inf}, {"ash": 0.0, "birch": 0.0}])
@pytest.mark.parametrize("solver", ["gram", "cg"])
def test_senseless_class_weights_are_refused(class_weight: dict[str, float], solver: str) -> None:
    X, _ = problem(10, 200, 5)
    with pytest.raises(ValueError, match=r"class_weight|sample_weight"):
        RidgeClassifier(class_weight=class_weight, solver=solver).fit(X, labels(X, 2))
    with pytest.raises(ValueError, match="not among the classes"):
        RidgeClassifier(class_weight={"oak": 1.0}, solver=solver).fit(X, labels(X, 2))


def test_several_labels_a_row_as_in_scikit_learn() -> None:
    X, Y = problem(11, 150, 5, 3)
    Y = (Y > 3.0).astype(int)
    w = weights_for(150)
    for class_weight in (None, "balanced"):
        mine = RidgeClassifier(class_weight=class_weight).fit(X, Y, w)
        theirs = sk.RidgeClassifier(class_weight=class_weight).fit(X, Y, w)
        if class_weight is None:  # scikit-learn balances without looking at the sample weights
            np.testing.assert_allclose(mine.coef_, theirs.coef_, **close)
            np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))
            np.testing.assert_allclose(mine.decision_function(X), theirs.decision_function(X), **close)
    balanced = RidgeClassifier(class_weight="balanced").fit(X, Y)
    np.testing.assert_allclose(balanced.coef_, sk.RidgeClassifier(class_weight="balanced").fit(X, Y).coef_, **close)


def test_two_classes_without_a_penalty_give_fisher_s_direction() -> None:
    X, _ = problem(12, 90, 4)
    y = labels(X, 2)
    first = y == "ash"
    n, n1, n2 = len(y), first.sum(), (~first).sum()
    within = sum((X[c] - X[c].mean(0)).T @ (X[c] - X[c].mean(0)) for c in (first, ~first))
    gap = X[first].mean(0) - X[~first].mean(0)
    fisher = np.linalg.solve(within, gap)
    # With targets n/n₁ and −n/n₂ the normal equations read (S_W + (n₁n₂/n) δδᵀ) w = n δ.
    w = LinearRegression().fit(X, np.where(first, n / n1, -n / n2)).coef_
    np.testing.assert_allclose(w, n * fisher / (1 + n1 * n2 / n * gap @ fisher), **close)
    lda = LinearDiscriminantAnalysis().fit(X, y).coef_[0]
    for direction in (w, RidgeClassifier(alpha=0).fit(X, y).coef_[0], LinearRegression().fit(X, first).coef_):
        assert abs(direction @ lda) / np.linalg.norm(direction) / np.linalg.norm(lda) > 1 - 1e-14


def three_clusters() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    sizes = [100, 80, 100]
    X = np.repeat([[-6.0, -6.0], [0.0, 0.0], [6.0, 6.0]], sizes, axis=0) + rng.standard_normal((280, 2))
    return X, np.repeat(["low", "middle", "up"], sizes)


@pytest.mark.parametrize("solver", ["gram", "cg"])
def test_the_middle_of_three_collinear_clusters_is_masked(solver: str) -> None:
    X, y = three_clusters()
    model = RidgeClassifier(solver=solver).fit(X, y)
    assert model.masked_classes_.tolist() == ["middle"]
    assert "middle" not in model.predict(X)
    said = str(model.fit_)
    assert "never predicts middle" in said and "LinearDiscriminantAnalysis" in said and "quadratic" in said


def test_sentences_are_one_space_apart() -> None:
    X, y = three_clusters()
    assert "  " not in str(RidgeClassifier().fit(X, y).fit_)
    assert "  " not in str(RidgeClassifier(alpha=0).fit(np.c_[X, X], y).fit_)


def test_lda_and_quadratic_terms_undo_masking() -> None:
    X, y = three_clusters()
    assert LinearDiscriminantAnalysis().fit(X, y).score(X, y) > 0.99
    curved = FeatureMap(PolynomialFeatures(2, include_bias=False), RidgeClassifier()).fit(X, y)
    assert curved.estimator_.masked_classes_.tolist() == []
    assert curved.score(X, y) > 0.99
    assert "never predicts" not in str(curved.fit_)


def test_masked_classes_are_not_remembered_when_rows_are_added() -> None:
    X, y = three_clusters()
    model = RidgeClassifier().fit(X, y)
    more = np.random.default_rng(1).standard_normal((300, 2)) + np.array([8.0, -8.0])
    model.partial_fit(more, np.full(300, "middle"))
    assert "middle" in model.predict(more)
    assert "never predicts middle" not in str(model.fit_)
    assert list(getattr(model, "masked_classes_", [])) == []


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("shape", [(150, 5), (30, 60)])
@pytest.mark.parametrize("share", [1e-3, 0.3, 0.9, 0.999])
def test_a_norm_ball_satisfies_its_optimality_conditions(n_classes: int, shape: tuple[int, int], share: float) -> None:
    X, _ = problem(13, *shape)
    y = labels(X, n_classes)
    free = RidgeClassifier(alpha=0).fit(X, y)
    radius = share * float(np.linalg.norm(free.coef_))
    model = RidgeClassifier(max_norm=radius).fit(X, y)
    norm = float(np.linalg.norm(model.coef_))
    assert model.alpha_ > 0
    assert norm <= radius * (1 + 1e-14)
    assert norm == pytest.approx(radius, rel=1e-10)
    ridge = RidgeClassifier(alpha=model.alpha_).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-7, atol=1e-9 * radius)
    codes = np.where(y[:, None] == model.classes_, 1.0, -1.0)[:, 1 if n_classes == 2 else slice(None)].reshape(
        len(y), -1
    )
    np.testing.assert_allclose(model.intercept_, (codes - X @ model.coef_.T).mean(0), **close)
    proof = model.fit_.certificate
    assert proof.gap <= 1e-9 * max(1.0, proof.objective)
    assert proof.primal_feasibility <= 1e-14 * radius and proof.complementary_slackness <= 1e-9 * proof.objective


def test_a_large_norm_ball_changes_nothing() -> None:
    X, _ = problem(13, 150, 5)
    y = labels(X, 3)
    free = RidgeClassifier(alpha=0).fit(X, y)
    for radius in (1.0001 * float(np.linalg.norm(free.coef_)), 1e6):
        model = RidgeClassifier(max_norm=radius).fit(X, y)
        np.testing.assert_array_equal(model.coef_, free.coef_)
        assert model.alpha_ == 0.0


@pytest.mark.parametrize("unit", [1e-150, 1e-60, 1e-20, 1e20, 1e60, 1e150])
def test_a_norm_ball_follows_the_units(unit: float) -> None:
    X, _ = problem(13, 150, 5)
    y = labels(X, 3)
    radius = 0.5 * float(np.linalg.norm(RidgeClassifier(alpha=0).fit(X, y).coef_))
    plain, scaled = RidgeClassifier(max_norm=radius).fit(X, y), RidgeClassifier(max_norm=radius / unit).fit(X * unit, y)
    np.testing.assert_allclose(scaled.coef_ * unit, plain.coef_, rtol=1e-8)


def test_a_norm_ball_and_positive_coefficients_are_refused_together() -> None:
    X, _ = problem()
    with pytest.raises(ValueError, match="max_norm cannot be combined with positive"):
        RidgeClassifier(max_norm=1.0, positive=True).fit(X, labels(X, 2))


# -- conjugate gradients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(300, 12), (60, 4000)])
def test_conjugate_gradients_reach_the_closed_form(shape: tuple[int, int], intercept: bool, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    density = 0.3 if shape[1] < 100 else 0.01
    # SciPy's own draws take the generator by another word in each version.
    X = sp.csr_array(rng.standard_normal(shape) * (rng.random(shape) < density))
    Y, w = rng.standard_normal((shape[0], 2)), weights_for(shape[0]) if weighted else None
    gram = Ridge([0.5, 3.0], solver="gram", fit_intercept=intercept).fit(X, Y, w)
    cg = Ridge([0.5, 3.0], solver="cg", tol=1e-9, fit_intercept=intercept).fit(X, Y, w)
    assert (gram.solver_, cg.solver_) == ("gram", "cg")
    assert cg.fit_.status is Status.CONVERGED
    assert cg.fit_.certificate.relative_gap <= 1e-17
    assert cg.n_iter_ == cg.fit_.iterations == len(cg.fit_.trace) > 1
    assert_same_rule(cg, gram, 1e-7)
    y = (Y[:, 0] > 0).astype(int) + (Y[:, 1] > 0)
    assert_same_rule(
        RidgeClassifier(solver="cg", tol=1e-9, class_weight="balanced", fit_intercept=intercept).fit(X, y, w),
        RidgeClassifier(solver="gram", class_weight="balanced", fit_intercept=intercept).fit(X, y, w),
        1e-7,
    )


def test_a_problem_too_large_for_its_gram_matrix_is_iterated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.solvers.least_squares.choose.GRAM_LIMIT", 3)
    X, y = problem()
    ridge = Ridge(tol=1e-9).fit(X, y)
    assert ridge.solver_ == "cg"
    assert_same_rule(ridge, sk.Ridge().fit(X, y))
    ols = LinearRegression().fit(X, y)
    assert_same_rule(ols, sk.LinearRegression().fit(X, y))
    assert ols.fit_.status is Status.UNPROVEN
    assert ols.fit_.certificate.gap >= ols.fit_.certificate.objective  # nothing but F ≥ 0
    classifier = RidgeClassifier(tol=1e-9).fit(X, labels(X, 3))
    assert classifier.fit_.iterations > 0
    with pytest.raises(ValueError, match="keeps no statistic to merge"):
        ridge.merge(ridge)


def test_conjugate_gradients_do_not_give_up_while_they_make_progress() -> None:
    rng = np.random.default_rng(0)
    d = 200
    turn, _ = np.linalg.qr(rng.standard_normal((d, d)))
    X = np.logspace(0, 3, d)[:, None] * turn.T
    y = X @ rng.standard_normal(d) + rng.standard_normal(d)
    model = Ridge(1e-2, fit_intercept=False, solver="cg", max_iter=100_000).fit(X, y)
    exact = Ridge(1e-2, fit_intercept=False, solver="gram").fit(X, y)
    above = model.fit_.certificate.objective - exact.fit_.certificate.objective
    assert model.fit_.status is not Status.STALLED or above < 1e-6 * exact.fit_.certificate.objective
