"""What the encoder needs to know of a table, as sums over its rows: one streaming pass, any split of the rows.

    numbers     n, mean m, spread √Σ(x−m)², extremes and quantiles of the observed values
    categories  how often each occurs
    holes       Σ h(row) over the rows without a value, h a fixed hash: two columns with holes in the same rows agree in it
    values      Σ h(row) · bits(value): two columns with the same values agree in it

A feature's mean and variance follow from these: with u holes filled by f, n observed values and N = n + u,

    μ = (n m + u f)/N,    Nσ² = spread² + n(m−μ)² + u(f−μ)²           an indicator that is 1 in c rows: μ = c/N, σ² = μ(1−μ)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from math import frexp, hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from separatrix.tables.facts import NumberFacts
from separatrix.tables.quantiles import Marks, QuantileSketch, Reached
from separatrix.tables.rows import CodedText, TableRows


@dataclass
class NumberSums:
    """Sums of a column of numbers or flags."""

    observed: int = 0
    missing: int = 0
    holes: int = 0
    mean: float = 0.0
    spread: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    quantiles: QuantileSketch = field(default_factory=QuantileSketch)
    values: int = 0

    @classmethod
    def of(cls, values: NDArray[np.float64], places: Marks, reached: Reached | None = None) -> NumberSums:
        """The sums of some rows with the hashes of their places."""
        absent, marks = np.isnan(values), places.marks
        x = values[~absent] if absent.any() else values
        missing, holes = len(values) - len(x), int(marks[absent].sum()) if len(x) < len(values) else 0
        if not len(x):
            return cls(0, missing, holes)
        low, high = float(x.min()), float(x.max())
        peak = max(abs(low), abs(high)) or 1.0
        shares = x / peak  # so that no square overflows or vanishes
        mean = float(shares.mean())
        shares -= mean
        spread = peak * sqrt(float(shares @ shares))
        seen = marks[~absent] if missing else marks
        bits = int((seen * np.ascontiguousarray(x).view(np.uint64)).sum())
        sketch = QuantileSketch.of(values, places, reached)
        return cls(len(x), missing, holes, mean * peak, spread, low, high, sketch, bits)

    @classmethod
    def of_run(
        cls, values: NDArray[np.float64], places: Marks, facts: NumberFacts, reached: Reached | None = None
    ) -> NumberSums:
        """The same of a run of a long column that has these facts, by compiled loops."""
        from separatrix.kernels.table_columns import number_sums  # numba takes a while to import

        if facts.missing == len(values):
            return cls.of(values, places, reached)
        exponent = frexp(max(abs(facts.low), abs(facts.high)))[1]
        unit = 2.0 ** max(-1000, exponent - 1)  # so that no square overflows or vanishes
        x, n = np.ascontiguousarray(values), facts.n - facts.missing
        mean, squares, holes, bits = number_sums(x, x.view(np.uint64), places.marks, 1.0 / unit, n)
        sketch = QuantileSketch.of(x, places, reached)
        return cls(
            n, facts.missing, int(holes), mean * unit, unit * sqrt(squares), facts.low, facts.high, sketch, int(bits)
        )

    def merge(self, other: NumberSums) -> NumberSums:
        """Add another's rows to this, in place (Chan's formula for roots)."""
        n = self.observed + other.observed
        if other.observed:
            share = other.observed / n
            gap = other.mean - self.mean if self.observed else 0.0
            self.spread = hypot(self.spread, other.spread, sqrt(self.observed * share) * gap)
            self.mean = self.mean + share * gap if self.observed else other.mean
        self.observed, self.missing = n, self.missing + other.missing
        self.holes = (self.holes + other.holes) % 2**64
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.quantiles.merge(other.quantiles)
        self.values = (self.values + other.values) % 2**64
        return self

    def moments(self, fill: float) -> tuple[float, float]:
        """Mean and deviation with the holes filled; a column that is constant then has its value and 1."""
        if not self.observed or (self.low == self.high and (not self.missing or fill == self.low)):
            return fill if not self.observed else self.low, 1.0
        n = self.observed + self.missing
        mean = self.mean + (self.missing / n) * (fill - self.mean)
        spread = hypot(self.spread, sqrt(self.observed) * (self.mean - mean), sqrt(self.missing) * (fill - mean))
        return mean, spread / sqrt(n)


@dataclass
class CategorySums:
    """Counts of a column of categories."""

    missing: int = 0
    holes: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    values: int = 0

    @classmethod
    def of(cls, text: CodedText, marks: NDArray[np.uint64]) -> CategorySums:
        """The counts of some rows; `marks` are the hashes of their places."""
        missing = int(text.tally[0])
        holes = int(marks[text.places < 0].sum()) if missing else 0
        bits = np.array([*map(text_bits, text.levels), 0], dtype=np.uint64)[text.places]
        bits *= marks
        return cls(missing, holes, Counter(text.counts()), int(bits.sum()))

    @classmethod
    def of_run(cls, text: CodedText, marks: NDArray[np.uint64]) -> CategorySums:
        """The same of a run of a long column, by compiled loops; texts in any order, some of no row."""
        from separatrix.kernels.table_columns import text_sums  # numba takes a while to import

        tally, sums = np.zeros((2, 1 + len(text.levels)), dtype=np.uint64)
        text_sums(text.places, marks, tally, sums)
        text.counted(tally.view(np.intp))
        bits = np.array([0, *map(text_bits, text.levels)], dtype=np.uint64)
        return cls(int(tally[0]), int(sums[0]), Counter(text.counts_in_order()), int((bits * sums).sum()))

    def merge(self, other: CategorySums) -> CategorySums:
        """Add another's rows to this, in place."""
        self.missing += other.missing
        self.holes = (self.holes + other.holes) % 2**64
        self.counts.update(other.counts)
        self.values = (self.values + other.values) % 2**64
        return self


