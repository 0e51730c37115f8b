"""Exact leave-one-out errors of ridge regression, for a whole grid of penalties, in one pass.

    e₋ᵢ = eᵢ / (1 − uᵢhᵢ),   hᵢ = 1/n + zᵢᵀ(S + αI)⁻¹zᵢ = 1/n + Σ_j (zᵢᵀv_j)² / (λ_j + α)

uᵢ is the weight that is left out. Weights sᵢ that are whole numbers count repetitions, and one of them is left out at a time:
a row of weight 2 is two rows, each left out in turn (uᵢ = 1). Rows with other weights are left out as a whole (uᵢ = sᵢ).

As many directions as rows: every row is fitted exactly at α = 0, and with gᵢ = Σ_j zᵢᵀv_j c_j/(λ_j(λ_j + α)) and
lᵢ = Σ_j (zᵢᵀv_j)²/(λ_j(λ_j + α)) it is eᵢ = αgᵢ and 1 − uᵢhᵢ = (1 − uᵢ/sᵢ) + αuᵢlᵢ, so that no digit is lost to a difference.

**Complexity** O(nd² + nd·(number of penalties)). **Passes over the data** one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.data.affine import Standardised
from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.solvers.least_squares.normal_equations import Spectrum
from separatrix.statistics.gram import NormalEquations

# A row of which less than this is left decides its own fit: its error has no bound.
_DECIDES = 1e-12
# Weights this close to whole numbers, relative to them, are whole: factors of classes are multiplied in and divided out.
_WHOLE = 1e-9


@dataclass(frozen=True)
class Weighing:
    """What of the weight of a row is left out.

    Parameters
    ----------
    factors : ndarray of shape (K,), optional
        Where targets are codes of classes: what the weights of the rows of each class were multiplied by.
    whole_rows : bool
        Whether rows are left out with all of their weight, whatever it counts.
    """

    factors: Float | None = None
    whole_rows: bool = False

    def split(self, block: Block) -> tuple[Float, Float]:
        """(n,) weights, and what one repetition of each row weighs."""
        weights = block.row_weights
        if self.factors is None:
            return weights, np.ones(block.n)
        assert block.y is not None
        codes = block.y.argmax(axis=1) if block.y.shape[1] > 1 else (block.y[:, 0] > 0).astype(np.intp)
        return weights, self.factors[codes]

    def repetitions(self, source: Source) -> bool:
        """Whether the weights count repetitions."""
        weighted = next(source.blocks()).weights is not None
        return not self.whole_rows and (not weighted or all(source.each(self._whole)))

    def gathered(self, source: Source) -> tuple[Float, Float, Float, NDArray[np.bool_]]:
        """Weights, their repetitions' weights and targets of the rows of positive weight, and which of all rows these are."""
        parts = [(*self.split(block.counted()), block.counted().y, block.row_weights > 0) for block in source.blocks()]
        weights, units, targets, kept = (np.concatenate(column) for column in zip(*parts, strict=True))
        return weights, units, targets, kept

    def _whole(self, block: Block) -> bool:
        """Whether the weights of a block are numbers of repetitions."""
        weights, units = self.split(block.counted())
        times = weights / units
        return bool((np.abs(times - np.rint(times)) <= _WHOLE * times).all())


@dataclass(frozen=True)
class _Formula:
    """The formula at the head of the file, for a block of centred rows."""

    equations: NormalEquations
    alphas: Float
    vectors: Float
    inverses: Float
    slopes: Float
    share: float
    interpolates: bool

    def errors(self, block: Block, weights: Float, out: Float) -> Float:
        """(n, m, A) errors of the rows by models without the weights `out` of each."""
        assert block.y is not None
        scores = block.matvec(self.vectors)
        leverage = np.square(scores) @ self.inverses
        fitted = (scores @ self.slopes).reshape(block.n, block.y.shape[1], len(self.alphas))
        out = out[:, None]
        if self.interpolates:
            rest = 1.0 - out / weights[:, None]  # 0 where the row goes as a whole: α is then a factor of both
            factor = np.where(rest > 0, self.alphas, 1.0)
            left, errors = rest + factor * out * leverage, factor[:, None, :] * fitted
            lost = left <= 0.0
        else:
            left, errors = 1.0 - out * (leverage + self.share), (block.y - self.equations.y_mean)[:, :, None] - fitted
            lost = left <= _DECIDES
        errors = errors / np.where(lost, 1.0, left)[:, None, :]
        return np.where(lost[:, None, :], np.inf, errors) if lost.any() else errors


