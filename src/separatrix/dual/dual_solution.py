"""The solution of a machine's dual: multipliers, scores, intercept and the proof, for every way that leads to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.duality_gap import Sides, judged
from separatrix.dual.kernel_matrix import KernelMatrix
from separatrix.result import Certificate, Status


@dataclass(frozen=True)
class Dual:
    """Coefficients β, scores f = Kβ without the intercept, the intercept, and the proof."""

    beta: Float
    scores: Float
    intercept: float
    status: Status
    certificate: Certificate
    rounds: int
    steps: int
    trace: list[dict[str, Any]]
    errors: Float
    """Bounds on the rounding of the scores."""

    def with_bound(self, gram: KernelMatrix, sides: Sides, tol: float) -> Dual:
        """The same solution with the proof for another bound that it does not reach."""
        known = (self.beta, self.scores, self.errors, self.intercept, self.certificate.stationarity)
        proof = sides.certificate(*known, gram.largest())
        status = judged(self.status, proof.gap, sides.allowed(tol, self.beta))
        return replace(self, certificate=proof, status=status)

    def published(self, sides: Sides, X: Any, w: Float, b: float, centre: Float | None, tol: float) -> Dual:
        """The same solution with the proof for the linear rule (w, b) that stands for it."""
        proof = sides.of_plane(self.certificate, self.beta, X, w, b, centre)
        reached = Status.CONVERGED if self.status is Status.ROUNDED else self.status  # that was said of the scores
        return replace(self, certificate=proof, status=judged(reached, proof.gap, sides.allowed(tol, self.beta)))


def constant_dual(signs: Float, bound: Float, positive: bool | None, status: Status) -> Dual:
    """The machine that has not begun: β = 0, and the side of the larger total bound for every row."""
    sides, nothing = Sides(signs, bound, positive), np.zeros(len(signs))
    intercept = sides.best_intercept(signs) if not sides.hard else 0.0
    proof = sides.certificate(nothing, nothing, nothing, intercept, 2.0, 0.0)
    return Dual(nothing, nothing, intercept, status, proof, 0, 0, [], nothing)
