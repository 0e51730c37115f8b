"""Losses of real predictions, and the mean of one with its interval.

    squared (y − ŷ)²        absolute |y − ŷ|        ε-insensitive max(0, |y − ŷ| − ε)
    R = Σ sᵢlᵢ/S,      R ± t_{S−1} √(Σ sᵢ(lᵢ−R)²/(S(S−1)))

Such a loss has no largest value, so no interval holds for every distribution: Student's is right as n grows, the sooner the
lighter the tail of the loss.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Float
from separatrix.data.checks import real_numbers

REAL_LOSSES: dict[str, Callable[[Float, float], Float]] = {
    "squared": lambda away, epsilon: np.square(away),
    "absolute": lambda away, epsilon: np.abs(away),
    "epsilon-insensitive": lambda away, epsilon: np.maximum(np.abs(away) - epsilon, 0.0),
}


def real_losses(y_true: ArrayLike, y_pred: ArrayLike, loss: str, epsilon: float) -> Float:
    """(n,) the loss of every prediction."""
    truth, given = real_numbers(y_true, "y_true"), real_numbers(y_pred, "y_pred")
    if truth.ndim != 1 or truth.shape != given.shape:
        raise ValueError(f"y_true has shape {truth.shape} and y_pred {given.shape}: give one number per row in both.")
    for name, values in (("y_true", truth), ("y_pred", given)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} has NaN or infinity in row {int(np.flatnonzero(~np.isfinite(values))[0])}.")
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon is {epsilon!r}; give a number ≥ 0.")
    return REAL_LOSSES[loss](truth - given, float(epsilon))
