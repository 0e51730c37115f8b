"""Problems that have a name: the field and the quality of the atlas, on data of one's own, as a workload."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.atlas.draw import Problem
from benchmarks.atlas.field import field
from benchmarks.atlas.quality import ITERATIVE, REFERENCE_TOL, quality
from benchmarks.contender import Contender
from benchmarks.data import Data
from benchmarks.goals import Faster
from benchmarks.workload import Check, FitWorkload

LARGE = 1e8  # values times classes: beyond it a tight fit of a peer takes minutes


def problem(estimator: str, n: int, d: int, classes: int = 2, **more: Any) -> Problem:
    """A problem as the atlas draws it; dense, C=1, with an intercept, unless told otherwise."""
    plain: dict[str, Any] = {"columns": "random", "nonzeros": d, "scales": 0.0, "noise": 1.0, "strength": 1.0}
    plain |= {"intercept": True, "dtype": "float64", "order": "C"}
    if estimator in ("hinge", "squared hinge"):
        plain["variant"] = "penalised"  # the same problem for all
    return Problem(**{"seed": 0, "estimator": estimator, "n": n, "d": d, "classes": classes, **plain, **more})


def contenders(problem: Problem, without: tuple[str, ...] = ()) -> tuple[Contender, ...]:
    """The field, less those whose names hold one of these words."""
    return tuple(each for each in field(problem) if not any(word in each.name for word in without))


def check(problem: Problem, data: Data) -> Check:
    """The error against the least value known: ours and a peer's, fitted tightly, or any that a contender finds."""
    measure = quality(problem, data)
    if problem.estimator in ITERATIVE:
        ours, peer = field(problem)[:2]
        small = problem.entries * problem.classes <= LARGE
        for each in (ours, peer) if small else (ours,):
            measure.see(each.build(REFERENCE_TOL).fit(data.X, data.y), each.aim)
    return lambda model: measure.error(measure.see(model, ""), "")


def limit(problem: Problem) -> float:
    """What the error may be."""
    exact = 1e-6 if problem.dtype == "float64" else 1e-3
    return 1.0 if problem.estimator == "Perceptron" else 1e-6 if problem.estimator in ITERATIVE else exact


def workload(
    module: str, id: str, title: str, factor: float, problem: Problem, data: Callable[[float], Data], *without: str
) -> FitWorkload:
    return FitWorkload(
        module=module,
        id=id,
        title=title,
        goals=(Faster(factor),),
        data=data,
        contenders=contenders(problem, without),
        check=partial(check, problem),
        quality="that of the atlas: the objective's relative gap to the least value known, or the scores' error",
        tolerance=limit(problem),
    )
