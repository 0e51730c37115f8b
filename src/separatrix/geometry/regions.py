"""Which classes of a linear rule share a boundary where the data are.

    η(x) = Wx + b,      the face of k and l:  F_kl = {x : η_k(x) = η_l(x) ≥ η_j(x) for all j}

k and l are neighbours when F_kl meets the convex hull of the rows. η is affine, so it takes convex combinations of rows to
those of their scores, and the question is one about K numbers per row:

    maximise t   subject to   Σᵢ λᵢ (s_ik − s_ij) ≥ t,   Σᵢ λᵢ (s_ik − s_il) = 0,   Σ λ = 1,  λ ≥ 0

t ≥ 0: they meet at Σ λᵢxᵢ, where they lead all others by t. At t = 0 they meet in a corner, among others.

The programme has a column for every row. It is solved on a few rows, to which those are added whose prices would raise t
most, until none would: the optimum over all rows. Reference: Dantzig and Wolfe (1960), Operations Research 8, 101–111.

**Complexity** O(nK) per round, for each of K(K−1)/2 pairs; a programme of K constraints has at most K + 1 rows in its answer.
**Passes over the data** two: one for the scores, which are kept (n × K), one for the witnesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from separatrix.data.block import Block, Codes, Float
from separatrix.data.dispatch import as_source
from separatrix.data.labels import listed, shown

# Of scores of order 1: two that differ by less are the same.
_SMALL = 1e-9
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_ROWS_AT_ONCE = 50


@dataclass(frozen=True)
class Adjacency:
    """What `adjacency` found.

    Parameters
    ----------
    classes : ndarray of shape (K,)
        The labels, in the order of the matrix.
    matrix : ndarray of bool, (K, K)
        Whether two classes share a boundary within the hull of the rows; False on the diagonal.
    clearance : ndarray of shape (K, K)
        By how much the scores of the two lead those of all others at the witness: 0 where they meet in a corner only, infinite
        when there are no others, NaN for classes that are no neighbours.
    witnesses : dict of (label, label) to ndarray of shape (d,)
        For neighbours, in the order of `classes`, a point of their boundary within the hull.
    """

    classes: NDArray[Any]
    matrix: NDArray[np.bool_]
    clearance: Float
    witnesses: dict[tuple[Any, Any], Float]

    def neighbours(self, label: Any) -> list[Any]:
        """The classes that share a boundary with one."""
        found = np.flatnonzero(self.classes == label)
        if not len(found):
            raise ValueError(f"{label!r} is not a class of this model; the classes are {listed(self.classes)}.")
        return self.classes[self.matrix[found[0]]].tolist()

    def __str__(self) -> str:
        pairs = [f"{shown(one)} and {shown(two)}" for one, two in self.witnesses]
        return f"Neighbours within the hull of the rows: {'; '.join(pairs) or 'none'}."


def adjacency(model: Any, X: Any) -> Adjacency:
    """Which classes of a linear rule share a boundary within the convex hull of the rows, by linear programming.

    Parameters
    ----------
    model : fitted classifier
        With `linear_form`, or with ``coef_`` and ``intercept_`` of one vector per class (a single one for two classes).
    X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
        The rows whose hull counts.

    Returns
    -------
    Adjacency
        Matrix, clearances and a point of every shared boundary. Scores that differ by less than 10⁻⁹ of their range are not
        told apart.

    Examples
    --------
    Three classes in a row: the outer ones do not meet.

    >>> from separatrix import LinearDiscriminantAnalysis
    >>> from separatrix.geometry import adjacency
    >>> X = [[0.0], [1.0], [4.0], [5.0], [8.0], [9.0]]
    >>> lda = LinearDiscriminantAnalysis().fit(X, ["a", "a", "b", "b", "c", "c"])
    >>> found = adjacency(lda, X)
    >>> found.neighbours("b"), found.neighbours("a")
    (['a', 'c'], ['b'])
    >>> found.witnesses["a", "b"].round(6).tolist()
    [2.5]
    """
    classes, W, b = linear_rule(model)
    source = as_source(X)
    if source.n_features != W.shape[1]:
        raise ValueError(f"X has {source.n_features} features, but the rule has {W.shape[1]}.")
    possible = np.flatnonzero(np.isfinite(b))  # a class of prior 0 is chosen nowhere
    slopes, constants = W[possible].T, b[possible]

    def counted(block: Block) -> NDArray[np.bool_]:
        return np.ones(block.n, dtype=bool) if block.weights is None else block.weights > 0

    def look(block: Block) -> tuple[Float, NDArray[np.bool_]]:
        return block.counted().matvec(slopes) + constants, counted(block)

    parts = list(source.map(look))
    counts = np.concatenate([np.zeros(0, dtype=bool), *(part[1] for part in parts)])
    if not counts.any():
        raise ValueError("The data have no rows that count: at least one is needed.")
    scores = np.concatenate([part[0] for part in parts])
    source.check_finite(scores)
    scores -= scores.mean(axis=1, keepdims=True)  # what is common to all classes decides nothing
    size = float(np.abs(scores).max()) or 1.0
    scores /= size
    K, places = len(classes), np.flatnonzero(counts)
    matrix, clearance = np.zeros((K, K), dtype=bool), np.full((K, K), np.nan)
    met: list[tuple[int, int, Codes, Float]] = []
    for first, second in combinations(range(len(possible)), 2):
        found = _meeting(scores, first, second)
        if found is None:
            continue
        lead, rows, weights = found
        k, l = int(possible[first]), int(possible[second])  # noqa: E741  # names of the formulas
        matrix[k, l] = matrix[l, k] = True
        clearance[k, l] = clearance[l, k] = max(0.0, size * lead)
        met.append((k, l, places[rows], weights))

    def combine(block: Block) -> Float:
        weights = np.zeros((block.n, len(met)))
        for pair, (_, _, rows, shares) in enumerate(met):
            inside = (rows >= block.start) & (rows < block.start + block.n)
            weights[rows[inside] - block.start, pair] = shares[inside]
        return block.counted().rmatvec(weights[counted(block)]).T

    points = source.reduce(combine, np.add) if met else []
    labels = classes.tolist()
    witnesses = {(labels[pair[0]], labels[pair[1]]): point for pair, point in zip(met, points, strict=True)}
    return Adjacency(classes, matrix, clearance, witnesses)


def _meeting(scores: Float, k: int, l: int) -> tuple[float, Codes, Float] | None:  # noqa: E741  # names of the formulas
    """The largest lead t of two classes where they are equal, and the rows and weights that have it; None if t < 0."""
    gap = scores[:, k] - scores[:, l]
    gap[np.abs(gap) <= _SMALL] = 0.0
    rows = np.unique([gap.argmin(), gap.argmax()])  # between these the two classes are equal somewhere, if anywhere
    if gap[rows].min() > 0.0 or gap[rows].max() < 0.0:
        return None
    others = np.delete(np.arange(scores.shape[1]), [k, l])
    if len(others) == 0:
        weights = np.abs(gap[rows[::-1]]) if gap[rows].any() else np.ones(len(rows))
        return np.inf, rows, weights / weights.sum()
    behind = scores[:, others] - scores[:, [k]]
    while True:
        here = len(rows)
        answer = linprog(
            np.append(np.zeros(here), -1.0),
            A_ub=np.column_stack([behind[rows].T, np.ones(len(others))]),
            b_ub=np.zeros(len(others)),
            A_eq=np.column_stack([[gap[rows], np.ones(here)], np.zeros(2)]),
            b_eq=[0.0, 1.0],
            bounds=[*[(0.0, None)] * here, (None, None)],
            options=_OPTIONS,
        )
        if answer.status != 0:
            raise RuntimeError(f"The linear programme of two classes was not solved: {answer.message}")
        slope, constant = answer.eqlin.marginals
        costs = -(behind @ answer.ineqlin.marginals + slope * gap + constant)
        cheapest = np.argpartition(costs, min(_ROWS_AT_ONCE, len(costs) - 1))[:_ROWS_AT_ONCE]
        worth = np.setdiff1d(cheapest[costs[cheapest] < -_SMALL], rows)  # these would raise t
        if not len(worth):
            break
        rows = np.union1d(rows, worth)
    lead, used = float(answer.x[-1]), np.flatnonzero(answer.x[:-1] > 0.0)
    weights = answer.x[used]
    return None if lead < -_SMALL else (lead, rows[used], weights / weights.sum())


def linear_rule(model: Any) -> tuple[NDArray[Any], Float, Float]:
    """Classes, (K, d) vectors and (K,) constants of a fitted linear rule; of two classes the first has zeros."""
    name = type(model).__name__
    if hasattr(model, "linear_form"):
        W, b = model.linear_form()
    elif hasattr(model, "coef_") and hasattr(model, "intercept_") and hasattr(model, "classes_"):
        W, b = getattr(model.coef_, "toarray", lambda: model.coef_)(), model.intercept_
    else:
        raise TypeError(
            f"{name} has no linear form, or is not fitted. Give a fitted linear rule: a model with linear_form(), or with "
            "coef_ and intercept_; of a pipeline its last step, with rows as that step sees them."
        )
    classes = np.asarray(model.classes_)
    W, b = np.atleast_2d(np.asarray(W, dtype=np.float64)), np.atleast_1d(np.asarray(b, dtype=np.float64))
    b = np.broadcast_to(b, len(W)) if len(b) == 1 else b
    if len(classes) == 2 and len(W) == 1:
        return classes, np.pad(W, ((1, 0), (0, 0))), np.pad(b, (1, 0))
    pairs = getattr(model, "decision_function_shape", None) is not None  # one vector per pair of classes
    if pairs or W.shape[0] != len(classes) or len(b) != len(classes):
        raise TypeError(
            f"The rule of {name} is not the largest of one linear score per class ({len(classes)} classes, {len(W)} vectors), "
            "so two of its regions may share many faces. Use a rule with one vector per class, such as LogisticRegression."
        )
    return classes, W, b
