"""The linear soft-margin machine: dual coordinate ascent, and interior points where that is slow.

    primal  ½‖w‖² + Σ Cᵢ max(0, 1 − ỹᵢ(wᵀxᵢ + b))ᵖ,  p = 1 or 2          dual  Σ αᵢ − ½‖Σ αᵢỹᵢxᵢ‖² − ½Σ Dᵢαᵢ²,   0 ≤ αᵢ ≤ Uᵢ

One row at a time, exactly (sweeps.py). An intercept without a penalty demands Σ αᵢỹᵢ = 0: b is its multiplier, and the
problem is solved with the proximal term (b − b̄)²/2r, the centre b̄ moving to b after every sweep. Columns in very different
units make sweeps slow; where the Newton matrix of interior.py is affordable it takes over.

The proof. The primal is evaluated at the w and b that are published. Every 0 ≤ α ≤ U with Σ αᵢỹᵢ = 0 (where b is free) has a
dual value below the optimum, and so has τα, 0 ≤ τ ≤ 1: the best is τ = min(1, Σα/(‖v‖² + ΣDα²)), v = Σ αᵢỹᵢxᵢ. The heavier
side's α are shrunk until the two sides balance. What rounding leaves, |Σα₊ − Σα₋| ≤ e, a factor 1 − e/Σα of that side would
remove: it costs e in Σα and at most e/Σα·Σαᵢ‖xᵢ − c‖ in the length of v, which is also moved by the rounding of its own sum
(frame.py). With Σ αᵢỹᵢ = 0 exactly, v is the same for rows taken from any centre c.

Reference: Hsieh et al. (2008), ICML; Rockafellar (1976), Mathematics of Operations Research 1 (proximal point).

**Complexity** O(nnz) a sweep, O(n p²) a Newton step, p = min(n, d). **Passes over the data** one a sweep and two a proof;
memory O(n + d), and O(np) where Newton's steps are taken. Sequential.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.block import Float
from separatrix.dual.frame import SUM, Frame
from separatrix.dual.interior import interior_points, on_the_margin
from separatrix.dual.record import Judged, Record
from separatrix.dual.sweeps import WORTH_GATHERING, Visited
from separatrix.result import Certificate, Status

_EPS = float(np.finfo(np.float64).eps)
_FIRST_PROOF, _LONG_SINCE = 3, 1.5
_ARRIVES_AT_ONCE = 300.0
# Sweeps before Newton's steps may take over, how many of these a fit takes, and what one flop of a sweep costs of theirs.
_FIRST_SWEEPS, _NEWTON_STEPS, _SLOWER = 20, 30, 10.0
_AFFORDABLE = 4e9
# The gap, of the objective, at which it is plain which rows are on the margin.
_PLAIN = 1e-9


def reach_of(scaling: float | None, squares: Float, price: Float) -> float:
    """How far an intercept moves for a change of α: the square of its column, or r of the proximal term when it is free.

    The primal's curvature along b is of the size of ΣC; an r of a few hundred over it makes the centre arrive at once, and a
    larger one would only let b swing with every row.
    """
    if scaling is not None:
        return float(scaling) ** 2
    return min(float(squares.mean()) or 1.0, _ARRIVES_AT_ONCE / float(price.sum()))


def patience(rows: Frame, n_classes: int, max_iter: int) -> int:
    """Sweeps that are worth a try before Newton's steps; more than `max_iter` where those are not affordable.

    They are given the time that the steps would take, and at most half of all iterations.
    """
    n, d = rows.X.shape
    p = min(n, d) * n_classes
    step = float(n) * p * p + float(p) ** 3 / 3.0
    if step > _AFFORDABLE or rows.copy is None:
        return max_iter + 1
    entries = rows.X.nnz if sp.issparse(rows.X) else n * d
    sweep = _SLOWER * 4.0 * entries * n_classes
    return int(min(max(_FIRST_SWEEPS, _NEWTON_STEPS * step / max(1.0, sweep)), max_iter // 2))


@dataclass(frozen=True)
class LinearDual:
    """Weights and intercept as they are published, and the proof of these."""

    w: Float
    b: float
    status: Status
    certificate: Certificate
    sweeps: int
    """Sweeps and Newton's steps."""
    passes: int
    trace: list[dict[str, Any]]


