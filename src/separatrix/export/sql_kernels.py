"""Scores of kernel machines in SQL: a column for every support vector.

    s_m = b_m + Σ_i β_im k(x, z_i)

Three steps: what a kernel is a function of (−γ‖x − z_i‖², γ xᵀz_i + c), its values, the sums. Differences are taken before they
are squared, so that nothing cancels far from the origin. Every vector is written out, and a column each: databases limit both
(1 600 columns in PostgreSQL, a million letters in SQLite), hence the limits here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from separatrix.data.block import Float
from separatrix.export.sql_dialects import total
from separatrix.geometry.score_form import KernelExpansion, dense_rows

if TYPE_CHECKING:
    from separatrix.export.sql_scores import SqlScores

MOST_VECTORS, MOST_NUMBERS = 1_000, 20_000


def check_size(rule: KernelExpansion) -> None:
    """Refuse a machine that no database would read."""
    n, d = rule.points.X.shape
    if n > MOST_VECTORS or n * d > MOST_NUMBERS:
        raise NotImplementedError(
            f"its {n} support vectors of {d} columns are more than fits into a query (at most {MOST_VECTORS} vectors and "
            f"{MOST_NUMBERS} numbers). Use to_onnx or to_json, fewer rows, or kernel='linear'."
        )


def kernel_scores(query: SqlScores, rule: KernelExpansion) -> list[str]:
    """The score of every machine, for features f0, f1, … of the step before."""
    vectors = dense_rows(rule.points.X)
    inner: list[str] = []
    values = _values(query, rule.kernel, vectors, inner)
    query.step("inner", [f"{expression} AS e{i}" for i, expression in enumerate(inner)] or ["1 AS e0"])
    query.step("kernels", [f"{value} AS k_{i}" for i, value in enumerate(values)] or ["1 AS k_0"])
    return [
        total([query.number(b), *(f"{query.number(w)} * k_{i}" for i, w in enumerate(own.tolist()) if w != 0.0)])
        for own, b in zip(rule.coefficients.T, rule.constants.tolist(), strict=True)
    ]


def _values(query: SqlScores, kernel: Any, vectors: Float, inner: list[str]) -> list[str]:
    """k(x, z) for every vector z; what they are functions of is added to `inner`, whose names they use."""
    from separatrix.dual.given_kernels import Multiple, Product, Sum
    from separatrix.dual.kernels import LaplacianKernel, PolynomialKernel, RBFKernel, SigmoidKernel

    if isinstance(kernel, Sum | Product):
        parts = [_values(query, part, vectors, inner) for part in kernel.parts]
        sign = " + " if isinstance(kernel, Sum) else " * "
        return [f"({sign.join(of_one)})" for of_one in zip(*parts, strict=True)]
    if isinstance(kernel, Multiple):
        return [f"{query.number(kernel.factor)} * {value}" for value in _values(query, kernel.kernel, vectors, inner)]
    first = len(inner)
    if isinstance(kernel, RBFKernel | LaplacianKernel):
        inner += [_distance(query, isinstance(kernel, RBFKernel), float(kernel.gamma), z) for z in vectors]
        return [f"({query.exponential(f'e{first + i}')})" for i in range(len(vectors))]
    shaped = isinstance(kernel, PolynomialKernel | SigmoidKernel)
    slope, constant = (float(kernel.gamma), float(kernel.coef0)) if shaped else (1.0, 0.0)
    for z in vectors:
        # A column that no vector needs must still make the score missing where it is: a product with 0 does.
        products = [f"{query.number(slope * value)} * f{j}" for j, value in enumerate(z.tolist())]
        inner.append(total([query.number(constant), *products]))
    names = [f"e{first + i}" for i in range(len(vectors))]
    if isinstance(kernel, SigmoidKernel):
        return [f"TANH({name})" for name in names]
    if not isinstance(kernel, PolynomialKernel):
        return names
    return [f"({' * '.join([name] * kernel.degree) or f'{name} - {name} + {query.number(1)}'})" for name in names]


def _distance(query: SqlScores, squared: bool, gamma: float, vector: Float) -> str:
    """−γ times the squared distance, or the sum of absolute differences."""
    away = [f"(f{j} - {query.number(value)})" for j, value in enumerate(vector.tolist())]
    return f"{query.number(-gamma)} * ({total([f'{one} * {one}' if squared else f'ABS{one}' for one in away])})"
