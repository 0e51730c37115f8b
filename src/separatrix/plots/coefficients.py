"""A forest plot: coefficients by size, each with its interval where the model has one.

Sizes compare only between columns of one unit: standardise them first. Intervals are those of the posterior
(`BayesianLogisticRegression`) or Wald's of a maximum-likelihood fit (`LogisticRegression.summary`); a model that was fitted
with a penalty has none, and is shown without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Float
from separatrix.plots import style
from separatrix.plots.display import Display


@dataclass(eq=False, repr=False)
class CoefficientDisplay(Display):
    """Estimates, and intervals of them, by name.

    Parameters
    ----------
    names : sequence of str
    estimates : array-like of shape (n,)
    lower, upper : array-like of shape (n,), optional
        Ends of the intervals.
    xlabel : str, default="coefficient"

    Attributes
    ----------
    order_ : ndarray
        Which estimates were plotted last, the largest first.

    Examples
    --------
    >>> from separatrix.plots import CoefficientDisplay
    >>> display = CoefficientDisplay(["age", "weight"], [0.2, -0.7], [-0.1, -1.1], [0.5, -0.3])
    >>> display.plot().order_
    array([1, 0])
    """

    names: Sequence[Any]
    estimates: ArrayLike
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    xlabel: str = "coefficient"
    order_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        class_of_interest: Any = None,
        level: float = 0.95,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """The coefficients of a linear model, and their plot.

        Parameters
        ----------
        estimator : fitted estimator with ``coef_``, or a pipeline that ends in one
        feature_names : sequence of str, optional
            By default those the estimator was fitted with; x0, x1, … if there were none.
        class_of_interest : label, optional
            With more than two classes, the one whose coefficients are shown; by default all.
        level : float, default=0.95
            Of the intervals.
        ax, **kwargs
            The matplotlib Axes, a new figure when left out. For the estimates: `Axes.plot`.

        Returns
        -------
        CoefficientDisplay
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level is {level}; give a probability between 0 and 1, such as 0.95.")
        model = style.final_step(estimator)
        if not hasattr(model, "coef_"):
            raise ValueError(f"{type(model).__name__} has no coef_: a forest plot needs a fitted linear model.")
        known, scores, xlabel = _estimates(model, level)
        d = np.shape(model.coef_)[-1]
        columns = _columns(estimator, model, d) if feature_names is None else list(feature_names)
        if len(columns) != d:
            raise ValueError(f"feature_names has {len(columns)} names for {d} columns; give one per column.")
        shown = list(range(len(scores)))
        if class_of_interest is not None and len(scores) > 1:
            shown = [style.chosen_class(scores, class_of_interest, "class_of_interest")]
            xlabel = f"{xlabel} for {class_of_interest}"
        names = [f"{column}, {scores[k]}" if len(shown) > 1 else column for k in shown for column in columns]
        estimates, lower, upper = (None if part is None else part[shown].ravel() for part in known)
        assert estimates is not None
        return cls(names, estimates, lower, upper, xlabel).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, max_rows: int = 30, legend: bool = True, **kwargs: Any) -> Self:
        """Draw the largest estimates, the largest on top.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure when left out.
        max_rows : int, default=30
            How many are drawn at most; a note gives the number of the others.
        legend : bool, default=True
            Whether to add a legend of what has a label.
        **kwargs : dict
            For the estimates: `Axes.plot`.

        Returns
        -------
        self
        """
        values = np.asarray(self.estimates, dtype=np.float64)
        order = np.argsort(-np.abs(values), kind="stable")[:max_rows]
        places = np.arange(len(order))
        ax = style.new_axes(ax, (6.4, 1.2 + 0.26 * len(order)))
        ax.axvline(0.0, color=style.INK, linewidth=0.8, linestyle=":")
        given = style.with_defaults("Line2D", kwargs, color=style.colour(0), marker="o", linestyle="none", markersize=5)
        (drawn,) = ax.plot(values[order], places, **given)
        if self.lower is not None and self.upper is not None:
            lower, upper = (np.asarray(end, dtype=np.float64)[order] for end in (self.lower, self.upper))
            ends = np.concatenate([values[order], lower, upper])
            reach = 1.2 * float(np.abs(ends[np.isfinite(ends)]).max(initial=0.0))  # endless intervals leave the picture
            ax.hlines(places, np.clip(lower, -reach, None), np.clip(upper, None, reach), color=drawn.get_color())
        style.name_rows(ax, [self.names[j] for j in order])
        self.order_ = order
        self._finish(ax, self.xlabel, "", legend)
        if len(order) < len(values):
            ax.set_xlabel(f"{ax.get_xlabel()}\n{len(values) - len(order)} smaller ones are left out")
        ax.set_ylim(len(order) - 0.5, -0.5)
        return self


def _estimates(model: Any, level: float) -> tuple[list[Float | None], list[Any], str]:
    """(m, d) estimates and the ends of their intervals, where there are some; what each of the m is of; the axis label."""
    coef, share = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)), f"{100 * level:g} % interval"
    scores = score_names(np.asarray(getattr(model, "classes_", np.arange(len(coef)))).tolist(), len(coef))
    if hasattr(model, "coef_interval"):
        return [coef, *model.coef_interval(level)], scores, f"coefficient, {share}"
    bare: list[Float | None] = [coef, None, None]
    if not hasattr(model, "summary"):
        return bare, scores, "coefficient"
    try:
        table = model.summary(level=level)
    except ValueError:  # there are no valid errors: a penalty, separable classes, dependent columns
        return bare, scores, "coefficient"
    m, d = len(table.scores), coef.shape[1]
    ends = ("estimate", "lower", "upper")
    parts = [np.array([getattr(row, end) for row in table.rows]).reshape(m, -1)[:, :d] for end in ends]
    against = f" against {table.inference.baseline}" if m > 1 else ""
    return [*parts], table.scores, f"log odds{against}, {share}"


def score_names(classes: Sequence[Any], m: int) -> list[Any]:
    """What each of m rows of coefficients is of: the second of two classes, every class, or every pair of classes."""
    if m == 1:
        return list(classes[-1:])
    pairs = [f"{first} against {second}" for first, second in combinations(classes, 2)]
    return pairs if m == len(pairs) and m != len(classes) else list(classes)


def _columns(estimator: Any, model: Any, d: int) -> list[str]:
    """Names of the columns that the coefficients belong to."""
    names = getattr(model, "feature_names_in_", None)
    if names is None and model is not estimator:
        try:
            names = estimator[:-1].get_feature_names_out()
        except (AttributeError, ValueError):  # a step has no names for its columns
            names = None
    return [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]
