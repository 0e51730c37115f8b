"""Losses: functions of the class code y and the scores η alone.

    margin          margin_losses.py: two classes, one score
    softmax         log Σ_k e^{η_k} − η_y     ∇ = p − e_y,  ∇² = diag p − ppᵀ,  p = softmax η    (one score per class)
    reference       softmax with the score of a baseline class held at 0                        (K − 1 scores)

The conjugate ℓ*(a) = sup_η aᵀη − ℓ(η) at a = ∇ℓ gives dual bounds. For the softmax it is Σ q_k log q_k with q = a + e_y a
distribution.

Reference: Hastie, Tibshirani, Friedman (2009), The Elements of Statistical Learning, section 4.4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from separatrix.data.block import Codes, Float


class Loss(ABC):
    """A convex function of η (n, m) for every class code."""

    n_scores: int = 1
    smooth: ClassVar[bool] = True
    """Whether the second derivative exists almost everywhere and says something."""
    convex: ClassVar[bool] = True
    concordance: ClassVar[float | None] = None
    """c with |ℓ'''[u, u, v]| ≤ c ‖v‖ ℓ''[u, u], where there is such a number."""
    steepest: float = np.inf
    """Largest eigenvalue that ∇²ℓ can have."""

    @abstractmethod
    def value(self, codes: Codes, eta: Float) -> Float:
        """(n,) losses."""

    @abstractmethod
    def gradient(self, codes: Codes, eta: Float) -> Float:
        """(n, m) derivatives; a subgradient where there is a kink."""

    @abstractmethod
    def curvature(self, codes: Codes, eta: Float) -> Float:
        """(n, m) what `pair` and `times` need to know of the second derivatives."""

    def at(self, codes: Codes, eta: Float, curved: bool) -> tuple[Float, Float, Float | None]:
        """Value, gradient and, when asked for, curvature."""
        curvature = self.curvature(codes, eta) if curved else None
        return self.value(codes, eta), self.gradient(codes, eta), curvature

    @abstractmethod
    def conjugate(self, codes: Codes, a: Float) -> Float:
        """(n,) ℓ*(a); infinite outside its domain."""

    @abstractmethod
    def flows(self, sums: Float) -> Float | None:
        """(K, K) sums over class c of the slopes for class k, from sums (K, m); ``None`` where one is negative.

        The slopes of a row add up to zero over the classes, so those for its own class, on the diagonal, are left at zero.
        """

    def gauge(self) -> Float | None:
        """(m,) ones where adding a constant to all scores leaves every loss as it is; ``None`` for other losses."""
        return None

    @abstractmethod
    def errors(self, codes: Codes, eta: Float) -> Float:
        """(n,) 1 where another class has the larger score, else 0."""

    def pair(self, curvature: Float, k: int, l: int) -> Float:  # noqa: E741  # names of the formulas
        """(n,) entry (k, l) of the second derivatives."""
        return curvature[:, 0]

    def diagonal(self, curvature: Float) -> Float:
        """(n, m) entries (k, k) of the second derivatives."""
        return curvature

    def times(self, curvature: Float, v: Float) -> Float:
        """(n, m) second derivatives times v."""
        return curvature * v

    def total(self, curvature: Float, weights: Float | None) -> Float:
        """(m, m) weighted sum of the second derivatives."""
        return np.array([[curvature.sum() if weights is None else weights @ curvature[:, 0]]])


class Softmax(Loss):
    """log Σ_k e^{η_k} − η_y; with a baseline class its score is 0 and has no column in η."""

    concordance = float(np.sqrt(2.0))
    steepest = 0.5

    def __init__(self, n_classes: int, baseline: int | None = None) -> None:
        self.n_classes, self.baseline = n_classes, baseline
        self.n_scores = n_classes - (baseline is not None)
        self._kept = np.arange(n_classes) if baseline is None else np.delete(np.arange(n_classes), baseline)

    def gauge(self) -> Float | None:
        return np.ones(self.n_scores) if self.baseline is None else None

    def _full(self, eta: Float) -> Float:
        return eta if self.baseline is None else np.insert(eta, self.baseline, 0.0, axis=1)

    def _kept_columns(self, full: Float) -> Float:
        return full if self.baseline is None else full[:, self._kept]

    def _posterior(self, eta: Float) -> Float:
        scores = self._full(eta)
        shifted = np.exp(scores - scores[np.arange(len(scores)), scores.argmax(axis=1)][:, None])
        shifted /= (shifted @ np.ones(self.n_classes))[:, None]
        return shifted

    def at(self, codes: Codes, eta: Float, curved: bool) -> tuple[Float, Float, Float | None]:
        # The exponentials cost more than the rest: once for all three.
        scores, rows = self._full(eta), np.arange(len(codes))
        value, p = _log_sum(scores, codes)
        gradient = p.copy() if curved else p
        gradient[rows, codes] -= 1.0
        return value, self._kept_columns(gradient), self._kept_columns(p) if curved else None

    def value(self, codes: Codes, eta: Float) -> Float:
        return _log_sum(self._full(eta), codes)[0]

    def errors(self, codes: Codes, eta: Float) -> Float:
        return (self._full(eta).argmax(axis=1) != codes).astype(np.float64)

    def gradient(self, codes: Codes, eta: Float) -> Float:
        p = self._posterior(eta)
        p[np.arange(len(codes)), codes] -= 1.0
        return self._kept_columns(p)

    def curvature(self, codes: Codes, eta: Float) -> Float:
        return self._kept_columns(self._posterior(eta))

    def flows(self, sums: Float) -> Float | None:
        full = sums if self.baseline is None else np.insert(sums, self.baseline, -sums.sum(axis=1), axis=1)
        flows = full.copy()
        np.fill_diagonal(flows, 0.0)
        return flows if (flows >= 0).all() else None

    def pair(self, curvature: Float, k: int, l: int) -> Float:  # noqa: E741  # names of the formulas
        p = curvature
        return p[:, k] * (1.0 - p[:, k]) if k == l else -p[:, k] * p[:, l]

    def diagonal(self, curvature: Float) -> Float:
        return curvature * (1.0 - curvature)

    def times(self, curvature: Float, v: Float) -> Float:
        inner = np.einsum("ij,ij->i", curvature, v)
        return curvature * (v - inner[:, None])

    def total(self, curvature: Float, weights: Float | None) -> Float:
        weighted = curvature if weights is None else curvature * weights[:, None]
        return np.diag(weighted.sum(axis=0)) - curvature.T @ weighted

    def conjugate(self, codes: Codes, a: Float) -> Float:
        # Without a baseline Σ_k a_k must vanish; with one, its own entry is what makes the sum vanish.
        full = a if self.baseline is None else np.insert(a, self.baseline, -a.sum(axis=1), axis=1)
        q = full.copy()
        q[np.arange(len(codes)), codes] += 1.0
        # q log q with 0 log 0 = 0, by NumPy's vectorised logarithm
        entropy = (np.maximum(q, 0.0) * np.log(np.maximum(q, np.finfo(np.float64).tiny))).sum(axis=1)
        outside = (q.min(axis=1) < -1e-12) | (np.abs(full.sum(axis=1)) > 1e-10)
        return np.where(outside, np.inf, entropy)


def _log_sum(scores: Float, codes: Codes) -> tuple[Float, Float]:
    """(n,) log Σ_k e^{η_k} − η_y and (n, K) posteriors. The largest term is left out of the sum: log1p keeps small losses."""
    rows, at = np.arange(len(codes)), scores.argmax(axis=1)
    largest = scores[rows, at]
    p = np.exp(scores - largest[:, None])
    p[rows, at] = 0.0
    others = p @ np.ones(p.shape[1])
    p[rows, at] = 1.0
    p /= (1.0 + others)[:, None]
    return np.log1p(others) + (largest - scores[rows, codes]), p
