"""Time contenders in one process, taking turns, and hold each to the same quality.

A warm-up fit each, not counted; then round after round, each contender once. Whatever slows the machine for a
while slows all of them. The error of every fit is checked, outside the timed stretch; the worst one counts.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from benchmarks.contender import Contender
from benchmarks.result import FAILED, MISSED_QUALITY, NOT_INSTALLED, OK, Row, one_line
from benchmarks.workload import Check, FitWorkload, load

if TYPE_CHECKING:
    from benchmarks.data import Data

SLOW_SECONDS = 5.0
SLOW_REPEATS = 2
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
    """A row for each contender. One whose warm-up takes more than 5 s is timed twice at most."""
    rows = [Row(c.name, c.role, c.default, note=c.note) for c in contenders]
    rounds: list[int] = []
    for contender, row in zip(contenders, rows, strict=True):
        if not contender.peer.installed:
            row.status = NOT_INSTALLED
        warm_up = _fit(contender, row, data, check, tolerance, clock)
        slow = warm_up is not None and warm_up > SLOW_SECONDS
        rounds.append(min(repeats, SLOW_REPEATS) if slow else repeats)
    for turn in range(repeats):
        for contender, row, last in zip(contenders, rows, rounds, strict=True):
            seconds = _fit(contender, row, data, check, tolerance, clock) if turn < last else None
            if seconds is not None:
                row.seconds.append(seconds)
    return rows


def _fit(
    contender: Contender, row: Row, data: Data, check: Check, tolerance: float, clock: Callable[[], float]
) -> float | None:
    """Seconds of one fit, its error noted in the row; None if it cannot run."""
    if row.status in (NOT_INSTALLED, FAILED):
        return None
    gc.collect()
    time.sleep(PAUSE_SECONDS)
    try:
        model = contender.build()
        start = clock()
        model.fit(data.X, data.y)
        seconds = clock() - start
        error = float(check(model))
    except Exception as problem:  # one peer that breaks must not end the race
        row.status, row.note = FAILED, one_line(problem)
        return None
    reached = error <= tolerance and row.status == OK
    row.status = OK if reached else MISSED_QUALITY
    row.error = max(error, row.error or 0.0) if math.isfinite(error) else None
    return seconds


def in_child(module: str, scale: float, repeats: int) -> dict[str, Any]:
    """Make the data of the workload and time its contenders, in this process."""
    workload: FitWorkload = load(module)
    data = workload.data(scale)
    rows = alternate(workload.contenders, data, workload.check(data), workload.tolerance, repeats)
    return {"rows": [asdict(row) for row in rows], "data": data.description, "x_bytes": data.x_bytes}
