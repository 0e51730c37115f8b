"""A separating direction of all the rows of a source, found from a few of them.

    A = rows (e_{y_i} − e_k) ⊗ [(x_i − c)/s, 1],  k ≠ y_i

`recession` settles a matrix A. Rows are brought to it a working set at a time: a set that overlaps and spans the others
settles them all; a direction that is wrong about other rows, or has rows on its boundary that the working set does not
account for, brings in the worst of them. Columns are scaled to a half range of 1 and, unless sparse, centred.

**Complexity** that of `recession` on a working set of about 10p rows, and O(nnz·p) per look at the others.
**Passes over the data** two, and one each time the working set grows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import lsmr

from separatrix.data.block import Block, Codes, Float
from separatrix.data.source import Source
from separatrix.geometry.programmes import NEVER, Deadline
from separatrix.geometry.recession import SMALL, recession, solve_programme
from separatrix.settings import one_blas_thread

# Unknowns up to which their square is a small matrix.
_FEW = 1000
# A look at rows may need a number per row, class and direction: a few thousand rows at a time.
_LOOK_ROWS = 4096
# Least margin of the working set, less what is not worth another round.
_NEARLY_ONE = 1.0 - 1e-7


def class_margins(scores: Float, codes: Codes) -> Float:
    """f_y − f_k of scores (n, K, …), infinite at the row's own class."""
    rows = np.arange(len(codes))
    margins: Float = scores[rows, codes][:, None] - scores
    margins[rows, codes] = np.inf
    return margins


@dataclass(frozen=True)
class Working:
    """Some rows as [(x − c)/s, 1], with their codes and their places in the source."""

    rows: Any
    codes: Codes
    index: Codes

    @staticmethod
    def join(parts: list[Working]) -> Working:
        """The rows of all parts."""
        rows = [part.rows for part in parts]
        return Working(
            sp.vstack(rows, format="csr") if any(map(sp.issparse, rows)) else np.vstack(rows),
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.index for part in parts]),
        )

    def __getitem__(self, chosen: NDArray[Any]) -> Working:
        return Working(self.rows[chosen], self.codes[chosen], self.index[chosen])


