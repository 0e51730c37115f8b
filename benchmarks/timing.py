"""Time contenders in one process, taking turns, and hold each to the same quality.

A contender with a ladder first climbs it (`ladder.py`); the last fit of the climb is its warm-up, not counted. A quick one is
fitted once more, so that batches are as long for all. Then round after round, each contender once: whatever slows the machine
for a while slows all of them. Quick fits are timed in batches. The error is checked outside the timed stretch; one that misses
the quality in a round climbs on and begins again, or is marked.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from benchmarks.contender import Contender
from benchmarks.ladder import climb
from benchmarks.result import FAILED, MISSED_QUALITY, NOT_INSTALLED, OK, Row, one_line
from benchmarks.workload import Check, FitWorkload, load

if TYPE_CHECKING:
    from benchmarks.data import Data

SLOW_SECONDS = 5.0
SLOW_REPEATS = 2
HOPELESS = 10.0  # times the best first run: not repeated, its first run stands
BATCH_SECONDS = 0.02
# A fit that took no longer may have spent most of it on loading code.
FIRST_SECONDS = 0.25
# Idle BLAS threads spin for some milliseconds before they sleep; without a pause one contender's would slow the next.
PAUSE_SECONDS = 0.05


def alternate(
    contenders: Sequence[Contender],
    data: Data,
    check: Check,
    tolerance: float,
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Row]:
    """A row for each contender. One whose warm-up takes more than 5 s is timed twice, a hopeless one never again."""
    lanes = [_Lane(contender, data, check, tolerance, clock) for contender in contenders]
    best = math.inf
    for lane in lanes:
        lane.climb(best=best)
        best = min(best, lane.warm_up if lane.row.status == OK else math.inf)
    for lane in lanes:
        lane.plan(repeats, best)
    for _ in range(repeats):
        for lane in lanes:
            lane.turn()
    return [lane.row for lane in lanes]


class _Lane:
    """One contender on the way: its row, the rung it stands on, the turns that it has left."""

    def __init__(
        self, contender: Contender, data: Data, check: Check, tolerance: float, clock: Callable[[], float]
    ) -> None:
        self.contender, self.data, self.check, self.tolerance, self.clock = contender, data, check, tolerance, clock
        self.row = Row(contender.name, contender.role, contender.default, note=contender.note)
        if not contender.peer.installed:
            self.row.status = NOT_INSTALLED
        self.warm_up = math.inf
        self.left = 0
        self.batch = 1

    def climb(self, first: int = 0, best: float = math.inf) -> None:
        """Up the ladder from rung `first` to the loosest that reaches the quality; a peer that is hopeless by then stops."""
        last = 0.0

        def fit(rung: float | None) -> tuple[float, float] | None:
            nonlocal last
            if last > max(HOPELESS * best, SLOW_SECONDS) and self.contender.role == "peer":
                self.row.note = f"{HOPELESS:g} times slower than the best before it reaches it; {self.row.note}".rstrip(
                    "; "
                )
                return None
            done = self._fit(rung)
            last = done[0] if done else 0.0
            return done

        climbed = climb(self.contender.rungs[first:], self.tolerance, fit)
        found = climbed.reached or climbed.nearest
        if found is None:
            return
        self.row.rung, self.warm_up = found.rung, found.seconds
        self.row.error = found.error if math.isfinite(found.error) else None
        self.row.status = OK if climbed.reached else MISSED_QUALITY
        if climbed.reached and found.seconds < FIRST_SECONDS:  # it may have loaded code; how many fill a batch?
            again = self._fit(found.rung)
            self.warm_up = min(found.seconds, again[0]) if again else found.seconds

    def plan(self, repeats: int, best: float) -> None:
        if self.row.status in (NOT_INSTALLED, FAILED):
            return
        hopeless = self.contender.role == "peer" and self.warm_up > max(HOPELESS * best, 1.0)
        if hopeless:
            self.row.seconds = [self.warm_up]
        self.left = 0 if hopeless else min(repeats, SLOW_REPEATS) if self.warm_up > SLOW_SECONDS else repeats
        self.batch = max(1, int(BATCH_SECONDS / self.warm_up)) if self.warm_up > 0 else 1

    def turn(self) -> None:
        if not self.left:
            return
        self.left -= 1
        done = self._fit(self.row.rung, self.batch)
        if done is None:
            return
        seconds, error = done
        reached = error <= self.tolerance
        rungs = self.contender.rungs
        if not reached and self.row.status == OK and (above := rungs.index(self.row.rung) + 1) < len(rungs):
            self.row.seconds = []
            self.climb(above)
            return
        self.row.seconds.append(seconds)
        self.row.status = OK if reached and self.row.status == OK else MISSED_QUALITY
        self.row.error = max(error, self.row.error or 0.0) if math.isfinite(error) else None

    def _fit(self, rung: float | None, batch: int = 1) -> tuple[float, float] | None:
        """Seconds of one fit, and its error; None if it cannot run."""
        if self.row.status in (NOT_INSTALLED, FAILED):
            return None
        gc.collect()
        time.sleep(PAUSE_SECONDS)
        try:
            models = [self.contender.build(rung) for _ in range(batch)]
            start = self.clock()
            for model in models:
                model.fit(self.data.X, self.data.y)
            seconds = (self.clock() - start) / batch
            return seconds, float(self.check(models[-1]))
        except Exception as problem:  # one peer that breaks must not end the race
            self.row.status, self.row.note = FAILED, one_line(problem)
            return None


def in_child(module: str, scale: float, repeats: int) -> dict[str, Any]:
    """Make the data of the workload and time its contenders, in this process."""
    workload: FitWorkload = load(module)
    data = workload.data(scale)
    rows = alternate(workload.contenders, data, workload.check(data), workload.tolerance, repeats)
    return {"rows": [asdict(row) for row in rows], "data": data.description, "x_bytes": data.x_bytes}
