"""The machines that make up a support vector classifier: which rows, which sides, and their solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from separatrix.data.block import Codes, Float
from separatrix.data.folds import Keys, different_rows, kernel_keys, row_keys, stratified_folds
from separatrix.data.source import in_parallel
from separatrix.dual.duality_gap import KernelDual, SoftMargin, constant_dual, plane_objectives
from separatrix.dual.given_kernels import Columns
from separatrix.dual.kernel_matrix import Index, KernelMatrix, kept_whole
from separatrix.dual.kernels import Kernel
from separatrix.dual.machine import SupportVectorMachine
from separatrix.dual.points import Points
from separatrix.dual.small_machines import WHOLE, solve_together
from separatrix.dual.working_set import solve_dual
from separatrix.geometry.separation import separability
from separatrix.geometry.votes import class_pairs
from separatrix.models.svm.score_calibration import CALIBRATORS, Calibrator
from separatrix.result import Status

_COLUMNS = 512
_FOLDS = 5
# Single precision is too coarse to begin with below this tolerance.
_SINGLE = 1e-5
# A hard margin is a bound that no multiplier reaches; it is raised twice, and each time this many steps are enough.
_SMALL = 2000
_POWERS, _HARD_STEPS = (4, 7, 10), 4_000_000
# Rows whose values machines share: beyond, the room for all of them costs more than values that are computed twice.
_SHARED = 2048


@dataclass(frozen=True)
class Split:
    """One machine's rows, with the labels of its negative and positive side."""

    negative: Any
    positive: Any
    rows: Index
    signs: Float