class Design:
    """The rows of a source with every column scaled; constant columns become zero next to an intercept."""

    def __init__(self, source: Source, n_classes: int, fit_intercept: bool) -> None:
        self.source, self.n_classes, self.fit_intercept = source, n_classes, fit_intercept
        self.vectors = 1 if n_classes == 2 else n_classes
        self.width = source.n_features + fit_intercept
        low, high, self.n, sparse = source.reduce(_ranges, _merge_ranges)
        source.check_finite(low, high)
        half, largest = 0.5 * high - 0.5 * low, np.maximum(-low, high)
        centred = fit_intercept and not sparse
        self.centre = low + half if centred else np.zeros_like(low)
        # Of sparse columns those that hold a zero, which are nearly all, get the scale that dense ones have.
        scale = half if centred else np.maximum(half, 0.5 * largest) if fit_intercept else largest
        self.scale = np.where((half if fit_intercept else largest) > 0, scale, np.inf)

    def rows(self, block: Block) -> Working:
        """The rows of a block that count, scaled."""
        kept = np.arange(block.n) if block.weights is None else np.flatnonzero(block.weights)
        index, block = block.start + kept, block.counted()
        entries, d = block.stored_entries(), block.shape[1]
        if entries.implicit_zeros:
            values = entries.values / self.scale[entries.columns]
            sparse = sp.csr_array((values, (entries.rows, entries.columns)), shape=block.shape)
            if self.fit_intercept:
                sparse = sp.hstack([sparse, sp.csr_array(np.ones((block.n, 1)))], format="csr")
            return Working(sparse, block.codes, index)
        dense = np.ones((block.n, self.width))
        dense[:, :d] = (block.dense() - self.centre) / self.scale
        return Working(dense, block.codes, index)

    def margins(self, work: Working, theta: Float) -> Float:
        """a_ik·θ as (n, K, …), for θ of shape (m, width, …)."""
        scores = np.stack([work.rows @ vector for vector in theta], axis=1)
        if self.vectors == 1:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        return class_margins(scores, work.codes)

    def differences(self, work: Working) -> Any:
        """The matrix A of some rows."""
        if self.vectors == 1:
            return sp.diags_array(2.0 * work.codes - 1.0) @ work.rows
        n, wrong = len(work.codes), self.n_classes - 1
        others = np.array([np.delete(np.arange(self.n_classes), k) for k in range(self.n_classes)])[work.codes].ravel()
        rows, each, ones = np.repeat(np.arange(n), wrong), np.arange(n * wrong), np.ones(n * wrong)
        own, other = (
            sp.csr_array((ones, (each, codes * n + rows)), shape=(n * wrong, self.n_classes * n))
            for codes in (np.repeat(work.codes, wrong), others)
        )
        return (own - other) @ sp.kron(sp.eye_array(self.n_classes), sp.csr_array(work.rows), format="csr")

    def gather(self, choose: Callable[[Working], Working]) -> Working:
        """The rows that `choose` takes."""
        return Working.join(list(self.source.map(lambda block: choose(self.rows(block)), rows=_LOOK_ROWS)))

    def count_moved(self, theta: Float) -> int:
        """How many rows θ sets apart from some wrong class."""
        tolerance = 10 * SMALL * float(np.abs(theta).sum())

        def look(block: Block) -> int:
            rows = self.rows(block)
            margins = self.margins(rows, theta)
            margins[np.arange(len(rows.codes)), rows.codes] = 0.0
            return int((margins > tolerance).any(axis=1).sum())

        return sum(self.source.map(look, rows=_LOOK_ROWS))

    def unscaled(self, theta: Float) -> tuple[Float, Float]:
        """Coefficients and intercepts for the rows as they came; what is zero but for rounding is zero."""
        d = self.source.n_features
        theta = theta - theta.mean(axis=0) if self.vectors > 1 else theta
        theta = np.where(np.abs(theta) > SMALL * np.abs(theta).max(), theta, 0.0)
        coef, constant = theta[:, :d] / self.scale, theta[:, d] if self.fit_intercept else np.zeros(len(theta))
        shift = coef * self.centre
        intercept = constant - shift.sum(axis=1)
        intercept[np.abs(intercept) <= SMALL * (np.abs(constant) + np.abs(shift).sum(axis=1))] = 0.0
        return coef, intercept


def _ranges(block: Block) -> tuple[Float, Float, int, bool]:
    """Least and greatest value of every column, number of rows, and whether zeros are left out of the storage."""
    block = block.counted()
    d = block.shape[1]
    entries = block.stored_entries()
    if not entries.implicit_zeros:
        rows = block.dense()
        return rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf), block.n, False
    full = np.bincount(entries.columns, minlength=d) == block.n
    low, high = np.where(full, np.inf, 0.0), np.where(full, -np.inf, 0.0)
    np.minimum.at(low, entries.columns, entries.values)
    np.maximum.at(high, entries.columns, entries.values)
    return low, high, block.n, True


def _merge_ranges(one: Any, two: Any) -> Any:
    return np.minimum(one[0], two[0]), np.maximum(one[1], two[1]), one[2] + two[2], one[3] or two[3]


def find_direction(design: Design, deadline: Deadline = NEVER) -> tuple[Float | None, bool]:
    """A direction (m, width) that separates, or None, and whether it gets every row right."""
    few = design.vectors * design.width <= _FEW
    return _by_working_set(design, deadline) if few else _all_at_once(design, deadline)


