"""Rows in the order of their visits, with shrinking, for dual coordinate ascent on the hinge and the squared hinge.

    Gᵢ = ỹᵢ(wᵀxᵢ + b) − 1 + Dᵢαᵢ,    αᵢ ← min(max(αᵢ − Gᵢ/Qᵢ, 0), Uᵢ)                  (kernels/support_vectors/dual_hinge.py)

Reference: Hsieh et al. (2008), ICML, algorithm 3.

**Complexity** O(nnz) per sweep. **Passes over the data** one per sweep. Sequential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.dual.centred_rows import stored_parts

# The share of the rows that is worth a copy; the entries that may be visited before Ctrl-C is looked at.
_WORTH_GATHERING, _UNINTERRUPTED = 0.4, 5e7
# Entries that are swept while a point is proven by calls that have nothing to read.
_SMALL = 200_000


@dataclass(frozen=True)
class Until:
    """What ends a run of sweeps."""

    most: int
    """Sweeps."""
    value: float
    """Of the dual at the beginning."""
    share: float
    """Of that value: a sweep that adds no more is the last,"""
    begun: int
    """unless it is before this one."""


@dataclass(frozen=True)
class Swept:
    """What a run of sweeps did."""

    count: int
    rise: float
    """Of the dual, in the last of them,"""
    total: float
    """and in all."""


@dataclass
class ActiveRows:
    """Rows in the order of their visits, the inactive ones at the end.

    When most are inactive, the others are gathered, so that they are neighbours in memory.
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
        self._activate()

    def _activate(self) -> None:
        self.active, self.settled = len(self.which), False
        self._bounds[:] = np.inf, -np.inf

    @property
    def _entries(self) -> int:
        return int(self.X.nnz if sp.issparse(self.X) else self.X.size)

    @property
    def is_large(self) -> bool:
        """Whether a sweep takes longer than what is called between sweeps: to gather rows, or to prove a point."""
        return self._entries > _SMALL

    @property
    def is_looped(self) -> bool:
        """Whether sweeps go on in compiled code until the gap is small."""
        return sp.issparse(self.X) and not self.is_large

    @property
    def violation(self) -> float:
        """The largest projected gradient of the last sweep."""
        finite = self._bounds[np.isfinite(self._bounds)]
        return float(np.abs(finite).max(initial=0.0))

    def reactivated(self, scores: Float, slack: float) -> ActiveRows:
        """The rows that are not settled at these scores, or only just: those at a bound by less than `slack`."""
        gradient = self.signs * scores - 1.0 + self.ridge * self.alpha
        zero, full = (self.alpha == 0.0) & (gradient > slack), (self.alpha == self.upper) & (gradient < -slack)
        at = np.flatnonzero(~(zero | full))
        self._activate()
        return self._part(at) if self.is_large and len(at) <= _WORTH_GATHERING * len(self.which) else self

    def sweeps(
        self, w: Float, b: float, intercept: tuple[float, float, float], seed: int, until: Until
    ) -> tuple[Swept, float]:
        """Visit every active row, over and over; and b after that."""
        from separatrix.kernels.support_vectors.dual_hinge import sweeps  # numba takes a while to import

        rows, sides = stored_parts(self.X, self.centre), (self.signs, self.upper, self.ridge, self.squares)
        most = max(1, min(until.most, int(_UNINTERRUPTED / max(1, self._entries))))
        fewest = int(_WORTH_GATHERING * len(self.which)) if self.is_large else 0
        limits = (most, fewest, until.value, until.share, until.begun)
        state = (self._bounds, self.alpha, w, b)
        found = sweeps(*rows, sides, intercept, self._order, self.active, *state, np.uint64(seed), limits)
        self.active, self.settled = found[1], bool(found[5])
        return Swept(int(found[0]), float(found[2]), float(found[3])), float(found[4])

    def sweeps_to_a_gap(
        self, w: Float, b: float, intercept: tuple[float, float, float], seed: int, until: Until, tol: float
    ) -> tuple[Swept, float]:
        """Visit all rows of a small sparse matrix until the gap is about `tol` of the objective, or `until.most` times."""
        from separatrix.kernels.support_vectors.dual_hinge import sweeps_to_a_gap  # numba takes a while to import

        rows, sides = stored_parts(self.X, self.centre), (self.signs, self.upper, self.ridge, self.squares)
        most = max(1, min(until.most, int(_UNINTERRUPTED / max(1, self._entries))))
        state = (self._order, self._bounds, self.alpha, w, b, until.value)
        count, total, b, still = sweeps_to_a_gap(*rows, sides, intercept, *state, np.uint64(seed), most, tol)
        self.active, self.settled = len(self.which), bool(still)
        return Swept(int(count), 0.0, float(total)), float(b)

    def gathered(self) -> ActiveRows:
        """The active rows, in memory of their own, where that is worth it."""
        if not self.is_large or self.active >= _WORTH_GATHERING * len(self.which):
            return self
        part = self._part(np.sort(self._order[: self.active]))
        part._bounds = self._bounds.copy()
        return part

    def _part(self, at: NDArray[np.intp]) -> ActiveRows:
        held = (self.signs[at], self.upper[at], self.ridge[at], self.squares[at], self.alpha[at])
        return ActiveRows(self.X[at], self.centre, self.which[at], *held)
