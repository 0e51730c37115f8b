"""Stochastic gradient descent on rows in memory: epochs, and when to stop; kernels/stochastic.py has the steps.

How far the last iterate is from the optimum of  F = ½‖w‖² + Σ cᵢℓ(yᵢfᵢ),  cᵢ = sᵢ/(αn), is bounded by the dual

    D(u) = Σ −(cℓ)*(−uᵢ) − ½‖Σ uᵢyᵢxᵢ‖²,   Σ uᵢyᵢ = 0 with an intercept,   u = −cℓ'(yf)

in which the heavier side is scaled until the sum vanishes, and u as a whole to the best of some lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float
from separatrix.result import Certificate

LOSSES = (
    *("hinge", "squared_hinge", "perceptron", "log_loss", "modified_huber"),
    *("squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"),
)
SCHEDULES = ("constant", "optimal", "invscaling", "adaptive", "pa1", "pa2")
PENALTIES = (None, "l1", "l2", "elasticnet")
_EPS = float(np.finfo(np.float64).eps)
_LEAST_RATE = 1e-6
_TRIES = 4


@dataclass(frozen=True)
class StepRule:
    """What all machines share."""

    loss: str
    penalty: str | None
    schedule: str
    alpha: float
    l1_ratio: float
    epsilon: float
    eta0: float
    power: float
    intercept: bool
    decay: float
    average: int
    shuffle: bool
    max_iter: int
    tol: float | None
    patience: int


@dataclass
class StochasticMachine:
    """One class against the others: w, b and their means over the visits."""

    code: int
    factors: Float
    w: Float
    b: float
    mean: Float
    mean_b: float
    epochs: int = 0
    stopped: bool = False

    def learn(
        self, rows: tuple[Any, ...], learned: Codes, rule: StepRule, seed: int, t: float, score: Any, stop: Event
    ) -> None:
        """Epochs over the rows that are learned from; `score` of (w, b) on others decides when to stop, where given.

        Another thread breaks it off after an epoch by `stop`.
        """
        n = len(rows[3])
        inside = np.zeros(n, dtype=np.bool_)
        inside[learned] = True
        order, ratio = np.arange(n), {"l1": 1.0, "elasticnet": rule.l1_ratio}.get(rule.penalty or "", 0.0)
        kinds = (LOSSES.index(rule.loss), PENALTIES.index(rule.penalty), SCHEDULES.index(rule.schedule))
        numbers = (rule.alpha, ratio, rule.epsilon, rule.eta0, rule.power, rule.decay)
        vectors = (self.w, np.zeros(len(self.w)), self.mean)
        sizes = (self.w @ self.w, np.abs(self.w).sum())
        state = np.array([self.b, self.mean_b, t, rule.eta0, 0.0, *sizes, 1.0, 0.0, 1.0])
        self.epochs, self.stopped = 0, False
        try:
            self._go(rows, order, inside, rule, seed, (kinds, numbers, vectors, state), score, stop)
        finally:
            if rule.average:
                self.mean[:] = (self.mean + state[8] * self.w) / state[9]
            self.w *= state[7]

    def _go(
        self,
        rows: Any,
        order: Codes,
        inside: Any,
        rule: StepRule,
        seed: int,
        steps: tuple[Any, ...],
        score: Any,
        stop: Event,
    ) -> None:
        from separatrix.kernels.stochastic import sgd_epoch, xorshift_shuffle

        kinds, numbers, vectors, state = steps
        count, best, waited = int(np.count_nonzero(inside)), float(np.inf), 0
        for _ in range(rule.max_iter):
            if stop.is_set():
                return
            if rule.shuffle:
                xorshift_shuffle(order, seed)
            visits = order if count == len(order) else order[inside[order]]
            total = sgd_epoch(
                rows, visits, self.code, self.factors, (*kinds, rule.average, rule.intercept), numbers, vectors, state
            )
            self.epochs += 1
            self.b, self.mean_b = float(state[0]), float(state[1])
            if not np.isfinite(self.b) or not np.isfinite(self.w).all():
                raise ValueError(
                    f"Floating-point under-/overflow occurred at epoch #{self.epochs}. Scaling input data with "
                    "StandardScaler or MinMaxScaler might help."
                )
            # scikit-learn scores v and not w = c·v, so that its fits stop at the same epoch.
            value = total / max(1, count) if score is None else -score(self.w, self.b)
            waited = waited + 1 if rule.tol is not None and value > best - rule.tol else 0
            best = min(best, value)
            if waited >= rule.patience:
                if rule.schedule == "adaptive" and state[3] > _LEAST_RATE:
                    state[3], waited = state[3] / 5.0, 0
                    continue
                self.stopped = True
                return


def distance(X: Any, signs: Float, weights: Float, w: Float, b: float, rule: StepRule) -> Certificate:
    """A bound on F(w, b) − min F in units of the mean loss, where the loss has a dual at hand; else none."""
    n, known = len(signs), rule.loss in ("hinge", "squared_hinge", "log_loss")
    m = signs * (np.asarray(X @ w, dtype=np.float64) + b)
    c = weights / (rule.alpha * n) if rule.alpha > 0 else weights
    if not (known and rule.penalty == "l2" and rule.alpha > 0 and rule.schedule not in ("pa1", "pa2")):
        return Certificate(np.inf, float("nan"), "none: no dual of this loss and penalty is at hand", kind="estimated")
    below = np.maximum(0.0, 1.0 - m)
    if rule.loss == "hinge":
        losses, u = below, np.where(m <= 1.0, c, 0.0)
    elif rule.loss == "squared_hinge":
        losses, u = below**2, 2.0 * c * below
    else:
        losses, u = np.logaddexp(0.0, -m), c * np.exp(-np.logaddexp(0.0, m))
    sums = [float(u[signs > 0].sum()), float(u[signs < 0].sum())]
    if rule.intercept and min(sums) > 0:
        u = u * np.where(signs > 0, min(1.0, sums[1] / sums[0]), min(1.0, sums[0] / sums[1]))
    elif rule.intercept:
        u = np.zeros(n)
    v = np.asarray((u * signs) @ X, dtype=np.float64)
    best = _best_along(u, c, float(v @ v), rule.loss)
    primal = 0.5 * float(w @ w) + float(c @ losses)
    return Certificate(
        max(0.0, primal - best) * rule.alpha, primal * rule.alpha, "duality gap of the last iterate", kind="estimated"
    )


def _best_along(u: Float, c: Float, length: float, loss: str) -> float:
    """The largest D that some multiples of u have, ½s²·`length` taken off each."""
    if loss == "log_loss":
        return _best_entropy(u, c, length)
    best = 0.0
    for share in [1.0] if length == 0 else [min(1.0, float(u.sum()) / length), *np.linspace(0.1, 1.0, 10)]:
        s = np.minimum(share * u, c) if loss == "hinge" else share * u
        gain = s if loss == "hinge" else s - s**2 / (4.0 * np.where(c > 0, c, 1.0))
        best = max(best, float(gain.sum()) - 0.5 * share**2 * length)
    return best


def _best_entropy(u: Float, c: Float, length: float) -> float:
    """The same of D = Σ cH(su/c) − ½s²·`length`, which is concave: steps of Newton in s from 1, where H' and H" are at hand."""
    inside = (u > 0) & (u < c)
    u, c = u[inside], c[inside]
    share, best = 1.0, 0.0
    for _ in range(_TRIES):
        s = share * u
        rest = c - s
        odds, entropy = np.log(rest / s), np.log(c / rest)
        # cH = −s log(s/c) − (c − s) log((c − s)/c)
        best = max(best, float(s @ odds) + float(c @ entropy) - 0.5 * share**2 * length)
        slope = float(u @ odds) - share * length
        curvature = -float((u * c / rest).sum()) / share - length
        if not curvature < 0:
            break
        share = min(max(share - slope / curvature, 0.3 * share), 1.0)
    return best


def correct_share(X: Any, signs: NDArray[Any], weights: Float, w: Float, b: float) -> float:
    """The share of the weight that is on its side."""
    right = (np.asarray(X @ w) + b > 0) == (signs > 0)
    return float(np.average(right, weights=weights))
