"""Crammer and Singer's machine for K classes: dual coordinate ascent, and interior points where that is slow.

    primal  ½Σ‖w_k‖² + Σ Cᵢ max_k (1 − [k = yᵢ] + f_k(xᵢ) − f_{yᵢ}(xᵢ))
    dual    Σ αᵢ_{yᵢ} − ½Σ‖w_k‖²,   w_k = Σ αᵢ_k xᵢ,   αᵢ_k ≤ Cᵢ[k = yᵢ],  Σ_k αᵢ_k = 0

Intercepts without a penalty demand Σᵢ αᵢ_k = 0 for every k: the b_k are the multipliers, moved as in linear_machine.py, and
interior points (joint_interior.py) take over as there.

The proof. The primal is evaluated at the published coefficients. Let gᵢ_k ≥ 0 be what row i gives to the class k ≠ yᵢ. With
αᵢ_k = −gᵢ_k and αᵢ_{yᵢ} = Σ_k gᵢ_k it is a point of the dual when Σ_k gᵢ_k ≤ Cᵢ: rows above it are shrunk. Free intercepts
demand that what class c gives, F_ck = Σ_{i∈c} gᵢ_k, is a circulation. A sum of cycles is one: the cycles of F
(kernels/circulation.py), or, where much of F is in none, those of the largest circulation below F, a linear programme. g is
multiplied by the share of F_ck that is kept. Sums of floats are circulations up to a factor 1 ± e of every F_ck,
e = (K² + 64)ε: the true multipliers differ from the computed ones by that factor. It costs e in Σα and e Σᵢ 2Σ_k gᵢ_k ‖xᵢ − c‖
in the length of W, which is also moved by the rounding of its own sum (frame.py). Any share 0 ≤ τ ≤ 1 of a point of the dual
is one: the best is taken.

Reference: Crammer and Singer (2001), JMLR 2; Keerthi et al. (2008), KDD.

**Complexity** O(nnz·K) a sweep. **Passes over the data** one a sweep and two a proof; memory O(nK + dK). Sequential.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from separatrix.data.block import Codes, Float
from separatrix.dual.frame import SUM, Frame
from separatrix.dual.joint_interior import joint_interior_points
from separatrix.dual.linear_machine import patience, reach_of
from separatrix.dual.record import Judged, Record
from separatrix.result import Certificate, Status

_EPS = float(np.finfo(np.float64).eps)
_FIRST_PROOF, _LONG_SINCE = 3, 1.5
# So small a share of a flow that is in no cycle is not worth a linear programme.
_LEFT = 1e-9


@dataclass(frozen=True)
class JointDual:
    """Weights (K, d) and intercepts (K,), or the one score of two classes, as they are published; and the proof of these."""

    w: Float
    b: Float
    status: Status
    certificate: Certificate
    sweeps: int
    """Sweeps and Newton's steps."""
    passes: int
    trace: list[dict[str, Any]]


