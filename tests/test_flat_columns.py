"""Columns that do not vary: left out of lengths and of least squares, without the price of eigenvectors."""

from __future__ import annotations

import numpy as np
import pytest

from separatrix import LinearRegression, Status
from separatrix.statistics.metric import DenseMetric


def test_columns_that_do_not_vary_are_left_out_without_eigenvectors(monkeypatch):
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((300, 6)) * 10.0 ** np.arange(-3, 3)
    few = rows.T @ rows
    flat, kept = np.zeros((9, 9)), np.array([0, 2, 3, 5, 6, 8])
    flat[np.ix_(kept, kept)] = few
    plain = DenseMetric(few)
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: pytest.fail("no eigenvectors are needed"))
    metric = DenseMetric(flat)
    assert metric.rank == 6 and metric.singular and metric.complete
    assert metric.log_det == pytest.approx(plain.log_det, rel=1e-13)
    assert metric.condition == pytest.approx(plain.condition, rel=1e-13)
    z = rng.standard_normal((4, 9))
    np.testing.assert_allclose(metric.squared_lengths(z), plain.squared_lengths(z[:, kept]), rtol=1e-12)
    solved = metric.solve(z)
    np.testing.assert_allclose(solved[:, kept], plain.solve(z[:, kept]), rtol=1e-12)
    assert not solved[:, [1, 4, 7]].any()


def test_constant_columns_take_no_part_in_least_squares():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 8))
    y = X @ rng.standard_normal(8) + rng.standard_normal(200)
    X[:, [2, 5]] = [0.0, 7.0]
    without = np.delete(X, [2, 5], axis=1)
    model, same = LinearRegression().fit(X, y), LinearRegression().fit(without, y)
    assert model.rank_ == 6 and model.fit_.status is Status.RANK_DEFICIENT
    assert not model.coef_[[2, 5]].any()
    np.testing.assert_allclose(np.delete(model.coef_, [2, 5]), same.coef_, rtol=1e-11)
    doubled = np.column_stack([X, X[:, 0]])  # one more direction is left out: the minimum norm shares it out
    shared = LinearRegression().fit(doubled, y).coef_
    np.testing.assert_allclose(shared[[0, 8]], model.coef_[0] / 2.0, rtol=1e-9)
    assert np.abs(shared[[2, 5]]).max() <= 1e-12
