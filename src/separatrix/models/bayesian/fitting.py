"""The posterior of a Bayesian logistic regression: its mode, the Gaussian about it, whether that is near, and a better one.

    mode            θ̂ = argmin F, with the certificate of the logistic engine                    → bayes/laplace.py
    prior           the precision with the most evidence, while Laplace's Gaussian can be trusted → bayes/evidence.py
    diagnosis       importance ratios of draws from it, and the k̂ of the largest                  → bayes/importance.py
    correction      the Gaussian (and the precision) with the greatest lower bound of the evidence → bayes/variational.py
    width           how much of its covariance averages take, judged by left-out rows             → bayes/left_out.py
    draws           of the posterior itself, started about Laplace's Gaussian                      → bayes/gibbs.py

Ctrl-C at any stage keeps what the stages before it have found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from separatrix.bayes.evidence import in_units_of_the_prior, limits, log_evidence, maximise_evidence
from separatrix.bayes.importance import Diagnosis, diagnose
from separatrix.bayes.laplace import FULL_COEFFICIENTS, despite_interrupt, laplace
from separatrix.bayes.left_out import best_width
from separatrix.bayes.posterior import FullPosterior, Posterior
from separatrix.bayes.variational import FreePrecisions, Variational, asked_of, nearest_gaussian
from separatrix.data.block import Codes, Float
from separatrix.models.progress import Progress
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.solution import Solution
from separatrix.result import Certificate, Status
from separatrix.solvers.choose import MANY_ROWS
from separatrix.solvers.registry import minimise

if TYPE_CHECKING:
    from separatrix.bayes.gibbs import Draws

_WIDE = (
    "The evidence rises with ever wider priors, as it does when the classes are separable; prior_precision_ is where it is "
    "greatest with the intercepts measured in units of the prior."
)
_NARROWER = (
    "Averages over all of it predict left-out rows worse than its mean does, so probabilities are averaged with its covariance "
    "times {:.2g}; intervals are those of the whole."
)
_UNFINISHED = "The search for the prior ended before the evidence was stationary; prior_precision_ is the best so far."
# Chains that agree to this, and this many independent draws in all, make means and intervals trustworthy.
_AGREE, _ENOUGH = 1.01, 400.0


@dataclass(frozen=True)
class FittedPosterior:
    """A posterior with its evidence, status and certificate."""

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

    def interrupted(self, detail: str = "") -> FittedPosterior:
        """The same after Ctrl-C."""
        return replace(self, status=Status.INTERRUPTED, detail=f"{self.detail} {detail}".rstrip())


def find_mode(model: Any, problem: LinearProblem, objective: LinearObjective, before: Solution | None) -> Solution:
    """The mode to within `tol` posterior standard deviations: F at most ½ tol² above its least value."""
    at, gap = replace(problem, objective=objective), 0.5 * float(model.tol) ** 2
    theta = problem.start() if before is None else before.theta
    guess = float(np.log(2.0) * (problem.source.n_rows or 1)) if before is None else before.certificate.objective
    progress = Progress(type(model).__name__, int(model.verbose))
    # A Hessian of that size is affordable, and its steps do not depend on the conditioning: products with it, one pass each,
    # can be thousands where rows are fewer than coefficients. With many rows a sample's Hessian is as good.
    small, many = np.prod(problem.shape) <= FULL_COEFFICIENTS, MANY_ROWS * np.prod(problem.shape)
    solver = "newton" if small and (problem.source.n_rows or 0) < many else "auto"
    try:
        for _ in range(2):  # the tolerance of a solver is relative to F, of which there is only a guess at first
            limits: dict[str, Any] = {"tol": gap / max(1.0, guess), "max_iter": int(model.max_iter)}
            found = minimise(at, solver, theta, callback=progress, previous=before, **limits)
            if found.status is Status.INTERRUPTED or found.certificate.gap <= gap:
                break
            theta, before, guess = found.theta, found, found.certificate.objective
        proven = found.certificate.gap <= gap and found.status is not Status.INTERRUPTED
        return replace(found, status=Status.CONVERGED) if proven else found
    finally:
        progress.close()


def find_posterior(model: Any, problem: LinearProblem, structure: str, gauge: Float | None = None) -> FittedPosterior:
    """The posterior under the prior of the problem."""
    objective, solution = problem.objective, find_mode(model, problem, problem.objective, None)
    posterior, value, stopped = despite_interrupt(
        lambda: laplace(objective, problem.source, solution.theta, structure, int(model.rank), gauge)
    )
    status, evidence = Status.INTERRUPTED if stopped else solution.status, log_evidence(value, posterior, objective)
    return _checked(model, problem, _laplace_fit(problem, objective, solution, posterior, evidence, status))


def find_prior(model: Any, problem: LinearProblem, structure: str, groups: Codes, sizes: Float) -> FittedPosterior:
    """The prior with the most evidence, and the posterior under it."""
    diagnoses: list[Diagnosis] = []

    def trust(objective: LinearObjective, posterior: FullPosterior) -> bool:
        if diagnoses and diagnoses[-1].sure:  # far from any doubt: looked at again where the search ends
            return True
        diagnoses.append(diagnose(objective, problem.source, posterior))
        return diagnoses[-1].near

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
    at = evidence.objective, evidence.solution, evidence.posterior
    found = _laplace_fit(problem, *at, evidence.log_evidence, evidence.status)
    found = replace(found, detail=" ".join([found.detail, *notes]), log_alpha=np.log(evidence.precisions))
    low, high, _ = limits(groups, sizes)
    free = FreePrecisions(groups, low, high, in_units_of_the_prior(problem.objective, groups))
    found = _checked(model, problem, found, free, diagnoses[-1] if evidence.far else None)
    if structure == "full":
        return found
    objective = found.objective
    solution = found.solution
    if found.evidence_is != "laplace":
        solution = find_mode(model, problem, objective, solution)
    shaped, _, stopped = despite_interrupt(
        lambda: laplace(objective, problem.source, solution.theta, structure, int(model.rank))
    )
    status = Status.INTERRUPTED if stopped or found.status is Status.INTERRUPTED else solution.status
    other = _laplace_fit(problem, objective, solution, shaped, found.log_evidence, status)
    return replace(other, evidence_is=found.evidence_is, log_alpha=found.log_alpha)


def _laplace_fit(
    problem: LinearProblem,
    objective: LinearObjective,
    solution: Solution,
    posterior: Posterior,
    evidence: float,
    status: Status,
) -> FittedPosterior:
    shape, size = posterior.structure.replace("_", " "), posterior.mean.size
    return FittedPosterior(
        objective,
        solution,
        posterior,
        evidence,
        "laplace" if np.isfinite(evidence) else "none",
        status,
        replace(problem, objective=objective).publish(solution, np.inf).certificate,
        solution.iterations,
        f"Laplace's approximation, {shape} covariance of {size} coefficients.",
    )


def _checked(
    model: Any,
    problem: LinearProblem,
    found: FittedPosterior,
    free: FreePrecisions | None = None,
    diagnosis: Diagnosis | None = None,
) -> FittedPosterior:
    """The Gaussian of Laplace where it is near the posterior, else the best one."""
    posterior = found.posterior
    if not isinstance(posterior, FullPosterior) or found.status is Status.INTERRUPTED:
        return found
    if model.posterior != "variational":
        try:
            diagnosis = diagnosis or diagnose(found.objective, problem.source, posterior)
        except KeyboardInterrupt:
            return found.interrupted("Interrupted before it was compared with the posterior.")
        near, worth = diagnosis.near, _worth(diagnosis)
        verdict = (
            f"It is near the posterior: {worth}."
            if near
            else (
                f"It is far from the posterior: {worth}; posterior='auto' takes a better Gaussian, and 'gibbs' draws from it."
            )
        )
        found = replace(found, diagnosis=diagnosis, detail=f"{found.detail} {verdict}")
        if near or model.posterior == "laplace":
            return found
    loss = posterior.precision - found.objective.penalty.add_hessian(np.zeros_like(posterior.precision))
    unit = problem.objective if free is not None else found.objective
    log_alpha = np.zeros(0) if found.log_alpha is None else found.log_alpha
    start = posterior.mean, loss, posterior.gauge, log_alpha
    better = nearest_gaussian(unit, problem.source, *start, free, int(model.max_iter))
    if better is None:
        return found.interrupted()
    corrected = _variational_fit(found, better, free is not None)
    if model.posterior != "auto" or corrected.status is Status.INTERRUPTED:
        return corrected
    try:
        width = best_width(better.state, problem.source)
    except KeyboardInterrupt:
        return corrected.interrupted("Interrupted before its width was compared with left-out rows.")
    if width == 1.0:
        return corrected
    return replace(corrected, width=width, detail=f"{corrected.detail} {_NARROWER.format(width)}")


def _worth(diagnosis: Diagnosis) -> str:
    count, worth = diagnosis.draws, diagnosis.share * diagnosis.draws
    return f"{count} draws from it are worth {worth:.0f} of the posterior (k̂ = {diagnosis.k:.2f})"


def _variational_fit(found: FittedPosterior, better: Variational, chosen: bool) -> FittedPosterior:
    """`chosen`: whether the precisions were found with the Gaussian."""
    state, status = better.state, better.status
    size = state.posterior.mean.size
    detail = f"The Gaussian with the greatest lower bound of the evidence, full covariance of {size} coefficients."
    if status is Status.STATIONARY and not chosen:  # concave in the mean and a factor of the covariance
        status = Status.CONVERGED
        detail += f" Of the bound {asked_of(size):.2g} is what may be missing, whatever tol is."
    if found.diagnosis is not None:
        detail += f" Laplace's is far from the posterior: {_worth(found.diagnosis)}."
    if chosen:
        detail += " prior_precision_ is where the bound is greatest with the intercepts measured in units of the prior."
    certificate = Certificate(
        # The quadratic of a step is no bound from afar, nor one of precisions that are free.
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


def sample_posterior(
    model: Any, objective: LinearObjective, problem: LinearProblem, near: FullPosterior
) -> tuple[Draws | None, FullPosterior, Status, str]:
    """Chains of the Gibbs sampler started about `near`, the Gaussian with their moments, whether they agree, and a sentence."""
    from separatrix.bayes.gibbs import sample_gibbs
    from separatrix.bayes.independence import Proposals

    seed = int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))
    progress = Progress(type(model).__name__, int(model.verbose))
    try:
        draws = sample_gibbs(
            objective,
            problem.source,
            near.mean,
            2.0 * near.factor,
            n_chains=int(model.n_chains),
            n_warmup=int(model.n_warmup),
            n_draws=int(model.n_draws),
            seed=np.random.SeedSequence(seed),
            proposals=Proposals(objective, problem.source, near),
            callback=progress.sweep,
        )
    finally:
        progress.close()
    if not np.isfinite(draws.rhat).any() and draws.interrupted:
        return None, near, Status.INTERRUPTED, "Laplace's approximation; the sampler was stopped in its first draws."
    chains, count = draws.theta.shape[:2]
    flat = draws.theta.reshape(-1, *problem.shape)
    if len(flat) > 2 * flat[0].size:
        posterior = FullPosterior.of_draws(flat, near.gauge)
    else:  # too few for a covariance of their own
        posterior = FullPosterior.of_precision(flat.mean(axis=0), near.precision, near.gauge)
    known = np.isfinite(draws.rhat)
    rhat, ess = float(draws.rhat[known].max(initial=1.0)), float(draws.ess[known].min(initial=chains * count))
    detail = f"{chains} chains of {count} draws: R-hat at most {rhat:.4f}, at least {ess:.0f} effective draws of every "
    detail += "coefficient."
    if np.isfinite(draws.accepted):
        detail += f" {draws.accepted:.0%} of the steps proposed between sweeps were accepted."
    if draws.interrupted:
        return draws, posterior, Status.INTERRUPTED, detail
    return draws, posterior, Status.SAMPLED if rhat <= _AGREE and ess >= _ENOUGH else Status.UNMIXED, detail
