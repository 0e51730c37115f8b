"""The loop of triton_rows.py, which compiles it: see linear_rows.cu for the formulas.

log(1 + e) = e · log(u)/(u − 1),  u = 1 + e            to the last digits for small e, after Kahan
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

tl: Any = import_module("triton.language") if find_spec("triton") else None
CONSTANTS = ("D", "LOSS", "ROWS", "COLUMNS", "WEIGHTED", "MOVED", "KEEP", "MEASURED")  # known at compile time


def linear_pass(  # type: ignore[no-untyped-def]  # Triton would look up the types in its own language
    X,
    row_stride,
    column_stride,
    codes,
    weights,
    offset,
    columns,
    scalars,
    n,
    partial,
    bends,
    D,
    LOSS,
    ROWS,
    COLUMNS,
    WEIGHTED,
    MOVED,
    KEEP,
    MEASURED,
):
    """Sums of the rows of one program, into its row of `partial`; `columns` are w, shift and, if MEASURED, the metric."""
    b, h = tl.load(scalars), tl.load(scalars + 1)
    j = tl.arange(0, COLUMNS)
    here = j < D
    w = tl.load(columns + j, mask=here, other=0.0)
    shift = tl.load(columns + D + j, mask=here, other=0.0)
    metric = tl.zeros([COLUMNS], dtype=tl.float64)
    if MEASURED:
        metric = tl.load(columns + 2 * D + j, mask=here, other=0.0)
    gradient = tl.zeros([COLUMNS], dtype=tl.float64)
    losses = tl.zeros([ROWS], dtype=tl.float64)
    slopes = tl.zeros([ROWS], dtype=tl.float64)
    squares = tl.zeros([ROWS], dtype=tl.float64)
    total = tl.zeros([ROWS], dtype=tl.float64)
    bend = tl.zeros([ROWS], dtype=tl.float64)
    steepest = tl.zeros([ROWS], dtype=tl.float64)
    largest = tl.zeros([ROWS], dtype=tl.float64)
    program = tl.program_id(0)
    for start in range(program * ROWS, n, tl.num_programs(0) * ROWS):
        i = start + tl.arange(0, ROWS).to(tl.int64)
        counts = i < n
        at = i[:, None] * row_stride + j[None, :] * column_stride
        raw = tl.load(X + at, mask=counts[:, None] & here[None, :], other=0.0).to(tl.float64)
        x = tl.where(counts[:, None] & here[None, :], raw - shift[None, :], 0.0)
        eta = tl.sum(x * w[None, :], axis=1) + b
        if MOVED:
            eta += tl.load(offset + i, mask=counts, other=0.0)
        s = tl.where(counts, 1.0, 0.0).to(tl.float64)
        if WEIGHTED:
            s = tl.load(weights + i, mask=counts, other=0.0)
        own = tl.load(codes + i, mask=counts, other=0) != 0
        z = tl.where(own, -eta, eta)
        if LOSS == 0:
            e = tl.exp(-tl.abs(z))
            u = 1.0 + e
            q = 1.0 / u
            slope = tl.where(z > 0, q, e * q)
            small = tl.where(u == 1.0, e, tl.log(u) * (e / tl.where(u == 1.0, 1.0, u - 1.0)))
            loss = tl.maximum(z, 0.0) + small
            curve = e * q * q
        elif LOSS == 1:
            over = tl.maximum(1.0 + z, 0.0)
            slope = 2.0 * over
            loss = over * over
            curve = tl.where(z > -1.0, 2.0, 0.0)
        else:
            over = tl.maximum(1.0 + z, 0.0)
            slope = tl.where(over < h, over / h, 1.0)
            loss = tl.where(over < h, 0.5 * over * slope, over - 0.5 * h)
            curve = tl.where((z >= -1.0) & (1.0 + z <= h), 1.0 / h, 0.0)
        r = tl.where(own, -slope, slope) * s
        gradient += tl.sum(r[:, None] * x, axis=0)
        losses += s * loss
        slopes += r
        squares += s * slope * slope
        total += s
        bend += s * curve
        steepest = tl.maximum(steepest, tl.where(s > 0, tl.abs(eta), 0.0))
        if MEASURED == 1:
            largest = tl.maximum(largest, tl.where(s > 0, tl.sum(raw * raw * metric[None, :], axis=1), 0.0))
        if MEASURED == 2:
            largest = tl.maximum(largest, tl.where(s > 0, tl.sum(x * x * metric[None, :], axis=1), 0.0))
        if KEEP:
            tl.store(bends + i, curve, mask=counts)
    out = partial + program * (COLUMNS + 8)
    tl.store(out + j, gradient)
    rest = out + COLUMNS
    tl.store(rest, 0.0)
    tl.store(rest + 1, tl.sum(losses, axis=0))
    tl.store(rest + 2, tl.sum(slopes, axis=0))
    tl.store(rest + 3, tl.sum(squares, axis=0))
    tl.store(rest + 4, tl.sum(total, axis=0))
    tl.store(rest + 5, tl.sum(bend, axis=0))
    tl.store(rest + 6, tl.max(steepest, axis=0))
    tl.store(rest + 7, tl.max(largest, axis=0))
