"""Priors of a Bayesian logistic regression: from its parameters, by cross-validation, a posterior as one; and its problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from separatrix.bayes.posterior import DiagonalPosterior, FullPosterior, Posterior
from separatrix.data import Source
from separatrix.data.affine import Intercept, Standardised
from separatrix.data.block import Block, Codes, Float
from separatrix.data.checks import real_numbers
from separatrix.models.logistic.cross_validation import LogisticRegressionCV
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.penalties import Penalty

_TOO_MANY = (
    "prior_precision='evidence' needs a full covariance (at most 2000 coefficients), or rows that can be left out of a fit, "
    "which a source is not; give prior_precision as a number."
)


def prior_of(given: Any, n_features: int) -> tuple[Any, Any]:
    """(mean, covariance) of the coefficients; of unit precision where evidence is to choose it."""
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ValueError(
                f"prior_precision is a tuple of {len(given)}; a tuple is (mean, covariance), a list one precision per column."
            )
        if not np.isfinite(_numbers(given[1])).all():
            raise ValueError("The covariance in prior_precision has infinite or missing values; give finite variances.")
        return given
    if isinstance(given, str):
        if given != "evidence":
            raise ValueError(f"prior_precision is {given!r}; give 'evidence', numbers, or (mean, covariance).")
        return 0.0, 1.0
    precision = _numbers(given)
    if precision.shape not in ((), (n_features,)) or not ((precision > 0) & np.isfinite(precision)).all():
        raise ValueError(
            "prior_precision must be 'evidence', a positive number, one positive number for each of the "
            f"{n_features} columns, or a tuple (mean, covariance)."
        )
    return 0.0, 1.0 / precision


def _numbers(given: Any) -> Float:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"prior_precision holds {given!r}; give numbers.") from None


def groups_of(groups: Any, n_features: int) -> Codes:
    """Group of every column, in the order of the sorted labels; one for all without any."""
    if groups is None:
        return np.zeros(n_features, dtype=np.intp)
    labels = np.array([str(label) for label in groups])
    if labels.shape != (n_features,):
        raise ValueError(f"groups has shape {labels.shape}; give one label for each of the {n_features} columns.")
    return np.unique(labels, return_inverse=True)[1]


def log_sizes(problem: LinearProblem) -> Float:
    """(d,) log variances of the columns in the user's units, NaN for constant ones. One pass.

    A prior of that precision allows a column one unit of log-odds for one standard deviation.
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
    variances = squares[:d] / total - np.square(mean)
    varies = variances > 0
    return np.where(varies, np.log(np.where(varies, variances, 1.0)) + 2.0 * np.log(problem.scale), np.nan)


def validated_precision(model: Any, X: Any, y: Any, sample_weight: Any, sizes: Float) -> float:
    """The precision with the best log-loss on left-out rows: for coefficients too many for the evidence.

    Nine precisions, from a prior as wide as a hundred units of log-odds for a standard deviation of a column to one that
    allows a tenth of a unit to all columns together; the best of them moved to the top of the parabola through its neighbours.
    """
    if isinstance(X, Source):
        raise ValueError(_TOO_MANY)
    known = sizes[np.isfinite(sizes)]
    middle = float(known.mean()) if len(known) else 0.0
    at = np.linspace(middle - 4.6, middle + float(np.log(len(sizes))) + 4.6, 9)
    search = LogisticRegressionCV(
        Cs=np.exp(-at),
        cv=5,
        scoring="neg_log_loss",
        fit_intercept=model.fit_intercept,
        refit=False,
        n_jobs=model.n_jobs,
    )
    scores = search.fit(X, y, sample_weight).scores_.mean(axis=0)[0]
    best = int(np.argmax(scores))
    if not 0 < best < len(at) - 1:
        return float(np.exp(at[best]))
    left, top, right = scores[best - 1 : best + 2]
    bend = left - 2.0 * top + right
    return float(np.exp(at[best] + (at[1] - at[0]) * (0.5 * (left - right) / bend if bend < 0 else 0.0)))


def problem_with_prior(source: Source, fit_intercept: bool, prior: tuple[Any, Any], offset: Any) -> LinearProblem:
    """The posterior of labelled rows under a Gaussian prior (mean, covariance) of the coefficients."""
    shift = None if offset is None else real_numbers(offset, "offset")
    return LinearProblem.of(source, C=1.0, l1_ratio=0.0, fit_intercept=fit_intercept, prior=prior, offset=shift)


def problem_after(
    posterior: Posterior, source: Source, fit_intercept: bool, offset: Any, centre: Float, scale: Float
) -> tuple[LinearProblem, Float | None]:
    """The posterior of more rows, with that of the rows before as their prior; and the gauge directions filled in that.

    The columns are seen with the centre and scale of the first fit, in which the prior is.
    """
    penalty, gauge = Penalty.none((posterior.mean.shape[0], posterior.mean.shape[1])), None
    if isinstance(posterior, FullPosterior):
        penalty, gauge = replace(penalty, mean=posterior.mean, matrix=posterior.precision), posterior.gauge
    elif isinstance(posterior, DiagonalPosterior):
        penalty = replace(penalty, mean=posterior.mean, quadratic=1.0 / posterior.variance)
    else:
        raise ValueError(
            f"update needs a posterior that can be a prior, and covariance={posterior.structure!r} is kept in a form that "
            "cannot; set covariance='full' or 'diagonal'."
        )
    built = problem_with_prior(source, fit_intercept, (0.0, 1.0), offset)
    rows = Standardised(source, centre, scale) if centre.any() or (scale != 1.0).any() else source
    return replace(
        built,
        objective=replace(built.objective, penalty=penalty),
        source=Intercept(rows) if fit_intercept else rows,
        centre=centre,
        scale=scale,
    ), gauge
