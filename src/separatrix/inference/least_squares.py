"""What is known about a least-squares fit: the noise, the covariance of the coefficients, leverages.

    σ̂² = RSS/(n − p),   V = σ̂²(XᵀX)⁻¹                                                       covariance="model"
    V = (XᵀX)⁻¹ (Σ sᵢ eᵢ² cᵢ xᵢxᵢᵀ) (XᵀX)⁻¹,   eᵢ = yᵢ − xᵢᵀβ̂,   hᵢ = xᵢᵀ(XᵀX)⁻¹xᵢ           covariance="HC0" … "HC3"
        c = 1 (HC0),   n/(n − p) (HC1),   1/(1 − h) (HC2),   1/(1 − h)² (HC3)
    mean of a new row  xᵀβ̂ ± t σ̂√h,      a new observation  xᵀβ̂ ± t σ̂√(1 + h)
    L = −n/2 (log 2πRSS/n + 1),   AIC = −2L + 2p,   BIC = −2L + p log n

A weight is a number of repetitions, so n = Σ sᵢ and every sum counts a row of weight 2 twice; p counts the intercept, and of
dependent columns only the first independent ones: the others are aliased, and have no estimate of their own. Columns are
centred while sums are taken, which makes (XᵀX)⁻¹ = diag(S⁻¹, 1/n); the intercept is β₀ − wᵀx̄.

References: Seber and Lee (2003), Linear Regression Analysis, sections 3.1 and 5.3; MacKinnon and White (1985),
J. Econometrics 29.

**Complexity** O(d³) from the statistic of the fit. **Passes over the data** none; one for robust errors of any kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from separatrix.data import Source
from separatrix.data.affine import Standardised
from separatrix.data.block import Block, Float
from separatrix.solvers.least_squares.normal_equations import rounding_of_value, solve_ridge
from separatrix.statistics.gram import NormalEquations
from separatrix.statistics.metric import metric_of
from separatrix.statistics.scatter import Scatter

HC = ("HC0", "HC1", "HC2", "HC3")
# What is left of a column after the ones before it, below which it counts as a combination of them: of rows, of a matrix.
_ALIASED = {True: 1e-11, False: 1e-7}
_PIECE = 1 << 20
# Relative error of the residual sum of squares that is worth a note, and at which nothing but rounding is left of it.
_ROUGH, _PERFECT = 1e-8, 0.1
_NOTHING_LEFT = 1e-28
_EPS = float(np.finfo(np.float64).eps)

PERFECT = (
    "The fit is perfect to rounding: what is left of the targets is of the size of rounding errors, and so are these standard "
    "errors and tests. They mean nothing."
)
ROUGH = (
    "The columns explain the targets to many digits, of which the sums that the model keeps have lost some: about {:.1g} "
    "of the residual sum of squares is rounding. Give X and y for all digits."
)


@dataclass(frozen=True)
class LeastSquaresEstimates:
    """Estimates of m targets with all that errors and tests are made of.

    Parameters
    ----------
    coef : ndarray of shape (m, k)
        Of the columns that are not aliased.
    intercept : ndarray of shape (m,)
        Zeros when there is none.
    kept : ndarray of shape (k,)
        Which columns these are.
    names : tuple of str
        Of all columns.
    fit_intercept : bool
    centre : ndarray of shape (k,)
        Their means, zero without an intercept.
    root : ndarray of shape (k, k)
        L with LLᵀ = S⁻¹.
    total : float
        Total weight n.
    residual_squares, target_squares : ndarray of shape (m,)
        The second about the mean of the targets, or about 0 without an intercept.
    target_mean : ndarray of shape (m,)
    condition : float
        Largest over least singular value of the columns and the constant.
    rounding : float
        About the relative error of the residual squares.
    sandwiches : ndarray of shape (m, p, p) or None
        Robust covariances in the place of those of the model.
    """

    coef: Float
    intercept: Float
    kept: Any
    names: tuple[str, ...]
    fit_intercept: bool
    centre: Float
    root: Float
    total: float
    residual_squares: Float
    target_squares: Float
    target_mean: Float
    condition: float
    rounding: float = 0.0
    sandwiches: Float | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, equations: NormalEquations, coef: Float, names: tuple[str, ...], rank: int, fit_intercept: bool
    ) -> LeastSquaresEstimates:
        """From the statistic of a fit and its coefficients (m, d); where columns depend on each other, the pivoted ones."""
        kept, own = np.arange(len(names)), equations
        if rank < len(names):
            kept = independent_columns(equations.scatter)
            own = _of_columns(equations, kept)
            coef = solve_ridge(own, np.zeros(len(coef))).coef
        root = metric_of(own.scatter).half(np.eye(len(kept))) if len(kept) else np.zeros((0, 0))
        squares = own.residual_squares(coef) if len(kept) else own.target_squares
        off = rounding_of_value(own, coef) if len(kept) else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.divide(off, squares, out=np.ones_like(squares), where=squares > 0)
        estimates = cls(
            coef,
            equations.y_mean - coef @ own.x_mean,
            kept,
            names,
            fit_intercept,
            own.x_mean,
            root,
            equations.total,
            squares,
            equations.target_squares,
            equations.y_mean,
            _condition(own, fit_intercept),
            float(share.max(initial=0.0)),
        )
        if estimates.degrees <= 0:
            raise ValueError(
                f"There are no standard errors: {equations.total:.10g} rows and {estimates.n_parameters} coefficients leave no "
                "degrees of freedom for the noise. Give more rows, or fewer columns."
            )
        return estimates

    @property
    def n_parameters(self) -> int:
        """p: independent columns, and the intercept."""
        return len(self.kept) + self.fit_intercept

    @property
    def degrees(self) -> float:
        """n − p."""
        return self.total - self.n_parameters

    @property
    def variance(self) -> Float:
        """(m,) σ̂²."""
        return self.residual_squares / self.degrees

    @property
    def perfect(self) -> bool:
        """Whether rounding is all that is left of the targets."""
        return self.rounding > _PERFECT or bool(
            (self.residual_squares <= _NOTHING_LEFT * self.squares_about_zero).all()
        )

    @property
    def squares_about_zero(self) -> Float:
        """(m,) Σ sᵢyᵢ²."""
        return self.target_squares + self.total * np.square(self.target_mean) * self.fit_intercept

    @property
    def note(self) -> str:
        """What a reader of standard errors should know."""
        if self.perfect:
            return PERFECT if self.rounding <= _PERFECT else f"{PERFECT} Give X and y for what their residuals say."
        return ROUGH.format(self.rounding) if self.rounding > _ROUGH else ""

    @cached_property
    def inverse(self) -> Float:
        """(p, p) (XᵀX)⁻¹ in the user's units, the intercept last."""
        return self.in_user_units(self._centred_inverse())

    def _centred_inverse(self) -> Float:
        inverse = self.root @ self.root.T
        if not self.fit_intercept:
            return inverse
        k = len(self.kept)
        out = np.zeros((k + 1, k + 1))
        out[:k, :k], out[k, k] = inverse, 1.0 / self.total
        return out

    def in_user_units(self, covariance: Float) -> Float:
        """A covariance of the coefficients of centred columns as one of the user's; the intercept is b₀ − wᵀx̄."""
        if not self.fit_intercept:
            return covariance
        jacobian = np.eye(len(covariance))
        jacobian[-1, :-1] = -self.centre
        return jacobian @ covariance @ jacobian.T

    def covariance(self, target: int = 0) -> Float:
        """(p, p) of the estimates of one target."""
        return self.inverse * self.variance[target] if self.sandwiches is None else self.sandwiches[target]

    def centred_rows(self, block: Block) -> Float:
        """The rows of a block, independent columns alone, centred before anything is multiplied."""
        own = block if len(self.kept) == len(self.names) else block.columns(self.kept)
        return Standardised.block(own, self.centre).dense() if self.centre.any() else own.dense()

    def leverages_of(self, rows: Float) -> Float:
        """(n,) hᵢ of centred rows."""
        white = rows @ self.root
        return np.einsum("ij,ij->i", white, white) + (1.0 / self.total if self.fit_intercept else 0.0)

    def fitted(self, rows: Float) -> Float:
        """(n, m) predictions for centred rows."""
        return rows @ self.coef.T + (self.target_mean if self.fit_intercept else 0.0)

    def from_rows(self, source: Source, kind: str = "model") -> LeastSquaresEstimates:
        """The same with residual squares from the rows of the fit themselves, and robust covariances if asked. One pass."""
        if kind == "HC1" and self.degrees <= 0:
            raise ValueError("HC1 divides by n − p; use HC0.")
        robust = kind != "model"

        def of_block(block: Block) -> tuple[float, Float, Float, float]:
            k, m = self.n_parameters, len(self.coef)
            squares, meat, total, highest = np.zeros(m), np.zeros((m, k, k)), 0.0, 0.0
            for piece in block.pieces(_PIECE):
                counted = piece.counted()
                assert counted.y is not None
                rows = self.centred_rows(counted)
                weights = np.ones(counted.n) if counted.weights is None else counted.weights
                errors = np.square(counted.y - self.fitted(rows))
                squares += weights @ errors
                total += float(weights.sum())
                if robust:
                    scale = np.ones(counted.n)
                    if kind in ("HC2", "HC3"):
                        left = 1.0 - self.leverages_of(rows)
                        highest = max(highest, 1.0 - float(left.min(initial=1.0)))
                        scale = np.maximum(left, _EPS) ** (-1.0 if kind == "HC2" else -2.0)
                    design = np.column_stack([rows, np.ones(counted.n)]) if self.fit_intercept else rows
                    for t in range(m):
                        meat[t] += design.T @ (design * (weights * errors[:, t] * scale)[:, None])
            return total, squares, meat, highest

        def merge(one: Any, other: Any) -> Any:
            return one[0] + other[0], one[1] + other[1], one[2] + other[2], max(one[3], other[3])

        total, squares, meat, highest = source.reduce(of_block, merge)
        source.check_finite(squares)
        self._check_rows(total, squares)
        if highest > 1.0 - 1e-10:
            raise ValueError(
                f"{kind} divides by 1 − h, which vanishes for a row that its coefficients fit alone (leverage 1). Use HC0 or "
                "HC1, or leave that row out."
            )
        exact = replace(self, residual_squares=squares, rounding=0.0)
        if not robust:
            return exact
        inverse = self._centred_inverse()
        factor = self.total / self.degrees if kind == "HC1" else 1.0
        return replace(
            exact, sandwiches=np.array([factor * self.in_user_units(inverse @ one @ inverse) for one in meat])
        )

    def _check_rows(self, total: float, squares: Float) -> None:
        off = np.abs(squares - self.residual_squares) > 1e-6 * squares + (self.rounding + 1e-12) * self.residual_squares
        if not np.isclose(total, self.total, rtol=1e-9) or (off.any() and not self.perfect):
            raise ValueError(
                f"These rows are not the ones the model was fitted to: their total weight is {total:.10g} and their residual "
                f"sum of squares {squares.sum():.10g}, those of the fit were {self.total:.10g} and "
                f"{self.residual_squares.sum():.10g}. Give the same X, y and sample_weight."
            )


