"""Inference for Firth's penalised logistic regression: errors, intervals and tests of the penalised likelihood L*.

    Wald      θ̂_j ± z √(I⁻¹)_jj,    I = Xᵀ diag(s p(1−p)) X at θ̂: the information without the penalty
    profile   {b : 2(L*(θ̂) − max L*(θ with θ_j = b)) ≤ z²}                                       see firth_profile.py
    tests     2(L*(θ̂) − max L*(θ with θ_j = 0)) ~ χ²₁,  and of all slopes together, with the penalty of all columns throughout

References: Heinze and Schemper (2002), Statistics in Medicine 21, section 2; R's package logistf.

**Passes over the data** `gather_firth` about ten; a profile summary some twenty for each coefficient.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from separatrix.data import Source
from separatrix.data.affine import Intercept
from separatrix.data.block import Float
from separatrix.inference.estimates import REFUSALS, Inference
from separatrix.inference.firth_profile import FirthProfile
from separatrix.inference.summary import CoefficientRow, FirthSummary, TestedRow, check_options
from separatrix.result import Fit, Status

_TOL = 1e-8
_ROBUST = (
    "There are no robust errors under Firth's penalty: the sandwich describes the maximum of the likelihood, not that of the "
    "penalised one. Take covariance='model'."
)
_SMALL_UNITS = (
    "There are no standard errors: some columns have values so small that the variances of their coefficients are larger than "
    "a float can hold. Multiply them by a large number."
)


def gather_firth(
    rows: Source, theta: Float, offset: ArrayLike | None, fit: Fit, max_iter: int, note: str = ""
) -> Inference:
    """Estimates with their covariance at the maximum of L*, or why there is none.

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
    plain = rows.source if isinstance(rows, Intercept) else rows
    baseline, label = rows.classes.tolist()
    names = None if plain.feature_names is None else tuple(map(str, plain.feature_names))
    d, with_intercept = plain.n_features, isinstance(rows, Intercept)

    def split(theta: Float) -> tuple[Float, Float]:
        return theta[None, :d], theta[d:] if with_intercept else np.zeros(1)

    blank = Inference(*split(theta), (label,), baseline, names, with_intercept, note=note)
    if fit.status is Status.INTERRUPTED:
        return blank.refused(REFUSALS["interrupted"])
    try:
        profile = FirthProfile(rows, theta, offset=offset, tol=_TOL, max_iter=max_iter)
        statistic, (coef, intercept), covariance = profile.statistic(range(d)), split(profile.theta), profile.covariance
    except ValueError as error:  # the reason is its sentence
        return blank.refused(str(error))
    except KeyboardInterrupt:  # the coefficients are there all the same
        return blank.refused(REFUSALS["interrupted"])
    if not np.isfinite(covariance).all():
        return blank.refused(_SMALL_UNITS)
    return replace(
        blank,
        coef=coef,
        intercept=intercept,
        covariance=covariance,
        log_likelihood=profile.log_likelihood,
        null_log_likelihood=profile.log_likelihood - 0.5 * statistic,
        n_observations=profile.total,
    )


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
        As for `LogisticRegression.summary`; there are no robust errors.
    rows, offset, max_iter
        As for `gather_firth`.
    """
    if inference.refusal:
        raise ValueError(inference.refusal)
    check_options(level, interval, covariance)
    if covariance != "model":
        raise ValueError(_ROBUST)
    if interval == "profile" and rows is None:
        raise ValueError("Profile intervals need the rows again, which the model does not keep: give summary X and y.")
    (estimates,), (label,) = inference.estimates, inference.score_labels
    errors, goal = np.sqrt(inference.covariance.diagonal()), float(ndtri(0.5 + 0.5 * level))
    table: list[CoefficientRow] = []
    if interval == "wald" or rows is None:
        for name, estimate, error in zip(inference.names, estimates.tolist(), errors.tolist(), strict=True):
            limits = estimate - goal * error, estimate + goal * error
            table.append(CoefficientRow(label, name, estimate, error, *limits))
        return FirthSummary(table, inference, level, interval, covariance)
    profile = FirthProfile(rows, estimates, offset=offset, tol=_TOL, max_iter=max_iter)
    inference.check_rows(profile.total, profile.log_likelihood, "penalised ", atol=1e-8)
    for j, name in enumerate(inference.names):
        limits, statistic = profile.interval(j, level), profile.statistic([j])
        table.append(TestedRow(label, name, float(estimates[j]), float(errors[j]), *limits, statistic))
    return FirthSummary(table, inference, level, interval, covariance)
