"""Distances and log-determinants of a grid of shrunken covariances, each without the row that it is asked for.

Leaving out one unit of a row takes q zzᵀ from the mixed covariance B of a class. With B = UΛUᵀ, u = Uᵀz, v = u + s:

    Σ = γB + (1−γ)tI − γq zzᵀ = U (A − γq uuᵀ) Uᵀ,     A = γΛ + (1−γ)t
    log|Σ| = Σ log A + log(1 − γq uᵀA⁻¹u),       distance = vᵀA⁻¹v + γq (uᵀA⁻¹v)² / (1 − γq uᵀA⁻¹u)

The trace target itself loses q‖z‖²/d, a different scalar for every row. Around its value t for the average row, t(1 + ε),

    1/A(ε) = Σ_l (−ε (1−γ)t/A)^l / A

so that all γ are two matrix products, of u² and of u with a table of γ and l. ε is about (‖z‖² − average)/(n·average): three
or four terms leave a relative error below 1e-12 in the row farthest from the average, and far less in most. Where the series
would be long (few rows) A is evaluated row by row instead.

Arrays are (J, G, n): classes, values of γ, rows. The rows are of one class k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log
from typing import Any, Literal, Self

import numpy as np

from separatrix.data.block import Float
from separatrix.statistics.metric import DenseMetric

_PRECISION = 1e-12
_LONGEST_SERIES = 10
_ENTRIES_AT_ONCE = 2_000_000
# A row that takes away all variance in some direction with it.
_NOTHING_LEFT = 1e-10
# Least eigenvalue, in the largest, that no rounding makes of a matrix without an inverse.
_FAR_FROM_SINGULAR = 1e-6


@dataclass(frozen=True)
class Shrinkage:
    """γ, ascending, and the target; `outside` counts columns beyond the span of the rows, which vary by the target alone."""

    gammas: Float
    target: Literal["identity", "trace", "diagonal"]
    outside: int

    @cached_property
    def moving(self) -> int:
        """How many values of γ leave a share to the target."""
        return int((self.gammas < 1.0).sum())


@dataclass(frozen=True)
class LeftOutRows:
    """Rows of one class k, one per column, and the other classes in a circle: those after k first."""

    k: int
    z: Float  # x − m_k
    squares: Float  # ‖z‖²
    weights: Float  # how often they count
    factor: float  # c = n_k/(n_k − 1)
    shifts: Float  # m_k − m_j
    log_priors: Float  # (K,) of the others, then of k
    panels: Float | None = None  # z as compiled loops read it

    @cached_property
    def range(self) -> tuple[float, float]:
        """Least and largest c‖z‖²."""
        return self.factor * float(self.squares.min()), self.factor * float(self.squares.max())


@dataclass(frozen=True)
class LeftOutBases:
    """B of J classes, or one for all of them, with the terms of the series: all γ of the first, then those below 1 of each."""

    shrinkage: Shrinkage
    values: Float
    vectors: Float  # (J, d, d), an eigenvector per row
    share: Float  # (J,) q of a row = share · c
    t: Float  # (J,) for the average row
    slope: Float  # (J,) relative change of t by c‖z‖²
    average: float  # c‖z‖² of the average row
    terms: Float  # (J, R, d)
    logs: Float  # (J, R)
    kernels: Any  # compiled loops, where they pay

    @cached_property
    def ratio(self) -> Float:
        """(J, G) γ·share."""
        return np.multiply.outer(self.share, self.shrinkage.gammas)

    @cached_property
    def steepest(self) -> float:
        """Largest slope."""
        return float(np.abs(self.slope).max())

    @cached_property
    def zero(self) -> Float:
        """(1, d) a class's own shift."""
        return np.zeros((1, self.values.shape[1]))

    @classmethod
    def of(cls, matrices: Float, share: Float, average: float, shrinkage: Shrinkage, kernels: Any) -> Self:
        values, vectors = np.linalg.eigh(matrices)
        values = np.maximum(values, 0.0)
        size = matrices.shape[1] + shrinkage.outside
        if shrinkage.target == "identity":
            t, slope = np.ones(len(matrices)), np.zeros(len(matrices))
        else:
            t = (np.trace(matrices, axis1=1, axis2=2) - share * average) / size
            with np.errstate(divide="ignore", invalid="ignore"):  # nothing left: never a short series
                slope = -share / (size * t)
        terms, logs = _series(values, t, slope, shrinkage)
        vectors = np.ascontiguousarray(np.swapaxes(vectors, 1, 2))
        return cls(shrinkage, values, vectors, share, t, slope, average, terms, logs, kernels)

    def take(self, at: slice) -> Self:
        """Some of the classes, as views."""
        return self._with(lambda array: array[at])

    def twice(self) -> Self:
        """The classes one after the other two times: all but the k-th are a slice of them."""
        return self._with(lambda array: np.concatenate([array, array[:-1]]))

    def _with(self, change: Callable[[Float], Float]) -> Self:
        if len(self.values) == 1:
            return self
        names = ("values", "vectors", "share", "t", "slope", "terms", "logs")
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in names}
        return replace(self, **changed)

    def scores(self, rows: LeftOutRows, own: bool, out: Float) -> None:
        """log π − ½(distance + log-determinant) into `out` (J, G, n): of the rows' own class, or of the others."""
        shrinkage, length = self.shrinkage, self._length(rows)
        used = len(shrinkage.gammas) + (length - 1) * shrinkage.moving
        x = rows.factor * rows.squares - self.average
        shrunk = rows.factor * self.ratio
        shifts, log_priors = (self.zero, rows.log_priors[-1:]) if own else (rows.shifts, rows.log_priors[:-1])
        if length <= _LONGEST_SERIES and self.kernels is not None:
            self.kernels.left_out_scores(
                rows.panels, x, self.vectors, self.terms, self.logs, shrunk, used, shrinkage.moving, shifts, log_priors,
                rows.factor if own else 0.0, _NOTHING_LEFT, out,
            )  # fmt: skip
            return
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            u, moved = self.vectors @ rows.z, (self.vectors @ shifts[:, :, None])[:, :, 0]
            sums = self._direct_sums(u, moved, x) if length > _LONGEST_SERIES else self._sums(u, moved, x, used)
            uu, us, rest = sums
            ratio = shrunk[:, :, None]
            left = 1.0 - ratio * uu
            left[~(left > _NOTHING_LEFT)] = np.nan
            uv, vv = (rows.factor * uu, rows.factor**2 * uu) if own else (uu + us, uu + 2.0 * us)
            out[:] = log_priors[:, None, None] - 0.5 * (vv + rest + ratio * np.square(uv) / left + np.log(left))

    def _length(self, rows: LeftOutRows) -> int:
        """Terms of the series that reach the precision for every row."""
        least, most = rows.range
        largest = self.steepest * max(most - self.average, self.average - least)
        if not largest < 0.5:
            return _LONGEST_SERIES + 1
        return 1 if largest == 0.0 else max(1, ceil(log(_PRECISION) / log(largest)))

    def _sums(self, u: Float, shifts: Float, x: Float, used: int) -> tuple[Float, Float, Float]:
        """Σu²/A, Σus/A, and Σs²/A + log|A|."""
        terms = self.terms[:, :used]
        bent = terms * shifts[:, None, :]
        us = self._add_up(bent @ u, x)
        constants = self.logs[:, :used] + (bent @ shifts[:, :, None])[:, :, 0]
        uu = self._add_up(terms @ np.square(u, out=u), x)
        return uu, us, self._polynomial(constants, x)

    def _add_up(self, sums: Float, x: Float) -> Float:
        """Σ_l x^l T_l, by Horner, into the first of the terms."""
        G, moving = len(self.shrinkage.gammas), self.shrinkage.moving
        start = sums.shape[1] - moving
        while start >= G:
            term = sums[:, start : start + moving]
            term *= x
            start = start - moving if start > G else 0
            sums[:, start : start + moving] += term
        return sums[:, :G]

    def _polynomial(self, constants: Float, x: Float) -> Float:
        """(J, G, n) the same for terms that are the same for all rows."""
        G, moving = len(self.shrinkage.gammas), self.shrinkage.moving
        length = 1 + (constants.shape[1] - G) // max(1, moving)
        coefficients = np.zeros((len(constants), G, length))
        coefficients[:, :, 0] = constants[:, :G]
        for place in range(1, length):
            coefficients[:, :moving, place] = constants[:, G + (place - 1) * moving : G + place * moving]
        return coefficients @ np.vander(x, length, increasing=True).T

    def _direct_sums(self, u: Float, shifts: Float, x: Float) -> tuple[Float, Float, Float]:
        """The same without the series: A for every row."""
        gammas = self.shrinkage.gammas[:, None, None]
        J, G, n = len(shifts), len(gammas), len(x)
        uu, us, rest = (np.empty((J, G, n)) for _ in range(3))
        step = max(1, _ENTRIES_AT_ONCE // (G * u.shape[1]))
        for j in range(J):
            own = j if len(self.values) > 1 else 0
            s = shifts[j]
            for start in range(0, n, step):
                at = slice(start, start + step)
                t = self.t[own] + self._loss(own) * x[at]
                A = gammas * self.values[own][:, None] + (1.0 - gammas) * t
                inverse = 1.0 / A
                uu[j, :, at] = np.einsum("dn,gdn->gn", np.square(u[own][:, at]), inverse)
                us[j, :, at] = np.einsum("dn,gdn->gn", u[own][:, at] * s[:, None], inverse)
                rest[j, :, at] = np.einsum("d,gdn->gn", np.square(s), inverse) + np.log(A).sum(axis=1)
                if self.shrinkage.outside:
                    rest[j, :, at] += self.shrinkage.outside * np.log((1.0 - gammas[:, :, 0]) * t)
        return uu, us, rest

    def _loss(self, j: int) -> float:
        """Change of t by c‖z‖²."""
        if self.shrinkage.target == "identity":
            return 0.0
        return float(-self.share[j] / (self.values.shape[1] + self.shrinkage.outside))


def invertible(matrix: Float, values: Float, shrinkage: Shrinkage) -> bool:
    """Whether B, with these eigenvalues, has an inverse itself, where γ = 1 asks for it.

    In standardised columns the least eigenvalue is at least that of B over the largest variance. Where that alone is far
    above rounding nothing has to be factored.
    """
    if shrinkage.moving == len(shrinkage.gammas):
        return True
    return not shrinkage.outside and bool(
        values[0] > _FAR_FROM_SINGULAR * values[-1] or not DenseMetric(matrix).singular
    )


def _series(values: Float, t: Float, slope: Float, shrinkage: Shrinkage) -> tuple[Float, Float]:
    """(J, R, d) terms of 1/A and (J, R) of log|A|, by powers of c‖z‖² less its average."""
    gammas, moving = shrinkage.gammas[:, None], shrinkage.moving
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a singular B at γ = 1 is never asked for
        A = gammas * values[:, None, :] + (1.0 - gammas) * t[:, None, None]
        ratio = -slope[:, None, None] * (1.0 - gammas[:moving]) * t[:, None, None] / A[:, :moving]
        logs = [np.log(A).sum(axis=2)]
        if shrinkage.outside:
            logs[0] += shrinkage.outside * np.log((1.0 - shrinkage.gammas) * t[:, None])
        terms, power = [1.0 / A], np.ones_like(ratio)
        for place in range(1, _LONGEST_SERIES):
            power = power * ratio
            terms.append(power / A[:, :moving])
            beyond = shrinkage.outside * (-slope[:, None]) ** place
            logs.append(-(power.sum(axis=2) + beyond) / place)
    return np.concatenate(terms, axis=1), np.concatenate(logs, axis=1)
