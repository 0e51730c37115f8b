"""The duality gap of a soft-margin machine, at the coefficients that are published and with rounding counted.

    P(w, b) = ½‖w‖² + Σ Cᵢξᵢ,   ξᵢ = max(0, ỹᵢ(vᵢ − b)),   v = ỹ − Kβ          D(β) = Σ ỹᵢβᵢ − ½βᵀKβ,   Σβ = 0

Every β' with Σβ' = 0 and 0 ≤ ỹβ' ≤ C has D(β') ≤ min P. Rounding leaves Σβ = s ≠ 0. With β' = β + e, where e = −tβ on the side
whose multipliers are heavier, t = |s| / Σ_side|β|,

    P(β, b) − D(β') = Σ Cᵢξᵢ − βᵢ(vᵢ − b)  −  Σ eᵢ(vᵢ − b)  +  ½eᵀKe,       eᵀKe ≤ s² max Kᵢᵢ

which needs nothing about the optimal intercept. Scores known to δᵢ change it by at most Σ (Cᵢ + |βᵢ|)δᵢ. The bound is given
with that twice, so that objective − gap is below the optimum as well.

A hard margin (C = ∞) has as primal the rule scaled until no row is inside: ½‖w‖²/(min ỹ(f + b))².

For the linear kernel (w, b) themselves are published, so P is evaluated at them: x relative to a centre c, with b + wᵀc in
twice the working precision (products split after Dekker), so that rows far from the origin keep their digits. D is that of
‖Σβ(x − c)‖² and needs no scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.block import Float
from separatrix.dual.kernel_matrix import Index, KernelMatrix
from separatrix.lazy import compiled_pays
from separatrix.objectives.rounding import exact_dot
from separatrix.result import Certificate, Status

_EPS = float(np.finfo(np.float64).eps)
_SPLITS_UP_TO, _ROWS = 1e140, 4096
# Sums of multipliers leave rounding errors of this size relative to the bound.
_AT_BOUND = 1e-13
# Of the largest gap that is allowed: below it more digits are not worth their cost.
PLAIN = 1e-3
# Entries of X that may be copied to be read row by row.
_COPIED = 1 << 22


@dataclass(frozen=True)
class SoftMargin:
    """The problem of one machine: signs ỹ, bounds C, and whether its kernel is positive semi-definite."""

    signs: Float
    bound: Float
    positive: bool | None

    @property
    def high(self) -> Float:
        """(n,) the largest β."""
        return np.where(self.signs > 0, self.bound, 0.0)

    @property
    def low(self) -> Float:
        """(n,) the least β."""
        return np.where(self.signs > 0, 0.0, -self.bound)

    @property
    def hard(self) -> bool:
        """Whether no slack is allowed."""
        return bool(np.isinf(self.bound).any())

    def best_intercept(self, v: Float) -> float:
        """argmin over b of Σ Cᵢ max(0, ỹᵢ(vᵢ − b)): its slope is −Σ₊C far to the left and rises by Cᵢ at every vᵢ."""
        order = np.argsort(v)
        rising = np.cumsum(self.bound[order])
        at = int(np.searchsorted(rising, float(self.bound[self.signs > 0].sum()) * (1.0 - 4.0 * _EPS)))
        return float(v[order[min(at, len(v) - 1)]])

    def intercept(self, beta: Float, v: Float, violation: float, tol: float) -> float:
        """The mean over the margin vectors, the middle of its interval, or the best for a β that is no optimum."""
        if violation > tol and not self.hard:
            return self.best_intercept(v)
        return margin_intercept(beta, v, self.low, self.high)

    def allowed(self, tol: float, beta: Float) -> float:
        """The largest gap of a machine that violates no condition by more than `tol`."""
        if not self.hard:
            return tol * float(self.bound.sum())
        return float(np.abs(beta).sum()) * (0.5 * ((1.0 - tol) ** -2 - 1.0) + tol) if tol < 1 else np.inf

    def certificate(
        self, beta: Float, scores: Float, errors: Float, intercept: float, violation: float, largest: float
    ) -> Certificate:
        """The proof for (β, b), scores being known to `errors`, with `largest` the largest k(x, x)."""
        if not self.hard:
            found = soft_gap(self.signs, self.bound, beta, scores, errors, intercept, largest)
            return self.stated(violation, *found[:4])
        signs, alpha = self.signs, np.abs(beta)
        v, length = signs - scores, float(beta @ scores)
        errors = errors + 2.0 * _EPS * (1.0 + np.abs(scores) + abs(intercept))
        slack = np.maximum(0.0, signs * (v - intercept))
        excess = math.fsum(beta)
        side = np.sign(beta) == np.sign(excess)
        share = abs(excess) / (float(alpha[side].sum()) or 1.0)
        left = 0.5 * abs(excess) * (abs(excess) * largest)  # ½eᵀKe
        sums = 2.0 * _EPS * (4.0 + math.log2(len(beta)))
        margin = 1.0 - float((slack + errors).max())
        longer = length + float(alpha @ errors) + sums * float(alpha @ np.abs(scores))
        primal = 0.5 * max(0.0, longer) / margin**2 if margin > 0 else np.inf
        lost = share * abs(float(beta[side] @ v[side])) + left
        gap = primal - (float(signs @ beta) * (1.0 - sums) - 0.5 * longer) + lost
        complementary = float((alpha * np.abs(v - intercept)).max(initial=0.0))
        return self.stated(violation, gap, primal, abs(excess), complementary, float(slack.max(initial=0.0)))

    def stated(
        self,
        violation: float,
        gap: float,
        primal: float,
        excess: float,
        complementary: float,
        slack: float = 0.0,
        proven: bool = True,
    ) -> Certificate:
        """The certificate of these numbers, as far as the kernel allows one: a proof where that is `proven`."""
        method = "duality gap" if self.positive else "duality gap, if the kernel is positive semi-definite"
        if self.positive is False:
            gap, method = np.inf, "none: the kernel is not positive semi-definite"
        return Certificate(
            max(0.0, gap) if not np.isnan(gap) else np.inf,
            primal,
            method,
            stationarity=violation,
            primal_feasibility=slack,
            dual_feasibility=excess,
            complementary_slackness=complementary,
            kind="proven" if self.positive and proven else "estimated",
        )

    def of_plane(
        self, proof: Certificate, beta: Float, X: Any, w: Float, b: float, centre: Float | None
    ) -> Certificate:
        """The proof for the linear rule that is published, against the dual value of β; residuals as they were."""
        slack, least = 0.0, np.inf
        lengths = 0.5 * float(w @ w) * (1.0 + (len(w) + 2) * _EPS)
        for start in range(0, len(self.signs), _ROWS):
            rows = slice(start, start + _ROWS)
            scores, errors = _plane_scores(X[rows], w, b, centre)
            margins = self.signs[rows] * scores
            least = min(least, float((margins - errors).min()))
            if not self.hard:
                slack += float(self.bound[rows] @ np.maximum(0.0, 1.0 - margins + errors))
        lower = self._plane_value(beta, X, centre)
        scaled = lengths / least**2 if least > 0 else np.inf
        primal = scaled if self.hard else lengths + slack
        primal *= 1.0 + 2.0 * _EPS * math.log2(2 * _ROWS + len(self.signs))
        gap = max(0.0, primal - lower) if np.isfinite(primal) else np.inf
        return replace(proof, gap=gap, objective=primal)

    def _plane_value(self, beta: Float, X: Any, centre: Float | None) -> float:
        """A bound on D(β') from below: Σα − ½‖Σβ(x − c)‖² with the sums in the widest type, less what the excess costs."""
        used = np.flatnonzero(beta)
        if not len(used):
            return 0.0
        weights, vectors = beta[used], X[used]
        if sp.issparse(X) or centre is None:
            w, magnitude, unit = weights @ vectors, np.abs(weights) @ abs(vectors), _EPS
            longest = float(np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).max())) if sp.issparse(X) else 0.0
        else:
            w, magnitude = np.zeros(X.shape[1], dtype=np.longdouble), np.zeros(X.shape[1])
            unit, longest = float(np.finfo(np.longdouble).eps), 0.0
            for start in range(0, len(used), _ROWS):
                rows = slice(start, start + _ROWS)
                part = vectors[rows].astype(np.longdouble) - centre
                w += weights[rows].astype(np.longdouble) @ part
                magnitude += np.abs(weights[rows]) @ np.abs(part).astype(np.float64)
                longest = max(longest, float(np.sqrt(np.square(part).sum(axis=1).max())))
        off = float(np.linalg.norm((len(used) + 4) * unit * np.asarray(magnitude, dtype=np.float64)))
        length = float(np.linalg.norm(np.asarray(w, dtype=np.float64))) * (1.0 + (len(w) + 2) * _EPS) + off
        excess, alpha = abs(math.fsum(beta)), math.fsum(np.abs(weights))
        # |eᵀv| ≤ Σ|e| max|v| and |v| ≤ 1 + ‖w‖‖x − c‖, Σ|e| = |s|
        lost = excess * (1.0 + length * longest) + 0.5 * (excess * longest) ** 2
        return max(0.0, alpha * (1.0 - 2.0 * _EPS) - 0.5 * length**2 * (1.0 + 4.0 * _EPS) - lost)


