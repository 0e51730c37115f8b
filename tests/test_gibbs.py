"""The Gibbs sampler against quadrature, against exact identities, and against another sampler's stored posteriors.

Every comparison of a mean is held to four Monte Carlo standard errors, from the effective sample size of the draws compared.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_expit, logsumexp
from scipy.stats import ks_2samp
from sklearn.datasets import load_breast_cancer, load_wine

import separatrix
from separatrix import as_source
from separatrix.bayes.diagnostics import bulk_ess, rhat
from separatrix.bayes.gibbs import Draws, GibbsSampler, draw_polya_gamma, sample_gibbs
from separatrix.data.affine import Intercept
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.losses import Loss, Softmax
from separatrix.objectives.margin_losses import Hinge, Logistic
from separatrix.objectives.penalties import Penalty

REFERENCE = json.loads((Path(__file__).parent / "references" / "nuts.json").read_text())


def prior(precision: Any, mean: Any = 0.0) -> Penalty:
    """From the diagonal (m, p) of a precision."""
    given = np.asarray(precision, dtype=float)
    none = Penalty.none((given.shape[0], given.shape[1]))
    return Penalty(given, none.absolute, np.broadcast_to(mean, given.shape) + 0.0, none.low, none.high)


def full_prior(matrix: Any, shape: tuple[int, int], mean: Any = 0.0) -> Penalty:
    none = Penalty.none(shape)
    centre = np.broadcast_to(np.asarray(mean, dtype=float), shape) + 0.0
    return Penalty(none.quadratic, none.absolute, centre, none.low, none.high, np.asarray(matrix, dtype=float))


def sample(
    X: Any,
    y: Any,
    penalty: Penalty,
    *,
    loss: Loss | None = None,
    weights: Any = None,
    offset: Any = None,
    intercept: bool = False,
    chains: int = 6,
    warmup: int = 30,
    draws: int = 300,
    seed: int = 0,
    spread: float = 1.0,
    callback: Any = None,
) -> Draws:
    source = as_source(X, np.asarray(y), weights).labelled()
    m, p = penalty.mean.shape
    return sample_gibbs(
        LinearObjective(loss or Logistic(), penalty, offset),
        Intercept(source) if intercept else source,
        np.zeros((m, p)),
        spread * np.eye(m * p),
        n_chains=chains,
        n_warmup=warmup,
        n_draws=draws,
        seed=np.random.SeedSequence(seed),
        callback=callback,
    )


def deviations(values: Any, expected: Any, error: Any = 0.0) -> Any:
    """Of the means of values (chains, draws, ...) from expected ones, in standard errors."""
    spread = np.sqrt(values.var(axis=(0, 1)) / bulk_ess(values) + np.square(error))
    return np.abs(values.mean(axis=(0, 1)) - expected) / spread


def assert_moments(values: Any, mean: Any, variance: Any) -> None:
    assert np.max(deviations(values, mean)) < 4
    assert np.max(deviations(np.square(values - mean), variance)) < 4


def rows(n: int, d: int, n_classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(n, n_classes))
    y = scores.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


# -- Pólya–Gamma variables ------------------------------------------------------------------------------------------------

SHAPES = [0.05, 0.6, 1.0, 1.5, 3.7, 40.0]
TILTS = [0.0, 0.055, 0.065, 1.0, 5.0, 11.9, 12.1, 30.0, 150.0, 1e6]


@pytest.mark.parametrize("shape", SHAPES)  # at 1 as well: the tilts beyond 100 are not for the exact sampler
def test_polya_gamma_mean_and_variance(shape: float) -> None:
    # E = s/(2z) tanh(z/2),  Var = s (sinh z − z)/(4z³ cosh²(z/2))
    n, rng = 40_000, np.random.default_rng(1)
    z = np.array(TILTS)
    t = np.where(z > 0, z, 1e-3) / 2
    drawn = draw_polya_gamma(np.full(n, shape), np.repeat(z[:, None], n, axis=1), rng)
    mean = shape * np.tanh(t) / (4 * t)
    sech = 1 / np.cosh(np.minimum(t, 300))
    variance = shape * np.where(z > 0, (np.tanh(t) - t * sech**2) / (16 * t**3), 1 / 24)
    assert (np.abs(drawn.mean(axis=1) - mean) < 4 * np.sqrt(variance / n)).all()
    squares = np.square(drawn - mean[:, None])
    assert (np.abs(squares.mean(axis=1) - variance) < 4 * squares.std(axis=1) / np.sqrt(n)).all()


@pytest.mark.parametrize("shape", [None, *SHAPES])
@pytest.mark.parametrize("tilt", [0.0, 2.0, 8.0, 14.0])
def test_polya_gamma_laplace_transform(shape: float | None, tilt: float) -> None:
    # E exp(−uω) = (cosh(z/2) / cosh √(z²/4 + u/2))^s for every u: the whole distribution
    n, s = 20_000, 1.0 if shape is None else shape
    drawn = draw_polya_gamma(None if shape is None else np.full(n, s), np.full((1, n), tilt), np.random.default_rng(2))
    for u in np.array([0.3, 1.0, 3.0]) * 4 / s * max(1.0, tilt / 4):
        values = np.exp(-u * drawn[0])
        log_cosh = [np.logaddexp(a, -a) for a in (tilt / 2, np.sqrt(tilt**2 / 4 + u / 2))]
        expected = np.exp(s * (log_cosh[0] - log_cosh[1]))
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(n)


@pytest.mark.parametrize("tilt", [0.0, 3.0, 11.0, 20.0])
def test_polya_gamma_near_one_is_the_exact_one(tilt: float) -> None:
    reference = pytest.importorskip("polyagamma", reason="a reference that has no wheel for every Python")
    z = np.full((1, 20_000), tilt)
    ours = draw_polya_gamma(np.full(20_000, np.nextafter(1.0, 2.0)), z, np.random.default_rng(3))[0]
    exact = reference.random_polyagamma(1.0, z[0], random_state=np.random.default_rng(4))
    assert ks_2samp(ours, exact).pvalue > 1e-3
    assert ks_2samp(draw_polya_gamma(None, z, np.random.default_rng(5))[0], exact).pvalue > 1e-3


@pytest.mark.parametrize("shape", [None, np.ones(3)])
def test_polya_gamma_of_extreme_tilts(shape: Any) -> None:
    drawn = draw_polya_gamma(shape, np.array([[1e300, -1e300, 0.0]]), np.random.default_rng(0))
    assert np.isfinite(drawn).all() and (drawn >= 0).all() and (drawn[0, :2] < 1e-40).all() and drawn[0, 2] > 0.01
    # a sampler that only ends for finite tilts must never see others
    assert np.isnan(draw_polya_gamma(shape, np.array([[np.nan, 1.0, np.inf]]), np.random.default_rng(0))).all()


# -- exact posteriors -----------------------------------------------------------------------------------------------------


def quadrature(log_density: Any, ends: tuple[float, float], dimensions: int, points: int) -> tuple[Any, Any]:
    """Means and variances of a density on a grid; the trapezoidal rule is exact to rounding for such smooth tails."""
    grid = np.linspace(*ends, points)
    theta = np.stack(np.meshgrid(*[grid] * dimensions, indexing="ij")).reshape(dimensions, -1)
    values = log_density(theta)
    p = np.exp(values - values.max())
    p /= p.sum()
    mean = theta @ p
    return mean, np.square(theta - mean[:, None]) @ p


def test_one_dimension_against_quadrature() -> None:
    X, y = rows(25, 1)
    rng = np.random.default_rng(5)
    weights, offset = rng.uniform(0.2, 3.0, 25), rng.normal(size=25)
    drawn = sample(X, y, prior([[0.8]], 0.7), weights=weights, offset=offset)
    signs = 2 * y - 1

    def log_density(theta: Any) -> Any:
        margins = signs[:, None] * (X[:, :1] * theta + offset[:, None])
        return weights @ log_expit(margins) - 0.4 * np.square(theta[0] - 0.7)

    mean, variance = quadrature(log_density, (-10, 10), 1, 4001)
    assert_moments(drawn.theta[:, :, 0], mean, variance)


def test_flat_intercept_against_quadrature() -> None:
    X, y = rows(30, 1, seed=1)
    drawn = sample(X, y, prior([[1.5, 0.0]]), intercept=True)
    signs = 2 * y - 1

    def log_density(theta: Any) -> Any:
        return log_expit(signs[:, None] * (X * theta[0] + theta[1])).sum(axis=0) - 0.75 * np.square(theta[0])

    mean, variance = quadrature(log_density, (-9, 9), 2, 201)
    assert_moments(drawn.theta[:, :, 0], mean, variance)


@pytest.mark.parametrize(("baseline", "full"), [(None, False), (None, True), (0, True), (2, False)])
def test_softmax_against_quadrature(baseline: int | None, full: bool) -> None:
    """Three classes with a baseline, or two without: two coefficients; a full prior couples them."""
    n_classes = 2 if baseline is None else 3
    X, y = rows(20, 1, n_classes, seed=2)
    rng = np.random.default_rng(6)
    weights, offset = rng.uniform(0.3, 2.0, 20), 0.5 * rng.normal(size=(20, 2))
    Q = np.array([[1.2, 0.7], [0.7, 0.9]]) if full else np.diag([1.2, 0.9])
    m0 = np.array([[0.4], [-0.8]])
    penalty = full_prior(Q, (2, 1), m0) if full else prior([[1.2], [0.9]], m0)
    drawn = sample(X, y, penalty, loss=Softmax(n_classes, baseline), weights=weights, offset=offset)

    def log_density(theta: Any) -> Any:
        eta = X[:, :1, None] * theta + offset[:, :, None]
        if baseline is not None:
            eta = np.insert(eta, baseline, 0.0, axis=1)
        likelihood = weights @ (eta[np.arange(20), y] - logsumexp(eta, axis=1))
        return likelihood - 0.5 * np.einsum("ik,ij,jk->k", theta - m0, Q, theta - m0)

    mean, variance = quadrature(log_density, (-9, 9), 2, 161)
    assert_moments(drawn.theta[:, :, :, 0], mean, variance)


def test_prior_that_is_flat_along_the_shift() -> None:
    """½(θ₁ − θ₀)² alone: only the difference has a posterior, that of two classes with the same prior."""
    X, y = rows(20, 1, seed=3)
    drawn = sample(X, y, full_prior([[1.0, -1.0], [-1.0, 1.0]], (2, 1)), loss=Softmax(2)).theta[..., 0]
    np.testing.assert_allclose(drawn.sum(axis=2), 0.0, atol=1e-12)
    signs = 2 * y - 1
    mean, variance = quadrature(
        lambda theta: log_expit(signs[:, None] * X * theta).sum(axis=0) - 0.5 * np.square(theta[0]), (-9, 9), 1, 3001
    )
    assert_moments(drawn[:, :, 1:] - drawn[:, :, :1], mean, variance)


def test_rows_that_say_nothing_leave_the_prior() -> None:
    X, y = rows(12, 2, 3)
    root = np.random.default_rng(7).normal(size=(6, 6))
    covariance = root @ root.T + np.eye(6)
    m0 = np.arange(6.0).reshape(3, 2)
    penalty = full_prior(np.linalg.inv(covariance), (3, 2), m0)
    drawn = sample(X, y, penalty, loss=Softmax(3), weights=np.full(12, 1e-9))
    assert_moments(drawn.theta, m0, covariance.diagonal().reshape(3, 2))
    flat = (drawn.theta - m0).reshape(6, 300, 6)
    for i in range(1, 6):
        assert np.max(deviations(flat[:, :, i:] * flat[:, :, :-i], covariance.diagonal(i))) < 4


def test_mean_of_the_classes_keeps_its_prior() -> None:
    """Under equal priors N(0, 1/λ) the sum over K classes is N(0, K/λ) whatever the data; flat intercepts sum to zero."""
    X, y = rows(40, 2, 4)
    penalty = prior(np.tile([2.0, 2.0, 0.0], (4, 1)))
    drawn = sample(X, y, penalty, loss=Softmax(4), intercept=True).theta.sum(axis=2)
    assert_moments(drawn[..., :2], 0.0, 2.0)
    np.testing.assert_allclose(drawn[..., 2], 0.0, atol=1e-12)


def test_symmetric_softmax_of_two_classes_is_the_binary_model() -> None:
    X, y = rows(40, 2, seed=4)
    one = sample(X, y, prior([[1.0, 1.0, 0.0]]), intercept=True).theta[:, :, 0]
    two = sample(X, y, prior(np.tile([2.0, 2.0, 0.0], (2, 1))), loss=Softmax(2), intercept=True).theta
    difference = two[:, :, 1] - two[:, :, 0]
    error = one.std(axis=(0, 1)) / np.sqrt(bulk_ess(one))
    assert np.max(deviations(difference, one.mean(axis=(0, 1)), error)) < 4


def test_softmax_of_two_classes_with_baseline_is_the_binary_model_to_the_bit() -> None:
    X, y = rows(40, 2, seed=4)
    one = sample(X, y, prior([[1.0, 2.0]]), draws=20)
    two = sample(X, y, prior([[1.0, 2.0]]), loss=Softmax(2, 0), draws=20)
    np.testing.assert_array_equal(one.theta, two.theta)
    other = sample(X, 1 - y, prior([[1.0, 2.0]]), loss=Softmax(2, 1), draws=20)
    np.testing.assert_array_equal(one.theta, other.theta)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_repeated_rows(n_classes: int) -> None:
    X, y = rows(30, 2, n_classes, seed=5)
    times = np.random.default_rng(8).integers(0, 4, 30)
    times[:n_classes] = 2
    loss = Logistic() if n_classes == 2 else Softmax(3)
    penalty = prior(np.ones((loss.n_scores, 2)))
    weighted = sample(X, y, penalty, loss=loss, weights=times.astype(float)).theta
    repeated = sample(np.repeat(X, times, axis=0), np.repeat(y, times), penalty, loss=loss, seed=1).theta
    error = repeated.std(axis=(0, 1)) / np.sqrt(bulk_ess(repeated))
    assert np.max(deviations(weighted, repeated.mean(axis=(0, 1)), error)) < 4
    squares = np.square(repeated - repeated.mean(axis=(0, 1)))
    error = squares.std(axis=(0, 1)) / np.sqrt(bulk_ess(squares))
    assert np.max(deviations(np.square(weighted - repeated.mean(axis=(0, 1))), squares.mean(axis=(0, 1)), error)) < 4


def test_order_of_columns_and_of_classes() -> None:
    X, y = rows(40, 3, 3, seed=6)
    precision = np.array([[1.0, 2.0, 4.0, 0.0]] * 3)
    first = sample(X, y, prior(precision), loss=Softmax(3), intercept=True).theta
    turned = sample(X[:, [2, 0, 1]], 2 - y, prior(precision[:, [2, 0, 1, 3]]), loss=Softmax(3), intercept=True, seed=1)
    back = turned.theta[:, :, ::-1][..., [1, 2, 0, 3]]
    error = first.std(axis=(0, 1)) / np.sqrt(bulk_ess(first))
    assert np.max(deviations(back, first.mean(axis=(0, 1)), error)) < 4


# -- another sampler ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "load", "columns", "loss", "draws"),
    [
        ("breast cancer", load_breast_cancer, 10, Logistic(), 800),
        ("wine", load_wine, 6, Softmax(3), 500),
        ("wine with a baseline", load_wine, 6, Softmax(3, 0), 1000),
    ],
)
def test_the_no_u_turn_sampler_agrees(name: str, load: Any, columns: int, loss: Loss, draws: int) -> None:
    X, y = load(return_X_y=True)
    X = X[:, :columns]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    stored = {key: np.array(value) for key, value in REFERENCE[name].items()}
    assert (stored["mean_error"] < 0.01 * stored["sd"]).all() and (stored["sd_error"] < 0.01 * stored["sd"]).all()
    precision = np.ones((loss.n_scores, columns + 1))
    precision[:, columns] = 0.0
    drawn = sample(X, y, prior(precision), loss=loss, intercept=True, chains=8, warmup=60, draws=draws)
    assert (drawn.rhat < 1.05).all() and (drawn.ess > 100).all()
    assert np.max(deviations(drawn.theta, stored["mean"], stored["mean_error"])) < 4
    squares = np.square(drawn.theta - stored["mean"])
    variance, error = np.square(stored["sd"]), 2 * stored["sd"] * stored["sd_error"]
    assert np.max(deviations(squares, variance, error)) < 4


# -- how it runs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_bits_on_any_number_of_threads(n_classes: int) -> None:
    X, y = rows(9000, 3, n_classes)
    loss = Logistic() if n_classes == 2 else Softmax(3)
    penalty = prior(np.ones((loss.n_scores, 4)))
    found = []
    for threads in (1, 2):
        with separatrix.config(threads=threads):
            found.append(sample(X, y, penalty, loss=loss, intercept=True, chains=2, warmup=1, draws=4).theta)
    np.testing.assert_array_equal(found[0], found[1])


def test_a_longer_run_continues_a_shorter_one_and_seeds_differ() -> None:
    X, y = rows(30, 2)
    short, long = (sample(X, y, prior([[1.0, 1.0]]), warmup=3, draws=n).theta for n in (4, 9))
    np.testing.assert_array_equal(short, long[:, :4])
    assert not np.isclose(short, sample(X, y, prior([[1.0, 1.0]]), warmup=3, draws=4, seed=1).theta).any()
    for i in range(6):  # no two chains share their numbers
        assert not np.isclose(short[i], np.delete(short, i, axis=0)).any()


def test_sparse_rows_and_rows_of_weight_zero() -> None:
    X, y = rows(50, 3)
    X[X < 0] = 0.0
    weights = np.r_[np.zeros(5), np.ones(45)]
    dense = sample(X, y, prior(np.ones((1, 3))), weights=weights, warmup=0, draws=5).theta
    sparse = sample(sp.csr_array(X), y, prior(np.ones((1, 3))), weights=weights, warmup=0, draws=5).theta
    np.testing.assert_allclose(sparse, dense, rtol=1e-9)
    X[:5] = np.nan
    np.testing.assert_array_equal(sample(X, y, prior(np.ones((1, 3))), weights=weights, warmup=0, draws=5).theta, dense)


def test_one_pass_a_score_and_iteration() -> None:
    X, y = rows(30, 2, 3)
    seen: list[tuple[int, int]] = []
    drawn = sample(
        X, y, prior(np.ones((3, 2))), loss=Softmax(3), warmup=2, draws=5, callback=lambda *at: seen.append(at)
    )
    assert drawn.passes == 3 * 7 and not drawn.interrupted
    assert seen == [(i, 7) for i in range(1, 8)]
    assert sample(X, y > 0, prior(np.ones((1, 2))), warmup=2, draws=5).passes == 7


@pytest.mark.parametrize(("after", "kept"), [(2, 0), (7, 2), (12, 7)])
def test_an_interrupted_run_returns_what_there_is(after: int, kept: int) -> None:
    X, y = rows(30, 2)

    def stop(done: int, _: int) -> None:
        if done == after:
            raise KeyboardInterrupt

    whole = sample(X, y, prior([[1.0, 1.0]]), warmup=5, draws=20)
    drawn = sample(X, y, prior([[1.0, 1.0]]), warmup=5, draws=20, callback=stop)
    assert drawn.interrupted and drawn.passes == after
    np.testing.assert_array_equal(drawn.theta, whole.theta[:, :kept])
    assert drawn.rhat.shape == drawn.ess.shape == (1, 2)
    assert np.isnan(drawn.rhat).all() == np.isnan(drawn.ess).all() == (kept < 4)


def test_starts_have_the_covariance_that_was_given() -> None:
    X, y = rows(30, 2)
    factor = np.array([[2.0, 0.0], [3.0, 0.5]])
    source = as_source(X, y).labelled()
    sampler = GibbsSampler(LinearObjective(Logistic(), prior([[1.0, 1.0]])), source, np.random.SeedSequence(0))
    starts = sampler.starts(np.array([[5.0, -5.0]]), factor, 20_000)[:, 0]
    np.testing.assert_allclose(np.cov(starts.T), factor @ factor.T, rtol=0.05)
    np.testing.assert_allclose(starts.mean(axis=0), [5.0, -5.0], atol=0.1)


# -- bad input ------------------------------------------------------------------------------------------------------------


def test_bad_input_is_answered_with_sentences() -> None:
    X, y = rows(20, 2)
    ones = np.ones((1, 2))
    with pytest.raises(ValueError, match="n_draws is 3; it has to be at least 4"):
        sample(X, y, prior(ones), draws=3)
    with pytest.raises(ValueError, match="n_warmup is -1"):
        sample(X, y, prior(ones), warmup=-1)
    with pytest.raises(ValueError, match="n_chains is 0; it has to be at least 1"):
        sample(X, y, prior(ones), chains=0)
    with pytest.raises(ValueError, match="needs a Gaussian prior"):
        sample(X, y, Penalty.of_scikit_learn(1.0, 0.5, ones))
    with pytest.raises(ValueError, match="loss Hinge is not a negative log-likelihood"):
        sample(X, y, prior(ones), loss=Hinge())
    broken = X.copy()
    broken[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"column 1 has 1 such row \(first: row 7\)"):
        sample(broken, y, prior(ones))


@pytest.mark.parametrize("loss", [Logistic(), Softmax(3), Softmax(3, 1)])
def test_a_design_without_full_rank_needs_a_prior(loss: Loss) -> None:
    X, y = rows(40, 2, 2 if isinstance(loss, Logistic) else 3)
    twice = np.column_stack([X, X[:, 0] - 2 * X[:, 1]])
    flat, held = np.zeros((loss.n_scores, 3)), np.ones((loss.n_scores, 3))
    with pytest.raises(ValueError, match=r"columns are linearly dependent .* smaller C"):
        sample(twice, y, prior(flat), loss=loss)
    assert np.isfinite(sample(twice, y, prior(held), loss=loss, draws=4).theta).all()
    empty = np.column_stack([X, np.zeros(40)])
    with pytest.raises(ValueError, match="column 2 is zero in every row and has a flat prior"):
        sample(empty, y, prior(flat), loss=loss)
    with pytest.raises(ValueError, match="the intercept counts as one"):
        sample(np.column_stack([X[:, :1], np.ones(40)]), y, prior(flat), loss=loss, intercept=True)


def test_columns_of_very_different_size() -> None:
    X, y = rows(40, 2)
    size = np.array([1e-40, 1e40])
    plain = sample(X, y, prior([[1.0, 2.0]]), warmup=0, draws=6, spread=0.0).theta
    scaled = sample(X * size, y, prior(np.array([[1.0, 2.0]]) * size**2), warmup=0, draws=6, spread=0.0).theta
    np.testing.assert_allclose(scaled * size, plain, rtol=1e-9)


# -- diagnostics ----------------------------------------------------------------------------------------------------------


def autoregressive(rho: float, chains: int, n: int, seed: int = 0) -> Any:
    draws = np.random.default_rng(seed).normal(size=(chains, n))
    draws[:, 0] /= np.sqrt(1 - rho**2)
    for t in range(1, n):
        draws[:, t] += rho * draws[:, t - 1]
    return draws


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.5, 0.9])
def test_effective_size_of_an_autoregression(rho: float) -> None:
    draws = autoregressive(rho, 8, 20_000)
    assert bulk_ess(draws) == pytest.approx(160_000 * (1 - rho) / (1 + rho), rel=0.1)
    assert abs(rhat(draws) - 1) < 0.01


def test_chains_that_disagree_show() -> None:
    draws = np.random.default_rng(0).normal(size=(4, 500))
    apart = draws + np.array([0.0, 0.0, 0.0, 3.0])[:, None]
    wider = draws * np.array([1.0, 1.0, 1.0, 5.0])[:, None]  # the same centre: only the folded draws tell
    drifting = draws + np.linspace(0, 3, 500)  # the same in every chain: only their halves tell
    together = rhat(np.stack([draws, apart, wider, drifting], axis=2))
    assert together[0] < 1.01 and (together[1:] > 1.1).all()
    np.testing.assert_array_equal(together, [rhat(each) for each in (draws, apart, wider, drifting)])
    assert bulk_ess(apart) < 20


def test_ranks_alone_matter() -> None:
    draws = autoregressive(0.6, 4, 301)
    np.testing.assert_allclose(bulk_ess(np.exp(5 * draws)), bulk_ess(draws), rtol=1e-12)
    odd = draws**3
    np.testing.assert_allclose(bulk_ess(-odd), bulk_ess(draws), rtol=1e-10)


def test_draws_that_never_change() -> None:
    assert np.isnan(rhat(np.ones((4, 10)))) and np.isnan(bulk_ess(np.ones((4, 10))))
    assert np.isinf(rhat(np.repeat(np.arange(4.0)[:, None], 10, axis=1)))
    with pytest.raises(ValueError, match=r"Each chain has 3 draws; .* at least 4"):
        rhat(np.ones((4, 3)))


@pytest.mark.parametrize(
    ("kind", "expected_rhat", "expected_ess"),
    [
        ("independent", 1.0029083376326986, 1622.4976895523353),
        ("autoregression", 1.0093345031961722, 318.29745297597276),
        ("heavy tails", 1.0474131081867712, 313.25431066961835),
    ],
)
def test_values_of_arviz(kind: str, expected_rhat: float, expected_ess: float) -> None:
    """Computed with ArviZ 0.23.4: ``rhat(draws)`` and ``ess(draws, method="bulk")``."""
    draws = np.random.default_rng(7).normal(size=(4, 501))
    if kind != "independent":
        for t in range(1, 501):
            draws[:, t] += 0.7 * draws[:, t - 1]
    if kind == "heavy tails":
        draws = np.sinh(2 * draws) * np.array([1, 1, 1, 3])[:, None]
    assert rhat(draws) == pytest.approx(expected_rhat, rel=1e-12)
    assert bulk_ess(draws) == pytest.approx(expected_ess, rel=1e-9)
