"""Risk: the mean loss of the actions taken, and how sure one can be of it.

    R = Σ sᵢ lᵢ / S,      lᵢ = L[yᵢ, aᵢ],      standard error² = Σ sᵢ (lᵢ−R)² / (S(S−1))

A weight sᵢ counts repetitions, S = Σ sᵢ. R ± z standard errors is no interval here: without an error among 20 rows it has no
length, and for rare errors it holds the truth too seldom. `intervals` uses the range of the loss instead. The bootstrap draws
how often each *different* loss occurs (one multinomial draw per resample), which is the same as drawing rows; its interval is
BCa: bias-corrected, with the acceleration
Σ(lᵢ−R)³ / 6(Σ(lᵢ−R)²)^{3/2}. Reference: Efron and Tibshirani, An Introduction to the Bootstrap, ch. 14.

The risk–coverage curve keeps the rows of which the rule is surest. Rows that tie are kept together; between corners of the
curve a share of them is kept at random, so that coverage × risk is linear there and the area has a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit
from sklearn.utils import check_random_state

from separatrix.data.block import Codes, Float
from separatrix.data.labels import as_weights, shown
from separatrix.decide.intervals import bounded_interval, wilson_interval
from separatrix.decide.losses import (
    Loss,
    action_codes,
    best_actions,
    check_rows_of,
    class_codes,
    classes_with,
    distinct_actions,
    expected_losses,
    loss_table,
    row_losses,
    suffered_losses,
)
from separatrix.decide.real_losses import REAL_LOSSES, real_losses
from separatrix.inference.estimates import check_level

_DRAWN_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Risk:
    """A mean loss with its confidence interval.

    Parameters
    ----------
    estimate : float
    lower, upper : float
        Ends of the interval.
    standard_error : float
    n : float
        Number of rows (their total weight), or of draws.
    method : str
        Where the interval comes from.
    """

    estimate: float
    lower: float
    upper: float
    standard_error: float
    n: float
    method: str


def risk(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    loss: Loss = "zero-one",
    *,
    classes: ArrayLike | None = None,
    actions: ArrayLike | None = None,
    reject_cost: float | None = None,
    reject_action: Any = "reject",
    costs: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    epsilon: float = 0.1,
    method: Literal["auto", "wilson", "exact", "t", "bootstrap"] = "auto",
    level: float = 0.95,
    n_resamples: int = 9999,
    random_state: Any = None,
) -> Risk:
    """Mean loss of actions, or of real predictions, with a confidence interval.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_pred : array-like of shape (n_samples,)
        The action taken on every row, as `BayesRule.predict` gives them; numbers for a loss of real targets.
    loss : "zero-one", array-like of shape (n_classes, n_actions) or callable, default="zero-one"
        As for `BayesRule`; or, for real targets, "squared", "absolute" or "epsilon-insensitive".
    classes, actions : array-like, optional
        What the rows and columns of a loss matrix stand for: by default the labels in `y_true`, sorted, for both.
    reject_cost : float, optional
        Loss of a rejected row.
    reject_action : label, default="reject"
        What stands for a rejection in `y_pred`.
    costs : array-like of shape (n_samples, n_classes, n_actions) or (n_samples, n_actions), optional
        Costs of each row, as for `BayesRule.predict`; needs `actions` unless the actions are the classes.
    sample_weight : array-like of shape (n_samples,), optional
        A weight of 2 means the same as the row standing twice.
    epsilon : float, default=0.1
        Errors up to it cost nothing under the "epsilon-insensitive" loss.
    method : {"auto", "wilson", "exact", "t", "bootstrap"}, default="auto"
        The interval. "wilson" is for losses of two values, such as 0 and 1; "exact" is that of Clopper and Pearson, carried
        over to any losses in a known range; "auto" is "wilson" where it can be, else "exact". They never leave the range of
        the loss, and count losses that did not occur. "bootstrap" (BCa) uses only those that did; where all are equal it is
        "exact" instead. Losses of real targets have no largest value: "t" is Student's interval, which "auto" is for them, and
        "bootstrap" the only other.
    level : float, default=0.95
    n_resamples : int, default=9999
    random_state : int, RandomState or None

    Returns
    -------
    Risk

    Examples
    --------
    >>> from separatrix import risk
    >>> result = risk([0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 0], [[0, 1], [5, 0]])
    >>> result.estimate, round(result.standard_error, 3)
    (1.0, 0.816)
    >>> result = risk([0] * 10 + [1] * 10, [0] * 10 + [1] * 10)  # no error among 20 rows
    >>> result.lower, round(result.upper, 3)
    (0.0, 0.161)
    >>> result = risk([1.0, 2.0, 3.0, 4.0], [1.5, 2.0, 2.0, 4.5], "squared")  # the mean squared error
    >>> result.estimate, result.method
    (0.375, 't')
    """
    check_level(level)
    taken = np.asarray(y_pred)
    weights = as_weights(sample_weight, len(taken))
    if isinstance(loss, str) and loss in REAL_LOSSES:
        if not (classes is actions is reject_cost is costs is None):
            raise ValueError(
                f"loss={loss!r} is about real targets, which have no classes, actions, rejections or costs."
            )
        values, counts = _counted(real_losses(y_true, y_pred, loss, epsilon), weights)
        return _real_interval(values, counts, method, level, n_resamples, random_state)
    labels, truth = _coded(y_true, classes, loss, weights)
    if truth.shape != taken.shape:
        raise ValueError(f"y_true has {len(truth)} rows and y_pred has shape {taken.shape}: give one action per row.")
    if actions is None and (isinstance(loss, str) or callable(loss)) and costs is None:
        # Only a matrix has columns for actions that nobody took, and only of its classes is the list complete.
        names = distinct_actions(taken, reject_action)
        matrix, columns = loss_table(_label_loss(loss, labels, names), labels, names if len(names) else None)
    else:
        matrix, columns = loss_table(loss, labels, None if actions is None else np.asarray(actions))
    codes = action_codes(taken, columns, reject_action)
    possible = row_losses(matrix, columns, costs, len(taken))
    losses = suffered_losses(truth, codes, possible, reject_cost)
    others = [0.0, 1.0] if isinstance(loss, str) and costs is None else []  # however few labels are there
    levels = np.unique(np.append(possible, others if reject_cost is None else [*others, reject_cost]))
    return _interval(*_counted(losses, weights), levels, method, level, n_resamples, random_state)


def _counted(losses: Float, weights: Float | None) -> tuple[Float, Float]:
    """The different losses, and how often each occurs."""
    values, places = np.unique(losses if weights is None else losses[weights > 0], return_inverse=True)
    return values, np.bincount(places, None if weights is None else weights[weights > 0]).astype(np.float64)


def _coded(
    y_true: ArrayLike, classes: ArrayLike | None, loss: Loss, weights: Float | None
) -> tuple[NDArray[Any], Codes]:
    """The classes, those given or those in y and in a labelled loss, and the code of every row."""
    if classes is None:
        classes = classes_with(loss, class_codes(y_true, None, weights)[0])
    return class_codes(y_true, classes, weights)


def _label_loss(loss: Any, labels: NDArray[Any], names: NDArray[Any]) -> Any:
    """The 0–1 loss as a function, since a class may be predicted that has no row here; other losses as they are."""
    if loss != "zero-one":
        return loss
    if len(names) and isinstance(labels.tolist()[0], str) != isinstance(names.tolist()[0], str):
        raise ValueError(
            f"y_true has labels like {shown(labels[0])} and actions like {shown(names[0])}: under the 0–1 loss actions are "
            "labels, so give both as one type."
        )
    return lambda truth, action: float(truth != action)


def _interval(
    values: Float, counts: Float, levels: Float, method: str, level: float, n_resamples: int, random_state: Any
) -> Risk:
    """The mean of losses that occur so many times each, among those that can occur."""
    if method not in ("auto", "wilson", "exact", "bootstrap"):
        raise ValueError(f"method={method!r} is not known here: give 'auto', 'wilson', 'exact' or 'bootstrap'.")
    n, mean, error = _mean(values, counts)
    least, most = float(levels[0]), float(levels[-1])
    if method == "wilson" and len(levels) > 2:
        raise ValueError(
            f"Wilson's interval is for losses of two values, and these can be {', '.join(f'{x:g}' for x in levels[:5])}"
            f"{', …' if len(levels) > 5 else ''}: give method='exact'."
        )
    if method == "wilson" or (method == "auto" and len(levels) == 2):
        share = np.array((counts @ (values == most)) / n)
        low, high = (least + (most - least) * float(end) for end in wilson_interval(share, np.array(n), level))
        return Risk(mean, min(low, mean), max(high, mean), error, n, "wilson")
    if method != "bootstrap" or len(values) == 1:
        low, high = bounded_interval(values, counts, least, most, level)
        return Risk(mean, low, high, error, n, "exact")
    return _bootstrapped(values, counts, level, n_resamples, random_state)


def _real_interval(
    values: Float, counts: Float, method: str, level: float, n_resamples: int, random_state: Any
) -> Risk:
    """The mean of losses that have no largest value."""
    if method not in ("auto", "t", "bootstrap"):
        raise ValueError(f"method={method!r} is for losses in a known range; real targets have 't' and 'bootstrap'.")
    if method == "bootstrap" and len(values) > 1:
        return _bootstrapped(values, counts, level, n_resamples, random_state)
    n, mean, error = _mean(values, counts)
    half = float(stdtrit(n - 1.0, 0.5 + level / 2.0)) * error
    return Risk(mean, max(0.0, mean - half), mean + half, error, n, "t")


def _mean(values: Float, counts: Float) -> tuple[float, float, float]:
    """How many rows, their mean loss and its standard error."""
    n = float(counts.sum())
    if n <= 1.0:
        raise ValueError(f"The total weight of the rows is {n:g}: the error of a mean needs more than one row.")
    mean = float(counts @ values / n)
    return n, mean, float(np.sqrt(float(counts @ np.square(values - mean)) / (n * (n - 1.0))))


def _bootstrapped(values: Float, counts: Float, level: float, n_resamples: int, random_state: Any) -> Risk:
    n, mean, _ = _mean(values, counts)
    deviations = values - mean
    squares = float(counts @ np.square(deviations))
    tail = (1.0 - level) / 2.0
    draws = _resampled_means(values, counts, n_resamples, random_state)
    below = float((draws < mean).mean() + (draws <= mean).mean()) / 2.0
    bias = float(ndtri(np.clip(below, 0.5 / n_resamples, 1.0 - 0.5 / n_resamples)))
    acceleration = float(counts @ deviations**3) / (6.0 * squares**1.5)
    z = bias + ndtri([tail, 1.0 - tail])
    low, high = np.quantile(draws, ndtr(bias + z / (1.0 - acceleration * z)))
    return Risk(mean, float(low), float(high), float(draws.std(ddof=1)), n, "bootstrap")


def _resampled_means(values: Float, counts: Float, n_resamples: int, random_state: Any) -> Float:
    rng = check_random_state(random_state)
    n = max(1, round(float(counts.sum())))
    at_once = max(1, _DRAWN_AT_ONCE // len(values))
    parts = [
        rng.multinomial(n, counts / counts.sum(), size=min(at_once, n_resamples - done)) @ values / n
        for done in range(0, n_resamples, at_once)
    ]
    return np.concatenate(parts)


@dataclass(frozen=True)
class RiskCoverage:
    """Risk of the rows that are kept, from the surest on.

    Parameters
    ----------
    coverage : ndarray of shape (m,)
        Share of the rows kept, rising to 1.
    risk : ndarray of shape (m,)
        Their mean loss.
    thresholds : ndarray of shape (m,)
        The uncertainty up to which rows are kept.
    area : float
        Area under the curve: the mean risk over all coverages.
    """

    coverage: Float
    risk: Float
    thresholds: Float = field(repr=False)
    area: float


def risk_coverage_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    loss: Loss = "zero-one",
    *,
    classes: ArrayLike | None = None,
    actions: ArrayLike | None = None,
    uncertainty: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> RiskCoverage:
    """How the risk falls as the least certain rows are rejected.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_prob : array-like of shape (n_samples, n_classes)
        Posteriors; the action on each row is the one of least expected loss.
    loss : "zero-one", array-like of shape (n_classes, n_actions) or callable, default="zero-one"
        As for `BayesRule`.
    classes, actions : array-like, optional
        As for `risk`; `classes` is needed when a class has no row in `y_true`.
    uncertainty : array-like of shape (n_samples,), optional
        What to reject by, the largest first; by default the least expected loss, which is what `reject_cost` goes by.
        1 − the largest posterior is what `reject_below` goes by.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    RiskCoverage

    Examples
    --------
    >>> from separatrix import risk_coverage_curve
    >>> curve = risk_coverage_curve([0, 1, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3]])
    >>> curve.coverage, curve.risk.round(2)
    (array([0.25, 0.5 , 0.75, 1.  ]), array([0.  , 0.  , 0.33, 0.25]))
    """
    weights = as_weights(sample_weight, len(y_prob))  # type: ignore[arg-type]  # rows have a number
    labels, truth = _coded(y_true, classes, loss, weights)
    given = check_rows_of(y_prob, labels, len(truth))
    matrix, _ = loss_table(loss, labels, None if actions is None else np.asarray(actions))
    losses = suffered_losses(truth, best_actions(given, matrix), matrix, None)
    doubt = expected_losses(given, matrix).min(axis=1) if uncertainty is None else np.asarray(uncertainty, np.float64)
    if doubt.shape != truth.shape or not np.isfinite(doubt).all():
        raise ValueError(f"uncertainty must be one finite number for each of the {len(truth)} rows.")
    shares = np.ones(len(truth)) if weights is None else weights
    kept = shares > 0
    threshold, places = np.unique(doubt[kept], return_inverse=True)
    total = np.cumsum(np.bincount(places, shares[kept])) / shares.sum()
    lost = np.cumsum(np.bincount(places, (shares * losses)[kept])) / shares.sum()
    total[-1] = 1.0  # whatever rounding made of the sum
    return RiskCoverage(total, lost / total, threshold, _area(total, lost))


def _area(coverage: Float, lost: Float) -> float:
    """∫ lost(c)/c dc with lost linear between the corners, from (0, 0)."""
    start, before = coverage[:-1], lost[:-1]
    slope = np.diff(lost) / np.diff(coverage)
    between = slope * np.diff(coverage) + (before - slope * start) * np.log(coverage[1:] / start)
    return float(lost[0] + between.sum())
