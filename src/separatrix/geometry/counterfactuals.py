"""The smallest change of a row that changes the decision of a linear rule.

    min_δ δᵀMδ   subject to   (w_t − w_j)ᵀ(x + δ) + b_t − b_j ≥ ε_j  for all j ≠ t,   low ≤ x + δ ≤ high,   δ_fixed = 0

With M = RᵀR and z = Rδ it is the least distance to a polyhedron, min ½‖z‖² with Gz ≥ h (least_distance.py). One constraint has
the closed form z = h g/‖g‖² (for M = I: the projection on the boundary).

ε is a few rounding errors of the scores: on the boundary itself the decision is a matter of rounding.

Reference: Wachter, Mittelstadt, Russell (2018) for the use.

**Complexity** that of `least_distance`, once for every round of limits that are overstepped.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from separatrix.data.block import Codes, Float
from separatrix.data.labels import listed, shown
from separatrix.geometry.least_distance import least_distance
from separatrix.geometry.regions import linear_rule

_EPS = float(np.finfo(np.float64).eps)
# First ε in rounding errors of the scores, and how often it may grow sixteenfold until `predict` agrees.
_OVERSHOOT, _ATTEMPTS = 16.0, 7


@dataclass(frozen=True)
class Counterfactual:
    """The nearest row with another decision.

    Parameters
    ----------
    x : ndarray of shape (d,) or None
        The row; ``None`` if there is none.
    change : ndarray of shape (d,) or None
        What was added to the row given.
    distance : float
        Length of the change in the metric; infinite if there is none.
    target : label
        The class that `predict` gives to `x`; ``None`` if any other would have done and none can be reached.
    status : str
        A sentence on what was found, or what stands in the way.
    """

    x: Float | None
    change: Float | None
    distance: float
    target: Any
    status: str

    def __str__(self) -> str:
        return self.status


def counterfactual(
    model: Any,
    x: Any,
    target: Any = None,
    *,
    bounds: Mapping[Any, tuple[float | None, float | None]] | tuple[ArrayLike, ArrayLike] | None = None,
    fixed: Iterable[Any] | None = None,
    metric: ArrayLike | None = None,
) -> Counterfactual:
    """The smallest change of a row with which a linear rule decides for another class, or for a given one.

    Parameters
    ----------
    model : fitted classifier
        With `linear_form`, or with ``coef_`` and ``intercept_`` of one vector per class (a single one for two classes).
    x : array-like of shape (d,) or (1, d)
        The row.
    target : label, optional
        The class to reach; by default whichever other class is nearest.
    bounds : mapping of columns to (low, high), or (low, high), optional
        Limits that the new row keeps: of some columns, by name or number; or numbers or vectors for all. ``None`` is no limit.
    fixed : iterable of columns, optional
        Columns that must not change, by name or number.
    metric : array-like of shape (d,) or (d, d), optional
        Scales of the columns: a change by its scale counts 1 in each. Or a covariance matrix, for Mahalanobis' distance. By
        default all columns count alike.

    Returns
    -------
    Counterfactual
        Where the row has that class and keeps the bounds already, it is the row itself.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import LinearDiscriminantAnalysis, counterfactual
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> lda = LinearDiscriminantAnalysis().fit(X, y)
    >>> found = counterfactual(lda, X.iloc[70], fixed=["sepal length (cm)", "sepal width (cm)"])
    >>> print(found)
    A change of length 0.06563 leads to class 1.
    >>> found.change.round(3).tolist()
    [0.0, 0.0, -0.03, -0.058]
    """
    classes, W, b = linear_rule(model)
    row = np.array(x.toarray() if hasattr(x, "toarray") else x, dtype=np.float64).reshape(-1)
    d, names = W.shape[1], getattr(model, "feature_names_in_", None)
    if len(row) != d:
        raise ValueError(f"x has {len(row)} entries, but the rule has {d} features; give one row.")
    if not np.isfinite(row).all():
        raise ValueError(f"x contains NaN or infinity in {_named(np.flatnonzero(~np.isfinite(row))[0], names)}.")
    if target is not None and not (classes == target).any():
        raise ValueError(f"target={target!r} is not a class of this model; the classes are {listed(classes)}.")
    low, high = _limits(bounds, d, names)
    held = [_column(name, d, names, "fixed") for name in (() if fixed is None else fixed)]
    free = np.setdiff1d(np.arange(d), held)
    stretch = _stretch(metric, free, d)
    now, outside = _decision(model, row), (row < low) | (row > high)
    if target is not None and now == target and not outside.any():
        return Counterfactual(row, np.zeros(d), 0.0, now, f"The row is of class {shown(now)} already.")
    goals = np.flatnonzero(classes != now if target is None else classes == target)
    wanted = "another class" if target is None else f"class {shown(classes[goals[0]])}"
    stuck = [j for j in held if outside[j]]
    if stuck:
        why = f"{_named(stuck[0], names)} is fixed outside its bounds; free it, or widen them."
        return Counterfactual(None, None, np.inf, target, f"No change leads to {wanted}: {why}")
    reached = {k: _reach(model, row, (classes, W, b), k, (low, high), free, stretch) for k in goals.tolist()}
    found = {k: answer for k, answer in reached.items() if answer is not None}
    if not found:
        limited = bounds is not None or held
        why = "the bounds and fixed columns forbid it; relax some." if limited else "the rule decides so nowhere."
        return Counterfactual(None, None, np.inf, target, f"No change leads to {wanted}: {why}")
    goal = min(found, key=lambda k: found[k][1])
    point, distance = found[goal]
    sentence = f"A change of length {distance:.4g} leads to class {shown(classes[goal])}."
    return Counterfactual(point, point - row, distance, classes[goal], sentence)


def _reach(
    model: Any,
    row: Float,
    rule: tuple[NDArray[Any], Float, Float],
    goal: int,
    limits: tuple[Float, Float],
    free: Codes,
    stretch: Float,
) -> tuple[Float, float] | None:
    """The nearest row for which `predict` gives the goal, and its distance; or None."""
    (classes, W, b), (low, high) = rule, limits
    if np.isneginf(b[goal]):
        return None
    others = np.flatnonzero(np.isfinite(b) & (np.arange(len(b)) != goal))
    normals, at_row = W[goal] - W[others], (W[goal] - W[others]) @ row + b[goal] - b[others]
    sizes = np.abs(W[others]) + np.abs(W[goal]), np.abs(b[others]) + abs(b[goal])
    inner = _apply(stretch.T, normals[:, free].T).T
    overshoot, size = _OVERSHOOT * _EPS, sizes[0] @ np.abs(row) + sizes[1]
    for _ in range(_ATTEMPTS):
        answer = _within(inner, overshoot * size - at_row, (low - row)[free], (high - row)[free], stretch)
        if answer is None:
            return None
        z, change = answer
        found = row.copy()
        found[free] = np.where(change == (low - row)[free], low[free], found[free] + change)
        found[free] = np.where(change == (high - row)[free], high[free], found[free])
        if _decision(model, found) == classes[goal]:
            return found, float(np.linalg.norm(z))
        # The scores of the new row may be larger than those of the old one, and models round in their own ways.
        overshoot, size = 16.0 * overshoot, np.maximum(size, sizes[0] @ np.abs(found) + sizes[1])
    raise ValueError(
        f"{type(model).__name__} does not decide by its linear form: its prediction does not change at the boundary with "
        f"class {shown(classes[goal])}. Its rule is not linear in x; does it cut the columns into flags?"
    )


def _apply(stretch: Float, v: Float) -> Float:
    """Sv for a vector or the columns of a matrix, S given in full or by its diagonal."""
    return (v.T * stretch).T if stretch.ndim == 1 else stretch @ v


def _within(G: Float, h: Float, low: Float, high: Float, stretch: Float) -> tuple[Float, Float] | None:
    """argmin ‖z‖ with Gz ≥ h and low ≤ δ ≤ high, and δ = Sz itself; a limit enters once it has been overstepped."""
    rows, reach = np.zeros((0, G.shape[1])), np.zeros(0)
    # Walls: column, side (1 from below, −1 from above) and the limit there.
    columns, sides, limits = np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0)
    while True:
        answer = least_distance(np.vstack([G, rows]), np.concatenate([h, reach]))
        if answer.z is None:
            return None
        z, active = answer.z, answer.active
        change = np.clip(_apply(stretch, z), low, high)
        at = active[active >= len(G)] - len(G)
        change[columns[at]] = limits[at]  # there but for rounding
        over = _apply(stretch, z) < low, _apply(stretch, z) > high
        for side, limit, beyond in ((1.0, low, over[0]), (-1.0, high, over[1])):
            new = np.setdiff1d(np.flatnonzero(beyond), columns[sides == side])
            columns, sides, limits = (
                np.append(columns, new),
                np.append(sides, np.full(len(new), side)),
                np.append(limits, limit[new]),
            )
        fresh = columns[len(rows) :]
        if not len(fresh):
            return z, change
        unit = np.zeros((len(fresh), len(low)))
        unit[np.arange(len(fresh)), fresh] = sides[len(rows) :]
        rows, reach = np.vstack([rows, _apply(stretch.T, unit.T).T]), sides * limits


def _decision(model: Any, row: Float) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return model.predict(row[None, :])[0]


def _stretch(metric: ArrayLike | None, free: Codes, d: int) -> Float:
    """S with δ = Sz on the free columns, where ‖z‖ is the length of δ: scales, or R⁻¹ for M = RᵀR."""
    scales = np.ones(d) if metric is None else np.asarray(metric, dtype=np.float64)
    if scales.shape == (d,):
        if not (np.isfinite(scales) & (scales > 0)).all():
            raise ValueError("metric has scales that are not positive and finite; give one positive scale per column.")
        return scales[free]
    if scales.shape != (d, d):
        raise ValueError(f"metric has shape {scales.shape}; give {(d,)} scales or a {(d, d)} covariance matrix.")
    if not np.allclose(scales, scales.T):
        raise ValueError("metric is not symmetric, so it is no covariance matrix.")
    try:
        precision = cho_solve(cho_factor(scales), np.eye(d))
        root = cholesky(precision[np.ix_(free, free)])
    except (LinAlgError, ValueError):
        raise ValueError(
            "metric has no inverse, so it is no covariance matrix to measure with: it must be finite and positive definite."
        ) from None
    return solve_triangular(root, np.eye(len(free)))


def _named(j: Any, names: NDArray[Any] | None) -> str:
    return f"column {j}" if names is None else f"column {names[j]!r}"


def _column(name: Any, d: int, names: NDArray[Any] | None, argument: str) -> int:
    found = [] if names is None else np.flatnonzero(names == name).tolist()
    if found:
        return int(found[0])
    if isinstance(name, int | np.integer) and -d <= name < d:
        return int(name) % d
    known = f"0 to {d - 1}" if names is None else listed(names)
    raise ValueError(f"{argument} names the column {name!r}, which the model does not have; its columns are {known}.")


def _limits(bounds: Any, d: int, names: NDArray[Any] | None) -> tuple[Float, Float]:
    low, high = np.full(d, -np.inf), np.full(d, np.inf)
    if isinstance(bounds, Mapping):
        for name, (least, most) in bounds.items():
            j = _column(name, d, names, "bounds")
            low[j], high[j] = -np.inf if least is None else least, np.inf if most is None else most
    elif bounds is not None:
        least, most = bounds
        low[:] = -np.inf if least is None else least
        high[:] = np.inf if most is None else most
    crossed = np.flatnonzero(~(low <= high))
    if len(crossed):
        j = int(crossed[0])
        raise ValueError(f"The bounds of {_named(j, names)} are empty: {low[j]:g} to {high[j]:g}.")
    return low, high
