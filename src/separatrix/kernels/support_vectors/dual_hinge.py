"""Sweeps of dual coordinate ascent for the hinge and the squared hinge.

    max_α  Σ αᵢ − ½‖Σ αᵢỹᵢxᵢ‖² − ½Σ Dᵢαᵢ²,    0 ≤ αᵢ ≤ Uᵢ          hinge U = C, D = 0;  squared U = ∞, D = 1/2C
    Gᵢ = ỹᵢ(wᵀxᵢ + b) − 1 + Dᵢαᵢ,    αᵢ ← min(max(αᵢ − Gᵢ/Qᵢ, 0), Uᵢ),    w += Δαᵢỹᵢxᵢ,    b += Δαᵢỹᵢ·reach

Every sweep has a random order of its own: in one that repeats, even in part, rows that have much in common take ten times as
many.

Rows at a bound whose gradient points outside by more than the last sweep's largest violation are moved behind the end of
`order` and are inactive until they are called back.

Reference: Hsieh et al. (2008), A dual coordinate descent method for large-scale linear SVM, ICML, algorithm 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled, row_entry, row_span
from separatrix.kernels.support_vectors.prefetch import fetch, fetch_row

_EPS = float(np.finfo(np.float64).eps)
# Of the rise of the dual at which a gap may be expected to be small; sweeps before it is looked at; before their rate is known.
_SURE, _FIRST, _KNOWN = 0.2, 3, 20
# A row is asked for while so many before it are visited, unless so few entries are in cache anyway.
_AHEAD, _IN_CACHE = 2, 30_000


@compiled()
def _projected(gradient: Any, alpha: Any, upper: Any) -> Any:
    """The part of the gradient along which α may move."""
    if alpha == 0.0:
        return min(gradient, 0.0)
    return max(gradient, 0.0) if alpha == upper else gradient


@compiled()
def _moved(gradient: Any, curvature: Any, alpha: Any, upper: Any) -> Any:
    """The best α, all others being fixed."""
    if curvature > 0.0:
        return min(max(alpha - gradient / curvature, 0.0), upper)
    return upper if gradient < 0.0 else 0.0  # a row of zeros without an intercept


@compiled()
def _shuffle(order: Any, active: Any, seed: Any) -> Any:
    """The first `active` rows in a random order (Fisher and Yates); the generator's next state."""
    for at in range(active - 1, 0, -1):
        seed = seed * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        other = np.int64((seed >> np.uint64(33)) % np.uint64(at + 1))
        order[at], order[other] = order[other], order[at]
    return seed


