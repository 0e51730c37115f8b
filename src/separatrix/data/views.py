"""Lazy views: the same rows, seen through an affine map or a transformer, a block at a time.

    Intercept       [X, 1]
    Standardised    (X − 1cᵀ) D⁻¹                 products through those of X: sparse rows stay sparse
    Mapped          φ(X)                          expanded block by block, never stored
    Selected        X, some of its columns
    Regrouped       X, with other classes         made of the classes of y, mostly two

A view is a source; models and objectives do not know that they look through one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.block import Block, Centred, Codes, Entries, Float
from separatrix.data.dense import DenseBlock
from separatrix.data.frames import FrameBlock
from separatrix.data.source import COPIED_BYTES, Source, cut_finer, rows_per_block
from separatrix.data.sparse import SparseBlock


class View(Source):
    """A source made of another's blocks."""

    def __init__(self, source: Source, n_features: int, feature_names: NDArray[Any] | None = None) -> None:
        self.source = source
        self.n_rows, self.n_features = source.n_rows, n_features
        self.feature_names, self.classes, self.dtype = feature_names, source.classes, source.dtype
        self._known = source._known

    @abstractmethod
    def see(self, block: Block) -> Block:
        """The view of one block."""

    def blocks(self) -> Iterator[Block]:
        return (self._see(piece) for piece in self._pieces())

    def _pieces(self) -> Iterator[Block]:
        return self.source._pieces()

    def _see(self, piece: Block) -> Block:
        # In the worker: expanding a block is part of the parallel work.
        return self.see(self.source._see(piece))

    def _count_pass(self) -> None:
        super()._count_pass()
        self.source._count_pass()

    @property
    def target_ndim(self) -> int:
        return self.source.target_ndim

    def _over(self, source: Source) -> Self:
        view = copy(self)
        view.source, view.classes, view.n_rows = source, source.classes, source.n_rows
        view._known = source._known
        return view

    def coarse(self) -> Self:
        return self._over(self.source.coarse())

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        return self._over(self.source.labelled(classes))

    def valued(self) -> Self:
        return self._over(self.source.valued())

    def explain_non_finite(self) -> str:
        return self.source.explain_non_finite()

    def explain_range(self) -> str:
        return self.source.explain_range()

    def _sampled(self, rows: int) -> tuple[Source, Codes] | None:
        """A sample seen through this view, for views that are the same map on any rows."""
        drawn = self.source.sample(rows)
        return None if drawn is None else (self._over(drawn[0]), drawn[1])


class Regrouped(View):
    """The rows of a labelled source under other classes: `groups` (K,) sends every class to one of them or, for −1, nowhere.

    Rows of classes that are left out have weight zero.
    """

    def __init__(self, source: Source, groups: Codes) -> None:
        super().__init__(source, source.n_features, source.feature_names)
        self._groups, self.classes, self._known = groups, np.arange(2), None

    @classmethod
    def one_against_rest(cls, source: Source, k: int) -> Self:
        """Class k against all others, by its name."""
        assert source.classes is not None, "label the source first"
        view = cls(source, (np.arange(len(source.classes)) == k).astype(np.intp))
        view.classes = np.array(["the rest", str(source.classes[k])])
        return view

    @classmethod
    def only(cls, source: Source, classes: Codes) -> Self:
        """Some of the classes; rows of the others have weight zero."""
        assert source.classes is not None, "label the source first"
        groups = np.full(len(source.classes), -1, dtype=np.intp)
        groups[classes] = np.arange(len(classes))
        view = cls(source, groups)
        view.classes, view._known = source.classes[classes], source.known_classes
        return view

    def see(self, block: Block) -> Block:
        seen, groups = copy(block), self._groups[block.codes]
        seen.y = np.maximum(groups, 0)
        if (self._groups < 0).any():
            kept = (groups >= 0).astype(np.float64)
            seen.weights = kept if block.weights is None else block.weights * kept
        return seen

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        return self

    def _over(self, source: Source) -> Self:
        view = super()._over(source)
        view.classes, view._known = self.classes, self._known
        return view

    def sample(self, rows: int) -> tuple[Source, Codes] | None:
        return self._sampled(rows)


