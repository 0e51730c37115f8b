"""Dual coordinate ascent for L2-penalised logistic regression of two classes.

    min_u  Σ s ℓ(y, o + uᵀz) + ½ Σ_j q_j (u_j − c_j)²                    z = turnᵀx,  θ = turn·u
    max_α  −Σ [α log α + (s−α) log(s−α) + αỹ(o + cᵀz)] − ½ Σ_j (Σ_i α_i ỹ_i z_ij)²/q_j        0 ≤ α_i ≤ s_i
    u = c + Σ_i α_i ỹ_i z_i / q

One row at a time, each exactly. With c = 0, q the penalty and z = x this is the problem itself; with other
`ProximalCoordinates` it is a step of the proximal point method, in which the intercept and directions with little penalty are
held near a centre c that moves from step to step.

Reference: Yu, Huang, Lin (2011), Machine Learning 85, section 3; Shalev-Shwartz and Zhang (2016), Math. Programming 155, for
proximal points.

**Complexity** O(nnz) per sweep, O(np²) with a `turn`. **Passes over the data** one per sweep, and one for new coordinates;
memory O(n + p). Sequential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source


@dataclass(frozen=True)
class ProximalCoordinates:
    """u, with θ = turn·u, and the centre c of its quadratic; the last entry is that of a constant beside the columns."""

    inverse: Float  # (k + 1,) 1/q; 0 for a constant that is not there
    centre: Float  # (k + 1,)
    turn: Float | None = None  # (p, k); the identity when not given

    def rows(self, block: Block) -> Block | Float:
        """z of the rows."""
        return block if self.turn is None else np.ascontiguousarray(block.dense() @ self.turn)


class DualAscent:
    """The dual variables of every row, from α = `share`·s, and the point they stand for; `offset` (n,) is added to scores."""

    def __init__(self, offset: Float | None, share: float) -> None:
        self._offset, self._share = offset, share
        self._alphas: dict[int, Float] = {}
        self._generator = np.random.default_rng(0)

    def begin(self, source: Source, coordinates: ProximalCoordinates) -> None:
        """Take new coordinates; α stays. One pass."""
        self.coordinates, self.u = coordinates, coordinates.centre.copy()
        source.count_pass()
        for block in source.blocks():
            counted = block.counted()
            if not counted.n:
                continue
            s, signs = counted.row_weights, 2.0 * counted.codes - 1.0
            alpha = self._alphas.setdefault(block.start, self._share * s)
            rows, pulls = coordinates.rows(counted), alpha * signs
            sums = rows.T @ pulls if isinstance(rows, np.ndarray) else rows.rmatvec(pulls)
            self.u += coordinates.inverse * np.append(sums, pulls.sum())

    def sweep(self, source: Source) -> None:
        """Every row once, blocks in order and rows within them shuffled."""
        from separatrix.kernels.dual_logistic import sweep

        source.count_pass()
        for block in source.blocks():
            counted = block.counted()
            if not counted.n:
                continue
            rows = self.coordinates.rows(counted)
            stored = rows if isinstance(rows, np.ndarray) else rows.stored_rows()
            parts: tuple[Any, Any, Any] = (
                (stored[0][None], *stored[1:]) if isinstance(stored, tuple) else (stored, None, None)
            )
            sweep(
                *parts,
                2.0 * counted.codes - 1.0,
                counted.row_weights,
                self._shift(block, counted),
                self._generator.permutation(counted.n),
                self.coordinates.inverse,
                self._alphas[block.start],
                self.u,
            )

    def _shift(self, block: Block, counted: Block) -> Float:
        """The offsets of the rows that count."""
        if self._offset is None:
            return np.zeros(counted.n)
        own = self._offset[block.start : block.start + block.n]
        return own if counted.n == block.n or block.weights is None else own[block.weights > 0]
