"""The proof of linear machines on the same rows, of all at once.

    primal  ½‖w‖² + Σ Cᵢ max(0, 1 − ỹᵢ(wᵀxᵢ + b))ᵖ,  p = 1 or 2          dual  Σ αᵢ − ½‖Σ αᵢỹᵢxᵢ‖² − ½Σ Dᵢαᵢ²,   0 ≤ αᵢ ≤ Uᵢ

The primal is evaluated at the w and b that are published. Every 0 ≤ α ≤ U with Σ αᵢỹᵢ = 0 (where b is free) has a dual value
below the optimum, and so has τα, 0 ≤ τ ≤ 1: the best is τ = min(1, Σα/(‖v‖² + ΣDα²)), v = Σ αᵢỹᵢxᵢ. The heavier side's α are
shrunk until the two sides balance. What rounding leaves, |Σα₊ − Σα₋| ≤ e, a factor 1 − e/Σα of that side would remove: it
costs e in Σα and at most e/Σα·Σαᵢ‖xᵢ − c‖ in the length of v, which is also moved by the rounding of its own sum
(centred_rows.py). With Σ αᵢỹᵢ = 0 exactly, v is the same for rows taken from any centre c.

**Complexity** O(K nnz). **Passes over the data** two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.centred_rows import EPS, SUM, CentredRows
from separatrix.dual.record import ProvenPoint, best_dual_value

_DIGITS = 1e-12


@dataclass(frozen=True)
class Sides:
    """K machines on the same rows, one for each way to divide them into two sides."""

    rows: CentredRows
    signs: Float  # (K, n) ỹ = ±1
    price: Float  # (n,) Cᵢ > 0
    power: int  # of the slack: 1 or 2
    scaling: float | None  # of the intercept, and
    pull: float  # the curvature of its penalty: see `DualMachine`

    def prove(self, W: Float, beta: Float, alpha: Float) -> list[ProvenPoint]:
        """The primal at the published (w, b), b the best for w, and the bound that α gives; of W (K, d), β (K,), α (K, n)."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores = _each(self.rows.scores, W)
            if self.scaling != 0.0:
                v, given = self.signs - scores, (self.signs, self.price, self.power, self.pull)
                refined = refined_intercepts(beta, v, self.signs, self.price, self.pull) if self.power == 2 else None
                beta = best_intercepts(v, *given) if refined is None else refined
            b, there = self.rows.intercepts(W, beta)
            most = np.maximum(np.abs(beta), np.abs(there))
            rounding = self.rows.score_rounding(W[0], most) if len(W) == 1 else self.rows.score_rounding(W.T, most)
            rounding = rounding.T.reshape(scores.shape)
            value, upper, margins = self._primal(W, scores, there, rounding)
            alpha, imbalance = self._balanced(alpha, beta)
            lower = self._lower(alpha)
            # Where the gap is nothing but rounding there is no question of what the intercept's share of it is.
            plain = (there is beta) or bool((upper - lower <= _DIGITS * value).all())
            unrounded = upper if plain else self._primal(W, scores, beta, rounding)[1]
        outside, slack = np.maximum(0.0, -margins), np.maximum(0.0, margins)
        complementary = (alpha * outside).max(axis=1, initial=0.0)
        if self.power == 1:
            complementary = np.maximum(complementary, ((self.price - alpha) * slack).max(axis=1, initial=0.0))
        figures = (value, upper, unrounded, lower, imbalance, complementary)
        numbers = zip(*(figure.tolist() for figure in (b, *figures)), strict=True)
        return [
            ProvenPoint(w, own_b, own, most, exact, least, own_scores, off, complement, own_alpha)
            for w, own_scores, own_alpha, (own_b, own, most, exact, least, off, complement) in zip(
                W, scores, alpha, numbers, strict=True
            )
        ]

    def _primal(self, W: Float, scores: Float, beta: Float, rounding: Float) -> tuple[Float, Float, Float]:
        """(K,) objectives, their values with rounding counted, and 1 − ỹ(wᵀx + b)."""
        squared = np.square(W).sum(axis=1)
        if self.scaling:
            squared = squared + np.square(beta / self.scaling)
        margins = 1.0 - self.signs * (scores + beta[:, None])
        most = np.maximum(0.0, margins + rounding + EPS * np.abs(margins))
        slack = np.maximum(0.0, margins)
        if self.power == 2:
            slack, most = np.square(slack), np.square(most)
        value = 0.5 * squared + (self.price * slack).sum(axis=1)
        upper = (self.price * most).sum(axis=1) * (1.0 + 2 * SUM)
        return value, 0.5 * squared * (1.0 + (W.shape[1] + 8.0) * EPS) + upper, margins

    def _balanced(self, alpha: Float, beta: Float) -> tuple[Float, Float]:
        """α with the heavier side shrunk, and how far the sides were from balance.

        A free intercept demands Σ αỹ = 0. A penalised one has b = s² Σ αỹ: a sum that is off by e costs s²e²/2 in the dual, to
        shrink α by it about e.
        """
        none = np.zeros(len(alpha))
        if self.scaling == 0.0:
            return alpha, none
        up = self.signs > 0
        excess = self.pull * beta
        more = np.where(up, alpha, 0.0).sum(axis=1)
        less = np.where(up, 0.0, alpha).sum(axis=1) + excess
        imbalance, first = np.abs(more - less), more > less
        heavy = np.where(first, more, less - excess)
        light = np.where(first, less, more - excess)
        factor = np.where((heavy != light) & (heavy > 0.0), light / np.where(heavy > 0.0, heavy, 1.0), 1.0)
        if self.scaling is not None:
            kept = ~((imbalance > 2.0 * self.pull) & (light >= 0.0) & (light <= heavy))
            if kept.all():
                return alpha, none
            factor = np.where(kept, 1.0, factor)
        shrunk = np.where(up == first[:, None], factor[:, None] * alpha, alpha)
        return shrunk, imbalance if self.scaling is None else none

    def _lower(self, alpha: Float) -> Float:
        """(K,) lower bounds of the optima, rounding counted."""
        both, beta = alpha.sum(axis=1), self.signs * alpha
        length = np.sqrt(np.square(_each(self.rows.products, beta)).sum(axis=1))
        moved = np.atleast_1d(self.rows.product_rounding(beta[0] if len(beta) == 1 else beta.T))
        left, sum_of_sides = np.zeros(len(alpha)), np.zeros(len(alpha))
        if self.scaling is None:
            left = np.abs(beta.sum(axis=1)) + SUM * both
            heavier = np.maximum(0.5 * both * (1.0 - SUM), np.finfo(np.float64).tiny)
            moved = moved + left / heavier * (alpha * self.rows.lengths).sum(axis=1) * (1.0 + 2.0 * SUM)
        elif self.scaling:
            sum_of_sides = self.scaling * (np.abs(beta.sum(axis=1)) + SUM * both)
        length = np.square(length * (1.0 + (self.rows.X.shape[1] + 4.0) * EPS) + moved) + np.square(sum_of_sides)
        curved = length + (np.square(alpha) * (0.5 / self.price)).sum(axis=1) if self.power == 2 else length
        return best_dual_value(both * (1.0 - SUM) - left, curved * (1.0 + 2.0 * SUM))


