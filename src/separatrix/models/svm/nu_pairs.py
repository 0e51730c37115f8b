"""Steps of pairs for few rows, in NumPy: what kernels/support_vectors/nu.py does, for which the formulas are there.

**Complexity** O(n) per step.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Float

_FLAT = 1e-14  # times the largest diagonal entry: a curvature that is none


def side_steps(
    K: Float, split: int, v: Float, beta: Float, low: Float, high: Float, tol: float, max_iter: int
) -> tuple[int, float]:
    """(steps, violation left); `v` and `beta` are changed. As `side_smo`."""
    diagonal, steps = K.diagonal(), 0
    flat = max(_FLAT * float(diagonal.max(initial=0.0)), 1e-300)
    while True:
        rising, falling = np.where(beta < high, v, -np.inf), np.where(beta > low, -v, -np.inf)
        violation, most, i, j, step = 0.0, 0.0, -1, -1, 0.0
        for side in (slice(0, split), slice(split, len(v))):
            if side.start == side.stop:
                continue
            first = side.start + int(rising[side].argmax())
            apart = rising[first] + falling[side]
            left = float(apart.max())
            violation = max(violation, left)
            if not left > tol:
                continue
            curved = np.maximum(diagonal[first] + diagonal[side] - 2.0 * K[first, side], flat)
            gains = np.where(apart > 0, np.square(apart) / curved, 0.0)
            second = int(gains.argmax())
            if gains[second] > most:
                most, i, j = float(gains[second]), first, side.start + second
                step = float(apart[second] / curved[second])
        if i < 0 or steps >= max_iter:
            return steps, violation
        up, down = float(high[i] - beta[i]), float(beta[j] - low[j])
        step = min(step, up, down)
        beta[i] = high[i] if step == up else beta[i] + step
        beta[j] = low[j] if step == down else beta[j] - step
        v -= step * (K[i] - K[j])
        steps += 1
