"""Probabilities at rows with their standard errors, by the delta method.

    p = softmax(0, Bx),    ∂p_j/∂B_k = p_j(δ_jk − p_k) x,    Var p_j ≈ Σ_kl a_jk a_jl xᵀV_kl x,   a_jk = p_j(δ_jk − p_k)
    scale="probability"   p ± z se(p), within [0, 1]
    scale="log-odds"      σ(logit p ± z se(p)/(p(1 − p))), the Wald interval of the score for two classes

B (m, p) has the contrasts of an `Inference` against its baseline, whose score is 0 and whose class stands first; x ends in 1
where there is an intercept, and V is their covariance, block (k, l) for two contrasts.

Reference: Agresti (2013), Categorical Data Analysis, sections 5.1.1 and 16.1.

**Complexity** O(n q²), q coefficients. **Passes over the data** one.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, ndtri

from separatrix.data.block import Block, Float
from separatrix.inference.estimates import Inference


def design(inference: Inference, block: Block) -> Float:
    """(n, p) rows, with a last column of ones where there is an intercept."""
    rows = block.dense()
    return np.column_stack([rows, np.ones(block.n)]) if inference.fit_intercept else rows


def probabilities(inference: Inference, rows: Float, offset: Float | None = None) -> Float:
    """(n, m + 1) probabilities, the baseline first."""
    scores = rows @ inference.estimates.T
    if offset is not None:
        scores = scores + (offset[:, None] if offset.ndim == 1 else offset)
    scores = np.column_stack([np.zeros(len(rows)), scores])
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def score_covariances(inference: Inference, rows: Float) -> Float:
    """(n, m, m) covariances of the scores xᵀB: xᵀV_kl x."""
    m, p = inference.estimates.shape
    blocks = inference.covariance.reshape(m, p, m, p)
    out = np.empty((len(rows), m, m))
    for k in range(m):
        for l in range(k + 1):  # noqa: E741  # name of the formula
            out[:, k, l] = out[:, l, k] = np.einsum("ij,ij->i", rows @ blocks[k, :, l], rows)
    return out


def standard_errors(inference: Inference, rows: Float, p: Float) -> Float:
    """(n, m + 1) of the probabilities p at rows."""
    own = np.eye(p.shape[1])[:, 1:]  # δ_jk
    slopes = p[:, :, None] * (own[None] - p[:, None, 1:])
    variances = np.einsum("njk,nkl,njl->nj", slopes, score_covariances(inference, rows), slopes)
    return np.sqrt(np.maximum(variances, 0.0))


def probability_limits(inference: Inference, block: Block, level: float, scale: str) -> Float:
    """(n, m + 1, 2) limits of the probabilities, the baseline first."""
    rows, z = design(inference, block), float(ndtri(0.5 + 0.5 * level))
    p = probabilities(inference, rows)
    errors = standard_errors(inference, rows, p)
    if scale == "probability":
        return np.clip(np.stack([p - z * errors, p + z * errors], axis=2), 0.0, 1.0)
    inner = p * (1.0 - p)
    width = z * np.divide(errors, inner, out=np.zeros_like(errors), where=inner > 0)
    centre = logit(p)
    return expit(np.stack([centre - width, centre + width], axis=2))
