"""Regularised discriminants: the corners, the four forms, and leave-one-out that really leaves rows out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf, oas
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from separatrix import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    as_source,
)
from separatrix.geometry import Hyperplane, Quadric
from separatrix.statistics import loo_grid, loo_series

X_WINE, Y_WINE = load_wine(return_X_y=True)
X_IRIS, Y_IRIS = load_iris(return_X_y=True)


def same_posteriors(a, b, X, tol=1e-9):
    np.testing.assert_allclose(a.predict_log_proba(X), b.predict_log_proba(X), rtol=tol, atol=tol)


@pytest.mark.parametrize("covariance", ["mle", "unbiased"])
@pytest.mark.parametrize("mix", ["covariance", "scatter"])
def test_corners_are_lda_and_qda(mix, covariance):
    rda = RegularizedDiscriminantAnalysis(1.0, 1.0, mix=mix, covariance=covariance).fit(X_WINE, Y_WINE)
    same_posteriors(rda, QuadraticDiscriminantAnalysis(covariance=covariance).fit(X_WINE, Y_WINE), X_WINE)
    rda = RegularizedDiscriminantAnalysis(0.0, 1.0, mix=mix, covariance=covariance).fit(X_WINE, Y_WINE)
    same_posteriors(rda, LinearDiscriminantAnalysis(covariance=covariance).fit(X_WINE, Y_WINE), X_WINE, 1e-7)


def test_the_diagonal_corner_is_gaussian_naive_bayes():
    rda = RegularizedDiscriminantAnalysis(1.0, 0.0, target="diagonal").fit(X_WINE, Y_WINE)
    nb = GaussianNB(var_smoothing=0.0).fit(X_WINE, Y_WINE)
    np.testing.assert_allclose(rda.predict_log_proba(X_WINE), nb.predict_log_proba(X_WINE), rtol=1e-11, atol=1e-11)
    shared = RegularizedDiscriminantAnalysis(0.0, 0.0, target="diagonal").fit(X_WINE, Y_WINE)
    pooled = sum((k == Y_WINE).mean() * X_WINE[k == Y_WINE].var(axis=0) for k in range(3))
    scores = -0.5 * ((X_WINE[:, None] - shared.means_) ** 2 / pooled).sum(axis=2) + np.log(shared.priors_)
    expected = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
    np.testing.assert_allclose(shared.predict_log_proba(X_WINE), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("target", ["trace", "identity", "diagonal"])
@pytest.mark.parametrize("mix", ["covariance", "scatter"])
def test_covariances_are_the_formula(target, mix):
    alpha, gamma = 0.3, 0.6
    model = RegularizedDiscriminantAnalysis(alpha, gamma, target=target, mix=mix).fit(X_IRIS, Y_IRIS)
    scatters = [np.cov(X_IRIS[k == Y_IRIS].T, ddof=0) * 50 for k in range(3)]
    for k in range(3):
        if mix == "covariance":
            mixed = alpha * scatters[k] / 50 + (1 - alpha) * sum(scatters) / 150
        else:
            mixed = (alpha * scatters[k] + (1 - alpha) * sum(scatters)) / (alpha * 50 + (1 - alpha) * 150)
        simple = {"trace": np.trace(mixed) / 4 * np.eye(4), "identity": np.eye(4), "diagonal": np.diag(np.diag(mixed))}
        np.testing.assert_allclose(model.covariance_[k], gamma * mixed + (1 - gamma) * simple[target], rtol=1e-10)


def test_the_two_mixes_differ_between_the_corners():
    # With equal class sizes as well: 0.5·S_k/n_k + 0.5·S/n weighs the class three times as much as the scatters do.
    a = RegularizedDiscriminantAnalysis(0.5, 1.0).fit(X_IRIS, Y_IRIS)
    b = RegularizedDiscriminantAnalysis(0.5, 1.0, mix="scatter").fit(X_IRIS, Y_IRIS)
    assert np.abs(a.covariance_[0] - b.covariance_[0]).max() > 1e-3


@pytest.mark.parametrize(("name", "function"), [("ledoit_wolf", ledoit_wolf), ("oas", oas)])
def test_estimated_shrinkage_is_scikit_learns(name, function):
    model = RegularizedDiscriminantAnalysis(1.0, name).fit(X_WINE, Y_WINE)
    for k in range(3):
        covariance, intensity = function(X_WINE[k == Y_WINE])
        np.testing.assert_allclose(1.0 - model.gamma_[k], intensity, rtol=1e-9)
        np.testing.assert_allclose(model.covariance_[k], covariance, rtol=1e-8, atol=1e-10)


def left_out(X, y, alphas, gammas, weights=None, **parameters):
    """Log-loss and error of every pair, each row scored by a model fitted without it."""
    log_losses, errors = np.zeros((len(alphas), len(gammas))), np.zeros((len(alphas), len(gammas)))
    weights = np.ones(len(y)) if weights is None else weights
    for a, alpha in enumerate(alphas):
        for g, gamma in enumerate(gammas):
            for i in np.flatnonzero(weights):
                fewer = weights.copy()
                fewer[i] -= 1.0
                model = RegularizedDiscriminantAnalysis(alpha, gamma, tol=0.0, **parameters)
                model.fit(X, y, sample_weight=fewer)
                own = np.flatnonzero(model.classes_ == y[i])[0]
                log_losses[a, g] -= weights[i] * model.predict_log_proba(X[i : i + 1])[0, own]
                errors[a, g] += weights[i] * (model.predict(X[i : i + 1])[0] != y[i])
    return log_losses / weights.sum(), errors / weights.sum()


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"target": "identity"},
        {"target": "diagonal"},
        {"mix": "scatter"},
        {"covariance": "unbiased"},
        {"priors": [0.2, 0.3, 0.5]},
        {"target": "diagonal", "mix": "scatter", "covariance": "unbiased"},
    ],
    ids=str,
)
def test_leave_one_out_is_leaving_each_row_out(parameters):
    at = np.random.default_rng(0).choice(150, 40, replace=False)
    X, y, alphas, gammas = X_IRIS[at], Y_IRIS[at], [0.0, 0.4, 1.0], [0.0, 0.3, 1.0]
    model = RegularizedDiscriminantAnalysis("loo", "loo", alphas=alphas, gammas=gammas, **parameters).fit(X, y)
    log_losses, errors = left_out(X, y, alphas, gammas, **parameters)
    np.testing.assert_allclose(model.selection_["log_loss"], log_losses, rtol=1e-10)
    np.testing.assert_allclose(model.selection_["error"], errors, atol=1e-12)
    best = np.unravel_index(log_losses.argmin(), log_losses.shape)
    assert (model.alpha_, model.gamma_) == (alphas[best[0]], gammas[best[1]])
    assert model.fit_.passes == 2


def test_leave_one_out_takes_weights_as_repetitions():
    rng = np.random.default_rng(1)
    at = rng.choice(150, 30, replace=False)
    X, y, w = X_IRIS[at], Y_IRIS[at], rng.integers(0, 4, 30).astype(float)
    grid = {"alphas": [0.2, 0.9], "gammas": [0.5, 0.9]}
    weighted = RegularizedDiscriminantAnalysis("loo", "loo", **grid).fit(X, y, sample_weight=w)
    repeated = np.repeat(np.arange(30), w.astype(int))
    twice = RegularizedDiscriminantAnalysis("loo", "loo", **grid).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.selection_["log_loss"], twice.selection_["log_loss"], rtol=1e-11)
    log_losses, _ = left_out(X, y, weights=w, **grid)
    np.testing.assert_allclose(weighted.selection_["log_loss"], log_losses, rtol=1e-10)
    with pytest.raises(ValueError, match="whole numbers"):
        RegularizedDiscriminantAnalysis("loo", "loo").fit(X, y, sample_weight=w + 0.5)


@pytest.mark.parametrize("target", ["trace", "identity", "diagonal"])
def test_leave_one_out_with_more_columns_than_rows(target):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((24, 40)), np.repeat([0, 1, 2], 8)
    X[:, :3] += y[:, None]
    alphas, gammas = [0.0, 0.5, 1.0], [0.0, 0.3, 0.8]
    model = RegularizedDiscriminantAnalysis("loo", "loo", alphas=alphas, gammas=gammas, target=target).fit(X, y)
    log_losses, _ = left_out(X, y, alphas, gammas, target=target)
    np.testing.assert_allclose(model.selection_["log_loss"], log_losses, rtol=1e-8)


@pytest.mark.parametrize("target", ["trace", "identity"])
@pytest.mark.parametrize("mix", ["covariance", "scatter"])
def test_compiled_and_plain_series_and_direct_evaluation_agree(monkeypatch, target, mix):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((4000, 6)) * [1, 2, 3, 1, 1, 5], rng.integers(0, 3, 4000)
    X[:, 0] += y
    X[7] *= 4.0  # a row of large leverage
    grid = {"alphas": [0.0, 0.3, 1.0], "gammas": [0.0, 0.2, 0.99, 1.0], "target": target, "mix": mix}

    def losses():
        chosen = RegularizedDiscriminantAnalysis("loo", "loo", **grid).fit(X, y).selection_
        return np.stack([chosen["log_loss"], chosen["error"]])

    results = []
    for compiled in (True, False):
        monkeypatch.setattr(loo_grid, "compiled_pays", lambda seconds, compiled=compiled: compiled)
        results.append(losses())
    monkeypatch.setattr(loo_series, "_LONGEST_SERIES", 0)
    results.append(losses())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-13)
    np.testing.assert_allclose(results[0], results[2], rtol=1e-12)


def test_compiled_and_plain_series_agree_for_classes_of_any_size(monkeypatch):
    rng = np.random.default_rng(4)
    y = np.repeat(np.arange(5), [40, 64, 65, 129, 700])
    X, grid = rng.standard_normal((len(y), 30)) + y[:, None] / 9.0, {"alphas": [0.0, 0.7], "gammas": [0.3, 0.9, 1.0]}
    losses = []
    for compiled in (True, False):
        monkeypatch.setattr(loo_grid, "compiled_pays", lambda seconds, compiled=compiled: compiled)
        chosen = RegularizedDiscriminantAnalysis("loo", "loo", **grid).fit(X, y).selection_
        losses.append(np.stack([chosen["log_loss"], chosen["error"]]))
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-13)


def test_leave_one_out_in_compiled_loops_is_leaving_each_row_out(monkeypatch):
    monkeypatch.setattr(loo_grid, "compiled_pays", lambda seconds: True)
    test_leave_one_out_is_leaving_each_row_out({})
    test_leave_one_out_takes_weights_as_repetitions()
    test_leave_one_out_with_more_columns_than_rows("trace")
    test_grid_points_without_an_inverse_are_never_chosen()


def test_grid_points_without_an_inverse_are_never_chosen():
    X = np.column_stack([X_IRIS, X_IRIS[:, 0]])
    model = RegularizedDiscriminantAnalysis("loo", "loo", alphas=[0.5], gammas=[0.9, 1.0]).fit(X, Y_IRIS)
    assert np.isinf(model.selection_["log_loss"][0, 1])
    assert model.gamma_ == 0.9
    with pytest.raises(np.linalg.LinAlgError, match="gammas below 1"):
        RegularizedDiscriminantAnalysis("loo", "loo", alphas=[0.5], gammas=[1.0]).fit(X, Y_IRIS)


@pytest.mark.parametrize("target", ["trace", "diagonal"])
def test_cross_validation_is_fitting_every_fold(target):
    grid = {"alphas": [0.0, 0.5, 1.0], "gammas": [0.2, 0.9]}
    splitter = StratifiedKFold(4, shuffle=True, random_state=0)
    weights = np.random.default_rng(4).integers(1, 4, 150).astype(float)
    model = RegularizedDiscriminantAnalysis("cv", "cv", cv=splitter, target=target, **grid)
    model.fit(X_IRIS, Y_IRIS, sample_weight=weights)
    expected = np.zeros((3, 2))
    for train, test in splitter.split(X_IRIS, Y_IRIS):
        for a, alpha in enumerate(grid["alphas"]):
            for g, gamma in enumerate(grid["gammas"]):
                fold = RegularizedDiscriminantAnalysis(alpha, gamma, target=target)
                fold.fit(X_IRIS[train], Y_IRIS[train], sample_weight=weights[train])
                proba = fold.predict_proba(X_IRIS[test])
                expected[a, g] += log_loss(Y_IRIS[test], proba, sample_weight=weights[test], normalize=False)
    np.testing.assert_allclose(model.selection_["log_loss"], expected / weights.sum(), rtol=1e-9)


def test_one_of_the_two_can_be_chosen_alone_and_by_error():
    model = RegularizedDiscriminantAnalysis("loo", 0.7, scoring="error").fit(X_WINE, Y_WINE)
    assert model.selection_["error"].shape == (11, 1)
    assert model.gamma_ == 0.7
    assert model.alpha_ == model.selection_["alphas"][model.selection_["error"][:, 0].argmin()]


def test_selection_reads_any_source_in_any_number_of_blocks():
    whole = RegularizedDiscriminantAnalysis("loo", "loo").fit(X_IRIS, Y_IRIS)
    source = as_source(X_IRIS, Y_IRIS)
    source._rows_per_block = 17
    parts = RegularizedDiscriminantAnalysis("loo", "loo").fit(source)
    np.testing.assert_allclose(parts.selection_["log_loss"], whole.selection_["log_loss"], rtol=1e-11)


def test_a_class_of_one_row_cannot_be_left_out():
    y = Y_IRIS.copy().astype(object)
    y[0] = "alone"
    y[1:] = [str(label) for label in y[1:]]
    with pytest.raises(ValueError, match=r"'alone'.*at least\s+two"):
        RegularizedDiscriminantAnalysis("loo", "loo").fit(X_IRIS, y)
    assert "alone" in RegularizedDiscriminantAnalysis(0.5, 0.9).fit(X_IRIS, y).classes_


def test_the_rule_is_linear_at_alpha_zero_and_says_so_elsewhere():
    linear = RegularizedDiscriminantAnalysis(0.0, 0.8).fit(X_WINE, Y_WINE)
    W, b = linear.linear_form()
    scores = X_WINE @ W.T + b
    expected = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
    np.testing.assert_allclose(linear.predict_log_proba(X_WINE), expected, rtol=1e-7, atol=1e-7)
    assert isinstance(linear.boundary(0, 1), Hyperplane)
    curved = RegularizedDiscriminantAnalysis(0.5, 0.8).fit(X_WINE, Y_WINE)
    assert isinstance(curved.boundary(0, 1), Quadric)
    with pytest.raises(ValueError, match="quadratic"):
        curved.linear_form()


def test_parameters_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="same method"):
        RegularizedDiscriminantAnalysis("loo", "cv").fit(X_WINE, Y_WINE)
    with pytest.raises(ValueError, match="target='trace'"):
        RegularizedDiscriminantAnalysis(0.5, "oas", target="diagonal").fit(X_WINE, Y_WINE)
    with pytest.raises(ValueError, match="set alpha to a number"):
        RegularizedDiscriminantAnalysis("loo", "oas").fit(X_WINE, Y_WINE)
    with pytest.raises(ValueError, match="gammas"):
        RegularizedDiscriminantAnalysis("loo", "loo", gammas=[0.5, 2.0]).fit(X_WINE, Y_WINE)
    with pytest.raises(ValueError, match="twice"):
        folds = [(np.arange(50, 178), np.arange(50)), (np.arange(100), np.arange(20, 178))]
        RegularizedDiscriminantAnalysis("cv", "cv", cv=folds).fit(X_WINE, Y_WINE)


def test_covariances_far_from_singular_are_not_factored_to_find_that_out(monkeypatch):
    rng, factored = np.random.default_rng(6), []
    metric = loo_series.DenseMetric
    monkeypatch.setattr(loo_series, "DenseMetric", lambda matrix: factored.append(1) or metric(matrix))
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 4)) + y[:, None]
    for scale, times in ((1.0, 0), (1e5, 2 * 3)):  # units far apart: the eigenvalues alone do not say
        factored.clear()
        X[:, 0] *= scale
        chosen = RegularizedDiscriminantAnalysis("loo", "loo", alphas=[0.5], gammas=[0.9, 1.0]).fit(X, y).selection_
        assert np.isfinite(chosen["log_loss"]).all()
        assert len(factored) == times
