"""How far the scores of a kernel machine can be from exact arithmetic: u is the unit of rounding, ε = 2u.

    ĝᵢ = fl(Σⱼ βⱼ hᵢⱼ),   h the computed values,     |hᵢⱼ − kᵢⱼ| ≤ Σ ρ tᵢtⱼ,   |kᵢⱼ| ≤ sᵢsⱼ
    |ĝᵢ − (Kβ)ᵢ| ≤ Σ ρ tᵢ Σⱼ tⱼ|βⱼ| + mε sᵢ Σⱼ sⱼ|βⱼ|

m counts the additions that one term passes through. The ρ, t and s of each kernel follow from the standard model:

    linear       |fl(xᵀz) − xᵀz| ≤ du|x||z|                                     ρ = (d+2)ε, t = s = |x|
    polynomial   (γxᵀz + c)ᵖ,  (γ|x||z| + |c|)² ≤ (γ|x|² + |c|)(γ|z|² + |c|)     ρ = p(d+4)ε, t = s = (γ|x|² + |c|)^{p/2}
    rbf          the exponent is off by (2d+10)u γ(|x|+|z|)² when it is one product, |x| from the centre,
                 and (|x|+|z|)² ≤ 2|x|² + 2|z|²                                 ρ = (d+6)ε, t = 1 + 2γ|x|²,  s = 1
    distances    differences first: the exponent e is off by (d+4)u e, and e·exp(−e) < 1    ρ = (d+6)ε, t = s = 1
    sums         the terms of the parts, s² = Σs²            products  |k₁δ₂| + |k₂δ₁| with a second-order term below ε of them

Reference: Higham (2002), Accuracy and Stability of Numerical Algorithms, sections 3.1 and 4.2.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.given_kernels import Function, Multiple, Precomputed, Product, Sum
from separatrix.dual.kernels import CentredLinear, Kernel, LaplacianKernel, LinearKernel, PolynomialKernel, RBFKernel
from separatrix.dual.points import Points, lost_digits

_EPS = float(np.finfo(np.float64).eps)
_Terms = list[tuple[float, Float]]


def kernel_errors(kernel: Kernel, points: Points) -> tuple[_Terms, Float]:
    """(ρ, t) of the errors of double-precision values between these rows, and the sizes s.

    Values that are given, by a function or as a matrix, are taken as they are: there is nothing they could differ from.
    """
    n = len(points)
    terms = _terms_in_a_dot(points)
    if isinstance(kernel, LinearKernel):
        length = np.sqrt(points.squares(centred=isinstance(kernel, CentredLinear) and not points.sparse))
        return [((terms + 2) * _EPS, length)], length
    if isinstance(kernel, PolynomialKernel):
        size = (kernel.gamma * points.squares() + abs(kernel.coef0)) ** (0.5 * kernel.degree)
        return [(max(1, kernel.degree) * (terms + 4) * _EPS, size)], size
    if isinstance(kernel, RBFKernel):
        far = kernel.gamma * points.squares(centred=not points.sparse)
        if not points.sparse:
            far = np.where(8.0 * _EPS * far > lost_digits(points), 0.0, far)  # of these the kernel takes differences
        rho, t = (terms + 6) * _EPS, 1.0 + 2.0 * far
        if not float(t.max(initial=0.0)) < 1.0 / np.sqrt(rho):
            return [(1.0, np.ones(n))], np.ones(n)  # no two values of this kernel differ by more
        return [(rho, t)], np.ones(n)
    if isinstance(kernel, LaplacianKernel):
        return [((terms + 6) * _EPS, np.ones(n))], np.ones(n)
    if isinstance(kernel, Multiple):
        inner, size = kernel_errors(kernel.kernel, points)
        root = np.sqrt(kernel.factor)
        return [(rho, root * t) for rho, t in inner] + [(_EPS, root * size)], root * size
    if isinstance(kernel, Sum):
        found = [kernel_errors(part, points) for part in kernel.parts]
        size = np.sqrt(np.sum([size**2 for _, size in found], axis=0))
        return [term for inner, _ in found for term in inner] + [(len(found) * _EPS, size)], size
    if isinstance(kernel, Product):
        found = [kernel_errors(part, points) for part in kernel.parts]
        size = np.prod([size for _, size in found], axis=0)
        errors: _Terms = [(len(found) * _EPS, size)]
        for k, (inner, _) in enumerate(found):
            others = np.prod([np.ones(n), *(s for j, (_, s) in enumerate(found) if j != k)], axis=0)
            errors += [(1.01 * rho, t * others) for rho, t in inner]
        return errors, size
    if isinstance(kernel, Precomputed):
        return [], np.sqrt(np.abs(kernel.diagonal(points)))
    if isinstance(kernel, Function):
        some = points.take(slice(0, 256))  # such values prove nothing in any case: their size will do
        return [], np.full(n, np.sqrt(np.abs(kernel.between(some, some)).max(initial=0.0)))
    return [], np.ones(n)  # the sigmoid, for which nothing is proven


def score_errors(terms: _Terms, size: Float, beta: Float, additions: int) -> Float:
    """(n,) bounds on |f̂ − f| for f = Kβ."""
    alpha = np.abs(beta)
    errors = additions * _EPS * float(size @ alpha) * size
    for rho, t in terms:
        errors += rho * float(t @ alpha) * t
    return errors


def _terms_in_a_dot(points: Points) -> int:
    if points.sparse:
        return int(np.diff(points.X.indptr).max(initial=0))
    return int(points.X.shape[1])
