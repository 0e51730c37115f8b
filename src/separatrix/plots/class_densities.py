"""Densities of the classes along one column, and where the decision changes.

    π_k p(x | k),          boundaries where two of the largest are equal

What lies under the curves that are not the largest is the Bayes risk of the model. The other columns are held at their means.
Reference: Bishop (2006), figure 1.24.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from separatrix.data.block import Codes, Float
from separatrix.data.labels import encode
from separatrix.plots import style
from separatrix.plots.display import Display
from separatrix.plots.section import Section


@dataclass(eq=False, repr=False)
class ClassDensityDisplay(Display):
    """Class densities times priors along one column.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Of the column.
    densities : ndarray of shape (n, n_classes)
        π_k p(x | k).
    classes : list
    boundaries : ndarray of shape (m,)
        Where the class with the largest density changes, rising.
    rows : ndarray of shape (n_samples,), optional
        Rows to show below the curves.
    labels : ndarray of shape (n_samples,), optional
        Their classes, as positions in `classes`.
    xlabel : str

    Examples
    --------
    >>> from separatrix import LinearDiscriminantAnalysis
    >>> from separatrix.plots import ClassDensityDisplay
    >>> X, y = [[0.0], [1.0], [2.0], [4.0], [5.0], [6.0]], [0, 0, 0, 1, 1, 1]
    >>> display = ClassDensityDisplay.from_estimator(LinearDiscriminantAnalysis().fit(X, y), X, y)
    >>> display.boundaries.round(6).tolist()
    [3.0]
    """

    values: Float
    densities: Float
    classes: list[Any]
    boundaries: Float
    rows: Float | None = None
    labels: Codes | None = None
    xlabel: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        feature: int | str | None = None,
        grid_resolution: int = 400,
        eps: float | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """The densities on a line through the rows, and their plot.

        Parameters
        ----------
        estimator : fitted generative model with `log_density` and `predict_proba`
            A discriminant, naive Bayes, or `GaussianClasses`.
        X : array-like or data frame of shape (n_samples, n_features)
            The range to show, and where the other columns are held.
        y : array-like of shape (n_samples,), optional
            Classes of the rows, to show these too.
        feature : position or name of a column, optional
            Needed when X has more than one.
        grid_resolution : int, default=400
        eps : float, optional
            How far the line reaches beyond the rows; by default a fifth of their range.
        ax, **kwargs
            The matplotlib Axes, a new figure when left out. For the curves: `Axes.plot`.

        Returns
        -------
        ClassDensityDisplay
        """
        if not (hasattr(estimator, "log_density") and hasattr(estimator, "predict_proba")):
            raise ValueError(
                f"{type(estimator).__name__} has no densities of its classes; give a fitted discriminant, a naive Bayes model "
                "or GaussianClasses."
            )
        section = Section(X, None if feature is None else [feature], 1)
        known = np.asarray(estimator.classes_)
        low, high = section.frame(0.2 * float(np.ptp(section.ends)) if eps is None else eps)[:, 0]
        values = np.linspace(low, high, grid_resolution)

        def log_joint(at: Float) -> Float:
            total, proba = section.evaluate(
                lambda rows: (estimator.log_density(rows), estimator.predict_proba(rows)), at
            )
            with np.errstate(divide="ignore"):
                return total[:, None] + np.log(proba)

        joint = log_joint(values[:, None])
        best, changes = joint.argmax(axis=1), []
        for at in np.flatnonzero(best[1:] != best[:-1]):
            pair = best[[at, at + 1]]
            changes.append(
                brentq(lambda v, pair=pair: np.subtract(*log_joint(np.array([[v]]))[0, pair]), *values[at : at + 2])
            )
        display = cls(
            values,
            np.exp(joint),
            known.tolist(),
            np.array(changes),
            None if y is None else section.shown[:, 0],
            None if y is None else encode(np.asarray(y), known, None)[1],
            section.names[0],
        )
        return display.plot(ax, **kwargs)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        rug = -0.04 * float(self.densities.max())
        for k, name in enumerate(self.classes):
            look = style.with_defaults("Line2D", kwargs, label=style.label(name), **style.line(k))
            (line,) = ax.plot(self.values, self.densities[:, k], **look)
            ax.fill_between(self.values, self.densities[:, k], color=line.get_color(), alpha=0.15, linewidth=0)
            if self.rows is not None and self.labels is not None:
                own = self.rows[self.labels == k]
                ax.vlines(own, rug * (k + 1.8), rug * (k + 1), color=line.get_color(), linewidth=0.6)
        for k, at in enumerate(self.boundaries):
            ax.axvline(at, color=style.INK, linewidth=1.2, linestyle=":", label="boundary" if k == 0 else None)
        ax.set_xlim(self.values[0], self.values[-1])
        return self.xlabel, "prior × density"
