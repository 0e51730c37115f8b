"""One record for several machines: the worst status, gaps and objectives added, the largest residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from separatrix.data import Source
from separatrix.dual.duality_gap import KernelDual
from separatrix.dual.linear_search import LinearDual
from separatrix.models.counted_classes import only_class
from separatrix.models.stopwatch import Stopwatch
from separatrix.result import Certificate, Fit, Status


def joined_fit(watch: Stopwatch, machines: Sequence[KernelDual | LinearDual], passes: int, steps: int) -> Fit:
    """The record of machines that were fitted one by one; the trace is kept where there is one machine."""
    status = Status.worst(machine.status for machine in machines)
    certificate = Certificate.together([machine.certificate for machine in machines])
    fit = watch.fit(status, passes, "", certificate, steps)
    return replace(fit, passes=passes, trace=machines[0].trace if len(machines) == 1 else [])


def one_class(model: Any, source: Source, watch: Stopwatch) -> None:
    """The attributes of a classifier of machines where a single class has weight, and no machine is needed."""
    source.refuse_non_finite()
    nothing = np.empty(0, dtype=np.int32)
    model.support_, model.support_vectors_ = nothing, np.empty((0, source.n_features))
    model.dual_coef_, model.intercept_, model.n_iter_ = np.empty((0, 0)), np.empty(0), nothing
    model.n_support_, model.class_weight_ = np.zeros(1, dtype=np.int32), np.ones(1)
    model.fit_status_, model.machines_, model._calibrators = 0, [], []
    proof = Certificate(0.0, 0.0, "there is one class to choose from")
    model.fit_ = watch.fit(Status.EXACT, source.passes, only_class(model.classes_[0]), proof)
    model._place_classes(source)
