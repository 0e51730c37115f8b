"""B22: the perceptron of twenty classes against the rest: ten epochs in a drawn order, and until the loss falls no more."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.atlas.draw import Problem
from benchmarks.atlas.named import problem, workload
from benchmarks.atlas.rows import make
from benchmarks.data import Data, logistic_rows
from benchmarks.workload import FitWorkload

DENSE = logistic_rows(300_000, 60, 20)


def documents(scale: float) -> Data:
    return make(replace(sparse("default"), n=max(2_000, round(30_000 * scale))))


def sparse(variant: str) -> Problem:
    return problem("Perceptron", 30_000, 20_000, 20, columns="text", nonzeros=60, variant=variant)


def case(key: str, title: str, variant: str, dense: bool) -> FitWorkload:
    chosen = problem("Perceptron", 300_000, 60, 20, variant=variant) if dense else sparse(variant)
    rows = DENSE if dense else documents
    return workload(f"{__name__}:{key}", "B22", f"perceptron, 20 classes, {title}", 2, chosen, rows)


CASES = {
    "dense_epochs": case("dense_epochs", "300 000 × 60, ten epochs", "10 epochs", True),
    "dense": case("dense", "300 000 × 60", "default", True),
    "sparse_epochs": case("sparse_epochs", "sparse 30 000 × 20 000, ten epochs", "10 epochs", False),
    "sparse": case("sparse", "sparse 30 000 × 20 000", "default", False),
}
