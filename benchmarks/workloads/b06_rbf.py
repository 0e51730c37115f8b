"""B6: support vector machines with the radial kernel: 20 000 rows of two classes, and the ten digits.

The quality is that of the dual objective, which differs from the optimum by far less than the violation that machines stop by.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.contender import OURS
from benchmarks.data import Data, curved_classes, digits
from benchmarks.goals import Faster
from benchmarks.margins import kernel_gap
from benchmarks.peers import intelex
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.workload import Check, FitWorkload

RUNGS = (1e-2, 1e-3, 1e-4)


def check(C: float, data: Data) -> Check:
    return kernel_gap(data, C)


def case(key: str, title: str, data: Callable[[float], Data], C: float) -> FitWorkload:
    return FitWorkload(
        module=f"{__name__}:{key}",
        id="B6",
        title=title,
        goals=(Faster(3),),
        data=data,
        contenders=(
            OURS.contender("SVC", "separatrix:SVC", {"C": C}),
            SKLEARN.contender("SVC", "sklearn.svm:SVC", {"C": C}, default=True),
            intelex.PEER.contender("SVC", "sklearnex.svm:SVC", {"C": C}, rungs=RUNGS),
        ),
        check=partial(check, C),
        quality="relative gap of the dual objective to the optimum",
        tolerance=1e-6,
    )


ROWS = curved_classes(20_000, 30)
CASES = {
    "c1": case("c1", "RBF SVM, C=1", ROWS, 1.0),
    "c10": case("c10", "RBF SVM, C=10", ROWS, 10.0),
    "digits_c1": case("digits_c1", "RBF SVM, digits, 10 classes, C=1", digits, 1.0),
    "digits_c100": case("digits_c100", "RBF SVM, digits, 10 classes, C=100", digits, 100.0),
}