@dataclass(frozen=True)
class LinearMachine:
    """A linear machine to be fitted.

    Parameters
    ----------
    rows : Frame
    signs : ndarray of shape (n,)
        ỹ = ±1.
    price : ndarray of shape (n,)
        Cᵢ > 0.
    power : {1, 2}
        Of the slack.
    scaling : float or None
        The intercept is the weight of a column of this value, penalised like the others; None: not penalised; 0: none.
    """

    rows: Frame
    signs: Float
    price: Float
    power: int
    scaling: float | None

    def solve(
        self,
        tol: float,
        max_iter: int,
        seed: int = 0,
        callback: Any = None,
        *,
        direct: bool = False,
        stop: Event | None = None,
    ) -> LinearDual:
        """Iterate until the proven gap is at most `tol` times the primal objective.

        Parameters
        ----------
        tol : float
        max_iter : int
            Limit on sweeps and Newton's steps together.
        seed : int
            Of the order of visits.
        callback : callable, optional
            Is given the state of every iteration.
        direct : bool
            Newton's steps from the start, where they are affordable, and to the last digits.
        stop : Event, optional
            Ends the work when it is set, by another thread's Ctrl-C; is set by one here.
        """
        search = _Search(self, Record(tol), max_iter, callback, stop or Event())
        record, sweeps, status = search.record, patience(self.rows, 1, max_iter), Status.MAX_ITER
        try:
            if not direct or sweeps > max_iter:
                status = search.sweep(min(sweeps, max_iter), np.random.default_rng(seed))
            if sweeps <= max_iter and not record.over and status is not Status.INTERRUPTED:
                status = search.step(direct)
        except KeyboardInterrupt:
            search.stop.set()
            status = Status.INTERRUPTED
        best = record.best or search.judge()
        status = record.status(status)
        return LinearDual(best.w, best.b, status, record.certificate, search.iterations, search.passes, record.trace)

    @property
    def ridge(self) -> Float:
        """(n,) D."""
        return np.zeros(len(self.price)) if self.power == 1 else 0.5 / self.price

    @property
    def upper(self) -> Float:
        """(n,) U."""
        return self.price if self.power == 1 else np.full(len(self.price), np.inf)

    def judge(self, w: Float, beta: float, alpha: Float) -> Judged:
        """The primal at the published (w, b), the best b for w where it is free, and the bound that α gives. Two passes."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.rows.scores(w)
            if self.scaling is None:
                beta = _best_intercept(self.signs - scores, self.signs, self.price, self.power)
            b = self.rows.published(w, beta)
            there = self.rows.offset(w, b)
            value, upper, slack = self._primal(w, scores, there)
            unrounded = upper if there == beta else self._primal(w, scores, beta)[1]
            alpha, imbalance = self._balanced(alpha)
            lower = self._lower(alpha)
        outside = np.maximum(0.0, self.signs * (scores + there) - 1.0)
        room = self.price - alpha if self.power == 1 else np.zeros_like(alpha)
        complementary = float(np.maximum(alpha * outside, room * slack).max(initial=0.0))
        return Judged(w, b, value, upper, unrounded, lower, scores, imbalance, complementary)

    def _primal(self, w: Float, scores: Float, beta: float) -> tuple[float, float, Float]:
        """The objective, its value with rounding counted, and the slacks."""
        length = float(np.linalg.norm(w))
        squared = length**2 + ((beta / self.scaling) ** 2 if self.scaling else 0.0)
        margins = 1.0 - self.signs * (scores + beta)
        slack = np.maximum(0.0, margins)
        value = 0.5 * squared + float((self.price * slack**self.power).sum())
        most = np.maximum(0.0, margins + self.rows.score_rounding(w, beta) + _EPS * np.abs(margins))
        upper = 0.5 * squared * (1.0 + (len(w) + 8.0) * _EPS) + float((self.price * most**self.power).sum()) * (
            1.0 + 2 * SUM
        )
        return value, upper, slack

    def _balanced(self, alpha: Float) -> tuple[Float, float]:
        """α with the heavier side shrunk where the intercept is free, and how far the sides were from balance."""
        if self.scaling is not None:
            return alpha, 0.0
        up = self.signs > 0
        more, less = float(alpha[up].sum()), float(alpha[~up].sum())
        heavier = up if more > less else ~up
        factor = min(more, less) / max(more, less) if more != less else 1.0
        return np.where(heavier, factor * alpha, alpha), abs(more - less)

    def _lower(self, alpha: Float) -> float:
        """A lower bound of the optimum, rounding counted."""
        both, beta = float(alpha.sum()), self.signs * alpha
        if not both > 0:
            return 0.0
        length, moved = float(np.linalg.norm(self.rows.products(beta))), self.rows.product_rounding(beta)
        sum_of_sides, left = 0.0, 0.0
        if self.scaling is None:
            up = self.signs > 0
            left = abs(math.fsum(beta.tolist())) * (1.0 + _EPS)
            heavier = max(float(alpha[up].sum()), float(alpha[~up].sum()))
            moved += left / heavier * float(alpha @ self.rows.lengths) * (1.0 + 2.0 * SUM)
        elif self.scaling:
            sum_of_sides = self.scaling * (abs(float(beta.sum())) + SUM * both)
        length = (length * (1.0 + (self.rows.X.shape[1] + 4.0) * _EPS) + moved) ** 2 + sum_of_sides**2
        curved = (length + float((self.ridge * alpha**2).sum())) * (1.0 + 2.0 * SUM)
        gain = both * (1.0 - SUM) - left
        if not (gain > 0 and np.isfinite(curved)):
            return 0.0
        share = min(1.0, gain / curved) if curved > 0 else 1.0
        return (share * gain - 0.5 * share**2 * curved) * (1.0 - 4.0 * _EPS)


class _Search:
    """The iterations of one fit."""

    def __init__(self, machine: LinearMachine, record: Record, max_iter: int, callback: Any, stop: Event) -> None:
        self.machine, self.record, self.max_iter, self.callback, self.stop = machine, record, max_iter, callback, stop
        n, d = machine.rows.X.shape
        self.w, self.beta, self.alpha = np.zeros(d), 0.0, np.zeros(n)
        self.iterations, self.passes = 0, 1

    def judge(self) -> Judged:
        """Look at the data from where the search stands."""
        point = self.machine.judge(self.w.copy(), self.beta, self.alpha)
        self.record.add(point)
        self.passes += 2
        return point

    def step(self, fine: bool) -> Status:
        """Newton's steps between the bounds; at last the equations of the margin, where `fine` digits are asked for."""
        machine, copy, record = self.machine, self.machine.rows.copy, self.record
        assert copy is not None
        record.turn()
        points = interior_points(copy.A, copy.penalty, machine.signs, machine.price, machine.power, machine.scaling)
        found = None
        while self.iterations < self.max_iter:
            if self.stop.is_set():
                return Status.INTERRUPTED
            with np.errstate(all="ignore"):  # what is not finite ends the steps
                last, found = found, next(points, None)
                if found is None:
                    found = last
                    break
                self._stand(*copy.back(found[0], found[1]), found[2])
            plain = not fine or record.gap <= _PLAIN * (0.0 if record.best is None else record.best.value)
            if (record.over and plain) or record.in_vain:
                break
        else:
            return Status.MAX_ITER
        if fine and found is not None and machine.power == 1:
            settings = (machine.signs, machine.price, machine.scaling)
            exact = on_the_margin(copy.A, copy.penalty, *settings, found)
            if exact is not None and all(np.isfinite(part).all() for part in exact):
                w, beta = copy.back(exact[0], exact[1])
                record.prefer(machine.judge(w, beta, exact[2]))
        return Status.STALLED

    def _stand(self, w: Float, beta: float, alpha: Float) -> None:
        """Go to a point and look at the data from there."""
        self.w, self.beta, self.alpha = w, beta, alpha
        self.iterations, self.passes = self.iterations + 1, self.passes + 6
        self.judge()
        self.record.note(self.iterations, self.callback)

    def sweep(self, limit: int, rng: np.random.Generator) -> Status:
        """Sweeps of dual coordinate ascent."""
        machine, rows, signs = self.machine, self.machine.rows, self.machine.signs
        reach = reach_of(machine.scaling, rows.squares, machine.price)
        every, free = np.arange(len(signs)), machine.scaling is None
        whole = Visited(rows.X, rows.centre, every, signs, machine.upper, machine.ridge, rows.squares, self.alpha)
        visited, w, record = whole, self.w, self.record
        status, value, trigger = Status.MAX_ITER, 0.0, record.tol
        recalled, proven = -1, 10  # the sweep of the last proof; the first is due by its rise, or somewhat later
        while self.iterations < limit:
            if self.stop.is_set():
                status = Status.INTERRUPTED
                break
            rise, self.beta = visited.sweep(w, self.beta, reach, rng)
            self.iterations, self.passes, value = self.iterations + 1, self.passes + 1, value + rise
            if visited is not whole:
                whole.alpha[visited.which] = visited.alpha
            moved = reach * float(whole.alpha @ signs) if free else 0.0
            self.beta += moved
            done = visited.settled or (rise <= 0.0 and abs(moved) <= 4.0 * _EPS * max(1.0, abs(self.beta)))
            due = rise <= trigger * value or self.iterations >= _LONG_SINCE * proven
            if done or (self.iterations >= _FIRST_PROOF and due):
                point = self.judge()
                proven = self.iterations
                if record.over:
                    return Status.STALLED
                if done and self.iterations == recalled + 1:  # all that are not settled were visited, and nothing moved
                    return Status.STALLED
                # A proof costs two sweeps: the next is worth its while when the rise has fallen as the gap has to.
                trigger = rise / value * min(0.7, record.goal / record.gap) if value > 0 else 0.0
                visited = whole.called_back(point.scores + self.beta, visited.violation)
                recalled = self.iterations
            elif visited.active < WORTH_GATHERING * len(visited.which):
                visited = visited.gathered()
            record.note(self.iterations, self.callback)
        self.judge()
        return status


