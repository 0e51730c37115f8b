"""Leave-one-out scores of rows of one class under a row of shrunken covariances: see statistics/loo_series.py.

    score = log π − ½(vᵀA⁻¹v + r(uᵀA⁻¹v)²/(1 − r uᵀA⁻¹u) + log|A| + log(1 − r uᵀA⁻¹u)),     r = γq

The terms of the series are products of matrices (panels.py); what follows reads them once, while they are in cache.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.exponentials import falling_exponentials
from separatrix.kernels.panels import WIDTH, aligned, multiply, panels_of

__all__ = ["WIDTH", "left_out_losses", "left_out_scores", "panels_of_rows"]

_SMALL = 1.0 / 64.0


@compiled(inline="always")
def _add_up(sums: Any, x: Any, G: Any, moving: Any) -> None:
    """Σ_l x^l T_l into the first G rows: by Horner, from the last term on."""
    for row in range(sums.shape[0] - 1, G - 1, -1):
        term, into = sums[row], sums[row - moving if row >= G + moving else row - G]
        for i in range(x.shape[0]):
            into[i] += x[i] * term[i]


@compiled(fastmath={"reassoc", "contract"}, error_model="numpy")
def _combine(
    uu: Any, us: Any, rest: Any, shrunk: Any, prior: Any, stretch: Any, least: Any, start: Any, stop: Any, out: Any
) -> None:
    """(G, n) scores of a class, of the rows from `start` on; with a `stretch` of the rows' own."""
    for g in range(out.shape[0]):
        ratio, score, a, s, constant, large = shrunk[g], out[g, start:stop], uu[g], us[g], rest[g], 0
        if stretch == 0.0:
            for i in range(score.shape[0]):
                along, left = a[i] + s[i], 1.0 - ratio * a[i]
                score[i] = prior - 0.5 * (along + s[i] + constant[i] + ratio * along * along / left)
                large += not ratio * a[i] < _SMALL
        else:
            for i in range(score.shape[0]):
                along, left = a[i] * stretch, 1.0 - ratio * a[i]
                score[i] = prior - 0.5 * (stretch * along + constant[i] + ratio * along * along / left)
                large += not ratio * a[i] < _SMALL
        if large == 0:
            for i in range(score.shape[0]):
                y = ratio * a[i]
                tail = y * (1 / 6 + y * (1 / 7 + y * (1 / 8 + y * (1 / 9))))
                score[i] += 0.5 * y * (1 + y * (1 / 2 + y * (1 / 3 + y * (1 / 4 + y * (1 / 5 + tail)))))
        else:
            for i in range(score.shape[0]):
                left = 1.0 - ratio * a[i]
                score[i] -= 0.5 * math.log(left) if left > least else math.nan


@compiled()
def panels_of_rows(z: Any) -> Any:
    """Panels of rows z (d, n); of few rows one that is as narrow as they are few."""
    d, n = z.shape
    return z.copy().reshape(1, d * n) if 2 * n <= WIDTH else panels_of(z)


@compiled()
def _times(left: Any, panel: Any, width: Any, out: Any) -> None:
    """out = left · panel, in panels of this width."""
    if width == WIDTH:
        multiply(left, panel, out)
    else:
        rows, columns = left.shape
        found = out[: rows * width].reshape(rows, width)
        np.dot(left, panel[: columns * width].reshape(columns, width), found)


@compiled(fastmath={"reassoc", "contract"}, error_model="numpy")
def left_out_scores(
    z: Any, x: Any, vectors: Any, terms: Any, logs: Any, shrunk: Any, R: Any, moving: Any, shifts: Any, priors: Any,
    stretch: Any, least: Any, out: Any,
) -> None:  # fmt: skip
    """(J, G, n) scores into `out`; with a `stretch` those of the rows' own class. NaN where less than `least` is left.

    `z` are the panels of the rows. `vectors`, `terms`, `logs` and `shrunk` are of J classes or of one for all;
    R rows of the terms are used.
    """
    J, G, n = out.shape
    d = terms.shape[2]
    width, every = z.shape[1] // d, vectors.shape[0] > 1
    u, squares, bent = aligned(d * width, z), aligned(d * width, z), np.empty((J, R, d))
    uu, us, constants = aligned(R * width, z), aligned(R * width, z), np.empty((J, R))
    sums, others, rest = uu.reshape(R, width), us.reshape(R, width), np.empty((R, width))
    for j in range(J):
        b = j if every else 0
        shift = np.dot(vectors[b], shifts[j])
        for r in range(R):
            constants[j, r] = logs[b, r]
            for c in range(d):
                bent[j, r, c] = terms[b, r, c] * shift[c]
                constants[j, r] += bent[j, r, c] * shift[c]
    for part in range(len(z)):
        start, stop = part * width, min(part * width + width, n)
        here = x[start:stop]
        for j in range(J):
            b = j if every else 0
            if b == j:
                _times(vectors[b], z[part], width, u)
                for at in range(d * width):
                    squares[at] = u[at] * u[at]
                _times(terms[b, :R], squares, width, uu)
                _add_up(sums, here, G, moving)
            for r in range(R):
                for i in range(stop - start):
                    rest[r, i] = constants[j, r]
            _add_up(rest, here, G, moving)
            if stretch == 0.0:
                _times(bent[j], u, width, us)
                _add_up(others, here, G, moving)
            _combine(sums, others, rest, shrunk[b], priors[j], stretch, least, start, stop, out[j])


@compiled(error_model="numpy")
def left_out_losses(scores: Any, first: Any, weights: Any, losses: Any, errors: Any) -> None:
    """Log-losses and errors (G,) of rows with these scores (K, G, n), those of their own class last, summed over the rows.

    The classes from `first` on are before their own one and win a tie. Where a score is not a number, neither is the loss.
    """
    K, G, n = scores.shape
    largest, sums, value, wrong = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for g in range(G):
        own, bad = scores[K - 1, g], 0
        for i in range(n):
            largest[i], sums[i], wrong[i] = own[i], 0.0, 0.0
            bad += math.isnan(own[i])
        for k in range(K - 1):
            score = scores[k, g]
            for i in range(n):
                ahead = score[i] >= own[i] if k >= first else score[i] > own[i]
                wrong[i] = 1.0 if ahead else wrong[i]
                largest[i] = score[i] if score[i] > largest[i] else largest[i]
                bad += math.isnan(score[i])
        for k in range(K):
            for i in range(n):
                value[i] = scores[k, g, i] - largest[i]
            falling_exponentials(value)
            for i in range(n):
                sums[i] += value[i]
        loss, error = 0.0, 0.0
        for i in range(n):
            loss += weights[i] * (math.log(sums[i]) + largest[i] - own[i])
            error += weights[i] * wrong[i]
        losses[g], errors[g] = math.nan if bad else loss, error
