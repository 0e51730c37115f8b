"""K classes from machines between pairs of them: (0,1), (0,2), …, (1,2), … with the first on the positive side.

votes     a pair's machine votes for one of its two classes; the class with the most votes wins, the first of equals
by class  geometry/combined_forms.py: within a vote, ordered by confidence
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from separatrix.data.block import Codes, Float


def pairs(n_classes: int) -> list[tuple[int, int]]:
    """The pairs of classes in their order."""
    return list(combinations(range(n_classes), 2))


def votes(scores: Float, n_classes: int) -> Float:
    """(n, K) votes; a score of exactly 0 is for the second class, as in LIBSVM."""
    total = np.zeros((len(scores), n_classes))
    for m, (k, l) in enumerate(pairs(n_classes)):  # noqa: E741  # names of the formulas
        total[:, k] += scores[:, m] > 0
        total[:, l] += scores[:, m] <= 0
    return total


def pairs_among_all(scores: Float, places: Codes, n_classes: int) -> Float:
    """(n, pairs of all classes) from the scores of machines between the classes that have weight: these beat the others."""
    own, rank = pairs(len(places)), {int(code): k for k, code in enumerate(places)}
    columns = []
    for k, l in pairs(n_classes):  # noqa: E741  # names of the formulas
        if k in rank and l in rank:
            two = len(places) == 2  # the one machine of two classes is positive for the second
            columns.append(-scores[:, 0] if two else scores[:, own.index((rank[k], rank[l]))])
        else:
            columns.append(np.full(len(scores), np.inf if k in rank else -np.inf if l in rank else 0.0))
    return np.column_stack(columns)


def dual_layout(coefficients: Float, codes: Codes, n_classes: int) -> Float:
    """(K−1, n) from (n, pairs): the coefficient of a row against the j-th of the other classes, scikit-learn's layout."""
    layout = np.zeros((n_classes - 1, len(codes)))
    for m, (k, l) in enumerate(pairs(n_classes)):  # noqa: E741  # names of the formulas
        layout[l - 1, codes == k] = coefficients[codes == k, m]
        layout[k, codes == l] = coefficients[codes == l, m]
    return layout
