"""Stochastic gradient steps, one row at a time.

    f = c·vᵀx + b,  w = c·v        c ← c·max(0, 1 − (1−ρ)ηα),   v ← v + (u/c) x,   b ← b + u·decay,    u = −η s ℓ'(y, f)
    passive-aggressive    u = s·y·min(η₀, ℓ/‖x‖²)   or   s·y·ℓ/(‖x‖² + 1/(2η₀))
    L1 after the step, for every entry of the row: |w_j| is lowered to where a penalty of ρηα a visit has by now
    mean of w from the visit `average` on:  (m + a v)/q,   m ← m − a Δv

The losses and the schedules of η have the numbers of `separatrix.online.stochastic`. Dense rows come as one flat array, sparse
ones as the three arrays of a CSR matrix.

Reference: Bottou (2012), Stochastic gradient descent tricks; Tsuruoka, Tsujii, Ananiadou (2009), ACL; Crammer et al. (2006),
JMLR 7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.support_vectors.prefetch import fetch_row

_STEEPEST, _TINY = 1e12, 1e-9
# Factors in [1, 2] of a product; a sparse row is asked for while so many before it are visited, where the entries are so many.
_FACTORS, _AHEAD, _IN_CACHE = 512, 2, 500_000


@compiled()
def xorshift_shuffle(order: Any, seed: int) -> None:
    """Fisher and Yates with a generator of 32 bits (Marsaglia's xorshift): scikit-learn's order of the rows."""
    state, mask, n = np.uint64(seed if seed != 0 else 1), np.uint64(0xFFFFFFFF), len(order)
    for i in range(n - 1):
        state ^= (state << np.uint64(13)) & mask
        state ^= state >> np.uint64(17)
        state ^= (state << np.uint64(5)) & mask
        j = i + np.int64((state & np.uint64(0x7FFFFFFF)) % np.uint64(n - i))
        order[i], order[j] = order[j], order[i]


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _dense_score(row: Any, v: Any) -> Any:
    score = 0.0
    for j in range(len(row)):
        score += v[j] * row[j]
    return score


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _add_dense(row: Any, step: Any, v: Any, penalty: Any) -> Any:
    """v += step·row; Σv² and Σ|v|, where the penalty has them."""
    squares, absolutes = 0.0, 0.0
    for j in range(len(row)):
        v[j] += row[j] * step
    if penalty >= 2:
        for j in range(len(row)):
            squares += v[j] * v[j]
    if penalty == 1 or penalty == 3:
        for j in range(len(row)):
            absolutes += abs(v[j])
    return squares, absolutes


@compiled(inline="always")
def _add_sparse(data: Any, indices: Any, first: Any, last: Any, step: Any, v: Any, penalty: Any) -> Any:
    """The same at the entries of a sparse row, whose columns have no sign: compiled code need not look for one."""
    squares, absolutes = 0.0, 0.0
    if penalty == 1 or penalty == 3:
        for p in range(first, last):
            j = np.uint64(indices[p])
            x = v[j] + data[p] * step
            v[j], squares, absolutes = x, squares + x * x, absolutes + abs(x)
    elif penalty == 2:
        for p in range(first, last):
            j = np.uint64(indices[p])
            x = v[j] + data[p] * step
            v[j], squares = x, squares + x * x
    else:
        for p in range(first, last):
            v[np.uint64(indices[p])] += data[p] * step
    return squares, absolutes


@compiled()
def loss_and_slope(loss: int, y: float, f: float, epsilon: float) -> tuple[float, float]:
    """ℓ(y, f) and its derivative by f, y = ±1."""
    z = y * f
    if loss == 0:  # hinge
        return (1.0 - z, -y) if z <= 1.0 else (0.0, 0.0)
    if loss == 1:  # squared hinge
        return ((1.0 - z) ** 2, -2.0 * y * (1.0 - z)) if z < 1.0 else (0.0, 0.0)
    if loss == 2:  # perceptron
        return (-z, -y) if z <= 0.0 else (0.0, 0.0)
    if loss == 3:  # log-loss
        e = math.exp(-abs(z))
        return math.log1p(e) + max(0.0, -z), -y * (1.0 / (1.0 + e) if z <= 0.0 else e / (1.0 + e))
    if loss == 4:  # modified Huber
        if z >= 1.0:
            return 0.0, 0.0
        return ((1.0 - z) ** 2, -2.0 * (1.0 - z) * y) if z >= -1.0 else (-4.0 * z, -4.0 * y)
    r = f - y
    size, sign = abs(r), 1.0 if r > 0.0 else -1.0
    if loss == 5:  # squared error
        return 0.5 * r * r, r
    if loss == 6:  # Huber
        return (0.5 * r * r, r) if size <= epsilon else (epsilon * (size - 0.5 * epsilon), epsilon * sign)
    beyond = size - epsilon
    if not beyond > 0.0:
        return 0.0, 0.0
    return (beyond, sign) if loss == 7 else (beyond * beyond, 2.0 * beyond * sign)


@compiled()
def sgd_epoch(
    rows: Any, order: Any, code: int, factors: Any, rule: Any, numbers: Any, vectors: Any, state: Any
) -> float:
    """One epoch; the sum of loss and penalty over its visits.

    `rows` are the stored arrays, codes and weights; `rule` the numbers of loss, penalty (0 none, 1 L1, 2 L2, 3 both) and
    schedule, the visit from which to average and whether there is an intercept; `numbers` are α, ρ, ε, η₀, the power, the
    decay; `vectors` v, what was paid of L1, and m; `state` b, mean b, t, η, due, ‖w‖², ‖w‖₁, c, a, q.
    """
    data, indices, indptr, codes, weights = rows
    loss, penalty, schedule, average, with_intercept = rule
    alpha, l1_ratio, epsilon, eta0, power, decay = numbers
    v, paid, mean = vectors
    b, mean_b, t, eta = state[0], state[1], state[2], state[3]
    due, squares, absolutes = state[4], state[5], state[6]
    width, dense, total = len(v), len(indptr) == 0, 0.0
    scale, share, parts = state[7], state[8], state[9]
    typical = math.sqrt(1.0 / math.sqrt(alpha)) if schedule == 1 else 1.0
    first_t = 1.0 / (typical * alpha) if schedule == 1 else 0.0
    far, grown, held = not dense and len(indices) > _IN_CACHE, 1.0, 0
    for turn in range(len(order)):
        i = order[turn]
        if far and turn + _AHEAD < len(order):
            fetch_row(data, indices, indptr, order[turn + _AHEAD])
        first = i * width if dense else indptr[i]
        last = first + width if dense else indptr[i + 1]
        y = 1.0 if codes[i] == code else -1.0
        f, length = 0.0, 0.0
        if dense:
            f = _dense_score(data[first:last], v)
        else:
            for p in range(first, last):
                f += v[np.uint64(indices[p])] * data[p]
        f = f * scale + b
        if schedule == 1:
            eta = 1.0 / (alpha * (first_t + t - 1.0))
        elif schedule == 2:
            eta = eta0 / t**power
        if loss == 3:  # Σ log(1 + e) = log Π(1 + e): a logarithm for many visits
            z = y * f
            e = math.exp(-abs(z))
            grown, held = grown * (1.0 + e), held + 1
            slope = -y * (1.0 if z <= 0.0 else e) / (1.0 + e)
            value = 0.0
            if z < 0.0:
                total -= z
            if held == _FACTORS:
                total, grown, held = total + math.log(grown), 1.0, 0
        else:
            value, slope = loss_and_slope(loss, y, f, epsilon)
            total += value
        if schedule < 4:
            if penalty > 0:
                total += alpha * ((1.0 - l1_ratio) * 0.5 * squares + l1_ratio * absolutes)
            update = -eta * min(max(slope, -_STEEPEST), _STEEPEST)
        else:
            # A visit without a loss moves nothing; whether a row is empty matters to the count of visits alone.
            if value != 0.0 or average > 0:
                for p in range(first, last):
                    length += np.float64(data[p]) * np.float64(data[p])
            elif first < last:
                length = 1.0
            if schedule == 4:
                if length == 0.0:
                    continue
                update = y * min(eta0, value / length)
            else:
                update = y * value / (length + 0.5 / eta0)
        update *= (factors[1] if y > 0.0 else factors[0]) * weights[i]
        if penalty >= 2:
            shrink = max(0.0, 1.0 - (1.0 - l1_ratio) * eta * alpha)
            scale *= shrink
            squares, absolutes = squares * shrink * shrink, absolutes * shrink
            if scale < _TINY:
                for j in range(width):
                    if average > 0:
                        mean[j] = (mean[j] + share * v[j]) / parts
                    v[j] *= scale
                scale, share, parts = 1.0, 0.0, 1.0
        if update != 0.0:
            step = update / scale
            if dense:
                squares, absolutes = _add_dense(data[first:last], step, v, penalty)
            else:
                squares, absolutes = _add_sparse(data, indices, first, last, step, v, penalty)
            squares, absolutes = squares * scale * scale, absolutes * scale
            if with_intercept:
                b += update * decay
        if 0 < average <= t:
            visits = t - average + 1.0
            if update != 0.0:
                for p in range(first, last):
                    mean[p - first if dense else indices[p]] -= share * data[p] * (update / scale)
            if visits > 1.0:
                parts /= 1.0 - 1.0 / visits
            share += parts * scale / visits
            mean_b += (b - mean_b) / visits
        if penalty == 1 or penalty == 3:
            due += l1_ratio * eta * alpha
            for p in range(first, last):
                j = p - first if dense else indices[p]
                before = v[j]
                if before > 0.0:
                    v[j] = max(0.0, before - (due + paid[j]) / scale)
                elif before < 0.0:
                    v[j] = min(0.0, before + (due - paid[j]) / scale)
                paid[j] += scale * (v[j] - before)
        t += 1.0
    state[0], state[1], state[2], state[3] = b, mean_b, t, eta
    state[4], state[5], state[6] = due, squares, absolutes
    state[7], state[8], state[9] = scale, share, parts
    return total + math.log(grown)
