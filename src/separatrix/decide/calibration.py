"""Calibration: of the rows given probability p, a share p should be of that class.

    ECE = Σ_b (S_b/S) |observed_b − predicted_b|,      over bins b of the predicted probability

For K > 2 classes either the largest posterior of each row is compared with how often that class is right (confidence), or every
class's posterior with that class's frequency, averaged over classes (class-wise). Intervals of the observed frequency are
Wilson's (see `intervals`). References: Guo et al., ICML 2017; Nixon et al., CVPR workshops 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data.block import Float
from separatrix.data.labels import as_weights, listed, shown
from separatrix.decide.intervals import wilson_interval
from separatrix.decide.losses import check_rows_of, class_codes


@dataclass(frozen=True)
class Reliability:
    """The points of a reliability diagram; bins without rows are left out.

    Parameters
    ----------
    predicted : ndarray of shape (n_bins,)
        Mean predicted probability of the rows in each bin.
    observed : ndarray of shape (n_bins,)
        Share of them that were so.
    lower, upper : ndarray of shape (n_bins,)
        Wilson interval of the observed share.
    counts : ndarray of shape (n_bins,)
        Number of rows (their total weight).
    left, right : ndarray of shape (n_bins,)
        The ends of each bin: left < p ≤ right, and p = 0 is in the first.
    """

    predicted: Float
    observed: Float
    lower: Float
    upper: Float
    counts: Float
    left: Float
    right: Float

    @property
    def error(self) -> float:
        """Mean distance of observed and predicted over the rows: the expected calibration error of these bins."""
        return float(np.average(np.abs(self.observed - self.predicted), weights=self.counts))


def reliability_diagram(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: Any = None,
    classes: ArrayLike | None = None,
    strategy: Literal["uniform", "quantile"] = "uniform",
    n_bins: int = 10,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
) -> Reliability:
    """Predicted probability against observed frequency.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Posteriors; a vector holds those of the second of two classes.
    pos_label : label, optional
        The class whose probability is judged. By default the second of two; for more, whichever is the likeliest in each row.
    classes : array-like, optional
        What the columns of `y_prob` stand for, sorted, when a class has no row in `y_true`.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal numbers of rows.
    n_bins : int, default=10
    sample_weight : array-like of shape (n_samples,), optional
        A weight of 2 means the same as the row standing twice.
    level : float, default=0.95

    Returns
    -------
    Reliability

    Examples
    --------
    >>> from separatrix.decide import reliability_diagram
    >>> points = reliability_diagram([0, 0, 1, 1], [0.1, 0.2, 0.2, 0.9], n_bins=2)
    >>> points.observed.round(2), points.counts
    (array([0.33, 1.  ]), array([3., 1.]))
    """
    predicted, happened, weights = _events(y_true, y_prob, pos_label, classes, sample_weight)
    edges = _edges(predicted, weights, strategy, n_bins)
    places = np.searchsorted(edges[1:-1], predicted)
    counts = np.bincount(places, weights, minlength=len(edges) - 1).astype(np.float64)
    filled = np.flatnonzero(counts > 0)
    n = counts[filled]
    mean = np.bincount(places, weights * predicted, minlength=len(counts))[filled] / n
    share = np.bincount(places, weights * happened, minlength=len(counts))[filled] / n
    low, high = wilson_interval(share, n, level)
    return Reliability(mean, share, low, high, n, edges[filled], edges[filled + 1])


def expected_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    kind: Literal["confidence", "classwise"] = "confidence",
    classes: ArrayLike | None = None,
    strategy: Literal["uniform", "quantile"] = "uniform",
    n_bins: int = 10,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean distance of predicted probability and observed frequency over bins.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
    kind : {"confidence", "classwise"}, default="confidence"
        Judge the probability of the second of two classes, or of the likeliest of more; or every class, and average.
    classes, strategy, n_bins, sample_weight
        As for `reliability_diagram`.

    Returns
    -------
    float

    Examples
    --------
    >>> from separatrix.decide import expected_calibration_error
    >>> round(expected_calibration_error([0, 0, 1, 1], [0.1, 0.2, 0.2, 0.9], n_bins=2), 3)
    0.15
    """
    if kind not in ("confidence", "classwise"):
        raise ValueError(f"kind={kind!r} is not known: give 'confidence' or 'classwise'.")
    weights = as_weights(sample_weight, len(np.asarray(y_prob)))
    known, _ = class_codes(y_true, classes, weights)
    labels = [None] if kind == "confidence" else known.tolist()
    errors = [
        reliability_diagram(
            y_true, y_prob, pos_label=label, classes=known, strategy=strategy, n_bins=n_bins, sample_weight=weights
        ).error
        for label in labels
    ]
    return float(np.mean(errors))


def _events(
    y_true: ArrayLike, y_prob: ArrayLike, pos_label: Any, classes: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[Float, NDArray[np.bool_], Float]:
    """The probability judged in every row, whether it came true, and the row's weight; rows that count only."""
    weights = as_weights(sample_weight, len(y_prob))  # type: ignore[arg-type]  # rows have a number
    known, truth = class_codes(y_true, classes, weights)
    if np.ndim(y_prob) == 1:
        second = np.asarray(y_prob, dtype=np.float64)
        y_prob = np.column_stack([1.0 - second, second])
    given = check_rows_of(y_prob, known, len(truth))
    if pos_label is not None and pos_label not in known.tolist():
        raise ValueError(f"pos_label={shown(pos_label)} is not one of the classes {listed(known)}.")
    if pos_label is None and len(known) > 2:
        column = given.argmax(axis=1)
    else:
        column = np.full(len(given), 1 if pos_label is None else known.tolist().index(pos_label))
    counted = np.ones(len(given)) if weights is None else weights
    kept = counted > 0
    predicted = given[np.arange(len(given)), column]
    return predicted[kept], (truth == column)[kept], counted[kept]


def _edges(predicted: Float, weights: Float, strategy: str, n_bins: int) -> Float:
    if n_bins < 1:
        raise ValueError(f"n_bins is {n_bins!r}; at least one bin is needed.")
    levels = np.linspace(0.0, 1.0, n_bins + 1)
    if strategy == "uniform":
        return levels
    if strategy != "quantile":
        raise ValueError(f"strategy={strategy!r} is not known: give 'uniform' or 'quantile'.")
    inner = np.quantile(predicted, levels[1:-1], weights=weights, method="inverted_cdf")
    return np.concatenate([[0.0], np.unique(inner), [1.0]])
