"""The machine of a kernel matrix of low numerical rank, by interior points.

    K = LLᵀ + R,   L of shape (n, r),   R positive semi-definite with diagonal at most ε        (Cholesky, largest pivot first)
    max_β  Σ ỹᵢβᵢ − ½‖Lᵀβ‖²,   Σβᵢ = 0,   0 ≤ ỹᵢβᵢ ≤ Cᵢ

is the linear machine on the rows of L (interior.py). Its scores are off by |(Rβ)ᵢ| ≤ ε Σ|β|, since |Rᵢⱼ| ≤ (RᵢᵢRⱼⱼ)^½: with ε a
part of tol/Σ|β| its optimum violates the conditions of K by that part of the tolerance. In few columns r is tens or hundreds,
however many rows there are, and steps of two rows, on a matrix so nearly singular, are millions.

Multipliers of interior points reach no bound. Rows off the margin by more than a part of the tolerance are put at theirs, and
what Σβ then lacks is shared by the rows on the margin in proportion to their room. The answer need not be better: the
working sets go on from it, or prove it as it is.

Whether it is worth its cost is not known beforehand. It is tried once the working sets have spent as much as it is likely to
cost, so that the two together take at most about twice the time of the quicker one.

Reference: Fine and Scheinberg (2001), Efficient SVM training using low-rank kernel representations, JMLR 2.

**Complexity** O(n r²) per step, of which there are a few dozen; memory O(n r). **Passes over the data** one, for r columns
of K.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.dual.interior import interior_points
from separatrix.dual.kernel_matrix import KernelMatrix
from separatrix.settings import one_blas_thread

_EPS = float(np.finfo(np.float64).eps)
# Of the tolerance: the error that L may cause, the distance from the margin within which a row keeps its multiplier, and the
# violation at which the steps end.
_ERROR, _ON_MARGIN, _ENOUGH = 0.1, 0.1, 0.3
# No pivot below this share of the largest one is more than rounding.
_PIVOT = 1e-14
# Sizes of k(x, x) whose products neither overflow nor vanish.
_SIZES = 1e-100, 1e100
_STEPS, _PATIENCE, _CORRECTIONS = 100, 20, 3
# Rows that the rank is estimated from, the share of them beyond which it is not low, the fewest rows for each rank, and the
# largest one.
_SAMPLE, _LOW, _ROWS_A_RANK, _LARGEST = 512, 0.9, 4, 1500
# Multiplications for each entry of L and each of its columns: the steps that are usual, and the factor.
_USUAL = 25.0
# All rows reach further than the sample.
_FURTHER = 1.5


class LowRank:
    """The machine of L, once it is due: of a positive semi-definite kernel, with `signs` ỹ and `bound` C.

    `tol` is the largest violation of the optimality conditions.
    """

    def __init__(self, matrix: KernelMatrix, signs: Float, bound: Float, tol: float) -> None:
        self.matrix, self.signs, self.bound, self.tol = matrix, signs, bound, tol
        n = len(signs)
        self.most = int(min(_LARGEST, n // _ROWS_A_RANK, matrix.memory / (8.0 * n)))
        """The largest rank; 0 once there is nothing more to try."""
        self._rank: int | None = None

    def due(self, work: float, total: float) -> bool:
        """Whether `work` multiplications, spent elsewhere, are as many as this is likely to take; `total` is Σ|β| so far."""
        n = len(self.signs)
        if not self.most or work < _USUAL * n:
            return False
        if self._rank is None:
            fine = bool(np.isfinite(self.bound).all()) and _SIZES[0] < self.matrix.largest() < _SIZES[1]
            # Early multipliers are small: the rank is that for the largest they may become.
            total = max(
                total, 2.0 * min(float(self.bound[self.signs > 0].sum()), float(self.bound[self.signs < 0].sum()))
            )
            self._rank = self._of_sample(total) if fine else n
            if self._rank > min(self.most, _LOW * min(n, _SAMPLE)):
                self.most = 0
                return False
        return work >= _USUAL * n * (_FURTHER * self._rank) ** 2

    def _smallest(self, total: float) -> float:
        """The pivot below which L may end."""
        # Multipliers on the way sum to as much as they will, within a small factor.
        total = max(total, 0.1 * float(self.bound.min()))
        return max(_PIVOT * self.matrix.largest(), _ERROR * self.tol / total)

    def _of_sample(self, total: float) -> int:
        n = len(self.signs)
        K = self.matrix.square(np.sort(np.random.default_rng(0).choice(n, min(n, _SAMPLE), replace=False)), exact=True)
        factor = partial_cholesky(K.diagonal().copy(), lambda i: K[i], self._smallest(total), len(K))
        return len(K) if factor is None else factor.shape[1]

    def solve(self, total: float, limit: int) -> tuple[Float | None, float, int]:
        """(β, its dual value, steps taken), at most `limit` steps; no β where the rank is not low or no step was of use.

        `total` is Σ|β| so far.
        """
        most, self.most = self.most, 0
        diagonal = self.matrix.diagonal()
        with one_blas_thread(), np.errstate(all="ignore"):
            factor = partial_cholesky(diagonal, self.matrix.column, self._smallest(total), most)
            if factor is None:
                return None, -np.inf, 0
            best, least, waited, taken, last = None, np.inf, 0, 0, None
            every = interior_points(factor, np.ones(factor.shape[1]), self.signs, self.bound, 1, None)
            for theta, intercept, alpha in islice(every, min(_STEPS, limit)):
                taken += 1
                last = (theta, *self._at_bounds(self.signs * (factor @ theta + intercept) - 1.0, alpha))
                point = self._balanced(*last[1:])
                waited += best is not None
                if (violation := self._violation(factor, point)) < least:
                    best, least, waited = point, violation, 0
                if least <= _ENOUGH * self.tol or waited > _PATIENCE:
                    break
            if last is not None and least > _ENOUGH * self.tol:
                point = self._with_scores(factor, *last)
                best = point if self._violation(factor, point) < least else best
            if best is None:
                return None, -np.inf, taken
            return best, float(self.signs @ best) - 0.5 * float(np.square(factor.T @ best).sum()), taken

    def _at_bounds(self, margin: Float, alpha: Float) -> tuple[Float, NDArray[np.bool_]]:
        """Multipliers with those of rows off the margin at their bounds, and which rows are on it."""
        cut = _ON_MARGIN * self.tol
        return np.where(margin > cut, 0.0, np.where(margin < -cut, self.bound, alpha)), np.abs(margin) <= cut

    def _balanced(self, alpha: Float, on: NDArray[np.bool_]) -> Float | None:
        """β with Σβ = 0 by a share of the room of the rows on the margin; ``None`` where that is too little."""
        for _ in range(2):  # the second time for the rounding of the first
            excess = math.fsum(self.signs * alpha)
            if abs(excess) <= _EPS * float(alpha.sum()):
                break
            falls = (self.signs > 0) == (excess > 0)  # whether the multiplier itself falls
            room = np.where(on, np.where(falls, alpha, self.bound - alpha), 0.0)
            total = float(room.sum())
            if not abs(excess) <= total:
                return None
            alpha = np.clip(alpha + np.where(falls, -1.0, 1.0) * (abs(excess) / total) * room, 0.0, self.bound)
        return self.signs * alpha

    def _with_scores(self, factor: Float, theta: Float, alpha: Float, on: NDArray[np.bool_]) -> Float | None:
        """β with Σβ = 0 and Lᵀβ = θ, as nearly as the rows on the margin can make it."""
        at, alpha, goal = np.flatnonzero(on), alpha.copy(), np.append(theta, 0.0)
        rows = self.signs[at, None] * np.column_stack([factor[at], np.ones(len(at))])
        for _ in range(_CORRECTIONS):
            beta = self.signs * alpha
            lacking = goal - np.append(factor.T @ beta, math.fsum(beta))
            # The least change in units of the room to the nearer bound.
            room = np.minimum(alpha[at], self.bound[at] - alpha[at])
            change = room * np.linalg.lstsq((rows * room[:, None]).T, lacking, rcond=None)[0]
            alpha[at] = np.clip(alpha[at] + change, 0.0, self.bound[at])
        return self._balanced(alpha, on)

    def _violation(self, factor: Float, beta: Float | None) -> float:
        """Of the conditions, by the scores of L."""
        if beta is None:
            return np.inf
        v, alpha = self.signs - factor @ (factor.T @ beta), np.abs(beta)
        rising = np.where(self.signs > 0, alpha < self.bound, alpha > 0)
        falling = np.where(self.signs > 0, alpha > 0, alpha < self.bound)
        return float(v[rising].max(initial=-np.inf) - v[falling].min(initial=np.inf))


def partial_cholesky(diagonal: Float, column: Callable[[int], Float], smallest: float, most: int) -> Float | None:
    """(n, r) L with K − LLᵀ nowhere above `smallest` on the diagonal; ``None`` where that takes more than `most` columns.

    `diagonal` is that of K, and is changed; `column` gives the (n,) column of a row.
    """
    factor = np.empty((len(diagonal), most), order="F")
    for r in range(most + 1):
        pivot = int(diagonal.argmax())
        if not diagonal[pivot] > smallest:
            return factor[:, :r]
        if r == most:
            break
        new = (column(pivot) - factor[:, :r] @ factor[pivot, :r]) / np.sqrt(diagonal[pivot])
        factor[:, r] = new
        diagonal -= np.square(new)
        diagonal[pivot] = 0.0
    return None
