"""The table of a Bayesian fit: what the data and the prior leave possible for every coefficient.

mean and standard deviation of the posterior,   P(β > 0 | D),   the equal-tailed credible interval,   odds ratio e^β
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from separatrix.inference.coefficient_table import LIMITS, ODDS, CoefficientTable, OddsRatio, TableColumn


@dataclass(frozen=True)
class PosteriorRow(OddsRatio):
    """One coefficient of one score."""

    score: Any
    """The class whose score it belongs to."""
    name: str
    mean: float
    standard_deviation: float
    positive: float
    """The probability that it is positive."""
    lower: float
    upper: float

    @property
    def log_odds_ratio(self) -> float:
        """The posterior mean."""
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
    >>> from separatrix.inference.posterior_summary import PosteriorRow, PosteriorSummary
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
    def columns(self) -> tuple[TableColumn, ...]:
        """Mean, standard deviation, P(> 0), interval and odds ratio."""
        moments = TableColumn("mean", "Mean"), TableColumn("standard_deviation", "Std. dev.")
        return *moments, TableColumn("positive", "P(>0)", "{:.4f}".format), *LIMITS, *ODDS

    @property
    def scores(self) -> list[Any]:
        """The classes that the rows are about."""
        return list(self.titles)

    def _title(self, score: Any) -> str:
        return self.titles[score]

    def _facts(self) -> list[tuple[str, str]]:
        return self.facts

    def _notes(self) -> list[str]:
        return [self.method]
