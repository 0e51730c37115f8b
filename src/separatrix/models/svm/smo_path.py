"""The way of sequential minimal optimisation to a machine's dual optimum, pair by pair.

    max D(β) = Σ ỹβ − ½βᵀKβ,   Σβ = 0,  0 ≤ ỹβ ≤ C             a step moves β_i up and β_j down by as much, to the best of D

Every step is one of the compiled search (kernels/support_vectors/smo.py): i violates the conditions most, j gains most. The way
ends at the machine that is published, which was solved to more digits.

**Complexity** O(n) per step; memory O(n²) for K, and O(n) for every point of the way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.duality_gap import SoftMargin
from separatrix.models.svm.kernel_problem import KernelProblem
from separatrix.result import History

_MOST_ROWS, _MOST_STEPS = 2000, 100_000


def check_recordable(problem: KernelProblem) -> None:
    """Refuse to record what no path is kept of."""
    if len(problem.splits) > 1:
        raise ValueError(
            f"record=True follows one machine, and {len(problem.classes)} classes have {len(problem.splits)}: fit two classes, "
            "or set record=False."
        )
    if len(problem.codes) > _MOST_ROWS:
        raise ValueError(
            f"record=True keeps the multipliers of all rows at every step, for at most {_MOST_ROWS} rows; there are "
            f"{len(problem.codes)}. Set record=False, or fit some of them."
        )


def smo_path(
    problem: KernelProblem, beta: Float, rule: tuple[Float | None, float], rows: Any, max_steps: int | None
) -> History:
    """The steps from β = 0 to the tolerance, and then `beta`; `rule` is the published (w or ``None``, b)."""
    from separatrix.kernels.support_vectors.smo import smo  # numba takes a while to import

    splits, points = problem.splits, problem.points
    sides, n = SoftMargin(splits.signs, problem.bound[splits.rows], None), len(splits.signs)
    K = np.ascontiguousarray(problem.kernel.between(points, points), dtype=np.float64)
    settled = (K, np.arange(n), K, np.ones(n, dtype=np.bool_), -1)
    v, now, low, high = splits.signs.copy(), np.zeros(n), sides.low, sides.high
    path, chosen, objective, intercepts = [now.copy()], [-1], [0.0], [sides.intercept(now, v, np.inf, problem.tol)]
    for _ in range(_MOST_STEPS if max_steps is None else min(max_steps, _MOST_STEPS)):
        made, violation = smo(*settled, v, now, low, high, problem.tol, 1)
        if not made:
            break
        chosen.append(int(rows[int(np.argmax(now - path[-1]))]))
        path.append(now.copy())
        objective.append(_dual_value(splits.signs, now, v))
        intercepts.append(sides.intercept(now, v, float(violation), problem.tol))
    path.append(beta)
    chosen.append(-1)
    objective.append(_dual_value(splits.signs, beta, splits.signs - K @ beta))
    way, w = np.stack(path), rule[0]
    coef, constants = None, np.array([*intercepts, rule[1]])[:, None]
    if w is not None:
        centre = np.zeros(points.X.shape[1]) if points.centre is None else points.centre
        coef = np.asarray(way @ points.X - way.sum(axis=1)[:, None] * centre)[:, None]
        constants[:-1] -= coef[:-1] @ centre
        coef[-1] = w
    return History(np.array(objective), coef, constants, dual=way, rows=np.array(chosen))


def _dual_value(signs: Float, beta: Float, v: Float) -> float:
    """Σ ỹβ − ½βᵀKβ from v = ỹ − Kβ."""
    return 0.5 * float(beta @ (signs + v))
