"""Units in which the columns of a problem do no harm, and how large the columns are in them, from a few of the rows."""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import Source

# A mean this much larger than the spread would cost the Hessian more digits than it can spare.
_FAR_FROM_ORIGIN = 1e3
_EXTREME, _FURTHEST = 1e60, 500
_SAMPLE = 1000
# Mean squares between these have columns that are not extreme; a variance above this share of them is not far from the origin.
_ORDINARY, _NEAR = (1e-100, 1e100), 1e-3


def harmless_units(source: Source, fit_intercept: bool) -> tuple[Float, Float]:
    """Centre and scale under which the columns are harmless; zeros and ones when they are so already."""
    centre, scale = np.zeros(source.n_features), np.ones(source.n_features)
    rows = _some_rows(source)
    if rows is None or _harmless(rows):
        return centre, scale
    with np.errstate(over="ignore", invalid="ignore"):
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


def column_sizes(source: Source, ones: bool) -> Float:
    """(p,) root mean squares of the columns of a few rows, doubled where these are not all; zeros for very many columns.

    With `ones` a column of them follows.
    """
    rows = _some_rows(source)
    if rows is None or not len(rows):
        return np.zeros(source.n_features + ones)
    with np.errstate(over="ignore", invalid="ignore"):  # NaN and infinity are found and named by the first evaluation
        squares = _mean_squares(rows)
        if _ordinary(squares):
            sizes: Float = np.sqrt(squares)
        else:
            largest = np.abs(rows).max(axis=0)
            unit = np.where(largest > 0, largest, 1.0)  # columns of extreme size have no squares
            sizes = unit * np.sqrt(np.square(rows / unit).mean(axis=0))
    sizes = np.append(sizes, 1.0) if ones else sizes
    return sizes if source.n_rows is not None and source.n_rows <= _SAMPLE else 2.0 * sizes


def _mean_squares(rows: Float) -> Float:
    return np.einsum("ij,ij->j", rows, rows) / len(rows)


def _ordinary(squares: Float) -> bool:
    return bool(((squares > _ORDINARY[0]) & (squares < _ORDINARY[1])).all())


def _harmless(rows: Float) -> bool:
    """Whether a look at the sums of the columns and of their squares is enough."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = _mean_squares(rows)
        mean = np.full(len(rows), 1.0 / len(rows)) @ rows
        return _ordinary(squares) and bool((squares - np.square(mean) > _NEAR * squares).all())


def _some_rows(source: Source) -> Float | None:
    """A few dense rows; ``None`` for sparse ones with very many columns, whose means are small against their spread."""
    if source.n_features > 20_000:
        return None
    few = source.n_rows is not None and source.n_rows <= _SAMPLE
    drawn = None if few else source.sample(_SAMPLE)
    for block in (source if drawn is None else drawn[0]).blocks():
        part = block.part(slice(0, min(block.n, _SAMPLE))).counted()
        return part.dense() if part.n else None
    return None
