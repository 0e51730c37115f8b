"""How near a Gaussian is to the posterior: the importance ratios of draws from it, and the shape of their largest.

    r_s = p(θ_s, D) / q(θ_s),  θ_s ~ q;       r > u:  P(r − u > x) ≈ (1 + kx/σ)^(−1/k)      (generalised Pareto)

With k < ½ the ratios have a variance, and averages weighted by them are as good as that many effective draws; beyond 0.7 no
affordable number of draws corrects q, so q is not the posterior in any useful sense. k̂ is the posterior mean of Zhang and
Stephens' quick estimate from the largest min(S/5, 3√S) ratios, drawn towards ½ by a prior worth ten of them.

Reference: Vehtari, Simpson, Gelman, Yao and Gabry (2024), J. Machine Learning Research 25(72), sections 2 and 3; Zhang and
Stephens (2009), Technometrics 51, section 4.

**Complexity** O(n S m p) for S draws. **Passes over the data** one, or two where the first draws leave a doubt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.bayes.independence import Proposals, effective_share
from separatrix.bayes.posterior import FullPosterior
from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.objectives.linear import LinearObjective

# Draws of a first look, the share of them that leaves no doubt, and the draws that decide where there is one.
_FIRST, _SURE, _MORE = 64, 0.8, 448
HEAVY = 0.7
"""The k̂ beyond which a Gaussian is not taken for the posterior."""
_FEW = 0.2  # a share of the draws: a Gaussian wider than the posterior has light tails, but few of its draws count


@dataclass(frozen=True)
class Diagnosis:
    """k̂ of the importance ratios, and how many of the draws are worth one of the posterior, as a share."""

    k: float
    share: float
    draws: int

    @property
    def near(self) -> bool:
        """Whether the Gaussian may stand for the posterior."""
        return self.k <= HEAVY and self.share >= _FEW

    @property
    def sure(self) -> bool:
        """Whether the draws left no doubt that it is."""
        return self.share >= _SURE and self.k <= HEAVY


def diagnose(objective: LinearObjective, source: Source, posterior: FullPosterior) -> Diagnosis:
    """Compare a Gaussian with the posterior exp(−F), F the objective; the same on every call, the draws have a fixed seed."""
    proposals, generator = Proposals(objective, source, posterior), np.random.default_rng(0)
    logs = proposals.log_ratios(posterior.draw(generator, _FIRST))
    found = Diagnosis(pareto_k(logs), effective_share(logs), len(logs))
    # The largest of 64 ratios alone say little of a tail: k̂ is beyond 0.7 for one Gaussian in twelve that is near.
    if not found.sure:
        logs = np.concatenate([logs, proposals.log_ratios(posterior.draw(generator, _MORE))])
        found = Diagnosis(pareto_k(logs), effective_share(logs), len(logs))
    return found


def pareto_k(log_ratios: Float) -> float:
    """k̂ of the largest ratios.

    Parameters
    ----------
    log_ratios : ndarray of shape (S,)
        At least 25.

    Returns
    -------
    float
        Negative for bounded ratios; infinite when one ratio dwarfs all the others.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bool(pareto_k(rng.normal(size=4000)) < 0.5), bool(pareto_k(1.5 * rng.exponential(size=4000)) > 1.0)
    (True, True)
    """
    count = len(log_ratios)
    largest = np.sort(log_ratios)[-int(min(0.2 * count, 3.0 * np.sqrt(count))) - 1 :]
    x = np.exp(largest[1:] - largest[-1]) - np.exp(largest[0] - largest[-1])
    x = x[x > 0]
    n = len(x)
    if n < 5:
        return np.inf if n else 0.0  # one ratio beside which the others are nothing; or ratios that are all the same
    grid = np.arange(1, 31 + int(np.sqrt(n)))
    b = 1.0 / x[-1] + (1.0 - np.sqrt(len(grid) / (grid - 0.5))) / (3.0 * x[int(n / 4 + 0.5) - 1])
    k = np.log1p(-b[:, None] * x).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        likelihood = n * (np.log(-b / k) - k - 1.0)
        share = 1.0 / np.exp(likelihood - likelihood[:, None]).sum(axis=1)
    share = np.where(np.isfinite(share), share, 0.0)
    shape = float(np.log1p(-float(b @ share / share.sum()) * x).mean())
    return (n * shape + 5.0) / (n + 10.0)
