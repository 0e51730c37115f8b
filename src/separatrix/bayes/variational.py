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

**Complexity** that of `expected_loss` per step. **Passes over the data** one per step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from separatrix.bayes.evidence import by_group, by_precision, log_evidence
from separatrix.bayes.expected_loss import ExpectedLoss, expected_loss
from separatrix.bayes.posterior import FullPosterior
from separatrix.data.block import Codes, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import LinearObjective
from separatrix.result import Status
from separatrix.settings import one_blas_thread
from separatrix.solvers.curvature import without_gauge

# What the bound may be below its maximum, at least and for each coefficient; of a step of log α; of a gap that is smaller.
_LEVEL = 0.01  # of α E‖v‖², relatively
# Or the bound rises by no more than this for every coefficient in so many steps: its points allow no more.
_RISE, _LAST = 1e-4, 5
_LEAST, _EACH, _FARTHEST, _SMALLER, _HALVINGS = 0.005, 2.5e-4, 1.5, 0.95, 8


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
        if penalty.matrix is None:
            trace = float((penalty.quadratic * posterior.variances()).sum())
        else:
            trace = float(np.einsum("iq,ij,jq->", posterior.factor, penalty.matrix, posterior.factor, optimize=True))
        at_mean = log_evidence(self.expected.value + penalty.value(posterior.mean), posterior, self.objective)
        return at_mean + 0.5 * (posterior.mean.size - len(posterior.gauge) - trace)

    @property
    def gap(self) -> float:
        """An estimate of max L − L at these precisions: what the quadratic with the curvature of the step has to gain.

        Right to a factor of about three near the maximum: L is less curved than the step assumes.
        """
        with one_blas_thread():
            pull = self.posterior.factor.T @ self.slope.ravel()
            off = self.posterior.factor.T @ (self.expected.hessian - self.loss) @ self.posterior.factor
        return 0.5 * float(pull @ pull) + 0.25 * float(np.square(off).sum())


@dataclass(frozen=True)
class Variational:
    """The best Gaussian that was found, and why the search ended.

    STATIONARY: the gradient is small; LEVEL: the last steps changed L by at most `_RISE` per coefficient; STALLED: no step
    helped.
    """

    state: VariationalState
    log_alpha: Float
    steps: int
    status: Status


@dataclass(frozen=True)
class FreePrecisions:
    """The precisions that may change: those of groups of columns, between bounds, with Σ tilt log α added to L."""

    groups: Codes
    low: Float
    high: Float
    tilt: Float

    def step(self, state: VariationalState, log_alpha: Float) -> tuple[Float, bool]:
        """MacKay's step of log α, longer by half, since the Gaussian will follow; at most one unit and a half.

        And whether L, with the tilt, hardly rises along any log α: α E‖v‖² to a hundredth of what it should be, n_g + 2 tilt.
        """
        penalty, posterior = state.objective.penalty, state.posterior
        squares = np.square(posterior.mean - penalty.mean)
        size = by_group(self.groups, penalty.quadratic * squares)
        spread = by_group(self.groups, penalty.quadratic * (squares + posterior.variances()))
        goal = by_group(self.groups, np.ones_like(squares)) + 2.0 * self.tilt
        left = goal - (spread - size)
        with np.errstate(divide="ignore"):
            move = 1.5 * np.log(np.maximum(left, 1e-3) / np.maximum(size, 1e-300))
        move = np.clip(log_alpha + np.clip(move, -_FARTHEST, _FARTHEST), self.low, self.high) - log_alpha
        return move, bool(((np.abs(goal - spread) <= _LEVEL * goal) | (np.abs(move) < 1e-3)).all())


def asked_of(size: int) -> float:
    """What L may be below its maximum for a Gaussian of so many coefficients."""
    return max(_LEAST, _EACH * size)


def nearest_gaussian(
    unit: LinearObjective,
    source: Source,
    mean: Float,
    loss: Float,
    gauge: Float,
    log_alpha: Float,
    free: FreePrecisions | None,
    max_steps: int,
) -> Variational | None:
    """Maximise L over the Gaussian, and over the precisions that are free; ``None`` after an interrupt in the first pass.

    The penalty of `unit` is that of log α = 0. The search starts at the mode, the Hessian of the loss there (mp, mp), and
    log α (G,), which is kept where `free` is ``None``; `gauge` (r, mp) are directions that no score notices.
    """

    def at(
        mean: Float, loss: Float, log_alpha: Float, gradient: Float | None = None, rho: float = 0.0
    ) -> VariationalState:
        penalty = unit.penalty if free is None else by_precision(unit.penalty, free.groups, log_alpha)
        objective = replace(unit, penalty=penalty)
        precision = without_gauge(penalty.add_hessian(loss.copy()), objective)
        posterior = FullPosterior.of_precision(mean, precision, gauge)
        if gradient is not None:
            mean = mean - rho * posterior.times(gradient + penalty.gradient(mean))
            posterior = replace(posterior, mean=mean)
        return VariationalState(objective, posterior, loss, expected_loss(objective, source, posterior))

    def height(state: VariationalState, log_alpha: Float) -> float:
        return state.bound + (0.0 if free is None else float(free.tilt @ log_alpha))

    step, rho, target, unnoticed = 0, 0.5, asked_of(mean.size), _RISE * mean.size
    state, status = None, Status.MAX_ITER
    try:
        state = at(mean, loss, log_alpha)
        gap, value, heights = state.gap, height(state, log_alpha), list[float]()
        while True:
            move, level = (np.zeros_like(log_alpha), True) if free is None else free.step(state, log_alpha)
            if gap <= target and level:
                status = Status.STATIONARY
                break
            if len(heights) >= _LAST and value - heights[-_LAST] <= unnoticed:
                status = Status.LEVEL
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
                status = Status.LEVEL if least <= unnoticed else Status.STALLED
                break
            state, log_alpha, gap, value = new, goal, new.gap, height(new, goal)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return None if state is None else Variational(state, log_alpha, step, status)
