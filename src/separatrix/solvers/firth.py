"""Firth's penalised logistic regression for two classes: finite answers where the likelihood has none.

    L*(θ) = Σ s_i ℓ_i(θ) + ½ log|I(θ)|        I = Xᵀ diag(s p(1−p)) X,    ℓ = y log p + (1−y) log(1−p),   y in {0, 1}
    U*(θ) = Xᵀ s(y − p + h(½ − p))            h_i = p_i(1−p_i) x_iᵀI⁻¹x_i, the leverage of one copy of row i

A step is θ ← θ + J⁻¹U*, J = Xᵀ diag(s(1+h) p(1−p)) X, halved until L* does not fall. J is the derivative of −U* with h held;
I ≤ J ≤ 2I, so it leads uphill as I does, which alone steps twice too far where single rows have all the leverage. What J
leaves out is learnt from the steps before (L-BFGS). The end is √(U*ᵀI⁻¹U*) ≤ tol: a score that is small against its own
standard errors. Weights s are repetitions. The penalty is Jeffreys' prior: it takes out the first term of the bias of the
maximum-likelihood estimate and holds separated data (see `geometry.separation`) at finite coefficients. L* has no proof
of concavity, so the fit has a score but no gap.

I = RᵀR comes from QR factors of the weighted rows, R merging over blocks as qr([R₁; R₂]): nearly dependent columns lose half
the digits that a product XᵀSX would. Columns are seen centred and scaled (coordinates.py): units and origin do not matter.

References: Firth (1993), Biometrika 80, eq. 3.1 and §3.3; Heinze and Schemper (2002), Statistics in Medicine 21, §2;
weights and steps as in Heinze's R package logistf.

**Complexity** O(np²) per step. **Passes over the data** one, two per step, and one for every halving.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import expit

from separatrix.data.affine import Intercept
from separatrix.data.block import Block, Float
from separatrix.data.source import COPIED_BYTES, Source, rows_per_block
from separatrix.result import Status
from separatrix.solvers.coordinates import StandardisedCoordinates

_HALVINGS = 40
_STILL = 5
_MEMORY = 10
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class FirthFit:
    """The maximum of L*, or where the search for it ended."""

    theta: Float
    """(p,) coefficients, positive towards ``source.classes[1]``."""
    information: Float
    """(p, p) I(θ), the inverse covariance; infinite where the units of a column put it beyond a float."""
    log_likelihood: float
    penalised_log_likelihood: float
    status: Status
    iterations: int
    trace: list[dict[str, Any]] = field(repr=False)
    """For every step the penalised log-likelihood, the size of the score and the number of halvings before it."""
    score: Float
    """(p,) U*(θ); of a coefficient held fixed it need not be small. NaN when interrupted before it was known."""


@dataclass(frozen=True)
class FirthPoint:
    """One pass at θ: R with RᵀR = I, Σ s ℓ, Xᵀs(y − p), and what rounding η to 1 in 1 does to L*."""

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


class FirthLikelihood:
    """The passes: through a source of two classes, with an offset."""

    def __init__(self, source: Source, offset: ArrayLike | None) -> None:
        if source.classes is None or len(source.classes) != 2:
            count = 0 if source.classes is None else len(source.classes)
            raise ValueError(f"Firth's penalty is for two classes; y has {count}. Use an L2 penalty for more.")
        self.source, self.offset = source, None if offset is None else np.asarray(offset, dtype=np.float64)
        if self.offset is not None and (self.offset.ndim != 1 or source.n_rows not in (None, len(self.offset))):
            raise ValueError(f"offset has shape {self.offset.shape}; give one number per row, ({source.n_rows},).")
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

    def at(self, theta: Float) -> FirthPoint:
        """One pass: information, likelihood and its score."""

        def look(block: Block) -> tuple[Float, float, Float, float]:
            rows, weights, sides, eta = self._read(block, theta)
            root = np.sqrt(weights * expit(eta) * expit(-eta))
            wrong = weights * expit(-sides * eta)
            value = float(-weights @ np.logaddexp(0.0, -sides * eta))
            drift = float((wrong + root) @ (np.abs(rows) @ np.abs(theta)))
            return _triangle(rows * root[:, None]), value, rows.T @ (sides * wrong), drift

        def merge(one: Any, two: Any) -> Any:
            return _triangle(one[0], two[0]), *(a + b for a, b in zip(one[1:], two[1:], strict=True))

        factor, *sums = self.source.reduce(look, merge, rows=self._rows)
        return FirthPoint(theta, _triangle(factor, np.zeros((len(theta), len(theta)))), *sums)

    def score(self, point: FirthPoint) -> tuple[Float, Float]:
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
            look, lambda one, two: (one[0] + two[0], _triangle(one[1], two[1])), rows=self._rows
        )
        return point.plain_score + penalty, factor

    def first(self, theta: Float) -> FirthPoint:
        """The starting point, or an error with the reason why there is none."""
        point = self.at(theta)
        self.source.check_finite(point.factor, point.plain_score)
        if point.penalised > -np.inf:
            return point
        # Rows of probability 0 or 1 carry no information; it is dependent columns that no start can help.
        plain = self.source.reduce(lambda block: _triangle(block.counted().dense()), _triangle, rows=self._rows)
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


def _triangle(*rows: Float) -> Float:
    """R of the QR factorisation of the rows, (min(n, p), p)."""
    return np.asarray(np.linalg.qr(np.concatenate(rows) if len(rows) > 1 else rows[0], mode="r"))


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


@dataclass(frozen=True)
class FirthMaximum:
    """Where the steps ended, in the coordinates of the likelihood."""

    point: FirthPoint
    score: Float
    status: Status
    iterations: int
    trace: list[dict[str, Any]]

    @property
    def size(self) -> float:
        """√(U*ᵀI⁻¹U*) over the free directions: L* is about half its square from the maximum."""
        return float(self.trace[-1]["score_norm"]) if self.trace else np.inf


def maximise(
    likelihood: FirthLikelihood,
    point: FirthPoint,
    held: Float | None,
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[dict[str, Any]], None] | None = None,
    log_units: float = 0.0,
) -> FirthMaximum:
    """Climb L* from a point with a non-singular information; the rows of `held` times φ stay as they are."""
    p = len(point.theta)
    free = np.eye(p) if held is None else _complement(held)
    score, status, steps, halvings, still = np.full(p, np.nan), Status.MAX_ITER, 0, 0, 0
    trace: list[dict[str, Any]] = []
    memory: list[tuple[Float, Float]] = []
    moved = np.zeros(free.shape[1])
    try:
        while True:
            value, before, score = point.penalised, score, np.full(p, np.nan)
            score, curvature = likelihood.score(point)
            if steps:
                memory = [*memory[1 - _MEMORY :], (moved, free.T @ (before - score))]
            size = float(np.linalg.norm(_half_solve(point.factor @ free, free.T @ score)[1])) if free.size else 0.0
            entry = {"iteration": steps, "penalised_log_likelihood": value + log_units}
            trace.append({**entry, "score_norm": size, "halvings": halvings})
            if callback is not None:
                callback(trace[-1])
            if size <= tol:
                status = Status.CONVERGED
                break
            if steps == max_iter:
                break
            step = _direction(free.T @ score, curvature @ free, memory)
            for halvings in range(_HALVINGS):
                moved = step * 0.5**halvings
                trial = likelihood.at(point.theta + free @ moved)
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
    return FirthMaximum(point, score, status, steps, trace)


def _complement(held: Float) -> Float:
    """Columns that span the directions in which the rows of `held` are zero; coordinates themselves where they do."""
    p = held.shape[1]
    touched = held.any(axis=0)
    if len(held) == touched.sum():
        return np.eye(p)[:, ~touched]
    full, _ = np.linalg.qr(held.T, mode="complete")
    return np.asarray(full[:, len(held) :])


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
    FirthLikelihood(source, offset)  # refuses what is wrong before a row is read
    coordinates = StandardisedCoordinates.of(source)
    likelihood, log_units = FirthLikelihood(coordinates.view, offset), coordinates.log_units
    theta = np.zeros(source.n_features) if start is None else np.array(start, dtype=np.float64)
    held = None
    if fixed is not None:
        theta[fixed[0]] = fixed[1]
        held = coordinates.normal(fixed[0])[None, :]
    point = likelihood.first(coordinates.inner(theta))
    found = maximise(likelihood, point, held, tol=tol, max_iter=max_iter, callback=callback, log_units=log_units)
    factor = coordinates.transposed(found.point.factor.T)
    with np.errstate(over="ignore"):
        information = factor @ factor.T
    return FirthFit(
        coordinates.outer(found.point.theta),
        information,
        found.point.log_likelihood,
        found.point.penalised + log_units,
        found.status,
        found.iterations,
        found.trace,
        coordinates.transposed(found.score),
    )
