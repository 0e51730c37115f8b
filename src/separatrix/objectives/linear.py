"""The objective of a linear model: a loss of the scores summed over the rows, and a penalty.

    F(θ) = Σᵢ sᵢ ℓ(yᵢ, oᵢ + θxᵢ) + P(θ)                 θ (m, p), a row a score; the intercept is a column of ones in x
    ∇F   = Σᵢ sᵢ ∇ℓᵢ xᵢᵀ + ∇P
    ∇²F  = Σᵢ sᵢ ∇²ℓᵢ ⊗ xᵢxᵢᵀ + ∇²P                     (mp, mp), block (k, l) for the scores k and l

Rows are read in pieces that stay in cache from the scores to the products; the sums of the pieces do not depend on the
number of threads. One evaluation is one pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Float
from separatrix.data.held import Held, HeldRows
from separatrix.data.source import Source
from separatrix.objectives.fused import Fused, column_by_column, fused_curve, fused_sums, worth_compiling
from separatrix.objectives.fused_hessian import fused_hessian
from separatrix.objectives.hessian_blocks import hessian_blocks
from separatrix.objectives.losses import Loss
from separatrix.objectives.penalties import Penalty
from separatrix.objectives.rounding import EPS

# Bytes of rows that stay in cache while they are read twice, or three times.
_TWICE, _THRICE = 4 << 20, 1 << 20
_TASKS, _MANY_ROWS = 16, 262_144
# Multiplications below which a task is not worth handing to another thread, and rows that products of matrices are made for.
_WORTH_HANDING, _LEAST_ROWS = 4_000_000, 128


class HessianProduct:
    """∇²F · V at a point, from second derivatives that are kept with the rows. One pass each."""

    def __init__(self, objective: LinearObjective, source: Source, order: int, kept: Held[Any]) -> None:
        self._objective, self._source, self._order, self._kept = objective, source, order, kept
        self._whole: list[tuple[Block, Any]] = []
        """The rows that count with their second derivatives, where one block has all of them and they are few."""

    def __call__(self, direction: Float) -> Float:
        laid = column_by_column(direction)
        if self._whole:
            self._source.count_pass()
            with np.errstate(invalid="ignore", over="ignore"):
                sums = self._curved(self._whole, laid)
        else:
            rows = rows_per_task(self._source, direction.size, self._order)

            def of_block(block: Block) -> Float:
                pairs = list(self._pairs(block))
                if rows is not None and block.n == self._source.n_rows:  # one task: its rows need not be drawn again
                    self._whole = pairs
                return self._curved(pairs, laid)

            sums = self._source.reduce(of_block, added, rows)
        return np.ascontiguousarray(sums.T) + self._objective.penalty.times(direction)

    def _pairs(self, block: Block) -> Iterator[tuple[Block, Any]]:
        held = self._kept.of(block)
        if isinstance(held, Fused):
            yield block.counted(), held
        else:
            for piece, curvature in zip(pieces_in_cache(block, self._order), held, strict=True):
                yield piece.counted(), curvature

    def _curved(self, pairs: list[tuple[Block, Any]], laid: Float) -> Float:
        total: Float | None = None
        for rows, held in pairs:
            if isinstance(held, Fused):
                assert held.curvatures is not None
                part = fused_curve(laid, rows, held.curvatures)
            else:
                part = self._objective.curved(rows, held, laid)
            total = part if total is None else added(total, part)
        assert total is not None
        return total

    def release(self) -> None:
        """Let go of what is kept, so that the next point has room; there are no more products then."""
        self._kept.clear()
        self._whole.clear()


@dataclass(frozen=True)
class Evaluation:
    """F and, as far as asked for, its derivatives; `loss` is F without the penalty.

    `residual` is Σ s‖∇ℓ‖² and `total` Σ s: they bound the rounding of the gradient. `steepest` is max |η|, a sign of
    separation.
    """

    value: float
    loss: float
    gradient: Float
    residual: float
    total: float
    hessian: Float | None = None
    largest_row: float = np.nan
    steepest: float = 0.0
    total_curvature: Float | None = None
    """(m, m) Σ s ∇²ℓ: the second derivatives by the intercepts."""
    precision: float = EPS
    """The unit of rounding in the arithmetic of a row; sums over rows are of double precision."""
    times: HessianProduct | None = None
    """∇²F · V for V of the shape of θ, one pass each."""


@dataclass(frozen=True)
class _Sums:
    loss: float
    gradient: Float
    hessian: Float | None
    largest_row: float
    steepest: float
    residual: float
    total: float
    curvature: Float | None
    precision: float = EPS

    def __add__(self, other: _Sums) -> _Sums:
        hessian = self.hessian
        if hessian is not None and other.hessian is not None:
            hessian += other.hessian
        return _Sums(
            self.loss + other.loss,
            added(self.gradient, other.gradient),
            hessian,
            max(self.largest_row, other.largest_row),
            max(self.steepest, other.steepest),
            self.residual + other.residual,
            self.total + other.total,
            self.curvature + other.curvature if self.curvature is not None and other.curvature is not None else None,
            max(self.precision, other.precision),
        )


@dataclass(frozen=True)
class LinearObjective:
    """Σ s ℓ + P over the rows of a labelled source.

    Parameters
    ----------
    loss : Loss
    penalty : Penalty
    offset : ndarray of shape (n,) or (n, m), optional
        Added to the scores.
    """

    loss: Loss
    penalty: Penalty
    offset: Float | None = None
    unit: float = 1.0
    """1, or what is less: the 1 of the user's objective, which is C times this one."""
    ones: bool = False
    """Whether the last column of the rows is the constant 1."""
    shifts: HeldRows | None = None
    """One number per row in the place of the offset, which an earlier pass has left with the rows."""

    @cached_property
    def free_intercept(self) -> bool:
        """Whether the last coefficients are intercepts that nothing holds back."""
        if not self.ones:
            return False
        penalty = self.penalty
        bounded = np.isfinite(penalty.low[:, -1]).any() or np.isfinite(penalty.high[:, -1]).any()
        return bool(penalty.free[:, -1].all() and not bounded)

    def target(self, tol: float, value: float) -> float:
        """The gap that `tol` asks for: a fraction of F, or of the user's 1 when F is smaller."""
        return tol * max(self.unit, abs(value))

    def restricted(self, rows: NDArray[np.intp]) -> LinearObjective:
        """The objective of some rows, under the same penalty."""
        if self.shifts is not None:
            return replace(self, offset=self.shifts.at(rows), shifts=None)
        return self if self.offset is None else replace(self, offset=self.offset[rows])

    def counted(self, block: Block) -> tuple[Block, Float | None]:
        """The rows of a block that count, and their offsets as a column for each score."""
        counted = block.counted()
        if self.shifts is not None:
            own = self.shifts.of(block)
        elif self.offset is not None:
            own = self.offset[block.start : block.start + block.n]
        else:
            return counted, None
        if counted.n < block.n and block.weights is not None:
            own = own[block.weights > 0]
        return counted, own[:, None] if own.ndim == 1 else own

    def scores(self, theta: Float, rows: Block, own: Float | None) -> Float:
        """(n, m) scores of rows and offsets that `counted` gave."""
        eta = rows.matvec(theta.T)
        return eta if own is None else eta + own

    def evaluate(
        self,
        theta: Float,
        source: Source,
        order: int = 1,
        metric: Float | None = None,
        columns: NDArray[np.intp] | None = None,
        keep: bool = False,
    ) -> Evaluation:
        """F, ∇F, and ∇²F from order 2 on (of `columns` alone when given). One pass.

        `metric` (p,) asks for max_i Σ_j metric_j x_ij² as well, `keep` for products with ∇²F: m numbers
        a row stay, those of the compiled softmax in single precision.
        """
        laid, compiled = column_by_column(theta), worth_compiling(source, theta)
        curved = compiled and order == 2 and columns is None and not keep

        def look(block: Block) -> tuple[_Sums, Fused | list[Any] | None]:
            """The sums, and second derivatives of the rows: of the block by a compiled loop, or piece by piece."""
            if curved:
                whole = fused_hessian(self.loss, theta, *self.counted(block), metric)
                if whole is not None:
                    return _Sums(**vars(whole)), None
            once = compiled and order == 1
            fused = fused_sums(self.loss, laid, *self.counted(block), metric, keep) if once else None
            if fused is not None:
                return self._of_fused(fused, block)
            total: _Sums | None = None
            bends: list[Float] | None = [] if keep else None
            for piece in pieces_in_cache(block, order):
                part = self._sums(laid, piece, order, metric, columns, bends)
                total = part if total is None else total + part
            assert total is not None
            return total, bends

        kept: Held[Any] | None = Held(lambda block: look(block)[1], source.room) if keep else None
        size = theta.itemsize * len(theta)

        def of_block(block: Block) -> _Sums:
            sums, bends = look(block)
            if kept is not None:
                kept.put(block, bends, size * block.n)
            return sums

        sums = source.reduce(of_block, _Sums.__add__, rows_per_task(source, theta.size, order))
        source.check_finite(np.asarray(sums.loss), sums.gradient)
        hessian = None
        if sums.hessian is not None:
            hessian = self._penalised(_as_matrix(sums.hessian), columns)
        return Evaluation(
            sums.loss + self.penalty.value(theta),
            sums.loss,
            np.ascontiguousarray(sums.gradient) + self.penalty.gradient(theta),
            sums.residual,
            sums.total,
            hessian,
            sums.largest_row,
            sums.steepest,
            sums.curvature,
            sums.precision,
            None if kept is None else HessianProduct(self, source, order, kept),
        )

    def values(self, thetas: Float, source: Source) -> Float:
        """(n,) F at many points (n, m, p). One pass, with n scores per row in memory."""
        (n, m, _), points = thetas.shape, thetas.reshape(-1, thetas.shape[2])

        def of_block(block: Block) -> Float:
            total = np.zeros(n)
            for piece in pieces_in_cache(block):
                rows, own = self.counted(piece)
                eta = rows.matvec(points.T).reshape(rows.n, n, m)
                eta = eta if own is None else eta + own[:, None]
                losses = self.loss.value(np.repeat(rows.codes, n), eta.reshape(-1, m)).reshape(rows.n, n)
                total += losses.sum(axis=0) if rows.weights is None else rows.weights @ losses
            return total

        sums = source.reduce(of_block, added)
        source.check_finite(sums)
        return np.asarray(sums + [self.penalty.value(theta) for theta in thetas])

    def _sums(
        self,
        theta: Float,
        block: Block,
        order: int,
        metric: Float | None,
        columns: NDArray[np.intp] | None,
        bends: list[Float] | None,
    ) -> _Sums:
        block, own = self.counted(block)
        eta, codes, weights = self.scores(theta, block, own), block.codes, block.weights
        losses, slopes, curvature = self.loss.at(codes, eta, curved=order > 1 or bends is not None)
        squares = np.einsum("ij,ij->i", slopes, slopes)
        if weights is not None:
            losses, slopes, squares = losses * weights, slopes * weights[:, None], squares * weights
        hessian = None
        if bends is not None and curvature is not None:
            bends.append(curvature)
        if order > 1 and curvature is not None:
            hessian = hessian_blocks(self.loss, block, curvature, columns)
        return _Sums(
            float(losses.sum()),
            block.rmatvec(slopes).T,
            hessian,
            np.nan if metric is None else block.largest_row(metric),
            float(np.abs(eta).max(initial=0.0)),
            float(squares.sum()),
            float(block.n) if weights is None else float(weights.sum()),
            None if curvature is None else self.loss.total(curvature, weights),
        )

    def _penalised(self, hessian: Float, columns: NDArray[np.intp] | None) -> Float:
        if columns is None:
            return self.penalty.add_hessian(hessian)
        hessian[np.diag_indices(len(hessian))] += self.penalty.quadratic[:, columns].ravel()
        return hessian

    def _of_fused(self, fused: Fused, block: Block) -> tuple[_Sums, Fused | list[Any] | None]:
        curvature, bends = None, None
        if fused.curvatures is not None:
            sparse = self.loss.n_scores == 1 and block.sparse_rows() is not None
            bends = [fused.curvatures] if sparse else fused
            curvature = fused.bend
            if curvature is None:
                weights = block.weights if block.weights is None else block.weights[block.weights > 0]
                curvature = self.loss.total(fused.curvatures.astype(np.float64), weights)
        sums = (fused.largest_row, fused.steepest, fused.residual, fused.total, curvature, fused.precision)
        return _Sums(fused.loss, fused.gradient, None, *sums), bends

    def curved(self, block: Block, curvature: Float, direction: Float) -> Float:
        """(p, m) Σ s ∇²ℓ(Vx) xᵀ of rows that count, given their second derivatives."""
        if len(direction) == 1:
            weights = curvature[:, 0] if block.weights is None else curvature[:, 0] * block.weights
            return block.curve(weights, direction[0])[:, None]
        moved = self.loss.times(curvature, block.matvec(direction.T))
        return block.rmatvec(moved if block.weights is None else moved * block.weights[:, None])

    def slopes(self, theta: Float, rows: Block, own: Float | None, shift: Float) -> Float:
        """(n, m) ∇ℓ − ∇²ℓ·(shift·1): the slopes at θ, moved to first order by a shift of the scores."""
        eta, codes = self.scores(theta, rows, own), rows.codes
        if not shift.any():
            return self.loss.gradient(codes, eta)
        _, a, curvature = self.loss.at(codes, eta, curved=True)
        assert curvature is not None
        return a - self.loss.times(curvature, np.broadcast_to(shift, eta.shape))


def _as_matrix(blocks: Float) -> Float:
    m, _, p, _ = blocks.shape
    return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3).reshape(m * p, m * p))


def added(total: Float, more: Float) -> Float:
    """total + more, in the memory of the total."""
    total += more
    return total


def pieces_in_cache(block: Block, order: int = 1) -> Iterator[Block]:
    """Runs of rows that stay in cache."""
    return block.pieces(_THRICE if order > 1 else _TWICE)


def rows_per_task(source: Source, parameters: int = 0, order: int = 1) -> int | None:
    """Rows per task, so that there are enough tasks to share, each worth it; blocks themselves where there are many rows."""
    if source.shared_out or source.n_rows is None or source.n_rows > _MANY_ROWS:
        return None
    work = 2 * parameters if order == 1 else parameters * (parameters + 1) // 2
    return max(_LEAST_ROWS, -(-source.n_rows // _TASKS), _WORTH_HANDING // work if work else 2048)
