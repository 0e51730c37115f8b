"""What stochastic gradient descent and the passive-aggressive rule share: machines, seeds, rows that are held out."""

from __future__ import annotations

from copy import deepcopy
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_random_state

from separatrix.data import Source
from separatrix.data.block import Codes, Float
from separatrix.data.source import in_parallel
from separatrix.models.base import FitCall, OptionalArray
from separatrix.models.checkpoint import Checkpoint
from separatrix.models.class_weights import class_counts, class_factors
from separatrix.models.counted_classes import check_class_weight
from separatrix.models.perceptron.online_rule import OnlineRule
from separatrix.models.stopwatch import Stopwatch
from separatrix.online.stochastic import (
    StepRule,
    StochasticMachine,
    correct_share,
    distance,
)
from separatrix.result import Certificate, Status

_MOST = np.iinfo(np.int32).max
# The intercept's steps on sparse rows, as in scikit-learn.
_SPARSE_DECAY = 0.01
# Stored values up to which a second thread is not worth waking.
_ALONE = 10_000


class StochasticRule(OnlineRule):
    """What stochastic gradient descent and the passive-aggressive rule share."""

    n_iter_: int
    t_: float
    _machines: list[StochasticMachine]
    _keeps_single = True
    _of_some_fits: ClassVar[tuple[str, ...]] = (
        *("standard_coef_", "standard_intercept_", "average_coef_", "average_intercept_"),
    )

    # Parameters that both have.
    fit_intercept: bool
    max_iter: int
    tol: float | None
    validation_fraction: float
    n_iter_no_change: int
    shuffle: bool
    verbose: int
    n_jobs: int | None
    random_state: Any
    average: bool | int

    def fit(  # type: ignore[override]  # in scikit-learn's order of arguments
        self,
        X: Any,
        y: OptionalArray = None,
        coef_init: OptionalArray = None,
        intercept_init: OptionalArray = None,
        sample_weight: OptionalArray = None,
        *,
        checkpoint: Checkpoint = None,
    ) -> Self:
        """Visit the rows until the loss of an epoch no longer falls, or to the limit.

        Parameters
        ----------
        coef_init, intercept_init : array-like of the shapes of ``coef_`` and ``intercept_``, optional
            Where to start; zero by default.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, checkpoint, coef_init=coef_init, intercept_init=intercept_init)

    def _steps(self, decay: float, max_iter: int) -> StepRule:
        raise NotImplementedError  # each of the two has its own

    def _solve(self, source: Source, call: FitCall) -> None:
        if len(self.classes_) == 1:
            self._machines, self.t_, self.n_iter_ = [], 1.0, 0
            self._constant(source, call.watch)
            return
        coef, intercept, before = call.options["coef_init"], call.options["intercept_init"], call.before
        if before is not None and before[1].shape[1] == source.n_features and np.array_equal(before[0], self.classes_):
            coef, intercept = before[1] if coef is None else coef, before[2] if intercept is None else intercept
        factors = class_factors(self.class_weight, self.classes_, class_counts(source))
        self._machines, self.t_ = self._begun(source.n_features, factors, coef, intercept), 1.0
        self._learn(source, call.watch, int(self.max_iter))
        self._place_classes(source)

    def _begun(self, width: int, factors: Float | None, coef: Any, intercept: Any) -> list[StochasticMachine]:
        codes = [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))
        start = _given("coef_init", coef, (len(codes), width))
        constants = _given("intercept_init", intercept, (len(codes),))
        steps = np.ones((len(codes), 2))
        if factors is not None:
            steps[:, 1] = factors[codes]
            steps[:, 0] = factors[0] if len(self.classes_) == 2 else 1.0
        size = width if self.average else 0
        return [
            StochasticMachine(code, step, w.copy(), float(b), np.zeros(size), 0.0)
            for code, step, w, b in zip(codes, steps, start, constants, strict=True)
        ]

    def _add_rows(self, call: FitCall) -> None:
        self._refuse_in_parts()
        first = not hasattr(self, "fit_")
        known = self._known_classes(call.options["classes"], first)
        source = self._labelled(call.X, call.y, call.sample_weight, known, call.watch, reset=first)
        if first:
            check_class_weight(self.class_weight, known)
            self.classes_ = known
            factors = class_factors(self.class_weight, known, np.ones(len(known)))
            self._machines, self.t_ = self._begun(source.n_features, factors, None, None), 1.0
        else:
            self._machines = deepcopy(self._machines)  # those of the model so far stay as they are, if this is refused
        self._learn(source, call.watch, 1, in_parts=True)

    def _learn(self, source: Source, watch: Stopwatch, max_iter: int, *, in_parts: bool = False) -> None:
        source.refuse_non_finite()
        blocks = list(source.blocks())
        codes = np.concatenate([block.codes for block in blocks])
        weights = np.concatenate([block.row_weights for block in blocks]).astype(np.float64)
        X, sparse = source.matrix(), False
        if sp.issparse(X):
            X, sparse = sp.csr_array(X), True
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        empty = np.zeros(0, dtype=np.int32)
        flat = (X.data, X.indices, X.indptr) if sparse else (np.ascontiguousarray(X).ravel(), empty, empty)
        rows, rule = (*flat, codes, weights), self._steps(_SPARSE_DECAY if sparse else 1.0, max_iter)
        seeds, held = self._draws(codes, weights)
        learned, stop = np.flatnonzero(~held), Event()

        def one(machine: StochasticMachine, seed: int) -> None:
            signs, score = np.where(codes == machine.code, 1.0, -1.0), None
            if self.early_stopping:
                outside = np.flatnonzero(held)
                these = (X[outside], signs[outside], weights[outside])
                score = lambda w, b: correct_share(*these, w, b)  # noqa: E731  # of these rows
            machine.learn(rows, learned, rule, seed, self.t_, score, stop)

        status = Status.LEVEL
        try:
            jobs = list(zip(self._machines, seeds, strict=True))
            if self.n_jobs is None and len(jobs) > 1 and len(flat[0]) > _ALONE:  # a machine's steps are its own
                in_parallel(lambda job: one(*job), jobs, stop)
            elif len(jobs) == 1 or self.n_jobs in (None, 1):
                for machine, seed in jobs:
                    one(machine, seed)
            else:
                Parallel(n_jobs=self.n_jobs, require="sharedmem")(delayed(one)(machine, seed) for machine, seed in jobs)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        self.n_iter_ = max(machine.epochs for machine in self._machines)
        self.t_ += self.n_iter_ * len(codes)
        mean = 0 < rule.average <= self.t_ - 1.0
        answers = [(one.mean, one.mean_b) if mean else (one.w, one.b) for one in self._machines]
        self.coef_, self.intercept_ = np.stack([w.copy() for w, _ in answers]), np.array([b for _, b in answers])
        if rule.average:
            self.standard_coef_ = np.stack([one.w.copy() for one in self._machines])
            self.standard_intercept_ = np.array([one.b for one in self._machines])
            self.average_coef_ = np.stack([one.mean.copy() for one in self._machines])
            self.average_intercept_ = np.array([one.mean_b for one in self._machines])
        if status is Status.LEVEL and not all(machine.stopped for machine in self._machines) and not in_parts:
            status = Status.MAX_ITER
        proofs = [
            distance(X, np.where(codes == m.code, 1.0, -1.0), weights * m.factors[(codes == m.code) * 1], w, b, rule)
            for m, (w, b) in zip(self._machines, answers, strict=True)
        ]
        self.fit_ = watch.fit(status, source.passes, "", Certificate.together(proofs), self.n_iter_)

    def _draws(self, codes: Codes, weights: Float) -> tuple[list[int], NDArray[np.bool_]]:
        """A seed of every machine's orders, and which rows are held out: drawn as scikit-learn draws them."""
        random, held = check_random_state(self.random_state), np.zeros(len(codes), dtype=np.bool_)

        def hold_out() -> None:
            if self.early_stopping:
                cut = StratifiedShuffleSplit(test_size=self.validation_fraction, random_state=self.random_state)
                held[next(cut.split(np.zeros((len(codes), 1)), codes))[1]] = True
                if not weights[held].any():
                    raise ValueError(
                        "The sample weights for validation set are all zero, consider using a different random state."
                    )

        if len(self._machines) == 1:
            random.randint(1, _MOST)
            hold_out()
            return [int(random.randint(_MOST))], held
        hold_out()
        seeds = []
        for seed in random.randint(_MOST, size=len(self._machines)):
            own = check_random_state(int(seed))
            own.randint(1, _MOST)
            seeds.append(int(own.randint(_MOST)))
        return seeds, held

    def _warn(self) -> None:
        # Without a tolerance the number of epochs is what was asked for.
        if self.tol is not None or self.fit_.status is Status.INTERRUPTED:
            self._warn_if_short(also=self.n_iter_ == self.max_iter)


def _given(name: str, value: Any, shape: tuple[int, ...]) -> Float:
    """What to start from, in its shape; zeros when nothing is given."""
    if value is None:
        return np.zeros(shape)
    start = np.array(value, dtype=np.float64)
    if start.size != np.prod(shape) or (shape[0] > 1 and start.shape != shape):
        raise ValueError(f"Provided {name} does not match dataset: it has shape {start.shape} and not {shape}.")
    return start.reshape(shape)
