"""Interior points of one machine of the hinge on few columns: the steps of dual/interior_batch.py, in loops over the rows.

    min ½ Σ ρ_j θ_j² − kᵀθ + Σ Cᵢ max(0, 1 − ỹᵢθᵀxᵢ)        z − q = m − 1,  m = ỹ(Xθ),    αz = μ,  (C − α)q = μ,    μ → 0

k is what rows that are not here pull: those far inside the margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.support_vectors.squared_hinge import factor, substitute

# The share of the way to the nearest bound that a step goes, and what is added to a unit diagonal, so that it has a factor.
_SHARE, _SHIFT = 0.99, 1e-14


@compiled(inline="always")
def _dot(A: Any, i: Any, v: Any) -> Any:
    total = 0.0
    for j in range(len(v)):
        total += A[i, j] * v[j]
    return total


@compiled(fastmath={"reassoc", "contract"}, error_model="numpy")
def _equations(A: Any, signs: Any, state: Any, held: Any, H: Any, force: Any, right: Any) -> None:
    """The lower half of XᵀΘ⁻¹X, Xᵀ(ỹα) and XᵀΘ⁻¹ỹ(1 − m), added to H, `force` and `right`; `held` takes Θ⁻¹."""
    alpha, room, z, q, margins = state
    n, p = A.shape
    for i in range(n):
        weight = 1.0 / (z[i] / alpha[i] + q[i] / room[i])
        pull, more = signs[i] * alpha[i], signs[i] * (1.0 - margins[i]) * weight
        held[i] = weight
        for j in range(p):
            x = A[i, j]
            force[j] += pull * x
            right[j] += more * x
            x *= weight
            for k in range(j + 1):
                H[j, k] += x * A[i, k]


@compiled(fastmath={"reassoc", "contract"}, error_model="numpy")
def _corrected(A: Any, signs: Any, state: Any, work: Any, turn: Any, mu: Any, right: Any) -> None:
    """What the square of the first direction adds, and the goal for μ by how far it leads; XᵀΘ⁻¹ỹr, to `right`."""
    alpha, room, z, q, margins = state
    held, s, t, r, _ = work
    n, p = A.shape
    fall, worst = 0.0, 1.0
    for i in range(n):
        change = (1.0 - margins[i] - signs[i] * _dot(A, i, turn)) * held[i]
        u, v = change / alpha[i], change / room[i]
        worst = max(worst, max(max(-u, v), max(1.0 + u, 1.0 - v)))
        s[i], t[i] = z[i] * u * (1.0 + u), q[i] * v * (1.0 - v)
        fall += room[i] * t[i] - alpha[i] * s[i]
    length = 1.0 / worst
    goal = mu * min(1.0, max(0.0, 1.0 - length + length * length * fall / (2 * n * mu))) ** 3
    for i in range(n):
        s[i], t[i] = s[i] + goal / alpha[i], t[i] - goal / room[i]
        r[i] = 1.0 - margins[i] + s[i] + t[i]
        pull = signs[i] * r[i] * held[i]
        for j in range(p):
            right[j] += pull * A[i, j]


@compiled(fastmath={"reassoc", "contract"}, error_model="numpy")
def _stepped(A: Any, signs: Any, price: Any, state: Any, work: Any, turn: Any) -> tuple[Any, Any, Any, Any]:
    """Go along the second direction: its length, Σ αz + Σ (C − α)q and ΣCq after it, ΣC|z − q − m + 1| before it."""
    alpha, room, z, q, margins = state
    held, s, t, r, turns = work
    worst, off = _SHARE, 0.0
    for i in range(len(signs)):
        turns[i] = signs[i] * _dot(A, i, turn)
        change = (r[i] - turns[i]) * held[i]
        # From here on: dα, dz and dq.
        r[i] = change
        s[i] = s[i] - z[i] - z[i] / alpha[i] * change
        t[i] = -t[i] - q[i] + q[i] / room[i] * change
        worst = max(worst, max(max(-change / alpha[i], change / room[i]), max(-s[i] / z[i], -t[i] / q[i])))
        off += price[i] * abs(z[i] - q[i] + 1.0 - margins[i])
    length, products, slack = _SHARE / worst, 0.0, 0.0
    for i in range(len(signs)):
        alpha[i] += length * r[i]
        room[i] -= length * r[i]  # not C − α, which rounds to nothing
        z[i] += length * s[i]
        q[i] += length * t[i]
        margins[i] += length * turns[i]
        products += alpha[i] * z[i] + room[i] * q[i]
        slack += price[i] * q[i]
    return length, products, slack, off


@compiled(error_model="numpy")
def hinge_interior(
    A: Any, rho: Any, signs: Any, price: Any, pulled: Any, far: Any, tol: Any, most: Any, theta: Any, alpha: Any
) -> tuple[Any, Any]:
    """(steps, whether it ended by itself) of one machine on rows A (n, p), the last column being the intercept's, from zero.

    θ and α take the end of the way: a gap of about `tol` of the objective, to which rows that are not here add `far` − kᵀθ, k
    being `pulled`. What is proven of it is for another to say.
    """
    n, p = A.shape
    state = (alpha, np.empty(n), np.full(n, 0.5), np.full(n, 1.5), np.zeros(n))
    work = (np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n))
    H, right, turn, unit, force = np.empty((p, p)), np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    products = 0.0
    for i in range(n):
        alpha[i] = state[1][i] = 0.5 * price[i]
        products += price[i]
    theta[:] = 0.0
    for steps in range(1, most + 1):
        mu = products / (2 * n)
        H[:] = 0.0
        for j in range(p):
            H[j, j] = rho[j]
            force[j], right[j] = pulled[j] - rho[j] * theta[j], 0.0
        _equations(A, signs, state, work[0], H, force, right)
        for j in range(p):
            right[j], turn[j] = right[j] + force[j], force[j]
            unit[j] = 1.0 / np.sqrt(H[j, j]) if H[j, j] > 0.0 else 0.0
        if not factor(H, unit, _SHIFT):
            return steps, False
        substitute(H, unit, right)
        _corrected(A, signs, state, work, right, mu, turn)
        substitute(H, unit, turn)
        length, products, slack, off = _stepped(A, signs, price, state, work, turn)
        value = far + slack
        for j in range(p):
            off += abs(force[j] * theta[j])
            theta[j] += length * turn[j]
            value += 0.5 * rho[j] * theta[j] * theta[j] - pulled[j] * theta[j]
        gap = products + (1.0 - length) * off
        if not np.isfinite(gap):
            return steps, False
        if gap <= tol * value:
            return steps, True
    return most, False