class LeaveOneOut:
    """The errors of the rows of a source, each predicted without itself.

    Parameters
    ----------
    source : Source
        With real targets.
    equations, spectrum
        Of all its rows.
    alphas : ndarray of shape (A,)
    fit_intercept : bool
    weighing : Weighing, optional

    Attributes
    ----------
    repetitions : bool
        Whether the weights count repetitions.
    """

    def __init__(
        self,
        source: Source,
        equations: NormalEquations,
        spectrum: Spectrum,
        alphas: Float,
        fit_intercept: bool,
        weighing: Weighing | None = None,
    ) -> None:
        self._weighing = Weighing() if weighing is None else weighing
        interpolates = equations.scatter.thin and len(spectrum.values) >= _rows(source) - float(fit_intercept)
        inverses = np.stack([spectrum.inverse(float(alpha)) for alpha in alphas], axis=1)
        inverses = inverses / spectrum.values[:, None] if interpolates else inverses
        slopes = (spectrum.cross[:, :, None] * inverses[:, None, :]).reshape(
            len(inverses), spectrum.cross.shape[1] * len(alphas)
        )
        share = (1.0 if fit_intercept else 0.0) / equations.total
        self._formula = _Formula(equations, alphas, spectrum.vectors, inverses, slopes, share, interpolates)
        self._centred = Standardised(source, centre=equations.x_mean)
        self.repetitions = self._weighing.repetitions(source)

    def losses(self) -> Float:
        """(A, m) mean squared errors; of weighted rows that are left out as a whole, sums over their number."""
        repetitions, formula, weighing = self.repetitions, self._formula, self._weighing

        def of_block(block: Block) -> tuple[Float, float]:
            block = block.counted()
            weights, units = weighing.split(block)
            errors = formula.errors(block, weights, units if repetitions else weights)
            with np.errstate(over="ignore"):
                sums = np.tensordot(weights, np.square(errors), axes=1).T
            return sums, float((weights / units).sum()) if repetitions else float(block.n)

        sums, size = self._centred.reduce(of_block, lambda a, b: (a[0] + b[0], a[1] + b[1]))
        return sums / size

    def rows(self) -> RowsLeftOut:
        """The same row by row, in memory."""
        repetitions, formula, weighing = self.repetitions, self._formula, self._weighing

        def of_block(block: Block) -> tuple[Float, Float, Float, NDArray[np.bool_]]:
            kept = block.row_weights > 0
            block = block.counted()
            weights, units = weighing.split(block)
            errors = formula.errors(block, weights, units if repetitions else weights)
            assert block.y is not None
            return errors, block.y, np.stack([weights, weights / units]), kept

        parts = self._centred.map(of_block)
        errors, targets, kept = (np.concatenate([part[i] for part in parts]) for i in (0, 1, 3))
        weights, repeated = np.concatenate([part[2] for part in parts], axis=1)
        return RowsLeftOut(errors, targets, weights, repeated, kept)


@dataclass(frozen=True)
class RowsLeftOut:
    """Of the rows of positive weight, which were `kept` of all: (n, m, A) errors, (n, m) targets, (n,) weights with the
    factors of the classes and without.
    """

    errors: Float
    targets: Float
    weights: Float
    repeated: Float
    kept: NDArray[np.bool_]

    def squares(self) -> Float:
        """(all rows, m, A) squared errors times weights; 0 for a row without weight."""
        result = np.zeros((len(self.kept), *self.errors.shape[1:]))
        result[self.kept] = self.weights[:, None, None] * np.square(self.errors)
        return result

    def predictions(self) -> Float:
        """(n, m, A) of each row by the model without it."""
        return self.targets[:, :, None] - self.errors

    def all_predictions(self) -> Float:
        """The same of all rows; NaN for a row without weight."""
        result = np.full((len(self.kept), *self.errors.shape[1:]), np.nan)
        result[self.kept] = self.predictions()
        return result


def ridge_loo(
    source: Source, equations: NormalEquations, spectrum: Spectrum, alphas: Float, fit_intercept: bool
) -> Float:
    """(penalties, targets) mean squared errors of the rows, each predicted without itself; weights are repetitions."""
    left_out = LeaveOneOut(source, equations, spectrum, alphas, fit_intercept)
    if not left_out.repetitions:
        for block in source.blocks():
            block.repetitions()  # the sentence
    return left_out.losses()


def _rows(source: Source) -> int:
    """Number of rows of positive weight."""
    return sum(source.each(lambda block: block.counted().n))
