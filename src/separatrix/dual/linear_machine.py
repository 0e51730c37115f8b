"""The linear soft-margin machine.

    primal  ½‖w‖² + Σ Cᵢ max(0, 1 − ỹᵢ(wᵀxᵢ + b))ᵖ,  p = 1 or 2          dual  Σ αᵢ − ½‖Σ αᵢỹᵢxᵢ‖² − ½Σ Dᵢαᵢ²,   0 ≤ αᵢ ≤ Uᵢ

An intercept without a penalty demands Σ αᵢỹᵢ = 0: b is its multiplier, and sweeps (sweeps.py) solve the problem with the
proximal term (b − b̄)²/2r, the centre b̄ moving to b after every sweep; with the penalty b²/2s² beside it where there is one,
so that b = κb̄ + r'Σ αᵢỹᵢ, 1/r' = 1/r + 1/s², κ = r'/r. linear_search.py has the loop, linear_proof.py the proof.

Reference: Hsieh et al. (2008), ICML; Rockafellar (1976), Mathematics of Operations Research 1 (proximal point).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event

import numpy as np
import scipy.sparse as sp

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.active_set import newton_steps, row_newton
from separatrix.dual.at_hand.conjugate import conjugate_points
from separatrix.dual.at_hand.few_columns import ALONE, factored_points, products_of_columns
from separatrix.dual.at_hand.few_rows import paired_points, pairs_gram
from separatrix.dual.centred_rows import CentredRows, DenseCopy
from separatrix.dual.interior import interior_points, on_the_margin, with_intercept
from separatrix.dual.interior_batch import hinge_gaps, hinge_optimum, interior_optima, is_looped
from separatrix.dual.linear_proof import Sides
from separatrix.dual.linear_search import Ascent, DualMachine, LinearDual, Point, try_together
from separatrix.dual.record import ProvenPoint, Record
from separatrix.dual.sweeps import ActiveRows, Swept, Until

# The gap to reach on the rows' side, of what is asked for; another step of interior points is a tenth of their cost.
_INNER, _INNER_HINGE = 0.1, 0.01
# Of the rise of the dual at which a proof may be expected to pass.
_SURE, _SELDOM, _LATE = 0.2, 3.0, 1e9
# Numbers that are kept with all rows, of machines that are solved at once.
_TOGETHER = 16_384
# The share of rows outside the margin of the weights with all α at their bounds, up to which sweeps are worth a try.
_CHEAP = 0.2
# Seconds that compiled interior points save, at least and for every row.
_SAVED_HINGE, _SAVED_A_ROW = 3e-3, 1.5e-6
# Multiplications that take as long as one of two stored entries, and as what else a step of interior points does with a row.
_PAIR, _PER_ROW = 12.0, 3000.0
# The gap, of the objective, at which it is plain which rows are on the margin; and one that is nothing but rounding.
_PLAIN, _ROUNDED = 1e-9, 1e-13


@dataclass(frozen=True)
class LinearMachine(DualMachine):
    """A machine between two sides, to be fitted."""

    rows: CentredRows
    signs: Float  # (n,) ỹ = ±1
    price: Float  # (n,) Cᵢ > 0
    power: int  # of the slack: 1 or 2
    scaling: float | None  # see `DualMachine`

    @property
    def ridge(self) -> Float:
        """(n,) D."""
        return np.zeros(len(self.price)) if self.power == 1 else 0.5 / self.price

    @property
    def upper(self) -> Float:
        """(n,) U."""
        return self.price if self.power == 1 else np.full(len(self.price), np.inf)

    def ascent(self, record: Record) -> Ascent:
        return _HingeAscent(self, record)

    def interior_points(self, copy: DenseCopy) -> Iterator[Point]:
        return interior_points(copy.A, copy.penalty, self.signs, self.price, self.power, self.scaling)

    @property
    def is_narrow(self) -> bool:
        """Whether dense rows have so few columns that a step takes longer to call than to compute."""
        return not sp.issparse(self.rows.X) and products_of_columns(self.rows) <= ALONE

    @property
    def has_cheap_slack(self) -> bool:
        """Whether most rows are inside the margin even of w = Σ Cᵢỹᵢxᵢ: nearly all α end at C then, and sweeps find that."""
        heights = self.rows.scores(self.rows.products(self.price * self.signs))
        return bool((self.signs * heights > 1.0).mean() <= _CHEAP)

    @property
    def _on_rows(self) -> bool:
        return self.power == 2 and self.rows.has_row_gram

    def row_points(self) -> Iterator[Point] | None:
        if not self._on_rows:
            return None
        steps = row_newton(self.rows.row_gram, self.signs, self.price, None if self.scaling == 0.0 else self.pull)
        return ((self.rows.products(gamma), b, alpha) for gamma, b, alpha in steps)

    @property
    def step_cost(self) -> float:
        if self._on_rows:
            return len(self.price) ** 3 / 9.0
        if self.power == 1 and self.rows.has_sparse_copy:
            n, d = self.rows.X.shape
            return _PAIR * self.rows.X.nnz**2 / n + _PER_ROW * n + float(d) ** 3 / 3.0
        return super().step_cost

    def on_the_margin(self, copy: DenseCopy, point: Point) -> Point | None:
        if self.power != 1:
            return None
        return on_the_margin(copy.A, copy.penalty, self.signs, self.price, self.scaling, point)

    def prove(self, w: Float, beta: float, alpha: Float) -> ProvenPoint:
        return _together([self]).prove(w[None], np.array([beta]), alpha[None])[0]


def _together(machines: Sequence[LinearMachine]) -> Sides:
    """Machines on the same rows, to be proven at once."""
    first, signs = machines[0], np.array([machine.signs for machine in machines])
    return Sides(first.rows, signs, first.price, first.power, first.scaling, first.pull)


def near_optima(
    machines: Sequence[LinearMachine],
    tol: float,
    max_iter: int,
    stop: Event,
    *,
    fine: bool,
    conjugate: bool = False,
    only_pairs: bool = False,
) -> list[tuple[ProvenPoint, int]]:
    """Points that are likely to be optimal, with their proofs, of machines on the same rows; and the steps that led there.

    By Newton's method for the squared hinge, by interior points for the hinge, and on the rows' side where the rows are few;
    there are none where these are not to be had. `conjugate` gradients take Newton's steps for the squared hinge on sparse rows
    as they are stored. `only_pairs` of rows are tried where other methods would take too long. `fine` asks for the last digits;
    Ctrl-C sets `stop`.
    """
    rows, power = machines[0].rows, machines[0].power
    if rows.single:  # a Gram matrix in single precision proves how much it is worth
        proven = _row_optima(machines, max_iter, stop)
        if stop.is_set() or (proven and all(p.upper - p.lower <= tol * p.value for p, _ in proven)):
            return proven
        rows = rows.precise
    gram = pairs_gram(machines[0])
    if gram is not None:
        pairs, violation = paired_points(machines, gram, max_iter, stop)
        proven = _all_proven(machines, pairs) if pairs else []
        # What is left of the gap of rows without a violation is the rounding that is counted, for other methods too.
        enough = min(tol, _PLAIN) if fine and violation > _PLAIN else tol
        if proven and all(p.upper - p.lower <= enough * p.value for p, _ in proven):
            return proven
    if only_pairs or stop.is_set():
        return []
    factor = rows.factor
    inner = machines if factor is None else [replace(machine, rows=factor.rows) for machine in machines]
    goal = _PLAIN if fine else max(_ROUNDED, _INNER_HINGE * tol)
    if power == 2:
        goal = 0.0 if fine else _INNER * tol
    method = conjugate_points if conjugate else _newton_points if power == 2 else _interior_points

    points = factored_points(inner, goal, max_iter, stop) if method is _newton_points else []
    if not points:
        parts = _parts(inner, apart=_is_worth_threads(inner))
        found: list[list[tuple[Point, int]]] = [[] for _ in parts]

        def search(at: int) -> None:
            found[at] = method(parts[at], goal, max_iter, stop, fine)

        in_parallel(search, range(len(parts)), stop)
        points = [each for part in found for each in part]
    if len(points) < len(machines) or stop.is_set():
        return []
    if factor is not None:
        W = rows.products(factor.multipliers(np.array([point[0] for point, _ in points]).T)).T
        points = [((np.ascontiguousarray(w), *point[1:]), count) for w, (point, count) in zip(W, points, strict=True)]
    return _all_proven(machines, points)


def _all_proven(machines: Sequence[LinearMachine], points: list[tuple[Point, int]]) -> list[tuple[ProvenPoint, int]]:
    """The points with their proofs, and the steps that led there."""
    W, beta, alpha = (np.array([point[part] for point, _ in points]) for part in range(3))
    return list(zip(_proven(machines, W, beta, alpha), [count for _, count in points], strict=True))


def _row_optima(machines: Sequence[LinearMachine], max_iter: int, stop: Event) -> list[tuple[ProvenPoint, int]]:
    """Where Newton's method ends on the rows' side for machines of the squared hinge; none where one did not end."""
    first, n = machines[0], len(machines[0].price)
    gram, pull = first.rows.gram, None if first.scaling == 0.0 else first.pull
    gamma, beta, alpha = np.zeros((len(machines), n)), np.zeros(len(machines)), np.zeros((len(machines), n))
    steps = [0] * len(machines)
    assert gram is not None

    def search(at: int) -> None:
        for point in row_newton(gram, machines[at].signs, first.price, pull):
            gamma[at], beta[at], alpha[at] = point
            steps[at] += 1
            if stop.is_set() or steps[at] >= max_iter:
                break

    in_parallel(search, range(len(machines)), stop)
    if stop.is_set() or not (all(steps) and np.isfinite(gamma).all()):
        return []
    W = first.rows.products(gamma.T).T if len(gamma) > 1 else first.rows.products(gamma[0])[None]
    return list(zip(_proven(machines, np.ascontiguousarray(W), beta, alpha), steps, strict=True))


def _proven(machines: Sequence[LinearMachine], W: Float, beta: Float, alpha: Float) -> list[ProvenPoint]:
    """The proofs of machines on the same rows, at points (K, d), (K,), (K, n)."""
    parts = _parts(machines)
    size = len(parts[0])
    proven: list[list[ProvenPoint]] = [[] for _ in parts]

    def prove(part: int) -> None:
        at = slice(part * size, (part + 1) * size)
        proven[part] = _together(parts[part]).prove(W[at], beta[at], alpha[at])

    in_parallel(prove, range(len(parts)))
    return [point for part in proven for point in part]


def try_sweeps(
    machines: Sequence[LinearMachine], tol: float, max_iter: int, seeds: Sequence[int], stop: Event
) -> list[LinearDual | None]:
    """The fits of machines on the same rows for which a few sweeps are enough."""

    def prove(points: list[Point]) -> list[ProvenPoint]:
        W, beta, alpha = (np.array(part) for part in zip(*points, strict=True))
        return _proven(machines, W, beta, alpha)

    return try_together(machines, prove, tol, max_iter, seeds, stop)


def _is_worth_threads(machines: Sequence[LinearMachine]) -> bool:
    """Whether machines of the hinge are solved one by one, in compiled loops that take longer than threads do to begin."""
    first, (n, d), K = machines[0], machines[0].rows.X.shape, len(machines)
    looped = first.power == 1 and is_looped(n, d, max(_SAVED_HINGE, _SAVED_A_ROW * n * K))
    return looped and K * products_of_columns(first.rows) > ALONE


def _parts(machines: Sequence[LinearMachine], *, apart: bool = False) -> list[Sequence[LinearMachine]]:
    """Machines that are few enough for what they keep with every row to stay in cache, or each by itself."""
    size = 1 if apart else max(1, _TOGETHER // len(machines[0].price))
    return [machines[start : start + size] for start in range(0, len(machines), size)]


def _newton_points(
    machines: Sequence[LinearMachine], tol: float, max_iter: int, stop: Event, fine: bool
) -> list[tuple[Point, int]]:
    """Where Newton's method ends for machines of the squared hinge, and its steps."""
    first = machines[0]
    if stop.is_set() or not (first.is_narrow or first.rows.dense_copy is not None):
        return []
    A, rho, back = _dense_rows(first, plain=first.is_narrow)
    d, last = A.shape[1] - (first.scaling != 0.0), None
    signs = np.array([machine.signs for machine in machines])
    try:
        with np.errstate(all="ignore"):  # what is not finite ends the steps
            for last in newton_steps(A, rho, signs, first.price, tol):
                if stop.is_set() or last.steps.max() >= max_iter:
                    break
    except KeyboardInterrupt:
        stop.set()
    if last is None or not np.isfinite(last.theta).all():
        return []
    found = []
    for theta, alpha, steps in zip(last.theta, last.alpha, last.steps, strict=True):
        beta = float(theta[d]) if len(theta) > d else 0.0
        found.append(((*back(theta[:d], beta), alpha), int(steps)))
    return found


