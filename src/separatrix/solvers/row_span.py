"""Fewer rows than columns: the same problem in coordinates of the span of the rows, where a product costs n² and not nd.

    K = XQ⁻¹Xᵀ = LLᵀ,    w = Q⁻¹XᵀL⁻ᵀv,     Xw = Lv,   wᵀQw = vᵀv,     Q = diag q, the penalty of every score

The rows become those of L under the penalty ½‖v‖². Its optimum is one of X up to the rounding of L, so that what is true of the
point is computed from X.

**Complexity** O(n²d + n³) once. **Passes over the data** one, and one for w.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from separatrix.data.affine import Intercept
from separatrix.data.arrays import ArraySource
from separatrix.data.block import Float
from separatrix.data.source import Source, in_parallel, ordered
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.penalties import Penalty

# Products with the Hessian that a fit of little trouble takes, and numbers that may be copied, or read as they are.
_PRODUCTS, _COPIED, _READ = 30.0, 1 << 22, 1 << 25
_FEW = 2000  # numbers that are multiplied so quickly that nothing else counts
# What a multiplication costs in a product of large matrices, as a share of one in a product with a few vectors.
_LARGE = 0.5
# Entries of X that are multiplied at once: columns of them stay in cache.
_ENTRIES = 1 << 18


@dataclass(frozen=True)
class RowSpan:
    """X as it is stored, (d,) 1/q, (n, n) L, and the problem on its rows."""

    X: NDArray[Any]
    inverse: Float
    factor: Float
    problem: LinearProblem

    @classmethod
    def of(cls, problem: LinearProblem) -> RowSpan | None:
        """Of a problem of several scores where that pays; ``None`` where not, or where there is no one Q."""
        (m, p), n, objective, d = problem.shape, problem.source.n_rows, problem.objective, len(problem.scale)
        penalty = objective.penalty
        if n is None or n >= p or m == 1 or not _pays(n, d, m) or not penalty.smooth or penalty.matrix is not None:
            return None
        quadratic = penalty.quadratic[:, :d]
        even = (quadratic > 0).all() and (quadratic == quadratic[0]).all() and not penalty.mean.any()
        block = problem.source.one_block(any_order=True)
        if not even or block is None or block.sparse_rows() is not None:
            return None
        if problem.fit_intercept != objective.free_intercept or objective.shifts is not None or problem.holds_ones:
            return None
        rows, offset = objective.counted(block)
        stored = rows.plain_rows(any_order=True)
        if stored is None and n * p > _COPIED:
            return None
        X = rows.dense()[:, :d] if stored is None else stored[0]
        inverse = 1.0 / quadratic[0]
        problem.source.count_pass()
        factor = _factor(_gram(X, inverse, problem.source))
        source = ArraySource(factor, rows.codes, rows.weights)
        source.classes = problem.source.classes
        shape = (m, rows.n + problem.fit_intercept)
        held = replace(Penalty.none(shape), quadratic=np.ones(shape))
        held.quadratic[:, rows.n :] = 0.0
        changed = replace(objective, penalty=held, offset=offset)
        seen = Intercept(source) if problem.fit_intercept else source
        return cls(X, inverse, factor, LinearProblem.plain(changed, seen))

    def coefficients(self, theta: Float) -> Float:
        """θ of the problem on X."""
        n, d = len(self.factor), self.X.shape[1]
        alpha = lapack.dtrtrs(self.factor, theta[:, :n].T, lower=1, trans=1)[0].T
        found = np.empty((len(theta), d + theta.shape[1] - n))
        found[:, d:] = theta[:, n:]

        def of_columns(start: int) -> None:
            at = slice(start, min(start + _width(self.X), d))
            found[:, at] = alpha @ self.X[:, at] * self.inverse[at]

        in_parallel(of_columns, range(0, d, _width(self.X)))
        return found


def _pays(n: int, d: int, m: int) -> bool:
    """Whether K, its factor and the products that follow cost less than products with X."""
    product, once = 2.0 * m * n, _LARGE * (n**2 * d / 2.0 + n**3 / 3.0)
    return _FEW < n * d <= _READ and once + _PRODUCTS * product * n < 0.7 * _PRODUCTS * product * d


def _width(X: NDArray[Any]) -> int:
    return max(64, _ENTRIES // len(X))


def _gram(X: NDArray[Any], inverse: Float, source: Source) -> Float:
    even = bool((inverse == inverse[0]).all())

    def of_columns(start: int) -> Float:
        at = slice(start, start + _width(X))
        part = X[:, at].astype(np.float64, copy=False)
        part = part if even else part * np.sqrt(inverse[at])
        product: Float = part @ part.T
        return product

    gram = np.zeros((len(X), len(X)))
    with np.errstate(invalid="ignore", over="ignore"):  # found here, and reported by column
        for product in ordered(of_columns, range(0, X.shape[1], _width(X))):
            gram += product
        if even:
            gram *= inverse[0]
    source.check_finite(gram.diagonal())
    return gram


def _factor(gram: Float) -> Float:
    """L, with what rounding asks for on the diagonal: some rows may be combinations of others."""
    every, size = np.arange(len(gram)), float(gram.diagonal().max())
    diagonal, more = gram.diagonal().copy(), 1e-15 * len(gram) * size + np.finfo(np.float64).tiny
    while True:
        gram[every, every] = diagonal + more
        factor, failed = lapack.dpotrf(gram, lower=1, clean=1)
        if not failed:
            return np.ascontiguousarray(factor)
        more *= 100.0
