"""Whether a Bayesian logistic regression can be trusted: far tails, separable classes, the check of the Gaussian, Ctrl-C."""

from __future__ import annotations

import warnings
from pathlib import Path

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression as ReferenceLogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from separatrix import BayesianLogisticRegression, LogisticRegressionCV, Status
from separatrix.bayes import expected_loss, left_out, variational
from separatrix.bayes.importance import pareto_k
from separatrix.bayes.predictive import quadrature
from separatrix.bayes.predictive_softmax import softmax_quadrature
from separatrix.data.arrays import MemorySource
from separatrix.data.source import Source
from separatrix.models.bayesian import fitting as bayesian_fitting

PENGUINS = Path(__file__).parents[1] / "examples/data/penguins.csv"


def scaled(X):
    X = np.asarray(X, dtype=float)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def data(name):
    if name == "penguins":
        table = pd.read_csv(PENGUINS).dropna()
        return scaled(pd.get_dummies(table.drop(columns="species"))), table["species"].to_numpy()
    X, y = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}[name](return_X_y=True)
    return scaled(X), y


@pytest.mark.parametrize("name", ["iris", "wine", "cancer", "penguins"])
def test_out_of_fold_it_is_not_worse_than_cross_validated_logistic_regression(name):
    X, y = data(name)
    folds = StratifiedKFold(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bayes = cross_val_predict(BayesianLogisticRegression(), X, y, cv=folds, method="predict_proba")
        whole = BayesianLogisticRegression().fit(X, y)
    plain = cross_val_predict(LogisticRegressionCV(), X, y, cv=folds, method="predict_proba")
    assert log_loss(y, bayes) <= 1.05 * log_loss(y, plain)
    assert whole.fit_.passes < 150


def test_few_rows_for_many_coefficients_lose_little_by_averaging():
    """650 coefficients, 320 rows: the reference knows its best C afterwards; averages over the whole Gaussian lose to it."""
    X, y = load_digits(return_X_y=True)
    some = np.random.default_rng(0).permutation(len(y))[:400]
    X, y = scaled(X)[some], y[some]
    ours, whole, plain = 0.0, 0.0, np.zeros(3)
    for train, test in list(StratifiedKFold(5).split(X, y))[:2]:
        model = BayesianLogisticRegression().fit(X[train], y[train])
        assert model.fit_.passes < 200
        assert model.predictive_width_ < 1.0 and "left-out rows" in model.fit_.detail
        ours += log_loss(y[test], model.predict_proba(X[test]))
        model.predictive_width_ = 1.0
        whole += log_loss(y[test], model.predict_proba(X[test]))
        for j, C in enumerate((0.3, 1.0, 3.0)):
            reference = ReferenceLogisticRegression(C=C, max_iter=2000).fit(X[train], y[train])
            plain[j] += log_loss(y[test], reference.predict_proba(X[test]))
    assert ours <= 1.1 * plain.min()
    assert whole > 1.2 * plain.min()


def seen_by_left_out(monkeypatch):
    """The left-out losses that fits compute from now on."""
    seen, original = [], left_out.left_out_losses

    def keeping(*arguments):
        seen.append(original(*arguments))
        return seen[-1]

    monkeypatch.setattr(left_out, "left_out_losses", keeping)
    return seen


@pytest.mark.parametrize("K", [2, 3])
def test_left_out_losses_are_those_of_fits_without_the_row(K, monkeypatch):
    rng = np.random.default_rng(K)
    X = rng.normal(size=(40, 8))
    y = (3.0 * X @ rng.normal(size=(8, K))).argmax(axis=1)
    seen = seen_by_left_out(monkeypatch)
    whole = BayesianLogisticRegression(0.1).fit(X, y)
    assert whole.log_evidence_is_ == "a lower bound"
    total, sums, _ = seen[0]
    exact = np.zeros((len(y), 2))
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        fit = BayesianLogisticRegression(0.1, posterior="variational").fit(X[rest], y[rest])
        for j, width in enumerate((0.0, 1.0)):
            fit.predictive_width_ = width
            exact[i, j] = -fit.predict_log_proba(X[i : i + 1])[0, y[i]]
    assert total == len(y)
    assert sums[-1] / total == pytest.approx(exact[:, 1].mean(), rel=0.2)
    assert (
        0.5 * exact[:, 0].mean() < sums[0] / total < 1.1 * exact[:, 0].mean()
    )  # one step is optimistic for a mean alone


@pytest.mark.parametrize("K", [2, 3])
def test_a_weight_is_a_repetition_for_the_left_out_losses(K, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 12))
    y = (X @ rng.normal(size=(12, K))).argmax(axis=1)
    weights = rng.integers(0, 3, 30)
    weights[: K + 2] = 1
    monkeypatch.setattr(expected_loss, "_MOST", expected_loss._FEWEST)  # as many points for any number of rows
    seen = seen_by_left_out(monkeypatch)
    one = BayesianLogisticRegression(0.2).fit(X, y, weights)
    two = BayesianLogisticRegression(0.2).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    for a, b in zip(*seen, strict=True):
        assert a == pytest.approx(b, rel=1e-6)
    assert one.predictive_width_ == two.predictive_width_