def _looped_points(
    machines: Sequence[LinearMachine], tol: float, max_iter: int, stop: Event
) -> list[tuple[Point, int]]:
    """`_interior_points` machine by machine: in compiled code on few columns, near the margin of many rows; none where one
    machine found no way.
    """
    first, found = machines[0], []
    if sp.issparse(first.rows.X) and first.rows.dense_copy is None:
        return []
    A, rho, back = _dense_rows(first)
    d = A.shape[1] - (first.scaling != 0.0)
    try:
        for machine in machines:
            ends = hinge_optimum(A, rho, machine.signs, first.price, tol, max_iter, stop)
            if ends is None or stop.is_set():
                return []
            theta, alpha, steps = ends
            found.append(((*back(theta[:d], float(theta[d]) if len(theta) > d else 0.0), alpha), steps))
    except KeyboardInterrupt:
        stop.set()
        return []
    return found


def _dense_rows(
    machine: LinearMachine, *, plain: bool = True
) -> tuple[Float, Float, Callable[[Float, float], tuple[Float, float]]]:
    """The rows with the column of the intercept, their penalties, and how weights and an intercept of theirs are those of X.

    Dense rows are taken as they are where that will do: `plain`.
    """
    rows, scaling = machine.rows, machine.scaling
    if sp.issparse(rows.X) or not plain:
        copy = rows.dense_copy
        assert copy is not None
        return *with_intercept(copy.A, copy.penalty, scaling), copy.back
    n, d = rows.X.shape
    rho, A = np.ones(d + (scaling != 0.0)), np.ones((n, d + (scaling != 0.0)))
    np.subtract(rows.X, rows.centre, out=A[:, :d])
    rho[d:] = machine.pull
    return A, rho, lambda theta, beta: (theta, beta)


