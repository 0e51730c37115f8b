"""Steps of a chain that do not depend on where it is: proposals from Laplace's Gaussian, accepted or refused.

    θ' ~ q = N(θ̂, S),    accepted with probability min(1, r(θ')/r(θ)),    log r(θ) = −F(θ) + ½(θ − θ̂)ᵀS⁻¹(θ − θ̂) + const

With many rows per coefficient the posterior is nearly q, almost every proposal is accepted, and a draw is almost independent of
the one before. The proposals of several steps, and of all chains, are evaluated in one pass. Such steps alone can be stuck
where q has too little mass; between Gibbs sweeps, which leave the same posterior as it is and get everywhere, they cannot.

    Σ log(1 + e^{−|m|}) = log Π (1 + e^{−|m|}):  a factor is at most 2, so a thousand of them need one logarithm

Reference: Tierney (1994), Annals of Statistics 22, sections 2.3.3 and 2.4.

**Complexity** O(n N m p) for N proposals.
**Passes over the data** one for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.bayes.posterior import FullPosterior
from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.margin_losses import Logistic

# Numbers (rows × proposals) that are worked on at once; how often they are multiplied in pairs.
_CACHED, _HALVINGS = 1 << 17, 9


@dataclass(frozen=True)
class Proposals:
    """A Gaussian q near the posterior exp(−F), and the ratios r of the two densities."""

    objective: LinearObjective
    source: Source
    gaussian: FullPosterior

    def log_ratios(self, theta: Float) -> Float:
        """(N,) log r of θ (N, m, p), up to a constant. One pass."""
        deviation = (theta - self.gaussian.mean).reshape(len(theta), -1)
        quadratic = 0.5 * np.einsum("ni,ij,nj->n", deviation, self.gaussian.precision, deviation, optimize=True)
        penalty = np.array([self.objective.penalty.value(own) for own in theta])
        return quadratic - penalty - self._losses(theta)

    def _losses(self, theta: Float) -> Float:
        """(N,) Σ s ℓ."""
        count, m, p = theta.shape
        stacked = np.ascontiguousarray(theta.reshape(count * m, p).T)
        loss = self.objective.loss

        def of_block(block: Block) -> Float:
            total = np.zeros(count)
            step = max(64, _CACHED // (count * m))
            for start in range(0, block.n, step):
                rows, offset = self.objective.counted(block.part(slice(start, min(start + step, block.n))))
                scores = rows.matvec(stacked).reshape(rows.n, count, m)
                if offset is not None:
                    scores = scores + offset[:, None, :]
                if isinstance(loss, Logistic) and rows.weights is None:
                    total += _summed(np.where(rows.codes == 1, 1.0, -1.0), scores[:, :, 0])
                    continue
                for j in range(count):
                    values = loss.value(rows.codes, np.ascontiguousarray(scores[:, j]))
                    total[j] += float(values.sum() if rows.weights is None else values @ rows.weights)
            return total

        return self.source.reduce(of_block, np.add)

    def steps(self, theta: Float, n: int, generator: np.random.Generator) -> tuple[Float, int]:
        """(n, C, m, p) the next n states of C chains at θ (C, m, p), and how many proposals were accepted. One pass."""
        chains = len(theta)
        proposed = self.gaussian.draw(generator, n * chains)
        logs = self.log_ratios(np.concatenate([theta, proposed]))
        now, logs = logs[:chains].copy(), logs[chains:].reshape(n, chains)
        proposed = proposed.reshape(n, chains, *theta.shape[1:])
        chance = np.log(generator.random((n, chains)))
        states, accepted = np.empty_like(proposed), 0
        for i in range(n):
            taken = chance[i] < logs[i] - now
            theta = np.where(taken[:, None, None], proposed[i], theta)
            now = np.where(taken, logs[i], now)
            states[i], accepted = theta, accepted + int(taken.sum())
        return states, accepted


def effective_share(log_ratios: Float) -> float:
    """(Σr)² / Σr² as a share of the draws: how many of them, weighted by r, are worth one of the posterior."""
    weights = np.exp(log_ratios - log_ratios.max())
    return float(np.square(weights.sum()) / np.square(weights).sum() / len(weights))


def _summed(signs: Float, scores: Float) -> Float:
    """(N,) Σ log(1 + e^{−m}) of the margins m = signs · scores of the rows of (n, N) scores, which are overwritten."""
    total: Float = np.dot(signs, scores)
    np.abs(scores, out=scores)
    total = 0.5 * (np.dot(np.ones(len(scores)), scores) - total)  # Σ max(−m, 0)
    np.negative(scores, out=scores)
    np.exp(scores, out=scores)
    scores += 1.0
    left = len(scores)
    for _ in range(_HALVINGS):  # logarithms of products: factors are at most 2
        half = left // 2
        scores[:half] *= scores[left - half : left]
        left -= half
    return total + np.log(scores[:left]).sum(axis=0)
