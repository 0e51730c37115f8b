"""Interior points of one machine of the hinge on few columns: the steps of dual/interior_batch.py, in loops over the rows.

The rows are kept column by column: what is done to one is done to four or eight at once, whatever the number of columns.

    min ½ Σ ρ_j θ_j² − kᵀθ + Σ Cᵢ max(0, 1 − ỹᵢθᵀxᵢ)        z − q = m − 1,  m = ỹ(Xθ),    αz = μ,  (C − α)q = μ,    μ → 0

k is what rows that are not here pull: those far inside the margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.support_vectors.by_columns import SUMS, add_gram, add_sums, combined, factor, substitute

# The share of the way to the nearest bound that a step goes, and what is added to a unit diagonal, so that it has a factor.
_SHARE, _SHIFT = 0.99, 1e-14
# A gap of this share of the objective that a step does not halve is nothing but rounding.
_ROUNDING = 1e-9


@compiled(fastmath={"nnan", "nsz", "reassoc"})
def _largest(x: Any, least: Any) -> Any:
    """The largest entry, or `least`. Where one is not a number, so are the sums that decide what becomes of the step."""
    for i in range(len(x)):
        least = x[i] if x[i] > least else least
    return least


@compiled(fastmath=SUMS, error_model="numpy")
def _equations(T: Any, signs: Any, state: Any, work: Any, H: Any, force: Any, right: Any) -> None:
    """The lower half of XᵀΘ⁻¹X, Xᵀ(ỹα) and XᵀΘ⁻¹ỹ(1 − m), added to H, `force` and `right`; `held` takes Θ⁻¹."""
    alpha, room, z, q, margins = state
    held, s, t, _, _ = work
    for i in range(len(signs)):
        held[i] = 1.0 / (z[i] / alpha[i] + q[i] / room[i])
        s[i], t[i] = signs[i] * alpha[i], signs[i] * (1.0 - margins[i]) * held[i]
    add_gram(T, held, H)
    add_sums(T, 0, s, len(T), force)
    add_sums(T, 0, t, len(T), right)


@compiled(fastmath=SUMS, error_model="numpy")
def _corrected(T: Any, signs: Any, state: Any, work: Any, turn: Any, mu: Any, right: Any) -> None:
    """What the square of the first direction adds, and the goal for μ by how far it leads; XᵀΘ⁻¹ỹr, to `right`."""
    alpha, room, z, q, margins = state
    held, s, t, r, turns = work
    n, fall = len(signs), 0.0
    combined(T, turn, turns)
    for i in range(n):
        change = (1.0 - margins[i] - signs[i] * turns[i]) * held[i]
        u, v = change / alpha[i], change / room[i]
        far, near = (-u if -u > v else v), (u if u > -v else -v)
        r[i] = far if far > 1.0 + near else 1.0 + near
        s[i], t[i] = z[i] * u * (1.0 + u), q[i] * v * (1.0 - v)
        fall += room[i] * t[i] - alpha[i] * s[i]
    length = 1.0 / _largest(r, 1.0)
    goal = mu * min(1.0, max(0.0, 1.0 - length + length * length * fall / (2 * n * mu))) ** 3
    for i in range(n):
        s[i], t[i] = s[i] + goal / alpha[i], t[i] - goal / room[i]
        r[i] = 1.0 - margins[i] + s[i] + t[i]
        turns[i] = signs[i] * r[i] * held[i]
    add_sums(T, 0, turns, len(T), right)


@compiled(fastmath=SUMS, error_model="numpy")
def _stepped(T: Any, signs: Any, price: Any, state: Any, work: Any, turn: Any) -> tuple[Any, Any, Any, Any]:
    """Go along the second direction: its length, Σ αz + Σ (C − α)q and ΣCq after it, ΣC|z − q − m + 1| before it."""
    alpha, room, z, q, margins = state
    held, s, t, r, turns = work
    off = 0.0
    combined(T, turn, turns)
    for i in range(len(signs)):
        turns[i] *= signs[i]
        change = (r[i] - turns[i]) * held[i]
        # From here on: dα, dz and dq; and the rate at which the nearest bound is approached.
        r[i] = change
        s[i] = s[i] - z[i] - z[i] / alpha[i] * change
        t[i] = -t[i] - q[i] + q[i] / room[i] * change
        down, up, dz, dq = -change / alpha[i], change / room[i], -s[i] / z[i], -t[i] / q[i]
        one, two = (down if down > up else up), (dz if dz > dq else dq)
        held[i] = one if one > two else two
        off += price[i] * abs(z[i] - q[i] + 1.0 - margins[i])
    length, products, slack = _SHARE / _largest(held, _SHARE), 0.0, 0.0
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
    T = np.empty((p, n))  # a column at a time is several rows at once
    for i in range(n):
        for j in range(p):
            T[j, i] = A[i, j]
    state = (alpha, np.empty(n), np.full(n, 0.5), np.full(n, 1.5), np.zeros(n))
    work = (np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n))
    H, right, turn, unit, force = np.empty((p, p)), np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    products, before = 0.0, np.inf
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
        _equations(T, signs, state, work, H, force, right)
        for j in range(p):
            right[j], turn[j] = right[j] + force[j], force[j]
            unit[j] = 1.0 / np.sqrt(H[j, j]) if H[j, j] > 0.0 else 0.0
        if not factor(H, unit, _SHIFT):
            return steps, False
        substitute(H, unit, right)
        _corrected(T, signs, state, work, right, mu, turn)
        substitute(H, unit, turn)
        length, products, slack, off = _stepped(T, signs, price, state, work, turn)
        value = far + slack
        for j in range(p):
            off += abs(force[j] * theta[j])
            theta[j] += length * turn[j]
            value += 0.5 * rho[j] * theta[j] * theta[j] - pulled[j] * theta[j]
        gap = products + (1.0 - length) * off
        if not np.isfinite(gap):
            return steps, False
        if gap <= tol * value or (gap <= _ROUNDING * value and gap > 0.5 * before):
            return steps, True
        before = gap
    return most, False
