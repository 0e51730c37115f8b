"""Lazy views: the same rows under another map, targets or weights, block by block.

    Mapped          φ(X)                          expanded block by block, never stored
    Selected        X, some of its columns
    Regrouped       X, with other classes         made of the classes of y, mostly two

A view is a source like any other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from copy import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.block import Block, Codes, Float
from separatrix.data.dense import WORTH_COMPILING, DenseBlock
from separatrix.data.frames import FrameBlock
from separatrix.data.source import COPIED_BYTES, Engine, Source, cut_finer, rows_per_block
from separatrix.data.sparse import SparseBlock


class View(Source):
    """A source made of another's blocks."""

    _sampled = False
    """Whether solvers may start on a sample of the view, or have all of it at once: it is no larger than the rows."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.n_rows, self.n_features, self.feature_names = source.n_rows, source.n_features, source.feature_names
        self.classes, self.all_classes, self.dtype = source.classes, source.all_classes, source.dtype
        self.shared_out, self.room, self.device = source.shared_out, source.room, source.device
        self.place, self.from_spark = source.place, source.from_spark

    @property
    def engine(self) -> Engine | None:
        return self.source.engine

    @abstractmethod
    def map_block(self, block: Block) -> Block:
        """The view of one block."""

    def blocks(self) -> Iterator[Block]:
        return (self._block_of(piece) for piece in self._pieces())

    def _pieces(self) -> Iterator[Block]:
        return self.source._pieces()

    def _block_of(self, piece: Block) -> Block:
        # In the worker: expanding a block is part of the parallel work.
        return self.map_block(self.source._block_of(piece))

    def count_pass(self) -> None:
        super().count_pass()
        self.source.count_pass()

    def lay_in_rows(self) -> None:
        self.source.lay_in_rows()

    def one_block(self, any_order: bool = False) -> Block | None:
        block = self.source.one_block(any_order) if self._sampled else None
        return None if block is None else self.map_block(block)

    @property
    def target_ndim(self) -> int:
        return self.source.target_ndim

    def _over(self, source: Source) -> Self:
        view = copy(self)
        view.source, view.classes, view.n_rows = source, source.classes, source.n_rows
        view.all_classes = source.all_classes
        return view

    def coarse(self, entries: int | None = None) -> Self:
        return self._over(self.source.coarse(entries))

    def within_memory(self) -> AbstractContextManager[None]:
        return self.source.within_memory()

    def precise(self) -> Source:
        source = self.source.precise()
        return self if source is self.source else self._over(source)

    def uncopied(self) -> Source:
        source = self.source.uncopied()
        return self if source is self.source else self._over(source)

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        return self._over(self.source.labelled(classes))

    def valued(self) -> Self:
        return self._over(self.source.valued())

    def explain_non_finite(self) -> str:
        return self.source.explain_non_finite()

    def explain_range(self) -> str:
        return self.source.explain_range()

    def sample(self, rows: int) -> tuple[Source, Codes] | None:
        drawn = self.source.sample(rows) if self._sampled else None
        return None if drawn is None else (self._over(drawn[0]), drawn[1])


def _reweighted(block: Block, factor: Float | None) -> Block:
    """A copy that shares the rows, its weights times a factor of each."""
    view = copy(block)
    if factor is not None:
        view.weights = factor if block.weights is None else block.weights * factor
    return view


class Regrouped(View):
    """The rows of a labelled source under other classes: `groups` (K,) sends every class to one of them or, for −1, nowhere.

    Rows of classes that are left out have weight zero.
    """

    _sampled = True

    def __init__(self, source: Source, groups: Codes) -> None:
        super().__init__(source)
        self._groups, self.classes, self.all_classes = groups, np.arange(2), None

    @property
    def encoding(self) -> Any:
        return self.source.encoding

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
        view.classes, view.all_classes = source.classes[classes], source.known_classes
        return view

    def map_block(self, block: Block) -> Block:
        if (there := block.regrouped(self._groups)) is not None:
            return there
        groups = self._groups[block.codes]
        view = _reweighted(block, (groups >= 0).astype(np.float64) if (self._groups < 0).any() else None)
        view.y = np.maximum(groups, 0)
        return view

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        return self

    def _over(self, source: Source) -> Self:
        view = super()._over(source)
        view.classes, view.all_classes = self.classes, self.all_classes
        return view


class Selected(View):
    """Some of the columns."""

    _sampled = True

    def __init__(self, source: Source, which: Codes) -> None:
        super().__init__(source)
        self._which, self.n_features = which, len(which)
        self.feature_names = None if source.feature_names is None else source.feature_names[which]

    def map_block(self, block: Block) -> Block:
        return block.columns(self._which)


class Reweighted(View):
    """Weights multiplied by a factor of the row's class."""

    _sampled = True

    def __init__(self, source: Source, class_weight: Float) -> None:
        super().__init__(source)
        self._class_weight = class_weight

    def map_block(self, block: Block) -> Block:
        there = block.regrouped(None, self._class_weight)
        return _reweighted(block, self._class_weight[block.codes]) if there is None else there


