"""The posterior that a ridge regression is the mode of: the methods; the arithmetic is in bayes/linear.py."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from separatrix.bayes.linear import LinearPosterior, RidgeEvidence, linear_posterior
from separatrix.data.block import Block, Float
from separatrix.models.least_squares.gram_regression import LeastSquaresRegressor
from separatrix.solvers.least_squares.normal_equations import Spectrum
from separatrix.statistics.gram import NormalEquations


def evidence_penalties(equations: NormalEquations) -> Float:
    """(m,) the penalty of the largest evidence for every target."""
    spectrum = Spectrum(equations)
    return np.array([RidgeEvidence.of(equations, spectrum, t).best() for t in range(equations.cross.shape[1])])


class WithPosterior(LeastSquaresRegressor):
    """`posterior` and `predict(return_std=True)`, mixed into `Ridge`."""

    alpha_: Any

    def posterior(self, noise_variance: float | None = None) -> LinearPosterior:
        """The distribution of the coefficients, given noise of one variance and the prior N(0, σ²/α) on each.

        Parameters
        ----------
        noise_variance : float, optional
            σ², where it is known; by default that of the largest evidence.

        Returns
        -------
        LinearPosterior
            With `mean`, `covariance()`, `interval()`, `draws()`, `estimate(loss)`, `noise_variance`, `prior_variance` and
            `log_evidence`.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from separatrix import Ridge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> ridge = Ridge(alpha="evidence").fit(X, y)
        >>> found = ridge.posterior()
        >>> bool(abs(found.noise_variance[0] / found.prior_variance[0] - ridge.alpha_) < 1e-12)
        True
        """
        self._check_ready()
        if self.positive:
            raise ValueError("The posterior under positive=True is not Gaussian; fit without it.")
        if not hasattr(self, "_gram"):
            raise ValueError("This fit kept no sums of squares to read a posterior from; use solver='gram'.")
        given = None
        if noise_variance is not None:
            given = np.broadcast_to(np.asarray(noise_variance, dtype=np.float64), (self._gram.n_targets,))
            if not (np.isfinite(given) & (given > 0)).all():
                raise ValueError(f"noise_variance is {noise_variance!r}; give a positive number.")
        coef = np.atleast_2d(np.asarray(self.coef_, dtype=np.float64))
        intercept = np.broadcast_to(np.asarray(self.intercept_, dtype=np.float64), (len(coef),))
        if self._held_intercept:
            coef = np.column_stack([coef, intercept])
        alpha = np.broadcast_to(np.asarray(self.alpha_, dtype=np.float64), (len(coef),)).copy()
        return linear_posterior(self._equations(), coef, intercept, self._free_intercept, alpha, given)

    @overload
    def predict(self, X: Any, return_std: Literal[False] = ...) -> Float: ...

    @overload
    def predict(self, X: Any, return_std: bool) -> Any: ...

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Xw + b for every row, and the standard deviation of a new observation there if asked.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to give the predictive standard deviation too: noise, and what the data leave open of w and b.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets), or a pair of them
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        known, held = self.posterior(), self._held_intercept

        def of_block(block: Block) -> Float:
            rows = block.dense()
            return known.predictive_std(np.column_stack([rows, np.ones(block.n)]) if held else rows)

        std = self._map_rows(X, of_block)
        return mean, std[:, 0] if mean.ndim == 1 else std
