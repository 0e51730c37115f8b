"""Bayesian linear regression: the posterior that ridge regression is the mode of, and the evidence of its penalty.

    y = wᵀx + b + N(0, σ²),   w ~ N(0, τ²I),   b flat                 α = σ²/τ²
    w | D ~ N(ŵ, σ²(S + αI)⁻¹),   b | w, D ~ N(ȳ − wᵀx̄, σ²/n)
    y | x, D ~ N(ŵᵀx + b̂, σ²(1 + h)),   h = 1/n + (x − x̄)ᵀ(S + αI)⁻¹(x − x̄)

    log p(y | σ², α) = ½[d log α − Σ_j log(s_j + α) − n log 2πσ² − F(α)/σ²],   F(α) = min_w RSS + α‖w‖²

with b at its best value. σ² = F(α)/n is the best for a given α, and what is left is a function of α alone, read from the
spectrum s of S. Weights are repetitions: n = Σ sᵢ. scikit-learn's BayesianRidge climbs to the same maximum (with its four
hyper-priors at 0); its predictive variance leaves out the 1/n, as if b were known.

References: Bishop (2006), sections 3.3 and 3.5; MacKay (1992), Neural Computation 4.

**Complexity** O(d³) once, then O(d) per penalty. **Passes over the data** none: one was made for the statistic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from separatrix.data.block import Float
from separatrix.solvers.least_squares.normal_equations import Spectrum
from separatrix.statistics.gram import NormalEquations

PointLoss = Literal["zero-one", "squared", "absolute"]
_POINTS, _WIDEST, _SAME = 121, 1e10, 1e-9
_FLAT = (
    "Columns depend on each other and alpha is 0, so the posterior is improper in some direction. Give alpha a positive value, "
    "or drop columns."
)


@dataclass(frozen=True)
class RidgeEvidence:
    """log p(y | σ², α) of one target, maximised over σ², as a function of α."""

    values: Float
    squares: Float
    rest: float
    total: float
    n_features: int

    @classmethod
    def of(cls, equations: NormalEquations, spectrum: Spectrum, target: int) -> RidgeEvidence:
        """From the spectrum s of S, and c = VᵀS_xy: F(α) = F(0) + Σ c_j² α/(s_j(s_j + α))."""
        used = spectrum.values > spectrum.floor
        values = spectrum.values[used]
        least = float(equations.residual_squares(spectrum.coef(0.0))[target])
        squares = np.square(spectrum.cross[used, target]) / values
        return cls(values, squares, least, equations.total, equations.cross.shape[0])

    def objective(self, alpha: float) -> float:
        """F(α)."""
        return self.rest + float((self.squares * (alpha / (self.values + alpha))).sum())

    def at(self, alpha: float, noise_variance: float | None = None) -> float:
        """log p(y | σ², α); without a σ², that of the best."""
        least = self.objective(alpha)
        noise = least / self.total if noise_variance is None else noise_variance
        if not noise > 0 or not alpha > 0:
            return float("nan")
        shrunk = float(np.log1p(self.values / alpha).sum())  # directions without variance have factor 1
        return -0.5 * (shrunk + self.total * float(np.log(2.0 * np.pi * noise)) + least / noise)

    def best(self) -> float:
        """α of the largest evidence: the best of a grid over the spectrum, then by Brent's method."""
        from scipy.optimize import minimize_scalar  # takes longer to import than most models to fit

        if not len(self.values) or not self.rest + self.squares.sum() > 0:
            return 1.0  # no columns that vary, or a constant target: every penalty is as good
        low, high = np.log(self.values.min() / _WIDEST), np.log(self.values.max() * _WIDEST)
        grid = np.linspace(low, high, _POINTS)
        heights = np.array([self.at(float(np.exp(point))) for point in grid])
        place = int(np.nanargmax(heights))
        for end in (
            0,
            _POINTS - 1,
        ):  # towards σ² = 0 and τ² = 0 the evidence is flat: where it is largest there, it is at the end
            if heights[end] >= heights[place] - _SAME * (1.0 + abs(heights[place])):
                return float(np.exp(grid[end]))
        around = grid[max(0, place - 1)], grid[min(_POINTS - 1, place + 1)]
        found = minimize_scalar(
            lambda point: -self.at(float(np.exp(point))), bounds=around, method="bounded", options={"xatol": 1e-12}
        )
        return float(np.exp(self._polished(float(found.x), around)))

    def _polished(self, point: float, around: tuple[float, float]) -> float:
        """The root of the derivative by log α, to which values of the function alone do not lead in all digits.

        2 d/d log α = Σ s/(s + α) − n Σ c²/s · sα/(s + α)² / F(α): MacKay's fixed point, γ = n α‖w‖²/F.
        """

        def slope(at: float) -> float:
            alpha = float(np.exp(at))
            share = self.values / (self.values + alpha)
            return float(share.sum()) - self.total * float(
                (self.squares * share * (alpha / (self.values + alpha))).sum()
            ) / self.objective(alpha)

        low, high = max(around[0], point - 1e-3), min(around[1], point + 1e-3)
        if not slope(low) > 0 > slope(high):
            return point
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) > 0 else (low, middle)
        return 0.5 * (low + high)