def _best_intercept(v: Float, signs: Float, price: Float, power: int) -> float:
    """argmin_b Σ₊ C max(0, v − b)ᵖ + Σ₋ C max(0, b − v)ᵖ, v = ỹ − wᵀx: where the pulls of the two sides are equal."""
    order = np.argsort(v)
    v, up = v[order], signs[order] > 0
    price = price[order]
    if power == 1:
        # The slope at b: those of the negative side below b pull down, those of the positive side above it up.
        slope = np.cumsum(np.where(up, 0.0, price)) - (
            np.where(up, price, 0.0).sum() - np.cumsum(np.where(up, price, 0.0))
        )
        return float(v[np.searchsorted(slope, 0.0) if slope[-1] >= 0 else -1])
    # The slope is linear between neighbouring v: Σ₋(below) C(b − v) − Σ₊(above) C(v − b).
    below, above = np.where(up, 0.0, price), np.where(up, price, 0.0)
    mass = np.cumsum(below) + above.sum() - np.cumsum(above)
    moment = np.cumsum(below * v) + (above @ v) - np.cumsum(above * v)
    slope = mass * v - moment
    at = int(np.searchsorted(slope, 0.0))
    if at == 0 or not mass[at - 1] > 0:
        return float(v[max(at - 1, 0)])
    return float(np.clip(moment[at - 1] / mass[at - 1], v[at - 1], v[min(at, len(v) - 1)]))
