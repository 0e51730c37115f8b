"""Ridge regression read as a posterior, its evidence, and penalties on the intercept, against scikit-learn and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge
from sklearn.linear_model import Ridge as TheirRidge

from separatrix import Ridge, as_source, load_model, posterior_summary, save_model
from separatrix.bayes.linear import RidgeEvidence
from separatrix.solvers.least_squares.normal_equations import Spectrum
from separatrix.statistics.gram import Gram

RNG = np.random.default_rng(44)
N, D = 60, 5
X = RNG.normal(size=(N, D)) * [1.0, 2.0, 0.5, 1.0, 3.0] + [0.0, 5.0, 0.0, -2.0, 0.0]
Y = X @ [1.0, -0.5, 0.0, 0.3, 0.1] + 4.0 + RNG.normal(size=N)
Y2 = np.column_stack([Y, X @ [0.0, 0.1, 2.0, 0.0, 0.0] + 3.0 * RNG.normal(size=N)])
WIDE = RNG.normal(size=(N, 80))
Y_WIDE = WIDE @ (0.3 * RNG.normal(size=80)) + 3.0 * RNG.normal(size=N)
WEIGHTS = RNG.integers(1, 4, size=N).astype(float)
NO_HYPERPRIORS = dict.fromkeys(["alpha_1", "alpha_2", "lambda_1", "lambda_2"], 0.0)


def peer(X: Any, y: Any, weights: Any = None, intercept: bool = True) -> Any:
    model = BayesianRidge(max_iter=20000, tol=1e-13, compute_score=True, fit_intercept=intercept, **NO_HYPERPRIORS)
    return model.fit(X, y, weights)


TALL = [(intercept, weights, False) for intercept in (True, False) for weights in (None, WEIGHTS)]


@pytest.mark.parametrize(("intercept", "weights", "wide"), [*TALL, (False, None, True)])
def test_evidence_finds_what_bayesian_ridge_finds(intercept: bool, weights: Any, wide: bool) -> None:
    rows, y = (WIDE, Y_WIDE) if wide else (X, Y)
    theirs = peer(rows, y, weights, intercept)
    ours = Ridge(alpha="evidence", fit_intercept=intercept).fit(rows, y, weights)
    found = ours.posterior()
    np.testing.assert_allclose(ours.alpha_, theirs.lambda_ / theirs.alpha_, rtol=1e-5)
    np.testing.assert_allclose(found.noise_variance[0], 1.0 / theirs.alpha_, rtol=1e-5)
    np.testing.assert_allclose(found.prior_variance[0], 1.0 / theirs.lambda_, rtol=1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(found.log_evidence[0], theirs.scores_[-1], rtol=1e-9)
    d = rows.shape[1]
    np.testing.assert_allclose(found.covariance()[:d, :d], theirs.sigma_, rtol=1e-4, atol=1e-9)
    mean, std = ours.predict(rows[:7], return_std=True)
    expected, spread = theirs.predict(rows[:7], return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-5)
    total = N if weights is None else weights.sum()
    own = found.noise_variance[0] / total if intercept else 0.0  # theirs takes the intercept as known
    np.testing.assert_allclose(np.square(std), np.square(spread) + own, rtol=1e-5)


def test_targets_that_are_fitted_exactly_have_almost_no_penalty() -> None:
    """The evidence then grows without bound as the noise vanishes: the least penalty of the range, and interpolation."""
    model = Ridge("evidence").fit(WIDE, Y_WIDE)
    assert 0 < model.alpha_ < 1e-8
    np.testing.assert_allclose(model.predict(WIDE), Y_WIDE, rtol=1e-6)
    perfect = Ridge("evidence").fit(X, X @ np.arange(1.0, 6.0))
    np.testing.assert_allclose(perfect.coef_, np.arange(1.0, 6.0), rtol=1e-8)
    constant = Ridge("evidence").fit(X, np.ones(N))
    np.testing.assert_allclose(constant.predict(X), 1.0)


def test_posterior_is_that_of_the_joint_gaussian() -> None:
    """With a wide prior on the intercept in the place of the flat one, by conditioning a Gaussian."""
    alpha, noise = 2.0, 1.3
    posterior = Ridge(alpha).fit(X, Y).posterior(noise)
    design = np.column_stack([X, np.ones(N)])
    precision = design.T @ design / noise + np.diag([alpha / noise] * D + [0.0])
    np.testing.assert_allclose(posterior.covariance(), np.linalg.inv(precision), rtol=1e-8)
    np.testing.assert_allclose(posterior.mean[0], np.linalg.solve(precision, design.T @ Y / noise), rtol=1e-9)
    flat = Ridge(alpha, fit_intercept=False).fit(X, Y).posterior(noise)
    marginal = multivariate_normal(np.zeros(N), noise * np.eye(N) + noise / alpha * X @ X.T)
    np.testing.assert_allclose(flat.log_evidence[0], marginal.logpdf(Y), rtol=1e-10)
    np.testing.assert_allclose(flat.prior_variance, noise / alpha)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_no_other_penalty_has_more_evidence(seed: int, noisy: bool) -> None:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=N) if noisy else X @ rng.normal(size=D) + rng.normal(size=N)
    gram = Gram.of_source(as_source(X, y).valued())
    equations = gram.normal_equations()
    evidence = RidgeEvidence.of(equations, Spectrum(equations), 0)
    best = evidence.best()
    for factor in (0.5, 0.99, 1.01, 2.0):
        assert evidence.at(best * factor) <= evidence.at(best) + 1e-9
    noise = evidence.objective(best) / N
    assert evidence.at(best, noise * 1.1) < evidence.at(best) and evidence.at(best, noise * 0.9) < evidence.at(best)


def test_several_targets_parts_and_files_of_models(tmp_path: Any) -> None:
    both = Ridge(alpha="evidence").fit(X, Y2)
    posterior = both.posterior()
    std = both.predict(X, return_std=True)[1]
    for target in range(2):
        alone = Ridge(alpha="evidence").fit(X, Y2[:, target])
        np.testing.assert_allclose(both.alpha_[target], alone.alpha_, rtol=1e-8)
        np.testing.assert_allclose(posterior.covariance(target), alone.posterior().covariance(), rtol=1e-7)
        np.testing.assert_allclose(std[:, target], alone.predict(X, return_std=True)[1], rtol=1e-8)
    parts = Ridge(alpha="evidence")
    for part in (slice(0, 20), slice(20, N)):
        parts.partial_fit(X[part], Y2[part])
    np.testing.assert_allclose(parts.alpha_, both.alpha_, rtol=1e-8)
    np.testing.assert_allclose(Ridge(alpha="evidence").fit(sp.csr_array(X), Y2).alpha_, both.alpha_, rtol=1e-8)
    save_model(both, tmp_path / "ridge")
    np.testing.assert_allclose(load_model(tmp_path / "ridge").predict(X, return_std=True)[1], std)


def test_weights_are_repetitions() -> None:
    often = np.repeat(np.arange(N), WEIGHTS.astype(int))
    one, other = Ridge(alpha="evidence").fit(X, Y, WEIGHTS), Ridge(alpha="evidence").fit(X[often], Y[often])
    np.testing.assert_allclose(one.alpha_, other.alpha_, rtol=1e-8)
    np.testing.assert_allclose(one.posterior().covariance(), other.posterior().covariance(), rtol=1e-8)
    np.testing.assert_allclose(one.posterior().log_evidence, other.posterior().log_evidence, rtol=1e-10)


def test_estimates_under_losses_intervals_and_draws() -> None:
    ridge = Ridge(0.5).fit(X, Y)
    posterior = ridge.posterior()
    for loss in ("zero-one", "squared", "absolute"):
        np.testing.assert_allclose(posterior.estimate(loss)[0], [*ridge.coef_, ridge.intercept_])
    draws = posterior.draws(200_000, 0)[0]
    errors = np.sqrt(posterior.covariance().diagonal())
    np.testing.assert_allclose(posterior_summary(draws.T, "absolute"), posterior.mean[0], atol=4 * errors.max() / 400)
    np.testing.assert_allclose(np.cov(draws.T), posterior.covariance(), atol=0.02 * errors.max() ** 2)
    covered = (draws > posterior.interval(0.9)[0, :, 0]) & (draws < posterior.interval(0.9)[0, :, 1])
    np.testing.assert_allclose(covered.mean(axis=0), 0.9, atol=0.005)
    np.testing.assert_allclose(posterior_summary((posterior.mean[0], errors), "zero-one"), posterior.mean[0])
    with pytest.raises(ValueError, match="draws"):
        posterior_summary(draws.T, "zero-one")
    with pytest.raises(ValueError, match="loss"):
        posterior.estimate("hinge")


@pytest.mark.parametrize("solver", ["gram", "cg", "auto"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_a_penalised_intercept_is_a_column_of_ones(solver: str, weights: Any) -> None:
    ones = np.column_stack([X, np.ones(N)])
    expected = TheirRidge(3.0, fit_intercept=False).fit(ones, Y2, weights)
    model = Ridge(3.0, penalize_intercept=True, solver=solver, tol=1e-10).fit(X, Y2, weights)
    np.testing.assert_allclose(model.coef_, expected.coef_[:, :-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, expected.coef_[:, -1], rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), expected.predict(ones), rtol=1e-6)
    if solver == "gram":
        noise = 0.7
        posterior = model.posterior(noise)
        s = np.ones(N) if weights is None else weights
        inverse = np.linalg.inv(ones.T @ (ones * s[:, None]) + 3.0 * np.eye(D + 1))
        np.testing.assert_allclose(posterior.covariance(), noise * inverse, rtol=1e-8)
        np.testing.assert_allclose(posterior.mean, expected.coef_, rtol=1e-8)
        std = model.predict(X[:4], return_std=True)[1]
        noise = model.posterior().noise_variance
        spread = np.einsum("ij,jk,ik->i", ones[:4], inverse, ones[:4])
        np.testing.assert_allclose(std, np.sqrt((1.0 + spread)[:, None] * noise), rtol=1e-8)


def test_penalised_intercepts_from_parts_and_by_leave_one_out() -> None:
    whole = Ridge(2.0, penalize_intercept=True).fit(X, Y)
    parts = Ridge(2.0, penalize_intercept=True)
    for part in (slice(0, 30), slice(30, N)):
        parts.partial_fit(X[part], Y[part])
    np.testing.assert_allclose([*parts.coef_, parts.intercept_], [*whole.coef_, whole.intercept_], rtol=1e-9)
    ones, grid = np.column_stack([X, np.ones(N)]), [0.01, 0.1, 1.0, 10.0]
    held = Ridge("loo", alphas=grid, penalize_intercept=True).fit(X, Y)
    plain = Ridge("loo", alphas=grid, fit_intercept=False).fit(ones, Y)
    np.testing.assert_allclose(held.loo_errors_, plain.loo_errors_, rtol=1e-9)
    np.testing.assert_allclose(
        Ridge("evidence", penalize_intercept=True).fit(X, Y).alpha_,
        Ridge("evidence", fit_intercept=False).fit(ones, Y).alpha_,
        rtol=1e-8,
    )


def test_refusals() -> None:
    with pytest.raises(ValueError, match="no closed form"):
        Ridge("evidence", positive=True).fit(X, Y)
    with pytest.raises(ValueError, match="positive=True"):
        Ridge(positive=True).fit(X, Y).posterior()
    with pytest.raises(ValueError, match="solver='gram'"):
        Ridge(solver="cg").fit(X, Y).posterior()
    with pytest.raises(ValueError, match="noise_variance"):
        Ridge().fit(X, Y).posterior(-1.0)
    with pytest.raises(ValueError, match="improper"):
        Ridge(0.0).fit(np.column_stack([X, X[:, 0]]), Y).posterior()
