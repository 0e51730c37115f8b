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
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.dual.gram import Gram
from separatrix.dual.kernels import CentredLinear
from separatrix.dual.points import Points
from separatrix.dual.working_set import solve_dual
from separatrix.result import Certificate, Status

_EPS = float(np.finfo(np.float64).eps)
_FIRST_PROOF, _LONG_SINCE = 3, 1.5
_BLOCK = 4096
_ARRIVES_AT_ONCE = 300.0
# Rows that are visited one after the other, and the share of them that is worth a copy.
_RUN, _WORTH_GATHERING = 64, 0.4
# Indices that cannot be negative need no test for it in the compiled loop.
_UNSIGNED = {4: np.uint32, 8: np.uint64}


def centre_of(X: Any, scaling: float | None) -> Float:
    """Where dense rows are taken from when the intercept is free: it then hardly depends on the weights."""
    if scaling is not None or sp.issparse(X):
        return np.zeros(X.shape[1])
    mean: Float = X.mean(axis=0, dtype=np.float64)
    return mean


def reach_of(scaling: float | None, squares: Float, price: Float) -> float:
    """How far an intercept moves for a change of α: the square of its column, or r of the proximal term when it is free.

    The primal's curvature along b is of the size of ΣC; an r of a few hundred over it makes the centre arrive at once, and a
    larger one would only let b swing with every row.
    """
    if scaling is not None:
        return float(scaling) ** 2
    return min(float(squares.mean()) or 1.0, _ARRIVES_AT_ONCE / float(price.sum()))


def row_squares(X: Any, centre: Float) -> Float:
    """(n,) squared lengths of CSR rows, or of dense ones taken from a centre."""
    squares = np.empty(X.shape[0])
    for start in range(0, X.shape[0], _BLOCK):
        stop = min(start + _BLOCK, X.shape[0])
        if sp.issparse(X):
            first, last = X.indptr[start], X.indptr[stop]
            entries = np.append(np.square(X.data[first:last], dtype=np.float64), 0.0)
            sums = np.add.reduceat(entries, X.indptr[start:stop] - first)
            squares[start:stop] = np.where(np.diff(X.indptr[start : stop + 1]) > 0, sums, 0.0)
        else:
            rows = X[start:stop] - centre
            squares[start:stop] = np.einsum("ij,ij->i", rows, rows)
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
        return Gram(CentredLinear(), Points(self.X), 8.0 * len(self.signs) ** 2, single=False)

    def solve_pairs(self, gram: Gram, tol: float) -> LinearDual:
        """The hinge with a free intercept as a machine with the linear kernel."""
        dual = solve_dual(gram, self.signs, self.price, tol=tol)
        w = np.asarray(self.X.T @ dual.beta, dtype=np.float64)
        proof = (dual.status, dual.certificate, dual.rounds, dual.rounds, dual.trace)
        centre = gram.points.centre
        b = dual.intercept - (0.0 if centre is None else float(w @ centre))
        return LinearDual(w, b, np.abs(dual.beta), *proof)

    def solve(self, tol: float, max_sweeps: int, seed: int = 0, callback: Any = None) -> LinearDual:
        """Sweep until the proven gap is at most `tol` times the primal objective."""
        centre = centre_of(self.X, self.scaling)
        squares = row_squares(self.X, centre)
        reach = reach_of(self.scaling, squares, self.price)
        every = np.arange(len(squares))
        whole = _Visited(self.X, centre, every, self.signs, self._upper, self._ridge, squares, np.zeros(len(squares)))
        rows, w, b = whole, np.zeros(self.X.shape[1]), 0.0
        rng, trace = np.random.default_rng(seed), []
        status, sweeps, passes, value, trigger = Status.MAX_ITER, 0, 1, 0.0, tol
        recalled, proven = -1, 10  # the sweep of the last proof; the first is due by its rise, or somewhat later
        nothing = float(self.price.sum())  # of w = 0, whose dual value is 0
        proof = _Proof(0.0, Certificate(nothing, nothing, "duality gap"), np.zeros(len(every)))
        try:
            while sweeps < max_sweeps:
                rise, b = rows.sweep(w, b, reach, rng)
                sweeps, passes, value = sweeps + 1, passes + 1, value + rise
                if rows is not whole:
                    whole.alpha[rows.which] = rows.alpha
                moved = reach * float(whole.alpha @ self.signs) if self.scaling is None else 0.0
                b += moved
                done = rows.settled or (rise <= 0.0 and abs(moved) <= 4.0 * _EPS * max(1.0, abs(b)))
                due = rise <= trigger * value or sweeps >= _LONG_SINCE * proven
                if done or (sweeps >= _FIRST_PROOF and due):
                    proof, passes, proven = self._proof(w, b, whole.alpha), passes + 2, sweeps
                    goal = tol * proof.certificate.objective
                    if proof.certificate.gap <= goal:
                        status = Status.CONVERGED
                        break
                    if done and sweeps == recalled + 1:  # all that are not settled were visited, and nothing moved
                        status = Status.STALLED
                        break
                    # A proof costs two sweeps: the next is worth its while when the rise has fallen as the gap has to.
                    trigger = rise / value * min(0.7, goal / proof.certificate.gap) if value > 0 else 0.0
                    rows, recalled = whole.called_back(proof.scores + b, rows.violation), sweeps
                elif rows.active < _WORTH_GATHERING * len(rows.which):
                    rows = rows.gathered()
                certificate = proof.certificate
                trace.append({"iteration": sweeps, "objective": certificate.objective, "gap": certificate.gap})
                if callback is not None:
                    callback(trace[-1])
            else:
                proof = self._proof(w, b, whole.alpha)
        except KeyboardInterrupt:
            status, proof = Status.INTERRUPTED, self._proof(w, b, whole.alpha)
        return LinearDual(w, proof.b, whole.alpha, status, proof.certificate, sweeps, passes, trace)

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
            scores,
        )


