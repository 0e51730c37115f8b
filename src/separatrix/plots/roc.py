"""The receiver operating characteristic of two classes, and the point that a loss asks for.

    FPR(t) = P(s ≥ t | 0),   TPR(t) = P(s ≥ t | 1)            risk = π₀(c₀₁ FPR) + π₁ c₁₀(1 − TPR)

with c₀₁ the cost of a false alarm and c₁₀ that of a miss, above what the right actions cost. Points of equal risk lie on
lines of slope π₀c₀₁/(π₁c₁₀). With right probabilities the threshold c₀₁/(c₀₁ + c₁₀) is where such a line touches the curve.
Reference: Fawcett (2006), Pattern Recognition Letters 27, 861–874.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import auc, roc_curve

from separatrix.data.block import Float
from separatrix.data.labels import as_weights
from separatrix.decide.losses import class_codes, loss_table
from separatrix.decide.thresholds import threshold_for
from separatrix.plots import style
from separatrix.plots.display import Display


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold of the score, and what it costs.

    Parameters
    ----------
    fpr, tpr : float
        False and true positive rate.
    threshold : float
        Scores from here on are taken for the positive class.
    risk : float
        Mean loss.
    slope : float
        Of the line of equal risk through the point.
    """

    fpr: float
    tpr: float
    threshold: float
    risk: float
    slope: float


@dataclass(eq=False, repr=False)
class RocCurveDisplay(Display):
    """An ROC curve, with the operating point of a loss.

    Parameters
    ----------
    fpr, tpr : ndarray of shape (n,)
        False and true positive rates.
    roc_auc : float
        Area under the curve.
    name : str, optional
        For the legend.
    pos_label : label, optional
        The positive class.
    point : OperatingPoint, optional
        Where the rule of least expected loss stands, its probabilities taken at their word.
    best : OperatingPoint, optional
        The threshold of least loss on these rows, in hindsight.

    Attributes
    ----------
    line_
        The curve that was plotted last.

    Examples
    --------
    >>> from separatrix.plots import RocCurveDisplay
    >>> display = RocCurveDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.6, 0.35, 0.8], loss=[[0, 1], [3, 0]])
    >>> display.roc_auc, display.point.threshold, display.point.tpr
    (0.75, 0.25, 1.0)
    """

    fpr: Float
    tpr: Float
    roc_auc: float
    name: str | None = None
    pos_label: Any = None
    point: OperatingPoint | None = None
    best: OperatingPoint | None = None
    line_: Any = field(default=None, init=False, repr=False)
    _legend_beside: ClassVar[bool] = True

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        drop_intermediate: bool = True,
        response_method: Literal["auto", "decision_function", "predict_proba"] = "auto",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        plot_chance_level: bool = False,
        loss: Any = None,
        **kwargs: Any,
    ) -> Self:
        """The curve of a classifier on rows it was not fitted on, and its plot.

        Parameters
        ----------
        estimator : fitted classifier of two classes
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
            "auto" takes the first of the two that the estimator has, as scikit-learn; with a loss, probabilities first.
        sample_weight, drop_intermediate, pos_label, name, ax, plot_chance_level, loss, **kwargs
            As for `from_predictions`; the name is by default that of the estimator.

        Returns
        -------
        RocCurveDisplay
        """
        classes = np.asarray(estimator.classes_)
        if len(classes) != 2:
            raise ValueError(f"There are {len(classes)} classes, and an ROC curve is of two.")
        order = ["decision_function", "predict_proba"] if loss is None else ["predict_proba", "decision_function"]
        asked = order if response_method == "auto" else [response_method]
        method = next((one for one in asked if hasattr(estimator, one)), None)
        if method is None:
            raise ValueError(f"{type(estimator).__name__} has no {' and no '.join(asked)}, so there are no scores.")
        positive = 1 if pos_label is None else style.chosen_class(classes.tolist(), pos_label, "pos_label")
        scores = np.asarray(getattr(estimator, method)(X), dtype=np.float64)
        scores = scores[:, positive] if scores.ndim == 2 else scores if positive else -scores
        return cls.from_predictions(
            y,
            scores,
            classes=classes,
            sample_weight=sample_weight,
            drop_intermediate=drop_intermediate,
            pos_label=classes.tolist()[positive],
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            plot_chance_level=plot_chance_level,
            loss=loss,
            probabilities=method == "predict_proba",
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        drop_intermediate: bool = True,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        plot_chance_level: bool = False,
        loss: Any = None,
        probabilities: bool = True,
        **kwargs: Any,
    ) -> Self:
        """The curve of given scores, and its plot.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_score : array-like of shape (n_samples,)
            Scores of the positive class.
        classes : array-like, optional
            Both classes, sorted, when one has no row in `y_true`.
        sample_weight : array-like of shape (n_samples,), optional
        drop_intermediate : bool, default=True
            Leave out points on straight parts of the curve.
        pos_label : label, optional
            The positive class; by default the second.
        name : str, optional
            For the legend.
        ax : matplotlib Axes, optional
            A new figure when left out.
        plot_chance_level : bool, default=False
            Whether to draw the diagonal.
        loss : array-like of shape (2, 2), data frame or dict, optional
            ``loss[k][a]``: the truth is k, the action a, in the order of the classes. Marks the points of this loss.
        probabilities : bool, default=True
            Whether the scores are probabilities, so that the loss has a threshold of its own.
        **kwargs : dict
            For the curve: `Axes.plot`.

        Returns
        -------
        RocCurveDisplay
        """
        scores = np.asarray(y_score, dtype=np.float64)
        weights = as_weights(sample_weight, len(scores))
        known, codes = class_codes(y_true, classes, weights)
        if len(known) != 2:
            raise ValueError(f"There are {len(known)} classes in y_true, and an ROC curve is of two.")
        positive = 1 if pos_label is None else style.chosen_class(known.tolist(), pos_label, "pos_label")
        happened = codes == positive
        fpr, tpr, _ = roc_curve(happened, scores, sample_weight=weights, drop_intermediate=drop_intermediate)
        point = best = None
        if loss is not None:
            matrix, _ = loss_table(loss, known, None)
            order = [1 - positive, positive]
            point, best = _points(happened, scores, weights, matrix[np.ix_(order, order)], probabilities)
        display = cls(fpr, tpr, float(auc(fpr, tpr)), name, known.tolist()[positive], point, best)
        return display.plot(ax, plot_chance_level=plot_chance_level, **kwargs)

    def _draw(
        self, ax: Any, *, name: str | None = None, plot_chance_level: bool = False, **kwargs: Any
    ) -> tuple[str, str]:
        if plot_chance_level:
            ax.plot([0, 1], [0, 1], color=style.INK, linestyle=":", linewidth=1.0, label="chance (AUC = 0.5)")
        shown, area = self.name if name is None else name, f"AUC = {self.roc_auc:.3g}"
        defaults = {"label": area if shown is None else f"{style.label(shown)} ({area})"}
        defaults |= style.line(
            sum("AUC" in str(line.get_label()) and "chance" not in str(line.get_label()) for line in ax.get_lines())
        )
        (self.line_,) = ax.plot(self.fpr, self.tpr, **style.with_defaults("Line2D", kwargs, **defaults))
        for point, marker, words in ((self.point, "o", "threshold"), (self.best, "D", "least on these rows")):
            if point is None:
                continue
            told = f"{words} {point.threshold:.3g}" if marker == "o" else words
            look = {"color": self.line_.get_color(), "marker": marker, "linestyle": "none", "markersize": 8}
            hollow = {"markerfacecolor": "none"} if marker == "D" else {}
            ax.plot([point.fpr], [point.tpr], label=f"{told}: risk {point.risk:.3g}", zorder=4, **look, **hollow)
        touching = self.best
        if touching is not None and np.isfinite(touching.slope):
            ax.axline(
                (touching.fpr, touching.tpr), slope=touching.slope, color=style.INK, linewidth=0.8, linestyle="--"
            )
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        ax.set_aspect("equal")
        event = "" if self.pos_label is None else f" of {self.pos_label}"
        return "false positive rate", f"true positive rate{event}"


