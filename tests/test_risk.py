"""Risk: of actions taken, of rows kept, of the best possible rule, of all thresholds at once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression as SkLogistic

import separatrix.decide.empirical_risk as risk_module
from separatrix import (
    BayesRule,
    BernoulliNB,
    CategoricalNB,
    GaussianClasses,
    GaussianNB,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    MixedNB,
    MultinomialNB,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    bayes_risk,
    cost_curve,
    risk,
    risk_coverage_curve,
)
from separatrix.decide.intervals import bounded_interval

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)


def drawn(n: int, delta: float = 2.0, share: float = 0.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussian classes with one covariance, Mahalanobis distance `delta` apart."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    root = np.array([[1.0, 0.6], [0.0, 0.8]])
    return (rng.standard_normal((n, 2)) + np.outer(y, [delta, 0.0])) @ root, y


# -- empirical risk ---------------------------------------------------------------------------------------------------


def test_estimate_and_standard_error_are_the_textbooks():
    y, actions = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 0, 1])
    losses = np.array([0.0, 2.0, 0.0, 5.0, 0.0])
    found = risk(y, actions, [[0, 2], [5, 0]])
    assert (found.estimate, found.standard_error) == pytest.approx((losses.mean(), stats.sem(losses)))
    assert found.n == 5 and found.method == "exact" and 0.0 <= found.lower < found.estimate < found.upper <= 5.0


def of_errors(k: int, n: int, scale: float = 1.0, shift: float = 0.0, **options):
    """The risk of k errors among n rows, of losses `shift` and `shift + scale`."""
    y, actions = np.arange(n) % 2, np.arange(n) % 2
    actions[:k] = 1 - actions[:k]
    return risk(y, actions, shift + scale * np.array([[0.0, 1.0], [1.0, 0.0]]), **options)


def coverage(limits, n: int, p: np.ndarray) -> np.ndarray:
    """How often the intervals of 0…n errors hold p: a sum over the binomial, no simulation."""
    low, high = np.array([limits(k, n) for k in range(n + 1)]).T
    inside = (low[:, None] <= p) & (p <= high[:, None])
    return (stats.binom.pmf(np.arange(n + 1)[:, None], n, p) * inside).sum(axis=0)


@pytest.mark.parametrize("n", [10, 20, 50, 100, 300, 1000])
def test_coverage_of_error_rates(n):
    """95 ± 2 % on average over every range of p; single values of p cannot all have it, since k is whole."""
    p = np.concatenate([np.geomspace(0.02 / n, 0.02, 300), np.linspace(0.02, 0.5, 500)])

    def limits(k: int, n: int) -> tuple[float, float]:
        found = of_errors(k, n)
        assert found.method == "wilson" and found.lower <= found.estimate <= found.upper
        return found.lower, found.upper

    covered = coverage(limits, n, p)
    assert covered.min() > 0.915
    assert covered[p >= 0.02].mean() == pytest.approx(0.95, abs=0.02)
    for low, high in ((0.02, 0.1), (0.1, 0.3), (0.3, 0.5)):
        if n * low >= 2:
            assert covered[(p >= low) & (p <= high)].mean() == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_exact_intervals_are_clopper_and_pearsons(level):
    for k, n in ((0, 20), (1, 20), (20, 20), (7, 30), (0, 3), (499, 500)):
        theirs = stats.binomtest(k, n).proportion_ci(level, method="exact")
        ours = of_errors(k, n, method="exact", level=level)
        assert (ours.lower, ours.upper) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    covered = coverage(
        lambda k, n: (lambda r: (r.lower, r.upper))(of_errors(k, n, method="exact")), 40, np.linspace(0, 1, 301)
    )
    assert covered.min() >= 0.95


@pytest.mark.parametrize("method", ["auto", "exact", "bootstrap"])
def test_no_error_is_no_proof_of_none(method):
    """0 of 20: neither 0 nor nothing."""
    found = of_errors(0, 20, method=method)
    assert found.estimate == found.lower == 0.0 and 0.13 < found.upper < 0.2
    always = of_errors(20, 20, method=method)
    assert always.estimate == always.upper == 1.0 and 0.8 < always.lower < 0.87
    assert of_errors(0, 20, scale=50.0, shift=-3.0, method=method).upper == pytest.approx(50.0 * found.upper - 3.0)
    costly = risk(np.arange(20) % 2, np.arange(20) % 2, [[0, 1], [50, 0]], method=method)
    assert costly.lower == 0.0 and 5.0 < costly.upper < 10.0  # a loss of 50 may be as likely as an error was
    one_label = risk(np.zeros(20, dtype=int), np.zeros(20, dtype=int), method=method)
    assert one_label.upper == found.upper


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_intervals_keep_to_the_range_and_to_units(seed):
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(2, 60)), int(rng.integers(2, 4))
    y, actions, weights = rng.integers(0, K, n), rng.integers(0, K, n), rng.integers(0, 4, n)
    if weights.sum() < 2:
        return
    loss = rng.choice([rng.integers(-3, 9, (K, K)), rng.standard_normal((K, K)) * 10.0 ** rng.integers(-8, 8)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # some of these losses look transposed
        options = {"classes": range(K), "method": "exact", "level": 0.9}
        found = risk(y, actions, loss, sample_weight=weights, **options)
        repeated = risk(np.repeat(y, weights), np.repeat(actions, weights), loss, **options)
        scaled = risk(y, actions, 3.0 * loss + 7.0 * np.ptp(loss), sample_weight=weights, **options)
    slack = 1e-9 * np.ptp(loss)
    assert (
        loss.min() - slack <= found.lower <= found.estimate + slack <= found.upper + 2 * slack <= loss.max() + 3 * slack
    )
    if np.ptp(loss) > 0:
        assert found.upper > found.lower
    for name in ("estimate", "lower", "upper"):
        value = getattr(found, name)
        assert getattr(repeated, name) == pytest.approx(value, abs=slack)
        assert getattr(scaled, name) == pytest.approx(3.0 * value + 7.0 * np.ptp(loss), abs=100 * slack)


def test_weights_need_not_be_whole():
    ours = of_errors(3, 10, sample_weight=np.full(10, 2.5))
    assert ours.n == 25.0 and of_errors(3, 10).upper > ours.upper > of_errors(9, 30).upper
    halves = of_errors(6, 20, sample_weight=np.full(20, 0.5))
    assert (halves.lower, halves.upper) == pytest.approx((of_errors(3, 10).lower, of_errors(3, 10).upper))


@pytest.mark.parametrize("shares", [(0.7, 0.29, 0.01), (0.9, 0.08, 0.02), (0.5, 0.3, 0.2)])
@pytest.mark.parametrize("n", [20, 100, 500])
def test_coverage_of_unequal_losses(shares, n):
    """A rare loss of 50 among losses of 0 and 1, which ± 1.96 standard errors misses in up to four of five samples."""
    values, rng = np.array([0.0, 1.0, 50.0]), np.random.default_rng(n)
    samples, times = np.unique(rng.multinomial(n, shares, size=400), axis=0, return_counts=True)
    hits = 0
    for counts, repeated in zip(samples, times, strict=True):
        low, high = bounded_interval(values, counts.astype(float), 0.0, 50.0)
        hits += repeated * (low <= values @ shares <= high)
    assert stats.binomtest(int(hits), 400, 0.95, alternative="less").pvalue > 1e-3


def test_dirichlet_means_agree_with_draws():
    rng = np.random.default_rng(0)
    for values, counts in (([0.0, 0.3, 1.0, 50.0], [60.0, 30.0, 9.0, 1.0]), ([0.0, 2.0, 3.0], [1.5, 4.0, 0.5])):
        low, high = bounded_interval(np.array(values), np.array(counts), 0.0, values[-1])
        weights = rng.dirichlet([*counts, 1.0], size=200_000)
        upper, lower = weights @ [*values, values[-1]], weights @ [*values, 0.0]
        assert (upper > high).mean() == pytest.approx(0.025, rel=0.1)
        assert (lower < low).mean() == pytest.approx(0.025, rel=0.1)


def test_very_many_different_losses():
    """They are put on a grid, which keeps the mean and hardly changes the spread."""
    values = np.random.default_rng(0).exponential(size=5000)
    low, high = bounded_interval(values, np.ones(5000), 0.0, 20.0)
    mean, error = values.mean(), stats.sem(values)
    assert (low, high) == pytest.approx((mean - 1.96 * error, mean + 1.96 * error), abs=0.4 * error)
    assert low < mean - 1.8 * error and high > mean + 1.9 * error


def test_bootstrap_agrees_with_scipys():
    rng = np.random.default_rng(0)
    y, actions = rng.integers(0, 2, 150), rng.integers(0, 2, 150)
    loss = np.array([[0.0, 1.0], [8.0, 0.0]])
    losses = loss[y, actions]
    ours = risk(y, actions, loss, method="bootstrap", n_resamples=50_000, random_state=0)
    theirs = stats.bootstrap((losses,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(1))
    assert ours.estimate == pytest.approx(losses.mean())
    assert ours.standard_error == pytest.approx(theirs.standard_error, rel=0.03)
    assert ours.lower == pytest.approx(theirs.confidence_interval.low, abs=0.05 * ours.standard_error * 2)
    assert ours.upper == pytest.approx(theirs.confidence_interval.high, abs=0.05 * ours.standard_error * 2)
    assert (
        ours.upper - ours.estimate > ours.estimate - ours.lower
    )  # losses are skewed to the right, and so is this interval


def test_bootstrap_in_pieces_and_repeatable(monkeypatch):
    y, actions = np.random.default_rng(0).integers(0, 2, (2, 60))
    costs = np.random.default_rng(1).exponential(size=(60, 2, 2))
    whole = risk(y, actions, costs=costs, method="bootstrap", n_resamples=500, random_state=3)
    monkeypatch.setattr(risk_module, "_DRAWN_AT_ONCE", 1000)
    pieces = risk(y, actions, costs=costs, method="bootstrap", n_resamples=500, random_state=3)
    assert whole == pieces
    assert whole != risk(y, actions, costs=costs, method="bootstrap", n_resamples=500, random_state=4)


@pytest.mark.parametrize("method", ["auto", "exact", "bootstrap"])
def test_intervals_hold_the_truth_as_often_as_they_say(method):
    truth = float(stats.norm.cdf(-1.0))  # the rule x > ½Δ of two unit Gaussians 2 apart
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 300)
        x = rng.standard_normal(300) + 2.0 * y
        found = risk(y, (x > 1.0).astype(int), method=method, n_resamples=600, random_state=seed)
        hits += found.lower <= truth <= found.upper
    assert stats.binomtest(hits, 200, 0.95).pvalue > 1e-3


@pytest.mark.parametrize("method", ["auto", "exact", "bootstrap"])
def test_weights_are_repetitions(method):
    rng = np.random.default_rng(5)
    y, actions, weights = rng.integers(0, 3, 80), rng.integers(0, 3, 80), rng.integers(0, 3, 80)
    loss = [[0, 2, 3], [1, 0, 5], [4, 1, 0]]
    weighted = risk(y, actions, loss, sample_weight=weights, method=method, n_resamples=300, random_state=0)
    repeated = risk(
        np.repeat(y, weights), np.repeat(actions, weights), loss, method=method, n_resamples=300, random_state=0
    )
    for name in ("estimate", "lower", "upper", "standard_error", "n"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name), rel=1e-12)


def test_risk_is_minus_the_score_of_a_rule():
    X, y = CANCER
    names = np.array(["malignant", "benign"])[y]
    loss = [[0, 1], [10, 0]]
    rule = BayesRule(GaussianNB(), loss, reject_cost=0.4).fit(X, names)
    actions = rule.predict(X)
    assert (actions == "reject").any()
    assert risk(names, actions, loss, reject_cost=0.4).estimate == pytest.approx(-rule.score(X, names))
    whole = BayesRule(GaussianNB(), reject_cost=0.01).fit(X, y)  # integers and "reject": objects
    assert risk(y, whole.predict(X), reject_cost=0.01).estimate == pytest.approx(-whole.score(X, y))
    missing = BayesRule(GaussianNB(), reject_cost=0.01, reject_action=np.nan).fit(X, y)
    assert risk(y, missing.predict(X), reject_cost=0.01, reject_action=np.nan).estimate == pytest.approx(
        -missing.score(X, y)
    )


def test_named_actions_functions_and_absent_labels():
    y = np.array(["a", "b", "b"])
    actions = np.array(["treat", "wait", "treat"])
    table = {("a", "treat"): 1.0, ("b", "wait"): 3.0, ("b", "treat"): 0.5, ("a", "wait"): 9.0}
    expected = (1.0 + 3.0 + 0.5) / 3
    assert risk(y, actions, lambda truth, action: table[truth, action]).estimate == pytest.approx(expected)
    matrix = [[9.0, 1.0], [3.0, 0.5], [7.0, 7.0]]
    assert risk(y, actions, matrix, classes=["a", "b", "c"], actions=["wait", "treat"]).estimate == pytest.approx(
        expected
    )
    assert risk([0, 0, 1], [0, 5, 1]).estimate == pytest.approx(1 / 3)  # a class that has no row here
    assert risk([0, 0, 1], ["reject"] * 3, reject_cost=0.25).estimate == 0.25


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0, 1], [0, 1], [[0, 1, 1], [1, 0, 1]]), "name the columns"),
        (([0, 1], [0, 2], [[0, 1], [1, 0]]), "2 is not among the actions"),
        (([0, 1], [0]), "one action per row"),
        (([0, 1], ["0", "1"]), "one type"),
        (([0, 1], np.array([0, "reject"], dtype=object)), "set reject_cost"),
        (([0, 1], [0.0, np.nan]), "by reject_action"),
        (([0], [0]), "more than one row"),
        (([0, 1], [0, 1], "cubic"), "not known"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(ValueError, match=words):
        risk(*arguments)


def test_bad_settings():
    with pytest.raises(ValueError, match="level is 95"):
        risk([0, 1], [0, 1], level=95)
    with pytest.raises(ValueError, match="'exact' or 'bootstrap'"):
        risk([0, 1], [0, 1], method="normal")
    with pytest.raises(ValueError, match="these can be 0, 1, 5: give method='exact'"):
        risk([0, 1], [0, 1], [[0, 1], [5, 0]], method="wilson")
    with pytest.raises(ValueError, match="list it in `classes`"):
        risk([0, 1, 2], [0, 1, 1], [[0, 1], [1, 0]], classes=[0, 1])


# -- risk and coverage ------------------------------------------------------------------------------------------------


def test_curve_follows_the_rejections_of_the_rule():
    X, y = CANCER
    loss = np.array([[0.0, 5.0], [1.0, 0.0]])
    rule = BayesRule(GaussianNB(), loss, reject_action=-1).fit(X, y)
    curve = risk_coverage_curve(y, rule.predict_proba(X), loss)
    assert curve.coverage[-1] == 1.0 and (np.diff(curve.coverage) > 0).all()
    assert curve.risk[-1] == pytest.approx(-rule.score(X, y))
    for cost in (1e-6, 1e-3, 0.2):
        actions = rule.set_params(reject_cost=cost).fit(X, y).predict(X)
        kept = actions != -1
        at = np.searchsorted(curve.thresholds, cost, side="right") - 1
        assert curve.coverage[at] == pytest.approx(kept.mean())
        assert curve.risk[at] == pytest.approx(loss[y[kept], actions[kept]].mean())


def test_curve_weights_ties_and_area():
    rng = np.random.default_rng(0)
    proba = np.round(rng.dirichlet([1, 1], size=60), 1)
    y, weights = rng.integers(0, 2, 60), rng.integers(0, 4, 60)
    weighted = risk_coverage_curve(y, proba, sample_weight=weights)
    repeated = risk_coverage_curve(np.repeat(y, weights), np.repeat(proba, weights, axis=0))
    np.testing.assert_allclose(weighted.risk, repeated.risk)
    np.testing.assert_allclose(weighted.coverage, repeated.coverage)
    assert weighted.area == pytest.approx(repeated.area)
    order = rng.permutation(60)
    assert risk_coverage_curve(y[order], proba[order], sample_weight=weights[order]).area == pytest.approx(
        weighted.area
    )
    blind = risk_coverage_curve(y, proba, uncertainty=np.zeros(60))
    assert blind.area == pytest.approx(blind.risk[0]) and len(blind.risk) == 1
    numeric, _ = integrate.quad(
        lambda c: np.interp(c, np.append(0, weighted.coverage), np.append(0, weighted.coverage * weighted.risk)) / c,
        0, 1, points=weighted.coverage[:-1], limit=200,
    )  # fmt: skip
    assert weighted.area == pytest.approx(numeric, abs=1e-7)


def test_area_is_near_the_mean_over_coverages():
    rng = np.random.default_rng(1)
    p = rng.random(2000)
    proba = np.column_stack([1 - p, p])
    y = (rng.random(2000) < p).astype(int)
    curve = risk_coverage_curve(y, proba)
    assert curve.area == pytest.approx(curve.risk.mean(), abs=2e-3)
    assert curve.area < 0.6 * curve.risk[-1]  # the surest rows are the best
    assert risk_coverage_curve(y, proba, uncertainty=proba.max(axis=1)).area > curve.risk[-1]


def test_bad_curve_input():
    with pytest.raises(ValueError, match="classes="):
        risk_coverage_curve([0, 0], [[0.5, 0.5], [0.2, 0.8]])
    with pytest.raises(ValueError, match="uncertainty"):
        risk_coverage_curve([0, 1], [[0.5, 0.5], [0.2, 0.8]], uncertainty=[0.1, np.nan])


# -- the best possible risk -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.5, 2.0, 6.0, 25.0])
def test_two_gaussians_with_equal_priors(delta):
    truth = GaussianClasses([[0.0, 0.0], [delta, 0.0]], np.eye(2))
    found = bayes_risk(truth)
    assert found.estimate == pytest.approx(stats.norm.cdf(-delta / 2), rel=1e-9)
    assert found.lower == found.upper == found.estimate and found.method == "closed form"


def test_measured_risk_is_within_its_interval_of_the_formula():
    X, y = drawn(4000)
    test, labels = drawn(20_000, seed=1)
    for model in (LinearDiscriminantAnalysis(priors=[0.5, 0.5]), LogisticRegression()):
        measured = risk(labels, BayesRule(model).fit(X, y).predict(test))
        assert measured.lower <= stats.norm.cdf(-1.0) <= measured.upper
    fitted = bayes_risk(LinearDiscriminantAnalysis(priors=[0.5, 0.5]).fit(X, y)).estimate
    assert fitted == pytest.approx(stats.norm.cdf(-1.0), abs=0.01)


@pytest.mark.parametrize("priors", [[0.5, 0.5], [0.2, 0.8], [0.97, 0.03]])
@pytest.mark.parametrize(
    ("loss", "cost", "below"),
    [
        ("zero-one", None, None),
        ([[0, 3], [1, 0]], None, None),
        ([[0, 3], [1, 0]], 0.3, None),
        ([[-1, 3], [1, 0.5]], None, None),
        ("zero-one", 0.2, 0.9),
    ],
)
def test_closed_form_against_quadrature(priors, loss, cost, below):
    truth = GaussianClasses([[0.0], [1.5]], [[1.0]], priors)
    matrix = np.array([[0, 1], [1, 0]]) if isinstance(loss, str) else np.array(loss)

    x = np.linspace(-9, 11, 400_001)
    joint = np.array(priors) * stats.norm.pdf(x[:, None], [0.0, 1.5])
    total, least = joint.sum(axis=1), (joint @ matrix).min(axis=1)
    if cost is not None:
        rejected = (least > cost * total) | (joint.max(axis=1) < (below or 0.0) * total)
        least = np.where(rejected, cost * total, least)
    numeric = integrate.trapezoid(least, x)
    found = bayes_risk(truth, loss, reject_cost=cost, reject_below=below)
    assert found.estimate == pytest.approx(numeric, abs=1e-5)


def test_closed_form_of_many_actions_is_that_of_the_rule():
    loss = [[0, 1.0, 5.0], [8.0, 2.0, 0.0]]
    truth = GaussianClasses([[0.0, 0.0], [1.5, 0.0]], [[1.0, 0.3], [0.3, 2.0]], [0.6, 0.4])
    rng = np.random.default_rng(0)
    y = (rng.random(200_000) < 0.4).astype(int)
    X = rng.multivariate_normal([0, 0], [[1.0, 0.3], [0.3, 2.0]], size=len(y)) + np.outer(y, [1.5, 0.0])
    actions = np.array(["a", "b", "c"])[(truth.predict_proba(X) @ np.array(loss)).argmin(axis=1)]
    measured = risk(y, actions, loss, actions=["a", "b", "c"], level=0.999)
    assert measured.lower <= bayes_risk(truth, loss, actions=["a", "b", "c"]).estimate <= measured.upper


def test_no_information():
    same = GaussianClasses([[0.0], [0.0]], [[1.0]], [0.3, 0.7])
    assert bayes_risk(same).estimate == pytest.approx(0.3)
    assert bayes_risk(same, [[0, 10], [1, 0]]).estimate == pytest.approx(0.7)
    certain = GaussianClasses([[0.0], [1.0]], [[1.0]], [0.0, 1.0])
    assert bayes_risk(certain).estimate == 0.0
    assert bayes_risk(certain, [[0, 1], [1, 0.25]]).estimate == 0.25


def test_shared_covariances_of_fitted_models_have_the_closed_form():
    X, y = drawn(500, share=0.3)
    for model in (
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.2),
        RegularizedDiscriminantAnalysis(0.0, 0.8),
        GaussianNB(shared_variance=True),
    ):
        fitted = model.fit(X, y)
        exact = bayes_risk(fitted)
        assert exact.method == "closed form"
        W, b = fitted.linear_form()
        means = fitted.theta_ if hasattr(fitted, "theta_") else fitted.means_
        scores = means @ W[0] + b[0]
        spread = np.sqrt(scores[1] - scores[0])  # wᵀΣw = wᵀ(μ₁−μ₀)
        assert exact.estimate == pytest.approx(
            fitted.priors_ @ [stats.norm.sf(0, scores[0], spread), stats.norm.cdf(0, scores[1], spread)]
        )


@pytest.mark.parametrize(
    "model",
    [QuadraticDiscriminantAnalysis(), RegularizedDiscriminantAnalysis(0.5, 0.9), GaussianNB()],
    ids=lambda model: type(model).__name__,
)
def test_one_column_has_a_closed_form(model):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [200, 100])
    X = rng.standard_normal((300, 1)) * (1.0 + 1.5 * y[:, None]) + y[:, None]
    fitted = model.fit(X, y)
    x = np.linspace(-15, 17, 20_001)[:, None]
    least = np.exp(fitted.log_density(x)) * fitted.predict_proba(x).min(axis=1)
    exact = integrate.trapezoid(least, x[:, 0])
    found = bayes_risk(fitted)
    assert found.method == "closed form" and found.estimate == pytest.approx(exact, abs=1e-6)


def test_monte_carlo_against_the_closed_form_of_one_column():
    """A second column that is the same in both classes says nothing: the risk is that of the first."""
    spread = np.array([1.0, 4.0])
    line = GaussianClasses([[0.0], [1.0]], spread[:, None, None], [0.6, 0.4])
    plane = GaussianClasses([[0.0, 2.0], [1.0, 2.0]], [np.diag([v, 1.0]) for v in spread], [0.6, 0.4])
    exact, found = bayes_risk(line), bayes_risk(plane, n_samples=40_000, random_state=0, level=0.999)
    assert found.method == "Monte Carlo" and found.n == 40_000
    assert found.lower <= exact.estimate <= found.upper and 0 < found.standard_error < 2e-3


def test_monte_carlo_of_lda_with_three_classes():
    X, y = IRIS
    for model in (LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)):
        fitted = model.fit(X, y)
        mean = np.asarray(fitted.means_)
        covariance = fitted.set_params(store_covariance=True).covariance_
        known = bayes_risk(GaussianClasses(mean, covariance, fitted.priors_), n_samples=60_000, random_state=1)
        found = bayes_risk(fitted, n_samples=60_000, random_state=0)
        assert found.estimate == pytest.approx(
            known.estimate, abs=4 * np.hypot(found.standard_error, known.standard_error)
        )


def test_monte_carlo_of_more_columns_than_rows():
    X = np.random.default_rng(0).standard_normal((12, 30))
    fitted = RegularizedDiscriminantAnalysis(0.5, 0.5).fit(X, [0, 1] * 6)
    found = bayes_risk(fitted, n_samples=2000, random_state=0)
    assert 0.0 <= found.estimate < 0.5
    assert found == bayes_risk(fitted, n_samples=2000, random_state=0)


@pytest.mark.parametrize(
    "model", [MultinomialNB(), BernoulliNB(), CategoricalNB(), MixedNB()], ids=lambda m: type(m).__name__
)
def test_discrete_models_by_monte_carlo(model):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = (rng.random((200, 3)) < np.where(y[:, None] == 1, 0.7, 0.3)).astype(int)
    fitted = model.fit(X, y)
    found = bayes_risk(fitted, n_samples=5000, random_state=0)
    assert 0.05 < found.estimate < 0.5 and found.standard_error < 0.01
    if isinstance(model, BernoulliNB):
        table = np.array([[(i >> j) & 1 for j in range(3)] for i in range(8)])
        exact = (np.exp(fitted.log_density(table)) * fitted.predict_proba(table).min(axis=1)).sum()
        assert abs(found.estimate - exact) < 4 * found.standard_error


def test_models_that_are_not_generative():
    with pytest.raises(TypeError, match="LogisticRegression is not a generative model"):
        bayes_risk(SkLogistic())
    with pytest.raises(ValueError, match="no price"):
        bayes_risk(GaussianClasses([[0.0], [1.0]], [[1.0]]), reject_below=0.9)
    with pytest.raises(ValueError, match="covariance has shape"):
        bayes_risk(GaussianClasses([[0.0], [1.0]], np.eye(2)))
    with pytest.raises(ValueError, match="class 1 is not positive definite"):
        bayes_risk(GaussianClasses([[0.0], [1.0]], [[[1.0]], [[0.0]]]))
    with pytest.raises(ValueError, match="sum to 1"):
        bayes_risk(GaussianClasses([[0.0], [1.0]], [[1.0]], [0.5, 0.6]))


# -- cost curves ------------------------------------------------------------------------------------------------------


@given(
    arrays(np.int64, (30,), elements=st.integers(0, 1)).filter(lambda y: 0 < y.sum() < 30),
    arrays(np.float64, (30,), elements=st.integers(0, 12).map(lambda i: i / 12)),
    arrays(np.int64, (30,), elements=st.integers(0, 3)),
)
@settings(max_examples=80)
def test_cost_curve_is_the_best_threshold_everywhere(y, scores, weights):
    if len(set(y[weights > 0])) < 2:
        return
    curve = cost_curve(y, scores, sample_weight=weights)
    c = np.linspace(0, 1, 41)
    lines = []
    for threshold in [*np.unique(scores), 2.0]:
        acts = scores >= threshold
        fp = weights[(y == 0) & acts].sum() / weights[y == 0].sum()
        fn = weights[(y == 1) & ~acts].sum() / weights[y == 1].sum()
        lines.append(fn * c + fp * (1 - c))
    np.testing.assert_allclose(curve.at(c), np.min(lines, axis=0), atol=1e-12)
    assert (np.diff(curve.probability_cost) > 0).all()
    assert curve.area == pytest.approx(integrate.trapezoid(curve.at(np.linspace(0, 1, 4001)), dx=1 / 4000), abs=1e-4)
    repeated = cost_curve(np.repeat(y, weights), np.repeat(scores, weights))
    np.testing.assert_allclose(repeated.at(c), curve.at(c), atol=1e-12)


def test_cost_curve_of_the_best_and_the_blind():
    best = cost_curve(["n", "n", "y"], [0.1, 0.2, 0.9])
    assert best.area == 0.0 and best.thresholds.tolist() == [0.9]
    blind = cost_curve([0, 1, 0, 1], [0.5] * 4)
    np.testing.assert_array_equal(blind.at([0.0, 0.25, 0.5, 1.0]), [0.0, 0.25, 0.5, 0.0])
    assert blind.area == pytest.approx(0.25)


def test_cost_curve_gives_the_risk_at_given_priors_and_losses():
    X, y = drawn(1000, share=0.5)
    scores = X[:, 0]
    curve = cost_curve(y, scores)
    prior, miss, alarm = 0.2, 6.0, 1.0
    worst = prior * miss + (1 - prior) * alarm
    c = prior * miss / worst
    threshold = curve.thresholds[np.searchsorted(curve.probability_cost, c) - 1]
    weights = np.where(y == 1, prior / (y == 1).mean(), (1 - prior) / (y == 0).mean())
    found = risk(y, (scores >= threshold).astype(int), [[0, alarm], [miss, 0]], sample_weight=weights)
    assert found.estimate == pytest.approx(worst * curve.at(c))


def test_bad_cost_curve_input():
    with pytest.raises(ValueError, match="two classes"):
        cost_curve([0, 1, 2], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="one score"):
        cost_curve([0, 1], [[0.1, 0.2], [0.1, 0.3]])
    with pytest.raises(ValueError, match="between 0 and 1"):
        cost_curve([0, 1], [0.1, 0.2]).at(1.5)
