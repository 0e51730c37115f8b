"""Bounds on F − F*: points of the dual problem, for every convex loss with a conjugate.

    F* ≥ D(a) = −Σᵢ sᵢ (ℓ*(aᵢ) − aᵢᵀoᵢ) − P*(−Σᵢ sᵢ aᵢxᵢᵀ)                for every a in the domain of ℓ*

Proof: ℓ(η) ≥ aᵀη − ℓ*(a) and P(θ) ≥ vᵀθ − P*(v) for all η and θ; with v = −Σ s a xᵀ the terms linear in θ cancel.

At a = ∇ℓ the two sides differ by what is left of the gradient alone. Two conditions may be missing, and both are met exactly by
making slopes smaller: with κ_c ∈ [0, 1] for the rows of class c, ℓ*(κa) ≤ κℓ*(a) + (1−κ)ℓ*(0) ≤ κℓ*(a), since ℓ* is convex and
ℓ*(0) = −min ℓ ≤ 0. So a may be replaced by κa, and −κ_c Σ_c s ℓ*(a) is still a lower bound.

* An intercept without a penalty demands Σ s a_k = 0 for every score k. The sums A_ck of a_k over class c have A_ck ≥ 0 for
  k ≠ c and rows that add up to zero: the generator of a Markov chain on the classes. κ is its stationary distribution,
  κᵀA = 0, divided by its largest entry; at the optimum the columns of A add up to zero and κ = 1. With two classes, κ shrinks
  the one with the larger sum. The elimination of Grassmann, Taksar and Heyman finds κ without a subtraction, so to a relative
  error of a few K ε.
* A coefficient under absolute values alone demands |Σ s a x_j| ≤ l_j: one more factor for all rows.

A shift of the scores, a = ∇ℓ − ∇²ℓ·c, brings Σ s a near zero first where it is not so already; with C = Σ s∇²ℓ and Cc = ∂F/∂b
it does so exactly. There the gap has a closed form, whose only unknown is one product with the Hessian, K = Σ s∇²ℓ·c xᵀ:

    F(θ) − D(a) = Σ s B(a, ∇ℓ) + Σ_j (g − K)_j²/2q_j ≤ cᵀCc + Σ_j (g − K)_j²/2q_j      B the Bregman distance of ℓ*

Proof: ℓ(η) + ℓ*(a) = aᵀη + B(a, ∇ℓ) and P(θ) + P*(−v) = −vᵀθ + ½‖∇P + v‖²/q; the intercept's terms vanish with Σ s a. For the
logistic loss and the softmax B is a Kullback–Leibler divergence, at most χ² = cᵀ∇²ℓc, and a is in the domain of ℓ* if no two of
c's entries (and 0) differ by more than 1; for the squared loss B = ½c². Free coefficients other than the
intercept are out of reach of such factors: a bound that assumes |θ*_j| ≤ 2 + 2|θ_j| for them is called an estimate.

Rounding: sums over rows are known to 32 ε of the sum of their absolute values, scores to ε Σ_j |θ_jx_j| times the terms that
are added one after another.

Reference: Boyd and Vandenberghe (2004), section 5.2; El Ghaoui, Viallon, Rabbani (2012), Pacific J. Optimization 8;
Grassmann, Taksar, Heyman (1985), Operations Research 33.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import Evaluation, LinearObjective, pieces_in_cache, rows_per_task
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.penalties import Penalty
from separatrix.objectives.rounding import EPS, ROUNDING, score_rounding

# Eigenvalues of the intercepts' curvature below this share of the largest are none: scores that may all move together.
_FLAT = 1e-12
# Relative error of curvatures that are kept in single precision.
_SINGLE = 8.0 * float(np.finfo(np.float32).eps)


class Bound(NamedTuple):
    """An upper bound on F − F*, or an estimate of one."""

    gap: float
    kind: Literal["proven", "estimated"] = "proven"
    method: str = ""
    """Where it comes from."""


def nowhere_negative(value: float) -> Bound:
    """F* ≥ 0."""
    return Bound(value, method="losses are nowhere negative")


def least_bound(*bounds: Bound) -> Bound:
    """The smallest of several; a proven one is taken where both kinds are equally small."""
    return min(bounds, key=lambda bound: (bound.gap, bound.kind == "estimated"))


def strong_convexity(problem: LinearProblem, gradient: Float) -> Bound:
    """‖g‖²/2q, a bound without another pass where every coefficient has a quadratic penalty."""
    penalty, gap = problem.objective.penalty, np.inf
    if penalty.smooth and penalty.matrix is None and (penalty.quadratic > 0).all():
        with np.errstate(over="ignore"):  # columns of extreme size: no bound
            gap = 0.5 * float((np.square(gradient) / penalty.quadratic).sum())
    return Bound(gap, method="strong convexity of the penalty")


def product_gap(problem: LinearProblem, evaluation: Evaluation, squares: Float) -> Bound:
    """The closed form above, for a quadratic penalty of everything but the intercept; infinite where it does not hold.

    `squares` (p,) are Σ s x_j². One product with the Hessian; kept curvatures may be of single precision.
    """
    penalty, gradient, C, times = (
        problem.objective.penalty,
        evaluation.gradient,
        evaluation.total_curvature,
        evaluation.times,
    )
    quadratic = penalty.quadratic[:, :-1]
    closed = penalty.smooth and penalty.matrix is None and (quadratic > 0).all()
    loss = problem.objective.loss
    if not closed or loss.concordance is None or np.isinf(loss.steepest) or C is None or times is None:
        return Bound(np.inf, method="dual point")

    def product(shift: Float) -> Float:
        direction = np.zeros_like(gradient)
        direction[:, -1] = shift
        return times(direction)[:, :-1]

    return shift_gap(quadratic, squares[:-1], evaluation, C, product, _SINGLE)


def shift_gap(
    quadratic: Float,
    squares: Float,
    evaluation: Evaluation,
    C: Float,
    product: Callable[[Float], Float],
    precision: float = ROUNDING,
) -> Bound:
    """The closed form, from q (m, d), Σ s x_j² (d,), C and c → K (m, d), both of which have errors of this relative size.

    The condition is met by the exact c, which differs from ours by rounding.
    """
    gradient = evaluation.gradient
    nothing = Bound(np.inf, method="dual point")
    values, vectors = np.linalg.eigh(C)
    kept = values > _FLAT * max(values[-1], np.finfo(np.float64).tiny)
    shift = vectors[:, kept] @ ((vectors[:, kept].T @ gradient[:, -1]) / values[kept])
    least = values[kept].min(initial=np.inf)
    blurred = precision * values[-1] / least  # relative error of C⁻¹
    if not (np.isfinite(blurred) and blurred < 0.1 and max(shift.max(), 0.0) - min(shift.min(), 0.0) < 1.0):
        return nothing
    left = gradient[:, :-1] - product(shift)
    coarse = evaluation.precision / EPS * ROUNDING
    noise = coarse * np.sqrt(len(shift) * evaluation.residual * evaluation.total)
    missed = noise / least + (2.0 * blurred + precision) * np.abs(shift).sum()
    error = (coarse * np.sqrt(evaluation.residual) + missed * np.sqrt(evaluation.total)) * np.sqrt(squares)
    with np.errstate(over="ignore"):  # columns of extreme size: no bound
        gap = 0.5 * float((np.square(np.abs(left) + error) / quadratic).sum())
    bent = (1.01 + 4.0 * blurred) * abs(float(shift @ gradient[:, -1])) + 101.0 * noise**2 / least
    return Bound(gap + bent + coarse * abs(evaluation.value), method="dual point")


def intercept_price(theta: Float, gradient: Float) -> float:
    """What is left of the intercepts' gradient costs a dual point about this much: shrinking slopes moves D by 1 + |b| each."""
    return float((np.abs(gradient[:, -1]) * (2.0 + np.abs(theta[:, -1]))).sum())


