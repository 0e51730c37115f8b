"""The table of a least-squares fit: estimates with their errors, t tests and intervals, statistics of the fit below.

    t = β̂/se,   p = P(|T| > |t|),   T with n − p degrees of freedom
    R² = 1 − RSS/TSS,   adjusted 1 − (n − 1)/(n − p) · RSS/TSS
    F = (TSS − RSS)/q / σ̂²   on q and n − p degrees of freedom;   β̂ᵀV⁻¹β̂/q under robust errors

q is p without the intercept. TSS is about the mean, or about 0 without an intercept, where n stands for n − 1.

Reference: Seber and Lee (2003), Linear Regression Analysis, chapters 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import fdtrc, stdtr, stdtrit

from separatrix.data.block import Float
from separatrix.inference.coefficient_table import LIMITS, CoefficientTable, SummaryColumn, probability
from separatrix.inference.estimates import check_level
from separatrix.inference.least_squares import HC, LeastSquaresEstimates

COVARIANCES = ("model", "robust", *HC)
_COLUMNS = (
    SummaryColumn("estimate", "Estimate"),
    SummaryColumn("standard_error", "Std. error"),
    SummaryColumn("t", "t", "{:.3f}".format),
    SummaryColumn("p_value", "P(>|t|)", probability, "log_p_value"),
    *LIMITS,
)


@dataclass(frozen=True)
class RegressionRow:
    """One coefficient of one target; NaN where the column is aliased."""

    score: str
    name: str
    estimate: float
    standard_error: float
    lower: float
    upper: float
    degrees: float

    @property
    def t(self) -> float:
        """The estimate in standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):  # a perfect fit has none
            return float(np.divide(self.estimate, self.standard_error))

    @property
    def p_value(self) -> float:
        """Two-sided, of the hypothesis that the coefficient is 0."""
        return float(2.0 * stdtr(self.degrees, -abs(self.t)))

    @property
    def log_p_value(self) -> float:
        """Its logarithm, −inf where the probability is too small for a float."""
        with np.errstate(divide="ignore"):
            return float(np.log(self.p_value))


def f_tail(statistic: float, numerator: float, denominator: float) -> float:
    """P(F > statistic).

    Examples
    --------
    >>> from separatrix.inference.least_squares_summary import f_tail
    >>> round(f_tail(4.0, 1, 1e9), 4)  # as |z| > 2
    0.0455
    """
    return float(fdtrc(numerator, denominator, statistic))


