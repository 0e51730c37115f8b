"""The linear soft-margin machine.

    primal  ½‖w‖² + Σ Cᵢ max(0, 1 − ỹᵢ(wᵀxᵢ + b))ᵖ,  p = 1 or 2          dual  Σ αᵢ − ½‖Σ αᵢỹᵢxᵢ‖² − ½Σ Dᵢαᵢ²,   0 ≤ αᵢ ≤ Uᵢ

An intercept without a penalty demands Σ αᵢỹᵢ = 0: b is its multiplier, and sweeps (sweeps.py) solve the problem with the
proximal term (b − b̄)²/2r, the centre b̄ moving to b after every sweep; with the penalty b²/2s² beside it where there is one,
so that b = κb̄ + r'Σ αᵢỹᵢ, 1/r' = 1/r + 1/s², κ = r'/r. linear_search.py has the loop.

The proof. The primal is evaluated at the w and b that are published. Every 0 ≤ α ≤ U with Σ αᵢỹᵢ = 0 (where b is free) has a
dual value below the optimum, and so has τα, 0 ≤ τ ≤ 1: the best is τ = min(1, Σα/(‖v‖² + ΣDα²)), v = Σ αᵢỹᵢxᵢ. The heavier
side's α are shrunk until the two sides balance. What rounding leaves, |Σα₊ − Σα₋| ≤ e, a factor 1 − e/Σα of that side would
remove: it costs e in Σα and at most e/Σα·Σαᵢ‖xᵢ − c‖ in the length of v, which is also moved by the rounding of its own sum
(centred_rows.py). With Σ αᵢỹᵢ = 0 exactly, v is the same for rows taken from any centre c.

Reference: Hsieh et al. (2008), ICML; Rockafellar (1976), Mathematics of Operations Research 1 (proximal point).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.active_set import newton_steps
from separatrix.dual.centred_rows import EPS, SUM, CentredRows, DenseCopy
from separatrix.dual.interior import interior_points, on_the_margin, with_intercept
from separatrix.dual.interior_batch import hinge_gaps, interior_optima
from separatrix.dual.linear_search import Ascent, DualMachine, Point
from separatrix.dual.record import ProvenPoint, Record, best_dual_value, primal_values
from separatrix.dual.sweeps import ActiveRows, Swept, Until

# The gap to reach on the rows' side, of what is asked for.
_INNER = 0.1
# Products of two columns of a row, of all rows, up to which machines of the hinge are solved side by side.
_SMALL = 2_000_000


@dataclass(frozen=True)
class LinearMachine(DualMachine):
    """A machine between two sides, to be fitted."""

    rows: CentredRows
    signs: Float  # (n,) ỹ = ±1
    price: Float  # (n,) Cᵢ > 0
    power: int  # of the slack: 1 or 2
    scaling: float | None  # see `DualMachine`

    @property
    def ridge(self) -> Float:
        """(n,) D."""
        return np.zeros(len(self.price)) if self.power == 1 else 0.5 / self.price

    @property
    def upper(self) -> Float:
        """(n,) U."""
        return self.price if self.power == 1 else np.full(len(self.price), np.inf)

    def ascent(self, record: Record) -> Ascent:
        return _HingeAscent(self, record)

    def interior_points(self, copy: DenseCopy) -> Iterator[Point]:
        return interior_points(copy.A, copy.penalty, self.signs, self.price, self.power, self.scaling)

    def on_the_margin(self, copy: DenseCopy, point: Point) -> Point | None:
        if self.power != 1:
            return None
        return on_the_margin(copy.A, copy.penalty, self.signs, self.price, self.scaling, point)

    def prove(self, w: Float, beta: float, alpha: Float) -> ProvenPoint:
        """The primal at the published (w, b), b the best for w, and the bound that α gives. Two passes."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.rows.scores(w)
            if self.scaling != 0.0:
                beta = best_intercept(self.signs - scores, self.signs, self.price, self.power, self.pull)
            b = self.rows.published(w, beta)
            there = self.rows.offset(w, b)
            value, upper, slack = self._primal(w, scores, there)
            unrounded = upper if there == beta else self._primal(w, scores, beta)[1]
            alpha, imbalance = self._balanced(alpha, beta)
            lower = self._lower(alpha)
        outside = np.maximum(0.0, self.signs * (scores + there) - 1.0)
        room = self.price - alpha if self.power == 1 else np.zeros_like(alpha)
        complementary = float(np.maximum(alpha * outside, room * slack).max(initial=0.0))
        return ProvenPoint(w, b, value, upper, unrounded, lower, scores, imbalance, complementary, alpha)

    def _primal(self, w: Float, scores: Float, beta: float) -> tuple[float, float, Float]:
        """The objective, its value with rounding counted, and the slacks."""
        length = float(np.linalg.norm(w))
        squared = length**2 + ((beta / self.scaling) ** 2 if self.scaling else 0.0)
        margins = 1.0 - self.signs * (scores + beta)
        slack = np.maximum(0.0, margins)
        most = np.maximum(0.0, margins + self.rows.score_rounding(w, beta) + EPS * np.abs(margins))
        return *primal_values(w, squared, self.price, slack, most, self.power), slack

    def _balanced(self, alpha: Float, beta: float) -> tuple[Float, float]:
        """α with the heavier side shrunk, and how far the sides were from balance.

        A free intercept demands Σ αỹ = 0. A penalised one has b = s² Σ αỹ: a sum that is off by e costs s²e²/2 in the dual, to
        shrink α by it about e.
        """
        if self.scaling == 0.0:
            return alpha, 0.0
        up = self.signs > 0
        excess = self.pull * beta
        more, less = float(alpha[up].sum()), float(alpha[~up].sum()) + excess
        imbalance = abs(more - less)
        heavier, less, more = (up, less, more) if more > less else (~up, more - excess, less - excess)
        if self.scaling is not None and not (imbalance > 2.0 * self.pull and 0.0 <= less <= more):
            return alpha, 0.0
        factor = less / more if more != less else 1.0
        return np.where(heavier, factor * alpha, alpha), imbalance if self.scaling is None else 0.0

    def _lower(self, alpha: Float) -> float:
        """A lower bound of the optimum, rounding counted."""
        both, beta = float(alpha.sum()), self.signs * alpha
        if not both > 0:
            return 0.0
        length, moved = float(np.linalg.norm(self.rows.products(beta))), self.rows.product_rounding(beta)
        sum_of_sides, left = 0.0, 0.0
        if self.scaling is None:
            up = self.signs > 0
            left = abs(math.fsum(beta.tolist())) * (1.0 + EPS)
            heavier = max(float(alpha[up].sum()), float(alpha[~up].sum()))
            moved += left / heavier * float(alpha @ self.rows.lengths) * (1.0 + 2.0 * SUM)
        elif self.scaling:
            sum_of_sides = self.scaling * (abs(float(beta.sum())) + SUM * both)
        length = (length * (1.0 + (self.rows.X.shape[1] + 4.0) * EPS) + moved) ** 2 + sum_of_sides**2
        curved = (length + float((self.ridge * alpha**2).sum())) * (1.0 + 2.0 * SUM)
        gain = both * (1.0 - SUM) - left
        return best_dual_value(gain, curved)


