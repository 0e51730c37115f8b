"""B9: multinomial naive Bayes on sparse documents."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from benchmarks.contender import OURS
from benchmarks.data import Data, documents
from benchmarks.goals import Faster
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.reference import relative_error
from benchmarks.workload import Check, FitWorkload


def check(data: Data) -> Check:
    classes = int(data.y.max()) + 1
    counts = np.zeros((classes, data.X.shape[1]))
    for start in range(0, data.X.shape[0], 100_000):
        part = data.X[start : start + 100_000].tocoo()
        cells = data.y[start + part.row] * data.X.shape[1] + part.col
        counts += np.bincount(cells, part.data, minlength=counts.size).reshape(counts.shape)
    theta = (counts + 1.0) / (counts + 1.0).sum(axis=1, keepdims=True)
    scores = data.probe @ np.log(theta).T + np.log(np.bincount(data.y) / len(data.y))
    reference = log_softmax(scores, axis=1)
    return lambda model: relative_error(model.predict_log_proba(data.probe), reference)


WORKLOAD = FitWorkload(
    module=__name__,
    id="B9",
    title="multinomial naive Bayes on sparse documents",
    goals=(Faster(3),),
    data=documents(1_000_000, 47_000, 61, 10),
    contenders=(
        OURS.contender("MultinomialNB", "separatrix:MultinomialNB"),
        SKLEARN.contender("MultinomialNB", "sklearn.naive_bayes:MultinomialNB", default=True),
    ),
    check=check,
    quality="relative error of the log posteriors on 2 000 rows",
)