@dataclass(frozen=True)
class KernelDual:
    """Coefficients β, scores f = Kβ without the intercept, the intercept, and the proof."""

    beta: Float
    scores: Float
    intercept: float
    status: Status
    certificate: Certificate
    rounds: int
    steps: int
    trace: list[dict[str, Any]]
    errors: Float
    """Bounds on the rounding of the scores."""

    def with_bound(self, matrix: KernelMatrix, sides: SoftMargin, tol: float) -> KernelDual:
        """The same solution with the proof for another bound that it does not reach."""
        known = (self.beta, self.scores, self.errors, self.intercept, self.certificate.stationarity)
        proof = sides.certificate(*known, matrix.largest())
        status = settled_status(self.status, proof.gap, sides.allowed(tol, self.beta))
        return replace(self, certificate=proof, status=status)

    def published(self, sides: SoftMargin, X: Any, w: Float, b: float, centre: Float | None, tol: float) -> KernelDual:
        """The same solution with the proof for the linear rule (w, b) that stands for it."""
        proof = sides.of_plane(self.certificate, self.beta, X, w, b, centre)
        reached = Status.CONVERGED if self.status is Status.ROUNDED else self.status  # that was about the scores
        return replace(
            self, certificate=proof, status=settled_status(reached, proof.gap, sides.allowed(tol, self.beta))
        )


