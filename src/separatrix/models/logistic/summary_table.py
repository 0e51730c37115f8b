"""What is known about a maximum-likelihood fit, and its table: estimates with errors, the likelihood against the null model's.

    z = β/se,   p = 2Φ(−|z|),   odds ratio e^β;                     D = −2L,   AIC = D + 2q,   BIC = D + q log n
    G = 2(L − L₀) ~ χ² with as many degrees of freedom as there are coefficients without the intercepts

q counts all coefficients, n is the total weight. Probabilities are kept as logarithms as well, so that the smallest are not 0.

Reference: McCullagh and Nelder (1989), Generalized Linear Models, sections 2.3 and 4.4; Schwarz (1978), Annals of
Statistics 6; Press et al. (2007), Numerical Recipes, eq. 6.2.7, for the far tail of χ².
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaincc, gammaln, log_ndtr

from separatrix.data.block import Float
from separatrix.data.labels import shown
from separatrix.models.logistic.coefficient_table import CoefficientTable, number, odds

_TERMS = 200
_INTERVALS, _COVARIANCES = ("wald", "profile"), ("model", "robust", "HC0", "HC1")


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


@dataclass(frozen=True)
class Row:
    """One coefficient of one score."""

    score: Any
    """The class whose odds against the baseline it changes."""
    name: str
    estimate: float
    standard_error: float
    lower: float
    upper: float

    @property
    def z(self) -> float:
        """The estimate in standard errors."""
        return float(np.divide(self.estimate, self.standard_error))

    @property
    def log_p_value(self) -> float:
        """log p, finite where p itself is too small for a float."""
        return float(np.log(2.0) + log_ndtr(-abs(self.z)))

    @property
    def p_value(self) -> float:
        """Two-sided, of the hypothesis that the coefficient is 0."""
        return float(np.exp(self.log_p_value))

    @property
    def odds_ratio(self) -> float:
        """By how much the odds are multiplied when the column grows by 1."""
        return odds(self.estimate)

    @property
    def odds_lower(self) -> float:
        """Lower limit of the odds ratio."""
        return odds(self.lower)

    @property
    def odds_upper(self) -> float:
        """Upper limit of the odds ratio."""
        return odds(self.upper)


@dataclass(frozen=True, repr=False)
class Summary(CoefficientTable):
    """What `LogisticRegression.summary` returns; printed, it is a table.

    Parameters
    ----------
    rows : list of Row
        Score by score, in the order of the columns, the intercept last.
    inference : Inference
        What the rows were made of; its `covariance` is the one the standard errors come from.
    level : float
        Of the intervals.
    interval : {"wald", "profile"}
        What kind they are.
    covariance : {"model", "HC0", "HC1"}
        Where the standard errors come from.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.models.logistic.summary_table import Inference, Row, Summary
    >>> one, none = np.array([[0.5]]), np.zeros(1)
    >>> known = Inference(one, none, ("b",), "a", ("age",), False, one**4, -20.0, -22.0, 40.0)
    >>> table = Summary([Row("b", "age", 0.5, 0.25, 0.01, 0.99)], known)
    >>> table.aic, table.lr_statistic, round(table.rows[0].p_value, 4)
    (42.0, 4.0, 0.0455)
    """

    rows: list[Row]
    inference: Inference
    level: float = 0.95
    interval: str = "wald"
    covariance: str = "model"

    headline: ClassVar[str] = "Logistic regression, maximum likelihood"
    numbers: ClassVar[tuple[str, ...]] = (
        *("estimate", "standard_error", "z", "p_value", "lower", "upper"),
        *("odds_ratio", "odds_lower", "odds_upper"),
    )

    @property
    def log_likelihood(self) -> float:
        """L, at the optimum."""
        return self.inference.log_likelihood

    @property
    def n_observations(self) -> float:
        """Total weight."""
        return self.inference.n_observations

    @property
    def scores(self) -> list[Any]:
        """The classes whose odds against the baseline the rows are about."""
        return list(self.inference.score_labels)

    @property
    def n_parameters(self) -> int:
        """Coefficients, the intercepts among them."""
        return len(self.rows)

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
    def lr_statistic(self) -> float:
        """Twice the gain in log-likelihood over the null model."""
        return max(0.0, self.null_deviance - self.deviance)

    @property
    def lr_degrees(self) -> int:
        """Coefficients that the null model lacks."""
        return self.n_parameters - (len(self.scores) if self.inference.fit_intercept else 0)

    @property
    def lr_log_p_value(self) -> float:
        """log p of the likelihood-ratio test, finite where p is too small for a float."""
        return log_chi_square_tail(self.lr_statistic, self.lr_degrees)

    @property
    def lr_p_value(self) -> float:
        """P(χ² > statistic) if all coefficients but the intercepts were 0."""
        return float(np.exp(self.lr_log_p_value))

    def _title(self, score: Any) -> str:
        return f"Log-odds of {shown(score)} against {shown(self.inference.baseline)}"

    def _heads(self) -> list[str]:
        limits = self._limits()
        return ["", "Estimate", "Std. error", "z", "P(>|z|)", *limits, "Odds ratio", *limits]

    def _cells(self, row: Row) -> list[str]:
        limits = [number(row.lower), number(row.upper)]
        odds = [number(row.odds_ratio), number(row.odds_lower), number(row.odds_upper)]
        p = probability(row.log_p_value)
        return [row.name, number(row.estimate), number(row.standard_error), f"{row.z:.3f}", p, *limits, *odds]

    def _facts(self) -> list[tuple[str, str]]:
        n, q = self.n_observations, self.n_parameters
        q0 = q - self.lr_degrees
        test = f"χ² = {self.lr_statistic:.6g} on {self.lr_degrees} df, p = {probability(self.lr_log_p_value)}"
        per = len(self.scores)  # each row of the data has that many degrees of freedom
        return [
            ("Observations", f"{n:.10g}"),
            ("Log-likelihood", f"{self.log_likelihood:.10g}"),
            ("Deviance", f"{self.deviance:.10g} on {per * n - q:.10g} df"),
            ("Null deviance", f"{self.null_deviance:.10g} on {per * n - q0:.10g} df"),
            ("AIC", f"{self.aic:.10g}"),
            ("BIC", f"{self.bic:.10g}"),
            ("Likelihood-ratio test", test),
        ]

    def _words(self) -> list[str]:
        errors = {"model": "from the information matrix"}.get(self.covariance, f"robust ({self.covariance})")
        kind = "profile-likelihood" if self.interval == "profile" else "Wald"
        method = f"Standard errors {errors}; {kind} intervals at level {self.level:g}."
        return [method, *([self.inference.note] if self.inference.note else [])]


def check_wishes(level: float, interval: str, covariance: str) -> None:
    """Refuse what no summary can show."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; give a probability between 0 and 1, such as 0.95.")
    for name, given, known in (("interval", interval, _INTERVALS), ("covariance", covariance, _COVARIANCES)):
        if given not in known:
            raise ValueError(f"{name} is {given!r}; give one of {', '.join(map(repr, known))}.")


def log_chi_square_tail(statistic: float, degrees: int) -> float:
    """log P(χ² > statistic), finite where the probability is too small for a float.

    Examples
    --------
    >>> from separatrix.models.logistic.summary_table import log_chi_square_tail
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


def probability(log_p: float) -> str:
    """A probability from its logarithm, however small: 0.0313, 4.2e-05, 1.7e-1234.

    Examples
    --------
    >>> from separatrix.models.logistic.summary_table import probability
    >>> probability(-3.5), probability(-2000.0)
    ('0.0302', '2.6e-869')
    """
    if np.isnan(log_p):
        return "nan"
    if log_p > np.log(1e-4):
        return f"{np.exp(log_p):.4f}"
    if not np.isfinite(log_p):
        return "0"
    power = int(np.floor(log_p / np.log(10.0)))
    digits = f"{10.0 ** (log_p / np.log(10.0) - power):.1f}"
    return f"1.0e{power + 1:03d}" if digits == "10.0" else f"{digits}e{power:03d}"
