"""Inference for maximum-likelihood logistic regression: what the curvature of the likelihood says about the estimate.

    β̂ ≈ N(β, V),    V = I⁻¹,    I = Σ sᵢ ∇²ℓᵢ ⊗ xᵢxᵢᵀ at β̂                                      covariance="model"
    V = I⁻¹ (Σ sᵢ gᵢgᵢᵀ) I⁻¹,   gᵢ = ∇ℓᵢ ⊗ xᵢ;   times n/(n − q) for "HC1"                       covariance="robust", "HC0"
    Wald      β̂_j ± z √V_jj
    profile   {b : 2(L(β̂) − max L(β with β_j = b)) ≤ z²}

Weights are repetitions: a row of weight 2 is two rows in every one of these sums. Scores are contrasts against a baseline
class; a symmetric softmax is read against its first class, which deletes the rows and columns of that class from I.
What the solver saw through centred or scaled columns is taken to the user's units by `LinearProblem.finish`, which is linear.

References: McCullagh and Nelder (1989), Generalized Linear Models, section 4.4; White (1982), Econometrica 50, theorem 3.2;
MacKinnon and White (1985), J. Econometrics 29; Venzon and Moolgavkar (1988), Applied Statistics 37, eq. 2.

**Complexity** O(n q²) a pass, O(q³) a factorisation; q coefficients.
**Passes over the data** `gather` one, two or three after a loose fit; robust errors two; a profile limit about eight.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning

from separatrix.data import Source
from separatrix.data.block import Block, Float
from separatrix.models.logistic.null_model import Targets, null_log_likelihood
from separatrix.models.logistic.summary_table import REFUSALS, Inference, Row, Summary, check_wishes
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.losses import Softmax
from separatrix.objectives.penalties import Penalty
from separatrix.result import Fit, Status
from separatrix.solvers.curvature import Curvature

_EPS = float(np.finfo(np.float64).eps)
# Distances to the optimum, in standard errors: good enough to stop at, to vouch for, to keep quiet about.
_AT_THE_OPTIMUM, _NEAR, _UNNOTICED = 1e-8, 1e-4, 1e-3
# What a step may still promise, as a share of F, where rounding ends a fit.
_SETTLED = 1e-9
# Beyond this many coefficients their covariance is not formed at the end of every fit.
LARGEST = 1000

_LOOSE = (
    "The fit ended {:.2g} standard errors from the optimum and Newton's method did not get there from it. Lower tol or "
    "raise max_iter; if that does not help, the classes may be separable or the columns nearly dependent."
)
_OTHER_ROWS = (
    "These rows are not the ones the model was fitted to: their total weight is {:.10g} and their log-likelihood {:.10g}, "
    "those of the fit were {:.10g} and {:.10g}. Give the same X, y, sample_weight and offset."
)


def gather(
    problem: LinearProblem,
    theta: Float,
    source: Source,
    *,
    fit: Fit | None = None,
    note: str = "",
    largest: int | None = LARGEST,
) -> Inference:
    """What the optimum of a problem says about the errors of its coefficients, or why it says nothing.

    Parameters
    ----------
    problem : LinearProblem
    theta : ndarray of shape (m, p)
        Where the solver ended. A few more Newton steps are taken from there when it is not yet the optimum.
    source : Source
        The labelled rows the problem was built from, for the names of columns and classes.
    fit : Fit, optional
        The record of the fit: separated classes and interrupted fits are refused.
    note : str
        Shown under the table.
    largest : int or None
        Refuse, without reading the rows, when there are more coefficients than this.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data import as_source
    >>> from separatrix.models.logistic.inference import gather, summarise
    >>> from separatrix.objectives.linear_problem import LinearProblem
    >>> source = as_source([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1], [3.0, 1.0, 1.0, 3.0]).labelled()
    >>> problem = LinearProblem.of(source, C=np.inf, l1_ratio=0.0, fit_intercept=True)
    >>> table = summarise(gather(problem, problem.start(), source))
    >>> [(row.name, round(row.odds_ratio, 6), round(row.standard_error**2, 6)) for row in table.rows]
    [('x0', 9.0, 2.666667), ('(intercept)', 0.333333, 1.333333)]
    """
    assert source.classes is not None, "label the source first"
    contrasts, theta = _against_baseline(problem, theta)
    loss, labels, (m, p) = contrasts.objective.loss, source.classes.tolist(), contrasts.shape
    baseline = labels.pop(loss.baseline or 0 if isinstance(loss, Softmax) else 0)
    names = None if source.feature_names is None else tuple(map(str, source.feature_names))
    blank = Inference(*contrasts.coefficients(theta), tuple(labels), baseline, names, problem.fit_intercept, note=note)
    refusal = _refusal(problem.objective.penalty, fit)
    if not refusal and largest is not None and m * p > largest:
        refusal = f"A covariance matrix of {m * p} coefficients is not formed after a fit: give summary X and y again."
    if refusal:
        return replace(blank, refusal=refusal)
    rows = Targets(contrasts.source, keep=contrasts.objective.offset is not None)
    at, moved = _optimum(replace(contrasts, source=rows), theta)
    if at.curvature.deficient or at.curvature.blank.any():
        return replace(blank, refusal=_dependence(at, source))
    if not at.left <= _NEAR:
        return replace(blank, refusal=_LOOSE.format(moved + at.left))
    if moved > _UNNOTICED:
        note = f"{note} The model's own coefficients, fitted to its tol, are up to {moved:.2g} standard errors away.".strip()
    # One more step is free; it is too short for the information to notice.
    coef, intercept = contrasts.coefficients(at.theta - at.curvature.solve(at.evaluation.gradient))
    return replace(
        blank,
        coef=coef,
        intercept=intercept,
        covariance=_in_user_units(at.curvature.inverse(), contrasts),
        log_likelihood=0.5 * at.left**2 - at.evaluation.loss,
        null_log_likelihood=null_log_likelihood(contrasts, rows),
        n_observations=at.evaluation.total,
        note=note,
    )


def summarise(
    inference: Inference,
    *,
    level: float = 0.95,
    interval: str = "wald",
    covariance: str = "model",
    data: LinearProblem | None = None,
) -> Summary:
    """The table of coefficients with their errors, tests and intervals.

    Parameters
    ----------
    inference : Inference
    level : float, default=0.95
        Of the intervals.
    interval : {"wald", "profile"}, default="wald"
        Symmetric about the estimate, or where the profile likelihood has fallen by as much as the level allows.
    covariance : {"model", "robust", "HC0", "HC1"}, default="model"
        The inverse information, or the sandwich ("robust" is "HC0"), which also holds when the model does not.
    data : LinearProblem, optional
        The problem of the rows that were fitted; needed for profile intervals and robust errors.
    """
    if inference.refusal:
        raise ValueError(inference.refusal)
    check_wishes(level, interval, covariance)
    covariance = "HC0" if covariance == "robust" else covariance
    profile, robust = interval == "profile", covariance != "model"
    if profile and robust:
        raise ValueError("A profile interval trusts the likelihood, robust errors do not; take interval='wald' there.")
    if data is None and (profile or robust):
        wish = "Profile intervals" if profile else "Robust standard errors"
        raise ValueError(f"{wish} need the rows again, which the model does not keep: give summary X and y.")
    at = _return(inference, data) if data is not None and (profile or robust) else None
    matrix = inference.covariance if at is None or profile else _sandwich(at, corrected=covariance == "HC1")
    estimates, goal = inference.estimates, float(ndtri(0.5 + 0.5 * level))
    errors = np.sqrt(matrix.diagonal()).reshape(estimates.shape)
    lower, upper = estimates - goal * errors, estimates + goal * errors
    if at is not None and profile:
        for k, i in np.ndindex(*estimates.shape):
            error = float(errors[k, i])
            lower[k, i] = estimates[k, i] + error * _profile_limit(at, k, i, error, -goal)
            upper[k, i] = estimates[k, i] + error * _profile_limit(at, k, i, error, goal)
    rows = [
        Row(label, name, *map(float, (estimates[k, i], errors[k, i], lower[k, i], upper[k, i])))
        for k, label in enumerate(inference.score_labels)
        for i, name in enumerate(inference.names)
    ]
    return Summary(rows, replace(inference, covariance=matrix), level, interval, covariance)


def _refusal(penalty: Penalty, fit: Fit | None) -> str:
    """Why the optimum is not one whose curvature describes its errors; empty when it is."""
    if penalty.absolute.any():
        return REFUSALS["l1"]
    if penalty.matrix is not None or penalty.mean.any():
        return REFUSALS["prior"]
    if penalty.quadratic.any():
        return REFUSALS["penalty"]
    if np.isfinite(penalty.low).any() or np.isfinite(penalty.high).any():
        return REFUSALS["bounds"]
    if fit is not None and fit.status is Status.SEPARATED:
        return f"There are no standard errors of infinite coefficients. {fit.detail or fit.status}"
    return REFUSALS["interrupted"] if fit is not None and fit.status is Status.INTERRUPTED else ""


def _against_baseline(problem: LinearProblem, theta: Float) -> tuple[LinearProblem, Float]:
    """The likelihood alone, its scores contrasts against one class: those of a symmetric softmax, against the first."""
    loss, offset = problem.objective.loss, problem.objective.offset
    if isinstance(loss, Softmax) and loss.gauge() is not None:
        loss, theta = Softmax(loss.n_classes, 0), theta[1:] - theta[:1]
        offset = None if offset is None else offset[:, 1:] - offset[:, :1]
    penalty = Penalty.none((loss.n_scores, problem.shape[1]))
    return replace(problem, objective=LinearObjective(loss, penalty, offset)), theta


@dataclass(frozen=True)
class _Point:
    """One evaluation of second order, factored when asked."""

    problem: LinearProblem
    theta: Float
    evaluation: Evaluation

    @classmethod
    def at(cls, problem: LinearProblem, theta: Float) -> _Point:
        return cls(problem, theta, problem.objective.evaluate(theta, problem.source, 2))

    @cached_property
    def curvature(self) -> Curvature:
        assert self.evaluation.hessian is not None
        return Curvature(self.evaluation.hessian, self.problem.shape)

    @cached_property
    def left(self) -> float:
        """√(gᵀI⁻¹g): no coefficient, and no combination of them, is more standard errors from the optimum."""
        return self.curvature.decrement(self.evaluation.gradient)


def _optimum(problem: LinearProblem, theta: Float) -> tuple[_Point, float]:
    """Newton's method from where the fit ended, while it gains; and how far it went."""
    point, moved = _Point.at(problem, theta), 0.0
    for _ in range(12):
        if point.left <= _AT_THE_OPTIMUM or point.curvature.deficient:
            break
        new = _Point.at(problem, point.theta - point.curvature.solve(point.evaluation.gradient))
        if not new.left <= 0.5 * point.left:
            break
        point, moved = new, moved + point.left
    return point, moved


