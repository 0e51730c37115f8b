"""
The perceptron makes no more mistakes than (D/δ)²
=================================================

Every mistake adds t x to w. If a plane through the origin separates the rows with margin δ, and no row is longer than D,
there are at most (D/δ)² mistakes, in any order and however often the rows come (Novikoff 1962). Two clouds are moved apart:
the bound (dashed) falls with the square of the margin, and the mistakes of twenty orders of the rows stay below it.
"""

import matplotlib.pyplot as plt
import numpy as np

from separatrix import Perceptron

rng = np.random.default_rng(0)
y = np.repeat([0, 1], 30)
shifts, bounds, mistakes = np.linspace(2.0, 5.0, 10), [], []
noise = np.clip(rng.normal(scale=0.5, size=(60, 2)), -0.9, 0.9)
for shift in shifts:
    X = noise + np.where(y[:, None] == 1, 0.5, -0.5) * [shift, shift] + 3.0
    models = [Perceptron(tol=None, max_iter=10_000, random_state=seed).fit(X, y) for seed in range(20)]
    assert all(model.score(X, y) == 1.0 for model in models)
    bounds.append(models[0].mistake_bound(X, y)[0])
    mistakes.append([model.n_mistakes_[0] for model in models])

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.semilogy(shifts, bounds, "--", label="bound (D/δ)²")
ax.semilogy(shifts, np.max(mistakes, axis=1), "s-", label="most mistakes of 20 orders")
ax.semilogy(shifts, np.median(mistakes, axis=1), "o-", label="median")
ax.set(xlabel="how far the clouds are moved apart", ylabel="mistakes until all rows are right", ylim=(0.8, None))
ax.legend()
assert (np.max(mistakes, axis=1) <= bounds).all()
plt.show()
