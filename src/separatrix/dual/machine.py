"""A fitted support vector machine: multipliers, slacks, margins, objectives and residuals.

f(x) = b + Σ βᵢk(x, xᵢ),  β = ỹα            margin 1/‖w‖,  ‖w‖² = βᵀKβ
support vectors α > 0,  margin vectors 0 < α < C,  outliers ξ > 0         primal ½‖w‖² + ΣCξ ≥ dual Σα − ½‖w‖²
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.kernel_matrix import Index
from separatrix.result import Certificate, Status


@dataclass(frozen=True)
class SupportVectorMachine:
    """One machine between two sides. Rows are numbered as in the X that was fitted.

    Attributes
    ----------
    negative, positive : labels
        The side of f < 0 and the side of f > 0; ``"rest"`` stands for all other classes.
    rows : ndarray of int
        The rows this machine was fitted on.
    alpha : ndarray of shape (len(rows),)
        The multipliers, 0 ≤ α ≤ C.
    signs, bound : ndarray of shape (len(rows),)
        ỹ = ±1 and the bound Cᵢ of each row.
    decision : ndarray of shape (len(rows),)
        f(xᵢ).
    intercept : float
        b, the mean over the margin vectors of what puts them on the margin.
    squared_length : float
        ‖w‖² = βᵀKβ.
    """

    negative: Any
    positive: Any
    rows: Index
    signs: Float
    bound: Float
    alpha: Float
    decision: Float
    intercept: float
    status: Status
    certificate: Certificate
    tol: float
    squared_length: float

    @property
    def beta(self) -> Float:
        """ỹα."""
        return self.signs * self.alpha

    @property
    def slacks(self) -> Float:
        """ξᵢ = max(0, 1 − ỹᵢf(xᵢ)), one per row."""
        return np.maximum(0.0, 1.0 - self.signs * self.decision)

    @property
    def support(self) -> Index:
        """Rows with α > 0."""
        return self.rows[self.alpha > 0]

    @property
    def margin_vectors(self) -> Index:
        """Rows with 0 < α < C: they lie on the margin."""
        return self.rows[(self.alpha > 0) & (self.alpha < self.bound)]

    @property
    def outliers(self) -> Index:
        """Rows inside the margin or on the wrong side, by more than the tolerance of the fit; all are support vectors."""
        return self.rows[self.slacks > max(self.tol, self.certificate.stationarity)]

    @property
    def geometric_margin(self) -> float:
        """1/‖w‖: the distance from the boundary to where f = ±1, in the space of the kernel."""
        length = self.squared_length
        return float(1.0 / np.sqrt(length)) if length > 0 else float("inf")

    @property
    def primal_objective(self) -> float:
        """½‖w‖² + ΣCᵢξᵢ; for a hard margin, of the rule scaled until no row is inside."""
        return self.certificate.objective

    @property
    def dual_objective(self) -> float:
        """Σα − ½‖w‖²."""
        return float(self.alpha.sum()) - 0.5 * self.squared_length

    @property
    def kkt(self) -> dict[str, float]:
        """The largest violation of each optimality condition."""
        c = self.certificate
        return {
            "stationarity": c.stationarity,
            "primal_feasibility": c.primal_feasibility,
            "dual_feasibility": c.dual_feasibility,
            "complementary_slackness": c.complementary_slackness,
        }
