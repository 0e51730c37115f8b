"""The fit under Firth's penalty: the maximum of log L + ½ log|I(θ)|, finite also for separable classes.

Reference: Firth (1993), Biometrika 80; Heinze and Schemper (2002), Statistics in Medicine 21.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.data import Source
from separatrix.models.logistic.summary import Summarised
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.solution import Solution
from separatrix.result import Certificate, Status
from separatrix.solvers.firth import minimise_firth


class FirthPenalty(Summarised):
    """The fit with penalty="firth", mixed into `LogisticRegression`."""

    if TYPE_CHECKING:  # parameters of the estimator
        prior: Any
        bounds: Any
        penalty_factors: Any
        tol: Any
        record: Any
        eta0: Any

    def _maximise_firth(self, problem: LinearProblem, source: Source) -> Solution:
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: penalty='firth' is for two "
                f"classes, but y has {len(self.classes_)}; use an L2 penalty instead."
            )
        if self.prior is not None or self.bounds is not None or self.penalty_factors is not None:
            raise ValueError("penalty='firth' takes the place of prior, bounds and penalty_factors; leave them out.")
        if self.record or self.eta0 is not None:
            raise ValueError(
                "record and eta0 are about the solvers of the other penalties; leave them out with penalty='firth'."
            )
        found = minimise_firth(
            self._design(source), offset=problem.objective.offset, tol=float(self.tol), max_iter=int(self.max_iter)
        )
        status = found.status
        if status is Status.CONVERGED:
            # An intercept far from the middle of the rows rounds to ε times its terms; the score then has that much more.
            slopes, constant = self._split(found.theta)
            rounded = np.finfo(np.float64).eps * float((np.abs(constant) + np.abs(slopes) @ np.abs(problem.centre))[0])
            moved = rounded * float(np.sqrt(found.information[-1, -1])) if self.fit_intercept else 0.0
            status = Status.STATIONARY if moved <= self.tol else Status.ROUNDED
        certificate = Certificate(
            np.inf,
            -found.penalised_log_likelihood,
            "none: Jeffreys' prior is not known to be log-concave",
            stationarity=float(np.abs(found.score).max(initial=0.0)),
            kind="estimated",
        )
        theta = problem.start(*self._split(found.theta))
        return Solution(theta, status, certificate, found.iterations, list(found.trace), solver="firth")
