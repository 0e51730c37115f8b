"""Two classes and two actions: one threshold on the posterior, and what it costs.

    p* = (L₀₁−L₀₀) / (L₀₁−L₀₀ + L₁₀−L₁₁)          act 1 iff p(1|x) > p*

Cost curves turn this round: for a classifier with rates FP and FN, the expected cost as a share of the worst possible is
FN·c + FP·(1−c), where c = π₁L₁₀ / (π₁L₁₀ + π₀L₀₁) holds all there is to know of priors and losses (zero diagonal). Reference:
Drummond and Holte, Cost curves, Machine Learning 65, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Codes, Float
from separatrix.data.labels import as_names, as_weights, listed, shown, unique_labels
from separatrix.decide.loss_labels import aligned, labels_of
from separatrix.decide.losses import Loss, class_codes


def threshold_for(loss: Loss) -> float:
    """The threshold of p(1|x) above which to act 1, for two classes and two actions.

    Parameters
    ----------
    loss : array-like of shape (2, 2), data frame, dict or Series
        ``loss[k][a]``: the truth is k, the action a. A bare array is in the order of ``classes_``; with labels (as for
        `BayesRule`) class 1 is the second of the two in sorted order, wherever it stands in the table.

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> from separatrix import threshold_for
    >>> threshold_for([[0, 1], [4, 0]])
    0.2
    >>> threshold_for({"malignant": {"malignant": 0, "benign": 4}, "benign": {"malignant": 1, "benign": 0}})
    0.2
    """
    labelled = labels_of(loss, None, None, "loss")
    if labelled is None:
        classes, matrix = np.arange(2), np.asarray(loss, dtype=np.float64)
    else:
        classes = unique_labels(as_names(labelled.truths))
        matrix, _ = aligned(labelled, classes, classes, "loss")
    if matrix.shape != (2, 2):
        raise ValueError(
            f"loss has shape {matrix.shape}: one threshold belongs to two classes and two actions, shape (2, 2). For "
            "more actions see BayesRule.decision_regions."
        )
    if not np.isfinite(matrix).all():
        raise ValueError("loss contains NaN or infinity: every cost must be a finite number.")
    false_alarm, miss = float(matrix[0, 1] - matrix[0, 0]), float(matrix[1, 0] - matrix[1, 1])
    if false_alarm < 0 or miss < 0 or false_alarm == miss == 0:
        k = 0 if false_alarm <= 0 else 1
        raise ValueError(
            f"There is no threshold: when the truth is class {shown(classes[k])} the correct action costs {matrix[k, k]:g} and "
            f"the wrong one {matrix[k, 1 - k]:g}. Rows are the truth, columns the action; check that the matrix is not "
            "transposed."
        )
    return false_alarm / (false_alarm + miss)


@dataclass(frozen=True)
class CostCurve:
    """Expected cost of a classifier whose threshold follows the priors and costs, for all of these at once.

    Parameters
    ----------
    probability_cost : ndarray of shape (m + 1,)
        c = π₁L₁₀/(π₁L₁₀ + π₀L₀₁), from 0 to 1: the corners of the curve, which is straight between them.
    normalized_cost : ndarray of shape (m + 1,)
        Expected cost as a share of the cost of being always wrong, at the corners.
    thresholds, false_positive_rate, false_negative_rate : ndarray of shape (m,)
        The best threshold between two corners (act 1 from this score on) and its error rates.
    """

    probability_cost: Float
    normalized_cost: Float
    thresholds: Float
    false_positive_rate: Float
    false_negative_rate: Float

    def at(self, probability_cost: ArrayLike) -> Float:
        """The curve at any values of c."""
        given = np.asarray(probability_cost, dtype=np.float64)
        if not ((given >= 0) & (given <= 1)).all():
            raise ValueError("probability_cost must lie between 0 and 1.")
        return np.interp(given, self.probability_cost, self.normalized_cost)

    @property
    def area(self) -> float:
        """Area under the curve: the mean cost when all c are equally likely; 1/4 for one that guesses."""
        return float(np.trapezoid(self.normalized_cost, self.probability_cost))


def cost_curve(y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None) -> CostCurve:
    """The lower envelope of the cost lines of all thresholds, for two classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two classes.
    y_score : array-like of shape (n_samples,)
        Probability or score of the second class in sorted order.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    CostCurve

    Examples
    --------
    >>> from separatrix import cost_curve
    >>> curve = cost_curve([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> curve.probability_cost, curve.normalized_cost
    (array([0. , 0.5, 1. ]), array([0.  , 0.25, 0.  ]))
    """
    from sklearn.metrics import roc_curve  # a slow import that the rules do not need

    given = np.asarray(y_score, dtype=np.float64)
    weights = as_weights(sample_weight, len(given))
    classes, codes = class_codes(y_true, None, weights)
    if len(classes) != 2:
        raise ValueError(f"A cost curve belongs to two classes, but y_true has {len(classes)}: {listed(classes)}.")
    if given.shape != codes.shape:
        raise ValueError(
            f"y_score has shape {given.shape}: give one score of class {classes[1]!r} for each of the rows."
        )
    false_positive, true_positive, thresholds = roc_curve(codes, given, sample_weight=weights)
    kept = _upper_hull(false_positive, true_positive)
    fp, fn = false_positive[kept], 1.0 - true_positive[kept]
    gained, lost = -np.diff(fn), np.diff(fp)
    corners = np.concatenate([[0.0], lost / (lost + gained), [1.0]])
    costs = np.append(fn * corners[:-1] + fp * (1.0 - corners[:-1]), fn[-1])
    return CostCurve(corners, costs, thresholds[kept], fp, fn)


def _upper_hull(x: Float, y: Float) -> Codes:
    """Corners of the upper convex hull of a curve that rises from (0, 0) to (1, 1), those on the edges of the square once."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (x[b] - x[a]) * (y[i] - y[a]) < (y[b] - y[a]) * (x[i] - x[a]):
                break
            hull.pop()
        hull.append(i)
    first = 1 if x[hull[1]] == x[hull[0]] else 0  # the same false alarms for fewer misses
    last = len(hull) - 1 if y[hull[-2]] == y[hull[-1]] else len(hull)
    return np.array(hull[first:last], dtype=np.intp)
