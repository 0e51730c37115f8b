"""K classes from machines between pairs of them: (0,1), (0,2), …, (1,2), … with the first on the positive side.

votes     a pair's machine votes for one of its two classes; the class with the most votes wins, the first of equals
by class  geometry/combined_forms.py: within a vote, ordered by confidence
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float
from separatrix.dual.linear_search import LinearDual
from separatrix.geometry.votes import class_pairs
from separatrix.models.stopwatch import Stopwatch
from separatrix.result import Certificate, Fit, Status


def votes(scores: Float, n_classes: int) -> Float:
    """(n, K) votes; a score of exactly 0 is for the second class, as in LIBSVM."""
    first, second = np.array(class_pairs(n_classes)).T
    chosen = np.where(scores > 0, first, second) + n_classes * np.arange(len(scores))[:, None]
    return np.bincount(chosen.ravel(), minlength=len(scores) * n_classes).reshape(-1, n_classes).astype(np.float64)


def pairs_among_all(scores: Float, places: Codes, n_classes: int) -> Float:
    """(n, pairs of all classes) from the scores of machines between the classes that have weight: these beat the others."""
    own, rank = class_pairs(len(places)), {int(code): k for k, code in enumerate(places)}
    columns = []
    for k, l in class_pairs(n_classes):  # noqa: E741  # names of the formulas
        if k in rank and l in rank:
            two = len(places) == 2  # the one machine of two classes is positive for the second
            columns.append(-scores[:, 0] if two else scores[:, own.index((rank[k], rank[l]))])
        else:
            columns.append(np.full(len(scores), np.inf if k in rank else -np.inf if l in rank else 0.0))
    return np.column_stack(columns)


@lru_cache(maxsize=8)
def machines_of_classes(n_classes: int) -> NDArray[np.intp]:
    """(K, K−1) the machine of every class with each of the others, in their order."""
    pairs = np.zeros((n_classes, n_classes), dtype=np.intp)
    first, second = np.triu_indices(n_classes, 1)
    pairs[first, second] = pairs[second, first] = np.arange(len(first))
    table = pairs[~np.eye(n_classes, dtype=np.bool_)].reshape(n_classes, n_classes - 1)
    table.flags.writeable = False  # it is kept
    return table


def dual_layout(coefficients: Float, codes: Codes, n_classes: int) -> Float:
    """(K−1, n) from (n, pairs): the coefficient of a row against the j-th of the other classes, scikit-learn's layout."""
    return np.take_along_axis(coefficients, machines_of_classes(n_classes)[codes], axis=1).T.copy()


def joined_fit(watch: Stopwatch, machines: Sequence[LinearDual], passes: int, steps: int) -> Fit:
    """The record of machines that were fitted one by one; the trace is kept where there is one machine."""
    if len(machines) == 1:
        fit = watch.fit(machines[0].status, passes, "", machines[0].certificate, steps)
        return replace(fit, passes=passes, trace=machines[0].trace)
    status = Status.worst({machine.status for machine in machines})
    certificate = Certificate.together([machine.certificate for machine in machines])
    return replace(watch.fit(status, passes, "", certificate, steps), passes=passes, trace=[])
