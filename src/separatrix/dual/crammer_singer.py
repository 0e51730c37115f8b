"""Crammer and Singer's machine for K classes.

    primal  ½Σ‖w_k‖² + Σ Cᵢ max_k (1 − [k = yᵢ] + f_k(xᵢ) − f_{yᵢ}(xᵢ))
    dual    Σ αᵢ_{yᵢ} − ½Σ‖w_k‖²,   w_k = Σ αᵢ_k xᵢ,   αᵢ_k ≤ Cᵢ[k = yᵢ],  Σ_k αᵢ_k = 0

Intercepts without a penalty demand Σᵢ αᵢ_k = 0 for every k: the b_k are the multipliers, moved as in linear_machine.py.

The proof. The primal is evaluated at the published coefficients. Let gᵢ_k ≥ 0 be what row i gives to the class k ≠ yᵢ. With
αᵢ_k = −gᵢ_k and αᵢ_{yᵢ} = Σ_k gᵢ_k it is a point of the dual when Σ_k gᵢ_k ≤ Cᵢ: rows above it are shrunk. Free intercepts
demand that what class c gives, F_ck = Σ_{i∈c} gᵢ_k, is a circulation. A sum of cycles is one: the cycles of F
(kernels/circulation.py), or, where much of F is in none, those of the largest circulation below F, a linear programme. g is
multiplied by the share of F_ck that is kept. Sums of floats are circulations up to a factor 1 ± e of every F_ck,
e = (K² + 64)ε: the true multipliers differ from the computed ones by that factor. It costs e in Σα and e Σᵢ 2Σ_k gᵢ_k ‖xᵢ − c‖
in the length of W, which is also moved by the rounding of its own sum (centred_rows.py). Any share 0 ≤ τ ≤ 1 of a point of
the dual is one: the best is taken.

Reference: Crammer and Singer (2001), JMLR 2; Keerthi et al. (2008), KDD.

**Complexity** O(nnz·K) per sweep. **Passes over the data** one per sweep and two per proof; memory O(nK + dK). Sequential.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from separatrix.data.block import Codes, Float
from separatrix.dual.centred_rows import EPS, SUM, CentredRows, DenseCopy, stored_parts
from separatrix.dual.interior import joint_interior_points
from separatrix.dual.linear_search import Ascent, DualMachine, Point
from separatrix.dual.record import ProvenPoint, Record, best_dual_value, primal_values
from separatrix.dual.sweeps import Swept

# So small a share of a flow that is in no cycle is not worth a linear programme.
_LEFT = 1e-9


@dataclass(frozen=True)
class CrammerSinger(DualMachine):
    """A machine to be fitted; the parameters are those of `LinearMachine`, with class codes in place of signs."""

    rows: CentredRows
    codes: Codes
    price: Float
    n_classes: int
    scaling: float | None

    @property
    def n_scores(self) -> int:
        return self.n_classes

    def ascent(self, record: Record) -> Ascent:
        return _JointAscent(self, record)

    def interior_points(self, copy: DenseCopy) -> Iterator[Point]:
        return joint_interior_points(copy.A, copy.penalty, self.codes, self.price, self.n_classes, self.scaling)

    def prove(self, W: Float, beta: Float, given: Float) -> ProvenPoint:
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
        return ProvenPoint(coef, b, value, upper, unrounded, lower, scores, imbalance)

    def _primal(self, W: Float, scores: Float, beta: Float) -> tuple[float, float]:
        """The objective, and its value with rounding counted."""
        rows, f = np.arange(len(self.codes)), scores + beta
        own = f[rows, self.codes].copy()
        f[rows, self.codes] = -np.inf
        margin = 1.0 + f.max(axis=1) - own
        slack = np.maximum(0.0, margin)
        squared = float(np.square(W).sum()) + (float(np.square(beta / self.scaling).sum()) if self.scaling else 0.0)
        rounding = 2.0 * self.rows.score_rounding(W, beta).max(axis=1) + EPS * (4.0 + np.abs(margin))
        most = np.maximum(0.0, margin + rounding)
        return primal_values(W, squared, self.price, slack, most, 1)

    def _lower(self, given: Float) -> tuple[float, float]:
        """A lower bound of the optimum, and how far what classes give was from a circulation."""
        rows, imbalance, loss = np.arange(len(self.codes)), 0.0, 2.0 * self.n_classes * EPS
        given = given.copy()
        given[rows, self.codes] = 0.0
        total = given.sum(axis=1)
        given *= (np.minimum(1.0, self.price / np.maximum(total, np.finfo(np.float64).tiny)) * (1.0 - loss))[:, None]
        if self.scaling is None:
            given, imbalance = self._circulating(given)
            loss += (self.n_classes**2 + 64.0) * EPS
            given *= 1.0 - 2.0 * loss
        alpha = -given
        total = given.sum(axis=1)
        alpha[rows, self.codes] = total
        both = float(total.sum())
        if not both > 0:
            return 0.0, imbalance
        length = float(np.linalg.norm(self.rows.products(alpha)))
        moved = float(np.linalg.norm(self.rows.product_rounding(alpha)))
        moved += 2.0 * loss * float(total @ self.rows.lengths)
        balance = 0.0
        if self.scaling:
            balance = self.scaling * (float(np.linalg.norm(alpha.sum(axis=0))) + len(total) * EPS * 2.0 * both)
        curved = (length * (1.0 + (alpha.shape[1] * self.rows.X.shape[1] + 4.0) * EPS) + moved) ** 2 + balance**2
        gain = both * (1.0 - SUM - loss)
        return float(best_dual_value(gain, curved, 1.0 + SUM)), imbalance

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


class _JointAscent(Ascent):
    """Sweeps over all rows, with intercepts that follow after each."""

    def __init__(self, machine: CrammerSinger, record: Record) -> None:
        (n, d), K = machine.rows.X.shape, machine.n_classes
        self._machine, self._wait = machine, record.tol
        self._reach, self._kept = machine.reach
        self._W, self._beta, self._alpha = np.zeros((d, K)), np.zeros(K), np.zeros((n, K))
        self._order, self._moved = np.arange(n), np.zeros(K)

    @property
    def point(self) -> Point:
        """Where it stands; of the multipliers, what every row gives to the other classes."""
        return self._W, self._beta, -self._alpha

    def sweeps(self, rng: np.random.Generator, value: float, most: int, begun: int) -> Swept:
        """One sweep."""
        from separatrix.kernels.support_vectors.crammer_singer import sweep  # numba takes a while to import

        machine, rows = self._machine, self._machine.rows
        rng.shuffle(self._order)
        parts, sides = stored_parts(rows.X, rows.centre), (machine.codes, machine.price, rows.squares)
        with np.errstate(over="ignore"):
            rise = sweep(*parts, sides, self._reach, self._order, self._alpha, self._W, self._beta)
        before, self._beta = self._beta, self._kept * self._beta + self._reach * self._alpha.sum(axis=0)
        self._moved = self._beta - before
        return Swept(1, float(rise), float(rise))

    def is_due(self, rise: float, value: float) -> bool:
        """Whether the rise is small, and the smaller the more proofs there were."""
        return rise <= self._wait * value

    def after_proof(self, point: ProvenPoint, rise: float, value: float) -> bool:
        """Whether the last sweep moved nothing."""
        self._wait *= 0.5
        still = float(np.abs(self._moved).max()) <= 4.0 * EPS * max(1.0, float(np.abs(self._beta).max()))
        return rise <= 0.0 and still
