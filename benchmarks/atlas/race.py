"""One problem, raced in this process: our tight fit for the reference, then every entrant up its ladder, then rounds in turns.

    ratio = median seconds of the best peer at the quality / our median seconds at the quality

A fit has a time limit, a multiple of the best time so far. Python's own loops end by an alarm; compiled ones do not hear
it, so the process tells its supervisor (`worker.py`) what it begins and is killed when that overruns, and the problem begins
again in a new one, without what was cut off and with the rungs that are known.
"""

from __future__ import annotations

import gc
import math
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.atlas.draw import Problem
from benchmarks.atlas.field import field as field_of
from benchmarks.atlas.quality import ITERATIVE, REFERENCE_TOL, Quality, quality
from benchmarks.atlas.rows import make
from benchmarks.contender import Contender
from benchmarks.data import Data
from benchmarks.ladder import Climb, climb
from benchmarks.result import one_line

REACHED, SHORT, CUT, BROKEN = "reached", "short of the quality", "cut off", "failed"
LONGEST = 5.0  # seconds of any fit
PATIENCE = 4.0  # a peer may take so many times the best time
LEAST = 0.3  # and always this long
STEPS = 2.0  # times the limit of a fit that a climb may take in all
HOPELESS = 3.0  # a peer so many times slower than the best is not repeated
LOADED = 2.5  # seconds that a first fit of ours may take with what it compiles, to be judged by its second
SLOW = 1.0  # seconds after which what is not close to ours is not repeated
CLOSE = 1.5
PAUSE = 0.01  # idle BLAS threads spin for some milliseconds
Tell = Callable[[dict[str, Any]], None]


class CutOff(BaseException):
    """Not an Exception: no library may catch it by the way."""


@dataclass
class Lane:
    """What is known of one entrant."""

    entrant: Contender
    status: str = SHORT
    rung: float | None = None
    value: float = float("inf")  # of the last fit of the climb
    error: float = float("inf")
    seconds: list[float] = field(default_factory=list)
    limit: float = 0.0
    note: str = ""

    @property
    def median(self) -> float:
        return median(self.seconds)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.entrant.name,
            "ours": self.entrant.ours,
            "status": self.status,
            "rung": self.rung,
            "error": self.error if self.error < 1e300 else None,
            "seconds": self.median if self.seconds else None,
            "repeats": len(self.seconds),
            "limit": self.limit,
            "note": self.note,
        }


def race(problem: Problem, known: dict[str, int], cut: dict[str, float], tell: Tell) -> list[dict[str, Any]]:
    """A row per entrant. `known` are rungs to begin with, `cut` the limits that entrants overran in a process before."""
    warnings.simplefilter("ignore")
    data = make(problem)
    track = Track(data, quality(problem, data), tell)
    lanes = [Lane(each) for each in field_of(problem)]
    gc.collect()
    gc.freeze()  # what is loaded by now need not be looked through before every fit
    if problem.estimator in ITERATIVE:
        _reference(problem, lanes[0].entrant, track, cut)
    for lane in lanes:
        if lane.entrant.name in cut:
            lane.status, lane.limit = CUT, cut[lane.entrant.name]
            continue
        _climb(lane, lanes, track, known.get(lane.entrant.name, 0))
    _judge_again(lanes, track)
    _rounds(lanes, track)
    return [lane.to_json() for lane in lanes]


@dataclass
class Track:
    """Where fits are timed and judged."""

    data: Data
    quality: Quality
    tell: Tell

    def run(
        self, entrant: Contender, rung: float | None, limit: float, purpose: str, batch: int = 1
    ) -> tuple[float, Any]:
        """The least seconds of `batch` fits and the last model; `CutOff` when they take longer than the limit."""
        gc.collect()
        time.sleep(PAUSE)
        self.tell({"event": "begin", "name": entrant.name, "limit": limit, "purpose": purpose})
        begun = time.process_time()

        def ring(number: int, frame: Any) -> None:
            nonlocal begun
            if _compiling():  # once on a machine, and no part of the fit: its time begins anew
                begun = time.process_time()
                self.tell({"event": "begin", "name": entrant.name, "limit": limit, "purpose": purpose})
            left = limit / 2 - (time.process_time() - begun)
            if left <= 0:
                raise CutOff
            signal.setitimer(signal.ITIMER_REAL, left)  # it waited for a processor that others had

        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, limit)
        seconds, model = math.inf, None
        try:
            for _ in range(batch):
                model = entrant.build(rung)
                start = time.perf_counter()
                model.fit(self.data.X, self.data.y)
                seconds = min(seconds, time.perf_counter() - start)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            self.tell({"event": "end"})
        return seconds, model


