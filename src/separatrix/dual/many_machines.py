"""Solutions of many machines side by side: machine m has the entries starts[m] … starts[m + 1] of every array.

A classifier of K classes has K(K−1)/2 machines, most of them of a few rows: what is done with one of them after the other in
Python takes longer than their solution, so that it is done with all at once, and objects are made of those that are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.duality_gap import PLAIN, KernelDual, SoftMargin
from separatrix.dual.kernel_matrix import Index
from separatrix.dual.machine import SupportVectorMachine
from separatrix.result import Certificate, Status

# The columns of `numbers`: the first ones are those of kernels/support_vectors/machines.py.
_STEPS, _VIOLATION, _INTERCEPT, _GAP, _PRIMAL, _EXCESS, _COMPLEMENTARY, _LENGTH, _SLACK, _ROUNDS = range(10)
_REACHED = (Status.CONVERGED, Status.STATIONARY)


@dataclass(frozen=True)
class Splits:
    """The rows (N,) of every machine with their sides ỹ, and the labels of its negative and positive side."""

    starts: Index
    rows: Index
    signs: Float
    negative: Sequence[Any]
    positive: Sequence[Any]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def part(self, m: int) -> slice:
        """The entries of a machine."""
        return slice(int(self.starts[m]), int(self.starts[m + 1]))

    def machine(self) -> Index:
        """(N,) the machine of every entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))


