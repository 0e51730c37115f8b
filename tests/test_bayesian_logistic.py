"""Bayesian logistic regression: the posterior, its evidence, its updates, and what the estimator makes of them."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from separatrix import BayesianLogisticRegression, LogisticRegression, Status, config, scan_parquet
from separatrix.bayes.evidence import log_evidence, maximise_evidence
from separatrix.bayes.laplace import choose_covariance, laplace
from separatrix.data import as_source
from separatrix.data.affine import Intercept
from separatrix.data.labels import UnknownLabel
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.losses import Softmax
from separatrix.objectives.margin_losses import Logistic
from separatrix.objectives.penalties import Penalty
from separatrix.solvers.registry import minimise

STRUCTURES = ["full", "block", "diagonal", "low_rank"]


def standardised(load):
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


IRIS, CANCER = standardised(load_iris), standardised(load_breast_cancer)


def simulated(n, d, K, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(K, d)).T + rng.gumbel(size=(n, K))).argmax(axis=1)
    return X, y


def second_differences(function, at, step=1e-4):
    q = len(at)
    H, unit = np.empty((q, q)), step * np.eye(q)
    for i in range(q):
        for j in range(q):
            corners = [function(at + a * unit[i] + b * unit[j]) for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
            H[i, j] = (corners[0] - corners[1] - corners[2] + corners[3]) / (4 * step**2)
    return H


# -- the posterior ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_covariance_is_the_inverse_of_a_finite_difference_hessian(fit_intercept):
    X, y = simulated(80, 3, 2)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 80)
    model = BayesianLogisticRegression([0.5, 1.0, 2.0], fit_intercept=fit_intercept).fit(X, y, weights)

    def energy(theta):
        eta = X @ theta[:3] + (theta[3] if fit_intercept else 0.0)
        loss = np.logaddexp(0.0, eta) - y * eta
        return (weights * loss).sum() + 0.5 * ([0.5, 1.0, 2.0] * theta[:3] ** 2).sum()

    mode = np.append(model.coef_[0], model.intercept_) if fit_intercept else model.coef_[0]
    inverse = np.linalg.inv(second_differences(energy, mode))
    np.testing.assert_allclose(model.covariance_, inverse, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(model.coef_cov_, inverse[:3, :3], rtol=1e-5, atol=1e-7)
    found = minimize(energy, np.zeros(len(mode)), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(mode, found, atol=1e-6)


def test_the_covariance_of_three_classes_is_the_pseudo_inverse_of_a_finite_difference_hessian():
    X, y = simulated(90, 2, 3)
    model = BayesianLogisticRegression(0.7).fit(X, y)

    def energy(theta):
        W = theta.reshape(3, 3)
        eta = X @ W[:, :2].T + W[:, 2]
        return (logsumexp(eta, axis=1) - eta[np.arange(90), y]).sum() + 0.35 * np.square(W[:, :2]).sum()

    H = second_differences(energy, np.column_stack([model.coef_, model.intercept_]).ravel())
    np.testing.assert_allclose(model.covariance_, np.linalg.pinv(H, rcond=1e-6), rtol=1e-4, atol=1e-6)
    assert abs(model.intercept_.sum()) < 1e-12


@pytest.mark.parametrize(("X", "y"), [CANCER, IRIS], ids=["two classes", "three classes"])
def test_the_mode_is_that_of_the_logistic_engine(X, y):
    model = BayesianLogisticRegression(2.0).fit(X, y)
    reference = LogisticRegression(C=0.5, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-5)
    assert model.fit_.certificate.gap <= 0.5e-8
    assert model.fit_.status is Status.CONVERGED
    assert "full covariance" in model.fit_.detail


def test_with_many_rows_the_covariance_is_the_inverse_fisher_information():
    X, y = simulated(20_000, 3, 2)
    free = LogisticRegression(C=np.inf).fit(X, y).summary()
    model = BayesianLogisticRegression(1e-8).fit(X, y)
    np.testing.assert_allclose(model.covariance_, free.inference.covariance, rtol=1e-6)


def test_two_classes_of_a_softmax_are_the_binary_model():
    """With a baseline the same in all digits; without one the two vectors share what the binary one has."""
    X, y = simulated(150, 3, 2)
    source, (alpha, p) = as_source(X, y).labelled(), (0.8, 4)
    rows = Intercept(source)

    def posterior(loss, precision):
        prior = np.full((loss.n_scores, p), precision)
        prior[:, -1] = 0.0
        objective = LinearObjective(loss, replace(Penalty.none(prior.shape), quadratic=prior))
        problem = replace(LinearProblem.of(source, C=1.0, l1_ratio=0.0, fit_intercept=True), objective=objective)
        theta = minimise(problem, "newton", tol=1e-15, max_iter=100).theta
        found, value = laplace(objective, rows, theta, "full")
        return found, log_evidence(value, found, objective)

    binary, evidence = posterior(Logistic(), alpha)
    reference, same = posterior(Softmax(2, 0), alpha)
    np.testing.assert_allclose(reference.covariance(), binary.covariance(), rtol=1e-9)
    assert same == pytest.approx(evidence, abs=1e-9)
    symmetric, _ = posterior(Softmax(2), 2.0 * alpha)
    contrast = np.hstack([-np.eye(p), np.eye(p)])
    np.testing.assert_allclose(contrast @ symmetric.mean.ravel(), binary.mean[0], atol=1e-7)
    np.testing.assert_allclose(contrast @ symmetric.covariance() @ contrast.T, binary.covariance(), rtol=1e-6)


@pytest.mark.parametrize("K", [2, 3])
def test_the_shapes_of_the_covariance_bound_each_other(K):
    X, y = simulated(120, 6, K)
    source = as_source(X, y).labelled()
    problem = LinearProblem.of(source, C=1.0, l1_ratio=0.0, fit_intercept=True, prior=(0.0, 2.0))
    theta = minimise(problem, "newton", tol=1e-14, max_iter=100).theta
    found = {name: laplace(problem.objective, problem.source, theta, name)[0] for name in STRUCTURES}
    block = next(iter(problem.source.blocks()))

    def scores(posterior):
        return np.einsum("ikk->ik", posterior.spread(block))

    if K == 2:
        np.testing.assert_allclose(found["block"].covariance(), found["full"].covariance(), rtol=1e-10)
    np.testing.assert_allclose(found["low_rank"].covariance(), found["block"].covariance(), rtol=1e-7, atol=1e-9)
    assert (found["diagonal"].variances() <= found["block"].variances() * (1 + 1e-12)).all()
    before = np.inf
    for rank in (1, 3, 6):
        posterior, _ = laplace(problem.objective, problem.source, theta, "low_rank", rank)
        now = scores(posterior)
        assert (now >= scores(found["block"]) * (1 - 1e-9)).all()
        assert (now <= before * (1 + 1e-9)).all()
        before = now
    rng = np.random.default_rng(0)
    for posterior in found.values():
        np.testing.assert_allclose(posterior.covariance().diagonal(), posterior.variances().ravel(), rtol=1e-9)
        phi = block.dense()
        whole = np.einsum(
            "kalb,ia,ib->ikl",
            posterior.covariance().reshape(theta.shape + theta.shape),
            phi,
            phi,
        )
        np.testing.assert_allclose(posterior.spread(block), whole, rtol=1e-7, atol=1e-10)
        draws = posterior.draw(rng, 40_000).reshape(40_000, -1)
        np.testing.assert_allclose(np.cov(draws.T), posterior.covariance(), atol=0.05 * posterior.variances().max())
        np.testing.assert_allclose(draws.mean(axis=0), theta.ravel(), atol=0.05)


def test_which_covariance_is_a_table():
    assert choose_covariance(2000, 1) == "full"
    assert choose_covariance(2000, 3) == "block"
    assert choose_covariance(5001, 1) == "low_rank"
    assert choose_covariance(50_000, 10) == "diagonal"


@pytest.mark.parametrize("structure", STRUCTURES)
def test_weights_are_repetitions_and_storage_does_not_matter(structure, tmp_path):
    X, y = simulated(60, 4, 3)
    X[X < 0.3] = 0.0
    w = np.random.default_rng(0).integers(0, 3, 60)
    make = BayesianLogisticRegression(1.0, covariance=structure)
    weighted = clone(make).fit(X, y, w)
    others = {
        "repeated": clone(make).fit(np.repeat(X, w, axis=0), np.repeat(y, w)),
        "sparse": clone(make).fit(sp.csr_array(X), y, w),
        "frame": clone(make).fit(pd.DataFrame(X, columns=list("abcd")), y, w),
    }
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, w=w.astype(float))
    frame.to_parquet(tmp_path / "rows.parquet")
    others["file"] = clone(make).fit(scan_parquet(tmp_path / "rows.parquet", target="y", weight="w"))
    with config(threads=1):
        one = clone(make).fit(X, y, w)
    assert np.array_equal(one.covariance_, weighted.covariance_)
    for name, other in others.items():
        np.testing.assert_allclose(other.covariance_, weighted.covariance_, rtol=1e-6, atol=1e-9, err_msg=name)
        assert other.log_evidence_ == pytest.approx(weighted.log_evidence_, abs=1e-6, nan_ok=True), name
    assert np.isnan(weighted.log_evidence_) == (structure != "full")


def test_columns_far_from_the_origin_or_of_other_units_change_nothing():
    X, y = simulated(200, 3, 2)
    plain = BayesianLogisticRegression(1.0).fit(X, y)
    far = np.array([1e6, -1e5, 0.0])
    moved = BayesianLogisticRegression(1.0).fit(X + far, y)
    np.testing.assert_allclose(moved.coef_, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(moved.coef_cov_, plain.coef_cov_, rtol=1e-6)
    near = X[:50] + far
    for one, two in zip(plain.predict_proba(X[:50], level=0.9), moved.predict_proba(near, level=0.9), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)
    scale = np.array([1e-8, 1.0, 1e9])
    scaled = BayesianLogisticRegression(1.0 * scale**2).fit(X * scale, y)
    np.testing.assert_allclose(scaled.coef_ * scale, plain.coef_, rtol=1e-5)
    np.testing.assert_allclose(scaled.predict_proba(X * scale), plain.predict_proba(X), atol=1e-6)


# -- evidence -----------------------------------------------------------------------------------------------------------


def test_the_evidence_of_one_coefficient_is_close_to_the_integral():
    X, y = simulated(300, 1, 2, seed=3)
    model = BayesianLogisticRegression(0.5, fit_intercept=False).fit(X, y)
    mode, deviation = float(model.coef_[0, 0]), float(model.coef_cov_[0, 0] ** 0.5)

    def log_joint(w):
        eta = X[:, 0] * w
        return (y * eta - np.logaddexp(0.0, eta)).sum() - 0.25 * w**2 + 0.5 * np.log(0.5 / (2 * np.pi))

    peak = log_joint(mode)
    area, _ = quad(lambda w: np.exp(log_joint(w) - peak), mode - 12 * deviation, mode + 12 * deviation, epsabs=1e-13)
    assert model.log_evidence_ == pytest.approx(peak + np.log(area), abs=2.0 / 300)


@pytest.mark.parametrize(("X", "y"), [(CANCER[0][:, :6], CANCER[1]), IRIS], ids=["two classes", "three classes"])
def test_the_chosen_precision_has_the_most_evidence(X, y):
    make = BayesianLogisticRegression(posterior="laplace")
    model = clone(make).fit(X, y)
    at = model.prior_precision_ * np.exp(np.linspace(-1.0, 1.0, 9))
    values = [clone(make).set_params(prior_precision=alpha).fit(X, y).log_evidence_ for alpha in at]
    assert np.argmax(values) == 4
    assert values[4] == pytest.approx(model.log_evidence_, abs=1e-7)
    slope = (values[5] - values[3]) / 0.5
    curve = (values[5] + values[3] - 2 * values[4]) / 0.0625
    assert abs(slope / curve) < 0.05  # up to the third derivative


def test_groups_have_precisions_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    y = (X[:, :4] @ [2.0, -2.0, 1.5, 1.0] + rng.logistic(size=400) > 0).astype(int)
    groups = ["signal"] * 4 + ["noise"] * 4
    model = BayesianLogisticRegression(groups=groups).fit(X, y)
    noise, signal = model.prior_precision_  # sorted labels
    assert noise > 5 * signal
    assert model.log_evidence_ > BayesianLogisticRegression().fit(X, y).log_evidence_
    for k, factor in ((0, 1e-4), (1, 1.3), (1, 0.7)):
        other = model.prior_precision_.copy()
        other[k] *= factor
        per_column = other[[1] * 4 + [0] * 4]
        assert BayesianLogisticRegression(per_column).fit(X, y).log_evidence_ < model.log_evidence_


def test_without_any_signal_the_evidence_shrinks_the_coefficients_away():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(300, 4)), rng.permutation(np.repeat([0, 1], 150))
    model = BayesianLogisticRegression().fit(X, y)
    assert np.abs(model.coef_).max() < 0.1
    assert np.isfinite(model.log_evidence_)


def test_separable_classes_have_a_proper_posterior():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    for rows, labels in ((X, y), standardised(load_wine)):
        model = BayesianLogisticRegression().fit(rows, labels)
        assert np.isfinite(model.covariance_).all()
        assert model.score(rows, labels) > 0.85
    model = BayesianLogisticRegression().fit(*standardised(load_wine))
    assert "far from the posterior" in model.fit_.detail
    assert 0.01 < model.prior_precision_ < 2.0
    laplace = BayesianLogisticRegression(posterior="laplace").fit(*standardised(load_wine))
    assert "separable" in laplace.fit_.detail


@pytest.mark.parametrize("structure", ["block", "diagonal", "low_rank"])
def test_the_prior_does_not_depend_on_the_shape_of_the_covariance(structure):
    X, y = simulated(300, 40, 3)
    full = BayesianLogisticRegression().fit(X, y)
    other = BayesianLogisticRegression(covariance=structure, rank=5).fit(X, y)
    assert other.prior_precision_ == full.prior_precision_
    assert other.log_evidence_ == full.log_evidence_
    assert other.covariance_structure_ == structure


def test_one_score_in_blocks_is_full():
    X, y = simulated(100, 3, 2)
    assert BayesianLogisticRegression(1.0, covariance="block").fit(X, y).covariance_structure_ == "full"


def test_columns_of_very_different_size_hide_no_maximum():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(500, 3))
    y = (rng.random(500) < expit(Z.sum(axis=1))).astype(int)
    X = np.column_stack([Z, 1e4 * rng.normal(size=(500, 3))])
    model = BayesianLogisticRegression().fit(X, y)
    grid = [BayesianLogisticRegression(alpha).fit(X, y).log_evidence_ for alpha in np.logspace(-3, 12, 31)]
    assert model.log_evidence_ > max(grid) - 1e-6
    assert model.score(X, y) > 0.7
    # With a group for each size the precisions follow the units.
    plain = BayesianLogisticRegression(groups=["a"] * 3 + ["b"] * 3).fit(np.column_stack([Z, Z[::-1]]), y)
    units = np.array([1e-3] * 3 + [1e3] * 3)
    scaled = BayesianLogisticRegression(groups=["a"] * 3 + ["b"] * 3).fit(np.column_stack([Z, Z[::-1]]) * units, y)
    np.testing.assert_allclose(scaled.log_evidence_, plain.log_evidence_, atol=1e-3)
    np.testing.assert_allclose(scaled.coef_ * units, plain.coef_, atol=1e-3)


@pytest.mark.parametrize(("n", "d", "K"), [(600, 310, 2), (500, 64, 10)])
def test_many_coefficients_converge_in_few_passes_without_a_warning(n, d, K):
    X, y = simulated(n, d, K)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianLogisticRegression(posterior="laplace").fit(X, y)
        fixed = BayesianLogisticRegression(model.prior_precision_, posterior="laplace").fit(X, y)
    assert fixed.fit_.status is Status.CONVERGED
    assert fixed.fit_.passes < 200
    assert fixed.fit_.certificate.gap <= 0.5e-8
    for factor in (0.8, 1.25):
        near = BayesianLogisticRegression(factor * model.prior_precision_, posterior="laplace").fit(X, y)
        assert near.log_evidence_ < model.log_evidence_


def test_too_many_coefficients_for_the_evidence_are_cross_validated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2100))
    w = rng.normal(size=2100) * 0.1
    y = (rng.random(400) < expit(X @ w)).astype(int)
    model = BayesianLogisticRegression().fit(X, y)
    assert "cross-validation" in model.fit_.detail
    assert 10.0 < model.prior_precision_ < 10_000.0  # the truth is 100
    assert "needs a full covariance" in str(model.summary())
    with pytest.raises(ValueError, match="give prior_precision as a number"):
        BayesianLogisticRegression().fit(as_source(X, y))


# -- parts --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [2, 3])
def test_ten_parts_are_close_to_the_whole(K):
    X, y = simulated(2000, 4, K)
    whole = BayesianLogisticRegression(1.0).fit(X, y)
    parts = BayesianLogisticRegression(1.0).fit(X[:200], y[:200])
    for at in np.array_split(np.arange(200, 2000), 9):
        parts.update(X[at], y[at])
    deviation = np.sqrt(whole.coef_cov_.diagonal()).reshape(whole.coef_.shape)
    assert np.abs((parts.coef_ - whole.coef_) / deviation).max() < 1.0
    np.testing.assert_allclose(parts.coef_cov_.diagonal(), whole.coef_cov_.diagonal(), rtol=0.15)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=0.03)
    assert parts.log_evidence_ == pytest.approx(whole.log_evidence_, abs=3.0)
    assert abs(parts.intercept_.sum()) < 1e-9 or K == 2


def test_the_precision_of_an_update_adds_up_exactly():
    X, y = simulated(300, 3, 2)
    model = BayesianLogisticRegression(1.0).fit(X[:200], y[:200])
    before = np.linalg.inv(model.covariance_)
    model.update(X[200:], y[200:])
    eta = X[200:] @ model.coef_[0] + model.intercept_[0]
    phi, p = np.column_stack([X[200:], np.ones(100)]), expit(eta)
    np.testing.assert_allclose(
        np.linalg.inv(model.covariance_), before + phi.T @ (phi * (p * (1 - p))[:, None]), rtol=1e-7, atol=1e-8
    )


def test_an_update_needs_known_labels_and_a_posterior_that_can_be_a_prior():
    X, y = simulated(100, 3, 2)
    model = BayesianLogisticRegression(1.0).fit(X, y)
    coef = model.coef_.copy()
    with pytest.raises(ValueError, match="7"):
        model.update(X, np.full(100, 7))
    assert np.array_equal(model.coef_, coef)
    model.update(X, np.ones(100, dtype=int))  # one class alone is evidence too
    assert model.intercept_[0] > 0
    with pytest.raises(NotFittedError):
        BayesianLogisticRegression().update(X, y)
    with pytest.raises(ValueError, match="covariance='full' or 'diagonal'"):
        BayesianLogisticRegression(1.0, covariance="low_rank").fit(X, y).update(X, y)
    diagonal = BayesianLogisticRegression(1.0, covariance="diagonal").fit(X[:50], y[:50])
    diagonal.update(X[50:], y[50:])
    assert (diagonal.coef_cov_.diagonal() > 0).all()


# -- coverage -----------------------------------------------------------------------------------------------------------


def test_ninety_per_cent_intervals_cover_ninety_per_cent():
    """Coefficients drawn from the prior, rows from the model: the interval is right on average over both."""
    rng, hits = np.random.default_rng(0), []
    for _ in range(500):
        X, w = rng.normal(size=(150, 4)), rng.normal(size=4)
        y = (X @ w + rng.logistic(size=150) > 0).astype(int)
        lower, upper = BayesianLogisticRegression(1.0).fit(X, y).coef_interval(0.9)
        hits.append((lower[0] <= w) & (w <= upper[0]))
    assert abs(np.mean(hits) - 0.9) < 0.03


# -- predictions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("predictive", ["probit", "quadrature", "samples"])
@pytest.mark.parametrize(("X", "y"), [CANCER, IRIS], ids=["two classes", "three classes"])
def test_probabilities_agree_with_the_average_over_draws(X, y, predictive):
    model = BayesianLogisticRegression(1.0, predictive=predictive, n_samples=20_000, random_state=0).fit(X, y)
    coef, intercept = model.sample_coef(20_000, random_state=1, return_intercept=True)
    rows = X[::10]
    scores = np.einsum("sjd,nd->snj", coef, rows) + intercept[:, None]
    scores = scores if scores.shape[2] > 1 else np.concatenate([np.zeros_like(scores), scores], axis=2)
    drawn = np.exp(scores - logsumexp(scores, axis=2, keepdims=True))
    proba, lower, upper = model.predict_proba(rows, level=0.9)
    bound = {"probit": 0.03, "quadrature": 0.01, "samples": 0.015}[predictive]
    np.testing.assert_allclose(proba, drawn.mean(axis=0), atol=bound)
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    np.testing.assert_allclose(lower, low, atol=0.04)
    np.testing.assert_allclose(upper, high, atol=0.04)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert np.array_equal(model.predict(rows), model.classes_[proba.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(rows)), proba, rtol=1e-9)


def test_uncertainty_moderates_probabilities_and_leaves_the_boundary():
    X, y = simulated(40, 2, 2)
    model, plain = BayesianLogisticRegression(1.0).fit(X, y), LogisticRegression(C=1.0, tol=1e-10).fit(X, y)
    integrated, plugged = model.predict_proba(X)[:, 1], plain.predict_proba(X)[:, 1]
    assert (np.abs(integrated - 0.5) <= np.abs(plugged - 0.5) + 1e-7).all()
    assert np.array_equal(integrated > 0.5, plugged > 0.5)
    w = model.coef_[0]
    across = np.array([-w[1], w[0]])  # along the boundary, ever further from the data
    on = -w * model.intercept_[0] / (w @ w) + np.array([[0.0], [5.0], [500.0]]) * across
    np.testing.assert_allclose(model.predict_proba(on)[:, 1], 0.5, atol=1e-9)
    far = 1e9 * (w / np.linalg.norm(w) * 0.05 + across / np.linalg.norm(across))
    assert abs(model.predict_proba(far[None])[0, 1] - 0.5) < abs(plain.predict_proba(far[None])[0, 1] - 0.5)
    exact = BayesianLogisticRegression(1.0, predictive="quadrature").fit(X, y)
    np.testing.assert_allclose(exact.predict_proba(X), model.predict_proba(X), atol=0.02)
    np.testing.assert_allclose(model.signed_distance(X), plain.signed_distance(X), atol=1e-4)


# -- the estimator ------------------------------------------------------------------------------------------------------


def test_the_summary_shows_the_posterior():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = (X - X.mean()) / X.std()
    model = BayesianLogisticRegression().fit(X, y)
    table = model.summary(level=0.9)
    lower, upper = model.coef_interval(0.9)
    assert [row.name for row in table.rows] == [*X.columns, "(intercept)"]
    np.testing.assert_allclose([row.lower for row in table.rows[:-1]], lower[0])
    np.testing.assert_allclose([row.upper for row in table.rows[:-1]], upper[0])
    np.testing.assert_allclose(
        [row.standard_deviation for row in table.rows], np.sqrt(model.covariance_.diagonal()), rtol=1e-9
    )
    draws = model.sample_coef(50_000, random_state=0)[:, 0]
    np.testing.assert_allclose([row.positive for row in table.rows[:-1]], (draws > 0).mean(axis=0), atol=0.01)
    text, page = str(table), table._repr_html_()
    assert "Log-odds of 1 against 0" in text
    assert "P(&gt;0)" in page
    assert table.to_frame().loc["mean radius", "mean"] == model.coef_[0, 0]
    three = BayesianLogisticRegression().fit(*load_wine(return_X_y=True)).summary()
    assert three.scores == [0, 1, 2]
    assert three.to_frame().shape == (3 * 14, 8)


def test_a_pipeline_a_grid_and_a_copy():
    X, y = load_wine(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), BayesianLogisticRegression(1.0))
    grid = GridSearchCV(pipe, {"bayesianlogisticregression__prior_precision": [0.1, 1.0, 10.0]}, cv=3).fit(X, y)
    assert grid.best_score_ > 0.95
    assert clone(pipe).fit(X, y).predict_proba(X, level=0.9)[0].shape == (178, 3)


def test_a_prior_of_mean_and_covariance_is_the_one_of_the_logistic_engine():
    X, y = simulated(100, 3, 2)
    S = np.array([[1.0, 0.5, 0.0], [0.5, 2.0, 0.0], [0.0, 0.0, 0.1]])
    model = BayesianLogisticRegression(([1.0, 0.0, -1.0], S)).fit(X, y)
    plain = LogisticRegression(prior=([1.0, 0.0, -1.0], S), tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-5)
    offset = np.linspace(-1, 1, 100)
    np.testing.assert_allclose(
        BayesianLogisticRegression(1.0).fit(X, y, offset=offset).coef_,
        LogisticRegression(C=1.0, tol=1e-12).fit(X, y, offset=offset).coef_,
        atol=1e-5,
    )


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"prior_precision": -1.0}, "positive number"),
        ({"prior_precision": [1.0, 2.0]}, "each of the 3 columns"),
        ({"prior_precision": "best"}, "give 'evidence'"),
        ({"prior_precision": 1.0, "groups": [0, 0, 1]}, "groups are for"),
        ({"groups": [0, 1]}, "one label for each of the 3 columns"),
        ({"prior_precision": (0.0, np.eye(3)), "covariance": "low_rank"}, "covariance='full'"),
        ({"prior_precision": 1.0, "posterior": "gibbs", "covariance": "diagonal"}, "covariance='full'"),
    ],
    ids=["negative", "too few", "word", "groups and number", "groups short", "matrix low rank", "gibbs diagonal"],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(parameters, words):
    X, y = simulated(30, 3, 2)
    model = BayesianLogisticRegression(**parameters)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)
    assert not hasattr(model, "coef_")
    with pytest.raises(ValueError, match="level"):
        BayesianLogisticRegression(1.0).fit(X, y).predict_proba(X, level=1.5)


def test_nan_is_named_by_its_column():
    X, y = simulated(30, 3, 2)
    model = BayesianLogisticRegression(1.0).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    X[3, 1] = np.nan
    bad = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="'b'"):
        model.predict_proba(bad)
    with pytest.raises(ValueError, match="'b'"):
        BayesianLogisticRegression().fit(bad, y)


@pytest.mark.parametrize("predictive", ["probit", "quadrature", "samples"])
@pytest.mark.parametrize("K", [2, 3])
def test_one_enormous_row_leaves_the_others_alone(K, predictive):
    X, y = simulated(100, 3, K)
    model = BayesianLogisticRegression(1.0, predictive=predictive, n_samples=200, random_state=0).fit(X, y)
    far = X[:20].copy()
    far[3] = [1e160, 0.0, 0.0]
    far[4] = [1e300, -1e300, 1e299]
    proba, lower, upper = model.predict_proba(far, level=0.9)
    known = np.delete(np.arange(20), [3, 4])
    np.testing.assert_allclose(proba[known], model.predict_proba(X[:20])[known], rtol=1e-12)
    assert np.isfinite([proba, lower, upper]).all()
    near = far.copy()
    near[3:5] /= np.abs(far[3:5]).max(axis=1, keepdims=True) * 1e-6  # far out only the direction counts
    np.testing.assert_allclose(proba[3:5], model.predict_proba(near)[3:5], atol=1e-6)


def test_a_low_rank_keeps_its_digits_on_large_columns():
    X, y = simulated(500, 4, 2)
    for size in (1e3, 1e6, 1e8):
        full = BayesianLogisticRegression(1.0).fit(size * X, y)
        low = BayesianLogisticRegression(1.0, covariance="low_rank").fit(size * X, y)
        assert np.isfinite(low.coef_interval()).all()
        assert (low.coef_cov_.diagonal() >= 0.99 * full.coef_cov_.diagonal()).all()
        spread = np.subtract(*low.predict_proba(size * X, level=0.9)[:0:-1])
        assert (spread > 0.9 * np.subtract(*full.predict_proba(size * X, level=0.9)[:0:-1]) - 1e-12).all()


def test_what_is_given_is_checked_in_sentences():
    X, y = simulated(50, 3, 2)
    model = BayesianLogisticRegression(1.0).fit(X, y)
    for level in ("0.95", [0.9], None):
        with pytest.raises(ValueError, match="give a probability between 0 and 1"):
            model.coef_interval(level)
    for n in (-1, 1.5, 0):
        with pytest.raises(ValueError, match="how many draws"):
            model.sample_coef(n)
    for prior, words in (
        ((1.0, 2.0, 3.0), "a list one precision per column"),
        (["a", "b", "c"], "give numbers"),
        ((0.0, [1.0, 1.0, np.inf]), "give finite variances"),
    ):
        with pytest.raises(ValueError, match=words):
            BayesianLogisticRegression(prior).fit(X, y)
    given = np.array([1.0, 2.0, 3.0])
    kept = BayesianLogisticRegression(given).fit(X, y)
    given[0] = 9.0
    assert kept.prior_precision_[0] == 1.0
    with pytest.raises(ValueError, match="update learns about the classes that fit has seen"):
        model.update(X, np.full(50, 7))


def test_five_thousand_columns_keep_a_low_rank_in_bounded_memory():
    rng = np.random.default_rng(0)
    X = sp.random_array((2000, 5000), density=0.01, rng=rng, format="csr")
    y = (X @ rng.normal(size=5000) + 0.3 * rng.logistic(size=2000) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianLogisticRegression(1.0, rank=50).fit(X, y)
    assert model.covariance_structure_ == "low_rank"
    kept = sum(getattr(model._posterior, name).nbytes for name in ("directions", "prior_variance", "centre"))
    assert kept < 4e6  # a full covariance would take 200 MB
    proba, lower, upper = model.predict_proba(X[:10], level=0.95)
    assert ((lower <= proba) & (proba <= upper)).all()
    diagonal = BayesianLogisticRegression(1.0, covariance="diagonal").fit(X, y)
    assert diagonal.predict_proba(X[:10]).shape == (10, 2)


# -- draws --------------------------------------------------------------------------------------------------------------


def test_gibbs_is_reproducible_and_near_laplace_where_rows_are_many():
    X, y = simulated(1000, 3, 2)
    make = BayesianLogisticRegression(1.0, posterior="gibbs", n_draws=500, random_state=0)
    one, two = clone(make).fit(X, y), clone(make).fit(X, y)
    assert np.array_equal(one.draws_.theta, two.draws_.theta)
    assert one.fit_.status is Status.SAMPLED
    assert "R-hat" in one.fit_.detail
    near = BayesianLogisticRegression(1.0).fit(X, y)
    deviation = np.sqrt(near.coef_cov_.diagonal())
    assert np.abs((one.coef_ - near.coef_) / deviation).max() < 0.3
    np.testing.assert_allclose(one.coef_cov_.diagonal(), near.coef_cov_.diagonal(), rtol=0.25)
    np.testing.assert_allclose(one.predict_proba(X), near.predict_proba(X), atol=0.02)
    lower, upper = one.coef_interval(0.9)
    draws, _ = one._finish(one.draws_.theta.reshape(-1, 1, 4))
    np.testing.assert_allclose([lower[0], upper[0]], np.quantile(draws[:, 0], [0.05, 0.95], axis=0))
    sampled = clone(make).set_params(predictive="samples").fit(X, y)
    np.testing.assert_allclose(sampled.predict_proba(X), near.predict_proba(X), atol=0.02)
    assert "Equal-tailed" in str(one.summary())


def test_a_handful_of_draws_is_no_covariance():
    X, y = simulated(60, 3, 2)
    with pytest.warns(UserWarning, match="too short"):
        model = BayesianLogisticRegression(1.0, posterior="gibbs", n_chains=1, n_draws=4, n_warmup=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_short_chains_say_so():
    X, y = simulated(100, 3, 3)
    model = BayesianLogisticRegression(1.0, posterior="gibbs", n_draws=10, n_warmup=0, random_state=0)
    with pytest.warns(UserWarning, match="too short"):
        model.fit(X, y)
    assert model.fit_.status is Status.UNMIXED


def test_the_search_for_a_prior_counts_its_passes():
    X, y = simulated(500, 3, 2)
    source = as_source(X, y).labelled()
    problem = LinearProblem.of(source, C=1.0, l1_ratio=0.0, fit_intercept=True, prior=(0.0, 1.0))

    def mode(objective, before):
        start = problem.start() if before is None else before.theta
        return minimise(
            replace(problem, objective=objective), "newton", start, tol=1e-13, max_iter=100, previous=before
        )

    found = maximise_evidence(problem.objective, problem.source, np.zeros(3, dtype=int), mode, np.zeros(3))
    assert found.converged
    assert BayesianLogisticRegression().fit(X, y).fit_.passes >= 4


def test_a_label_that_is_no_class_is_carried_by_its_error():
    with pytest.raises(UnknownLabel, match="The label 'c' in y is not among the classes") as caught:
        as_source([[0.0], [1.0]], ["a", "c"]).labelled(np.array(["a", "b"]))
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.label == "c" and again.classes.tolist() == ["a", "b"] and str(again) == str(caught.value)
