"""Draws from the posterior of a logistic regression with a Gaussian prior: the Pólya–Gamma Gibbs sampler.

    p(θ | y) ∝ Π_i p(y_i | η_i)^{s_i} exp(−½ (θ − m₀)ᵀΛ(θ − m₀)),      η_i = θx_i + o_i

Given the other classes, the score of class k enters as ψ_ik = η_ik − c_ik, c_ik = log Σ_{j≠k} exp η_ij (0 for two classes):

    (e^ψ)^{s·1[y=k]} / (1 + e^ψ)^s  =  2^{−s} e^{κψ} E exp(−ωψ²/2),      κ = s(1[y=k] − ½),  ω ~ PG(s, 0)

so that, with every ω given, θ_k is Gaussian, and with θ given, the ω are independent:

    ω_i | θ        ~ PG(s_i, ψ_i)
    θ_k | ω, θ_−k  ~ N(V(Σ_i (κ_i − ω_i(ψ_i − θ_kx_i)) x_i + (Λm₀)_{k|−k}),  V),      V = (Σ_i ω_i x_ix_iᵀ + Λ_kk)⁻¹

Between the sweeps, chains take steps proposed by Laplace's Gaussian where these are mostly accepted (independence.py): they
leave the same posterior as it is and are worth many sweeps.

A softmax without a baseline does not notice one vector added to the coefficients of every class; `_Shift` moves along it.

Reference: Polson, Scott and Windle (2013), J. American Statistical Association 108, theorem 1; for more classes
Holmes and Held (2006), Bayesian Analysis 1.

**Complexity** O(n C p (p + m)) per class and iteration for C chains, most of it the n C Pólya–Gamma draws when p < 50.
**Passes over the data** one per sweep for two classes, one per score and sweep for more: the draw of θ_k needs the sum over all
rows, and the scores of the next class need θ_k. All chains share a pass, and the steps between two sweeps share one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from separatrix.bayes.diagnostics import LEAST_DRAWS, bulk_ess, rhat
from separatrix.bayes.independence import Proposals, effective_share
from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.losses import Softmax
from separatrix.objectives.margin_losses import Logistic
from separatrix.objectives.penalties import Penalty
from separatrix.settings import one_blas_thread

_EPS = float(np.finfo(np.float64).eps)
# Rows per task (a few milliseconds of draws), and bytes of rows that stay in cache for the products of every chain.
_ROWS, _CACHED = 4096, 1 << 20
# Proposals are made when a trial of this many is worth this share of as many draws; then so many between two sweeps.
_TRIED, _WORTH, _STEPS = 64, 0.3, 9
# The compiled sampler for PG(1, z) is exact, but not made for larger |z|.
_FAR_OUT = 100.0
_TERMS, _ALL_REST, _LARGEST_TILT = 6, 12.0, 1e50


@dataclass(frozen=True)
class Draws:
    """Draws of θ after warm-up, with diagnostics of whether they can be trusted."""

    theta: Float
    """(chains, draws, m, p) in the units of the objective's θ."""
    rhat: Float
    """(m, p) split rank-normalised R-hat: above 1.01 the chains do not agree yet. NaN for too few draws."""
    ess: Float
    """(m, p) bulk effective sample size over all chains."""
    passes: int
    interrupted: bool
    """Whether the run was stopped before all draws were made."""
    accepted: float = np.nan
    """Share of the proposals of Laplace's Gaussian that were accepted; NaN when none were made."""


