"""The objective that a fit minimises, at coefficients of the reader's choice: for contours, and to see what a step gained."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.models.linear_rule import LinearRule
from separatrix.objectives.linear_problem import LinearProblem


class ObjectiveValues(LinearRule):
    """A linear rule that minimises a published objective."""

    @abstractmethod
    def _problem_of(self, source: Source) -> LinearProblem:
        """What `fit` minimises over these rows, which have their class codes."""

    def _points_of(self, coef: Float, intercept: Float) -> tuple[Float, Float]:
        """Coefficients of the scores that are fitted, of one point."""
        return coef, intercept

    def objective_at(
        self, X: Any, y: ArrayLike | None, coef: ArrayLike, intercept: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Float:
        """The objective of `fit` with its penalty, in the units of the certificate, at any coefficients.

        Parameters
        ----------
        coef : array-like of shape (n_points, *coef_.shape)
        intercept : array-like of shape (n_points, *intercept_.shape)

        Returns
        -------
        ndarray of shape (n_points,)

        Examples
        --------
        >>> from separatrix import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
        >>> model = LogisticRegression().fit(X, y)
        >>> values = model.objective_at(X, y, [[[0.0]], model.coef_], [[0.0], model.intercept_])
        >>> values.round(4).tolist(), bool(abs(values[1] - model.fit_.certificate.objective) < 1e-12)
        ([2.7726, 2.5483], True)
        """
        self._check_ready()
        W, b = np.asarray(coef, dtype=np.float64), np.asarray(intercept, dtype=np.float64)
        if W.shape[1:] != self.coef_.shape or b.shape != (len(W), *self.intercept_.shape):
            raise ValueError(
                f"coef has shape {W.shape} and intercept {b.shape}; give one array of shape {self.coef_.shape} and one of "
                f"shape {self.intercept_.shape} for each point."
            )
        source = self._read(X, y, sample_weight, reset=False).labelled(self._counted)
        problem = self._problem_of(source)
        thetas = np.stack([problem.start(*self._points_of(w, c)) for w, c in zip(W, b, strict=True)])
        return problem.units * problem.values(thetas)
