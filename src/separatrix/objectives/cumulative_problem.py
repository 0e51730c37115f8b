"""The cumulative logit on a view of the rows, and its minimiser as coefficients and thresholds in the user's units.

C Σ ℓ + ½‖w‖²; thresholds have no penalty. Columns far from the origin, or of extreme size, are seen through a standardising
view; columns without a penalty that are combinations of others are left out, with coefficients of 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from separatrix.data.affine import Standardised
from separatrix.data.block import Codes, Float
from separatrix.data.source import Source
from separatrix.data.views import Selected
from separatrix.objectives.column_units import column_units
from separatrix.objectives.cumulative import CumulativeLogit
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.penalties import Penalty
from separatrix.objectives.rounding import ROUNDING, exact_dot, score_rounding
from separatrix.objectives.solution import Solution
from separatrix.result import Certificate, Status
from separatrix.statistics.dependence import dependent_columns

_MOST_COLUMNS = 3000


class PublishedOrder(NamedTuple):
    """Coefficients (d,) and thresholds (K − 1,) with the status and the certificate of just these."""

    coef: Float
    thresholds: Float
    status: Status
    certificate: Certificate


@dataclass(frozen=True)
class CumulativeProblem:
    """A cumulative logit and the rows it is summed over, as a solver sees them."""

    objective: CumulativeLogit
    source: Source
    kept: Codes
    n_features: int
    centre: Float
    scale: Float
    sizes: Float
    units: float

    @classmethod
    def of(
        cls, source: Source, counts: Float, ranks: Codes, C: float, offset: Float | None = None
    ) -> CumulativeProblem:
        """The problem of a labelled source whose classes have weights `counts`, both by code."""
        source.lay_in_rows()
        d, last = source.n_features, len(counts) - 1
        kept, units = np.arange(d), 1.0 if np.isinf(C) else C
        if np.isinf(C) and 0 < d <= _MOST_COLUMNS:
            dependent = dependent_columns(source, kept, True)
            if dependent is not None:
                kept = np.setdiff1d(kept, dependent.columns)
        rows = source if len(kept) == d else Selected(source, kept)
        centre, scale, sizes = column_units(rows, True)
        if centre.any() or (scale != 1.0).any():
            rows = Standardised(rows, centre, scale)
        factors = np.append(np.ones(len(kept)), np.zeros(last))[None, :]
        penalty = Penalty.of_scikit_learn(C, 0.0, factors).rescaled(np.append(scale, np.ones(last)))
        by_rank = np.empty_like(counts)
        by_rank[ranks] = counts
        return cls(CumulativeLogit(penalty, by_rank, ranks, offset), rows, kept, d, centre, scale, sizes[:-1], units)

    @property
    def shape(self) -> tuple[int, int]:
        """(1, q) of β."""
        return 1, len(self.kept) + self.objective.n_thresholds

    def evaluate(self, beta: Float, order: int = 1, metric: Float | None = None) -> Evaluation:
        """F and its derivatives at β. One pass."""
        return self.objective.evaluate(beta, self.source, order, metric)

    def target(self, tol: float, value: float) -> float:
        """The gap that `tol` asks for: a fraction of F, or of the user's 1 when F is smaller."""
        return tol * max(min(1.0, 1.0 / self.units), abs(value))

    def start(self, coef: Float | None = None, thresholds: Float | None = None) -> Float:
        """β for given coefficients (d,) and thresholds; the best without columns else."""
        if coef is None or thresholds is None:
            return self.objective.start(len(self.kept))
        own = coef[self.kept]
        moved = [exact_dot(-own, self.centre, float(one)) for one in thresholds]
        return np.concatenate([own * self.scale, moved])[None, :]

    def coefficients(self, beta: Float) -> tuple[Float, Float]:
        """w (d,) and θ (K − 1,) in the units of the data."""
        w, thresholds = self.objective.split(beta)
        own = w / self.scale + 0.0
        coef = np.zeros(self.n_features)
        coef[self.kept] = own
        return coef, np.array([exact_dot(own, self.centre, float(one)) for one in thresholds])

    @property
    def jacobian(self) -> Float:
        """(q, q) of the kept coefficients and the thresholds in the user's units by β."""
        k, q = len(self.kept), self.shape[1]
        matrix = np.eye(q)
        matrix[:k, :k] /= self.scale
        matrix[k:, :k] = self.centre / self.scale
        return matrix

    def publish(self, solution: Solution, tol: float) -> PublishedOrder:
        """The coefficients, and status and certificate of just these: rounding counts, in F and in the thresholds."""
        certificate = solution.certificate
        gap, value = certificate.gap, certificate.objective
        coef, thresholds = self.coefficients(solution.theta)
        if self.centre.any():
            back = self.start(coef, thresholds)
            if not np.array_equal(back, solution.theta):
                value = self.evaluate(back).value
                gap += max(0.0, value - certificate.objective) + ROUNDING * abs(certificate.objective)
        k = len(self.kept)
        size = float(
            (np.abs(solution.theta[0, :k]) * self.sizes).sum() + np.abs(solution.theta[0, k:]).max(initial=0.0)
        )
        gap += ROUNDING * abs(value) + score_rounding(k + 1) * size * float(np.sqrt(8.0 * abs(value) * solution.total))
        missed = solution.status is Status.CONVERGED and gap > self.target(tol, value)
        status = Status.ROUNDED if missed else solution.status
        published = replace(certificate, gap=gap, objective=value).times(self.units)
        return PublishedOrder(coef, thresholds, status, published)
