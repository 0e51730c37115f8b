"""The posterior of a Bayesian logistic regression: its mode, the Gaussian about it, whether that is near, and a better one.

    mode            θ̂ = argmin F, with the certificate of the logistic engine                    → bayes/laplace.py
    prior           the precision with the most evidence, while Laplace's Gaussian can be trusted → bayes/evidence.py
    diagnosis       importance ratios of draws from it, and the k̂ of the largest                  → bayes/importance.py
    correction      the Gaussian (and the precision) with the greatest lower bound of the evidence → bayes/variational.py
    width           how much of its covariance averages take, judged by left-out rows             → bayes/left_out.py

Ctrl-C at any stage keeps what the stages before it have found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from separatrix.bayes.evidence import in_units_of_the_prior, limits, log_evidence, maximise_evidence
from separatrix.bayes.importance import Diagnosis, diagnose
from separatrix.bayes.laplace import FULL_COEFFICIENTS, despite_interrupt, laplace
from separatrix.bayes.left_out import best_width
from separatrix.bayes.posterior import FullPosterior, Posterior
from separatrix.bayes.variational import Ending, FreePrecisions, Variational, nearest_gaussian
from separatrix.data.block import Codes, Float
from separatrix.models.logistic.problem import Problem
from separatrix.models.progress import Progress
from separatrix.objectives.linear import LinearObjective
from separatrix.result import Certificate, Status
from separatrix.solvers.state import Solution

_WIDE = (
    "The evidence rises with ever wider priors, as it does when the classes are separable; prior_precision_ is where it is "
    "greatest with the intercepts measured in units of the prior."
)
_NARROWER = (
    "Averages over all of it predict left-out rows worse than its mean does, so probabilities are averaged with its covariance "
    "times {:.2g}; intervals are those of the whole."
)
_ENDINGS: dict[Ending, Status] = {
    "stationary": Status.STATIONARY,
    "level": Status.LEVEL,
    "stalled": Status.STALLED,
    "limit": Status.MAX_ITER,
    "interrupted": Status.INTERRUPTED,
}
_UNFINISHED = "The search for the prior ended before the evidence was stationary; prior_precision_ is the best so far."


@dataclass(frozen=True)
class Found:
    """A posterior with everything that is to be said of it."""

    objective: LinearObjective
    solution: Solution
    posterior: Posterior
    log_evidence: float
    evidence_is: Literal["laplace", "bound", "none"]
    status: Status
    certificate: Certificate
    iterations: int
    detail: str
    log_alpha: Float | None = None
    diagnosis: Diagnosis | None = None
    width: float = 1.0
    """Probabilities are averaged over the Gaussian with its covariance times this."""


def find_mode(model: Any, problem: Problem, objective: LinearObjective, before: Solution | None) -> Solution:
    """The mode to within `tol` posterior standard deviations: F at most ½ tol² above its least value."""
    at, gap = replace(problem, objective=objective), 0.5 * float(model.tol) ** 2
    theta = problem.start() if before is None else before.theta
    guess = float(np.log(2.0) * (problem.source.n_rows or 1)) if before is None else before.certificate.objective
    progress = Progress(type(model).__name__, int(model.verbose))
    # A Hessian of that size is needed for the posterior anyway, and its steps do not depend on the conditioning: products with
    # it, one pass each, can be thousands where rows are fewer than coefficients.
    solver = "newton" if np.prod(problem.shape) <= FULL_COEFFICIENTS else at.solver("auto")
    try:
        for _ in range(2):  # the tolerance of a solver is relative to F, of which there is only a guess at first
            found = at.solve(solver, theta, gap / max(1.0, guess), int(model.max_iter), progress, before)
            if found.status is Status.INTERRUPTED or found.certificate.gap <= gap:
                break
            theta, before, guess = found.theta, found, found.certificate.objective
        proven = found.certificate.gap <= gap and found.status is not Status.INTERRUPTED
        return replace(found, status=Status.CONVERGED) if proven else found
    finally:
        progress.close()


def find_posterior(model: Any, problem: Problem, structure: str, gauge: Float | None = None) -> Found:
    """The posterior under the prior of the problem."""
    solution = find_mode(model, problem, problem.objective, None)
    rank = int(model.rank)
    posterior, value, stopped = despite_interrupt(
        lambda: laplace(problem.objective, problem.source, solution.theta, structure, rank, gauge)
    )
    status = Status.INTERRUPTED if stopped else solution.status
    found = _laplace_found(
        problem, solution, posterior, log_evidence(value, posterior, problem.objective), problem.objective, status
    )
    return _checked(model, problem, found, None, None)


def find_prior(model: Any, problem: Problem, structure: str, groups: Codes, sizes: Float) -> Found:
    """The prior with the most evidence, and the posterior under it."""
    seen: list[Diagnosis] = []

    def trust(objective: LinearObjective, posterior: FullPosterior) -> bool:
        if seen and seen[-1].sure:  # far from any doubt: looked at again where the search ends
            return True
        seen.append(diagnose(objective, problem.source, posterior))
        return seen[-1].near

    evidence = maximise_evidence(
        problem.objective,
        problem.source,
        groups,
        lambda objective, before: find_mode(model, problem, objective, before),
        sizes,
        None if model.posterior == "laplace" else trust,
    )
    notes = [_WIDE] if evidence.unbounded else []
    notes += [] if evidence.converged or evidence.far or evidence.interrupted else [_UNFINISHED]
    found = _laplace_found(
        problem, evidence.solution, evidence.posterior, evidence.log_evidence, evidence.objective, evidence.status
    )
    found = replace(found, detail=" ".join([found.detail, *notes]), log_alpha=np.log(evidence.precisions))
    low, high, _ = limits(groups, sizes)
    tilt = in_units_of_the_prior(problem.objective, groups)
    known = seen[-1] if evidence.far else None
    found = _checked(model, problem, found, FreePrecisions(groups, low, high, tilt), known)
    if structure == "full":
        return found
    at, rank = found.objective, int(model.rank)
    solution = found.solution if found.evidence_is == "laplace" else find_mode(model, problem, at, found.solution)
    shaped, _, stopped = despite_interrupt(lambda: laplace(at, problem.source, solution.theta, structure, rank))
    status = Status.INTERRUPTED if stopped or found.status is Status.INTERRUPTED else solution.status
    shown = _laplace_found(problem, solution, shaped, found.log_evidence, at, status)
    return replace(shown, evidence_is=found.evidence_is, log_alpha=found.log_alpha)


def _laplace_found(
    problem: Problem,
    solution: Solution,
    posterior: Posterior,
    evidence: float,
    objective: LinearObjective,
    status: Status,
) -> Found:
    shape, size = posterior.structure.replace("_", " "), posterior.mean.size
    return Found(
        objective,
        solution,
        posterior,
        evidence,
        "laplace" if np.isfinite(evidence) else "none",
        status,
        replace(problem, objective=objective).published(solution, np.inf)[1],
        solution.iterations,
        f"Laplace's approximation, {shape} covariance of {size} coefficients.",
    )


def _checked(
    model: Any, problem: Problem, found: Found, freedom: FreePrecisions | None, known: Diagnosis | None
) -> Found:
    """The Gaussian of Laplace where it is near the posterior, else the best one."""
    posterior = found.posterior
    if not isinstance(posterior, FullPosterior) or found.status is Status.INTERRUPTED:
        return found
    if model.posterior == "variational":
        diagnosis = known
    else:
        try:
            diagnosis = known or diagnose(found.objective, problem.source, posterior)
        except KeyboardInterrupt:
            detail = f"{found.detail} Interrupted before it was compared with the posterior."
            return replace(found, status=Status.INTERRUPTED, detail=detail)
        found = replace(found, diagnosis=diagnosis, detail=f"{found.detail} {_said(diagnosis)}")
        if diagnosis.near or model.posterior == "laplace":
            return found
    penalty = found.objective.penalty
    loss = posterior.precision - penalty.add_hessian(np.zeros_like(posterior.precision))
    unit = problem.objective if freedom is not None else found.objective
    log_alpha = np.zeros(0) if found.log_alpha is None else found.log_alpha
    start = (posterior.mean, loss, posterior.gauge, log_alpha)
    better = nearest_gaussian(unit, problem.source, *start, freedom, int(model.max_iter))
    if better is None:
        return replace(found, status=Status.INTERRUPTED)
    corrected = _variational_found(found, better, freedom is not None)
    if model.posterior != "auto" or corrected.status is Status.INTERRUPTED:
        return corrected
    try:
        width = best_width(better.state, problem.source)
    except KeyboardInterrupt:
        detail = f"{corrected.detail} Interrupted before its width was compared with left-out rows."
        return replace(corrected, status=Status.INTERRUPTED, detail=detail)
    if width == 1.0:
        return corrected
    return replace(corrected, width=width, detail=f"{corrected.detail} {_NARROWER.format(width)}")


def _said(diagnosis: Diagnosis) -> str:
    worth = f"{diagnosis.draws} draws from it are worth {diagnosis.share * diagnosis.draws:.0f} of the posterior (k̂ = "
    worth += f"{diagnosis.k:.2f})"
    if diagnosis.near:
        return f"It is near the posterior: {worth}."
    return (
        f"It is far from the posterior: {worth}; posterior='auto' takes a better Gaussian, and 'gibbs' draws from it."
    )


def _variational_found(found: Found, better: Variational, chosen: bool) -> Found:
    state, diagnosis = better.state, found.diagnosis
    status = _ENDINGS[better.ending]
    if better.ending == "stationary" and not chosen:  # concave in the mean and a factor of the covariance
        status = Status.CONVERGED
    detail = (
        f"The Gaussian with the greatest lower bound of the evidence, full covariance of {state.posterior.mean.size} "
        "coefficients."
    )
    if diagnosis is not None:
        detail += (
            f" Laplace's is far from the posterior: {diagnosis.draws} draws from it are worth "
            f"{diagnosis.share * diagnosis.draws:.0f} of the posterior (k̂ = {diagnosis.k:.2f})."
        )
    if chosen:
        detail += " prior_precision_ is where the bound is greatest with the intercepts measured in units of the prior."
    certificate = Certificate(
        # The quadratic of a step says little from afar, and nothing of precisions that are free.
        state.gap if status is Status.CONVERGED else np.inf,
        -state.bound,
        "natural gradient of the evidence bound",
        stationarity=float(np.abs(state.slope).max()),
        kind="estimated",
    )
    return replace(
        found,
        objective=state.objective,
        posterior=state.posterior,
        log_evidence=state.bound,
        evidence_is="bound",
        status=status,
        certificate=certificate,
        iterations=better.steps,
        detail=detail,
        log_alpha=better.log_alpha,
    )
