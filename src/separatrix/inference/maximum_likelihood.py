"""Inference for maximum-likelihood logistic regression: the errors that the curvature of the likelihood implies.

    β̂ ≈ N(β, V),    V = I⁻¹,    I = Σ sᵢ ∇²ℓᵢ ⊗ xᵢxᵢᵀ at β̂                                      covariance="model"
    V = I⁻¹ (Σ sᵢ gᵢgᵢᵀ) I⁻¹,   gᵢ = ∇ℓᵢ ⊗ xᵢ;   times n/(n − q) for "HC1"                       covariance="robust", "HC0"
    Wald      β̂_j ± z √V_jj
    profile   {b : 2(L(β̂) − max L(β with β_j = b)) ≤ z²}                                        see profile.py

Weights are repetitions: a row of weight 2 is two rows in every one of these sums.

References: McCullagh and Nelder (1989), Generalized Linear Models, section 4.4; White (1982), Econometrica 50, theorem 3.2;
MacKinnon and White (1985), J. Econometrics 29.

**Complexity** O(n q²) per pass, O(q³) per factorisation; q coefficients.
**Passes over the data** `gather` one, two or three after a loose fit; robust errors two; a profile limit about eight.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.inference.estimates import REFUSALS, Inference
from separatrix.inference.expansion import Expansion, against_baseline
from separatrix.inference.null_model import Targets, null_log_likelihood
from separatrix.inference.profile import profile_limit
from separatrix.inference.summary import Summary, check_options, coefficient_rows, wald_limits
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.losses import Softmax
from separatrix.objectives.penalties import Penalty
from separatrix.result import Fit, Status

_EPS = float(np.finfo(np.float64).eps)
# Distances to the optimum, in standard errors: good enough to stop at, to report errors at, to leave without a note.
_AT_THE_OPTIMUM, _NEAR, _UNNOTICED = 1e-8, 1e-4, 1e-3
# Beyond this many coefficients their covariance is not formed at the end of every fit.
LARGEST = 1000

_LOOSE = (
    "The fit ended {:.2g} standard errors from the optimum and Newton's method did not get there from it. Lower tol or "
    "raise max_iter; if that does not help, the classes may be separable or the columns nearly dependent."
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
    """Estimates with their covariance at the optimum of a problem, or why there is none.

    θ (m, p) is where the solver ended: a few more Newton steps are taken from there. `source` has the labelled rows the problem
    was built from, for the names of columns and classes. Separated and interrupted fits are refused, and, without reading the
    rows, more than `largest` coefficients. The `note` is shown under the table.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data import as_source
    >>> from separatrix.inference.maximum_likelihood import gather, summarise
    >>> from separatrix.objectives.linear_problem import LinearProblem
    >>> source = as_source([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1], [3.0, 1.0, 1.0, 3.0]).labelled()
    >>> problem = LinearProblem.of(source, C=np.inf, l1_ratio=0.0, fit_intercept=True)
    >>> table = summarise(gather(problem, problem.start(), source))
    >>> [(row.name, round(row.odds_ratio, 6), round(row.standard_error**2, 6)) for row in table.rows]
    [('x0', 9.0, 2.666667), ('(intercept)', 0.333333, 1.333333)]
    """
    assert source.classes is not None, "label the source first"
    refusal, two = _refusal(problem.objective.penalty, fit), not isinstance(problem.objective.loss, Softmax)
    # The scores of two classes are contrasts already, and what is refused asks nothing of their likelihood.
    contrasts, theta = (problem, theta) if refusal and two else against_baseline(problem, theta)
    loss, labels, (m, p) = contrasts.objective.loss, source.classes.tolist(), contrasts.shape
    baseline = labels.pop(loss.baseline or 0 if isinstance(loss, Softmax) else 0)
    names = None if source.feature_names is None else tuple(map(str, source.feature_names))
    blank = Inference(*contrasts.coefficients(theta), tuple(labels), baseline, names, problem.fit_intercept, note=note)
    if not refusal and largest is not None and m * p > largest:
        refusal = f"A covariance matrix of {m * p} coefficients is not formed after a fit: give summary X and y again."
    if refusal:
        return blank.refused(refusal)
    rows = Targets(contrasts.source, keep=contrasts.objective.offset is not None)
    at, moved = _optimum(replace(contrasts, source=rows), theta)
    if at.curvature.deficient or at.curvature.blank.any():
        return blank.refused(_dependence(at, source))
    if not at.left <= _NEAR:
        return blank.refused(_LOOSE.format(moved + at.left))
    if moved > _UNNOTICED:
        note = f"{note} The model's own coefficients, fitted to its tol, are up to {moved:.2g} standard errors away.".strip()
    # One more step is free; it is too short for the information to notice.
    coef, intercept = contrasts.coefficients(at.newton_step())
    return replace(
        blank,
        coef=coef,
        intercept=intercept,
        covariance=at.in_user_units(at.curvature.inverse()),
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
    """The table of coefficients with their errors, tests and intervals, asked for as of `LogisticRegression.summary`.

    `data` is the problem of the rows that were fitted; profile intervals and robust errors need it.
    """
    profile, robust = interval == "profile", covariance != "model"
    check_options(inference, level, interval, covariance, data is not None or (profile and robust))
    if profile and robust:
        raise ValueError("A profile interval trusts the likelihood, robust errors do not; take interval='wald' there.")
    covariance = "HC0" if covariance == "robust" else covariance
    at = _return(inference, data) if data is not None and (profile or robust) else None
    if at is not None and robust:
        inference = replace(inference, covariance=at.sandwich(corrected=covariance == "HC1"))
    errors, lower, upper = wald_limits(inference, level)
    if at is not None and profile:
        estimates, goal = inference.estimates, float(ndtri(0.5 + 0.5 * level))
        for k, i in np.ndindex(*estimates.shape):
            error = float(errors[k, i])
            lower[k, i] = estimates[k, i] + error * profile_limit(at, k, i, error, -goal)
            upper[k, i] = estimates[k, i] + error * profile_limit(at, k, i, error, goal)
    return Summary(coefficient_rows(inference, errors, lower, upper), inference, level, interval, covariance)


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


def _optimum(problem: LinearProblem, theta: Float) -> tuple[Expansion, float]:
    """Newton's method from where the fit ended, while it gains; and how far it went."""
    point, moved = Expansion.at(problem, theta), 0.0
    for _ in range(12):
        if point.left <= _AT_THE_OPTIMUM or point.curvature.deficient:
            break
        new = Expansion.at(problem, point.newton_step())
        if not new.left <= 0.5 * point.left:
            break
        point, moved = new, moved + point.left
    return point, moved


