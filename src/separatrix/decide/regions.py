"""Where a rule takes which action.

    E(a|p) = (1−p) L[0,a] + p L[1,a]             two classes: a line in p = p(1|x) for every action

The rule is the lower envelope of these lines, cut by the cost of a rejection: intervals of p, whose ends are known exactly.
For more classes the actions are laid out on a grid of points x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float
from separatrix.data.frames import is_frame
from separatrix.decide.losses import REJECTED, best_actions, expected_losses


@dataclass(frozen=True)
class PosteriorRegions:
    """Which action is best where, as intervals of the posterior probability of the second class.

    Parameters
    ----------
    breakpoints : ndarray of shape (m,)
        Where the best action changes, rising, inside (0, 1).
    actions : ndarray of shape (m + 1,)
        The action below the first breakpoint, between it and the next, …, above the last.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from separatrix import BayesRule, LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> rule = BayesRule(LogisticRegression(), loss=[[0, 1], [4, 0]], reject_cost=0.5, reject_action=-1).fit(X, y)
    >>> rule.decision_regions()
    PosteriorRegions(breakpoints=array([0.125, 0.5  ]), actions=array([ 0, -1,  1]))
    """

    breakpoints: Float
    actions: NDArray[Any]


def reject(proba: Float, least: Float, reject_cost: float | None, reject_below: float | None) -> NDArray[np.bool_]:
    """Rows to abstain from: the least expected loss exceeds the cost of it, or no class reaches the threshold."""
    rejected = np.zeros(len(proba), dtype=bool)
    if reject_cost is not None:
        rejected |= least > reject_cost
    if reject_below is not None:
        rejected |= proba.max(axis=1) < reject_below
    return rejected


def envelope(matrix: Float, reject_cost: float | None = None, reject_below: float | None = None) -> tuple[Float, Codes]:
    """Breakpoints of p and the code of the best action in each interval, for a 2×A matrix: exact."""
    level, slope = matrix[0], matrix[1] - matrix[0]
    with np.errstate(divide="ignore", invalid="ignore"):  # parallel lines do not cross
        crossings = [((level[:, None] - level) / (slope - slope[:, None])).ravel()]
        if reject_cost is not None:
            crossings.append((reject_cost - level) / slope)
    if reject_below is not None:
        crossings.append(np.array([reject_below, 1.0 - reject_below]))
    points = np.concatenate(crossings)
    points = np.unique(points[(points > 0.0) & (points < 1.0)])
    # Lines that meet in one point give it several times, apart by rounding: no interval lies between these.
    apart = 1e-12 * np.minimum(points, 1.0 - points) + 4.0 * np.finfo(np.float64).eps * points
    points = points[np.diff(points, prepend=-1.0) > apart]
    middles = (np.concatenate([[0.0], points]) + np.concatenate([points, [1.0]])) / 2.0
    proba = np.column_stack([1.0 - middles, middles])
    codes = best_actions(proba, matrix)
    codes[reject(proba, expected_losses(proba, matrix).min(axis=1), reject_cost, reject_below)] = REJECTED
    changes = np.flatnonzero(codes[1:] != codes[:-1])
    return points[changes], codes[np.concatenate([[0], changes + 1])]


def posterior_regions(
    matrix: Float, names: NDArray[Any], reject_cost: float | None, reject_below: float | None
) -> PosteriorRegions:
    """The intervals of a K×A loss matrix of two classes, with the names of the actions."""
    if len(matrix) != 2:
        raise ValueError(
            f"Intervals of one posterior exist for two classes only, and there are {len(matrix)}: give X, rows of two "
            "features, for a map of the plane."
        )
    breakpoints, codes = envelope(matrix, reject_cost, reject_below)
    return PosteriorRegions(breakpoints, names[codes])


@dataclass(frozen=True)
class PlaneRegions:
    """The action of a rule on a grid over two features.

    Parameters
    ----------
    x, y : ndarray of shape (grid_resolution,)
        Coordinates of the grid: the first and the second feature.
    actions : ndarray of shape (grid_resolution, grid_resolution)
        ``actions[i, j]`` is the action at (x[j], y[i]), as `matplotlib.pyplot.contourf` wants it.
    """

    x: Float
    y: Float
    actions: NDArray[Any]


def plane_regions(predict: Callable[[Any], NDArray[Any]], X: Any, grid_resolution: int) -> PlaneRegions:
    """The predictions on a grid that covers rows of two features, with a margin of a twentieth."""
    table = nw.from_native(X, eager_only=True) if is_frame(X) else None
    rows = np.asarray(X, dtype=np.float64) if table is None else table.to_numpy()
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(f"X has shape {rows.shape}: a map of the plane needs a rule on two features.")
    low, high = rows.min(axis=0), rows.max(axis=0)
    margin = 0.05 * (high - low)
    x, y = np.linspace(low - margin, high + margin, grid_resolution).T
    grid: Any = np.column_stack([np.tile(x, grid_resolution), np.repeat(y, grid_resolution)])
    if table is not None:  # with the names of the columns, which the estimator may check
        grid = nw.from_numpy(grid, schema=table.columns, backend=table.implementation).to_native()
    return PlaneRegions(x, y, predict(grid).reshape(grid_resolution, grid_resolution))
