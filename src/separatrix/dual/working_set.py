"""The dual of the soft-margin machine, by working sets.

    max_β  Σ ỹᵢβᵢ − ½βᵀKβ,   Σβᵢ = 0,   βᵢ = ỹᵢαᵢ,  0 ≤ αᵢ ≤ Cᵢ              f = Kβ,  v = ỹ − f
    optimal ⇔ m = max {vᵢ : βᵢ may rise} ≤ M = min {vᵢ : βᵢ may fall};     b is between M and m

A round takes the rows that violate this most, with half of the last round's, solves for them exactly (smo.py, with a Newton
step on the free ones where pairs are slow), and adds what has changed to all scores. Rows at a bound that are far from
moving are left out for a while; before the proof they come back, and the scores are computed afresh in double precision.

    gap = Σ Cᵢξᵢ − βᵢ(vᵢ − b) = ½wᵀw + ΣCᵢξᵢ − D(β) ≥ 0,     ξᵢ = max(0, ỹᵢ(vᵢ − b))

Reference: Joachims (1999), Making large-scale SVM learning practical; Fan, Chen, Lin (2005), JMLR 6.

**Complexity** O(n q d) a round of q rows. **Passes over the data** one a round, over the rows that are not left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as sla

from separatrix.data.block import Float
from separatrix.dual.gram import Gram, Index
from separatrix.result import Certificate, Status
from separatrix.settings import one_blas_thread

_EPS = float(np.finfo(np.float64).eps)
_SET, _WHOLE = 1024, 2000
_INNER = 0.1
# Steps of pairs a row between two attempts at Newton's, and how often they take turns.
_STEPS_A_ROW, _TURNS = 20, 10
_SHRINK_EVERY, _WORTH_SHRINKING = 5, 0.1
_NEWTON_STEPS = 40
# So few free variables that their equations are solved to the last digit, whatever was asked for.
_POLISHED, _POLISHES = 1000, 20
# Rounds without the largest violation falling by a tenth, after which rounding is to blame.
_PATIENCE = 400
# Sums of multipliers leave rounding errors of this size relative to the bound.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Dual:
    """Coefficients β, scores f = Kβ without the intercept, the intercept, and the proof."""

    beta: Float
    scores: Float
    intercept: float
    status: Status
    certificate: Certificate
    rounds: int
    steps: int
    trace: list[dict[str, Any]]

    def with_bound(self, signs: Float, bound: Float, positive: bool | None) -> Dual:
        """The same solution with the proof for another bound that it does not reach."""
        violation = self.certificate.stationarity
        proof = _proof(self.beta, self.scores, signs, bound, self.intercept, violation, positive)
        return replace(self, certificate=proof)


def solve_dual(
    gram: Gram,
    signs: Float,
    bound: Float,
    *,
    tol: float,
    max_steps: int | None = None,
    callback: Any = None,
    positive: bool | None = True,
) -> Dual:
    """Maximise until no pair of rows violates the conditions by more than `tol`.

    Parameters
    ----------
    gram : Gram
    signs : ndarray of shape (n,)
        ỹ, ±1.
    bound : ndarray of shape (n,)
        Cᵢ > 0; infinite for a hard margin.
    tol : float
        On v, that is in units of the margin, as in LIBSVM.
    max_steps : int, optional
        Limit on pair steps; by default large enough for any problem that converges.
    callback : callable, optional
        Is given the state after every round.
    positive : bool or None
        Whether K is known to be positive semi-definite.
    """
    return _Search(gram, signs, bound, tol, max_steps, callback, positive).run()


class _Search:
    def __init__(
        self,
        gram: Gram,
        signs: Float,
        bound: Float,
        tol: float,
        max_steps: int | None,
        callback: Any,
        positive: bool | None,
    ) -> None:
        n = len(signs)
        self.gram, self.signs, self.tol, self.callback, self.positive = gram, signs, tol, callback, positive
        self.bound = bound
        self.high = np.where(signs > 0, bound, 0.0)
        self.low = np.where(signs > 0, 0.0, -bound)
        self.beta, self.scores = np.zeros(n), np.zeros(n)
        self.active: Index | None = None
        self.max_steps = max(10_000_000, 200 * n) if max_steps is None else max_steps
        self.steps = self.rounds = 0
        self.trace: list[dict[str, Any]] = []
        self.fresh = True
        """Whether the scores of all rows are as exact as they can be."""

    def run(self) -> Dual:
        status, last = Status.MAX_ITER, np.empty(0, dtype=np.intp)
        best, waited = np.inf, 0
        try:
            while True:
                rows = slice(None) if self.active is None else self.active
                rising, falling, v = self._sides(rows)
                violation = float(rising.max(initial=-np.inf) - falling.min(initial=np.inf))
                self._report(violation)
                if not violation > self.tol:
                    if self.active is None and self.fresh:
                        status = Status.CONVERGED if self.positive else Status.STATIONARY
                        break
                    self._refresh()
                    best, waited = np.inf, 0
                    continue
                best, waited = (violation, 0) if violation < 0.9 * best else (best, waited + 1)
                if self.steps >= self.max_steps:
                    break
                if waited > _PATIENCE:
                    status = Status.STALLED
                    break
                if self.rounds % _SHRINK_EVERY == _SHRINK_EVERY - 1 and len(self.signs) > _WHOLE:
                    self._shrink(rising, falling, v, last)
                    rows = slice(None) if self.active is None else self.active
                    rising, falling, v = self._sides(rows)
                self.rounds += 1
                last = self._choose(rising, falling, last)
                if not self._solve(last, violation):
                    if self.active is None and self.fresh:
                        status = Status.STALLED
                        break
                    self._refresh()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if status is Status.CONVERGED and len(self.signs) <= _WHOLE:
            self._polish()
        if not (self.active is None and self.fresh):
            self._refresh()
        return self._finish(status)

    def _sides(self, rows: slice | Index) -> tuple[Float, Float, Float]:
        """v of the rows whose β may rise (else −∞), of those whose β may fall (else ∞), and of all."""
        v, beta = self.signs[rows] - self.scores[rows], self.beta[rows]
        rising = np.where(beta < self.high[rows], v, -np.inf)
        return rising, np.where(beta > self.low[rows], v, np.inf), v

    def _choose(self, rising: Float, falling: Float, last: Index) -> Index:
        """The rows of the next round: half of the last ones, and those that violate most on either side."""
        n, active = len(rising), self.active
        if len(self.signs) <= _WHOLE:
            return np.arange(n, dtype=np.intp)
        kept = last[len(last) // 2 :][-_SET // 2 :]
        rising, falling = rising.copy(), falling.copy()
        place = kept if active is None else np.searchsorted(active, kept)
        rising[place], falling[place] = -np.inf, np.inf
        room = min(_SET - len(kept), n)
        up = np.argpartition(-rising, min(room // 2, n - 1))[: room // 2]
        up = up[np.isfinite(rising[up])]
        falling[up] = np.inf
        down = np.argpartition(falling, min(room - len(up), n - 1))[: room - len(up)]
        down = down[np.isfinite(falling[down])]
        fresh = np.concatenate([up, down])
        return np.concatenate([kept, fresh if active is None else active[fresh]])

    def _solve(self, which: Index, violation: float) -> bool:
        """Solve for these rows and add the change to the scores; whether anything changed."""
        from separatrix.kernels.smo import smo  # numba takes a while to import

        K = self.gram.square(which)
        beta, low, high = self.beta[which].copy(), self.low[which], self.high[which]
        v = self.signs[which] - self.scores[which]
        goal = max(0.5 * self.tol, _INNER * violation) if len(which) < len(self.signs) else 0.5 * self.tol
        for _ in range(_TURNS):
            limit = min(_STEPS_A_ROW * len(which), max(1, self.max_steps - self.steps))
            steps, left = smo(K, v, beta, low, high, goal, limit)
            self.steps += int(steps)
            if left <= goal or self.steps >= self.max_steps:
                break
            _newton(K, v, beta, low, high)
        change = beta - self.beta[which]
        moved = change != 0
        if not moved.any():
            return False
        self.beta[which] = beta
        self.gram.add(self.scores, self.active, which[moved], change[moved])
        self.fresh = self.gram.dtype == np.float64 and self.active is None
        return True

    def _polish(self) -> None:
        """To the last digit, where that helps: the answer no longer depends on the path to it."""
        from separatrix.kernels.smo import smo

        every = np.arange(len(self.signs))
        K, before = self.gram.square(every), np.inf
        beta, v = self.beta.copy(), self.signs - self.scores
        # No violation is known to more digits than the sums it is made of.
        least = 16.0 * _EPS * max(1.0, float((np.abs(K) @ np.abs(beta)).max(initial=0.0)))
        best = self._violation(v, beta)
        for _ in range(_POLISHES):
            if np.count_nonzero((beta > self.low) & (beta < self.high)) > _POLISHED:
                break
            _newton(K, v, beta, self.low, self.high)
            v = self.signs - K @ beta
            violation = self._violation(v, beta)
            if violation <= best:
                best, self.beta, self.fresh = violation, beta.copy(), False
            if not violation > least or violation > 0.5 * before:
                break
            before, goal = violation, max(least, 0.01 * violation)
            self.steps += int(smo(K, v, beta, self.low, self.high, goal, _STEPS_A_ROW * len(every))[0])

    def _violation(self, v: Float, beta: Float) -> float:
        top, bottom = v[beta < self.high].max(initial=-np.inf), v[beta > self.low].min(initial=np.inf)
        return float(top - bottom)

    def _shrink(self, rising: Float, falling: Float, v: Float, last: Index) -> None:
        """Leave out rows at a bound that would have to move far to violate anything."""
        top, bottom = rising.max(), falling.min()
        settled = (np.isneginf(rising) & (v >= top)) | (np.isposinf(falling) & (v <= bottom))
        settled[last if self.active is None else np.searchsorted(self.active, last)] = False
        if settled.mean() > _WORTH_SHRINKING:
            self.active = np.flatnonzero(~settled) if self.active is None else self.active[~settled]

    def _refresh(self) -> None:
        """All rows again, with scores computed afresh in double precision."""
        support = np.flatnonzero(self.beta)
        before = self.scores
        exact = np.zeros_like(before)
        self.gram.add(exact, None, support, self.beta[support], exact=True)
        if self.gram.dtype != np.float64:
            off = float(
                np.abs(exact - before)[self.active if self.active is not None else slice(None)].max(initial=0.0)
            )
            if not off <= 0.1 * self.tol:  # NaN too: single precision has overflown
                self.gram.sharpen()
        self.scores, self.active, self.fresh = exact, None, True

    def _report(self, violation: float) -> None:
        state = {
            "iteration": self.rounds,
            "violation": violation,
            "rows": len(self.signs) if self.active is None else len(self.active),
            "steps": self.steps,
        }
        self.trace.append(state)
        if self.callback is not None:
            self.callback(state)

    def _finish(self, status: Status) -> Dual:
        rising, falling, v = self._sides(slice(None))
        top, bottom = float(rising.max(initial=-np.inf)), float(falling.min(initial=np.inf))
        violation = max(0.0, top - bottom)
        # A multiplier that rounding keeps from its bound does not tell the intercept, which may be anywhere in an interval.
        room = _ROUNDING * (self.high - self.low)
        rising, falling = (
            np.where(self.beta < self.high - room, v, -np.inf),
            np.where(self.beta > self.low + room, v, np.inf),
        )
        free = np.isfinite(rising) & np.isfinite(falling)
        if free.any():
            intercept = float(v[free].mean())
        else:
            top, bottom = float(rising.max(initial=-np.inf)), float(falling.min(initial=np.inf))
            intercept = 0.5 * (top + bottom) if np.isfinite(top + bottom) else (top if np.isfinite(top) else bottom)
        certificate = _proof(self.beta, self.scores, self.signs, self.bound, intercept, violation, self.positive)
        return Dual(self.beta, self.scores, intercept, status, certificate, self.rounds, self.steps, self.trace)


def _proof(
    beta: Float,
    scores: Float,
    signs: Float,
    bound: Float,
    intercept: float,
    violation: float,
    positive: bool | None,
) -> Certificate:
    """The duality gap of (β, b) and the residuals of each kind."""
    v, alpha, length = signs - scores, np.abs(beta), float(beta @ scores)
    slack = np.maximum(0.0, signs * (v - intercept))
    hard = bool(np.isinf(bound).any())
    if hard:
        # The rule scaled until every row is outside is what the dual value is compared with.
        margin = 1.0 - float(slack.max(initial=0.0))
        primal = 0.5 * length / margin**2 if margin > 0 else np.inf
        gap = primal - (float(signs @ beta) - 0.5 * length)
        complementary = float((alpha * np.abs(v - intercept)).max(initial=0.0))
    else:
        gap, primal = float((bound * slack - beta * (v - intercept)).sum()), 0.5 * length + float(bound @ slack)
        outside = np.maximum(0.0, signs * (intercept - v))
        complementary = float(np.maximum(alpha * outside, (bound - alpha) * slack).max(initial=0.0))
    # Σβ is zero to rounding: what is left of it counts against the dual value, as does the rounding of the sums.
    gap = (
        max(0.0, gap)
        + 2.0 * abs(intercept * float(beta.sum()))
        + (16.0 * _EPS * primal if np.isfinite(primal) else 0.0)
    )
    method = "duality gap" if positive else "duality gap, if the kernel is positive semi-definite"
    if positive is False:
        gap, method = np.inf, "none: the kernel is not positive semi-definite"
    return Certificate(
        gap,
        primal,
        method,
        stationarity=violation,
        primal_feasibility=float(slack.max(initial=0.0)) if hard else 0.0,
        dual_feasibility=abs(float(beta.sum())),
        complementary_slackness=complementary,
    )


def _newton(K: Float, v: Float, beta: Float, low: Float, high: Float) -> None:
    """Newton's steps on the free variables alone, in place, as far as the first bound.

    K d + μ1 = v, Σd = 0: with the last free row eliminated, d_r = −Σd, it is (K_ij − K_ir − K_rj + K_rr) d = v_i − v_r, whose
    solution keeps the sum to rounding however singular K is. The objective rises along each step. Pairs of rows need very
    many steps where K is nearly singular on the free rows; this needs one factorisation a variable that reaches its bound.
    """
    for _ in range(_NEWTON_STEPS):
        free = np.flatnonzero((beta > low) & (beta < high))
        if len(free) < 2:
            return
        rest, last = free[:-1], free[-1]
        block = K[np.ix_(rest, rest)] - K[rest, last][:, None] - K[last, rest][None, :] + K[last, last]
        shift = 1e-12 * float(np.trace(block)) / len(rest) + np.finfo(np.float64).tiny
        block[np.diag_indices(len(rest))] += shift
        try:
            with one_blas_thread():
                factor = sla.cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
                part = sla.cho_solve(factor, v[rest] - v[last], check_finite=False)
        except sla.LinAlgError:
            return
        step = np.append(part, -part.sum())
        if not np.isfinite(step).all() or not float(step @ v[free]) > 0:
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(step > 0, high[free], low[free])
            room = np.where(step != 0, (ends - beta[free]) / step, np.inf)
        first = int(np.argmin(room))
        length = min(1.0, float(room[first]))
        moved = np.clip(beta[free] + length * step, low[free], high[free])
        if length < 1.0:
            moved[first] = ends[first]
        v -= K[:, free] @ (moved - beta[free])
        beta[free] = moved
        if length == 1.0:
            return