def _dependence(at: Expansion, source: Source) -> str:
    """Which columns are combinations of each other, from the directions without information."""
    assert at.evaluation.hessian is not None
    root = at.curvature.root
    values, vectors = np.linalg.eigh(at.evaluation.hessian / root[:, None] / root[None, :])
    lost = np.abs(vectors[:, values <= 8.0 * len(values) * _EPS * values[-1]]).max(axis=1, initial=0.0)
    columns = np.flatnonzero((lost.reshape(at.theta.shape) > 1e-6).any(axis=0))
    names = [source.column_name(int(j)) if j < source.n_features else "the intercept" for j in columns]
    if len(names) == 1:
        return f"There are no standard errors: {names[0]} is zero in every row that counts. Drop it."
    listed, last = (names[:-1], names[-1]) if len(names) <= 6 else (names[:5], f"{len(names) - 5} more")
    return (
        f"There are no standard errors: {', '.join(listed)} and {last} are linearly dependent, so their coefficients are not "
        "determined. Drop columns until none is a combination of the others."
    )


def _return(inference: Inference, data: LinearProblem) -> Expansion:
    """The expansion at the optimum, from the rows again."""
    problem, _ = against_baseline(data, data.start())
    at = Expansion.at(problem, problem.start(inference.coef, inference.intercept))
    inference.check_rows(at.evaluation.total, -at.evaluation.loss)
    return at
