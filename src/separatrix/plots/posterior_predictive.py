"""The probability of a class along one column, with how uncertain the model is of it.

    p(k | x̄ with column j set to a),     between the quantiles of σ(wᵀx + b) under the posterior of (w, b)

Where there are few rows the band is wide. The other columns are held at their means (at their most frequent value, if they
are no numbers).
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any, Self

import numpy as np

from separatrix.data.block import Float
from separatrix.plots import style
from separatrix.plots.display import Display
from separatrix.plots.section import Section


@dataclass(eq=False, repr=False)
class PosteriorPredictiveDisplay(Display):
    """Predictive probabilities along one column, with interval bands.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Of the column.
    proba, lower, upper : ndarray of shape (n, n_shown)
        The probability of each class shown, and its interval.
    classes : list
        The classes shown.
    xlabel : str
        Name of the column.
    level : float, default=0.95
        Of the intervals.

    Examples
    --------
    >>> from separatrix import BayesianLogisticRegression
    >>> from separatrix.plots import PosteriorPredictiveDisplay
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> model = BayesianLogisticRegression().fit(X, ["no", "yes", "no", "yes"])
    >>> display = PosteriorPredictiveDisplay.from_estimator(model, X, grid_resolution=3)
    >>> display.classes, display.values, bool((display.lower < display.proba).all())
    (['yes'], array([0. , 1.5, 3. ]), True)
    """

    values: Float
    proba: Float
    lower: Float
    upper: Float
    classes: list[Any]
    xlabel: str = ""
    level: float = 0.95

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        feature: int | str | None = None,
        level: float = 0.95,
        class_of_interest: Any = None,
        grid_resolution: int = 200,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Predict along a column, and plot.

        Parameters
        ----------
        estimator : fitted BayesianLogisticRegression, or a pipeline that ends in one
        X : array-like or data frame of shape (n_samples, n_features)
            The range to show, and where the other columns are held.
        feature : position or name of a column, optional
            Needed when X has more than one.
        level : float, default=0.95
            Of the intervals.
        class_of_interest : label, optional
            By default the second of two classes, and all of more.
        grid_resolution : int, default=200
        ax, **kwargs
            The matplotlib Axes, a new figure when left out. For the lines: `Axes.plot`.

        Returns
        -------
        PosteriorPredictiveDisplay
        """
        response = getattr(style.final_step(estimator), "predict_proba", None)
        if response is None or "level" not in signature(response).parameters:
            raise ValueError(
                f"{type(style.final_step(estimator)).__name__} has no intervals of its probabilities; fit a "
                "BayesianLogisticRegression."
            )
        section = Section(X, None if feature is None else [feature], 1)
        values = np.linspace(section.ends[0, 0], section.ends[1, 0], grid_resolution)
        proba, lower, upper = section.evaluate(
            lambda points: estimator.predict_proba(points, level=level), values[:, None]
        )
        known = np.asarray(estimator.classes_).tolist()
        shown = list(range(len(known))) if len(known) > 2 else [1]
        if class_of_interest is not None:
            shown = [style.chosen_class(known, class_of_interest, "class_of_interest")]
        classes = [known[k] for k in shown]
        display = cls(values, proba[:, shown], lower[:, shown], upper[:, shown], classes, section.names[0], level)
        return display.plot(ax, **kwargs)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        for k, name in enumerate(self.classes):
            given = style.with_defaults("Line2D", kwargs, label=style.label(name), **style.line(k))
            (line,) = ax.plot(self.values, self.proba[:, k], **given)
            band = {"color": line.get_color(), "alpha": 0.2, "linewidth": 0}
            ax.fill_between(self.values, self.lower[:, k], self.upper[:, k], **band)
        ax.set(ylim=(-0.02, 1.02), xlim=(self.values[0], self.values[-1]))
        return self.xlabel, f"probability, with its {100 * self.level:g} % interval"
