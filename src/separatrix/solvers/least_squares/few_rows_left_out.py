"""Exact leave-one-out errors of ridge regression with fewer rows than columns, from one decomposition of their products.

    X̃X̃ᵀ = U Λ Uᵀ,    I − H = Σ_j α/(λ_j + α) u_j u_jᵀ        over the directions that are not √s, which the intercept takes
    e₋ᵢ = eᵢ/((1 − tᵢ/sᵢ) + tᵢ/sᵢ (I − H)ᵢᵢ),    e = (I − H)ỹ / √s        tᵢ the weight that is left out: see leave_one_out.py

X̃, ỹ are the centred rows times the roots of their weights. Every term of the diagonal is positive, so that no digit is lost to
a difference however well the rows are fitted; where the decomposition itself has too few, the caller is told.

The same products then solve for the chosen penalty: no column is multiplied twice. The rows themselves are read once for the
products, and twice for each step of that solution.

**Complexity** O(n²d) (sparse rows: of the pairs of entries in a column) + O(n³) + O(n²m·(number of penalties)).
**Passes over the data** one.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.data.sparse import SparseBlock
from separatrix.solvers.least_squares.leave_one_out import RowsLeftOut, Weighing
from separatrix.solvers.least_squares.normal_equations import ONE_SPECTRUM
from separatrix.solvers.least_squares.weighted_rows import FewSparseRows, GramRows, PreciseRows

# Bytes that the products of the rows may take.
_HELD = 1 << 30


def are_few(source: Source) -> bool:
    """Whether rows are in memory, and fewer than the columns."""
    n = source.n_rows
    return source.place == "memory" and n is not None and 2 <= n < source.n_features and 8 * n * n <= _HELD


def few_rows(source: Source, fit_intercept: bool) -> GramRows | None:
    """The rows of a valued source with their products, where they are few; None elsewhere."""
    if not are_few(source):
        return None
    if source.array() is not None:
        rows: GramRows = PreciseRows(source, fit_intercept)
    elif source.entries is not None and all(isinstance(block, SparseBlock) for block in source.blocks()):
        rows = FewSparseRows(source, fit_intercept)
    else:
        return None
    rows.check_sums()
    rows.check_squares()
    return rows


class FewRowsLeftOut:
    """The errors of few rows, each predicted without itself: see `LeaveOneOut`, which has the same for any number of rows.

    Parameters
    ----------
    rows : GramRows
        Of a valued source.
    alphas : ndarray of shape (A,)
        Positive.
    weighing : Weighing
        What is left out of the weight of a row.

    Attributes
    ----------
    resolved : bool
        Whether the decomposition has the digits for all penalties.
    repetitions : bool
        Whether the weights count repetitions.
    """

    def __init__(self, rows: GramRows, alphas: Float, weighing: Weighing) -> None:
        self._rows, self._alphas = rows, alphas
        self._weights, self._units, self._targets, self._kept = weighing.gathered(rows.source)
        self.repetitions = weighing.repetitions(rows.source)
        self._values, self._vectors = _decomposed(rows.first_gram, rows.null_direction())
        least, largest = (float(self._values[at]) if len(self._values) else 0.0 for at in (0, -1))
        lowest = float(alphas.min())
        self.resolved = largest + rows.before_centring + lowest <= ONE_SPECTRUM * (max(least, 0.0) + lowest)

    @cached_property
    def _errors(self) -> Float:
        """(n, m, A) errors of the rows by models without them."""
        values = np.maximum(self._values, 0.0)[:, None]
        shares = self._alphas / (values + self._alphas)
        remainder = np.square(self._vectors) @ shares
        along = self._vectors.T @ self._rows.targets
        n, m = self._rows.targets.shape
        steps = (along[:, :, None] * shares[:, None, :]).reshape(len(values), m * len(self._alphas))
        errors = (self._vectors @ steps).reshape(n, m, len(self._alphas)) / np.sqrt(self._weights)[:, None, None]
        out = (self._units if self.repetitions else self._weights)[:, None] / self._weights[:, None]
        left = (1.0 - out) + out * remainder
        lost = left <= 0.0
        errors /= np.where(lost, 1.0, left)[:, None, :]
        return np.where(lost[:, None, :], np.inf, errors) if lost.any() else errors

    def losses(self) -> Float:
        """(A, m), as `LeaveOneOut.losses`."""
        size = float((self._weights / self._units).sum()) if self.repetitions else float(len(self._weights))
        with np.errstate(over="ignore"):
            return np.asarray(np.tensordot(self._weights, np.square(self._errors), axes=1).T / size)

    def rows(self) -> RowsLeftOut:
        """The same row by row."""
        return RowsLeftOut(self._errors, self._targets, self._weights, self._weights / self._units, self._kept)


def _decomposed(gram: Float, null: Float | None) -> tuple[Float, Float]:
    """Eigenvalues, ascending, and eigenvectors; without the direction `null`, of unit length, whose eigenvalue is zero.

    A reflection takes that direction to the first axis, which is then left out: among other small eigenvalues its vector would
    be mixed with theirs.
    """
    if null is None:
        return np.linalg.eigh(gram)
    mirror = null.copy()
    mirror[0] += np.copysign(1.0, mirror[0])
    mirror /= np.linalg.norm(mirror)
    along = gram @ mirror
    along -= float(mirror @ along) * mirror
    turned = gram - np.outer(2.0 * mirror, along) - np.outer(2.0 * along, mirror)
    values, vectors = np.linalg.eigh(turned[1:, 1:])
    full = np.concatenate([np.zeros((1, len(values))), vectors])
    full -= np.outer(2.0 * mirror, mirror[1:] @ vectors)
    return values, full
