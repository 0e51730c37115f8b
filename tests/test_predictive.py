"""Predictive probabilities of activations that are Gaussian: E σ(a) and E softmax(a).

References: mpmath in 30 digits by brute force, plain Monte Carlo, and the identities that hold exactly.
"""

from __future__ import annotations

import warnings

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax

from separatrix.bayes.predictive import gauss_rule, interval, probit, quadrature
from separatrix.bayes.predictive_softmax import softmax_interval, softmax_probit, softmax_quadrature
from separatrix.kernels.posterior.logistic_normal import SWITCH

MEANS = [0.0, 0.1, 3.0, 30.0, 300.0]
VARIANCES = [1e-4, 1e-2, 1.0, 8.9, 9.1, 25.0, 100.0, 2500.0]
SOFTMAX = [softmax_probit, softmax_quadrature]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def brute_force(mean: float, variance: float) -> mp.mpf:
    """The integral for mean ≤ 0 by the trapezoidal rule, its step 0.4 of what σ or the Gaussian vary on: 1e-21 relatively."""
    with mp.workdps(30):
        m, v = mp.mpf(mean), mp.mpf(variance)
        s = mp.sqrt(v)
        step = min(s, 1) * mp.mpf("0.4")
        low, high = (
            m - 10 * s,
            min(m + v, 50) + 10 * s,
        )  # σ rises like e^a as far as 0: the integrand is largest in between
        points = (low + k * step for k in range(int((high - low) / step) + 1))
        total = mp.fsum(mp.exp(-((a - m) ** 2) / (2 * v)) / (1 + mp.exp(-a)) for a in points)
        return step * total / (s * mp.sqrt(2 * mp.pi))


