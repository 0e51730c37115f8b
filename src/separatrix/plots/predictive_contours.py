"""Probabilities over the plane, averaged over the posterior and at its mode.

    p(k | x, D) = ∫ p(k | x, θ) p(θ | D) dθ            beside             p(k | x, θ̂)

The contours at the mode are parallel lines. Those of the average bend apart where rows are few: far out the model knows less.
Reference: Bishop (2006), section 4.5.2; Murphy (2012), figure 8.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from separatrix.data.block import Codes, Float
from separatrix.data.labels import encode
from separatrix.plots import style
from separatrix.plots.display import Display
from separatrix.plots.plane import draw_classes, fill_region
from separatrix.plots.section import Section


@dataclass(eq=False, repr=False)
class PredictiveContourDisplay(Display):
    """Contours of the probability of a class: of the posterior's average, and of the one set of coefficients at its mode.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        Coordinates of a grid.
    predictive, plug_in : ndarray of shape (n, n)
        The probability averaged over the posterior, and that of its mean, which for Laplace's Gaussian is the mode.
    class_of_interest : label
        The class whose probability it is.
    classes : list
    points : ndarray of shape (n_samples, 2), optional
        Rows to show.
    labels : ndarray of shape (n_samples,), optional
        Their classes, as positions in `classes`.
    levels : tuple of float
        Of the contours.
    xlabel, ylabel : str

    Examples
    --------
    >>> from separatrix import BayesianLogisticRegression
    >>> from separatrix.plots import PredictiveContourDisplay
    >>> X, y = [[0.0, 0.0], [1.0, 2.0], [2.0, 1.0], [3.0, 3.0]], [0, 0, 1, 1]
    >>> display = PredictiveContourDisplay.from_estimator(BayesianLogisticRegression(1.0).fit(X, y), X, y)
    >>> bool((abs(display.predictive - 0.5) <= abs(display.plug_in - 0.5)).all())  # never surer
    True
    """

    x: Float
    y: Float
    predictive: Float
    plug_in: Float
    class_of_interest: Any
    classes: list[Any]
    points: Float | None = None
    labels: Codes | None = None
    levels: tuple[float, ...] = (0.05, 0.25, 0.5, 0.75, 0.95)
    xlabel: str = ""
    ylabel: str = ""
    _legend_beside: ClassVar[bool] = True

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        features: Sequence[int | str] | None = None,
        class_of_interest: Any = None,
        levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95),
        grid_resolution: int = 200,
        eps: float | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Both probabilities on a grid, and their plot.

        Parameters
        ----------
        estimator : fitted BayesianLogisticRegression, or a pipeline that ends in one
        X : array-like or data frame of shape (n_samples, n_features)
            The part of the plane to show, and where the other columns are held.
        y : array-like of shape (n_samples,), optional
            Classes of the rows; without them no rows are drawn.
        features : two column positions or names, optional
            Needed when X has more than two columns.
        class_of_interest : label, optional
            By default the last class.
        levels : sequence of float
            Of the contours.
        grid_resolution : int, default=200
        eps : float, optional
            How far the plane reaches beyond the rows; by default a twentieth of their range.
        ax, **kwargs
            The matplotlib Axes, a new figure when left out. For the contours of the average: `Axes.contour`.

        Returns
        -------
        PredictiveContourDisplay
        """
        model = style.final_step(estimator)
        if not hasattr(model, "log_evidence_is_"):
            raise ValueError(f"{type(model).__name__} has no posterior; fit a BayesianLogisticRegression.")
        known = np.asarray(estimator.classes_)
        wanted = known.tolist()[-1] if class_of_interest is None else class_of_interest
        k = style.chosen_class(known.tolist(), wanted, "class_of_interest")
        section = Section(X, features, 2)
        W, b = model.linear_form()
        if len(W) == 1:
            W, b = np.pad(W, ((1, 0), (0, 0))), np.pad(b, (1, 0))

        def at_the_mode(rows: Any) -> Float:
            seen = rows if model is estimator else estimator[:-1].transform(rows)
            return softmax(np.asarray(seen, dtype=np.float64) @ W.T + b, axis=1)[:, k]

        first, second = section.grid(eps, grid_resolution)
        display = cls(
            first,
            second,
            section.surface(lambda rows: estimator.predict_proba(rows)[:, k], first, second),
            section.surface(at_the_mode, first, second),
            wanted,
            known.tolist(),
            None if y is None else section.shown,
            None if y is None else encode(np.asarray(y), known, None)[1],
            tuple(float(level) for level in levels),
            *section.names,
        )
        return display.plot(ax, **kwargs)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        k = self.classes.index(self.class_of_interest)
        for level in self.levels:
            fill_region(ax, self.x, self.y, self.predictive - level, style.colour(k), alpha=0.1)
        inside = [level for level in self.levels if self.plug_in.min() < level < self.plug_in.max()]
        if inside:
            look: dict[str, Any] = {"colors": style.INK, "linewidths": 1.0, "linestyles": "dashed"}
            ax.contour(self.x, self.y, self.plug_in, levels=inside, **look)
        inside = [level for level in self.levels if self.predictive.min() < level < self.predictive.max()]
        if inside:
            look = {"colors": style.colour(k), "linewidths": 1.4, **kwargs}
            lines = ax.contour(self.x, self.y, self.predictive, levels=inside, **look)
            ax.clabel(lines, fmt="%.3g", fontsize="x-small")
        ax.plot([], [], color=style.colour(k), label="averaged over the posterior")
        ax.plot([], [], color=style.INK, linestyle="dashed", label="at its mode")
        draw_classes(ax, self.points, self.labels, self.classes)
        ax.set(xlim=(self.x[0], self.x[-1]), ylim=(self.y[0], self.y[-1]))
        return self.xlabel, self.ylabel
