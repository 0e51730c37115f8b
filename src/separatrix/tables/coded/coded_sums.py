"""The logistic loss over coded rows: products with numbers and places of categories, not with the features they stand for.

    wᵀx  = Σ_p w_p (x_p − c_p)/σ_p + Σ_{a on} w_a/σ_a − Σ_a w_a c_a/σ_a          p numbers, a indicators, c and σ of the encoder
    Σ rx = Σ r (x_p − c_p)/σ_p  of a number,   (Σ_{a on} r − c_a Σ r)/σ_a  of an indicator

Losses and sums that are not served here are left to the features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float, LossSums
from separatrix.tables.coded.coded_rows import CodedRows, RowCoding

_NOTHING = np.empty(0)
# Rows whose numbers stay in cache from their scores to the gradient.
_PIECE = 8192


def _none_first(features: Float) -> Float:
    """A number for every feature, and before them a zero for no feature."""
    return np.concatenate(([0.0], features))


@dataclass(frozen=True)
class CodedLoss:
    """Sums of the logistic loss, in the units of the features."""

    loss: float
    gradient: Float
    slopes: Float
    squares: float
    steepest: float
    total: float
    largest: float
    curvatures: None = None
    bend: None = None
    precision: float = float(np.finfo(np.float64).eps)


class CodedSums:
    """Coded rows with their classes and weights; no curvatures are kept of them."""

    margins: ClassVar[bool] = False
    curved: ClassVar[bool] = False

    def __init__(self, rows: CodedRows, coding: RowCoding, codes: Codes, weights: Float | None) -> None:
        self._rows, self._coding, self._codes = rows, coding, codes
        self._weights = _NOTHING if weights is None else weights
        self._indicator = np.ones(coding.n_features, dtype=bool)
        self._indicator[coding.value_at] = False

    @classmethod
    def of_arrays(
        cls, coding: RowCoding, arrays: Mapping[str, NDArray[Any]], codes: Codes, weights: Float | None
    ) -> CodedSums:
        """The same of numbers and places by row as they were kept."""
        return cls(coding.kept(arrays), coding, codes, weights)

    def loss_sums(
        self, kind: str, W: Float, b: Float, own: Any, metric: Float | None, keep: bool, width: float = 0.0
    ) -> LossSums | None:
        """The sums of a logistic loss, without curvatures; ``None`` for anything else."""
        if kind != "logistic" or len(W) != 1 or keep:
            return None
        coding, at, marks = self._coding, self._coding.value_at, self._indicator
        centre, scale = coding.centre, coding.scale
        along = W[0] / scale
        constant = float(b[0]) - float(centre[marks] @ along[marks])
        offset = _NOTHING if own is None else np.ascontiguousarray(own[:, 0])
        sums, shares = np.zeros(len(at)), np.zeros(1 + coding.n_features)
        scoring = offset, np.ascontiguousarray(along[at]), _none_first(along), constant
        measure = None if metric is None else self._measure(metric / np.square(scale))
        loss, slope, squared, steepest, largest = self._pass(scoring, measure, (sums, shares))
        gradient = (shares[1:] - centre * slope) / scale
        gradient[at] = sums / scale[at]
        total = float(self._weights.sum()) if len(self._weights) else float(len(self._codes))
        return CodedLoss(loss, gradient[None], np.array([slope]), squared, steepest, total, largest)

    def _pass(
        self, scoring: tuple[Any, ...], measure: tuple[Any, ...] | None, into: tuple[Float, Float]
    ) -> tuple[float, float, float, float, float]:
        """(loss, Σ sr, Σ sr², max |η|, largest size by the measure, 0 without one); `into` gains the gradient.

        The exponentials and logarithms are NumPy's, of many rows at a time: a compiled loop would make them one by one.
        """
        from separatrix.kernels.coded_rows import (
            add_coded_slopes,
            coded_scores,
            coded_sizes,
        )  # numba takes a while to import

        n, how = len(self._codes), self._how
        scratch = np.empty((3, min(_PIECE, n)))
        loss = slope = squared = steepest = largest = 0.0
        offset, *along = scoring
        for run, numbers, places in self._rows.runs(_PIECE):
            rows: tuple[Any, ...] = (numbers, places, *how)
            eta, small, logs = scratch[:, : run.stop - run.start]
            if measure is not None:
                coded_sizes(*(*rows, *measure, small))
                largest = max(largest, float(small.max()))
            coded_scores(*(*rows, offset[run], *along, eta))
            np.abs(eta, out=small)
            steepest = max(steepest, float(small.max()))
            np.exp(np.negative(small, out=small), out=small)
            np.log1p(small, out=logs)
            own = self._codes[run], self._weights[run]
            sums = add_coded_slopes(*(*rows, *own, eta, small, logs, *into))
            loss, slope, squared = loss + sums[0], slope + sums[1], squared + sums[2]
        return loss, slope, squared, steepest, largest

    def _measure(self, metric: Float) -> tuple[Any, ...]:
        """Σ_j metric_j x_j² of features before they are scaled, as `coded_sizes` takes it."""
        centre, at, marks = self._coding.centre, self._coding.value_at, self._indicator
        least = float(np.square(centre[marks]) @ metric[marks])
        return np.ascontiguousarray(metric[at]), _none_first(metric * (1.0 - 2.0 * centre)), least

    @property
    def _how(self) -> tuple[Any, ...]:
        """How numbers are marked, filled and centred."""
        return self._coding.hole_at, self._coding.fill, self._coding.centre[self._coding.value_at]

    def judged(self, kinds: tuple[str, str], w: Float, b: float, own: Any, width: float) -> Any:
        """Of losses of the margin, which are none of these."""
        raise NotImplementedError("losses of the margin are summed over the features")

    def loss_curve(self, curvatures: Any, V: Float, last: Float) -> tuple[Float, Float]:
        """Products with curvatures, which are not kept."""
        raise NotImplementedError("curvatures are kept with the features")

    def loss_hessian(self, curvatures: Any, ones: bool) -> Float:
        """As above."""
        raise NotImplementedError("curvatures are kept with the features")
