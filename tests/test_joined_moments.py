"""Second moments of rows [x, y] that are joined and centred piece by piece: those of exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from separatrix import Ridge, config
from separatrix.data.centred import one_class
from separatrix.data.centred.one_class import FewCentred, OneClassCentred
from separatrix.data.dense import DenseBlock
from separatrix.statistics import ClassMoments

EPS = np.finfo(np.float64).eps


def _rows(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((2_500, 3)), rng.standard_normal((2_500, 1))
    if kind == "off the origin":
        X += [5.0, -70.0, 0.0]
    elif kind == "first rows unlike the others":
        X[100:] += [1e7, -3e4, 10.0]
        X[:100] = 0.0
    elif kind == "far":
        X += 1e9
    elif kind == "constant":
        X[:, 1] = 0.1
    return X, y


def _exact(column: np.ndarray, weights: np.ndarray) -> float:
    values, counts = [Fraction(v) for v in column.tolist()], [Fraction(w) for w in weights.tolist()]
    mean = sum(w * v for w, v in zip(counts, values, strict=True)) / sum(counts)
    return float(sum(w * (v - mean) ** 2 for w, v in zip(counts, values, strict=True)))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["plain", "off the origin", "first rows unlike the others", "far", "constant"])
def test_moments_have_the_digits_of_the_data(kind, dtype, order, weighted, compiled, monkeypatch):
    monkeypatch.setattr(one_class, "compiled_pays", lambda seconds: compiled)
    X, y = _rows(kind)
    X = np.array(X, dtype=dtype, order=order)
    weights = np.random.default_rng(4).integers(1, 4, len(X)).astype(np.float64) if weighted else None
    w = np.ones(len(X)) if weights is None else weights
    block = DenseBlock(X, y, weights)
    joined = block.join(y)
    moments = ClassMoments.of_block(joined, 1)
    scatter = moments.pooled().matrix()
    assert scatter.shape == (4, 4)
    for j in range(4):
        column = (X[:, j] if j < 3 else y[:, 0]).astype(np.float64)
        exact = _exact(column, w)
        # What the column's own digits allow: a spread of means off by a rounding of the mean, and sums of n terms.
        allowed = 200 * EPS * exact + w.sum() * (2 * EPS * np.abs(column).max()) ** 2
        assert abs(scatter[j, j] - exact) <= allowed
        assert moments.means[0, j] == pytest.approx(w @ column / w.sum(), rel=1e-12, abs=1e-12 * np.abs(column).max())
    all_columns = np.concatenate([X.astype(np.float64), y], axis=1)
    centred = all_columns - w @ all_columns / w.sum()
    sizes = np.sqrt(np.diag(scatter))
    np.testing.assert_array_less(
        np.abs(scatter - centred.T @ (w[:, None] * centred)),
        1e-10 * np.outer(sizes, sizes) + 1e-6 * (kind == "far") + 1e-20,
    )


def test_rows_are_not_copied_where_their_moments_are_ordinary():
    X, y = _rows("plain")
    joined = DenseBlock(X, y).join(y)
    centred = joined.centre_classes(1)
    assert isinstance(centred, OneClassCentred) and "X" not in vars(joined)
    np.testing.assert_allclose(centred.squares()[0], np.square(centred.rows()).sum(axis=0), rtol=1e-12)
    far = DenseBlock(X + 1e9, y).join(y)
    assert not isinstance(far.centre_classes(1), OneClassCentred)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [256, 257, 1_000])
@pytest.mark.parametrize("width", [2, 3, 11, 40])
def test_compiled_products_of_narrow_rows_are_those_of_blas(width, n, dtype, order, monkeypatch):
    rng = np.random.default_rng(width * n)
    X = np.array(rng.standard_normal((n, width)) + 2.0, dtype=dtype, order=order)
    Y, weights = rng.standard_normal((n, 2)), rng.uniform(0.5, 2.0, n)
    found = []
    for compiled in (False, True):
        monkeypatch.setattr(one_class, "compiled_pays", lambda seconds, compiled=compiled: compiled)
        for s in (None, weights):
            moments = ClassMoments.of_block(DenseBlock(X, Y, s).join(Y), 1)
            matrix = moments.pooled().matrix()
            found.append((matrix, moments.means, moments.counts))
    for one, two in zip(found[:2], found[2:], strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(a).max())


def test_rows_of_weight_zero_may_hold_anything():
    X, y = _rows("plain")
    weights = np.ones(len(X))
    weights[7] = 0.0
    expected = ClassMoments.of_block(DenseBlock(X, y, weights).join(y), 1).pooled().matrix()
    X[7] = np.nan
    np.testing.assert_array_equal(
        ClassMoments.of_block(DenseBlock(X, y, weights).join(y), 1).pooled().matrix(), expected
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["plain", "far", "constant"])
def test_moments_of_few_rows_are_those_of_repeated_rows_and_of_exact_arithmetic(kind, dtype, order, weighted):
    X, y = _rows(kind)
    X, y = np.array(X[:50], dtype=dtype, order=order), y[:50]
    weights = np.random.default_rng(4).integers(1, 4, len(X)) if weighted else None
    w = np.ones(len(X), dtype=int) if weights is None else weights
    given = X.copy()
    joined = DenseBlock(X, y, None if weights is None else weights.astype(np.float64)).join(y)
    assert isinstance(joined.centre_classes(1), FewCentred)
    moments = ClassMoments.of_block(DenseBlock(X, y, None if weights is None else w.astype(np.float64)).join(y), 1)
    again = DenseBlock(np.repeat(X, w, axis=0), np.repeat(y, w, axis=0))
    repeated = ClassMoments.of_block(again.join(again.y), 1)
    scatter = moments.pooled().matrix()
    sizes = np.sqrt(np.diag(scatter))
    np.testing.assert_array_less(
        np.abs(scatter - repeated.pooled().matrix()), 1e-12 * np.outer(sizes, sizes) + 1e-12 * (kind == "far") + 1e-25
    )
    np.testing.assert_allclose(moments.means, repeated.means, rtol=1e-13)
    for j in range(4):
        column = (X[:, j] if j < 3 else y[:, 0]).astype(np.float64)
        exact = _exact(column, w)
        assert abs(scatter[j, j] - exact) <= 200 * EPS * exact + w.sum() * (2 * EPS * np.abs(column).max()) ** 2
    assert moments.total == w.sum() and np.array_equal(X, given)


@pytest.mark.parametrize("wide", [False, True])
def test_the_objective_of_a_closed_form_is_that_of_its_coefficients(wide):
    rng = np.random.default_rng(6)
    X, alpha = (
        rng.standard_normal((40, 90 if wide else 6)) * 10.0 ** rng.uniform(-2, 2, 90 if wide else 6),
        [0.3, 2.0, 0.3],
    )
    Y = X[:, :3] + rng.standard_normal((40, 3))
    for dtype in (np.float64, np.float32):
        model = Ridge(alpha=alpha, solver="gram").fit(X.astype(dtype), Y)
        left = Y - X.astype(dtype).astype(float) @ model.coef_.T.astype(float)
        value = (
            np.square(left - left.mean(axis=0)).sum() + (alpha * np.square(model.coef_.astype(float)).sum(axis=1)).sum()
        )
        assert model.fit_.certificate.objective == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["plain", "scales", "off the origin", "first rows unlike the others"])
def test_many_columns_are_multiplied_in_tiles_with_the_digits_of_the_data(kind, dtype, order, weighted, monkeypatch):
    rng = np.random.default_rng(8)
    X, Y = rng.standard_normal((1_111, 67)), rng.standard_normal((1_111, 2))
    if kind == "scales":
        X *= 10.0 ** rng.uniform(-8, 8, 67)
    elif kind == "off the origin":
        X += np.linspace(-50, 50, 67)
    elif kind == "first rows unlike the others":
        X[100:] += np.linspace(1.0, 1e4, 67)
    X = np.array(X, dtype=dtype, order=order)
    weights = rng.integers(1, 4, len(X)).astype(np.float64) if weighted else None
    calls = []
    product = OneClassCentred._tiled_product
    monkeypatch.setattr(OneClassCentred, "_tiled_product", lambda self, guess: calls.append(1) or product(self, guess))
    found = []
    for compiled in (True, False):
        monkeypatch.setattr(one_class, "compiled_pays", lambda seconds, compiled=compiled: compiled)
        joined = DenseBlock(X, Y, weights).join(Y)
        found.append(ClassMoments.of_block(joined, 1))
    assert calls
    w = np.ones(len(X)) if weights is None else weights
    rows = np.concatenate([X, Y], axis=1).astype(np.longdouble)
    rows = rows - w @ rows / w.sum()
    exact = (rows.T @ (w[:, None] * rows)).astype(float)
    sizes = np.sqrt(exact.diagonal())
    for moments in found:
        np.testing.assert_array_less(np.abs(moments.pooled().matrix() - exact), 1e-13 * np.outer(sizes, sizes) * 50)
        assert moments.total == w.sum()
    np.testing.assert_allclose(found[0].means, found[1].means, rtol=1e-13, atol=1e-13 * np.abs(found[1].means).max())
    if weighted:
        repeated = DenseBlock(np.repeat(X, w.astype(int), axis=0), np.repeat(Y, w.astype(int), axis=0))
        again = ClassMoments.of_block(repeated.join(repeated.y), 1).pooled().matrix()
        np.testing.assert_array_less(np.abs(again - exact), 1e-13 * np.outer(sizes, sizes) * 50)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_arrays_are_fitted_with_the_same_bits_on_any_number_of_threads(dtype):
    rng = np.random.default_rng(9)
    X = (rng.standard_normal((18_000, 60)) * 10.0 ** rng.uniform(-3, 3, 60)).astype(dtype)
    y = X @ rng.standard_normal(60) + rng.standard_normal(len(X))
    models = []
    for threads in (1, 2, 5):
        with config(threads=threads):
            models.append(Ridge(1e-3).fit(X, y))
    assert all((one.coef_ == models[0].coef_).all() and one.intercept_ == models[0].intercept_ for one in models)
    A = np.concatenate([X.astype(float) - X.mean(axis=0, dtype=float), np.sqrt(1e-3) * np.eye(60)])
    size = np.sqrt(np.square(A).sum(axis=0))
    w = np.linalg.lstsq(A / size, np.concatenate([y - y.mean(), np.zeros(60)]), rcond=None)[0] / size
    held = models[0].coef_.astype(float)
    np.testing.assert_allclose(
        held * size, w * size, rtol=0, atol=(1e-11 if dtype == np.float64 else 1e-7) * np.abs(w * size).max()
    )
    gap = float(np.square(A @ (held - w)).sum())
    assert gap <= models[0].fit_.certificate.gap * (1.0 + 1e-6) + 1e-22 * np.square(y).sum()
