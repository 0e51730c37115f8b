"""Objectives in extended precision and minimisers that share nothing with the library's, for tests of certificates.

    F(W, b) = C Σ sᵢ ℓ(yᵢ, o + W xᵢ + b) + Σ_j ½ q_j (w_j − μ_j)² + l_j |w_j|        low ≤ w ≤ high

Values are 80-bit floats where the machine has them. Any point gives an upper bound of min F, so a certificate that claims
less than F(published) − F(any point) is false whatever the quality of the minimiser here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import minimize

Long = np.longdouble


def logistic(eta: np.ndarray, codes: np.ndarray, derivatives: bool = True) -> tuple[Any, Any, Any]:
    """Values (n,), slopes (n, 1) and curvatures (n, 1, 1); the values alone without derivatives."""
    signs = (2 * codes - 1).astype(Long)
    m = signs * eta[:, 0]
    small = np.exp(-np.abs(m))
    value = np.log1p(small) + np.maximum(-m, 0)
    if not derivatives:
        return value, None, None
    p = np.where(m > 0, small, Long(1)) / (1 + small)
    return value, (-signs * p)[:, None], (small / (1 + small) ** 2)[:, None, None]


def softmax(eta: np.ndarray, codes: np.ndarray, derivatives: bool = True) -> tuple[Any, Any, Any]:
    rows = np.arange(len(codes))
    away = eta - eta[rows, codes][:, None]
    top = away.max(axis=1)
    terms = np.exp(away - top[:, None])
    others = terms.copy()
    others[rows, away.argmax(axis=1)] = 0
    value = top + np.log1p(others.sum(axis=1))
    if not derivatives:
        return value, None, None
    p = terms / terms.sum(axis=1)[:, None]
    slope = p.copy()
    slope[rows, codes] -= 1
    curvature = -p[:, :, None] * p[:, None, :]
    k = np.arange(eta.shape[1])
    curvature[:, k, k] += p
    return value, slope, curvature


def margin(of: Callable, slope: Callable, bend: Callable) -> Callable:
    def loss(eta: np.ndarray, codes: np.ndarray, derivatives: bool = True) -> tuple[Any, Any, Any]:
        signs = (2 * codes - 1).astype(Long)
        m = signs * eta[:, 0]
        if not derivatives:
            return of(m), None, None
        return of(m), (signs * slope(m))[:, None], bend(m)[:, None, None]

    return loss


LOSSES: dict[str, Callable] = {
    "logistic": logistic,
    "softmax": softmax,
    "squared": margin(lambda m: (1 - m) ** 2 / 2, lambda m: m - 1, np.ones_like),
    "squared_hinge": margin(
        lambda m: np.maximum(1 - m, 0) ** 2, lambda m: -2 * np.maximum(1 - m, 0), lambda m: np.where(m < 1, Long(2), 0)
    ),
    "huberised": margin(
        lambda m: np.where(m >= -1, np.maximum(1 - m, 0) ** 2, -4 * m),
        lambda m: np.where(m >= -1, -2 * np.maximum(1 - m, 0), Long(-4)),
        lambda m: np.where((m < 1) & (m >= -1), Long(2), Long(0)),
    ),
    "hinge": margin(
        lambda m: np.maximum(1 - m, 0), lambda m: np.where(m < 1, Long(-1), Long(0)), lambda m: np.zeros_like(m)
    ),
}


def smoothed_hinge(width: float) -> Callable:
    """The hinge with a parabola of the given width in place of its kink."""
    h = Long(width)
    return margin(
        lambda m: np.where(m > 1 - h, np.maximum(1 - m, 0) ** 2 / (2 * h), 1 - m - h / 2),
        lambda m: -np.clip((1 - m) / h, 0, 1),
        lambda m: np.where((m <= 1) & (m >= 1 - h), 1 / h, Long(0)),
    )


LOSSES |= {f"hinge {width:g}": smoothed_hinge(width) for width in 10.0 ** -np.arange(0, 9)}


@dataclass
class Objective:
    """F of (m, d+1) coefficients, the intercepts last; without an intercept their column is held at zero."""

    loss: str
    X: np.ndarray
    codes: np.ndarray
    n_scores: int = 1
    C: float = 1.0
    weights: np.ndarray | None = None
    intercept: bool = True
    quadratic: np.ndarray | float = 1.0
    absolute: np.ndarray | float = 0.0
    low: np.ndarray | float = -np.inf
    high: np.ndarray | float = np.inf
    offset: np.ndarray | None = None
    mean: np.ndarray | float = 0.0
    rows: np.ndarray = field(init=False)
    centre: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        n, d = self.X.shape
        # Centred, so that scores of columns far from zero keep their digits; only the intercept is another one.
        self.centre = self.X.mean(axis=0) if self.intercept else np.zeros(d)
        ones = np.full(n, Long(1 if self.intercept else 0))
        self.rows = np.column_stack([self.X.astype(Long) - self.centre.astype(Long), ones])
        shape = (self.n_scores, d + 1)

        def spread(value: np.ndarray | float, last: float) -> np.ndarray:
            whole = np.full(shape, last, dtype=Long)
            whole[:, :d] = value
            return whole.ravel()

        self.q, self.l, self.mu = spread(self.quadratic, 0.0), spread(self.absolute, 0.0), spread(self.mean, 0.0)
        self.lo, self.hi = spread(self.low, -np.inf), spread(self.high, np.inf)
        self.s = Long(self.C) * (np.ones(n) if self.weights is None else self.weights).astype(Long)

    def scores(self, theta: np.ndarray) -> np.ndarray:
        eta = self.rows @ theta.reshape(self.n_scores, -1).T
        if self.offset is not None:
            eta = eta + self.offset.reshape(len(eta), -1).astype(Long)
        return eta

    def centred(self, theta: np.ndarray) -> np.ndarray:
        """Coefficients of the centred rows for those of X, the intercept b + Σ_j w_j c_j summed without rounding."""
        moved = np.asarray(theta, dtype=Long).reshape(self.n_scores, -1).copy()
        for row in moved if self.intercept else ():
            terms = [Fraction(float(w)) * Fraction(float(c)) for w, c in zip(row[:-1], self.centre, strict=True)]
            total = sum(terms, Fraction(float(row[-1])))
            row[-1] = Long(float(total)) + Long(float(total - Fraction(float(total))))
        return moved.ravel()

    def value(self, theta: np.ndarray) -> Long:
        """F at coefficients (m, d+1) of X."""
        return self.at(self.centred(theta))

    def rounding(self, theta: np.ndarray) -> float:
        """What the values here may be off by at θ: extended precision has its own last place, in the scores and in the sums."""
        moved = self.centred(theta).reshape(self.n_scores, -1)
        _, slope, _ = LOSSES[self.loss](self.scores(moved.ravel()), self.codes)
        terms = np.abs(self.rows) @ np.abs(moved).T
        return 8 * float(
            np.finfo(Long).eps * ((self.s[:, None] * np.abs(slope) * terms).sum() + abs(self.value(theta)))
        )

    def at(self, theta: np.ndarray) -> Long:
        """F at coefficients of the centred rows."""
        theta = np.asarray(theta, dtype=Long).ravel()
        value, _, _ = LOSSES[self.loss](self.scores(theta), self.codes, derivatives=False)
        penalty = (self.q * (theta - self.mu) ** 2 / 2 + self.l * np.abs(theta)).sum()
        return (self.s * value).sum() + penalty

    def smooth(self, theta: np.ndarray, curved: bool = True) -> tuple[Long, np.ndarray, np.ndarray | None]:
        """Everything but the absolute values, with gradient and, where it is curved, Hessian."""
        value, slope, bend = LOSSES[self.loss](self.scores(theta), self.codes)
        gradient = ((self.s[:, None] * slope).T @ self.rows).ravel() + self.q * (theta - self.mu)
        total = (self.s * value).sum() + (self.q * (theta - self.mu) ** 2 / 2).sum()
        if not curved:
            return total, gradient, None
        weighted = self.s[:, None, None] * bend
        m, p = self.n_scores, self.rows.shape[1]
        hessian = np.empty((m * p, m * p), dtype=Long)
        for k in range(m):
            for other in range(k + 1):  # the blocks, and the matrix of them, are symmetric
                block = (self.rows * weighted[:, k, other][:, None]).T @ self.rows
                hessian[k * p : (k + 1) * p, other * p : (other + 1) * p] = block
                hessian[other * p : (other + 1) * p, k * p : (k + 1) * p] = block
        hessian[np.diag_indices(m * p)] += self.q
        return total, gradient, hessian

    def polish(self, theta: np.ndarray, steps: int = 60) -> np.ndarray:
        """Newton's method on the coordinates that are not held by a kink or a bound, with an exact search by halving."""
        theta = np.clip(np.asarray(theta, dtype=Long).ravel(), self.lo, self.hi)
        best = self.at(theta)
        for _ in range(steps):
            _, gradient, hessian = self.smooth(theta)
            sign = np.sign(theta)
            sign = np.where((sign == 0) & (np.abs(gradient) > self.l), -np.sign(gradient), sign)
            slope = gradient + self.l * sign
            held = ((theta == 0) & (np.abs(gradient) <= self.l) & (self.l > 0)) | (
                ((theta <= self.lo) & (slope > 0)) | ((theta >= self.hi) & (slope < 0))
            )
            at = np.flatnonzero(~held & (hessian.diagonal() > 0))
            if not len(at) or not np.isfinite(hessian).all():
                break
            root = np.sqrt(hessian.diagonal()[at])
            scaled = (hessian[np.ix_(at, at)] / root[:, None] / root[None, :]).astype(np.float64)
            step = np.zeros_like(theta)
            try:
                solved = np.linalg.lstsq(scaled, (slope[at] / root).astype(np.float64), rcond=1e-15)[0]
            except np.linalg.LinAlgError:
                break
            step[at] = -solved.astype(Long) / root
            moved = False
            for t in Long(0.5) ** np.arange(40):
                point = np.clip(theta + t * step, self.lo, self.hi)
                point = np.where((self.l > 0) & (point * sign < 0), Long(0), point)
                value = self.at(point)
                if value < best:
                    theta, best, moved = point, value, True
                    break
            if not moved:
                break
        return theta

    def minimum(self, *starts: np.ndarray) -> Long:
        """The least value found from the starts, from zero, and by a quasi-Newton method on split variables."""
        size = self.n_scores * self.rows.shape[1]
        points = [np.zeros(size, dtype=Long)] + [self.centred(start) for start in starts]
        points.append(self._quasi_newton(min(points, key=self.at).astype(np.float64)))
        if self.loss == "hinge":  # the same with ever sharper kinks
            point = min(points, key=self.at)
            for width in 10.0 ** -np.arange(0, 9):
                point = replace(self, loss=f"hinge {width:g}").polish(point, 30)
                points.append(point)
            return min(self.at(point) for point in points)
        return min(self.at(self.polish(point)) for point in points)

    def _quasi_newton(self, start: np.ndarray) -> np.ndarray:
        """L-BFGS-B on θ = u − v, u, v ≥ 0, in units in which the columns have length 1."""
        unit = np.sqrt(np.maximum((self.rows.astype(np.float64) ** 2).sum(axis=0), 1e-300))
        unit = np.tile(np.where(unit > 0, unit, 1.0), self.n_scores)

        def split(z: np.ndarray) -> tuple[float, np.ndarray]:
            half = len(z) // 2
            theta = ((z[:half] - z[half:]) / unit).astype(Long)
            value, gradient, _ = self.smooth(theta, curved=False)
            slope = (gradient / unit).astype(np.float64)
            price = (self.l / unit).astype(np.float64)
            return float(value) + float(price @ (z[:half] + z[half:])), np.concatenate([slope + price, price - slope])

        scaled = np.clip(start, self.lo.astype(float), self.hi.astype(float)) * unit
        z = np.concatenate([np.maximum(scaled, 0), np.maximum(-scaled, 0)])
        low, high = (self.lo * unit).astype(np.float64), (self.hi * unit).astype(np.float64)
        bounds = [(max(a, 0.0), max(b, 0.0)) for a, b in zip(low, high, strict=True)]
        bounds += [(max(-b, 0.0), max(-a, 0.0)) for a, b in zip(low, high, strict=True)]
        with np.errstate(all="ignore"):
            found = minimize(
                split, z, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 300, "ftol": 1e-15}
            )
        half = len(unit)
        return np.clip((found.x[:half] - found.x[half:]) / unit, self.lo.astype(float), self.hi.astype(float))
