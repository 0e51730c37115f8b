"""The rows of a table that is not held as a streamed comparison reads them: classes by number, and folds by a hash of the row.

TrainingRows   all rows but those of one fold, which have weight zero
RowsByFold     class k of fold f is called f·K + k: one statistic of these classes has those of every fold in it
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Codes
from separatrix.data.source import Source
from separatrix.data.views import View
from separatrix.tables.row_hashes import hashed_folds
from separatrix.tables.table_source import TableBlock, TableSource

ROWS_AT_HAND = {
    "perceptron": "It visits single rows again and again.",
    "linear-svm": "It needs single rows at hand.",
    "svm-rbf": "A machine with a kernel needs single rows at hand.",
}
"""Families that cannot be fitted to a stream, and why."""


def fit_shares(model: Any, counts: Codes) -> Any:
    """The model of the class shares, from the number of rows of every class."""
    return model.fit(np.zeros((len(counts), 1)), np.arange(len(counts)), sample_weight=counts)


def folds_of(block: Block, n_folds: int, seed: int) -> Codes:
    """(n,) the fold that leaves out each row of a block of a table."""
    assert isinstance(block, TableBlock), "the blocks of a table"
    return hashed_folds(block.rows, n_folds, seed)


def counts_of(block: Block) -> NDArray[np.bool_]:
    """(n,) whether a row counts: those without a label that stay in their block have weight zero."""
    return np.ones(block.n, dtype=bool) if block.weights is None else block.weights > 0.0


class _CodedRows(View):
    """A table whose classes are numbers, as the estimators of a `TableModel` have them; encoded unless read as a `table`."""

    def __init__(self, source: TableSource) -> None:
        super().__init__(source.table().labelled())
        self.classes, self.feature_names = np.arange(len(source.encoding.schema.classes)), None
        self._as_table = False

    @property
    def encoding(self) -> Any:
        return self.source.encoding if self._as_table else None

    def table(self) -> Source:
        view = copy(self)
        view._as_table = True
        return view

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        return self

    @abstractmethod
    def map_block(self, block: Block) -> Block: ...

    def count(self) -> Codes:
        """(n_classes,) rows of every class: one pass."""
        width = len(self.classes) if self.classes is not None else 0
        return self.reduce(lambda block: np.bincount(block.codes[counts_of(block)], minlength=width), np.add)


class TrainingRows(_CodedRows):
    """The rows that are learnt from when a fold is left out; without a fold, all."""

    def __init__(self, source: TableSource, left_out: int | None = None, n_folds: int = 1, seed: int = 0) -> None:
        super().__init__(source)
        self._left_out, self._n_folds, self._seed = left_out, n_folds, seed

    def map_block(self, block: Block) -> Block:
        if self._left_out is None:
            return block
        view = copy(block)
        inside = (folds_of(block, self._n_folds, self._seed) != self._left_out).astype(np.float64)
        view.weights = inside if block.weights is None else inside * block.weights
        return view


class RowsByFold(_CodedRows):
    """All rows, under a class of its own for every fold and class."""

    def __init__(self, source: TableSource, n_folds: int, seed: int) -> None:
        super().__init__(source)
        assert self.classes is not None
        self._n_classes, self._n_folds, self._seed = len(self.classes), n_folds, seed
        self.classes = np.arange(n_folds * self._n_classes)

    def map_block(self, block: Block) -> Block:
        view = copy(block)
        view.y = folds_of(block, self._n_folds, self._seed) * self._n_classes + block.codes
        return view

    def without(self, statistic: Any, fold: int | None) -> Any:
        """The statistic of the classes of the table, from one of these rows, without a fold."""
        assert self.classes is not None
        kept = self.classes if fold is None else self.classes[self.classes // self._n_classes != fold]
        return statistic.take(kept).regroup(kept % self._n_classes, self._n_classes)
