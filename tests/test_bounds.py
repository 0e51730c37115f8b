"""Dual points, eigenvalue bounds and quadratic models: each bound holds against a solve that shares nothing with it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_solves import Objective

from separatrix.data import as_source
from separatrix.data.affine import Intercept
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.losses import Softmax
from separatrix.objectives.margin_losses import MARGIN_LOSSES
from separatrix.objectives.penalties import Penalty
from separatrix.result import Certificate, Status
from separatrix.solvers.bounds import dual_gap, product_gap, shifted_gap, stationary
from separatrix.solvers.curvature import Curvature
from separatrix.solvers.quadratic import minimise_quadratic
from separatrix.solvers.registry import minimise


@given(st.integers(0, 10_000), st.integers(2, 12))
def test_the_stationary_vector_makes_every_flow_balance(seed: int, n_classes: int) -> None:
    flows = 10.0 ** np.random.default_rng(seed).uniform(-12, 3, (n_classes, n_classes))
    np.fill_diagonal(flows, 0.0)
    kappa = stationary(flows)
    assert kappa.max() == 1.0 and (kappa > 0).all()
    # Relative to what flows in and out, not to the largest flow: no digits are lost to subtraction.
    np.testing.assert_allclose(kappa @ flows, kappa * flows.sum(axis=1), rtol=1e-13 * n_classes)


def test_two_classes_shrink_the_larger_sum() -> None:
    np.testing.assert_array_equal(stationary(np.array([[0.0, 2.0], [8.0, 0.0]])), [1.0, 0.25])
    assert not stationary(np.array([[0.0, 2.0], [0.0, 0.0]])).any()


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(["logistic", "squared_hinge", "huberised", "softmax", "reference"]))
def test_a_dual_point_bounds_the_gap_anywhere(seed: int, name: str) -> None:
    """At random coefficients, far from and near the optimum, with weights, offsets, absolute values and an intercept."""
    rng = np.random.default_rng(seed)
    n, d, n_classes = 25, 3, 3 if name in ("softmax", "reference") else 2
    loss: Any = Softmax(3, 1 if name == "reference" else None) if n_classes == 3 else MARGIN_LOSSES[name]
    m = loss.n_scores
    X, codes = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3, d), np.arange(n) % n_classes
    weights, offset = rng.choice([0.5, 1.0, 3.0], n), rng.standard_normal((n, m))
    quadratic, absolute = np.zeros((m, d + 1)), np.zeros((m, d + 1))
    quadratic[:, :d], absolute[:, :d] = rng.choice([(0.3, 0.0), (0.0, 0.7), (0.2, 0.4)])
    penalty = Penalty.none((m, d + 1))
    penalty = Penalty(quadratic, absolute, penalty.mean, penalty.low, penalty.high)
    objective = LinearObjective(loss, penalty, offset if m > 1 else offset[:, 0], ones=True)
    source = Intercept(as_source(X, codes, weights).labelled())
    theta = rng.standard_normal((m, d + 1)) * 10.0 ** rng.integers(-3, 1)
    evaluation = objective.evaluate(theta, source, 1)
    for shift in (np.zeros(m), 0.1 * rng.standard_normal(m)):
        bound = shifted_gap(LinearProblem.plain(objective, source), theta, evaluation, shift)
        assert bound.kind == "proven"
        if m == 2:  # a score held at zero: not a problem of the reference, so any other point must not be lower
            values = [objective.evaluate(theta + rng.standard_normal(theta.shape), source, 1).value for _ in range(20)]
            assert evaluation.value - min(values) <= bound.gap
            continue
        kind = "softmax" if m == 3 else name
        exact = Objective(
            kind, X, codes, m, weights=weights, quadratic=quadratic[0, 0], absolute=absolute[0, 0], offset=offset
        )
        assert float(exact.value(theta) - exact.minimum(theta)) <= bound.gap * (1 + 1e-12)


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(["logistic", "squared", "softmax"]))
def test_the_closed_form_of_a_dual_point_bounds_the_gap(seed: int, name: str) -> None:
    """Near and far from the optimum, with weights, offsets and a prior mean; near it the bound is tight."""
    rng = np.random.default_rng(seed)
    n, d, n_classes = 40, 3, 3 if name == "softmax" else 2
    loss: Any = Softmax(3) if n_classes == 3 else MARGIN_LOSSES[name]
    m = loss.n_scores
    X, codes = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-1, 2, d) + 1.0, np.arange(n) % n_classes
    weights, offset = rng.choice([0.5, 1.0, 3.0], n), rng.standard_normal((n, m))
    quadratic = np.zeros((m, d + 1))
    quadratic[:, :d] = 10.0 ** rng.integers(-2, 2)
    penalty = Penalty.none((m, d + 1))
    penalty = Penalty(quadratic, penalty.absolute, penalty.mean, penalty.low, penalty.high)
    objective = LinearObjective(loss, penalty, offset if m > 1 else offset[:, 0], ones=True)
    source = Intercept(as_source(X, codes, weights).labelled())
    exact = Objective(name, X, codes, m, weights=weights, quadratic=quadratic[0, 0], absolute=0.0, offset=offset)
    problem, theta = LinearProblem.plain(objective, source), np.zeros((m, d + 1))
    squares = np.append(weights @ np.square(X), weights.sum())
    for size in (1.0, 1e-2, 0.0):
        moved = theta + size * rng.standard_normal(theta.shape)
        evaluation = objective.evaluate(moved, source, 1, keep=True)
        bound = product_gap(problem, evaluation, squares)
        assert float(exact.value(moved) - exact.minimum(moved)) <= bound.gap * (1 + 1e-12)
        theta = minimise(problem, "newton", tol=1e-13, max_iter=100).theta
    assert bound.gap <= 1e-8 * evaluation.value


def test_the_closed_form_is_not_used_where_it_does_not_hold() -> None:
    """Absolute values, coefficients without a penalty, a shift by more than 1."""
    X, codes = np.zeros((4, 1)), np.array([0, 1, 1, 1])
    source = Intercept(as_source(X, codes).labelled())
    for C, ratio, b in ((np.inf, 0.0, 1.0), (1.0, 0.5, 1.0), (1.0, 0.0, 9.0)):
        penalty = Penalty.of_scikit_learn(C, ratio, np.array([[1.0, 0.0]]))
        objective = LinearObjective(MARGIN_LOSSES["logistic"], penalty, ones=True)
        evaluation = objective.evaluate(np.array([[0.0, b]]), source, 1, keep=True)
        bound = product_gap(LinearProblem.plain(objective, source), evaluation, np.array([0.0, 4.0]))
        assert bound.gap == np.inf


def test_the_price_of_the_intercept_is_exact_where_it_is_far_from_its_optimum() -> None:
    """An intercept of 1e3 and a gradient that is not zero: nothing is assumed of where the best intercept lies."""
    X, codes = np.zeros((4, 1)), np.array([0, 1, 1, 1])
    source = Intercept(as_source(X, codes).labelled())
    penalty = Penalty.of_scikit_learn(1.0, 0.0, np.array([[1.0, 0.0]]))
    objective = LinearObjective(MARGIN_LOSSES["logistic"], penalty, ones=True)
    least = -(np.log(0.25) + 3 * np.log(0.75))
    for b in (-1e3, -1.0, 0.0, 1.0986, 1e3):
        theta = np.array([[0.0, b]])
        evaluation = objective.evaluate(theta, source, 1)
        bound = dual_gap(LinearProblem.plain(objective, source), theta, evaluation)
        assert evaluation.value - least <= bound.gap


@pytest.mark.parametrize("size", [30, 450])
@pytest.mark.parametrize("nearness", [1.0, 1e-2, 1e-4])
def test_the_least_eigenvalue_is_never_overstated(size: int, nearness: float) -> None:
    rng = np.random.default_rng(size)
    rows = rng.standard_normal((2 * size, size))
    rows[:, 1] = rows[:, 0] + nearness * rows[:, 1]
    hessian = (rows * 10.0 ** rng.integers(-3, 4, size)).T
    curvature = Curvature(hessian @ hessian.T, (1, size))
    unit = rows / np.linalg.norm(rows, axis=0)
    assert 0.0 < curvature.least <= np.linalg.svd(unit, compute_uv=False)[-1] ** 2 * (1.0 + 1e-8)


@settings(max_examples=50)
@given(st.integers(0, 10_000))
def test_quadratics_with_kinks_and_bounds_are_solved_exactly(seed: int) -> None:
    """Against all patterns of signs: the model's minimum is reached however dependent the columns."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 5))
    rows = rng.standard_normal((8, p)) + 10.0 ** rng.integers(0, 5)  # columns far from zero are nearly dependent
    H, slope = rows.T @ rows, rows.T @ rng.standard_normal(8)
    absolute = rng.choice([0.0, 1.0, 5.0], p)
    low, high = np.full(p, -np.inf), np.full(p, np.inf)

    def value(theta: np.ndarray) -> float:
        return float(slope @ theta + 0.5 * theta @ H @ theta + absolute @ np.abs(theta))

    best = 0.0
    for signs in product((-1, 0, 1), repeat=p):
        s = np.array(signs)
        at = np.flatnonzero(s)
        if len(at):
            theta = np.zeros(p)
            theta[at] = np.linalg.lstsq(H[np.ix_(at, at)], -(slope + absolute * s)[at], rcond=1e-14)[0]
            best = min(best, value(theta))
    found, left = np.zeros(p), slope.copy()
    minimise_quadratic(H, left, found, absolute, low, high, 1e-10)
    assert value(found) <= best + 1e-6 * max(1.0, abs(best))


def test_one_order_of_statuses() -> None:
    assert Status.worst([Status.CONVERGED, Status.MAX_ITER, Status.STALLED]) is Status.MAX_ITER
    assert Status.worst([Status.INTERRUPTED, *Status]) is Status.INTERRUPTED
    assert [status.severity for status in Status] == list(range(len(Status)))


def test_together_is_proven_only_if_all_are() -> None:
    one, two = Certificate(1.0, 2.0, "a", 0.5), Certificate(3.0, 4.0, "a", 0.1, kind="estimated")
    assert Certificate.together([one, one]).kind == "proven"
    joined = Certificate.together([one, two])
    assert (joined.gap, joined.objective, joined.stationarity, joined.kind) == (4.0, 6.0, 0.5, "estimated")
