"""Proximal Newton for a logistic regression with absolute values, by columns: whole steps in compiled code.

    Δ = argmin  gᵀΔ + ½ ΔᵀHΔ + Σ_j l_j |w_j + Δ_j|,      H = Σ s h x xᵀ + diag q,      θ ← θ + tΔ

Coordinate descent keeps z = XΔ in place of H. The free intercept is eliminated: it is best at c = −(β + kᵀΔ)/Σsh with
β = Σ s a and k = Σ s h x, so that a coordinate has the slope and the curvature

    r_j = g_j + q_jΔ_j + Σ s h z x_j + c k_j,        H_jj − k_j²/Σsh

Where few dense columns take so many sweeps that H would have cost less, H is formed and the sweeps go on there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.columns import add_column, column_bent, column_dot, logistic_losses

_FAST = {"reassoc", "contract"}
_HALVINGS = 40
# Columns at zero are in the model from this share of l_j on.
_INSIDE = 0.7
# What a sweep may gain at the end, as a share of all; how well slopes meet their conditions at the last step, as a share of
# what the target leaves room for.
_SHARE, _TIGHT = 0.05, 0.2
# A Hessian of so many columns is formed here, and so many multiplications go into sweeps on it; they cost little, and may
# gain less.
_GRAM_COLUMNS, _GRAM_SWEEPS, _GRAM_SHARE = 64, 200_000, 1e-3
# How a call ends: the proof is due; more steps are; the model is too hard for sweeps; no step lowers F.
NEAR, FAR, HARD, VAIN = 0, 1, 2, 3


@compiled()
def _chosen(w: Any, gradient: Any, absolute: Any, fresh: int) -> Any:
    """The columns that may move: those that are used, and at most `fresh` others, or as many again as are used."""
    d, used, others = len(w), 0, 0
    steep = np.empty(d)
    for j in range(d):
        if w[j] != 0.0:
            used += 1
        else:
            steep[others] = abs(gradient[j]) / absolute[j]
            others += steep[others] >= _INSIDE
    room, least = max(fresh, used), _INSIDE
    if others > room:
        least = np.partition(steep[:others], others - room)[others - room]
    inside, count = np.empty(used + others, dtype=np.int64), 0
    for j in range(d):
        if w[j] != 0.0 or abs(gradient[j]) / absolute[j] >= least:
            inside[count] = j
            count += 1
    return inside[:count]


@compiled(fastmath=_FAST)
def _moved(now: Any, r: Any, h: Any, held: Any) -> Any:
    """The least of a coordinate's quadratic with its absolute value."""
    aim = now - r / h
    size = abs(aim) - held / h
    if size <= 0.0:
        return 0.0
    return size if aim > 0.0 else -size


@compiled(fastmath=_FAST)
def _missed(now: Any, r: Any, held: Any) -> Any:
    """By how much a slope misses its condition."""
    if now == 0.0:
        return max(abs(r) - held, 0.0)
    return abs(r + held) if now > 0.0 else abs(r - held)


@compiled()
def _last(lowered: Any, z: Any, c: Any, near: Any) -> Any:
    """Whether a step is the last by the look of it: what it leaves is about what it gains times the largest move of a score."""
    if lowered <= near:
        return True
    furthest = 0.0
    for i in range(len(z)):
        furthest = max(furthest, abs(z[i] + c))
    return lowered * furthest <= near