class _Affine(Block):
    """(X − 1cᵀ) D⁻¹, with a column of ones behind it when asked; the rows of X are left as they are."""

    def __init__(self, block: Block, centre: Float, scale: Float, ones: bool) -> None:
        self._block, self._centre, self._scale, self._ones = block, centre, scale, ones
        self.y, self.weights, self.start = block.y, block.weights, block.start

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
            result: Float = (np.ones(self.n) if weights is None else weights) @ squares
            return result
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

    def __init__(self, source: Source, centre: Float | None = None, scale: Float | None = None) -> None:
        super().__init__(source, source.n_features, source.feature_names)
        self.centre = np.zeros(self.n_features) if centre is None else centre
        self.scale = np.ones(self.n_features) if scale is None else scale

    def sample(self, rows: int) -> tuple[Source, Codes] | None:
        return self._sampled(rows)

    def see(self, block: Block) -> Block:
        return self.block(block, self.centre, self.scale)

    @staticmethod
    def block(block: Block, centre: Float, scale: Float | float = 1.0) -> Block:
        """One block, standardised."""
        if isinstance(block, DenseBlock):  # centred entry by entry: Xv − cv would cancel far from the origin
            rows = (block.X - centre) / scale
            return DenseBlock(rows, block.y, block.weights, block.start)
        if isinstance(block, SparseBlock) and block.X.nnz > 0.5 * block.n * block.shape[1]:
            return Standardised.block(DenseBlock(block.dense(), block.y, block.weights, block.start), centre, scale)
        return _Affine(block, centre, np.broadcast_to(np.asarray(scale, dtype=np.float64), centre.shape), ones=False)


class _WithOnes(_Affine):
    """[X, 1], without arithmetic on X."""

    def __init__(self, block: Block) -> None:
        d = block.shape[1]
        super().__init__(block, np.zeros(d), np.ones(d), ones=True)

    def matvec(self, v: Float) -> Float:
        return self._block.matvec(v[:-1]) + v[-1]

    def rmatvec(self, r: Float) -> Float:
        return np.concatenate([self._block.rmatvec(r), (np.ones(len(r)) @ r)[None]])

    def gram(self, weights: Float | None = None) -> Float:
        s = np.ones(self.n) if weights is None else weights
        d = self._block.shape[1]
        whole = np.empty((d + 1, d + 1))
        whole[:d, :d] = self._block.gram(weights)
        whole[d, :d] = whole[:d, d] = self._block.rmatvec(s)
        whole[d, d] = s.sum()
        return whole

    def gram_of(self, which: Codes, weights: Float) -> Float:
        d = self._block.shape[1]
        inner = which[which < d]
        core = self._block.gram_of(inner, weights)
        if len(inner) == len(which):
            return core
        border = self._block.rmatvec(weights)[inner]
        return np.block([[core, border[:, None]], [border[None, :], np.full((1, 1), weights.sum())]])

    def plain_rows(self) -> tuple[NDArray[Any], bool] | None:
        plain = self._block.plain_rows()
        return None if plain is None or plain[1] else (plain[0], True)

    def part(self, rows: slice) -> Block:
        return _WithOnes(self._block.part(rows))

    def counted(self) -> Block:
        return _WithOnes(self._block.counted())

    def pieces(self, size: int) -> Iterator[Block]:
        return map(_WithOnes, self._block.pieces(size))


