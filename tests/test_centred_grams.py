"""Second moments of rows by class, a room of rows at a time (kernels/products/grams.py, data/centred/dense_rows.py)."""

from __future__ import annotations

import numpy as np
import pytest

from separatrix.data.centred.dense_rows import StreamedCentred
from separatrix.kernels.products import grams


def _exact(X, codes, weights, k):
    rows, w = X[codes == k].astype(np.longdouble), weights[codes == k].astype(np.longdouble)
    mean = (w[:, None] * rows).sum(axis=0) / w.sum()
    return mean, ((w[:, None] * (rows - mean)).T @ (rows - mean)).astype(np.float64)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 7, 32, 41])
def test_scatters_are_those_of_the_definition_wherever_a_room_ends(d, weighted, dtype, order):
    rng = np.random.default_rng(d)
    lengths = [1, 63, 64, 65, 128, 1300]
    codes = rng.permutation(np.repeat(np.arange(len(lengths)), lengths))
    X = np.array(rng.normal(size=(len(codes), d)) * 50 + codes[:, None], dtype=dtype, order=order)
    weights = rng.integers(1, 4, len(codes)).astype(np.float64) if weighted else None
    w = np.ones(len(codes)) if weights is None else weights
    expected = [_exact(X, codes, w, k) for k in range(len(lengths))]
    by_class = StreamedCentred(X, codes, len(lengths), weights)
    for k in (5, 0, 3, 1, 2, 4, 5):  # in any order, one of them twice
        found, (_, scatter) = by_class.scatter_of(k), expected[k]
        np.testing.assert_allclose(found, scatter, rtol=1e-13, atol=1e-12 * max(1.0, np.abs(scatter).max()))
        np.testing.assert_array_equal(found, found.T)
    pooled = StreamedCentred(X, codes, len(lengths), weights)
    total = sum(scatter for _, scatter in expected)
    np.testing.assert_allclose(pooled.scatter(), total, rtol=1e-13, atol=1e-13 * total.max())
    for centred in (by_class, pooled):
        np.testing.assert_allclose(centred.mean_high, np.stack([mean for mean, _ in expected]), rtol=1e-12, atol=1e-12)


def test_rows_are_read_once_for_the_scatters_of_all_classes(monkeypatch):
    rng, read = np.random.default_rng(0), []
    X, codes = rng.normal(size=(900, 8)), rng.integers(0, 5, 900)
    add = grams.add_grams
    monkeypatch.setattr(grams, "add_grams", lambda rows, *rest: (read.append(len(rows)), add(rows, *rest)))
    centred = StreamedCentred(X, codes, 5, None)
    for k in range(5):
        centred.scatter_of(k)
    assert centred.mean_high.shape == (5, 8)
    assert sum(read) == len(X)


def test_a_number_that_is_none_stays_in_its_column():
    X = np.random.default_rng(1).normal(size=(300, 37))
    X[7, 5], X[9, 36] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        scatter = StreamedCentred(X, np.zeros(300, dtype=np.intp), 1, None).scatter()
    assert np.array_equal(np.flatnonzero(~np.isfinite(scatter.diagonal())), [5, 36])
    clean = np.delete(np.delete(scatter, [5, 36], axis=0), [5, 36], axis=1)
    assert np.isfinite(clean).all()
