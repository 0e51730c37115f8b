"""The ν-machine, in which the share of outliers is given and the price of slack is found.

    min ½‖w‖² − νSρ + Σ sᵢξᵢ,   ỹᵢ(wᵀφ(xᵢ) + b) ≥ ρ − ξᵢ,  ξ ≥ 0,  ρ ≥ 0             S = Σ sᵢ
    dual   min ½βᵀKβ,   Σ₊β = −Σ₋β = νS/2,   β = ỹα,  0 ≤ αᵢ ≤ sᵢ                      f = Kβ
    optimal ⇔ on either side  max {−fᵢ : βᵢ may rise} ≤ min {−fᵢ : βᵢ may fall};        ρ, b from the two thresholds

Divided by ρ it is the soft-margin machine of C = 1/ρ: (w, b)/ρ is its optimum, β/ρ its multipliers, and the duality gaps of
the two problems are the same but for the factor ρ². So what is published is that machine, with its proof (duality_gap.py).

Rounds as in working_set.py, with pairs within a side: for up to some thousand rows all are in one round, and Newton's steps on
the free variables end it. Where these crawl, as they do while there is hardly a margin, interior points go on once.

Reference: Schölkopf, Smola, Williamson, Bartlett (2000), Neural Computation 12; Chang and Lin (2001), Neural Computation 13.

**Complexity** O(n q d) per round of q rows. **Passes over the data** one per round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.duality_gap import KernelDual, SoftMargin, constant_dual, settled_status
from separatrix.dual.kernel_matrix import Index, KernelMatrix
from separatrix.dual.plain.free_rows import newton_on_free_rows
from separatrix.lazy import compiled_pays_by_now
from separatrix.models.svm.nu_interior import interior_point
from separatrix.models.svm.nu_pairs import side_steps
from separatrix.result import Status

_EPS = float(np.finfo(np.float64).eps)
_SET, _WHOLE = 1024, 2000
# Steps of pairs per row between two attempts at Newton's; how often they take turns in a round.
_STEPS_A_ROW, _TURNS = 20, 10
# Steps of pairs, for each product of two rows, that cost about as much as interior points.
_CRAWL = 0.3
_INNER, _FIRST, _POLISHES, _POLISHED = 0.1, 1e-3, 20, 1000
# Rows up to which NumPy does without numba, and what that takes longer: interior points, seconds for each and for each row³.
_PLAIN, _POINTS, _A_POINT, _A_CUBE = 400, 20, 2e-4, 1.5e-10
# Rounds without the violation falling by a tenth.
_PATIENCE = 200
# ρ below this many times the rounding of the scores is none.
_NO_MARGIN = 1e3


def largest_nu(signs: Float, weights: Float) -> float:
    """2 min(S₊, S₋)/S: beyond it no multipliers have the sums that ν asks for."""
    total, positive = float(weights.sum()), float(weights[signs > 0].sum())
    return 2.0 * min(positive, total - positive) / total


def solve_nu(
    matrix: KernelMatrix,
    signs: Float,
    weights: Float,
    nu: float,
    *,
    tol: float,
    max_steps: int | None,
    callback: Any,
    positive: bool | None,
) -> tuple[KernelDual, Float]:
    """The soft-margin machine that the ν-machine is, and its bounds C = s/ρ.

    `tol` is the largest violation in units of ρ, the margin; `weights` are s (n,). ``nu`` is cut at the largest that is
    feasible. The rows of the positive side come first. A ValueError where ρ = 0: less slack than ν allows leaves no margin.
    """
    nu = min(nu, largest_nu(signs, weights))
    search = _NuSearch(matrix, signs, weights, 0.5 * nu * float(weights.sum()), tol, max_steps, callback, positive)
    status = search.run()
    return search.published(status, positive)


class _NuSearch:
    def __init__(
        self,
        matrix: KernelMatrix,
        signs: Float,
        weights: Float,
        half: float,
        tol: float,
        limit: int | None,
        callback: Any,
        positive: bool | None,
    ) -> None:
        self.matrix, self.signs, self.weights, self.tol, self.callback = matrix, signs, weights, tol, callback
        self.split = int(np.count_nonzero(signs > 0))
        self.sides = (slice(0, self.split), slice(self.split, len(signs)))
        self.low, self.high = np.where(signs > 0, 0.0, -weights), np.where(signs > 0, weights, 0.0)
        self.half, self.limit = half, max(10_000_000, 200 * len(signs)) if limit is None else limit
        self.beta, self.v = self._start(half), np.zeros(len(signs))
        self.steps = self.rounds = 0
        self.interior = bool(positive) and len(signs) <= _WHOLE  # whether interior points may be tried
        expected = _POINTS * (_A_POINT + _A_CUBE * len(signs) ** 3)
        # Whether interior points come first, and NumPy does the rest: to import numba takes longer.
        self.plain = self.interior and len(signs) <= _PLAIN and not compiled_pays_by_now(expected)
        self.trace: list[dict[str, Any]] = []

    def _start(self, half: float) -> Float:
        """Multipliers of the right sums: rows at their bounds, in order, as far as the sum goes."""
        beta = np.zeros(len(self.signs))
        for side in self.sides:
            bound = self.weights[side]
            before = np.cumsum(bound) - bound
            beta[side] = np.clip(half - before, 0.0, bound)
        return beta * self.signs

    def run(self) -> Status:
        best, waited = np.inf, 0
        try:
            if self.matrix.values is None:
                self._refresh()
            else:
                self.v = -(self.matrix.values @ self.beta)
            while True:
                violation, rho = self._violation(self.v, self.beta), self.thresholds()[0]
                state = {"iteration": self.rounds, "violation": violation, "rows": len(self.v), "steps": self.steps}
                self.trace.append(state)
                if self.callback is not None:
                    self.callback(state)
                if violation <= max(self.tol * rho, self._rounding()):
                    if len(self.v) <= _WHOLE:
                        self._polish()
                    return Status.CONVERGED
                if self.steps >= self.limit:
                    return Status.MAX_ITER
                best, waited = (violation, 0) if violation < 0.9 * best else (best, waited + 1)
                self.rounds += 1
                if waited > _PATIENCE or not self._solve(self._choose(), violation, max(0.0, self.tol * rho)):
                    return Status.STALLED
        except KeyboardInterrupt:
            return Status.INTERRUPTED

    def _violation(self, v: Float, beta: Float) -> float:
        worst = 0.0
        for side in self.sides:
            own, at = v[side], beta[side]
            top = own[at < self.high[side]].max(initial=-np.inf)
            worst = max(worst, float(top - own[at > self.low[side]].min(initial=np.inf)))
        return worst

    def _rounding(self) -> float:
        """Below this no violation is known."""
        return 16.0 * _EPS * 2.0 * self.half * self.matrix.largest()

    def thresholds(self) -> tuple[float, float]:
        """(ρ, b) before the division: means over the free rows of each side, or the middle of the interval."""
        at = []
        for side in self.sides:
            v, may_fall, may_rise = self.v[side], (self.beta > self.low)[side], (self.beta < self.high)[side]
            free = may_fall & may_rise
            if free.any():
                at.append(float(-v[free].mean()))
                continue
            below = float(-v[may_fall].min(initial=np.inf))
            above = float(-v[may_rise].max(initial=-np.inf))
            # Where every row of the side is at one bound there is one end.
            at.append(0.5 * (below + above) if np.isfinite(below + above) else below if np.isfinite(below) else above)
        return 0.5 * (at[0] - at[1]), -0.5 * (at[0] + at[1])

    def _choose(self) -> Index:
        """The rows of the next round: all, or those of either side that violate most."""
        n = len(self.v)
        if n <= _WHOLE:
            return np.arange(n, dtype=np.intp)
        taken = np.zeros(n, dtype=np.bool_)
        for side in self.sides:
            for may, size in ((self.beta < self.high, -self.v), (self.beta > self.low, self.v)):
                rows = side.start + np.flatnonzero((may & ~taken)[side])
                quarter = min(_SET // 4, len(rows))
                if quarter:
                    taken[rows[np.argpartition(size[rows], quarter - 1)[:quarter]]] = True
        return np.flatnonzero(taken)

    def _values(self, which: Index) -> Float:
        """Kernel values of some rows or all of them among themselves."""
        whole = self.matrix.values if len(which) == len(self.v) else None
        return np.ascontiguousarray(self.matrix.square(which) if whole is None else whole, dtype=np.float64)

    def _steps_of_pairs(self) -> Callable[..., tuple[int, float]]:
        if self.plain:
            return side_steps
        from separatrix.kernels.support_vectors.nu import side_smo  # numba takes a while to import

        compiled: Callable[..., tuple[int, float]] = side_smo
        return compiled

    def _solve(self, which: Index, violation: float, goal: float) -> bool:
        by_pairs = self._steps_of_pairs()
        K, split = self._values(which), int(np.searchsorted(which, self.split))
        low, high = self.low[which], self.high[which]
        beta, v = self.beta[which].copy(), self.v[which].copy()
        # What ρ is, and with it the tolerance, is known after the first round.
        share = _INNER if len(which) < len(self.v) else _FIRST if self.rounds == 1 else 0.0
        goal = max(0.5 * goal, self._rounding(), share * violation)
        for _ in range(_TURNS):
            limit = min(_STEPS_A_ROW * len(which), max(1, self.limit - self.steps))
            if self.plain and self.interior:
                beta, v = self._interior(K, split, beta, low, high)
            steps, left = by_pairs(K, split, v, beta, low, high, goal, limit)
            self.steps += int(steps)
            if left <= goal or self.steps >= self.limit:
                break
            if self.interior and self.steps > _CRAWL * len(which) ** 2:
                beta, v = self._interior(K, split, beta, low, high)
            self.steps += newton_on_free_rows(K, v, beta, low, high, self.limit - self.steps, split)
        change = beta - self.beta[which]
        moved = np.flatnonzero(change)
        if not len(moved):
            return False
        self.beta[which] = beta
        if len(which) == len(self.v):
            self.v = -(K @ beta)
            return True
        scores = -self.v
        self.matrix.add(scores, None, which[moved], change[moved])
        self.v = -scores
        return True

    def _interior(self, K: Float, split: int, beta: Float, low: Float, high: Float) -> tuple[Float, Float]:
        """β by interior points, once, and −Kβ."""
        self.interior = False
        beta, taken = interior_point(K, split, beta, low, high)
        self.steps += taken
        return beta, -(K @ beta)

    def _polish(self) -> None:
        """To the last digit, where that helps: the answer no longer depends on the path to it."""
        by_pairs = self._steps_of_pairs()
        every = np.arange(len(self.v))
        K, before, least = self._values(every), np.inf, self._rounding()
        beta, v, best = self.beta.copy(), self.v.copy(), self._violation(self.v, self.beta)
        for _ in range(_POLISHES):
            if np.count_nonzero((beta > self.low) & (beta < self.high)) > _POLISHED:
                break
            self.steps += newton_on_free_rows(K, v, beta, self.low, self.high, self.limit - self.steps, self.split)
            v = -(K @ beta)
            violation = self._violation(v, beta)
            if violation <= best:
                best, self.beta, self.v = violation, beta.copy(), v.copy()
            limit = min(_STEPS_A_ROW * len(every), self.limit - self.steps)
            if not violation > least or violation > 0.5 * before or limit <= 0:
                break
            before, goal = violation, max(least, 0.01 * violation)
            self.steps += int(by_pairs(K, self.split, v, beta, self.low, self.high, goal, limit)[0])

    def _refresh(self) -> None:
        scores, support = np.zeros(len(self.v)), np.flatnonzero(self.beta)
        self.matrix.add(scores, None, support, self.beta[support], exact=True)
        self.v = -scores

    def published(self, status: Status, positive: bool | None) -> tuple[KernelDual, Float]:
        """The machine of C = 1/ρ, its scores computed afresh, and its bounds."""
        self._refresh()
        rho, b = self.thresholds()
        if not rho > _NO_MARGIN * self._rounding():
            if status is Status.CONVERGED or positive is False:
                raise ValueError(
                    "so small a share of margin errors leaves no margin between the classes: the machine is constant. "
                    "Give a larger nu, or another kernel."
                )
            return constant_dual(self.signs, self.weights, positive, status), self.weights
        beta, scores, bound = self.beta / rho, -self.v / rho, self.weights / rho
        sides, violation = SoftMargin(self.signs, bound, positive), self._violation(self.v, self.beta) / rho
        errors = self.matrix.errors(np.abs(self.beta)) / rho + 2.0 * _EPS * np.abs(scores)
        proof = sides.certificate(beta, scores, errors, b / rho, violation, self.matrix.largest())
        if status is Status.CONVERGED and not positive:
            status = Status.STATIONARY
        status = settled_status(status, proof.gap, sides.allowed(self.tol, beta))
        counts = (self.rounds, self.steps, self.trace, errors)
        return KernelDual(beta, scores, b / rho, status, proof, *counts), bound
