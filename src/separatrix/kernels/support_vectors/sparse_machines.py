"""Linear machines on few sparse rows, each from zero to its proof, without a return to Python.

    primal  ½‖w‖² + Σ Cᵢ max(0, 1 − ỹᵢ(wᵀxᵢ + b))ᵖ,  p = 1 or 2          dual  Σ αᵢ − ½‖Σ αᵢỹᵢxᵢ‖² − ½Σ Dᵢαᵢ²,   0 ≤ αᵢ ≤ Uᵢ

Sweeps of dual coordinate ascent (dual_hinge.py) until the gap is small, and then the proof of dual/linear_proof.py, in loops: b
the best for w, the heavier side's α shrunk until the two sides balance, the best share of these. A sum of n terms, added one
after the other or in any other order, loses at most n u Σ|terms|, u = ε/2.

Where slack is cheap every α ends at a bound and all scores are small: those of w = Σ Cᵢỹᵢxᵢ tell how small. A free intercept
that moves by more than their spread for the change of one α is swung about by every row.

Reference: Hsieh et al. (2008), ICML.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.support_vectors.dual_hinge import sweeps_to_a_gap

_EPS = float(np.finfo(np.float64).eps)
_UNIT = 0.5 * _EPS
_TINY = float(np.finfo(np.float64).tiny)
# Of the gap that is asked for: what sweeps aim at before each proof. A proof that is so many times short is the last one.
_AIMS, _NEAR = (0.9, 0.3, 0.1, 0.03), 100.0
# How far a free intercept may move for one α, in spreads of the scores per ΣC.
_SPREADS = 30.0


@compiled()
def _scores(data: Any, indices: Any, indptr: Any, w: Any, scores: Any) -> None:
    for i in range(len(scores)):
        total = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            total += w[indices[at]] * data[0, at]
        scores[i] = total


@compiled()
def _products(data: Any, indices: Any, indptr: Any, r: Any, v: Any) -> None:
    v[:] = 0.0
    for i in range(len(r)):
        if r[i] != 0.0:
            for at in range(indptr[i], indptr[i + 1]):
                v[indices[at]] += r[i] * data[0, at]


@compiled()
def _reach(data: Any, indices: Any, indptr: Any, signs: Any, price: Any, reach: Any, w: Any, scores: Any) -> Any:
    """How far a free intercept of the hinge moves for a change of α: no further than the spread of the scores allows."""
    _products(data, indices, indptr, signs * price, w)
    _scores(data, indices, indptr, w, scores)
    total, mean, spread = price.sum(), scores.mean(), 0.0
    for i in range(len(scores)):
        spread += (scores[i] - mean) ** 2
    spread = np.sqrt(spread / len(scores))
    return min(reach, _SPREADS * min(1.0, spread) / total) if spread > 0.0 else reach


@compiled()
def _best_intercept(near: Any, scores: Any, signs: Any, price: Any, power: Any, pull: Any) -> Any:
    """argmin_b Σ C max(0, 1 − ỹ(score + b))ᵖ + ½ pull b², for p = 2 by a step of Newton's from `near` where that ends there."""
    n = len(signs)
    v = signs - scores
    if power == 2:
        mass, moment = 0.5 * pull, 0.0
        for i in range(n):
            if signs[i] * (v[i] - near) > 0.0:
                mass += price[i]
                moment += price[i] * v[i]
        if mass > 0.0:
            found, same = moment / mass, True
            for i in range(n):
                same = same and (signs[i] * (v[i] - near) > 0.0) == (signs[i] * (v[i] - found) > 0.0)
            if same:
                return found
    order = np.argsort(v)
    # The slope between neighbouring v is (mass + pull) b − moment: b is where it changes sign.
    mass, moment, below = 0.0, 0.0, -np.inf
    slope_pull = pull if power == 1 else 0.5 * pull
    for i in range(n):
        if signs[i] > 0.0:
            if power == 1:
                moment += price[i]
            else:
                mass += price[i]
                moment += price[i] * v[i]
    for at in range(n + 1):
        above = v[order[at]] if at < n else np.inf
        curved = mass + slope_pull
        if at == n or not curved * above - moment < 0.0:
            if curved > 0.0:
                return min(max(moment / curved, below), above)
            return below if at > 0 else above
        i = order[at]
        if power == 1:
            moment -= price[i]
        else:
            change = -price[i] if signs[i] > 0.0 else price[i]
            mass += change
            moment += change * v[i]
        below = above
    return below


