"""Losses, penalties and the linear objective against their definitions: differences, suprema and dense arrays.

Every loss is crossed with both codings of y, every storage with weights, offsets and numbers of scores.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse as sp

import separatrix
import separatrix.data.source
from separatrix import Source, as_source
from separatrix.data.affine import Intercept, Standardised
from separatrix.data.views import Reweighted
from separatrix.objectives import fused
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.losses import Loss, Softmax
from separatrix.objectives.margin_losses import MARGIN_LOSSES, Exponential, Logistic
from separatrix.objectives.penalties import Penalty
from separatrix.solvers.bounds import dual_point
from separatrix.solvers.sample import column_squares

SOFTMAX = {
    "softmax-2": Softmax(2),
    "softmax-3": Softmax(3),
    "softmax-5": Softmax(5),
    "reference-2-0": Softmax(2, 0),
    "reference-3-0": Softmax(3, 0),
    "reference-3-1": Softmax(3, 1),
    "reference-4-3": Softmax(4, 3),
}
LOSSES: dict[str, Loss] = {**{name: loss for name, loss in MARGIN_LOSSES.items() if loss.convex}, **SOFTMAX}
SMOOTH = {name: loss for name, loss in LOSSES.items() if loss.smooth}
STEP = 1e-5


def parametrise(name: str, table: dict[str, Any]) -> Any:
    return pytest.mark.parametrize(name, list(table.values()), ids=list(table))


def n_classes(loss: Loss) -> int:
    return loss.n_classes if isinstance(loss, Softmax) else 2


def draw(loss: Loss, n: int = 240, spread: float = 2.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Codes of all classes, and scores away from every kink (at margins −1, 0 and 1)."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes(loss)
    eta = spread * rng.standard_normal((n, loss.n_scores))
    near = np.abs(np.abs(eta) - np.round(np.abs(eta))) < 10 * STEP
    return codes.astype(np.intp), eta + 100 * STEP * near


def unit(loss: Loss, codes: np.ndarray, eta: np.ndarray) -> float:
    """The size of the derivatives: they are at most about 1 but for the exponential loss, which is its own."""
    return float(loss.value(codes, eta).max()) if isinstance(loss, Exponential) else 1.0


# -- losses -----------------------------------------------------------------------------------------------------------


DEFINITIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": lambda m: np.logaddexp(0.0, -m),
    "squared": lambda m: 0.5 * (1.0 - m) ** 2,
    "hinge": lambda m: np.maximum(0.0, 1.0 - m),
    "squared_hinge": lambda m: np.maximum(0.0, 1.0 - m) ** 2,
    "perceptron": lambda m: np.maximum(0.0, -m),
    "huberised": lambda m: np.where(m >= -1.0, np.maximum(0.0, 1.0 - m) ** 2, -4.0 * m),
    "exponential": lambda m: np.exp(-m),
}


@pytest.mark.parametrize("name", list(DEFINITIONS))
def test_margin_losses_are_the_functions_of_their_names_for_both_classes(name: str) -> None:
    convex = {name for name, loss in MARGIN_LOSSES.items() if loss.convex}
    assert set(DEFINITIONS) == convex  # test_linear_classifier.py has the others
    eta = np.linspace(-5.0, 5.0, 101)
    for code, sign in ((0, -1.0), (1, 1.0)):
        value = MARGIN_LOSSES[name].value(np.full(101, code), eta[:, None])
        np.testing.assert_allclose(value, DEFINITIONS[name](sign * eta), rtol=1e-14, atol=1e-15)


@parametrise("loss", SOFTMAX)
def test_softmax_is_minus_the_logarithm_of_the_probability_of_the_class(loss: Softmax) -> None:
    codes, eta = draw(loss)
    scores = eta if loss.baseline is None else np.insert(eta, loss.baseline, 0.0, axis=1)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(loss.value(codes, eta), -np.log(p[np.arange(len(codes)), codes]), rtol=1e-12, atol=1e-14)


@parametrise("loss", LOSSES)
def test_the_gradient_is_the_limit_of_differences(loss: Loss) -> None:
    codes, eta = draw(loss)
    gradient = loss.gradient(codes, eta)
    for k in range(loss.n_scores):
        step = np.zeros_like(eta)
        step[:, k] = STEP
        difference = (loss.value(codes, eta + step) - loss.value(codes, eta - step)) / (2 * STEP)
        # The third derivative times STEP² / 6, and rounding of the values over STEP.
        np.testing.assert_allclose(gradient[:, k], difference, rtol=0, atol=1e-9 * unit(loss, codes, eta))


@parametrise("loss", LOSSES)
def test_curvature_pair_times_and_total_are_one_second_derivative(loss: Loss) -> None:
    codes, eta = draw(loss)
    curvature, m = loss.curvature(codes, eta), loss.n_scores
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(codes))
    table = np.empty((len(codes), m, m))
    for k in range(m):
        for l in range(m):  # noqa: E741  # names of the formulas
            table[:, k, l] = loss.pair(curvature, k, l)
        step = np.zeros_like(eta)
        step[:, k] = STEP
        difference = (loss.gradient(codes, eta + step) - loss.gradient(codes, eta - step)) / (2 * STEP)
        np.testing.assert_allclose(table[:, k], difference, rtol=0, atol=1e-9 * unit(loss, codes, eta))
    v = np.random.default_rng(2).standard_normal(eta.shape)
    np.testing.assert_allclose(loss.times(curvature, v), np.einsum("ikl,il->ik", table, v), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(loss.total(curvature, weights), np.einsum("i,ikl->kl", weights, table), rtol=1e-12)
    np.testing.assert_allclose(loss.total(curvature, None), table.sum(axis=0), rtol=1e-12, atol=1e-12)


@parametrise("loss", LOSSES)
def test_the_gradient_is_a_subgradient_also_at_kinks(loss: Loss) -> None:
    """ℓ(η') ≥ ℓ(η) + ℓ'(η)(η' − η): convexity with this slope, at margins −1, 0 and 1 exactly too."""
    rng = np.random.default_rng(3)
    for code in range(n_classes(loss)):
        eta = np.concatenate(
            [rng.integers(-2, 3, (200, loss.n_scores)) * 1.0, 3 * rng.standard_normal((200, loss.n_scores))]
        )
        codes, other = np.full(len(eta), code), rng.permutation(eta)
        slope = np.einsum("ij,ij->i", loss.gradient(codes, eta), other - eta)
        assert (loss.value(codes, other) >= loss.value(codes, eta) + slope - 1e-12).all()


@parametrise("loss", LOSSES)
def test_conjugate_and_loss_meet_at_the_gradient(loss: Loss) -> None:
    """Fenchel–Young: ℓ(η) + ℓ*(ℓ'(η)) = ηᵀℓ'(η)."""
    codes, eta = draw(loss, spread=3.0)
    a = loss.gradient(codes, eta)
    left = loss.value(codes, eta) + loss.conjugate(codes, a)
    np.testing.assert_allclose(left, np.einsum("ij,ij->i", eta, a), rtol=1e-12, atol=1e-12)


@parametrise("loss", LOSSES)
def test_fenchels_inequality_holds_everywhere(loss: Loss) -> None:
    codes, eta = draw(loss, seed=4)
    a = loss.gradient(codes, draw(loss, seed=5)[1]) * np.linspace(0.0, 1.0, len(codes))[:, None]
    bound = np.einsum("ij,ij->i", eta, a)
    assert (loss.value(codes, eta) + loss.conjugate(codes, a) >= bound - 1e-12 * (1 + np.abs(bound))).all()


@parametrise("loss", {name: loss for name, loss in MARGIN_LOSSES.items() if loss.convex})
@pytest.mark.parametrize("code", [0, 1])
def test_the_conjugate_of_a_margin_loss_is_a_supremum(loss: Loss, code: int) -> None:
    sign = 2.0 * code - 1.0
    for a in sign * np.array([-3.9, -1.5, -0.999, -0.7, -0.3, -1e-3, 0.0]):
        given = float(loss.conjugate(np.array([code]), np.array([[a]]))[0])
        # Ever finer grids around the best point; the kinks lie on the first one.
        centre, width, values = 0.0, 60.0, np.zeros(0)
        for _ in range(5):
            grid = centre + width * np.linspace(-1.0, 1.0, 4801)
            values = a * grid - loss.value(np.full(len(grid), code), grid[:, None])
            best = int(values.argmax())
            if best in (0, 4800) and values[best] > values[abs(best - 1)] + 1e-6:
                break
            centre, width = float(grid[best]), width / 1000
        else:
            # At a = 0 the supremum is a limit: log(1 + e⁻⁶⁰) is 1e-26.
            assert given == pytest.approx(float(values.max()), abs=1e-9)
            continue
        assert given == np.inf  # the rise has no end


@parametrise("loss", SOFTMAX)
def test_the_conjugate_of_the_softmax_is_a_supremum(loss: Softmax) -> None:
    rng = np.random.default_rng(6)
    for code in range(loss.n_classes):
        q = rng.dirichlet(np.ones(loss.n_classes))
        a = q - np.eye(loss.n_classes)[code]
        a = a if loss.baseline is None else np.delete(a, loss.baseline)
        codes = np.array([code])
        found = scipy.optimize.minimize(
            lambda eta, a=a, codes=codes: float(loss.value(codes, eta[None])[0]) - a @ eta,
            np.zeros(loss.n_scores),
            jac=lambda eta, a=a, codes=codes: loss.gradient(codes, eta[None])[0] - a,
            method="BFGS",
            options={"gtol": 1e-9},
        )
        assert float(loss.conjugate(codes, a[None])[0]) == pytest.approx(-found.fun, abs=1e-8)
        outside = a.copy()
        outside[0] += 2.5
        assert loss.conjugate(codes, outside[None])[0] == np.inf


@parametrise("loss", LOSSES)
def test_constants_of_a_loss_are_bounds(loss: Loss) -> None:
    """`steepest` bounds ∇²ℓ and `concordance` its relative change, over random scores and directions."""
    rng = np.random.default_rng(7)
    codes, eta = draw(loss, n=600, spread=3.0)
    u, v = rng.standard_normal((2, *eta.shape))

    def second(at: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", u, loss.times(loss.curvature(codes, at), u))

    if np.isfinite(loss.steepest):
        assert (second(eta) <= loss.steepest * np.square(u).sum(axis=1) * (1 + 1e-12)).all()
    if loss.concordance is not None:
        # Along a line ∇²ℓ changes at most by the factor e^{c‖v‖}.
        rate = loss.concordance * np.linalg.norm(v, axis=1)
        assert (second(eta + v) <= np.exp(rate) * second(eta) * (1 + 1e-10)).all()
        assert (second(eta + v) >= np.exp(-rate) * second(eta) * (1 - 1e-10)).all()


@parametrise("loss", LOSSES)
def test_losses_of_enormous_scores_are_numbers(loss: Loss) -> None:
    codes = np.arange(60) % n_classes(loss)
    eta = np.where(np.arange(60)[:, None] % 2, 1.0, -1.0) * np.logspace(2, 5, 60)[:, None] * np.ones(loss.n_scores)
    eta[:, 0] *= 0.5
    with np.errstate(all="raise", under="ignore"):
        value, gradient, curvature = loss.value(codes, eta), loss.gradient(codes, eta), loss.curvature(codes, eta)
    for result in (value, gradient, curvature):
        assert np.isfinite(result).all()
    assert (value >= 0).all()


def test_the_logistic_loss_is_accurate_where_it_is_tiny() -> None:
    eta = np.array([[40.0], [100.0], [700.0]])
    np.testing.assert_allclose(Logistic().value(np.ones(3, dtype=int), eta), np.exp(-eta[:, 0]), rtol=1e-14)
    np.testing.assert_allclose(Logistic().gradient(np.ones(3, dtype=int), eta)[:, 0], -np.exp(-eta[:, 0]), rtol=1e-14)


def test_losses_do_not_change_what_they_are_given() -> None:
    for loss in LOSSES.values():
        codes, eta = draw(loss)
        before = codes.copy(), eta.copy()
        curvature = loss.curvature(codes, eta)
        kept = curvature.copy()
        loss.value(codes, eta), loss.gradient(codes, eta), loss.times(curvature, eta), loss.total(curvature, None)
        a = loss.gradient(codes, eta)
        given = a.copy()
        loss.conjugate(codes, a)
        for one, two in ((codes, before[0]), (eta, before[1]), (curvature, kept), (a, given)):
            np.testing.assert_array_equal(one, two)


# -- penalties --------------------------------------------------------------------------------------------------------


def positive_definite(size: int, seed: int = 0) -> np.ndarray:
    root = np.random.default_rng(seed).standard_normal((size, size))
    return root @ root.T + np.eye(size)


SHAPE = (2, 4)


def penalties() -> dict[str, Penalty]:
    rng = np.random.default_rng(8)
    none, ones = Penalty.none(SHAPE), np.ones(SHAPE)
    q, l, mean = rng.uniform(0.5, 2.0, (3, *SHAPE))  # noqa: E741  # names of the formulas
    return {
        "l2": replace(none, quadratic=q),
        "l2 with a mean": replace(none, quadratic=q, mean=mean - 1.0),
        "l1": replace(none, absolute=l),
        "elastic net": replace(none, quadratic=q, absolute=l),
        "elastic net with a mean": replace(none, quadratic=q, absolute=l, mean=mean),
        "box": replace(none, low=-mean, high=l),
        "l2 in a box": replace(none, quadratic=q, low=-0.2 * ones, high=0.7 * ones),
        "l2 in a box away from 0": replace(none, quadratic=q, low=0.5 * ones, high=0.7 * ones),
        "l1 below a bound": replace(none, absolute=l, high=0.3 * ones),
        "elastic net above a bound": replace(none, quadratic=q, absolute=l, low=-0.1 * ones, mean=mean),
        "matrix": replace(none, matrix=positive_definite(8), mean=mean),
    }


PENALTIES = penalties()


def direct(penalty: Penalty, theta: np.ndarray) -> float:
    """P by its definition, infinite outside the bounds."""
    if (theta < penalty.low).any() or (theta > penalty.high).any():
        return np.inf
    gone = (theta - penalty.mean).ravel()
    Q = np.diag(penalty.quadratic.ravel()) if penalty.matrix is None else penalty.matrix
    return float(0.5 * gone @ Q @ gone + (penalty.absolute * np.abs(theta)).sum())


def feasible(penalty: Penalty, seed: int = 9) -> np.ndarray:
    return np.clip(np.random.default_rng(seed).standard_normal(SHAPE), penalty.low, penalty.high)


@parametrise("penalty", PENALTIES)
def test_penalty_value_gradient_and_hessian(penalty: Penalty) -> None:
    theta = feasible(penalty)
    assert penalty.value(theta) == pytest.approx(direct(penalty, theta), rel=1e-12)
    smooth = replace(penalty, absolute=np.zeros(SHAPE), low=np.full(SHAPE, -np.inf), high=np.full(SHAPE, np.inf))
    assert penalty.smooth_value(theta) == pytest.approx(direct(smooth, theta), rel=1e-12)
    gradient, hessian = penalty.gradient(theta), penalty.add_hessian(np.zeros((8, 8)))
    for j in range(8):
        step = np.zeros(8)
        step[j] = 1e-3
        step = step.reshape(SHAPE)
        difference = (smooth.value(theta + step) - smooth.value(theta - step)) / 2e-3  # exact for a quadratic
        assert gradient.flat[j] == pytest.approx(difference, abs=1e-10)
        np.testing.assert_allclose(
            hessian[:, j], (penalty.gradient(theta + step) - gradient).ravel() / 1e-3, atol=1e-10
        )
    v = np.random.default_rng(10).standard_normal(SHAPE)
    np.testing.assert_allclose(penalty.times(v).ravel(), hessian @ v.ravel(), rtol=1e-12)


@parametrise("penalty", PENALTIES)
def test_the_conjugate_of_a_penalty_is_a_supremum(penalty: Penalty) -> None:
    """Against L-BFGS-B on positive and negative parts, where |θ| is linear."""
    for seed in range(2):
        v = (
            0.9
            * np.random.default_rng(seed).uniform(-1.0, 1.0, SHAPE)
            * np.where((penalty.quadratic == 0) & (penalty.absolute > 0), penalty.absolute, 1.0)
        )
        if penalty.matrix is not None or (penalty.quadratic > 0).all():
            v = 3.0 * v

        def fall(parts: np.ndarray, v: np.ndarray = v) -> tuple[float, np.ndarray]:
            up, down = parts.reshape(2, *SHAPE)
            theta = up - down
            slope = penalty.gradient(theta) - v
            value = penalty.smooth_value(theta) + float((penalty.absolute * (up + down) - v * theta).sum())
            return value, np.stack([slope + penalty.absolute, penalty.absolute - slope]).ravel()

        low = np.stack([np.maximum(penalty.low, 0.0), np.maximum(-penalty.high, 0.0)])
        high = np.stack([np.maximum(penalty.high, 0.0), np.maximum(-penalty.low, 0.0)])
        found = scipy.optimize.minimize(
            fall,
            np.clip(np.ones((2, *SHAPE)), low, high).ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low.ravel(), high.ravel(), strict=True)),
            options={"ftol": 1e-15, "gtol": 1e-11, "maxiter": 5000},
        )
        assert penalty.conjugate(v) == pytest.approx(-found.fun, rel=1e-8, abs=1e-9)


@parametrise("penalty", PENALTIES)
def test_penalties_meet_their_conjugates_and_never_cross_them(penalty: Penalty) -> None:
    rng = np.random.default_rng(11)
    theta = feasible(penalty)
    theta[0, 0] = np.clip(0.0, penalty.low[0, 0], penalty.high[0, 0])
    slope = penalty.gradient(theta) + penalty.absolute * np.sign(theta)
    assert penalty.value(theta) + penalty.conjugate(slope) == pytest.approx(float((slope * theta).sum()), abs=1e-10)
    for _ in range(20):
        v, other = rng.standard_normal(SHAPE), feasible(penalty, int(rng.integers(1000)))
        assert penalty.value(other) + penalty.conjugate(v) >= float((v * other).sum()) - 1e-10


def test_a_coefficient_that_nothing_holds_back_has_an_infinite_conjugate() -> None:
    free = Penalty.none(SHAPE)
    assert free.conjugate(np.zeros(SHAPE)) == 0.0
    v = np.zeros(SHAPE)
    v[1, 2] = 1e-3
    assert free.conjugate(v) == np.inf
    assert replace(free, absolute=np.full(SHAPE, 1e-4)).conjugate(v) == np.inf
    assert replace(free, low=np.zeros(SHAPE)).conjugate(v) == np.inf
    assert replace(free, low=np.zeros(SHAPE)).conjugate(-v) == 0.0
    assert replace(free, high=np.full(SHAPE, 2.0)).conjugate(v) == pytest.approx(2e-3)
    matrix = np.diag([1.0, 1, 1, 0, 1, 1, 1, 0])
    at_the_intercept = np.zeros(SHAPE)
    at_the_intercept[0, 3] = 1.0
    assert replace(free, matrix=matrix).conjugate(v) < np.inf
    assert replace(free, matrix=matrix).conjugate(at_the_intercept) == np.inf


@parametrise("penalty", PENALTIES)
def test_the_residual_is_the_least_subgradient(penalty: Penalty) -> None:
    """Against the distance of 0 from the interval of subgradients, coordinate by coordinate."""
    theta = feasible(penalty)
    theta[1] = np.clip(0.0, penalty.low[1], penalty.high[1])
    theta[0, 3], theta[0, 2] = np.clip(5.0, None, penalty.high[0, 3]), np.clip(-5.0, penalty.low[0, 2], None)
    gradient = 2 * np.random.default_rng(12).standard_normal(SHAPE)
    residual = penalty.residual(theta, gradient)
    for at in np.ndindex(*SHAPE):
        value, l = theta[at], penalty.absolute[at]  # noqa: E741  # name of the formula
        lowest = gradient[at] + (l if value > 0 else -l)
        highest = gradient[at] + (-l if value < 0 else l)
        if value <= penalty.low[at]:
            lowest = -np.inf  # the normal cone of a lower bound
        if value >= penalty.high[at]:
            highest = np.inf
        wanted = lowest if lowest > 0 else highest if highest < 0 else 0.0
        assert residual[at] == pytest.approx(wanted, abs=1e-14), at


@parametrise("penalty", PENALTIES)
def test_rescaled_and_scaled_penalties(penalty: Penalty) -> None:
    """P_rescaled(θ·s) = P(θ), with gradient, bounds and conjugate to match."""
    scale, theta = np.array([0.01, 0.5, 3.0, 1000.0]), feasible(penalty)
    seen = penalty.rescaled(scale)
    assert seen.value(theta * scale) == pytest.approx(penalty.value(theta), rel=1e-12)
    np.testing.assert_allclose(seen.gradient(theta * scale), penalty.gradient(theta) / scale, rtol=1e-11)
    np.testing.assert_allclose(seen.low, penalty.low * scale)
    np.testing.assert_allclose(seen.high, penalty.high * scale)
    v = 0.3 * np.random.default_rng(13).uniform(-1, 1, SHAPE)
    assert seen.conjugate(v / scale) == pytest.approx(penalty.conjugate(v), rel=1e-9)
    third = penalty.scaled(1 / 3)
    assert third.value(theta) == pytest.approx(penalty.value(theta) / 3, rel=1e-12)
    np.testing.assert_allclose(third.gradient(theta), penalty.gradient(theta) / 3, rtol=1e-12)


def test_rescaling_without_a_matrix_takes_memory_of_the_size_of_theta() -> None:
    penalty = replace(Penalty.none((1, 3000)), quadratic=np.ones((1, 3000)))
    tracemalloc.start()
    try:
        penalty.rescaled(np.full(3000, 2.0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * 8 * 3000


@pytest.mark.parametrize("C", [1e-3, 1.0, 50.0, np.inf])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_scikit_learns_strengths(C: float, ratio: float) -> None:
    factors = np.array([[1.0, 2.0, 0.5, 0.0]])
    theta = np.array([[1.5, -2.0, 0.25, 9.0]])
    penalty = Penalty.of_scikit_learn(C, ratio, factors)
    wanted = (factors * ((1 - ratio) / 2 * theta**2 + ratio * np.abs(theta))).sum() / C
    assert penalty.value(theta) == pytest.approx(wanted, rel=1e-14)
    assert penalty.smooth is (ratio == 0 or bool(np.isinf(C)))
    np.testing.assert_array_equal(penalty.free, (factors == 0) | np.isinf(C))


# -- the linear objective ---------------------------------------------------------------------------------------------


N, D = 90, 4


def rows() -> np.ndarray:
    rng = np.random.default_rng(14)
    X = rng.integers(-3, 4, (N, D)) * 1.0  # exact as int and float32, and sparse enough
    X[:, 2] = np.where(rng.random(N) < 0.7, 0.0, X[:, 2])
    X[5] = 0.0
    return X


X = rows()
CENTRE, SCALE = np.array([0.5, -2.0, 0.0, 1.0]), np.array([2.0, 0.5, 1.0, 4.0])
Storage = Callable[[np.ndarray, Any, Any], Source]
STORAGES: dict[str, Storage] = {
    "dense C": lambda X, y, w: as_source(X, y, w),
    "dense F": lambda X, y, w: as_source(np.asfortranarray(X), y, w),
    "float32": lambda X, y, w: as_source(X.astype(np.float32), y, w),
    "int": lambda X, y, w: as_source(np.nan_to_num(X, nan=99).astype(np.int32), y, w),
    "sparse": lambda X, y, w: as_source(sp.csr_array(X), y, w),
    "pandas": lambda X, y, w: as_source(pd.DataFrame(X, columns=list("abcd")), y, w),
    "intercept": lambda X, y, w: Intercept(as_source(X, y, w)),
    "sparse intercept": lambda X, y, w: Intercept(as_source(sp.csr_array(X), y, w)),
    "standardised": lambda X, y, w: Standardised(as_source(X, y, w), CENTRE, SCALE),
    "sparse standardised": lambda X, y, w: Intercept(Standardised(as_source(sp.csr_array(X), y, w), CENTRE, SCALE)),
    "reweighted": lambda X, y, w: Intercept(Reweighted(as_source(X, y, w).labelled(), np.ones(9))),
}
SCORES = {"two classes": Logistic(), "three classes": Softmax(3), "baseline": Softmax(3, 1)}


def seen(storage: str, X: np.ndarray) -> np.ndarray:
    """The dense rows of a view."""
    if "standardised" in storage:
        X = (X - CENTRE) / SCALE
    ones = "intercept" in storage or storage in ("sparse standardised", "reweighted")
    return np.column_stack([X, np.ones(len(X))]) if ones else X


def some_penalty(shape: tuple[int, int], kind: str) -> Penalty:
    rng = np.random.default_rng(15)
    if kind == "matrix":
        size = shape[0] * shape[1]
        return replace(Penalty.none(shape), matrix=positive_definite(size), mean=rng.standard_normal(shape))
    q, l, mean = rng.uniform(0.1, 1.0, (3, *shape))  # noqa: E741  # names of the formulas
    return replace(Penalty.none(shape), quadratic=q, absolute=l, mean=mean)


def dense_formulas(
    objective: LinearObjective, theta: np.ndarray, Z: np.ndarray, codes: np.ndarray, s: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """F, ∇F, ∇²F and the scores, row by row, with a softmax of its own."""
    loss, penalty, (m, p) = objective.loss, objective.penalty, theta.shape
    eta = Z @ theta.T
    if objective.offset is not None:
        eta = eta + objective.offset.reshape(len(Z), -1)
    baseline = 0 if isinstance(loss, Logistic) else loss.baseline  # type: ignore[attr-defined]
    scores = eta if baseline is None else np.insert(eta, baseline, 0.0, axis=1)
    kept = [k for k in range(scores.shape[1]) if k != baseline]
    value, gradient, hessian = 0.0, np.zeros((m, p)), np.zeros((m * p, m * p))
    for z, score, y, weight in zip(Z, scores, codes, s, strict=True):
        if weight == 0:
            continue
        probability = np.exp(score - np.logaddexp.reduce(score))
        value -= weight * np.log(probability[y])
        q = probability[kept]
        gradient += weight * np.outer(q - np.eye(len(score))[y][kept], z)
        hessian += weight * np.kron(np.diag(q) - np.outer(q, q), np.outer(z, z))
    gone = (theta - penalty.mean).ravel()
    Q = np.diag(penalty.quadratic.ravel()) if penalty.matrix is None else penalty.matrix
    value += 0.5 * gone @ Q @ gone + (penalty.absolute * np.abs(theta)).sum()
    return value, gradient + (Q @ gone).reshape(m, p), hessian + Q, eta


def make(storage: str, loss: Loss, weighted: bool, shifted: bool, X: np.ndarray = X) -> tuple[Source, Any, Any, Any]:
    rng = np.random.default_rng(16)
    codes = np.arange(N) % n_classes(loss)
    s = np.where(rng.random(N) < 0.25, 0.0, rng.uniform(0.2, 2.0, N)) if weighted else None
    offset = None
    if shifted:
        offset = rng.standard_normal(N) if loss.n_scores == 1 else rng.standard_normal((N, loss.n_scores))
    source = STORAGES[storage](X, codes, s)
    return (source if source.classes is not None else source.labelled()), codes, s, offset


@pytest.fixture(params=[1, 7], ids=["one block", "many blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The same rows in one block, and in blocks of 16 rows."""
    if request.param > 1:
        for room in ("source", "arrays", "frames", "views"):
            module = __import__(f"separatrix.data.{room}", fromlist=["x"])
            if hasattr(module, "rows_per_block"):
                monkeypatch.setattr(module, "rows_per_block", lambda *_, **__: 16)
    yield request.param


@pytest.mark.parametrize("shifted", [False, True], ids=["", "offset"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@parametrise("loss", SCORES)
@pytest.mark.parametrize("storage", list(STORAGES))
@pytest.mark.usefixtures("blocks")
def test_the_objective_is_what_it_says(storage: str, loss: Loss, weighted: bool, shifted: bool) -> None:
    source, codes, s, offset = make(storage, loss, weighted, shifted)
    Z, rng = seen(storage, X), np.random.default_rng(17)
    theta = 0.4 * rng.standard_normal((loss.n_scores, Z.shape[1]))
    objective = LinearObjective(loss, some_penalty(theta.shape, "elastic"), offset)
    value, gradient, hessian, _ = dense_formulas(objective, theta, Z, codes, np.ones(N) if s is None else s)
    metric = rng.uniform(0.5, 2.0, Z.shape[1])
    found = objective.evaluate(theta, source, 2, metric=metric, keep=True)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.loss == pytest.approx(value - objective.penalty.value(theta), rel=1e-12)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-11, atol=1e-11)
    assert found.hessian is not None
    np.testing.assert_allclose(found.hessian, hessian, rtol=1e-11, atol=1e-10)
    np.testing.assert_array_equal(found.hessian, found.hessian.T)
    counted = np.ones(N, dtype=bool) if s is None else s > 0
    assert found.largest_row >= (np.square(Z[counted]) @ metric).max() * (1 - 1e-12)
    assert found.total == pytest.approx(N if s is None else s.sum(), rel=1e-12)
    first = objective.evaluate(theta, source, 1, keep=True)
    assert first.value == pytest.approx(value, rel=1e-12)
    assert first.hessian is None
    direction = rng.standard_normal(theta.shape)
    for evaluation in (found, first):
        assert evaluation.times is not None
        np.testing.assert_allclose(
            evaluation.times(direction).ravel(), hessian @ direction.ravel(), rtol=1e-10, atol=1e-9
        )
    # Some of the columns alone.
    which = np.array([0, 2, Z.shape[1] - 1])
    at = (np.arange(len(theta))[:, None] * Z.shape[1] + which).ravel()
    part = objective.evaluate(theta, source, 2, columns=which)
    assert part.hessian is not None
    np.testing.assert_allclose(part.hessian, hessian[np.ix_(at, at)], rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(part.gradient, gradient, rtol=1e-11, atol=1e-11)


def dual(objective: LinearObjective, theta: Any, shift: Any, source: Any) -> tuple[float, Any]:
    """Σ s (ℓ*(a) − aᵀo) and Σ s a xᵀ over all classes."""
    point = dual_point(objective, source, theta, shift, None)
    return float(point.conjugates.sum()), point.products.sum(axis=0)


@pytest.mark.parametrize("shifted", [False, True], ids=["", "offset"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@parametrise("loss", SCORES)
@pytest.mark.parametrize("storage", ["dense C", "sparse", "pandas", "intercept", "sparse standardised"])
@pytest.mark.usefixtures("blocks")
def test_the_dual_point_is_the_gradient_moved_by_the_shift(
    storage: str, loss: Loss, weighted: bool, shifted: bool
) -> None:
    """At shift 0: Σ s(ℓ*(a) − aᵀo) = Σ s(aᵀθx − ℓ), by Fenchel–Young. With any shift: a bound on every F."""
    source, codes, s, offset = make(storage, loss, weighted, shifted)
    s, Z, rng = np.ones(N) if s is None else s, seen(storage, X), np.random.default_rng(18)
    theta = 0.3 * rng.standard_normal((loss.n_scores, Z.shape[1]))
    objective = LinearObjective(loss, Penalty.none(theta.shape), offset)
    value, gradient, _, _ = dense_formulas(objective, theta, Z, codes, s)
    value_of_dual, product = dual(objective, theta, np.zeros(loss.n_scores), source)
    np.testing.assert_allclose(product, gradient, rtol=1e-10, atol=1e-10)
    assert value_of_dual == pytest.approx(float((product * theta).sum()) - value, rel=1e-10, abs=1e-9)
    shift = 0.05 * rng.standard_normal(loss.n_scores)
    value_of_dual, product = dual(objective, theta, shift, source)
    # ∇²F applied to a shift of the scores: one more column of ones in x, of coefficient −shift.
    wide = np.column_stack([Z, np.ones(N)])
    moved = np.concatenate([np.zeros_like(theta), -shift[:, None]], axis=1)
    longer = LinearObjective(loss, Penalty.none(moved.shape), offset)
    second = dense_formulas(longer, np.concatenate([theta, np.zeros((len(theta), 1))], axis=1), wide, codes, s)[2]
    change = (second @ moved.ravel()).reshape(moved.shape)[:, :-1]
    np.testing.assert_allclose(product, gradient + change, rtol=1e-9, atol=1e-9)
    # F(φ) ≥ −dual + ⟨product, φ⟩ for every φ: the lower bound on which the certificates rest.
    for _ in range(5):
        other = theta + 0.2 * rng.standard_normal(theta.shape)
        value = dense_formulas(objective, other, Z, codes, s)[0]
        assert value >= -value_of_dual + float((product * other).sum()) - 1e-9


@parametrise("loss", SCORES)
def test_a_full_prior_enters_the_objective(loss: Loss) -> None:
    source, codes, _, offset = make("dense C", loss, False, True)
    theta = 0.3 * np.random.default_rng(19).standard_normal((loss.n_scores, D))
    objective = LinearObjective(loss, some_penalty(theta.shape, "matrix"), offset)
    value, gradient, hessian, _ = dense_formulas(objective, theta, X, codes, np.ones(N))
    found = objective.evaluate(theta, source, 2, keep=True)
    assert found.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-11)
    assert found.hessian is not None and found.times is not None
    np.testing.assert_allclose(found.hessian, hessian, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.times(theta).ravel(), hessian @ theta.ravel(), rtol=1e-10, atol=1e-10)


@parametrise("loss", SMOOTH)
def test_gradients_and_hessians_of_every_loss_are_limits_of_differences(loss: Loss) -> None:
    codes = np.arange(N) % n_classes(loss)
    rng = np.random.default_rng(20)
    theta = 0.137 * rng.standard_normal((loss.n_scores, D))
    objective = LinearObjective(loss, some_penalty(theta.shape, "elastic"))
    source = as_source(X + 0.01 * rng.standard_normal(X.shape), codes).labelled()
    found = objective.evaluate(theta, source, 2)
    assert found.hessian is not None
    for j in range(theta.size):
        step = np.zeros(theta.size)
        step[j] = 1e-6
        up, down = (objective.evaluate(theta + sign * step.reshape(theta.shape), source, 1) for sign in (1, -1))
        slope = (up.value - down.value) / 2e-6
        own = found.gradient.flat[j] + objective.penalty.absolute.flat[j] * np.sign(theta.flat[j])
        assert own == pytest.approx(slope, abs=1e-6 * (1 + abs(slope)))
        # A squared hinge changes its second derivative where a row crosses the margin: none does within 1e-6 here.
        bend = (up.gradient - down.gradient).ravel() / 2e-6
        np.testing.assert_allclose(found.hessian[j], bend, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("storage", ["dense C", "sparse", "intercept", "pandas", "sparse standardised"])
@parametrise("loss", {"two classes": Logistic(), "three classes": Softmax(3)})
def test_any_number_of_threads_gives_the_same_bits(storage: str, loss: Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.data.source._TARGET_BYTES", 1 << 16)
    monkeypatch.setattr("separatrix.data.arrays._WORTH_SHARING", 1)
    rng = np.random.default_rng(21)
    n = 30_000
    rows, codes = rng.standard_normal((n, D)), np.arange(n) % n_classes(loss)
    source = STORAGES[storage](rows, codes, rng.uniform(0, 2, n)).labelled()
    assert len(list(source.blocks())) > 3
    theta = rng.standard_normal((loss.n_scores, source.n_features))
    objective = LinearObjective(loss, some_penalty(theta.shape, "elastic"))
    results = []
    for threads in (1, 2, 8):
        with separatrix.config(threads=threads):
            found = objective.evaluate(theta, source, 2, metric=np.ones(source.n_features), keep=True)
            assert found.times is not None
            value_of_dual, product = dual(objective, theta, np.full(loss.n_scores, 1e-3), source)
            results.append(
                [
                    found.value,
                    found.gradient,
                    found.hessian,
                    found.times(theta),
                    found.largest_row,
                    value_of_dual,
                    product,
                ]
            )
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("storage", [name for name in STORAGES if name != "int"])
@pytest.mark.parametrize("shifted", [False, True], ids=["", "offset"])
@parametrise("loss", SCORES)
def test_rows_of_weight_zero_may_hold_anything(storage: str, shifted: bool, loss: Loss) -> None:
    source, codes, s, offset = make(storage, loss, True, shifted)
    dirty = X.copy()
    dirty[s == 0, 1], dirty[s == 0, 3] = np.nan, np.inf
    other = STORAGES[storage](dirty, codes, s)
    other = other if other.classes is not None else other.labelled()
    theta = 0.3 * np.random.default_rng(22).standard_normal((loss.n_scores, source.n_features))
    objective = LinearObjective(loss, some_penalty(theta.shape, "elastic"), offset)
    kept = s > 0
    clean = STORAGES[storage](X[kept], codes[kept], s[kept])
    clean = clean if clean.classes is not None else clean.labelled()
    part = replace(objective, offset=None if offset is None else offset[kept])
    metric = np.ones(source.n_features)
    want = part.evaluate(theta, clean, 2, metric=metric, keep=True)
    shift = np.full(loss.n_scores, 0.01)
    for given in (source, other):
        found = objective.evaluate(theta, given, 2, metric=metric, keep=True)
        assert found.value == pytest.approx(want.value, rel=1e-12)
        np.testing.assert_allclose(found.gradient, want.gradient, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found.hessian, want.hessian, rtol=1e-10, atol=1e-10)
        assert found.times is not None and want.times is not None
        np.testing.assert_allclose(found.times(theta), want.times(theta), rtol=1e-10, atol=1e-10)
        assert found.largest_row == pytest.approx(want.largest_row, rel=1e-12)
        value_of_dual, product = dual(objective, theta, shift, given)
        wanted, cross = dual(part, theta, shift, clean)
        assert value_of_dual == pytest.approx(wanted, rel=1e-10)
        np.testing.assert_allclose(product, cross, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("storage", list(STORAGES))
def test_nothing_that_is_given_is_changed(storage: str) -> None:
    loss = Softmax(3)
    rows = X.copy()
    source, codes, s, offset = make(storage, loss, True, False, rows)
    theta = 0.3 * np.random.default_rng(23).standard_normal((3, source.n_features))
    objective = LinearObjective(loss, some_penalty(theta.shape, "elastic"), offset)
    before = [a.copy() for a in (rows, codes, s, theta, objective.penalty.quadratic)]
    found = objective.evaluate(theta, source, 2, keep=True)
    assert found.times is not None and found.hessian is not None
    hessian = found.hessian.copy()
    found.times(theta)
    dual(objective, theta, np.zeros(3), source)
    for one, two in zip(
        (rows, codes, s, theta, objective.penalty.quadratic, found.hessian), [*before, hessian], strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_nan_is_reported_by_its_column() -> None:
    rows = X.copy()
    rows[7, 2] = np.nan
    source = as_source(rows, np.arange(N) % 2).labelled()
    with pytest.raises(ValueError, match=r"column 2 has 1 such row \(first: row 7\)"):
        LinearObjective(Logistic(), Penalty.none((1, D))).evaluate(np.zeros((1, D)), source)


@pytest.mark.parametrize("shifted", [False, True], ids=["", "offset"])
def test_a_restricted_objective_is_the_objective_of_those_rows(shifted: bool) -> None:
    source, codes, s, offset = make("dense C", Logistic(), True, shifted)
    drawn = source.sample(40)
    assert drawn is not None
    sample, which = drawn
    theta = 0.3 * np.random.default_rng(24).standard_normal((1, D))
    objective = LinearObjective(Logistic(), some_penalty((1, D), "elastic"), offset)
    part = replace(objective.restricted(which), penalty=objective.penalty.scaled(0.5))
    whole = LinearObjective(Logistic(), Penalty.none((1, D)), None if offset is None else offset[which])
    value = dense_formulas(whole, theta, X[which], codes[which], s[which])[0]
    assert part.evaluate(theta, sample).value == pytest.approx(value + 0.5 * objective.penalty.value(theta), rel=1e-12)


@pytest.mark.parametrize("classes", [2, 4, 25])  # the last by products of matrices, a few rows at a time
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled_passes_are_the_definition(monkeypatch, classes, intercept, weighted, shifted, dtype):
    rng = np.random.default_rng(classes)
    n, d = 700 if classes < 20 else 2500, 5
    X = rng.standard_normal((n, d)).astype(dtype)
    y = rng.integers(0, classes, n)
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    m, p = (1 if classes == 2 else classes), d + intercept
    offset = rng.standard_normal((n,) if m == 1 else (n, m)) if shifted else None
    loss = Logistic() if m == 1 else Softmax(classes)
    objective = LinearObjective(loss, Penalty.of_scikit_learn(0.5, 0.0, np.ones((m, p))), offset)
    theta, direction = 3.0 * rng.standard_normal((m, p)), rng.standard_normal((m, p))
    metric = rng.random(p) if m == 1 else None
    results = []
    for least in (0, np.inf):
        monkeypatch.setattr(fused, "_WORTH_COMPILING", least)
        source = as_source(X, y, weights).labelled()
        source = Intercept(source) if intercept else source
        plain, kept = objective.evaluate(theta, source, 1, metric), objective.evaluate(theta, source, 1, keep=True)
        results.append((plain, kept, kept.times(direction)))
    (one, first, product), (two, second, expected) = results
    for a, b in ((one, two), (first, second)):
        np.testing.assert_allclose(
            [a.value, a.loss, a.residual, a.total], [b.value, b.loss, b.residual, b.total], rtol=1e-12
        )
        np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-11, atol=1e-10)
        np.testing.assert_allclose(a.steepest, b.steepest, rtol=1e-12)
    np.testing.assert_allclose(one.largest_row, two.largest_row, rtol=1e-12)
    # The compiled softmax keeps posteriors in single precision: they serve steps, not values, gradients or proofs.
    kept = 1e-11 if m == 1 else 4 * np.finfo(np.float32).eps
    size = np.abs(second.total_curvature).max()
    np.testing.assert_allclose(first.total_curvature, second.total_curvature, rtol=kept, atol=kept * size)
    np.testing.assert_allclose(product, expected, rtol=kept, atol=kept * np.abs(expected).max())


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled_passes_over_sparse_rows_are_the_definition(monkeypatch, classes, intercept, weighted, shifted, dtype):
    rng = np.random.default_rng(classes)
    n, d = 700, 40
    X = sp.random_array((n, d), density=0.1, format="csr", rng=rng, data_sampler=rng.standard_normal).astype(dtype)
    y = rng.integers(0, classes, n)
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    m, p = (1 if classes == 2 else classes), d + intercept
    offset = rng.standard_normal((n,) if m == 1 else (n, m)) if shifted else None
    loss = Logistic() if m == 1 else Softmax(classes)
    objective = LinearObjective(loss, Penalty.of_scikit_learn(0.5, 0.0, np.ones((m, p))), offset)
    theta, direction = 3.0 * rng.standard_normal((m, p)), rng.standard_normal((m, p))
    monkeypatch.setattr(fused, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(fused, "_MANY_COLUMNS", 10)
    results = []
    for least in (0, np.inf):
        monkeypatch.setattr(fused, "_ENTRIES", least)
        monkeypatch.setattr("separatrix.data.sparse._CURVED_FROM", least)
        source = as_source(X, y, weights).labelled()
        source = Intercept(source) if intercept else source
        squares = column_squares(source)
        for keep in (False, True):
            found = objective.evaluate(theta, source, 1, keep=keep)
            results.append((found, found.times(direction) if found.times else None, squares))
    for (a, product, some), (b, expected, same) in zip(results[:2], results[2:], strict=True):
        np.testing.assert_allclose(
            [a.value, a.loss, a.residual, a.total], [b.value, b.loss, b.residual, b.total], rtol=1e-12
        )
        np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-11, atol=1e-10)
        np.testing.assert_allclose([a.steepest], [b.steepest], rtol=1e-12)
        np.testing.assert_allclose(some, same, rtol=1e-5 if dtype is np.float32 else 1e-12)
        if product is not None:
            kept = 1e-11 if m == 1 else 8 * np.finfo(np.float32).eps
            size = np.abs(b.total_curvature).max()
            np.testing.assert_allclose(a.total_curvature, b.total_curvature, rtol=kept, atol=kept * size)
            np.testing.assert_allclose(product, expected, rtol=kept, atol=kept * np.abs(expected).max())


def test_compiled_passes_have_no_overflow_and_no_cancellation(monkeypatch):
    monkeypatch.setattr(fused, "_WORTH_COMPILING", 0)
    X, y = np.array([[800.0], [-800.0], [40.0], [-40.0]]), np.array([1, 0, 0, 1])
    objective = LinearObjective(Logistic(), Penalty.none((1, 1)))
    found = objective.evaluate(np.ones((1, 1)), as_source(X, y).labelled(), 1)
    np.testing.assert_allclose(found.loss, 80.0, rtol=1e-15)
    np.testing.assert_allclose(found.gradient, [[80.0]], rtol=1e-15)
    monkeypatch.setattr(fused, "_ENTRIES", 0)
    sparse = objective.evaluate(np.ones((1, 1)), as_source(sp.csr_array(X), y).labelled(), 1)
    np.testing.assert_allclose([sparse.loss, *sparse.gradient[0]], [80.0, 80.0], rtol=1e-15)
