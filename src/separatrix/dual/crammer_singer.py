"""Crammer and Singer's machine for K classes, by dual coordinate ascent.

    primal  ½Σ‖w_k‖² + Σ Cᵢ max_k (1 − [k = yᵢ] + f_k(xᵢ) − f_{yᵢ}(xᵢ))
    dual    Σ αᵢ_{yᵢ} − ½Σ‖w_k‖²,   w_k = Σ αᵢ_k xᵢ,   αᵢ_k ≤ Cᵢ[k = yᵢ],  Σ_k αᵢ_k = 0

Intercepts without a penalty demand Σᵢ αᵢ_k = 0 for every k: the b_k are the multipliers, moved as in linear_machine.py. For the
proof what rows of class c give to class k, F_ck = −Σ_{i∈c} αᵢ_k, is cut to the largest circulation below F, a small linear
programme: a point of the dual.

Reference: Crammer and Singer (2001), JMLR 2; Keerthi et al. (2008), KDD.

**Complexity** O(nnz·K) a sweep. **Passes over the data** one a sweep and two a proof; memory O(nK + dK). Sequential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from separatrix.data.block import Codes, Float
from separatrix.dual.linear_machine import centre_of, reach_of, row_squares
from separatrix.result import Certificate, Status

_EPS = float(np.finfo(np.float64).eps)
_FIRST_PROOF, _LONG_SINCE = 3, 1.5


@dataclass(frozen=True)
class JointDual:
    """Weights (K, d), intercepts (K,), and the proof."""

    w: Float
    b: Float
    status: Status
    certificate: Certificate
    sweeps: int
    passes: int
    trace: list[dict[str, Any]]


@dataclass(frozen=True)
class CrammerSinger:
    """A machine to be fitted; the parameters are those of `LinearMachine`, with class codes in place of signs."""

    X: Any
    codes: Codes
    price: Float
    n_classes: int
    scaling: float | None

    def solve(self, tol: float, max_sweeps: int, seed: int = 0, callback: Any = None) -> JointDual:
        """Sweep until the proven gap is at most `tol` times the primal objective."""
        from separatrix.kernels.crammer_singer import sweep_dense, sweep_sparse  # numba takes a while to import

        (n, d), K = self.X.shape, self.n_classes
        centre = centre_of(self.X, self.scaling)
        squares = row_squares(self.X, centre)
        reach = reach_of(self.scaling, squares, self.price)
        alpha, W, b, order = np.zeros((n, K)), np.zeros((d, K)), np.zeros(K), np.arange(n)
        rng, trace = np.random.default_rng(seed), []
        parts = (self.X.data, self.X.indices, self.X.indptr) if sp.issparse(self.X) else (self.X, centre)
        sweep = sweep_sparse if sp.issparse(self.X) else sweep_dense
        status, sweeps, passes, value, wait, proven = Status.MAX_ITER, 0, 1, 0.0, 1.0, 10
        proof = self._proof(W, b - centre @ W, alpha)
        try:
            while sweeps < max_sweeps:
                rng.shuffle(order)
                rise = float(sweep(*parts, self.codes, self.price, squares, reach, order, alpha, W, b))
                sweeps, passes, value = sweeps + 1, passes + 1, value + rise
                moved = reach * alpha.sum(axis=0) if self.scaling is None else np.zeros(K)
                b += moved
                if sweeps >= _FIRST_PROOF and (rise <= wait * tol * value or sweeps >= _LONG_SINCE * proven):
                    proof, passes, proven = self._proof(W, b - centre @ W, alpha), passes + 2, sweeps
                    wait *= 0.5
                    if proof.gap <= tol * proof.objective:
                        status = Status.CONVERGED
                        break
                    if rise <= 0.0 and float(np.abs(moved).max()) <= 4.0 * _EPS * max(1.0, float(np.abs(b).max())):
                        status = Status.STALLED
                        break
                trace.append({"iteration": sweeps, "objective": proof.objective, "gap": proof.gap})
                if callback is not None:
                    callback(trace[-1])
            else:
                proof = self._proof(W, b - centre @ W, alpha)
        except KeyboardInterrupt:
            status, proof = Status.INTERRUPTED, self._proof(W, b - centre @ W, alpha)
        return JointDual(np.ascontiguousarray(W.T), b - centre @ W, status, proof, sweeps, passes, trace)

    def _proof(self, W: Float, b: Float, alpha: Float) -> Certificate:
        rows, residual = np.arange(len(self.codes)), 0.0
        margins = np.asarray(self.X @ W) + b
        margins -= margins[rows, self.codes][:, None]
        margins[rows, self.codes] = -1.0
        length = float(np.square(W).sum())
        dual_length = length
        if self.scaling is None:
            residual = float(np.abs(alpha.sum(axis=0)).max())
            alpha = self._balanced(alpha)
            dual_length = float(np.square(np.asarray(self.X.T @ alpha)).sum())
        elif self.scaling:
            length += float(np.square(b / self.scaling).sum())
            dual_length = length
        slack = np.maximum(0.0, 1.0 + margins.max(axis=1))
        primal = 0.5 * length + float(self.price @ slack)
        dual = float(alpha[rows, self.codes].sum()) - 0.5 * dual_length
        gap = max(0.0, primal - dual) + 16.0 * _EPS * (primal + abs(dual))
        return Certificate(
            gap, primal, "duality gap", stationarity=float(np.sqrt(2.0 * gap)), dual_feasibility=residual
        )

    def _balanced(self, alpha: Float) -> Float:
        """The multipliers with what each class gives to each other cut until every class gives what it gets."""
        K = self.n_classes
        given = np.zeros((K, K))
        np.add.at(given, self.codes, np.maximum(-alpha, 0.0))
        np.fill_diagonal(given, 0.0)
        out, into = np.divmod(np.arange(K * K), K)
        balance = sp.coo_array(
            (np.r_[np.ones(K * K), -np.ones(K * K)], (np.r_[out, into], np.tile(np.arange(K * K), 2))), shape=(K, K * K)
        ).tocsr()
        unit = float(given.max()) or 1.0
        limits = np.column_stack([np.zeros(K * K), given.ravel() / unit])
        found = linprog(-np.ones(K * K), A_eq=balance, b_eq=np.zeros(K), bounds=limits, method="highs")
        if found.x is None:
            return np.zeros_like(alpha)
        # The solver's rounding must not make the point infeasible: what is left over is a circulation up to 1e-9 of it.
        factors = np.divide(found.x.reshape(K, K) * unit, given, out=np.zeros((K, K)), where=given > 0).clip(0.0, 1.0)
        cut = np.minimum(alpha, 0.0) * factors[self.codes]
        rows = np.arange(len(self.codes))
        cut[rows, self.codes] = 0.0
        cut[rows, self.codes] = -cut.sum(axis=1)
        return cut