def _interior_points(
    machines: Sequence[LinearMachine], tol: float, max_iter: int, stop: Event, fine: bool
) -> list[tuple[Point, int]]:
    """Where interior points end for machines of the hinge, or `fine` the equations of their margins where these are better."""
    first, (n, d) = machines[0], machines[0].rows.X.shape
    few = first.rows.has_sparse_copy and not fine
    if not few and is_looped(n, d) and (looped := _looped_points(machines, _ROUNDED if fine else tol, max_iter, stop)):
        return looped
    copy = first.rows.sparse_copy if few else first.rows.dense_copy
    if copy is None or stop.is_set():
        return []
    X, rho = with_intercept(copy.A, copy.penalty, first.scaling)
    signs = np.array([machine.signs for machine in machines])
    found: list[tuple[Point, int]] = []
    try:
        with np.errstate(all="ignore"):  # what is not finite is left to the other methods
            ends, duals, steps = interior_optima(X, rho, signs, first.price, tol, max_iter, stop)
            if not (np.isfinite(ends).all() and np.isfinite(duals).all()):
                return []
            for machine, theta, alpha, count in zip(machines, ends, duals, steps, strict=True):
                point = (theta, 0.0, alpha) if X is copy.A else (theta[:-1], float(theta[-1]), alpha)
                exact = machine.on_the_margin(copy, point) if fine else None
                if exact is not None:
                    points = np.array([theta, exact[0] if X is copy.A else np.append(exact[0], exact[1])])
                    gaps = hinge_gaps(X, rho, machine.signs, machine.price, points, np.array([alpha, exact[2]]))
                    point = exact if gaps[1] <= gaps[0] else point
                found.append(((*copy.back(point[0], point[1]), point[2]), int(count)))
    except KeyboardInterrupt:
        stop.set()
        return []
    return found