def _each(product: Callable[[Float], Float], M: Float) -> Float:
    """A product with each row of a matrix."""
    return product(M[0])[None] if len(M) == 1 else np.ascontiguousarray(product(M.T).T)


def refined_intercepts(near: Float, v: Float, signs: Float, price: Float, pull: float) -> Float | None:
    """`best_intercepts` for p = 2 by a step of Newton's method from `near`; ``None`` where that changes the rows inside the
    margin, so that it does not end there.
    """
    inside = signs * (v - near[:, None]) > 0.0
    masses = inside * price
    found: Float = np.einsum("ij,ij->i", masses, v) / (masses.sum(axis=1) + 0.5 * pull)
    return found if np.array_equal(signs * (v - found[:, None]) > 0.0, inside) else None


def best_intercepts(v: Float, signs: Float, price: Float, power: int, pull: float = 0.0) -> Float:
    """(K,) argmin_b Σ₊ C max(0, v − b)ᵖ + Σ₋ C max(0, b − v)ᵖ + ½ pull b², v (K, n) = ỹ − wᵀx: where the slope changes sign.

    Between neighbouring v the slope is (mass + pull) b − moment, for p = 1 with no mass and for p = 2 halved, pull with it.
    """
    order, each = np.argsort(v, axis=1), np.arange(len(v))
    v, up = np.take_along_axis(v, order, axis=1), np.take_along_axis(signs, order, axis=1) > 0
    prices = price[order]
    above = np.where(up, prices, 0.0)
    if power == 1:
        mass, moment = np.zeros_like(v), above.sum(axis=1)[:, None] - np.cumsum(prices, axis=1)
        first_mass, first_moment = np.zeros(len(v)), above.sum(axis=1)
    else:
        change = prices - 2.0 * above  # the price below less the one above
        first_mass, first_moment = above.sum(axis=1), (above * v).sum(axis=1)
        mass = first_mass[:, None] + np.cumsum(change, axis=1)
        moment = first_moment[:, None] + np.cumsum(change * v, axis=1)
        pull = 0.5 * pull
    n = v.shape[1]
    at = ((mass + pull) * v - moment < 0.0).sum(axis=1)
    before = np.maximum(at - 1, 0)
    low, high = np.where(at > 0, v[each, before], -np.inf), np.where(at < n, v[each, np.minimum(at, n - 1)], np.inf)
    curved = np.where(at > 0, mass[each, before], first_mass) + pull
    slope = np.where(at > 0, moment[each, before], first_moment)
    flat = ~(curved > 0.0)
    between = np.clip(slope / np.where(flat, 1.0, curved), low, high)
    found: Float = np.where(flat, np.where(at < n, high, low), between)
    return found
