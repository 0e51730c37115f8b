"""Support vector machines of which the share of margin errors is given.

    min ½‖w‖² − νSρ + Σ sᵢξᵢ,   ỹᵢ(wᵀφ(xᵢ) + b) ≥ ρ − ξᵢ,  ξ ≥ 0,  ρ ≥ 0          S = Σ sᵢ

At most the share ν of the weight lies inside the margin, and the support vectors have at least that share. Divided by ρ it is
the machine of `SVC` with C = 1/ρ, and that is what is published.

Reference: Schölkopf, Smola, Williamson, Bartlett (2000), New support vector algorithms, Neural Computation 12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from separatrix.data.block import Codes, Float
from separatrix.dual.duality_gap import KernelDual
from separatrix.dual.kernel_matrix import Index, KernelMatrix
from separatrix.dual.kernels import Kernel
from separatrix.dual.many_machines import KernelDuals, Splits
from separatrix.dual.points import Points
from separatrix.models.class_weights import ClassWeight
from separatrix.models.svm.kernel_choice import KernelName, check_nu, check_parameters
from separatrix.models.svm.kernel_problem import KernelProblem
from separatrix.models.svm.nu_machine import largest_nu, solve_nu
from separatrix.models.svm.svc import SVC

# ν and the largest that is feasible are shares of sums of weights.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class NuProblem(KernelProblem):
    """The machines of ν: their bounds are found with them, one price of slack for each."""

    nu: float
    one_price: ClassVar[bool] = False

    def solve_all(
        self, splits: Splits | None = None, callback: Callable[[dict[str, Any]], None] | None = None
    ) -> KernelDuals:
        """The machines of these splits; a ValueError where ν is infeasible for one of the classifier's own."""
        if splits is None:
            for m in range(len(self.splits)):
                part = self.splits.part(m)
                most = largest_nu(self.splits.signs[part], self.weights[self.splits.rows[part]])
                if self.nu > most * (1.0 + _ROUNDING):
                    sides = f"{self.splits.negative[m]!s} and {self.splits.positive[m]!s}"
                    raise ValueError(
                        f"specified nu is infeasible: between {sides} it is at most {most:.6g}, twice the share of the "
                        "weight that the lighter side has."
                    )
        return super().solve_all(splits, callback)

    def _together(self, duals: KernelDuals) -> None:
        """Each machine has a price of its own: they are solved one by one."""

    def _matrix_of(self, rows: Index) -> KernelMatrix:
        return KernelMatrix(self.kernel, self.points.take(rows), self.memory, False)

    def _solve(self, duals: KernelDuals, m: int, callback: Any, begun: KernelDual | None) -> KernelDual:
        part = duals.splits.part(m)
        order = np.argsort(-duals.splits.signs[part], kind="stable")  # the positive side first
        rows, signs = duals.splits.rows[part][order], duals.splits.signs[part][order]
        try:
            matrix = self._matrix_of(rows)
        except KeyboardInterrupt:
            return self.unsolved(duals, m)
        matrix.sharpen()
        settings: dict[str, Any] = {"tol": self.tol, "max_steps": self.max_steps, "callback": callback}
        try:
            dual, bound = solve_nu(matrix, signs, self.weights[rows], self.nu, positive=duals.sure, **settings)
        except ValueError as problem:
            sides = f"{duals.splits.negative[m]!s} and {duals.splits.positive[m]!s}"
            raise ValueError(f"nu={self.nu:g} between the classes {sides}: {problem}") from None
        finally:
            matrix.release()
        back = np.argsort(order)
        duals.bound[part] = bound[back]
        return replace(dual, beta=dual.beta[back], scores=dual.scores[back], errors=dual.errors[back])


class NuSVC(SVC):
    """Support vector classification in which the share of margin errors is chosen instead of their price.

    Takes scikit-learn's parameters and gives its attributes, and the same machines as LIBSVM: those of `SVC` with the C that
    gives each the share ν. `machines_` has them with their bounds C·s, and `fit_` the proof of their optimum: the duality gap
    of the machine of that C, which is that of ν divided by the square of ρ. The rows are held in memory.

    Where the hulls that ν leaves of two classes meet (labels at random, small ν), the optimum is w = 0 and ρ = 0: no C has that
    share, and the fit is refused with that reason. LIBSVM divides by its ρ there, which is of rounding: another ``tol`` gives
    other predictions. (The swap hands such a fit back to it.)

    Parameters
    ----------
    nu : float, default=0.5
        Bound from above on the share of the rows inside the margin, and from below on that of the support vectors; in (0, 1].
        No more than twice the share of the smaller of two classes is feasible.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, callable or Kernel, default="rbf"
        Kernel objects add and multiply. For "precomputed" X has the (n_samples, n_samples) values.
    degree : int, default=3
        Of the polynomial.
    gamma : {"scale", "auto"} or float, default="scale"
        ``"scale"`` is 1/(d·var X), ``"auto"`` 1/d.
    coef0 : float, default=0.0
        The constant of the polynomial and the sigmoid.
    shrinking : bool, default=True
        For scikit-learn's sake.
    probability : bool, default="deprecated"
        ``True`` means ``calibration="sigmoid"``.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the margin.
    cache_size : float, default=200
        Megabytes of kernel values that may be kept.
    class_weight : dict or "balanced", optional
        Factors of the sample weights. (LIBSVM's ν-machine disregards them.)
    verbose : bool or int, default=False
        Whether to write a line per round.
    max_iter : int, default=-1
        Limit on steps for each machine; −1 for none that a convergent problem reaches.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        One column per class, or one per pair of classes; for more than two classes.
    break_ties : bool, default=False
        Whether ties of the vote are broken by the scores.
    random_state : int, RandomState or None, default=None
        Another number draws other folds for the calibration.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class.
    calibration : {None, "sigmoid", "isotonic"}, default=None
        How `predict_proba` makes probabilities from scores of left-out rows.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, machines_, n_iter_
        As `SVC` has them.
    fit_ : Fit
        Why the fit ended, and the proof: the sum over the machines of the duality gaps.
    shape_fit_, fit_status_, class_weight_
        As in scikit-learn.

    Examples
    --------
    >>> import separatrix as sx
    >>> X, y = [[-2.0], [-1.0], [0.5], [-0.5], [1.0], [2.0]], [0, 0, 0, 1, 1, 1]
    >>> model = sx.NuSVC(nu=0.6, kernel="linear").fit(X, y)
    >>> model.predict([[-1.5], [1.5]]).tolist()
    [0, 1]
    >>> machine = model.machines_[0]
    >>> bool(abs(machine.alpha.sum() / machine.bound.sum() - 0.6) < 1e-9)
    True
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
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
    ) -> None:
        self.nu = nu
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

    def _check_parameters(self) -> None:
        check_nu(self)
        check_parameters(self)

    def _posed(self, kernel: Kernel, points: Points, codes: Codes, weights: Float, *settings: Any) -> KernelProblem:
        build: Callable[..., KernelProblem] = NuProblem
        return build(kernel, points, codes, weights, weights, *settings, nu=float(self.nu))
