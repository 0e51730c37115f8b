"""Where a classifier decides for which class, on the plane of two columns.

    region of k = {(a, b) : predict(x̄ with columns i, j set to a, b) = k}

Columns that are not shown are held at their means (at their most frequent value, if they are no numbers). Where the rule
abstains, or its machines contradict each other, the plane is hatched. With a response the regions are shaded in steps of it.
For a support vector machine of two classes the margins f = ±1 are drawn too, and its support vectors are ringed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data.block import Codes, Float
from separatrix.data.labels import encode
from separatrix.decide.regions import PlaneRegions
from separatrix.models.svm.linear_svc import LinearSVC
from separatrix.plots import style
from separatrix.plots.display import Display
from separatrix.plots.plane import class_codes, draw_classes, draw_edges, fill_cells, fill_region, hatch, leads
from separatrix.plots.section import Section, dense

_PROBABILITIES = (0.75, 0.9, 0.99)


@dataclass(eq=False, repr=False)
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
    hatched : dict of str to ndarray of bool, (n, n)
        Parts of the plane to hatch, by name; one that is among `classes` is not coloured as well.
    response : ndarray of shape (n, n, n_classes), optional
        What the shades are steps of: probabilities, or leads of scores over the next best.
    levels : tuple of float
        The steps.

    Attributes
    ----------
    surface_
        What was drawn last by `plot_method`, of the last class.

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
    hatched: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    response: Float | None = None
    levels: tuple[float, ...] = ()
    surface_: Any = field(default=None, init=False, repr=False)
    _legend_beside: ClassVar[bool] = True

    @property
    def xx0(self) -> Float:
        """First coordinate of every point of the grid, as scikit-learn's display has it."""
        return np.meshgrid(self.regions.x, self.regions.y)[0]

    @property
    def xx1(self) -> Float:
        """Second coordinate of every point of the grid."""
        return np.meshgrid(self.regions.x, self.regions.y)[1]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        features: Sequence[int | str] | None = None,
        grid_resolution: int = 200,
        eps: float | None = None,
        plot_method: Literal["contourf", "contour", "pcolormesh"] = "contourf",
        response_method: Literal["auto", "predict", "decision_function", "predict_proba"] = "auto",
        levels: Sequence[float] | None = None,
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
        eps : float, optional
            How far the plane reaches beyond the rows, in the units of the columns; by default a twentieth of their range.
        plot_method : {"contourf", "contour", "pcolormesh"}, default="contourf"
            Regions filled up to their smooth edges, the edges only, or one cell per point of the grid.
        response_method : {"auto", "predict", "decision_function", "predict_proba"}, default="auto"
            "predict_proba" shades the regions in steps of the probability of their class, "decision_function" in steps of the
            lead of its score; "predict" uses no scores at all. "auto": plain regions, with edges through the scores.
        levels : sequence of float, optional
            The steps of the shades; 0.75, 0.9 and 0.99 by default for probabilities, three for scores.
        xlabel, ylabel : str, optional
            By default the names of the columns.
        ax : matplotlib Axes, optional
            A new figure when left out.
        **kwargs : dict
            For the method of the axes that `plot_method` names.

        Returns
        -------
        DecisionBoundaryDisplay
        """
        known = getattr(estimator, "classes_", None)
        if known is None:
            raise ValueError(f"{type(estimator).__name__} has no classes_: regions are those of a fitted classifier.")
        _check_methods(estimator, response_method, plot_method)
        section = Section(X, features, 2)
        first, second = section.grid(eps, grid_resolution)
        regions = PlaneRegions(first, second, section.surface(estimator.predict, first, second))
        classes = np.asarray(known).tolist()
        classes += sorted({*regions.actions.ravel().tolist()} - {*classes}, key=str)  # a rule may have actions beside
        labels = None if y is None else encode(np.asarray(y), np.asarray(known), None)[1]
        model = style.final_step(estimator)
        scores = _agreeing_scores(estimator, section, regions, classes, response_method)
        response, steps = _response(estimator, section, regions, classes, scores, response_method)
        display = cls(
            regions,
            classes,
            scores,
            len(known) == 2 and (hasattr(model, "support_vectors_") or isinstance(model, LinearSVC)),
            _support(estimator, model, X, section),
            None if y is None else section.shown,
            labels,
            section.names[0] if xlabel is None else xlabel,
            section.names[1] if ylabel is None else ylabel,
            _undecided(estimator, section, regions, len(known)),
            response,
            steps if levels is None else tuple(float(level) for level in levels),
        )
        return display.plot(ax, plot_method=plot_method, **kwargs)

    def _draw(self, ax: Any, *, plot_method: str = "contourf", **kwargs: Any) -> tuple[str, str]:
        codes, (x, y) = class_codes(self.regions.actions, self.classes), (self.regions.x, self.regions.y)
        surfaces = leads(codes, len(self.classes), self.scores)
        coloured = [k for k, name in enumerate(self.classes) if str(name) not in self.hatched]
        if plot_method == "pcolormesh":
            self.surface_ = fill_cells(ax, x, y, codes, len(self.classes), **kwargs)
        elif plot_method == "contourf":
            drawn = [fill_region(ax, x, y, surfaces[k], style.colour(k), **kwargs) for k in coloured]
            self.surface_ = next((each for each in reversed(drawn) if each is not None), None)
        for k in coloured if self.response is not None else []:
            self._shade(ax, k)
        hatch(ax, x, y, self.hatched)
        two = len(surfaces) == 2
        draw_edges(ax, x, y, surfaces[1:] if two else surfaces, **(kwargs if plot_method == "contour" else {}))
        if self.margins and self.scores is not None:
            margins = [self.scores + 1.0, self.scores - 1.0]
            draw_edges(ax, x, y, margins, linewidths=1.0, linestyles="dashed")
        if self.support is not None:
            ring = {"s": 70, "facecolors": "none", "edgecolors": style.INK, "linewidths": 1.0}
            ax.scatter(*self.support.T, label="support vectors", **ring)
        if plot_method != "contour" or self.points is not None:  # edges alone have no colours to explain
            draw_classes(ax, self.points, self.labels, self.classes, without=self.hatched)
        ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
        return self.xlabel, self.ylabel

    def _shade(self, ax: Any, k: int) -> None:
        """Steps of the response of one class: darker and darker, their edges labelled."""
        assert self.response is not None
        x, y, own = self.regions.x, self.regions.y, self.response[..., k]
        for level in self.levels:
            fill_region(ax, x, y, own - level, style.colour(k), alpha=0.12)
        inside = [level for level in self.levels if own.min() < level < own.max()]
        if inside:
            lines = ax.contour(x, y, own, levels=inside, colors=style.colour(k), linewidths=0.8)
            ax.clabel(lines, fmt="%.3g", fontsize="x-small")


def _check_methods(estimator: Any, response_method: str, plot_method: str) -> None:
    if plot_method not in ("contourf", "contour", "pcolormesh"):
        raise ValueError(f"plot_method is {plot_method!r}; give 'contourf', 'contour' or 'pcolormesh'.")
    if response_method not in ("auto", "predict", "decision_function", "predict_proba"):
        raise ValueError(
            f"response_method is {response_method!r}; give 'auto', 'predict', 'decision_function' or 'predict_proba'."
        )
    if response_method != "auto" and not hasattr(estimator, response_method):
        raise ValueError(f"{type(estimator).__name__} has no {response_method}; give another response_method.")


def _agreeing_scores(
    estimator: Any, section: Section, regions: PlaneRegions, classes: list[Any], asked: str
) -> Float | None:
    """Scores on the grid, unless the predictions are not where they are largest (a rule by losses), or they jump (votes)."""
    model = style.final_step(estimator)
    if len(classes) > 2 and (hasattr(model, "pairs_") or hasattr(model, "decision_function_shape")):
        return None
    methods = ["decision_function", "predict_proba"] if asked == "auto" else [asked]
    method = next((m for m in methods if m != "predict" and hasattr(estimator, m)), None)
    if method is None:
        return None
    scores = section.surface(getattr(estimator, method), regions.x, regions.y)
    if scores.shape[2:] == (2,):
        scores = scores[..., 1] - scores[..., 0]
    chosen = (scores > 0).astype(np.intp) if scores.ndim == 2 else scores.argmax(axis=2)
    if (scores.ndim == 2 and len(classes) > 2) or (scores.ndim == 3 and scores.shape[2] != len(classes)):
        return None
    return scores if np.array_equal(chosen, class_codes(regions.actions, classes)) else None


def _response(
    estimator: Any, section: Section, regions: PlaneRegions, classes: list[Any], scores: Float | None, asked: str
) -> tuple[Float | None, tuple[float, ...]]:
    """What is shaded, and in which steps."""
    if asked == "predict_proba":
        proba = section.surface(estimator.predict_proba, regions.x, regions.y)
        extra = len(classes) - proba.shape[2]
        return np.pad(proba, ((0, 0), (0, 0), (0, extra)), constant_values=np.nan), _PROBABILITIES
    if asked == "decision_function" and scores is not None:
        surfaces = np.stack(leads(class_codes(regions.actions, classes), len(classes), scores), axis=-1)
        return surfaces, tuple(float(f"{part * surfaces.max():.1g}") for part in (0.1, 0.3, 0.6))
    return None, ()


def _undecided(estimator: Any, section: Section, regions: PlaneRegions, n_classes: int) -> dict[str, NDArray[np.bool_]]:
    """Parts of the plane where a rule abstains, or where machines for two classes contradict each other."""
    parts = {}
    rejection = getattr(estimator, "reject_action", None)
    if rejection is not None and rejection not in np.asarray(estimator.classes_).tolist():
        mask = regions.actions == rejection
        parts.update({str(rejection): mask} if mask.any() else {})
    if n_classes > 2 and hasattr(estimator, "indeterminate"):
        reasons = section.surface(lambda rows: estimator.indeterminate(rows).reason, regions.x, regions.y)
        parts.update({str(reason): reasons == reason for reason in np.unique(reasons) if reason})
    return parts


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
