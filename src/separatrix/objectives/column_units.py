"""Units in which the columns of a problem do no harm, and how large the columns are in them, from a few of the rows."""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source

# A mean this much larger than the spread would cost the Hessian more digits than it can spare.
_FAR_FROM_ORIGIN = 1e3
_EXTREME, _FURTHEST = 1e60, 500
_SAMPLE, _MOST_COLUMNS = 1000, 20_000
# Mean squares between these have columns that are not extreme, nor those whose entries are above the third number; a variance
# above this share of them is not far from the origin.
_ORDINARY, _TINY, _NEAR = (1e-100, 1e100), 1e-50, 1e-3


def column_units(source: Source, fit_intercept: bool) -> tuple[Float, Float, Float]:
    """Centre and scale (d,) under which the columns are harmless, zeros and ones when they are so already; their sizes there.

    Sizes (p,) are the root mean squares of the columns of a few rows, doubled where these are not all; zeros for very many
    columns. With an intercept a column of ones follows.
    """
    d, rows = source.n_features, _some_rows(source)
    centre, scale = np.zeros(d), np.ones(d)
    if rows is None:
        return centre, scale, np.zeros(d + fit_intercept)
    with np.errstate(over="ignore", invalid="ignore"):  # NaN and infinity are found and named by the first evaluation
        squares = rows.column_squares() / rows.n
        if _harmless(rows, squares):
            sizes: Float = np.sqrt(squares)
        else:
            values = rows.dense()
            centre, scale = _harmless_units(values, fit_intercept)
            values = (values - centre) / scale
            largest = np.abs(values).max(axis=0)
            unit = np.where(largest > 0, largest, 1.0)  # columns of extreme size have no squares
            sizes = unit * np.sqrt(np.square(values / unit).mean(axis=0))
    sizes = np.append(sizes, 1.0) if fit_intercept else sizes
    return centre, scale, sizes if has_few_rows(source) else 2.0 * sizes


def has_few_rows(source: Source) -> bool:
    """Whether all rows are looked at."""
    return source.n_rows is not None and source.n_rows <= _SAMPLE


def _harmless_units(rows: Float, fit_intercept: bool) -> tuple[Float, Float]:
    centre, scale = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    size = np.abs(rows).max(axis=0, initial=0.0)
    extreme = (size > _EXTREME) | ((size > 0) & (size < 1.0 / _EXTREME))
    if np.isfinite(size).all() and extreme.any():
        # A scale whose square overflows would make the penalty infinite or none at all.
        power = np.round(np.log2(np.where(size > 0, size, 1.0))).clip(-_FURTHEST, _FURTHEST)
        scale = np.where(extreme, 2.0**power, 1.0)
    scaled = rows / scale
    mean, spread = scaled.mean(axis=0), scaled.std(axis=0)
    far = (np.abs(mean) > _FAR_FROM_ORIGIN * spread) & (spread > 0)
    if fit_intercept and far.any() and np.isfinite(mean).all():
        centre = np.where(far, mean * scale, 0.0)
    return centre, scale


def _harmless(rows: Block, squares: Float) -> bool:
    """Whether a look at the sums of the columns and of their squares is enough: sparse rows stay sparse."""
    if not (squares < _ORDINARY[1]).all():
        return False
    if not (squares > _ORDINARY[0]).all():  # columns of zeros, or of numbers whose squares vanish
        values = np.abs(rows.stored_entries().values)
        if values[values > 0].min(initial=1.0) < _TINY:
            return False
    mean = rows.rmatvec(np.full(rows.n, 1.0 / rows.n))
    return bool((squares - np.square(mean) >= _NEAR * squares).all())


def _some_rows(source: Source) -> Block | None:
    """A few rows; ``None`` for sparse ones with very many columns, whose means are small against their spread."""
    if source.n_features > _MOST_COLUMNS:
        return None
    few = has_few_rows(source)
    drawn = None if few else source.sample(_SAMPLE)
    for block in (source if drawn is None else drawn[0]).blocks():
        part = (block if block.n <= _SAMPLE else block.part(slice(0, _SAMPLE))).counted()
        return part.at_hand() if part.n else None
    return None
