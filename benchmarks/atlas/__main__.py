"""Race problems drawn at random: `python -m benchmarks.atlas --seed 1 [--problems 200]`, from the root of the repository."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.atlas.draw import FAMILIES, Problem, draw
from benchmarks.atlas.page import line, render
from benchmarks.atlas.picture import paint
from benchmarks.atlas.verdict import Outcome, Summary, judge
from benchmarks.atlas.worker import Worker
from benchmarks.children import call
from benchmarks.result import Result

OUTPUT = Path(__file__).resolve().parents[1] / "ATLAS.md"
STRIDE = 100_000  # problem i of atlas s has the seed s · STRIDE + i


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.atlas", description="Problems drawn at random, raced.")
    parser.add_argument("--seed", type=int, default=1, help="which atlas")
    parser.add_argument("--problems", type=int, default=200, help="how many problems are drawn")
    parser.add_argument("--skip", type=int, default=0, help="how many of them are left out at the beginning")
    parser.add_argument(
        "--only", type=int, nargs="+", metavar="SEED", help="the problems with these seeds, shown in detail"
    )
    parser.add_argument("--estimator", choices=list(FAMILIES), help="every problem is one of this estimator")
    parser.add_argument("--minutes", type=float, help="stop drawing problems after so many minutes")
    parser.add_argument(
        "--output", type=Path, help="the page to write, with atlas.svg, atlas.json and RESULTS.md beside it"
    )
    parser.add_argument("--list", action="store_true", help="show what would be raced")
    return parser.parse_args(argv)


def problems(chosen: argparse.Namespace) -> list[Problem]:
    seeds = chosen.only or range(chosen.seed * STRIDE + chosen.skip, chosen.seed * STRIDE + chosen.problems)
    return [draw(seed, chosen.estimator) for seed in seeds]


def main(argv: Sequence[str] | None = None) -> int:
    chosen = arguments(argv)
    outcomes: list[Outcome] = []
    worker = Worker()
    start = time.monotonic()
    try:
        for problem in problems(chosen):
            if chosen.list:
                print(f"{problem.seed} {problem.estimator} {problem.shape}; {problem.kind}; {problem.strength:.2g}")
                continue
            if chosen.minutes and time.monotonic() - start > 60 * chosen.minutes:
                break
            rows = worker.race(problem)
            if not rows:
                print(f"? {problem.estimator} {problem.shape}; {problem.kind}: cannot be raced; --only {problem.seed}")
                continue
            outcome = judge(problem, rows)
            outcomes.append(outcome)
            print(line(outcome), flush=True)
            if chosen.only:
                print("\n".join(f"    {json.dumps(row)}" for row in outcome.rows), flush=True)
    finally:
        worker.stop()
    if not outcomes:
        return 0
    print(Summary.of(outcomes).sentence)
    # A run of chosen problems is shown, and not written unless told where.
    if chosen.output or not (chosen.only or chosen.estimator or chosen.skip):
        output: Path = chosen.output or OUTPUT
        title = f"Seed {chosen.seed}, {(time.monotonic() - start) / 60:.0f} minutes"
        stored = [{"problem": o.problem.to_json(), "rows": o.rows} for o in outcomes]
        output.parent.mkdir(parents=True, exist_ok=True)
        conditions = call("benchmarks.conditions:collect")
        report.write(output, render(outcomes, title, conditions))
        report.write(output.with_name("atlas.json"), json.dumps(stored, indent=1) + "\n")
        paint(outcomes, output.with_name("atlas.svg"))
        results = output.with_name("RESULTS.md")
        entries = report.read(results.with_name("results.json"))
        entries["b24_atlas"] = entry(chosen.seed, outcomes, conditions)
        report.save(results, entries)
    return 0


def entry(seed: int, outcomes: Sequence[Outcome], conditions: dict[str, Any]) -> report.Entry:
    """B24 for RESULTS.md: the goals; the problems are in ATLAS.md."""
    summary = Summary.of(outcomes)
    result = Result([], data=f"{summary.problems} problems drawn with seed {seed}; all of them: ATLAS.md")
    result.verdicts = summary.verdicts
    return report.entry("B24", "the atlas", {"repeats": 0, "scale": 1.0}, conditions, result)


if __name__ == "__main__":
    raise SystemExit(main())