@compiled(fastmath=_FAST)
def _sweep_columns(
    data: Any,
    rows: Any,
    starts: Any,
    inside: Any,
    bends: Any,
    gradient: Any,
    border: Any,
    diagonal: Any,
    w: Any,
    quadratic: Any,
    absolute: Any,
    per_total: Any,
    c: Any,
    lowered: Any,
    near: Any,
    tight: Any,
    most: int,
    step: Any,
    z: Any,
) -> tuple[Any, Any, Any, Any]:
    """(Whether it settled, by how much the model is lowered, c, entries read); `step` and `z` take Δ and XΔ.

    Settled is a model of which a sweep over all columns gains no more than a share of what all sweeps did; where its step is
    the last (see `_last`), no slope may miss its condition by more than `tight` times l_j either.
    """
    read, everything = 0, True
    while read < most:
        gained, missed = 0.0, 0.0
        for a in range(len(inside)):
            j = inside[a]
            now = w[j] + step[j]
            if not everything and now == 0.0:
                continue
            first, last = starts[j], starts[j + 1]
            r = gradient[j] + quadratic[j] * step[j] + c * border[a] + column_bent(data, rows, first, last, bends, z)
            read += last - first + 4
            h, held = diagonal[a], absolute[j]
            miss = _missed(now, r, held)
            missed = max(missed, miss / held)
            if miss == 0.0 or not h > 0.0:
                continue
            fresh = _moved(now, r, h, held)
            change = fresh - now
            if change == 0.0:
                continue
            gained -= change * (r + 0.5 * h * change) + held * (abs(fresh) - abs(now))
            step[j] = fresh - w[j]
            add_column(data, rows, first, last, change, z)
            read += last - first
            c -= change * border[a] * per_total
        lowered += gained
        settled = gained <= _SHARE * lowered and (missed <= tight or not _last(lowered, z, c, near))
        if everything and (settled or not gained > 0.0):  # rounding is all that is left
            return True, lowered, c, read
        everything = settled
    return False, lowered, c, read


