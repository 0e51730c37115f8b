"""This version against an earlier one: `python -m benchmarks.versus COMMIT [--workload B1 B7 ...]`.

Two processes, each with its own version of separatrix and the same data, fit in turns; the medians and their ratio are
printed. A ratio above 1 means that this version is faster. Nothing is written to RESULTS.md.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.run import select
from benchmarks.workload import FitWorkload, discover

ROOT = Path(__file__).parent.parent


class Version:
    """A process that fits one workload with the separatrix of one folder."""

    def __init__(self, source: Path, module: str, scale: float) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-m", "benchmarks.versus", "--worker", module, "--scale", str(scale)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)

    def fit(self) -> tuple[float, float]:
        """Seconds of one fit: by the clock, and of the processor."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("fit\n")
        self._process.stdin.flush()
        clock, processor = self._process.stdout.readline().split()
        return float(clock), float(processor)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def work(module: str, scale: float) -> None:
    """The loop of such a process: a line in, a fit, its seconds out."""
    from benchmarks.workload import load

    workload = load(module)
    ours = next(contender for contender in workload.contenders if contender.role == "ours")
    data = workload.data(scale)
    for _ in sys.stdin:
        model = ours.build()
        clock, processor = time.perf_counter(), time.process_time()
        model.fit(data.X, data.y)
        print(time.perf_counter() - clock, time.process_time() - processor, flush=True)


def checked_out(commit: str, folder: Path) -> Path:
    """The sources of a commit, in a folder."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


def compare(commit: str, wanted: Sequence[str] | None, repeats: int, scale: float) -> None:
    """Print a line for every workload."""
    print(f"{'workload':<22}{'before':>10}{'now':>10}{'ratio':>8}{'processor':>11}")
    with tempfile.TemporaryDirectory() as folder:
        before = checked_out(commit, Path(folder))
        for name, workload in select(discover(), wanted).items():
            if not isinstance(workload, FitWorkload):
                continue
            versions = [Version(source, workload.module, scale) for source in (before, ROOT / "src")]
            times = [[version.fit() for version in versions] for _ in range(repeats + 1)][1:]  # the first is a warm-up
            for version in versions:
                version.close()
            (old, old_cpu), (new, new_cpu) = (
                [median(part) for part in zip(*runs, strict=True)] for runs in zip(*times, strict=True)
            )
            print(f"{name:<22}{old:>10.3f}{new:>10.3f}{old / new:>8.2f}{old_cpu / new_cpu:>11.2f}", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.versus", description="This version against an earlier one."
    )
    parser.add_argument("commit", nargs="?", help="the earlier version")
    parser.add_argument(
        "--workload", nargs="+", metavar="ID", help="ids (B7) or file names (b07_lda); all fits if left out"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the rows")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    if chosen.worker:
        work(chosen.worker, chosen.scale)
    elif chosen.commit is None:
        parser.error("name the commit to compare with.")
    else:
        compare(chosen.commit, chosen.workload, chosen.repeats, chosen.scale)


if __name__ == "__main__":
    main()
