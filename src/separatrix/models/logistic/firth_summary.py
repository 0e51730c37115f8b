"""Inference for Firth's penalised logistic regression: errors, intervals and tests of the penalised likelihood L*.

    Wald      θ̂_j ± z √(I⁻¹)_jj,    I = Xᵀ diag(s p(1−p)) X at θ̂: the information without the penalty
    profile   {b : 2(L*(θ̂) − max L*(θ with θ_j = b)) ≤ z²}
    tests     2(L*(θ̂) − max L*(θ with θ_j = 0)) ~ χ²₁,  and of all slopes together, with the penalty of all columns throughout

Information criteria are left out: L* is not a likelihood of the data alone.

References: Heinze and Schemper (2002), Statistics in Medicine 21, section 2; R's package logistf.

**Passes over the data** `gather_firth` about ten; a profile summary some twenty for each coefficient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from separatrix.data import Source
from separatrix.data.affine import Intercept
from separatrix.data.block import Float
from separatrix.models.logistic.coefficient_table import number
from separatrix.models.logistic.summary_table import (
    REFUSALS,
    Inference,
    Row,
    Summary,
    check_wishes,
    log_chi_square_tail,
    probability,
)
from separatrix.result import Fit, Status
from separatrix.solvers.firth_profile import FirthProfile

_TOL = 1e-8
_ROBUST = (
    "There are no robust errors under Firth's penalty: the sandwich describes the maximum of the likelihood, not that of the "
    "penalised one. Take covariance='model'."
)
_OTHER_ROWS = (
    "These rows are not the ones the model was fitted to: their total weight is {:.10g} and their penalised log-likelihood "
    "{:.10g}, those of the fit were {:.10g} and {:.10g}. Give the same X, y, sample_weight and offset."
)
_SMALL_UNITS = (
    "There are no standard errors: some columns have values so small that the variances of their coefficients are larger than "
    "a float can hold. Multiply them by a large number."
)


@dataclass(frozen=True)
class TestedRow(Row):
    """One coefficient with its penalised likelihood-ratio test."""

    chi_square: float
    """Twice the fall of L* when the coefficient is held at 0; NaN where that fit did not converge."""

    @property
    def log_p_value(self) -> float:
        """log p of the likelihood-ratio test."""
        return float("nan") if np.isnan(self.chi_square) else log_chi_square_tail(self.chi_square, 1)


@dataclass(frozen=True, repr=False)
class FirthSummary(Summary):
    """What `LogisticRegression.summary` returns under Firth's penalty; likelihoods are penalised ones."""

    headline: ClassVar[str] = "Logistic regression, Firth's penalised likelihood"

    @property
    def aic(self) -> float:
        """Not defined: NaN."""
        return float("nan")

    @property
    def bic(self) -> float:
        """Not defined: NaN."""
        return float("nan")

    def _facts(self) -> list[tuple[str, str]]:
        test = f"χ² = {self.lr_statistic:.6g} on {self.lr_degrees} df, p = {probability(self.lr_log_p_value)}"
        return [
            ("Observations", f"{self.n_observations:.10g}"),
            ("Penalised log-likelihood", f"{self.log_likelihood:.10g}"),
            ("Of the null model", f"{self.inference.null_log_likelihood:.10g}"),
            ("Likelihood-ratio test", test),
        ]

    def _words(self) -> list[str]:
        kind = "profile penalised-likelihood" if self.interval == "profile" else "Wald"
        method = f"Standard errors from the information without the penalty; {kind} intervals at level {self.level:g}."
        return [method, *([self.inference.note] if self.inference.note else [])]


@dataclass(frozen=True, repr=False)
class FirthProfileSummary(FirthSummary):
    """The same with profile intervals, and tests by the penalised likelihood ratio."""

    numbers: ClassVar[tuple[str, ...]] = tuple("chi_square" if name == "z" else name for name in Summary.numbers)

    def _heads(self) -> list[str]:
        return [{"z": "χ²", "P(>|z|)": "P(>χ²)"}.get(head, head) for head in super()._heads()]

    def _cells(self, row: Row) -> list[str]:
        assert isinstance(row, TestedRow)
        cells = super()._cells(row)
        return [*cells[:3], number(row.chi_square), *cells[4:]]


