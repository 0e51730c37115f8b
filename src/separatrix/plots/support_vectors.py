"""A support vector machine of two classes: its margins, who lies on them, and how far the others fall short of theirs.

    ξᵢ = max(0, 1 − tᵢ f(xᵢ)),    tᵢ = ±1        tᵢf = 1: on the margin;  0 < tᵢf < 1: within it;  tᵢf ≤ 0: on the wrong side

A slack is drawn from the margin of the row's own class to the row, along the gradient of f: at a right angle to the margin, if
f is linear. Reference: Hastie, Tibshirani, Friedman, ESL 2nd ed., section 12.2 and figure 12.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Codes, Float
from separatrix.data.labels import encode
from separatrix.plots import style
from separatrix.plots.display import Display
from separatrix.plots.plane import draw_classes, draw_edges, fill_region
from separatrix.plots.section import Section

KINDS = ("beyond the margin", "margin vectors", "within the margin", "outliers")
_RINGS: dict[int, dict[str, Any]] = {
    1: {"marker": "o", "s": 90, "linewidths": 1.6},
    2: {"marker": "o", "s": 90, "linewidths": 0.8, "linestyles": "dotted"},
    3: {"marker": "D", "s": 110, "linewidths": 1.4},
}


@dataclass(eq=False, repr=False)
class SupportVectorDisplay(Display):
    """Margins, slacks and the kinds of rows of a support vector machine.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        Coordinates of a grid.
    scores : ndarray of shape (n, n)
        f on the grid.
    points : ndarray of shape (n_samples, 2)
    labels : ndarray of shape (n_samples,)
        0 or 1: positions in `classes`.
    classes : list
    slacks : ndarray of shape (n_samples,)
    kinds : ndarray of shape (n_samples,)
        Positions in "beyond the margin", "margin vectors", "within the margin", "outliers".
    feet : ndarray of shape (n_samples, 2)
        Where the slack of a row begins, on its margin; NaN for rows without.
    xlabel, ylabel : str

    Examples
    --------
    >>> from separatrix import SVC
    >>> from separatrix.plots import SupportVectorDisplay
    >>> X, y = [[0.0, 0.0], [2.0, 0.0], [4.0, 0.0], [1.5, 1.0]], [0, 0, 1, 1]
    >>> display = SupportVectorDisplay.from_estimator(SVC(kernel="linear", C=0.5).fit(X, y), X, y)
    >>> display.counts
    {'margin vectors': 2, 'within the margin': 1, 'outliers': 1}
    """

    x: Float
    y: Float
    scores: Float
    points: Float
    labels: Codes
    classes: list[Any]
    slacks: Float
    kinds: Codes
    feet: Float
    xlabel: str = ""
    ylabel: str = ""
    _legend_beside: ClassVar[bool] = True

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows of every kind that occurs."""
        return {name: int((self.kinds == k).sum()) for k, name in enumerate(KINDS) if (self.kinds == k).any()}

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        features: Sequence[int | str] | None = None,
        grid_resolution: int = 200,
        eps: float | None = None,
        tol: float = 1e-2,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Scores of a grid and of the rows, and their plot.

        Parameters
        ----------
        estimator : fitted classifier of two classes with `decision_function`
            Whose margins are f = ±1: `SVC`, `NuSVC`, `LinearSVC`, `LinearClassifier` with the hinge loss, or a pipeline.
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        features : two column positions or names, optional
            Needed when X has more than two columns.
        grid_resolution : int, default=200
        eps : float, optional
            How far the plane reaches beyond the rows; by default a twentieth of their range.
        tol : float, default=0.01
            A row whose margin is 1 within this is on the margin.
        ax, **kwargs
            The matplotlib Axes, a new figure when left out. For the slacks: `matplotlib.collections.LineCollection`.

        Returns
        -------
        SupportVectorDisplay
        """
        known = np.asarray(getattr(estimator, "classes_", ()))
        if len(known) != 2 or not hasattr(estimator, "decision_function"):
            raise ValueError(
                f"{type(style.final_step(estimator)).__name__} is not a fitted machine of two classes with a "
                "decision_function: margins are f = ±1 of one score."
            )
        section = Section(X, features, 2)
        _, labels = encode(np.asarray(y), known, None)
        signs = np.where(labels == 1, 1.0, -1.0)
        margins = signs * np.asarray(estimator.decision_function(X), dtype=np.float64)
        kinds = np.select([margins <= 0.0, margins < 1.0 - tol, margins <= 1.0 + tol], [3, 2, 1], 0)
        slacks = np.maximum(0.0, 1.0 - margins)
        first, second = section.grid(eps, grid_resolution)

        def score(plane: Float) -> Float:
            return np.asarray(section.evaluate(estimator.decision_function, plane), dtype=np.float64)

        feet = np.full(section.shown.shape, np.nan)
        if (kinds >= 2).any():
            feet[kinds >= 2] = _feet(score, section.shown[kinds >= 2], signs[kinds >= 2], np.ptp(section.ends, axis=0))
        scores = section.surface(estimator.decision_function, first, second)
        numbers = (first, second, scores, section.shown, labels, known.tolist(), slacks, kinds.astype(np.intp), feet)
        return cls(*numbers, *section.names).plot(ax, **kwargs)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        from matplotlib.collections import LineCollection

        for k, sign in enumerate((-1.0, 1.0)):
            fill_region(ax, self.x, self.y, sign * self.scores, style.colour(k), alpha=0.18)
        draw_edges(ax, self.x, self.y, [self.scores])
        draw_edges(ax, self.x, self.y, [self.scores - 1.0, self.scores + 1.0], linewidths=1.0, linestyles="dashed")
        known = np.isfinite(self.feet).all(axis=1)
        if known.any():
            segments = list(np.stack([self.feet[known], self.points[known]], axis=1))
            look = {"colors": [style.colour(k) for k in self.labels[known]], "linewidths": 1.0, "label": "slacks"}
            ax.add_collection(LineCollection(segments, **style.with_defaults("LineCollection", kwargs, **look)))
        draw_classes(ax, self.points, self.labels, self.classes)
        for kind, look in _RINGS.items():
            own = self.points[self.kinds == kind]
            if len(own):
                ax.scatter(*own.T, facecolors="none", edgecolors=style.INK, label=KINDS[kind], **look)
        ax.set(xlim=(self.x[0], self.x[-1]), ylim=(self.y[0], self.y[-1]))
        wide, high = np.ptp(self.x), np.ptp(self.y)
        if 1 / 3 < wide / high < 3:  # columns of like units: a right angle is drawn as one
            ax.set_aspect("equal")
        return self.xlabel, self.ylabel


def _feet(score: Callable[[Float], Float], points: Float, signs: Float, ranges: Float) -> Float:
    """From points along the gradient of f to where it is ±1; NaN where that is not reached."""
    feet, steps = points.copy(), 1e-5 * ranges
    for _ in range(20):
        short = signs - score(feet)
        slopes = [
            (score(feet + move) - score(feet - move)) / (2.0 * step)
            for move, step in zip(np.diag(steps), steps, strict=True)
        ]
        gradient = np.stack(slopes, axis=1)
        squares = np.maximum((gradient**2).sum(axis=1), np.finfo(np.float64).tiny)
        moves = short[:, None] * gradient / squares[:, None]
        feet += np.clip(moves, -0.2 * ranges, 0.2 * ranges)
        if np.abs(short).max() < 1e-9:
            break
    feet[np.abs(signs - score(feet)) > 1e-3] = np.nan
    return feet
