"""What is measured on rows that a model has not seen.

    log-loss   −(1/n) Σ log p(yᵢ|xᵢ)                      accuracy            share of right classes
    Brier      (1/n) Σᵢ Σ_k (p(k|xᵢ) − [yᵢ = k])²,        balanced accuracy   mean over the classes of the share found
               half of it for two classes                 F1                  mean over the classes of 2PR/(P + R)
    cost       (1/n) Σ L[yᵢ, a(xᵢ)],                      AUC                 P(score of a row of class k > score of another
               a(x) = argmin_a Σ_k L[k,a] p(k|x)                              row), mean over the classes
    calibration  Σ_b (n_b/n)|observed_b − predicted_b|, of all left-out rows together

The error of a mean over k folds is s/√k, s the standard deviation of the folds. Repeating the folds steadies the mean but adds
no rows, so k stays. The calibration error is no mean over folds (it grows as a fold shrinks): it is that of all rows, with the
error of the jackknife, which leaves out a fold at a time and for a mean gives s/√k again. Reference: Efron and Tibshirani, An
Introduction to the Bootstrap, 1993, eq. 11.5.

A model without probabilities has scores. A logistic curve, learnt from the left-out scores of the other folds, makes
probabilities of those of a fold (Platt, 1999): so that every model can be ranked by its log-loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import confusion_matrix, log_loss, roc_auc_score

from separatrix.data.block import Codes, Float
from separatrix.decide.calibration import expected_calibration_error
from separatrix.decide.losses import best_actions
from separatrix.models.logistic.logistic_regression import LogisticRegression

SCORE_LABELS = {
    "cost": "cost",
    "log_loss": "log-loss",
    "accuracy": "accuracy",
    "auc": "AUC",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "brier": "Brier",
    "calibration_error": "calibration error",
}
METRICS = ("log_loss", "accuracy", "auc", "balanced_accuracy", "f1", "brier")
"""The scores that candidates can be ranked by, beside the cost."""
GREATER_IS_BETTER = frozenset({"accuracy", "auc", "balanced_accuracy", "f1"})
OF_PROBABILITIES = frozenset({"log_loss", "brier"})
# Smaller figures are rounding errors and shown as 0.
_ROUNDING = 1e-12
# The prior precision of the slopes of a calibration curve, in standard deviations of the scores, is one over this.
_CALIBRATION_C = 100.0


def plus_minus(mean: float, error: float) -> str:
    """A mean with its standard error, as text."""
    mean, error = (0.0 if abs(value) < _ROUNDING else value for value in (mean, error))
    return f"{mean:.4g} ± {error:.2g}"


@dataclass
class Score:
    """One measure of one candidate."""

    mean: float  # over the folds; for the calibration error that of all left-out rows together
    standard_error: float  # of the mean
    folds: Float  # the value in every fold, repeat after repeat

    def __str__(self) -> str:
        return plus_minus(self.mean, self.standard_error)


def standard_error(values: Float, n_folds: int) -> float:
    """s/√k of the values of every fold, for any number of repeats of the k folds."""
    return float(np.std(values, ddof=1) / np.sqrt(n_folds))


def measure(
    codes: Codes,
    folds: Codes,
    predicted: Codes,
    proba: Float | None,
    loss: Float | None,
    decision_scores: Float | None = None,
    n_classes: int | None = None,
    weights: Float | None = None,
) -> dict[str, Score]:
    """All scores of left-out predictions, for true classes (n,), folds and predicted classes (repeats, n).

    Of probabilities, or of decision scores where there are none, (repeats, n, n_classes). Of probabilities the cost is that of
    the best actions; of a model without them that of its predictions, and the columns of the loss are then the classes.
    A row of weight 2 counts as two rows.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.measures import measure
    >>> scores = measure(np.array([0, 1, 0, 1]), np.array([[0, 0, 1, 1]]), np.array([[0, 1, 1, 1]]), None, None)
    >>> print(scores["accuracy"])
    0.75 ± 0.25
    """
    given = proba if proba is not None else decision_scores
    n_folds = int(folds.max()) + 1
    k = n_classes or (int(max(codes.max(), predicted.max())) + 1 if given is None else given.shape[2])
    parts = [(r, np.flatnonzero(folds[r] == fold)) for r in range(len(folds)) for fold in range(n_folds)]

    def over_folds(values: list[float]) -> Score:
        found = np.array(values)
        return Score(float(found.mean()), standard_error(found, n_folds), found)

    own_weights = [None if weights is None else weights[at] for _, at in parts]
    weighted = list(zip(parts, own_weights, strict=True))
    tables = [
        confusion_matrix(codes[at], predicted[r, at], labels=np.arange(k), sample_weight=w) for (r, at), w in weighted
    ]
    scores = {name: over_folds([of(table) for table in tables]) for name, of in _OF_COUNTS.items()}
    if given is not None:
        scores["auc"] = over_folds([auc(codes[at], given[r, at], w) for (r, at), w in weighted])
        own = proba if proba is not None else calibrated(codes, folds, given, weights)
        labels = np.arange(k)
        losses = [float(log_loss(codes[at], own[r, at], labels=labels, sample_weight=w)) for (r, at), w in weighted]
        scores["log_loss"] = over_folds(losses)
        scores["brier"] = over_folds([brier(codes[at], own[r, at], w) for (r, at), w in weighted])
    if proba is not None:
        scores["calibration_error"] = _calibration(codes, folds, proba, parts, weights)
    if loss is not None:
        taken = predicted if proba is None else np.stack([best_actions(one, loss) for one in proba])
        scores["cost"] = over_folds(
            [float(np.average(loss[codes[at], taken[r, at]], weights=w)) for (r, at), w in weighted]
        )
    return scores


def auc(codes: Codes, scores: Float, weights: Float | None = None) -> float:
    """The area under the curve of each class against the rest, (n, n_classes) scores, and their mean; of two classes one.

    Classes of which these rows have none, or nothing else, do not count.
    """
    judged = [1] if scores.shape[1] == 2 else range(scores.shape[1])
    areas = []
    for k in judged:
        of_class = codes == k
        inside = int(of_class.sum())
        if 0 < inside < len(codes) and weights is not None:
            areas.append(float(roc_auc_score(of_class, scores[:, k], sample_weight=weights)))
        elif 0 < inside < len(codes):
            above = rankdata(scores[:, k])[of_class].sum() - inside * (inside + 1) / 2.0
            areas.append(above / (inside * (len(codes) - inside)))
    return float(np.mean(areas)) if areas else 0.5


def brier(codes: Codes, proba: Float, weights: Float | None = None) -> float:
    """The mean squared distance of the probabilities from the truth; half of it for two classes, as scikit-learn has it."""
    distances = ((proba - np.eye(proba.shape[1])[codes]) ** 2).sum(axis=1)
    squares = float(np.average(distances, weights=weights))
    return squares / 2.0 if proba.shape[1] == 2 else squares


def counted(codes: Codes, answers: Codes, n_classes: int, n_answers: int, weights: Float | None) -> Any:
    """(n_classes, n_answers) how often rows of a class got an answer: whole numbers, or sums of weights."""
    counts = np.zeros((n_classes, n_answers), dtype=np.intp if weights is None else np.float64)
    np.add.at(counts, (codes, answers), 1 if weights is None else weights)
    return counts


def accuracy_of(counts: Codes) -> float:
    """The share of right answers, of a confusion matrix with a row for each true class."""
    return float(np.trace(counts) / counts.sum())


def balanced_accuracy(counts: Codes) -> float:
    """The mean over the classes that have rows of the share of them that was found."""
    rows = counts.sum(axis=1)
    return float((np.diag(counts)[rows > 0] / rows[rows > 0]).mean())


def f1(counts: Codes) -> float:
    """The mean over the classes, true or predicted, of the harmonic mean of precision and recall."""
    both = counts.sum(axis=1) + counts.sum(axis=0)
    return float((2.0 * np.diag(counts)[both > 0] / both[both > 0]).mean())


_OF_COUNTS = {"accuracy": accuracy_of, "balanced_accuracy": balanced_accuracy, "f1": f1}


def calibrated(codes: Codes, folds: Codes, scores: Float, weights: Float | None = None) -> Float:
    """Probabilities of left-out scores (repeats, n, n_classes): those of a fold by a curve learnt from the other folds."""
    proba = np.zeros_like(scores)
    for r, numbers in enumerate(folds):
        columns = scores[r, :, 1:] if scores.shape[2] == 2 else scores[r]
        columns = columns - np.average(columns, axis=0, weights=weights)
        spread = np.sqrt(np.average(columns**2, axis=0, weights=weights))
        columns = columns / np.where(spread > 0, spread, 1.0)
        for k in np.unique(numbers):
            inside, outside = numbers != k, np.flatnonzero(numbers == k)
            own = None if weights is None else weights[inside]
            model = LogisticRegression(C=_CALIBRATION_C).fit(columns[inside], codes[inside], sample_weight=own)
            proba[r][np.ix_(outside, model.classes_)] = model.predict_proba(columns[outside])
    return proba


def by_guessing(shares: Float, by: str, loss: Float | None = None) -> float:
    """The score of one answer to all rows, from the shares of the classes: the likeliest class, or the shares themselves."""
    largest, k = float(shares.max()), len(shares)
    if by == "cost":
        assert loss is not None
        return float((shares @ loss).min())
    given = shares[shares > 0]
    return {
        "log_loss": float(-(given * np.log(given)).sum()),
        "accuracy": largest,
        "auc": 0.5,
        "balanced_accuracy": 1.0 / k,
        "f1": 2.0 * largest / (1.0 + largest) / k,
        "brier": float(1.0 - (shares**2).sum()) / (2.0 if k == 2 else 1.0),
    }[by]


def practical_margin(share: float, shares: Float, by: str, loss: Float | None = None) -> float:
    """A difference that does not matter: this share of what guessing loses, by classes of these shares.

    What is lost is the score itself where less is better, and the distance to 1 where more is.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.measures import practical_margin
    >>> round(practical_margin(0.01, np.array([0.9, 0.1]), "accuracy"), 6)
    0.001
    """
    if not (np.isfinite(share) and 0.0 <= share < 1.0):
        raise ValueError(
            f"margin={share}: give a share of what guessing loses, at least 0 and less than 1, such as 0.01."
        )
    guess = by_guessing(shares, by, loss)
    return share * abs(1.0 - guess if by in GREATER_IS_BETTER else guess)


def check_metric(metric: str | None, known: tuple[str, ...] = METRICS) -> None:
    """Refuse a name that is none of the scores that can rank."""
    if metric is not None and metric not in known:
        raise ValueError(f"metric={metric!r}: candidates are ranked by one of {', '.join(known)}, or by a loss.")


def _calibration(
    codes: Codes, folds: Codes, proba: Float, parts: list[tuple[int, Codes]], weights: Float | None
) -> Score:
    labels = np.arange(proba.shape[2])

    def error(r: int, at: Any) -> float:
        own = None if weights is None else weights[at]
        return expected_calibration_error(codes[at], proba[r, at], classes=labels, sample_weight=own)

    n_folds = int(folds.max()) + 1
    pooled = np.mean([error(r, slice(None)) for r in range(len(folds))])
    without = np.array([[error(r, folds[r] != k) for k in range(n_folds)] for r in range(len(folds))])
    jackknife = np.sqrt((n_folds - 1) * without.var(axis=1).mean())
    return Score(float(pooled), float(jackknife), np.array([error(r, at) for r, at in parts]))


def one_mistake(proba: Float, weights: Float | None = None) -> float:
    """What one more row, of the class that is held to be the second, adds to the mean log-loss of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.measures import one_mistake
    >>> round(one_mistake(np.array([[0.9, 0.1], [0.1, 0.9]])), 4)  # (-log 0.1)/2
    1.1513
    """
    second = np.partition(proba, -2, axis=1)[:, -2]
    surprise = -np.log(np.maximum(second, np.finfo(np.float64).eps))
    return float(surprise.mean() / len(proba) if weights is None else surprise @ weights / weights.sum() ** 2)
