"""Columns that are linear combinations of the columns before them: which, and whether exactly so.

    x_j = Σ_{k<j} c_k x_k + c₀        sin∠(x_j, span of those before) from a triangular factor, merged block by block

A sample without such columns settles the question: what is dependent in all rows is dependent in some. Where it has any, a
triangular factor of all rows gives the angles, to the last digits and not to half of them as a Gram matrix would. A small
angle proves nothing, however: columns one unit in the last place apart are different columns, and may separate classes. The
proof is arithmetic without rounding: c rounded to fractions P_k/Q with small denominators (dummy variables of one factor, a
column twice, counts and their sum), and Q(x_ij − x_0j) = Σ P_k (x_ik − x_0k) for every row i, each product split into two
that are exact, each sum distilled until nothing is left of it. Columns of few different values (dummy variables after any
scaling) have few different rows, and there a system of equations in fractions of whole numbers decides.

Reference: Golub and Van Loan (2013), section 5.3; Demmel et al. (2012), SIAM J. Sci. Comput. 34, for merged triangular factors;
Ogita, Rump, Oishi (2005), SIAM J. Sci. Comput. 26, for sums without rounding.

**Complexity** O(n p²). **Passes over the data** none where a sample settles it, else two or three.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.settings import one_blas_thread

_EPS = float(np.finfo(np.float64).eps)
_SAMPLE = 1000
_LARGEST_DENOMINATOR, _LARGEST_FACTOR = 64, 1 << 26
# Products of values within these bounds neither overflow nor lose digits when they are split.
_SMALL, _LARGE = 1e-250, 1e250
_SPLITTER = 134217729.0
# Up to this many columns and different rows a system of equations is solved in fractions.
_FEW, _FEW_ROWS = 12, 64


@dataclass(frozen=True)
class Dependence:
    """Columns that depend on those before them: `exact` by proof, `nearly` to within what a Gram matrix can resolve."""

    exact: tuple[int, ...]
    nearly: tuple[int, ...]

    @property
    def columns(self) -> NDArray[np.intp]:
        """All of them, in order."""
        return np.array(sorted(self.exact + self.nearly), dtype=np.intp)


def dependent_columns(source: Source, which: NDArray[np.intp], fit_intercept: bool) -> Dependence | None:
    """Those of the columns `which` that are combinations of earlier ones (and of a constant, beside an intercept).

    ``None`` when there are none, or when there are not more rows than columns: then some are, but which is of no interest.
    """
    needed = len(which) + fit_intercept
    rows = _some_rows(source, which, max(_SAMPLE, 2 * needed))
    if not len(rows) or len(rows) <= needed:
        return None
    origin = rows[0] if fit_intercept else np.zeros(len(which))
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(rows - origin).max(axis=0)
    if not np.isfinite(size).all():  # named with their columns by the first pass of a solver
        return None
    unit = 2.0 ** np.round(np.log2(np.where(size > 0, size, 1.0)))  # squares of extreme values would overflow

    def factor(rows: Float) -> Float:
        rows = (rows - origin) / unit
        return _triangular(np.column_stack([np.ones(len(rows)), rows]) if fit_intercept else rows)

    with one_blas_thread():
        if not _dependent(factor(rows), fit_intercept):
            return None
        total = source.reduce(
            lambda block: factor(block.counted().columns(which).dense()),
            lambda one, two: _triangular(np.concatenate([one, two])),
        )
        if not np.isfinite(total).all():
            return None
        found = _dependent(total, fit_intercept)
    relations = {
        j: _fractions({k: c * float(unit[j] / unit[k]) for k, c in coefficients.items()})
        for j, coefficients in found.items()
    }
    if not found:
        return None
    exact = _hold(source, which, origin, {j: known for j, known in relations.items() if known is not None})
    open_still = {j: [*coefficients, j] for j, coefficients in found.items() if j not in exact}
    exact |= _hold_in_few_rows(source, which, {j: at for j, at in open_still.items() if len(at) <= _FEW}, fit_intercept)
    nearly = tuple(int(which[j]) for j in found if j not in exact)
    return Dependence(tuple(int(which[j]) for j in sorted(exact)), nearly)


def _some_rows(source: Source, which: NDArray[np.intp], rows: int) -> Float:
    """Some of the rows that count; those at the beginning where the storage must be read for others."""
    drawn = source.sample(rows)
    parts: list[Float] = []
    found = 0
    for block in (source if drawn is None else drawn[0]).blocks():
        part = block.counted()
        parts.append(part.part(slice(0, min(part.n, rows - found))).columns(which).dense())
        found += len(parts[-1])
        if found >= rows:
            break
    return np.concatenate(parts) if parts else np.empty((0, len(which)))


def _triangular(rows: Float) -> Float:
    return np.asarray(np.linalg.qr(rows, mode="r"))


def _dependent(factor: Float, ones: bool) -> dict[int, dict[int, float]]:
    """Columns at a vanishing angle to those before them, with their coefficients on those that are not."""
    p = factor.shape[1] - ones
    negligible = np.sqrt(8.0 * (p + ones) * _EPS)
    basis = np.zeros((factor.shape[0], 0))
    if ones:
        basis = factor[:, :1] / np.linalg.norm(factor[:, 0])
    kept: list[int] = []
    found: dict[int, dict[int, float]] = {}
    for j in range(p):
        column = factor[:, j + ones]
        varies = column - basis[:, :ones] @ (basis[:, :ones].T @ column)
        size, left = float(np.linalg.norm(varies)), varies
        for _ in range(2):  # once would leave what rounding leaves
            left = left - basis @ (basis.T @ left)
        if size == 0.0 or not np.linalg.norm(left) > negligible * size:
            found[j] = _coefficients(factor[:, ones:], varies, kept, basis[:, :ones]) if size else {}
        else:
            basis = np.column_stack([basis, left / np.linalg.norm(left)])
            kept.append(j)
    return found


def _coefficients(columns: Float, target: Float, kept: list[int], constant: Float) -> dict[int, float]:
    """c with target ≈ Σ c_k x_k + constant; those that are rounding are left out."""
    design = columns[:, kept] - constant @ (constant.T @ columns[:, kept])
    units = np.linalg.norm(design, axis=0)
    solved = np.linalg.lstsq(design / units, target, rcond=None)[0]
    negligible = 1e-9 * float(np.linalg.norm(target))
    return {k: float(c / unit) for k, c, unit in zip(kept, solved, units, strict=True) if abs(c) > negligible}


def _fractions(coefficients: dict[int, float]) -> tuple[int, dict[int, int]] | None:
    """Q and the P_k of c_k = P_k/Q; ``None`` when they are too large for exact products."""
    near = {k: Fraction(c).limit_denominator(_LARGEST_DENOMINATOR) for k, c in coefficients.items()}
    common = lcm(*(c.denominator for c in near.values()))
    factors = {k: int(c * common) for k, c in near.items() if c}
    if common >= _LARGEST_FACTOR or any(abs(P) >= _LARGEST_FACTOR for P in factors.values()):
        return None
    return common, factors


def _hold(
    source: Source, which: NDArray[np.intp], origin: Float, relations: dict[int, tuple[int, dict[int, int]]]
) -> set[int]:
    """The columns whose relation holds in every row, without rounding. One pass, if there are any."""
    if not relations:
        return set()
    involved = sorted({k for j, (_, factors) in relations.items() for k in (j, *factors)})
    at = {k: i for i, k in enumerate(involved)}

    def of_block(block: Block) -> set[int]:
        rows = block.counted().columns(which[involved]).dense()
        sizes = np.abs(np.concatenate([rows, origin[None, involved]]))
        safe = ((sizes == 0) | ((sizes > _SMALL) & (sizes < _LARGE))).all(axis=0)
        held = set()
        for j, (common, factors) in relations.items():
            terms: list[Float] = []
            for k, P in ((j, common), *((k, -P) for k, P in factors.items())):
                terms.extend(_products(P, rows[:, at[k]]))
                terms.extend(_products(-P, np.full(len(rows), origin[k])))
            if all(safe[at[k]] for k in (j, *factors)) and _sum_to_zero(terms):
                held.add(j)
        return held

    return source.reduce(of_block, lambda one, two: one & two)


def _products(P: int, x: Float) -> Iterator[Float]:
    """P·x as exact terms: one where P is ±1, else of the two halves of x."""
    if abs(P) == 1:
        yield P * x
        return
    high = _SPLITTER * x
    high = high - (high - x)
    yield P * high
    yield P * (x - high)


def _sum_to_zero(terms: list[Float]) -> bool:
    """Whether the sum of the terms is zero in every row, exactly: sums and their rounding errors take the terms' places."""
    for _ in range(len(terms) + 2):
        if not any(term.any() for term in terms):
            return True
        for i in range(1, len(terms)):
            a, b = terms[i - 1], terms[i]
            total = a + b
            back = total - a
            terms[i - 1], terms[i] = (a - (total - back)) + (b - back), total
    return not any(term.any() for term in terms)