def native_rows(block: Block) -> Any:
    """The rows as they were given, a frame or a sparse matrix where they were one: what transformers take."""
    if isinstance(block, FrameBlock):
        return block.native
    return block.X if isinstance(block, SparseBlock) else block.dense()


class Mapped(View):
    """φ(X) for a fitted transformer's ``transform``, expanded a few rows at a time."""

    def __init__(self, source: Source, transform: Callable[[Any], Any], n_features: int) -> None:
        super().__init__(source)
        self._transform, self.n_features, self.feature_names = transform, n_features, None

    def lay_in_rows(self) -> None:
        """Nothing: the transformer is given the rows as they came."""

    def _pieces(self) -> Iterator[Block]:
        # A block that was cut for the narrow rows is cut again for the wide ones.
        return cut_finer(super()._pieces(), rows_per_block(self.n_features, 256, COPIED_BYTES))

    def map_block(self, block: Block) -> Block:
        mapped = self._transform(native_rows(block))
        if sp.issparse(mapped):
            return SparseBlock(sp.csr_array(mapped), block.y, block.weights, block.start)
        return DenseBlock(np.asarray(mapped), block.y, block.weights, block.start)


class Coded(View):
    """Class codes read as rows of a table of real targets, and weights multiplied by a factor of the class."""

    def __init__(self, source: Source, table: Float, class_weight: Float | None = None) -> None:
        super().__init__(source)
        self._table, self._class_weight, self.entries = table, class_weight, source.entries

    def map_block(self, block: Block) -> Block:
        view = _reweighted(block, None if self._class_weight is None else self._class_weight[block.codes])
        view.y = self._table[block.codes]
        return view

    def array(self) -> NDArray[Any] | None:
        return self.source.array()


class Signed(View):
    """Targets of zeros and ones read as −1 and 1."""

    def map_block(self, block: Block) -> Block:
        assert block.y is not None
        view = copy(block)
        view.y = 2.0 * block.y - 1.0
        return view


class Binarised(View):
    """1 where a value exceeds the threshold, else 0; sparse rows stay sparse (the threshold is ≥ 0)."""

    def __init__(self, source: Source, threshold: float) -> None:
        super().__init__(source)
        self._threshold = threshold

    def map_block(self, block: Block) -> Block:
        return self.block(block, self._threshold)

    @staticmethod
    def block(block: Block, threshold: float) -> Block:
        """One block, binarised. NaN and infinity become NaN, to be reported."""
        if (there := block.binarised(threshold)) is not None:
            return there
        if isinstance(block, SparseBlock):
            flags = _above(block.X.data, threshold)
            X: Any = sp.csr_array((flags, block.X.indices, block.X.indptr), shape=block.X.shape)
            return SparseBlock(X, block.y, block.weights, block.start)
        above = _above(block.X if isinstance(block, DenseBlock) else block.dense(), threshold)
        return DenseBlock(above, block.y, block.weights, block.start, compiled=above.size >= WORTH_COMPILING)


def _above(values: NDArray[Any], threshold: float) -> Float:
    """1 where a value exceeds the threshold, else 0; NaN where it is not finite."""
    above = (values > threshold).astype(np.float64)
    if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
        above[~finite] = np.nan
    return above


def entries_below(source: Source) -> int | None:
    """Stored entries of the sparse matrix that a source, or a view of one, reads; ``None`` where there is none in memory."""
    while isinstance(source, View):
        source = source.source
    return source.entries
