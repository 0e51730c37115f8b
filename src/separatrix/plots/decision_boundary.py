"""Where a classifier decides for which class, on the plane of two columns.

    region of k = {(a, b) : predict(x̄ with columns i, j set to a, b) = k}

Columns that are not shown are held at their means (at their most frequent value, if they are no numbers). For a support vector
machine of two classes the margins f = ±1 are drawn too, and its support vectors are ringed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data.block import Codes, Float
from separatrix.data.labels import encode
from separatrix.decide.regions import PlaneRegions, plane_regions
from separatrix.models.svm.linear_svc import LinearSVC
from separatrix.plots import style
from separatrix.plots.display import Display
from separatrix.plots.section import Section, dense


@dataclass(eq=False)
class DecisionBoundaryDisplay(Display):
    """The regions of a classifier in the plane of two columns.

    Parameters
    ----------
    regions : PlaneRegions
        What is predicted on a grid.
    classes : list
        All that is predicted or in `labels`; colours follow this order.
    scores : ndarray of shape (n, n) or (n, n, n_classes), optional
        Scores on the grid, where they agree with the predictions: boundaries are drawn smoothly through them.
    margins : bool, default=False
        Whether to draw where a score of two classes is ±1.
    support : ndarray of shape (n_support, 2), optional
        Support vectors.
    points : ndarray of shape (n_samples, 2), optional
        Rows to show.
    labels : ndarray of shape (n_samples,), optional
        Their classes, as positions in `classes`.
    xlabel, ylabel : str
        Names of the two columns.

    Examples
    --------
    >>> from separatrix import SVC
    >>> from separatrix.plots import DecisionBoundaryDisplay
    >>> X, y = [[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0]], [0, 1, 1]
    >>> display = DecisionBoundaryDisplay.from_estimator(SVC(kernel="linear").fit(X, y), X, y, features=[0, 2])
    >>> display.regions.actions.shape, display.margins, display.ylabel
    ((200, 200), True, 'x2')
    """

    regions: PlaneRegions
    classes: list[Any]
    scores: Float | None = None
    margins: bool = False
    support: Float | None = None
    points: Float | None = None
    labels: Codes | None = None
    xlabel: str = ""
    ylabel: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        features: Sequence[int | str] | None = None,
        grid_resolution: int = 200,
        xlabel: str | None = None,
        ylabel: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Predict on a grid, and plot.

        Parameters
        ----------
        estimator : fitted classifier
        X : array-like or data frame of shape (n_samples, n_features)
            The part of the plane to show, and where the other columns are held.
        y : array-like of shape (n_samples,), optional
            Classes of the rows; without them no rows are drawn.
        features : two column positions or names, optional
            Needed when X has more than two columns.
        grid_resolution : int, default=200
            Points of the grid along each axis.
        xlabel, ylabel : str, optional
            By default the names of the columns.
        ax : matplotlib Axes, optional
            A new figure when left out.
        **kwargs : dict
            For `imshow`, which colours the regions.

        Returns
        -------
        DecisionBoundaryDisplay
        """
        known = getattr(estimator, "classes_", None)
        if known is None:
            raise ValueError(f"{type(estimator).__name__} has no classes_: regions are those of a fitted classifier.")
        section = Section(X, features, 2)
        regions = plane_regions(lambda plane: section.evaluate(estimator.predict, plane), section.ends, grid_resolution)
        classes = np.asarray(known).tolist()
        classes += sorted({*regions.actions.ravel().tolist()} - {*classes}, key=str)  # a rule may have actions beside
        labels = None if y is None else encode(np.asarray(y), np.asarray(known), None)[1]
        model = style.final_step(estimator)
        display = cls(
            regions,
            classes,
            _agreeing_scores(estimator, section, regions, classes),
            len(known) == 2 and (hasattr(model, "support_vectors_") or isinstance(model, LinearSVC)),
            _support(estimator, model, X, section),
            None if y is None else section.shown,
            labels,
            section.names[0] if xlabel is None else xlabel,
            section.names[1] if ylabel is None else ylabel,
        )
        return display.plot(ax, **kwargs)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        codes = class_codes(self.regions.actions, self.classes)
        draw_regions(ax, self.regions, codes, len(self.classes), **kwargs)
        x, y = self.regions.x, self.regions.y
        for surface in self._surfaces(codes):
            if surface.min() < 0 < surface.max():
                ax.contour(x, y, surface, levels=[0.0], colors=style.INK, linewidths=1.5)
        if self.margins and self.scores is not None:
            levels = [level for level in (-1.0, 1.0) if self.scores.min() < level < self.scores.max()]
            ax.contour(x, y, self.scores, levels=levels, colors=style.INK, linewidths=1.0, linestyles="dashed")
        if self.support is not None:
            ring = {"s": 70, "facecolors": "none", "edgecolors": style.INK, "linewidths": 1.0}
            ax.scatter(*self.support.T, label="support vectors", **ring)
        draw_classes(ax, self.points, self.labels, self.classes)
        ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
        return self.xlabel, self.ylabel

    def _surfaces(self, codes: Codes) -> list[Float]:
        """One surface per boundary, 0 on it: by the scores where there are some, else the indicator of each class."""
        if self.scores is None:
            return [(codes == k) - 0.5 for k in range(len(self.classes))]
        if self.scores.ndim == 2:
            return [self.scores]
        return [self.scores[..., k] - np.delete(self.scores, k, axis=2).max(axis=2) for k in range(len(self.classes))]


