"""The machines that make up a support vector classifier: which rows, which sides, and their solutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from separatrix.data.block import Codes, Float
from separatrix.data.folds import Keys, different_rows, grouped_folds, kernel_keys, row_keys, stratified_folds
from separatrix.data.source import in_parallel
from separatrix.dual.duality_gap import KernelDual, constant_dual, dot_and_error, plane_objectives, sparse_objectives
from separatrix.dual.given_kernels import Columns
from separatrix.dual.kernel_matrix import Index, KernelMatrix, kept_whole, worth_filling
from separatrix.dual.kernels import Kernel
from separatrix.dual.many_machines import KernelDuals, Splits
from separatrix.dual.points import Points
from separatrix.dual.small_machines import WHOLE, solve_together
from separatrix.dual.working_set import solve_dual
from separatrix.geometry.separation import separability
from separatrix.geometry.votes import class_pairs
from separatrix.models.svm.machines import machines_of_classes
from separatrix.models.svm.score_calibration import CALIBRATORS, Calibrator
from separatrix.result import Status

_COLUMNS = 512
# Entries of rows that stay in cache from their copy to their product, and the columns that are copied at least.
_ENTRIES, _WIDTH = 1 << 16, 64
_FOLDS = 5
# Single precision is too coarse to begin with below this tolerance.
_SINGLE = 1e-5
# A hard margin is a bound that no multiplier reaches; it is raised twice, and each time this many steps are enough.
_SMALL = 2000
_POWERS, _HARD_STEPS = (4, 7, 10), 4_000_000
# Rows whose values machines share in any case: beyond, the room for a value costs as much as products of so many columns. A
# stored entry of sparse rows counts for so many of them.
_SHARED, _ROOM, _STORED = 2048, 180.0, 6.0


def share_values(kernel: Kernel, points: Points, memory: float, codes: Codes, scheme: str) -> bool:
    """Whether machines of pairs of classes read the same values, those of all rows, as far as these are kept at once.

    Machines that compute their own values have those within a class K − 1 times, which is (K − 2)Σ n_k² more than all.
    """
    n, X = len(points), points.X
    if n <= _SHARED or scheme != "ovo":
        return n <= _SHARED and kept_whole(kernel, points, memory)
    counts = np.bincount(codes).astype(np.float64)
    again = max(0, len(counts) - 2) * float(counts @ counts)
    filled = not points.sparse or (kernel.single and worth_filling(points))
    columns = float(X.shape[1]) if filled else _STORED * X.nnz / n
    return again * columns > _ROOM * n * n and kept_whole(kernel, points, memory)


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
    device: str | None
    """Where the rows came from, if they lie on a device."""

    one_price: ClassVar[bool] = True
    """Whether the bound of a row is the same in every machine."""

    @cached_property
    def splits(self) -> Splits:
        """One per pair of classes, the first on the positive side as in LIBSVM, or one per class; one for two classes."""
        codes, n_classes, n = self.codes, len(self.classes), len(self.codes)
        labels = list(self.classes)
        if n_classes == 2:
            return Splits(np.array([0, n]), np.arange(n), np.where(codes == 1, 1.0, -1.0), labels[:1], labels[1:])
        if self.scheme == "ovr":
            rows, signs = np.tile(np.arange(n), n_classes), np.where(codes == np.arange(n_classes)[:, None], 1.0, -1.0)
            return Splits(n * np.arange(n_classes + 1), rows, signs.ravel(), ["rest"] * n_classes, labels)
        first, second = np.array(class_pairs(n_classes)).T
        # Every row is in the machines of its class: in their order, and within a machine in that of the rows.
        machine = machines_of_classes(n_classes)[codes].ravel()
        order = np.argsort(machine, kind="stable")
        rows = order // (n_classes - 1)
        starts = np.concatenate([[0], np.cumsum(np.bincount(machine, minlength=len(first)))])
        signs = np.where(codes[rows] == first[machine[order]], 1.0, -1.0)
        return Splits(starts, rows, signs, [labels[l] for l in second], [labels[k] for k in first])  # noqa: E741  # formulas

    @cached_property
    def _matrix(self) -> KernelMatrix:
        """The kernel matrix of all rows; where it fits in memory, its values are shared by all machines."""
        return self._matrix_at(self.points)

    @cached_property
    def _shared(self) -> bool:
        """Whether machines on some of the rows read the values of all."""
        return share_values(self.kernel, self.points, self.memory, self.codes, self.scheme)

    def _matrix_of(self, rows: Index) -> KernelMatrix:
        if len(rows) == len(self.codes):
            return self._matrix
        if self._shared:
            return self._matrix.restricted(rows)
        return self._matrix_at(self.points.take(rows))

    def _matrix_at(self, points: Points) -> KernelMatrix:
        if self.device is None:
            return KernelMatrix(self.kernel, points, self.memory, self.tol >= _SINGLE)
        from separatrix.models.svm.radial_matrix import (
            kernel_matrix,
        )  # kernels bring numba

        return kernel_matrix(self.kernel, points, self.memory, self.tol >= _SINGLE, self.device)

    def solve_all(
        self, splits: Splits | None = None, callback: Callable[[dict[str, Any]], None] | None = None
    ) -> KernelDuals:
        """The machines of these splits, of all when not given; after an interrupt the rest are left unsolved."""
        splits = self.splits if splits is None else splits
        duals = KernelDuals(splits, self.bound[splits.rows], None, self.kernel.positive is True)
        interrupted = False
        try:
            duals.sure = self.positive
            self._together(duals)
        except KeyboardInterrupt:
            interrupted = True
        for m, status in enumerate(duals.statuses):
            if status is None or status is Status.MAX_ITER:
                begun = None if status is None else duals.get(m)
                duals.put(m, self.unsolved(duals, m) if interrupted else self._solve(duals, m, callback, begun))
            interrupted |= duals.statuses[m] is Status.INTERRUPTED
        last = len(splits) - 1
        if callback is not None and last not in duals.traces:  # all were solved at once
            callback(duals.trace(last)[-1])
        return duals

    def _together(self, duals: KernelDuals) -> None:
        """Solve the machines that are small enough to be solved whole, as far as they come."""
        splits, n = duals.splits, len(self.codes)
        most = int(np.diff(splits.starts).max())
        some = self.points if most == n else self.points.take(slice(0, most))
        if most > WHOLE or not kept_whole(self.kernel, some, self.memory) or np.isinf(self.bound).any():
            return
        settings: dict[str, Any] = {"tol": self.tol, "max_steps": self.max_steps}
        done = np.zeros(len(splits), dtype=np.bool_)

        def alone(m: int) -> None:
            matrix = KernelMatrix(self.kernel, self.points.take(splits.rows[splits.part(m)]), self.memory, False)
            done[m] = solve_together(matrix, duals.bound[splits.part(m)], duals, m, **settings)[0]
            matrix.release()

        try:
            if self._shared or most == n:
                done = solve_together(self._matrix, self.bound, duals, None, **settings)
            else:
                in_parallel(alone, range(len(splits)))
        finally:
            duals.settle(done, self.tol)
        if not done.all():
            raise KeyboardInterrupt

    def _solve(self, duals: KernelDuals, m: int, callback: Any, begun: KernelDual | None) -> KernelDual:
        """A machine by working sets, from where it was left."""
        part = duals.splits.part(m)
        try:
            matrix = self._matrix_of(duals.splits.rows[part])
        except KeyboardInterrupt:
            return self.unsolved(duals, m)
        if np.isinf(duals.bound[part]).any():
            return self._hard_margin(matrix, duals, m, callback)
        settings: dict[str, Any] = {"callback": callback, "positive": duals.sure}
        if begun is not None:
            settings |= {"start": begun.beta, "spent": begun.steps}
        sides = (duals.splits.signs[part], duals.bound[part])
        return solve_dual(matrix, *sides, tol=self.tol, max_steps=self.max_steps, **settings)

    def unsolved(self, duals: KernelDuals, m: int) -> KernelDual:
        """A machine that an interrupt left without a step: it gives every row to the heavier side."""
        sides = duals.sides(m)
        return constant_dual(sides.signs, sides.bound, self.kernel.positive, Status.INTERRUPTED)

    def planes(self, coefficients: Float, vectors: Any, duals: KernelDuals) -> tuple[Float, Float]:
        """Of the linear kernel: weights of the columns and intercepts at the origin; the proofs become those for them."""
        centre, X, splits = self.points.centre, self.points.X, duals.splits
        intercepts, sides = duals.intercepts, (splits.rows, splits.starts, splits.signs, self.bound)
        if not self.one_price:
            weights, upper = _combined(coefficients, vectors, centre), None
            if centre is not None:
                intercepts = np.array(
                    [dot_and_error(-w, centre, b)[0] for w, b in zip(weights, intercepts.tolist(), strict=True)]
                )
        elif centre is not None:  # Σβ = 0, and far from the origin the sum keeps its digits
            weights = _combined(coefficients, vectors, centre)
            intercepts, upper = plane_objectives(X, centre, sides, weights, intercepts)
        else:
            weights = _combined(coefficients, vectors, centre)
            upper = sparse_objectives(X, sides, weights, intercepts)
        for m in range(len(splits)) if upper is None else duals.bounded(upper, self.tol):
            rows = splits.rows[splits.part(m)]
            part = X if len(rows) == X.shape[0] else X[rows]
            rule = (weights[m], float(intercepts[m]), centre, self.tol)
            duals.put(m, duals.get(m).published(duals.sides(m), part, *rule))
        return weights, intercepts

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

    def _hard_margin(self, matrix: KernelMatrix, duals: KernelDuals, m: int, callback: Any) -> KernelDual:
        part = duals.splits.part(m)
        signs, rows = duals.splits.signs[part], duals.splits.rows[part]
        some = self.points.take(rows[:: max(1, len(rows) // 256)])
        values = self.kernel.between(some, some)
        unit = float(values.diagonal().mean() - values.mean()) or 1.0  # the spread, wherever the origin is
        left, steps = _HARD_STEPS if self.max_steps is None else self.max_steps, 0
        for power in _POWERS:
            bound = np.full(len(rows), 10.0**power / unit)
            settings: dict[str, Any] = {"callback": callback, "positive": duals.sure}
            dual = solve_dual(matrix, signs, bound, tol=self.tol, max_steps=left, **settings)
            steps += dual.steps
            left -= dual.steps if self.max_steps is not None else 0
            inside = float(np.abs(dual.beta).max()) < bound[0]
            stopped = dual.status is Status.INTERRUPTED or (
                self.max_steps is not None and dual.status is Status.MAX_ITER
            )
            if stopped or (inside and dual.status in (Status.CONVERGED, Status.ROUNDED, Status.STATIONARY)):
                return replace(dual.with_bound(matrix, duals.sides(m), self.tol), steps=steps)
        raise ValueError(self._refusal(duals.splits, m, dual))

    def _refusal(self, splits: Splits, m: int, dual: KernelDual) -> str:
        signs, rows = splits.signs[splits.part(m)], splits.rows[splits.part(m)]
        value = float(signs @ dual.beta - 0.5 * dual.beta @ dual.scores)
        sides = f"{splits.negative[m]!s} and {splits.positive[m]!s}"
        verdict = ""
        if self.kernel.linear:
            found = separability(self.points.take(rows).X, signs)
            verdict = f" separability(X, y) finds: {found.verdict}."
        return (
            f"No hard margin between the classes {sides} was found with this kernel: it would be narrower than "
            f"{1.0 / np.sqrt(2.0 * max(value, np.finfo(np.float64).tiny)):.2g}.{verdict} Give a finite C."
        )

    @cached_property
    def _identity(self) -> tuple[Keys, Keys]:
        """Which rows are the same point, and an order of the points that does not depend on that of the rows."""
        if isinstance(self.points, Columns):
            return kernel_keys(self.kernel.between(self.points, self.points), self.codes)
        keys = row_keys(self.points.X)
        return keys, keys

    def cross_fit(self, kind: str, random_state: Any, groups: Codes | None = None) -> list[Calibrator]:
        """One calibrator per machine, from the scores of the rows that its folds left out; equal rows are left out together.

        Rows of a group are, where there are groups.
        """
        seed = 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
        own, folded, parts = self.splits, [], []
        for m in range(len(own)):
            part = own.part(m)
            rows, positive = own.rows[part], (own.signs[part] > 0).astype(np.intp)
            folded.append(
                self._left_out_by(rows, positive, seed) if groups is None else _by_group(groups[rows], positive, seed)
            )
            folds = int(folded[-1].max()) + 1
            parts += [(m, part.start + np.flatnonzero(folded[-1] != fold)) for fold in range(folds)]
        inside, labels = np.concatenate([where for _, where in parts]), [m for m, _ in parts]
        starts = np.cumsum([0, *(len(where) for _, where in parts)])
        duals = self.solve_all(Splits(starts, own.rows[inside], own.signs[inside], labels, labels))
        if Status.INTERRUPTED in duals.statuses:
            raise KeyboardInterrupt("Interrupted while the probabilities were calibrated; nothing is kept.")
        found: list[Calibrator] = []
        fitted = iter(range(len(parts)))
        for m, left_out_by in enumerate(folded):
            rows, scores = own.rows[own.part(m)], np.empty(len(left_out_by))
            for fold in range(int(left_out_by.max()) + 1):
                part = duals.splits.part(k := next(fitted))
                beta, of = duals.beta[part], duals.splits.rows[part]
                outside, used = np.flatnonzero(left_out_by == fold), np.flatnonzero(beta)
                scores[outside] = duals.intercepts[k]
                self._add(scores, outside, rows[outside], of[used], beta[used])
            positive = (own.signs[own.part(m)] > 0).astype(np.intp)
            found.append(CALIBRATORS[kind].fitted(scores, positive, self.weights[rows]))
        return found

    def _left_out_by(self, rows: Index, positive: Codes, seed: int) -> Codes:
        keys, order = (those[rows] for those in self._identity)
        folds = min(_FOLDS, int(different_rows(keys, positive, 2).min()))
        if folds < 2:
            raise ValueError(
                "Calibration leaves rows out in turn, all copies of a row together, so every class needs at least two "
                "different rows."
            )
        return stratified_folds(keys, positive, folds, order=order, seed=seed)

    def _add(self, scores: Float, at: Index, rows: Index, support: Index, beta: Float) -> None:
        """scores[at] += K[rows, support]·β."""
        if self._shared and (values := self._matrix.values) is not None:
            scores[at] += values[np.ix_(rows, support)] @ beta
            return
        left = self.points.take(rows)
        for start in range(0, len(support), _COLUMNS):
            part = slice(start, start + _COLUMNS)
            scores[at] += self.kernel.between(left, self.points.take(support[part])) @ beta[part]


def _combined(coefficients: Float, vectors: Any, centre: Float | None) -> Float:
    """(machines, d) Σ β(x − c), dense rows being copied a few columns at a time: they stay in cache."""
    if centre is None:
        return np.ascontiguousarray(coefficients.T @ vectors, dtype=np.float64)
    weights, width = np.empty((coefficients.shape[1], vectors.shape[1])), max(_WIDTH, _ENTRIES // max(1, len(vectors)))
    for start in range(0, vectors.shape[1], width):
        cut = slice(start, start + width)
        weights[:, cut] = coefficients.T @ np.subtract(vectors[:, cut], centre[cut], dtype=np.float64)
    return weights


def _by_group(groups: Codes, positive: Codes, seed: int) -> Codes:
    folds = grouped_folds(groups, positive, _FOLDS, seed)
    if folds is None:
        raise ValueError("Calibration leaves groups out in turn, so every class needs rows of at least two groups.")
    return folds
