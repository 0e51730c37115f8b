"""The Gaussian nearest to the posterior, where Laplace's is not near: the one with the greatest lower bound of the evidence.

    log p(D | Λ) ≥ L(θ̂, S) = −E Σ s ℓ(θ) − ½ E (θ − m₀)ᵀΛ(θ − m₀) + ½ log |Λ| + ½ log |S| + const,     θ ~ N(θ̂, S)

    ∂L/∂θ̂ = −E ∇F(θ),     ∂L/∂S = ½ (S⁻¹ − E ∇²F(θ))                    F the loss with its penalty (Bonnet, Price)

The difference of the two sides is the divergence KL(N(θ̂, S) ‖ posterior). At the maximum the averages of gradient and
curvature over the Gaussian take the place of those at the mode: where classes can be separated the likelihood is flat on one
side of the mode and steep on the other, and Laplace's Gaussian, which sees the mode alone, puts half of its mass where the
posterior has none. L is concave in θ̂ and a factor of S (Challis and Barber). A step of length ρ ≤ 1 is that of the natural
gradient,

    S⁻¹ ← (1 − ρ) S⁻¹ + ρ E ∇²F,    θ̂ ← θ̂ − ρ S E ∇F(θ)               halved while it loses

At the maximum L depends on α_g only directly, so ∂L/∂log α_g = ½ (n_g − α_g ‖v_g‖² − α_g tr S_g).

Reference: Opper and Archambeau (2009), Neural Computation 21, eq. 2.4–2.6; Challis and Barber (2013), JMLR 14, sections 2
and 3; Khan and Lin (2017), AISTATS, for the step.

**Complexity** O(n m² p² ) a pass for the products, and O(n K N) exponentials for N points and K > 2 classes.
**Passes over the data** one a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.special import ndtri
from scipy.stats.qmc import Sobol

from separatrix.bayes.evidence import by_group, by_precision, log_evidence
from separatrix.bayes.posterior import FullPosterior
from separatrix.data.block import Block, Codes, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.losses import Softmax
from separatrix.settings import one_blas_thread
from separatrix.solvers.curvature import without_gauge

_PIECE = 1 << 20
# Points for more than two classes: as many as these numbers (rows × classes × points) allow, between two powers of 2.
_NUMBERS, _FEWEST, _MOST = 1 << 21, 7, 10
# What the bound may be below its maximum, at least and for each coefficient; of a step of log α; of a gap that is smaller.
_LEVEL = 0.01  # of α E‖v‖², relatively
# Or the bound rises by no more than this for every coefficient in so many steps: its points allow no more.
_RISE, _LAST = 1e-4, 5
_ROWS = 1024
_LEAST, _EACH, _FARTHEST, _SMALLER, _HALVINGS = 0.005, 2.5e-4, 1.5, 0.95, 8


@dataclass(frozen=True)
class ExpectedLoss:
    """Σ s ℓ averaged over a Gaussian: value, gradient (m, p) and Hessian (mp, mp), of the loss alone."""

    value: float
    gradient: Float
    hessian: Float


def expected_loss(objective: LinearObjective, source: Source, posterior: FullPosterior) -> ExpectedLoss:
    """The loss and its derivatives, averaged over the posterior. One pass."""
    m, p = posterior.mean.shape
    rows_of = RowAverages.over(objective, source, posterior)

    def of_block(block: Block) -> tuple[float, Float, Float]:
        value, gradient, hessian = 0.0, np.zeros((p, m)), np.zeros((m, p, m, p))
        for rows, _, height, slope, bend in rows_of.pieces(block):
            if rows.weights is not None:
                height, slope = height * rows.weights, slope * rows.weights[:, None]
                bend = bend * rows.weights[:, None, None]
            value += float(height.sum())
            gradient += rows.rmatvec(slope)
            for k in range(m):
                hessian[k, :, k] += rows.gram(np.maximum(bend[:, k, k], 0.0))
                for l in range(k):  # noqa: E741  # name of the formula
                    hessian[k, :, l] -= rows.gram(np.maximum(-bend[:, k, l], 0.0))  # −E p_k p_l
        return value, gradient, hessian

    value, gradient, hessian = source.reduce(
        of_block, lambda one, two: (one[0] + two[0], one[1] + two[1], one[2] + two[2]), rows_of.rows
    )
    for k in range(m):
        for l in range(k):  # noqa: E741  # name of the formula
            hessian[l, :, k] = hessian[k, :, l].T
    return ExpectedLoss(value, gradient.T, hessian.reshape(m * p, m * p))


@dataclass(frozen=True)
class RowAverages:
    """ℓ, ∂ℓ/∂η and ∂²ℓ/∂η² of every row, averaged over the scores N(η, xᵀSx) that a Gaussian gives it."""

    objective: LinearObjective
    mean: Float
    covariance: Float
    """(m, p, m, p) S."""
    points: Float
    """Over which a softmax is averaged; none for two classes."""
    rows: int | None
    """Of a block."""

    @classmethod
    def over(cls, objective: LinearObjective, source: Source, posterior: FullPosterior) -> RowAverages:
        """For the rows of a source."""
        (m, p), several = posterior.mean.shape, isinstance(objective.loss, Softmax)
        with one_blas_thread():
            covariance = posterior.covariance().reshape(m, p, m, p)
        points = _points(m - 1, source.n_rows) if several else np.zeros((0, 0))
        return cls(objective, posterior.mean, covariance, points, _ROWS if several else None)

    def pieces(self, block: Block) -> Iterator[tuple[Block, Float, Float, Float, Float]]:
        """Rows that count, η (n, m), and the averages (n,), (n, m), (n, m, m), without the weights of the rows."""
        m = len(self.mean)
        for piece in block.pieces(_PIECE // (m * m)):
            rows, own = self.objective.counted(piece)
            if rows.n:
                eta = self.objective.scores(self.mean, rows, own)
                yield rows, eta, *self._averages(rows, eta, score_spread(rows, self.covariance))

    def _averages(self, rows: Block, eta: Float, spread: Float) -> tuple[Float, Float, Float]:
        from separatrix.kernels.expected_loss import expected_logistic, expected_softmax

        n, m = eta.shape
        height, slope, bend = np.empty(n), np.empty((n, m)), np.empty((n, m, m))
        if isinstance(self.objective.loss, Softmax):
            expected_softmax(np.ascontiguousarray(eta), spread, self.points, height, slope, bend)
            at = np.arange(n), rows.codes
            height -= eta[at]
            slope[at] -= 1.0
        else:
            flat = np.ascontiguousarray(eta[:, 0]), np.ascontiguousarray(spread[:, 0, 0])
            expected_logistic(*flat, height, slope[:, 0], bend[:, 0, 0])
            height -= rows.codes * eta[:, 0]
            slope[:, 0] -= rows.codes
        return height, slope, bend


def score_spread(rows: Block, covariance: Float) -> Float:
    """(n, m, m) xᵀS_klx of every row; from S itself, which for many classes is less work than from its factor."""
    m, dense = len(covariance), rows.dense()
    spread = np.empty((rows.n, m, m))
    for k in range(m):
        for l in range(k + 1):  # noqa: E741  # name of the formula
            spread[:, k, l] = spread[:, l, k] = np.einsum("ij,ij->i", rows.matvec(covariance[k, :, l]), dense)
    return spread


@lru_cache(maxsize=8)
def _points(dimension: int, n_rows: int | None) -> Float:
    """(N, dimension) standard normal points that are evenly spread, each with its mirror image."""
    power = int(np.log2(_NUMBERS / ((dimension + 1) * max(1, n_rows or _NUMBERS))))
    uniform = Sobol(dimension, scramble=False).random_base2(min(max(power, _FEWEST), _MOST) - 1)
    z = ndtri(uniform + 0.5 / len(uniform))
    return np.ascontiguousarray(np.concatenate([z, -z]))


@dataclass(frozen=True)
class VariationalState:
    """A Gaussian with the averages of the loss over it."""

    objective: LinearObjective
    posterior: FullPosterior
    loss: Float
    """(mp, mp) S⁻¹ without the prior's part."""
    expected: ExpectedLoss

    @property
    def slope(self) -> Float:
        """(m, p) E ∇F."""
        return self.expected.gradient + self.objective.penalty.gradient(self.posterior.mean)

    @property
    def bound(self) -> float:
        """L, the lower bound of the log evidence."""
        penalty, posterior = self.objective.penalty, self.posterior
        return log_evidence(self.expected.value + penalty.value(posterior.mean), posterior, self.objective) + 0.5 * (
            posterior.mean.size - len(posterior.gauge) - prior_trace(self.objective, posterior)
        )

    @property
    def gap(self) -> float:
        """An estimate of max L − L at these precisions: what the quadratic with the curvature of the step has to gain.

        Right to a factor of about three near the maximum: L is less curved than the step believes.
        """
        with one_blas_thread():
            pull = self.posterior.factor.T @ self.slope.ravel()
            off = self.posterior.factor.T @ (self.expected.hessian - self.loss) @ self.posterior.factor
        return 0.5 * float(pull @ pull) + 0.25 * float(np.square(off).sum())