@dataclass(frozen=True)
class CrammerSinger:
    """A machine to be fitted; the parameters are those of `LinearMachine`, with class codes in place of signs."""

    rows: Frame
    codes: Codes
    price: Float
    n_classes: int
    scaling: float | None

    def solve(
        self, tol: float, max_iter: int, seed: int = 0, callback: Any = None, *, stop: Event | None = None
    ) -> JointDual:
        """Iterate until the proven gap is at most `tol` times the primal objective; parameters as in `LinearMachine`."""
        search = _Search(self, Record(tol), max_iter, callback, stop or Event())
        record, sweeps, status = search.record, patience(self.rows, self.n_classes, max_iter), Status.MAX_ITER
        try:
            status = search.sweep(min(sweeps, max_iter), np.random.default_rng(seed))
            if sweeps <= max_iter and not record.over and status is not Status.INTERRUPTED:
                status = search.step()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        best = record.best or search.judge()
        status = record.status(status)
        return JointDual(best.w, best.b, status, record.certificate, search.iterations, search.passes, record.trace)

    def judge(self, W: Float, beta: Float, given: Float) -> Judged:
        """The primal at the published coefficients, and the bound that `given` (n, K) gives. Two passes."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.n_classes == 2:  # one score, the difference of the two: each has half of it
                half = 0.5 * (W[:, 1] - W[:, 0])
                W, beta = np.column_stack([-half, half]), np.array([-0.5, 0.5]) * (beta[1] - beta[0])
            scores = self.rows.scores(W)
            if self.n_classes == 2:
                middle = self.rows.published(2.0 * W[:, 1], 2.0 * float(beta[1]))
                b, coef = np.array([middle]), 2.0 * W[:, 1:].T
                there = np.array([-0.5, 0.5]) * self.rows.offset(coef[0], middle)
            else:
                b = np.array([self.rows.published(W[:, k], float(beta[k])) for k in range(self.n_classes)])
                there = np.array([self.rows.offset(W[:, k], float(b[k])) for k in range(self.n_classes)])
                coef = np.ascontiguousarray(W.T)
            value, upper = self._primal(W, scores, there)
            unrounded = upper if np.array_equal(there, beta) else self._primal(W, scores, beta)[1]
            lower, imbalance = self._lower(np.maximum(given, 0.0))
        return Judged(coef, b, value, upper, unrounded, lower, scores, imbalance)

    def _primal(self, W: Float, scores: Float, beta: Float) -> tuple[float, float]:
        """The objective, and its value with rounding counted."""
        rows, f = np.arange(len(self.codes)), scores + beta
        own = f[rows, self.codes].copy()
        f[rows, self.codes] = -np.inf
        margin = 1.0 + f.max(axis=1) - own
        slack = np.maximum(0.0, margin)
        squared = float(np.square(W).sum()) + (float(np.square(beta / self.scaling).sum()) if self.scaling else 0.0)
        rounding = 2.0 * self.rows.score_rounding(W, beta).max(axis=1) + _EPS * (4.0 + np.abs(margin))
        most = np.maximum(0.0, margin + rounding)
        value = 0.5 * squared + float((self.price * slack).sum())
        upper = 0.5 * squared * (1.0 + (len(W) + 8.0) * _EPS) + float((self.price * most).sum()) * (1.0 + 2.0 * SUM)
        return value, upper

    def _lower(self, given: Float) -> tuple[float, float]:
        """A lower bound of the optimum, and how far what classes give was from a circulation."""
        rows, imbalance, loss = np.arange(len(self.codes)), 0.0, 2.0 * self.n_classes * _EPS
        given = given.copy()
        given[rows, self.codes] = 0.0
        total = given.sum(axis=1)
        given *= (np.minimum(1.0, self.price / np.maximum(total, np.finfo(np.float64).tiny)) * (1.0 - loss))[:, None]
        if self.scaling is None:
            given, imbalance = self._circulating(given)
            loss += (self.n_classes**2 + 64.0) * _EPS
            given *= 1.0 - 2.0 * loss
        alpha = -given
        total = given.sum(axis=1)
        alpha[rows, self.codes] = total
        both = float(total.sum())
        if not both > 0:
            return 0.0, imbalance
        length, moved = float(np.linalg.norm(self.rows.products(alpha))), self.rows.product_rounding(alpha)
        moved += 2.0 * loss * float(total @ self.rows.lengths)
        balance = 0.0
        if self.scaling:
            balance = self.scaling * (float(np.linalg.norm(alpha.sum(axis=0))) + len(total) * _EPS * 2.0 * both)
        curved = (length * (1.0 + (alpha.shape[1] * self.rows.X.shape[1] + 4.0) * _EPS) + moved) ** 2 + balance**2
        gain = both * (1.0 - SUM - loss)
        if not np.isfinite(curved):
            return 0.0, imbalance
        share = min(1.0, gain / curved) if curved > 0 else 1.0
        return (share * gain - 0.5 * share**2 * curved * (1.0 + SUM)) * (1.0 - 4.0 * _EPS), imbalance

    def _circulating(self, given: Float) -> tuple[Float, float]:
        """What rows give, cut until every class gives what it gets."""
        from separatrix.kernels.circulation import cycles  # numba takes a while to import

        K, columns = self.n_classes, np.ascontiguousarray(given.T)
        flow = np.stack([np.ascontiguousarray(columns[:, self.codes == c]).sum(axis=1) for c in range(K)])
        imbalance = float(np.abs(flow.sum(axis=0) - flow.sum(axis=1)).max())
        kept = cycles(flow.copy())
        if kept.sum() < (1.0 - _LEFT) * flow.sum():
            largest = cycles(_largest_circulation(flow))
            kept = largest if largest.sum() > kept.sum() else kept
        share = np.divide(kept, flow, out=np.zeros((K, K)), where=flow > 0).clip(0.0, 1.0)
        return given * share[self.codes], imbalance


def _largest_circulation(flow: Float) -> Float:
    """The circulation below `flow` (K, K) of the largest sum, up to the tolerance of a linear programme."""
    K = len(flow)
    out, into = np.divmod(np.arange(K * K), K)
    balance = sp.coo_array(
        (np.r_[np.ones(K * K), -np.ones(K * K)], (np.r_[out, into], np.tile(np.arange(K * K), 2))), shape=(K, K * K)
    ).tocsr()
    unit = float(flow.max()) or 1.0
    limits = np.column_stack([np.zeros(K * K), flow.ravel() / unit])
    found = linprog(-np.ones(K * K), A_eq=balance, b_eq=np.zeros(K), bounds=limits, method="highs")
    return np.zeros((K, K)) if found.x is None else np.minimum(np.maximum(found.x.reshape(K, K), 0.0) * unit, flow)


class _Search:
    """The iterations of one fit."""

    def __init__(self, machine: CrammerSinger, record: Record, max_iter: int, callback: Any, stop: Event) -> None:
        self.machine, self.record, self.max_iter, self.callback, self.stop = machine, record, max_iter, callback, stop
        (n, d), K = machine.rows.X.shape, machine.n_classes
        self.W, self.beta, self.given = np.zeros((d, K)), np.zeros(K), np.zeros((n, K))
        self.iterations, self.passes = 0, 1

    def judge(self) -> Judged:
        """Look at the data from where the search stands."""
        point = self.machine.judge(self.W.copy(), self.beta.copy(), self.given)
        self.record.add(point)
        self.passes += 2
        return point

    def step(self) -> Status:
        """Newton's steps between the bounds."""
        machine, copy, record = self.machine, self.machine.rows.copy, self.record
        assert copy is not None
        record.turn()
        settings = (machine.codes, machine.price, machine.n_classes, machine.scaling)
        points = joint_interior_points(copy.A, copy.penalty, *settings)
        while self.iterations < self.max_iter:
            if self.stop.is_set():
                return Status.INTERRUPTED
            with np.errstate(all="ignore"):  # what is not finite ends the steps
                found = next(points, None)
                if found is None:
                    return Status.STALLED
                self.W, self.beta = copy.back(found[0], found[1])
            self.given = found[2]
            self.iterations, self.passes = self.iterations + 1, self.passes + 6
            self.judge()
            record.note(self.iterations, self.callback)
            if record.over or record.in_vain:
                return Status.STALLED
        return Status.MAX_ITER

    def sweep(self, limit: int, rng: np.random.Generator) -> Status:
        """Sweeps of dual coordinate ascent."""
        from separatrix.kernels.crammer_singer import sweep_dense, sweep_sparse  # numba takes a while to import

        machine, rows, record = self.machine, self.machine.rows, self.record
        X, price, free = rows.X, machine.price, machine.scaling is None
        reach = reach_of(machine.scaling, rows.squares, price)
        alpha, order = np.zeros((len(price), machine.n_classes)), np.arange(len(price))
        parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X, rows.centre)
        sweep = sweep_sparse if sp.issparse(X) else sweep_dense
        status, value, wait, proven = Status.MAX_ITER, 0.0, 1.0, 10
        while self.iterations < limit:
            if self.stop.is_set():
                status = Status.INTERRUPTED
                break
            rng.shuffle(order)
            with np.errstate(over="ignore"):
                rise = float(sweep(*parts, machine.codes, price, rows.squares, reach, order, alpha, self.W, self.beta))
            self.iterations, self.passes, value = self.iterations + 1, self.passes + 1, value + rise
            moved = reach * alpha.sum(axis=0) if free else np.zeros(machine.n_classes)
            self.beta = self.beta + moved
            if self.iterations >= _FIRST_PROOF and (
                rise <= wait * record.tol * value or self.iterations >= _LONG_SINCE * proven
            ):
                self.given, proven, wait = -alpha, self.iterations, 0.5 * wait
                self.judge()
                still = float(np.abs(moved).max()) <= 4.0 * _EPS * max(1.0, float(np.abs(self.beta).max()))
                if record.over or (rise <= 0.0 and still):
                    return Status.STALLED
            record.note(self.iterations, self.callback)
        self.given = -alpha
        self.judge()
        return status
