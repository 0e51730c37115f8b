"""Intervals and tests under Firth's penalty: where the columns lie and in which units changes nothing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize
from scipy.special import expit
from scipy.stats import chi2, norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator
from test_firth import SEX2_COEF, SEX2_LIMITS, sex2

from separatrix import LogisticRegression, Status
from separatrix.data import Intercept, as_source
from separatrix.inference import firth as firth_inference
from separatrix.inference.firth import FirthProfile
from separatrix.solvers.firth import minimise_firth

# What logistf prints for its data set sex2, intercept last: Chisq of every coefficient, and its likelihood ratio test.
SEX2_CHI = [7.50773092, 0.02467044, 22.93139022, 19.10407252, 3.69740975, 7.89693139, 0.06286298]
SEX2_TEST = 49.09064


class Plain:
    """L* of a dense design in the plainest NumPy, maximised by SciPy."""

    def __init__(self, Z: np.ndarray, y: np.ndarray, s: Any = None, offset: Any = 0.0) -> None:
        self.Z, self.y, self.offset = Z, y, offset
        self.s = np.ones(len(y)) if s is None else np.asarray(s, dtype=float)

    def information(self, theta: np.ndarray) -> np.ndarray:
        p = expit(self.Z @ theta + self.offset)
        return self.Z.T @ ((self.s * p * (1 - p))[:, None] * self.Z)

    def both(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """−L* and its gradient."""
        eta = self.Z @ theta + self.offset
        p, inverse = expit(eta), np.linalg.inv(self.information(theta))
        h = p * (1 - p) * np.einsum("ij,jk,ik->i", self.Z, inverse, self.Z)
        value = self.s @ np.logaddexp(0, -(2 * self.y - 1) * eta) - 0.5 * np.linalg.slogdet(self.information(theta))[1]
        return float(value), -self.Z.T @ (self.s * (self.y - p + h * (0.5 - p)))

    def best(self, held: int | None = None, value: float = 0.0) -> np.ndarray:
        """The maximum, with one coefficient at a value."""
        free = [j for j in range(self.Z.shape[1]) if j != held]

        def of_free(part: np.ndarray) -> tuple[float, np.ndarray]:
            theta = np.zeros(self.Z.shape[1])
            theta[free] = part
            if held is not None:
                theta[held] = value
            found, slope = self.both(theta)
            return found, slope[free]

        part = minimize(of_free, np.zeros(len(free)), jac=True, method="BFGS", options={"gtol": 1e-9}).x
        return np.insert(part, held, value) if held is not None else part

    def drop(self, index: int, value: float) -> float:
        return 2 * (self.both(self.best(index, value))[0] - self.both(self.best())[0])

    def interval(self, index: int, level: float = 0.95) -> tuple[float, float]:
        theta = self.best()
        error, goal = float(np.sqrt(np.linalg.inv(self.information(theta))[index, index])), float(chi2.ppf(level, 1))
        limits = []
        for side in (-1.0, 1.0):
            far = 1.0
            while self.drop(index, theta[index] + side * far * error) < goal:
                far *= 1.7
            ends = sorted((theta[index], theta[index] + side * far * error))
            limits.append(brentq(lambda b: self.drop(index, b) - goal, *ends, xtol=1e-8 * error))
        return limits[0], limits[1]


def with_ones(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))])


def firth(X: Any, y: Any, weights: Any = None, offset: Any = None, **options: Any) -> LogisticRegression:
    return LogisticRegression(penalty="firth", tol=1e-8, **options).fit(X, y, weights, offset)


def drawn(column: np.ndarray, slope: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (slope * (column - column.mean()) + rng.logistic(size=len(column)) > 0).astype(int)


# Columns as they are measured: far from zero against their spread.
MEASURED = {
    "years": (np.random.default_rng(1).integers(2000, 2021, 60).astype(float), 0.2),
    "kelvin": (np.random.default_rng(2).normal(293.15, 3.0, 50), 0.5),
    "hectopascal": (np.random.default_rng(3).normal(1013.25, 6.0, 50), 0.2),
    "ph": (np.random.default_rng(4).normal(7.4, 0.03, 50), 40.0),
    "timestamps": (1.6e18 + 1e13 * np.random.default_rng(5).random(40), 4e-13),
}


@pytest.mark.parametrize("name", MEASURED)
def test_measured_columns_have_the_limits_of_centred_ones(name: str) -> None:
    column, slope = MEASURED[name]
    y, scale = drawn(column, slope), column.std()
    centred = (column - column.mean()) / scale
    expected = np.array(Plain(with_ones(centred[:, None]), y).interval(0))
    model = firth(column[:, None], y)
    limits = model.profile_intervals(column[:, None], y)
    assert_allclose(limits[0] * scale, expected, rtol=1e-6)
    assert_allclose(firth(centred[:, None], y).profile_intervals(centred[:, None], y)[0], expected, rtol=1e-6)
    assert limits[1, 0] < model.intercept_[0] < limits[1, 1]
    plain = LogisticRegression(C=np.inf).fit(column[:, None], y).profile_intervals(column[:, None], y)
    near = LogisticRegression(C=np.inf).fit(centred[:, None], y).profile_intervals(centred[:, None], y)
    assert_allclose(plain[0] * scale, near[0], rtol=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.floats(-6, 6), st.floats(-20, 20))
def test_shift_and_scale_change_nothing(seed: int, separated: bool, far: float, power: float) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(12, 40)), int(rng.integers(1, 3))
    X = rng.standard_normal((n, d))
    y = (X[:, 0] > 0).astype(int) if separated else (X[:, 0] + rng.logistic(size=n) > 0).astype(int)
    if not 2 <= y.sum() <= n - 2:
        return
    scale, shift = 10.0 ** np.array([power, 1.0])[:d], np.sign(far) * 10.0 ** abs(far)
    moved = (X + shift) * scale
    near, there = firth(X, y), firth(moved, y)
    assert_allclose(there.coef_[0] * scale, near.coef_[0], rtol=1e-6, atol=1e-7)
    for table in ("summary", "profile"):
        options = {} if table == "summary" else {"interval": "profile"}
        rows = [model.summary(Z, y, **options).rows for model, Z in ((near, X), (there, moved))]
        for j in range(d):
            one, two = rows[0][j], rows[1][j]
            assert_allclose(scale[j] * np.array([two.lower, two.upper]), [one.lower, one.upper], rtol=1e-5, atol=1e-6)
            assert_allclose([two.z, two.p_value], [one.z, one.p_value], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_an_independent_implementation_agrees(seed: int, fit_intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 2)) + 2.0
    y = ((X[:, 0] - 2.0 if fit_intercept else X[:, 0] - X[:, 1]) + rng.logistic(size=30) > 0).astype(int)
    s, offset = rng.integers(1, 3, 30), 0.3 * rng.standard_normal(30)
    plain = Plain(with_ones(X) if fit_intercept else X, y, s, offset)
    model = firth(X, y, s, offset, fit_intercept=fit_intercept)
    theta = plain.best()
    table = model.summary(X, y, s, offset, interval="profile", level=0.9)
    errors = np.sqrt(np.linalg.inv(plain.information(theta)).diagonal())
    for j, row in enumerate(table.rows):
        assert row.estimate == pytest.approx(theta[j], rel=1e-5, abs=1e-6)
        assert row.standard_error == pytest.approx(errors[j], rel=1e-5)
        assert (row.lower, row.upper) == pytest.approx(plain.interval(j, 0.9), rel=1e-5, abs=1e-5)
        assert row.chi_square == pytest.approx(plain.drop(j, 0.0), rel=1e-5, abs=1e-6)
        assert row.p_value == pytest.approx(chi2.sf(row.chi_square, 1), rel=1e-9)
    wald = model.summary()
    z = float(norm.ppf(0.975))
    for j, row in enumerate(wald.rows):
        assert (row.lower, row.upper) == pytest.approx(
            (theta[j] - z * errors[j], theta[j] + z * errors[j]), rel=1e-4, abs=1e-5
        )
    assert table.n_observations == s.sum()
    assert table.log_likelihood == pytest.approx(-plain.both(theta)[0], rel=1e-9)


def test_logistf_prints_the_same_table() -> None:
    X, y, counts = sex2()
    frame = pd.DataFrame(X, columns=["age", "oc", "vic", "vicl", "vis", "dia"])
    model = firth(frame, y, counts)
    plain = Plain(with_ones(X), y, counts)
    errors = np.sqrt(np.linalg.inv(plain.information(np.array(SEX2_COEF))).diagonal())
    for table in (model.summary(), model.summary(frame, y, counts, interval="profile")):
        assert_allclose([row.estimate for row in table.rows], SEX2_COEF, rtol=2e-7)
        assert_allclose([row.standard_error for row in table.rows], errors, rtol=1e-6)
        assert table.lr_statistic == pytest.approx(SEX2_TEST, abs=1e-5) and table.lr_degrees == 6
        assert table.lr_p_value == pytest.approx(7.15089e-09, rel=1e-5)
    assert_allclose([[row.lower, row.upper] for row in table.rows], SEX2_LIMITS, rtol=5e-7)
    assert_allclose([row.chi_square for row in table.rows], SEX2_CHI, rtol=2e-7)
    assert table.to_frame()["chi_square"]["dia"] == table.rows[5].chi_square
    assert "Firth's penalised likelihood" in str(table) and "P(>χ²)" in str(table) and "dia" in table._repr_html_()
    assert "P(>|z|)" in str(model.summary()) and "without the penalty" in str(model.summary())
    assert np.isnan(table.aic) and np.isnan(table.bic)


def test_weights_are_repetitions_in_the_table() -> None:
    X, y, counts = sex2()
    weighted = firth(X, y, counts).summary(X, y, counts, interval="profile")
    many, labels = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    repeated = firth(many, labels).summary(many, labels, interval="profile")
    for one, two in zip(weighted.rows, repeated.rows, strict=True):
        for name in ("estimate", "standard_error", "lower", "upper", "chi_square"):
            assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-6)
    assert weighted.n_observations == repeated.n_observations == 239


@pytest.mark.parametrize("max_iter", [1, 2, 3, 5, 8])
def test_a_fit_that_did_not_converge_is_not_outside(max_iter: int) -> None:
    """However few steps are allowed, the limits given are the true ones, or further out with a warning."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((25, 2)) + 30.0
        y = (X[:, 0] - 30.0 + rng.logistic(size=25) > 0).astype(int)
        rows = Intercept(as_source(X, y).labelled())
        theta = minimise_firth(rows, tol=1e-10).theta
        true = FirthProfile(rows, theta).interval(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            low, high = FirthProfile(rows, theta, max_iter=max_iter).interval(0)
        slack = 1e-6 * (true[1] - true[0])
        assert low <= true[0] + slack and high >= true[1] - slack
        missed = abs(low - true[0]) + abs(high - true[1]) > 4 * slack
        assert missed == any("was not found" in str(one.message) for one in caught)
        assert all(one.category is ConvergenceWarning for one in caught)


def test_held_fits_that_stall_are_not_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held fits that give up far from their maximum, as they did beside columns far from zero, prove nothing."""
    X, y = np.arange(2000.0, 2020.0)[:, None], np.array([0, 1] * 3 + [0, 0, 1, 0, 1, 1, 0] + [1] * 7)
    rows = Intercept(as_source(X, y).labelled())
    theta = minimise_firth(rows).theta
    true = FirthProfile(rows, theta).interval(0)
    honest = firth_inference.maximise
    profile = FirthProfile(rows, theta)
    calls = []

    def lazy(likelihood: Any, point: Any, held: Any, **options: Any) -> Any:
        calls.append(0)  # every other fit takes no step
        return honest(likelihood, point, held, **{**options, "max_iter": 0 if len(calls) % 2 else options["max_iter"]})

    monkeypatch.setattr(firth_inference, "maximise", lazy)
    assert_allclose(profile.interval(0), true, rtol=1e-6)


def test_units_that_no_float_can_hold_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    y = (X[:, 0] + rng.logistic(size=40) > 0).astype(int)
    expected = firth(X, y)
    for power in (-300, -200, 200, 300):
        model = firth(X * 10.0**power, y)
        assert_allclose(model.coef_ * 10.0**power, expected.coef_, rtol=1e-7)
        assert_allclose(model.intercept_, expected.intercept_, rtol=1e-6)
        if power < -150:
            with pytest.raises(ValueError, match="larger than a float can hold"):
                model.summary()
        else:
            assert np.isfinite([row.standard_error for row in model.summary().rows]).all()
    frame = pd.DataFrame({"dose": X[:, 0] * 1e-310, "age": X[:, 1]})
    with pytest.raises(ValueError, match=r"column 'dose' differ by less than .*multiply the column"):
        firth(frame, y)
    with pytest.raises(ValueError, match="column 'dose' differ"):
        minimise_firth(Intercept(as_source(frame, y).labelled()))


def test_words_of_refusal() -> None:
    X, y, counts = sex2()
    model = firth(X, y, counts)
    with pytest.raises(ValueError, match="Profile intervals need the rows again"):
        model.summary(interval="profile")
    with pytest.raises(ValueError, match="no robust errors under Firth's penalty"):
        model.summary(X, y, counts, covariance="HC0")
    with pytest.raises(ValueError, match="level is 95"):
        model.summary(level=95)
    with pytest.raises(ValueError, match="not the ones the model was fitted to"):
        model.summary(X, y, interval="profile")
    with pytest.warns(ConvergenceWarning):
        short = LogisticRegression(penalty="firth", tol=1e-8, max_iter=1).fit(X, y, counts)
    assert short.fit_.status is Status.MAX_ITER
    with pytest.raises(ValueError, match="not at the maximum"):
        short.summary()


def test_scikit_learn_knows_that_it_is_for_two_classes() -> None:
    """Two of its checks have more columns than rows, for which Firth's penalty is not defined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = check_estimator(LogisticRegression(penalty="firth"), on_fail=None)
    failed = {check["check_name"]: str(check["exception"]) for check in checks if check["status"] == "failed"}
    assert all("fewer rows than columns" in reason for reason in failed.values()), failed
    assert len(failed) == 2
