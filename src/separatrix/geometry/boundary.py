"""Where a rule changes its mind: f(x) = 0.

    hyperplane   f(x) = wᵀx + b                    distance f(x)/‖w‖, projection x − f(x) w/‖w‖²
    quadric      f(x) = xᵀAx + bᵀx + c
    surface      any f, given as a function of x

f > 0 on the side of the first class named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Float


@dataclass(frozen=True)
class Hyperplane:
    """{x : normalᵀx + offset = 0}.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.geometry import Hyperplane
    >>> plane = Hyperplane(normal=np.array([3.0, 4.0]), offset=-5.0)
    >>> float(plane.signed_distance([[3.0, 4.0]])[0])
    4.0
    """

    normal: Float
    offset: float

    @classmethod
    def between(cls, W: Float, b: Float, first: int, second: int) -> Hyperplane:
        """Where two classes of a linear rule have equal scores; positive for the first. Two classes may have one score."""
        if len(W) == 1:
            sign = 1.0 if first == 1 else -1.0
            return cls(sign * W[0], sign * float(b[0]))
        return cls(W[first] - W[second], float(b[first] - b[second]))

    def __call__(self, X: ArrayLike) -> Float:
        """f(x) of every row."""
        return np.asarray(X, dtype=np.float64) @ self.normal + self.offset

    def signed_distance(self, X: ArrayLike) -> Float:
        """f(x)/‖w‖ of every row."""
        length = float(np.linalg.norm(self.normal))
        if length == 0.0:
            raise ValueError("The rule is constant, so there is no hyperplane to measure a distance to.")
        return self(X) / length

    def project(self, X: ArrayLike) -> Float:
        """The nearest point of the hyperplane to every row."""
        rows = np.asarray(X, dtype=np.float64)
        return rows - np.outer(self.signed_distance(rows), self.normal / np.linalg.norm(self.normal))


@dataclass(frozen=True)
class Quadric:
    """{x : xᵀAx + bᵀx + c = 0}."""

    matrix: Float
    linear: Float
    constant: float

    def __call__(self, X: ArrayLike) -> Float:
        """f(x) of every row."""
        rows = np.asarray(X, dtype=np.float64)
        return np.einsum("ij,ij->i", rows @ self.matrix, rows) + rows @ self.linear + self.constant


@dataclass(frozen=True)
class Surface:
    """{x : f(x) = 0} for a rule that is neither linear nor quadratic in x."""

    function: Callable[[Any], Float]

    def __call__(self, X: Any) -> Float:
        """f(x) of every row."""
        return self.function(X)
