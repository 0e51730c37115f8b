"""Goals: each reads a result and gives a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from benchmarks.result import NOT_INSTALLED, OK, Result, Row, Verdict


class Goal(Protocol):
    """What a workload wants to be true of its result."""

    def judge(self, result: Result) -> Verdict: ...


def _missing(row: Row | None, name: str) -> str:
    return f"{row.name}: {row.status}" if row else f"{name} was not run"


@dataclass(frozen=True)
class Faster:
    """Best peer's median time / our median time ≥ factor, among those who reach the quality."""

    factor: float

    def judge(self, result: Result) -> Verdict:
        goal = f"≥ {self.factor:g}× the best peer"
        ours = result.ours
        if ours is None or ours.counted is None:
            return Verdict(goal, _missing(ours, "ours"), False)
        ratios = [(ratio, row) for row in result.rows if row.role == "peer" and (ratio := result.ratio(row))]
        absent = [row.name for row in result.rows if row.role == "peer" and row.status == NOT_INSTALLED]
        caveat = f"; not installed: {', '.join(absent)}" if absent else ""
        if not ratios:
            return Verdict(goal, f"no peer reached the quality{caveat}", None)
        ratio, best = min(ratios, key=lambda pair: pair[0])
        value = f"{ratio:.2f}× ({best.name}{caveat})"
        defaults = [(ratio, row) for ratio, row in ratios if row.default]
        value += "".join(f"; {ratio:.2f}× the default, {row.name}" for ratio, row in defaults)
        return Verdict(goal, value, ratio >= self.factor)


@dataclass(frozen=True)
class FasterThan:
    """The median time of the row called `name` / our median time ≥ factor."""

    factor: float
    name: str

    def judge(self, result: Result) -> Verdict:
        goal = f"≥ {self.factor:g}× {self.name}"
        ours, other = result.ours, result.row(self.name)
        if ours is None or ours.counted is None:
            return Verdict(goal, _missing(ours, "ours"), False)
        ratio = result.ratio(other) if other else None
        if ratio is None:
            return Verdict(goal, _missing(other, self.name), None)
        return Verdict(goal, f"{ratio:.2f}×", ratio >= self.factor)


@dataclass(frozen=True)
class AtMostTimes:
    """Our median time ≤ factor × the median time of the row called `name`."""

    factor: float
    name: str

    def judge(self, result: Result) -> Verdict:
        goal = f"≤ {self.factor:g} × the time of {self.name}"
        ours, other = result.ours, result.row(self.name)
        if ours is None or ours.counted is None:
            return Verdict(goal, _missing(ours, "ours"), False)
        if other is None or not other.counted:
            return Verdict(goal, _missing(other, self.name), None)
        ratio = ours.counted / other.counted
        return Verdict(goal, f"{ratio:.2f} ×", ratio <= self.factor)


@dataclass(frozen=True)
class AtMostSeconds:
    """The median time of the row called `name` ≤ limit."""

    limit: float
    name: str

    def judge(self, result: Result) -> Verdict:
        goal = f"{self.name} ≤ {self.limit:g} s"
        row = result.row(self.name)
        if row is None or row.counted is None:
            return Verdict(goal, _missing(row, self.name), False)
        return Verdict(goal, f"{row.counted:.3f} s", row.counted <= self.limit)


@dataclass(frozen=True)
class AtMostMemory:
    """Peak extra memory of each of our fits ≤ fraction of the size of X."""

    fraction: float

    def judge(self, result: Result) -> Verdict:
        goal = f"peak extra memory of our fits ≤ {self.fraction:.0%} of X"
        ours = [row for row in result.rows if row.role == "ours"]
        broken = [row for row in ours if row.status != OK]
        if broken or not ours:
            return Verdict(goal, "; ".join(_missing(row, "") for row in broken) or "nothing was run", False)
        peaks = [(row.peak_extra, row.name) for row in ours if row.peak_extra is not None]
        if len(peaks) < len(ours) or not result.x_bytes:
            return Verdict(goal, "peak memory cannot be measured on this system", None)
        shares = [(peak / result.x_bytes, name) for peak, name in peaks]
        value = ", ".join(f"{name} {share:.1%}" for share, name in shares)
        return Verdict(goal, value, max(shares)[0] <= self.fraction)
