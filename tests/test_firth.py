"""Firth's logistic regression: closed forms, published numbers, gradients, weights, profiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.special import expit
from scipy.stats import chi2

from separatrix import config
from separatrix.data import Intercept, as_source
from separatrix.geometry.separation import separability
from separatrix.inference.firth import FirthProfile
from separatrix.result import Status
from separatrix.solvers import firth
from separatrix.solvers.firth import FirthFit, minimise_firth

# Urinary tract infection among college women (Foxman et al. 1997), as counts: age, oc, vic, vicl, vis, dia; cases,
# controls. Diaphragm users (dia) are all cases: quasi-separation. The standard example of logistf (its data set sex2).
SEX2 = """
000010 1 1   001000 14 2  001010 3 1   001100 10 8  001110 12 18 001111 1 0  010000 44 42 010001 3 0
010010 0 1   011000 15 1  011001 1 0   011010 2 0   011100 7 5   011110 3 6  101000 2 0   101010 1 0
101011 1 0   101100 1 2   101110 0 4   101111 1 0   110000 5 14  110010 0 1  111000 3 1   111110 0 2
"""
# logistf's coefficients and profile limits at its own tolerances, intercept last.
SEX2_COEF = [-1.10598131, -0.06881673, 2.26887464, -2.11140817, -0.78831694, 3.09601166, 0.12025405]
SEX2_LIMITS = [
    [-1.9737884, -0.30742514],
    [-0.9414363, 0.78920202],
    [1.2730216, 3.43543273],
    [-3.2608611, -1.11773495],
    [-1.6080879, 0.01518468],
    [0.7745682, 8.03029352],
    [-0.8185591, 1.07315122],
]


def sex2() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    words = SEX2.split()
    X = np.array([[int(c) for c in pattern] for pattern in words[::3] for _ in range(2)], dtype=float)
    counts = np.array([[int(a), int(b)] for a, b in zip(words[1::3], words[2::3], strict=True)])
    return X, np.tile([1, 0], len(counts)), counts.ravel()


def source(X: Any, y: Any, weights: Any = None) -> Intercept:
    return Intercept(as_source(X, y, weights).labelled())


def data(n: int = 60, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X @ np.linspace(1, -1, d) + rng.logistic(size=n) > 0).astype(int)


def penalised(theta: np.ndarray, Z: np.ndarray, y: np.ndarray, s: np.ndarray, offset: Any = 0.0) -> float:
    """L* in the plainest terms."""
    eta = Z @ theta + offset
    sides = 2 * y - 1
    information = Z.T @ ((s * expit(eta) * expit(-eta))[:, None] * Z)
    return float(-s @ np.logaddexp(0, -sides * eta) + 0.5 * np.linalg.slogdet(information)[1])


def with_ones(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))])


def best(Z: np.ndarray, y: np.ndarray, s: np.ndarray, offset: Any = 0.0) -> np.ndarray:
    """The maximum of L*, by someone else."""
    found = minimize(
        lambda t: -penalised(t, Z, y, s, offset), np.zeros(Z.shape[1]), method="BFGS", options={"gtol": 1e-9}
    )
    polished = minimize(
        lambda t: -penalised(t, Z, y, s, offset),
        found.x,
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-15},
    )
    return np.asarray(polished.x)


# -- truth ------------------------------------------------------------------------------------------------------------


@given(st.tuples(*[st.integers(0, 12)] * 4))
def test_two_by_two_tables_add_a_half(cells: tuple[int, int, int, int]) -> None:
    """A saturated model has h = 1 shared by the rows of each column of the table: ½ more in every cell."""
    a, b, c, d = cells  # x=0: y=0, y=1; x=1: y=0, y=1
    if a + b == 0 or c + d == 0 or a + c == 0 or b + d == 0:
        return
    fit = minimise_firth(source([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1], [a, b, c, d]), tol=1e-10)
    assert fit.status is Status.CONVERGED
    first, second = np.log((b + 0.5) / (a + 0.5)), np.log((d + 0.5) / (c + 0.5))
    np.testing.assert_allclose(fit.theta, [second - first, first], rtol=1e-8, atol=1e-9)


def test_logistf_on_separated_data() -> None:
    X, y, counts = sex2()
    assert counts.sum() == 239
    verdict = separability(X, y, counts)
    assert verdict.verdict == "quasi" and verdict.diverges.tolist() == [[0, 0, 0, 0, 0, 1]]
    rows = source(X, y, counts)
    fit = minimise_firth(rows)
    np.testing.assert_allclose(fit.theta, SEX2_COEF, rtol=2e-7)
    for index in range(7):
        np.testing.assert_allclose(FirthProfile(rows, fit.theta).interval(index), SEX2_LIMITS[index], rtol=5e-7)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("separated", [False, True])
def test_direct_maximisation_agrees(seed: int, separated: bool) -> None:
    X, y = data(25, 2, seed)
    if separated:
        y = (X[:, 0] > 0).astype(int)
    s = np.random.default_rng(seed).uniform(0.5, 3.0, len(y))
    offset = np.random.default_rng(seed + 1).standard_normal(len(y))
    fit = minimise_firth(source(X, y, s), offset=offset)
    assert fit.status is Status.CONVERGED
    Z = with_ones(X)
    np.testing.assert_allclose(fit.theta, best(Z, y, s, offset), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(fit.penalised_log_likelihood, penalised(fit.theta, Z, y, s, offset), rtol=1e-12)
    p = expit(Z @ fit.theta + offset)
    np.testing.assert_allclose(fit.information, Z.T @ ((s * p * (1 - p))[:, None] * Z), rtol=1e-10)
    np.testing.assert_allclose(fit.log_likelihood, s @ np.log(np.where(y == 1, p, 1 - p)), rtol=1e-10)


def test_score_is_the_gradient() -> None:
    X, y = data()
    s = np.random.default_rng(4).integers(1, 4, len(y)).astype(float)
    Z, theta = with_ones(X), np.array([0.3, -0.7, 1.1, 0.2])
    likelihood = firth.FirthLikelihood(source(X, y, s), None)
    point = likelihood.at(theta)
    np.testing.assert_allclose(point.penalised, penalised(theta, Z, y, s), rtol=1e-13)
    step = 1e-6
    numeric = [
        (penalised(theta + step * e, Z, y, s) - penalised(theta - step * e, Z, y, s)) / (2 * step) for e in np.eye(4)
    ]
    score, curvature = likelihood.score(point)
    np.testing.assert_allclose(score, numeric, rtol=1e-7, atol=1e-7)
    information = point.factor.T @ point.factor
    relative = np.linalg.eigvals(np.linalg.solve(information, curvature.T @ curvature)).real
    assert (relative >= 1.0).all() and (relative <= 2.0).all()


# -- invariances ------------------------------------------------------------------------------------------------------


def test_weights_are_repetitions() -> None:
    X, y = data()
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    X[weights == 0] = np.nan
    weighted = minimise_firth(source(X, y, weights))
    repeated = minimise_firth(source(np.repeat(X, weights, axis=0), np.repeat(y, weights)))
    np.testing.assert_allclose(weighted.theta, repeated.theta, rtol=1e-8)
    np.testing.assert_allclose(weighted.penalised_log_likelihood, repeated.penalised_log_likelihood, rtol=1e-12)


def test_storage_order_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(700)
    plain = minimise_firth(source(X, y))
    order = np.random.default_rng(0).permutation(len(y))
    for rows in (source(sp.csr_array(X), y), source(X[order], y[order]), source(pd.DataFrame(X), y)):
        np.testing.assert_allclose(minimise_firth(rows).theta, plain.theta, rtol=1e-9)
    offset = np.random.default_rng(1).standard_normal(len(y))
    shifted = minimise_firth(source(X, y), offset=offset)
    monkeypatch.setattr(firth, "rows_per_block", lambda *_: 64)
    np.testing.assert_allclose(minimise_firth(source(X, y), offset=offset).theta, shifted.theta, rtol=1e-9)
    with config(threads=1):
        one = minimise_firth(source(X, y), offset=offset)
    with config(threads=2):
        two = minimise_firth(source(X, y), offset=offset)
    np.testing.assert_array_equal(one.theta, two.theta)


def test_units_and_labels() -> None:
    X, y = data()
    y = (X[:, 0] > 0).astype(int)
    plain = minimise_firth(source(X, y))
    scale = np.array([1e-6, 1e6, 1e80])
    np.testing.assert_allclose(minimise_firth(source(X * scale, y)).theta[:3] * scale, plain.theta[:3], rtol=1e-6)
    np.testing.assert_allclose(minimise_firth(source(X, 1 - y)).theta, -plain.theta, rtol=1e-7)
    named = np.where(y == 1, "yes", "no")
    np.testing.assert_allclose(minimise_firth(source(X, named)).theta, plain.theta, rtol=1e-10)
    np.testing.assert_allclose(minimise_firth(source(X + 1e3, y)).theta[:3], plain.theta[:3], rtol=1e-8)
    far = minimise_firth(source(X + 1e7, y))  # seven digits of every value are gone before the fit begins
    assert far.status in (Status.CONVERGED, Status.STALLED)
    np.testing.assert_allclose(far.theta[:3], plain.theta[:3], rtol=1e-5)


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_small_and_separated_data_always_converge(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 30)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d)
    y = np.arange(n) % 2 if rng.random() < 0.5 else (X[:, 0] > np.median(X[:, 0])).astype(int)
    if n <= d + 1:
        return
    fit = minimise_firth(source(X, y))
    assert fit.status is Status.CONVERGED and np.isfinite(fit.theta).all()
    values = [entry["penalised_log_likelihood"] for entry in fit.trace]
    assert (np.diff(values) >= -1e-12 * np.abs(values[1:])).all()


# -- profiles ---------------------------------------------------------------------------------------------------------


def test_fixed_coefficient_keeps_the_whole_penalty() -> None:
    X, y = data(30, 2)
    Z, s = with_ones(X), np.ones(30)
    fit = minimise_firth(source(X, y), fixed=(1, 0.4))
    assert fit.theta[1] == 0.4
    found = minimize(
        lambda t: -penalised(np.array([t[0], 0.4, t[1]]), Z, y, s), np.zeros(2), method="BFGS", options={"gtol": 1e-8}
    )
    np.testing.assert_allclose(fit.theta[[0, 2]], found.x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(fit.score[[0, 2]], 0.0, atol=1e-6)
    assert abs(fit.score[1]) > 1e-3


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_limits_are_where_the_profile_drops(level: float) -> None:
    X, y = data(30, 2, 3)
    rows = source(X, y)
    fit = minimise_firth(rows)
    low, high = FirthProfile(rows, fit.theta).interval(0, level)

    def excess(beta: float) -> float:
        held = minimise_firth(rows, fixed=(0, beta), tol=1e-10)
        return 2 * (fit.penalised_log_likelihood - held.penalised_log_likelihood) - float(chi2.ppf(level, 1))

    assert low < fit.theta[0] < high
    np.testing.assert_allclose(low, brentq(excess, fit.theta[0] - 20, fit.theta[0]), rtol=1e-6)
    np.testing.assert_allclose(high, brentq(excess, fit.theta[0], fit.theta[0] + 20), rtol=1e-6)


def test_limits_of_tiny_separated_data_and_few_steps() -> None:
    rows = source([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    fit = minimise_firth(rows)
    low, high = FirthProfile(rows, fit.theta).interval(0, 0.99)
    assert np.isfinite([low, high]).all() and low < fit.theta[0] < high
    cut = FirthProfile(rows, fit.theta, max_iter=1).interval(0, 0.99)
    assert cut[0] <= low and cut[1] >= high
    with pytest.raises(ValueError, match="level is 95"):
        FirthProfile(rows, fit.theta).interval(0, 95)


# -- ends and errors --------------------------------------------------------------------------------------------------


def test_interruption_keeps_the_best_so_far() -> None:
    X, y = data()

    def stop(entry: dict[str, Any]) -> None:
        if entry["iteration"] == 2:
            raise KeyboardInterrupt

    fit = minimise_firth(source(X, y), callback=stop)
    assert isinstance(fit, FirthFit) and fit.status is Status.INTERRUPTED and fit.iterations == 2
    assert np.isfinite(fit.theta).all()
    short = minimise_firth(source(X, y), max_iter=2)
    assert short.status is Status.MAX_ITER and short.iterations == 2
    np.testing.assert_array_equal(short.theta, fit.theta)
    again = minimise_firth(source(X, y), start=minimise_firth(source(X, y)).theta)
    assert again.status is Status.CONVERGED and again.iterations == 0


def test_dependent_columns_are_named() -> None:
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="column 'a' and column 'd' depend"):
        minimise_firth(source(frame.assign(d=3 * frame["a"]), y))
    with pytest.raises(ValueError, match="column 'd' and the intercept depend"):
        minimise_firth(source(frame.assign(d=7.0), y))
    with pytest.raises(ValueError, match="column 'd' is zero"):
        minimise_firth(source(frame.assign(d=0.0), y))
    with pytest.raises(ValueError, match="fewer rows than columns"):
        minimise_firth(source(X[:3], [0, 1, 0]))


def test_errors_are_sentences() -> None:
    X, y = data()
    with pytest.raises(ValueError, match="two classes; y has 3"):
        minimise_firth(source(X, np.arange(len(y)) % 3))
    with pytest.raises(ValueError, match="two classes; y has 1"):
        minimise_firth(source(X, np.zeros(len(y), dtype=int)))
    with pytest.raises(ValueError, match="one number per row"):
        minimise_firth(source(X, y), offset=[1.0])
    with pytest.raises(ValueError, match="offset contains NaN"):
        minimise_firth(source(X, y), offset=np.full(len(y), np.nan))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="column 1 has 1 such row"):
        minimise_firth(source(X, y))
    X[3, 1] = 0.0
    with pytest.raises(ValueError, match="singular at the start"):
        minimise_firth(source(X, y), start=np.full(4, 1e6))
