"""A fitted support vector machine: multipliers, slacks, margins, objectives and residuals.

f(x) = b + Σ βᵢk(x, xᵢ),  β = ỹα            margin 1/‖w‖,  ‖w‖² = βᵀKβ
support vectors α > 0,  margin vectors 0 < α < C,  outliers ξ > 0         primal ½‖w‖² + ΣCξ ≥ dual Σα − ½‖w‖²

Its scores of other rows are sums of values that stay in cache: a block of rows with a part of the support vectors at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.block import Block, Float
from separatrix.dual.kernel_matrix import Index, product_values, radial_sums
from separatrix.dual.kernels import Kernel, RBFKernel
from separatrix.dual.points import Points, lost_reach
from separatrix.result import Certificate, Status

# Rows and support vectors of one product of matrices, and the values from which compiled code is worth its import.
_ROWS, _VECTORS, _MANY = 256, 256, 1 << 24


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


def expansion_scores(
    kernel: Kernel, support: Points, coefficients: Float, intercepts: Float, rows: int | None
) -> Callable[[Block], Float]:
    """The function block → (n, machines) b + Σ βᵢk(x, xᵢ); NaN for a block with values that are not finite.

    `rows` are to come in all, many where that is not known.
    """
    slices = [slice(at, at + _VECTORS) for at in range(0, len(coefficients), _VECTORS)]
    known = support.memo.get("expansion")  # what the rows to come do not change is made once
    if known is None or known[0] is not kernel:
        factored = not support.sparse and kernel.left(support, np.float64) is not None
        known = support.memo["expansion"] = kernel, [support.take(part) for part in slices], factored
    _, parts, factored = known
    held = [(part, coefficients[at]) for part, at in zip(parts, slices, strict=True)]
    many = rows is None or rows * len(coefficients) >= _MANY
    radial = None
    if many and factored and isinstance(kernel, RBFKernel):
        radial = radial_sums(kernel, support, coefficients, np.float64)

    def scores(block: Block) -> Float:
        if factored and isinstance(kernel, RBFKernel):
            there = block.radial_sums(kernel.gamma, support.centre, support.X, coefficients, lost_reach(support))
            if there is not None:
                return there + intercepts
        total = np.tile(intercepts, (block.n, 1))
        bad: Any = block.non_finite()  # a kernel may make a finite value of infinity
        if (bad.data if sp.issparse(bad) else bad).any():
            total[:] = np.nan
            return total
        if (
            radial is not None
            and (every := kernel.left(Points.of_block(block, support.centre), np.float64)) is not None
        ):
            return total + radial(every)
        for start in range(0, block.n, _ROWS):
            rows = Points.of_block(block.part(slice(start, min(start + _ROWS, block.n))), support.centre)
            left, sums = kernel.left(rows, np.float64) if factored else None, total[start : start + _ROWS]
            for vectors, factors in held:
                if left is None:
                    values = kernel.between(rows, vectors)
                else:
                    values = product_values(kernel, left, kernel.right(vectors, np.float64))
                sums += values @ factors
        return total

    return scores