@compiled(fastmath=_FAST)
def _sweep_gram(
    data: Any,
    starts: Any,
    inside: Any,
    bends: Any,
    gradient: Any,
    border: Any,
    w: Any,
    quadratic: Any,
    absolute: Any,
    per_total: Any,
    c: Any,
    lowered: Any,
    near: Any,
    tight: Any,
    step: Any,
    z: Any,
) -> tuple[Any, Any, Any, Any]:
    """The same for few dense columns, on H."""
    p, n = len(inside), len(bends)
    H, scaled, slope = np.empty((p, p)), np.empty(n), np.empty(p)
    for a in range(p):
        first = starts[inside[a]]
        for i in range(n):
            scaled[i] = bends[i] * data[first + i]
        for b in range(a + 1):
            j = inside[b]
            H[a, b] = column_dot(data, None, starts[j], starts[j + 1], scaled) - border[a] * border[b] * per_total
            H[b, a] = H[a, b]
        j = inside[a]
        H[a, a] += quadratic[j]
        slope[a] = (
            gradient[j] + quadratic[j] * step[j] + c * border[a] + column_bent(data, None, first, first + n, bends, z)
        )
    read, everything, done = n * p * p // 2, True, False
    for _ in range(8 + _GRAM_SWEEPS // (p * p + 1)):
        gained, missed = 0.0, 0.0
        for a in range(p):
            j = inside[a]
            now, h, held, r = w[j] + step[j], H[a, a], absolute[j], slope[a]
            if not everything and now == 0.0:
                continue
            miss = _missed(now, r, held)
            missed = max(missed, miss / held)
            if miss == 0.0 or not h > 0.0:
                continue
            fresh = _moved(now, r, h, held)
            change = fresh - now
            if change == 0.0:
                continue
            gained -= change * (r + 0.5 * h * change) + held * (abs(fresh) - abs(now))
            step[j] = fresh - w[j]
            row = H[a]
            for b in range(p):
                slope[b] += change * row[b]
            c -= change * border[a] * per_total
        read += p * p
        lowered += gained
        settled = gained <= _GRAM_SHARE * lowered and (missed <= tight or lowered > 30.0 * near)
        if everything and (settled or not gained > 0.0):
            done = True
            break
        everything = settled
    z[:] = 0.0
    for j in inside:
        if step[j] != 0.0:
            add_column(data, None, starts[j], starts[j + 1], step[j], z)
    return done, lowered, c, read


@compiled(fastmath=_FAST)
def prox_steps(
    data: Any,
    rows: Any,
    starts: Any,
    signs: Any,
    weights: Any,
    quadratic: Any,
    absolute: Any,
    free: Any,
    theta: Any,
    scores: Any,
    gradient: Any,
    slopes: Any,
    bends: Any,
    value: Any,
    tol: Any,
    unit: Any,
    fresh: int,
    most_steps: int,
    most: int,
    z: Any,
) -> tuple[Any, Any, Any]:
    """(Steps taken, how it ends, which of the two derivatives are those that the last step began with).

    θ and its scores are moved in place. `slopes` and `bends` (2, n) are those at θ in their first row; `z` takes XΔ + c of the
    last model, in whose slopes the proof is. Ends when what a step leaves is below the target by the look of it, or so many
    entries are read.
    """
    d, n = len(absolute), len(signs)
    w, step = theta[:d], np.empty(d)
    read, at = 0, 0
    for taken in range(most_steps):
        if taken > 0:
            for j in range(d):
                gradient[j] = quadratic[j] * w[j] + column_dot(data, rows, starts[j], starts[j + 1], slopes[at])
            read += len(data)
        total, slope, norm = 0.0, 0.0, 0.0
        for i in range(n):
            total += bends[at, i]
            slope += slopes[at, i]
        for j in range(d):
            norm += absolute[j] * abs(w[j])
        if free and not total > 0.0:
            return taken, VAIN, at
        per_total = 1.0 / total if free else 0.0
        target = tol * max(unit, abs(value))
        inside = _chosen(w, gradient, absolute, fresh)
        border, diagonal = np.zeros(len(inside)), np.empty(len(inside))
        for a in range(len(inside)):
            j = inside[a]
            h = 0.0
            for p in range(starts[j], starts[j + 1]):
                bend = bends[at, p - starts[j] if rows is None else rows[p]]
                border[a] += bend * data[p]
                h += bend * data[p] * data[p]
            diagonal[a] = h + quadratic[j] - border[a] * border[a] * per_total
            if not free:
                border[a] = 0.0
        step[:] = 0.0
        z[:] = 0.0
        c, lowered = -slope * per_total, 0.5 * slope * slope * per_total
        # The factor 1 − tight of slopes that miss their conditions costs D as much of l‖w‖₁, and its square of F.
        some = max(target, 1e-300)
        tight = min(_TIGHT * target / max(norm, some), np.sqrt(0.25 * _TIGHT * target / max(value, some)))
        near = 0.5 * target
        budget = most
        few = rows is None and len(inside) <= _GRAM_COLUMNS
        if rows is None:
            budget = min(most, n * len(inside) * (4 + len(inside) // 8))
        settled, lowered, c, entries = _sweep_columns(
            data,
            rows,
            starts,
            inside,
            bends[at],
            gradient,
            border,
            diagonal,
            w,
            quadratic,
            absolute,
            per_total,
            c,
            lowered,
            near,
            tight,
            budget,
            step,
            z,
        )
        read += entries
        if rows is None and not settled and few:
            settled, lowered, c, entries = _sweep_gram(
                data,
                starts,
                inside,
                bends[at],
                gradient,
                border,
                w,
                quadratic,
                absolute,
                per_total,
                c,
                lowered,
                near,
                tight,
                step,
                z,
            )
            read += entries
        if rows is None and not settled:
            return taken, HARD, at
        last, promise = _last(lowered, z, c, near), slope * c
        for i in range(n):
            z[i] += c
        for j in inside:
            promise += gradient[j] * step[j]
        t, accepted = 1.0, False
        for _ in range(_HALVINGS):
            loss, _, _ = logistic_losses(scores, z, t, signs, weights, slopes[1 - at], bends[1 - at])
            change, moved = t * promise, loss
            for j in range(d):
                fresh_w = w[j] + t * step[j]
                moved += (0.5 * quadratic[j] * fresh_w + absolute[j] * np.sign(fresh_w)) * fresh_w
                change += absolute[j] * (abs(fresh_w) - abs(w[j]))
            if moved <= value + 1e-4 * change + 1e-15 * abs(value):
                accepted = True
                break
            t *= 0.5
        if not accepted:
            return taken, VAIN, at
        for j in inside:
            w[j] += t * step[j]
        if free:
            theta[d] += t * c
        for i in range(n):
            scores[i] += t * z[i]
        value = moved
        if last:
            return taken + 1, NEAR, at
        at = 1 - at
        if read >= most:
            return taken + 1, FAR, 1 - at
    return most_steps, FAR, 1 - at
