"""B9: categorical naive Bayes."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from benchmarks.contender import OURS
from benchmarks.data import Data, categories
from benchmarks.goals import Faster
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.reference import relative_error
from benchmarks.workload import Check, FitWorkload


def check(data: Data) -> Check:
    sizes = np.bincount(data.y)
    scores = np.tile(np.log(sizes / len(data.y)), (len(data.probe), 1))
    for j in range(data.X.shape[1]):
        width = int(data.X[:, j].max()) + 1
        table = np.zeros((len(sizes), width))
        np.add.at(table, (data.y, data.X[:, j]), 1.0)
        scores += np.log((table + 1.0) / (sizes[:, None] + width)).T[data.probe[:, j]]
    reference = log_softmax(scores, axis=1)
    return lambda model: relative_error(model.predict_log_proba(data.probe), reference)


WORKLOAD = FitWorkload(
    module=__name__,
    id="B9",
    title="categorical naive Bayes",
    goals=(Faster(10),),
    data=categories(1_000_000, 30, 10),
    contenders=(
        OURS.contender("CategoricalNB", "separatrix:CategoricalNB"),
        SKLEARN.contender("CategoricalNB", "sklearn.naive_bayes:CategoricalNB", default=True),
    ),
    check=check,
    quality="relative error of the log posteriors on 2 000 rows",
)
