"""A reliability diagram: on the diagonal, a predicted probability is the frequency observed.

The points and their Wilson intervals are those of `reliability_diagram`; see there for more than two classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.labels import as_weights
from separatrix.decide.calibration import Reliability, reliability_diagram
from separatrix.decide.losses import class_codes
from separatrix.plots import style
from separatrix.plots.display import ProbabilityDisplay

_DIAGONAL = "perfectly calibrated"


@dataclass(eq=False, repr=False)
class CalibrationDisplay(ProbabilityDisplay):
    """Predicted probability against observed frequency, with intervals.

    `plot` takes ``name``, for the legend, and ``ref_line``, whether to draw the diagonal; other keywords are for `Axes.plot`.

    Parameters
    ----------
    reliability : Reliability
        The points, as `reliability_diagram` gives them.
    name : str, optional
        For the legend.
    event : str
        What the probability is of.

    Examples
    --------
    >>> from separatrix.plots import CalibrationDisplay
    >>> CalibrationDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8], n_bins=2).reliability.counts
    array([3., 1.])
    """

    reliability: Reliability
    name: str | None = None
    event: str = "the positive class"

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        n_bins: int = 10,
        strategy: Literal["uniform", "quantile"] = "uniform",
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        ref_line: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Judge probabilities, and plot.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
            A vector holds the probabilities of the second of two classes.
        classes : array-like, optional
            What the columns of `y_prob` stand for, sorted, when a class has no row in `y_true`.
        n_bins : int, default=10
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equal numbers of rows.
        pos_label : label, optional
            The class whose probability is judged. By default the second of two; for more, whichever is the likeliest in
            each row.
        sample_weight : array-like of shape (n_samples,), optional
        name : str, optional
            For the legend.
        ax : matplotlib Axes, optional
            A new figure when left out.
        ref_line : bool, default=True
            Whether to draw the diagonal.
        **kwargs : dict
            For the curve: `Axes.plot`.

        Returns
        -------
        CalibrationDisplay
        """
        points = reliability_diagram(
            y_true,
            y_prob,
            pos_label=pos_label,
            classes=classes,
            strategy=strategy,
            n_bins=n_bins,
            sample_weight=sample_weight,
        )
        known, _ = class_codes(y_true, classes, as_weights(sample_weight, len(np.asarray(y_prob))))
        event = known[1] if pos_label is None and len(known) == 2 else pos_label
        return cls(points, name, "the likeliest class" if event is None else str(event)).plot(
            ax, ref_line=ref_line, **kwargs
        )

    def _draw(self, ax: Any, *, name: str | None = None, ref_line: bool = True, **kwargs: Any) -> tuple[str, str]:
        if ref_line and _DIAGONAL not in ax.get_legend_handles_labels()[1]:
            ax.plot([0, 1], [0, 1], color=style.INK, linestyle=":", label=_DIAGONAL)
        points, shown = self.reliability, self.name if name is None else name
        k = sum(line.get_label() != _DIAGONAL for line in ax.get_lines())  # curves that are here already
        defaults = {"label": None if shown is None else style.label(shown), "marker": style.marker(k), **style.line(k)}
        (self.line_,) = ax.plot(points.predicted, points.observed, **style.with_defaults("Line2D", kwargs, **defaults))
        ax.vlines(points.predicted, points.lower, points.upper, color=self.line_.get_color(), linewidth=1.0)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        return f"predicted probability of {self.event}", "observed frequency"
