"""NumPyro: automatic Laplace approximation, and the No-U-Turn sampler, of the same logistic regression.

Its compiled code is kept from one fit to the next, so that compiling is part of the warm-up and not of what is timed.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.contender import Peer

PEER = Peer("NumPyro", distribution="numpyro", module="numpyro")


def model(rows: Any, targets: Any = None) -> None:
    """w ~ N(0, 1), b as good as flat, y ~ Bernoulli(σ(Xw + b))."""
    pyro: Any = import_module("numpyro")
    distributions: Any = import_module("numpyro.distributions")
    jax: Any = import_module("jax")
    w = pyro.sample("w", distributions.Normal(0.0, 1.0).expand([rows.shape[1]]).to_event(1))
    b = pyro.sample("b", distributions.Normal(0.0, 1000.0))
    pyro.sample("y", distributions.Bernoulli(logits=jax.numpy.dot(rows, w) + b), obs=targets)


@lru_cache(maxsize=1)
def sampler(chains: int, warm_up: int, draws: int) -> Any:
    infer: Any = import_module("numpyro.infer")
    kernel = infer.NUTS(model)
    return infer.MCMC(
        kernel, num_warmup=warm_up, num_samples=draws, num_chains=chains, chain_method="sequential", progress_bar=False
    )


class Nuts:
    """Draws of (w, b), (chains, draws, p); single precision, as by default."""

    def __init__(self, chains: int, warm_up: int, draws: int) -> None:
        self.sizes = chains, warm_up, draws

    def fit(self, X: Any, y: Any) -> Nuts:
        jax: Any = import_module("jax")
        mcmc = sampler(*self.sizes)
        mcmc.run(jax.random.PRNGKey(0), jax.numpy.asarray(X), jax.numpy.asarray(y))
        found = mcmc.get_samples(group_by_chain=True)
        self.draws_ = np.concatenate([np.asarray(found["w"]), np.asarray(found["b"])[..., None]], axis=2)
        return self


class Laplace:
    """AutoLaplaceApproximation with BFGS, and the probit rule on top; double precision."""

    def fit(self, X: Any, y: Any) -> Laplace:
        jax: Any = import_module("jax")
        infer: Any = import_module("numpyro.infer")
        guides: Any = import_module("numpyro.infer.autoguide")
        optim: Any = import_module("numpyro.optim")
        jax.config.update("jax_enable_x64", True)
        rows, targets = jax.numpy.asarray(X), jax.numpy.asarray(y)
        guide = guides.AutoLaplaceApproximation(
            model, init_loc_fn=infer.init_to_value(values={"w": np.zeros(X.shape[1]), "b": 0.0})
        )
        svi = infer.SVI(model, guide, optim.Minimize(), infer.Trace_ELBO())
        found = svi.run(jax.random.PRNGKey(0), 1, rows, targets, progress_bar=False)
        posterior = guide.get_posterior(found.params)
        # Sites come in the order of their names: b before w.
        mean, covariance = np.asarray(posterior.mean), np.asarray(posterior.covariance_matrix)
        order = np.roll(np.arange(len(mean)), -1)
        self.mean_, self.covariance_ = mean[order], covariance[np.ix_(order, order)]
        whole = np.column_stack([X, np.ones(len(X))])
        variance = np.einsum("ij,ij->i", whole @ self.covariance_, whole)
        self.proba_ = 1 / (1 + np.exp(-(whole @ self.mean_) / np.sqrt(1 + math.pi / 8 * variance)))
        return self
