"""Support vector machines with kernels.

    min ½‖w‖² + Σ Cᵢξᵢ,   ỹᵢ(wᵀφ(xᵢ) + b) ≥ 1 − ξᵢ,  ξ ≥ 0          f(x) = b + Σ βᵢk(x, xᵢ),   Cᵢ = C·(class weight)·sᵢ

C = ½ is the textbook's ‖w‖² + Σξ; C = ∞ is the hard margin. More than two classes: one machine per pair and a majority vote,
or one machine per class against the rest and the largest score.

Reference: Cortes and Vapnik (1995), Machine Learning 20; Schölkopf and Smola (2002), chapter 7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import assert_all_finite

from separatrix.data import Block, Source
from separatrix.data.block import Codes, Float
from separatrix.dual.given_kernels import Columns, Precomputed
from separatrix.dual.kernels import CentredLinear, Kernel
from separatrix.dual.long_rows import keep_products, long
from separatrix.dual.machine import SupportVectorMachine, expansion_scores
from separatrix.dual.many_machines import KernelDuals, SupportVectorMachines
from separatrix.dual.points import Points
from separatrix.geometry.combined_forms import pair_votes
from separatrix.models.base import FitCall, OptionalArray
from separatrix.models.checkpoint import Checkpoint
from separatrix.models.class_weights import ClassWeight
from separatrix.models.counted_classes import among_all, only_class
from separatrix.models.memory_rows import memory_rows
from separatrix.models.progress import Progress
from separatrix.models.stopwatch import Stopwatch
from separatrix.models.svm.kernel_choice import KernelName, check_parameters, check_price, choose_kernel
from separatrix.models.svm.kernel_problem import KernelProblem, share_values
from separatrix.models.svm.machine_boundaries import MachineBoundaries
from separatrix.models.svm.machines import dual_layout, pairs_among_all
from separatrix.models.svm.score_calibration import Calibrator
from separatrix.models.svm.smo_path import check_recordable, smo_path
from separatrix.result import Certificate, Status

# Values of the kernel that a thread computes before it takes further rows, and the rows that it takes at least.
_VALUES, _FEW = 1 << 22, 512
# Rows from which those of a class are put side by side: a machine then copies runs of values, not one by one.
_APART = 256


class SVC(MachineBoundaries):
    """Support vector classification with a kernel, with the proof of its optimum.

    Takes scikit-learn's parameters and gives its attributes; what it adds is in `machines_`: multipliers, slacks, margin
    vectors, outliers, margins, objectives and residuals of every machine. The rows are held in memory.

    Parameters
    ----------
    C : float, default=1.0
        Price of slack. ``inf`` is the hard margin, refused where the classes cannot be separated.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, callable or Kernel, default="rbf"
        Kernel objects add and multiply. For "precomputed" X has the (n_samples, n_samples) values.
    degree : int, default=3
        Of the polynomial.
    gamma : {"scale", "auto"} or float, default="scale"
        ``"scale"`` is 1/(d·var X), ``"auto"`` 1/d.
    coef0 : float, default=0.0
        The constant of the polynomial and the sigmoid.
    shrinking : bool, default=True
        For scikit-learn's sake: rows that cannot move are left out for a while in any case, and come back for the proof.
    probability : bool, default="deprecated"
        ``True`` means ``calibration="sigmoid"``.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the margin.
    cache_size : float, default=200
        Megabytes of kernel values that may be kept, whatever the number of rows.
    class_weight : dict or "balanced", optional
        Factors of C, as the sample weights are.
    verbose : bool or int, default=False
        Whether to write a line per round.
    max_iter : int, default=-1
        Limit on steps, of two rows each or Newton's on all that are free, for each machine; −1 for none that a convergent
        problem reaches.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        One column per class, or one per pair of classes; for more than two classes.
    break_ties : bool, default=False
        Whether ties of the vote are broken by the scores.
    random_state : int, RandomState or None, default=None
        Another number draws other folds for the calibration. Folds are drawn by the contents of the rows: neither their order
        nor their weights change them, and equal rows are left out together.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class.
    calibration : {None, "sigmoid", "isotonic"}, default=None
        How `predict_proba` makes probabilities from scores of left-out rows; they never contradict `predict`.
    record : bool, default=False
        Whether to keep the multipliers after every step of two rows in ``fit_.history``; for two classes and up to 2000 rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Rows that are support vectors, by class.
    support_vectors_ : ndarray or sparse array of shape (n_SV, n_features)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray or sparse array of shape (n_classes - 1, n_SV)
        ỹα, sparse where X was, laid out as in scikit-learn; one row per machine for ``multi_class="ovr"``.
    intercept_ : ndarray of shape (n_machines,)
    coef_ : ndarray of shape (n_machines, n_features)
        For the linear kernel alone.
    machines_ : sequence of SupportVectorMachine
        Multipliers, slacks and proofs of each machine. Classes without weight have no machines, and no rows in the attributes
        above.
    fit_ : Fit
        Why the fit ended, and the proof: the sum over the machines of the duality gaps.
    n_iter_ : ndarray of shape (n_machines,)
        Steps of two rows.
    shape_fit_, fit_status_, class_weight_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> import separatrix as sx
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    >>> model = sx.SVC(C=np.inf, gamma=1.0).fit(X, [0, 0, 1, 1])
    >>> model.predict([[0.9, 0.1], [0.1, 0.1]]).tolist()
    [1, 0]
    >>> model.machines_[0].geometric_margin > 0
    True
    """

    record: bool = False  # of machines that have no such parameter

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: KernelName = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: ClassWeight = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        calibration: Literal["sigmoid", "isotonic"] | None = None,
        record: bool = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multi_class = multi_class
        self.calibration = calibration
        self.record = record

    def fit(
        self,
        X: Any,
        y: OptionalArray = None,
        sample_weight: OptionalArray = None,
        *,
        checkpoint: Checkpoint = None,
        groups: OptionalArray = None,
    ) -> Self:
        """Fit the machines, and the curves of a calibration.

        Parameters
        ----------
        groups : array-like of shape (n_samples,), optional
            Which rows belong together: a calibration leaves them out together.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, checkpoint, groups=groups)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise, tags.input_tags.sparse = precomputed, not precomputed
        return tags

    def _check_parameters(self) -> None:
        check_price(self)
        check_parameters(self)

    def _read_rows(self, call: FitCall) -> Source:
        if isinstance(self.kernel, str) and self.kernel == "precomputed" and sp.issparse(call.X):
            raise TypeError("Sparse data was passed, but kernel values must be a dense array: give X.toarray().")
        return super()._read_rows(call)

    def _solve(self, source: Source, call: FitCall) -> None:
        if len(self.classes_) == 1:
            self._fit_one_class(source, call.watch)
            return
        problem, rows = self._problem(source, isinstance(call.X, sp.spmatrix))
        if self.record:
            check_recordable(problem)
        progress = Progress(type(self).__name__, int(self.verbose))
        duals = problem.solve_all(callback=progress)
        progress.close()
        self._unpack(problem, rows, duals)
        every = rows if len(duals.splits) == 1 else rows[duals.splits.rows]
        self.machines_: Sequence[SupportVectorMachine] = SupportVectorMachines(
            duals, every, self.intercept_, float(self.tol)
        )
        status = Status.worst({duals.status(m) for m in range(len(duals.splits))})
        calibrated = self._calibrated if status is not Status.INTERRUPTED else None
        self._calibrators = self._cross_fit(problem, rows, call, calibrated) if calibrated else []
        path = None
        if self.record:
            rule = self._weights[0] if self._kernel.linear else None, float(self.intercept_[0])
            path = smo_path(problem, duals.beta, rule, rows, None if self.max_iter < 0 else int(self.max_iter))
        problem.release()
        record = call.watch.fit(status, 0, "", duals.certificate(), int(duals.steps.sum()))
        self.fit_ = replace(
            record, passes=duals.rounds, trace=duals.trace(0) if len(duals.splits) == 1 else [], history=path
        )
        self._place_classes(source)

    def _cross_fit(self, problem: KernelProblem, rows: Codes, call: FitCall, kind: str) -> list[Calibrator]:
        groups = call.options.get("groups")
        if groups is None:
            return problem.cross_fit(kind, self.random_state)
        given = np.asarray(groups)
        if given.shape != (self.shape_fit_[0],):
            raise ValueError(f"groups has shape {given.shape}; give one for each of the {self.shape_fit_[0]} rows.")
        return problem.cross_fit(kind, self.random_state, np.unique(given, return_inverse=True)[1][rows])

    def _warn(self) -> None:
        self._warn_if_short()

    def _fit_one_class(self, source: Source, watch: Stopwatch) -> None:
        """Where a single class has weight no machine is needed."""
        source.refuse_non_finite()
        nothing = np.empty(0, dtype=np.int32)
        self.support_, self.support_vectors_ = nothing, np.empty((0, source.n_features))
        self.dual_coef_, self.intercept_, self.n_iter_ = np.empty((0, 0)), np.empty(0), nothing
        self.n_support_, self.class_weight_ = np.zeros(1, dtype=np.int32), np.ones(1)
        self.fit_status_, self.machines_, self._calibrators = 0, [], []
        proof = Certificate(0.0, 0.0, "there is one class to choose from")
        self.fit_ = watch.fit(Status.EXACT, source.passes, only_class(self.classes_[0]), proof)
        self._place_classes(source)

    n_support_: NDArray[np.int32]
    class_weight_: Float

    def _place_among(self, known: NDArray[Any]) -> None:
        super()._place_among(known)
        if self._places is not None:
            support, factors = np.zeros(len(known), dtype=np.int32), np.zeros(len(known))
            support[self._places], factors[self._places] = self.n_support_, self.class_weight_
            self.n_support_, self.class_weight_ = support, factors

    def _problem(self, source: Source, older: bool) -> tuple[KernelProblem, NDArray[np.intp]]:
        """The machines to be fitted, and which rows of X count; `older` sparse matrices go to kernel functions as such."""
        rows = memory_rows(source, self.class_weight)
        self.class_weight_ = rows.factors
        self.shape_fit_ = (len(rows.kept) if source.n_rows is None else source.n_rows, source.n_features)
        given = (self.kernel, self.degree, self.gamma, self.coef0)
        self._kernel = choose_kernel(*given, rows.X, rows.weights, older)
        stored = isinstance(self._kernel, Precomputed)
        paired = len(self.classes_) > 2 and self.multi_class == "ovo"
        if paired and not stored and len(rows.kept) > max(_APART, rows.X.shape[1]):
            rows = rows.by_class()
        if stored and self.shape_fit_[0] != self.shape_fit_[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix: X is {self.shape_fit_[0]} × {self.shape_fit_[1]}, but the "
                "values of every row with every row are needed."
            )
        if self._kernel.linear:
            self._kernel = CentredLinear()
        limit, memory = None if self.max_iter < 0 else int(self.max_iter), 1e6 * float(self.cache_size)
        with np.errstate(over="ignore", invalid="ignore"):
            points = Columns(rows.X, rows.kept) if stored else Points(rows.X)
            if not stored:
                if long(points) and share_values(self._kernel, points, memory, rows.codes, self.multi_class):
                    keep_products(self._kernel, points)
                source.check_finite(self._kernel.lengths(points))
        self._centre = points.centre
        settings = (self.classes_, self.multi_class, self.tol, memory, limit, source.device)
        return self._posed(self._kernel, points, rows.codes, rows.prices, *settings), rows.kept

    def _posed(self, kernel: Kernel, points: Points, codes: Codes, weights: Float, *settings: Any) -> KernelProblem:
        return KernelProblem(kernel, points, codes, weights, float(self.C) * weights, *settings)

    def _unpack(self, problem: KernelProblem, rows: NDArray[np.intp], duals: KernelDuals) -> None:
        """Keep the coefficients; the proofs become those of what is kept."""
        splits, given = duals.splits, np.flatnonzero(duals.beta)
        if len(splits) == 1:  # of all rows in their order
            used = given[np.argsort(problem.codes[given], kind="stable")]
            codes, self._coefficients = problem.codes[used], duals.beta[used][:, None]
        else:
            place, counts = np.zeros(len(rows), dtype=np.intp), np.zeros(len(rows), dtype=np.bool_)
            counts[splits.rows[given]] = True
            used = np.flatnonzero(counts)
            used = used[np.argsort(problem.codes[used], kind="stable")]
            place[used] = np.arange(len(used))
            codes, self._coefficients = problem.codes[used], np.zeros((len(used), len(splits)))
            self._coefficients[place[splits.rows[given]], splits.machine()[given]] = duals.beta[given]
        self.support_ = rows[used].astype(np.int32 if len(rows) < 2**31 else np.int64)
        self._support = problem.points.take(used)
        stored = not isinstance(self._kernel, Precomputed)
        self.support_vectors_ = self._support.X if stored else np.empty((0, 0))
        if not stored:
            self._support = Columns(np.empty((len(used), 0)), rows[used])
        self.n_support_ = np.bincount(codes, minlength=len(self.classes_)).astype(np.int32)
        self._intercepts, self.intercept_ = duals.intercepts, duals.intercepts
        if self._kernel.linear:
            self._weights, self.intercept_ = problem.planes(self._coefficients, self.support_vectors_, duals)
        single = len(self.classes_) == 2 or self.multi_class == "ovr"
        layout = self._coefficients.T.copy() if single else dual_layout(self._coefficients, codes, len(self.classes_))
        self.dual_coef_ = sp.csr_array(layout) if sp.issparse(self.support_vectors_) else layout
        self.n_iter_ = duals.steps.astype(np.int32)
        self.fit_status_ = int(not duals.converged)

    @property
    def coef_(self) -> Float:
        """(machines, d) weights of the columns, for the linear kernel."""
        self._check_ready()
        if not self._kernel.linear:
            raise AttributeError("coef_ is only available when using a linear kernel.")
        weights = self._weights.view()
        weights.flags.writeable = False  # as in scikit-learn: changing them would change no prediction
        return weights

    def _machine_scores(self, X: Any) -> Float:
        self._check_ready()
        if len(self._counted) == 1:
            return self._map_rows(X, lambda block: block.matvec(np.zeros((self.n_features_in_, 1))))
        if isinstance(self._kernel, Precomputed) and not isinstance(X, Source):
            if hasattr(X, "columns"):  # those of other names may be NaN, and the names are what is wrong
                self._read(X, reset=False)
            assert_all_finite(X, input_name="X")  # not all columns are read below
        if self._kernel.linear:
            return self._finite_scores(X, self._linear_machines())
        rows = X.shape[0] if isinstance(X, np.ndarray) else None
        expansion = (self._kernel, self._support, self._coefficients, self._intercepts, rows)
        return self._finite_scores(X, expansion_scores(*expansion), max(_FEW, _VALUES // max(1, len(self._support))))

    def _finite_scores(self, X: Any, scores: Callable[[Block], Float], at_once: int | None = None) -> Float:
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._map_rows(X, scores, at_once)
        if not np.isfinite(found).all():
            row = int(np.argmin(np.isfinite(found).all(axis=1)))
            raise ValueError(
                f"The kernel values of row {row} of X overflow: give it in the units of the fit, or leave it out."
            )
        return found

    def _linear_machines(self) -> Callable[[Block], Float]:
        """The scores of a block without a kernel, from the centre: far from the origin they keep their digits."""
        weights, centre = self.coef_.T, np.zeros(self.n_features_in_) if self._centre is None else self._centre

        def scores(block: Block) -> Float:
            if isinstance(block.stored_rows(), tuple):
                return block.matvec(weights) + (self._intercepts - centre @ weights)
            return (block.dense() - centre) @ weights + self._intercepts

        return scores

    def _scores(self, X: Any) -> Float:
        scores = self._machine_scores(X)
        scores = pair_votes(scores, len(self._counted)) if self._paired else scores
        return scores if self._places is None else among_all(scores, self._places, len(self.classes_), halved=False)

    def decision_function(self, X: Any) -> Float:
        self._check_ready()
        if len(self.classes_) > 2 and self.multi_class == self.decision_function_shape == "ovo":
            scores = self._machine_scores(X)
            return scores if self._places is None else pairs_among_all(scores, self._places, len(self.classes_))
        return super().decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        codes = self._codes(self._machine_scores(X))  # first: it refuses a model that is not fitted
        return self._counted[codes]