def _points(
    happened: Any, scores: Float, weights: Float | None, loss: Float, probabilities: bool
) -> tuple[OperatingPoint | None, OperatingPoint]:
    """The point of the loss's own threshold, and that of least loss; the positive class is the second of the loss."""
    own = threshold_for(loss)
    fpr, tpr, thresholds = roc_curve(happened, scores, sample_weight=weights, drop_intermediate=False)
    prior = float(np.average(happened, weights=weights))
    actions = np.stack([[1.0 - fpr, fpr], [1.0 - tpr, tpr]])  # of the rows of each class, the share that is given each
    risks = np.einsum("k,ka,kap->p", [1.0 - prior, prior], loss, actions)
    alarm, miss = (1.0 - prior) * (loss[0, 1] - loss[0, 0]), prior * (loss[1, 0] - loss[1, 1])
    slope = float(alarm / miss) if miss > 0 else np.inf

    def at(place: int, threshold: float) -> OperatingPoint:
        return OperatingPoint(float(fpr[place]), float(tpr[place]), threshold, float(risks[place]), slope)

    least = int(risks.argmin())
    best = at(least, float(thresholds[least]))
    if not probabilities:
        return None, best
    # Points of the curve have falling thresholds; the last that is not below the loss's own has the same rows on its side.
    return at(int(np.flatnonzero(thresholds >= own)[-1]), own), best