def _dependence(at: _Point, source: Source) -> str:
    """Which columns are combinations of each other, from the directions without information."""
    assert at.evaluation.hessian is not None
    root = at.curvature.root
    values, vectors = np.linalg.eigh(at.evaluation.hessian / root[:, None] / root[None, :])
    lost = np.abs(vectors[:, values <= 8.0 * len(values) * _EPS * values[-1]]).max(axis=1, initial=0.0)
    columns = np.flatnonzero((lost.reshape(at.theta.shape) > 1e-6).any(axis=0))
    names = [source.column_name(int(j)) if j < source.n_features else "the intercept" for j in columns]
    if len(names) == 1:
        return f"There are no standard errors: {names[0]} is zero in every row that counts. Drop it."
    said, last = (names[:-1], names[-1]) if len(names) <= 6 else (names[:5], f"{len(names) - 5} more")
    return (
        f"There are no standard errors: {', '.join(said)} and {last} are linearly dependent, so their coefficients are not "
        "determined. Drop columns until none is a combination of the others."
    )


def _jacobian(problem: LinearProblem) -> Float:
    """(p, p) of one score's coefficients in the user's units by those of the solver, the intercept last."""
    coef, intercept = problem.coefficients(np.eye(problem.shape[1]))
    return (np.column_stack([coef, intercept]) if problem.fit_intercept else coef).T