def _compiling() -> bool:
    """Whether numba compiles in this process, for ours or for a peer."""
    locks = sys.modules.get("numba.core.compiler_lock")
    return locks is not None and bool(locks.global_compiler_lock.is_locked())


def _reference(problem: Problem, ours: Contender, track: Track, cut: dict[str, float]) -> None:
    """Our fit to a proven 1e-8, of every aim there is; whoever finds better replaces it."""
    aims = {ours.aim: ours}
    if ours.aim == "free":
        from benchmarks.atlas.field import entrant
        from benchmarks.contender import OURS

        loss = "hinge" if problem.estimator == "hinge" else "squared_hinge"
        aims[""] = entrant(OURS, "", "separatrix:LinearSVC", C=problem.strength, loss=loss, intercept_scaling=1.0)
    for aim, each in aims.items():
        if f"reference {aim}" in cut:
            continue
        try:
            _, model = track.run(each, REFERENCE_TOL, LONGEST, f"reference {aim}")
            track.quality.see(model, aim)
        except (Exception, CutOff):  # no reference from us then: the best of the others is one
            track.tell({"event": "cut", "name": f"reference {aim}", "limit": LONGEST})


def _climb(lane: Lane, lanes: list[Lane], track: Track, first: int) -> None:
    done = [each.median for each in lanes if each.status == REACHED and each.seconds]
    lane.limit = min(LONGEST, max(LEAST, PATIENCE * min(done))) if done else LONGEST
    entrant = lane.entrant

    spent = 0.0

    def fit(rung: float | None) -> tuple[float, float] | None:
        nonlocal spent
        if spent > STEPS * lane.limit:
            lane.status = CUT
            return None
        try:
            seconds, model = track.run(entrant, rung, lane.limit, "climb")
            value = track.quality.see(model, entrant.aim)
            if seconds < (LOADED if entrant.ours else 0.25):  # the first fit also loads code, or compiles it
                seconds = min(seconds, track.run(entrant, rung, lane.limit, "climb")[0])
        except CutOff:
            lane.status = CUT
            track.tell({"event": "cut", "name": entrant.name, "limit": lane.limit})
            return None
        except Exception as problem:  # one that breaks must not end the race
            lane.status, lane.note = BROKEN, one_line(problem)
            return None
        spent += seconds
        lane.value = value
        return seconds, track.quality.error(value, entrant.aim)

    _settle(lane, climb(entrant.rungs[first:], track.quality.limit, fit))
    if lane.status == REACHED:
        track.tell({"event": "climbed", "name": entrant.name, "index": entrant.rungs.index(lane.rung)})


def _settle(lane: Lane, climbed: Climb) -> None:
    found = climbed.reached or climbed.nearest
    if found is not None:
        lane.rung, lane.error, lane.seconds = found.rung, found.error, [found.seconds]
    if climbed.reached is not None:
        lane.status = REACHED


def _judge_again(lanes: list[Lane], track: Track) -> None:
    """An optimum found late may show an earlier answer to be short: it climbs again."""
    for lane in lanes:
        if lane.status != REACHED or track.quality.exact:
            continue
        if track.quality.error(lane.value, lane.entrant.aim) <= track.quality.limit:
            continue
        lane.error = track.quality.error(lane.value, lane.entrant.aim)
        lane.status = SHORT
        _climb(lane, lanes, track, lane.entrant.rungs.index(lane.rung) + 1)


def _rounds(lanes: list[Lane], track: Track) -> None:
    """Ours and those in reach of the best take turns; small fits are timed in batches, of which the least counts."""
    running = [lane for lane in lanes if lane.status == REACHED]
    ours = next((lane.median for lane in running if lane.entrant.ours), 0.0)
    best = min((lane.median for lane in running if not lane.entrant.ours), default=0.0)

    def repeated(lane: Lane) -> bool:
        """Whether another run could change the ratio, and is cheap enough for what it could change."""
        quick = lane.median < SLOW and lane.median <= HOPELESS * best
        return lane.entrant.ours or quick or lane.median <= CLOSE * min(best, 2 * ours)

    running = [lane for lane in running if repeated(lane)]
    first = {lane.entrant.name: lane.median for lane in running}
    turns = {name: 7 if s < 0.1 else 5 if s < 0.5 else 3 if s < 2.0 else 2 for name, s in first.items()}
    for lane in running:
        lane.seconds = []
    for turn in range(max(turns.values(), default=0)):
        for lane in running:
            name = lane.entrant.name
            if turn < turns[name]:
                batch = max(1, min(10, int(0.02 / first[name])))
                try:
                    lane.seconds.append(track.run(lane.entrant, lane.rung, LONGEST, "round", batch)[0])
                except CutOff:  # it has taken less before: the machine is busy
                    lane.seconds.append(LONGEST)
