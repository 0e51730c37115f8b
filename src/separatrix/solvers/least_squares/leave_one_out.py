"""Exact leave-one-out errors of ridge regression, for a whole grid of penalties, in one pass.

    e₋ᵢ = eᵢ / (1 − hᵢ),   hᵢ = 1/n + zᵢᵀ(S + αI)⁻¹zᵢ = 1/n + Σ_j (zᵢᵀv_j)² / (λ_j + α)

One unit of a row's weight is left out at a time: a row of weight 2 is two rows, each left out in turn.

**Complexity** O(nd² + nd·(number of penalties)). **Passes over the data** one.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.affine import Standardised
from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.solvers.least_squares.normal_equations import Spectrum
from separatrix.statistics.gram import NormalEquations


def ridge_loo(
    source: Source, equations: NormalEquations, spectrum: Spectrum, alphas: Float, fit_intercept: bool
) -> Float:
    """(penalties, targets) mean squared errors of the rows, each predicted without itself."""
    share = 1.0 if fit_intercept else 0.0
    # As many directions as rows: every row is fitted exactly at α = 0, and e and 1 − h are both α times the sums below.
    # Their ratio has a limit, and no digit is lost to 1 − h.
    interpolates = equations.scatter.thin and len(spectrum.values) >= equations.total - share - 0.5
    inverses = np.stack([spectrum.inverse(float(alpha)) for alpha in alphas])
    if interpolates:
        inverses = inverses / spectrum.values
    slopes_of = np.einsum("aj,jm->ajm", inverses, spectrum.cross)
    centred = Standardised(source, centre=equations.x_mean)

    def of_block(block: Block) -> Float:
        block = block.counted()
        assert block.y is not None
        weights = block.repetitions()
        scores = block.matvec(spectrum.vectors)
        leverage = np.square(scores) @ inverses.T
        targets = block.y - equations.y_mean
        losses = np.empty((len(alphas), targets.shape[1]))
        for a, slopes in enumerate(slopes_of):
            left = leverage[:, a] if interpolates else 1.0 - leverage[:, a] - share / equations.total
            fitted = scores @ slopes
            with np.errstate(divide="ignore", invalid="ignore"):  # a row that alone decides its own fit: infinite error
                errors = (fitted if interpolates else targets - fitted) / left[:, None]
            lost = left <= (0.0 if interpolates else 1e-12)
            losses[a] = weights @ np.square(np.where(lost[:, None], np.inf, errors))
        return losses

    return centred.reduce(of_block, np.add) / equations.total