def dual_cost(problem: LinearProblem, theta: Float) -> Callable[[Float], float]:
    """By how much a dual point with some gradient is below F, nearly; infinite where a coefficient has no penalty."""
    penalty, intercept = problem.objective.penalty, problem.objective.free_intercept
    held = theta.shape[1] - intercept
    quadratic = penalty.quadratic[:, :held]
    if not penalty.smooth or not (quadratic > 0).all():
        return lambda gradient: np.inf

    def cost(gradient: Float) -> float:
        left = gradient[:, :held]
        with np.errstate(over="ignore"):  # columns of extreme size
            square = 0.5 * float((np.square(left) / quadratic).sum())
        return square + intercept_price(theta, gradient) if intercept else square

    return cost


def intercept_shift(gradient: Float, curvature: Float) -> Float:
    """c (m,) with ∇²F_b·c = ∂F/∂b for the (m, m) second derivatives by the intercepts."""
    values, vectors = np.linalg.eigh(curvature)
    kept = values > _FLAT * max(values[-1], np.finfo(np.float64).tiny)
    shift: Float = vectors[:, kept] @ ((vectors[:, kept].T @ gradient) / values[kept])
    return shift


def stationary(flows: Float) -> Float:
    """(K,) κ with Σ_c κ_c (flows_ck − [c = k] Σ_l flows_cl) = 0 and largest entry 1; zeros where a class has no way out.

    `flows` (K, K) are not negative; the diagonal does not matter.
    """
    rates = flows.copy()
    for k in range(len(rates) - 1, 0, -1):
        leaving = rates[k, :k].sum()
        if not leaving > 0:
            return np.zeros(len(rates))
        rates[:k, k] /= leaving
        rates[:k, :k] += np.outer(rates[:k, k], rates[k, :k])
    kappa = np.ones(len(rates))
    for k in range(1, len(rates)):
        kappa[k] = kappa[:k] @ rates[:k, k]
    if not (np.isfinite(kappa).all() and kappa.max() > 0):
        return np.zeros(len(rates))
    return kappa / kappa.max()


