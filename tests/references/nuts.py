"""Posteriors of three logistic regressions by another algorithm and another library, stored in nuts.json.

    python -m venv reference && reference/bin/pip install numpyro scikit-learn && reference/bin/python nuts.py

NumPyro's No-U-Turn sampler draws from

    breast cancer           two classes, the ten columns of means, standardised
    wine                    three classes, the first six columns, standardised; a vector a class, intercepts of sum zero
    wine with a baseline    the same rows; the first class has the score 0

with a prior N(0, 1) on every coefficient and a flat one on the intercepts. Means and standard deviations are stored a score a
row, the intercept last, with their Monte Carlo standard errors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer, load_wine

if __name__ == "__main__":  # whoever collects the tests has no need of these
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.diagnostics import effective_sample_size
    from numpyro.infer import MCMC, NUTS

CHAINS, WARMUP, DRAWS = 4, 2000, 10_000


def flat(name: str, shape: tuple[int, ...]) -> Any:
    return numpyro.sample(name, dist.ImproperUniform(dist.constraints.real, (), event_shape=shape))


def binary(X: Any, y: Any) -> None:
    coef = numpyro.sample("coef", dist.Normal(0, 1).expand((1, X.shape[1])).to_event(2))
    intercept = numpyro.deterministic("intercept", flat("b", (1,)))
    numpyro.sample("y", dist.Bernoulli(logits=X @ coef[0] + intercept[0]), obs=y)


def symmetric(X: Any, y: Any) -> None:
    coef = numpyro.sample("coef", dist.Normal(0, 1).expand((3, X.shape[1])).to_event(2))
    b = flat("b", (2,))
    intercept = numpyro.deterministic("intercept", jnp.append(b, -b.sum()))
    numpyro.sample("y", dist.Categorical(logits=X @ coef.T + intercept), obs=y)


def baseline(X: Any, y: Any) -> None:
    coef = numpyro.sample("coef", dist.Normal(0, 1).expand((2, X.shape[1])).to_event(2))
    intercept = numpyro.deterministic("intercept", flat("b", (2,)))
    scores = X @ coef.T + intercept
    numpyro.sample("y", dist.Categorical(logits=jnp.column_stack([jnp.zeros(len(X)), scores])), obs=y)


def summary(draws: np.ndarray) -> dict[str, Any]:
    """Of draws (chains, draws, ...)."""
    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
    squares = np.square(draws - mean)
    mean_error = sd / np.sqrt(effective_sample_size(draws))
    sd_error = squares.std(axis=(0, 1)) / np.sqrt(effective_sample_size(squares)) / (2.0 * sd)
    named = {"mean": mean, "mean_error": mean_error, "sd": sd, "sd_error": sd_error}
    return {name: np.round(values, 8).tolist() for name, values in named.items()}


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    stored: dict[str, Any] = {
        "versions": {"numpyro": numpyro.__version__, "jax": jax.__version__, "scikit-learn": sklearn.__version__},
        "chains": CHAINS,
        "warmup": WARMUP,
        "draws": DRAWS,
    }
    problems = {
        "breast cancer": (load_breast_cancer, 10, binary, 1),
        "wine": (load_wine, 6, symmetric, 2),
        "wine with a baseline": (load_wine, 6, baseline, 3),
    }
    for name, (load, columns, model, seed) in problems.items():
        X, y = load(return_X_y=True)
        X = X[:, :columns]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        run = MCMC(
            NUTS(model, target_accept_prob=0.9),
            num_warmup=WARMUP,
            num_samples=DRAWS,
            num_chains=CHAINS,
            chain_method="vectorized",
            progress_bar=False,
        )
        run.run(jax.random.PRNGKey(seed), jnp.asarray(X), jnp.asarray(y))
        draws = run.get_samples(group_by_chain=True)
        theta = np.concatenate([np.asarray(draws["coef"]), np.asarray(draws["intercept"])[..., None]], axis=-1)
        stored[name] = {"seed": seed, **summary(theta)}
        worst = max(np.max(np.divide(stored[name][f"{of}_error"], stored[name]["sd"])) for of in ("mean", "sd"))
        print(f"{name}: largest Monte Carlo error {worst:.4f} posterior standard deviations", flush=True)
    Path(__file__).with_name("nuts.json").write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