def sample_gibbs(
    objective: LinearObjective,
    source: Source,
    start: Float,
    spread: Float,
    *,
    n_chains: int,
    n_warmup: int,
    n_draws: int,
    seed: np.random.SeedSequence,
    proposals: Proposals | None = None,
    callback: Callable[[int, int], None] | None = None,
) -> Draws:
    """Draw θ from exp(−F(θ)), F the objective, with several chains that read the rows together.

    The posterior has to exist: classes that can be separated need a prior on every coefficient but the intercept. This is
    not checked here; R-hat far above 1 is how it shows.

    Parameters
    ----------
    objective : LinearObjective
        A logistic or softmax loss and a quadratic penalty; zeros in it are a flat prior.
    source : Source
        Labelled rows.
    start, spread : ndarrays of shape (m, p) and (mp, mp)
        Chains start about `start` with covariance FFᵀ, F = `spread`: wider than the posterior, so that R-hat means something.
    n_chains, n_warmup, n_draws : int
        Chains, and the iterations of each that are thrown away and that are kept.
    seed : SeedSequence
        The draws depend on it and on the rows alone, not on the number of threads.
    proposals : Proposals, optional
        A Gaussian near the posterior. Where it is near enough, nine of ten iterations are steps that it proposes.
    callback : callable, optional
        Called with the iterations done and their total after each; KeyboardInterrupt ends the run with what there is.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import as_source
    >>> from separatrix.objectives.linear import LinearObjective
    >>> from separatrix.objectives.margin_losses import Logistic
    >>> from separatrix.objectives.penalties import Penalty
    >>> source = as_source(np.array([[-1.0], [0.0], [1.0], [2.0]]), np.array([0, 1, 0, 1])).labelled()
    >>> objective = LinearObjective(Logistic(), Penalty.of_scikit_learn(1.0, 0.0, np.ones((1, 1))))
    >>> draws = sample_gibbs(objective, source, np.zeros((1, 1)), np.eye(1), n_chains=4, n_warmup=50, n_draws=250,
    ...                      seed=np.random.SeedSequence(0))
    >>> draws.theta.shape, bool(0.2 < draws.theta.mean() < 0.6), draws.passes
    ((4, 250, 1, 1), True, 300)
    """
    limits = ("n_chains", n_chains, 1), ("n_warmup", n_warmup, 0), ("n_draws", n_draws, LEAST_DRAWS)
    for name, value, least in limits:
        if value < least:
            raise ValueError(f"{name} is {value}; it has to be at least {least}.")
    sampler = GibbsSampler(objective, source, seed)
    theta = sampler.starts(start, spread, n_chains)
    kept = np.empty((n_chains, n_draws, *start.shape))
    before, done, total, offered, accepted = source.passes, 0, n_warmup + n_draws, 0, 0
    try:
        if proposals is not None:
            tried = proposals.gaussian.draw(sampler.generator(3), _TRIED)
            proposals = None if effective_share(proposals.log_ratios(tried)) < _WORTH else proposals
        while done < total:
            theta = sampler.sweep(theta, done)
            states, steps = theta[None], min(_STEPS, total - done - 1)
            if proposals is not None and steps:
                moved, taken = proposals.steps(theta, steps, sampler.generator(4, done))
                states, theta = np.concatenate([states, moved]), moved[-1]
                offered, accepted = offered + steps * n_chains, accepted + taken
            new = states[max(0, n_warmup - done) :]
            done += len(states)
            kept[:, done - n_warmup - len(new) : done - n_warmup] = new.swapaxes(0, 1)
            if callback is not None:
                callback(done, total)
    except KeyboardInterrupt:
        kept = kept[:, : max(0, done - n_warmup)]
    enough = kept.shape[1] >= LEAST_DRAWS
    unknown = np.full(start.shape, np.nan)
    return Draws(
        kept,
        rhat(kept) if enough else unknown,
        bulk_ess(kept) if enough else unknown,
        source.passes - before,
        kept.shape[1] < n_draws,
        accepted / offered if offered else np.nan,
    )


