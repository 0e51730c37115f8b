"""The proof of what a first-order or dual method has reached: the Hessian, once, at its answer.

    F(θ) − F* ≲ ½ gᵀH⁻¹g     says when the answer is near enough to ask;  newton.py and prox_newton.py prove it

A dual point proves ½ gᵀq⁻¹g at best, which is larger by the ratio of the Hessian to the penalty: many digits more than the
tolerance asks for would be needed. The step that comes with the proof is taken, since it costs nothing more.

**Complexity** O(n m²p²). **Passes over the data** two to four.
"""

from __future__ import annotations

from dataclasses import replace

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.objectives.linear import LinearObjective
from separatrix.result import Status
from separatrix.solvers.newton import minimise_newton
from separatrix.solvers.prox_newton import minimise_prox_newton
from separatrix.solvers.state import Solution, Trace

# Hessians of more parameters than this are not formed.
HESSIAN_PARAMETERS = 3000
# How much below the target the estimate should be before a proof is asked for.
NEARLY = 0.25
_STEPS = 10


def finish(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    iterations: int,
    trace: Trace,
    *,
    tol: float,
    max_iter: int,
    intercept: bool,
) -> Solution:
    """θ, its proof, and the few steps that are left, added to the iterations and the trace of the method before."""
    steps = min(_STEPS, max_iter - iterations)
    if objective.penalty.smooth:
        solution = minimise_newton(objective, source, theta, tol=tol, max_iter=steps, sampled=False)
    else:
        solution = minimise_prox_newton(objective, source, theta, tol=tol, max_iter=steps, intercept=intercept)
    for entry in solution.trace[1:]:  # the first is the point where the other method ended
        trace.add(**{name: value for name, value in entry.items() if name != "iteration"})
    status, taken = solution.status, iterations + solution.iterations
    if status is Status.MAX_ITER and taken < max_iter:  # more of these steps would not bring the proof either
        status = Status.STALLED
    return replace(solution, status=status, iterations=taken, trace=trace.entries)