def _hold_in_few_rows(
    source: Source, which: NDArray[np.intp], groups: dict[int, list[int]], fit_intercept: bool
) -> set[int]:
    """Those j for which the last of the columns in groups[j] is a combination of the others, where rows repeat. One pass."""
    if not groups:
        return set()

    def different(rows: Float) -> Float | None:
        rows = np.unique(rows, axis=0)
        return rows if len(rows) <= _FEW_ROWS else None

    def of_block(block: Block) -> dict[int, Float | None]:
        counted = block.counted()
        return {j: different(counted.columns(which[at]).dense()) for j, at in groups.items()}

    def merge(one: dict[int, Float | None], two: dict[int, Float | None]) -> dict[int, Float | None]:
        merged: dict[int, Float | None] = {}
        for j, rows in one.items():
            more = two[j]
            merged[j] = None if rows is None or more is None else different(np.concatenate([rows, more]))
        return merged

    found = source.reduce(of_block, merge)
    return {j for j, rows in found.items() if rows is not None and _in_span(rows, fit_intercept)}


def _in_span(rows: Float, ones: bool) -> bool:
    """Whether the last column is a combination of the others, and of ones: elimination in fractions."""
    equations = [[Fraction(1)] * ones + [Fraction(float(value)) for value in row] for row in rows]
    for column in range(len(equations[0]) - 1 if equations else 0):
        pivot = next((row for row in equations if row[column]), None)
        if pivot is None:
            continue
        equations.remove(pivot)
        for row in equations:
            if row[column]:
                factor = row[column] / pivot[column]
                row[:] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
    return not any(row[-1] for row in equations)
