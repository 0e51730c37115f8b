"""How the risk falls as the least certain rows are rejected.

    risk(c) = lost(c)/c,      lost(c) linear between the corners of `risk_coverage_curve`

Between two corners a share of the rows that tie is kept at random, so the curve bends there: it is drawn as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Float
from separatrix.decide.empirical_risk import RiskCoverage, risk_coverage_curve
from separatrix.decide.losses import Loss
from separatrix.plots import style
from separatrix.plots.display import ProbabilityDisplay


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay(ProbabilityDisplay):
    """Risk of the rows that are kept, against the share of them.

    `plot` takes ``name``, for the legend; other keywords are for `Axes.plot`.

    Parameters
    ----------
    curve : RiskCoverage
        As `risk_coverage_curve` gives it.
    name : str, optional
        For the legend.

    Examples
    --------
    >>> from separatrix.plots import RiskCoverageDisplay
    >>> proba = [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3]]
    >>> RiskCoverageDisplay.from_predictions([0, 1, 1, 1], proba).curve.risk.round(2)
    array([0.  , 0.  , 0.33, 0.25])
    """

    curve: RiskCoverage
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        loss: Loss = "zero-one",
        classes: ArrayLike | None = None,
        actions: ArrayLike | None = None,
        uncertainty: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """The curve of given probabilities, and its plot.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_prob : array-like of shape (n_samples, n_classes)
        loss, classes, actions, uncertainty, sample_weight
            As for `risk_coverage_curve`.
        name : str, optional
            For the legend.
        ax, **kwargs
            The matplotlib Axes, a new figure when left out. For the curve: `Axes.plot`.

        Returns
        -------
        RiskCoverageDisplay
        """
        given = {"classes": classes, "actions": actions, "sample_weight": sample_weight}
        curve = risk_coverage_curve(y_true, y_prob, loss, uncertainty=uncertainty, **given)
        return cls(curve, name).plot(ax, **kwargs)

    def risk_at(self, coverage: ArrayLike) -> Float:
        """The risk when a share of the rows is kept, rows that tie at random.

        Parameters
        ----------
        coverage : array-like of shape (n,)
            Shares above 0.

        Returns
        -------
        ndarray of shape (n,)
        """
        corners = np.concatenate([[0.0], self.curve.coverage])
        lost = np.concatenate([[0.0], self.curve.coverage * self.curve.risk])
        share = np.asarray(coverage, dtype=np.float64)
        return np.interp(share, corners, lost) / share

    def _draw(self, ax: Any, *, name: str | None = None, **kwargs: Any) -> tuple[str, str]:
        share = np.unique(np.concatenate([self.curve.coverage, np.linspace(0.0, 1.0, 501)[1:]]))
        shown, area = self.name if name is None else name, f"area {self.curve.area:.3g}"
        defaults = {
            "label": area if shown is None else f"{style.label(shown)} ({area})",
            **style.line(len(ax.get_lines())),
        }
        (self.line_,) = ax.plot(share, self.risk_at(share), **style.with_defaults("Line2D", kwargs, **defaults))
        ax.set_xlim(0.0, 1.02)
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        return "coverage: share of the rows kept", "risk: mean loss of the rows kept"