class _HingeAscent(Ascent):
    """Sweeps over the rows that are not settled, with an intercept that follows after each."""

    def __init__(self, machine: LinearMachine, record: Record) -> None:
        rows, n = machine.rows, len(machine.signs)
        self._record, self._signs = record, machine.signs
        self._reach, self._kept = machine.reach
        self._w, self._beta = np.zeros(rows.X.shape[1]), 0.0
        per_row = (np.arange(n), machine.signs, machine.upper, machine.ridge, rows.squares, np.zeros(n))
        self._all = self._active = ActiveRows(rows.X, rows.centre, *per_row)
        # Proofs that cost more than a few sweeps are for points that are likely to pass.
        self._sure, self.long_since = (1.0, self.long_since) if self._all.is_large else (_SURE, _SELDOM)
        self._pull, self._aim = machine.pull, 0.9 * record.tol
        self._trigger, self._since = self._sure * record.tol, 1  # sweeps since rows were called back
        if self._all.is_looped:  # no proof before these have seen that it is due
            self.long_since = _LATE

    @property
    def point(self) -> Point:
        return self._w, self._beta, self._all.alpha

    def sweeps(self, rng: np.random.Generator, value: float, most: int, begun: int) -> Swept:
        seed = int(rng.integers(1 << 62))
        if self._all.is_looped and most > 1:
            intercept, until = (self._reach, self._kept, self._pull), Until(most, value, 0.0, begun)
            swept, self._beta = self._all.sweeps_to_a_gap(self._w, self._beta, intercept, seed, until, self._aim)
            self.settled, self._since, self._aim = self._all.settled, 1, 0.3 * self._aim
            return swept
        inactive = self._all.alpha.copy()
        inactive[self._active.which] = 0.0
        intercept = (self._reach, self._kept, float(inactive @ self._signs))
        until = Until(most, value, self._trigger, begun)
        swept, self._beta = self._active.sweeps(self._w, self._beta, intercept, seed, until)
        if self._active is not self._all:
            self._all.alpha[self._active.which] = self._active.alpha
        self._since, self.settled = self._since + swept.count, self._active.settled
        return swept

    def is_due(self, rise: float, value: float) -> bool:
        return rise <= self._trigger * value

    def after_proof(self, point: ProvenPoint, rise: float, value: float) -> bool:
        """Call back the rows that are not settled; whether all of these were just visited, and nothing moved."""
        if self.settled and self._since == 1:
            return True
        self._trigger = rise / value * min(0.7, self._sure * self._record.goal / self._record.gap) if value > 0 else 0.0
        self._active = self._all.reactivated(point.scores + self._beta, self._active.violation)
        self._since = 0
        return False

    def without_proof(self) -> None:
        self._active = self._active.gathered()
