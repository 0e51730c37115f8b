"""Parameters of a linear problem, checked, as arrays of the shape of θ: priors, bounds, penalty factors, offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.checks import real_numbers
from separatrix.objectives.penalties import Penalty


def by_column(values: ArrayLike | None, m: int, d: int, name: str, default: float) -> Float:
    """A number, (d,) or (m, d), as (m, d)."""
    given = np.asarray(default if values is None else values, dtype=np.float64)
    if np.isnan(given).any():
        raise ValueError(f"{name} contains NaN; give a number for every column.")
    if given.shape not in ((), (d,), (m, d)):
        raise ValueError(f"{name} has shape {given.shape}; give one number, or one for each of the {d} columns.")
    return np.broadcast_to(given, (m, d))


def gaussian(prior: tuple[ArrayLike, ArrayLike], m: int, d: int, p: int) -> Penalty:
    """A Gaussian prior (mean, covariance) on the coefficients as a penalty."""
    try:
        mean, covariance = prior
    except (TypeError, ValueError):
        raise ValueError("prior should be a pair (mean, covariance) of the coefficients.") from None
    empty = Penalty.none((m, p))
    centre = np.zeros((m, p))
    centre[:, :d] = by_column(mean, m, d, "The mean of prior", 0.0)
    if not np.isfinite(centre).all():
        raise ValueError("The mean of prior has infinite values; give a finite number for every column.")
    spread = np.asarray(covariance, dtype=np.float64)
    if spread.shape in ((), (d,)):
        if not (spread > 0).all():
            raise ValueError("The covariance of prior has variances that are not positive.")
        quadratic = np.zeros((m, p))
        quadratic[:, :d] = 1.0 / spread
        return replace(empty, mean=centre, quadratic=quadratic)
    size = spread.shape[0]
    if spread.shape not in ((d, d), (m * d, m * d)):
        raise ValueError(
            f"The covariance of prior has shape {spread.shape}; give a number, one variance per column, or a matrix "
            f"({d}, {d})."
        )
    if not np.allclose(spread, spread.T, rtol=1e-10, atol=0.0):
        raise ValueError("The covariance of prior is not symmetric.")
    try:
        np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        raise ValueError("The covariance of prior is not positive definite.") from None
    precision = np.linalg.inv(spread)
    blocks = np.kron(np.eye(m), precision) if size == d and m * d != size else precision
    matrix = np.zeros((m * p, m * p))
    at = (np.arange(m)[:, None] * p + np.arange(d)).ravel()
    matrix[np.ix_(at, at)] = blocks
    return replace(empty, mean=centre, matrix=matrix)


def bounded(penalty: Penalty, bounds: tuple[ArrayLike, ArrayLike], m: int, d: int) -> Penalty:
    """A penalty with lower and upper bounds on the coefficients."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError("bounds should be a pair (lower, upper) of numbers or arrays, one per column.") from None
    lower, upper = penalty.low.copy(), penalty.high.copy()
    lower[:, :d] = by_column(-np.inf if low is None else low, m, d, "The lower bounds", -np.inf)
    upper[:, :d] = by_column(np.inf if high is None else high, m, d, "The upper bounds", np.inf)
    if (lower == np.inf).any() or (upper == -np.inf).any():
        raise ValueError(
            "bounds has a lower bound of infinity or an upper one of minus infinity: no number lies between."
        )
    if (lower > upper).any():
        j = int(np.flatnonzero((lower > upper).any(axis=0))[0])
        raise ValueError(f"The lower bound of column {j} is above its upper bound; exchange them.")
    if penalty.matrix is not None:
        raise ValueError("bounds cannot be combined with a full covariance in prior; give variances.")
    return replace(penalty, low=lower, high=upper)


def checked_offset(offset: Any, source: Source, m: int) -> Float:
    """An offset for every row, and every score where there are several."""
    values = real_numbers(offset, "offset")
    wanted = (source.n_rows,) if m == 1 else (source.n_rows, m)
    if values.shape != wanted:
        raise ValueError(f"offset has shape {values.shape}, expected {wanted}: one number per row and score.")
    if not np.isfinite(values).all():
        raise ValueError("offset contains NaN or infinity; give a finite number for every row.")
    return values
