"""B14: certified logistic regression on a Dask cluster of one and of two workers, one thread each, and dask-ml's on two.

Beside them a bare product X @ w of the same partitions, summed: what the second worker gains where nothing but the memory of
the machine is shared. And the same fit to files of mixed columns, which every pass reads again, as on a cluster whose tables
do not stay in memory.

A fresh process, with a fresh cluster, for each; the partitions are in the memory of the workers before anything is timed, and
the first fit is the warm-up. Quality is the objective above that of our own fit at 1e-10, relative.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.children import ChildFailed, call
from benchmarks.contender import Peer
from benchmarks.result import FAILED, MISSED_QUALITY, NOT_INSTALLED, OK, Result, Row, Verdict, one_line
from benchmarks.workload import Settings

PARTITIONS, ROWS, COLUMNS = 16, 500_000, 50
TOLERANCE, GOAL = 1e-6, 1.7
DASK_ML = Peer("dask-ml", distribution="dask-ml", module="dask_ml")
BARE = "a bare X @ w"
CONTENDERS = {"separatrix, 1 worker": 1, "separatrix, 2 workers": 2, "dask-ml lbfgs, 2 workers": 2}
PRODUCTS = {f"{BARE}, 1 worker": 1, f"{BARE}, 2 workers": 2}
FILES = "separatrix, files of mixed columns"
FROM_FILES = {f"{FILES}, 1 worker": 1, f"{FILES}, 2 workers": 2}
FILE_BYTES = 1_000_000_000


def generate(i: int, rows: int) -> tuple[Any, Any]:
    """Rows and labels of one partition."""
    rng = np.random.default_rng(i)
    X = rng.standard_normal((rows, COLUMNS))
    return X, (X @ np.linspace(-1.0, 1.0, COLUMNS) + 2.0 * rng.logistic(size=rows) > 0).astype(np.intp)


def objective(X: Any, y: Any, coef: Any, intercept: float) -> float:
    """Σ log(1 + exp(−ỹη)) + ½‖w‖², computed by Dask."""
    array: Any = import_module("dask.array")
    losses = array.logaddexp(0.0, (1 - 2 * y) * (X @ coef + intercept))
    return float(losses.sum().compute()) + 0.5 * float(coef @ coef)


def in_child(name: str, scale: float, repeats: int) -> dict[str, Any]:
    """Seconds of the fits on a cluster of this process's own, and the error of the last."""
    array: Any = import_module("dask.array")
    dask: Any = import_module("dask")
    distributed: Any = import_module("distributed")
    ours: Any = import_module("separatrix").LogisticRegression
    rows = max(1000, int(ROWS * scale))
    workers = {"n_workers": {**CONTENDERS, **PRODUCTS}[name], "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(processes=True, **workers) as client:
        parts = [dask.delayed(generate)(i, rows) for i in range(PARTITIONS)]
        X = array.concatenate([array.from_delayed(part[0], (rows, COLUMNS), float) for part in parts])
        y = array.concatenate([array.from_delayed(part[1], (rows,), np.intp) for part in parts])
        X, y = client.persist([X, y])
        distributed.wait([X, y])
        seconds, model = [], None
        if name.startswith(BARE):
            for _ in range(repeats + 1):
                start = time.perf_counter()
                (X @ np.ones(COLUMNS)).sum().compute()
                seconds.append(time.perf_counter() - start)
            return {"seconds": seconds[1:], "error": None}
        for _ in range(repeats + 1):
            model = ours(tol=TOLERANCE) if name.startswith("separatrix") else _theirs()
            start = time.perf_counter()
            model.fit(X, y)
            seconds.append(time.perf_counter() - start)
        best, found = ours(tol=1e-10).fit(X, y), np.ravel(model.coef_ if model is not None else 0.0)
        least = objective(X, y, best.coef_[0], float(best.intercept_[0]))
        error = objective(X, y, found, float(np.ravel(getattr(model, "intercept_", 0.0))[0])) / least - 1.0
    return {"seconds": seconds[1:], "error": error}


def from_files(name: str, folder: str, repeats: int) -> dict[str, Any]:
    """Seconds of fits to Parquet files that the workers read, a partition for each of their row groups; the gap of the last."""
    distributed: Any = import_module("distributed")
    frames: Any = import_module("dask.dataframe")
    scan: Any = import_module("separatrix.tables").scan_dask
    ours: Any = import_module("separatrix").LogisticRegression
    workers = {"n_workers": FROM_FILES[name], "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(processes=True, **workers):
        seconds, model = [], ours(tol=TOLERANCE)
        for _ in range(repeats + 1):
            start = time.perf_counter()
            model.fit(scan(frames.read_parquet(folder, split_row_groups=True), "label"))
            seconds.append(time.perf_counter() - start)
    return {"seconds": seconds[1:], "error": model.fit_.certificate.relative_gap}


def _theirs() -> Any:
    return import_module("dask_ml.linear_model").LogisticRegression(solver="lbfgs", C=1.0, tol=1e-8, max_iter=200)


@dataclass(frozen=True)
class DaskWorkload:
    id: str = "B14"
    title: str = "logistic regression on a Dask cluster"

    def run(self, settings: Settings) -> Result:
        rows = {name: Row(name, "ours" if "separatrix" in name else "peer") for name in CONTENDERS}
        rows.update({name: Row(name, "context") for name in (*PRODUCTS, *FROM_FILES)})
        repeats = min(3, settings.repeats)
        with TemporaryDirectory() as folder:
            n_rows = call(
                "benchmarks.workloads.b13_tables:make", folder=folder, n_bytes=int(FILE_BYTES * settings.scale)
            )
            for name, row in rows.items():
                if row.role == "peer" and not DASK_ML.installed:
                    row.status = NOT_INSTALLED
                    continue
                try:
                    if name in FROM_FILES:
                        found = call(f"{__name__}:from_files", name=name, folder=folder, repeats=repeats)
                    else:
                        found = call(f"{__name__}:in_child", name=name, scale=settings.scale, repeats=repeats)
                except ChildFailed as error:
                    row.status, row.note = FAILED, one_line(str(error))
                    continue
                row.seconds, row.error = found["seconds"], found["error"]
                row.status = OK if row.error is None or row.error <= TOLERANCE else MISSED_QUALITY
        one, two, peer = (rows[name] for name in CONTENDERS)
        one_of_files, two_of_files = (rows[name] for name in FROM_FILES)
        data = f"{PARTITIONS} partitions of {int(ROWS * settings.scale)} × {COLUMNS}; {n_rows} rows in files"
        return Result(
            list(rows.values()),
            data=data,
            quality=f"objective above the optimum, relative, at most {TOLERANCE:g}",
            verdicts=[
                ratio("rows in memory: speed-up from 1 to 2 workers", one, two, GOAL),
                ratio("rows in files: speed-up from 1 to 2 workers", one_of_files, two_of_files, GOAL),
                ratio("against dask-ml", peer, two, 1.0),
            ],
        )


def ratio(text: str, slow: Row, fast: Row, goal: float) -> Verdict:
    """How many times the one takes the time of the other."""
    text = f"{text} ≥ {goal:g}"
    if not (slow.seconds and fast.seconds):
        return Verdict(text, slow.status if not slow.seconds else fast.status, None)
    times = median(slow.seconds) / median(fast.seconds)
    return Verdict(text, f"{times:.2f}", times >= goal)


WORKLOAD = DaskWorkload()
