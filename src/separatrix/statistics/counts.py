"""Counts by class: how much weight each class has, and how much of each feature or category, from one pass.

    n_k = Σ sᵢ,   N_kj = Σ sᵢ x_ij                        ClassCounts: words in documents, flags
    N_kjc = Σ sᵢ [x_ij = c]                               CategoryCounts: one table per column

Smoothing and priors are applied when they are read.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Codes, Entries, Float
from separatrix.data.source import Source
from separatrix.settings import outside
from separatrix.statistics.statistic import Statistic, number_of_classes, summed, weights_by_class

# Entries become table cells of eight bytes each: few rows at a time keep that small against the rows.
_ROWS_AT_ONCE = 8192


class ClassCounts(Statistic):
    """Weight of every class, sums of every feature in it, and a value that none is below (to refuse negative counts)."""

    def __init__(self, counts: Float, sums: Float, least: float = 0.0) -> None:
        self.counts, self.sums, self.least = counts, sums, least

    @classmethod
    def empty(cls, n_classes: int, n_features: int) -> ClassCounts:
        """The counts of no rows."""
        return cls(np.zeros(n_classes), np.zeros((n_classes, n_features)))

    @classmethod
    def of_block(cls, block: Block, n_classes: int) -> ClassCounts:
        """The counts of one block."""
        counts = weights_by_class(block.codes, block.weights, n_classes)
        return cls(counts, block.class_sums(block.codes, n_classes), block.least())

    @classmethod
    def of_columns(cls, values: Float, codes: Codes, weights: Float, n_classes: int) -> ClassCounts:
        """The counts of values (n, m) that are not negative."""
        sums = [weights_by_class(codes, weights * column, n_classes) for column in values.T]
        return cls(weights_by_class(codes, weights, n_classes), np.stack(sums, axis=1))

    @classmethod
    def of_source(cls, source: Source) -> ClassCounts:
        """One pass over a labelled source."""
        n_classes = number_of_classes(source)
        counts = source.coarse().reduce(lambda block: cls.of_block(block, n_classes), cls.merge)
        source.check_finite(counts.sums)
        source.passes += source.coarse() is not source  # the pass was made by a copy
        return counts

    @staticmethod
    def negative_column(source: Source) -> int:
        """The first column with a negative value: a second look, when there is one."""
        least = source.reduce(lambda block: block.column_minima(), np.minimum)
        return int(np.flatnonzero(least < 0)[0])

    @property
    def n_features(self) -> int:
        return int(self.sums.shape[1])

    def merge(self, other: ClassCounts) -> ClassCounts:
        self.counts += other.counts
        self.sums += other.sums
        self.least = min(self.least, other.least)
        return self

    def take(self, classes: Codes) -> ClassCounts:
        return ClassCounts(self.counts[classes], self.sums[classes], self.least)

    def regroup(self, groups: Codes, n_groups: int) -> ClassCounts:
        return ClassCounts(summed(self.counts, groups, n_groups), summed(self.sums, groups, n_groups), self.least)


class NotACategory(ValueError):
    """A value that is no category: the number of its `column`, and whether it is `finite`, so negative."""

    def __init__(self, column: int, finite: bool) -> None:
        super().__init__(column, finite)
        self.column, self.finite = column, finite


def _column_of(stored: Entries, where: NDArray[np.bool_]) -> int:
    """The column of the first entry that a mask marks."""
    at = np.flatnonzero(where.ravel())[0]
    return int(stored.columns.ravel()[at % stored.columns.size])


def _trimmed(table: Float) -> Float:
    """Without the last categories, those that no row of the table has."""
    seen = np.flatnonzero(table.any(axis=0))
    return table[:, : seen[-1] + 1] if len(seen) else table[:, :0]


class CategoryCounts(Statistic):
    """Weight of every category of every column in every class: tables[j] is (K, number of categories of column j).

    Categories are the whole numbers 0, 1, …; a column of a merged part may have more of them. Rows of weight zero count
    nothing and create no category.
    """

    def __init__(self, counts: Float, tables: list[Float]) -> None:
        self.counts, self.tables = counts, tables

    @classmethod
    def empty(cls, n_classes: int, n_features: int) -> CategoryCounts:
        """The counts of no rows."""
        return cls(np.zeros(n_classes), [np.zeros((n_classes, 0)) for _ in range(n_features)])

    @classmethod
    def of_block(cls, block: Block, n_classes: int, cut: set[int] | None = None) -> CategoryCounts:
        """The tables of one block, all from one count over its entries; columns whose fractions are dropped join `cut`."""
        stored = block.stored_entries()
        numbers = stored.values
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            raise NotACategory(_column_of(stored, ~np.isfinite(numbers)), finite=False)
        categories = numbers.astype(np.intp)
        if (numbers < 0).any():
            raise NotACategory(_column_of(stored, numbers < 0), finite=True)
        if cut is not None and (categories != numbers).any():
            cut.add(_column_of(stored, categories != numbers))
        counts = weights_by_class(block.codes, block.weights, n_classes)
        sizes = stored.column_maxima(categories) + 1
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        cells = (offsets[:-1][stored.columns] + categories) * n_classes + block.codes[stored.rows]
        order: Literal["F", "C"] = (
            "F" if cells.flags.f_contiguous else "C"
        )  # as the rows are stored, so that nothing is turned
        weights = (
            None if block.weights is None else np.broadcast_to(block.weights[stored.rows], cells.shape).ravel(order)
        )
        by_cell = weights_by_class(cells.ravel(order), weights, int(offsets[-1]) * n_classes).reshape(-1, n_classes).T
        tables = [by_cell[:, a:b].copy() for a, b in pairwise(offsets)]
        if stored.implicit_zeros:
            for j, table in enumerate(tables):
                if table.shape[1] == 0:
                    tables[j] = table = np.zeros((n_classes, 1))
                table[:, 0] += counts - table.sum(axis=1)
        # Of rows without weights every last category has one.
        return cls(counts, tables if block.weights is None else [_trimmed(table) for table in tables])

    @classmethod
    def of_source(cls, source: Source) -> CategoryCounts:
        """One pass over a labelled source; `NotACategory` where it holds something else."""
        n_classes = number_of_classes(source)
        cut: set[int] = set()
        found = source.reduce(lambda block: cls.of_block(block, n_classes, cut), cls.merge, rows=_ROWS_AT_ONCE)
        if cut:
            warnings.warn(
                f"{source.column_name(min(cut))} holds a number that is not whole; fractions are dropped, as in scikit-learn. "
                "Categories are 0, 1, 2, …: encode or bin measurements first (sklearn.preprocessing.KBinsDiscretizer).",
                stacklevel=outside(),
            )
        return found

    @property
    def n_features(self) -> int:
        return len(self.tables)

    def merge(self, other: CategoryCounts) -> CategoryCounts:
        """Add another's rows to this, in place; columns grow where the other has more categories."""
        self.counts = self.counts + other.counts
        for j, theirs in enumerate(other.tables):
            mine = self.tables[j]
            if theirs.shape[1] > mine.shape[1]:
                mine, theirs = theirs.copy(), mine
            mine[:, : theirs.shape[1]] += theirs
            self.tables[j] = mine
        return self

    def take(self, classes: Codes) -> CategoryCounts:
        """The counts of some classes, with the categories that occur in them."""
        return CategoryCounts(self.counts[classes], [_trimmed(table[classes]) for table in self.tables])

    def regroup(self, groups: Codes, n_groups: int) -> CategoryCounts:
        tables = [summed(table, groups, n_groups) for table in self.tables]
        return CategoryCounts(summed(self.counts, groups, n_groups), tables)