@dataclass(frozen=True)
class DualPoint:
    """Sums over the rows of each class of the slopes a, which lie in the domain of ℓ*."""

    conjugates: Float
    """(K,) Σ s (ℓ*(a) − aᵀo)."""
    products: Float
    """(K, m, p) Σ s a xᵀ."""
    size: float
    """Σ s |ℓ*(a) − aᵀo|."""
    magnitudes: Float
    """(p,) at least Σ s |a_k| |x_j| for every k."""


def lower_bound(penalty: Penalty, point: DualPoint, flows: Float | None, theta: Float) -> tuple[float, bool]:
    """A lower bound of F*, and whether it is proven. `flows` is given where the last column is an unpenalised intercept."""
    if not (np.isfinite(point.conjugates).all() and np.isfinite(point.products).all()):
        return -np.inf, True
    kappa = np.ones(len(point.conjugates)) if flows is None else stationary(flows)
    product = np.tensordot(kappa, point.products, 1)
    error = np.broadcast_to((len(kappa) * EPS + ROUNDING) * point.magnitudes, product.shape).copy()
    if flows is not None:
        product[:, -1] = error[:, -1] = 0.0  # κ makes these vanish
    strict = (penalty.absolute > 0) & penalty.unheld(-(product + np.sign(product) * error))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(strict, penalty.absolute / (np.abs(product) + error), np.inf)
    factor = min(1.0, float(ratio.min(initial=1.0)))
    v = -factor * product
    unheld = penalty.unheld(v)
    slack = 2.0 * float((np.abs(v) * (1.0 + np.abs(theta)))[unheld].sum())
    v[unheld] = error[unheld] = 0.0
    value = -factor * float(kappa @ point.conjugates) - penalty.conjugate(v)
    if not np.isfinite(value):
        return -np.inf, True
    noise = (len(kappa) * EPS + ROUNDING) * point.size + float((error * np.abs(penalty.maximiser(v))).sum())
    return value - noise - slack, not unheld.any()


def dual_gap(problem: LinearProblem, theta: Float, evaluation: Evaluation, target: float = np.inf) -> Bound:
    """The bound of the dual point at θ; a shift brings the intercept's condition near where it costs much of `target`.

    One pass, two with many classes, and one more where the evaluation does not know the curvature that the shift asks for.
    """
    shift = np.zeros(len(theta))
    if problem.objective.free_intercept and intercept_price(theta, evaluation.gradient) > 0.25 * target:
        curvature = evaluation.total_curvature
        if curvature is None:
            curvature = problem.evaluate(theta, keep=True).total_curvature
        assert curvature is not None
        shift = intercept_shift(evaluation.gradient[:, -1], curvature)
    return shifted_gap(problem, theta, evaluation, shift)