@compiled()
def prove(
    data: Any,
    indices: Any,
    indptr: Any,
    lengths: Any,
    signs: Any,
    price: Any,
    power: Any,
    intercept: Any,
    terms: Any,
    w: Any,
    beta: Any,
    alpha: Any,
    scores: Any,
    figures: Any,
) -> None:
    """figures = (b, objective, the same with rounding counted, lower bound, imbalance, complementary slackness); α is balanced.

    `lengths` are those of the rows, no smaller than they are; `terms` the most entries of a row and of a column. `intercept` is
    (its scale, the curvature of its penalty): a scale of 0 where there is none, and infinite where it is free.
    """
    (scaling, pull), n, d = intercept, len(signs), len(w)
    free, sums = np.isinf(scaling), (n + 8.0) * _UNIT
    _scores(data, indices, indptr, w, scores)
    b = 0.0 if scaling == 0.0 else _best_intercept(beta, scores, signs, price, power, pull)
    squared = 0.0
    for j in range(d):
        squared += w[j] * w[j]
    size = np.sqrt(squared) * (1.0 + (d + 4.0) * _EPS)
    if scaling > 0.0 and not free:
        squared += (b / scaling) ** 2
    loss, most, complementary = 0.0, 0.0, 0.0
    for i in range(n):
        margin = 1.0 - signs[i] * (scores[i] + b)
        rounding = (terms[0] + 6.0) * _UNIT * (1.0 + sums) * (lengths[i] * size + abs(b))
        slack, largest = max(0.0, margin), max(0.0, margin + rounding + _EPS * abs(margin))
        loss += price[i] * (slack if power == 1 else slack * slack)
        most += price[i] * (largest if power == 1 else largest * largest)
    value = 0.5 * squared + loss
    upper = 0.5 * squared * (1.0 + (d + 8.0) * _EPS) + most * (1.0 + 2.0 * sums)
    # The two sides: Σ αỹ = 0 where the intercept is free, and b = s² Σ αỹ where it has a penalty.
    excess, more, less = pull * b, 0.0, 0.0
    for i in range(n):
        if signs[i] > 0.0:
            more += alpha[i]
        else:
            less += alpha[i]
    imbalance, first = abs(more - less - excess), more > less + excess
    heavy, light = (more, less + excess) if first else (less, more - excess)
    factor = light / heavy if scaling != 0.0 and heavy > 0.0 and heavy != light else 1.0
    if scaling == 0.0 or (not free and not (imbalance > 2.0 * pull and 0.0 <= light <= heavy)):
        factor = 1.0
    for i in range(n):
        if (signs[i] > 0.0) == first:
            alpha[i] *= factor
        margin = 1.0 - signs[i] * (scores[i] + b)
        complementary = max(complementary, alpha[i] * max(0.0, -margin))
        if power == 1:
            complementary = max(complementary, (price[i] - alpha[i]) * max(0.0, margin))
    figures[0], figures[1], figures[2] = b, value, upper
    figures[3] = _lower(data, indices, indptr, lengths, signs, price, power, scaling, terms, alpha, d)
    figures[4], figures[5] = imbalance if free else 0.0, complementary


