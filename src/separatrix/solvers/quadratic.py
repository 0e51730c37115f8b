"""A quadratic with absolute values and bounds: coordinate descent to find the signs, a factorisation to finish.

    min  gᵀΔ + ½ ΔᵀHΔ + Σ_j l_j |θ_j + Δ_j|        low ≤ θ + Δ ≤ high

Coordinate descent settles quickly which coordinates are zero and what signs the others have, and slowly, when columns are
correlated, by how much. With signs s on the support S the answer is one linear system, H_SS Δ = −(r_S + l·s); the step towards
it leaves those at zero that would change their sign, and is halved until that gains its share, at the latest where the first
one would; the others go on without them, as in the feature-sign search of Lee et al. (2007), NeurIPS 19, and the projected
Newton method of Bertsekas (1982), SIAM J. Control 20. The descent brings in coordinates that want to leave zero.

**Complexity** O(|W|²) per sweep, O(|S|³) per factorisation.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
from scipy.linalg import lapack

from separatrix.data.block import Float
from separatrix.lazy import compiled_pays_by_now
from separatrix.settings import one_blas_thread

# A factorisation costs about as much as |S|/6 sweeps, and a small one as many multiplications as pass while Python calls it: so
# many sweeps between factorisations, and not fewer than a few.
_SWEEPS, _SWEEPS_PER_COORDINATE, _CALL = 8, 0.25, 5e4
_UNINTERRUPTED = 3e8  # multiplications, less than a second of them
_ROUNDS = 60
_COORDINATE = 1.5e-6  # seconds of a coordinate in Python, of which most rounds need fewer sweeps
# Multiplications that may go into factorisations between sweeps: many of small systems, a few of a large one.
_FACTORISATIONS, _FEW = 3e7, 3
# Of what the whole step would gain without signs and bounds: a share that is worth stopping at them.
_ENOUGH = 0.2


def minimise_quadratic(
    H: Float,
    slope: Float,
    theta: Float,
    absolute: Float,
    low: Float,
    high: Float,
    tol: float,
    rounds: int = _ROUNDS,
) -> bool:
    """Change `theta` in place to the minimiser; `slope` becomes the slope of the smooth part there. Whether it was found.

    That is so when no coordinate can lower the quadratic by more than `tol` over their number, nor all of them together by
    `tol`; else the work ends after so many rounds.
    """
    p = max(1, len(theta))
    sweeps, descend = _SWEEPS, descend_in_python
    if compiled_pays_by_now(_SWEEPS * p * _COORDINATE):
        descend = import_module("separatrix.kernels.coordinate").descend  # numba takes a while to import
        sweeps = max(_SWEEPS, int(min(_SWEEPS_PER_COORDINATE * p, _UNINTERRUPTED / p**2)), int(_CALL / p**2))
    least = tol / p
    with one_blas_thread():
        for _ in range(rounds):
            settled = descend(H, slope, theta, absolute, low, high, least, sweeps) < sweeps
            # No coordinate alone may help where all together would: nearly dependent columns.
            lowered = _finish(H, slope, theta, absolute, low, high)
            if settled and lowered <= tol:
                return True
    return False


def descend_in_python(
    H: Float, slope: Float, theta: Float, absolute: Float, low: Float, high: Float, tol: float, sweeps: int
) -> int:
    """As the kernel of this name: sweeps of coordinate descent, over all coordinates and over those that are not zero."""
    everything = True
    diagonal = H.diagonal().tolist()
    for done in range(1, sweeps + 1):
        largest = 0.0
        for j, h in enumerate(diagonal):
            old, l = float(theta[j]), float(absolute[j])  # noqa: E741  # the name in the formula
            if not everything and old == 0.0:
                continue
            if h > 0.0:
                z = old - float(slope[j]) / h
                fresh = float(np.sign(z)) * max(abs(z) - l / h, 0.0)
            elif l > abs(float(slope[j])):  # nothing but its penalty depends on this coordinate
                fresh = 0.0
            else:
                continue
            fresh = min(max(fresh, float(low[j])), float(high[j]))
            if fresh != old:
                theta[j] = fresh
                slope += (fresh - old) * H[j]
                largest = max(largest, h * (fresh - old) ** 2)
        if largest <= tol and everything:
            return done
        everything = largest <= tol
    return sweeps


def _finish(H: Float, slope: Float, theta: Float, absolute: Float, low: Float, high: Float) -> float:
    """Towards the minimiser for the present signs; by how much that lowers the quadratic.

    A coordinate that reaches zero or a bound on the way stays there, and the others go on without it.
    """
    lowered = 0.0
    inside = (theta > low) & (theta < high) & ((theta != 0) | (absolute == 0)) & (H.diagonal() > 0)
    S = np.flatnonzero(inside)
    for _ in range(min(len(S), max(_FEW, int(_FACTORISATIONS / max(1, len(S)) ** 3)))):
        root = np.sqrt(H.diagonal()[S])
        sub = H[np.ix_(S, S)] / root[:, None] / root[None, :]
        sub.flat[:: len(S) + 1] += 1e-14  # collinear columns: any of their minimisers will do
        residual = slope[S] + absolute[S] * np.sign(theta[S])
        # LAPACK itself: what SciPy wraps around it takes longer than the factor of a small matrix.
        _, solved, failed = lapack.dposv(sub, residual / root, lower=1)
        if failed:
            break
        step = -solved / root
        with np.errstate(divide="ignore", invalid="ignore"):
            to_zero = np.where((absolute[S] > 0) & (step * theta[S] < 0), -theta[S] / step, np.inf)
            to_bound = np.where(
                step > 0, (high[S] - theta[S]) / step, np.where(step < 0, (low[S] - theta[S]) / step, np.inf)
            )
        first, promise, t = float(min(to_zero.min(), to_bound.min())), -0.5 * float(residual @ step), 1.0
        while True:
            if t <= 2.0 * first:  # about half way to the next try, where nothing has stopped yet
                t = min(t, first)
            moved = theta[S] + t * step
            moved[to_zero <= t] = 0.0
            moved = np.clip(moved, low[S], high[S])
            change = moved - theta[S]
            scaled = root * change
            gained = -float(residual @ change + 0.5 * scaled @ (sub @ scaled))
            if t <= first or gained >= _ENOUGH * t * promise:
                break
            t *= 0.5
        slope += H[:, S] @ change
        theta[S] = moved
        lowered += gained
        S = S[np.minimum(to_zero, to_bound) > t]
        if t == 1.0 or not len(S):
            break
    return lowered