def _in_user_units(covariance: Float, problem: LinearProblem) -> Float:
    whole = np.kron(np.eye(problem.shape[0]), _jacobian(problem))
    return whole @ covariance @ whole.T


def _return(inference: Inference, data: LinearProblem) -> _Point:
    """The optimum, among the rows again."""
    problem, _ = _against_baseline(data, data.start())
    at = _Point.at(problem, problem.start(inference.coef, inference.intercept))
    told, known = (at.evaluation.total, -at.evaluation.loss), (inference.n_observations, inference.log_likelihood)
    if not np.allclose(told, known, rtol=1e-8, atol=0.0):
        raise ValueError(_OTHER_ROWS.format(*told, *known))
    return at


def _sandwich(at: _Point, corrected: bool) -> Float:
    """I⁻¹ (Σ s g gᵀ) I⁻¹, in the user's units. One pass."""
    objective, (m, p) = at.problem.objective, at.problem.shape

    def of_block(block: Block) -> Float:
        total = np.zeros((m, p, m, p))
        for piece in block.pieces(1 << 20):
            rows, own = objective.counted(piece)
            weights = np.ones(rows.n) if rows.weights is None else rows.weights
            slopes = objective.loss.gradient(rows.codes, objective.scores(at.theta, rows, own))
            for k in range(m):
                for l in range(k + 1):  # noqa: E741  # name of the formula
                    product = slopes[:, k] * slopes[:, l] * weights
                    part = rows.gram(np.maximum(product, 0.0))
                    if k != l:
                        part -= rows.gram(np.maximum(-product, 0.0))
                        total[l, :, k] += part
                    total[k, :, l] += part
        return total

    meat = at.problem.source.reduce(of_block, np.add).reshape(m * p, m * p)
    inverse, n, q = at.curvature.inverse(), at.evaluation.total, m * p
    if corrected and n <= q:
        raise ValueError(f"HC1 divides by n − q, but n is {n:.4g} and there are q = {q} coefficients; use HC0.")
    factor = n / (n - q) if corrected else 1.0
    return factor * _in_user_units(inverse @ meat @ inverse, at.problem)


