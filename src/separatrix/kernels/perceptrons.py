"""Epochs of several perceptrons at once, by the plain rule without a penalty: every row is read once.

    f_k = v_kᵀx + b_k,      t_k f_k ≤ 0:   v_k ← v_k + η s t_k x,   b_k ← b_k + η s t_k ℓ²

Vectors are rows of V for dense rows; for sparse ones they are its columns, so that an entry meets those of all machines side by
side. See perceptron.py for the rule with everything that may be added to it, and for the meaning of the arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.perceptron import REORDERED, shuffle, shuffled


@compiled(fastmath=REORDERED)
def _scores(row: Any, V: Any, scores: Any) -> None:
    for k in range(len(V)):
        score = 0.0
        for j in range(len(row)):
            score += V[k, j] * row[j]
        scores[k] = score


@compiled()
def _add(v: Any, row: Any, step: Any) -> None:
    for j in range(len(row)):
        v[j] += row[j] * step


@compiled(fastmath=REORDERED)
def _sparse_scores(data: Any, indices: Any, first: Any, last: Any, V: Any, scores: Any) -> None:
    scores[:] = 0.0
    for p in range(first, last):
        value, j = data[p], np.uint64(indices[p])
        for k in range(len(scores)):
            scores[k] += V[j, k] * value


@compiled()
def epochs_together(
    rows: Any, salts: Any, targets: Any, factors: Any, rule: Any, V: Any, b: Any, sums: Any, stop: Any, trace: Any
) -> int:
    """Epochs, one per salt at most, until the first machine is done; how many were made.

    `targets` are the codes of the machines; `sums` (K, 4) collects visits, mistakes, loss and the weight of the last run of
    right rows; `stop` is whether there is a tol, tol, the epochs to wait, and arrays (K,) of the best loss and the epochs
    waited; `trace` (epochs, K, 2) takes mistakes and loss.
    """
    data, indices, indptr, which, codes, weights = rows
    eta, lift_squared = rule
    bounded, tol, patience, best, waited = stop
    machines, width, dense, given = len(targets), V.shape[1], len(indptr) == 0, np.arange(len(which))
    scores, places = np.zeros(machines), np.empty_like(which)
    # Every array that is met in random order costs a wait for memory: labels are kept short, and equal weights are one.
    labels = codes.astype(np.int32)
    alike = len(weights) > 0 and weights.min() == weights.max()
    for epoch in range(len(salts)):
        before = sums.copy()
        if alike:
            places[:] = which
            if salts[epoch] != np.uint64(0):
                shuffle(places, salts[epoch])
            order = places
        else:
            order = given if salts[epoch] == np.uint64(0) else shuffled(len(given), salts[epoch])
        for at in order:
            i = at if alike else which[at]
            one = weights[0 if alike else at]
            first = i * width if dense else indptr[i]
            last = first + width if dense else indptr[i + 1]
            if dense:
                _scores(data[first:last], V, scores)
            else:
                _sparse_scores(data, indices, first, last, V, scores)
            for k in range(machines):
                sign = 1.0 if labels[i] == targets[k] else -1.0
                weight = factors[k, 1] * one if sign > 0.0 else factors[k, 0] * one
                if weight == 0.0:
                    continue
                margin = sign * (scores[k] + b[k])
                sums[k, 0] += 1.0
                if margin > 0.0:
                    sums[k, 3] += weight
                    continue
                sums[k, 1] += 1.0
                sums[k, 2] -= margin
                sums[k, 3] = 0.0
                step = eta * sign * weight
                if dense:
                    _add(V[k], data[first:last], step)
                else:
                    for p in range(first, last):
                        V[np.uint64(indices[p]), k] += data[p] * step
                b[k] += step * lift_squared
        ended = False
        for k in range(machines):
            value = (sums[k, 2] - before[k, 2]) / max(1.0, sums[k, 0] - before[k, 0])
            trace[epoch, k, 0], trace[epoch, k, 1] = sums[k, 1] - before[k, 1], value
            waited[k] = waited[k] + 1 if bounded and value > best[k] - tol else 0
            best[k] = min(best[k], value)
            ended = ended or trace[epoch, k, 0] == 0.0 or waited[k] >= patience
        if ended:
            return epoch + 1
    return len(salts)