def margin_intercept(beta: Float, v: Float, low: Float, high: Float) -> float:
    """The mean over the margin vectors, or the middle of its interval where there are none."""
    if compiled_pays(0.0):
        from separatrix.kernels.support_vectors.soft_margin import margin_intercept as compiled

        return float(compiled(beta, v, low, high))
    # A multiplier that rounding keeps from its bound does not fix the intercept, which may be anywhere in an interval.
    room = _AT_BOUND * (high - low)
    rises, falls = beta < high - room, beta > low + room
    if (both := rises & falls).any():
        return float(v[both].mean())
    top, bottom = float(v[rises].max(initial=-np.inf)), float(v[falls].min(initial=np.inf))
    return 0.5 * (top + bottom) if np.isfinite(top + bottom) else (top if np.isfinite(top) else bottom)


def soft_gap(
    signs: Float, bound: Float, beta: Float, scores: Float, errors: Float, intercept: float, largest: float
) -> tuple[float, float, float, float, float]:
    """(gap, primal objective, |Σβ|, largest product of a multiplier and its slack, βᵀf); `errors` are of the scores."""
    if compiled_pays(0.0):
        from separatrix.kernels.support_vectors.soft_margin import soft_gap as compiled

        found: tuple[float, float, float, float, float] = compiled(
            signs, bound, beta, scores, errors, intercept, largest
        )
        return found
    near, alpha, n = signs - scores - intercept, np.abs(beta), len(signs)
    slack = np.maximum(0.0, signs * near)
    cost = bound * slack
    # Sums of lists: one number after the other is slow to take from an array.
    price, length, excess = (math.fsum(terms.tolist()) for terms in (cost, beta * scores, beta))
    off = errors + 2.0 * _EPS * (1.0 + np.abs(scores) + abs(intercept))
    sizes = float((cost + alpha * (np.abs(near) + np.abs(scores))).sum())
    outside = np.maximum(0.0, -signs * near)
    complementary = float(np.maximum(alpha * outside, (bound - alpha) * slack).max(initial=0.0))
    total = abs(excess) + n * n * _EPS * _EPS * float(alpha.sum())
    heavy = beta * excess > 0.0
    side = float(alpha[heavy].sum())
    taken = float(beta[heavy] @ near[heavy])
    rounded = 1.0 + 2.0 * n * _EPS
    unsure = (2.0 * float(((bound + alpha) * off).sum()) + 2.0 * _EPS * (4.0 + math.log2(n)) * sizes) * rounded
    primal = 0.5 * length + price
    gap = (
        max(0.0, math.fsum((cost - beta * near).tolist()))
        + (total / side if side > 0.0 else 0.0) * abs(taken) * rounded
    )
    gap += 0.5 * total * (total * largest) + unsure
    return min(gap, primal + unsure), primal, abs(excess), complementary, length  # β' = 0 has the dual value 0


