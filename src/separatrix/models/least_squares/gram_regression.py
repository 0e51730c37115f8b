"""Regression read from Gram statistics: fitting, fitting in parts, merging."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin
from sklearn.utils.metaestimators import available_if

from separatrix.data import Source
from separatrix.data.affine import Intercept
from separatrix.data.block import Float
from separatrix.models.base import FitCall, OptionalArray
from separatrix.models.docstrings import described
from separatrix.models.in_parts import InParts, in_parts
from separatrix.models.least_squares.task import NO_STATISTIC, LeastSquaresTask, describe, fit_by_cg, polish
from separatrix.models.regressor import Regressor
from separatrix.models.stopwatch import Stopwatch
from separatrix.statistics.gram import Gram, NormalEquations
from separatrix.statistics.triangular import Triangular


class LeastSquaresRegressor(MultiOutputMixin, Regressor, InParts):  # type: ignore[misc]  # scikit-learn ships no types
    """Regression read from Gram statistics, or from triangular ones where those cannot resolve the columns."""

    fit_intercept: bool
    positive: bool
    penalize_intercept = False
    _gram: Gram
    _triangle: Triangular | None = None
    """Of the same rows as the Gram statistic, when that does not resolve the columns."""
    _one_target: bool

    @abstractmethod
    def _penalties(self, n_targets: int) -> Float:
        """α of every target."""

    def _iterative(self, source: Source) -> tuple[float, int | None, str] | None:
        """Tolerance, limit on steps and solver when a Gram matrix is too large or costs too much, else None."""
        return None

    _of_some_fits: ClassVar[tuple[str, ...]] = ("_gram", "_triangle", "loo_errors_")

    def _read_rows(self, call: FitCall) -> Source:
        return self._numbers(call.X, call.y, call.sample_weight, reset=True)

    def _solve(self, source: Source, call: FitCall) -> None:
        self._dtype = source.dtype
        iterative, found = self._iterative(source), None
        if iterative is not None:
            tol, max_iter, solver = iterative
            penalties = self._penalties(number_of_targets(source))
            found = fit_by_cg(source, penalties, self._free_intercept, tol, max_iter, call.watch, self._dtype, solver)
        if found is None:
            self._gram = Gram.of_source(source)
            self._unpack(call.watch, source, all_rows=True)
        else:
            coef, intercept, self.fit_ = found
            if (penalties > 0).all():  # S + αI has an inverse
                self.rank_ = self.n_features_in_
            self._set(coef, intercept)

    @available_if(in_parts)
    @described
    def partial_fit(self, X: Any, y: OptionalArray = None, sample_weight: OptionalArray = None) -> Self:
        """Add rows to what has been learned; the result equals one `fit` on all rows so far.

        Returns
        -------
        self
        """
        return self._fit_part(X, y, sample_weight)

    def _add_rows(self, call: FitCall) -> None:
        if hasattr(self, "fit_") and not hasattr(self, "_gram"):
            raise ValueError(NO_STATISTIC.format(verb="add to"))
        before: Gram | None = getattr(self, "_gram", None)
        one_target = getattr(self, "_one_target", None)
        source = self._numbers(call.X, call.y, call.sample_weight, reset=before is None)
        call.watch.start_at(source.passes)
        part = Gram.of_source(source)
        if before is None:
            self._gram, self._dtype = part, np.dtype(np.float64)
        else:
            if part.n_targets != before.n_targets or self._one_target != one_target:
                raise ValueError(
                    f"y has {part.n_targets} targets in {1 if self._one_target else 2} dimensions, but earlier parts had "
                    f"{before.n_targets} in {1 if one_target else 2}; give targets of the same shape."
                )
            self._gram = before.copy().merge(part)
        self._unpack(call.watch, source, before=before)

    def _check_statistic(self) -> None:
        self._check_ready()
        if not hasattr(self, "_gram"):
            raise ValueError(NO_STATISTIC.format(verb="merge"))

    def _check_mergeable(self, other: Any) -> None:
        super()._check_mergeable(other)
        if self._gram.n_targets != other._gram.n_targets:
            raise ValueError(f"Cannot merge {self._gram.n_targets} targets with {other._gram.n_targets}.")

    def _merge_statistics(self, one: Any, other: Any, watch: Stopwatch) -> None:
        self._one_target, self._gram = one._one_target, one._gram.copy().merge(other._gram)
        if one._triangle is not None or other._triangle is not None:
            self._triangle = one._factor().merge(other._factor())
        self._unpack(watch, None)

    def _numbers(self, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None, *, reset: bool) -> Source:
        self._check_target(X, y)
        source = self._read(X, y, sample_weight, reset=reset, multi_output=True)
        self._one_target = source.target_ndim == 1
        valued = source.valued()
        return Intercept(valued) if self._held_intercept else valued

    @property
    def _held_intercept(self) -> bool:
        """Whether the intercept is one more coefficient under the penalty: that of a last column of ones."""
        return bool(self.fit_intercept and self.penalize_intercept)

    @property
    def _free_intercept(self) -> bool:
        return bool(self.fit_intercept and not self.penalize_intercept)

    def _task(self, penalties: Float) -> LeastSquaresTask:
        return LeastSquaresTask(penalties, self._free_intercept, self.positive, dtype=self._dtype)

    def _factor(self) -> Triangular:
        """A triangular statistic of the rows so far that can be merged into."""
        return Triangular.of_gram(self._gram) if self._triangle is None else self._triangle.copy()

    def _equations(self) -> NormalEquations:
        statistic = self._gram if self._triangle is None else self._triangle
        equations = statistic.normal_equations()
        return equations if self._free_intercept else equations.without_intercept()

    def _unpack(
        self, watch: Stopwatch, source: Source | None, *, all_rows: bool = False, before: Gram | None = None
    ) -> None:
        """Read the statistic. `source` holds all rows or those that came after the statistic `before`."""
        triangle, self._triangle = self._triangle, None
        equations = self._equations()
        solution = None
        if equations.scatter.thin or not self._too_coarse(equations):
            task = self._task(self._choose_penalties(equations, source))
            solution = task.solve(equations)
        if solution is None or not (solution.resolved or equations.scatter.thin):
            if source is not None:
                part = Triangular.of_source(source, self._gram.mean())
                if triangle is None and before is not None:
                    triangle = Triangular.of_gram(before)
                triangle = part if triangle is None else triangle.copy().merge(part)
            self._triangle = triangle
            if triangle is not None:
                equations = self._equations()
                task = self._task(self._choose_penalties(equations, source))
                solution = task.solve(equations)
        assert solution is not None
        if all_rows and source is not None and not (solution.resolved and self._triangle is None):
            solution = polish(task, solution, equations, source)
        self.fit_ = describe(solution, 0 if source is None else source.passes, watch)
        self.rank_ = solution.rank - self._held_intercept
        self._set(solution.coef, solution.intercept)

    def _too_coarse(self, equations: NormalEquations) -> bool:
        """Whether a Gram matrix cannot even choose the penalty."""
        return False

    def _choose_penalties(self, equations: NormalEquations, source: Source | None) -> Float:
        return self._penalties(equations.cross.shape[1])

    def _set(self, coef: Float, intercept: Float) -> None:
        if self._held_intercept:
            coef, intercept = np.ascontiguousarray(coef[:, :-1]), coef[:, -1].copy()
        coef = coef.astype(self._dtype, copy=False)
        if self._one_target:
            self.coef_, self.intercept_ = coef[0], intercept[0].astype(self._dtype) if self.fit_intercept else 0.0
        else:
            self.coef_ = coef
            self.intercept_ = intercept.astype(self._dtype, copy=False) if self.fit_intercept else 0.0


def number_of_targets(source: Source) -> int:
    """m of a valued source."""
    return next(source.blocks()).y.shape[1]  # type: ignore[union-attr]  # a valued source has targets
