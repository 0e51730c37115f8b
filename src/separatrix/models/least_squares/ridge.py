"""Ordinary least squares and ridge regression.

    min_{w,b}  Σ sᵢ(yᵢ − wᵀxᵢ − b)² + α‖w‖²      ⇒      w = (S_xx + αI)⁻¹ S_xy,   b = ȳ − wᵀx̄

Leave one out, exactly, without refitting: eᵢ/(1 − hᵢ),  hᵢ = 1/n + (xᵢ−x̄)ᵀ(S_xx + αI)⁻¹(xᵢ−x̄).
Bayes: noise N(0, σ²) and prior w ~ N(0, σ²/α I) make w the posterior mean. Reference: ESL 2nd ed., eqs. 3.44 and 7.64.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.checks import real_numbers
from separatrix.models.formula import FromFormula
from separatrix.models.least_squares.gram_regression import number_of_targets
from separatrix.models.least_squares.posterior import WithPosterior, evidence_penalties
from separatrix.models.least_squares.summary import SummarisedRegression
from separatrix.models.least_squares.task import SOLVERS, StepCount, method_for
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.solvers.least_squares.leave_one_out import ridge_loo
from separatrix.solvers.least_squares.normal_equations import ONE_SPECTRUM, Spectrum
from separatrix.statistics.gram import NormalEquations

_DEFAULT_ALPHAS = np.logspace(-4, 4, 33)


class LinearRegression(FromFormula, SummarisedRegression):
    """Ordinary least squares from one pass over the data.

    Drop-in for scikit-learn's, with `partial_fit`, `merge` and files on top. Columns that depend on each other give the
    coefficients of minimum norm, with status ``RANK_DEFICIENT``.

    Parameters
    ----------
    fit_intercept : bool, default=True
    copy_X : bool, default=True
        Kept for compatibility: X is never changed and never copied.
    tol : float, default=1e-6
        Kept for compatibility: the answer is exact.
    n_jobs : int, optional
        Kept for compatibility: see `separatrix.config` for threads.
    positive : bool, default=False
        Whether all coefficients must be ≥ 0.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    rank_ : int
        Number of independent columns.
    fit_ : Fit

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import LinearRegression
    >>> X = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 2.0], [2.0, 3.0]])
    >>> model = LinearRegression().fit(X, X @ [1.0, 2.0] + 3.0)
    >>> model.coef_.round(10), float(round(model.intercept_, 10))
    (array([1., 2.]), 3.0)
    """

    rank_: int

    _parameter_constraints: dict[str, list[Any]] = {
        "fit_intercept": ["boolean"],
        "copy_X": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "positive": ["boolean"],
    }

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        positive: bool = False,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.n_jobs = n_jobs
        self.positive = positive

    def _penalties(self, n_targets: int) -> Float:
        return np.zeros(n_targets)

    def _iterative(self, source: Source) -> tuple[float, int | None, str] | None:
        return (1e-12, None, "auto") if not self.positive and method_for("auto", source, False) == "cg" else None

    @property
    def singular_(self) -> Float:
        """Singular values of the centred (with an intercept) matrix X, falling."""
        if not hasattr(self, "_gram"):
            raise AttributeError("singular_ is there after fit.")
        values = Spectrum(self._equations()).values[::-1]
        return np.sqrt(values[: max(1, min(len(values), self.n_features_in_))])


class Ridge(FromFormula, StepCount, WithPosterior):
    """Ridge regression from one pass over the data.

    Drop-in for scikit-learn's, with `partial_fit`, `merge`, files and exact leave-one-out on top.

    Parameters
    ----------
    alpha : float, array-like of shape (n_targets,), "loo" or "evidence", default=1.0
        Penalty on Σ sᵢ(yᵢ − wᵀxᵢ − b)² + α‖w‖². "loo" takes the one of `alphas` with the least exact leave-one-out
        error, at the price of a second pass; "evidence" the one of the largest marginal likelihood, each target its own.
    fit_intercept : bool, default=True
        The intercept is not penalised, unless `penalize_intercept` says so.
    copy_X : bool, default=True
        Kept for compatibility: X is never changed and never copied.
    max_iter : int, optional
        Limit on the steps of "cg"; 1000 by default.
    tol : float, default=1e-4
        For "cg": the fit stops when the gap is proven to be at most tol² times the objective, about `tol` relative in the
        coefficients. The other solvers are exact.
    solver : str, default="auto"
        "gram" (closed form from one pass), "cg" (conjugate gradients: for many rows and many columns), or "auto": the table
        of `separatrix.solvers.choose_least_squares`. scikit-learn's names are accepted and mean "auto".
    positive : bool, default=False
        Whether all coefficients must be ≥ 0.
    random_state : optional
        Kept for compatibility: nothing here is random.
    alphas : array-like, optional
        Grid for ``alpha="loo"``; 33 values from 1e-4 to 1e4 by default.
    penalize_intercept : bool, default=False
        Whether the penalty is α(‖w‖² + b²): the intercept has the prior of the other coefficients.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    alpha_ : float or ndarray
        The penalty used.
    loo_errors_ : ndarray of shape (n_alphas,)
        Mean squared leave-one-out error of every penalty of the grid (``alpha="loo"``), averaged over the targets.
    solver_ : str
        "gram", "cg" or, for few dense rows, "dual".
    n_iter_ : int
        Steps of "cg"; 1 for a closed form.
    fit_ : Fit

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from separatrix import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ridge = Ridge(alpha="loo", alphas=[0.01, 0.1, 1.0, 10.0]).fit(X, y)
    >>> float(ridge.alpha_)
    0.01
    """

    alpha_: Any
    loo_errors_: Float
    rank_: int

    _parameter_constraints: dict[str, list[Any]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like", StrOptions({"loo", "evidence"})],
        "fit_intercept": ["boolean"],
        "copy_X": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions(SOLVERS)],
        "positive": ["boolean"],
        "random_state": ["random_state"],
        "alphas": ["array-like", None],
        "penalize_intercept": ["boolean"],
    }

    def __init__(
        self,
        alpha: float | ArrayLike | Literal["loo", "evidence"] = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        alphas: ArrayLike | None = None,
        penalize_intercept: bool = False,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.alphas = alphas
        self.penalize_intercept = penalize_intercept

    def _set(self, coef: Float, intercept: Float) -> None:
        super()._set(coef, intercept)
        if len(coef) == 1:  # as in scikit-learn, a single column of targets is a vector
            self.coef_ = self.coef_.ravel()

    @property
    def solver_(self) -> str:
        """What solved it: "gram", "cg" or, for few dense rows, "dual"."""
        if not hasattr(self, "fit_"):
            raise AttributeError("solver_ is there after fit.")
        if hasattr(self, "_gram"):
            return "gram"
        return "cg" if self.fit_.iterations else "dual"

    def _second_pass_parameter(self) -> str:
        if self.solver == "cg":
            return "solver='cg'"
        return "alpha='loo'" if isinstance(self.alpha, str) and self.alpha == "loo" else ""

    def _penalties(self, n_targets: int) -> Float:
        values = real_numbers(self.alpha, "alpha")
        if values.ndim > 1 or (values.ndim == 1 and len(values) not in (1, n_targets)):
            raise ValueError(
                f"Number of targets and number of penalties do not correspond: {values.size} != {n_targets}."
            )
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError("alpha must be finite and ≥ 0.")
        self.alpha_ = self.alpha
        return values + np.zeros(n_targets)

    def _iterative(self, source: Source) -> tuple[float, int | None, str] | None:
        if isinstance(self.alpha, str) or self.positive:
            return None
        penalised = self.alpha > 0 if isinstance(self.alpha, float | int) else bool(np.all(np.asarray(self.alpha) > 0))
        method = method_for(self.solver, source, penalised)
        if method != "gram":  # a step takes longer for several targets
            method = method_for(self.solver, source, penalised, number_of_targets(source))
        return None if method == "gram" else (self.tol**2, self.max_iter, self.solver)

    def _grid(self) -> Float:
        return penalty_grid(_DEFAULT_ALPHAS if self.alphas is None else self.alphas)

    def _too_coarse(self, equations: NormalEquations) -> bool:
        if not isinstance(self.alpha, str) or self.alpha == "evidence" or self.positive:
            return False
        return Spectrum(equations).condition(float(self._grid().min())) > ONE_SPECTRUM

    def _choose_penalties(self, equations: NormalEquations, source: Source | None) -> Float:
        n_targets = equations.cross.shape[1]
        if not isinstance(self.alpha, str):
            return self._penalties(n_targets)
        if self.positive:
            raise ValueError(
                f"alpha={self.alpha!r} has no closed form for positive=True; choose alpha by cross-validation."
            )
        if self.alpha == "evidence":
            chosen = evidence_penalties(equations)
            self.alpha_ = float(chosen[0]) if n_targets == 1 else chosen
            return chosen
        assert source is not None
        grid = self._grid()
        errors = ridge_loo(source, equations, Spectrum(equations), grid, self._free_intercept).mean(axis=1)
        self.loo_errors_ = errors
        self.alpha_ = float(grid[int(np.argmin(errors))])
        return np.full(n_targets, self.alpha_)


def penalty_grid(alphas: ArrayLike) -> Float:
    """A grid of penalties, checked."""
    grid = real_numbers(alphas, "alphas")
    if grid.ndim != 1 or not len(grid) or not np.isfinite(grid).all() or (grid < 0).any():
        raise ValueError("alphas must be a list of finite numbers ≥ 0, at least one.")
    return grid
