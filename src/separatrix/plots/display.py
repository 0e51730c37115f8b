"""What all displays share: the axes they were plotted on last, and classifiers that give probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from reprlib import Repr
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from separatrix.plots import style

_BRIEF = Repr()
_BRIEF.maxlist, _BRIEF.maxstring, _BRIEF.maxother = 4, 60, 60


@dataclass(eq=False, repr=False)
class Display:
    """Numbers, and their plot.

    Attributes
    ----------
    ax_, figure_
        Where it was plotted last.
    """

    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)
    _legend_beside: ClassVar[bool] = False  # for pictures whose points leave no room inside

    def __repr__(self) -> str:
        """One line: arrays by their shape, what is not there left out."""
        shown = [(one.name, getattr(self, one.name)) for one in fields(self) if one.repr]
        parts = [f"{name}={_brief(value)}" for name, value in shown if value is not None and not _empty(value)]
        return f"{type(self).__name__}({', '.join(parts)})"

    def plot(self, ax: Any = None, *, legend: bool = True, **kwargs: Any) -> Self:
        """Draw the numbers.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure when left out. Several displays may share one.
        legend : bool, default=True
            Whether to add a legend: beside the axes, where points leave no room inside and the figure has a layout.
        **kwargs : dict
            For the artists drawn, and the options listed with the class.

        Returns
        -------
        self
        """
        ax = style.new_axes(ax)
        xlabel, ylabel = self._draw(ax, **kwargs)
        return self._finish(ax, xlabel, ylabel, legend)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        """Draw on these axes; what the axes are."""
        raise NotImplementedError

    def _finish(self, ax: Any, xlabel: str, ylabel: str, legend: bool = True) -> Self:
        """Label the axes, add a legend, and keep both."""
        style.name_axes(ax, xlabel, ylabel)
        if legend:
            style.add_legend(ax, self._legend_beside)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _empty(value: Any) -> bool:
    return isinstance(value, str | dict) and not value


def _brief(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"<{' × '.join(map(str, shape))} {value.dtype}>" if shape else f"{value:.6g}"
    if is_dataclass(value):
        return f"<{type(value).__name__}>"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_brief(one)}' for key, one in value.items())}}}"
    return f"{value:.6g}" if isinstance(value, float) else _BRIEF.repr(value)


@dataclass(eq=False, repr=False)
class ProbabilityDisplay(Display):
    """A curve computed from predicted probabilities.

    Attributes
    ----------
    line_
        The curve that was plotted last.
    """

    line_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Judge the probabilities of a classifier on rows it was not fitted on, and plot.

        Parameters
        ----------
        estimator : fitted classifier with `predict_proba`
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        name : str, optional
            For the legend; by default that of the estimator.
        ax : matplotlib Axes, optional
            A new figure when left out.
        **kwargs : dict
            As for `from_predictions`.

        Returns
        -------
        display
        """
        proba, name = estimator.predict_proba(X), type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, proba, classes=estimator.classes_, name=name, ax=ax, **kwargs)

    @classmethod
    def from_predictions(cls, y_true: ArrayLike, y_prob: ArrayLike, **kwargs: Any) -> Self:
        """Judge probabilities, and plot."""
        raise NotImplementedError
