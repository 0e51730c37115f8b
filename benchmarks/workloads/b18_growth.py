"""B18: how the time of our fits grows with the rows (at 20 columns) and with the columns (at 100 000 rows).

The growth is the slope of log time against log size, by least squares on the medians. Each family runs in a process of its
own, in which the sizes take turns. The quality of each fit is that of its family's own workload.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.children import ChildFailed, call
from benchmarks.contender import OURS, construct
from benchmarks.data import Data, logistic_rows
from benchmarks.result import FAILED, OK, Result, Row, Verdict, one_line
from benchmarks.timing import alternate
from benchmarks.workload import Check, FitWorkload, Settings
from benchmarks.workloads import b02_softmax, b07_lda, b08_qda, b09_gaussian_nb, b10_ridge

CLASSES = 3
ROWS = (10_000, 31_623, 100_000, 316_228, 1_000_000)
COLUMNS_THERE = 20
COLUMNS = (10, 20, 40, 80, 160)
ROWS_THERE = 100_000
LEAST_ROWS = 600
LIMIT = 1.05
# The family, its model and parameters, and the workload whose quality it is held to.
FAMILIES: dict[str, tuple[str, dict[str, Any], FitWorkload]] = {
    "LDA": ("separatrix:LinearDiscriminantAnalysis", {}, b07_lda.WORKLOAD),
    "QDA": ("separatrix:QuadraticDiscriminantAnalysis", {}, b08_qda.WORKLOAD),
    "GaussianNB": ("separatrix:GaussianNB", {}, b09_gaussian_nb.WORKLOAD),
    "RidgeClassifier": ("separatrix:RidgeClassifier", {}, b10_ridge.WORKLOAD),
    "LogisticRegression": ("separatrix:LogisticRegression", {"tol": 1e-6}, b02_softmax.WORKLOAD),
}


@dataclass
class Part:
    """A model that is fitted on data of its own, whatever `fit` is given, and the check of its answer."""

    build: Callable[[], Any]
    data: Data
    check: Check
    model: Any = field(default=None)

    def fit(self, X: Any, y: Any) -> Part:
        self.model = self.build().fit(self.data.X, self.data.y)
        return self


def parts(scale: float) -> dict[str, tuple[Data, int, int]]:
    """By name: the data, their rows and their columns; first as the rows grow, then as the columns do."""
    largest = logistic_rows(max(ROWS), COLUMNS_THERE, CLASSES)(scale)
    every: dict[str, tuple[Data, int, int]] = {}
    for rows in ROWS:
        n = max(round(rows * scale), LEAST_ROWS)
        every[f"{n:,} rows".replace(",", " ")] = (Data(largest.X[:n], largest.y[:n], ""), n, COLUMNS_THERE)
    for columns in COLUMNS:
        data = logistic_rows(ROWS_THERE, columns, CLASSES)(scale)
        every[f"{columns} columns"] = (data, *data.X.shape)
    return every


def slope(sizes: list[int], rows: list[Row]) -> float | None:
    """d log time / d log size, or None if a fit did not count."""
    times = [row.counted for row in rows]
    if not all(times) or len(set(sizes)) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log(np.array(times, dtype=np.float64)), 1)[0])


def in_child(family: str, scale: float, repeats: int) -> dict[str, Any]:
    """The rows of one family and its two slopes."""
    path, parameters, workload = FAMILIES[family]
    every = parts(scale)
    build = partial(construct, path, parameters)
    contenders = [
        OURS.contender(f"{family}, {name}", partial(Part, build, data, workload.check(data)), role="context")
        for name, (data, _, _) in every.items()
    ]
    unused = next(iter(every.values()))[0]
    rows = alternate(contenders, unused, lambda part: part.check(part.model), workload.tolerance, repeats)
    count = len(every) - len(COLUMNS)  # few rows may coincide in a smoke run
    return {
        "rows": [asdict(row) for row in rows],
        "in_rows": slope([n for _, n, _ in every.values()][:count], rows[:count]),
        "in_columns": slope([d for _, _, d in every.values()][count:], rows[count:]),
    }


@dataclass(frozen=True)
class GrowthWorkload:
    id: str = "B18"
    title: str = "growth of the time of a fit"

    def run(self, settings: Settings) -> Result:
        result = Result(
            [],
            data=f"{CLASSES} classes; {COLUMNS_THERE} columns as the rows grow, {ROWS_THERE:,} rows as the columns do, "
            "float64, seed 0".replace(",000", " 000"),
            quality="that of the family's own workload",
        )
        for family in FAMILIES:
            goal = f"{family}: slope of log time against log rows ≤ {LIMIT:g}"
            try:
                timed = call(f"{__name__}:in_child", family=family, scale=settings.scale, repeats=settings.repeats)
            except ChildFailed as error:
                result.rows.append(Row(family, "context", status=FAILED, note=one_line(str(error))))
                result.verdicts.append(Verdict(goal, one_line(str(error)), False))
                continue
            rows = [Row(**row) for row in timed["rows"]]
            result.rows += rows
            result.verdicts.append(self.verdict(goal, rows, timed["in_rows"], timed["in_columns"]))
        return result

    @staticmethod
    def verdict(goal: str, rows: list[Row], in_rows: float | None, in_columns: float | None) -> Verdict:
        if in_rows is None:
            broken = [f"{row.name}: {row.status}" for row in rows if row.status != OK]
            return Verdict(goal, "; ".join(broken) or "no slope", False)
        columns = "" if in_columns is None else f" (against log columns {in_columns:.2f})"
        return Verdict(goal, f"{in_rows:.2f}{columns}", in_rows <= LIMIT)


WORKLOAD = GrowthWorkload()
