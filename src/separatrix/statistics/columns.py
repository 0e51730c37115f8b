"""One statistic a column, for tables whose columns have different families and holes.

    gaussian      n, mean and Σ(x−m)² of the observed values of each class
    poisson       n and Σx
    bernoulli     n and the number of ones
    categorical   a table of counts by value
    multinomial   Σx of each column of a group

A missing value is not there: it adds to nothing, so each column has its own n. All are monoids: `merge` adds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float


def _by_class(codes: Codes, values: Float, n_classes: int) -> Float:
    return np.bincount(codes, values, minlength=n_classes).astype(np.float64, copy=False)


@dataclass
class Moments:
    """Weight, mean and centred square of the observed values of a column in every class."""

    n: Float
    mean: Float
    square: Float

    @classmethod
    def of(cls, values: Float, codes: Codes, weights: Float, n_classes: int) -> Moments:
        """From the observed values."""
        n = _by_class(codes, weights, n_classes)
        size = np.where(n > 0, n, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):  # the model refuses squares that overflow, by name
            mean = _by_class(codes, weights * values, n_classes) / size
            mean = mean + _by_class(codes, weights * (values - mean[codes]), n_classes) / size
            return cls(n, mean, _by_class(codes, weights * np.square(values - mean[codes]), n_classes))

    def merge(self, other: Moments) -> None:
        """Add another part (Chan's formula)."""
        n = self.n + other.n
        share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)
        gap = other.mean - self.mean
        self.square = self.square + other.square + self.n * share * np.square(gap)
        self.mean, self.n = self.mean + share * gap, n

    def reindexed(self, positions: NDArray[np.intp], n_classes: int) -> Moments:
        """Among more classes."""
        return Moments(*(_spread(part, positions, n_classes) for part in (self.n, self.mean, self.square)))

    def overall(self) -> tuple[float, float]:
        """Mean and variance of the column over all classes."""
        total = float(self.n.sum())
        mean = float(self.n @ self.mean) / total
        with np.errstate(over="ignore"):  # values of extreme size: an infinite variance, which is refused by name
            return mean, float(self.square.sum() + self.n @ np.square(self.mean - mean)) / total


@dataclass
class Sums:
    """Weight of the rows and sums of one or several columns in every class: Poisson, Bernoulli, multinomial."""

    n: Float
    sums: Float

    @classmethod
    def of(cls, values: Float, codes: Codes, weights: Float, n_classes: int) -> Sums:
        """From values (n, m); missing entries are zeros with no effect on the sums."""
        columns = [_by_class(codes, weights * column, n_classes) for column in values.T]
        return cls(_by_class(codes, weights, n_classes), np.stack(columns, axis=1))

    def merge(self, other: Sums) -> None:
        """Add another part."""
        self.n, self.sums = self.n + other.n, self.sums + other.sums

    def reindexed(self, positions: NDArray[np.intp], n_classes: int) -> Sums:
        """Among more classes."""
        return Sums(_spread(self.n, positions, n_classes), _spread(self.sums, positions, n_classes))


@dataclass
class Table:
    """Weight of every value of a column in every class; values of any kind, in the order they first came."""

    n: Float
    counts: dict[Any, Float] = field(default_factory=dict)

    @classmethod
    def of(cls, values: NDArray[Any], codes: Codes, weights: Float, n_classes: int) -> Table:
        """From the observed values; values that only rows of weight zero have are not there."""
        table = cls(_by_class(codes, weights, n_classes))
        kept = weights > 0
        distinct, inverse = np.unique(values[kept], return_inverse=True)
        flat = np.bincount(
            inverse * n_classes + codes[kept], weights[kept], minlength=len(distinct) * n_classes
        ).reshape(-1, n_classes)
        table.counts = {value: row.astype(np.float64) for value, row in zip(distinct.tolist(), flat, strict=True)}
        return table

    def merge(self, other: Table) -> None:
        """Add another part; new values are added to the table."""
        self.n = self.n + other.n
        for value, row in other.counts.items():
            self.counts[value] = self.counts[value] + row if value in self.counts else row

    def reindexed(self, positions: NDArray[np.intp], n_classes: int) -> Table:
        """Among more classes."""
        counts = {value: _spread(row, positions, n_classes) for value, row in self.counts.items()}
        return Table(_spread(self.n, positions, n_classes), counts)


def _spread(part: Float, positions: NDArray[np.intp], n_classes: int) -> Float:
    whole = np.zeros((n_classes, *part.shape[1:]))
    whole[positions] = part
    return whole


@dataclass
class MixedCounts:
    """Weight of every class, and one statistic a column or group of columns."""

    counts: Float
    parts: dict[Any, Moments | Sums | Table]

    def merge(self, other: MixedCounts) -> MixedCounts:
        """Add another's rows to this, in place."""
        self.counts = self.counts + other.counts
        for name, part in self.parts.items():
            part.merge(other.parts[name])  # type: ignore[arg-type]  # the same name has the same kind
        return self

    def copy(self) -> MixedCounts:
        """Counts that can be merged into without changing these."""
        return self.reindexed(np.arange(len(self.counts)), len(self.counts))

    def reindexed(self, positions: NDArray[np.intp], n_classes: int) -> MixedCounts:
        """The same counts among more classes: class k becomes class positions[k]."""
        parts = {name: part.reindexed(positions, n_classes) for name, part in self.parts.items()}
        return MixedCounts(_spread(self.counts, positions, n_classes), parts)
