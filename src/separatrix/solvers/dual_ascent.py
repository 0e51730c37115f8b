"""Dual coordinate ascent until its primal point is certified (the sweeps are in dual/coordinate_ascent.py)."""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.data.views import Intercept
from separatrix.dual.coordinate_ascent import DualAscent
from separatrix.objectives.linear import LinearObjective
from separatrix.result import Certificate, Status
from separatrix.solvers.bounds import Bound, least_bound
from separatrix.solvers.gradient import proof
from separatrix.solvers.state import Callback, Solution, Trace

_PROOF_EVERY = 5


def minimise_dual(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    *,
    tol: float,
    max_iter: int,
    intercept: bool,
    callback: Callback | None = None,
) -> Solution:
    """Sweep until the proven gap is at most `tol` times max(1, |F|). The dual starts from its own point, not from θ."""
    trace, status, sweeps = Trace(callback), Status.MAX_ITER, 0
    d = theta.shape[1] - intercept
    ascent = DualAscent(objective.penalty.quadratic[0, :d], intercept, objective.offset)
    rows = source.source if isinstance(source, Intercept) else source  # the sweeps keep the intercept apart
    best, evaluation = theta, objective.evaluate(theta, source, 1)
    bound = Bound(evaluation.value)
    try:
        while bound.gap > (target := objective.target(tol, evaluation.value)) and sweeps < max_iter:
            for _ in range(min(_PROOF_EVERY, max_iter - sweeps)):
                ascent.sweep(rows)
                sweeps += 1
            point = ascent.theta
            now = objective.evaluate(point, source, 1)
            if now.value <= evaluation.value:
                best, evaluation = point, now
            found = proof(objective, source, best, evaluation, intercept, target)
            bound = least_bound(Bound(evaluation.value), found)
            trace.add(objective=evaluation.value, gap=bound.gap, passes=source.passes)
        if bound.gap <= objective.target(tol, evaluation.value):
            status = Status.CONVERGED
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    stationarity = float(np.abs(evaluation.gradient).max(initial=0.0))
    certificate = Certificate(bound.gap, evaluation.value, "dual point", stationarity=stationarity, kind=bound.kind)
    return Solution(best, status, certificate, sweeps, trace.entries, evaluation.total, evaluation.steepest)
