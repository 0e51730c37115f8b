"""Losses of the margin as objects, side by side, and what a loss that is not convex means for a fit."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.base import clone

from separatrix import LinearClassifier, SeparationWarning, Status
from separatrix.objectives import MARGIN_LOSSES, Exponential, ZeroOne
from separatrix.plots import MarginLossDisplay

mpl.use("Agg")

MARGINS = np.linspace(-4.03, 4.0, 173)  # away from the kinks at −1, 0 and 1
AWAY = np.abs(np.abs(MARGINS) - np.round(np.abs(MARGINS))) > 1e-4


@pytest.mark.parametrize("name", ["zero_one", *MARGIN_LOSSES])
def test_derivatives_are_limits_of_differences(name: str) -> None:
    loss, m, step = ZeroOne() if name == "zero_one" else MARGIN_LOSSES[name], MARGINS[AWAY], 1e-5
    unit = np.exp(-m) if name == "exponential" else 1.0
    slopes = (loss.loss(m + step) - loss.loss(m - step)) / (2 * step)
    assert (np.abs(slopes - loss.derivative(m)) <= 2e-9 * unit).all()
    bends = (loss.derivative(m + step) - loss.derivative(m - step)) / (2 * step)
    assert (np.abs(bends - loss.second_derivative(m)) <= 2e-9 * unit).all()
    assert np.array_equal(loss.loss(m), loss.value(np.ones(len(m), dtype=int), m[:, None]))
    assert np.ndim(loss.loss(0.3)) == 0


def test_losses_bound_the_misclassification() -> None:
    wrong = ZeroOne().loss(MARGINS)
    assert set(wrong) == {0.0, 1.0} and ZeroOne().loss(0.0) == 1.0
    for name in ("hinge", "squared_hinge", "huberised", "exponential"):
        assert (MARGIN_LOSSES[name].loss(MARGINS) >= wrong).all(), name
    assert (MARGIN_LOSSES["logistic"].loss(MARGINS) >= wrong * np.log(2.0)).all()


def test_cross_entropy_is_convex_where_the_squared_error_is_not() -> None:
    """At w = (−3, 0) most rows are wrong by far: Xᵀdiag(ℓ'')X of the one is positive definite, of the other not."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    signs = np.where(X[:, 0] + 0.3 * rng.standard_normal(40) > 0, 1.0, -1.0)
    w = np.array([-3.0, 0.0])

    def hessian(name: str) -> Any:
        """By differences of the sums themselves, not of our derivatives."""

        def F(v: Any) -> float:
            return float(MARGIN_LOSSES[name].loss(signs * (X @ v)).sum())

        h, E = 1e-3, np.eye(2)
        return np.array(
            [
                [
                    (F(w + h * a + h * b) - F(w + h * a - h * b) - F(w - h * a + h * b) + F(w - h * a - h * b))
                    / (4 * h * h)
                    for a in E
                ]
                for b in E
            ]
        )

    convex, other = np.linalg.eigvalsh(hessian("logistic")), np.linalg.eigvalsh(hessian("sigmoid_squared"))
    assert convex[0] > 0.1 and other[0] < -0.1
    bends = {name: MARGIN_LOSSES[name].second_derivative(signs * (X @ w)) for name in ("logistic", "sigmoid_squared")}
    for name, values in (("logistic", convex), ("sigmoid_squared", other)):
        assert np.allclose(np.linalg.eigvalsh((X * bends[name][:, None]).T @ X), values, rtol=1e-4, atol=1e-4)
    assert (MARGIN_LOSSES["logistic"].second_derivative(MARGINS) > 0).all()
    assert (MARGIN_LOSSES["sigmoid_squared"].curvature(np.ones(173, dtype=int), MARGINS[:, None]) >= 0).all()


def two_valleys() -> tuple[Any, Any]:
    """A row far out of one class, and four near of the other that want the opposite sign of w."""
    return np.array([[10.0], [1.0], [1.0], [1.0], [1.0]]), np.array([1, 0, 0, 0, 0])


