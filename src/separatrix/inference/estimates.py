"""What is known about a fit by maximum likelihood: estimates, their covariance, the likelihood against the null model's.

    D = −2L,   AIC = D + 2q,   BIC = D + q log n
    McFadden's R² = 1 − L/L₀
    G = 2(L − L₀) ~ χ² with as many degrees of freedom as there are coefficients without the intercepts

q counts all coefficients, n is the total weight. Probabilities are kept as logarithms as well, so that the smallest are not 0.

Reference: McCullagh and Nelder (1989), Generalized Linear Models, sections 2.3 and 4.4; Schwarz (1978), Annals of
Statistics 6; Press et al. (2007), Numerical Recipes, eq. 6.2.7, for the far tail of χ².
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import gammaincc, gammaln

from separatrix.data.block import Float

_TERMS = 200

REFUSALS = {
    "penalty": "There are no standard errors under a penalty: it pulls the coefficients towards zero, so they are biased and "
    "the curvature of the likelihood does not describe their errors. Fit with C=np.inf. An L2 penalty offers the Bayesian "
    "reading: posterior mean and covariance under the Gaussian prior are what BayesianLogisticRegression reports.",
    "l1": "There are no standard errors after an L1 penalty: which coefficients are zero was chosen by the same data, and the "
    "likelihood knows nothing of that choice. Refit the chosen columns with C=np.inf on rows that had no part in it.",
    "prior": "There are no standard errors under a prior, which offers the Bayesian reading: posterior mean and covariance "
    "under the Gaussian prior are what BayesianLogisticRegression reports. For tests fit with C=np.inf and no prior.",
    "bounds": "There are no standard errors under bounds: an estimate that lies on one is not normally distributed about the "
    "truth. Fit without bounds.",
    "interrupted": "The fit was interrupted before the optimum, where alone standard errors mean something. Fit again.",
}
"""Why there are no standard errors."""


def check_level(level: float) -> None:
    """Refuse what is no level of an interval."""
    if not (isinstance(level, Real) and 0.0 < level < 1.0):
        raise ValueError(f"level is {level!r}; give a probability between 0 and 1, such as 0.95.")


@dataclass(frozen=True)
class Inference:
    """All that a summary without data needs.

    Parameters
    ----------
    coef : ndarray of shape (m, d)
        Coefficients at the optimum, of one score for two classes, else of every class against the baseline.
    intercept : ndarray of shape (m,)
        Zeros when there is none.
    score_labels : tuple
        The class of each score.
    baseline : label
        The class they are against.
    feature_names : tuple of str or None
    fit_intercept : bool
    covariance : ndarray of shape (mp, mp)
        Inverse of the information; score by score, the intercept last within each. Empty after a refusal.
    log_likelihood, null_log_likelihood : float
        The second is that of the intercepts and the offset alone.
    n_observations : float
        Total weight.
    refusal : str
        Why there is no inference; empty when it is valid.
    note : str
        What a reader of the table should know.
    """

    coef: Float
    intercept: Float
    score_labels: tuple[Any, ...]
    baseline: Any
    feature_names: tuple[str, ...] | None
    fit_intercept: bool
    covariance: Float = field(default_factory=lambda: np.full((0, 0), np.nan), repr=False)
    log_likelihood: float = np.nan
    null_log_likelihood: float = np.nan
    n_observations: float = np.nan
    refusal: str = ""
    note: str = ""

    @property
    def names(self) -> list[str]:
        """Of the coefficients of one score."""
        d = self.coef.shape[1]
        columns = [f"x{j}" for j in range(d)] if self.feature_names is None else list(self.feature_names)
        return [*columns, "(intercept)"] if self.fit_intercept else columns

    @property
    def estimates(self) -> Float:
        """(m, p) coefficients, the intercept last."""
        return np.column_stack([self.coef, self.intercept]) if self.fit_intercept else self.coef

    def refused(self, reason: str) -> Inference:
        """The same without standard errors, and why."""
        return replace(self, refusal=reason)

    def check_rows(self, n_observations: float, log_likelihood: float, kind: str = "", atol: float = 0.0) -> None:
        """Refuse rows that have another total weight, or another (`kind` of) log-likelihood, than those of the fit."""
        given, known = (n_observations, log_likelihood), (self.n_observations, self.log_likelihood)
        if not np.allclose(given, known, rtol=1e-8, atol=atol):
            raise ValueError(
                "These rows are not the ones the model was fitted to: their total weight is {:.10g} and their {}log-likelihood "
                "{:.10g}, those of the fit were {:.10g} and {:.10g}. Give the same X, y, sample_weight and offset.".format(
                    given[0], kind, given[1], *known
                )
            )


class FitStatistics:
    """Deviances, information criteria and the likelihood-ratio test of an `inference`."""

    inference: Inference

    @property
    def log_likelihood(self) -> float:
        """L, at the optimum."""
        return self.inference.log_likelihood

    @property
    def n_observations(self) -> float:
        """Total weight."""
        return self.inference.n_observations

    @property
    def n_parameters(self) -> int:
        """Coefficients, the intercepts among them."""
        return self.inference.estimates.size

    @property
    def deviance(self) -> float:
        """−2L: that of a model which is certain of every row is 0."""
        return -2.0 * self.log_likelihood

    @property
    def null_deviance(self) -> float:
        """−2L₀."""
        return -2.0 * self.inference.null_log_likelihood

    @property
    def aic(self) -> float:
        """Akaike's information criterion."""
        return self.deviance + 2.0 * self.n_parameters

    @property
    def bic(self) -> float:
        """Schwarz's information criterion, with the total weight as the number of observations."""
        return self.deviance + self.n_parameters * float(np.log(self.n_observations))

    @property
    def mcfadden_r_squared(self) -> float:
        """1 − L/L₀: 0 where the columns explain nothing, 1 for a model that is certain of every row; NaN where L₀ is 0."""
        null = self.inference.null_log_likelihood
        return 1.0 - self.log_likelihood / null if null else float("nan")

    @property
    def lr_statistic(self) -> float:
        """Twice the gain in log-likelihood over the null model."""
        return max(0.0, self.null_deviance - self.deviance)

    @property
    def lr_degrees(self) -> int:
        """Coefficients that the null model lacks."""
        return self.inference.coef.size

    @property
    def lr_log_p_value(self) -> float:
        """log p of the likelihood-ratio test, finite where p is too small for a float."""
        return log_chi_square_tail(self.lr_statistic, self.lr_degrees)

    @property
    def lr_p_value(self) -> float:
        """P(χ² > statistic) if all coefficients but the intercepts were 0."""
        return float(np.exp(self.lr_log_p_value))


def log_chi_square_tail(statistic: float, degrees: int) -> float:
    """log P(χ² > statistic), finite where the probability is too small for a float.

    Examples
    --------
    >>> from separatrix.inference.estimates import log_chi_square_tail
    >>> round(log_chi_square_tail(4000.0, 2), 6)
    -2000.0
    """
    if degrees == 0:
        return 0.0
    a, x = 0.5 * degrees, 0.5 * statistic
    tail = float(gammaincc(a, x))
    if tail > 1e-290:
        return float(np.log(tail))
    fraction = x + 2.0 * _TERMS + 1.0 - a
    for k in range(_TERMS, 0, -1):
        fraction = x + 2.0 * k - 1.0 - a - k * (k - a) / fraction
    return float(a * np.log(x) - x - gammaln(a) - np.log(fraction))
