"""One record for several machines: the worst status, gaps and objectives added, the largest residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from separatrix.dual.linear_machine import LinearDual
from separatrix.dual.working_set import Dual
from separatrix.models.base import Stopwatch
from separatrix.result import Certificate, Fit, Status

_WORST_FIRST = (Status.INTERRUPTED, Status.STALLED, Status.MAX_ITER, Status.STATIONARY, Status.CONVERGED)
_RESIDUALS = ("stationarity", "primal_feasibility", "dual_feasibility", "complementary_slackness")


def joined_fit(watch: Stopwatch, machines: Sequence[Dual | LinearDual], passes: int, steps: int) -> Fit:
    """The record of machines that were fitted one by one; the trace is kept where there is one machine."""
    status = next(s for s in _WORST_FIRST if any(machine.status is s for machine in machines))
    proofs = [machine.certificate for machine in machines]
    residuals = {name: max(getattr(proof, name) for proof in proofs) for name in _RESIDUALS}
    gap, objective = sum(proof.gap for proof in proofs), sum(proof.objective for proof in proofs)
    certificate = Certificate(gap, objective, proofs[0].method, **residuals)
    fit = watch.fit(status, passes, "", certificate, steps)
    return replace(fit, trace=machines[0].trace if len(machines) == 1 else [])