@dataclass(frozen=True, repr=False)
class RegressionSummary(CoefficientTable):
    """What `LinearRegression.summary` returns; printed, it is a table.

    Statistics of the fit (`r_squared`, `f_statistic`, …) are numbers for one target and arrays for several.

    Parameters
    ----------
    rows : sequence of RegressionRow
        Target by target, in the order of the columns, the intercept last.
    estimates : LeastSquaresEstimates
        What the rows were made of.
    level : float
        Of the intervals.
    covariance : {"model", "HC0", "HC1", "HC2", "HC3"}
        Where the standard errors come from.

    Examples
    --------
    >>> from separatrix import LinearRegression
    >>> table = LinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 4.0, 8.0]).summary()
    >>> round(table.r_squared, 4), round(table.f_statistic, 2), table.rows[0].name
    (0.9308, 26.89, 'x0')
    """

    rows: Sequence[RegressionRow]
    estimates: LeastSquaresEstimates
    level: float = 0.95
    covariance: str = "model"

    headline: ClassVar[str] = "Linear regression, least squares"

    @classmethod
    def of(cls, estimates: LeastSquaresEstimates, level: float, covariance: str) -> RegressionSummary:
        """The table of estimates."""
        check_level(level)
        rows, quantile = [], float(stdtrit(estimates.degrees, 0.5 + 0.5 * level))
        names = [*estimates.names, "(intercept)"] if estimates.fit_intercept else list(estimates.names)
        places = [*estimates.kept, len(estimates.names)] if estimates.fit_intercept else list(estimates.kept)
        for target in range(len(estimates.coef)):
            values, errors = (np.full(len(names), np.nan) for _ in range(2))
            values[places] = vector(estimates, target)
            errors[places] = np.sqrt(np.maximum(estimates.covariance(target).diagonal(), 0.0))
            for name, value, error in zip(names, values.tolist(), errors.tolist(), strict=True):
                limits = value - quantile * error, value + quantile * error
                rows.append(RegressionRow(f"y{target}", name, value, error, *limits, estimates.degrees))
        return cls(rows, estimates, level, covariance)

    @property
    def columns(self) -> tuple[SummaryColumn, ...]:
        return _COLUMNS

    @property
    def scores(self) -> list[Any]:
        return [f"y{target}" for target in range(len(self.estimates.coef))]

    def _title(self, score: Any) -> str:
        return "Coefficients" if len(self.scores) == 1 else f"Coefficients of target {score}"

    def _shaped(self, values: Float) -> Any:
        return float(values[0]) if len(values) == 1 else values

    @property
    def n_observations(self) -> float:
        """Total weight."""
        return self.estimates.total

    @property
    def residual_degrees(self) -> float:
        """n − p."""
        return self.estimates.degrees

    @property
    def model_degrees(self) -> int:
        """q: independent columns, the intercept not among them."""
        return len(self.estimates.kept)

    @property
    def sigma(self) -> Any:
        """Standard deviation of the noise."""
        return self._shaped(np.sqrt(self.estimates.variance))

    @property
    def _unexplained(self) -> Float:
        squares, total = self.estimates.residual_squares, self.estimates.target_squares
        return np.divide(squares, total, out=np.full_like(total, np.nan), where=total > 0)

    @property
    def r_squared(self) -> Any:
        """Share of the squares that is explained: about the mean, without an intercept about 0. NaN for a constant target."""
        return self._shaped(1.0 - self._unexplained)

    @property
    def adjusted_r_squared(self) -> Any:
        """The same of unbiased estimates of the two variances."""
        known = self.estimates
        return self._shaped(1.0 - (known.total - known.fit_intercept) / known.degrees * self._unexplained)

    @property
    def f_statistic(self) -> Any:
        """Of the hypothesis that all coefficients but the intercept are 0; NaN if there are none."""
        known, q = self.estimates, self.model_degrees
        if not q:
            return self._shaped(np.full(len(known.coef), np.nan))
        if known.sandwiches is None:
            gained = np.maximum(known.target_squares - known.residual_squares, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                return self._shaped(gained / q / known.variance)
        solved = [w @ np.linalg.solve(known.covariance(t)[:q, :q], w) / q for t, w in enumerate(known.coef)]
        return self._shaped(np.array(solved))

    @property
    def f_p_value(self) -> Any:
        """P(F > statistic) if they were."""
        values = np.atleast_1d(self.f_statistic)
        return self._shaped(np.array([f_tail(float(f), self.model_degrees, self.residual_degrees) for f in values]))

    @property
    def log_likelihood(self) -> Any:
        """L, at the maximum over the noise too."""
        known, n = self.estimates, self.estimates.total
        with np.errstate(divide="ignore"):
            return self._shaped(-0.5 * n * (np.log(2.0 * np.pi * known.residual_squares / n) + 1.0))

    @property
    def aic(self) -> Any:
        """Akaike's information criterion; the variance of the noise is not counted, as in statsmodels."""
        return self._shaped(2.0 * self.estimates.n_parameters - 2.0 * np.atleast_1d(self.log_likelihood))

    @property
    def bic(self) -> Any:
        """Schwarz's information criterion, with the total weight as the number of observations."""
        penalty = self.estimates.n_parameters * float(np.log(self.estimates.total))
        return self._shaped(penalty - 2.0 * np.atleast_1d(self.log_likelihood))

    @property
    def condition(self) -> float:
        """Largest over least singular value of the columns, the constant among them, in the user's units."""
        return self.estimates.condition

    @property
    def aliased(self) -> list[str]:
        """Columns that are linear combinations of the ones before them."""
        kept = set(self.estimates.kept.tolist())
        return [name for j, name in enumerate(self.estimates.names) if j not in kept]

    def _facts(self) -> list[tuple[str, str]]:
        def line(values: Any) -> str:
            return ", ".join(f"{value:.10g}" for value in np.atleast_1d(values))

        tests = zip(np.atleast_1d(self.f_statistic), np.atleast_1d(self.f_p_value), strict=True)
        with np.errstate(divide="ignore"):
            shown = "; ".join(f"{f:.6g}, p = {probability(float(np.log(p)))}" for f, p in tests)
        kind = "R²" if self.estimates.fit_intercept else "R² about 0"
        return [
            ("Observations", f"{self.n_observations:.10g}"),
            ("Residual std. error", f"{line(self.sigma)} on {self.residual_degrees:.10g} df"),
            (kind, line(self.r_squared)),
            ("Adjusted", line(self.adjusted_r_squared)),
            (f"F on {self.model_degrees} and {self.residual_degrees:.10g} df", shown),
            ("Log-likelihood", line(self.log_likelihood)),
            ("AIC", line(self.aic)),
            ("BIC", line(self.bic)),
            ("Condition", f"{self.condition:.4g}"),
        ]

    def _notes(self) -> list[str]:
        errors = {"model": "assume noise of one variance"}.get(self.covariance, f"are robust ({self.covariance})")
        notes = [f"Standard errors {errors}; intervals at level {self.level:g}."]
        names = ", ".join(self.aliased)
        if names:
            notes.append(
                f"Linear combinations of the columns before them, without coefficients of their own: {names}. "
                "The table is that of a fit without them; coef_ has the solution of least norm, with the same predictions."
            )
        return [*notes, *([self.estimates.note] if self.estimates.note else [])]


def vector(estimates: LeastSquaresEstimates, target: int) -> Float:
    """(p,) the estimates of one target, the intercept last."""
    coef = estimates.coef[target]
    return np.append(coef, estimates.intercept[target]) if estimates.fit_intercept else coef


def check_covariance(covariance: str, with_rows: bool) -> str:
    """The name of a covariance, checked; robust ones need the rows of the fit."""
    if covariance not in COVARIANCES:
        raise ValueError(f"covariance is {covariance!r}; give one of {', '.join(map(repr, COVARIANCES))}.")
    if covariance != "model" and not with_rows:
        raise ValueError("Robust standard errors need the rows again, which the model does not keep: give X and y.")
    return "HC0" if covariance == "robust" else covariance
