"""Tests of nested models: one is the other with some coefficients held at 0, or with columns that span fewer directions.

    least squares         F = (RSS₀ − RSS₁)/(p₁ − p₀) / σ̂²            σ̂² of the largest model
    maximum likelihood    G = 2(L₁ − L₀) ~ χ² with p₁ − p₀ degrees of freedom

Both compare fits of the same rows. That the models are nested is a statement about their columns, which a fitted model does not
keep: names of columns are compared where there are any, and a larger model that fits worse is refused.

Reference: Seber and Lee (2003), Linear Regression Analysis, section 4.3; McCullagh and Nelder (1989), section 4.4.

**Passes over the data** none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from separatrix.inference.coefficient_table import probability
from separatrix.inference.estimates import log_chi_square_tail
from separatrix.inference.least_squares import LeastSquaresEstimates
from separatrix.inference.least_squares_summary import f_tail

_HEADINGS = ("residual_degrees", "residual_squares", "degrees", "squares", "f", "p_value")
_SAME = 1e-9


@dataclass(frozen=True)
class AnovaRow:
    """One model: what it leaves, and what it explains beyond the model before it (NaN for the first)."""

    residual_degrees: float
    residual_squares: float
    degrees: float
    squares: float
    f: float
    p_value: float


@dataclass(frozen=True, repr=False)
class AnovaTable:
    """What `anova` returns; printed, it is a table."""

    rows: Sequence[AnovaRow]

    def to_frame(self) -> Any:
        """The rows as a pandas data frame."""
        pd: Any = import_module("pandas")
        return pd.DataFrame({name: [getattr(row, name) for row in self.rows] for name in _HEADINGS})

    def __str__(self) -> str:
        cells = [["", "Res. df", "RSS", "df", "Sum of squares", "F", "P(>F)"]]
        for place, row in enumerate(self.rows):
            first = [f"{place}", f"{row.residual_degrees:.10g}", f"{row.residual_squares:.6g}"]
            with np.errstate(divide="ignore"):
                more = [
                    f"{row.degrees:.10g}",
                    f"{row.squares:.6g}",
                    f"{row.f:.6g}",
                    probability(float(np.log(row.p_value))),
                ]
            cells.append([*first, *(more if place else [""] * 4)])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
        ]
        return "\n".join(["Analysis of variance of nested fits", "", *lines])

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class LikelihoodRatio:
    """What `likelihood_ratio_test` returns.

    Parameters
    ----------
    statistic : float
        G.
    degrees : int
        Coefficients that the smaller model lacks.
    """

    statistic: float
    degrees: int

    @property
    def log_p_value(self) -> float:
        """log p, finite where p is too small for a float."""
        return log_chi_square_tail(self.statistic, self.degrees)

    @property
    def p_value(self) -> float:
        """P(χ² > G) if the smaller model were true."""
        return float(np.exp(self.log_p_value))

    def __str__(self) -> str:
        return f"χ² = {self.statistic:.6g} on {self.degrees} df, p = {probability(self.log_p_value)}"


def anova(*models: Any) -> AnovaTable:
    """Analysis of variance of nested linear regressions, the smallest first.

    Parameters
    ----------
    *models : fitted LinearRegression, two or more
        Each with the columns of the one before it and more, fitted to the same targets and weights.

    Returns
    -------
    AnovaTable
        A row for every model.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import LinearRegression
    >>> from separatrix.inference import anova
    >>> x = np.arange(8.0)
    >>> y = x + [0.1, -0.2, 0.1, 0.2, -0.1, -0.2, 0.2, -0.1]
    >>> line = LinearRegression().fit(x[:, None], y)
    >>> parabola = LinearRegression().fit(np.column_stack([x, x**2]), y)
    >>> print(anova(line, parabola))
    Analysis of variance of nested fits
    <BLANKLINE>
       Res. df       RSS  df  Sum of squares          F   P(>F)
    0        6  0.197857
    1        5  0.197619   1     0.000238095  0.0060241  0.9411
    """
    if len(models) < 2:
        raise ValueError("anova compares nested fits; give two models or more, the smallest first.")
    known: list[LeastSquaresEstimates] = [model.estimates() for model in models]
    if any(len(one.coef) != 1 for one in known):
        raise ValueError("anova is for models of one target; fit a model for each.")
    for small, large in pairwise(known):
        same = np.allclose(
            [small.total, *small.squares_about_zero], [large.total, *large.squares_about_zero], rtol=_SAME
        )
        _check(same, small.n_parameters, large.n_parameters)
        _check_names(small.names, large.names, small.fit_intercept, large.fit_intercept)
        slack = 1e-9 * small.squares_about_zero[0]
        if large.residual_squares[0] > small.residual_squares[0] + slack:
            raise ValueError("The larger model fits worse than the smaller one, so they are not nested.")
    scale, rows = float(known[-1].variance[0]), []
    for place, one in enumerate(known):
        degrees = squares = f = p = np.nan
        if place:
            before = known[place - 1]
            degrees = before.degrees - one.degrees
            squares = max(0.0, float(before.residual_squares[0] - one.residual_squares[0]))
            f = squares / degrees / scale if scale > 0 else np.inf
            p = f_tail(f, degrees, known[-1].degrees)
        rows.append(AnovaRow(one.degrees, float(one.residual_squares[0]), degrees, squares, f, p))
    return AnovaTable(rows)


def likelihood_ratio_test(restricted: Any, full: Any) -> LikelihoodRatio:
    """Whether a larger model of maximum likelihood explains more than chance would.

    Parameters
    ----------
    restricted, full : fitted models with a `summary`
        Logistic regressions without a penalty of the same rows, the first nested in the second.

    Returns
    -------
    LikelihoodRatio
        The statistic, its degrees of freedom and its p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import LogisticRegression
    >>> from separatrix.inference import likelihood_ratio_test
    >>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 2), [0, 1, 1, 1, 1, 0, 0, 1]
    >>> small, large = (LogisticRegression(C=np.inf).fit(X[:, :k], y) for k in (1, 2))
    >>> print(likelihood_ratio_test(small, large))
    χ² = 0.582239 on 1 df, p = 0.4454
    """
    small, large = restricted.summary(), full.summary()
    for table in (small, large):
        if not np.isfinite(table.aic):
            raise ValueError("A likelihood-ratio test of nested fits needs maximum likelihood: fit with C=np.inf.")
    one, other = small.inference, large.inference
    same = (one.score_labels, one.baseline) == (other.score_labels, other.baseline)
    same = same and bool(np.isclose(one.n_observations, other.n_observations, rtol=_SAME))
    if same and one.fit_intercept == other.fit_intercept:
        same = bool(np.isclose(one.null_log_likelihood, other.null_log_likelihood, rtol=1e-7))
    _check(same, small.n_parameters, large.n_parameters)
    _check_names(one.feature_names, other.feature_names, one.fit_intercept, other.fit_intercept)
    gain = 2.0 * (large.log_likelihood - small.log_likelihood)
    if gain < -1e-8 * abs(large.log_likelihood):
        raise ValueError("The larger model has the smaller likelihood, so the two are not nested.")
    return LikelihoodRatio(max(0.0, gain), large.n_parameters - small.n_parameters)


def _check(same: bool, small: int, large: int) -> None:
    if not same:
        raise ValueError("The models were fitted to different rows, targets or weights; nested fits are of the same.")
    if large <= small:
        raise ValueError(
            f"The models have {small} and {large} coefficients; give the smaller one first, and one with more columns after it."
        )


def _check_names(small: Any, large: Any, small_intercept: bool, large_intercept: bool) -> None:
    if small_intercept and not large_intercept:
        raise ValueError("The smaller model has an intercept and the larger one has none, so they are not nested.")
    if small is None or large is None or {f"x{j}" for j in range(len(small))} == set(small):
        return
    missing = [name for name in small if name not in set(large)]
    if missing:
        raise ValueError(f"The smaller model has columns that the larger one lacks: {', '.join(missing)}.")
