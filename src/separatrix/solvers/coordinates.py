"""Columns seen from their mean and in units of their range: the same likelihood in other coordinates, φ = Tθ.

    φ_j = scale_j θ_j,    φ_0 = θ_0 + Σ centre_j θ_j
    I_θ = Tᵀ I_φ T,    U_θ = Tᵀ U_φ,    ½ log|I_θ| = ½ log|I_φ| + Σ log scale_j

Without an intercept columns keep their origin. Scales are powers of two, so that they cost no digit. In θ a step of one slope
alone changes Xθ by the distance of its column from the origin: for a year that is two thousand times the step.

**Complexity** O(np). **Passes over the data** one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.affine import Intercept, Standardised
from separatrix.data.block import Block, Float
from separatrix.data.source import COPIED_BYTES, Source, rows_per_block


@dataclass(frozen=True)
class StandardisedCoordinates:
    """A view of a source in which its columns are near 0 and of size 1, and the way from coefficients θ to φ and back."""

    view: Source
    centre: Float
    scale: Float
    intercept: bool
    total: float

    @classmethod
    def of(cls, source: Source) -> StandardisedCoordinates:
        """One pass, for the mean and the range of the columns."""
        intercept = isinstance(source, Intercept)
        plain = source.source if isinstance(source, Intercept) else source

        def look(block: Block) -> tuple[float, Float, Float, Float]:
            rows = block.counted().dense()
            weights = np.ones(block.n) if block.weights is None else block.weights[block.weights > 0]
            if not len(rows):
                nothing = np.zeros(plain.n_features)
                return 0.0, nothing, nothing + np.inf, nothing - np.inf
            low, high = rows.min(axis=0), rows.max(axis=0)
            return float(weights.sum()), low + (weights / weights.sum()) @ (rows - low), low, high

        def merge(one: Any, two: Any) -> Any:
            total = one[0] + two[0]
            share = two[0] / total if total else 0.0
            mean = one[1] * (1.0 - share) + two[1] * share
            return total, mean, np.minimum(one[2], two[2]), np.maximum(one[3], two[3])

        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found and named by the next pass
            total, mean, low, high = plain.reduce(look, merge, rows=rows_per_block(plain.n_features, 256, COPIED_BYTES))
            spread = 0.5 * high - 0.5 * low if intercept else np.maximum(np.abs(low), np.abs(high))
            varies = np.isfinite(spread) & (spread > 0) & np.isfinite(mean)
            scale = np.where(varies, np.exp2(np.floor(np.log2(np.where(varies, spread, 1.0)))), 1.0)
            centre = np.where(varies, mean, 0.0) if intercept else np.zeros(plain.n_features)
        view: Source = Standardised(plain, centre, scale)
        return cls(Intercept(view) if intercept else view, centre, scale, intercept, total)

    def inner(self, theta: Float) -> Float:
        """φ of θ."""
        d = len(self.scale)
        slopes = theta[:d] * self.scale
        return np.append(slopes, theta[d] + self.centre @ theta[:d]) if self.intercept else slopes

    def from_inner(self, vectors: Float) -> Float:
        """T⁻¹ applied to a vector or to the columns of a matrix."""
        d = len(self.scale)
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = (vectors[:d].T / self.scale).T
            return np.concatenate([slopes, vectors[d:] - self.centre @ slopes]) if self.intercept else slopes

    def outer(self, phi: Float) -> Float:
        """θ of φ; an error where a coefficient is beyond what a float can hold."""
        d, theta = len(self.scale), self.from_inner(phi)
        beyond = np.flatnonzero(~np.isfinite(theta))
        if len(beyond):
            j = min(int(beyond[0]), d - 1)
            plain = self.view.source if isinstance(self.view, Intercept) else self.view
            raise ValueError(
                f"The values of {plain.column_name(j)} differ by less than {4 * self.scale[j]:.1g}, so its coefficient is "
                "larger than a float can hold; multiply the column by a large number."
            )
        return theta

    def normal(self, index: int) -> Float:
        """The vector a with aᵀφ = θ_index times the scale of that column, which has no scale if it is the intercept."""
        d = len(self.scale)
        normal = np.zeros(d + self.intercept)
        normal[index] = 1.0
        if index == d:
            normal[:d] = -self.centre / self.scale
        return normal

    def unit(self, index: int) -> float:
        """What θ_index is multiplied by in `normal`."""
        return float(self.scale[index]) if index < len(self.scale) else 1.0

    @property
    def log_units(self) -> float:
        """L* of the coefficients θ less that of φ."""
        return float(np.log(self.scale).sum())

    def transposed(self, vector: Float) -> Float:
        """Tᵀ applied to a vector or to the columns of a matrix."""
        d = len(self.scale)
        moved = (vector[:d].T * self.scale).T
        if not self.intercept:
            return moved
        return np.concatenate([moved + np.multiply.outer(self.centre, vector[d]), vector[d:]])
