"""What a report shows of a comparison beside its scores, computed once and kept.

coefficients   ŵ with 95 % of the posterior w ~ N(ŵ, H⁻¹) for logistic models, with the range over the folds for the others
outliers       d²(x) = min_k (x − m_k)ᵀΣ⁻¹(x − m_k) and its tail P(χ²_r > d²), r the rank of the rows within classes
columns        those in which the classes differ most, by the F ratio of their encoding
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import chi2
from sklearn.feature_selection import f_classif

from separatrix.data.block import Codes, Float
from separatrix.models.bayesian.bayesian_logistic import BayesianLogisticRegression
from separatrix.models.discriminant.linear_discriminant import LinearDiscriminantAnalysis
from separatrix.tables.columns import ColumnSchema
from separatrix.tables.schema import TableSchema

N_LISTED, MOST_COLUMNS = 10, 12


@dataclass(frozen=True)
class CoefficientIntervals:
    """Coefficients (m, p) of p encoded columns, with the ends of their intervals.

    These are of the model's posterior, of its Laplace approximation with the penalty as prior, the range over the folds, or
    that of folds scaled to the length of the estimates.
    """

    names: Sequence[str]
    estimates: Float
    lower: Float
    upper: Float
    kind: Literal["posterior", "laplace", "folds", "directions"]
    n_folds: int = 0  # over how many a range was taken


@dataclass(frozen=True)
class Outliers:
    """The rows farthest from every class, the farthest first: nearest class, distance, its tail under χ², and the degrees."""

    rows: Codes
    nearest: Codes
    distances: Float
    tails: Float
    degrees: int


def coefficient_intervals(
    family: str,
    estimator: Any,
    names: Sequence[str],
    fold_coefs: Float,
    X: Float,
    codes: Codes,
    weights: Float | None = None,
) -> CoefficientIntervals:
    """Those of a model that is linear in the encoded columns X, from its coefficients in every fold (n_folds, m, p)."""
    estimates = np.atleast_2d(estimator.coef_)
    if family == "bayesian-logistic":
        lower, upper = estimator.coef_interval(0.95)
        return CoefficientIntervals(names, estimates, lower, upper, "posterior")
    if family == "logistic":
        posterior = BayesianLogisticRegression(prior_precision=1.0 / estimator.C).fit(X, codes, sample_weight=weights)
        lower, upper = posterior.coef_interval(0.95)
        return CoefficientIntervals(names, estimates, lower, upper, "laplace")
    kind: Literal["folds", "directions"] = "folds"
    if family == "perceptron":
        # Every mistake adds to the length of w, which decides nothing and would drown the differences in direction.
        kind, lengths = "directions", np.linalg.norm(fold_coefs, axis=2, keepdims=True)
        own = np.linalg.norm(estimates, axis=1, keepdims=True)
        fold_coefs = fold_coefs * np.divide(own, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    lower, upper = fold_coefs.min(axis=0), fold_coefs.max(axis=0)
    return CoefficientIntervals(names, estimates, lower, upper, kind, len(fold_coefs))


def rank_within_classes(X: Float, codes: Codes) -> int:
    """The dimension of the rows about the means of their classes."""
    means = np.stack([X[codes == k].mean(axis=0) for k in range(codes.max() + 1)])
    return int(np.linalg.matrix_rank(X - means[codes]))


def find_outliers(model: Any, X: Float, degrees: int) -> Outliers:
    """The rows farthest from every class, by the Mahalanobis distances of a Gaussian model."""
    squares = model.mahalanobis(X)
    nearest = squares.min(axis=1)
    far = np.argsort(-nearest, kind="stable")[:N_LISTED]
    return Outliers(far, squares[far].argmin(axis=1), np.sqrt(nearest[far]), chi2.sf(nearest[far], degrees), degrees)


def pooled_outliers(X: Float, codes: Codes, degrees: int) -> Outliers | str:
    """The rows farthest from every class under the pooled covariance, or a sentence why there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return find_outliers(LinearDiscriminantAnalysis().fit(X, codes), X, degrees)
        except ValueError as error:
            return f"Distances between rows and classes could not be measured: {error}"


def discriminating_columns(
    schema: TableSchema, X: Float, origin: Sequence[str], codes: Codes
) -> tuple[ColumnSchema, ...]:
    """The columns to show of a row: all when they are few, else those in which the classes differ most."""
    if len(schema.used) <= MOST_COLUMNS:
        return schema.used
    with np.errstate(all="ignore"):
        ratios = np.nan_to_num(f_classif(X, codes)[0], nan=0.0, posinf=np.finfo(np.float64).max)
    strength = dict.fromkeys(origin, 0.0)
    for name, ratio in zip(origin, ratios, strict=True):
        strength[name] = max(strength[name], float(ratio))
    best = set(sorted(strength, key=lambda name: -strength[name])[:MOST_COLUMNS])
    return tuple(column for column in schema.used if column.name in best)
