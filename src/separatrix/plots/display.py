"""What all displays share: the axes they were plotted on last, and classifiers that give probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from numpy.typing import ArrayLike

from separatrix.plots import style


@dataclass(eq=False)
class Display:
    """Numbers, and their plot.

    Attributes
    ----------
    ax_, figure_
        Where it was plotted last.
    """

    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the numbers.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure when left out. Several displays may share one.
        **kwargs : dict
            For the artists drawn, and the options listed with the class.

        Returns
        -------
        self
        """
        ax = style.new_axes(ax)
        xlabel, ylabel = self._draw(ax, **kwargs)
        return self._finish(ax, xlabel, ylabel)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        """Draw on these axes; what the axes are."""
        raise NotImplementedError

    def _finish(self, ax: Any, xlabel: str, ylabel: str) -> Self:
        """Label the axes, add a legend, and keep both."""
        style.name_axes(ax, xlabel, ylabel)
        style.add_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass(eq=False)
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
