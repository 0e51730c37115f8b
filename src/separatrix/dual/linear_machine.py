"""The linear soft-margin machine by dual coordinate ascent.

    primal  ½‖w‖² + Σ Cᵢ max(0, 1 − ỹᵢ(wᵀxᵢ + b))ᵖ,  p = 1 or 2          dual  Σ αᵢ − ½‖Σ αᵢỹᵢxᵢ‖² − ½Σ Dᵢαᵢ²,   0 ≤ αᵢ ≤ Uᵢ

One row at a time, exactly (kernels/dual_hinge.py). An intercept without a penalty demands Σ αᵢỹᵢ = 0: b is its multiplier,
and the problem is solved with the proximal term (b − b̄)²/2r, the centre b̄ moving to b after every sweep. For the proof the
heavier side's α are shrunk until the two sides balance: a point of the dual; b in the primal is the best for w.

Reference: Hsieh et al. (2008), ICML; Rockafellar (1976), Mathematics of Operations Research 1 (proximal point).

**Complexity** O(nnz) a sweep. **Passes over the data** one a sweep and two a proof; memory O(n + d). Sequential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.block import Float
from separatrix.dual.gram import Gram
from separatrix.dual.kernels import LinearKernel
from separatrix.dual.points import Points
from separatrix.dual.working_set import solve_dual
from separatrix.result import Certificate, Status

_EPS = float(np.finfo(np.float64).eps)
_FIRST_PROOF = 3
_BLOCK = 4096


def centre_of(X: Any, scaling: float | None) -> Float:
    """Where dense rows are taken from when the intercept is free: it then hardly depends on the weights."""
    if scaling is not None or sp.issparse(X):
        return np.zeros(X.shape[1])
    mean: Float = X.mean(axis=0, dtype=np.float64)
    return mean


def row_squares(X: Any, centre: Float) -> Float:
    """(n,) squared lengths of CSR rows, or of dense ones taken from a centre."""
    if sp.issparse(X):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        squares = np.square(X.data, dtype=np.float64)
        return np.bincount(rows, squares, minlength=X.shape[0]).astype(np.float64, copy=False)
    squares = np.empty(len(X))
    for start in range(0, len(X), _BLOCK):
        rows = X[start : start + _BLOCK] - centre
        squares[start : start + _BLOCK] = np.einsum("ij,ij->i", rows, rows)
    return squares


@dataclass(frozen=True)
class LinearDual:
    """Weights, intercept, multipliers, and the proof."""

    w: Float
    b: float
    alpha: Float
    status: Status
    certificate: Certificate
    sweeps: int
    passes: int
    trace: list[dict[str, Any]]


@dataclass(frozen=True)
class LinearMachine:
    """A linear machine to be fitted.

    Parameters
    ----------
    X : C-ordered ndarray or CSR array
    signs : ndarray of shape (n,)
        ỹ = ±1.
    price : ndarray of shape (n,)
        Cᵢ > 0.
    power : {1, 2}
        Of the slack.
    scaling : float or None
        The intercept is the weight of a column of this value, penalised like the others; None: not penalised; 0: none.
    """

    X: Any
    signs: Float
    price: Float
    power: int
    scaling: float | None

    @property
    def _ridge(self) -> Float:
        return np.zeros(len(self.price)) if self.power == 1 else 0.5 / self.price

    @property
    def _upper(self) -> Float:
        return self.price if self.power == 1 else np.full(len(self.price), np.inf)

    def gram(self) -> Gram:
        """The inner products of all rows."""
        return Gram(LinearKernel(), Points(self.X), 8.0 * len(self.signs) ** 2, single=False)

    def solve_pairs(self, gram: Gram, tol: float) -> LinearDual:
        """The hinge with a free intercept as a machine with the linear kernel."""
        dual = solve_dual(gram, self.signs, self.price, tol=tol)
        w = np.asarray(self.X.T @ dual.beta, dtype=np.float64)
        proof = (dual.status, dual.certificate, dual.rounds, dual.rounds, dual.trace)
        return LinearDual(w, dual.intercept, np.abs(dual.beta), *proof)

    def solve(self, tol: float, max_sweeps: int, seed: int = 0, callback: Any = None) -> LinearDual:
        """Sweep until the proven gap is at most `tol` times max(1, primal)."""
        from separatrix.kernels.dual_hinge import sweep_dense, sweep_sparse  # numba takes a while to import

        (n, d), centre = self.X.shape, centre_of(self.X, self.scaling)
        squares, ridge, upper = row_squares(self.X, centre), self._ridge, self._upper
        reach = float(squares.mean()) or 1.0 if self.scaling is None else float(self.scaling) ** 2
        alpha, w, b = np.zeros(n), np.zeros(d), 0.0
        order, active, bounds = np.arange(n), n, np.array([np.inf, -np.inf])
        rng, trace = np.random.default_rng(seed), []
        parts = (self.X.data, self.X.indices, self.X.indptr) if sp.issparse(self.X) else (self.X, centre)
        sweep: Any = sweep_sparse if sp.issparse(self.X) else sweep_dense
        status, sweeps, passes, value, trigger = Status.MAX_ITER, 0, 1, 0.0, tol
        proof = self._proof(w, b, alpha)
        try:
            while sweeps < max_sweeps:
                rng.shuffle(order[:active])
                settings = (self.signs, upper, ridge, squares, reach, order, active, bounds, alpha, w, b)
                active, rise, b = sweep(*parts, *settings)
                sweeps, passes, value = sweeps + 1, passes + 1, value + rise
                done = active == 0 or rise <= 0.0 or not np.isfinite(bounds).all()
                if self.scaling is None:
                    b += reach * float(alpha @ self.signs)
                bounds[0] = bounds[0] if bounds[0] > 0 else np.inf
                bounds[1] = bounds[1] if bounds[1] < 0 else -np.inf
                if done or (sweeps >= _FIRST_PROOF and rise <= trigger * max(1.0, value)):
                    proof, passes = self._proof(w, b, alpha), passes + 2
                    goal = tol * max(1.0, proof.certificate.objective)
                    if proof.certificate.gap <= goal:
                        status = Status.CONVERGED
                        break
                    if done and active == n:
                        status = Status.STALLED
                        break
                    # A proof costs two sweeps: the next is worth its while when the rise has fallen as the gap has to.
                    trigger = rise / max(1.0, value) * min(0.7, goal / proof.certificate.gap)
                    active, bounds[:] = n, (np.inf, -np.inf)
                trace.append(
                    {"iteration": sweeps, "objective": proof.certificate.objective, "gap": proof.certificate.gap}
                )
                if callback is not None:
                    callback(trace[-1])
            else:
                proof = self._proof(w, b, alpha)
        except KeyboardInterrupt:
            status, proof = Status.INTERRUPTED, self._proof(w, b, alpha)
        return LinearDual(w, proof.b, alpha, status, proof.certificate, sweeps, passes, trace)

    def _proof(self, w: Float, b: float, alpha: Float) -> _Proof:
        """The gap between the primal at (w, best b) and the dual at α, its sides balanced where b is free."""
        scores = np.asarray(self.X @ w)
        length, both = float(w @ w), float(alpha.sum())
        dual_length, residual = length, 0.0
        if self.scaling is None:
            b = _best_intercept(self.signs - scores, self.signs, self.price, self.power)
            up = self.signs > 0
            sides = float(alpha[up].sum()), float(alpha[~up].sum())
            heavier, factor = (up, sides[1] / sides[0]) if sides[0] > sides[1] else (~up, sides[0] / (sides[1] or 1.0))
            residual = abs(sides[0] - sides[1])
            alpha = np.where(heavier, factor * alpha, alpha)
            part = np.asarray(self.X.T @ (alpha * self.signs))
            dual_length, both = float(part @ part), float(alpha.sum())
        elif self.scaling:
            length += (b / self.scaling) ** 2
            dual_length = length
        slack = np.maximum(0.0, 1.0 - self.signs * (scores + b))
        primal = 0.5 * length + float(self.price @ slack**self.power)
        dual = both - 0.5 * dual_length - 0.5 * float(self._ridge @ np.square(alpha))
        gap = max(0.0, primal - dual) + 16.0 * _EPS * (primal + abs(dual))
        outside = np.maximum(0.0, self.signs * (scores + b) - 1.0)
        at_bound = np.where(np.isfinite(self._upper), self._upper - alpha, 0.0)
        return _Proof(
            b,
            Certificate(
                gap,
                primal,
                "duality gap",
                stationarity=float(np.sqrt(max(0.0, 2.0 * gap))),
                dual_feasibility=residual,
                complementary_slackness=float(np.maximum(alpha * outside, at_bound * slack).max(initial=0.0)),
            ),
        )


@dataclass(frozen=True)
class _Proof:
    b: float
    certificate: Certificate


def _best_intercept(v: Float, signs: Float, price: Float, power: int) -> float:
    """argmin_b Σ₊ C max(0, v − b)ᵖ + Σ₋ C max(0, b − v)ᵖ, v = ỹ − wᵀx: where the pulls of the two sides are equal."""
    order = np.argsort(v)
    v, up = v[order], signs[order] > 0
    price = price[order]
    if power == 1:
        # The slope at b: those of the negative side below b pull down, those of the positive side above it up.
        slope = np.cumsum(np.where(up, 0.0, price)) - (
            np.where(up, price, 0.0).sum() - np.cumsum(np.where(up, price, 0.0))
        )
        return float(v[np.searchsorted(slope, 0.0) if slope[-1] >= 0 else -1])
    # The slope is linear between neighbouring v: Σ₋(below) C(b − v) − Σ₊(above) C(v − b).
    below, above = np.where(up, 0.0, price), np.where(up, price, 0.0)
    mass = np.cumsum(below) + above.sum() - np.cumsum(above)
    moment = np.cumsum(below * v) + (above @ v) - np.cumsum(above * v)
    slope = mass * v - moment
    at = int(np.searchsorted(slope, 0.0))
    if at == 0 or not mass[at - 1] > 0:
        return float(v[max(at - 1, 0)])
    return float(np.clip(moment[at - 1] / mass[at - 1], v[at - 1], v[min(at, len(v) - 1)]))
