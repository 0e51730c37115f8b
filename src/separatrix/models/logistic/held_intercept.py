"""An intercept under the penalty: the coefficient of one more column, which is s in every row.

    wᵀx + b = wᵀx + v·s,   b = sv,   P(w, v) is the penalty of all coefficients alike            s = intercept_scaling

So a model with such an intercept is one without, on rows with a column more. scikit-learn's "liblinear" has the same objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data import Source
from separatrix.data.affine import Intercept, Standardised
from separatrix.data.block import Float


def with_column_of_ones(source: Source, options: dict[str, Any], scaling: float) -> tuple[Source, dict[str, Any]]:
    """Rows with the column, and the options of a problem for them: one factor and one pair of bounds more."""
    d = source.n_features
    rows: Source = Intercept(source)
    if scaling != 1.0:
        rows = Standardised(rows, scale=np.append(np.ones(d), 1.0 / scaling))
    changed = {**options, "fit_intercept": False}
    if options["penalty_factors"] is not None:
        changed["penalty_factors"] = _longer(options["penalty_factors"], d, 1.0)
    bounds = options["bounds"]
    if isinstance(bounds, tuple | list) and len(bounds) == 2:  # anything else is refused where bounds are read
        changed["bounds"] = tuple(
            _longer(end if one is None else one, d, end) for one, end in zip(bounds, (-np.inf, np.inf), strict=True)
        )
    return rows, changed


def _longer(values: Any, d: int, fill: float) -> Float:
    given = np.asarray(values, dtype=np.float64)
    given = np.full(d, given) if given.ndim == 0 else given
    return np.concatenate([given, np.full((*given.shape[:-1], 1), fill)], axis=-1)


def joined(coef: Float, intercept: Float, scaling: float) -> tuple[Float, Float]:
    """Coefficients with the column's last, and intercepts of 0."""
    return np.column_stack([coef, intercept / scaling]), np.zeros(len(coef))


def split(coef: Float, scaling: float) -> tuple[Float, Float]:
    """Coefficients and intercepts, from those with the column's last."""
    return np.ascontiguousarray(coef[:, :-1]), coef[:, -1] * scaling
