"""Scores of a source that brings its own targets: one pass, in which rows are predicted where they are and only sums remain.

classifiers     Σ s·1[ŷ = y] / Σ s
regressors      1 − Σ s(y − ŷ)² / Σ s(y − ȳ)²      ȳ and the sum of squares merged by Chan's formula, mean over targets
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Float
from separatrix.data.source import Source

Predict = Callable[[Any], NDArray[Any]]


class ColumnFacts(NamedTuple):
    """What a block does not know of its source, which stays where it is while the work travels to the rows."""

    n_features: int
    feature_names: NDArray[Any] | None
    dtype: np.dtype[Any]
    device: str | None

    @classmethod
    def of(cls, source: Source) -> ColumnFacts:
        return cls(source.n_features, source.feature_names, source.dtype, source.device)


class RowsOfBlock(Source):
    """One block of a source as a source of its own, for methods that take one."""

    def __init__(self, block: Block, columns: ColumnFacts) -> None:
        self._block, self.n_rows = copy(block), block.n
        self._block.start = 0
        self.n_features, self.feature_names, self.dtype, self.device = columns

    def blocks(self) -> Iterator[Block]:
        yield self._block

    def table(self) -> Source:
        return self

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        return self

    def valued(self) -> Self:
        return self

    @property
    def target_ndim(self) -> int:
        return 1


def share_of_right(predict: Predict, rows: Source) -> float:
    """The weighted share of the rows of a labelled source whose class is predicted."""
    classes, columns = rows.classes, ColumnFacts.of(rows)
    assert classes is not None, "label the rows first"

    def of_block(block: Block) -> Float:
        right = classes[block.codes] == predict(RowsOfBlock(block, columns))
        weights = np.ones(block.n) if block.weights is None else block.weights
        return np.array([weights[right].sum(), weights.sum()])

    hits, total = rows.reduce(of_block, np.add)
    return float(hits / total)


class _Errors(NamedTuple):
    weight: float
    mean: Float
    squares: Float
    errors: Float

    def merge(self, other: _Errors) -> _Errors:
        weight = self.weight + other.weight
        share, gap = other.weight / weight if weight else 0.0, other.mean - self.mean
        squares = self.squares + other.squares + self.weight * share * np.square(gap)
        return _Errors(weight, self.mean + share * gap, squares, self.errors + other.errors)


def share_of_variance(predict: Predict, rows: Source) -> float:
    """R² over the rows of a source with values, the mean over targets; 1 or 0 where a target does not vary, as scikit-learn."""
    columns = ColumnFacts.of(rows)

    def of_block(block: Block) -> _Errors:
        y = np.asarray(block.y, dtype=np.float64).reshape(block.n, -1)
        weights = np.ones(block.n) if block.weights is None else block.weights
        total = float(weights.sum())
        mean = weights @ y / (total or 1.0)
        gaps = y - np.asarray(predict(RowsOfBlock(block, columns)), dtype=np.float64).reshape(y.shape)
        return _Errors(total, mean, weights @ np.square(y - mean), weights @ np.square(gaps))

    found = rows.reduce(of_block, _Errors.merge)
    flat = found.squares == 0.0
    left = np.where(flat, (found.errors > 0.0).astype(np.float64), found.errors / np.where(flat, 1.0, found.squares))
    return float(np.mean(1.0 - left))