@dataclass(frozen=True)
class LinearPosterior:
    """What `Ridge.posterior` returns: the distribution of the coefficients of every target.

    Parameters
    ----------
    coef : ndarray of shape (m, d)
        Means; with a penalised intercept that is the last of them.
    intercept : ndarray of shape (m,)
        Means of intercepts that have a flat prior.
    fit_intercept : bool
        Whether there are such.
    centre : ndarray of shape (d,)
    spectrum : Spectrum
        Of S.
    alpha, noise_variance, log_evidence : ndarray of shape (m,)
        σ²/τ², σ² and log p(y | σ², α); the last is NaN for a flat prior.
    total : float
    """

    coef: Float
    intercept: Float
    fit_intercept: bool
    centre: Float
    spectrum: Spectrum
    alpha: Float
    noise_variance: Float
    log_evidence: Float
    total: float

    @property
    def prior_variance(self) -> Float:
        """(m,) τ², infinite for a flat prior."""
        with np.errstate(divide="ignore"):
            return self.noise_variance / self.alpha

    @property
    def mean(self) -> Float:
        """(m, p) the posterior means, the intercept last."""
        return np.column_stack([self.coef, self.intercept]) if self.fit_intercept else self.coef

    def _whitened(self, rows: Float, alpha: float) -> Float:
        """(n,) rᵀ(S + αI)⁻¹r of every row."""
        inside = rows @ self.spectrum.vectors
        squares = np.square(inside) @ self.spectrum.inverse(alpha)
        if self.spectrum.vectors.shape[1] < rows.shape[1] and alpha > 0:  # directions that no row has
            outside = rows - inside @ self.spectrum.vectors.T
            squares = squares + np.square(outside).sum(axis=1) / alpha
        return squares

    def covariance(self, target: int = 0) -> Float:
        """(p, p) covariance of the coefficients of one target, the intercept last."""
        vectors, alpha = self.spectrum.vectors, float(self.alpha[target])
        inverse = (vectors * self.spectrum.inverse(alpha)) @ vectors.T
        if vectors.shape[1] < len(vectors):
            inverse += (np.eye(len(vectors)) - vectors @ vectors.T) / alpha
        if self.fit_intercept:
            with_mean = -inverse @ self.centre
            corner = 1.0 / self.total - with_mean @ self.centre
            inverse = np.block([[inverse, with_mean[:, None]], [with_mean[None, :], np.array([[corner]])]])
        return inverse * self.noise_variance[target]

    def predictive_std(self, rows: Float) -> Float:
        """(n, m) standard deviations of new observations at rows."""
        rows = rows - self.centre if self.fit_intercept else rows
        own = 1.0 + (1.0 / self.total if self.fit_intercept else 0.0)
        spread = np.column_stack([self._whitened(rows, float(alpha)) for alpha in self.alpha])
        return np.sqrt((own + spread) * self.noise_variance)

    def estimate(self, loss: PointLoss = "squared") -> Float:
        """(m, p) the point estimate of least expected loss: mode, mean and median of a Gaussian are one.

        Parameters
        ----------
        loss : {"zero-one", "squared", "absolute"}, default="squared"
            Answered by the mode (the MAP estimate, which ridge regression gives), the mean and the median.
        """
        if loss not in ("zero-one", "squared", "absolute"):
            raise ValueError(f"loss is {loss!r}; give 'zero-one', 'squared' or 'absolute'.")
        return self.mean.copy()

    def interval(self, level: float = 0.95) -> Float:
        """(m, p, 2) credible limits of every coefficient."""
        z = float(ndtri(0.5 + 0.5 * level))
        errors = np.array([np.sqrt(self.covariance(target).diagonal()) for target in range(len(self.coef))])
        return np.stack([self.mean - z * errors, self.mean + z * errors], axis=2)

    def draws(self, size: int, random_state: Any = None) -> Float:
        """(m, size, p) draws of the coefficients, the intercept last; for `posterior_summary` of what is not linear in them."""
        rng = np.random.default_rng(random_state)
        out = []
        for target, mean in enumerate(self.mean):
            values, vectors = np.linalg.eigh(self.covariance(target))
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            out.append(mean + rng.normal(size=(size, len(mean))) @ root.T)
        return np.array(out)


def linear_posterior(
    equations: NormalEquations,
    coef: Float,
    intercept: Float,
    fit_intercept: bool,
    alpha: Float,
    noise_variance: Float | None,
) -> LinearPosterior:
    """The posterior about ridge coefficients (m, d); without a noise variance, that of the largest evidence."""
    spectrum = Spectrum(equations)
    if (alpha == 0).any() and int((spectrum.values > spectrum.floor).sum()) < coef.shape[1]:
        raise ValueError(_FLAT)
    evidences = [RidgeEvidence.of(equations, spectrum, target) for target in range(len(coef))]
    pairs = list(zip(evidences, alpha.tolist(), strict=True))
    noise = np.array([one.objective(a) / one.total for one, a in pairs]) if noise_variance is None else noise_variance
    heights = np.array([one.at(a, float(v)) for (one, a), v in zip(pairs, noise, strict=True)])
    centre = equations.x_mean
    return LinearPosterior(coef, intercept, fit_intercept, centre, spectrum, alpha, noise, heights, equations.total)