def gather_firth(
    rows: Source, theta: Float, offset: ArrayLike | None, fit: Fit, max_iter: int, note: str = ""
) -> Inference:
    """What the maximum of L* says about the errors of its coefficients, or why it says nothing.

    Parameters
    ----------
    rows : Source
        The labelled rows of two classes, in an `Intercept` if there is one.
    theta : ndarray of shape (p,)
        Where the fit ended, the intercept last. A few more steps are taken from there.
    offset : array-like of shape (n,), optional
    fit : Fit
        Interrupted fits are refused.
    max_iter : int
        Limit on the steps, and on those of the null model.
    note : str
        Shown under the table.
    """
    assert rows.classes is not None, "label the source first"
    intercept = isinstance(rows, Intercept)
    plain = rows.source if isinstance(rows, Intercept) else rows
    baseline, label = rows.classes.tolist()
    names = None if plain.feature_names is None else tuple(map(str, plain.feature_names))
    d = plain.n_features
    blank = Inference(theta[None, :d], _constant(theta, d), (label,), baseline, names, intercept, note=note)
    if fit.status is Status.INTERRUPTED:
        return replace(blank, refusal=REFUSALS["interrupted"])
    try:
        profile = FirthProfile(rows, theta, offset=offset, tol=_TOL, max_iter=max_iter)
        statistic, best, covariance = profile.statistic(range(d)), profile.theta, profile.covariance
    except ValueError as error:  # the reason is its sentence
        return replace(blank, refusal=str(error))
    except KeyboardInterrupt:  # the coefficients are there all the same
        return replace(blank, refusal=REFUSALS["interrupted"])
    if not np.isfinite(covariance).all():
        return replace(blank, refusal=_SMALL_UNITS)
    return replace(
        blank,
        coef=best[None, :d],
        intercept=_constant(best, d),
        covariance=covariance,
        log_likelihood=profile.log_likelihood,
        null_log_likelihood=profile.log_likelihood - 0.5 * statistic,
        n_observations=profile.total,
    )


def _constant(theta: Float, d: int) -> Float:
    return theta[d:] if len(theta) > d else np.zeros(1)


def summarise_firth(
    inference: Inference,
    *,
    level: float = 0.95,
    interval: str = "wald",
    covariance: str = "model",
    rows: Source | None = None,
    offset: ArrayLike | None = None,
    max_iter: int = 100,
) -> FirthSummary:
    """The table of coefficients; profiles need the rows again.

    Parameters
    ----------
    inference : Inference
        As `gather_firth` gives it.
    level, interval, covariance
        As for `separatrix.models.logistic.inference.summarise`; there are no robust errors.
    rows, offset, max_iter
        As for `gather_firth`.
    """
    if inference.refusal:
        raise ValueError(inference.refusal)
    check_wishes(level, interval, covariance)
    if covariance != "model":
        raise ValueError(_ROBUST)
    if interval == "profile" and rows is None:
        raise ValueError("Profile intervals need the rows again, which the model does not keep: give summary X and y.")
    (estimates,), (label,) = inference.estimates, inference.score_labels
    errors, goal = np.sqrt(inference.covariance.diagonal()), float(ndtri(0.5 + 0.5 * level))
    if interval == "wald" or rows is None:
        limits = zip(estimates - goal * errors, estimates + goal * errors, strict=True)
        parts = zip(inference.names, estimates, errors, limits, strict=True)
        table = [Row(label, name, float(b), float(se), float(low), float(high)) for name, b, se, (low, high) in parts]
        return FirthSummary(table, inference, level, interval, covariance)
    profile = FirthProfile(rows, estimates, offset=offset, tol=_TOL, max_iter=max_iter)
    told, known = (profile.total, profile.log_likelihood), (inference.n_observations, inference.log_likelihood)
    if not np.allclose(told, known, rtol=1e-8, atol=1e-8):
        raise ValueError(_OTHER_ROWS.format(*told, *known))
    tested: list[Row] = []
    for j, name in enumerate(inference.names):
        low, high = profile.interval(j, level)
        tested.append(TestedRow(label, name, float(estimates[j]), float(errors[j]), low, high, profile.statistic([j])))
    return FirthProfileSummary(tested, inference, level, interval, covariance)
