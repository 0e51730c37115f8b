"""The figures of README.md and docs/performance.md: from benchmarks/results.json and ATLAS.md, between markers.

`python tools/figures.py` writes; tests/test_docs.py fails when a page is not what this would write.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from badges import badges  # noqa: E402  # after the path

from benchmarks.report import Entry, read  # noqa: E402  # after the path
from benchmarks.result import Result, Row  # noqa: E402  # after the path

README, PERFORMANCE = ROOT / "README.md", ROOT / "docs" / "performance.md"
# The workloads that README.md names, with its own words for them: two that solvers decide, one of a single pass, one of memory.
FOUR = {
    "b01_logistic": "Logistic regression to a proven 1e-6",
    "b07_lda": "Linear discriminant analysis",
    "b06_rbf_c10": "Support vector machine, Gaussian kernel",
    "b13_predict_stream": "Predictions for a CSV file of 2 GB",
}


def best_peer(result: Result) -> tuple[Row, float] | None:
    """The quickest peer at the required quality, and its time over ours, where the workload is one race."""
    if not any("the best peer" in verdict.goal for verdict in result.verdicts):
        return None
    ratios = [(row, result.ratio(row)) for row in result.rows if row.role == "peer"]
    found = [(row, ratio) for row, ratio in ratios if ratio is not None]
    return min(found, key=lambda pair: pair[1]) if found else None


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1e3 * seconds:.3g} ms"


def four_figures(entries: dict[str, Entry]) -> str:
    """One row per workload of `FOUR`: both times and the ratio; below, what a prediction of a large file needs."""
    lines = [
        "| | ours | fastest peer at the same quality | faster by | than scikit-learn's default |",
        "|---|---|---|---|---|",
    ]
    for name, words in FOUR.items():
        result = Result.from_json(entries[name]["result"])
        best, ours = best_peer(result), result.ours
        if best is None or ours is None or ours.median is None:
            peak = next(verdict for verdict in result.verdicts if verdict.goal.startswith("peak at 2 GB <"))
            lines.append(f"| {words} | {peak.value} of memory at most | | | |")
            continue
        (row, ratio), shape = best, result.data.split(" float64")[0]
        default = next(
            (other for other in result.rows if other.default and other.name.startswith("scikit-learn ")), None
        )
        than = result.ratio(default) if default else None
        cells = [
            f"{words}, {shape}",
            _seconds(ours.median),
            f"{row.name}, {_seconds(row.median or 0)}",
            f"**{ratio:.1f}×**",
        ]
        lines.append(f"| {' | '.join([*cells, f'{than:.1f}×' if than else ''])} |")
    return "\n".join(lines)


def races(entries: dict[str, Entry]) -> str:
    """Every workload in which a peer reached the quality: our time, the quickest peer's, and the ratio."""
    lines = [
        "| workload | ours | fastest peer at the same quality | its time | times as fast |",
        "| --- | --- | --- | --- | --- |",
    ]
    for entry in entries.values():
        result = Result.from_json(entry["result"])
        best, ours = best_peer(result), result.ours
        if best is not None and ours is not None and ours.median is not None:
            row, ratio = best
            cells = [entry["title"], _seconds(ours.median), row.name, _seconds(row.median or 0), f"{ratio:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def goals(entries: dict[str, Entry]) -> str:
    """How many goals are met, and all that are missed."""
    judged = [(entry["title"], v) for entry in entries.values() for v in Result.from_json(entry["result"]).verdicts]
    met = sum(verdict.met is True for _, verdict in judged)
    lines = [f"{met} of {len(judged)} goals are met. Those that are missed:", ""]
    lines += ["| workload | goal | measured |", "| --- | --- | --- |"]
    lines += [f"| {title} | {v.goal} | {v.value} |" for title, v in judged if v.met is False]
    return "\n".join(lines)


def conditions(entries: dict[str, Entry]) -> str:
    """Where and when: the dates and processors of all workloads."""
    found = [entry["conditions"] for entry in entries.values()]
    dates = sorted({each["date"] for each in found})
    places = sorted({f"{each['cpu']}, {each['threads'].split(';')[0]}" for each in found})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"Measured {span} on: {'; '.join(places)}."


def atlas(_: dict[str, Entry]) -> str:
    """The summary of the last atlas, and its table of estimators."""
    page = (ROOT / "benchmarks" / "ATLAS.md").read_text(encoding="utf-8")
    summary, goal = page.split("\n\n")[:2]
    table = page.split("## By estimator\n\n")[1].split("\n\n")[0]
    return "\n\n".join([f"{summary.removeprefix('# Atlas: ')} {goal}", table])


SECTIONS: dict[str, Callable[[dict[str, Entry]], str]] = {
    "four figures": four_figures,
    "races": races,
    "goals": goals,
    "atlas": atlas,
    "conditions": conditions,
}


def filled(page: str, entries: dict[str, Entry]) -> str:
    """The page with every marked section written anew."""
    for name, write in SECTIONS.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
        if f"<!-- {name} -->" not in page:
            continue
        page = re.sub(pattern, lambda match, w=write: f"{match[1]}\n{w(entries)}\n\n{match[2]}", page, flags=re.S)
    return page


def main() -> None:
    """Write both pages, and the badges."""
    entries = read(ROOT / "benchmarks" / "results.json")
    for path, text in badges(entries).items():
        path.write_text(text, encoding="utf-8")
    for path in (README, PERFORMANCE):
        path.write_text(filled(path.read_text(encoding="utf-8"), entries), encoding="utf-8")


if __name__ == "__main__":
    main()
