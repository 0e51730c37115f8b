"""The dual: one coordinate per row.

The kernels: `LinearKernel`, `PolynomialKernel`, `RBFKernel`, `LaplacianKernel`, `SigmoidKernel`; `Kernel` is their base, and
sums and products of kernels are kernels.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.dual.kernels import (
        Kernel,
        LaplacianKernel,
        LinearKernel,
        PolynomialKernel,
        RBFKernel,
        SigmoidKernel,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Kernel", "LaplacianKernel", "LinearKernel", "PolynomialKernel", "RBFKernel", "SigmoidKernel"]
