"""Dual coordinate ascent for L2-penalised logistic regression of two classes.

    max_α  −Σ [α log α + (s−α) log(s−α)] − ½ Σ_j (Σ_i α_i ỹ_i x_ij)²/q_j        0 < α_i < s_i,   w_j = Σ_i α_i ỹ_i x_ij / q_j

One row at a time, each exactly. The intercept b has no penalty: it is the multiplier of Σ α_i ỹ_i = 0 and takes a Newton step
between sweeps. The primal (w, b) is what is returned and certified.

Reference: Yu, Huang, Lin (2011), Machine Learning 85, section 3; Shalev-Shwartz and Zhang (2013), JMLR 14.

**Complexity** O(nnz) a sweep. **Passes over the data** one a sweep, and two for each proof; memory O(n + p). Sequential.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source


class DualAscent:
    """The dual variables of every row, block by block, and the primal point they stand for.

    Parameters
    ----------
    quadratic : ndarray of shape (d,)
        q > 0, the penalties of the coefficients.
    fit_intercept : bool
        Whether there is an intercept, without a penalty.
    offset : ndarray of shape (n,), optional
        Added to the scores.
    """

    def __init__(self, quadratic: Float, fit_intercept: bool, offset: Float | None) -> None:
        self._inverse, self._fit_intercept, self._offset = 1.0 / quadratic, fit_intercept, offset
        self.w, self.b = np.zeros(len(quadratic)), 0.0
        self._alphas: dict[int, Float] = {}
        self._generator = np.random.default_rng(0)

    @property
    def theta(self) -> Float:
        """(1, p) the primal point."""
        return (np.append(self.w, self.b) if self._fit_intercept else self.w)[None, :].copy()

    def sweep(self, source: Source) -> None:
        """Every row once, blocks in order and rows within them shuffled; then the intercept."""
        source._count_pass()
        slope, curvature = 0.0, 0.0
        for block in source.blocks():
            counted = block.counted()
            if counted.n:
                self._sweep_block(block.start, counted, self._shift(block, counted))
                alpha, s = self._alphas[block.start], _weights(counted)
                slope += float(alpha @ (2.0 * counted.codes - 1.0))
                curvature += float((alpha * (s - alpha) / s).sum())
        if self._fit_intercept and curvature > 0:
            self.b += slope / curvature

    def _shift(self, block: Block, counted: Block) -> Float:
        """What the scores of the rows that count have beside wᵀx."""
        shift = np.full(counted.n, self.b)
        if self._offset is not None:
            own = self._offset[block.start : block.start + block.n]
            shift += own if counted.n == block.n or block.weights is None else own[block.weights > 0]
        return shift

    def _sweep_block(self, start: int, block: Block, shift: Float) -> None:
        from separatrix.kernels.dual_logistic import sweep_dense, sweep_sparse

        s, signs = _weights(block), 2.0 * block.codes - 1.0
        if start not in self._alphas:
            self._alphas[start] = 1e-3 * s
            self.w += self._inverse * block.rmatvec(1e-3 * s * signs)
        order = self._generator.permutation(block.n)
        rows = block.stored_rows()
        arguments = (signs, s, shift, order, self._inverse, self._alphas[start], self.w)
        if isinstance(rows, tuple):
            sweep_sparse(*rows, *arguments)
        else:
            sweep_dense(rows, *arguments)


def _weights(block: Block) -> Float:
    return np.ones(block.n) if block.weights is None else block.weights
