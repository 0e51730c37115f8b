"""B3: logistic regression of sparse documents, L2, with an intercept that nobody penalises.

scikit-learn's liblinear and LIBLINEAR's dual solver penalise it and are not entered; LIBLINEAR's primal solver can leave it
free. skglm's smooth solver fits none.
"""

from __future__ import annotations

from functools import partial

from benchmarks.contender import OURS
from benchmarks.data import Data, weighted_documents
from benchmarks.goals import Faster
from benchmarks.ladder import DECADES, OUR_RUNGS
from benchmarks.optimum import relative_gap, smooth_optimum
from benchmarks.peers import liblinear
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.workload import Check, FitWorkload

LOGISTIC = "sklearn.linear_model:LogisticRegression"


def check(C: float, data: Data) -> Check:
    return relative_gap(data, smooth_optimum(data, C, "newton-cg"), C)


def case(key: str, C: float) -> FitWorkload:
    common = {"C": C, "max_iter": 1000}
    primal = {"solver": 0, "C": C, "intercept": "free"}
    return FitWorkload(
        module=f"{__name__}:{key}",
        id="B3",
        title=f"sparse logistic regression, C={C:g}",
        goals=(Faster(2),),
        data=weighted_documents(100_000, 47_000, 61),
        contenders=(
            OURS.contender("LogisticRegression", "separatrix:LogisticRegression", {"C": C}, rungs=OUR_RUNGS),
            SKLEARN.contender("lbfgs", LOGISTIC, common, default=True, rungs=DECADES),
            SKLEARN.contender("newton-cg", LOGISTIC, {**common, "solver": "newton-cg"}, rungs=DECADES),
            SKLEARN.contender("sag", LOGISTIC, {**common, "solver": "sag", "random_state": 0}, rungs=DECADES[1:6]),
            liblinear.PEER.contender(
                "primal", "benchmarks.peers.liblinear:Linear", primal, rungs=DECADES, note="with its conversion"
            ),
        ),
        check=partial(check, C),
        quality="relative gap of the objective to the optimum",
        tolerance=1e-6,
    )


CASES = {"c0.05": case("c0.05", 0.05), "c1": case("c1", 1.0), "c20": case("c20", 20.0)}
