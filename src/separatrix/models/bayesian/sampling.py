"""From a Laplace posterior to draws of the posterior itself, and whether they can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from separatrix.bayes.posterior import FullPosterior
from separatrix.models.logistic.problem import Problem
from separatrix.models.progress import Progress
from separatrix.result import Status

if TYPE_CHECKING:
    from separatrix.bayes.gibbs import Draws

# Chains that agree to this, and this many independent draws in all, make means and intervals trustworthy.
_AGREE, _ENOUGH = 1.01, 400.0


def sampled(model: Any, problem: Problem, near: FullPosterior) -> tuple[Draws | None, FullPosterior, Status, str]:
    """Chains of the Gibbs sampler started about `near`, the Gaussian with their moments, and what is to be said of them."""
    from separatrix.bayes.gibbs import sample_gibbs
    from separatrix.bayes.independence import Proposals

    seed = int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))
    progress = Progress(type(model).__name__, int(model.verbose))
    try:
        draws = sample_gibbs(
            problem.objective,
            problem.source,
            near.mean,
            2.0 * near.factor,
            n_chains=int(model.n_chains),
            n_warmup=int(model.n_warmup),
            n_draws=int(model.n_draws),
            seed=np.random.SeedSequence(seed),
            proposals=Proposals(problem.objective, problem.source, near),
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
