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
from separatrix.kernels.products.panels import WIDTH, aligned, multiply_some, panels_of

__all__ = ["left_out_losses", "left_out_scores", "panels_of"]

_SMALL = 1.0 / 8.0


@compiled(fastmath={"contract"})
def _add_up(sums: Any, x: Any, G: Any, moving: Any) -> None:
    """Σ_l x^l T_l into the first G rows: by Horner, from the last term on."""
    for row in range(sums.shape[0] - 1, G - 1, -1):
        term, into = sums[row], sums[row - moving if row >= G + moving else row - G]
        for i in range(x.shape[0]):
            into[i] += x[i] * term[i]


@compiled(fastmath={"contract"})
def _polynomials(constants: Any, x: Any, moving: Any, out: Any) -> None:
    """(G, n) the same for terms (R,) that are the same for all rows."""
    R, G = constants.shape[0], out.shape[0]
    for g in range(G):
        values = out[g]
        at = R - moving + g if R > G and g < moving else g
        for i in range(x.shape[0]):
            values[i] = constants[at]
        while at >= G:
            at = at - moving if at >= G + moving else at - G
            for i in range(x.shape[0]):
                values[i] = values[i] * x[i] + constants[at]


@compiled()
def _square(u: Any, columns: Any, out: Any) -> None:
    """The squares of so many columns of a panel."""
    for start in range(0, len(u), WIDTH):
        numbers, squares = u[start : start + columns], out[start : start + columns]
        for i in range(columns):
            squares[i] = numbers[i] * numbers[i]


@compiled(fastmath={"reassoc", "contract"}, error_model="numpy")
def _bend(terms: Any, logs: Any, shift: Any, bent: Any, constants: Any) -> None:
    """Terms of Σus/A for u, and those of Σs²/A + log|A|."""
    for r in range(bent.shape[0]):
        total = 0.0
        for c in range(shift.shape[0]):
            bent[r, c] = terms[r, c] * shift[c]
            total += bent[r, c] * shift[c]
        constants[r] = logs[r] + total


@compiled(inline="always", fastmath={"contract"}, error_model="numpy")
def _quotient_and_log(x: Any, y: Any) -> Any:
    """x/(1 − y) + log(1 − y) for 0 ≤ y < _SMALL, with one division."""
    left, twice = 1.0 - y, 2.0 - y
    inverse = 1.0 / (left * twice)
    s = y * left * inverse
    z = s * s
    tail = 1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (1 / 15)))
    return x * twice * inverse - 2.0 * (s + s * z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * tail))))


@compiled(fastmath={"contract"}, error_model="numpy")
def _combine(
    uu: Any, us: Any, rest: Any, shrunk: Any, prior: Any, stretch: Any, least: Any, start: Any, stop: Any, out: Any
) -> None:
    """(G, n) scores of a class, of the rows from `start` on; with a `stretch` of the rows' own.

    With y = r uᵀA⁻¹u, log(1 − y) = −2 artanh s, s = y/(2 − y), by its series up to s¹⁵ where s² < 1/200.
    """
    for g in range(out.shape[0]):
        ratio, score, a, s, constant, large = shrunk[g], out[g, start:stop], uu[g], us[g], rest[g], 0
        for i in range(score.shape[0]):
            large += not ratio * a[i] < _SMALL
        if large > 0:
            for i in range(score.shape[0]):
                along = a[i] * stretch if stretch > 0.0 else a[i] + s[i]
                squares = stretch * along if stretch > 0.0 else along + s[i]
                left = 1.0 - ratio * a[i]
                log = math.log(left) if left > least else math.nan
                score[i] = prior - 0.5 * (squares + constant[i] + ratio * along * along / left + log)
        elif stretch > 0.0:
            for i in range(score.shape[0]):
                along, y = a[i] * stretch, ratio * a[i]
                score[i] = prior - 0.5 * (stretch * along + constant[i] + _quotient_and_log(ratio * along * along, y))
        else:
            for i in range(score.shape[0]):
                along, y = a[i] + s[i], ratio * a[i]
                score[i] = prior - 0.5 * (along + s[i] + constant[i] + _quotient_and_log(ratio * along * along, y))


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
    d, every = terms.shape[2], vectors.shape[0] > 1
    u, squares, bent = aligned(d * WIDTH, z), aligned(d * WIDTH, z), np.zeros((J, R, d))
    uu, us, constants = aligned(R * WIDTH, z), aligned(R * WIDTH, z), np.empty((J, R))
    sums, others, rest = uu.reshape(R, WIDTH), us.reshape(R, WIDTH), np.empty((G, WIDTH))
    us[:] = 0.0
    for j in range(J):
        b = j if every else 0
        _bend(terms[b], logs[b], np.dot(vectors[b], shifts[j]), bent[j], constants[j])
    for part in range(len(z)):
        start, stop = part * WIDTH, min(part * WIDTH + WIDTH, n)
        columns, here = stop - start, x[start:stop]
        for j in range(J):
            b = j if every else 0
            if b == j:
                multiply_some(vectors[b], d, z[part], columns, u)
                _square(u, columns, squares)
                multiply_some(terms[b], R, squares, columns, uu)
                _add_up(sums, here, G, moving)
            _polynomials(constants[j], here, moving, rest)
            if stretch == 0.0:
                multiply_some(bent[j], R, u, columns, us)
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
