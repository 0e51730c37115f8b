"""Kernels made of kernels: sums, products and positive multiples.

k₁ + k₂   features side by side          k₁k₂   every feature of one times every feature of the other

A multiple scales all features alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from separatrix.data.block import Float
from separatrix.dual.kernels import Kernel
from separatrix.dual.points import Points


class _Composed(Kernel):
    parts: tuple[Kernel, ...]

    @property
    def positive(self) -> bool | None:  # type: ignore[override]  # it depends on the parts
        kinds = {part.positive for part in self.parts}
        return False if False in kinds else (None if None in kinds else True)

    @property
    def single(self) -> bool:  # type: ignore[override]  # it depends on the parts
        return all(part.single for part in self.parts)

    def prepare(self, points: Points) -> None:
        for part in self.parts:
            part.prepare(points)


@dataclass(frozen=True)
class _Combined(_Composed):
    """Kernels whose values are added or multiplied."""

    parts: tuple[Kernel, ...]
    operation: ClassVar[np.ufunc]

    def between(self, one: Points, two: Points, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        return reduce(self.operation, (part.between(one, two, dtype) for part in self.parts))

    def diagonal(self, points: Points) -> Float:
        return reduce(self.operation, (part.diagonal(points) for part in self.parts))


class Sum(_Combined):
    """The sum of kernels: features side by side."""

    operation = np.add


class Product(_Combined):
    """The product of kernels: every feature of one times every feature of the other."""

    operation = np.multiply


@dataclass(frozen=True)
class Multiple(_Composed):
    """A positive multiple of a kernel."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.factor < np.inf:
            raise ValueError(f"A kernel can be multiplied by a positive number, not by {self.factor!r}.")

    @property
    def parts(self) -> tuple[Kernel, ...]:  # type: ignore[override]  # there is one
        return (self.kernel,)

    def between(self, one: Points, two: Points, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        values = self.kernel.between(one, two, dtype)
        values *= self.factor
        return values

    def diagonal(self, points: Points) -> Float:
        return self.factor * self.kernel.diagonal(points)
