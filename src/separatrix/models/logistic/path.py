"""A whole grid of penalties in one call: each answer is where the next one starts.

From the strongest penalty to the weakest. The gradient at one answer says which columns the next penalty lets in, so with
absolute values a column that is never needed is never looked at twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.models.counted_classes import check_two_classes, rule_among_all
from separatrix.models.logistic.logistic_regression import LogisticRegression
from separatrix.models.stopwatch import Stopwatch
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.solution import Solution
from separatrix.result import Certificate, Status
from separatrix.solvers.registry import minimise


@dataclass(frozen=True)
class LogisticPath:
    """Logistic regressions along a grid of C.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        In the order they were given.
    coefs : ndarray of shape (n_Cs, 1, n_features) or (n_Cs, n_classes, n_features)
    intercepts : ndarray of shape (n_Cs, 1) or (n_Cs, n_classes)
    certificates : list of Certificate
        How far each answer can be from its optimum.
    classes : ndarray
    passes : int
        Passes over the data for the whole grid.
    """

    Cs: Float
    coefs: Float
    intercepts: Float
    certificates: list[Certificate]
    classes: NDArray[Any]
    passes: int


class RegressionOnGrid(LogisticRegression):
    """A logistic regression whose fit is taken apart: the rows are read once, and solved for one penalty after another."""

    def read(self, X: Any, y: Any = None, sample_weight: Any = None) -> Source:
        """The rows as they are fitted to, with class codes and weights; without labels where there are none."""
        self._check_parameters()
        rows = self._read(X, y, sample_weight, reset=True)
        return rows if y is None and not isinstance(X, Source) else self._label(rows)

    def along(
        self, source: Source, Cs: Float, offset: Float | None = None
    ) -> Iterator[tuple[int, LinearProblem, Solution]]:
        """(position in Cs, problem, solution) from the strongest penalty to the weakest, for rows that were `read`."""
        before: Solution | None = None
        limits: dict[str, Any] = {"tol": float(self.tol), "max_iter": int(self.max_iter)}
        for at in np.argsort(Cs, kind="stable"):
            problem = self._problem(source, offset, float(Cs[at]))
            theta = None if before is None else before.theta
            before = minimise(problem, self.solver, theta, previous=before, **limits)
            yield int(at), problem, before

    def rule(self, coef: Float, intercept: Float) -> tuple[Float, Float]:
        """Coefficients and intercepts with one row per class, from those of the scores that are fitted."""
        return self._expand(coef, intercept)

    def take_rule(self, own: NDArray[Any], rule: tuple[Float, Float], classes: NDArray[Any], status: Status) -> None:
        """Be the rule (coefficients, intercepts) of the classes `own`, among all of `classes`."""
        self.classes_, self._places, (self.coef_, self.intercept_) = own, None, rule
        self._place_among(classes)
        self.fit_ = Stopwatch().fit(status, 0)

    def _warn(self) -> None:
        """Left to who asked for the grid."""

    def counted_rule(self) -> tuple[Float, Float]:
        """The rule of the classes that have weight."""
        return self._counted_rule()


def logistic_path(
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    Cs: int | ArrayLike = 10,
    l1_ratio: float = 0.0,
    fit_intercept: bool = True,
    tol: float = 1e-4,
    max_iter: int = 100,
    **parameters: Any,
) -> LogisticPath:
    """Logistic regressions for a whole grid of C.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    sample_weight : array-like of shape (n_samples,), optional
    Cs : int or array-like, default=10
        The grid; a number means that many values from 1e-4 to 1e4, evenly on a logarithmic scale.
    l1_ratio, fit_intercept, tol, max_iter
        As in `LogisticRegression`.
    **parameters
        Further parameters of `LogisticRegression`.

    Returns
    -------
    LogisticPath

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from separatrix import logistic_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = logistic_path(X / X.std(axis=0), y, Cs=[0.01, 0.1, 1.0], l1_ratio=1.0)
    >>> (path.coefs != 0).sum(axis=(1, 2)).tolist()
    [2, 8, 16]
    """
    model = RegressionOnGrid(l1_ratio=l1_ratio, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter, **parameters)
    source = model.read(X, y, sample_weight)
    check_two_classes(model.classes_)
    grid = grid_of(Cs)
    first = source.passes
    known = source.known_classes
    assert known is not None
    places = None if len(known) == len(model.classes_) else np.searchsorted(known, model.classes_)

    def published(problem: LinearProblem, solution: Solution) -> tuple[Float, Float, Certificate]:
        answer = problem.publish(solution, float(tol))
        rule = model.rule(answer.coef, answer.intercept)
        rule = rule if places is None else rule_among_all(*rule, places, len(known), halved=True)
        return *rule, answer.certificate

    found = [(at, *published(problem, solution)) for at, problem, solution in model.along(source, grid)]
    found.sort(key=lambda entry: entry[0])
    return LogisticPath(
        grid,
        np.stack([coef for _, coef, _, _ in found]),
        np.stack([intercept for _, _, intercept, _ in found]),
        [certificate for *_, certificate in found],
        known,
        source.passes - first,
    )


def grid_of(Cs: int | ArrayLike) -> Float:
    """The values of C that are meant."""
    if isinstance(Cs, int | np.integer):
        if Cs < 1:
            raise ValueError(f"Cs is {Cs}; give at least one value of C.")
        return np.logspace(-4, 4, int(Cs))
    grid = np.asarray(Cs, dtype=np.float64)
    if grid.ndim != 1 or not len(grid) or not (grid > 0).all():
        raise ValueError("Cs should be a number of values, or a list of values of C that are all positive.")
    return grid