@dataclass(frozen=True)
class _Proof:
    b: float
    certificate: Certificate
    scores: Float
    """Xw of all rows."""


@dataclass
class _Visited:
    """Rows in the order of their visits: those that rest are at the end.

    Rows are visited in runs of neighbours, the runs in random order: memory is read ahead, and no order repeats. When most
    rest, the others are gathered, so that neighbours are neighbours in memory again.
    """

    X: Any
    centre: Float
    which: NDArray[np.intp]
    signs: Float
    upper: Float
    ridge: Float
    squares: Float
    alpha: Float

    def __post_init__(self) -> None:
        self._order = np.arange(len(self.which))
        self._bounds = np.empty(2)
        self.wake()

    def wake(self) -> None:
        """Call back the rows that rest."""
        self.active, self.settled = len(self.which), False
        self._bounds[:] = np.inf, -np.inf

    @property
    def violation(self) -> float:
        """The largest projected gradient of the last sweep."""
        finite = self._bounds[np.isfinite(self._bounds)]
        return float(np.abs(finite).max(initial=0.0))

    def called_back(self, scores: Float, slack: float) -> _Visited:
        """The rows that are not settled at these scores, or only just: those at a bound by less than `slack`."""
        gradient = self.signs * scores - 1.0 + self.ridge * self.alpha
        zero, full = (self.alpha == 0.0) & (gradient > slack), (self.alpha == self.upper) & (gradient < -slack)
        at = np.flatnonzero(~(zero | full))
        self.wake()
        return self if len(at) > _WORTH_GATHERING * len(self.which) else self._part(at)

    def sweep(self, w: Float, b: float, reach: float, rng: np.random.Generator) -> tuple[float, float]:
        """Visit every row that does not rest; the rise of the dual, and b."""
        from separatrix.kernels.dual_hinge import sweep_dense, sweep_sparse  # numba takes a while to import

        self._shuffle(rng)
        per_row = (self.signs, self.upper, self.ridge, self.squares, reach, self._order, self.active, self._bounds)
        if sp.issparse(self.X):
            parts = (self.X.data, self.X.indices.view(_UNSIGNED[self.X.indices.dtype.itemsize]), self.X.indptr)
            self.active, rise, b = sweep_sparse(*parts, *per_row, self.alpha, w, b)
        else:
            self.active, rise, b = sweep_dense(self.X, self.centre, *per_row, self.alpha, w, b)
        self.settled = self.active == 0 or not np.isfinite(self._bounds).all()
        self._bounds[0] = self._bounds[0] if self._bounds[0] > 0 else np.inf
        self._bounds[1] = self._bounds[1] if self._bounds[1] < 0 else -np.inf
        return float(rise), float(b)

    def _shuffle(self, rng: np.random.Generator) -> None:
        awake = np.sort(self._order[: self.active])
        runs = len(awake) // _RUN
        body = awake[: runs * _RUN].reshape(runs, _RUN)[rng.permutation(runs)]
        self._order[: self.active] = np.concatenate([awake[runs * _RUN :], body.ravel()])

    def gathered(self) -> _Visited:
        """The rows that do not rest, in memory of their own."""
        part = self._part(np.sort(self._order[: self.active]))
        part._bounds = self._bounds.copy()
        return part

    def _part(self, at: NDArray[np.intp]) -> _Visited:
        held = (self.signs[at], self.upper[at], self.ridge[at], self.squares[at], self.alpha[at])
        return _Visited(self.X[at], self.centre, self.which[at], *held)


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
