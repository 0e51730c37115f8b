"""The record of a fit: why it stopped, what it cost, how far from the optimum it can be.

    gap ≥ F(θ) − min F,      F the objective that was minimised, θ the coefficients that are published

The gap is an upper bound, from a duality gap or from a Newton decrement (½ gᵀH⁻¹g, which for a quadratic
F is the gap itself). It is `proven` where a theorem stands behind it, else `estimated`. The residuals are the violations
of the Karush–Kuhn–Tucker conditions, each in the units of the gradient or of the constraint it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, Self

import numpy as np
from sklearn import exceptions

from separatrix.errors import Message


class Status(Enum):
    """Why a fit ended, from the best outcome to the worst. Each value is a sentence with advice where there is any."""

    EXACT = "Solved exactly, in closed form; there is nothing to tune."
    RANK_DEFICIENT = (
        "Solved exactly, but the columns are linearly dependent, so many coefficient vectors fit equally well; "
        "this is the one of minimum norm. Drop the redundant columns or add a penalty to make it unique."
    )
    PSEUDO = (
        "Solved on the subspace in which the data vary; directions without variance carry no evidence. "
        "Regularise the covariance if new rows may leave that subspace."
    )
    SEPARATES = (
        "An epoch passed without a mistake: every training row is on its side, so the classes are linearly separable."
    )
    SAMPLED = "Sampled: the chains agree with each other, and the draws are many enough for means and intervals."
    CONVERGED = "Converged: the gap of the certificate is within the requested tolerance."
    STATIONARY = (
        "The gradient is as small as was asked for. This objective is not known to be convex, so nothing bounds its "
        "distance to the optimum."
    )
    LEVEL = "The last steps changed the objective by no more than was asked for; nothing bounds its distance to the optimum."
    UNPROVEN = (
        "The gradient is as small as was asked for, but no bound on the distance to the optimum could be proven. "
        "A positive penalty of every coefficient gives a proof."
    )
    ROUNDED = (
        "The solver reached the tolerance, but its answer, rounded to the coefficients that are published, does not; the "
        "certificate says how far from the optimum they can be. Centre or standardise the columns to get closer."
    )
    MISTAKES_LEFT = (
        "Stopped with rows still on the wrong side. If the classes overlap no number of epochs helps: "
        "separability(X, y) can prove it; variant='averaged' or 'pocket' gives a steadier rule."
    )
    UNMIXED = (
        "Sampled, but the chains do not yet agree or are too short: means and intervals may be off by more than they say. "
        "Raise n_draws and n_warmup, or standardise the columns."
    )
    STALLED = (
        "Stopped because further steps brought no progress; the certificate says how far from the optimum the "
        "answer can be. Standardising the columns or a stronger penalty may bring it closer."
    )
    MAX_ITER = (
        "Stopped at the limit on iterations before the tolerance was reached; the certificate says how far from the "
        "optimum the answer can be. Raise max_iter, or raise tol to accept this gap."
    )
    DIVERGED = (
        "The steps did not settle: the objective ended above where it had been before, since the fixed rate is too large. "
        "Lower eta0, standardise the columns, or leave eta0 out."
    )
    SEPARATED = (
        "The classes can be separated, so the maximum of the likelihood is at infinity and the coefficients mean nothing. "
        "Use an L2 penalty (a finite C) or Firth's (penalty='firth')."
    )
    INTERRUPTED = (
        "Interrupted; this is the best answer so far, and the certificate says how far from the optimum it can be."
    )

    @property
    def severity(self) -> int:
        """The place in the list, from 0 for the best outcome: the one order in which statuses are compared."""
        return list(Status).index(self)

    @property
    def fell_short(self) -> bool:
        """Whether the tolerance was missed for a reason that a warning should name."""
        return self in (Status.ROUNDED, Status.STALLED, Status.MAX_ITER, Status.DIVERGED)

    @classmethod
    def worst(cls, statuses: Iterable[Status]) -> Status:
        """The most severe of several."""
        return max(statuses, key=lambda status: status.severity)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Certificate:
    """How good a fit is, at the coefficients that are published.

    Parameters
    ----------
    gap : float
        Upper bound on objective − optimum, in the units of the objective. ``inf`` when nothing can be proven.
    objective : float
        The value of the objective at the answer.
    method : str
        Where the bound comes from.
    stationarity, primal_feasibility, dual_feasibility, complementary_slackness : float
        Largest violation of each of the optimality conditions.
    kind : {"proven", "estimated"}
        Whether the bound is a theorem, with rounding counted, or an estimate.
    """

    gap: float
    objective: float
    method: str
    stationarity: float = 0.0
    primal_feasibility: float = 0.0
    dual_feasibility: float = 0.0
    complementary_slackness: float = 0.0
    kind: Literal["proven", "estimated"] = "proven"

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.generic):  # model files keep plain numbers in words, arrays as data to be checked
                object.__setattr__(self, name, value.item())

    def times(self, factor: float) -> Self:
        """That of the objective times a positive number."""
        if factor == 1.0:
            return self
        gap, objective, stationarity = factor * self.gap, factor * self.objective, factor * self.stationarity
        return replace(self, gap=gap, objective=objective, stationarity=stationarity)

    @classmethod
    def together(cls, certificates: Sequence[Self]) -> Self:
        """Of several problems as one: gaps and objectives are added, residuals are the largest, a proof needs all proven."""
        return cls(
            sum(one.gap for one in certificates),
            sum(one.objective for one in certificates),
            certificates[0].method,
            stationarity=max(one.stationarity for one in certificates),
            primal_feasibility=max(one.primal_feasibility for one in certificates),
            dual_feasibility=max(one.dual_feasibility for one in certificates),
            complementary_slackness=max(one.complementary_slackness for one in certificates),
            kind="proven" if all(one.kind == "proven" for one in certificates) else "estimated",
        )

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the objective's size (of 1 when the objective is smaller)."""
        if not math.isfinite(self.gap):
            return math.inf
        return self.gap / max(1.0, abs(self.objective))

    def __str__(self) -> str:
        if not math.isfinite(self.gap):
            return f"no bound on the distance to the optimum (objective {self.objective:.6g}; {self.method})"
        size = "at most" if self.kind == "proven" else "about"
        return f"{self.kind}, {size} {self.gap:.3g} above the optimum (objective {self.objective:.6g}; {self.method})"


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """The path of a fit, from the start to the answer: what ``record=True`` keeps as ``fit_.history``.

    Parameters
    ----------
    objective : ndarray of shape (n,)
        The objective that is published, at every point of the path. For a kernel machine that of the dual, which rises.
    coef : ndarray of shape (n, n_scores, n_features), optional
        Coefficients at every point; ``None`` for a kernel machine whose kernel is not linear.
    intercept : ndarray of shape (n, n_scores)
    dual : ndarray of shape (n, n_rows), optional
        For a kernel machine ỹα at every point.
    rows : ndarray of int of shape (n,), optional
        The row that each step was taken for, where that is one; −1 where there is none, as at the start.

    Examples
    --------
    >>> from separatrix import LogisticRegression
    >>> model = LogisticRegression(solver="irls", record=True).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> path = model.fit_.history
    >>> path.theta.shape == (len(path), 1, 2), bool((path.coef[-1] == model.coef_).all())
    (True, True)
    """

    objective: Any
    coef: Any
    intercept: Any
    dual: Any = None
    rows: Any = None

    @property
    def theta(self) -> Any:
        """(n, n_scores, p) what the steps move: coefficients, the intercept last; of a kernel machine ỹα, in one score."""
        if self.dual is not None:
            return self.dual[:, None]
        return np.concatenate([self.coef, self.intercept[:, :, None]], axis=2)

    @property
    def step(self) -> Any:
        """(n − 1, n_scores, p) what each step added to θ."""
        return np.diff(self.theta, axis=0)

    def __len__(self) -> int:
        return len(self.objective)

    def __repr__(self) -> str:
        return f"History({len(self) - 1} steps, objective {self.objective[0]:.6g} → {self.objective[-1]:.6g})"


