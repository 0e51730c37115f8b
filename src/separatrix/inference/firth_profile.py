"""Profiles of Firth's penalised likelihood: intervals and tests that need no normal distribution.

    interval of θ_j   {β : 2(L*(θ̂) − max L*(θ with θ_j = β)) ≤ χ²₁(level)}, which need not be symmetric
    test of θ_J = 0   2(L*(θ̂) − max L*(θ with θ_J = 0)) ~ χ² with |J| degrees of freedom

The penalty is that of all columns throughout, as in Heinze's R package logistf. Limits are found as those of any profile
(profile.py), along its tangent dφ/dβ = I⁻¹a / aᵀI⁻¹a with aᵀφ = β.

References: Heinze and Schemper (2002), Statistics in Medicine 21, section 2; Venzon and Moolgavkar (1988), Applied
Statistics 37.

**Complexity** O(np²) a step. **Passes over the data** two a step; a limit takes about five fits of a few steps each.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.inference.estimates import check_level
from separatrix.inference.profile import HeldFit, search_limit
from separatrix.result import Status
from separatrix.settings import outside
from separatrix.solvers.coordinates import Coordinates
from separatrix.solvers.firth import Likelihood, Maximum, Point, maximise

_EPS = float(np.finfo(np.float64).eps)
# √(U*ᵀI⁻¹U*) up to which L* is known well enough: it is about half the square from its maximum.
_NEAR = 1e-5


class FirthProfile:
    """The penalised likelihood of a source about its maximum.

    Parameters
    ----------
    source : Source
        As for `minimise_firth`.
    theta : ndarray of shape (p,)
        Near the maximum; a few more steps are taken from there.
    offset : array-like of shape (n,), optional
    tol : float, default=1e-8
    max_iter : int, default=200
        Limit on the steps of every fit, and on the values that are tried for a limit.

    Examples
    --------
    >>> from separatrix.data import Intercept, as_source
    >>> from separatrix.solvers.firth import minimise_firth
    >>> from separatrix.inference.firth_profile import FirthProfile
    >>> source = Intercept(as_source([[2001.0], [2002.0], [2003.0], [2004.0]], [0, 0, 1, 1]).labelled())
    >>> profile = FirthProfile(source, minimise_firth(source).theta)
    >>> [round(limit, 3) for limit in profile.interval(0)], round(profile.statistic([0]), 3)
    ([-0.348, 6.698], 2.202)
    """

    def __init__(
        self,
        source: Source,
        theta: Float,
        *,
        offset: ArrayLike | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
    ) -> None:
        self._coordinates = Coordinates.of(source)
        self._likelihood = Likelihood(self._coordinates.view, offset)
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

    def _climb(self, point: Point, held: Float | None) -> Maximum:
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

        first, tolerance = goal * _standard_error(known, normal), max(self._tol, 64 * _EPS * abs(best))
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


def _tangent(point: Point, normal: Float) -> Float:
    """dφ/dβ along the profile."""
    half = solve_triangular(point.factor, normal, trans="T")
    return np.asarray(solve_triangular(point.factor, half)) / float(half @ half)


def _standard_error(point: Point, normal: Float) -> float:
    return float(np.linalg.norm(solve_triangular(point.factor, normal, trans="T")))
