"""Scores in an ONNX graph that are no sums over columns: ordered classes, votes between pairs, kernels.

    ordered   s_k = −softplus(wᵀx − θ_k) − softplus(θ_{k−1} − wᵀx) + log(1 − e^{−(θ_k − θ_{k−1})})
    votes     s_k = votes_k + c_k/(3(|c_k| + 1))
    kernels   s = b + Σ_i β_i k(x, x_i); of the radial kernel the exponent is −γ‖x − c‖² + 2γ(x − c)ᵀ(z − c) − γ‖z − c‖²

The squares in the exponent cancel where γ‖z − c‖² is large; then differences are taken, of every row with every vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from separatrix.data.block import Float
from separatrix.export.onnx_nodes import OnnxNodes
from separatrix.geometry.cumulative_form import Cumulative
from separatrix.geometry.score_form import KernelExpansion, dense_rows
from separatrix.geometry.votes import class_pairs

if TYPE_CHECKING:
    from separatrix.dual.kernels import Kernel

# γ‖z − c‖² up to which the exponent is a product: 10³ times the rounding of a double is 10⁻¹³.
_REACH = 1e3


def cumulative_scores(graph: OnnxNodes, features: str, rule: Cumulative) -> str:
    """(N, K) log P of ordered classes."""
    n, zero = len(rule.thresholds), graph.constant(0.0)
    distance = graph.minus(graph.product(features, rule.weights[:, None]), rule.thresholds)
    powers = graph.add("Exp", graph.add("Neg", graph.add("Abs", distance)))
    logs = graph.add("Log", graph.add("Sum", powers, graph.constant(np.ones(n))))
    above = graph.add("Sum", graph.add("Max", distance, zero), logs)
    below = graph.add("Sum", graph.add("Max", graph.add("Neg", distance), zero), logs)
    ends, starts, gaps = np.zeros((n, n + 1)), np.zeros((n, n + 1)), np.zeros(n + 1)
    ends[range(n), range(n)] = starts[range(n), range(1, n + 1)] = -1.0
    gaps[1:-1] = np.log(-np.expm1(-np.diff(rule.thresholds)))
    within = graph.add(
        "Sum",
        graph.add("MatMul", above, graph.constant(ends[:, rule.ranks])),
        graph.add("MatMul", below, graph.constant(starts[:, rule.ranks])),
    )
    return graph.add("Add", within, graph.constant(gaps[rule.ranks]))


def pair_scores(graph: OnnxNodes, pairs: str, n_classes: int) -> str:
    """(N, K) votes of machines between pairs, with the sums of their scores squeezed below one vote."""
    order = class_pairs(n_classes)
    signs, lost = np.zeros((len(order), n_classes)), np.zeros(n_classes)
    for at, (first, second) in enumerate(order):
        signs[at, first], signs[at, second] = 1.0, -1.0
        lost[second] += 1.0
    chosen = graph.as_double(graph.add("Not", graph.add("Less", pairs, graph.constant(0.0))))
    votes = graph.add("Add", graph.add("MatMul", chosen, graph.constant(signs)), graph.constant(lost))
    confidence = graph.add("MatMul", pairs, graph.constant(signs))
    room = graph.add("Add", graph.add("Abs", confidence), graph.constant(np.ones(n_classes)))
    squeezed = graph.add("Div", confidence, graph.add("Mul", room, graph.constant(np.full(n_classes, 3.0))))
    return graph.add("Add", votes, squeezed)


def kernel_scores(graph: OnnxNodes, features: str, rule: KernelExpansion) -> str:
    """(N, m) sums over the support vectors."""
    vectors = dense_rows(rule.points.X)
    centre = np.zeros(vectors.shape[1]) if rule.points.centre is None else np.asarray(rule.points.centre)
    values = _values(graph, features, rule.kernel, vectors, centre)
    return graph.add("Add", graph.product(values, rule.coefficients), graph.constant(rule.constants))


def _values(graph: OnnxNodes, x: str, kernel: Kernel, vectors: Float, centre: Float) -> str:
    """(N, n) k(x, z) for every vector z."""
    from separatrix.dual.given_kernels import Multiple, Product, Sum
    from separatrix.dual.kernels import LaplacianKernel, PolynomialKernel, RBFKernel, SigmoidKernel

    if isinstance(kernel, Sum | Product):
        parts = [_values(graph, x, part, vectors, centre) for part in kernel.parts]
        total = parts[0]
        for part in parts[1:]:
            total = graph.add("Add" if isinstance(kernel, Sum) else "Mul", total, part)
        return total
    if isinstance(kernel, Multiple):
        values = _values(graph, x, kernel.kernel, vectors, centre)
        return graph.add("Mul", values, graph.constant(np.full(len(vectors), kernel.factor)))
    if isinstance(kernel, RBFKernel | LaplacianKernel):
        return _radial(graph, x, kernel, vectors, centre)
    if not isinstance(kernel, PolynomialKernel | SigmoidKernel):
        return graph.product(x, vectors.T)
    # The factor is in the vectors: after a product of matrices ONNX Runtime would keep it in single precision.
    inner = graph.minus(graph.product(x, kernel.gamma * vectors.T), np.full(len(vectors), -kernel.coef0))
    return graph.add("Tanh", inner) if isinstance(kernel, SigmoidKernel) else _power(graph, inner, kernel.degree)


def _radial(graph: OnnxNodes, x: str, kernel: Kernel, vectors: Float, centre: Float) -> str:
    from separatrix.dual.kernels import LaplacianKernel, RBFKernel

    assert isinstance(kernel, RBFKernel | LaplacianKernel)
    moved, gamma = vectors - centre, float(kernel.gamma)
    squares = gamma * np.square(moved).sum(axis=1)
    if isinstance(kernel, RBFKernel) and squares.max(initial=0.0) <= _REACH:
        row = graph.minus(x, centre)
        own = graph.scaled("Mul", graph.row_sums(graph.add("Mul", row, row)), -gamma)
        cross = graph.minus(graph.product(row, 2.0 * gamma * moved.T), squares)
        return graph.add("Exp", graph.add("Add", cross, own))
    axis = graph.constant([1], np.int64)
    away = graph.add("Sub", graph.add("Unsqueeze", x, axis), graph.constant(vectors[None]))  # (N, n, d)
    size = graph.add("Mul", away, away) if isinstance(kernel, RBFKernel) else graph.add("Abs", away)
    distance = graph.add("ReduceSum", size, graph.constant([2], np.int64), keepdims=0)
    return graph.add("Exp", graph.scaled("Mul", distance, -gamma))


def _power(graph: OnnxNodes, x: str, degree: int) -> str:
    """A whole power by repeated products."""
    if degree == 0:
        return graph.add("Exp", graph.add("Sub", x, x))
    result, square, left = "", x, degree
    while left:
        if left & 1:
            result = graph.add("Mul", result, square) if result else square
        left >>= 1
        square = graph.add("Mul", square, square) if left else square
    return result