def enough(objective: LinearObjective) -> float:
    """How far the bound may be below its maximum: a thousandth for every coefficient, which predictions do not notice."""
    return max(_LEAST, _EACH * objective.penalty.quadratic.size)


def prior_trace(objective: LinearObjective, posterior: FullPosterior) -> float:
    """tr ΛS."""
    penalty = objective.penalty
    if penalty.matrix is None:
        return float((penalty.quadratic * posterior.variances()).sum())
    return float(np.einsum("iq,ij,jq->", posterior.factor, penalty.matrix, posterior.factor, optimize=True))


Ending = Literal["stationary", "level", "stalled", "limit", "interrupted"]
"""The gradient is small; the last steps changed L by at most `_RISE` a coefficient; no step helped; `max_steps`; Ctrl-C."""


@dataclass(frozen=True)
class Variational:
    """The best Gaussian that was found, and how."""

    state: VariationalState
    log_alpha: Float
    steps: int
    ending: Ending


@dataclass(frozen=True)
class FreePrecisions:
    """The precisions that may change: those of groups of columns, between bounds, with Σ tilt log α added to L."""

    groups: Codes
    low: Float
    high: Float
    tilt: Float

    def level(self, state: VariationalState, move: Float) -> bool:
        """Whether L, with the tilt, hardly rises along any log α: α E‖v‖² to a hundredth of what it should be."""
        spread, goal = self._sizes(state)
        return bool(((np.abs(goal - spread) <= _LEVEL * goal) | (np.abs(move) < 1e-3)).all())

    def _sizes(self, state: VariationalState) -> tuple[Float, Float]:
        """α E‖v‖² of every group, and what it should be: n_g + 2 tilt."""
        penalty, posterior = state.objective.penalty, state.posterior
        squares = penalty.quadratic * (np.square(posterior.mean - penalty.mean) + posterior.variances())
        spread = by_group(self.groups, squares)
        return spread, by_group(self.groups, np.ones_like(squares)) + 2.0 * self.tilt

    def step(self, state: VariationalState, log_alpha: Float) -> Float:
        """MacKay's step of log α, longer by half, since the Gaussian will follow; at most one unit and a half."""
        penalty, posterior = state.objective.penalty, state.posterior
        size = by_group(self.groups, penalty.quadratic * np.square(posterior.mean - penalty.mean))
        spread, goal = self._sizes(state)
        left = goal - (spread - size)
        with np.errstate(divide="ignore"):
            move = 1.5 * np.log(np.maximum(left, 1e-3) / np.maximum(size, 1e-300))
        return np.clip(log_alpha + np.clip(move, -_FARTHEST, _FARTHEST), self.low, self.high) - log_alpha


