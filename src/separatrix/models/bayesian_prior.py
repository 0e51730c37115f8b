"""Priors of a Bayesian logistic regression: those of its parameters, where the search for one starts, a posterior as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from separatrix.bayes.posterior import DiagonalPosterior, FullPosterior, Posterior
from separatrix.data import Source
from separatrix.data.block import Block, Codes, Float
from separatrix.data.views import Intercept, Standardised
from separatrix.models.logistic_problem import Problem
from separatrix.objectives.penalties import Penalty


def prior_of(given: Any, n_features: int) -> tuple[Any, Any]:
    """(mean, covariance) of the coefficients; of unit precision where evidence is to choose it."""
    if isinstance(given, tuple):
        return given  # `build_problem` says what is wrong with another number of entries
    if isinstance(given, str):
        if given != "evidence":
            raise ValueError(f"prior_precision is {given!r}; give 'evidence', numbers, or (mean, covariance).")
        return 0.0, 1.0
    precision = np.asarray(given, dtype=np.float64)
    if precision.shape not in ((), (n_features,)) or not ((precision > 0) & np.isfinite(precision)).all():
        raise ValueError(
            "prior_precision must be 'evidence', a positive number, one positive number for each of the "
            f"{n_features} columns, or a tuple (mean, covariance)."
        )
    return 0.0, 1.0 / precision


def groups_of(groups: Any, n_features: int) -> Codes:
    """Group of every column, in the order of the sorted labels; one for all without any."""
    if groups is None:
        return np.zeros(n_features, dtype=np.intp)
    labels = np.asarray(groups)
    if labels.shape != (n_features,):
        raise ValueError(f"groups has shape {labels.shape}; give one label for each of the {n_features} columns.")
    return np.unique(labels, return_inverse=True)[1]


def log_size(problem: Problem) -> float:
    """log of the (geometric) mean variance of the columns, in the user's units. One pass.

    A prior of that precision allows one unit of log-odds for one standard deviation of a column.
    """

    def of_block(block: Block) -> tuple[float, Float, Float]:
        rows = block.counted()
        weights = np.ones(rows.n) if rows.weights is None else rows.weights
        return float(weights.sum()), rows.rmatvec(weights), rows.column_squares(rows.weights)

    total, sums, squares = problem.source.reduce(
        of_block, lambda one, two: (one[0] + two[0], one[1] + two[1], one[2] + two[2])
    )
    problem.source.check_finite(sums, squares)
    d = len(problem.scale)
    mean = sums[:d] / total if problem.fit_intercept else 0.0
    variances = (squares[:d] / total - np.square(mean)) * np.square(problem.scale)
    seen = np.isfinite(variances) & (variances > 0)
    return float(np.log(variances[seen]).mean()) if seen.any() else 0.0


def as_prior(posterior: Posterior) -> tuple[Penalty, Float | None]:
    """The penalty that a posterior is, and the gauge directions that are filled in it."""
    empty = Penalty.none((posterior.mean.shape[0], posterior.mean.shape[1]))
    if isinstance(posterior, FullPosterior):
        return replace(empty, mean=posterior.mean, matrix=posterior.precision), posterior.gauge
    if isinstance(posterior, DiagonalPosterior):
        return replace(empty, mean=posterior.mean, quadratic=1.0 / posterior.variance), None
    raise ValueError(
        f"update needs a posterior that can be a prior, and covariance={posterior.structure!r} is kept in a form that cannot; "
        "set covariance='full' or 'diagonal'."
    )


def seen_before(problem: Problem, source: Source, centre: Float, scale: Float) -> Problem:
    """The problem of new rows, seen as those before them were."""
    seen = Standardised(source, centre, scale) if centre.any() or (scale != 1.0).any() else source
    return replace(problem, source=Intercept(seen) if problem.fit_intercept else seen, centre=centre, scale=scale)
