"""The softmax with absolute values, coefficient by coefficient: the optimum of the other method, true proofs, a true model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import separatrix.solvers.registry as registry
from separatrix import LogisticRegression, Status
from separatrix.solvers.at_hand import prox_softmax
from separatrix.solvers.at_hand.prox_softmax import PROX_SOFTMAX


def table(n: int, d: int, classes: int, seed: int, scales: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    y = np.argmax(X[:, :classes] + rng.gumbel(size=(n, classes)), axis=1)
    return X * 10.0 ** rng.uniform(-scales, scales, d), y


def value(model: LogisticRegression, X: Any, y: np.ndarray, weights: np.ndarray | float = 1.0) -> float:
    """C Σ s ℓ + ‖W‖₁, or the elastic net."""
    scores = np.asarray(X @ model.coef_.T) + model.intercept_
    scores -= scores.max(axis=1, keepdims=True)
    losses = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(y)), y]
    ratio = float(model.l1_ratio)
    penalty = ratio * np.abs(model.coef_).sum() + 0.5 * (1.0 - ratio) * np.square(model.coef_).sum()
    return float(model.C * (weights * losses).sum() + penalty)


@pytest.fixture(autouse=True)
def at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "prox_softmax_at_hand", lambda *sizes: True)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods that have run."""
    names: list[str] = []
    run = registry.run

    def noted(method: Any, *arguments: Any, **more: Any) -> Any:
        names.append("coefficients" if method is PROX_SOFTMAX else method.name)
        return run(method, *arguments, **more)

    monkeypatch.setattr(registry, "run", noted)
    return names


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.05, 3.0, 300.0])
@pytest.mark.parametrize(("n", "d", "classes", "scales"), [(300, 12, 3, 0.0), (60, 90, 4, 2.0), (200, 30, 7, 3.0)])
def test_it_ends_where_the_other_method_does(n, d, classes, scales, C, intercept, used, monkeypatch):
    X, y = table(n, d, classes, seed=n + d, scales=scales)
    settings: dict[str, Any] = {"C": C, "l1_ratio": 1.0, "fit_intercept": intercept, "max_iter": 300}
    model = LogisticRegression(tol=1e-4, **settings).fit(X, y)
    assert used[0] == "coefficients"
    assert model.fit_.status is Status.CONVERGED
    tight = LogisticRegression(tol=1e-7, **settings).fit(X, y)
    monkeypatch.setattr(registry, "prox_softmax_offered", lambda problem: False)
    other = LogisticRegression(tol=1e-7, **settings).fit(X, y)
    assert used[-1] == "prox_newton"
    least = min(value(tight, X, y), value(other, X, y))
    assert value(tight, X, y) == pytest.approx(value(other, X, y), rel=1e-6)
    assert model.fit_.certificate.objective == pytest.approx(value(model, X, y), rel=1e-9)
    assert value(model, X, y) - least <= model.fit_.certificate.gap * (1.0 + 1e-9) + 1e-12 * least


@pytest.mark.parametrize("ratio", [1.0, 0.4])
def test_storage_weights_and_the_elastic_net(ratio, used):
    X, y = table(120, 25, 4, seed=3)
    X[np.random.default_rng(1).random(X.shape) < 0.7] = 0.0
    weights = np.random.default_rng(2).integers(0, 4, 120)
    settings: dict[str, Any] = {"C": 2.0, "l1_ratio": ratio, "tol": 1e-7, "max_iter": 300}
    weighted = LogisticRegression(**settings).fit(X, y, sample_weight=weights)
    repeated = LogisticRegression(**settings).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    sparse = LogisticRegression(**settings).fit(sp.csr_array(X), y, sample_weight=weights)
    assert used[0] == "coefficients"
    best = value(weighted, X, y, weights)
    assert value(repeated, X, y, weights) == pytest.approx(best, rel=1e-6)
    assert value(sparse, X, y, weights) == pytest.approx(best, rel=1e-6)


def test_the_model_is_the_hessian_of_the_objective(monkeypatch):
    """H of some coefficients against differences of gradients."""
    X, y = table(80, 6, 3, seed=5)
    seen: list[tuple[Any, Any]] = []
    hessian = prox_softmax._hessian

    def kept(state: Any, places: Any) -> Any:
        found = hessian(state, places)
        seen.append((state, (places, found.copy())))
        return found

    monkeypatch.setattr(prox_softmax, "_hessian", kept)
    weights = np.random.default_rng(0).random(80)
    LogisticRegression(C=0.5, l1_ratio=1.0, fit_intercept=False).fit(X, y, sample_weight=weights)
    state, (places, found) = seen[0]
    columns, K = state.table.columns, len(state.theta)

    def gradient(theta: np.ndarray) -> np.ndarray:
        scores = theta @ columns
        shares = np.exp(scores - scores.max(axis=0))
        shares /= shares.sum(axis=0)
        own = np.zeros_like(shares)
        own.ravel()[state.table.own] = 1.0
        return (((shares - own) * state.table.weights) @ columns.T + state.table.quadratic * theta).ravel()

    assert K == 3 and len(places) > 1
    for at, place in enumerate(places):
        step = np.zeros(state.theta.size)
        step[place] = 1e-5
        change = step.reshape(state.theta.shape)
        slope = (gradient(state.theta + change) - gradient(state.theta - change)) / 2e-5
        np.testing.assert_allclose(found[at], slope[places], rtol=1e-5, atol=1e-6 * np.abs(found).max())


@pytest.mark.parametrize("tol", [1e-300, 1e-14])
@pytest.mark.parametrize("C", [1e-6, 1.0])
def test_more_digits_than_there_are_end_with_an_honest_status(C, tol):
    X, y = table(100, 8, 3, seed=9)
    model = LogisticRegression(C=C, l1_ratio=1.0, tol=tol).fit(X, y)
    tight = LogisticRegression(C=C, l1_ratio=1.0, tol=1e-9).fit(X, y)
    above = value(model, X, y) - value(tight, X, y)
    assert np.isfinite(model.coef_).all()
    assert above <= model.fit_.certificate.gap + 1e-12 * value(model, X, y)
