"""`make cluster-demo`: logistic regression on a cluster of two processes, one of which is killed on the way.

The partitions are generated where they are used and are larger together than one block may be. The coefficients are those
of a single process, to the last bit: the tree of merges depends on the partitions alone, and what a lost worker held is
computed again.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client

from separatrix import LogisticRegression, as_source

PARTITIONS, ROWS, COLUMNS = 8, 200_000, 12


def generate(i: int) -> tuple[Any, Any]:
    """The rows and labels of partition i."""
    rng = np.random.default_rng(i)
    X = rng.standard_normal((ROWS, COLUMNS))
    scores = X @ np.linspace(-1.0, 1.0, COLUMNS) + rng.logistic(size=ROWS)
    return X, np.where(scores > 0, "yes", "no")


def main() -> None:
    blocks = [delayed(generate)(i) for i in range(PARTITIONS)]
    model = LogisticRegression(solver="newton-cg", tol=1e-8)
    print(f"{PARTITIONS} partitions of {ROWS} rows × {COLUMNS}: {PARTITIONS * ROWS * COLUMNS * 8 >> 20} MB of float64")

    start = time.perf_counter()
    alone = model.fit(as_source(blocks)).coef_
    print(f"one process:    {np.round(alone[0, :5], 10).tolist()} …  {time.perf_counter() - start:.1f} s")

    logging.getLogger("distributed").setLevel(logging.ERROR)  # the loss of a worker is what is shown here
    with Client(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
    ) as client:
        source = as_source(blocks)
        workers = client.run(os.getpid)

        def kill() -> None:
            address, process = next(iter(workers.items()))
            os.kill(process, signal.SIGKILL)
            print(f"                killed the worker {address}, process {process}")

        timer = threading.Timer(1.0, kill)
        start = time.perf_counter()
        timer.start()
        there = model.fit(source).coef_
        seconds, certificate = time.perf_counter() - start, model.fit_.certificate
        timer.join()
    print(f"two processes:  {np.round(there[0, :5], 10).tolist()} …  {seconds:.1f} s")
    print(f"certificate:    {certificate}")
    if not np.array_equal(alone, there):
        raise SystemExit("The coefficients differ.")
    print("The coefficients are the same, to the last bit.")


if __name__ == "__main__":
    main()
