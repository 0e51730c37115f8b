"""Linear support vector machines.

    min ½‖w‖² (or ‖w‖₁) + C Σ sᵢ max(0, 1 − ỹᵢ(wᵀxᵢ + b))ᵖ             p = 1 hinge, p = 2 squared hinge

More than two classes: one machine per class against the rest, or Crammer and Singer's single problem

    min ½Σ‖w_k‖² + C Σ sᵢ max_k (1 − [k = yᵢ] + f_k(xᵢ) − f_{yᵢ}(xᵢ))

The intercept is not penalised, unless `intercept_scaling` is given: the one difference from scikit-learn.

Reference: Fan et al. (2008), LIBLINEAR, JMLR 9; Crammer and Singer (2001), JMLR 2.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache, partial
from numbers import Integral, Real
from threading import Event
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.at_hand.few_rows import is_on_few_rows, pairs_cost
from separatrix.dual.at_hand.sparse_machines import stepped, swept
from separatrix.dual.centred_rows import CentredRows
from separatrix.dual.crammer_singer import CrammerSinger
from separatrix.dual.interior_batch import is_looped
from separatrix.dual.linear_machine import LinearMachine, near_optima, try_sweeps
from separatrix.dual.linear_search import DualMachine, LinearDual
from separatrix.dual.record import ProvenPoint
from separatrix.lazy import compiled_pays, compiled_pays_by_now
from separatrix.models.base import FitCall
from separatrix.models.class_weights import ClassWeight
from separatrix.models.linear_rule import LinearRule
from separatrix.models.margin.linear_classifier import LinearClassifier
from separatrix.models.memory_rows import MemoryRows, memory_rows
from separatrix.models.progress import Progress
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.models.sparse_coefficients import SparseCoefficients
from separatrix.models.stopwatch import Stopwatch
from separatrix.models.svm.machines import joined_fit
from separatrix.solvers.choose import choose_svm, few_rows, svm_costs

# What few rows are solved to; entries that are swept in less time than it takes to prove a point.
_FINE, _SMALL = 1e-10, 200_000
# What products in single precision move a score by, with a margin; rows whose lengths are looked at.
_MOVED, _SOME_ROWS = 7e-7, 16
# Nanoseconds of a sweep for every entry and row; sweeps that are tried whatever other methods take.
_AN_ENTRY, _A_ROW, _SOME_SWEEPS = 1.0, 8.0, 20
# Nanoseconds of interior points of a machine below which they are done by the time sweeps are proven.
_WORTH_SWEEPS = 1e6
# The share of what other methods take that compiled sweeps save.
_SAVED = 0.5
# How much of ‖x‖² may stand against the ridge of the dual where sparse rows have few columns in common.
_APART = 100.0


class LinearSVC(SparseCoefficients, LinearRule):
    """Linear support vector classification, with the proof of its optimum.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        "l1" goes with the squared hinge.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    dual : bool or "auto", default="auto"
        Whether the dual is solved, row by row, or the primal by Newton's method; "auto" is
        `separatrix.solvers.choose.choose_svm`. Few rows are solved to the last digits in any case.
    tol : float, default=1e-4
        The fit stops when the proven gap to the optimum is at most `tol` times the objective.
    C : float, default=1.0
        Price of slack.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
    fit_intercept : bool, default=True
    intercept_scaling : float, optional
        The intercept is penalised as the weight of a column of this value, as in scikit-learn (where 1 is the default). By
        default it is not penalised.
    class_weight : dict or "balanced", optional
        Factors of C.
    verbose : int, default=0
        Positive: report every sweep.
    random_state : int, RandomState or None, default=None
        Order in which rows are visited.
    max_iter : int, default=1000
        Limit on sweeps or steps.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
        The largest number of sweeps or steps of a machine.
    fit_ : Fit
        Why the fit ended, and the proof: the sum of the gaps of the machines.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC(loss="hinge").fit(X, y)
    >>> model.fit_.certificate.relative_gap <= 1e-4
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither"), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        penalty: Literal["l2", "l1"] = "l2",
        loss: Literal["squared_hinge", "hinge"] = "squared_hinge",
        *,
        dual: bool | Literal["auto"] = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: Literal["ovr", "crammer_singer"] = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: ClassWeight = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.penalty == "l1" and (self.loss == "hinge" or self.multi_class == "crammer_singer"):
            raise ValueError("penalty='l1' goes with loss='squared_hinge' and multi_class='ovr' only.")

    def _label(self, source: Source) -> Source:
        return source if self._way(source) == "primal" else super()._label(source)

    def _solve(self, source: Source, call: FitCall) -> None:
        way = self._way(source)
        if way == "primal":
            self._fit_primal(source)
            return
        if len(self.classes_) == 1:
            self.n_iter_ = 0
            self._constant(source, call.watch)
            return
        if way in ("dual", "conjugate") and self.dual == "auto" and self.multi_class == "ovr":
            way = _without_numba(source.n_rows, source.n_features, self.loss, source.entries) or way
        rows = memory_rows(source, self.class_weight)
        machines = self._machines(rows, source)
        if way == "conjugate" and _few_sweeps(machines[0]):
            way = "dual"
        progress = Progress(type(self).__name__, int(self.verbose))
        self._solve_dual(machines, call.watch, progress, way)
        progress.close()
        self._place_classes(source)

    def _warn(self) -> None:
        self._warn_if_short()

    def _way(self, source: Source) -> str:
        """One of `choose_svm`'s, or what `dual` asks for."""
        if self.multi_class == "crammer_singer":
            return "dual"
        if self.penalty == "l1":
            return "primal"
        shape = (source.n_rows, source.n_features)
        best = choose_svm(*shape, self.loss, entries=source.entries, device=source.device is not None)
        if self.dual == "auto" or best == "interior" or few_rows(*shape, source.entries):
            return best
        return "dual" if self.dual else "primal"

    @property
    def _scaling(self) -> float | None:
        return self.intercept_scaling if self.fit_intercept else 0.0

    def _fit_primal(self, source: Source) -> None:
        model = _Primal(
            self.loss,
            self.penalty,
            C=self.C,
            fit_intercept=self.fit_intercept,
            class_weight=self.class_weight,
            tol=self.tol,
            max_iter=self.max_iter,
            verbose=self.verbose,
        )
        model.scaling = self._scaling
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # given below, in this model's name
            model.fit(source)
        self.classes_, self.coef_, self.intercept_ = model.classes_, model.coef_, model.intercept_
        self._places = model._places
        self.n_iter_, self.fit_ = int(model.n_iter_.max()), model.fit_

    def _seeds(self, count: int) -> Any:
        return check_random_state(self.random_state).randint(2**31 - 1, size=count)

    def _machines(self, rows: MemoryRows, source: Source) -> Sequence[DualMachine]:
        """One machine, one per class against the rest, or one for all classes, on the rows from their centre."""
        price, n_classes = float(self.C) * rows.prices, len(self.classes_)
        # Last digits, and those of a loss with a kink, need products of double precision.
        single = self.loss == "squared_hinge" and not few_rows(source.n_rows, source.n_features, source.entries)
        single = single and not sp.issparse(rows.X) and _enough_in_single(rows.X, price, self.tol)
        frame = CentredRows.of(_visited(rows.X), self._scaling is None, single)
        if not np.isfinite(frame.squares.sum()):
            raise ValueError(_too_large(frame, source))
        if self.multi_class == "crammer_singer":
            return [CrammerSinger(frame, rows.codes, price, n_classes, self._scaling)]
        signs = [np.where(rows.codes == k, 1.0, -1.0) for k in ([1] if n_classes == 2 else range(n_classes))]
        power = 1 if self.loss == "hinge" else 2
        return [LinearMachine(frame, side, price, power, self._scaling) for side in signs]

    def _solve_dual(self, machines: Sequence[DualMachine], watch: Stopwatch, progress: Progress, way: str) -> None:
        """Solve the machines side by side, and publish coefficients and proofs; a single one reports its progress."""
        stop = Event()
        callback = progress if self.verbose and len(machines) == 1 else None  # one that listens hears of every sweep
        duals: list[LinearDual | None] = [None] * len(machines)
        near: dict[int, tuple[ProvenPoint, int]] = {}
        frame, pairs = machines[0].rows, [one for one in machines if isinstance(one, LinearMachine)]
        n, d = frame.X.shape
        entries = frame.X.nnz if sp.issparse(frame.X) else None
        fine = few_rows(n, d, entries)
        seeds = cache(partial(self._seeds, len(machines)))
        cost = len(pairs) * svm_costs(n, d, self.loss, entries).get(way, 0.0)
        # Few dense rows are done by then, and without compiled code, unless sweeps settle them at once.
        slow = sp.issparse(frame.X) or (way == "interior" and not fine and not is_looped(n, d))
        few = bool(pairs) and callback is None and is_on_few_rows(pairs[0])
        swift = pairs and callback is None and sp.issparse(frame.X) and frame.X.nnz <= _SMALL
        if swift and compiled_pays_by_now(_SAVED * 1e-9 * cost):
            goal = min(self.tol, _FINE) if fine else self.tol
            if way == "conjugate":
                duals[:] = stepped(pairs, goal, int(self.max_iter), stop)
            elif way == "dual" or pairs[0].power == 1 or _few_sweeps(pairs[0]):
                most = int(self.max_iter)
                if few:
                    most = _sweeps_worth(pairs_cost(n), n, frame.X.nnz, most)
                elif way != "dual":
                    most = _sweeps_worth(cost / len(pairs), n, frame.X.nnz, most)
                duals[:] = swept(pairs, goal, most, seeds(), stop)
        elif (
            pairs
            and way not in ("dual", "conjugate")
            and frame.gram is None
            and compiled_pays(1e-9 * cost)
            and (slow or (way == "interior" and cost > _WORTH_SWEEPS * len(pairs) and pairs[0].has_cheap_slack))
        ):
            settings = (min(self.tol, _FINE) if fine else self.tol, int(self.max_iter))
            duals[0] = pairs[0].try_sweeps(*settings, int(seeds()[0]), stop)
            if duals[0] is not None and len(pairs) > 1 and not stop.is_set():  # so they may be enough for the others
                duals[1:] = try_sweeps(pairs[1:], *settings, seeds()[1:], stop)
        elif len(pairs) > 1 and way == "dual" and frame.X.size <= _SMALL:
            duals[:] = try_sweeps(pairs, self.tol, int(self.max_iter), seeds(), stop)
        rest = [at for at, dual in enumerate(duals) if dual is None]
        if rest and pairs and (few or way in ("newton", "interior", "conjugate") or frame.gram is not None):
            asked, alone = (self.tol, int(self.max_iter), stop), way == "dual" and frame.gram is None
            left = [pairs[at] for at in rest]
            optima = near_optima(left, *asked, fine=fine, conjugate=way == "conjugate", only_pairs=alone)
            near = dict(zip(rest, optima, strict=False))

        def solve(at: int) -> None:
            seed = at if at in near else int(seeds()[at])  # hardly ever needed, and dear to draw
            settings = (self.tol, int(self.max_iter), seed, callback)
            duals[at] = machines[at].solve(
                *settings, direct=way not in ("dual", "conjugate"), stop=stop, near=near.get(at)
            )

        try:
            if near:  # there is hardly more to do than to prove them
                for at in rest:
                    solve(at)
            elif rest:
                in_parallel(solve, rest, stop)
        except KeyboardInterrupt:  # of those not begun there is the proof for zero
            for at in range(len(machines)):
                if duals[at] is None:
                    solve(at)
        found = [dual for dual in duals if dual is not None]
        self.coef_ = np.concatenate([np.atleast_2d(dual.w) for dual in found])
        self.intercept_ = np.concatenate([np.atleast_1d(dual.b) for dual in found])
        self.n_iter_ = max(max(dual.sweeps for dual in found), 1)
        passes, sweeps = sum(dual.passes for dual in found), sum(dual.sweeps for dual in found)
        self.fit_ = joined_fit(watch, found, passes, sweeps)


