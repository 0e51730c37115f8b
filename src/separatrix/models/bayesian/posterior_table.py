"""The table of a Bayesian fit: what the data and the prior leave possible for every coefficient.

mean and standard deviation of the posterior,   P(β > 0 | D),   the equal-tailed credible interval,   odds ratio e^β
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from separatrix.models.logistic.coefficient_table import CoefficientTable, number, odds


@dataclass(frozen=True)
class PosteriorRow:
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
    def odds_ratio(self) -> float:
        """By how much the odds are multiplied when the column grows by 1, at the mean."""
        return odds(self.mean)

    @property
    def odds_lower(self) -> float:
        """Lower limit of the odds ratio."""
        return odds(self.lower)

    @property
    def odds_upper(self) -> float:
        """Upper limit of the odds ratio."""
        return odds(self.upper)


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
    >>> from separatrix.models.bayesian.posterior_table import PosteriorRow, PosteriorSummary
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
    numbers: ClassVar[tuple[str, ...]] = (
        *("mean", "standard_deviation", "positive", "lower", "upper"),
        *("odds_ratio", "odds_lower", "odds_upper"),
    )

    @property
    def scores(self) -> list[Any]:
        """The classes that the rows are about."""
        return list(self.titles)

    def _title(self, score: Any) -> str:
        return self.titles[score]

    def _heads(self) -> list[str]:
        limits = self._limits()
        return ["", "Mean", "Std. dev.", "P(>0)", *limits, "Odds ratio", *limits]

    def _cells(self, row: PosteriorRow) -> list[str]:
        spread = [number(row.mean), number(row.standard_deviation), f"{row.positive:.4f}"]
        odds = [number(row.odds_ratio), number(row.odds_lower), number(row.odds_upper)]
        return [row.name, *spread, number(row.lower), number(row.upper), *odds]

    def _facts(self) -> list[tuple[str, str]]:
        return self.facts

    def _words(self) -> list[str]:
        return [self.method]
