"""The table of a maximum-likelihood fit: estimates with their errors, and the likelihood against that of the null model.

    z = β/se,   p = 2Φ(−|z|),   odds ratio e^β;                     D = −2L,   AIC = D + 2q,   BIC = D + q log n
    G = 2(L − L₀) ~ χ² with as many degrees of freedom as there are coefficients without the intercepts

q counts all coefficients, n is the total weight. Probabilities are kept as logarithms as well, so that the smallest are not 0.

Reference: McCullagh and Nelder (1989), Generalized Linear Models, sections 2.3 and 4.4; Schwarz (1978), Annals of
Statistics 6. The continued fraction of the χ² tail is NIST's Digital Library of Mathematical Functions, 8.9.2.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
from scipy.special import gammaincc, gammaln, log_ndtr

from separatrix.data.labels import shown

_TERMS = 200


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
        return _exp(self.estimate)

    @property
    def odds_lower(self) -> float:
        """Lower limit of the odds ratio."""
        return _exp(self.lower)

    @property
    def odds_upper(self) -> float:
        """Upper limit of the odds ratio."""
        return _exp(self.upper)


_NUMBERS = (
    *("estimate", "standard_error", "z", "p_value", "lower", "upper"),
    *("odds_ratio", "odds_lower", "odds_upper"),
)


@dataclass(frozen=True)
class Summary:
    """What `LogisticRegression.summary` returns; printed, it is a table.

    Parameters
    ----------
    rows : list of Row
        Score by score, in the order of the columns, the intercept last.
    baseline : label
        The class the odds are against.
    log_likelihood, null_log_likelihood : float
        Of the model, and of the one with nothing but the intercepts and the offset (only the offset, for a model
        without intercepts).
    n_observations : float
        Total weight.
    fit_intercept : bool
        Whether each score has an intercept.
    level : float
        Of the intervals.
    interval : {"wald", "profile"}
        What kind they are.
    covariance : {"model", "HC0", "HC1"}
        Where the standard errors come from.
    note : str
        What else a reader should know.

    Examples
    --------
    >>> from separatrix.models.summary_table import Row, Summary
    >>> table = Summary([Row("b", "age", 0.5, 0.25, 0.01, 0.99)], "a", -20.0, -22.0, 40.0, False)
    >>> table.aic, table.lr_statistic, round(table.rows[0].p_value, 4)
    (42.0, 4.0, 0.0455)
    """

    rows: list[Row]
    baseline: Any
    log_likelihood: float
    null_log_likelihood: float
    n_observations: float
    fit_intercept: bool
    level: float = 0.95
    interval: str = "wald"
    covariance: str = "model"
    note: str = ""

    @property
    def scores(self) -> list[Any]:
        """The classes the rows belong to, each once."""
        return list(dict.fromkeys(row.score for row in self.rows))

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
        return -2.0 * self.null_log_likelihood

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
        return self.n_parameters - (len(self.scores) if self.fit_intercept else 0)

    @property
    def lr_log_p_value(self) -> float:
        """log p of the likelihood-ratio test, finite where p is too small for a float."""
        return log_chi_square_tail(self.lr_statistic, self.lr_degrees)

    @property
    def lr_p_value(self) -> float:
        """P(χ² > statistic) if all coefficients but the intercepts were 0."""
        return float(np.exp(self.lr_log_p_value))

    def to_frame(self) -> Any:
        """The rows as a pandas data frame, indexed by the names (and the classes, for more than two)."""
        import pandas as pd

        names = [row.name for row in self.rows]
        several = len(self.scores) > 1
        index = (
            pd.MultiIndex.from_arrays([[row.score for row in self.rows], names], names=["class", "coefficient"])
            if several
            else pd.Index(names, name="coefficient")
        )
        return pd.DataFrame({field: [getattr(row, field) for row in self.rows] for field in _NUMBERS}, index=index)

    def __str__(self) -> str:
        heads, cells = self._heads(), [self._cells(row) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]

        def line(row: list[str]) -> str:
            first, *numbers = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            return "  ".join([row[0].ljust(len(first)), *numbers]).rstrip()

        out = ["Logistic regression, maximum likelihood"]
        for score in self.scores:
            own = [c for c, row in zip(cells, self.rows, strict=True) if row.score == score]
            out += ["", f"Log-odds of {shown(score)} against {shown(self.baseline)}", line(heads), *map(line, own)]
        facts = self._facts()
        width = max(len(name) for name, _ in facts)
        out += ["", *(f"{name.ljust(width)}  {value}" for name, value in facts)]
        return "\n".join([*out, "", self._method(), *([self.note] if self.note else [])])

    def _repr_html_(self) -> str:
        heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in self._heads())
        parts = []
        for score in self.scores:
            lines = []
            for row in (row for row in self.rows if row.score == score):
                name, *numbers = map(escape, self._cells(row))
                lines.append(f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in numbers)}</tr>')
            caption = escape(f"Log-odds of {shown(score)} against {shown(self.baseline)}")
            parts.append(
                f"<table><caption>{caption}</caption><thead><tr>{heads}</tr></thead>"
                f"<tbody>{''.join(lines)}</tbody></table>"
            )
        facts = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in self._facts()
        )
        words = "".join(f"<p>{escape(text)}</p>" for text in (self._method(), self.note) if text)
        return f"<div>{''.join(parts)}<table><tbody>{facts}</tbody></table>{words}</div>"

    def _heads(self) -> list[str]:
        low, high = f"{50 * (1 - self.level):.4g} %", f"{50 * (1 + self.level):.4g} %"
        return ["", "Estimate", "Std. error", "z", "P(>|z|)", low, high, "Odds ratio", low, high]

    def _cells(self, row: Row) -> list[str]:
        limits = [_number(row.lower), _number(row.upper)]
        odds = [_number(row.odds_ratio), _number(row.odds_lower), _number(row.odds_upper)]
        p = probability(row.log_p_value)
        return [row.name, _number(row.estimate), _number(row.standard_error), f"{row.z:.3f}", p, *limits, *odds]

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

    def _method(self) -> str:
        errors = {"model": "from the information matrix"}.get(self.covariance, f"robust ({self.covariance})")
        kind = "profile-likelihood" if self.interval == "profile" else "Wald"
        return f"Standard errors {errors}; {kind} intervals at level {self.level:g}."


def log_chi_square_tail(statistic: float, degrees: int) -> float:
    """log P(χ² > statistic), finite where the probability is too small for a float.

    Examples
    --------
    >>> from separatrix.models.summary_table import log_chi_square_tail
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
    >>> from separatrix.models.summary_table import probability
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


def _exp(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(value))


def _number(value: float) -> str:
    return f"{value:#.5g}" if np.isfinite(value) else str(value)