@compiled(fastmath={"reassoc", "contract"})
def sweeps(
    data: Any,
    indices: Any,
    indptr: Any,
    centre: Any,
    sides: Any,
    intercept: Any,
    order: Any,
    active: Any,
    bounds: Any,
    alpha: Any,
    w: Any,
    b: Any,
    seed: Any,
    until: Any,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """(sweeps, rows still active, rise of the dual in the last sweep and in all, b, settled) after sweeps over `order`.

    Rows are the three arrays of a CSR matrix, or dense ones and their centre; `sides` are ỹ, U, D and the squared lengths of
    the rows. `bounds` (2,) holds the last sweep's largest and least projected gradients and takes the next one's. `intercept`
    is (reach, the share of b that a sweep's end keeps, Σ αỹ of rows that are not here).

    `until` is (the most sweeps, the fewest active rows, the value of the dual, the share of it that a sweep has to add, the
    sweeps that need not): whichever is first ends them, and so does a sweep that settles nothing or everything.
    """
    # Every array has a name of its own: one taken out of a tuple, or a view, is counted by an atomic operation, which takes
    # longer than a short row does.
    signs, upper, ridge, squares = sides
    reach, kept, outside = intercept
    most, fewest, value, share, begun = until
    far = indices is not None and len(indices) > _IN_CACHE
    total, rise, settled, done = 0.0, 0.0, False, 0
    while done < most:
        seed = _shuffle(order, active, seed)
        highest, lowest, rise, at = -np.inf, np.inf, 0.0, 0
        while at < active:
            i = order[at]
            first, last = row_span(indptr, i, len(w))
            if indices is not None and far and at + _AHEAD < active:
                soon = order[at + _AHEAD]
                fetch_row(data, indices, indptr, soon)
                fetch(alpha, soon)
                fetch(signs, soon)
                fetch(upper, soon)
                fetch(ridge, soon)
                fetch(squares, soon)
            score = 0.0
            for p in range(first, last):
                j, x = row_entry(data, indices, centre, i, p)
                score += w[j] * x
            before, most_here = alpha[i], upper[i]
            gradient = signs[i] * (score + b) - 1.0 + ridge[i] * before
            if (before == 0.0 and gradient > bounds[0]) or (before == most_here and gradient < bounds[1]):
                active -= 1
                order[at], order[active] = order[active], order[at]
                continue
            at += 1
            projected = _projected(gradient, before, most_here)
            highest, lowest = max(highest, projected), min(lowest, projected)
            if projected == 0.0:
                continue
            curvature = squares[i] + reach + ridge[i]
            fresh = _moved(gradient, curvature, before, most_here)
            change = fresh - before
            if change == 0.0:
                continue
            alpha[i] = fresh
            rise -= change * (gradient + 0.5 * curvature * change)
            change *= signs[i]
            b += change * reach
            for p in range(first, last):
                j, x = row_entry(data, indices, centre, i, p)
                w[j] += change * x
        done, total = done + 1, total + rise
        settled = active == 0 or not (np.isfinite(highest) and np.isfinite(lowest))
        bounds[0], bounds[1] = highest if highest > 0.0 else np.inf, lowest if lowest < 0.0 else -np.inf
        if reach > 0.0:
            last_b, sides_sum = b, outside
            for i in range(len(alpha)):
                sides_sum += signs[i] * alpha[i]
            b = kept * b + reach * sides_sum
            still = abs(b - last_b) <= 4.0 * _EPS * max(1.0, abs(b))
        else:
            still = True
        settled = settled or (rise <= 0.0 and still)
        if settled or active < fewest or (done >= begun and rise <= share * (value + total)):
            break
    return done, active, rise, total, b, settled


@compiled()
def _gap(data: Any, indices: Any, indptr: Any, centre: Any, sides: Any, alpha: Any, w: Any, b: Any, pull: Any) -> Any:
    """About the primal at (w, b) less the dual at α, and the primal."""
    signs, upper, ridge, _ = sides
    squared, primal, dual, balance = 0.0, 0.0, 0.0, 0.0
    for j in range(len(w)):
        squared += w[j] * w[j]
    for i in range(len(signs)):
        first, last = row_span(indptr, i, len(w))
        score = b
        for p in range(first, last):
            j, x = row_entry(data, indices, centre, i, p)
            score += w[j] * x
        slack = 1.0 - signs[i] * score
        if slack > 0.0:
            primal += upper[i] * slack if ridge[i] == 0.0 else 0.5 * slack * slack / ridge[i]
        dual += alpha[i] - 0.5 * ridge[i] * alpha[i] * alpha[i]
        balance += signs[i] * alpha[i]
    primal += 0.5 * squared + 0.5 * pull * b * b
    # A penalised intercept has pull·b = Σ αỹ, a free one Σ αỹ = 0.
    dual -= 0.5 * squared + 0.5 * pull * b * b
    return max(0.0, primal - dual) + abs(balance - pull * b) * max(1.0, abs(b)), primal


@compiled()
def sweeps_to_a_gap(
    data: Any,
    indices: Any,
    indptr: Any,
    centre: Any,
    sides: Any,
    intercept: Any,
    order: Any,
    bounds: Any,
    alpha: Any,
    w: Any,
    b: Any,
    value: Any,
    seed: Any,
    most: Any,
    tol: Any,
) -> tuple[Any, Any, Any, Any]:
    """(sweeps, rise of the dual, b, whether nothing moved) of sweeps until the gap is about `tol` of the primal.

    All rows are called back whenever the gap is looked at. Sweeps end early where, at the rate of the last ones, `most` are
    not enough. `intercept` is (reach, the share of b that a sweep's end keeps, the curvature of its penalty); the rest is as
    above.
    """
    reach, kept, pull = intercept
    done, rose, share, before, since = 0, 0.0, _SURE * tol, np.inf, 0
    while True:
        bounds[0], bounds[1] = np.inf, -np.inf
        limits = (min(most - done, max(_FIRST, done)), 0, value + rose, share, _FIRST)
        count, _, rise, total, b, settled = sweeps(
            data,
            indices,
            indptr,
            centre,
            sides,
            (reach, kept, 0.0),
            order,
            len(order),
            bounds,
            alpha,
            w,
            b,
            seed,
            limits,
        )
        done, rose, seed = done + count, rose + total, seed + np.uint64(count)
        gap, primal = _gap(data, indices, indptr, centre, sides, alpha, w, b, pull)
        still = settled and count == 1
        if gap <= tol * primal or done >= most or still or not np.isfinite(gap):
            return done, rose, b, still
        rate = np.log(max(before / gap, 1.0 + 1e-9)) / (done - since)
        if done >= _KNOWN and np.log(gap / (tol * primal)) > rate * (most - done):
            return done, rose, b, still
        before, since = gap, done
        share = rise / (value + rose) * min(0.7, _SURE * tol * primal / gap) if value + rose > 0.0 else 0.0
