"""What is known of a column after some of its rows: enough to tell what it is. Facts of two runs of rows merge.

NumberFacts   holes, extremes, whether the numbers are whole, count the rows or are all different
TextFacts     holes, and how often each text occurs
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NINES = frozenset(10.0**k - 1 for k in range(2, 10))


@dataclass(frozen=True)
class NumberFacts:
    """Facts of a run of numbers with holes.

    `n_low` counts the rows that hold the least number where that may stand for a hole (−999), and `next_low` is the least of
    the other numbers then; elsewhere they are 0 and infinite. `n_high` and `next_high` are their counterparts.
    """

    n: int
    missing: int
    low: float
    high: float
    n_low: int
    n_high: int
    next_low: float
    next_high: float
    whole: bool
    first: float
    last: float
    counting: bool
    """Whether every number is the one before plus 1."""
    distinct: bool
    """Whether all numbers are different, as far as it was looked at: in merged facts, whether they increase."""

    @classmethod
    def of(cls, x: NDArray[np.float64], *, named_identifier: bool | None = None) -> NumberFacts:
        """The facts of numbers, NaN for a hole; of a whole column say whether its name is that of an identifier."""
        observed = x[~np.isnan(x)]
        if not len(observed):
            return cls(len(x), len(x), np.inf, -np.inf, 0, 0, np.inf, -np.inf, True, np.nan, np.nan, False, False)
        low, high = float(observed.min()), float(observed.max())
        n_low = int((observed == low).sum()) if abs(low) in _NINES else 0
        n_high = int((observed == high).sum()) if abs(high) in _NINES else 0
        whole, steps = bool((np.floor(observed) == observed).all()), np.diff(x)
        distinct = bool((steps > 0).all())
        if whole and named_identifier is not None and not distinct:
            distinct = named_identifier and len(np.unique(x)) == len(x)
        return cls(
            len(x),
            len(x) - len(observed),
            low,
            high,
            n_low,
            n_high,
            float(observed.min(where=observed > low, initial=np.inf)) if n_low else np.inf,
            float(observed.max(where=observed < high, initial=-np.inf)) if n_high else -np.inf,
            whole,
            float(x[0]),
            float(x[-1]),
            whole and bool((steps == 1).all()),
            distinct,
        )

    @classmethod
    def of_run(cls, x: NDArray[np.float64]) -> NumberFacts:
        """The same of a run of a long column, by compiled loops."""
        from separatrix.kernels.table_columns import number_facts  # numba takes a while to import

        x = np.ascontiguousarray(x)
        missing, low, high, whole, increasing, counting = number_facts(x, x.view(np.int64))
        if missing == len(x) or abs(low) in _NINES or abs(high) in _NINES:
            return cls.of(x)
        ends = float(x[0]), float(x[-1])
        return cls(len(x), missing, low, high, 0, 0, np.inf, -np.inf, whole, *ends, whole and counting, increasing)

    def merge(self, after: NumberFacts) -> NumberFacts:
        """The facts of these rows and of those that come after them."""
        if not self.n or not after.n:
            return self if self.n else after
        low, high = min(self.low, after.low), max(self.high, after.high)
        # Of the run that holds the least number the next one counts, of the other its least.
        lows = [part.next_low if part.low == low else part.low for part in (self, after)]
        highs = [part.next_high if part.high == high else part.high for part in (self, after)]
        n_low = sum(part.n_low for part in (self, after) if part.low == low)
        n_high = sum(part.n_high for part in (self, after) if part.high == high)
        return NumberFacts(
            self.n + after.n,
            self.missing + after.missing,
            low,
            high,
            n_low,
            n_high,
            min(lows) if n_low else np.inf,
            max(highs) if n_high else -np.inf,
            self.whole and after.whole,
            self.first,
            after.last,
            self.counting and after.counting and after.first == self.last + 1,
            self.distinct and after.distinct and after.first > self.last,
        )


@dataclass(frozen=True)
class TextFacts:
    """How often each text occurs in a run of rows, in the order of their first rows; `first` is that of the first row."""

    n: int
    missing: int
    counts: Mapping[str, int]
    first: str | None

    @classmethod
    def of(cls, levels: list[Any], places: NDArray[np.intp], tally: NDArray[np.intp] | None = None) -> TextFacts:
        """From the different texts and the place of every row among them, −1 for a hole; `tally` counts holes and each text."""
        missing, *counts = (np.bincount(places + 1, minlength=len(levels) + 1) if tally is None else tally).tolist()
        first = levels[places[0]] if len(places) and places[0] >= 0 else None
        return cls(len(places), missing, dict(zip(levels, counts, strict=True)), first)

    @classmethod
    def of_run(cls, levels: list[Any], places: NDArray[np.intp], missing: int, counts: Mapping[str, int]) -> TextFacts:
        """The same of texts in any order, some of no row, that have been counted in the order of their first rows."""
        first = levels[places[0]] if len(places) and places[0] >= 0 else None
        return cls(len(places), missing, counts, first)

    def merge(self, after: TextFacts) -> TextFacts:
        """The facts of these rows and of those that come after them."""
        counts = dict(self.counts)
        for level, count in after.counts.items():
            counts[level] = counts.get(level, 0) + count
        return TextFacts(self.n + after.n, self.missing + after.missing, counts, self.first if self.n else after.first)