def test_several_starts_find_the_lowest_of_several_valleys() -> None:
    X, y = two_valleys()
    options: dict[str, Any] = {"C": 1e3, "fit_intercept": False, "tol": 1e-6}

    def F(w: float) -> float:
        return 1e3 * float(MARGIN_LOSSES["sigmoid_squared"].loss((2 * y - 1) * X[:, 0] * w).sum()) + 0.5 * w * w

    grid = np.array([F(w) for w in np.linspace(-12.0, 12.0, 4001)])
    valleys = grid[1:-1][(grid[1:-1] < grid[:-2]) & (grid[1:-1] < grid[2:])]
    assert len(valleys) == 2
    one = LinearClassifier("sigmoid_squared", **options).fit(X, y)
    many = LinearClassifier("sigmoid_squared", **options, n_init=8, random_state=0).fit(X, y)
    assert many.fit_.status is Status.STATIONARY and many.fit_.certificate.gap == np.inf
    assert many.fit_.certificate.objective == pytest.approx(F(many.coef_[0, 0]), rel=1e-9)
    assert many.fit_.certificate.objective == pytest.approx(valleys.min(), rel=1e-4)
    assert one.fit_.certificate.objective == pytest.approx(valleys.max(), rel=1e-4)  # next to the logistic optimum
    assert "Of 8 starts" in many.fit_.detail and "the others above it" in many.fit_.detail
    again = clone(many).fit(X, y)
    assert np.array_equal(again.coef_, many.coef_)
    convex = LinearClassifier("logistic", n_init=8, **options).fit(X, y)
    assert np.array_equal(convex.coef_, LinearClassifier("logistic", **options).fit(X, y).coef_)


def test_the_exponential_loss_has_a_proof_and_knows_separable_classes() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    y = X[:, 0] + rng.standard_normal(60) > 0
    for penalty in ("l2", "l1", None):
        model = LinearClassifier("exponential", penalty, tol=1e-8).fit(X, y)
        assert model.fit_.status is Status.CONVERGED and model.fit_.certificate.relative_gap <= 1e-8
    with pytest.warns(SeparationWarning, match="separable"):
        apart = LinearClassifier("exponential", None).fit(X[:, :1], X[:, 0] > 0)
    assert apart.fit_.status is Status.SEPARATED


def test_the_exponential_loss_stays_finite_far_out() -> None:
    loss, far = Exponential(), np.array([-1e6, -201.0, -200.0, 800.0])
    assert np.isfinite(loss.loss(far)).all() and (np.diff(loss.loss(far)) < 0).all()
    assert loss.loss(-201.0) == pytest.approx(2.0 * np.exp(200.0))  # on the tangent at −200
    u = np.array([0.0, 1e-300, 0.5, 3.0])
    assert np.allclose(
        loss.conjugate(np.ones(4, dtype=int), -u[:, None]),
        np.array([0.0, 0.0, 0.5 * np.log(0.5) - 0.5, 3 * np.log(3) - 3]),
    )
    assert np.isinf(loss.conjugate(np.ones(1, dtype=int), np.array([[0.1]])))


def test_the_display_takes_objects_and_derivatives() -> None:
    display = MarginLossDisplay.from_losses([ZeroOne(), Exponential(), "hinge"], [-1.0, 0.5], derivative=1)
    assert list(display.values) == ["zero_one", "exponential", "hinge"]
    assert display.values["hinge"].tolist() == [-1.0, -1.0] and display.values["zero_one"].tolist() == [0.0, 0.0]
    assert display.plot().ax_.get_ylabel() == "derivative of the loss"
    assert {line.get_label() for line in MarginLossDisplay.from_losses(["zero_one"]).plot().ax_.lines} == {"zero one"}
    for options, sentence in (({"losses": ["huber"]}, "'huber' is not a loss"), ({"derivative": 3}, "give 0, 1 or 2")):
        with pytest.raises(ValueError, match=sentence):
            MarginLossDisplay.from_losses(**options)