class Intercept(View):
    """[X, 1]: a last column of ones."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, source.n_features + 1)

    def see(self, block: Block) -> Block:
        return self.block(block)

    @staticmethod
    def block(block: Block) -> Block:
        """One block with its ones."""
        return _WithOnes(block)

    def sample(self, rows: int) -> tuple[Source, Codes] | None:
        return self._sampled(rows)


class Selected(View):
    """Some of the columns."""

    def __init__(self, source: Source, which: Codes) -> None:
        names = None if source.feature_names is None else source.feature_names[which]
        super().__init__(source, len(which), names)
        self._which = which

    def see(self, block: Block) -> Block:
        return block.columns(self._which)

    def sample(self, rows: int) -> tuple[Source, Codes] | None:
        return self._sampled(rows)


class Reweighted(View):
    """Weights multiplied by a factor of the row's class."""

    def __init__(self, source: Source, class_weight: Float) -> None:
        super().__init__(source, source.n_features, source.feature_names)
        self._class_weight = class_weight

    def see(self, block: Block) -> Block:
        seen = copy(block)
        factor = self._class_weight[block.codes]
        seen.weights = factor if block.weights is None else block.weights * factor
        return seen

    def sample(self, rows: int) -> tuple[Source, Codes] | None:
        return self._sampled(rows)


class Mapped(View):
    """φ(X) for a fitted transformer's ``transform``, expanded a few rows at a time."""

    def __init__(
        self,
        source: Source,
        transform: Callable[[Any], Any],
        n_features: int,
        feature_names: NDArray[Any] | None = None,
    ) -> None:
        super().__init__(source, n_features, feature_names)
        self._transform = transform

    def _pieces(self) -> Iterator[Block]:
        # A block that was cut for the narrow rows is cut again for the wide ones.
        return cut_finer(super()._pieces(), rows_per_block(self.n_features, 256, COPIED_BYTES))

    def see(self, block: Block) -> Block:
        rows = (
            block.native
            if isinstance(block, FrameBlock)
            else block.X
            if isinstance(block, SparseBlock)
            else block.dense()
        )
        mapped = self._transform(rows)
        if sp.issparse(mapped):
            return SparseBlock(sp.csr_array(mapped), block.y, block.weights, block.start)
        return DenseBlock(np.asarray(mapped), block.y, block.weights, block.start)


class Coded(View):
    """Class codes read as rows of a table of real targets, and weights multiplied by a factor of the class."""

    def __init__(self, source: Source, table: Float, class_weight: Float | None = None) -> None:
        super().__init__(source, source.n_features, source.feature_names)
        self._table, self._class_weight = table, class_weight

    def see(self, block: Block) -> Block:
        seen = copy(block)
        seen.y = self._table[block.codes]
        if self._class_weight is not None:
            factor = self._class_weight[block.codes]
            seen.weights = factor if block.weights is None else block.weights * factor
        return seen


class Signed(View):
    """Targets of zeros and ones read as −1 and 1."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, source.n_features, source.feature_names)

    def see(self, block: Block) -> Block:
        seen = copy(block)
        assert block.y is not None
        seen.y = 2.0 * block.y - 1.0
        return seen


class Binarised(View):
    """1 where a value exceeds the threshold, else 0; sparse rows stay sparse (the threshold is ≥ 0)."""

    def __init__(self, source: Source, threshold: float) -> None:
        super().__init__(source, source.n_features, source.feature_names)
        self._threshold = threshold

    def see(self, block: Block) -> Block:
        return self.block(block, self._threshold)

    @staticmethod
    def block(block: Block, threshold: float) -> Block:
        """One block, binarised. NaN and infinity become NaN, to be reported."""
        if isinstance(block, SparseBlock):
            flags = np.where(np.isfinite(block.X.data), block.X.data > threshold, np.nan)
            X: Any = sp.csr_array((flags.astype(np.float64), block.X.indices, block.X.indptr), shape=block.X.shape)
            return SparseBlock(X, block.y, block.weights, block.start)
        rows = block.X if isinstance(block, DenseBlock) else block.dense()
        above = (rows > threshold).astype(np.float64)
        if rows.dtype.kind == "f":
            above[~np.isfinite(rows)] = np.nan
        return DenseBlock(above, block.y, block.weights, block.start)
