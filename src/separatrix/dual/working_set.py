"""The dual of the soft-margin machine, by working sets.

    max_β  Σ ỹᵢβᵢ − ½βᵀKβ,   Σβᵢ = 0,   βᵢ = ỹᵢαᵢ,  0 ≤ αᵢ ≤ Cᵢ              f = Kβ,  v = ỹ − f
    optimal ⇔ m = max {vᵢ : βᵢ may rise} ≤ M = min {vᵢ : βᵢ may fall};     b is between M and m

A round takes rows that violate this, with some of the last round's, solves for them exactly (smo.py, with a Newton step on
the free ones where pairs are slow), and adds what has changed to all scores. Rows at a bound that are far from moving are left
out for a while; before the proof (duality_gap.py) they come back, and the scores are computed afresh in double precision.

Where the rows are many times the directions in which they differ, (tr K)²/‖K‖² of the centred K, those that violate most are
nearly one row: solved for together they overshoot, and the next round takes it back. There most of the rows are drawn at
random, in proportion to their violation. The pair that violates most is always among them, so every limit is an optimum.

Where K is nearly singular, pairs that violate the conditions, on the way to a large C, are without end. Once a low rank would
have been quicker, the search goes on from the solution of that (low_rank.py).

Every round raises the dual value. The largest violation goes up and down: it decides when to stop, not whether there is
progress.

Reference: Joachims (1999), Making large-scale SVM learning practical; Fan, Chen, Lin (2005), JMLR 6; Lin (2002), IEEE
Transactions on Neural Networks 13 (convergence).

**Complexity** O(n q d) per round of q rows. **Passes over the data** one per round, over the rows that are not left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.duality_gap import KernelDual, SoftMargin, settled_status
from separatrix.dual.kernel_matrix import Index, KernelMatrix
from separatrix.dual.low_rank import LowRank
from separatrix.dual.plain.free_rows import newton_on_free_rows
from separatrix.result import Status

_EPS = float(np.finfo(np.float64).eps)
_SET, _WHOLE = 1024, 2000
_INNER = 0.1
# Steps of pairs per row between two attempts at Newton's, and how often they take turns.
_STEPS_A_ROW, _TURNS = 20, 10
_SHRINK_EVERY, _WORTH_SHRINKING = 5, 0.1
# So few free variables that their equations are solved to the last digit, whatever was asked for.
_POLISHED, _POLISHES = 1000, 20
# Rounds without the largest violation falling by a tenth, after which the rise of the dual value in them is looked at: with
# less of it than the digits of the values allow there was no progress.
_PATIENCE = 100
_NO_RISE = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 1e-14}
# Rows in a sample that shows in how many directions the data vary, and the rows per direction beyond which they resemble
# each other.
_SAMPLE, _CROWDED = 512, 200
# Times that scores of single precision may turn out not to have shown the end.
_REFRESHES = 3
# How many sets of violating rows are few, and the rounds after which they were not.
_FEW, _FINISH = 2, 50
# The part of the drawn rows that violate most.
_FIRST = 8
_PARTNER = 8  # multiplications that the choice among one row's partners is worth


def solve_dual(
    matrix: KernelMatrix,
    signs: Float,
    bound: Float,
    *,
    tol: float,
    max_steps: int | None = None,
    callback: Any = None,
    positive: bool | None = True,
    start: Float | None = None,
    spent: int = 0,
) -> KernelDual:
    """Maximise until no pair of rows violates the conditions by more than `tol`: on v, in units of the margin, as in LIBSVM.

    `signs` are ỹ (n,), `bound` is C (n,), infinite for a hard margin. `max_steps` limits steps of two rows and Newton's
    together; by default it is large enough for any problem that converges. `positive` is whether K is known to be positive
    semi-definite; `callback` is given the state after every round; `start` is a feasible β to begin with, to
    which `spent` steps have led.
    """
    search = _Search(matrix, SoftMargin(signs, bound, positive), tol, max_steps, callback)
    search.steps, search.work = spent, _PARTNER * float(spent) * len(signs)
    return search.run(np.zeros(len(signs)) if start is None else start)


class _Search:
    def __init__(
        self, matrix: KernelMatrix, sides: SoftMargin, tol: float, max_steps: int | None, callback: Any
    ) -> None:
        signs, bound, positive, n = sides.signs, sides.bound, sides.positive, len(sides.signs)
        self.matrix, self.sides, self.signs, self.tol, self.callback = matrix, sides, signs, tol, callback
        self.high, self.low = sides.high, sides.low
        self.beta, self.scores = np.zeros(n), np.zeros(n)
        self.active: Index | None = None
        self.max_steps = max(10_000_000, 200 * n) if max_steps is None else max_steps
        self.steps = self.rounds = 0
        self.trace: list[dict[str, Any]] = []
        self.value, self.unconfirmed = 0.0, 0
        self.exact = True
        """Whether the scores of all rows are known in double precision: computed afresh, and every change since added."""
        self.afresh, self.added, self.since = np.zeros(n), np.zeros(n), 0
        """|β| when they were computed, the absolute changes since, and in how many rounds."""
        self.finishing = False
        """Whether few rows violate anything: they are then solved for in double precision, with none left out."""
        self.work = 0.0
        """Multiplications so far, about."""
        self.low_rank = LowRank(matrix, signs, bound, tol) if positive else None
        self.drawn = False
        self.set = max(_SET, matrix.at_once)
        # For the values of one round: fresh memory costs more than they do.
        self.room = np.empty((n if n <= _WHOLE else self.set) ** 2 if matrix.values is None else 0)
        self.random = np.random.default_rng(0)

    def _crowded(self) -> bool:
        """Whether there are many rows to each direction in which they differ."""
        n = len(self.signs)
        if n <= _WHOLE:
            return False
        K = self.matrix.square(np.sort(np.random.default_rng(0).choice(n, _SAMPLE, replace=False)))
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        size = float(np.abs(K).max(initial=0.0))
        if not 0 < size < np.inf:
            return True
        K /= size
        return n > _CROWDED * float(np.trace(K)) ** 2 / float(np.square(K).sum())

    def run(self, start: Float) -> KernelDual:
        status, last = Status.MAX_ITER, np.empty(0, dtype=np.intp)
        best, waited, before, flat, n = np.inf, 0, 0.0, False, len(self.signs)
        try:
            self.drawn = self._crowded()
            if start.any():
                self._begin(start)
            while True:
                rows = slice(None) if self.active is None else self.active
                rising, falling, v = self._sides(rows)
                violation = float(rising.max(initial=-np.inf) - falling.min(initial=np.inf))
                self._report(violation)
                if not violation > self.tol:
                    if self.exact:
                        status = Status.CONVERGED if self.sides.positive else Status.STATIONARY
                        break
                    self._refresh(self.tol)
                    best, waited, before = np.inf, 0, self.value
                    continue
                if violation < 0.9 * best:
                    best, waited, before = violation, 0, self.value
                waited += 1
                if self.steps < self.max_steps and self._jump():
                    best, waited, before, last = np.inf, 0, self.value, last[:0]
                    continue
                if self.steps >= self.max_steps:
                    break
                if waited > _PATIENCE:
                    rise, single = self.value - before, self.matrix.dtype != np.float64
                    waited, before = 0, self.value
                    if self.exact and violation <= self._least_violation():
                        status = Status.STALLED
                        break
                    if rise > _NO_RISE[np.dtype(self.matrix.dtype)] * abs(self.value):
                        flat = False
                    elif flat:
                        status = Status.STALLED
                        break
                    else:
                        flat = not single
                        self._refresh(0.0)
                        continue
                late = self.finishing and self.since < _FINISH
                if n > _WHOLE and not late and self.rounds % _SHRINK_EVERY == _SHRINK_EVERY - 1:
                    self._shrink(rising, falling, v, last)
                    rows = slice(None) if self.active is None else self.active
                    rising, falling, v = self._sides(rows)
                self.rounds += 1
                last = self._choose(rising, falling, last)
                if not self._solve(last, violation):
                    if self.exact:
                        status = Status.STALLED
                        break
                    self._refresh(0.0)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        try:
            if status is Status.CONVERGED and n <= _WHOLE:
                self._polish()
            if not self.exact:
                self._refresh(np.inf)
        except KeyboardInterrupt:  # the certificate needs exact scores: a second interrupt is not caught
            status = Status.INTERRUPTED
            self._refresh(np.inf)
        return self._finish(status)

    def _least_violation(self) -> float:
        """No violation is known to more digits than the sums it is made of: values that rise below it rise by rounding."""
        size = self.matrix.sizes[1]
        return 16.0 * _EPS * max(1.0, float(size.max(initial=0.0)) * float(size @ np.abs(self.beta)))

    def _begin(self, beta: Float) -> None:
        """Go on from a feasible β."""
        self.beta = beta.copy()
        self._refresh(0.0)
        self.value = float(self.signs @ beta - 0.5 * beta @ self.scores)

    def _sides(self, rows: slice | Index) -> tuple[Float, Float, Float]:
        """v of the rows whose β may rise (else −∞), of those whose β may fall (else ∞), and of all."""
        v, beta = self.signs[rows] - self.scores[rows], self.beta[rows]
        rising = np.where(beta < self.high[rows], v, -np.inf)
        return rising, np.where(beta > self.low[rows], v, np.inf), v

    def _choose(self, rising: Float, falling: Float, last: Index) -> Index:
        """The rows of the next round: half of the last ones or the free ones among them, and such as violate on either side."""
        n, active = len(rising), self.active
        if len(self.signs) <= _WHOLE:
            return np.arange(n, dtype=np.intp)
        kept = last[len(last) // 2 :]
        if self.drawn:
            kept = last[(self.beta[last] > self.low[last]) & (self.beta[last] < self.high[last])]
        kept = kept[-self.set // 2 :]
        room, top, bottom = min(self.set - len(kept), n), rising.max(), falling.min()
        above, below = rising - bottom, top - falling  # −∞ for a row that cannot move
        place = kept if active is None else np.searchsorted(active, kept)
        above[place] = below[place] = -np.inf
        up = self._most(above, room // 2)
        below[up] = -np.inf
        down = self._most(below, room - len(up))
        fresh = np.concatenate([up, down])
        return np.concatenate([kept, fresh if active is None else active[fresh]])

    def _most(self, violation: Float, size: int) -> Index:
        """Rows of large violation, by their order or for the most part drawn in proportion to it."""
        few = max(1, size // _FIRST) if self.drawn else size
        order = np.argpartition(-violation, min(few, len(violation) - 1))
        first = order[:few][np.isfinite(violation[order[:few]])]
        if not self.drawn:
            return first
        rest = order[few:][violation[order[few:]] > 0]
        if len(rest) > size - few:
            # The smallest of exponential variables with these rates: drawn without replacement.
            waits = self.random.exponential(size=len(rest)) / violation[rest]
            rest = rest[np.argpartition(waits, size - few)[: size - few]]
        return np.concatenate([first, rest])

    def _solve(self, which: Index, violation: float) -> bool:
        """Solve for these rows and add the change to the scores; whether anything changed."""
        from separatrix.kernels.support_vectors.smo import smo  # numba takes a while to import

        K = self.matrix.square(which, room=self.room)
        local = (K, np.arange(len(which)), K, np.ones(len(which), dtype=np.bool_), -1)
        beta, low, high = self.beta[which].copy(), self.low[which], self.high[which]
        v = self.signs[which] - self.scores[which]
        start = v.copy()
        goal = max(0.5 * self.tol, _INNER * violation) if len(which) < len(self.signs) else 0.5 * self.tol
        for _ in range(_TURNS):
            limit = min(_STEPS_A_ROW * len(which), max(1, self.max_steps - self.steps))
            steps, left = smo(*local, v, beta, low, high, goal, limit)
            self.steps += int(steps)
            self.work += _PARTNER * float(steps) * len(which)
            if left <= goal or self.steps >= self.max_steps:
                break
            taken = newton_on_free_rows(K, v, beta, low, high, self.max_steps - self.steps)
            self.steps += taken
            self.work += taken * np.count_nonzero((beta > low) & (beta < high)) ** 3 / 3.0
            total = float(max(np.abs(beta).sum(), np.abs(self.beta).sum()))
            if self.low_rank is not None and self.low_rank.due(self.work, total):
                break
        change = beta - self.beta[which]
        moved = change != 0
        if not moved.any():
            return False
        exact, self.exact = self.exact and self.active is None and self.matrix.dtype == np.float64, False
        self.value += 0.5 * float(change @ (start + v - 2.0 * start.mean()))  # Σ change = 0
        self.beta[which] = beta
        self.matrix.add(self.scores, self.active, which[moved], change[moved])
        rows = len(self.signs) if self.active is None else len(self.active)
        self.work += float(rows) * np.count_nonzero(moved) * self.matrix.cost
        self.added[which] += np.abs(change)
        self.exact, self.since = exact, self.since + 1
        return True

    def _jump(self) -> bool:
        """Go on from the machine of a low-rank K, where that is due and better; whether it was."""
        total = float(np.abs(self.beta).sum())
        if self.low_rank is None or not self.low_rank.due(self.work, total):
            return False
        beta, value, steps = self.low_rank.solve(total, self.max_steps - self.steps)
        self.steps += steps
        if beta is None or not value > self.value:
            return False
        self.rounds += 1
        self._begin(beta)
        return True

    def _polish(self) -> None:
        """To the last digit, where that helps: the answer no longer depends on the path to it."""
        from separatrix.kernels.support_vectors.smo import smo

        every = np.arange(len(self.signs))
        K, before = self.matrix.square(every), np.inf
        local = (K, every, K, np.ones(len(every), dtype=np.bool_), -1)
        beta, v = self.beta.copy(), self.signs - self.scores
        least, best = self._least_violation(), self._violation(v, beta)
        for _ in range(_POLISHES):
            if np.count_nonzero((beta > self.low) & (beta < self.high)) > _POLISHED:
                break
            self.steps += newton_on_free_rows(K, v, beta, self.low, self.high, self.max_steps - self.steps)
            v = self.signs - K @ beta
            violation = self._violation(v, beta)
            if violation <= best:
                best, self.beta, self.exact = violation, beta.copy(), False
            limit = min(_STEPS_A_ROW * len(every), self.max_steps - self.steps)
            if not violation > least or violation > 0.5 * before or limit <= 0:
                break
            before, goal = violation, max(least, 0.01 * violation)
            self.steps += int(smo(*local, v, beta, self.low, self.high, goal, limit)[0])

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

    def _refresh(self, violation: float) -> None:
        """All rows again, with scores computed afresh in double precision.

        Single precision goes on serving if its scores were off by much less than the violation and many rows violate.
        """
        support = np.flatnonzero(self.beta)
        before, rows = self.scores, slice(None) if self.active is None else self.active
        exact = np.zeros_like(before)
        self.matrix.add(exact, None, support, self.beta[support], exact=True)
        self.scores, self.active = exact, None
        rising, falling, _ = self._sides(slice(None))
        violating = np.count_nonzero(rising > falling.min(initial=np.inf) + self.tol)
        violating += np.count_nonzero(falling < rising.max(initial=-np.inf) - self.tol)
        self.finishing = bool(violating <= _FEW * self.set)
        if self.matrix.dtype != np.float64:
            off = float(np.abs(exact - before)[rows].max(initial=0.0))
            self.unconfirmed += 1
            # NaN too: single precision has overflown.
            if not off <= 0.1 * violation or self.finishing or self.unconfirmed > _REFRESHES:
                self.matrix.sharpen()
        self.exact, self.since = True, 0
        self.afresh, self.added = np.abs(self.beta), np.zeros(len(self.beta))

    def _report(self, violation: float) -> None:
        rows = len(self.signs) if self.active is None else len(self.active)
        state = {"iteration": self.rounds, "violation": violation, "rows": rows, "steps": self.steps}
        self.trace.append(state)
        if self.callback is not None:
            self.callback(state)

    def _finish(self, status: Status) -> KernelDual:
        v = self.signs - self.scores
        violation = max(0.0, self._violation(v, self.beta))
        intercept = self.sides.intercept(self.beta, v, violation, self.tol)
        errors = self.matrix.errors(self.afresh)
        if self.since:
            errors += self.matrix.errors(self.added, max(self.set, _WHOLE)) + self.since * _EPS * np.abs(self.scores)
        proof = self.sides.certificate(self.beta, self.scores, errors, intercept, violation, self.matrix.largest())
        status = settled_status(status, proof.gap, self.sides.allowed(self.tol, self.beta))
        return KernelDual(self.beta, self.scores, intercept, status, proof, self.rounds, self.steps, self.trace, errors)
