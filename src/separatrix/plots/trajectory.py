"""How a fit went: its recorded path over the contours of the objective, or the boundary that moves with it.

contours     {(a, b) : F(θ with two of its coefficients set to a, b) = level},  the others as they ended
boundaries   {x : wᵀx + c = 0} of every point of the path, the later the darker;  the last one is the answer
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Codes, Float
from separatrix.data.labels import encode
from separatrix.data.writing import replacing
from separatrix.models.margin.linear_classifier import LinearClassifier
from separatrix.models.svm.svc import SVC
from separatrix.plots import style
from separatrix.plots.display import Display
from separatrix.plots.plane import draw_classes
from separatrix.plots.section import Section

# Room around the path, as a share of its extent; lines of equal height; boundaries that are drawn beside the last.
_ROOM, _LEVELS, _TRAILS = 0.25, 14, 24
_WRITERS = {".gif": "a GIF", ".html": "HTML"}


@dataclass(eq=False, repr=False)
class TrajectoryDisplay(Display):
    """The recorded path of a fit: a plot, and an animation.

    Parameters
    ----------
    path : ndarray of shape (n, 2)
        The two coefficients that are shown, from the start to the answer.
    objective : ndarray of shape (n,)
        The objective on the way.
    planes : ndarray of shape (n, 3)
        The boundary w₀x + w₁y + c = 0 in the plane of two columns.
    kind : {"objective", "boundaries"}
        What is drawn.
    x, y, surface : ndarrays of shape (g,), (g,) and (g, g), optional
        The objective on a grid of the two coefficients.
    points, labels, classes : optional
        Rows in the plane of the two columns, their classes by position, and the names of these.
    xlabel, ylabel : str

    Attributes
    ----------
    animation_
        The animation that was made last; it runs as long as it is referred to.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import LogisticRegression
    >>> from separatrix.plots import TrajectoryDisplay
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 1.5]]), [0, 1, 0, 1]
    >>> model = LogisticRegression(solver="gradient", eta0=0.5, record=True).fit(X, y)
    >>> display = TrajectoryDisplay.from_estimator(model, X, y, grid_resolution=20)
    >>> display.path[0].tolist(), display.surface.shape, bool(display.surface.min() >= display.objective[-1] - 1e-3)
    ([0.0, 0.0], (20, 20), True)
    """

    path: Float
    objective: Float
    planes: Float
    kind: Literal["objective", "boundaries"] = "objective"
    x: Float | None = None
    y: Float | None = None
    surface: Float | None = None
    points: Float | None = None
    labels: Codes | None = None
    classes: list[Any] = field(default_factory=list)
    xlabel: str = ""
    ylabel: str = ""
    animation_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        kind: Literal["objective", "boundaries"] = "objective",
        features: Sequence[int | str] | None = None,
        grid_resolution: int = 100,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Take up the history of a model of two classes, and plot it.

        Parameters
        ----------
        estimator : LogisticRegression, LinearClassifier, Perceptron or SVC with a linear kernel
            Fitted with ``record=True``.
        X, y, sample_weight
            The rows that it was fitted to.
        kind : {"objective", "boundaries"}, default="objective"
            The path over contours of the objective, or the boundaries in the plane of two columns.
        features : two column positions or names, optional
            Whose coefficients, or which plane, to show; needed when X has more than two columns. "intercept" may be one
            of the coefficients, and is when X has a single column.
        grid_resolution : int, default=100
            Points of the grid of coefficients along each axis.
        ax : matplotlib Axes, optional
            A new figure when left out.
        **kwargs : dict
            For the line of the path or the boundaries: `Axes.plot`.

        Returns
        -------
        TrajectoryDisplay
        """
        if kind not in ("objective", "boundaries"):
            raise ValueError(f"kind is {kind!r}; give 'objective' or 'boundaries'.")
        history = getattr(getattr(estimator, "fit_", None), "history", None)
        if history is None:
            raise ValueError(f"{type(estimator).__name__} has no path on record: fit it with record=True.")
        if history.coef is None or history.coef.shape[1] != 1:
            raise ValueError(
                "A path is drawn for two classes and a linear rule, which have one coefficient per column."
            )
        named = list(features) if features is not None else None
        d = history.coef.shape[2]
        if kind == "objective" and (d == 1 or (named is not None and "intercept" in named)):
            at, names = _coefficients(named, X, d)
            display = cls(_theta(history)[:, at], history.objective, np.zeros((len(history), 3)), kind)
        else:
            section = Section(X, named, 2)
            at, names, rows = section.at, section.names, np.asarray(X, dtype=np.float64)
            others = np.delete(np.arange(d), at)
            constant = history.intercept[:, 0] + history.coef[:, 0, others] @ rows[:, others].mean(axis=0)
            path = history.coef[:, 0, at]
            display = cls(path, history.objective, np.column_stack([path, constant]), kind)
            display.points = section.shown
        known = np.asarray(estimator.classes_)
        display.labels, display.classes = encode(np.asarray(y), known, None)[1], known.tolist()
        display.xlabel, display.ylabel = names[0], names[1]
        if kind == "objective":
            display.xlabel, display.ylabel = (_coefficient_name(name) for name in names)
            display._evaluate(estimator, X, y, sample_weight, at, grid_resolution)
        return display.plot(ax, **kwargs)

    def _evaluate(self, estimator: Any, X: Any, y: Any, weights: Any, at: list[int], resolution: int) -> None:
        """The objective on a grid around the path."""
        low, high = self.path.min(axis=0), self.path.max(axis=0)
        room = _ROOM * np.where(high > low, high - low, 1.0)
        self.x, self.y = (np.linspace(low[k] - room[k], high[k] + room[k], resolution) for k in (0, 1))
        last = _theta(estimator.fit_.history)[-1]
        grid = np.tile(last, (resolution * resolution, 1))
        grid[:, at] = np.stack(np.meshgrid(self.x, self.y), axis=-1).reshape(-1, 2)
        values = _valued(estimator).objective_at(X, y, grid[:, None, :-1], grid[:, -1:], weights)
        self.surface = values.reshape(resolution, resolution)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        self._draw_background(ax)
        look = {"color": style.colour(1), "linewidth": 1.2}
        if self.kind == "objective":
            many = len(self.path) > 60
            dots = {"marker": "o", "markersize": 2.0 if many else 3.5, "label": f"{len(self.path) - 1} steps"}
            ax.plot(*self.path.T, **style.with_defaults("Line2D", kwargs, **look, **dots))
            ax.plot(*self.path[0], "s", color=style.INK, label="start", zorder=4)
            ax.plot(*self.path[-1], "*", color=style.colour(0), markersize=12, label="end", zorder=4)
        else:
            shown = _spread(len(self.planes), _TRAILS)
            for place, k in enumerate(shown):
                last = k == shown[-1]
                alpha = 1.0 if last else 0.25 + 0.5 * (place / len(shown)) ** 2
                own = {
                    "linewidth": 2.0 if last else 1.0,
                    "alpha": alpha,
                    "color": style.INK if last else style.colour(4),
                }
                own |= {"label": f"after {len(self.path) - 1} steps"} if last else {}
                ax.plot(*_segment(self.planes[k], ax), **style.with_defaults("Line2D", kwargs, **own))
        return self.xlabel, self.ylabel

    def _draw_background(self, ax: Any) -> None:
        if self.kind == "boundaries":
            assert self.points is not None
            draw_classes(ax, self.points, self.labels, self.classes)
            low, high = self.points.min(axis=0), self.points.max(axis=0)
            room = 0.05 * (high - low)
            ax.set(xlim=(low[0] - room[0], high[0] + room[0]), ylim=(low[1] - room[1], high[1] + room[1]))
        elif self.surface is not None:
            low, high = float(self.surface.min()), float(self.surface.max())
            levels = low + (high - low) * np.linspace(0.03, 1.0, _LEVELS) ** 2  # closer where the ground is flat
            from matplotlib.colors import LinearSegmentedColormap

            heights = LinearSegmentedColormap.from_list("heights", [style.colour(0), style.colour(2)])
            ax.contour(self.x, self.y, self.surface, levels=levels, cmap=heights, linewidths=0.8)

    def animate(self, *, interval: int = 150, max_frames: int = 60, ax: Any = None) -> Any:
        """The path point by point.

        Parameters
        ----------
        interval : int, default=150
            Milliseconds per frame.
        max_frames : int, default=60
            Of a longer path so many points are shown, the last among them.
        ax : matplotlib Axes, optional
            A new figure when left out.

        Returns
        -------
        matplotlib.animation.FuncAnimation
        """
        from matplotlib.animation import FuncAnimation  # a slow import

        ax = style.new_axes(ax)
        self._draw_background(ax)
        colour = style.colour(1) if self.kind == "objective" else style.INK
        (line,) = ax.plot([], [], color=colour, linewidth=1.5)
        (dot,) = ax.plot([], [], "o", color=style.colour(0), markersize=6, zorder=4)
        title = ax.set_title("", fontsize="medium", color=ax.xaxis.label.get_color())
        self._finish(ax, self.xlabel, self.ylabel)

        def show(k: int) -> tuple[Any, ...]:
            if self.kind == "objective":
                line.set_data(*self.path[: k + 1].T)
                dot.set_data(self.path[k : k + 1, 0], self.path[k : k + 1, 1])
            else:
                line.set_data(*_segment(self.planes[k], ax))
            title.set_text(f"step {k}: objective {self.objective[k]:.5g}")
            return line, dot, title

        frames = _spread(len(self.path), max_frames)
        self.animation_ = FuncAnimation(ax.figure, show, frames=frames, interval=interval, blit=False)
        return self.animation_

    def save(self, path: Any, *, interval: int = 150, max_frames: int = 60, dpi: int = 100) -> None:
        """Write the animation to a file: a GIF, or a page of HTML with buttons to step through it.

        Parameters
        ----------
        path : str or path
            Ending in .gif or .html.
        interval, max_frames
            As for `animate`.
        dpi : int, default=100
            Dots per inch of the frames.
        """
        kind = str(path)[str(path).rfind(".") :].lower()
        if kind not in _WRITERS:
            raise ValueError(
                f"{str(path)!r} ends in neither of {', '.join(_WRITERS)}, for {' and '.join(_WRITERS.values())}."
            )
        import matplotlib.pyplot as plt
        from matplotlib import rc_context
        from matplotlib.animation import PillowWriter

        moving = self.animate(interval=interval, max_frames=max_frames)
        figure = self.figure_
        figure.patch.set(facecolor="white", alpha=1.0)  # frames of a GIF lie on top of each other
        try:
            with replacing(path) as part, TemporaryDirectory() as folder:
                if kind == ".html":
                    with rc_context({"savefig.dpi": dpi}):
                        part.write_text(moving.to_jshtml(fps=1000.0 / interval), encoding="utf-8")
                else:
                    made = Path(folder) / "path.gif"  # the writer goes by the ending
                    moving.save(made, writer=PillowWriter(fps=max(1, round(1000.0 / interval))), dpi=dpi)
                    part.write_bytes(made.read_bytes())
        finally:
            plt.close(figure)