@compiled()
def _lower(
    data: Any,
    indices: Any,
    indptr: Any,
    lengths: Any,
    signs: Any,
    price: Any,
    power: Any,
    scaling: Any,
    terms: Any,
    alpha: Any,
    d: Any,
) -> Any:
    """A lower bound of the optimum from balanced α, rounding counted (linear_proof.py)."""
    n, v, r = len(signs), np.zeros(d), signs * alpha
    sums = (n + 8.0) * _UNIT
    _products(data, indices, indptr, r, v)
    both, off, weight, ridge, length = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        both += alpha[i]
        off += r[i]
        weight += lengths[i] * alpha[i]
        if power == 2:
            ridge += alpha[i] * alpha[i] * (0.5 / price[i])
    for j in range(d):
        length += v[j] * v[j]
    moved, left, sides = (terms[1] + 6.0) * _UNIT * weight * (1.0 + sums) * (1.0 + terms[1] * _EPS), 0.0, 0.0
    if np.isinf(scaling):
        left = abs(off) + sums * both
        moved += left / max(0.5 * both * (1.0 - sums), _TINY) * weight * (1.0 + 2.0 * sums)
    elif scaling > 0.0:
        sides = scaling * (abs(off) + sums * both)
    length = np.sqrt(length) * (1.0 + (d + 4.0) * _EPS) + moved
    gain, curved = both * (1.0 - sums) - left, (length * length + sides * sides + ridge) * (1.0 + 2.0 * sums)
    if not (gain > 0.0 and np.isfinite(curved)):
        return 0.0
    share = min(1.0, gain / curved) if curved > 0.0 else 1.0
    return (share * gain - 0.5 * share * share * curved) * (1.0 - 4.0 * _EPS)


@compiled()
def solve_sparse_machines(
    data: Any,
    indices: Any,
    indptr: Any,
    squares: Any,
    lengths: Any,
    signs: Any,
    price: Any,
    power: Any,
    intercept: Any,
    terms: Any,
    seeds: Any,
    limits: Any,
    w: Any,
    alpha: Any,
    found: Any,
) -> None:
    """Fill in w (K, d), the balanced α (K, n) and `found` (K, 8): the figures of `prove`, sweeps and proofs.

    Rows are the three arrays of a CSR matrix, `data` with a first axis of one. `intercept` is (reach, the share of b that a
    sweep's end keeps, its scale, the curvature of its penalty); see `prove`. `limits` are (the gap to reach, of the objective,
    and the most sweeps). A machine that comes nowhere near is left where its first proof finds it.
    """
    n = len(price)
    first_reach, kept, scaling, pull = intercept
    tol, most = limits[0], int(limits[1])
    upper, ridge = price.copy(), np.zeros(n)
    if power == 2:
        for i in range(n):
            upper[i], ridge[i] = np.inf, 0.5 / price[i]
    centre, bounds, scores, duals = np.zeros(0), np.empty(2), np.empty(n), np.empty(n)
    for k in range(len(signs)):
        y, own, figures = signs[k], w[k], found[k]
        reach = first_reach
        if power == 1 and np.isinf(scaling):
            reach = _reach(data, indices, indptr, y, price, first_reach, own, scores)
        own[:], duals[:] = 0.0, 0.0
        order, b, value, done, proofs = np.arange(n), 0.0, 0.0, 0, 0
        for aim in _AIMS:
            count, rise, b, still = sweeps_to_a_gap(
                data,
                indices,
                indptr,
                centre,
                (y, upper, ridge, squares),
                (reach, kept, pull),
                order,
                bounds,
                duals,
                own,
                b,
                value,
                seeds[k] + np.uint64(done),
                most - done,
                aim * tol,
            )
            done, value, proofs = done + count, value + rise, proofs + 1
            alpha[k] = duals
            prove(
                data,
                indices,
                indptr,
                lengths,
                y,
                price,
                power,
                (scaling, pull),
                terms,
                own,
                b,
                alpha[k],
                scores,
                figures,
            )
            gap = figures[2] - figures[3]
            if gap <= tol * figures[1] or still or done >= most or not gap <= _NEAR * tol * figures[1]:
                break
        figures[6], figures[7] = done, proofs
