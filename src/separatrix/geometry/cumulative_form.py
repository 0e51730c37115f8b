"""The scores of ordered classes: logarithms of their probabilities, from one linear score and thresholds.

s_k = log(σ(θ_k − wᵀx) − σ(θ_{k−1} − wᵀx)) = −softplus(wᵀx − θ_k) − softplus(θ_{k−1} − wᵀx) − g(θ_k − θ_{k−1})

with g(δ) = −log(1 − e^{−δ}): nothing cancels, however unlikely a class is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.block import Codes, Float
from separatrix.geometry.score_form import ScoreForm, dense_rows


def log_shares(eta: Float, thresholds: Float, ranks: Codes) -> Float:
    """(n, K) log P(class | x) by code, from scores wᵀx (n,); `ranks` (K,) is the rank of every code."""
    distance = eta[:, None] - thresholds  # (n, K − 1)
    within = np.zeros((len(eta), len(thresholds) + 1))
    within[:, :-1] -= np.logaddexp(0.0, distance)
    within[:, 1:] -= np.logaddexp(0.0, -distance)
    within[:, 1:-1] += np.log(-np.expm1(-np.diff(thresholds)))
    return within[:, ranks]


@dataclass(frozen=True)
class Cumulative(ScoreForm):
    """log P(class | x): (p,) weights, (K − 1,) rising thresholds, (K,) the rank of every class."""

    weights: Float
    thresholds: Float
    ranks: Codes

    def scores(self, X: Any) -> Float:
        return log_shares(dense_rows(X) @ self.weights, self.thresholds, self.ranks)
