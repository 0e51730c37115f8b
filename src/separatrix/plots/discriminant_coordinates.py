"""Rows, class means and regions in the plane of the two leading canonical variates.

    z = (x − x̄)V                          region of k = {z : predict(x̄ + (z₁, z₂, 0, …)V⁺) = k}

There the classes lie as far apart as any plane can show them, in units of their common spread. A linear discriminant depends on
x through z alone, so the regions are exact: those of rows whose other variates are zero.
Reference: Hastie, Tibshirani, Friedman, ESL 2nd ed., section 4.3.3.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data.block import Codes, Float
from separatrix.data.labels import encode
from separatrix.decide.regions import PlaneRegions, plane_regions
from separatrix.plots import style
from separatrix.plots.display import Display
from separatrix.plots.plane import class_codes, draw_classes, fill_region, leads
from separatrix.plots.section import in_parts


@dataclass(eq=False, repr=False)
class DiscriminantCoordinatesDisplay(Display):
    """Rows in the plane of the two leading canonical variates; on a line, when there are two classes.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, 2) or (n_samples, 1)
    labels : ndarray of shape (n_samples,)
        Their classes, as positions in `classes`.
    classes : list
    means : ndarray of shape (n_classes, 2) or (n_classes, 1)
        Of the rows of each class; NaN for a class without rows.
    shares : ndarray of shape (2,) or (1,), optional
        Share of the between-class variance along each coordinate.
    regions : PlaneRegions, optional
        What the rule decides where.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import LinearDiscriminantAnalysis
    >>> from separatrix.plots import DiscriminantCoordinatesDisplay
    >>> iris = load_iris()
    >>> model = LinearDiscriminantAnalysis().fit(iris.data, iris.target)
    >>> DiscriminantCoordinatesDisplay.from_estimator(model, iris.data, iris.target).means.round(1)
    array([[ 7.7, -0.2],
           [-1.8,  0.7],
           [-5.8, -0.5]])
    """

    coordinates: Float
    labels: Codes
    classes: list[Any]
    means: Float
    shares: Float | None = None
    regions: PlaneRegions | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, grid_resolution: int = 200, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Project rows, and plot.

        Parameters
        ----------
        estimator : fitted LinearDiscriminantAnalysis or FisherDiscriminant, or a pipeline that ends in one
            The regions of the first are drawn; the second is an embedding, not a rule.
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        grid_resolution : int, default=200
            Points of the grid for the regions, along each axis.
        ax, **kwargs
            The matplotlib Axes, a new figure when left out. For the rows: `Axes.scatter`.

        Returns
        -------
        DiscriminantCoordinatesDisplay
        """
        model = style.final_step(estimator)
        if not hasattr(estimator, "transform") or not hasattr(model, "scalings_"):
            raise ValueError(
                f"{type(model).__name__} has no canonical variates; fit a FisherDiscriminant, or a "
                "LinearDiscriminantAnalysis with solver='svd' or 'eigen'."
            )
        coordinates = np.asarray(estimator.transform(X), dtype=np.float64)[:, :2]
        known = np.asarray(model.classes_)
        _, labels = encode(np.asarray(y), known, None)
        counts = np.bincount(labels, minlength=len(known))[:, None]
        sums = np.stack([coordinates[labels == k].sum(axis=0) for k in range(len(known))])
        means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        shares = getattr(model, "explained_variance_ratio_", None)
        regions = None
        if coordinates.shape[1] == 2 and hasattr(model, "predict") and hasattr(model, "xbar_"):
            regions = _regions(model, coordinates, grid_resolution)
        display = cls(coordinates, labels, known.tolist(), means, None if shares is None else shares[:2], regions)
        return display.plot(ax, **kwargs)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        flat = self.coordinates.shape[1] == 1
        points, means = self.coordinates, self.means
        if flat:  # one line per class, the rows spread across it so that they do not hide each other
            spread = 0.3 * np.sin(2.4 * np.arange(len(points)))
            points = np.column_stack([points[:, 0], self.labels + spread])
            means = np.column_stack([means[:, 0], np.arange(len(means))])
        if self.regions is not None:
            codes = class_codes(self.regions.actions, self.classes)
            for k, lead in enumerate(leads(codes, len(self.classes))):
                fill_region(ax, self.regions.x, self.regions.y, lead, style.colour(k))
        draw_classes(ax, points, self.labels, self.classes, **kwargs)
        face = [style.colour(k) for k in range(len(means))]
        ax.scatter(
            *means.T, marker="*", s=220, c=face, edgecolors="white", linewidths=1.2, label="class means", zorder=4
        )
        if flat:
            style.name_rows(ax, self.classes)
        return self._axis(0), "" if flat else self._axis(1)

    def _axis(self, j: int) -> str:
        share = "" if self.shares is None else f" ({100.0 * self.shares[j]:.3g} % of the variance between classes)"
        return f"{('first', 'second')[j]} variate{share}"


def _regions(model: Any, coordinates: Float, grid_resolution: int) -> PlaneRegions:
    """What the rule decides in the plane of the two leading variates, the others being those of the mean row."""
    centre, directions = np.asarray(model.xbar_, np.float64), np.asarray(model.scalings_, np.float64)
    back = np.linalg.pinv(directions)[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that these rows, which were made here, have no feature names
        origin = np.asarray(model.transform(centre[None]))[0, :2]

        def predict(plane: Float) -> NDArray[Any]:
            return in_parts(lambda part: model.predict(centre + (part - origin) @ back), plane, len(centre))

        return plane_regions(predict, coordinates, grid_resolution)