@dataclass
class EncodingSums:
    """Sums of every column of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.tables.encoding.encoding_sums import EncodingSums
    >>> from separatrix.tables.rows import TableRows
    >>> parts = [TableRows({"age": np.array(ages)}, frozenset(), 2) for ages in ([30.0, np.nan], [40.0, 50.0])]
    >>> sums = EncodingSums.of(parts[0]).merge(EncodingSums.of(parts[1], start=2))
    >>> sums.n, sums.columns["age"].mean, sums.columns["age"].missing
    (4, 40.0, 1)
    """

    n: int
    columns: dict[str, NumberSums | CategorySums]

    @classmethod
    def of(cls, rows: TableRows, start: int = 0) -> EncodingSums:
        """The sums of some rows, the first of which is row `start` of the table."""
        marks = hashed_places(start, len(rows))
        columns: dict[str, NumberSums | CategorySums] = {}
        for name, values in rows.columns.items():
            if isinstance(values, CodedText):
                columns[name] = CategorySums.of(values, marks)
            else:
                columns[name] = NumberSums.of(values, Marks(marks))
        return cls(len(rows), columns)

    def merge(self, other: EncodingSums) -> EncodingSums:
        """Add another's rows to this, in place."""
        self.n += other.n
        for name, sums in self.columns.items():
            sums.merge(other.columns[name])  # type: ignore[arg-type]  # a column has one kind in all rows
        return self


@lru_cache(maxsize=4096)  # one batch after another has the same texts
def text_bits(level: str | None) -> int:
    """64 well mixed bits of a text, 0 of none."""
    return 0 if level is None else int.from_bytes(blake2b(level.encode(errors="replace"), digest_size=8).digest())


def hashed_places(start: int, n: int) -> NDArray[np.uint64]:
    """(n,) well mixed 64 bits of every row from `start` on (the finaliser of SplitMix64)."""
    z = np.arange(start, start + n, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