def constant_dual(signs: Float, bound: Float, positive: bool | None, status: Status) -> KernelDual:
    """The machine that has not begun: β = 0, and the side of the larger total bound for every row."""
    sides, nothing = SoftMargin(signs, bound, positive), np.zeros(len(signs))
    intercept = sides.best_intercept(signs) if not sides.hard else 0.0
    proof = sides.certificate(nothing, nothing, nothing, intercept, 2.0, 0.0)
    return KernelDual(nothing, nothing, intercept, status, proof, 0, 0, [], nothing)


def settled_status(status: Status, gap: float, allowed: float) -> Status:
    """A machine that converged while its published coefficients, rounding counted, do not show it was rounded."""
    return Status.ROUNDED if status is Status.CONVERGED and not gap <= allowed else status


def _plane_scores(X: Any, w: Float, b: float, centre: Float | None) -> tuple[Float, Float]:
    """(n,) Xw + b and bounds on the errors."""
    if sp.issparse(X) or centre is None:
        magnitude, additions = np.asarray(abs(X) @ np.abs(w), dtype=np.float64), X.shape[1] + 2
        if sp.issparse(X):
            additions = int(np.diff(X.indptr).max(initial=0)) + 2
        scores = np.asarray(X @ w, dtype=np.float64) + b
        return scores, additions * _EPS * (magnitude + abs(b))
    from_centre = np.asarray(X, dtype=np.float64) - centre
    offset, off = dot_and_error(w, centre, b)
    scores = from_centre @ w + offset
    return scores, (X.shape[1] + 4) * _EPS * (np.abs(from_centre) @ np.abs(w) + abs(offset)) + off


def dot_and_error(w: Float, c: Float, b: float) -> tuple[float, float]:
    """b + wᵀc rounded once, and a bound on what the splitting of its products may have lost."""
    size = max(float(np.abs(w).max(initial=0.0)), float(np.abs(c).max(initial=0.0)))
    if not size < _SPLITS_UP_TO:
        return float(w @ c) + b, (len(w) + 2) * _EPS * float(np.abs(w) @ np.abs(c))
    return exact_dot(w, c, b), len(w) * float(np.finfo(np.float64).tiny)  # products that underflow


def plane_objectives(
    X: Any, centre: Float, sides: tuple[Index, Index, Float, Float], weights: Float, near: Float
) -> tuple[Float, Float | None]:
    """Intercepts at the origin of linear rules whose intercepts at the centre are `near`, and bounds on their objectives from
    above, where these are found at little cost. `sides` are (rows, starts, signs, bound): rule m is about the rows from
    starts[m] to starts[m + 1], of these signs; `bound` is C of all rows.
    """
    size = max(float(np.abs(weights).max(initial=0.0)), float(np.abs(centre).max(initial=0.0)))
    whole = X.dtype == np.float64 and X.flags.c_contiguous and X.flags.writeable
    plain = whole or X.size <= _COPIED
    if not size < _SPLITS_UP_TO or not plain or np.isinf(sides[3]).any() or not compiled_pays(0.0):
        return np.array([dot_and_error(-w, centre, b)[0] for w, b in zip(weights, near.tolist(), strict=True)]), None
    from separatrix.kernels.planes import shifted_intercepts, upper_objectives  # numba takes a while to import

    intercepts = shifted_intercepts(weights, centre, near, -1.0)[:, 0].copy()
    offsets = shifted_intercepts(weights, centre, intercepts, 1.0)
    rows = X if whole else np.array(X, dtype=np.float64, order="C")
    return intercepts, upper_objectives(rows, centre, *sides, weights, offsets)


def sparse_objectives(
    X: Any, sides: tuple[Index, Index, Float, Float], weights: Float, intercepts: Float
) -> Float | None:
    """The bounds of `plane_objectives` for sparse rows, which are taken from the origin."""
    if np.isinf(sides[3]).any() or not compiled_pays(0.0):
        return None
    from separatrix.kernels.planes import sparse_upper_objectives  # numba takes a while to import

    return np.asarray(sparse_upper_objectives(X.data, X.indices, X.indptr, *sides, weights, intercepts))
