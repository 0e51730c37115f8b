"""Known Gaussian classes: densities, boundaries, thresholds and risks against closed forms, SciPy and quadrature."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr

from separatrix import (
    GaussianClasses,
    LinearDiscriminantAnalysis,
    LinearRegression,
    LogisticRegression,
    QuadraticDiscriminantAnalysis,
    bayes_risk,
    risk,
)
from separatrix.decide import risk_over_n
from separatrix.geometry import Hyperplane, Quadric
from separatrix.plots import DecisionBoundaryDisplay

mpl.use("Agg")

PLANE = GaussianClasses(
    [[0.0, 0.0], [2.0, 1.0], [-1.0, 3.0]],
    [[[1.0, 0.3], [0.3, 2.0]], [[0.5, 0.0], [0.0, 0.5]], [[2.0, -0.4], [-0.4, 1.0]]],
    [0.5, 0.2, 0.3],
)
SHARED = GaussianClasses([[0.0, 0.0], [2.0, 1.0]], [[1.0, 0.3], [0.3, 2.0]], [0.7, 0.3])


def test_densities_and_posteriors_are_those_of_scipy() -> None:
    X, y = PLANE.sample(200, random_state=0)
    covariances = np.asarray(PLANE.covariance)
    by_class = np.column_stack(
        [stats.multivariate_normal(m, S).pdf(X) for m, S in zip(PLANE.means, covariances, strict=True)]
    )
    np.testing.assert_allclose(np.exp(PLANE.class_log_density(X)), by_class, rtol=1e-10)
    joint = by_class * PLANE.priors
    np.testing.assert_allclose(np.exp(PLANE.log_density(X)), joint.sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(PLANE.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)
    assert np.array_equal(PLANE.predict(X), joint.argmax(axis=1))
    assert y.dtype.kind == "i" and set(y) == {0, 1, 2}


def test_boundaries_are_where_two_classes_are_equally_likely() -> None:
    X, _ = PLANE.sample(50, random_state=1)
    for k, l in ((1, 0), (2, 1), (0, 2)):  # noqa: E741  # names of the formulas
        found = PLANE.boundary(k, l)
        log = np.log(PLANE.predict_proba(X))
        assert isinstance(found, Quadric)
        np.testing.assert_allclose(found(X), log[:, k] - log[:, l], rtol=1e-8, atol=1e-8)
    plane, X = SHARED.boundary(), SHARED.sample(50, random_state=1)[0]
    assert isinstance(plane, Hyperplane)
    log = np.log(SHARED.predict_proba(X))
    np.testing.assert_allclose(plane(X), log[:, 1] - log[:, 0], rtol=1e-9, atol=1e-9)


def line(means: Any, variances: Any, priors: Any = None) -> GaussianClasses:
    return GaussianClasses(np.reshape(means, (-1, 1)), np.reshape(variances, (-1, 1, 1)), priors)


LINES = {
    "two roots": line([0.0, 1.0], [1.0, 9.0], [0.4, 0.6]),
    "one within the other": line([0.0, 0.0], [1.0, 4.0]),
    "never the second": line([0.0, 0.5], [4.0, 3.9], [0.95, 0.05]),
    "equal variances": line([0.0, 3.0], [2.0, 2.0], [0.3, 0.7]),
    "far apart in scale": line([0.0, 1e-3], [1e-6, 1.0]),
    "far from the origin": line([1e6, 1e6 + 2.0], [1.0, 4.0]),
    "three": line([-2.0, 0.0, 1.5], [1.0, 0.2, 3.0], [0.3, 0.3, 0.4]),
    "a prior of 0": line([0.0, 1.0, 2.0], [1.0, 2.0, 1.0], [0.5, 0.0, 0.5]),
}


def integrated(truth: GaussianClasses, matrix: Any, cost: float | None = None) -> float:
    """E min_a Σ_k L[k, a] p(k|x) by the trapezium rule."""
    means, spread = np.ravel(truth.means), np.sqrt(np.ravel(truth.covariance))
    x = np.unique(np.concatenate([m + s * np.linspace(-12, 12, 60_001) for m, s in zip(means, spread, strict=True)]))
    joint = truth.priors_ * stats.norm.pdf(x[:, None], means, spread)
    least = (joint @ matrix).min(axis=1)
    if cost is not None:
        least = np.minimum(least, cost * joint.sum(axis=1))
    return float(integrate.trapezoid(least, x))


@pytest.mark.parametrize("name", LINES)
def test_the_risk_on_one_column_is_exact(name: str) -> None:
    truth = LINES[name]
    found = bayes_risk(truth)
    assert found.method == "closed form" and found.standard_error == 0.0
    assert found.estimate == pytest.approx(integrated(truth, 1.0 - np.eye(len(truth.means_))), abs=2e-8)
    points, classes = truth.thresholds()
    assert len(classes) == len(points) + 1
    for x in points:
        two = np.sort(truth.predict_proba([[x]])[0])[-2:]
        assert two[0] == pytest.approx(two[1], rel=1e-6)
    ends = (
        [points[0] - 1.0, *(points[1:] + points[:-1]) / 2.0, points[-1] + 1.0] if len(points) else [truth.means_[0, 0]]
    )
    assert truth.predict(np.reshape(ends, (-1, 1))).tolist() == classes


def test_other_losses_on_one_column() -> None:
    loss = np.array([[0.0, 3.0], [1.0, 0.0]])
    for name in ("two roots", "one within the other", "equal variances"):
        assert bayes_risk(LINES[name], loss).estimate == pytest.approx(integrated(LINES[name], loss), abs=2e-8)
        rejecting = bayes_risk(LINES[name], loss, reject_cost=0.2)
        assert rejecting.method == "closed form"
        assert rejecting.estimate == pytest.approx(integrated(LINES[name], loss, 0.2), abs=2e-8)
    three = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    found = bayes_risk(LINES["three"], three)
    assert found.method == "quadrature" and 0 < found.standard_error < 1e-6
    assert found.estimate == pytest.approx(integrated(LINES["three"], three), abs=2e-8)
    found = bayes_risk(LINES["three"], reject_cost=0.3)
    assert found.estimate == pytest.approx(integrated(LINES["three"], 1.0 - np.eye(3), 0.3), abs=2e-8)


def test_two_unequal_variances_by_hand() -> None:
    """N(0, 1) and N(0, 4) with equal priors: x² = 8/3 log 2, and R = ½(2Φ(−t) + 2Φ(t/2) − 1)."""
    t = np.sqrt(8.0 / 3.0 * np.log(2.0))
    truth = LINES["one within the other"]
    assert truth.thresholds()[0] == pytest.approx([-t, t]) and truth.thresholds()[1] == [1, 0, 1]
    assert bayes_risk(truth).estimate == pytest.approx(0.5 * (2 * ndtr(-t) + 2 * ndtr(t / 2) - 1), rel=1e-12)


def test_no_rule_beats_the_truth_and_lda_reaches_it() -> None:
    least = bayes_risk(SHARED).estimate
    above = []
    for n in (30, 300, 30_000):
        X, y = SHARED.sample(n, random_state=n)
        for model in (LinearDiscriminantAnalysis(), LogisticRegression()):
            found = SHARED.risk_of(model.fit(X, y))
            assert found.method == "closed form" and found.estimate >= least
        above.append(SHARED.risk_of(LinearDiscriminantAnalysis().fit(X, y)).estimate - least)
    assert above[0] > above[1] > above[2] and above[2] < 1e-4
    assert SHARED.risk_of(SHARED, n_samples=20_000, random_state=0).lower <= least


def test_risk_of_a_rule_is_what_is_measured() -> None:
    X, y = SHARED.sample(40, random_state=0)
    model, loss = LinearDiscriminantAnalysis().fit(X, y), [[0.0, 5.0], [1.0, 0.5]]
    rows, labels = SHARED.sample(40_000, random_state=1)
    for cost in ("zero-one", loss):
        measured = risk(labels, model.predict(rows), cost, level=0.999)
        assert measured.lower <= SHARED.risk_of(model, cost).estimate <= measured.upper
    curved = QuadraticDiscriminantAnalysis().fit(*PLANE.sample(200, random_state=0))
    rows, labels = PLANE.sample(40_000, random_state=2)
    measured, found = risk(labels, curved.predict(rows), level=0.999), PLANE.risk_of(curved, random_state=0)
    assert found.method == "Monte Carlo" and found.lower <= measured.upper and measured.lower <= found.upper
    assert found.upper >= bayes_risk(PLANE, random_state=0).lower
    with pytest.raises(ValueError, match="classes of the rule"):
        SHARED.risk_of(LinearDiscriminantAnalysis().fit(X, np.array(["a", "b"])[y]))
    with pytest.raises(ValueError, match="one column"):
        SHARED.thresholds()


def test_the_truth_is_drawn_beside_a_rule() -> None:
    X, y = PLANE.sample(100, random_state=0)
    display = DecisionBoundaryDisplay.from_estimator(PLANE, X, y, grid_resolution=20)
    grid = np.stack(np.meshgrid(display.regions.x, display.regions.y), axis=-1).reshape(-1, 2)
    assert np.array_equal(display.regions.actions.ravel(), PLANE.predict(grid)) and display.scores is not None


# -- real targets -----------------------------------------------------------------------------------------------------


def test_risk_of_real_predictions() -> None:
    rng = np.random.default_rng(0)
    y, predicted = rng.standard_normal((2, 200))
    weights = rng.integers(0, 3, 200).astype(float)
    losses = {
        "squared": (y - predicted) ** 2,
        "absolute": np.abs(y - predicted),
        "epsilon-insensitive": np.maximum(0.0, np.abs(y - predicted) - 0.25),
    }
    for name, values in losses.items():
        found = risk(y, predicted, name, epsilon=0.25, level=0.9)
        low, high = stats.t.interval(0.9, 199, values.mean(), stats.sem(values))
        assert (found.estimate, found.standard_error) == pytest.approx((values.mean(), stats.sem(values)))
        assert (found.lower, found.upper) == pytest.approx((low, high)) and found.method == "t"
        repeated = risk(
            np.repeat(y, weights.astype(int)), np.repeat(predicted, weights.astype(int)), name, epsilon=0.25
        )
        weighted = risk(y, predicted, name, epsilon=0.25, sample_weight=weights)
        assert (weighted.estimate, weighted.lower) == pytest.approx((repeated.estimate, repeated.lower))
        drawn = risk(y, predicted, name, epsilon=0.25, method="bootstrap", random_state=0)
        assert drawn.method == "bootstrap" and drawn.lower < found.estimate < drawn.upper
    for options, sentence in (
        ({"method": "wilson"}, "'t' and 'bootstrap'"),
        ({"classes": [0, 1]}, "no classes"),
        ({"epsilon": -1.0}, "epsilon"),
    ):
        with pytest.raises(ValueError, match=sentence):
            risk(y, predicted, "squared", **options)
    with pytest.raises(ValueError, match="y_pred has NaN or infinity in row 2"):
        risk(y[:3], [0.0, 1.0, np.nan], "squared")
    with pytest.raises(ValueError, match="one number per row"):
        risk(y, predicted[:5], "absolute")
    with pytest.raises(ValueError, match="not known"):
        risk([0, 1, 1], [0, 1, 0], method="t")


def test_intervals_hold_the_true_risk_as_often_as_they_say() -> None:
    rng = np.random.default_rng(4)
    truths = [
        (r.lower <= 2.0 <= r.upper)
        for r in (risk(rng.standard_normal(400), rng.standard_normal(400), "squared") for _ in range(400))
    ]
    assert np.mean(truths) == pytest.approx(0.95, abs=0.035)


def test_empirical_and_expected_risk_of_least_squares_are_the_textbooks() -> None:
    """x ~ N(0, I), y = wᵀx + N(0, σ²): E R̂ = σ²(1 − d/n) and E R = σ²(1 + d/(n − d − 1))."""
    w, sigma, d = np.array([1.0, -2.0, 0.5, 0.0]), 0.7, 4

    def truth(n: int, rng: Any) -> tuple[Any, Any]:
        X = rng.standard_normal((n, d))
        return X, X @ w + sigma * rng.standard_normal(n)

    sizes = [10, 20, 80]
    found = risk_over_n(LinearRegression(fit_intercept=False), truth, sizes, n_repeats=150, n_test=8000, random_state=0)
    for n, empirical, expected in zip(sizes, found.empirical, found.expected, strict=True):
        for values, formula in ((empirical, 1.0 - d / n), (expected, 1.0 + d / (n - d - 1))):
            assert values.mean() == pytest.approx(sigma**2 * formula, abs=4 * stats.sem(values) + 0.02 * sigma**2)
    assert found.least is None and "10" not in repr(found)[:20]


def test_empirical_and_expected_risk_of_a_classifier_meet() -> None:
    found = risk_over_n(LinearDiscriminantAnalysis(), SHARED, [12, 100, 5000], n_repeats=15, random_state=0)
    assert (found.expected >= found.least).all() and found.expected.shape == (3, 15)
    gaps = found.expected.mean(axis=1) - found.empirical.mean(axis=1)
    assert gaps[0] > gaps[1] > abs(gaps[2]) and abs(gaps[2]) < 0.005
    assert found.expected[-1].mean() == pytest.approx(found.least, abs=1e-3)
    rare = GaussianClasses([[0.0], [1.0]], [[1.0]], [1.0 - 1e-9, 1e-9])
    with pytest.raises(ValueError, match="larger sizes"):
        risk_over_n(LinearDiscriminantAnalysis(), rare, [3])
