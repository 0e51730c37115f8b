"""What a problem's rows come to, and what all problems come to.

    ratio = best peer's seconds / our seconds, both at the quality; won or level at ≥ 0.95

A peer short of the quality does not count. Where none reaches it ours wins by reaching it, and the ratio is that of the peer
nearest the quality; where all were cut off it is their limit, a lower bound. Where ours misses the quality the ratio is 0,
unless nobody ended within the limits: that problem is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.atlas.draw import Problem
from benchmarks.ladder import shown
from benchmarks.result import Verdict

LEVEL, FLOOR, MEDIAN, SHARE = 0.95, 0.7, 3.0, 0.95
REACHED, CUT = "reached", "cut off"


@dataclass(frozen=True)
class Outcome:
    """One problem, judged."""

    problem: Problem
    rows: list[dict[str, Any]]
    ratio: float
    peer: str
    bound: bool = False  # the ratio is at least this
    alone: bool = False  # ours reaches the quality, no peer that ended does
    undecided: bool = False  # nobody ended within the limits: not counted
    note: str = ""

    @property
    def won(self) -> bool:
        return self.alone or self.ratio >= LEVEL

    @property
    def ours(self) -> dict[str, Any]:
        return next(row for row in self.rows if row["ours"])

    @property
    def peer_seconds(self) -> float | None:
        row = next((row for row in self.rows if row["name"] == self.peer), None)
        return row["seconds"] if row else None

    @property
    def shown_ratio(self) -> str:
        sign = "≥ " if self.bound else ""
        return f"{sign}{self.ratio:.2f}×" if self.ratio < 100 else f"{sign}{self.ratio:.0f}×"


def judge(problem: Problem, rows: list[dict[str, Any]]) -> Outcome:
    ours = next(row for row in rows if row["ours"])
    peers = [row for row in rows if not row["ours"]]
    if ours["status"] != REACHED:
        error = "" if ours["error"] is None else f", error {ours['error']:.1e}"
        best = min((row for row in peers if row["status"] == REACHED), key=lambda row: row["seconds"], default=None)
        note = f"ours: {ours['status']}{error} {ours['note']}".strip()
        undecided = ours["status"] == CUT and best is None
        return Outcome(problem, rows, 0.0, best["name"] if best else "", undecided=undecided, note=note)
    reached = [row for row in peers if row["status"] == REACHED]
    if reached:
        best = min(reached, key=lambda row: row["seconds"])
        return Outcome(problem, rows, best["seconds"] / ours["seconds"], best["name"])
    timed = [row for row in peers if row["seconds"] and row["status"] != CUT]
    if timed:
        best = min(timed, key=lambda row: math.inf if row["error"] is None else row["error"])
        ratio = best["seconds"] / ours["seconds"]
        return Outcome(problem, rows, ratio, best["name"], alone=True, note="no peer reaches the quality")
    limits = [row["limit"] for row in peers if row["status"] == CUT]
    if limits:
        return Outcome(problem, rows, min(limits) / ours["seconds"], "", bound=True, note="all peers cut off")
    return Outcome(problem, rows, math.inf, "", bound=True, note="no peer ran")


@dataclass(frozen=True)
class Summary:
    """All problems together."""

    problems: int
    share: float
    median: float
    least: float

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Summary:
        counted = [outcome for outcome in outcomes if not outcome.undecided]
        ratios = [outcome.ratio for outcome in counted] or [math.inf]
        raced = [outcome.ratio for outcome in counted if not outcome.alone]
        won = sum(outcome.won for outcome in counted)
        return cls(len(counted), won / len(ratios), median(ratios), min(raced, default=math.inf))

    @property
    def met(self) -> bool:
        return all(verdict.met for verdict in self.verdicts)

    @property
    def verdicts(self) -> list[Verdict]:
        """The three goals of B24."""
        return [
            Verdict(f"≥ {LEVEL:g}× on {SHARE:.0%} of the problems", f"{self.share:.1%}", self.share >= SHARE),
            Verdict(f"no ratio below {FLOOR:g}×", f"least {self.least:.2f}×", self.least >= FLOOR),
            Verdict(f"median ratio ≥ {MEDIAN:g}×", f"{self.median:.2f}×", self.median >= MEDIAN),
        ]

    @property
    def sentence(self) -> str:
        return (
            f"{self.problems} problems: won or level (≥ {LEVEL:g}×) on {self.share:.1%}, "
            f"median {self.median:.2f}×, least {self.least:.2f}×"
        )


def tolerance(row: dict[str, Any]) -> str:
    return shown(row["rung"])
