"""Run the benchmarks: `python -m benchmarks.run [--workload B7 ...]`, from the root of the repository."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import report
from benchmarks.children import ChildFailed, call
from benchmarks.result import Result, Verdict, one_line
from benchmarks.workload import WORKLOADS, Settings, Workload, discover

OUTPUT = Path(__file__).with_name("RESULTS.md")
QUICK = Settings(repeats=2, scale=0.01)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Ours and the peers, side by side.")
    parser.add_argument("--workload", nargs="+", metavar="ID", help="ids (B7) or file names (b07_lda); all if left out")
    parser.add_argument("--repeats", type=int, help="timed fits of each contender, 5 by default")
    parser.add_argument("--scale", type=float, help="fraction of the rows; below 1 it is only a smoke run")
    parser.add_argument("--quick", action="store_true", help=f"same as --scale {QUICK.scale} --repeats {QUICK.repeats}")
    parser.add_argument("--output", type=Path, help="the page to write; results.json goes beside it")
    chosen = parser.parse_args(argv)
    defaults = QUICK if chosen.quick else Settings()
    chosen.repeats = defaults.repeats if chosen.repeats is None else chosen.repeats
    chosen.scale = defaults.scale if chosen.scale is None else chosen.scale
    if chosen.repeats < 1 or not 0 < chosen.scale <= 1:
        parser.error("--repeats must be 1 or more, --scale above 0 and at most 1.")
    return chosen


def select(workloads: dict[str, Workload], wanted: Sequence[str] | None) -> dict[str, Workload]:
    """The workloads with these ids or file names, in the order of the folder."""
    if not wanted:
        return workloads
    names = {name.lower() for name in wanted}
    known = {key.lower() for name, workload in workloads.items() for key in (name, workload.id)}
    if unknown := names - known:
        raise SystemExit(f"No workload {', '.join(sorted(unknown))}. There are: {', '.join(sorted(known))}.")
    return {name: w for name, w in workloads.items() if names & {name.lower(), w.id.lower()}}


def measure(workload: Workload, settings: Settings) -> Result:
    """The workload's result; one that breaks counts as a missed goal."""
    try:
        return workload.run(settings)
    except ChildFailed as error:
        return Result([], verdicts=[Verdict("the workload runs", one_line(str(error)), False)])


def main(argv: Sequence[str] | None = None, package: str = WORKLOADS) -> int:
    chosen = arguments(argv)
    settings = Settings(chosen.repeats, chosen.scale)
    workloads = select(discover(package), chosen.workload)
    # A smoke run must not replace published results: it is only shown, unless told where to write.
    smoke = settings.scale != 1 and chosen.output is None
    output: Path = chosen.output or OUTPUT
    entries = {} if smoke else report.read(output.with_name("results.json"))
    for name, workload in workloads.items():
        print(f"{workload.id} {workload.title} ...", flush=True)
        conditions = call("benchmarks.conditions:collect")
        result = measure(workload, settings)
        entries[name] = report.entry(workload.id, workload.title, asdict(settings), conditions, result)
        if not smoke:
            report.save(output, entries)
    print(report.render({name: entries[name] for name in workloads}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
