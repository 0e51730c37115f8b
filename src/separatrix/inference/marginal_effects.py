"""Marginal effects: how much a column moves the probabilities, on average or at the mean row.

    e_ji = ∂p_j/∂x_i = p_j(β_ji − β̄_i),   β̄ = Σ_k p_k β_k                averaged over the rows, or at x̄
    e_ji = p_j(x with x_i = 1) − p_j(x with x_i = 0)                      for columns of zeros and ones, where asked
    ∂e_ji/∂B_kl = p_j x_l [(δ_jk − p_k)(β_ji − β̄_i) − p_k(β_ki − β̄_i)] + p_j δ_il(δ_jk − p_k)
    Var e ≈ J V Jᵀ   with the averaged Jacobian J                         (delta method; the rows count as given)

Reference: Greene (2018), Econometric Analysis, section 17.3.2; Agresti (2013), Categorical Data Analysis, section 5.1.

**Complexity** O(n K m d p). **Passes over the data** one; two at the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri

from separatrix.data import Source
from separatrix.data.block import Block, Float
from separatrix.data.dense import DenseBlock
from separatrix.data.labels import shown
from separatrix.inference.coefficient_table import LIMITS, CoefficientTable, SummaryColumn, probability
from separatrix.inference.delta import design, probabilities
from separatrix.inference.estimates import Inference

_COLUMNS = (
    SummaryColumn("effect", "Effect"),
    SummaryColumn("standard_error", "Std. error"),
    SummaryColumn("z", "z", "{:.3f}".format),
    SummaryColumn("p_value", "P(>|z|)", probability, "log_p_value"),
    *LIMITS,
)
_PIECE = 1 << 20


@dataclass(frozen=True)
class EffectRow:
    """The effect of one column on the probability of one class."""

    score: Any
    name: str
    effect: float
    standard_error: float
    lower: float
    upper: float

    @property
    def z(self) -> float:
        """The effect in standard errors."""
        return float(np.divide(self.effect, self.standard_error))

    @property
    def log_p_value(self) -> float:
        """log p, finite where p itself is too small for a float."""
        return float(np.log(2.0) + log_ndtr(-abs(self.z)))

    @property
    def p_value(self) -> float:
        """Two-sided, of the hypothesis that there is no effect."""
        return float(np.exp(self.log_p_value))


@dataclass(frozen=True, repr=False)
class MarginalEffects(CoefficientTable):
    """What `LogisticRegression.marginal_effects` returns; printed, it is a table.

    Parameters
    ----------
    rows : sequence of EffectRow
        Class by class, in the order of the columns; of two classes the second alone.
    covariance : ndarray of shape (n_effects, n_effects)
    level : float
    at : {"average", "mean"}
    discrete : tuple of str
        Columns whose effect is that of a step from 0 to 1.
    """

    rows: Sequence[EffectRow]
    covariance: Float
    level: float
    at: str
    discrete: tuple[str, ...]
    total: float

    headline: ClassVar[str] = "Marginal effects on probabilities"

    @property
    def columns(self) -> tuple[SummaryColumn, ...]:
        return _COLUMNS

    @property
    def scores(self) -> list[Any]:
        return list(dict.fromkeys(row.score for row in self.rows))

    def _title(self, score: Any) -> str:
        return f"Change of the probability of {shown(score)}"

    def _facts(self) -> list[tuple[str, str]]:
        where = "averaged over the rows" if self.at == "average" else "at the mean row"
        return [("Effects", where), ("Observations", f"{self.total:.10g}")]

    def _notes(self) -> list[str]:
        notes = [f"Standard errors by the delta method; Wald intervals at level {self.level:g}."]
        if self.discrete:
            notes.append(f"Steps from 0 to 1: {', '.join(self.discrete)}; the others are derivatives.")
        return notes


@dataclass(frozen=True)
class _Effects:
    """Sums over rows: of weights, effects (K, d) and their derivatives (K, d, m, p)."""

    total: float
    effects: Float
    jacobian: Float

    def __add__(self, other: _Effects) -> _Effects:
        return _Effects(self.total + other.total, self.effects + other.effects, self.jacobian + other.jacobian)


def marginal_effects(inference: Inference, source: Source, at: str, discrete: bool, level: float) -> MarginalEffects:
    """The table of effects over the rows of a source (whose weights count), from the estimates of a fit."""
    d = inference.coef.shape[1]
    steps: Any = np.zeros(d, dtype=bool)
    if discrete or at == "mean":
        total, sums, steps = source.reduce(_describe, _merged)
        steps = steps if discrete else np.zeros(d, dtype=bool)
    if at == "mean":
        sums_at_mean = _effects(inference, DenseBlock((sums / total)[None, :]), steps)
        found = sums_at_mean
    else:
        found = source.reduce(lambda block: _effects(inference, block, steps), _Effects.__add__)
        total = found.total
    source.check_finite(found.effects)
    effects, jacobian = found.effects / found.total, found.jacobian / found.total
    labels, first = [inference.baseline, *inference.score_labels], int(len(inference.score_labels) == 1)
    effects, jacobian = effects[first:], jacobian[first:].reshape(effects[first:].size, -1)
    covariance = jacobian @ inference.covariance @ jacobian.T
    errors = np.sqrt(np.maximum(covariance.diagonal(), 0.0)).reshape(effects.shape)
    names, z = inference.names[:d], float(ndtri(0.5 + 0.5 * level))
    rows = [
        EffectRow(label, name, float(e), float(se), float(e - z * se), float(e + z * se))
        for label, own, own_errors in zip(labels[first:], effects, errors, strict=True)
        for name, e, se in zip(names, own, own_errors, strict=True)
    ]
    stepped = tuple(name for name, step in zip(names, steps, strict=True) if step)
    return MarginalEffects(rows, covariance, level, at, stepped, total)


def _describe(block: Block) -> tuple[float, Float, Any]:
    """Weight, sums of the columns, and which columns hold zeros and ones alone."""
    rows = block.counted()
    weights = np.ones(rows.n) if rows.weights is None else rows.weights
    values = rows.dense()
    return float(weights.sum()), weights @ values, ((values == 0) | (values == 1)).all(axis=0)


def _merged(one: tuple[float, Float, Any], other: tuple[float, Float, Any]) -> tuple[float, Float, Any]:
    return one[0] + other[0], one[1] + other[1], one[2] & other[2]


def _effects(inference: Inference, block: Block, steps: Any) -> _Effects:
    m, p = inference.estimates.shape
    d = inference.coef.shape[1]
    total: _Effects = _Effects(0.0, np.zeros((m + 1, d)), np.zeros((m + 1, d, m, p)))
    for piece in block.pieces(_PIECE):
        counted = piece.counted()
        weights = np.ones(counted.n) if counted.weights is None else counted.weights
        rows = design(inference, counted)
        found = _Effects(float(weights.sum()), *_derivatives(inference, rows, weights))
        for i in np.flatnonzero(steps):
            found.effects[:, i], found.jacobian[:, i] = _step(inference, rows, weights, int(i))
        total = total + found
    return total


def _derivatives(inference: Inference, rows: Float, weights: Float) -> tuple[Float, Float]:
    m, width = inference.estimates.shape
    d = inference.coef.shape[1]
    p = probabilities(inference, rows)
    slopes = np.vstack([np.zeros(d), inference.coef])  # β_j, the baseline's zero
    apart = slopes[None] - (p @ slopes)[:, None, :]  # (n, K, d)
    effects = np.einsum("n,nj,njd->jd", weights, p, apart)
    jacobian = np.empty((m + 1, d, m, width))
    for j in range(m + 1):
        for k in range(m):
            gain = float(j == k + 1) - p[:, k + 1]  # δ_jk − p_k
            inner = (weights * p[:, j])[:, None] * (gain[:, None] * apart[:, j] - p[:, k + 1, None] * apart[:, k + 1])
            jacobian[j, :, k] = inner.T @ rows
            jacobian[j, np.arange(d), k, np.arange(d)] += float(weights @ (p[:, j] * gain))
    return effects, jacobian


def _step(inference: Inference, rows: Float, weights: Float, i: int) -> tuple[Float, Float]:
    """Effect (K,) of a step of column i from 0 to 1, and its derivatives (K, m, p)."""
    effect, jacobian = np.zeros(0), np.zeros(0)
    for value, sign in ((1.0, 1.0), (0.0, -1.0)):
        moved = rows.copy()
        moved[:, i] = value
        p = probabilities(inference, moved)
        own = np.eye(p.shape[1])[:, 1:]
        slopes = p[:, :, None] * (own[None] - p[:, None, 1:])
        here, bend = sign * (weights @ p), sign * np.einsum("n,njk,nl->jkl", weights, slopes, moved)
        effect, jacobian = (here, bend) if value else (effect + here, jacobian + bend)
    return effect, jacobian