def _theta(history: Any) -> Float:
    """(n, d + 1) coefficients of one score, the intercept last."""
    return np.column_stack([history.coef[:, 0], history.intercept[:, 0]])


def _valued(estimator: Any) -> Any:
    """A model that knows the objective at any coefficients: for a support vector machine, the same one in the primal."""
    if not isinstance(estimator, SVC):
        return estimator
    primal = LinearClassifier("hinge", C=float(estimator.C), class_weight=estimator.class_weight)
    for name in ("classes_", "n_features_in_", "fit_", "intercept_", "coef_", "feature_names_in_"):
        if hasattr(estimator, name):
            setattr(primal, name, getattr(estimator, name))
    return primal


def _coefficients(features: list[int | str] | None, X: Any, d: int) -> tuple[list[int], list[str]]:
    """Places in θ and names of two coefficients, one of which is the intercept."""
    names = [str(name) for name in getattr(X, "columns", [f"x{j}" for j in range(d)])]
    wanted = [0, "intercept"] if features is None else features
    if len(wanted) != 2 or len(set(wanted)) != 2:
        raise ValueError(f"features is {wanted}; give two columns, by position or name, or a column and 'intercept'.")
    places = []
    for one in wanted:
        if one == "intercept":
            places.append(d)
        elif one in names:
            places.append(names.index(str(one)))
        elif isinstance(one, int | np.integer) and -d <= one < d:
            places.append(int(one) % d)
        else:
            raise ValueError(f"features names {one!r}, which is not one of the {d} columns of X.")
    return places, [[*names, "intercept"][j] for j in places]


def _coefficient_name(name: str) -> str:
    return name if name == "intercept" else f"coefficient of {name}"


def _spread(n: int, most: int) -> list[int]:
    """At most so many of n places, the first and the last among them, closer together at the start, where most happens."""
    if n <= most:
        return list(range(n))
    early = np.unique(np.round((n - 1) * np.linspace(0.0, 1.0, most) ** 2).astype(int))
    return [int(k) for k in early]


def _segment(plane: Float, ax: Any) -> tuple[Float, Float]:
    """The part of the line ax + by + c = 0 that crosses the axes' limits; NaN where there is no line."""
    a, b, c = plane.tolist()
    x, y = np.array(ax.get_xlim()), np.array(ax.get_ylim())
    slope = [abs(a) * (x[1] - x[0]), abs(b) * (y[1] - y[0])]
    if not any(slope):
        return np.full(2, np.nan), np.full(2, np.nan)
    return (x, -(c + a * x) / b) if slope[1] >= slope[0] else (-(c + b * y) / a, y)