def shifted_gap(problem: LinearProblem, theta: Float, evaluation: Evaluation, shift: Float) -> Bound:
    """F(θ) − D(κa) ≥ F(θ) − F* with the slopes a at θ, moved by a shift. Infinite when no dual point is near."""
    objective, source, intercept = problem.objective, problem.source, problem.objective.free_intercept
    nothing = Bound(np.inf, method="dual point")
    flows, kappa = None, None
    n_classes = 2 if source.classes is None else len(source.classes)
    if not intercept:
        kappa = np.ones(n_classes)
    elif n_classes > 2:  # with many classes κ comes first: sums for each class would cost as many products
        flows = objective.loss.flows(_slopes_by_class(objective, source, theta, shift))
        kappa = None if flows is None else stationary(flows)
        if kappa is None:
            return nothing
        flows = np.zeros((1, 1))  # the factors are in the sums
    point = dual_point(objective, source, theta, shift, kappa)
    if intercept and kappa is None:
        flows = objective.loss.flows(point.products[:, :, -1])
        if flows is None:  # sums of the wrong sign: no factor helps
            return nothing
    value, proven = lower_bound(objective.penalty, point, flows, theta)
    if not np.isfinite(value):
        return nothing
    # An error of the scores moves F by at most its slopes, Σ s|a||x_jθ_j|.
    moved = float((np.abs(theta) * point.magnitudes).sum())
    noise = (evaluation.precision / EPS) * (ROUNDING * abs(evaluation.value) + score_rounding(theta.shape[1]) * moved)
    return Bound(max(0.0, evaluation.value - value) + noise, "proven" if proven else "estimated", "dual point")


def dual_point(
    objective: LinearObjective, source: Source, theta: Float, shift: Float, kappa: Float | None
) -> DualPoint:
    """The sums of the slopes a = ∇ℓ − ∇²ℓ·(shift·1), by class or with factors κ. One pass."""
    n_classes = len(source.classes) if source.classes is not None else 2
    kept = n_classes if kappa is None else 1

    def of_block(block: Block) -> tuple[Float, Float, float, float, Float]:
        conjugates, size, residual = np.zeros(kept), 0.0, 0.0
        products, squares = np.zeros((kept, theta.shape[1], theta.shape[0])), np.zeros(theta.shape[1])
        for piece in pieces_in_cache(block):
            rows, own = objective.counted(piece)
            a = objective.slopes(theta, rows, own, shift)
            terms = objective.loss.conjugate(rows.codes, a)
            if own is not None:
                terms = terms - np.einsum("ij,ij->i", a, np.broadcast_to(own, a.shape))
            weights = np.ones(rows.n) if rows.weights is None else rows.weights
            squares += rows.column_squares(rows.weights)
            size += float(weights @ np.abs(terms))
            residual += float(np.einsum("i,ij,ij->", weights, a, a))
            if kappa is None:
                shares = weights[:, None] * (rows.codes[:, None] == np.arange(kept))
                both = rows.rmatvec((a[:, :, None] * shares[:, None, :]).reshape(rows.n, -1))
                products += both.reshape(len(both), -1, kept).transpose(2, 0, 1)
            else:
                shares = (weights * kappa[rows.codes])[:, None]
                products[0] += rows.rmatvec(a * shares)
            conjugates += np.where(shares > 0, shares * terms[:, None], 0.0).sum(axis=0)
        return conjugates, products, size, residual, squares

    conjugates, products, size, residual, squares = source.reduce(
        of_block, lambda one, two: tuple(a + b for a, b in zip(one, two, strict=True)), rows_per_task(source)
    )
    return DualPoint(conjugates, products.transpose(0, 2, 1), size, np.sqrt(residual * squares))


def _slopes_by_class(objective: LinearObjective, source: Source, theta: Float, shift: Float) -> Float:
    """(K, m) Σ s a over the rows of each class. One pass."""
    assert source.classes is not None
    n_classes = len(source.classes)

    def of_block(block: Block) -> Float:
        total = np.zeros((n_classes, len(theta)))
        for piece in pieces_in_cache(block):
            rows, own = objective.counted(piece)
            a = objective.slopes(theta, rows, own, shift)
            a = a if rows.weights is None else a * rows.weights[:, None]
            for k in range(a.shape[1]):
                total[:, k] += np.bincount(rows.codes, a[:, k], minlength=n_classes)
        return total

    return source.reduce(of_block, np.add, rows_per_task(source))
