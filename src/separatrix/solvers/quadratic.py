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
_LISTED = 32  # coordinates up to which lists are faster
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
    everything, done = True, sweeps
    # Single numbers of lists are read several times as fast as those of arrays; long rows are added faster as arrays.
    listed = len(theta) <= _LISTED
    rows, g, t = (H.tolist(), slope.tolist(), theta.tolist()) if listed else (H, slope, theta.tolist())
    own = [*zip(range(len(t)), H.diagonal().tolist(), absolute.tolist(), low.tolist(), high.tolist(), strict=True)]
    for sweep in range(1, sweeps + 1):
        largest = 0.0
        for j, h, l, least, most in own:  # noqa: E741  # the name in the formula
            old = t[j]
            if not everything and old == 0.0:
                continue
            if h > 0.0:
                z = old - float(g[j]) / h
                size = abs(z) - l / h
                fresh = (size if z > 0.0 else -size) if size > 0.0 else 0.0
            elif l > abs(float(g[j])):  # nothing but its penalty depends on this coordinate
                fresh = 0.0
            else:
                continue
            fresh = min(max(fresh, least), most)
            if fresh != old:
                t[j], change = fresh, fresh - old
                if listed:
                    g = [of_slope + change * of_row for of_slope, of_row in zip(g, rows[j], strict=True)]
                else:
                    g += change * rows[j]
                largest = max(largest, h * change**2)
        if largest <= tol and everything:
            done = sweep
            break
        everything = largest <= tol
    theta[:], slope[:] = t, g
    return done


def _finish(H: Float, slope: Float, theta: Float, absolute: Float, low: Float, high: Float) -> float:
    """Towards the minimiser for the present signs; by how much that lowers the quadratic.

    A coordinate that reaches zero or a bound on the way stays there, and the others go on without it.
    """
    lowered = 0.0
    diagonal = H.diagonal()
    inside = (theta > low) & (theta < high) & ((theta != 0) | (absolute == 0)) & (diagonal > 0)
    S = np.flatnonzero(inside)
    for _ in range(min(len(S), max(_FEW, int(_FACTORISATIONS / max(1, len(S)) ** 3)))):
        root = np.sqrt(diagonal[S])
        sub = H[np.ix_(S, S)] / root[:, None] / root[None, :]
        sub.flat[:: len(S) + 1] += 1e-14  # collinear columns: any of their minimisers will do
        residual = slope[S] + absolute[S] * np.sign(theta[S])
        # LAPACK itself: what SciPy wraps around it takes longer than the factor of a small matrix.
        _, solved, failed = lapack.dposv(sub, residual / root, lower=1)
        if failed:
            break
        step = -solved / root
        moved = theta[S] + step
        if not (((moved * theta[S] <= 0) & (absolute[S] > 0)) | (moved <= low[S]) | (moved >= high[S])).any():
            # Nothing is reached on the way, as in most last rounds: no need to know when it would be.
            lowered += _lowered(moved - theta[S], root, sub, residual)
            slope += H[:, S] @ (moved - theta[S])
            theta[S] = moved
            break
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
            gained = _lowered(change, root, sub, residual)
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


def _lowered(change: Float, root: Float, sub: Float, residual: Float) -> float:
    """By how much a change of the free coordinates lowers the quadratic, from their matrix with a diagonal of ones."""
    scaled = root * change
    return -float(residual @ change + 0.5 * scaled @ (sub @ scaled))