@dataclass(frozen=True)
class Fit:
    """The record of one fit, kept by every estimator as ``fit_``.

    Parameters
    ----------
    status : Status
        Why the fit ended, as a sentence.
    detail : str
        What the sentence means for these data: the columns or classes concerned. Empty when there is nothing to add.
    passes : int
        How many times the rows were read.
    iterations : int
        Steps of an iterative solver; 0 for a closed form.
    seconds : float
        Wall-clock time.
    certificate : Certificate or None
        The proof; ``None`` for a model that minimises nothing iteratively and has no objective to bound.
    trace : list of dict
        One entry per iteration, for the solvers that iterate.
    engine : str
        Where the passes ran: ``"memory"``, the name of a device such as ``"cuda:0"``, ``"dask"``, ``"spark"`` or ``"files"``.
    history : History or None
        The path of the coefficients, of a model with ``record=True``.
    """

    status: Status
    passes: int
    seconds: float
    iterations: int = 0
    detail: str = ""
    certificate: Certificate | None = None
    trace: list[dict[str, Any]] = field(default_factory=list, repr=False)
    engine: str = "memory"
    history: History | None = field(default=None, repr=False)

    def message(self, sentence: str | None = None) -> Message:
        """The record in words, with `sentence` in place of the status and the detail where it is given."""
        cost = f"\n{self.passes} pass{'' if self.passes == 1 else 'es'} over the data, {self.seconds:.3g} s"
        steps = f", {self.iterations} iterations" if self.iterations else ""
        proof = f"\nCertificate: {self.certificate}" if self.certificate is not None else ""
        first = Message.joined(str(self.status), self.detail) if sentence is None else sentence
        return Message.of(first, cost + steps + proof)

    def __str__(self) -> str:
        return str(self.message())


class ConvergenceWarning(exceptions.ConvergenceWarning):  # type: ignore[misc]  # scikit-learn ships no types
    """A fit that fell short of what was asked for.

    Attributes
    ----------
    estimator : str
        Name of the estimator.
    fit : Fit
        Its record.
    """

    def __init__(self, estimator: str, fit: Fit) -> None:
        super().__init__(estimator, fit)
        self.estimator, self.fit = estimator, fit

    def __str__(self) -> str:
        return f"{self.estimator}: {self.fit}"