def _by_working_set(design: Design, deadline: Deadline) -> tuple[Float | None, bool]:
    shape = (design.vectors, design.width)
    free = np.zeros(shape, dtype=bool)
    free[:, -1] = design.fit_intercept
    # Adding one vector to all K of them changes nothing.
    gauge = np.tile(np.eye(design.width), design.vectors) if design.vectors > 1 else None
    share = (500 + 10 * design.width) / design.n
    work = design.gather(lambda rows: rows if share >= 1 else _spread(rows, share, design.n_classes))
    while True:
        deadline.check()
        A = design.differences(work)
        with one_blas_thread():  # the matrices are small, and threads would wait for each other
            flat, null = recession(A.toarray() if sp.issparse(A) else A, free.ravel(), gauge, deadline)
        if null.shape[1] == 0:  # the rows that cannot be moved span everything
            return None, False
        theta = flat.reshape(shape)
        least, more = _survey(design, work, theta, null.reshape(*shape, -1))
        if len(more.codes) == 0:
            break
        work = Working.join([work, more])
    if not theta.any():
        return None, False
    complete = least > 0.1 * SMALL * float(np.abs(theta).sum())
    return theta / least if complete else theta, complete


def _spread(rows: Working, share: float, n_classes: int) -> Working:
    """A share of the rows of each class, evenly spaced, and at least one."""
    places = [np.flatnonzero(rows.codes == k) for k in range(n_classes)]
    kept = [at[np.linspace(0, len(at) - 1, int(np.ceil(share * len(at)))).astype(np.intp)] for at in places]
    return rows[np.sort(np.concatenate(kept))]


def _survey(design: Design, work: Working, theta: Float, null: Float) -> tuple[float, Working]:
    """Least margin of all rows, and the worst of those outside the working set that it does not account for."""
    tolerance, limit = 0.1 * SMALL * float(np.abs(theta).sum()), len(work.codes)
    taken = np.sort(work.index)

    def look(block: Block) -> tuple[float, Float, Working]:
        rows = design.rows(block)
        margins = design.margins(rows, theta)
        worst = margins.min(axis=1)
        touching = np.abs(margins) <= tolerance
        # Nearer than the working set's nearest: wrong, or it would turn the direction of maximum margin.
        keep: NDArray[np.bool_] = np.any((margins < _NEARLY_ONE) & ~touching, axis=1)
        on = np.flatnonzero(touching.any(axis=1))
        # A row on the boundary stays there when the working set's rows on the boundary span it.
        seen = np.abs(design.margins(rows[on], null)).max(axis=2) > SMALL
        keep[on] |= (seen & touching[on]).any(axis=1)
        kept = np.flatnonzero(keep & ~np.isin(rows.index, taken))
        kept = kept[np.argsort(worst[kept], kind="stable")[:limit]]
        return float(worst.min(initial=np.inf)), worst[kept], rows[kept]

    least, worsts, parts = zip(*design.source.map(look, rows=_LOOK_ROWS), strict=True)
    order = np.argsort(np.concatenate(worsts), kind="stable")[:limit]
    return min(least), Working.join(list(parts))[order]


def _all_at_once(design: Design, deadline: Deadline) -> tuple[Float | None, bool]:
    """The same for many unknowns: least squares, and where its rule is not right about every row, the programme."""
    work = design.gather(lambda rows: rows)
    # Least squares fits any labels when the rows are linearly independent, and often when they are not.
    targets = np.eye(design.n_classes)[work.codes][:, -design.vectors :] - 1.0 / design.n_classes
    theta = np.stack([lsmr(work.rows, target, atol=1e-8, btol=1e-8, maxiter=300)[0] for target in targets.T])
    margins, zero = _weighed(design, work, theta)
    if (margins > zero).all():
        return theta / margins.min(), True
    moved, flat = solve_programme(design.differences(work), deadline)
    theta = flat.reshape(design.vectors, design.width)
    # What the programme claims is checked: a tiny overlap lies within its tolerance.
    margins, zero = _weighed(design, work, theta)
    if not moved.any() or (margins < -10 * zero).any():
        return None, False
    return theta / margins[margins > 10 * zero].min(), bool(moved.all())


def _weighed(design: Design, work: Working, theta: Float) -> tuple[Float, Float]:
    """Margins, and what counts as zero among them."""
    margins = design.margins(work, theta)
    size = abs(work.rows) @ np.abs(theta).sum(axis=0)
    return margins, np.broadcast_to(SMALL * size[:, None], margins.shape)
