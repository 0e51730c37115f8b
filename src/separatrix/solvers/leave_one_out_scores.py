"""Approximate leave-one-out: the scores of every row by the model without it, from one Newton step each.

    η̃ᵢ = ηᵢ + Aᵢ (I − ∇²ℓᵢAᵢ)⁻¹ ∇ℓᵢ,      Aᵢ = (I ⊗ xᵢᵀ) H⁻¹ (I ⊗ xᵢ)  (m, m)

H = ∇²F at the optimum, over the columns that are not zero when the penalty has absolute values: those are what a small
change moves. A weight counts repetitions, so one of them is left out.

Reference: Rad and Maleki (2020), J. Royal Statistical Society B 82, eq. 11 and theorem 1.

**Complexity** O(n m² p²). **Passes over the data** two: one for H, one for the scores.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Block, Codes, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import LinearObjective
from separatrix.solvers.curvature import Curvature, without_gauge


def leave_one_out_losses(objective: LinearObjective, source: Source, theta: Float) -> tuple[float, float]:
    """Mean loss and mean error rate over rows that are each scored by the model without it."""
    used = (theta != 0).any(axis=0) | objective.penalty.free.any(axis=0)
    columns = np.arange(theta.shape[1]) if objective.penalty.smooth else np.flatnonzero(used)
    evaluation = objective.evaluate(theta, source, 2, columns=columns)
    assert evaluation.hessian is not None
    hessian = evaluation.hessian
    if len(columns) == theta.shape[1]:
        hessian = without_gauge(hessian, objective)
    m, p = len(theta), len(columns)
    inverse = Curvature(hessian, (m, p)).inverse().reshape(m, p, m, p)

    def of_block(block: Block) -> Float:
        total = np.zeros(2)
        for piece in block.pieces(1 << 20):
            total += _piece_losses(objective, theta, piece, columns, inverse)
        return total

    total = source.reduce(of_block, np.add) / evaluation.total
    return float(total[0]), float(total[1])


def _piece_losses(objective: LinearObjective, theta: Float, piece: Block, columns: Codes, inverse: Float) -> Float:
    piece, own = objective.counted(piece)
    codes, loss = piece.codes, objective.loss
    eta = objective.scores(theta, piece, own)
    slopes, curvature = loss.gradient(codes, eta), loss.curvature(codes, eta)
    rows = piece.columns(columns).dense()
    m = len(theta)
    leverage = np.empty((piece.n, m, m))
    for k in range(m):
        for l in range(m):  # noqa: E741  # name of the formula
            leverage[:, k, l] = np.einsum("ij,ij->i", rows @ inverse[k, :, l, :], rows)
    second = np.stack([[loss.pair(curvature, k, l) for l in range(m)] for k in range(m)]).transpose(2, 0, 1)  # noqa: E741  # name of the formula
    # Leaving out a row that alone determines a coefficient has no finite answer: keep a little of it.
    inner = np.eye(m) - (1.0 - 1e-10) * second @ leverage
    moved = eta + np.einsum("ikl,il->ik", leverage, np.linalg.solve(inner, slopes[:, :, None])[:, :, 0])
    weights = np.ones(piece.n) if piece.weights is None else piece.weights
    return np.array([weights @ loss.value(codes, moved), weights @ loss.errors(codes, moved)])