@dataclass(frozen=True)
class KernelProblem:
    """Rows of positive weight with their classes, weights s (those of the classes included) and bounds C·s."""

    kernel: Kernel
    points: Points
    codes: Codes
    weights: Float
    bound: Float
    classes: NDArray[Any]
    scheme: Literal["ovo", "ovr"]
    tol: float
    memory: float
    max_steps: int | None

    @cached_property
    def splits(self) -> list[Split]:
        """One per pair of classes, the first on the positive side as in LIBSVM, or one per class; one for two classes."""
        codes, classes, every = self.codes, self.classes, np.arange(len(self.codes))
        if len(classes) == 2:
            return [Split(classes[0], classes[1], every, np.where(codes == 1, 1.0, -1.0))]
        if self.scheme == "ovr":
            return [Split("rest", label, every, np.where(codes == k, 1.0, -1.0)) for k, label in enumerate(classes)]
        order = np.argsort(codes, kind="stable")
        of_class = np.split(order, np.cumsum(np.bincount(codes, minlength=len(classes)))[:-1])
        found = []
        for k, l in class_pairs(len(classes)):  # noqa: E741  # names of the formulas
            rows = np.sort(np.concatenate([of_class[k], of_class[l]]))
            found.append(Split(classes[l], classes[k], rows, np.where(codes[rows] == k, 1.0, -1.0)))
        return found

    @cached_property
    def _matrix(self) -> KernelMatrix:
        """The kernel matrix of all rows; where it fits in memory, its values are shared by all machines."""
        return KernelMatrix(self.kernel, self.points, self.memory, self.tol >= _SINGLE)

    @cached_property
    def _shared(self) -> bool:
        """Whether machines on some of the rows read the values of all."""
        return len(self.codes) <= _SHARED and kept_whole(self.kernel, self.points, self.memory)

    def _matrix_of(self, rows: Index) -> KernelMatrix:
        if len(rows) == len(self.codes):
            return self._matrix
        if self._shared:
            return self._matrix.restricted(rows)
        return KernelMatrix(self.kernel, self.points.take(rows), self.memory, self.tol >= _SINGLE)

    def solve_all(
        self, splits: Sequence[Split] | None = None, callback: Callable[[dict[str, Any]], None] | None = None
    ) -> list[KernelDual]:
        """The machines of these splits, of all when not given; after an interrupt the rest are left unsolved."""
        splits = self.splits if splits is None else splits
        try:
            begun = self._together(splits)
        except KeyboardInterrupt:
            return [self.unsolved(split) for split in splits]
        found: list[KernelDual] = []
        for split, dual in zip(splits, begun, strict=True):
            if found and found[-1].status is Status.INTERRUPTED:
                found.append(self.unsolved(split))
            elif dual is None or dual.status is Status.MAX_ITER:
                found.append(self.solve(split, callback, None if dual is None else dual.beta))
            else:
                found.append(self._known(dual))
                if callback is not None and dual.trace and split is splits[-1]:  # all were solved at once
                    callback(dual.trace[-1])
        return found

    def _together(self, splits: Sequence[Split]) -> Sequence[KernelDual | None]:
        """The machines that are small enough to be solved whole, as far as they came; ``None`` for the others."""
        n, most = len(self.codes), max(len(split.rows) for split in splits)
        largest = self.points.take(max((split.rows for split in splits), key=len))
        if most > WHOLE or not kept_whole(self.kernel, largest, self.memory) or np.isinf(self.bound).any():
            return [None] * len(splits)
        settings: dict[str, Any] = {"tol": self.tol, "max_steps": self.max_steps}
        sides = [self.sides(split) for split in splits]
        if self._shared or most == n:
            return solve_together(self._matrix, sides, [split.rows for split in splits], self.bound, **settings)
        found: list[KernelDual | None] = [None] * len(splits)

        def alone(m: int) -> None:
            rows = splits[m].rows
            matrix = KernelMatrix(self.kernel, self.points.take(rows), self.memory, False)
            (found[m],) = solve_together(matrix, sides[m : m + 1], [np.arange(len(rows))], self.bound[rows], **settings)
            matrix.release()

        try:
            in_parallel(alone, range(len(splits)))
        except KeyboardInterrupt:
            return [self.unsolved(split) if dual is None else dual for split, dual in zip(splits, found, strict=True)]
        return found

    def solve(
        self,
        split: Split,
        callback: Callable[[dict[str, Any]], None] | None = None,
        start: Float | None = None,
    ) -> KernelDual:
        """The machine of a split, by working sets."""
        bound = self.bound[split.rows]
        try:
            matrix, positive = self._matrix_of(split.rows), self.positive
        except KeyboardInterrupt:
            return self.unsolved(split)
        if np.isinf(bound).any():
            return self._hard_margin(matrix, split, callback)
        settings: dict[str, Any] = {"callback": callback, "positive": positive, "start": start}
        return self._known(solve_dual(matrix, split.signs, bound, tol=self.tol, max_steps=self.max_steps, **settings))

    def unsolved(self, split: Split) -> KernelDual:
        """The machine of a split that an interrupt left without a step: it gives every row to the heavier side."""
        return constant_dual(split.signs, self.bound[split.rows], self.kernel.positive, Status.INTERRUPTED)

    def sides(self, split: Split) -> SoftMargin:
        """What the proof of a split's machine is about."""
        return SoftMargin(split.signs, self.bound[split.rows], self.positive)

    def planes(
        self, coefficients: Float, vectors: Any, intercepts: Float, duals: list[KernelDual]
    ) -> tuple[Float, Float, list[KernelDual]]:
        """Of the linear kernel: weights of the columns, intercepts at the origin, solutions with the proofs for them."""
        centre, X = self.points.centre, self.points.X
        upper = None
        if centre is not None:  # Σβ = 0, and far from the origin the sum keeps its digits
            weights = coefficients.T @ (np.asarray(vectors, dtype=np.float64) - centre)
            rows, signs = [split.rows for split in self.splits], [split.signs for split in self.splits]
            intercepts, upper = plane_objectives(X, centre, rows, signs, self.bound, weights, intercepts)
        else:
            weights = np.asarray(coefficients.T @ vectors, dtype=np.float64)
        found = []
        for m, (dual, split) in enumerate(zip(duals, self.splits, strict=True)):
            sides = self.sides(split)
            quick = None if upper is None else dual.bounded(sides, upper[m], self.tol)
            if quick is not None:
                found.append(quick)
                continue
            part = X if len(split.rows) == X.shape[0] else X[split.rows]
            found.append(dual.published(sides, part, weights[m], float(intercepts[m]), centre, self.tol))
        return weights, intercepts, found

    def _known(self, dual: KernelDual) -> KernelDual:
        """Values that were found to be positive semi-definite up to rounding prove up to rounding."""
        if self.kernel.positive is True:
            return dual
        return replace(dual, certificate=replace(dual.certificate, kind="estimated"))

    def release(self) -> None:
        """Give back the room of the kernel values, where all are kept: no machine is to be solved any more."""
        if "_matrix" in self.__dict__:
            self._matrix.release()

    @cached_property
    def positive(self) -> bool | None:
        """Whether K is positive semi-definite: known of the kernel, or found out where all values are at hand."""
        n = len(self.codes)
        if self.kernel.positive is not None or n > _SMALL or 8.0 * n * n > self.memory:
            return self.kernel.positive
        return self._matrix.positive()

    def _hard_margin(self, matrix: KernelMatrix, split: Split, callback: Any) -> KernelDual:
        signs, rows = split.signs, split.rows
        some = self.points.take(rows[:: max(1, len(rows) // 256)])
        values = self.kernel.between(some, some)
        unit = float(values.diagonal().mean() - values.mean()) or 1.0  # the spread, wherever the origin is
        left, steps = _HARD_STEPS if self.max_steps is None else self.max_steps, 0
        for power in _POWERS:
            bound = np.full(len(rows), 10.0**power / unit)
            settings: dict[str, Any] = {"callback": callback, "positive": self.positive}
            dual = solve_dual(matrix, signs, bound, tol=self.tol, max_steps=left, **settings)
            steps += dual.steps
            left -= dual.steps if self.max_steps is not None else 0
            inside = float(np.abs(dual.beta).max()) < bound[0]
            stopped = dual.status is Status.INTERRUPTED or (
                self.max_steps is not None and dual.status is Status.MAX_ITER
            )
            if stopped or (inside and dual.status in (Status.CONVERGED, Status.ROUNDED, Status.STATIONARY)):
                return self._known(replace(dual.with_bound(matrix, self.sides(split), self.tol), steps=steps))
        raise ValueError(self._refusal(split, dual))

    def _refusal(self, split: Split, dual: KernelDual) -> str:
        value = float(split.signs @ dual.beta - 0.5 * dual.beta @ dual.scores)
        sides = f"{split.negative!s} and {split.positive!s}"
        verdict = ""
        if self.kernel.linear:
            found = separability(self.points.take(split.rows).X, split.signs)
            verdict = f" separability(X, y) finds: {found.verdict}."
        return (
            f"No hard margin between the classes {sides} was found with this kernel: it would be narrower than "
            f"{1.0 / np.sqrt(2.0 * max(value, np.finfo(np.float64).tiny)):.2g}.{verdict} Give a finite C."
        )

    def machine(self, split: Split, dual: KernelDual, rows: Index, intercept: float) -> SupportVectorMachine:
        """The fitted machine of a split; `rows` are the numbers of all rows in X."""
        sides = (split.negative, split.positive, rows[split.rows], split.signs, self.bound[split.rows])
        values = (np.abs(dual.beta), dual.scores + dual.intercept, intercept)
        return SupportVectorMachine(
            *sides, *values, dual.status, dual.certificate, self.tol, float(dual.beta @ dual.scores)
        )

    @cached_property
    def _identity(self) -> tuple[Keys, Keys]:
        """Which rows are the same point, and an order of the points that does not depend on that of the rows."""
        if isinstance(self.points, Columns):
            return kernel_keys(self.kernel.between(self.points, self.points), self.codes)
        keys = row_keys(self.points.X)
        return keys, keys

    def cross_fit(self, kind: str, random_state: Any) -> list[Calibrator]:
        """One calibrator per machine, from the scores of the rows that its folds left out; equal rows are left out together."""
        found: list[Calibrator] = []
        seed = 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
        folded, splits = [], []
        for split in self.splits:
            positive = (split.signs > 0).astype(np.intp)
            keys, order = (part[split.rows] for part in self._identity)
            folds = min(_FOLDS, int(different_rows(keys, positive, 2).min()))
            if folds < 2:
                raise ValueError(
                    "Calibration leaves rows out in turn, all copies of a row together, so every class needs at least two "
                    "different rows."
                )
            folded.append(stratified_folds(keys, positive, folds, order=order, seed=seed))
            for fold in range(folds):
                inside = np.flatnonzero(folded[-1] != fold)
                splits.append(Split(split.negative, split.positive, split.rows[inside], split.signs[inside]))
        duals = zip(splits, self.solve_all(splits), strict=True)
        for split, left_out_by in zip(self.splits, folded, strict=True):
            scores = np.empty(len(left_out_by))
            for fold in range(int(left_out_by.max()) + 1):
                part, dual = next(duals)
                if dual.status is Status.INTERRUPTED:
                    raise KeyboardInterrupt("Interrupted while the probabilities were calibrated; nothing is kept.")
                outside, used = np.flatnonzero(left_out_by == fold), np.flatnonzero(dual.beta)
                scores[outside] = dual.intercept
                self._add(scores, outside, split.rows[outside], part.rows[used], dual.beta[used])
            positive = (split.signs > 0).astype(np.intp)
            found.append(CALIBRATORS[kind].fitted(scores, positive, self.weights[split.rows]))
        return found

    def _add(self, scores: Float, at: Index, rows: Index, support: Index, beta: Float) -> None:
        """scores[at] += K[rows, support]·β."""
        if self._shared and (values := self._matrix.values) is not None:
            scores[at] += values[np.ix_(rows, support)] @ beta
            return
        left = self.points.take(rows)
        for start in range(0, len(support), _COLUMNS):
            part = slice(start, start + _COLUMNS)
            scores[at] += self.kernel.between(left, self.points.take(support[part])) @ beta[part]

    def __iter__(self) -> Iterator[Split]:
        return iter(self.splits)
