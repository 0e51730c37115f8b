"""The one loop of all methods: limits, trace, callback, Ctrl-C and the certificate.

state ← init;   repeat:  bound,  trace,  stop at the target or a limit,  step
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.solution import Solution
from separatrix.result import Certificate, Status
from separatrix.solvers.bounds import least_bound
from separatrix.solvers.method import Budget, Method, Start, State

Callback = Callable[[dict[str, Any]], None]


class Trace:
    """One entry per iteration, passed on to a callback; and the points themselves, where the way is recorded."""

    def __init__(self, callback: Callback | None = None, record: bool = False) -> None:
        self.entries: list[dict[str, Any]] = []
        self.path: list[tuple[Float, float]] = []
        self._callback, self._record = callback, record

    def reopen(self) -> None:
        """The next entry is about the same point as the last, and takes its place: another method goes on from there."""
        self.entries.pop()
        if self.path:
            self.path.pop()

    def mark(self, state: State) -> None:
        """Record a point, after those that the step to it has visited; once where a step has led nowhere."""
        if self._record:
            self.path += [(theta, np.nan) for theta in state.visited]
            if state.visited or not self.path or not np.array_equal(self.path[-1][0], state.theta):
                self.path.append((state.theta.copy(), state.value))

    def add(self, **entry: Any) -> None:
        """Record an iteration."""
        entry["iteration"] = len(self.entries)
        self.entries.append(entry)
        if self._callback is not None:
            self._callback(entry)


def run(
    method: Method,
    problem: LinearProblem,
    start: Start,
    *,
    tol: float,
    max_iter: int,
    trace: Trace | None = None,
) -> Solution:
    """Minimise by one method until the bound on F − F* is at most `tol` times max(1, |F|)."""
    trace = Trace() if trace is None else trace
    interrupted = False
    try:
        state = method.init(problem, start, Budget(tol, 0.0, max_iter))
    except KeyboardInterrupt:  # evaluate once, to learn how good the start is
        max_iter, interrupted = 0, True
        state = method.init(problem, replace(start, near=True), Budget(tol, 0.0, 0))
    status, iterations = Status.MAX_ITER, state.taken
    try:
        while True:
            budget = Budget(tol, problem.target(tol, state.value), max_iter - iterations)
            state = method.bound(problem, state, budget)
            for value, gap in state.passed:
                trace.add(objective=value, gap=gap, passes=problem.source.passes)
            trace.add(objective=state.value, gap=state.bound.gap, passes=problem.source.passes, **state.facts())
            trace.mark(state)
            if state.bound.gap <= budget.target and state.verdict is not Status.INTERRUPTED:
                status = Status.CONVERGED
                if method.polish is not None:
                    state = method.polish(problem, state, budget)
                break
            if state.verdict is not None:
                status = state.verdict
                break
            if budget.left <= 0:
                break
            if state.nearly:
                status = Status.UNPROVEN
                break
            moved = method.step(problem, state, budget)
            state, iterations = moved, iterations + max(1, moved.taken)
            if state.verdict is not None:
                reached = state.bound.gap <= problem.target(tol, state.value)
                status = Status.CONVERGED if reached else state.verdict
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    status = Status.INTERRUPTED if interrupted else status
    return _solution(method, problem, state, status, iterations, trace, tol)


def _solution(
    method: Method, problem: LinearProblem, state: State, status: Status, iterations: int, trace: Trace, tol: float
) -> Solution:
    trace.mark(replace(state, visited=()))
    state = state if method.settle is None else method.settle(problem, state)
    penalty, evaluation = problem.objective.penalty, state.evaluation
    bound = least_bound(state.bound, state.trivial)
    if status is Status.CONVERGED and not bound.gap <= problem.target(tol, state.value):
        status = Status.UNPROVEN
    residual = penalty.residual(state.theta, evaluation.gradient)
    stationarity = float(np.abs(residual).max(initial=0.0))
    certificate = Certificate(bound.gap, evaluation.value, bound.method, stationarity=stationarity, kind=bound.kind)
    return Solution(
        state.theta,
        status,
        certificate,
        iterations,
        trace.entries,
        evaluation.total,
        evaluation.steepest,
        evaluation.gradient - penalty.gradient(state.theta),
        method.name,
        state.nearly,
        trace.path,
        evaluation.residual,
        state if status is Status.ROUNDED else None,
    )
