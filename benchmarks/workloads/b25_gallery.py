"""B25: scripts of scikit-learn's gallery, unchanged: `python script.py` against `python -m separatrix script.py`.

total       seconds of the whole process, imports and all, in turns; fewer turns for scripts that take longer
fits        in a process of its own, with a watch around every fit; the i-th fit of one side is the i-th of the other
the same    printed numbers to 1 %, and figures but for 1 % of their pixels

All of it takes about five minutes on a quiet machine; a process that takes too long is ended, and its script has no figures.

This file imports no numerical library.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.children import KEEP_BYTE_CODE, ChildFailed, call
from benchmarks.gallery.likeness import number_difference
from benchmarks.gallery.scripts import SCRIPTS
from benchmarks.result import FAILED, Result, Row, Verdict, one_line
from benchmarks.workload import Settings

THEIRS, OURS = "scikit-learn", "separatrix"
SIDES: dict[str, list[str]] = {THEIRS: [], OURS: ["-m", "separatrix"]}
REPEATS, SLOW_SECONDS, SLOW_REPEATS = 5, 5.0, 2
LIMIT = 90.0  # seconds for a process
NUMBERS, PIXELS = 0.01, 0.01
SAME = f"printed numbers to {NUMBERS:.0%} (of the larger, or of 1), figures but for {PIXELS:.0%} of their pixels"


@dataclass
class Comparison:
    """One script by both sides: whole processes, and what was watched in others."""

    script: str
    totals: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    watched: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {side: [] for side in SIDES})
    numbers: float | None = None
    pixels: float = 1.0

    @property
    def total_ratio(self) -> float:
        """scikit-learn's time / ours."""
        theirs, ours = (median(self.totals[side]) for side in SIDES)
        return theirs / ours

    @property
    def fit_ratio(self) -> float | None:
        """The same of a fit, in the median over the fits; None where the sides do not fit the same number of times."""
        theirs, ours = ([run["seconds"] for run in self.watched[side]] for side in SIDES)
        if not theirs[0] or len({len(run) for run in [*theirs, *ours]}) > 1:
            return None
        each = [[median(fit) for fit in zip(*runs, strict=True)] for runs in (theirs, ours)]
        return float(median(a / b for a, b in zip(*each, strict=True)))

    def rows(self) -> list[Row]:
        """A row for each side."""
        return [
            Row(f"{self.script}, {side}", "context", seconds=self.totals[side], note=self._note(side)) for side in SIDES
        ]

    def _note(self, side: str) -> str:
        runs = self.watched[side]
        count = len(runs[0]["seconds"])
        seconds = median(sum(run["seconds"]) for run in runs)
        back = runs[0]["handed_back"]
        return f"{count} fits, {1e3 * seconds:.3g} ms in all" + (f", {back} handed back" if back else "")

    def verdicts(self) -> list[Verdict]:
        """Not slower in all and the same to see; not slower per fit, where the same fits are made."""
        fits = self.fit_ratio
        same = self.numbers is not None and self.numbers <= NUMBERS and self.pixels <= PIXELS
        numbers = "other words printed" if self.numbers is None else f"printed numbers to {self.numbers:.1%}"
        value = f"{self.total_ratio:.2f}×; {numbers}, {self.pixels:.2%} of the pixels"
        whole = Verdict(f"{self.script}: ≥ 1×, the same output and figures", value, self.total_ratio >= 1 and same)
        if fits is None:
            return [whole]
        return [whole, Verdict(f"{self.script}: a fit ≥ 1×", f"{fits:.2f}×", fits >= 1)]


def process_seconds(side: str, script: str) -> float:
    """Seconds of a script from the start of its process to the end."""
    places = [os.path.abspath(place) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    environment = {**os.environ, **KEEP_BYTE_CODE, "PYTHONPATH": os.pathsep.join(places)}
    environment |= {"MPLBACKEND": "Agg", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, *SIDES[side], script]
    with TemporaryDirectory() as folder:
        start = time.perf_counter()
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            raise ChildFailed(f"not done after {LIMIT:g} s") from None
        seconds = time.perf_counter() - start
    if done.returncode:
        raise ChildFailed((done.stderr.strip().splitlines() or ["no message"])[-1])
    return seconds


def compared(script: str, repeats: int) -> Comparison:
    """Both sides in turns: watched first, so that caches are full when whole processes are timed."""
    repeats = min(repeats, REPEATS)
    found = Comparison(Path(script).name)
    with TemporaryDirectory() as scratch:
        places = {side: str(Path(scratch) / side) for side in SIDES}
        for side, place in places.items():
            found.watched[side].append(_watched(side, script, place))
        printed = (found.watched[side][0]["printed"] for side in SIDES)
        found.numbers = number_difference(*printed)
        found.pixels = call("benchmarks.gallery.likeness:pixel_difference", one=places[THEIRS], other=places[OURS])
    while len(found.totals[OURS]) < repeats:
        for side in SIDES:
            found.totals[side].append(process_seconds(side, script))
        if max(found.totals[THEIRS]) > SLOW_SECONDS:
            repeats = min(repeats, SLOW_REPEATS)
    return found


def _watched(side: str, script: str, place: str) -> dict[str, Any]:
    Path(place).mkdir(exist_ok=True)
    watched = "benchmarks.gallery.observe:observe"
    seen: dict[str, Any] = call(watched, limit=LIMIT, script=script, swapped=side == OURS, folder=place)
    return seen


@dataclass(frozen=True)
class GalleryWorkload:
    """A row and a verdict for each script; a smoke run takes a few of them."""

    id: str = "B25"
    title: str = "scripts of scikit-learn's gallery, unchanged"

    def run(self, settings: Settings) -> Result:
        folder = call("benchmarks.gallery.scripts:fetch")
        result = Result([], data="generated by the scripts, or bundled with scikit-learn", quality=SAME)
        done: list[Comparison] = []
        for script in SCRIPTS[: max(1, round(settings.scale * len(SCRIPTS)))]:
            try:
                done.append(compared(str(Path(folder) / script), settings.repeats))
                result.rows += done[-1].rows()
                result.verdicts += done[-1].verdicts()
            except ChildFailed as error:  # the other scripts still stand
                result.rows.append(Row(Path(script).name, "context", status=FAILED, note=one_line(str(error))))
                result.verdicts.append(Verdict(f"{Path(script).name} runs", one_line(str(error)), False))
        theirs, ours = (sum(median(one.totals[side]) for one in done) for side in SIDES)
        value = f"{theirs:.2f} s against {ours:.2f} s" if done else "none ran"
        result.verdicts.append(Verdict(f"all {len(done)} scripts in less time", value, bool(done) and ours <= theirs))
        return result


WORKLOAD = GalleryWorkload()