def _profile_limit(at: _Point, k: int, i: int, error: float, goal: float) -> float:
    """Where √(2(F(b) − F̂)) = |goal| on the side of its sign; b in standard errors from the estimate.

    The root is nearly a straight line in b, so Newton's method on it, safeguarded by bisection, takes a handful of values;
    its slope comes with the fit. Infinite when the likelihood does not fall that far.
    """
    normal = np.zeros(at.problem.shape)
    normal[k] = _jacobian(at.problem)[i] / error
    best, side, goal = at.evaluation.value, float(np.sign(goal)), abs(goal)
    tolerance = max(1e-10, 256 * _EPS * abs(best))
    inside, outside, here, there = 0.0, np.inf, 0.0, goal  # distances from the estimate
    theta, tangent, drop = at.theta, _tangent(at, normal), 0.0
    for _ in range(60):
        held, settled = _held(at.problem, theta + side * (there - here) * tangent, normal)
        fallen = float(np.sqrt(2.0 * max(0.0, held.evaluation.value - best)))
        if not settled and not fallen < goal:  # F may be lower there than was found: nothing says that it is outside
            there = 0.5 * (inside + there)
            if there == inside:
                break
            continue
        theta, tangent, here, drop = held.theta, _tangent(held, normal), there, fallen
        if settled and abs(drop - goal) <= tolerance:
            return side * here
        inside, outside = (here, outside) if drop < goal else (inside, here)
        slope = side * float((held.evaluation.gradient * tangent).sum()) / drop if drop > 0.1 * goal else 0.0
        there = min(here + (goal - drop) / slope, 4.0 * here) if slope > 0 else 2.0 * here
        if not inside < there < outside:
            there = 0.5 * (inside + outside)
        if there in (inside, outside):
            break
    if not settled:
        warnings.warn(
            f"A profile limit of coefficient {i} was not found: fits with it held at {goal:.2g} standard errors and beyond did "
            "not converge. The nearest value known to be outside is given, which may be infinite.",
            ConvergenceWarning,
            stacklevel=4,
        )
        return side * outside
    # Rounding of F may keep the last digits out of reach; only a fall that never comes is infinite.
    return side * (outside if drop < goal * (1.0 - 1e-6) else here)


def _tangent(point: _Point, normal: Float) -> Float:
    """dθ/db along the profile, aᵀθ = b: H⁻¹a / aᵀH⁻¹a."""
    direction = point.curvature.solve(normal)
    return direction / float((normal * direction).sum())


def _held(problem: LinearProblem, theta: Float, normal: Float) -> tuple[_Point, bool]:
    """The least F with aᵀθ as it is, by Newton's method within that plane: step −H⁻¹(g − μa), μ = gᵀ dθ/db.

    And whether it is the least: whether a further step would promise next to nothing.
    """
    point, slack, promise = _Point.at(problem, theta), 4.0 * _EPS, np.inf
    for _ in range(50):
        gradient = point.evaluation.gradient
        slope = float((gradient * _tangent(point, normal)).sum())
        step = point.curvature.solve(slope * normal - gradient)
        promise = -float((gradient * step).sum())
        if promise <= 1e-13:  # F is at most half of that too high
            break
        for halvings in range(40):
            new = _Point.at(problem, point.theta + 0.5**halvings * step)
            if new.evaluation.value <= point.evaluation.value * (1.0 + slack):
                break
        else:
            break
        point = new
    return point, promise <= _SETTLED * max(1.0, abs(point.evaluation.value))
