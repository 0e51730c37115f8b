"""Whether ordered classes can be told apart by thresholds of one score, so that their likelihood has no maximum.

A direction (w, θ) along which no loss rises and some fall: every row on its side of the threshold above it and of the one
below. That is the separation of two classes whose rows are (−x, e_k), without a constant.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from separatrix.data import Source
from separatrix.data.block import Block, Codes, Float
from separatrix.result import Fit, Status

# Entries of the rows that are written out to ask.
_MOST = 20_000_000


def ordered_separation(fit: Fit, source: Source, ranks: Codes) -> Fit:
    """The record of a fit whose scores are large, with the verdict on its data."""
    from separatrix.geometry.recession import ProgrammeFailed
    from separatrix.geometry.separation import separability

    last = len(ranks) - 1
    if source.n_rows is None or 2 * source.n_rows * (source.n_features + last) > _MOST:
        return replace(fit, detail="Scores are large; whether thresholds can separate the classes was not asked.")

    def of_block(block: Block) -> tuple[Float, Codes]:
        rows = block.counted()
        rank = ranks[rows.codes]
        values = rows.dense()
        parts, sides = [], []
        for side, at in ((1, rank), (0, rank - 1)):
            inside = (at >= 0) & (at < last)
            parts.append(np.hstack([-values[inside], np.eye(last)[at[inside]]]))
            sides.append(np.full(int(inside.sum()), side))
        return np.vstack(parts), np.concatenate(sides)

    pieces = source.map(of_block)
    X, y = np.vstack([rows for rows, _ in pieces]), np.concatenate([sides for _, sides in pieces])
    try:
        verdict = separability(X, y, fit_intercept=False).verdict
    except ProgrammeFailed as reason:
        return replace(fit, detail=f"Whether thresholds can separate the classes is not known. {reason}")
    if verdict == "overlap":
        return fit
    detail = (
        "Thresholds of one score separate the ordered classes, completely or in part, so the maximum-likelihood estimate does "
        "not exist: some coefficients or thresholds run away to infinity. Add a penalty (a finite C)."
    )
    unbounded = None if fit.certificate is None else replace(fit.certificate, method="no maximum exists")
    return Fit(Status.SEPARATED, fit.passes, fit.seconds, fit.iterations, detail, unbounded, fit.trace)
