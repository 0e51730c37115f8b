"""B23: how much faster our fits and predictions are on two threads than on one, and on 4 and 16 where there are as many cores.

A fresh process for each number of threads, with SEPARATRIX_THREADS and the thread variables of BLAS set to it; they take turns.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.children import ChildFailed, call
from benchmarks.result import FAILED, Result, Row, Verdict, one_line
from benchmarks.workload import FitWorkload, Settings, load

FOLDER = "benchmarks.workloads"
# What is fitted (or predicted): workloads, of which our contender is timed.
PARTS = {
    "B1 logistic": f"{FOLDER}.b01_logistic",
    "B3 sparse logistic": f"{FOLDER}.b03_sparse_logistic:c1",
    "B6 RBF SVM": f"{FOLDER}.b06_rbf:c1",
    "B7 LDA": f"{FOLDER}.b07_lda",
    "B9 GaussianNB": f"{FOLDER}.b09_gaussian_nb",
    "B11 predict_proba": f"{FOLDER}.b11_softmax:10_classes",
}
TURNS = 2  # processes for each number of threads
GOALS = {2: 1.9, 16: 10.0}
VARIABLES = ("SEPARATRIX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def in_child(module: str, scale: float, repeats: int) -> list[float]:
    """Seconds of our fits in this process, the warm-up left out."""
    workload: FitWorkload = load(module)
    data = workload.data(scale)
    ours = next(contender for contender in workload.contenders if contender.ours)
    seconds = []
    for _ in range(repeats + 1):
        model: Any = ours.build()
        start = time.perf_counter()
        model.fit(data.X, data.y)
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def counts() -> list[int]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return [threads for threads in (1, 2, 4, 16) if threads <= cores]


@dataclass(frozen=True)
class ThreadsWorkload:
    id: str = "B23"
    title: str = "speed-up from one thread to several"

    def run(self, settings: Settings) -> Result:
        result = Result([], quality="", data="that of the workloads named")
        repeats = max(2, settings.repeats // TURNS)
        for name, module in PARTS.items():
            rows = {threads: Row(f"{name}, {threads} threads", "context") for threads in counts()}
            for _ in range(TURNS):
                for threads, row in rows.items():
                    environment = dict.fromkeys(VARIABLES, str(threads))
                    try:
                        row.seconds += call(
                            f"{__name__}:in_child", environment, module=module, scale=settings.scale, repeats=repeats
                        )
                    except ChildFailed as error:
                        row.status, row.note = FAILED, one_line(str(error))
            result.rows += rows.values()
            result.verdicts += verdicts(name, rows)
        return result


def verdicts(name: str, rows: dict[int, Row]) -> list[Verdict]:
    """One for each number of threads with a goal."""
    found = []
    for threads, goal in GOALS.items():
        if threads not in rows:
            continue
        text = f"{name}: speed-up from 1 to {threads} threads ≥ {goal:g}"
        if not (rows[1].seconds and rows[threads].seconds):
            found.append(Verdict(text, rows[threads].note or rows[1].note, False))
        else:
            ratio = median(rows[1].seconds) / median(rows[threads].seconds)
            found.append(Verdict(text, f"{ratio:.2f}", ratio >= goal))
    return found


WORKLOAD = ThreadsWorkload()