def nearest_gaussian(
    unit: LinearObjective,
    source: Source,
    mean: Float,
    loss: Float,
    gauge: Float,
    log_alpha: Float,
    freedom: FreePrecisions | None,
    max_steps: int,
) -> Variational | None:
    """Maximise L over the Gaussian, and over the precisions that are free.

    Parameters
    ----------
    unit : LinearObjective
        Its penalty is that of log α = 0.
    source : Source
    mean : ndarray of shape (m, p)
        Where to start: the mode.
    loss : ndarray of shape (mp, mp)
        The Hessian of the loss there.
    gauge : ndarray of shape (r, mp)
        Directions that no score notices.
    log_alpha : ndarray of shape (G,)
        Where to start.
    freedom : FreePrecisions or None
        ``None`` keeps the precisions.
    max_steps : int

    Returns
    -------
    Variational or None
        ``None`` after an interrupt in the first pass.
    """

    def at(
        mean: Float, loss: Float, log_alpha: Float, gradient: Float | None = None, rho: float = 0.0
    ) -> VariationalState:
        penalty = unit.penalty if freedom is None else by_precision(unit.penalty, freedom.groups, log_alpha)
        objective = replace(unit, penalty=penalty)
        precision = without_gauge(penalty.add_hessian(loss.copy()), objective)
        posterior = FullPosterior.of_precision(mean, precision, gauge)
        if gradient is not None:
            mean = mean - rho * posterior.times(gradient + penalty.gradient(mean))
            posterior = replace(posterior, mean=mean)
        return VariationalState(objective, posterior, loss, expected_loss(objective, source, posterior))

    def height(state: VariationalState, log_alpha: Float) -> float:
        return state.bound + (0.0 if freedom is None else float(freedom.tilt @ log_alpha))

    step, rho, target, unnoticed = 0, 0.5, enough(unit), _RISE * mean.size
    state: VariationalState | None = None
    ending: Ending = "limit"
    try:
        state = at(mean, loss, log_alpha)
        gap, value, heights = state.gap, height(state, log_alpha), list[float]()
        while True:
            move = np.zeros_like(log_alpha) if freedom is None else freedom.step(state, log_alpha)
            if gap <= target and (freedom is None or freedom.level(state, move)):
                ending = "stationary"
                break
            if len(heights) >= _LAST and value - heights[-_LAST] <= unnoticed:
                ending = "level"
                break
            if step >= max_steps:
                break
            heights.append(value)
            step, rho, least = step + 1, min(1.0, 1.2 * rho), np.inf
            for _ in range(_HALVINGS):
                goal = log_alpha + min(1.0, 2.0 * rho) * move
                bent = state.loss + rho * (state.expected.hessian - state.loss)
                try:
                    new = at(state.posterior.mean, bent, goal, state.expected.gradient, rho)
                except np.linalg.LinAlgError:  # a flat intercept that next to nothing holds
                    rho *= 0.5
                    continue
                gained = height(new, goal) - value
                least = min(least, abs(gained))
                # Points are finite in number, so that the bound is noisy in its last digits; the gap is not.
                if gained > 0.0 or (new.gap < _SMALLER * gap and gained > -target):
                    break
                rho *= 0.5
            else:
                ending = "level" if least <= unnoticed else "stalled"
                break
            state, log_alpha, gap, value = new, goal, new.gap, height(new, goal)
    except KeyboardInterrupt:
        ending = "interrupted"
    return None if state is None else Variational(state, log_alpha, step, ending)
