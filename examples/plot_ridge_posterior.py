"""
Ridge regression is a posterior
===============================

y = φ(x)ᵀw + ε with w ~ N(0, τ²I) and ε ~ N(0, σ²): the posterior of w is Gaussian with mean (ΦᵀΦ + αI)⁻¹Φᵀy, which is the
ridge fit for α = σ²/τ², and covariance σ²(ΦᵀΦ + αI)⁻¹. Left: the mean and two standard deviations of a new observation,
wide where no rows are. Right: curves drawn from the posterior of w, each as good an answer as any.
"""

import matplotlib.pyplot as plt
import numpy as np

from separatrix import Ridge

rng = np.random.default_rng(1)
x = np.append(rng.uniform(-1.0, -0.2, 15), rng.uniform(0.5, 1.0, 10))
y = np.sin(4.0 * x) + 0.2 * rng.normal(size=25)
centres, line = np.linspace(-1.2, 1.2, 13), np.linspace(-1.3, 1.3, 200)


def phi(values):
    return np.exp(-0.5 * ((values[:, None] - centres) / 0.25) ** 2)


model = Ridge(alpha="evidence", fit_intercept=False).fit(phi(x), y)
mean, std = model.predict(phi(line), return_std=True)
posterior = model.posterior()
assert np.allclose(np.linalg.solve(phi(x).T @ phi(x) + model.alpha_ * np.eye(13), phi(x).T @ y), model.coef_)

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
axes[0].plot(line, mean, color="C0", label="mean, the ridge fit")
axes[0].fill_between(line, mean - 2 * std, mean + 2 * std, color="C0", alpha=0.2, label="± 2 std")
axes[1].plot(line, phi(line) @ posterior.draws(12, random_state=0)[0].T, linewidth=0.9)
axes[1].set_title(f"σ = {np.sqrt(posterior.noise_variance[0]):.2f} (the truth is 0.20)")
for ax in axes:
    ax.plot(x, y, "o", color="C1", markersize=4)
    ax.plot(line, np.sin(4.0 * line), color="grey", linestyle=":", label="truth")
axes[0].set(ylim=(-2.4, 1.7), title="mean and spread of a new observation")
axes[0].legend(loc="lower left", ncols=2, fontsize="small")
plt.show()