def class_codes(values: NDArray[Any], classes: Sequence[Any]) -> Codes:
    """Positions of values among the classes."""
    place = {label: k for k, label in enumerate(classes)}
    return np.array([place[value] for value in values.ravel().tolist()], dtype=np.intp).reshape(values.shape)


def draw_regions(ax: Any, regions: PlaneRegions, codes: Codes, n_classes: int, **kwargs: Any) -> None:
    """Colour the plane: a picture, so that nothing is interpolated between classes that do not touch."""
    from matplotlib.colors import ListedColormap

    (x, y), options = (regions.x, regions.y), {"alpha": 0.25, **kwargs}
    wide, high = (x[1] - x[0]) / 2.0, (y[1] - y[0]) / 2.0
    ax.imshow(
        codes,
        origin="lower",
        extent=(x[0] - wide, x[-1] + wide, y[0] - high, y[-1] + high),
        aspect="auto",
        interpolation="nearest",
        cmap=ListedColormap([style.colour(k) for k in range(n_classes)]),
        vmin=-0.5,
        vmax=n_classes - 0.5,
        **options,
    )


def draw_classes(ax: Any, points: Float | None, labels: Codes | None, classes: Sequence[Any], **kwargs: Any) -> None:
    """Rows by class; of a class without rows, its colour for the legend."""
    for k, name in enumerate(classes):
        own = np.zeros((0, 2)) if points is None or labels is None else points[labels == k]
        look = {"color": style.colour(k), "marker": style.marker(k) if len(own) else "s", "s": 18, "alpha": 0.8}
        ax.scatter(*own.T, **style.with_defaults("PathCollection", kwargs, label=style.label(name), **look))


def _agreeing_scores(estimator: Any, section: Section, regions: PlaneRegions, classes: list[Any]) -> Float | None:
    """Scores on the grid, unless the predictions are not where they are largest: a rule by losses, a vote of pairs."""
    method = next((m for m in ("decision_function", "predict_proba") if hasattr(estimator, m)), None)
    if method is None:
        return None
    plane = np.stack(np.meshgrid(regions.x, regions.y), axis=-1)
    scores = np.asarray(section.evaluate(getattr(estimator, method), plane.reshape(-1, 2)), dtype=np.float64)
    if scores.shape[1:] == (2,):
        scores = scores[:, 1] - scores[:, 0]
    chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
    if (scores.ndim == 1 and len(classes) > 2) or (scores.ndim == 2 and scores.shape[1] != len(classes)):
        return None
    agree = np.array_equal(chosen, class_codes(regions.actions, classes).ravel())
    return scores.reshape(*plane.shape[:2], *scores.shape[1:]) if agree else None


def _support(estimator: Any, model: Any, X: Any, section: Section) -> Float | None:
    """Support vectors in the plane; after other steps of a pipeline, the rows of X if they are those it was fitted on."""
    vectors = getattr(model, "support_vectors_", None)
    if vectors is None or not vectors.shape[1]:
        return None
    vectors = dense(vectors)
    if model is estimator:
        return vectors[:, section.at]
    seen, rows = dense(estimator[:-1].transform(X)), model.support_
    same = rows.max() < len(seen) and np.allclose(seen[rows], vectors)
    return section.shown[rows] if same else None
