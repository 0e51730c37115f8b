"""Whether a Bayesian logistic regression can be trusted: far tails, separable classes, the check of the Gaussian, Ctrl-C."""

from __future__ import annotations

import warnings
from pathlib import Path

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from separatrix import BayesianLogisticRegression, LogisticRegressionCV, Status
from separatrix.bayes.importance import pareto_k
from separatrix.bayes.predictive import log_quadrature
from separatrix.bayes.predictive_softmax import log_softmax_quadrature
from separatrix.data.source import Source

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
    assert separable.fit_.certificate.kind == "estimated"


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
    assert log_quadrature([mean], [variance])[0] == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("spread", [1.0, 30.0, 400.0])
def test_the_logarithms_of_three_classes_are_right_in_the_far_tail(spread):
    """Activations along one line: the integral has one dimension."""
    mean, line = np.array([0.0, -900.0, -1500.0]), spread * np.array([0.1, 1.0, -0.6])
    logs = log_softmax_quadrature([mean], np.outer(line, line)[None])[0]
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
    original = Source.map

    def counting(self, *arguments):
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(Source, "map", counting)
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
