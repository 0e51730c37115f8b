"""Gram statistics of features and real targets, from one pass, merged exactly.

    n = Σ sᵢ,  x̄, ȳ,   S_xx = Σ sᵢ(xᵢ−x̄)(xᵢ−x̄)ᵀ,   S_xy = Σ sᵢ(xᵢ−x̄)(yᵢ−ȳ)ᵀ,   S_yy = Σ sᵢ(yᵢ−ȳ)(yᵢ−ȳ)ᵀ

These are the class moments of the joint rows [x, y] with a single class, so merging, accuracy and the thin form for
more columns than rows are inherited. What a regression reads are the `NormalEquations`; class moments can be read as
such too, since within a class the coded target does not vary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import COPIED_BYTES, Source, rows_per_block, rows_to_multiply
from separatrix.statistics.moments import ClassMoments, rounding_scatter
from separatrix.statistics.scatter import Scatter, combine
from separatrix.statistics.statistic import Mergeable

# Stored entries of a block of sparse rows.
_SPARSE_ENTRIES = 1 << 18


@dataclass(frozen=True)
class NormalEquations:
    """min_w  tr(S_yy − 2 S_xyᵀ w + wᵀ S w) + penalty, with b = ȳ − wᵀx̄.

    Attributes
    ----------
    scatter : Scatter
        S_xx (d, d).
    cross : ndarray of shape (d, m)
        S_xy.
    target_rows : ndarray of shape (r, m) or None
        For a scatter held as rows Z: the target rows Y with S_xy = ZᵀY.
    target_squares : ndarray of shape (m,)
        Diagonal of S_yy.
    x_mean, y_mean : ndarray
        Zero when there is no intercept: the sums are then about the origin.
    total : float
        Total weight n.
    rounding : float
        For a scatter held as rows: how much less accurate they are than rows of the data.
    """

    scatter: Scatter
    cross: Float
    target_rows: Float | None
    target_squares: Float
    x_mean: Float
    y_mean: Float
    total: float
    rounding: float = 1.0

    @cached_property
    def column_squares(self) -> Float:
        """(d,) diagonal of S_xx."""
        return self.scatter.diagonal()

    @cached_property
    def column_sizes(self) -> Float:
        """(d,) their square roots."""
        return np.sqrt(self.column_squares)

    @cached_property
    def target_sizes(self) -> Float:
        """(m,) square roots of `target_squares`."""
        return np.sqrt(self.target_squares)

    def without_intercept(self) -> NormalEquations:
        """The same sums about the origin instead of the mean."""
        root, rows = np.sqrt(self.total), None
        if self.scatter.thin and self.target_rows is not None:
            scatter = Scatter(rows=np.concatenate([self.scatter.rows, root * self.x_mean[None, :]]))
            rows = np.concatenate([self.target_rows, root * self.y_mean[None, :]])
        else:
            scatter = self.scatter.copy()
            scatter.add_rows(root * self.x_mean[None, :])
        return NormalEquations(
            scatter,
            self.cross + self.total * np.outer(self.x_mean, self.y_mean),
            rows,
            self.target_squares + self.total * np.square(self.y_mean),
            np.zeros_like(self.x_mean),
            np.zeros_like(self.y_mean),
            self.total,
            self.rounding,
        )

    def intercept(self, coef: Float) -> Float:
        """b = ȳ − wᵀx̄ for coefficients of shape (m, d)."""
        return self.y_mean - coef @ self.x_mean

    def residual_squares(self, coef: Float) -> Float:
        """(m,) residual sums of squares of coefficients of shape (m, d)."""
        if self.scatter.thin and self.target_rows is not None:
            return np.square(self.target_rows - self.scatter.rows @ coef.T).sum(axis=0)
        quadratic = np.einsum("md,dm->m", coef, self.scatter.matrix() @ coef.T)
        linear = np.einsum("md,dm->m", coef, self.cross)
        return np.maximum(self.target_squares - 2.0 * linear + quadratic, 0.0)


class Gram(Mergeable):
    """Moments of [x, y].

    Parameters
    ----------
    moments : ClassMoments
        Of the joint rows, with one class.
    n_targets : int
        Number of target columns m.
    """

    def __init__(self, moments: ClassMoments, n_targets: int) -> None:
        self._moments, self.n_targets = moments, n_targets

    @classmethod
    def empty(cls, n_features: int, n_targets: int) -> Gram:
        """The statistic of no rows."""
        return cls(ClassMoments.empty(1, n_features + n_targets), n_targets)

    @classmethod
    def of_block(cls, block: Block, wide: bool = False) -> Gram:
        """The statistic of one block of real targets."""
        assert block.y is not None
        return cls(ClassMoments.of_block(block.join(block.y), 1, "pooled", wide), block.y.shape[1])

    @classmethod
    def of_source(cls, source: Source) -> Gram:
        """One pass over a valued source."""
        wide = source.n_rows is None or source.n_rows < source.n_features
        read, rows = source, rows_per_block(source.n_features, target=COPIED_BYTES) if source.entries is None else None
        if rows is not None and source.n_rows is not None and not wide:
            rows = min(rows, rows_to_multiply(source.n_rows, source.n_features))
        if source.entries is not None and not wide:  # d² sums cost more than few sparse rows
            read = source.coarse(max(_SPARSE_ENTRIES, source.n_features**2))
        gram = read.reduce(lambda block: cls.of_block(block, wide), cls.merge, rows)
        source.passes += read is not source  # the pass was made by a copy
        check_targets(gram._moments.pooled().diagonal()[source.n_features :])
        gram._moments.check(source)
        return gram

    def merge(self, other: Gram) -> Gram:
        self._moments.merge(other._moments)
        return self

    def copy(self) -> Gram:
        return Gram(self._moments.copy(), self.n_targets)

    @property
    def total(self) -> float:
        """Total weight."""
        return self._moments.total

    def mean(self) -> Float:
        """Mean of [x, y]."""
        return self._moments.means[0]

    def joint(self) -> Scatter:
        """Scatter of [x, y]."""
        return self._moments.pooled()

    def normal_equations(self) -> NormalEquations:
        """The sums a regression reads."""
        d = self._moments.n_features - self.n_targets
        mean, joint = self.mean(), self.joint()
        if joint.thin:
            Z, Y = joint.rows[:, :d], joint.rows[:, d:]
            squares = np.square(Y).sum(axis=0)
            return NormalEquations(Scatter(rows=Z), Z.T @ Y, Y, squares, mean[:d], mean[d:], self.total)
        matrix = joint.matrix()
        scatter = Scatter(matrix=np.ascontiguousarray(matrix[:d, :d]))
        cross, squares = matrix[:d, d:].copy(), matrix.diagonal()[d:].copy()
        return NormalEquations(scatter, cross, None, squares, mean[:d], mean[d:], self.total)


def check_targets(squares: Float) -> None:
    """Refuse targets whose squares overflow (NaN and infinity were refused before)."""
    if not np.isfinite(squares).all():
        raise ValueError(
            "The values of y are so large that their squares overflow; divide them by a power of ten first."
        )


def class_normal_equations(moments: ClassMoments, class_weight: Float | None = None) -> NormalEquations:
    """Least squares on targets ±1 (one column for two classes, else one per class), read from class moments.

    `class_weight` multiplies the weight of every row of class k; it needs the per-class form.
    """
    factor = np.ones(moments.n_classes) if class_weight is None else class_weight
    counts = moments.counts * factor
    total = float(counts.sum())
    d, n_classes = moments.n_features, moments.n_classes
    if class_weight is None:
        scatter = combine([(1.0, moments.pooled())], d)
    else:
        scatter = combine(((float(factor[k]), moments.of_class(k)) for k in range(n_classes)), d)
    codes = 2.0 * np.eye(n_classes) - 1.0
    codes = codes[:, 1:] if n_classes == 2 else codes
    offsets = moments.offsets()
    centre = counts @ offsets / total
    y_mean = counts @ codes / total
    root = np.sqrt(counts)[:, None]
    Z, Y = root * np.where((counts > 0)[:, None], offsets - centre, 0.0), root * (codes - y_mean)
    # In a constant column the class means differ by rounding alone.
    constant = scatter.diagonal() + np.square(Z).sum(axis=0) <= rounding_scatter(
        total, np.abs(moments.means).max(axis=0)
    )
    Z = np.where(constant, 0.0, Z)
    within = len(scatter.rows) if scatter.thin else 0
    scatter.add_rows(Z)
    rows = np.concatenate([np.zeros((within, Y.shape[1])), Y]) if scatter.thin else None
    return NormalEquations(scatter, Z.T @ Y, rows, np.square(Y).sum(axis=0), moments.mean() + centre, y_mean, total)
