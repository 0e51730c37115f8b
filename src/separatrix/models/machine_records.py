"""One record for several machines: the worst status, gaps and objectives added, the largest residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from separatrix.dual.linear_machine import LinearDual
from separatrix.dual.working_set import Dual
from separatrix.models.base import Stopwatch
from separatrix.result import Certificate, Fit, Status


def joined_fit(watch: Stopwatch, machines: Sequence[Dual | LinearDual], passes: int, steps: int) -> Fit:
    """The record of machines that were fitted one by one; the trace is kept where there is one machine."""
    status = Status.worst(machine.status for machine in machines)
    certificate = Certificate.together([machine.certificate for machine in machines])
    fit = watch.fit(status, passes, "", certificate, steps)
    return replace(fit, trace=machines[0].trace if len(machines) == 1 else [])
