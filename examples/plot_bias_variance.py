"""
Bias and variance of a ridge fit
================================

E(f̂(x) − f(x))² = (E f̂(x) − f(x))² + Var f̂(x), over samples of n rows. Polynomials of degree 9 with a penalty α: a weak
one follows each sample (variance, left), a strong one is the same wrong curve every time (bias, middle). Their sum has its
minimum between (right), where a test error, which adds the noise σ², has its own.
"""

import matplotlib.pyplot as plt
import numpy as np

from separatrix import Ridge

rng = np.random.default_rng(0)
x, noise, alphas = np.linspace(-1, 1, 25), 0.4, np.logspace(-5, 2, 22)
truth, phi = np.sin(np.pi * x), x[:, None] ** np.arange(1, 10)
samples = truth + noise * rng.normal(size=(25, 60)).T  # 60 samples, fitted at once as 60 targets
fits = np.stack([Ridge(alpha).fit(phi, samples.T).predict(phi) for alpha in alphas])  # (alphas, x, samples)
bias = np.mean((fits.mean(axis=2) - truth) ** 2, axis=1)
variance = np.mean(fits.var(axis=2), axis=1)
assert np.allclose(bias + variance, np.mean((fits - truth[:, None]) ** 2, axis=(1, 2)))

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
for ax, at in zip(axes, (0, -1), strict=False):
    ax.plot(x, fits[at][:, :15], color="C0", linewidth=0.7, alpha=0.6)
    ax.plot(x, truth, color="C1", linewidth=2, label="truth")
    ax.set(title=f"15 samples, α = {alphas[at]:.0e}", ylim=(-2, 2), xlabel="x")
    ax.legend(loc="upper left")
for values, name, look in ((bias, "bias²", "--"), (variance, "variance", "-."), (bias + variance, "sum", "-")):
    axes[2].loglog(alphas, values, look, label=name)
axes[2].axvline(alphas[np.argmin(bias + variance)], color="grey", linestyle=":")
axes[2].set(xlabel="α", ylabel="mean squared error of the curve", ylim=(1e-4, 2))
axes[2].legend()
plt.show()
