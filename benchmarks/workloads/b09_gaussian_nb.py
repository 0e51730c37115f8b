"""B9: Gaussian naive Bayes."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from benchmarks.contender import OURS
from benchmarks.data import Data, gaussian_classes
from benchmarks.goals import Faster
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.reference import relative_error
from benchmarks.workload import Check, FitWorkload


def check(data: Data) -> Check:
    floor = 1e-9 * data.X.var(axis=0).max()
    scores = []
    for k in np.unique(data.y):
        rows = data.X[data.y == k]
        variance = rows.var(axis=0) + floor
        distance = (np.square(data.probe - rows.mean(axis=0)) / variance).sum(axis=1)
        scores.append(np.log(len(rows) / len(data.y)) - 0.5 * (distance + np.log(variance).sum()))
    reference = log_softmax(np.column_stack(scores), axis=1)
    return lambda model: relative_error(model.predict_log_proba(data.probe), reference)


WORKLOAD = FitWorkload(
    module=__name__,
    id="B9",
    title="Gaussian naive Bayes",
    goals=(Faster(10),),
    data=gaussian_classes(400_000, 100, 10),
    contenders=(
        OURS.contender("GaussianNB", "separatrix:GaussianNB"),
        SKLEARN.contender("GaussianNB", "sklearn.naive_bayes:GaussianNB", default=True),
    ),
    check=check,
    quality="relative error of the log posteriors on 2 000 rows",
)
