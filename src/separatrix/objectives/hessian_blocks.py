"""The second derivatives of a loss of linear scores over one block.

Σᵢ sᵢ ∇²ℓᵢ ⊗ xᵢxᵢᵀ          (m, m, p, p): block (k, l) is Σ s ∂²ℓ/∂η_k∂η_l xxᵀ, for a softmax −Σ s p_kp_l xxᵀ off the diagonal
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Float
from separatrix.data.centred.dense_rows import scratch_rows
from separatrix.objectives.losses import Loss, Softmax

# Parameters up to which the blocks of a softmax are products of rows p ⊗ x with themselves, of so many numbers and rows at
# a time.
_ONE_PRODUCT, _SCRATCH, _LEAST_ROWS = 400, 1 << 16, 128


def hessian_blocks(loss: Loss, block: Block, curvature: Float, columns: NDArray[np.intp] | None) -> Float:
    """(m, m, p, p) blocks of Σ s ∇²ℓ ⊗ xxᵀ."""
    m, p = loss.n_scores, block.shape[1] if columns is None else len(columns)

    def gram(weights: Float) -> Float:
        return block.gram(weights) if columns is None else block.gram_of(columns, weights)

    if columns is None and isinstance(loss, Softmax) and m * p <= _ONE_PRODUCT and block.plain_rows() is not None:
        return _of_softmax(loss, block, curvature)
    blocks, added_up = np.zeros((m, m, p, p)), loss.gauge() is not None
    for k in range(m):
        for l in range(k + added_up, m):  # noqa: E741  # name of the formula
            entry = loss.pair(curvature, k, l)
            entry = entry if block.weights is None else entry * block.weights
            if k == l:
                blocks[k, l] = gram(entry)
            else:  # the entries have one sign; products with themselves are cheaper than with others
                blocks[k, l] = blocks[l, k] = -gram(np.maximum(-entry, 0.0))
        if added_up:  # p(1 − p) is the sum of p times the others
            blocks[k, k] = -blocks[k].sum(axis=0)
    return blocks


def _of_softmax(loss: Softmax, block: Block, posterior: Float) -> Float:
    """The same by products of rows p ⊗ x with themselves: −Σ s p_kp_l xxᵀ off the diagonal, a few rows at a time.

    On it p_k(1 − p_k), where p − p² would cancel: without a baseline that is what the other blocks of the row add up to.
    """
    plain = block.plain_rows()
    assert plain is not None
    (X, ones), (m, p) = plain, (posterior.shape[1], block.shape[1])
    roots = posterior if block.weights is None else posterior * np.sqrt(block.weights)[:, None]
    total, step = np.zeros((m * p, m * p)), max(_LEAST_ROWS, _SCRATCH // max(1, m * p))
    roots = np.ascontiguousarray(roots.T)
    for start in range(0, block.n, step):
        own, part = roots[:, start : start + step], np.ascontiguousarray(X[start : start + step].T)
        flat = scratch_rows(m * p, own.shape[1])  # column by column: few columns would be short loops
        rows = flat.reshape(m, p, own.shape[1])
        np.multiply(own[:, None, :], part, out=rows[:, : len(part)])
        if ones:
            rows[:, -1] = own
        total += np.dot(flat, flat.T)
    if loss.gauge() is not None:
        return blocks_of_products(total, m)
    blocks = _off_diagonal(total, m)
    for k in range(m):
        entry = loss.pair(posterior, k, k)
        blocks[k, k] = block.gram(entry if block.weights is None else entry * block.weights)
    return blocks


def _off_diagonal(products: Float, m: int) -> Float:
    p = len(products) // m
    return np.negative(products.reshape(m, p, m, p).transpose(0, 2, 1, 3), order="C")


def blocks_of_products(products: Float, m: int) -> Float:
    """(m, m, p, p) blocks of the Hessian of all scores of a softmax from (mp, mp) Σ s ππᵀ ⊗ xxᵀ.

    Those of one row add up to nothing: the one on the diagonal is less the sum of the others.
    """
    blocks = _off_diagonal(products, m)
    for k in range(m):
        blocks[k, k] = 0.0
        own = blocks[k].sum(axis=0)
        blocks[k, k] = -0.5 * (own + own.T)  # to the last bit
    return blocks
