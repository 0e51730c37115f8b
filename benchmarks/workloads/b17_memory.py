"""B17: peak extra memory of fits, most of them those of B7, B8, B9 and B10, where their quality is checked."""

from __future__ import annotations

from benchmarks.contender import OURS, Contender
from benchmarks.data import gaussian_classes
from benchmarks.goals import AtMostMemory
from benchmarks.workload import MemoryWorkload
from benchmarks.workloads import b07_lda, b08_qda, b09_gaussian_nb, b10_ridge


def contenders() -> tuple[Contender, ...]:
    every = [c for b in (b07_lda, b08_qda, b09_gaussian_nb, b10_ridge) for c in b.WORKLOAD.contenders]
    every.append(OURS.contender("LogisticRegression", "separatrix:LogisticRegression"))
    return tuple(sorted(every, key=lambda contender: contender.role != "ours"))


WORKLOAD = MemoryWorkload(
    module=__name__,
    id="B17",
    title="peak extra memory of a fit",
    goals=(AtMostMemory(0.10),),
    data=gaussian_classes(400_000, 100, 10),
    contenders=contenders(),
)
