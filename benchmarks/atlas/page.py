"""ATLAS.md: the summary, the worst ten, a table per estimator, the conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.atlas.verdict import FLOOR, LEVEL, MEDIAN, SHARE, Outcome, Summary, tolerance

WORST = 10


def line(outcome: Outcome) -> str:
    """One problem in one line of text, as it is printed while the atlas runs."""
    p = outcome.problem
    ours = outcome.ours
    seconds = "–" if ours["seconds"] is None else f"{ours['seconds']:.4g} s"
    other = "–" if outcome.peer_seconds is None else f"{outcome.peer_seconds:.4g} s"
    note = f" [{outcome.note}]" if outcome.note else ""
    mark = " " if outcome.won else "!"
    return (
        f"{mark} {outcome.shown_ratio:>9} {p.estimator:<16} {p.shape}; {p.kind}; strength {p.strength:.2g}; "
        f"ours {seconds} ({tolerance(ours)}), {outcome.peer or 'no peer'} {other}; --only {p.seed}{note}"
    )


def render(outcomes: Sequence[Outcome], title: str, conditions: dict[str, Any]) -> str:
    summary = Summary.of(outcomes)
    goal = (
        f"Goal: ≥ {LEVEL:g}× on {SHARE:.0%}, none below {FLOOR:g}×, median ≥ {MEDIAN:g}×: "
        f"{'met' if summary.met else '**missed**'}."
    )
    worst = sorted(outcomes, key=lambda outcome: (outcome.alone or outcome.undecided, outcome.ratio))[:WORST]
    parts = [
        f"# Atlas: {summary.sentence}",
        goal,
        f"{title}. Ratio: seconds of the best peer at the quality / ours. Written by `python -m benchmarks.atlas`, never "
        "edited by hand; how it is measured: README.md. One problem again: `python -m benchmarks.atlas --only SEED`.",
        "![The ratio over rows and columns, a panel per estimator](atlas.svg)",
        "\n".join(["## By estimator", "", *_by_estimator(outcomes)]),
        "\n".join([f"## The worst {len(worst)}", "", *_table(worst)]),
        _conditions(conditions),
    ]
    for name in _names(outcomes):
        own = [outcome for outcome in outcomes if outcome.problem.estimator == name]
        parts.append("\n".join([f"## {name}", "", *_table(sorted(own, key=lambda outcome: outcome.ratio))]))
    return "\n\n".join(parts) + "\n"


def _names(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(sorted(outcome.problem.estimator for outcome in outcomes)))


def _by_estimator(outcomes: Sequence[Outcome]) -> list[str]:
    lines = ["| estimator | problems | won or level | median | least |", "|---|---|---|---|---|"]
    for name in _names(outcomes):
        own = [outcome for outcome in outcomes if outcome.problem.estimator == name and not outcome.undecided]
        ratios = [outcome.ratio for outcome in own] or [math.inf]
        won = sum(outcome.won for outcome in own)
        lines.append(f"| {name} | {len(own)} | {won} | {median(ratios):.2f}× | {min(ratios):.2f}× |")
    return lines


def _table(outcomes: Sequence[Outcome]) -> list[str]:
    lines = [
        "| ratio | problem | C or alpha | ours s | best peer | s | seed | note |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for outcome in outcomes:
        p, ours = outcome.problem, outcome.ours
        named = f"{p.estimator}: {p.shape}; {p.kind}"
        cells = [
            outcome.shown_ratio if outcome.won else f"**{outcome.shown_ratio}**",
            named,
            f"{p.strength:.2g}",
            _seconds(ours),
            outcome.peer or "–",
            next((_seconds(row) for row in outcome.rows if row["name"] == outcome.peer), "–"),
            str(p.seed),
            outcome.note,
        ]
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return lines


def _seconds(row: dict[str, Any]) -> str:
    if row["seconds"] is None:
        return "–"
    return f"{row['seconds']:.3g} ({row['repeats']}, {tolerance(row)})"


def _conditions(conditions: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in conditions["versions"].items())
    return "\n".join(
        [
            "## Conditions",
            "",
            f"- date {conditions['date']}, commit {conditions['commit']}",
            f"- CPU: {conditions['cpu']}",
            f"- threads: {conditions['threads']}",
            f"- versions: {versions}",
        ]
    )