def near_optima(
    machines: Sequence[LinearMachine], tol: float, max_iter: int, stop: Event, *, fine: bool
) -> list[tuple[Point, int]]:
    """Points that are likely to be proven optimal, of machines on the same rows, and the steps that led there.

    By Newton's method for the squared hinge, by interior points for the hinge where the problem is small, and on the rows' side
    where the rows are few; there are none otherwise. `fine` asks for the last digits; Ctrl-C sets `stop`.
    """
    rows, power, factor = machines[0].rows, machines[0].power, machines[0].rows.factor
    inner = machines if factor is None else [replace(machine, rows=factor.rows) for machine in machines]
    found: list[tuple[Point, int]] = []
    if power == 2:
        found = _newton_points(inner, 0.0 if fine else _INNER * tol, max_iter, stop)
    elif factor is not None:
        for machine in inner:
            dual = machine.solve(_INNER * tol, max_iter, direct=fine, stop=stop)
            if dual.alpha is not None:
                found.append(((dual.w, dual.b, dual.alpha), dual.sweeps))
    elif rows.has_copy and len(rows.squares) * min(rows.X.shape) ** 2 <= _SMALL:
        found = _interior_optima(machines, max_iter, stop)
    if factor is None or len(found) < len(machines):
        return found if factor is None else []
    W = rows.products(factor.multipliers(np.column_stack([point[0] for point, _ in found])))
    columns = np.ascontiguousarray(W.T)
    return [((w, point[1], point[2]), steps) for w, (point, steps) in zip(columns, found, strict=True)]


def _newton_points(
    machines: Sequence[LinearMachine], tol: float, max_iter: int, stop: Event
) -> list[tuple[Point, int]]:
    """Where Newton's method ends for machines of the squared hinge, and its steps."""
    first = machines[0]
    copy, last = first.rows.dense_copy, None
    if copy is None or stop.is_set():
        return []
    X, rho = with_intercept(copy.A, copy.penalty, first.scaling)
    signs = np.array([machine.signs for machine in machines])
    try:
        with np.errstate(all="ignore"):  # what is not finite ends the steps
            for last in newton_steps(X, rho, signs, first.price, tol):
                if stop.is_set() or last.steps.max() >= max_iter:
                    break
    except KeyboardInterrupt:
        stop.set()
    if last is None or not np.isfinite(last.theta).all():
        return []
    found = []
    for theta, alpha, steps in zip(last.theta, last.alpha, last.steps, strict=True):
        inner, beta = (theta, 0.0) if X is copy.A else (theta[:-1], float(theta[-1]))
        found.append(((*copy.back(inner, beta), alpha), int(steps)))
    return found


