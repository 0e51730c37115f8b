"""Inference for Firth's penalised logistic regression: errors, intervals and tests of the penalised likelihood L*.

    Wald      θ̂_j ± z √(I⁻¹)_jj,    I = Xᵀ diag(s p(1−p)) X at θ̂: the information without the penalty
    profile   {b : 2(L*(θ̂) − max L*(θ with θ_j = b)) ≤ z²}, found as any profile limit (profile.py), in coordinates φ with
              aᵀφ = b along the tangent dφ/db = I⁻¹a / aᵀI⁻¹a
    tests     2(L*(θ̂) − max L*(θ with θ_J = 0)) ~ χ² with |J| degrees of freedom, of one coefficient and of all slopes

The penalty is that of all columns throughout, as in Heinze's R package logistf.

References: Heinze and Schemper (2002), Statistics in Medicine 21, section 2; Venzon and Moolgavkar (1988), Applied
Statistics 37.

**Complexity** O(np²) per step. **Passes over the data** two per step; `gather_firth` about ten, a profile summary some twenty
for each coefficient.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning

from separatrix.data import Source
from separatrix.data.affine import Intercept
from separatrix.data.block import Float
from separatrix.inference.estimates import REFUSALS, Inference, check_level
from separatrix.inference.profile import HeldFit, search_limit
from separatrix.inference.summary import FirthSummary, check_options, coefficient_rows, wald_limits
from separatrix.result import Fit, Status
from separatrix.settings import outside
from separatrix.solvers.coordinates import StandardisedCoordinates
from separatrix.solvers.firth import FirthLikelihood, FirthMaximum, FirthPoint, maximise

_EPS = float(np.finfo(np.float64).eps)
_TOL = 1e-8
# √(U*ᵀI⁻¹U*) up to which L* is known well enough: it is about half the square from its maximum.
_NEAR = 1e-5
_ROBUST = (
    "There are no robust errors under Firth's penalty: the sandwich describes the maximum of the likelihood, not that of the "
    "penalised one. Take covariance='model'."
)
_SMALL_UNITS = (
    "There are no standard errors: some columns have values so small that the variances of their coefficients are larger than "
    "a float can hold. Multiply them by a large number."
)


class FirthProfile:
    """The penalised likelihood of a source about its maximum, to which a few more steps are taken from θ (p,).

    `source` is as for `minimise_firth`; `max_iter` limits the steps of every fit, and the values that are tried for a limit.

    Examples
    --------
    >>> from separatrix.data import Intercept, as_source
    >>> from separatrix.solvers.firth import minimise_firth
    >>> from separatrix.inference.firth import FirthProfile
    >>> source = Intercept(as_source([[2001.0], [2002.0], [2003.0], [2004.0]], [0, 0, 1, 1]).labelled())
    >>> profile = FirthProfile(source, minimise_firth(source).theta)
    >>> [round(limit, 3) for limit in profile.interval(0)], round(profile.statistic([0]), 3)
    ([-0.348, 6.698], 2.202)
    """

    def __init__(
        self, source: Source, theta: Float, *, offset: ArrayLike | None = None, tol: float = 1e-8, max_iter: int = 200
    ) -> None:
        self._coordinates = StandardisedCoordinates.of(source)
        self._likelihood = FirthLikelihood(self._coordinates.view, offset)
        self._tol, self._max_iter = tol, max_iter
        start = self._likelihood.first(self._coordinates.inner(theta))
        self._best = self._climb(start, None)
        if self._best.size > _NEAR:
            raise ValueError(
                f"Firth's estimate is not at the maximum: its score is {self._best.size:.2g} standard errors from zero, so "
                "profiles have nothing to start from. Lower tol or raise max_iter of the fit."
            )

    @property
    def theta(self) -> Float:
        """The coefficients at the maximum."""
        return self._coordinates.outer(self._best.point.theta)

    @property
    def covariance(self) -> Float:
        """I⁻¹ at the maximum, the inverse of the information without the penalty."""
        factor = self._best.point.factor
        root = self._coordinates.from_inner(solve_triangular(factor, np.eye(len(factor))))
        with np.errstate(over="ignore", invalid="ignore"):
            return root @ root.T

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return self._coordinates.total

    @property
    def log_likelihood(self) -> float:
        """L* at the maximum, for coefficients in the units of the columns."""
        return self._best.point.penalised + self._coordinates.log_units

    def _climb(self, point: FirthPoint, held: Float | None) -> FirthMaximum:
        found = maximise(self._likelihood, point, held, tol=self._tol, max_iter=self._max_iter)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return found

    def statistic(self, indices: Sequence[int]) -> float:
        """Twice by how much L* falls when these coefficients are held at 0; NaN where the fit did not converge."""
        held = np.array([self._coordinates.normal(index) for index in indices])
        start = self._likelihood.at(np.zeros(self._coordinates.view.n_features))
        found = self._climb(start, held) if start.penalised > -math.inf else None
        if found is None or found.size > _NEAR:
            return math.nan
        return max(0.0, 2.0 * (self._best.point.penalised - found.point.penalised))

    def interval(self, index: int, level: float = 0.95) -> tuple[float, float]:
        """Both limits of a coefficient. One that is not found is the nearest value known to be outside, with a warning."""
        check_level(level)
        goal, normal = float(ndtri(0.5 + 0.5 * level)), self._coordinates.normal(index)
        unit = self._coordinates.unit(index)
        centre = float(normal @ self._best.point.theta)
        low, high = (centre + side * self._distance(index, normal, side, goal) for side in (-1.0, 1.0))
        return low / unit, high / unit

    def _distance(self, index: int, normal: Float, side: float, goal: float) -> float:
        """How far from the estimate L* has fallen by goal²/2, in the direction of `side`."""
        best, known, here = self._best.point.penalised, self._best.point, 0.0

        def hold(distance: float) -> HeldFit:
            nonlocal known, here
            tangent = _tangent(known, normal)
            start = self._likelihood.at(known.theta + side * (distance - here) * tangent)
            if start.penalised == -math.inf:
                return HeldFit(math.inf, 0.0, False)
            held = self._climb(start, normal[None, :])
            settled, drop = held.size <= _NEAR, math.sqrt(2.0 * max(0.0, best - held.point.penalised))
            if settled or drop < goal:
                known, here = held.point, distance
            return HeldFit(drop, -side * float(held.score @ tangent) if settled else 0.0, settled)

        first = goal * float(np.linalg.norm(solve_triangular(known.factor, normal, trans="T")))
        tolerance = max(self._tol, 64 * _EPS * abs(best))
        limit = search_limit(hold, goal, first, tolerance=tolerance, max_fits=self._max_iter)
        if limit.found:
            return limit.distance
        if math.isfinite(limit.outside) and limit.outside - limit.inside <= 1e-8 * limit.outside:
            return limit.outside  # as near as rounding of L* lets it be known
        warnings.warn(
            f"The {'lower' if side < 0 else 'upper'} limit of coefficient {index} was not found within {self._max_iter} fits "
            "of at most as many steps; the nearest value known to be outside is given. Raise max_iter.",
            ConvergenceWarning,
            stacklevel=outside(),
        )
        return limit.outside


def _tangent(point: FirthPoint, normal: Float) -> Float:
    """dφ/db along the profile."""
    half = solve_triangular(point.factor, normal, trans="T")
    return np.asarray(solve_triangular(point.factor, half)) / float(half @ half)


def gather_firth(
    rows: Source, theta: Float, offset: ArrayLike | None, fit: Fit, max_iter: int, note: str = ""
) -> Inference:
    """Estimates with their covariance at the maximum of L*, or why there is none.

    `rows` are labelled, of two classes, in an `Intercept` if there is one; θ (p,) is where the `fit` ended, the intercept last.
    `max_iter` limits the steps, and those of the null model; the `note` is shown under the table.
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
    """The table of coefficients of what `gather_firth` gave; profiles need its `rows`, `offset` and `max_iter` again.

    `level`, `interval` and `covariance` are as for `LogisticRegression.summary`; there are no robust errors.
    """
    check_options(inference, level, interval, covariance, rows is not None or covariance != "model")
    if covariance != "model":
        raise ValueError(_ROBUST)
    columns = wald_limits(inference, level)
    if interval == "profile" and rows is not None:
        profile = FirthProfile(rows, inference.estimates[0], offset=offset, tol=_TOL, max_iter=max_iter)
        inference.check_rows(profile.total, profile.log_likelihood, "penalised ", atol=1e-8)
        tested = np.array([[*profile.interval(j, level), profile.statistic([j])] for j in range(len(inference.names))])
        columns = columns[0], *tested.T[:, None, :]
    return FirthSummary(coefficient_rows(inference, *columns), inference, level, interval, covariance)
