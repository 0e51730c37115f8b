"""The compiled loops of the logistic loss: against the formulas in high precision, and against each other."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from separatrix.kernels import compiled
from separatrix.kernels.exponentials import falling_exponential, log_one_plus, log_one_plus_many
from separatrix.kernels.lines.logistic_lines import LINE, logistic_lines
from separatrix.kernels.lines.softmax_lines import softmax_lines
from separatrix.kernels.softmax import softmax_pass

EPS = np.finfo(float).eps
NOTHING, NO_MATRIX = np.empty(0), np.empty((0, 0))


@compiled()
def _exponentials(x, small, logs):
    for i in range(len(x)):
        small[i] = falling_exponential(x[i])
        logs[i] = log_one_plus(small[i])


def _of(x):
    x = np.asarray(x, dtype=float)
    small, logs = np.empty_like(x), np.empty_like(x)
    _exponentials(x, small, logs)
    return small, logs


@given(st.lists(st.floats(-708.0, 0.0), min_size=1, max_size=40))
@settings(max_examples=200, deadline=None)
def test_exponentials_and_logarithms_are_right_to_two_units(x):
    small, logs = _of(x)
    with mp.workdps(40):
        for given_x, e, log in zip(x, small, logs, strict=True):
            assert abs(mp.mpf(e) / mp.exp(mp.mpf(given_x)) - 1) <= EPS
            assert abs(mp.mpf(log) / mp.log1p(mp.mpf(e)) - 1) <= 2 * EPS


def test_exponentials_far_out_and_of_what_is_no_number():
    small, logs = _of([0.0, -0.0, -1e-300, -709.0, -1e6, -math.inf, math.nan])
    np.testing.assert_array_equal(small, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, np.nan])
    np.testing.assert_array_equal(logs, [math.log(2.0)] * 3 + [0.0] * 3 + [np.nan])


@compiled()
def _logarithms(u, logs):
    for i in range(len(u)):
        logs[i] = log_one_plus_many(u[i])


@given(st.lists(st.floats(0.0, 1e4), min_size=1, max_size=40))
@settings(max_examples=200, deadline=None)
def test_logarithms_of_many_are_right_to_two_units(u):
    logs = np.empty(len(u))
    _logarithms(np.array(u), logs)
    with mp.workdps(40):
        for x, log in zip(u, logs, strict=True):
            right = mp.log1p(mp.mpf(x))
            assert abs(mp.mpf(log) - right) <= 2 * EPS * right + 1e-320


def _sums(X, y, w, ones, weights, offset, metric):
    """The sums of the loop, by NumPy."""
    A = np.column_stack([X, np.ones(len(X))]) if ones else np.asarray(X, dtype=float)
    s = np.ones(len(X)) if weights is None else weights
    eta = A @ w + (0.0 if offset is None else offset)
    signs, small = 2.0 * y - 1.0, np.exp(-np.abs(eta))
    right = np.where(signs * eta > 0, small, 1.0) / (1.0 + small)
    slopes, bends = -signs * right, small / np.square(1.0 + small)
    hessian = (A * (s * bends)[:, None]).T @ A
    largest = (np.square(A) @ metric).max(initial=0.0)
    loss = (s * np.logaddexp(0.0, -signs * eta)).sum()
    facts = (loss, (s * slopes**2).sum(), np.abs(eta).max(initial=0.0), largest, (s * bends).sum())
    return facts, A.T @ (s * slopes), hessian, bends


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 7), (LINE, 4), (LINE + 1, 5), (5 * LINE - 3, 12), (300, 41)])
def test_lines_give_the_sums_of_the_formula(n, d, ones, dtype, order):
    rng = np.random.default_rng([n, d])
    X = np.asarray(rng.standard_normal((n, d)), dtype=dtype, order=order)
    y, w = rng.integers(0, 2, n).astype(np.int8), rng.standard_normal(d + ones)
    metric, weights, offset = rng.random(d + ones), rng.random(n) + 0.1, rng.standard_normal(n)
    side = -(-(d + ones) // 4) * 4
    for s, o in ((None, None), (weights, offset)):
        gradient, hessian, bends, border = np.zeros(d + ones), np.zeros((side, side)), np.empty(n), np.zeros(d + ones)
        given_s, given_o = (NOTHING if one is None else one for one in (s, o))
        found = logistic_lines(X, ones, y, given_s, given_o, w, metric, gradient, hessian, bends, border)
        facts, right, curved, own = _sums(X, y, w, ones, s, o, metric)
        np.testing.assert_allclose(found, facts, rtol=1e-12)
        np.testing.assert_allclose(gradient, right, rtol=1e-10, atol=1e-12 * n)
        np.testing.assert_allclose(hessian[: d + ones, : d + ones], curved, rtol=1e-10, atol=1e-12 * n)
        np.testing.assert_array_equal(hessian, hessian.T)
        np.testing.assert_allclose(
            border, (curved[:, -1] if ones else own * (1.0 if s is None else s) @ X), rtol=1e-9, atol=1e-12 * n
        )
        np.testing.assert_allclose(bends, own, rtol=1e-12)
        alone = np.zeros(d + ones)
        again = logistic_lines(X, ones, y, given_s, given_o, w, NOTHING, alone, NO_MATRIX, NOTHING, NOTHING)
        assert again == (*found[:3], 0.0, found[4])  # what is not asked for changes nothing
        np.testing.assert_array_equal(alone, gradient)


def test_rows_that_are_no_numbers_show_in_the_sums():
    X, y = np.ones((LINE + 2, 2)), np.ones(LINE + 2, dtype=np.int8)
    for bad in (math.nan, math.inf):
        Z = X.copy()
        Z[LINE, 1] = bad
        gradient, hessian = np.zeros(2), np.zeros((4, 4))
        loss = logistic_lines(Z, False, y, NOTHING, NOTHING, np.ones(2), NOTHING, gradient, hessian, NOTHING, NOTHING)[
            0
        ]
        assert not (math.isfinite(loss) and np.isfinite(gradient).all())


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "K"), [(1, 1, 2), (3, 7, 3), (LINE, 4, 4), (LINE + 1, 5, 12), (700, 12, 5), (300, 31, 3)]
)
def test_lines_give_the_sums_of_the_softmax(n, d, K, ones, order):
    rng = np.random.default_rng([n, d, K])
    X = np.asarray(rng.standard_normal((n, d)), order=order)
    A = np.column_stack([X, np.ones(n)]) if ones else X
    y, W, p = rng.integers(0, K, n).astype(np.int8), rng.standard_normal((K, d + ones)), d + ones
    for s, o in ((NOTHING, NO_MATRIX), (rng.random(n) + 0.1, 30.0 * rng.standard_normal((n, K)))):
        weights = s if len(s) else np.ones(n)
        eta = A @ W.T + (o if len(o) else 0.0)
        small = np.exp(eta - eta.max(axis=1, keepdims=True))
        posteriors = small / small.sum(axis=1, keepdims=True)
        slopes = posteriors - (y[:, None] == np.arange(K))
        loss = weights @ (np.log(small.sum(axis=1)) + eta.max(axis=1) - eta[np.arange(n), y])
        along = (np.sqrt(weights)[:, None, None] * posteriors[:, :, None] * A[:, None, :]).reshape(n, K * p)
        bend = np.diag(weights @ posteriors) - (posteriors * weights[:, None]).T @ posteriors
        side = -(-K * p // 4) * 4
        gradient, products, given_bend = np.zeros((K, p)), np.zeros((side, side)), np.zeros((K, K))
        kept = np.empty((n, K))
        found = softmax_lines(X, ones, y, s, o, W, gradient, products, given_bend, kept)
        facts = (loss, float((weights[:, None] * slopes**2).sum()), float(np.abs(eta).max()))
        np.testing.assert_allclose(found, facts, rtol=1e-11, atol=1e-13 * n)
        np.testing.assert_allclose(gradient, (slopes * weights[:, None]).T @ A, rtol=1e-9, atol=1e-12 * n)
        np.testing.assert_allclose(products[: K * p, : K * p], along.T @ along, rtol=1e-9, atol=1e-12 * n)
        np.testing.assert_allclose(given_bend, bend, rtol=1e-9, atol=1e-12 * n)
        np.testing.assert_allclose(kept, posteriors, rtol=1e-11, atol=1e-300)
        if order == "C" and ones:
            sums, last = np.zeros((K, d)), np.zeros(K)
            rows = np.empty((n, K), dtype=np.float32)
            again = softmax_pass(X, y, s, o, W[:, :d].copy(), W[:, d].copy(), sums, last, rows)
            np.testing.assert_allclose(again, facts, rtol=1e-11, atol=1e-13 * n)
            np.testing.assert_allclose(np.column_stack([sums, last]), gradient, rtol=1e-9, atol=1e-12 * n)
            np.testing.assert_allclose(rows, posteriors, rtol=1e-6, atol=1e-30)
