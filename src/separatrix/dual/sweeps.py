"""Rows in the order of their visits, with shrinking, for dual coordinate ascent on the hinge and the squared hinge.

    Gᵢ = ỹᵢ(wᵀxᵢ + b) − 1 + Dᵢαᵢ,    αᵢ ← min(max(αᵢ − Gᵢ/Qᵢ, 0), Uᵢ)                     (kernels/dual_hinge.py)

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

# Rows that are visited one after the other, and the share of them that is worth a copy.
_RUN, _WORTH_GATHERING = 64, 0.4


@dataclass
class ActiveRows:
    """Rows in the order of their visits, the inactive ones at the end.

    Rows are visited in runs of neighbours, the runs in random order: memory is read ahead, and no order repeats. When most are
    inactive, the others are gathered, so that neighbours are neighbours in memory again.
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
        return self if len(at) > _WORTH_GATHERING * len(self.which) else self._part(at)

    def sweep(self, w: Float, b: float, reach: float, rng: np.random.Generator) -> tuple[float, float]:
        """Visit every active row; the rise of the dual, and b."""
        from separatrix.kernels.dual_hinge import sweep_dense, sweep_sparse  # numba takes a while to import

        self._shuffle(rng)
        sweep = sweep_sparse if sp.issparse(self.X) else sweep_dense
        rows, sides = stored_parts(self.X, self.centre), (self.signs, self.upper, self.ridge, self.squares)
        self.active, rise, b = sweep(*rows, sides, reach, self._order, self.active, self._bounds, self.alpha, w, b)
        self.settled = self.active == 0 or not np.isfinite(self._bounds).all()
        self._bounds[0] = self._bounds[0] if self._bounds[0] > 0 else np.inf
        self._bounds[1] = self._bounds[1] if self._bounds[1] < 0 else -np.inf
        return float(rise), float(b)

    def _shuffle(self, rng: np.random.Generator) -> None:
        active = np.sort(self._order[: self.active])
        runs = len(active) // _RUN
        body = active[: runs * _RUN].reshape(runs, _RUN)[rng.permutation(runs)]
        self._order[: self.active] = np.concatenate([active[runs * _RUN :], body.ravel()])

    def gathered(self) -> ActiveRows:
        """The active rows, in memory of their own, where that is worth it."""
        if self.active >= _WORTH_GATHERING * len(self.which):
            return self
        part = self._part(np.sort(self._order[: self.active]))
        part._bounds = self._bounds.copy()
        return part

    def _part(self, at: NDArray[np.intp]) -> ActiveRows:
        held = (self.signs[at], self.upper[at], self.ridge[at], self.squares[at], self.alpha[at])
        return ActiveRows(self.X[at], self.centre, self.which[at], *held)
