"""The search for a linear machine: dual coordinate ascent, and interior points where that is slow.

One row at a time, exactly; every few sweeps a proof (record.py). Columns in very different units make sweeps slow: where the
Newton matrix of interior.py is affordable it takes over after as much time as its steps would have taken.

**Complexity** O(nnz) per sweep, O(n p²) per Newton step, p = min(n, d). **Passes over the data** one per sweep and two per
proof; memory O(n + d), and O(np) where Newton's steps are taken. Sequential.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.centred_rows import CentredRows, DenseCopy
from separatrix.dual.record import ProvenPoint, Record
from separatrix.dual.sweeps import Swept
from separatrix.result import Certificate, Status

Point = tuple[Float, Any, Float]
"""Weights (d,) or (d, K), intercepts, and multipliers (n,) or (n, K)."""

_FIRST_PROOF, _LONG_SINCE = 3, 1.5
_ARRIVES_AT_ONCE, _STIFF, _TINY = 300.0, 1e200, 1e-150
# An intercept's column that is no longer than this many times the rows', squared, is swept like another one where the
# proximal term would leave no more than this share of its way to a sweep.
_NO_LONGER, _SOFT = 4.0, 0.25
# Sweeps before Newton's steps may take over, how many of these a fit takes, and what one flop of a sweep costs of theirs.
_FIRST_SWEEPS, _NEWTON_STEPS, _SLOWER = 20, 30, 10.0
# What a step costs beside its arithmetic, and what one may cost.
_STEP, _AFFORDABLE = 1e6, 4e9
# Of the gap that is asked for: where another sweep or two may be enough.
_NEAR = 100.0
# The gap, of the objective, at which it is plain which rows are on the margin.
_PLAIN = 1e-9


@dataclass(frozen=True)
class LinearDual:
    """Weights and intercepts as they are published, and the proof of these."""

    w: Float
    b: Any
    status: Status
    certificate: Certificate
    sweeps: int
    """Sweeps and Newton's steps."""
    passes: int
    trace: list[dict[str, Any]]
    alpha: Float | None
    """The multipliers of the bound, where they are kept."""


class Ascent(ABC):
    """Dual coordinate ascent on one machine, from zero."""

    settled = False
    """Whether the last sweep moved nothing, so that a proof has to decide how to go on."""

    long_since = _LONG_SINCE
    """A proof is due after so many times the sweeps before the last one."""

    @property
    @abstractmethod
    def point(self) -> Point:
        """Where it stands."""

    @abstractmethod
    def sweeps(self, rng: np.random.Generator, value: float, most: int, begun: int) -> Swept:
        """At most so many sweeps, ended by one after which a proof is due if it is not before the one numbered `begun`.

        `value` is that of the dual before them.
        """

    @abstractmethod
    def is_due(self, rise: float, value: float) -> bool:
        """Whether a proof, which costs two sweeps, is worth its while after this rise of the dual to this value."""

    @abstractmethod
    def after_proof(self, point: ProvenPoint, rise: float, value: float) -> bool:
        """Take note of a proof; whether there is nothing left to sweep."""

    def without_proof(self) -> None:  # noqa: B027  # nothing to do is the rule
        """After a sweep that was not followed by a proof."""