@pytest.mark.parametrize("seed", range(1, 5))
def test_rows_of_tiny_weight_can_be_left_out(seed):
    """A whole repetition of a row whose weight is a billionth: no negative variance by rounding."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3))
    y = (X @ rng.normal(size=(3, 3))).argmax(axis=1)
    model = BayesianLogisticRegression(1.0, tol=1e-6).fit(X, y, 10.0 ** rng.uniform(-9, 0, 20))
    assert 0.0 <= model.predictive_width_ <= 1.0
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("seed", [0, 2, 5])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_class_of_next_to_no_weight_does_not_end_the_fit(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3))
    y = np.minimum((X @ rng.normal(size=(3, 3))).argmax(axis=1), 1)
    y[0], weights = 2, np.ones(20)
    weights[0] = 1e-6
    model = BayesianLogisticRegression(1.0, tol=1e-6).fit(X, y, weights)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("predictive", ["probit", "quadrature", "samples"])
def test_a_width_of_zero_is_the_mean_and_leaves_intervals(predictive):
    X, y = data("iris")
    model = BayesianLogisticRegression(predictive=predictive, random_state=0).fit(X, y)
    assert model.predictive_width_ == 0.0
    assert model.decision_function(X) == pytest.approx(log_softmax(X @ model.coef_.T + model.intercept_, axis=1))
    _, lower, upper = model.predict_proba(X, level=0.9)
    assert (upper - lower).max() > 0.2
    assert BayesianLogisticRegression(posterior="variational").fit(X, y).predictive_width_ == 1.0


def without_limits(monkeypatch):
    for name in ("_LEAST", "_EACH", "_LEVEL", "_RISE"):
        monkeypatch.setattr(variational, name, {"_LEAST": 1e-9}.get(name, 0.0))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_the_estimated_gap_of_the_bound_is_near_the_true_one(seed, alpha, monkeypatch):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 4))
    y = (X @ rng.normal(size=4) > 0).astype(int)
    model = BayesianLogisticRegression(alpha, posterior="variational").fit(X, y)
    certificate = model.fit_.certificate
    assert model.fit_.status is Status.CONVERGED and certificate.kind == "estimated"
    without_limits(monkeypatch)
    best = BayesianLogisticRegression(alpha, posterior="variational", max_iter=1000).fit(X, y)
    true = best.log_evidence_ - model.log_evidence_
    assert 0.3 * certificate.gap <= true <= 4.0 * certificate.gap


def test_the_status_of_the_bound_gives_the_reason_that_was_found(monkeypatch):
    """What ended the search is looked up, and only a small gradient is called one."""
    X, y = data("wine")
    stationary = BayesianLogisticRegression().fit(X, y)
    assert stationary.fit_.status is Status.STATIONARY and stationary.fit_.certificate.gap == np.inf
    ended, original = [], bayesian_fitting.nearest_gaussian

    def keeping(*arguments):
        ended.append(original(*arguments))
        return ended[-1]

    monkeypatch.setattr(bayesian_fitting, "nearest_gaussian", keeping)
    monkeypatch.setattr(variational, "_LEAST", 1e-12)
    monkeypatch.setattr(
        variational, "_EACH", 0.0
    )  # a gradient as small as that is not reached with some hundred points
    level = BayesianLogisticRegression(1.0).fit(X, y)
    assert level.fit_.status is Status.LEVEL
    assert ended[-1].state.gap > 1e-12 and level.fit_.certificate.gap == np.inf
    with pytest.warns(match="limit on iterations"):
        short = BayesianLogisticRegression(1.0, posterior="variational", max_iter=8).fit(X, y)
    assert short.fit_.status is Status.MAX_ITER and short.fit_.certificate.gap == np.inf


def test_separable_data_are_flagged_and_many_regular_rows_are_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    y = (X @ rng.normal(size=10) + rng.logistic(size=20_000) > 0).astype(int)
    regular = BayesianLogisticRegression().fit(X, y)
    assert regular.pareto_k_ < 0.7
    assert "near the posterior" in regular.fit_.detail
    assert regular.log_evidence_is_ == "Laplace's approximation"
    assert regular.fit_.status is Status.CONVERGED
    separable = BayesianLogisticRegression().fit(*data("wine"))
    assert separable.pareto_k_ > 0.7
    assert separable.log_evidence_is_ == "a lower bound"
    assert separable.fit_.certificate.gap == np.inf  # nothing bounds what a free precision has to gain


def test_the_shape_of_pareto_ratios_is_found():
    rng = np.random.default_rng(0)
    for k in (0.2, 0.5, 1.0, 1.5):
        found = [pareto_k(k * rng.exponential(size=4000)) for _ in range(20)]
        assert np.mean(found) == pytest.approx(k, abs=0.08)


def test_the_bound_is_the_greatest_of_any_gaussian_and_below_the_evidence():
    """One separable column without intercept: evidence and bound are integrals."""
    x, y = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]), np.array([0, 0, 0, 1, 1, 1])
    model = BayesianLogisticRegression(0.01, posterior="variational", fit_intercept=False).fit(x[:, None], y)
    w, step = np.linspace(-100.0, 200.0, 300_001, retstep=True)
    joint = norm.logpdf(w, 0, 10) - np.logaddexp(0.0, -np.abs(x)[:, None] * w).sum(axis=0)

    def negative(at):
        own = norm.logpdf(w, at[0], np.exp(at[1]))
        return -step * (np.exp(own) * (joint - own)).sum()

    best = minimize(negative, [5.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-9})
    assert model.log_evidence_ == pytest.approx(-best.fun, abs=0.01)
    assert model.log_evidence_ < np.log(step * np.exp(joint).sum())
    assert model.coef_[0, 0] == pytest.approx(best.x[0], abs=0.2 * np.exp(best.x[1]))


@pytest.mark.parametrize(
    ("mean", "variance"), [(-4700.0, 4.0), (-4700.0, 1e4), (-1e5, 30.0), (-900.0, 0.0), (-3e4, 1e6)]
)
def test_the_logarithm_of_a_binary_integral_is_exact_in_the_far_tail(mean, variance):
    with mp.workdps(60):
        m, v = mp.mpf(mean), mp.mpf(variance)
        if v == 0:
            exact = -mp.log1p(mp.exp(-m))
        else:  # the integrand is greatest between m + v and 0
            s, top = mp.sqrt(v), min(m + v, mp.mpf(0))
            lift = top - (top - m) ** 2 / (2 * v)
            points = sorted({top + s * j for j in range(-14, 15)} | {mp.mpf(j) for j in range(-60, 61, 5)})
            body = lambda a: mp.exp(-((a - m) ** 2) / (2 * v) - mp.log1p(mp.exp(-a)) - lift)  # noqa: E731
            exact = lift + mp.log(mp.quad(body, points) / (s * mp.sqrt(2 * mp.pi)))
    assert quadrature([mean], [variance], log=True)[0] == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("spread", [1.0, 30.0, 400.0])
def test_the_logarithms_of_three_classes_are_right_in_the_far_tail(spread):
    """Activations along one line: the integral has one dimension."""
    mean, line = np.array([0.0, -900.0, -1500.0]), spread * np.array([0.1, 1.0, -0.6])
    logs = softmax_quadrature([mean], np.outer(line, line)[None], log=True)[0]
    with mp.workdps(25):
        for k in range(3):

            def log_term(z, k=k):
                a = [mp.mpf(m) + mp.mpf(float(c)) * z for m, c in zip(mean, line, strict=True)]
                return a[k] - mp.log(mp.fsum(mp.exp(x) for x in a)) - z * z / 2

            grid = [mp.mpf(j) for j in range(-64, 65)]
            top = max(grid, key=log_term)
            lift = log_term(top)
            ends = [top + mp.mpf(j) / 4 for j in range(-40, 41, 4)]
            total = mp.quad(lambda z: mp.exp(log_term(z) - lift), ends)  # noqa: B023
            exact = lift + mp.log(total / mp.sqrt(2 * mp.pi))
            assert logs[k] == pytest.approx(float(exact), rel=1e-3, abs=0.02)


@pytest.mark.parametrize("predictive", ["probit", "quadrature", "samples"])
@pytest.mark.parametrize("K", [2, 3])
def test_distant_rows_do_not_tie(K, predictive):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = (X @ rng.normal(size=(K, 3)).T + rng.gumbel(size=(20_000, K))).argmax(axis=1)
    model = BayesianLogisticRegression(1.0, predictive=predictive, n_samples=100, random_state=0).fit(X, y)
    direction = model.coef_[-1] - (model.coef_[0] if K > 2 else 0.0)
    logs = model.predict_log_proba(np.outer([100.0, 200.0, 400.0], direction))
    assert np.isfinite(logs).all()
    assert (np.diff(logs.min(axis=1)) < 0).all()
    assert predictive == "probit" or logs.min() < -709.0  # the probit has wider tails of its own


@pytest.mark.parametrize(
    "parameters", [{}, {"prior_precision": 0.1}, {"posterior": "gibbs", "n_draws": 20, "n_warmup": 5}]
)
@pytest.mark.parametrize("name", ["iris", "cancer"])
def test_an_interrupt_in_any_pass_leaves_the_best_model_so_far(name, parameters, monkeypatch):
    X, y = data(name)
    X = X[:, :4]
    calls, at = 0, None
    original = Source.share

    def counting(self, *arguments):
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(Source, "share", counting)
    monkeypatch.setattr(
        MemorySource, "one_block", lambda self, any_order=False: None
    )  # rows at hand are not passed over
    make = BayesianLogisticRegression(random_state=0, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make.fit(X, y)
        total, kept = calls, 0
        for at in range(3, total + 1, max(1, total // 12)):
            calls = 0
            try:
                make.fit(X, y)
            except KeyboardInterrupt:
                assert at < 6  # reading: there is no model yet
                continue
            kept += 1
            assert make.fit_.status is Status.INTERRUPTED
            calls = -10_000
            assert np.isfinite(make.predict_proba(X)).all()
    assert kept > 3


@pytest.mark.parametrize("seed", range(30))
def test_a_few_draws_do_not_condemn_a_gaussian_that_many_call_near(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(60, 300)), int(rng.integers(2, 9))
    X = rng.standard_normal((n, d))
    y = (X @ rng.standard_normal(d) + rng.logistic(size=n) > 0).astype(int)
    probabilities = []
    for order in (np.arange(d), np.arange(d)[::-1]):  # other draws, the same posterior
        model = BayesianLogisticRegression(prior_precision=1.0, tol=1e-6).fit(X[:, order], y)
        if model.pareto_k_ > 0.7:  # condemned by many draws, which see that few of them count
            assert "512 draws" in model.fit_.detail
            return
        probabilities.append(model.predict_proba(X[:, order]))
    np.testing.assert_allclose(*probabilities, atol=1e-6)
