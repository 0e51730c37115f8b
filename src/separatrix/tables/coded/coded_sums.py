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
        return cls(CodedRows(arrays["numbers"].T, arrays["places"].T), coding, codes, weights)

    def loss_sums(
        self, kind: str, W: Float, b: Float, own: Any, metric: Float | None, keep: bool, width: float = 0.0
    ) -> LossSums | None:
        """The sums of a logistic loss, without curvatures; ``None`` for anything else."""
        if kind != "logistic" or len(W) != 1 or keep:
            return None
        from separatrix.kernels.coded_rows import coded_logistic_pass  # numba takes a while to import

        rows, coding, at, marks = self._rows, self._coding, self._coding.value_at, self._indicator
        centre, scale = coding.centre, coding.scale
        along = W[0] / scale
        constant = float(b[0]) - float(centre[marks] @ along[marks])
        measure = marked = _NOTHING
        least = 0.0
        if metric is not None:
            squares = metric / np.square(scale)
            measure, marked = np.ascontiguousarray(squares[at]), squares * (1.0 - 2.0 * centre)
            least = float(np.square(centre[marks]) @ squares[marks])
        sums, shares = np.zeros(len(at)), np.zeros(coding.n_features)
        loss, slope, squared, steepest, largest = coded_logistic_pass(
            rows.numbers,
            rows.places,
            coding.hole_at,
            coding.fill,
            centre[at],
            self._codes,
            self._weights,
            _NOTHING if own is None else np.ascontiguousarray(own[:, 0]),
            np.ascontiguousarray(along[at]),
            along,
            constant,
            measure,
            marked,
            least,
            sums,
            shares,
        )
        gradient = (shares - centre * slope) / scale
        gradient[at] = sums / scale[at]
        total = float(self._weights.sum()) if len(self._weights) else float(len(self._codes))
        return CodedLoss(loss, gradient[None], np.array([slope]), squared, steepest, total, largest)

    def judged(self, kinds: tuple[str, str], w: Float, b: float, own: Any, width: float) -> Any:
        """Of losses of the margin, which are none of these."""
        raise NotImplementedError("losses of the margin are summed over the features")

    def loss_curve(self, curvatures: Any, V: Float, last: Float) -> tuple[Float, Float]:
        """Products with curvatures, which are not kept."""
        raise NotImplementedError("curvatures are kept with the features")

    def loss_hessian(self, curvatures: Any, ones: bool) -> Float:
        """As above."""
        raise NotImplementedError("curvatures are kept with the features")