class DualMachine(ABC):
    """A linear machine to be fitted: what it proves, and the steps that lead to it."""

    rows: CentredRows
    price: Float
    """(n,) Cᵢ > 0."""
    scaling: float | None
    """The intercept is the weight of a column of this value, penalised like the others; None: not penalised; 0: none."""

    @property
    def n_scores(self) -> int:
        """Scores of one row."""
        return 1

    @abstractmethod
    def prove(self, w: Float, beta: Any, alpha: Float) -> ProvenPoint:
        """The primal at the published coefficients, and the bound that α gives. Two passes."""

    @abstractmethod
    def ascent(self, record: Record) -> Ascent:
        """The sweeps, from zero."""

    @abstractmethod
    def interior_points(self, copy: DenseCopy) -> Iterator[Point]:
        """Newton's steps, in the coordinates of the dense copy of the rows."""

    def row_points(self) -> Iterator[Point] | None:
        """Newton's steps on the rows' side, where they are to be had: points of X itself."""
        return None

    @property
    def step_cost(self) -> float:
        """Multiplications of a Newton step."""
        n, p = len(self.price), min(self.rows.X.shape) * self.n_scores
        return float(n) * p * p + float(p) ** 3 / 3.0

    def on_the_margin(self, copy: DenseCopy, point: Point) -> Point | None:
        """The point by the equations of the rows on the margin, where there are such; in the same coordinates."""
        return None

    @property
    def pull(self) -> float:
        """The curvature of the intercept's penalty; 0 where there is none."""
        return min(_STIFF, max(self.scaling, _TINY) ** -2.0) if self.scaling else 0.0

    @property
    def reach(self) -> tuple[float, float]:
        """How far an intercept moves for a change of α, and the share κ of it that a sweep's end leaves: see linear_machine.py.

        The primal's curvature along b is of the size of ΣC; an r of a few hundred over it makes the centre arrive at once, and
        a larger one would only let b swing with every row.
        """
        if self.scaling == 0.0:
            return 0.0, 0.0
        size = float(self.rows.squares.mean()) or 1.0
        r = min(size, _ARRIVES_AT_ONCE / float(self.price.sum()))
        # Beside a proximal term that holds b much faster than the penalty does, b would need many sweeps to arrive.
        if self.scaling and self.pull * r <= _SOFT and self.pull * _NO_LONGER * size >= 1.0:
            return 1.0 / self.pull, 0.0
        return r / (1.0 + self.pull * r), 1.0 / (1.0 + self.pull * r)

    def patience(self, max_iter: int) -> int:
        """Sweeps that are worth a try before Newton's steps; more than `max_iter` where those are not affordable.

        They are given the time that the steps would take, and leave enough iterations, or half of all, for these.
        """
        X, K = self.rows.X, self.n_scores
        n, d = X.shape
        step = self.step_cost + _STEP
        if step > _AFFORDABLE or not self.rows.has_copy:
            return max_iter + 1
        entries = X.nnz if sp.issparse(X) else n * d
        sweep = _SLOWER * 4.0 * entries * K
        return int(
            min(
                max(_FIRST_SWEEPS, _NEWTON_STEPS * step / max(1.0, sweep)),
                max(max_iter // 2, max_iter - 2 * _NEWTON_STEPS),
            )
        )

    def solve(
        self,
        tol: float,
        max_iter: int,
        seed: int = 0,
        callback: Any = None,
        *,
        direct: bool = False,
        stop: Event | None = None,
        near: tuple[ProvenPoint, int] | None = None,
    ) -> LinearDual:
        """Iterate until the proven gap is at most `tol` times the primal objective.

        `max_iter` limits sweeps and Newton's steps together; `direct` takes the latter from the start, where they are
        affordable, and to the last digits. `stop` ends the work when another thread's Ctrl-C sets it, and is set by one here.
        `near` is a point that may be good enough, with its proof, and the steps that led to it.
        """
        search = _Search(self, Record(tol), max_iter, callback, stop or Event())
        record, status = search.record, Status.MAX_ITER
        try:
            if near is not None:
                search.begin(*near)
            sweeps = max_iter + 1 if record.finished else self.patience(max_iter)
            if not record.finished and (not direct or sweeps > max_iter):
                status = search.sweep(min(sweeps, max_iter), np.random.default_rng(seed))
            if sweeps <= max_iter and not record.finished and status is not Status.INTERRUPTED:
                status = search.step(direct)
        except KeyboardInterrupt:
            search.stop.set()
            status = Status.INTERRUPTED
        return search.ended(status)

    def few_sweeps(self, max_iter: int) -> int:
        """A quarter of the sweeps that are worth a try, or some."""
        return min(max_iter, max(_FIRST_SWEEPS, self.patience(max_iter) // 4))

    def try_sweeps(self, tol: float, max_iter: int, seed: int, stop: Event) -> LinearDual | None:
        """The fit, if `few_sweeps` are enough.

        Where slack is cheap nearly all α end at their bounds, and sweeps find that at once.
        """
        search = _Search(self, Record(tol), self.few_sweeps(max_iter), None, stop)
        try:
            status = search.sweep(search.max_iter, np.random.default_rng(seed), hopeful=True)
        except KeyboardInterrupt:
            stop.set()
            status = Status.INTERRUPTED
        return search.ended(status) if search.record.finished or status is Status.INTERRUPTED else None


class _Search:
    """The iterations of one fit."""

    def __init__(self, machine: DualMachine, record: Record, max_iter: int, callback: Any, stop: Event) -> None:
        self.machine, self.record, self.max_iter, self.callback, self.stop = machine, record, max_iter, callback, stop
        self.iterations, self.passes = 0, 1
        self.value, self.proven = (
            0.0,
            10,
        )  # of the dual; the last proof's sweep, the first being due by its rise or by then

    @cached_property
    def ascent(self) -> Ascent:
        """The sweeps, from zero."""
        return self.machine.ascent(self.record)

    def begin(self, point: ProvenPoint, steps: int) -> None:
        """Look at what another method found."""
        self.iterations, self.passes = steps, self.passes + 3 * steps + 2
        self.record.add(point)
        self.record.note(steps, self.callback)

    def prove(self, point: Point) -> ProvenPoint:
        """Look at the data from a point."""
        w, beta, alpha = point
        proven = self.machine.prove(w.copy(), beta, alpha)
        self.look_at(proven)
        return proven

    def look_at(self, point: ProvenPoint) -> None:
        """Take a point that was proven by two passes."""
        self.record.add(point)
        self.passes += 2

    def ended(self, status: Status) -> LinearDual:
        """The best point so far, or where there is none, zero or the last one."""
        record = self.record
        best = record.best or self.prove(self.ascent.point)
        spent = (self.iterations, self.passes)
        return LinearDual(best.w, best.b, record.status(status), record.certificate, *spent, record.trace, record.alpha)

    def sweep(self, limit: int, rng: np.random.Generator, *, hopeful: bool = False) -> Status:
        """Sweeps of dual coordinate ascent; `hopeful` ones end with the first proof that they did not come near."""
        ascent, record, status = self.ascent, self.record, Status.MAX_ITER
        gap = np.inf
        while self.iterations < limit:
            if self.stop.is_set():
                status = Status.INTERRUPTED
                break
            rise, due = self._sweep_on(limit, rng)
            if due:
                since, self.proven = self.iterations - self.proven, self.iterations
                point = self.prove(ascent.point)
                if record.finished or ascent.after_proof(point, rise, self.value):
                    return Status.STALLED
                if hopeful and record.gap > _NEAR * record.goal:
                    return Status.MAX_ITER
                if limit < self.max_iter and self.proven >= _FIRST_SWEEPS and math.isfinite(gap) and record.goal > 0.0:
                    # At the rate of the last sweeps there is more to go than they are given.
                    rate = math.log(max(gap / record.gap, 1.0 + 1e-9)) / max(1, since)
                    if math.log(record.gap / record.goal) > rate * (limit - self.proven):
                        return Status.MAX_ITER
                gap = record.gap
            else:
                ascent.without_proof()
            record.note(self.iterations, self.callback)
        self.prove(ascent.point)
        return status

    def _sweep_on(self, limit: int, rng: np.random.Generator) -> tuple[float, bool]:
        """The rise of the dual in the last of some sweeps, and whether a proof is due."""
        ascent = self.ascent
        late = max(_FIRST_PROOF, math.ceil(ascent.long_since * self.proven))
        most = 1 if self.callback else max(1, min(limit, late) - self.iterations)
        swept = ascent.sweeps(rng, self.value, most, _FIRST_PROOF - self.iterations)
        self.value += swept.total
        self.iterations, self.passes = self.iterations + swept.count, self.passes + swept.count
        due = ascent.is_due(swept.rise, self.value) or self.iterations >= ascent.long_since * self.proven
        return swept.rise, ascent.settled or (self.iterations >= _FIRST_PROOF and due)

    def sweep_until_due(self, rng: np.random.Generator) -> None:
        """Sweeps before the first proof."""
        while self.iterations < self.max_iter and not self.stop.is_set():
            if self._sweep_on(self.max_iter, rng)[1]:
                break
            self.ascent.without_proof()

    def step(self, fine: bool) -> Status:
        """Newton's steps between the bounds; at last the equations of the margin, where `fine` digits are asked for."""
        machine, record = self.machine, self.record
        own = machine.row_points()
        copy = None if own is not None else machine.rows.dense_copy
        record.change_method()
        points, last = own if copy is None else machine.interior_points(copy), None
        assert points is not None
        while self.iterations < self.max_iter:
            if self.stop.is_set():
                return Status.INTERRUPTED
            with np.errstate(all="ignore"):  # what is not finite ends the steps
                found = next(points, None)
                if found is None:
                    break
                last, point = found, found if copy is None else (*copy.back(found[0], found[1]), found[2])
            self.iterations, self.passes = self.iterations + 1, self.passes + 6
            self.prove(point)
            record.note(self.iterations, self.callback)
            plain = not fine or record.gap <= _PLAIN * (0.0 if record.best is None else record.best.value)
            if (record.finished and plain) or record.stalled:
                break
        else:
            return Status.MAX_ITER
        exact = machine.on_the_margin(copy, last) if fine and copy is not None and last is not None else None
        if copy is not None and exact is not None and all(np.isfinite(part).all() for part in exact):
            record.prefer(machine.prove(*copy.back(exact[0], exact[1]), exact[2]))
        return Status.STALLED


def try_together(
    machines: Sequence[DualMachine],
    prove: Callable[[list[Point]], list[ProvenPoint]],
    tol: float,
    max_iter: int,
    seeds: Sequence[int],
    stop: Event,
) -> list[LinearDual | None]:
    """`DualMachine.try_sweeps` of several machines, with one proof for all of them."""
    searches = [_Search(machine, Record(tol), machine.few_sweeps(max_iter), None, stop) for machine in machines]

    def sweep(at: int) -> None:
        searches[at].sweep_until_due(np.random.default_rng(seeds[at]))

    try:
        in_parallel(sweep, range(len(searches)), stop)
    except KeyboardInterrupt:
        stop.set()
    for search, point in zip(searches, prove([search.ascent.point for search in searches]), strict=True):
        search.look_at(point)
    return [search.ended(Status.STALLED) if search.record.finished else None for search in searches]