class GibbsSampler:
    """One sweep over the classes, for all chains at once; θ is (C, m, p)."""

    def __init__(self, objective: LinearObjective, source: Source, seed: np.random.SeedSequence) -> None:
        loss = objective.loss
        if not objective.penalty.smooth:
            raise ValueError(
                "The Gibbs sampler needs a Gaussian prior: leave out absolute values (l1_ratio=0) and bounds on the "
                "coefficients."
            )
        if isinstance(loss, Softmax):
            self.baseline = loss.baseline
            self.classes = [k for k in range(loss.n_classes) if k != loss.baseline]
        elif isinstance(loss, Logistic):
            self.baseline, self.classes = 0, [1]
        else:
            raise ValueError(
                f"The loss {type(loss).__name__} is not a negative log-likelihood of this Gibbs sampler; use the logistic "
                "loss or the softmax."
            )
        self.objective, self.source = objective, source
        self.entropy = seed.generate_state(8).tolist()  # not the seed itself: a caller may spawn children of it
        self.prior = [_prior_precision(objective.penalty, k) for k in range(loss.n_scores)]
        self.shift = _Shift(objective.penalty) if self.baseline is None else None

    def generator(self, *key: int) -> np.random.Generator:
        """A stream of its own for every task, so that their order does not matter."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=key))

    def starts(self, start: Float, spread: Float, n_chains: int) -> Float:
        """(C, m, p) places around `start`."""
        z = self.generator(0).standard_normal((n_chains, start.size))
        return start + (z @ spread.T).reshape(n_chains, *start.shape)

    def sweep(self, theta: Float, iteration: int) -> Float:
        """Every class once, then the direction that the likelihood does not notice."""
        theta = theta.copy()
        generator = self.generator(1, iteration)
        with one_blas_thread():
            for k in range(theta.shape[1]):
                gram, linear = self._sums(theta, k, iteration)
                self.source.check_finite(gram, linear)
                prior = self.prior[k]
                for chain, own in enumerate(theta):
                    # Λ_kk m₀ less what the other classes pull: all of −∇P but its part along θ_k itself.
                    pull = prior @ own[k] - self.objective.penalty.gradient(own)[k]
                    own[k] = self._gaussian(gram[chain] + prior, linear[chain] + pull, generator)
            if self.shift is not None:
                for own in theta:
                    own += self.shift.draw(own, generator)
        return theta

    def _sums(self, theta: Float, k: int, iteration: int) -> tuple[Float, Float]:
        """Σ ω xxᵀ (C, p, p) and Σ (κ − ω(ψ − θ_kx)) x (C, p) with fresh ω. One pass."""
        chains, m, p = theta.shape
        stacked = np.ascontiguousarray(theta.reshape(chains * m, p).T)

        def of_block(block: Block) -> tuple[Float, Float]:
            generator = self.generator(2, iteration, k, block.start)
            gram, linear = np.zeros((chains, p, p)), np.zeros((chains, p))
            for piece in block.pieces(_CACHED):
                rows, offset = self.objective.counted(piece)
                if not rows.n:
                    continue
                moved = np.ascontiguousarray(rows.matvec(stacked).T).reshape(chains, m, rows.n)
                eta = moved if offset is None else moved + offset.T
                psi = eta[:, k] - _log_sum(np.delete(eta, k, axis=1), self.baseline is not None) if m > 1 else eta[:, 0]
                omega = draw_polya_gamma(rows.weights, psi, generator)
                half = np.where(rows.codes == self.classes[k], 0.5, -0.5)
                kappa = half if rows.weights is None else half * rows.weights
                linear += rows.rmatvec((kappa - omega * (psi - moved[:, k])).T).T
                for chain, weights in enumerate(omega):
                    gram[chain] += rows.gram(weights)
            return gram, linear

        return self.source.reduce(of_block, _added, _ROWS)

    def _gaussian(self, precision: Float, linear: Float, generator: np.random.Generator) -> Float:
        """N(P⁻¹b, P⁻¹), in units in which the diagonal of P is one."""
        diagonal = precision.diagonal()
        if not (diagonal > 0).all():
            name = self.source.column_name(int(np.argmin(diagonal > 0)))
            raise ValueError(
                f"The posterior does not exist: {name} is zero in every row and has a flat prior. Drop it or give it a "
                "prior (a finite C)."
            )
        unit = 1.0 / np.sqrt(diagonal)
        factor, failed = sla.lapack.dpotrf(precision * unit[:, None] * unit, lower=1)
        if failed or factor.diagonal().min() ** 2 <= 4.0 * len(factor) * _EPS:
            raise ValueError(
                "The posterior does not exist: the columns are linearly dependent (the intercept counts as one) and the "
                "prior is flat along them, or nearly so. Drop the redundant columns or give every coefficient a stronger "
                "prior (a smaller C)."
            )
        white, _ = sla.lapack.dtrtrs(factor, linear * unit, lower=1)
        white += generator.standard_normal(len(white))
        drawn, _ = sla.lapack.dtrtrs(factor, white, lower=1, trans=1)
        return drawn * unit


def _added(one: tuple[Float, Float], two: tuple[Float, Float]) -> tuple[Float, Float]:
    return np.add(one[0], two[0], out=one[0]), np.add(one[1], two[1], out=one[1])


def _log_sum(eta: Float, baseline: bool) -> Float:
    """(C, n) log Σ_j exp η_j over the second axis, with the 0 of the baseline."""
    largest = eta.max(axis=1)
    if baseline:
        largest = np.maximum(largest, 0.0)
    total = np.exp(eta - largest[:, None]).sum(axis=1)
    if baseline:
        total += np.exp(-largest)
    return np.log(total) + largest


def _prior_precision(penalty: Penalty, k: int) -> Float:
    """(p, p) Λ_kk."""
    p = penalty.mean.shape[1]
    if penalty.matrix is None:
        return np.diag(penalty.quadratic[k])
    return penalty.matrix[k * p : (k + 1) * p, k * p : (k + 1) * p]


class _Shift:
    """θ_k → θ_k + c for every class k: c drawn from the prior where it has one, fixed by Σ_k θ_k = 0 where it is flat.

    The likelihood is the same for every c, and a translation has unit Jacobian, so drawing c from the prior restricted to
    that orbit, N(A⁻¹b, A⁻¹) with A = Σ_kl Λ_kl and b = −Σ_k ∇P_k, leaves the posterior as it is (Liu and Sabatti 2000,
    Biometrika 87, theorem 1). Along the null space of A the posterior is flat for ever and only differences between classes
    have a distribution. Every conditional above moves with c there, so the differences are a Markov chain of their own (the
    Gibbs sampler with another class as baseline), and which c is shown does not matter to it: the one that sums to zero.
    """

    def __init__(self, penalty: Penalty) -> None:
        self.penalty = penalty
        m, p = penalty.mean.shape
        if penalty.matrix is None:
            precision = np.diag(penalty.quadratic.sum(axis=0))
        else:
            precision = penalty.matrix.reshape(m, p, m, p).sum(axis=(0, 2))
        diagonal = precision.diagonal()
        self.unit = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        with one_blas_thread():
            self.values, vectors = np.linalg.eigh(precision * self.unit[:, None] * self.unit)
        held = self.values > 8.0 * p * _EPS * max(float(self.values[-1]), 1.0)
        self.values, self.held, self.flat = self.values[held], vectors[:, held], vectors[:, ~held]

    def draw(self, theta: Float, generator: np.random.Generator) -> Float:
        """(p,) the shift for θ (m, p)."""
        pull = -self.penalty.gradient(theta).sum(axis=0)
        white = (self.held.T @ (pull * self.unit)) / self.values
        white += generator.standard_normal(len(white)) / np.sqrt(self.values)
        centred = self.flat.T @ (theta.mean(axis=0) / self.unit)
        return (self.held @ white - self.flat @ centred) * self.unit


def draw_polya_gamma(shape: Float | None, tilt: Float, generator: np.random.Generator) -> Float:
    """PG(s, z) for weights s (n,), all 1 when ``None``, and tilts z (C, n); NaN throughout where a tilt is not finite.

    PG(s, z) = Σ_k g_k / (2(π²(k−½)² + z²/4)), g_k ~ Gamma(s, 1)

    For s = 1 an exact sampler is used. For other s, and for tilts out of its range, the first terms are drawn and the rest
    of the sum is an inverse Gaussian variable of the same mean and variance: mean and variance are exact, the third cumulant
    to 2·10⁻⁴. The inverse Gaussian is the limit of the sum for large z, so from |z| = 12 on it stands for all of it.
    """
    largest = np.abs(tilt).max(initial=0.0)
    if not np.isfinite(largest):
        return np.full_like(tilt, np.nan)
    if (shape is None or (shape == 1.0).all()) and largest <= _FAR_OUT:
        from separatrix.kernels.posterior.polya_gamma import unit_polya_gamma  # compiled, loaded where it is needed

        drawn = np.empty(tilt.size)
        unit_polya_gamma(np.ravel(tilt), drawn, generator)
        return drawn.reshape(tilt.shape)
    t = 0.5 * np.minimum(np.abs(tilt), _LARGEST_TILT)
    mean, variance = _unit_moments(t)
    s = np.ones(tilt.shape[1]) if shape is None else shape
    near = 2.0 * t <= _ALL_REST
    total = np.zeros_like(t)
    for k in range(_TERMS):
        term = np.where(near, 0.5 / (np.square(np.pi * (k + 0.5)) + np.square(t)), 0.0)
        total += term * generator.standard_gamma(s, size=t.shape)
        mean -= term
        variance -= np.square(term)
    rest = s * mean
    total += generator.wald(rest, np.square(rest) * (mean / variance))  # shape parameter: mean³/variance
    return total


def _unit_moments(t: Float) -> tuple[Float, Float]:
    """Mean and variance of PG(1, 2t), t ≥ 0: tanh t/(4t) and (tanh t − t sech² t)/(16t³), by their series near 0."""
    small = t < 0.03
    u, v = np.where(small, np.square(np.minimum(t, 1.0)), 0.0), np.where(small, 1.0, t)
    tanh = np.tanh(v)
    mean = np.where(small, 1.0 - u / 3.0 + 2.0 / 15.0 * u**2, tanh / v)
    bent = (tanh - v * (1.0 - tanh) * (1.0 + tanh)) / v**3
    variance = np.where(small, 2.0 / 3.0 - 8.0 / 15.0 * u + 34.0 / 105.0 * u**2, bent)
    return mean / 4.0, variance / 16.0