class _Primal(LinearClassifier):
    """The same machine in the primal, with this model's intercept."""

    scaling: float | None = None

    def _intercept_scaling(self) -> float | None:
        return self.scaling


def _without_numba(n_rows: int | None, n_features: int, loss: str, entries: int | None) -> str | None:
    """The method without compiled loops, as long as these would save less than it takes to have them."""
    costs = {} if n_rows is None else svm_costs(n_rows, n_features, loss, entries)
    plain = "interior" if loss == "hinge" else "newton"
    return plain if plain in costs and not compiled_pays_by_now(1e-9 * costs[plain]) else None


def _sweeps_worth(nanoseconds: float, n_rows: int, entries: int, max_iter: int) -> int:
    """As many sweeps as another method takes time for, or some."""
    return min(max_iter, max(_SOME_SWEEPS, int(nanoseconds / (_AN_ENTRY * entries + _A_ROW * n_rows))))


def _enough_in_single(X: Any, price: Float, tol: float) -> bool:
    """Whether products in single precision are likely to prove enough, by the lengths of some rows.

    They move scores by δ of a margin. That costs Cδ² a row, against ½‖w‖², which is at least of the size of 1/2‖x‖².
    """
    some = X[:: max(1, len(X) // _SOME_ROWS)].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(2.0 * _MOVED**2 * float(price.mean()) * float(np.square(some).sum(axis=1).mean()) <= tol)


def _few_sweeps(machine: DualMachine) -> bool:
    """Whether the coordinates of the squared hinge's dual hardly depend on each other.

    They do where its ridge 1/2C outweighs ‖x‖², and where rows have few columns in common, more of ‖x‖² may stand against it.
    """
    n, d = machine.rows.X.shape
    most = _APART if 4 * d >= n else 1.0
    return bool(2.0 * (machine.price @ machine.rows.squares) <= most * n)


def _too_large(frame: CentredRows, source: Source) -> str:
    """Which column is the largest."""
    X = abs(frame.X)
    size = np.asarray(X.max(axis=0).toarray()).ravel() if sp.issparse(X) else X.max(axis=0)
    j = int(np.argmax(size))
    name = str(j) if source.feature_names is None else repr(str(source.feature_names[j]))
    return (
        f"Values in column {name} of X are finite but so large, up to {float(size[j]):.2g}, that their squares overflow; "
        "divide it by a power of ten first."
    )


def _visited(X: Any) -> Any:
    """Rows as the compiled loops read them: floats, in rows. Copied only where they are not so."""
    if sp.issparse(X):
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
