"""Coordinate descent on a quadratic with absolute values and bounds.

min_Δ  gᵀΔ + ½ ΔᵀHΔ + Σ_j l_j |θ_j + Δ_j|      low ≤ θ + Δ ≤ high
θ_j + Δ_j ← clip(S(θ_j + Δ_j − r_j/H_jj, l_j/H_jj)),    r = g + HΔ,   S the soft threshold
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled


@compiled()
def descend(H: Any, slope: Any, theta: Any, absolute: Any, low: Any, high: Any, tol: Any, sweeps: int) -> int:
    """Change `theta` in place until no coordinate lowers the quadratic by more than `tol`; `slope` becomes g + HΔ.

    Sweeps over all coordinates alternate with sweeps over those that are not zero.
    """
    n = len(theta)
    done = 0
    everything = True
    while done < sweeps:
        done += 1
        largest = 0.0
        for j in range(n):
            if not everything and theta[j] == 0.0:
                continue
            h = H[j, j]
            if h > 0.0:
                z = theta[j] - slope[j] / h
                fresh = np.sign(z) * max(abs(z) - absolute[j] / h, 0.0)
            elif absolute[j] > abs(slope[j]):  # nothing but its penalty depends on this coordinate
                fresh = 0.0
            else:
                continue
            fresh = min(max(fresh, low[j]), high[j])
            change = fresh - theta[j]
            if change != 0.0:
                theta[j] = fresh
                row = H[j]
                for i in range(n):
                    slope[i] += change * row[i]
                largest = max(largest, h * change * change)
        if largest <= tol:
            if everything:
                return done
            everything = True
        else:
            everything = False
    return done
