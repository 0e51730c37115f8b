"""Second-order information that is enough for a step and for a proof.

    H = D^½ E D^½,  D = diag H           E has a unit diagonal whatever the units of the columns: its factor is accurate
    step  −H⁻¹g,     decrement  ν = √(gᵀH⁻¹g)

The proof. For a loss with |ℓ'''[u,u,v]| ≤ c‖v‖ℓ''[u,u] let R = c·max_i ‖xᵢ‖_{H⁻¹}. Along any line from θ the second
derivative shrinks at most like e^{−Rδ}, δ the distance in the norm of H, so F(θ+Δ) ≥ F + gᵀΔ + (e^{−Rδ} + Rδ − 1)/R² and

    F(θ) − F* ≤ ((1−s) log(1−s) + s)/R² ≈ ½ν²,      s = Rν < 1

H may be any matrix below ∇²F: that of some of the rows, or one from an earlier θ₀, since ∇²F(θ) ⪰ e^{−a}∇²F(θ₀) with
a = R₀‖θ−θ₀‖_{H₀}. ‖xᵢ‖²_{H⁻¹} ≤ (Σ_j x_ij²/D_j) / λ_min(E), and λ_min(E) ≥ 1/tr E⁻¹.

Reference: Bach (2010), Self-concordant analysis for logistic regression, Electronic J. Statistics 4, eq. 3 and prop. 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sla
from scipy.linalg import lapack

from separatrix.data.block import Block, Float
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.rounding import EPS, score_rounding
from separatrix.settings import one_blas_thread

# Up to this size eigenvalues cost little beside the pass that made the matrix.
_EIGENVALUES_UP_TO = 400
# Terms of a score that are added one after another where the arithmetic is of single precision (see kernels/device).
_ADDED_IN_TURN = 48
# How many times its rounding a gradient should be for a step that proves nothing.
_GAINS = 8.0


class Curvature:
    """A positive semi-definite (mp, mp) matrix, factored once for steps and bounds.

    `shape` is that of θ. Directions without curvature, which the data do not see, are left out of steps and norms.
    """

    def __init__(self, hessian: Float, shape: tuple[int, int]) -> None:
        self.shape = shape
        with one_blas_thread():
            self._decompose(hessian)

    def _decompose(self, hessian: Float) -> None:
        diagonal = hessian.diagonal().copy()
        # A column of zeros without a penalty has no curvature at all: its unit is of no consequence.
        self.blank = ~(diagonal > 0)
        diagonal[self.blank] = 1.0
        self.root = np.sqrt(diagonal)
        equal = hessian / self.root[:, None] / self.root[None, :]
        equal.flat[:: len(equal) + 1] = 1.0
        self._vectors: Float | None = None
        if not len(equal):  # no columns: LAPACK refuses empty matrices
            self._values, self._vectors, self.deficient = diagonal, equal, False
            return
        # LAPACK itself: what SciPy wraps around it takes longer than the factor of a small matrix.
        self._factor, failed = lapack.dpotrf(equal, lower=1, clean=1)
        pivots = self._factor.diagonal()
        self.deficient = bool(failed) or bool(pivots.min(initial=1.0) ** 2 <= 4.0 * len(equal) * EPS)
        self._equal = None if self.deficient else equal
        if self.deficient:
            values, vectors = np.linalg.eigh(equal)
            kept = values > 8.0 * len(equal) * EPS * values[-1]
            self._values, self._vectors = values[kept], vectors[:, kept]

    @cached_property
    def least(self) -> float:
        """A lower bound of the least eigenvalue of E, of those that are kept; 0 where rounding leaves nothing of it.

        λ_min ≥ 1/tr E⁻¹ = 1/‖L⁻¹‖² is a bound as well, at the cost of a factorisation. The entries of E have errors of 32 ε,
        and an eigenvalue or a factor is that of a matrix which differs by 16 ε or p ε in each.
        """
        p = len(self.root)
        if not p:  # no columns: nothing can be smaller
            return 1.0
        if self._vectors is not None:
            value, error = float(self._values[0]), 48.0 * p * EPS
        elif p <= _EIGENVALUES_UP_TO:
            with one_blas_thread():
                first = lapack.dsyevr(self._equal, compute_v=0, range="I", il=1, iu=1, lower=1)
            value, error = float(first[0][0]) if first[-1] == 0 else 0.0, 48.0 * p * EPS
        else:
            with one_blas_thread():
                inverse, _ = lapack.dtrtri(self._factor, lower=1)
            value, error = 1.0 / float(np.square(np.tril(inverse)).sum()), (32.0 + p) * p * EPS
        return max(0.0, value - error)

    @property
    def metric(self) -> Float:
        """(p,) 1/D_j, D_j the least diagonal entry of column j over the scores."""
        return 1.0 / np.square(self.root).reshape(self.shape).min(axis=0)

    def decrement(self, v: Float) -> float:
        """‖v‖_{H⁻¹}; infinite where v points along a column without any curvature."""
        if v.ravel()[self.blank].any():
            return np.inf
        return float(np.linalg.norm(self._white(v)))

    def null_directions(self) -> Float:
        """(r, m, p) directions that were left out because H does not resolve them; none when its rank is full."""
        if self._vectors is None or not len(self.root):
            return np.zeros((0, *self.shape))
        complement = sla.null_space(self._vectors.T) / self.root[:, None]
        complement[self.blank] = 0.0  # a column of zeros is known to be one
        return complement.T.reshape(-1, *self.shape)

    def _white(self, v: Float) -> Float:
        """E^{−½}D^{−½}v up to a rotation."""
        scaled = v.ravel() / self.root
        if self._vectors is not None:
            return (self._vectors.T @ scaled) / np.sqrt(self._values)
        result: Float = lapack.dtrtrs(self._factor, scaled, lower=1)[0]
        return result

    def solve(self, v: Float) -> Float:
        """H⁻¹v, of the shape of θ."""
        scaled = v.ravel() / self.root
        if self._vectors is not None:
            solved = self._vectors @ ((self._vectors.T @ scaled) / self._values)
        else:
            solved = lapack.dpotrs(self._factor, scaled, lower=1)[0]
        result: Float = np.where(self.blank, 0.0, solved / self.root).reshape(self.shape)
        return result

    def length(self, v: Float) -> float:
        """‖v‖_H."""
        scaled = v.ravel() * self.root
        if self._vectors is not None:
            return float(np.linalg.norm(np.sqrt(self._values) * (self._vectors.T @ scaled)))
        return float(np.linalg.norm(scaled @ self._factor))

    def diagonal_length(self, v: Float) -> float:
        """√(Σ H_jj v_j²)."""
        return float(np.linalg.norm(v.ravel() * self.root))

    def inverse(self) -> Float:
        """(mp, mp) H⁻¹ (its pseudo-inverse in the scaled columns when rank is missing)."""
        if self._vectors is not None:
            inner = (self._vectors / self._values) @ self._vectors.T
        else:
            inner = lapack.dpotrs(self._factor, np.eye(len(self.root)), lower=1)[0]
        result: Float = inner / self.root[:, None] / self.root[None, :]
        return result

    def spread(self, largest_row: float) -> float:
        """A bound on max_i ‖xᵢ‖_{H⁻¹}, given max_i Σ_j metric_j x_ij²."""
        return float(np.sqrt(largest_row / self.least)) if self.least > 0 else np.inf


@dataclass(frozen=True)
class LargestRow:
    """max_i Σ_j metric_j x_ij², measured once in a metric that later ones are compared with."""

    value: float
    metric: Float

    def spread(self, curvature: Curvature) -> float:
        """A bound on max_i ‖xᵢ‖_{H⁻¹}; columns whose unit has changed count accordingly."""
        return curvature.spread(self.least_spread(curvature) ** 2)

    def least_spread(self, curvature: Curvature) -> float:
        """What `spread` would be if the least eigenvalue of E were 1: it is never larger, since E has a unit diagonal."""
        return float(np.sqrt(self.value * float((curvature.metric / self.metric).max(initial=0.0))))


def gap_bound(decrement: float, reach: float) -> float:
    """((1−s) log(1−s) + s)/R² with s = Rν; infinite from s = 1 on."""
    s = reach * decrement
    if not s < 1.0:
        return np.inf
    if s < 1e-3:  # the closed form would cancel
        return 0.5 * decrement**2 * (1.0 + s / 3.0 + s * s / 6.0 + s**3)
    return float(((1.0 - s) * np.log1p(-s) + s) / reach**2)


def rounding(spread: float, evaluation: Evaluation, length: float, p: int) -> float:
    """‖error of the gradient‖_{H⁻¹} from rounding, in the sums over the rows and in the scores.

    Σ|r||x_j| ≤ √(Σr²)√(Σx_j²), summed in pieces; scores are off by at most p·ε·Σ_j|x_jθ_j| ≤ p·ε·spread·`length`, the length
    of θ in the norm of diag H, which moves the gradient by no more than √(Σh) times that; Σh is at most Σs, or the loss itself
    where that is the exponential one.
    """
    sums = 16.0 * spread * float(np.sqrt(evaluation.residual * evaluation.total))
    coarse = evaluation.precision / EPS
    terms = p if coarse <= 1.0 else min(p, _ADDED_IN_TURN)
    bends = float(np.sqrt(max(evaluation.total, evaluation.loss)))
    return evaluation.precision * sums + coarse * score_rounding(terms) * spread * length * bends


def blurred(curvature: Curvature, spread: float, evaluation: Evaluation, theta: Float, target: float) -> bool:
    """Whether single precision keeps the proof away: the rounding of the gradient is most of what is left of it."""
    if evaluation.precision <= EPS or not np.isfinite(spread):
        return False
    noise = rounding(spread, evaluation, curvature.diagonal_length(theta), theta.shape[1])
    # Where the rounding alone exceeds the target there will be no proof; a step still gains while it is a small part.
    least = _GAINS * noise if noise**2 > target else noise
    return curvature.decrement(evaluation.gradient) < least


def without_gauge(hessian: Float, objective: LinearObjective) -> Float:
    """The Hessian with the directions filled that no score notices, in place.

    Adding one vector to the coefficients of every class leaves a softmax as it is. A penalty settles it; in a column
    without one the answer is the point where the coefficients sum to zero, from which no gradient leads away.
    """
    loss, penalty = objective.loss, objective.penalty
    if loss.gauge() is not None:
        m, p = penalty.quadratic.shape
        unheld = penalty.free & ~np.isfinite(penalty.low) & ~np.isfinite(penalty.high)
        for j in np.flatnonzero(unheld.all(axis=0)):
            at = np.arange(m) * p + j
            hessian[np.ix_(at, at)] += float(hessian[at, at].mean())
    return hessian


def flat_directions(problem: LinearProblem, curvature: Curvature) -> bool:
    """Whether F does not change at all along the directions that H does not resolve. One pass, if there are any.

    A Gram matrix sees nothing below the root of rounding; columns that differ by 1e-8 look equal to it and are not.
    """
    directions = curvature.null_directions()
    if not len(directions):
        return True
    penalty = problem.objective.penalty
    held = max(float((v * penalty.times(v)).sum()) / float(np.square(v).sum()) for v in directions)
    if held > 1e-12 * float(np.abs(penalty.times(np.ones(curvature.shape))).max(initial=0.0)):
        return False
    flat = directions.reshape(-1, directions.shape[2])

    def of_block(block: Block) -> tuple[float, float]:
        rows = block.counted()
        moved = rows.matvec(flat.T)
        size = rows.largest_row(curvature.metric)
        return float(np.abs(moved).max(initial=0.0)), size

    moved, size = problem.source.reduce(of_block, lambda one, two: (max(one[0], two[0]), max(one[1], two[1])))
    longest = float(np.sqrt(np.square(flat / np.sqrt(curvature.metric)).sum(axis=1)).max())
    return moved <= 64.0 * EPS * np.sqrt(size) * longest