def random_activations(K: int, scale: float, n: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Means, and covariances whose most variable contrast has the standard deviation `scale`."""
    rng = np.random.default_rng([K, seed])
    factor = rng.normal(size=(n, K, K + 1)) * np.exp(0.5 * rng.normal(size=(n, K, 1)))
    S = factor @ factor.transpose(0, 2, 1)
    d = np.einsum("nkk->nk", S)
    S *= scale**2 / (d[:, :, None] + d[:, None, :] - 2 * S).max(axis=(1, 2), keepdims=True)
    return rng.normal(size=(n, K)) * 2.0, S


def monte_carlo(mean: np.ndarray, S: np.ndarray, draws: int = 100_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of softmax over draws, its standard error, and the draws, for one row."""
    p = softmax(np.random.default_rng(5).multivariate_normal(mean, S, size=draws, method="eigh"), axis=1)
    return p.mean(axis=0), p.std(axis=0) / np.sqrt(draws), p


# One activation


@pytest.mark.parametrize("variance", VARIANCES)
def test_quadrature_is_exact_to_rounding_in_both_tails(variance):
    for mean in MEANS:
        low, high = quadrature([-mean, mean], [variance, variance])
        exact = brute_force(-mean, variance)
        assert abs(low - exact) < 1e-15
        assert abs(high - (1 - exact)) < 1e-15
        assert abs(low / exact - 1) < 1e-13


@pytest.mark.parametrize("mean", [-3.0, -300.0, -1e4, -1.5e5])
def test_quadrature_when_sigma_is_a_step(mean):
    with mp.workdps(30):
        m, s = mp.mpf(mean), mp.mpf(10) ** 4
        ends = [*(m + k * s / 2 for k in range(-24, 61)), *(mp.mpf(a) for a in range(-60, 61, 4))]
        # Less e^{−m²/2s²}, which would make the integral so small that mpmath believed it to be found at once.
        total = mp.quad(
            lambda a: mp.exp(a * (2 * m - a) / (2 * s * s)) / (1 + mp.exp(-a)),
            sorted(ends),
            method="gauss-legendre",
            maxdegree=4,
        )
        exact = mp.exp(-m * m / (2 * s * s)) * total / (s * mp.sqrt(2 * mp.pi))
    assert abs(quadrature([mean], [1e8])[0] / exact - 1) < 1e-13


def test_gauss_rule_has_the_moments_of_its_weight():
    nodes, weights = gauss_rule()
    assert (nodes > 0).all() and (weights > 0).all()
    # ∫₀^∞ aʲ/(1 + e^a) da = j! η(j + 1), η Dirichlet's; exact for polynomials of degree below twice the number of nodes.
    for j in range(20):
        exact = mp.factorial(j) * mp.altzeta(j + 1)
        assert weights @ nodes**j == pytest.approx(float(exact), rel=1e-13)
    # ∫₀^∞ sinh(ta)/(1 + e^a) da = (π/sin πt − 1/t)/2
    for t in (1e-3, 0.1, 0.3, 0.5):
        assert weights @ np.sinh(t * nodes) == pytest.approx(0.5 * (np.pi / np.sin(np.pi * t) - 1 / t), rel=1e-12)


def test_the_two_rules_meet():
    mean, v = np.linspace(-100, 100, 801), SWITCH**2
    below, above = quadrature(mean, np.full(801, np.nextafter(v, 0))), quadrature(mean, np.full(801, v))
    np.testing.assert_allclose(below, above, rtol=1e-13)


@given(st.floats(0, 1e4), st.floats(0, 1e8))
def test_quadrature_is_symmetric_and_a_probability(mean, variance):
    low, high = quadrature([-mean, mean], [variance, variance])
    assert low + high == 1.0 or abs(low + high - 1.0) <= np.finfo(float).eps
    assert 0.0 <= low <= 0.5 + 1e-15 and 0.5 - 1e-15 <= high <= 1.0


@given(st.floats(0.0, 600.0), st.floats(0.01, 400.0))
def test_quadrature_obeys_the_reflection(m, v):
    # σ(a) = e^a σ(−a), and e^a moves the mean of a Gaussian by its variance.
    left, right = quadrature([-m, m - v], [v, v])
    if 1e-290 < left < 1 and right > 1e-290:
        assert np.log(left) == pytest.approx(v / 2 - m + np.log(right), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("rule", [probit, quadrature])
def test_limits(rule):
    mean = np.linspace(-40, 40, 161)
    np.testing.assert_allclose(rule(mean, np.zeros(161)), expit(mean), rtol=1e-14)
    np.testing.assert_allclose(rule(mean, np.full(161, 1e-30)), expit(mean), rtol=1e-14)
    # The contour p = ½ does not move.
    assert (rule(np.zeros(5), np.array([0.0, 1e-4, 3.0, 1e3, 1e8])) == 0.5).all()
    # Along a ray from the data the mean grows like the standard deviation, and p settles between ½ and 1; where the
    # variance wins, p → ½.
    far = rule(np.full(4, 5.0), np.array([1e2, 1e4, 1e6, 1e8]))
    assert (np.diff(far) < 0).all() and abs(far[-1] - 0.5) < 3e-4


@pytest.mark.parametrize("variance", [0.0, 0.5, 4.0, 8.99, 9.0, 50.0, 1e4])
@pytest.mark.parametrize("rule", [probit, quadrature])
def test_monotone_in_the_mean(rule, variance):
    p = rule(np.linspace(-30, 0, 500), np.full(500, variance))
    assert (np.diff(p) > 0).all()


def test_probit_is_within_its_known_error():
    mean, variance = (g.ravel() for g in np.meshgrid(np.linspace(0, 8, 161), np.geomspace(1e-3, 1e6, 91)))
    mean = mean * np.sqrt(1 + variance) / 2
    off = np.abs(probit(mean, variance) - quadrature(mean, variance))
    assert 0.017 < off.max() < 0.019


def test_float_extremes():
    mean = np.array([1e4, -1e4, 1e4, -1e4, 1e300, -1e300, 5e-324, 0.0, 1e150])
    variance = np.array([0.0, 1e-300, 1e8, 1e308, 1e300, 1.0, 5e-324, 1e308, 1e300])
    for rule in (probit, quadrature):
        p = rule(mean, variance)
        assert ((p >= 0) & (p <= 1)).all()
    lower, upper = interval(mean, variance)
    assert ((lower >= 0) & (lower <= upper) & (upper <= 1)).all()


@pytest.mark.parametrize("n", [0, 1])
def test_few_rows(n):
    mean, variance = np.zeros(n), np.ones(n)
    assert probit(mean, variance).shape == quadrature(mean, variance).shape == (n,)
    assert [end.shape for end in interval(mean, variance)] == [(n,), (n,)]


def test_inputs_may_be_lists_views_and_constants():
    mean, variance = np.linspace(-3, 3, 12), np.linspace(0, 20, 12)
    variance.flags.writeable = False
    np.testing.assert_array_equal(quadrature(mean[::2], variance[::2]), quadrature(mean, variance)[::2])
    np.testing.assert_array_equal(quadrature(mean.tolist(), variance.tolist()), quadrature(mean, variance))


def test_interval_has_its_level_and_draws_agree():
    rng = np.random.default_rng(3)
    mean, variance = np.array([-2.0, 0.0, 1.0]), np.array([0.25, 4.0, 25.0])
    draws = mean + np.sqrt(variance) * rng.normal(size=(200_000, 3))
    lower, upper = interval(mean, variance, level=0.8)
    inside = ((expit(draws) >= lower) & (expit(draws) <= upper)).mean(axis=0)
    np.testing.assert_allclose(inside, 0.8, atol=4 * np.sqrt(0.16 / 200_000))
    np.testing.assert_allclose(expit(draws).mean(axis=0), quadrature(mean, variance), atol=4 * 0.5 / np.sqrt(200_000))
    np.testing.assert_allclose(np.quantile(expit(draws), [0.1, 0.9], axis=0), [lower, upper], atol=5e-3)
    half, alone = interval([1.0], [0.0], level=0.5)
    assert half == alone == expit(1.0)


# Several


@pytest.mark.parametrize("rule, binary", [(softmax_probit, probit), (softmax_quadrature, quadrature)])
def test_two_classes_are_the_binary_rule(rule, binary):
    mean, S = random_activations(2, 5.0, n=50)
    delta, v = mean[:, 1] - mean[:, 0], S[:, 0, 0] + S[:, 1, 1] - 2 * S[:, 0, 1]
    expected = np.column_stack([binary(-delta, v), binary(delta, v)])
    np.testing.assert_allclose(rule(mean, S), expected, rtol=1e-12)
    # A baseline: the first activation is 0.
    S = np.zeros((50, 2, 2))
    S[:, 1, 1] = v
    np.testing.assert_allclose(rule(np.column_stack([np.zeros(50), delta]), S), expected, rtol=1e-12)


def test_interval_of_two_classes_is_the_binary_one():
    mean, S = random_activations(2, 5.0, n=50)
    delta, v = mean[:, 1] - mean[:, 0], S[:, 0, 0] + S[:, 1, 1] - 2 * S[:, 0, 1]
    lower, upper = softmax_interval(mean, S, 0.9)
    np.testing.assert_allclose((lower[:, 1], upper[:, 1]), interval(delta, v, 0.9), rtol=1e-12)
    np.testing.assert_allclose(lower[:, 0], 1 - upper[:, 1], rtol=1e-9)


@pytest.mark.parametrize("K", [3, 5, 10])
@pytest.mark.parametrize("scale", [0.7, 2.0, 20.0])
def test_softmax_against_monte_carlo(K, scale):
    mean, S = random_activations(K, scale, n=3)
    exact, quick = softmax_quadrature(mean, S), softmax_probit(mean, S)
    own = {0.7: 2e-5, 2.0: 3e-4, 20.0: 3e-3}[scale]  # as the docstring says
    typical = {0.7: 0.005, 2.0: 0.025, 20.0: 0.15}[scale]
    for i in range(3):
        p, error, _ = monte_carlo(mean[i], S[i])
        np.testing.assert_array_less(np.abs(exact[i] - p), 4.5 * error + own)
        np.testing.assert_array_less(np.abs(quick[i] - exact[i]), typical)


@pytest.mark.parametrize("K", [3, 6])
def test_softmax_interval_against_monte_carlo(K):
    mean, S = random_activations(K, 2.0, n=2)
    lower, upper = softmax_interval(mean, S, level=0.8)
    for i in range(2):
        _, _, draws = monte_carlo(mean[i], S[i])
        np.testing.assert_allclose((draws < lower[i]).mean(axis=0), 0.1, atol=0.006)
        np.testing.assert_allclose((draws > upper[i]).mean(axis=0), 0.1, atol=0.006)


def test_probit_of_several_sees_which_class_varies():
    # A class that varies much and two that do not: it wins about half of the time, not a third of it.
    S = np.diag([1e4, 0.0, 0.0])[None]
    np.testing.assert_allclose(softmax_probit(np.zeros((1, 3)), S), [[0.5, 0.25, 0.25]], atol=0.02)
    np.testing.assert_allclose(softmax_quadrature(np.zeros((1, 3)), S), [[0.5, 0.25, 0.25]], atol=0.01)


@pytest.mark.parametrize("rule", SOFTMAX)
@pytest.mark.parametrize("K", [3, 5, 10])
def test_softmax_limits(rule, K):
    mean, S = random_activations(K, 3.0)
    np.testing.assert_allclose(rule(mean, 0 * S), softmax(mean, axis=1), rtol=1e-12)
    np.testing.assert_allclose(rule(mean, S).sum(axis=1), 1.0, rtol=1e-14)
    # Far away all classes are equally likely, if they vary alike; at equal means they are so everywhere.
    alike = np.broadcast_to(1e8 * np.eye(K), S.shape)
    np.testing.assert_allclose(rule(mean, alike), 1 / K, atol=5e-3)
    if rule is softmax_probit:
        np.testing.assert_allclose(rule(np.zeros_like(mean), alike), 1 / K, rtol=1e-12)
        np.testing.assert_allclose(rule(np.zeros_like(mean), 1e-9 * alike), 1 / K, rtol=1e-12)


@pytest.mark.parametrize("rule", SOFTMAX)
@pytest.mark.parametrize("K", [2, 3, 5])
def test_common_shifts_change_nothing(rule, K):
    mean, S = random_activations(K, 3.0)
    p = rule(mean, S)
    np.testing.assert_allclose(rule(mean + 17.0, S), p, rtol=1e-10)
    np.testing.assert_allclose(rule(mean, S + 40.0), p, rtol=1e-9)
    # A shift that is correlated with the activations: a + u, Cov(a, u) = c.
    c = np.linspace(-1, 1, K)
    np.testing.assert_allclose(rule(mean, S + c[:, None] + c[None, :] + 9.0), p, rtol=1e-9)


@pytest.mark.parametrize("rule", SOFTMAX)
@pytest.mark.parametrize("K", [2, 3, 5])
def test_order_of_the_classes_and_of_the_rows(rule, K):
    mean, S = random_activations(K, 3.0)
    order = np.random.default_rng(1).permutation(K)
    moved = rule(mean[:, order], S[:, order][:, :, order])
    np.testing.assert_allclose(moved, rule(mean, S)[:, order], rtol=1e-9)
    np.testing.assert_allclose(rule(mean[::-1], S[::-1]), rule(mean, S)[::-1], rtol=1e-12)


@pytest.mark.parametrize("K", [3, 5])
def test_softmax_probit_knows_no_order_and_has_no_jumps(K):
    # Where means are equal nothing but the covariance tells the classes apart.
    S, order = random_activations(K, 10.0)[1], np.roll(np.arange(K), 1)
    level = softmax_probit(np.zeros((6, K)), S)
    np.testing.assert_allclose(softmax_probit(np.zeros((6, K)), S[:, order][:, :, order]), level[:, order], rtol=1e-10)
    # One mean passes all the others: p grows, steadily.
    mean = np.tile(random_activations(K, 10.0)[0][0], (601, 1))
    mean[:, 0] = np.linspace(-6, 6, 601)
    for covariance in S:
        p = softmax_probit(mean, np.broadcast_to(covariance, (601, K, K)))
        assert (np.diff(p[:, 0]) > 0).all()
        assert np.abs(np.diff(p, n=2, axis=0)).max() < 2e-4


@given(st.lists(st.floats(-50, 50), min_size=3, max_size=6), st.floats(0, 20), st.integers(0, 1000))
def test_softmax_probit_gives_probabilities(mean, scale, seed):
    K = len(mean)
    factor = scale * np.random.default_rng(seed).normal(size=(K, 2))  # singular, as with few informative rows
    p = softmax_probit([mean], (factor @ factor.T)[None])
    assert np.isfinite(p).all() and (p >= 0).all() and p.sum() == pytest.approx(1.0, rel=1e-12)


def test_blocks_of_rows_do_not_matter(monkeypatch):
    mean, S = random_activations(4, 3.0, n=9)
    expected = [rule(mean, S) for rule in SOFTMAX]
    monkeypatch.setattr("separatrix.bayes.predictive_softmax._BLOCK", 1)
    for rule, p in zip(SOFTMAX, expected, strict=True):
        np.testing.assert_allclose(rule(mean, S), p, rtol=1e-12)


@pytest.mark.parametrize("rule", SOFTMAX)
@pytest.mark.parametrize("K", [2, 4])
def test_softmax_few_rows_and_extremes(rule, K):
    assert rule(np.zeros((0, K)), np.zeros((0, K, K))).shape == (0, K)
    assert rule(np.zeros((1, K)), np.eye(K)[None]).shape == (1, K)
    mean = np.zeros((4, K))
    mean[:, 0] = [1e4, -1e4, 1e300, 1e-300]
    S = np.array([0.0, 1e8, 1.0, 1e-300])[:, None, None] * np.eye(K)
    p = rule(mean, S)
    assert np.isfinite(p).all() and (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)


# Bad input


def test_bad_activations_are_refused():
    for rule in (probit, quadrature, interval):
        with pytest.raises(ValueError, match=r"mean has shape \(2,\) and variance \(3,\)"):
            rule(np.zeros(2), np.zeros(3))
        with pytest.raises(ValueError, match="finite"):
            rule([np.nan], [1.0])
        with pytest.raises(ValueError, match=r"row 1 has -0\.5"):
            rule([0.0, 0.0], [1.0, -0.5])
    for level in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="give a probability between 0 and 1"):
            interval([0.0], [1.0], level=level)
        with pytest.raises(ValueError, match="give a probability between 0 and 1"):
            softmax_interval(np.zeros((1, 3)), np.eye(3)[None], level=level)


@pytest.mark.parametrize("rule", [*SOFTMAX, softmax_interval])
def test_bad_covariances_are_refused(rule):
    mean = np.zeros((2, 3))
    for shape in [(2, 3), (1, 3, 3), (2, 2, 2)]:
        with pytest.raises(ValueError, match=r"must be \(n, K\) and \(n, K, K\)"):
            rule(mean, np.zeros(shape))
    with pytest.raises(ValueError, match="K ≥ 2 classes"):
        rule(np.zeros((2, 1)), np.zeros((2, 1, 1)))
    with pytest.raises(ValueError, match="finite"):
        rule(mean, np.full((2, 3, 3), np.inf))
    with pytest.raises(ValueError, match="not symmetric"):
        rule(mean, np.broadcast_to(np.triu(np.ones((3, 3))), (2, 3, 3)))
    with pytest.raises(ValueError, match="row 1 is not positive semi-definite"):
        rule(mean, np.stack([np.eye(3), np.diag([1.0, 1.0, -9.0])]))
