"""The gap of a logistic regression as compiled loops ask for it between their steps.

What the bound is, and why it holds, says solvers/at_hand/rows.py, whose `proof` is computed of the point that is published.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

_ROUNDING = 32.0 * float(np.finfo(np.float64).eps)


@compiled(fastmath={"reassoc", "contract"}, error_model="numpy")
def gap_at(value: Any, sums: Any, gradient: Any, border: Any, quadratic: Any, held: Any, total: Any, size: Any) -> Any:
    """The bound, or F where that is less; `sums` begin with Σ s ℓ and Σ s a², and end with Σ s h."""
    squares, bend = sums[1], sums[-1]
    noise = _ROUNDING * np.sqrt(squares * total)
    shift, bent, missed = 0.0, 0.0, 0.0
    if held < len(gradient):
        slope = gradient[held]
        shift = slope / bend if bend > 0.0 else np.inf
        if not abs(shift) < 1.0:
            return value
        missed = noise / bend + 4.0 * _ROUNDING * abs(shift)
        bent = 1.01 * abs(shift * slope) + 101.0 * noise * noise / bend
    error = _ROUNDING * np.sqrt(squares) + missed * np.sqrt(total)
    length = 0.0
    for j in range(held):
        left = gradient[j] - shift * border[j]
        length += left * left / quadratic[j]
    length = np.sqrt(length) + error * np.sqrt(size)
    gap = 0.5 * length * length + bent + _ROUNDING * abs(value)
    return gap if gap < value else value
