"""How the columns of new rows differ from those that a model was trained on.

    Σ_b (q_b − p_b) log(q_b / p_b)      p: shares of the training rows in the bins of a column, q: of the new rows

The bins of a number lie between the deciles of the training rows, those of a category are its levels; a hole is a bin of its
own. Two samples of one distribution differ too, by about (b − 1)(1/n + 1/m): a column is named where the sum is large, and
larger than chance makes it (a χ² test of the counts). Single values far outside the range that was seen are counted besides:
they show in a table of one row. Reference: Lin, IEEE Transactions on Information Theory 37, 1991 (the divergence of Jeffreys).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2

from separatrix.data.block import Float
from separatrix.tables.rows import CodedText, TableRows

_MOST_LEVELS, _FIRST = 50, 5_000
# A column has shifted where the divergence is larger, and the chance of such counts smaller, than these.
_LARGE, _CHANCE = 0.1, 1e-4
# Sizes between which another unit is likely.
_UNITS = (10.0, 100.0, 1_000.0, 1e6, 2.2, 2.54, 12.0, 60.0, 3_600.0)


@dataclass(frozen=True)
class ColumnDrift:
    """A column whose values are not distributed as they were: how much, and what is different in a sentence."""

    column: str
    divergence: float
    sentence: str


def profile(rows: TableRows, prose: Collection[str] = ()) -> dict[str, Any]:
    """What is kept of the columns of training rows to compare others with: plain values, by column; no texts of free text.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.drift import profile
    >>> from separatrix.tables.rows import TableRows
    >>> profile(TableRows({"age": np.array([20.0, 30.0, np.nan, 40.0])}, frozenset(), 4))["age"]["range"]
    [20.0, 40.0]
    """
    return {
        name: _one(values, len(rows), name in rows.booleans, 0 if name in prose else _MOST_LEVELS)
        for name, values in rows.columns.items()
    }


def _one(values: Any, n: int, flags: bool, most: int) -> dict[str, Any]:
    if isinstance(values, CodedText) or values.dtype == object:
        tally = Counter(CodedText.of(values).counts())
        kept = dict(tally.most_common(most))
        return {"kind": "categorical", "n": n, "levels": kept, "missing": n - sum(tally.values())}
    given = values[~np.isnan(values)]
    found: dict[str, Any] = {"kind": "boolean" if flags else "numeric", "n": n, "missing": n - len(given)}
    if not len(given):
        return found | {"edges": [], "counts": [0], "range": []}
    inner = [0.5] if flags else np.unique(np.quantile(given, np.linspace(0.1, 0.9, 9))).tolist()
    counts = np.bincount(np.searchsorted(inner, given, side="left"), minlength=len(inner) + 1)
    median = float(np.median(given))
    return found | {
        "edges": [float(edge) for edge in inner],
        "counts": counts.tolist(),
        "range": [float(given.min()), float(given.max())],
        "median": median,
        "spread": float(np.median(np.abs(given - median))),
    }


class DriftCounter:
    """Counts new rows, batch by batch, in the bins of a profile."""

    def __init__(self, known: dict[str, Any]) -> None:
        self._known, self._n = known, 0
        self._counts = {name: np.zeros(len(one["counts"])) for name, one in known.items() if "counts" in one}
        self._levels: dict[str, Counter[str]] = {name: Counter() for name, one in known.items() if "levels" in one}
        self._others: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()
        self._far: Counter[str] = Counter()
        self._first: dict[str, list[Float]] = {}

    def add(self, rows: TableRows) -> None:
        """Count some rows."""
        for name, values in rows.columns.items():
            if name in self._levels:
                counts = CodedText.of(values).counts()
                known = {level: counts[level] for level in self._known[name]["levels"] if level in counts}
                self._levels[name].update(known)
                total = sum(counts.values())
                self._others[name] += total - sum(known.values())
                self._missing[name] += len(rows) - total
            elif name in self._counts:
                self._add_numbers(name, values)
        self._n += len(rows)

    def _add_numbers(self, name: str, values: Float) -> None:
        known, given = self._known[name], values[~np.isnan(values)]
        self._missing[name] += len(values) - len(given)
        if not known["range"]:
            return
        places = np.searchsorted(known["edges"], given, side="left")
        self._counts[name] += np.bincount(places, minlength=len(self._counts[name]))
        low, high = known["range"]
        reach = max(high - low, 1e-9 * max(abs(low), abs(high)))
        if known["kind"] == "numeric":
            self._far[name] += int(((given < low - reach) | (given > high + reach)).sum())
        if self._n < _FIRST:
            self._first.setdefault(name, []).append(given[: _FIRST - self._n])

    def found(self) -> list[ColumnDrift]:
        """The columns that have shifted, those that did most first."""
        return sorted(self._found(), key=lambda one: -one.divergence) if self._n else []

    def _found(self) -> Iterator[ColumnDrift]:
        for name, known in self._known.items():
            before, now = self._bins(name, known)
            divergence, by_chance = _divergence(before, now)
            shifted = divergence > _LARGE and by_chance < _CHANCE
            if shifted or self._far[name]:
                words = self._words(name, known, before, now, shifted)
                yield ColumnDrift(name, divergence if shifted else 0.0, f"Column {name!r} {words}")

    def _bins(self, name: str, known: dict[str, Any]) -> tuple[Float, Float]:
        """Counts of the training rows and of the new ones, what is missing first."""
        missing = float(self._missing[name])
        if name in self._counts:
            return np.array([known["missing"], *known["counts"]], dtype=float), np.array([missing, *self._counts[name]])
        levels, given = known["levels"], self._levels[name]
        rest = known["n"] - known["missing"] - sum(levels.values())
        before = np.array([known["missing"], *levels.values(), rest], dtype=float)
        return before, np.array([missing, *(given[level] for level in levels), self._others[name]], dtype=float)

    def _words(self, name: str, known: dict[str, Any], before: Float, now: Float, shifted: bool) -> str:
        then, here = before / before.sum(), now / now.sum()
        if abs(here[0] - then[0]) > 0.5 * np.abs(here - then).sum() - 1e-9 and shifted:
            return f"is missing in {here[0]:.0%} of the rows, and was in {then[0]:.0%} of those learnt from."
        if name in self._levels:
            names = ["", *known["levels"], "other values"]
            at = int(np.abs(here - then).argmax())
            return (
                f"has {names[at]!r} in {here[at]:.0%} of the rows, and had it in {then[at]:.0%} of those learnt from."
            )
        if known["kind"] == "boolean":
            return f"is true in {here[-1]:.0%} of the rows, and was in {then[-1]:.0%} of those learnt from."
        low, high = known["range"]
        far, values = self._far[name], np.concatenate(self._first.get(name, [np.empty(0)]))
        if not shifted or not len(values):
            rows = "1 value" if far == 1 else f"{far} values"
            return f"has {rows} far outside the range learnt from, {low:.4g} to {high:.4g}."
        median = float(np.median(values))
        unit = _unit(median, float(np.median(np.abs(values - median))), known)
        sentence = f"has the median {median:.4g}, and had {known['median']:.4g} in the rows learnt from"
        return f"{sentence}: about {unit}. Is it in another unit?" if unit else f"{sentence} ({low:.4g} to {high:.4g})."


def _divergence(before: Float, now: Float) -> tuple[float, float]:
    """The divergence of the shares of two rows of counts, and how often chance makes counts that differ as much."""
    kept = before + now > 0
    before, now = before[kept], now[kept]
    if len(before) < 2 or not before.sum() or not now.sum():
        return 0.0, 1.0
    p, q = ((counts + 0.5) / (counts + 0.5).sum() for counts in (before, now))
    expected = np.outer([before.sum(), now.sum()], before + now) / (before + now).sum()
    statistic = float(((np.stack([before, now]) - expected) ** 2 / expected).sum())
    return float(((q - p) * np.log(q / p)).sum()), float(chi2.sf(statistic, len(before) - 1))


def _unit(median: float, spread: float, known: dict[str, Any]) -> str:
    """'100 times as large', where location and spread are both so many times those that were seen; else nothing."""
    if not (known["spread"] and known["median"] and spread and median):
        return ""
    ratio, wider = median / known["median"], spread / known["spread"]
    for unit in _UNITS:
        for factor, words in ((unit, "times as large"), (1.0 / unit, "times as small")):
            if all(0.7 < found / factor < 1.0 / 0.7 for found in (ratio, wider)):
                return f"{unit:g} {words}"
    return ""
