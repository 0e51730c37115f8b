"""The kernel matrix of a radial kernel whose rows were given on a device: values are made there, sums of them come back.

    scores[rows] += K[rows, which] · change               O(n q d) there, O(n + q²) numbers on their way

What the proof needs of the rows, their lengths and the support vectors, is read from a copy on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.kernel_matrix import Index, KernelMatrix, kept_whole
from separatrix.dual.kernels import Kernel, RBFKernel
from separatrix.dual.points import Points
from separatrix.kernels.device.radial import PART, RadialRows

# A multiplication on a device, in those of a processor.
_QUICKER = 0.01


class RadialMatrix(KernelMatrix):
    """Values exp(−γ‖x − z‖²) of rows [x, γ‖x‖², 1], `left`, on a device."""

    def __init__(
        self, kernel: RBFKernel, points: Points, left: Float, memory: float, single: bool, device: str
    ) -> None:
        super().__init__(kernel, points, memory, single)
        self._there = RadialRows(left, kernel.gamma, device)
        self.cost = _QUICKER * self.cost

    def _single(self, exact: bool) -> bool:
        return not exact and self.dtype != np.float64

    def errors(self, beta: Float, at_once: int | None = None) -> Float:
        careful = PART + 2 + int(np.count_nonzero(beta)) // PART
        return super().errors(beta, careful if at_once is None else max(at_once, careful))

    def column(self, which: int) -> Float:
        return self._there.sums(None, np.array([which]), np.ones(1), False)

    def square(self, which: Index, exact: bool = False, room: Float | None = None) -> Float:
        return self._there.square(which, self._single(exact))

    def add(self, scores: Float, rows: Index | None, which: Index, change: Float, exact: bool = False) -> None:
        if len(which):
            scores[slice(None) if rows is None else rows] += self._there.sums(rows, which, change, self._single(exact))


def kernel_matrix(kernel: Kernel, points: Points, memory: float, single: bool, device: str) -> KernelMatrix:
    """The kernel matrix of rows; of many rows and a radial kernel on the device that they came from."""
    left: Any = None
    if isinstance(kernel, RBFKernel) and not kept_whole(kernel, points, memory):
        left = kernel.left(points, np.float64)  # none where distances would be lost in the lengths
    if left is None or not isinstance(kernel, RBFKernel):
        return KernelMatrix(kernel, points, memory, single)
    return RadialMatrix(kernel, points, left, memory, single, device)