def independent_columns(scatter: Scatter) -> Any:
    """The columns that are no combinations of the ones before them, by Gram and Schmidt, twice."""
    if scatter.thin:
        rows = scatter.rows
    else:
        values, vectors = np.linalg.eigh(scatter.matrix())
        rows = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    lengths, tol = np.linalg.norm(rows, axis=0), _ALIASED[scatter.thin]
    basis, kept = np.zeros((len(rows), 0)), []
    for j, length in enumerate(lengths):
        if not length > 0:
            continue
        left = rows[:, j] / length
        for _ in range(2):
            left = left - basis @ (basis.T @ left)
        size = float(np.linalg.norm(left))
        if size > tol:
            kept.append(j)
            basis = np.column_stack([basis, left / size])
    return np.array(kept, dtype=np.intp)


def _of_columns(equations: NormalEquations, kept: Any) -> NormalEquations:
    scatter = equations.scatter
    if scatter.thin:
        own = Scatter(rows=np.ascontiguousarray(scatter.rows[:, kept]))
    else:
        own = Scatter(matrix=np.ascontiguousarray(scatter.matrix()[np.ix_(kept, kept)]))
    return replace(equations, scatter=own, cross=equations.cross[kept], x_mean=equations.x_mean[kept])


def _condition(equations: NormalEquations, fit_intercept: bool) -> float:
    """Of the matrix with columns as they are, the constant among them."""
    scatter, n = equations.scatter, equations.total
    means = np.append(equations.x_mean, 1.0) if fit_intercept else equations.x_mean
    if scatter.thin:
        rows = scatter.rows
        if fit_intercept:
            rows = np.column_stack([rows, np.zeros(len(rows))])
            rows = np.vstack([rows, np.sqrt(n) * means])
        values = np.square(np.linalg.svd(rows, compute_uv=False)[: rows.shape[1]])
    else:
        matrix = scatter.matrix()
        if fit_intercept:
            matrix = np.pad(matrix, (0, 1)) + n * np.outer(means, means)
        values = np.linalg.eigvalsh(matrix)
    least, largest = float(values.min(initial=np.inf)), float(values.max(initial=0.0))
    return float(np.sqrt(largest / least)) if least > 0 else np.inf
