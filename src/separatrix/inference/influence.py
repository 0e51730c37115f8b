"""What single rows do to a fit by maximum likelihood: leverage, Cook's distance, change of the coefficients.

    W = diag p − ppᵀ,   r = e_y − p,   Q = (I ⊗ xᵀ)V(I ⊗ x)                       of one row: (m, m), (m,), (m, m)
    leverage      h = tr WQ;   p(1 − p) xᵀVx for two classes
    DFBETA        β̂ − β̂₍ᵢ₎ ≈ V (I ⊗ x) r̃,   r̃ = (I − WQ)⁻¹ r                    one Newton step from β̂ without the row
    Cook          D = r̃ᵀQr̃/q

One row is left out at a time, of a row of weight 2 one of its two copies. Rows of weight 0 have no part in the fit, and zeros.

Reference: Pregibon (1981), Annals of Statistics 9, sections 4 and 5; Lesaffre and Albert (1989), Applied Statistics 38.

**Complexity** O(n q²). **Passes over the data** one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.data.block import Block, Codes, Float
from separatrix.inference.delta import design, probabilities, score_covariances
from separatrix.inference.estimates import Inference


@dataclass(frozen=True)
class InfluenceMeasures:
    """What `LogisticRegression.influence` returns: one entry per row.

    Parameters
    ----------
    leverage : ndarray of shape (n_samples,)
        Their weighted sum is the number of coefficients.
    cooks_distance : ndarray of shape (n_samples,)
        How far all coefficients move without the row, in the metric of their covariance, per coefficient.
    dfbeta : ndarray of shape (n_samples, n_coefficients)
        By how much each coefficient is larger because of the row; in the order of `summary`.
    dfbetas : ndarray of shape (n_samples, n_coefficients)
        The same in standard errors.
    """

    leverage: Float
    cooks_distance: Float
    dfbeta: Float
    dfbetas: Float


def influence_of_block(inference: Inference, block: Block, codes: Codes, offset: Float | None) -> Float:
    """(n, 2 + q) leverage, Cook's distance and DFBETA of rows whose classes are numbered with the baseline as 0."""
    rows = design(inference, block)
    m, width = inference.estimates.shape
    p = probabilities(inference, rows, offset)[:, 1:]
    residual = (codes[:, None] == np.arange(1, m + 1)) - p
    bend = -p[:, :, None] * p[:, None, :]
    bend[:, np.arange(m), np.arange(m)] += p
    spread = score_covariances(inference, rows)
    hat = bend @ spread
    moved = np.linalg.solve(np.eye(m) - hat, residual[:, :, None])[:, :, 0]
    cook = np.einsum("nk,nkl,nl->n", moved, spread, moved) / (m * width)
    scores = (moved[:, :, None] * rows[:, None, :]).reshape(len(rows), m * width)
    out = np.column_stack([np.trace(hat, axis1=1, axis2=2), cook, scores @ inference.covariance])
    if block.weights is not None:
        out[block.weights == 0] = 0.0
    return out


def measures(inference: Inference, rows: Float) -> InfluenceMeasures:
    """Rows of `influence_of_block` by name."""
    dfbeta = rows[:, 2:]
    return InfluenceMeasures(rows[:, 0], rows[:, 1], dfbeta, dfbeta / np.sqrt(inference.covariance.diagonal()))
