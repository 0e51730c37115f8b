"""Rows of Gaussian classes.

    x = μ_y + Fᵀz + √δ z',   z, z' ~ N(0, I),   Σ_y = FᵀF + diag δ

F is the scatter's own rows where these are fewer than the columns, else the root of its matrix, which may be singular.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from separatrix.data.block import Codes, Float
from separatrix.statistics.scatter import Scatter


def gaussian_rows(means: Any, covariances: Sequence[tuple[Scatter, Float | None]], codes: Codes, rng: Any) -> Float:
    """A row of each of the classes `codes`; covariances are given as a scatter and a diagonal to add."""
    rows = np.asarray(means, dtype=np.float64)[codes]
    for k, (scatter, floor) in enumerate(covariances):
        mine = codes == k
        if scatter.thin:
            root = scatter.rows
        else:
            values, vectors = np.linalg.eigh(scatter.matrix())
            root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        rows[mine] += rng.standard_normal((int(mine.sum()), len(root))) @ root
        if floor is not None:
            rows[mine] += rng.standard_normal((int(mine.sum()), len(floor))) * np.sqrt(floor)
    return rows
