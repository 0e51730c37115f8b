"""The table of a fit: estimates with their errors, tests and intervals, statistics of the fit below.

    z = β/se,   p = 2Φ(−|z|),   odds ratio e^β                  maximum likelihood
    χ² = 2(L*(θ̂) − max L*(θ with θ_j = 0)),   p = P(χ²₁ > χ²)    beside profile intervals under Firth's penalty
    mean, standard deviation, P(β > 0 | D), credible interval   of a posterior

Reference: McCullagh and Nelder (1989), Generalized Linear Models, section 4.4; Heinze and Schemper (2002), Statistics in
Medicine 21.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri

from separatrix.data.block import Float
from separatrix.data.labels import shown
from separatrix.inference.coefficient_table import LIMITS, ODDS, CoefficientTable, OddsRatio, SummaryColumn, probability
from separatrix.inference.estimates import FitStatistics, Inference, check_level, log_chi_square_tail

_ESTIMATE = SummaryColumn("estimate", "Estimate"), SummaryColumn("standard_error", "Std. error")
_WALD_TEST = SummaryColumn("z", "z", "{:.3f}".format), SummaryColumn("p_value", "P(>|z|)", probability, "log_p_value")
_RATIO_TEST = SummaryColumn("chi_square", "χ²"), SummaryColumn("p_value", "P(>χ²)", probability, "log_p_value")
_MOMENTS = (
    SummaryColumn("mean", "Mean"),
    SummaryColumn("standard_deviation", "Std. dev."),
    SummaryColumn("positive", "P(>0)", "{:.4f}".format),
)
_CHOICES = {"interval": ("wald", "profile"), "covariance": ("model", "robust", "HC0", "HC1")}


@dataclass(frozen=True)
class CoefficientRow(OddsRatio):
    """One coefficient; `score` is the class whose odds against the baseline it changes."""

    score: Any
    name: str
    estimate: float
    standard_error: float
    lower: float
    upper: float

    @property
    def log_odds_ratio(self) -> float:
        return self.estimate

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


@dataclass(frozen=True)
class TestedRow(CoefficientRow):
    """One coefficient with its penalised likelihood-ratio test."""

    chi_square: float
    """Twice the fall of L* when the coefficient is held at 0; NaN where that fit did not converge."""

    @property
    def log_p_value(self) -> float:
        return float("nan") if np.isnan(self.chi_square) else log_chi_square_tail(self.chi_square, 1)


@dataclass(frozen=True, repr=False)
class Summary(FitStatistics, CoefficientTable):
    """What `LogisticRegression.summary` returns; printed, it is a table.

    Parameters
    ----------
    rows : sequence of CoefficientRow
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
    >>> from separatrix.inference.estimates import Inference
    >>> from separatrix.inference.summary import CoefficientRow, Summary
    >>> one, none = np.array([[0.5]]), np.zeros(1)
    >>> known = Inference(one, none, ("b",), "a", ("age",), False, one**4, -20.0, -22.0, 40.0)
    >>> table = Summary([CoefficientRow("b", "age", 0.5, 0.25, 0.01, 0.99)], known)
    >>> table.aic, table.lr_statistic, round(table.rows[0].p_value, 4)
    (42.0, 4.0, 0.0455)
    """

    rows: Sequence[CoefficientRow]
    inference: Inference
    level: float = 0.95
    interval: str = "wald"
    covariance: str = "model"

    headline: ClassVar[str] = "Logistic regression, maximum likelihood"

    @property
    def columns(self) -> tuple[SummaryColumn, ...]:
        return *_ESTIMATE, *_WALD_TEST, *LIMITS, *ODDS

    @property
    def scores(self) -> list[Any]:
        return list(self.inference.score_labels)

    def _title(self, score: Any) -> str:
        return f"Log-odds of {shown(score)} against {shown(self.inference.baseline)}"

    def _facts(self) -> list[tuple[str, str]]:
        n, q = self.n_observations, self.n_parameters
        q0 = q - self.lr_degrees
        per = len(self.scores)  # each row of the data has that many degrees of freedom
        return [
            ("Observations", f"{n:.10g}"),
            ("Log-likelihood", f"{self.log_likelihood:.10g}"),
            ("Deviance", f"{self.deviance:.10g} on {per * n - q:.10g} df"),
            ("Null deviance", f"{self.null_deviance:.10g} on {per * n - q0:.10g} df"),
            ("AIC", f"{self.aic:.10g}"),
            ("BIC", f"{self.bic:.10g}"),
            ("McFadden's R²", f"{self.mcfadden_r_squared:.6g}"),
            self._likelihood_ratio(),
        ]

    def _likelihood_ratio(self) -> tuple[str, str]:
        test = f"χ² = {self.lr_statistic:.6g} on {self.lr_degrees} df, p = {probability(self.lr_log_p_value)}"
        return "Likelihood-ratio test", test

    def _notes(self) -> list[str]:
        errors = {"model": "from the information matrix"}.get(self.covariance, f"robust ({self.covariance})")
        return self._method(errors, "profile-likelihood")

    def _method(self, errors: str, profile: str) -> list[str]:
        kind = profile if self.interval == "profile" else "Wald"
        method = f"Standard errors {errors}; {kind} intervals at level {self.level:g}."
        return [method, *([self.inference.note] if self.inference.note else [])]


@dataclass(frozen=True, repr=False)
class FirthSummary(Summary):
    """What `LogisticRegression.summary` returns under Firth's penalty; likelihoods are penalised ones.

    Beside profile intervals stand tests by the penalised likelihood ratio. Information criteria are not defined: the
    penalised likelihood is not one of the data alone.
    """

    headline: ClassVar[str] = "Logistic regression, Firth's penalised likelihood"

    @property
    def columns(self) -> tuple[SummaryColumn, ...]:
        return *_ESTIMATE, *(_WALD_TEST if self.interval == "wald" else _RATIO_TEST), *LIMITS, *ODDS

    @property
    def aic(self) -> float:
        """Not defined: NaN."""
        return float("nan")

    @property
    def bic(self) -> float:
        """Not defined: NaN."""
        return float("nan")

    @property
    def mcfadden_r_squared(self) -> float:
        """Not defined: NaN."""
        return float("nan")

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("Observations", f"{self.n_observations:.10g}"),
            ("Penalised log-likelihood", f"{self.log_likelihood:.10g}"),
            ("Of the null model", f"{self.inference.null_log_likelihood:.10g}"),
            self._likelihood_ratio(),
        ]

    def _notes(self) -> list[str]:
        return self._method("from the information without the penalty", "profile penalised-likelihood")


@dataclass(frozen=True)
class PosteriorRow(OddsRatio):
    """One coefficient of the score of a class; `positive` is the probability that it is positive."""

    score: Any
    name: str
    mean: float
    standard_deviation: float
    positive: float
    lower: float
    upper: float

    @property
    def log_odds_ratio(self) -> float:
        return self.mean


@dataclass(frozen=True, repr=False)
class PosteriorSummary(CoefficientTable):
    """What `BayesianLogisticRegression.summary` returns; printed, it is a table.

    Parameters
    ----------
    rows : list of PosteriorRow
        Score by score, in the order of the columns, the intercept last.
    titles : dict
        For every score, what its rows are about.
    level : float
        Of the credible intervals.
    facts : list of (str, str)
        Shown under the rows.
    method : str
        Where the numbers come from.

    Examples
    --------
    >>> from separatrix.inference.summary import PosteriorRow, PosteriorSummary
    >>> row = PosteriorRow("b", "age", 0.0, 0.25, 0.5, -0.49, 0.49)
    >>> table = PosteriorSummary([row], {"b": "Log-odds of 'b'"}, 0.95, [("Observations", "40")], "By hand.")
    >>> table.rows[0].odds_ratio, table.scores
    (1.0, ['b'])
    """

    rows: list[PosteriorRow]
    titles: dict[Any, str]
    level: float
    facts: list[tuple[str, str]]
    method: str

    headline: ClassVar[str] = "Logistic regression, Bayesian"

    @property
    def columns(self) -> tuple[SummaryColumn, ...]:
        return *_MOMENTS, *LIMITS, *ODDS

    @property
    def scores(self) -> list[Any]:
        return list(self.titles)

    def _title(self, score: Any) -> str:
        return self.titles[score]

    def _facts(self) -> list[tuple[str, str]]:
        return self.facts

    def _notes(self) -> list[str]:
        return [self.method]


def check_options(inference: Inference, level: float, interval: str, covariance: str, with_rows: bool) -> None:
    """Refuse what no summary can show, or none without the rows of the fit."""
    if inference.refusal:
        raise ValueError(inference.refusal)
    check_level(level)
    for name, given in (("interval", interval), ("covariance", covariance)):
        if given not in _CHOICES[name]:
            raise ValueError(f"{name} is {given!r}; give one of {', '.join(map(repr, _CHOICES[name]))}.")
    if not with_rows and (interval == "profile" or covariance != "model"):
        asked = "Profile intervals" if interval == "profile" else "Robust standard errors"
        raise ValueError(f"{asked} need the rows again, which the model does not keep: give summary X and y.")


def wald_limits(inference: Inference, level: float) -> tuple[Float, Float, Float]:
    """(m, p) standard errors, and the limits β̂ ± z se."""
    estimates, z = inference.estimates, float(ndtri(0.5 + 0.5 * level))
    errors = np.sqrt(inference.covariance.diagonal()).reshape(estimates.shape)
    return errors, estimates - z * errors, estimates + z * errors


def coefficient_rows(inference: Inference, *columns: Float) -> list[CoefficientRow]:
    """One row for each coefficient, from (m, p) errors and limits; with a χ² for each, tested rows."""
    kind = TestedRow if len(columns) > 3 else CoefficientRow
    return [
        kind(label, name, *(float(values[k, i]) for values in (inference.estimates, *columns)))
        for k, label in enumerate(inference.score_labels)
        for i, name in enumerate(inference.names)
    ]
