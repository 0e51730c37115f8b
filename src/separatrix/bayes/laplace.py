"""Laplace's approximation: the Gaussian that has the mode and the curvature of the posterior.

    p(θ | D) ≈ N(θ̂, S),    θ̂ = argmin F,    S⁻¹ = ∇²F(θ̂) = Λ₀ + Σ sᵢ ∇²ℓᵢ ⊗ φᵢφᵢᵀ

F = Σ s ℓ + ½(θ − m₀)ᵀΛ₀(θ − m₀) is what the solvers minimise. For two classes ∇²ℓ = p(1−p), for more diag(p) − ppᵀ.

The leading directions of "low_rank" come from a randomised Nyström sketch A ≈ Y(QᵀY)⁻¹Yᵀ, Y = AQ, of A = Λ^(−½)(H − Λ)Λ^(−½):
it never exceeds A, so variances are never too small.

Reference: MacKay (1992), Neural Computation 4, 720–736; Bishop (2006), Pattern Recognition and Machine Learning, eq. 4.142 and
4.143; Frangella, Tropp and Udell (2023), SIAM J. Matrix Analysis and Applications 44, for the sketch.

**Complexity** full O(n m² p²), block O(n m p²), diagonal O(n m p), low_rank O(n m p r) per pass.
**Passes over the data** "full" one, "block" and "diagonal" two, "low_rank" four.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from separatrix.bayes.posterior import BlockPosterior, DiagonalPosterior, FullPosterior, LowRankPosterior, Posterior
from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.losses import Softmax
from separatrix.settings import one_blas_thread
from separatrix.solvers.curvature import without_gauge

STRUCTURES = ("full", "block", "diagonal", "low_rank")
# A full covariance of this many coefficients takes 32 MB and a second to factor; a low rank keeps r numbers per coefficient.
FULL_COEFFICIENTS = 2000
LOW_RANK_COEFFICIENTS = 200_000
_PIECE = 1 << 20
_OVERSAMPLED = 10

SINGULAR = (
    "The posterior has no proper covariance: its curvature is numerically singular. Raise prior_precision, or rescale the "
    "columns to similar size."
)


def choose_covariance(n_features: int, n_scores: int) -> str:
    """Which shape of covariance is kept for coefficients of that many columns (with the intercept) and scores.

    =======================================  ======================================================================
    columns · scores ≤ 2000                  ``"full"``
    columns ≤ 2000                           ``"block"``: full within a score
    columns · scores ≤ 200 000               ``"low_rank"``: the prior, narrowed along the data's leading directions
    more                                     ``"diagonal"``
    =======================================  ======================================================================

    Parameters
    ----------
    n_features, n_scores : int
        There is one score for two classes, else one per class.

    Examples
    --------
    >>> from separatrix.bayes.laplace import choose_covariance
    >>> choose_covariance(51, 1), choose_covariance(1000, 10), choose_covariance(5001, 1)
    ('full', 'block', 'low_rank')
    """
    if n_features * n_scores <= FULL_COEFFICIENTS:
        return "full"
    if n_features <= FULL_COEFFICIENTS:
        return "block"
    return "low_rank" if n_features * n_scores <= LOW_RANK_COEFFICIENTS else "diagonal"


def laplace(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    structure: str,
    rank: int = 100,
    gauge: Float | None = None,
) -> tuple[Posterior, float]:
    """The posterior about a mode θ (m, p), and F there, in one of the shapes of `STRUCTURES`.

    The penalty is quadratic; coefficients without one have a flat prior. `rank` is the number of directions that "low_rank"
    keeps; `gauge` (r, mp) are those of an earlier posterior that is now the prior, by default those of the objective.
    """
    try:
        if structure == "full":
            return _full(objective, source, theta, gauge)
        value = objective.evaluate(theta, source, 1).value
        if structure == "low_rank":
            return _low_rank(objective, source, theta, rank), value
        return (_block if structure == "block" else _diagonal)(objective, source, theta), value
    except np.linalg.LinAlgError:
        raise ValueError(SINGULAR) from None


def despite_interrupt(
    work: Callable[[], tuple[Posterior, float]], needed: bool = True
) -> tuple[Posterior, float, bool]:
    """The result of one pass without which there is no model, once more if it is interrupted; and whether it was."""
    try:
        return *work(), False
    except KeyboardInterrupt:
        if not needed:
            raise
        return *work(), True


def gauge_directions(objective: LinearObjective) -> Float:
    """(r, mp) orthonormal directions that neither the scores nor the prior notice: the same constant for every class."""
    loss, (m, p) = objective.loss, objective.penalty.quadratic.shape
    if not isinstance(loss, Softmax) or loss.baseline is not None:
        return np.zeros((0, m * p))
    free = np.flatnonzero(objective.penalty.free.all(axis=0))
    directions = np.zeros((len(free), m, p))
    directions[np.arange(len(free)), :, free] = 1.0 / np.sqrt(m)
    return directions.reshape(len(free), m * p)


def _full(objective: LinearObjective, source: Source, theta: Float, gauge: Float | None) -> tuple[FullPosterior, float]:
    evaluation = objective.evaluate(theta, source, 2)
    assert evaluation.hessian is not None
    precision = without_gauge(evaluation.hessian, objective)
    gauge = gauge_directions(objective) if gauge is None else gauge
    return FullPosterior.of_precision(theta, precision, gauge), evaluation.value


def _weighted(objective: LinearObjective, theta: Float, block: Block) -> tuple[Block, Float]:
    """The rows that count, and (n, m) s ∂²ℓ/∂η_k² of each."""
    rows, own = objective.counted(block)
    _, _, curvature = objective.loss.at(rows.codes, objective.scores(theta, rows, own), curved=True)
    assert curvature is not None
    bends = np.column_stack([objective.loss.pair(curvature, k, k) for k in range(len(theta))])
    return rows, bends if rows.weights is None else bends * rows.weights[:, None]


def _block(objective: LinearObjective, source: Source, theta: Float) -> BlockPosterior:
    penalty, (m, p) = objective.penalty, theta.shape

    def of_block(block: Block) -> Float:
        total = np.zeros((m, p, p))
        for piece in block.pieces(_PIECE):
            rows, bends = _weighted(objective, theta, piece)
            for k in range(m):
                total[k] += rows.gram(bends[:, k])
        return total

    precisions = source.reduce(of_block, np.add)
    for k, own in enumerate(precisions):
        at = slice(k * p, (k + 1) * p)
        own += np.diag(penalty.quadratic[k]) if penalty.matrix is None else penalty.matrix[at, at]
    none = np.zeros((0, p))
    return BlockPosterior(
        theta, tuple(FullPosterior.of_precision(theta[k : k + 1], own, none) for k, own in enumerate(precisions))
    )


def _diagonal(objective: LinearObjective, source: Source, theta: Float) -> DiagonalPosterior:
    def of_block(block: Block) -> Float:
        total = np.zeros(theta.shape)
        for piece in block.pieces(_PIECE):
            rows, bends = _weighted(objective, theta, piece)
            total += np.stack([rows.column_squares(own) for own in bends.T])
        return total

    penalty = objective.penalty
    prior = penalty.quadratic if penalty.matrix is None else penalty.matrix.diagonal().reshape(theta.shape)
    precision = source.reduce(of_block, np.add) + prior
    if not (precision > 0).all():
        raise np.linalg.LinAlgError("a coefficient has no curvature")
    return DiagonalPosterior(theta, 1.0 / precision)


def _low_rank(objective: LinearObjective, source: Source, theta: Float, rank: int) -> LowRankPosterior:
    prior, (m, p) = objective.penalty.quadratic, theta.shape
    flat = bool((prior[:, -1] == 0).all())  # an intercept without a prior
    d = p - flat
    scale = 1.0 / np.sqrt(prior[:, :d])
    size = min(d, rank + _OVERSAMPLED)

    def product(vectors: Float) -> tuple[Float, Float]:
        """Σ s h φφᵀ V of every score (m, p, l), and Σ s h φ (p, m). One pass."""

        def of_block(block: Block) -> tuple[Float, Float]:
            total, border = np.zeros((m, p, size)), np.zeros((p, m))
            for piece in block.pieces(_PIECE):
                rows, bends = _weighted(objective, theta, piece)
                border += rows.rmatvec(bends)
                for k in range(m):
                    total[k] += rows.rmatvec(bends[:, k, None] * rows.matvec(vectors[k]))
            return total, border

        return source.reduce(of_block, lambda one, two: (one[0] + two[0], one[1] + two[1]))

    basis = _orthonormal(np.random.default_rng(0).standard_normal((m, d, size)))
    for last in (False, False, True):
        vectors = np.zeros((m, p, size))
        vectors[:, :d] = scale[:, :, None] * basis
        raw, border = product(vectors)
        image = raw[:, :d]
        if flat:  # the intercept integrated out: H_xx − H_xb H_bx / H_bb
            along = border[:d].T
            inner = np.einsum("kj,kjl->kl", along, vectors[:, :d]) / border[d][:, None]
            image = image - along[:, :, None] * inner[:, None, :]
        image = scale[:, :, None] * image
        basis = basis if last else _orthonormal(image)
    pairs = [_nystrom(basis[k], image[k], min(rank, size)) for k in range(m)]
    total = border[-1]
    if flat and not (total > 0).all():
        raise np.linalg.LinAlgError("the intercept has no curvature")
    return LowRankPosterior(
        theta,
        np.square(scale),
        np.stack([vectors for _, vectors in pairs]),
        np.stack([values for values, _ in pairs]),
        border[:d].T / total[:, None] if flat else None,
        1.0 / total if flat else np.zeros(m),
    )


def _orthonormal(stack: Float) -> Float:
    with one_blas_thread():
        return np.stack([np.linalg.qr(matrix)[0] for matrix in stack])


def _nystrom(basis: Float, image: Float, rank: int) -> tuple[Float, Float]:
    """The leading eigenvalues and eigenvectors of Y(QᵀY)⁻¹Yᵀ, Y = AQ, without the directions that A does not see."""
    with one_blas_thread():
        middle = basis.T @ image
        values, vectors = np.linalg.eigh(0.5 * (middle + middle.T))
        seen = values > len(basis) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
        left, singular, _ = np.linalg.svd(image @ vectors[:, seen] / np.sqrt(values[seen]), full_matrices=False)
    strengths, directions = np.zeros(rank), np.zeros((len(basis), rank))
    kept = min(rank, len(singular))
    strengths[:kept], directions[:, :kept] = np.square(singular[:kept]), left[:, :kept]
    return strengths, directions
