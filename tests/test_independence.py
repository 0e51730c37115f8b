"""Steps proposed by Laplace's Gaussian: what they weigh, and that they leave the posterior as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_expit

from separatrix import BayesianLogisticRegression, Status, config
from separatrix.bayes.diagnostics import bulk_ess
from separatrix.bayes.gibbs import sample_gibbs
from separatrix.bayes.independence import Proposals
from separatrix.bayes.laplace import laplace
from separatrix.data import as_source
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers.registry import minimise


def problem_of(X, y, weights=None, offset=None, precision=1.0):
    source = as_source(X, y, weights).labelled()
    return LinearProblem.of(
        source, C=1.0, l1_ratio=0.0, fit_intercept=True, prior=(0.0, 1.0 / precision), offset=offset
    )


def proposals_of(problem, wider=1.0):
    theta = minimise(problem, "newton", tol=1e-14, max_iter=100).theta
    found, _ = laplace(problem.objective, problem.source, theta, "full")
    scaled = replace(found, mean=theta, factor=wider * found.factor, precision=found.precision / wider**2)
    return Proposals(problem.objective, problem.source, scaled)


def simulated(n, d, K=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(K, d)).T + rng.gumbel(size=(n, K))).argmax(axis=1)
    y[:K] = np.arange(K)
    return X, y


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("kind", ["plain", "weights", "offset", "sparse"])
def test_ratios_are_those_of_the_objective(K, kind):
    X, y = simulated(2500, 3, K)  # more rows than one product of factors, and no multiple of it
    X[X < 0.2] = 0.0
    weights = np.random.default_rng(1).integers(0, 3, 2500) if kind == "weights" else None
    shape = 2500 if K == 2 else (2500, K)
    offset = np.random.default_rng(2).normal(size=shape) if kind == "offset" else None
    problem = problem_of(sp.csr_array(X) if kind == "sparse" else X, y, weights, offset)
    proposals = proposals_of(problem)
    theta = proposals.gaussian.draw(np.random.default_rng(0), 5) * np.array([1.0, 1.0, 1.0, 1.0, 300.0])[:, None, None]
    values = [problem.objective.evaluate(own, problem.source, 1).value for own in theta]
    deviation = (theta - proposals.gaussian.mean).reshape(5, -1)
    expected = 0.5 * np.einsum("ni,ij,nj->n", deviation, proposals.gaussian.precision, deviation) - values
    np.testing.assert_allclose(proposals.log_ratios(theta), expected, rtol=1e-11)
    with config(threads=1):
        one = proposals.log_ratios(theta)
    assert np.array_equal(one, proposals.log_ratios(theta))


def moments_agree(values, mean, variance):
    """Within four standard errors, from the effective sizes of the draws (chains, draws)."""
    for draws, expected in ((values, mean), (np.square(values - mean), variance)):
        error = np.sqrt(draws.var() / bulk_ess(draws))
        assert abs(draws.mean() - expected) < 4 * error


def skewed():
    """Twelve rows, one coefficient and an intercept: far from Gaussian. Moments by the trapezoidal rule."""
    X, y = simulated(12, 1, seed=3)
    grid = np.linspace(-15.0, 15.0, 1201)
    w, b = np.meshgrid(grid, grid, indexing="ij")
    logs = log_expit((2 * y - 1)[:, None, None] * (X[:, 0, None, None] * w + b)).sum(axis=0) - 0.5 * np.square(w)
    density = np.exp(logs - logs.max())
    density /= density.sum()
    mean = float((w * density).sum())
    return X, y, mean, float((np.square(w - mean) * density).sum())


@pytest.mark.parametrize("wider", [1.3, 2.0])
def test_steps_alone_draw_from_the_posterior(wider):
    X, y, mean, variance = skewed()
    proposals = proposals_of(problem_of(X, y), wider)
    theta = np.tile(proposals.gaussian.mean, (8, 1, 1))
    states, accepted = proposals.steps(theta, 4000, np.random.default_rng(0))
    assert 0.2 < accepted / 32_000 < 0.95
    moments_agree(states[200:, :, 0, 0].T, mean, variance)


def test_steps_between_sweeps_draw_from_the_posterior():
    X, y, mean, variance = skewed()
    problem = problem_of(X, y)
    proposals = proposals_of(problem, 1.3)
    drawn = sample_gibbs(
        problem.objective,
        problem.source,
        proposals.gaussian.mean,
        2.0 * proposals.gaussian.factor,
        n_chains=8,
        n_warmup=100,
        n_draws=3000,
        seed=np.random.SeedSequence(0),
        proposals=proposals,
    )
    assert 0.3 < drawn.accepted < 0.95
    assert drawn.theta.shape == (8, 3000, 1, 2)
    moments_agree(drawn.theta[:, :, 0, 0], mean, variance)
    assert drawn.rhat.max() < 1.01


def test_a_gaussian_elsewhere_is_not_used():
    X, y = simulated(200, 2)
    problem = problem_of(X, y)
    near = proposals_of(problem)
    far = Proposals(near.objective, near.source, replace(near.gaussian, mean=near.gaussian.mean + 5.0))
    drawn = sample_gibbs(
        problem.objective,
        problem.source,
        near.gaussian.mean,
        near.gaussian.factor,
        n_chains=2,
        n_warmup=10,
        n_draws=50,
        seed=np.random.SeedSequence(0),
        proposals=far,
    )
    assert np.isnan(drawn.accepted)
    assert drawn.passes == 61  # a sweep each, and the trial


@pytest.mark.parametrize("K", [2, 4])
def test_many_rows_make_nearly_independent_draws(K):
    X, y = simulated(4000, 3, K)
    model = BayesianLogisticRegression(1.0, posterior="gibbs", n_draws=400, n_warmup=50, random_state=0).fit(X, y)
    assert model.fit_.status is Status.SAMPLED
    assert model.draws_.accepted > 0.8
    assert model.draws_.ess.min() > 0.5 * 1600
    assert "were accepted" in model.fit_.detail
    near = BayesianLogisticRegression(1.0).fit(X, y)
    deviation = np.sqrt(near.coef_cov_.diagonal()).reshape(near.coef_.shape)
    assert np.abs((model.coef_ - near.coef_) / deviation).max() < 0.3
    np.testing.assert_allclose(model.coef_cov_.diagonal(), near.coef_cov_.diagonal(), rtol=0.25)
