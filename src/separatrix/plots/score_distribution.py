"""How far apart a classifier's scores hold the classes.

    two classes   the score, or the probability, of one of them, by true class
    more          s_y(x) − max_{k≠y} s_k(x), by true class y: the row is right where it is positive

Each histogram is a density of its own class, so that a rare class is as visible as a frequent one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Codes, Float
from separatrix.data.labels import as_weights
from separatrix.decide.losses import class_codes
from separatrix.plots import style
from separatrix.plots.display import Display


@dataclass(eq=False, repr=False)
class ScoreDistributionDisplay(Display):
    """Histograms of scores, one per true class.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
    densities : ndarray of shape (n_classes, n_bins)
        Each has area 1; zeros for a class without rows.
    classes : list
    threshold : float, optional
        Where the decision changes.
    xlabel : str
        What the score is.

    Examples
    --------
    >>> from separatrix.plots import ScoreDistributionDisplay
    >>> ScoreDistributionDisplay.from_predictions(["a", "a", "b"], [-2.0, 0.0, 2.0], bins=2).densities
    array([[0.25, 0.25],
           [0.  , 0.5 ]])
    """

    edges: Float
    densities: Float
    classes: list[Any]
    threshold: float | None = None
    xlabel: str = "score"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        response_method: Literal["auto", "decision_function", "predict_proba"] = "auto",
        pos_label: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """The scores of rows under a classifier, and their plot.

        Parameters
        ----------
        estimator : fitted classifier
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
            "auto" takes the first of the two that the estimator has.
        pos_label, ax, **kwargs
            As for `from_predictions`.

        Returns
        -------
        ScoreDistributionDisplay
        """
        asked = ["decision_function", "predict_proba"] if response_method == "auto" else [response_method]
        method = next((one for one in asked if hasattr(estimator, one)), None)
        if method is None:
            raise ValueError(
                f"{type(estimator).__name__} has no {' and no '.join(asked)}, so there are no scores to show."
            )
        scores, classes = np.asarray(getattr(estimator, method)(X)), np.asarray(estimator.classes_)
        if scores.ndim == 1 and pos_label is not None:  # one score of two opposite ones
            scores = scores if style.chosen_class(classes.tolist(), pos_label, "pos_label") else -scores
        return cls.from_predictions(
            y,
            scores,
            classes=classes,
            pos_label=pos_label,
            threshold=None if len(classes) > 2 else 0.0 if method == "decision_function" else 0.5,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        pos_label: Any = None,
        threshold: float | None = None,
        bins: int | ArrayLike = 30,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Given scores, and their plot.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
            A vector holds the scores of `pos_label`, out of two classes.
        classes : array-like, optional
            What the columns of `y_score` stand for, sorted, when a class has no row in `y_true`.
        pos_label : label, optional
            The class whose score is shown. By default the second of two; for more, the lead of each row's own class.
        threshold : float, optional
            Score at which the decision changes; that of the lead is always 0.
        bins : int or array-like, default=30
            Number of bins, or their edges.
        sample_weight : array-like of shape (n_samples,), optional
        ax, **kwargs
            The matplotlib Axes, a new figure when left out. For the histograms: `Axes.stairs`.

        Returns
        -------
        ScoreDistributionDisplay
        """
        given = np.asarray(y_score, dtype=np.float64)
        weights = as_weights(sample_weight, len(given))
        known, codes = class_codes(y_true, classes, weights)
        scores, name, lead = _shown(given, codes, known.tolist(), pos_label)
        if not np.isfinite(scores).all():
            raise ValueError(f"{int((~np.isfinite(scores)).sum())} scores are NaN or infinite; leave these rows out.")
        edges = np.histogram_bin_edges(scores, np.asarray(bins) if np.ndim(bins) else bins)
        counted = np.ones(len(scores)) if weights is None else weights
        counts = np.stack(
            [np.histogram(scores[codes == k], edges, weights=counted[codes == k])[0] for k in range(len(known))]
        )
        total = counts.sum(axis=1, keepdims=True)
        densities = np.divide(counts, total * np.diff(edges), out=np.zeros(counts.shape), where=total > 0)
        at = 0.0 if lead else threshold
        return cls(edges, densities, known.tolist(), at, name).plot(ax, **kwargs)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        for k, (name, density) in enumerate(zip(self.classes, self.densities, strict=True)):
            if not density.any():
                continue
            given = style.with_defaults("StepPatch", kwargs, label=style.label(name), linewidth=1.5, **style.line(k))
            ax.stairs(density, self.edges, **given)
            ax.stairs(density, self.edges, fill=True, color=style.colour(k), alpha=0.2)
        if self.threshold is not None:
            ax.axvline(self.threshold, color=style.INK, linewidth=1.0, linestyle=":")
        return self.xlabel, "density within the class"


def _shown(given: Float, codes: Codes, classes: list[Any], pos_label: Any) -> tuple[Float, str, bool]:
    """One number per row, what it is, and whether it is the lead of the row's own class."""
    if given.shape not in {(len(codes),), (len(codes), len(classes))} or (given.ndim == 1 and len(classes) > 2):
        raise ValueError(
            f"The scores have shape {given.shape} for {len(codes)} rows and the classes {classes}: give one column per class, "
            "and all classes with classes=[…] if some have no row here."
        )
    if given.ndim == 2 and len(classes) > 2 and pos_label is None:
        rows, others = np.arange(len(codes)), given.copy()
        others[rows, codes] = -np.inf
        return given[rows, codes] - others.max(axis=1), "lead of the row's own class over the next", True
    k = 1 if pos_label is None else style.chosen_class(classes, pos_label, "pos_label")
    return given[:, k] if given.ndim == 2 else given, f"score of {classes[k]}", False