@dataclass
class KernelDuals:
    """Coefficients β, scores without the intercept and bounds on their errors of all machines, (N,), with what was found."""

    splits: Splits
    bound: Float
    sure: bool | None
    """Whether the values are positive semi-definite."""
    proven: bool
    """Whether that is known of the kernel, and not only found of its values up to rounding."""
    beta: Float = field(init=False)
    scores: Float = field(init=False)
    errors: Float = field(init=False)
    numbers: Float = field(init=False)
    statuses: list[Status | None] = field(init=False)
    traces: dict[int, list[dict[str, Any]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.beta, self.scores, self.errors = np.zeros((3, len(self.bound)))
        self.numbers, self.statuses = np.zeros((len(self.splits), 10)), [None] * len(self.splits)

    def sides(self, m: int) -> SoftMargin:
        """What the proof of a machine is about."""
        part = self.splits.part(m)
        return SoftMargin(self.splits.signs[part], self.bound[part], self.sure)

    def settle(self, done: Any, tol: float) -> None:
        """State how the machines ended whose numbers were filled in by compiled code."""
        numbers = self.numbers
        numbers[done, _ROUNDS], gap = 1.0, numbers[done, _GAP]
        numbers[done, _GAP] = np.where(np.isnan(gap) | (self.sure is False), np.inf, np.maximum(gap, 0.0))
        met = (numbers[:, _VIOLATION] <= tol).tolist()
        shown = (numbers[:, _GAP] <= self.allowed(tol)).tolist()
        numbers[done, _VIOLATION] = np.maximum(numbers[done, _VIOLATION], 0.0)
        best = Status.CONVERGED if self.sure else Status.STATIONARY
        for m in np.flatnonzero(done).tolist():
            missed = Status.ROUNDED if self.sure and not shown[m] else best
            self.statuses[m] = missed if met[m] else Status.MAX_ITER

    def allowed(self, tol: float) -> Float:
        """(machines,) the largest gaps of machines that violate no condition by more than `tol`."""
        return np.asarray(tol * np.add.reduceat(self.bound, self.splits.starts[:-1]))

    def put(self, m: int, dual: KernelDual) -> None:
        """The solution of a machine that was found by itself."""
        part, proof = self.splits.part(m), dual.certificate
        self.beta[part], self.scores[part], self.errors[part] = dual.beta, dual.scores, dual.errors
        residuals = (proof.dual_feasibility, proof.complementary_slackness, float(dual.beta @ dual.scores))
        known = (dual.steps, proof.stationarity, dual.intercept, proof.gap, proof.objective)
        self.numbers[m] = (*known, *residuals, proof.primal_feasibility, dual.rounds)
        self.statuses[m], self.traces[m] = dual.status, dual.trace

    def get(self, m: int) -> KernelDual:
        """The solution of a machine."""
        part, (steps, *_), rounds = self.splits.part(m), self.numbers[m].tolist(), int(self.numbers[m, _ROUNDS])
        values = (self.beta[part], self.scores[part], float(self.numbers[m, _INTERCEPT]), self.status(m))
        return KernelDual(*values, self.certificate(m), rounds, int(steps), self.trace(m), self.errors[part])

    def status(self, m: int) -> Status:
        """Why a machine ended."""
        found = self.statuses[m]
        assert found is not None
        return found

    def trace(self, m: int) -> list[dict[str, Any]]:
        """The rounds of a machine; one that was solved whole has one."""
        if m in self.traces:
            return self.traces[m]
        part, steps = self.splits.part(m), int(self.numbers[m, _STEPS])
        violation = float(self.numbers[m, _VIOLATION])
        return [{"iteration": 1, "violation": violation, "rows": part.stop - part.start, "steps": steps}]

    def certificate(self, m: int | None = None) -> Certificate:
        """The proof of a machine; of all as one problem when none is named."""
        some = self.numbers if m is None else self.numbers[m : m + 1]
        _, violation, _, _, _, excess, complementary, _, slack, _ = some.max(axis=0).tolist()
        gap, primal = float(some[:, _GAP].sum()), float(some[:, _PRIMAL].sum())
        return SoftMargin(self.splits.signs, self.bound, self.sure).stated(
            violation, gap, primal, excess, complementary, slack, proven=self.proven
        )

    def bounded(self, upper: Float, tol: float) -> list[int]:
        """Prove linear rules of objectives below `upper` from the dual values that are known; the machines of which that is
        not plain, and has to be computed with more digits.
        """
        lower = self.numbers[:, _PRIMAL] - self.numbers[:, _GAP]  # which is below the optimum
        with np.errstate(invalid="ignore"):
            gap = upper - lower
            plain = (gap >= 0.0) & (gap <= PLAIN * self.allowed(tol))
        self.numbers[plain, _GAP], self.numbers[plain, _PRIMAL] = gap[plain], upper[plain]
        for m in np.flatnonzero(plain).tolist():
            if self.statuses[m] is Status.ROUNDED:  # that was about the scores
                self.statuses[m] = Status.CONVERGED
        return np.flatnonzero(~plain).tolist()

    @property
    def intercepts(self) -> Float:
        """(machines,) b."""
        return self.numbers[:, _INTERCEPT].copy()

    @property
    def lengths(self) -> Float:
        """(machines,) ‖w‖²."""
        return self.numbers[:, _LENGTH]

    @property
    def steps(self) -> Index:
        """(machines,) steps."""
        return self.numbers[:, _STEPS].astype(np.intp)

    @property
    def rounds(self) -> int:
        """Rounds of all machines together."""
        return int(self.numbers[:, _ROUNDS].sum())

    @property
    def converged(self) -> bool:
        """Whether all met the tolerance, and show it."""
        return all(status in _REACHED for status in self.statuses)


class SupportVectorMachines(Sequence[SupportVectorMachine]):
    """The fitted machines, each made when it is asked for; `rows` (N,) are numbered as in the X that was fitted."""

    def __init__(self, duals: KernelDuals, rows: Index, intercepts: Float, tol: float) -> None:
        self._duals, self._rows, self._intercepts, self._tol = duals, rows, intercepts, tol

    def __len__(self) -> int:
        return len(self._duals.splits)

    def __getitem__(self, m: Any) -> Any:
        if isinstance(m, slice):
            return [self[k] for k in range(*m.indices(len(self)))]
        if not -len(self) <= m < len(self):
            raise IndexError(f"There are {len(self)} machines, and none of the number {m}.")
        duals, splits, m = self._duals, self._duals.splits, int(m) % len(self)
        part, dual = splits.part(m), duals.get(m)
        at = np.argsort(rows := self._rows[part], kind="stable")  # they may be class by class
        sides = (splits.negative[m], splits.positive[m], rows[at], splits.signs[part][at], duals.bound[part][at])
        values = (np.abs(dual.beta[at]), dual.scores[at] + dual.intercept, float(self._intercepts[m]))
        return SupportVectorMachine(*sides, *values, dual.status, dual.certificate, self._tol, float(duals.lengths[m]))

    def __iter__(self) -> Iterator[SupportVectorMachine]:
        return (self[m] for m in range(len(self)))

    def __repr__(self) -> str:
        return repr(list(self))
