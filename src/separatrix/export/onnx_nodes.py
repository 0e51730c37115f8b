"""Nodes of an ONNX graph, all of it in doubles.

ONNX Runtime compares a constant of one number with 0 or 1 in single precision to drop what changes nothing, so that x − 10⁻⁵⁰
is x, and keeps the factor of a product of matrices in single precision. `minus`, `scaled` and `product` write around that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.block import Float


class OnnxNodes:
    """Nodes and constants as they are added; what a node gives is known by the name that adding it returns."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """A node with one output, whose name is returned."""
        output = f"separatrix/{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        name = f"separatrix/constant {len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value, dtype=dtype), name))
        return name

    def as_double(self, condition: str) -> str:
        return self.add("Cast", condition, to=self.onnx.TensorProto.DOUBLE)

    def where_missing(self, x: str, then: str, otherwise: str) -> str:
        return self.add("Where", self.add("IsNaN", x), then, otherwise)

    def side_by_side(self, parts: list[str]) -> str:
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=1)

    def sum_of(self, parts: list[str]) -> str:
        total = parts[0]
        for part in parts[1:]:
            total = self.add("Add", total, part)
        return total

    def row_sums(self, x: str) -> str:
        return self.add("ReduceSum", x, self.constant([1], np.int64), keepdims=1)

    def minus(self, x: str, value: float | Float) -> str:
        return self.add("Sum", x, self.constant(-np.asarray(value)))

    def scaled(self, operator: str, x: str, value: float | Float) -> str:
        """x times, or divided by, what may be one number close to 1: then by twice that, and the 2 is taken out again."""
        values = np.asarray(value, dtype=np.float64)
        if values.size > 1 or abs(values.item() - 1.0) > 1e-7:
            return self.add(operator, x, self.constant(values))
        return self.add(operator, self.add(operator, x, self.constant(2.0 * values)), self.constant(0.5))

    def product(self, features: str, weights: Float) -> str:
        """(N, p) times (p, m). One feature, which may just have been divided by its scale, is no matter for MatMul."""
        if len(weights) == 1:
            return self.scaled("Mul", features, weights)
        return self.add("MatMul", features, self.constant(weights))
