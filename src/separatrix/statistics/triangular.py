"""The triangular factor of weighted rows [1, x, y], from one pass, merged exactly: TSQR.

    √s·[1, X − c, Y − e] = Q R,     merge:  R = qr( [R_a; R_b] )

The second way of the models that read a Gram matrix. RᵀR is that matrix, but R has the condition number of the rows, and
RᵀR its square: columns that agree in seven digits are one in a Gram matrix, and two here. Every column of R is as accurate
as the column of the rows, whatever its units. The centre (c, e) is any point near the rows; the column of ones takes out
what it is off the mean. Reference: Demmel, Grigori, Hoemmen and Langou (2012), SIAM Journal on Scientific Computing 34.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import COPIED_BYTES, Source, rows_per_block
from separatrix.statistics.gram import Gram, NormalEquations
from separatrix.statistics.moments import rounding_scatter
from separatrix.statistics.scatter import Scatter
from separatrix.statistics.statistic import Mergeable

# A block much shorter than its factor is wide would be merged at the cost of a block of that size.
_ROWS_A_COLUMN = 4
_LEAST = float(np.finfo(np.float64).eps)


class Triangular(Mergeable):
    """R of the rows [1, x − c, y − e]: `factor` (r, 1 + d + m), trapezoidal for few rows, and `centre` (c, e).

    `rounding` is how much less accurate than the rows the columns are: 1 for a factor made of rows.
    """

    def __init__(self, factor: Float, centre: Float, n_targets: int, rounding: float = 1.0) -> None:
        self.factor, self.centre, self.n_targets, self.rounding = factor, centre, n_targets, rounding

    @classmethod
    def empty(cls, n_features: int, n_targets: int) -> Triangular:
        """The statistic of no rows."""
        return cls(np.zeros((0, 1 + n_features + n_targets)), np.zeros(n_features + n_targets), n_targets)

    @classmethod
    def of_block(cls, block: Block, centre: Float | None = None) -> Triangular:
        """The statistic of one block of real targets, about a centre or the mean of the block."""
        block = block.counted()
        assert block.y is not None
        d, m = block.shape[1], block.y.shape[1]
        rows = np.empty((block.n, 1 + d + m))
        rows[:, 0], rows[:, 1 : d + 1], rows[:, d + 1 :] = 1.0, block.dense(), block.y
        if centre is None:
            centre = rows[:, 1:].mean(axis=0) if block.n else np.zeros(d + m)
        rows[:, 1:] -= centre
        if block.weights is not None:
            rows *= np.sqrt(block.weights)[:, None]
        return cls(_reduced(rows), centre, m)

    @classmethod
    def of_source(cls, source: Source, centre: Float) -> Triangular:
        """One pass over a valued source whose mean is known (so that its values are finite)."""
        p = len(centre) + 1
        rows = max(_ROWS_A_COLUMN * p, rows_per_block(p, target=COPIED_BYTES))
        return source.reduce(lambda block: cls.of_block(block, centre), cls.merge, rows)

    @classmethod
    def of_gram(cls, gram: Gram) -> Triangular:
        """A factor of a Gram matrix, as accurate as its condition allows: RᵀR is off by rounding, R by that over λ."""
        joint, rounding = gram.joint(), 1.0
        if joint.thin:
            rows = joint.rows
        else:
            d = joint.n_features - gram.n_targets
            scale = np.sqrt(np.maximum(joint.diagonal(), 0.0))
            scale = np.where(scale > 0, scale, 1.0)
            values, vectors = np.linalg.eigh(joint.matrix() / scale / scale[:, None])
            rows = (np.sqrt(np.maximum(values, 0.0)) * vectors).T * scale
            varies = np.flatnonzero(joint.diagonal()[:d] > 0)
            inner = (joint.matrix() / scale / scale[:, None])[np.ix_(varies, varies)]
            least = float(np.linalg.eigvalsh(inner)[0]) if len(varies) else 1.0
            rounding = 1.0 / max(least, _LEAST)
        factor = np.zeros((1 + len(rows), 1 + joint.n_features))
        factor[0, 0], factor[1:, 1:] = np.sqrt(gram.total), rows
        return cls(_reduced(factor), gram.mean(), gram.n_targets, rounding)

    def merge(self, other: Triangular) -> Triangular:
        if not len(self.factor):
            self.factor, self.centre = other.factor, other.centre
        elif len(other.factor):
            self.factor = _reduced(np.concatenate([self.factor, other._about(self.centre)]))
        self.rounding = max(self.rounding, other.rounding)
        return self

    def copy(self) -> Triangular:
        return Triangular(self.factor, self.centre, self.n_targets, self.rounding)

    def _about(self, centre: Float) -> Float:
        """The factor of the same rows about another centre (not triangular)."""
        if np.array_equal(centre, self.centre):
            return self.factor
        moved = self.factor.copy()
        moved[:, 1:] += np.multiply.outer(moved[:, 0], self.centre - centre)
        return moved

    @property
    def total(self) -> float:
        """Total weight."""
        return float(np.square(self.factor[0, 0])) if len(self.factor) else 0.0

    def normal_equations(self) -> NormalEquations:
        """What a regression with an intercept reads: S_xx and S_xy held as rows, below the row of the ones."""
        first, rows = self.factor[0], self.factor[1:]
        mean = self.centre + first[1:] / first[0]
        # What rounding leaves of a constant column is no column.
        flat = np.square(rows[:, 1:]).sum(axis=0) <= rounding_scatter(self.total, mean)
        d = len(mean) - self.n_targets
        rows = np.where(flat, 0.0, rows[:, 1:])
        Z, Y = np.ascontiguousarray(rows[:, :d]), np.ascontiguousarray(rows[:, d:])
        squares = np.square(Y).sum(axis=0)
        return NormalEquations(
            Scatter(rows=Z), Z.T @ Y, Y, squares, mean[:d], mean[d:], self.total, rounding=self.rounding
        )


def _reduced(rows: Float) -> Float:
    """The factor R of the rows, its diagonal ≥ 0."""
    if len(rows) == 0:
        return rows
    factor = np.asarray(np.linalg.qr(rows, mode="r"))
    return factor * np.where(factor.diagonal() < 0, -1.0, 1.0)[:, None]
