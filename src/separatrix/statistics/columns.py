"""One statistic per column, for tables whose columns have different families and missing values.

    gaussian      n, mean and Σ(x−m)² of the observed values of each class      ColumnMoments
    categorical   a table of counts by value                                    ValueCounts
    others        n and Σx of a column, or of each column of a group            ClassCounts

A missing value adds to nothing, so each column has its own n.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float
from separatrix.statistics.counts import ClassCounts
from separatrix.statistics.statistic import Statistic, summed, turns, weights_by_class


@dataclass
class ColumnMoments(Statistic):
    """Weight, mean and centred square of the observed values of a column in every class."""

    counts: Float
    mean: Float
    square: Float

    @classmethod
    def empty(cls, n_classes: int) -> ColumnMoments:
        """The moments of no rows."""
        return cls(*np.zeros((3, n_classes)))

    @classmethod
    def of_columns(cls, values: Float, codes: Codes, weights: Float, n_classes: int) -> ColumnMoments:
        """From the observed values (n,)."""
        n = weights_by_class(codes, weights, n_classes)
        size = np.where(n > 0, n, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):  # the model refuses squares that overflow, by name
            mean = weights_by_class(codes, weights * values, n_classes) / size
            mean = mean + weights_by_class(codes, weights * (values - mean[codes]), n_classes) / size
            return cls(n, mean, weights_by_class(codes, weights * np.square(values - mean[codes]), n_classes))

    @classmethod
    def of_run(cls, values: Float, codes: Codes, weights: Float, n_classes: int) -> ColumnMoments:
        """The same of many values, NaN where nothing is known, by compiled loops."""
        from separatrix.kernels.table_columns import class_moments  # numba takes a while to import

        found = cls.empty(n_classes)
        class_moments(np.ascontiguousarray(values), codes, weights, found.counts, found.mean, found.square)
        return found

    @property
    def n_features(self) -> int:
        return 1

    def merge(self, other: ColumnMoments) -> ColumnMoments:
        """Add another's rows to this, in place (Chan's formula)."""
        n = self.counts + other.counts
        share = np.divide(other.counts, n, out=np.zeros_like(n), where=n > 0)
        gap = other.mean - self.mean
        self.square = self.square + other.square + self.counts * share * np.square(gap)
        self.mean, self.counts = self.mean + share * gap, n
        return self

    def take(self, classes: Codes) -> ColumnMoments:
        return ColumnMoments(self.counts[classes], self.mean[classes], self.square[classes])

    def regroup(self, groups: Codes, n_groups: int) -> ColumnMoments:
        placed = [
            ColumnMoments(*(summed(part[classes], places, n_groups) for part in (self.counts, self.mean, self.square)))
            for classes, places in turns(groups)
        ]
        return reduce(ColumnMoments.merge, placed)

    def overall(self) -> tuple[float, float]:
        """Mean and variance of the column over all classes."""
        mean = float(self.counts @ self.mean) / self.total
        with np.errstate(over="ignore"):  # values of extreme size: an infinite variance, which is refused by name
            return mean, float(self.square.sum() + self.counts @ np.square(self.mean - mean)) / self.total


@dataclass
class ValueCounts(Statistic):
    """Weight of every value of a column in every class; values of any kind, in the order they first came."""

    counts: Float
    by_value: dict[Any, Float] = field(default_factory=dict)

    @classmethod
    def empty(cls, n_classes: int) -> ValueCounts:
        """The counts of no rows."""
        return cls(np.zeros(n_classes))

    @classmethod
    def of_columns(cls, values: NDArray[Any], codes: Codes, weights: Float, n_classes: int) -> ValueCounts:
        """From the observed values (n,)."""
        distinct, places = np.unique(values, return_inverse=True)
        return cls.of_levels(distinct.tolist(), places, codes, weights, n_classes)

    @classmethod
    def of_levels(cls, levels: list[Any], places: Codes, codes: Codes, weights: Float, n_classes: int) -> ValueCounts:
        """From the observed values, as levels and places (n,) among them; what only rows of weight zero have is not there."""
        cells = weights_by_class(places * n_classes + codes, weights, len(levels) * n_classes).reshape(-1, n_classes)
        by_value = {level: row for level, row in zip(levels, cells, strict=True) if row.any()}
        return cls(weights_by_class(codes, weights, n_classes), by_value)

    @classmethod
    def of_places(cls, levels: list[Any], places: Codes, codes: Codes, weights: Float, n_classes: int) -> ValueCounts:
        """The same of all rows, −1 the place of those without a value; nor has one what stands at the level None."""
        at = (places + 1) * n_classes + codes
        _, *cells = weights_by_class(at, weights, (len(levels) + 1) * n_classes).reshape(-1, n_classes)
        by_value = {level: row for level, row in zip(levels, cells, strict=True) if row.any() and level is not None}
        return cls(sum(by_value.values(), np.zeros(n_classes)), by_value)

    @property
    def n_features(self) -> int:
        return 1

    def merge(self, other: ValueCounts) -> ValueCounts:
        """Add another's rows to this, in place; new values are added to the table."""
        self.counts = self.counts + other.counts
        for value, row in other.by_value.items():
            self.by_value[value] = self.by_value[value] + row if value in self.by_value else row
        return self

    def take(self, classes: Codes) -> ValueCounts:
        """The counts of some classes, with the values that occur in them."""
        taken = {value: row[classes] for value, row in self.by_value.items()}
        return ValueCounts(self.counts[classes], {value: row for value, row in taken.items() if row.any()})

    def regroup(self, groups: Codes, n_groups: int) -> ValueCounts:
        by_value = {value: summed(row, groups, n_groups) for value, row in self.by_value.items()}
        return ValueCounts(summed(self.counts, groups, n_groups), by_value)


@dataclass
class MixedCounts(Statistic):
    """Weight of every class, and one statistic per column or group of columns, by the tuple of their names."""

    counts: Float
    parts: dict[tuple[Any, ...], ColumnMoments | ClassCounts | ValueCounts]

    @property
    def n_features(self) -> int:
        return sum(len(names) for names in self.parts)

    def merge(self, other: MixedCounts) -> MixedCounts:
        self.counts = self.counts + other.counts
        for names, part in self.parts.items():
            part.merge(other.parts[names])  # type: ignore[arg-type]  # the same columns have the same kind
        return self

    def take(self, classes: Codes) -> MixedCounts:
        parts = {names: part.take(classes) for names, part in self.parts.items()}
        return MixedCounts(self.counts[classes], parts)

    def regroup(self, groups: Codes, n_groups: int) -> MixedCounts:
        parts = {names: part.regroup(groups, n_groups) for names, part in self.parts.items()}
        return MixedCounts(summed(self.counts, groups, n_groups), parts)
