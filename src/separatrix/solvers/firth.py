"""Firth's penalised logistic regression for two classes: finite answers where the likelihood has none.

    L*(θ) = Σ s_i ℓ_i(θ) + ½ log|I(θ)|        I = Xᵀ diag(s p(1−p)) X,    ℓ = y log p + (1−y) log(1−p),   y in {0, 1}
    U*(θ) = Xᵀ s(y − p + h(½ − p))            h_i = p_i(1−p_i) x_iᵀI⁻¹x_i, the leverage of one copy of row i

A step is θ ← θ + J⁻¹U*, J = Xᵀ diag(s(1+h) p(1−p)) X, halved until L* does not fall. J is the derivative of −U* with h held;
I ≤ J ≤ 2I, so it leads uphill as I does, which alone steps twice too far where single rows have all the leverage. What J
leaves out is learnt from the steps before (L-BFGS). The end is √(U*ᵀI⁻¹U*) ≤ tol: a score that is small against its own
standard errors. Weights s are repetitions. The penalty is Jeffreys' prior: it takes out the first term of the bias of the
maximum-likelihood estimate and holds separated data (see `geometry.separability`) at finite coefficients. L* has no proof
of concavity, so the fit has a score but no gap.

I = RᵀR comes from QR factors of the weighted rows, R merging over blocks as qr([R₁; R₂]): columns in any units lose
nothing, and nearly dependent ones half the digits that a product XᵀSX would. Columns far from the origin (a million times
their spread) still lose the digits of Xθ; centre them first.

References: Firth (1993), Biometrika 80, eq. 3.1 and §3.3; Heinze and Schemper (2002), Statistics in Medicine 21, §2;
weights, steps and profiles as in Heinze's R package logistf.

**Complexity** O(np²) a step. **Passes over the data** two a step, and one for every halving.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import expit, ndtri

from separatrix.data.block import Block, Float
from separatrix.data.source import COPIED_BYTES, Source, rows_per_block
from separatrix.data.views import Intercept
from separatrix.result import Status

_HALVINGS = 40
_STILL = 5
_MEMORY = 10
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class FirthFit:
    """What `minimise_firth` found.

    Parameters
    ----------
    theta : ndarray of shape (p,)
        Coefficients, positive towards ``source.classes[1]``.
    information : ndarray of shape (p, p)
        I(θ); its inverse is the covariance matrix that goes with the estimate.
    log_likelihood, penalised_log_likelihood : float
        Σ s_i ℓ_i and L*.
    status : Status
        Why it ended.
    iterations : int
        Steps taken.
    trace : list of dict
        For every step the penalised log-likelihood, the size of the score and the number of halvings before it.
    score : ndarray of shape (p,)
        U*(θ); its entry of a coefficient held fixed need not be small. NaN when interrupted before it was known.
    """

    theta: Float
    information: Float
    log_likelihood: float
    penalised_log_likelihood: float
    status: Status
    iterations: int
    trace: list[dict[str, Any]] = field(repr=False)
    score: Float


@dataclass(frozen=True)
class _Point:
    """What one pass knows at θ: R with RᵀR = I, Σ s ℓ, Xᵀs(y − p), and what rounding η to 1 in 1 does to L*."""

    theta: Float
    factor: Float
    log_likelihood: float
    plain_score: Float
    drift: float

    @cached_property
    def _condition(self) -> float:
        if not np.isfinite(self.factor).all() or _dependent(self.factor).any():
            return np.inf
        return float(np.linalg.cond(self.factor / np.linalg.norm(self.factor, axis=0)))

    @cached_property
    def penalised(self) -> float:
        """L*, or −∞ where the information is singular to rounding."""
        if self._condition == np.inf or not np.isfinite(self.log_likelihood):
            return -np.inf
        return self.log_likelihood + float(np.log(np.abs(self.factor.diagonal())).sum())

    @cached_property
    def noise(self) -> float:
        """How much of L* is rounding."""
        return 4 * _EPS * (abs(self.penalised) + self.drift + len(self.theta) * self._condition)


class _Likelihood:
    """The passes: through a source of two classes, with an offset."""

    def __init__(self, source: Source, offset: ArrayLike | None) -> None:
        if source.classes is None or len(source.classes) != 2:
            count = 0 if source.classes is None else len(source.classes)
            raise ValueError(f"Firth's penalty is for two classes; y has {count}. Use an L2 penalty for more.")
        self.source, self.offset = source, None if offset is None else np.asarray(offset, dtype=np.float64)
        if self.offset is not None and (self.offset.ndim != 1 or source.n_rows not in (None, len(self.offset))):
            raise ValueError(f"offset has shape {self.offset.shape}; give one number a row, ({source.n_rows},).")
        if self.offset is not None and not np.isfinite(self.offset).all():
            raise ValueError(f"offset contains NaN or infinity in {int((~np.isfinite(self.offset)).sum())} rows.")
        self._rows = rows_per_block(source.n_features, 256, COPIED_BYTES)  # blocks are made dense

    def _read(self, block: Block, theta: Float) -> tuple[Float, Float, Float, Float]:
        """Rows that count, their weights, sides ±1 and η."""
        rows, sides = block.dense(), np.where(block.codes == 1, 1.0, -1.0)
        weights = np.ones(block.n) if block.weights is None else block.weights
        shift = np.zeros(block.n) if self.offset is None else self.offset[block.start : block.start + block.n]
        if not weights.all():  # a row of weight zero may hold anything
            kept = np.flatnonzero(weights)
            rows, weights, sides, shift = rows[kept], weights[kept], sides[kept], shift[kept]
        return rows, weights, sides, rows @ theta + shift

    def at(self, theta: Float) -> _Point:
        """One pass: information, likelihood and its score."""

        def look(block: Block) -> tuple[Float, float, Float, float]:
            rows, weights, sides, eta = self._read(block, theta)
            root = np.sqrt(weights * expit(eta) * expit(-eta))
            wrong = weights * expit(-sides * eta)
            value = float(-weights @ np.logaddexp(0.0, -sides * eta))
            drift = float((wrong + root) @ (np.abs(rows) @ np.abs(theta)))
            return _triangle(rows * root[:, None]), value, rows.T @ (sides * wrong), drift

        def merge(one: Any, two: Any) -> Any:
            return _triangle(np.concatenate([one[0], two[0]])), *(a + b for a, b in zip(one[1:], two[1:], strict=True))

        factor, *sums = self.source.reduce(look, merge, rows=self._rows)
        return _Point(theta, _triangle(np.concatenate([factor, np.zeros((len(theta), len(theta)))])), *sums)

    def score(self, point: _Point) -> tuple[Float, Float]:
        """U*, and a triangle whose square is J: a second pass, for the leverages."""

        def look(block: Block) -> tuple[Float, Float]:
            rows, weights, _, eta = self._read(block, point.theta)
            half = solve_triangular(point.factor, rows.T, trans="T", check_finite=False)
            p = expit(eta)
            curved = p * expit(-eta)
            leverage = curved * np.einsum("ji,ji->i", half, half)
            root = np.sqrt(weights * (1.0 + leverage) * curved)
            return rows.T @ (weights * leverage * (0.5 - p)), _triangle(rows * root[:, None])

        penalty, factor = self.source.reduce(
            look, lambda one, two: (one[0] + two[0], _triangle(np.concatenate([one[1], two[1]]))), rows=self._rows
        )
        return point.plain_score + penalty, factor

    def first(self, theta: Float) -> _Point:
        """The starting point, or a sentence that says why there is none."""
        point = self.at(theta)
        self.source.check_finite(point.factor, point.plain_score)
        if point.penalised > -np.inf:
            return point
        # Rows of probability 0 or 1 carry no information; it is dependent columns that no start can help.
        plain = self.source.reduce(
            lambda block: _triangle(block.counted().dense()),
            lambda one, two: _triangle(np.concatenate([one, two])),
            rows=self._rows,
        )
        columns = np.flatnonzero(_dependent(plain))
        if len(columns):
            raise ValueError(self._dependence(columns))
        raise ValueError(
            "The information is singular at the start: the start, the offset or the fixed coefficient gives every row a "
            "probability of 0 or 1. Start nearer to zero."
        )

    def _dependence(self, columns: Any) -> str:
        source = self.source
        named = source.source if isinstance(source, Intercept) else source
        names = [named.column_name(j) if j < named.n_features else "the intercept" for j in columns[:5]]
        last = f"{len(columns) - 5} more" if len(columns) > 5 else names.pop()
        if not names:
            return f"Firth's penalty needs |I| > 0, but {last} is zero in every row that counts; drop it."
        return (
            f"Firth's penalty needs linearly independent columns, but {', '.join(names)} and {last} depend on each other, or "
            "there are fewer rows than columns; drop columns until none is a combination of the others."
        )


def _triangle(rows: Float) -> Float:
    """R of the QR factorisation, (min(n, p), p)."""
    return np.asarray(np.linalg.qr(rows, mode="r"))


def _half_solve(factor: Float, score: Float) -> tuple[Float, Float]:
    """R and R⁻ᵀu, where RᵀR is the square of the given factor."""
    R = _triangle(factor)
    return R, solve_triangular(R, score, trans="T")


def _direction(score: Float, curvature: Float, memory: list[tuple[Float, Float]]) -> Float:
    """J⁻¹U*, bent by the last steps and what they did to the score (L-BFGS about J): J leaves out how h changes."""
    pairs = [(moved, fell, 1.0 / (moved @ fell)) for moved, fell in memory if moved @ fell > 0]
    passed: list[float] = []
    for moved, fell, rho in reversed(pairs):
        passed.append(float(rho * (moved @ score)))
        score = score - passed[-1] * fell
    step: Float = solve_triangular(*_half_solve(curvature, score))
    for (moved, fell, rho), share in zip(pairs, reversed(passed), strict=True):
        step = step + (share - rho * (fell @ step)) * moved
    return step


def _dependent(factor: Float) -> Any:
    """Which columns take part in a linear dependence, to rounding."""
    size = np.linalg.norm(factor, axis=0)
    _, singular, right = np.linalg.svd(factor / np.where(size > 0, size, 1.0))
    rank = int((singular > 8 * factor.shape[1] * _EPS * singular.max(initial=0.0)).sum())
    return np.abs(right[rank:]).max(axis=0, initial=0.0) > 1e-6


def minimise_firth(
    source: Source,
    *,
    offset: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    callback: Callable[[dict[str, Any]], None] | None = None,
    start: Float | None = None,
    fixed: tuple[int, float] | None = None,
) -> FirthFit:
    """Maximise L* over the coefficients of a source of two classes (minimise −L*).

    Parameters
    ----------
    source : Source
        Labelled; its columns are the design. Wrap it in `Intercept` for a constant.
    offset : array-like of shape (n,), optional
        Added to η, row by row.
    tol : float
        Bound on √(U*ᵀI⁻¹U*).
    max_iter : int
        Limit on the steps.
    callback : callable, optional
        Called with the newest entry of the trace.
    start : ndarray of shape (p,), optional
        Where to begin; zeros otherwise.
    fixed : (index, value), optional
        A coefficient that is held at a value. The penalty is still that of all of them.

    Examples
    --------
    A table with a zero cell: the answer is that of ordinary logistic regression with ½ added to every cell.

    >>> import numpy as np
    >>> from separatrix.data import Intercept, as_source
    >>> from separatrix.solvers.firth import minimise_firth
    >>> x, y = [[0.0], [0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1, 1]
    >>> fit = minimise_firth(Intercept(as_source(x, y).labelled()))
    >>> bool(np.isclose(fit.theta[1], np.log(1.5 / 2.5))), bool(np.isclose(fit.theta.sum(), np.log(2.5 / 0.5)))
    (True, True)
    """
    likelihood, p = _Likelihood(source, offset), source.n_features
    theta = np.zeros(p) if start is None else np.array(start, dtype=np.float64)
    free = np.ones(p, dtype=bool)
    if fixed is not None:
        free[fixed[0]], theta[fixed[0]] = False, fixed[1]
    point = likelihood.first(theta)
    score, status, steps, halvings, still = np.full(p, np.nan), Status.MAX_ITER, 0, 0, 0
    trace: list[dict[str, Any]] = []
    memory: list[tuple[Float, Float]] = []
    moved = np.zeros(p)
    try:
        while True:
            value, before, score = point.penalised, score, np.full(p, np.nan)
            score, curvature = likelihood.score(point)
            if steps:
                memory = [*memory[1 - _MEMORY :], (moved[free], (before - score)[free])]
            size = float(np.linalg.norm(_half_solve(point.factor[:, free], score[free])[1]))
            trace.append(
                {"iteration": steps, "penalised_log_likelihood": value, "score_norm": size, "halvings": halvings}
            )
            if callback is not None:
                callback(trace[-1])
            if size <= tol:
                status = Status.CONVERGED
                break
            if steps == max_iter:
                break
            step = np.zeros(p)
            step[free] = _direction(score[free], curvature[:, free], memory)
            for halvings in range(_HALVINGS):
                moved = step * 0.5**halvings
                trial = likelihood.at(point.theta + moved)
                if trial.penalised >= value - point.noise:
                    break
            # Near the top L* is flat to rounding; there the score leads, as long as it still falls.
            smaller = len(trace) < 2 or size < 0.9 * min(entry["score_norm"] for entry in trace[:-1])
            still = 0 if smaller or trial.penalised > value + point.noise else still + 1
            if trial.penalised < value - point.noise or still == _STILL:
                status = Status.STALLED
                break
            point, steps = trial, steps + 1
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return FirthFit(
        point.theta,
        point.factor.T @ point.factor,
        point.log_likelihood,
        point.penalised,
        status,
        steps,
        trace,
        score,
    )


def profile_interval(
    source: Source,
    fit: FirthFit,
    index: int,
    level: float = 0.95,
    *,
    offset: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
) -> tuple[float, float]:
    """Limits of {β : 2(L*(θ̂) − max L*(θ with θ_index = β)) ≤ χ²₁(level)}, which need not be symmetric.

    Every value of β is a fit of its own, warm-started; √(2ΔL*) is nearly linear in β, so Newton's method on it takes a
    handful. A limit that is not found within `max_iter` values is given as the nearest one known to be outside, which may
    be ±∞.

    Examples
    --------
    >>> from separatrix.data import Intercept, as_source
    >>> from separatrix.solvers.firth import minimise_firth, profile_interval
    >>> source = Intercept(as_source([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]).labelled())
    >>> low, high = profile_interval(source, minimise_firth(source), 0)
    >>> low < 0 < high
    True
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; give a probability between 0 and 1, such as 0.95.")
    unit = np.zeros(len(fit.theta))
    unit[index] = 1.0
    error = float(np.linalg.norm(solve_triangular(np.linalg.cholesky(fit.information), unit, lower=True)))
    goal = float(ndtri(0.5 + 0.5 * level))

    def limit(side: float) -> float:
        inside, outside, centre = 0.0, math.inf, float(fit.theta[index])  # distances from the estimate
        distance, theta = goal * error, fit.theta
        for _ in range(max_iter):
            held = minimise_firth(
                source, offset=offset, tol=tol, max_iter=max_iter, start=theta, fixed=(index, centre + side * distance)
            )
            if held.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            theta = held.theta
            drop = math.sqrt(2.0 * max(0.0, fit.penalised_log_likelihood - held.penalised_log_likelihood))
            if abs(drop - goal) <= max(tol, 64 * _EPS * abs(held.penalised_log_likelihood)):
                return centre + side * distance
            inside, outside = (distance, outside) if drop < goal else (inside, distance)
            slope = -side * float(held.score[index]) / drop if drop > 0.1 * goal else 0.0
            guess = distance + (goal - drop) / slope if slope > 0 else 2.0 * distance
            guess = min(guess, 4.0 * distance)
            if not inside < guess < outside:
                guess = 0.5 * (inside + outside)
            if guess in (inside, outside) or not math.isfinite(guess):
                break
            distance = guess
        return centre + side * outside

    return limit(-1.0), limit(1.0)