def _interior_optima(machines: Sequence[LinearMachine], max_iter: int, stop: Event) -> list[tuple[Point, int]]:
    """Where interior points end for machines of the hinge, or the equations of their margins where these are better."""
    first, copy = machines[0], machines[0].rows.dense_copy
    if copy is None or stop.is_set():
        return []
    X, rho = with_intercept(copy.A, copy.penalty, first.scaling)
    signs = np.array([machine.signs for machine in machines])
    found: list[tuple[Point, int]] = []
    try:
        with np.errstate(all="ignore"):  # what is not finite is left to the other methods
            ends, duals, steps = interior_optima(X, rho, signs, first.price, max_iter, stop)
            if not (np.isfinite(ends).all() and np.isfinite(duals).all()):
                return []
            for machine, theta, alpha, count in zip(machines, ends, duals, steps, strict=True):
                point = (theta, 0.0, alpha) if X is copy.A else (theta[:-1], float(theta[-1]), alpha)
                exact = machine.on_the_margin(copy, point)
                if exact is not None:
                    points = np.array([theta, exact[0] if X is copy.A else np.append(exact[0], exact[1])])
                    gaps = hinge_gaps(X, rho, machine.signs, machine.price, points, np.array([alpha, exact[2]]))
                    point = exact if gaps[1] <= gaps[0] else point
                found.append(((*copy.back(point[0], point[1]), point[2]), int(count)))
    except KeyboardInterrupt:
        stop.set()
        return []
    return found


class _HingeAscent(Ascent):
    """Sweeps over the rows that are not settled, with an intercept that follows after each."""

    def __init__(self, machine: LinearMachine, record: Record) -> None:
        rows, n = machine.rows, len(machine.signs)
        self._record, self._signs = record, machine.signs
        self._reach, self._kept = machine.reach
        self._w, self._beta = np.zeros(rows.X.shape[1]), 0.0
        per_row = (np.arange(n), machine.signs, machine.upper, machine.ridge, rows.squares, np.zeros(n))
        self._all = self._active = ActiveRows(rows.X, rows.centre, *per_row)
        self._trigger, self._since = record.tol, 1  # sweeps since rows were called back

    @property
    def point(self) -> Point:
        return self._w, self._beta, self._all.alpha

    def sweeps(self, rng: np.random.Generator, value: float, most: int, begun: int) -> Swept:
        inactive = self._all.alpha.copy()
        inactive[self._active.which] = 0.0
        intercept = (self._reach, self._kept, float(inactive @ self._signs))
        until = Until(most, value, self._trigger, begun)
        swept, self._beta = self._active.sweeps(self._w, self._beta, intercept, int(rng.integers(1 << 62)), until)
        if self._active is not self._all:
            self._all.alpha[self._active.which] = self._active.alpha
        self._since, self.settled = self._since + swept.count, self._active.settled
        return swept

    def is_due(self, rise: float, value: float) -> bool:
        return rise <= self._trigger * value

    def after_proof(self, point: ProvenPoint, rise: float, value: float) -> bool:
        """Call back the rows that are not settled; whether all of these were just visited, and nothing moved."""
        if self.settled and self._since == 1:
            return True
        self._trigger = rise / value * min(0.7, self._record.goal / self._record.gap) if value > 0 else 0.0
        self._active = self._all.reactivated(point.scores + self._beta, self._active.violation)
        self._since = 0
        return False

    def without_proof(self) -> None:
        self._active = self._active.gathered()


def best_intercept(v: Float, signs: Float, price: Float, power: int, pull: float = 0.0) -> float:
    """argmin_b Σ₊ C max(0, v − b)ᵖ + Σ₋ C max(0, b − v)ᵖ + ½ pull b², v = ỹ − wᵀx: where the slope changes its sign.

    Between neighbouring v the slope is (mass + pull) b − moment, for p = 1 with no mass and for p = 2 halved, pull with it.
    """
    order = np.argsort(v)
    v, up = v[order], signs[order] > 0
    price = price[order]
    below, above = np.where(up, 0.0, price), np.where(up, price, 0.0)
    if power == 1:
        mass, moment = np.zeros(len(v) + 1), np.append(0.0, -np.cumsum(price)) + above.sum()
    else:
        mass = np.append(0.0, np.cumsum(below - above)) + above.sum()
        moment = np.append(0.0, np.cumsum((below - above) * v)) + above @ v
        pull = 0.5 * pull
    at = int(np.searchsorted((mass[1:] + pull) * v - moment[1:], 0.0))
    low, high = v[at - 1] if at else -np.inf, v[at] if at < len(v) else np.inf
    curved = float(mass[at]) + pull
    if not curved > 0.0:
        return float(high if at < len(v) else low)
    return float(np.clip(moment[at] / curved, low, high))
