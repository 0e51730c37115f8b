"""B5: linear support vector machines of sparse documents, hinge and squared hinge.

Everyone penalises the intercept as the weight of a column of ones, as LIBLINEAR and scikit-learn do: the same problem for all.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.contender import OURS, Contender
from benchmarks.data import Data, weighted_documents
from benchmarks.goals import Faster
from benchmarks.ladder import DECADES, OUR_RUNGS
from benchmarks.margins import linear_gap
from benchmarks.peers import liblinear
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.workload import Check, FitWorkload


def check(power: int, data: Data) -> Check:
    return linear_gap(data, 1.0, power, penalised_intercept=True)


def libraries(name: str, solver: int, **parameters: Any) -> tuple[Contender, Contender]:
    """LIBLINEAR by itself and within scikit-learn, by the same algorithm."""
    own = {"solver": solver, "intercept": "penalised"}
    inside = {"max_iter": 10_000, "random_state": 0, **parameters}
    adapter = "benchmarks.peers.liblinear:Linear"
    return (
        liblinear.PEER.contender(name, adapter, own, rungs=DECADES, note="with its conversion"),
        SKLEARN.contender(f"LinearSVC {name}", "sklearn.svm:LinearSVC", inside, rungs=DECADES),
    )


def case(key: str, loss: str, power: int, *peers: Contender) -> FitWorkload:
    ours = {"loss": loss, "intercept_scaling": 1.0}
    return FitWorkload(
        module=f"{__name__}:{key}",
        id="B5",
        title=f"sparse linear SVM, {loss.replace('_', ' ')}, C=1",
        goals=(Faster(3),),
        data=weighted_documents(100_000, 47_000, 61),
        contenders=(OURS.contender("LinearSVC", "separatrix:LinearSVC", ours, rungs=OUR_RUNGS), *peers),
        check=partial(check, power),
        quality="relative gap of the objective to the optimum",
        tolerance=1e-6,
    )


CASES = {
    "hinge": case("hinge", "hinge", 1, *libraries("dual", 3, loss="hinge")),
    "squared": case(
        "squared", "squared_hinge", 2, *libraries("dual", 1, dual=True), *libraries("primal", 2, dual=False)
    ),
}
