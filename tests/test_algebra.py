"""Small algebra: derivatives against differences, the Laplace approximation against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from separatrix import LogisticRegression
from separatrix.algebra import (
    LaplaceApproximation,
    laplace_approximation,
    log_odds,
    logsumexp,
    n_parameters,
    softmax,
    softmax_hessian,
    softmax_jacobian,
)


def differences(function: Any, a: Any, step: float = 1e-5) -> Any:
    """∂f/∂a_j along a new last axis."""
    return np.stack(
        [(function(a + step * e) - function(a - step * e)) / (2 * step) for e in np.eye(a.shape[-1])], axis=-1
    )


@pytest.mark.parametrize("K", [1, 2, 5])
def test_derivatives_of_the_softmax_are_limits_of_differences(K: int) -> None:
    a = np.random.default_rng(K).standard_normal((7, K))
    np.testing.assert_allclose(differences(logsumexp, a), softmax(a), atol=1e-9)
    np.testing.assert_allclose(differences(softmax, a), softmax_jacobian(a), atol=1e-9)
    np.testing.assert_allclose(differences(softmax_jacobian, a), softmax_hessian(a), atol=1e-9)
    assert np.allclose(softmax(a).sum(axis=-1), 1.0) and np.abs(softmax_jacobian(a).sum(axis=-2)).max() < 1e-15
    assert (np.linalg.eigvalsh(softmax_jacobian(a)) > -1e-15).all()
    hessian = softmax_hessian(a)
    assert np.array_equal(hessian, np.swapaxes(hessian, -1, -2))


def test_scores_of_any_size() -> None:
    assert softmax([1e308, -1e308]).tolist() == [1.0, 0.0] and logsumexp([-1e308, -1e308]) == pytest.approx(-1e308)
    assert softmax_jacobian([800.0, -800.0]).tolist() == [[0.0, -0.0], [0.0, 0.0]]


def test_log_odds_undo_the_softmax() -> None:
    a = np.random.default_rng(0).standard_normal((6, 4))
    np.testing.assert_allclose(log_odds(softmax(a), baseline=3), a - a[:, [3]], atol=1e-12)
    np.testing.assert_allclose(log_odds(expit(a)), a, atol=1e-12)
    assert log_odds(0.0) == -np.inf and log_odds(1.0) == np.inf
    with pytest.raises(ValueError, match="outside"):
        log_odds([0.5, 1.5])


def test_parameters_are_counted_by_listing_them() -> None:
    for m, levels in ((2, [2, 2, 2]), (3, [2, 3]), (4, [5])):
        cells = np.zeros(levels)
        assert n_parameters(m, len(levels), naive=False, levels=levels) == m * (cells.size - 1)
        assert n_parameters(m, len(levels), levels=levels) == m * sum(
            len(np.moveaxis(cells, j, 0)) - 1 for j in range(cells.ndim)
        )
    assert n_parameters(3, 10) == 3 * 10 and n_parameters(3, 10, naive=False) == 3 * (2**10 - 1)
    assert n_parameters(1, 200, naive=False) == 2**200 - 1  # whole numbers do not overflow
    with pytest.raises(ValueError, match="at least one class"):
        n_parameters(2, 3, levels=[2, 2])


@pytest.mark.parametrize("derivatives", [0, 1, 2])
def test_a_gaussian_is_its_own_approximation(derivatives: int) -> None:
    rng = np.random.default_rng(1)
    root = rng.standard_normal((4, 4)) * [1.0, 10.0, 1e-2, 3.0]
    covariance, mean = root.T @ root, np.array([1.0, -20.0, 3.0, 0.0])
    precision = np.linalg.inv(covariance)

    def log_f(x: Any) -> float:
        return float(2.5 - 0.5 * (x - mean) @ precision @ (x - mean))

    options = {"gradient": lambda x: -precision @ (x - mean), "hessian": lambda x: -precision}
    given: Any = dict(list(options.items())[:derivatives])
    found = laplace_approximation(log_f, np.zeros(4), **given)
    tight = 1e-10 if derivatives == 2 else 1e-5
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(found.mode - mean) <= 1e-5 * spread).all()
    np.testing.assert_allclose(
        found.covariance / np.outer(spread, spread), covariance / np.outer(spread, spread), atol=tight
    )
    exact = 2.5 + 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    assert found.log_evidence == pytest.approx(exact, abs=tight)
    x = rng.standard_normal((3, 4)) * spread + mean
    np.testing.assert_allclose(found.log_density(x), stats.multivariate_normal(mean, covariance).logpdf(x), rtol=2e-4)


def test_the_gamma_function_becomes_stirlings() -> None:
    """∫x^{a−1}e^{−x}: mode and variance a − 1, evidence (a−1)log(a−1) − (a−1) + ½log 2π(a−1)."""
    for a in (3.0, 30.0, 1000.0):
        m = a - 1.0
        found = laplace_approximation(lambda x, m=m: m * np.log(x[0]) - x[0] if x[0] > 0 else -np.inf, [0.7 * a])
        assert found.mode[0] == pytest.approx(m, rel=1e-6) and found.covariance[0, 0] == pytest.approx(m, rel=1e-4)
        assert found.log_evidence == pytest.approx(m * np.log(m) - m + 0.5 * np.log(2 * np.pi * m), abs=1e-4)


def test_the_posterior_of_a_logistic_regression() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 2))
    y = X[:, 0] + rng.standard_normal(60) > 0
    signs = np.where(y, 1.0, -1.0)

    def log_posterior(w: Any) -> float:
        return float(-np.logaddexp(0.0, -signs * (X @ w)).sum() - 0.5 * w @ w)

    found = laplace_approximation(log_posterior, [0.0, 0.0])
    model = LogisticRegression(fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(found.mode, model.coef_[0], rtol=1e-6)
    p = expit(X @ model.coef_[0])
    np.testing.assert_allclose(np.linalg.inv(found.covariance), (X.T * (p * (1 - p))) @ X + np.eye(2), rtol=1e-4)
    drawn = found.sample(20_000, random_state=0)
    np.testing.assert_allclose(np.cov(drawn.T), found.covariance, atol=0.03 * found.covariance.max())
    assert isinstance(found, LaplaceApproximation)


def test_what_has_no_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="no maximum"):
        laplace_approximation(lambda x: float(x[0] ** 2 - x[1] ** 2), [0.0, 0.0])
    with pytest.raises(ValueError, match="at the start"):
        laplace_approximation(lambda x: -np.inf, [0.0])
