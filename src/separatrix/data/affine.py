"""Affine views of rows: what is centred, scaled, or given a column of ones.

Intercept       [X, 1]
Standardised    (X − 1cᵀ) D⁻¹                 products through those of X: sparse rows stay sparse
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Centred, Codes, Entries, Float, RowSums
from separatrix.data.dense import DenseBlock
from separatrix.data.source import Source
from separatrix.data.sparse import SparseBlock
from separatrix.data.views import View


class _Affine(Block):
    """(X − 1cᵀ) D⁻¹, with a column of ones behind it when asked; the rows of X are left as they are."""

    def __init__(self, block: Block, centre: Float, scale: Float, ones: bool) -> None:
        self._block, self._centre, self._scale, self._ones = block, centre, scale, ones
        self.start = block.start

    @property
    def y(self) -> NDArray[Any] | None:  # type: ignore[override]  # those of the rows, which may lie elsewhere
        """Targets of the rows."""
        return self._block.y

    @property
    def weights(self) -> Float | None:  # type: ignore[override]  # those of the rows
        """Weights of the rows."""
        return self._block.weights

    def class_rows(self, n_classes: int) -> Codes:
        return self._block.class_rows(n_classes)

    def class_weight(self, n_classes: int) -> Float:
        return self._block.class_weight(n_classes)

    @property
    def shape(self) -> tuple[int, int]:
        return self._block.n, self._block.shape[1] + self._ones

    def matvec(self, v: Float) -> Float:
        slope = v[:-1] if self._ones else v
        slope = (slope.T / self._scale).T
        constant = (v[-1] if self._ones else 0.0) - self._centre @ slope
        return self._block.matvec(slope) + constant

    def rmatvec(self, r: Float) -> Float:
        total = r.sum(axis=0)
        slope = ((self._block.rmatvec(r) - np.multiply.outer(self._centre, total)).T / self._scale).T
        return np.concatenate([slope, total[None]]) if self._ones else slope

    def gram(self, weights: Float | None = None) -> Float:
        s = np.ones(self.n) if weights is None else weights
        total, sums = s.sum(), self._block.rmatvec(s)
        inner = self._block.gram(weights) - np.outer(self._centre, sums) - np.outer(sums, self._centre)
        inner += total * np.outer(self._centre, self._centre)
        inner /= np.outer(self._scale, self._scale)
        if not self._ones:
            return inner
        border = (sums - total * self._centre) / self._scale
        return np.block([[inner, border[:, None]], [border[None, :], np.full((1, 1), total)]])

    def columns(self, which: Codes) -> Block:
        d = self._block.shape[1]
        inner = which[which < d]
        if self._ones and not np.array_equal(which, [*inner, d]):
            return DenseBlock(self.dense()[:, which], self.y, self.weights, self.start)
        return _Affine(self._block.columns(inner), self._centre[inner], self._scale[inner], self._ones)

    def column_squares(self, weights: Float | None = None) -> Float:
        if self._centre.any():
            squares = np.square(self.dense())
            return (np.ones(self.n) if weights is None else weights) @ squares
        inner = self._block.column_squares(weights) / np.square(self._scale)
        total = float(self.n) if weights is None else float(weights.sum())
        return np.append(inner, total) if self._ones else inner

    def row_squares(self, metric: Float) -> Float:
        if self._centre.any():
            return np.square(self.dense()) @ metric
        inner = metric[:-1] if self._ones else metric
        squares = self._block.row_squares((inner.T / np.square(self._scale)).T)
        return squares + metric[-1] if self._ones else squares

    def dense(self) -> Float:
        rows = (self._block.dense() - self._centre) / self._scale
        return np.concatenate([rows, np.ones((self.n, 1))], axis=1) if self._ones else rows

    def centre(self, codes: Codes, n_classes: int) -> Centred:
        return DenseBlock(self.dense(), self.y, self.weights, self.start).centre(codes, n_classes)

    def join(self, columns: Float) -> Block:
        return DenseBlock(self.dense(), self.y, self.weights, self.start).join(columns)

    def least(self) -> float:
        return float(self.dense().min(initial=0.0))

    def column_minima(self) -> Float:
        return self.dense().min(axis=0, initial=0.0)

    def stored_entries(self) -> Entries:
        return DenseBlock(self.dense()).stored_entries()

    def counted(self) -> Block:
        return _Affine(self._block.counted(), self._centre, self._scale, self._ones)

    def part(self, rows: slice) -> Block:
        return _Affine(self._block.part(rows), self._centre, self._scale, self._ones)

    def pieces(self, size: int) -> Iterator[Block]:
        return (_Affine(piece, self._centre, self._scale, self._ones) for piece in self._block.pieces(size))

    def non_finite(self) -> NDArray[np.bool_]:
        return self._block.non_finite()


class Standardised(View):
    """(X − 1cᵀ) D⁻¹ for a given centre c and scale D, sparse rows staying sparse inside the products."""

    _sampled = True

    def __init__(self, source: Source, centre: Float | None = None, scale: Float | None = None) -> None:
        super().__init__(source)
        self.centre = np.zeros(self.n_features) if centre is None else centre
        self.scale = np.ones(self.n_features) if scale is None else scale

    def map_block(self, block: Block) -> Block:
        return self.block(block, self.centre, self.scale)

    @staticmethod
    def block(block: Block, centre: Float, scale: Float | float = 1.0) -> Block:
        """One block, standardised."""
        if isinstance(block, DenseBlock):  # centred entry by entry: Xv − cv would cancel far from the origin
            rows = (block.X - centre) / scale
            return DenseBlock(rows, block.y, block.weights, block.start)
        if (view := block.standardised(centre, scale)) is not None:
            return view
        if isinstance(block, SparseBlock) and block.X.nnz > 0.5 * block.n * block.shape[1]:
            return Standardised.block(DenseBlock(block.dense(), block.y, block.weights, block.start), centre, scale)
        return _Affine(block, centre, np.broadcast_to(np.asarray(scale, dtype=np.float64), centre.shape), ones=False)


class _WithOnes(_Affine):
    """[X, 1], without arithmetic on X."""

    def __init__(self, block: Block) -> None:
        self._block, self._ones, self.start = block, True, block.start

    @cached_property
    def _centre(self) -> Float:  # type: ignore[override]  # made for the few products that ask for it
        return np.zeros(self._block.shape[1])

    @cached_property
    def _scale(self) -> Float:  # type: ignore[override]  # likewise
        return np.ones(self._block.shape[1])

    def matvec(self, v: Float) -> Float:
        products = self._block.matvec(v[:-1])
        products += v[-1]
        return products

    def rmatvec(self, r: Float) -> Float:
        return np.concatenate([self._block.rmatvec(r), (np.ones(len(r)) @ r)[None]])

    def dense(self) -> Float:
        rows = np.empty(self.shape)
        rows[:, :-1], rows[:, -1] = self._block.dense(), 1.0
        return rows

    def gram(self, weights: Float | None = None) -> Float:
        s = np.ones(self.n) if weights is None else weights
        d = self._block.shape[1]
        full = np.empty((d + 1, d + 1))
        full[:d, :d] = self._block.gram(weights)
        full[d, :d] = full[:d, d] = self._block.rmatvec(s)
        full[d, d] = s.sum()
        return full

    def gram_of(self, which: Codes, weights: Float) -> Float:
        d = self._block.shape[1]
        inner = which[which < d]
        core = self._block.gram_of(inner, weights)
        if len(inner) == len(which):
            return core
        full = np.empty((len(which), len(which)))
        full[:-1, :-1], full[-1, -1] = core, weights.sum()
        full[-1, :-1] = full[:-1, -1] = self._block.rmatvec(weights)[inner]
        return full

    def curve(self, weights: Float, v: Float) -> Float:
        return self._block.curve_with_ones(weights, v)

    def sparse_rows(self) -> tuple[tuple[NDArray[Any], NDArray[Any], NDArray[Any]], bool] | None:
        rows = self._block.sparse_rows()
        return None if rows is None or rows[1] else (rows[0], True)

    def plain_rows(self, any_order: bool = False) -> tuple[NDArray[Any], bool] | None:
        plain = self._block.plain_rows(any_order)
        return None if plain is None or plain[1] else (plain[0], True)

    def row_sums(self) -> tuple[RowSums, bool] | None:
        inner = self._block.row_sums()
        return None if inner is None or inner[1] else (inner[0], True)

    def part(self, rows: slice) -> Block:
        return _WithOnes(self._block.part(rows))

    def counted(self) -> Block:
        inner = self._block.counted()
        return self if inner is self._block else _WithOnes(inner)

    def pieces(self, size: int) -> Iterator[Block]:
        return map(_WithOnes, self._block.pieces(size))


class Intercept(View):
    """[X, 1]: a last column of ones."""

    _sampled = True

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.n_features, self.feature_names = source.n_features + 1, None

    def map_block(self, block: Block) -> Block:
        return self.block(block)

    @staticmethod
    def block(block: Block) -> Block:
        """One block with its ones."""
        return _WithOnes(block)
