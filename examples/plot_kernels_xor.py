"""
Kernels: XOR is linear in x₁x₂
==============================

f(x) = Σ αᵢtᵢ k(xᵢ, x) + b. No line separates the corners of XOR; in φ(x) = (x₁, x₂, x₁x₂, …) a plane does. The polynomial
kernel (xᵀz + 1)² contains x₁x₂ and draws a hyperbola, the Gaussian one has every degree and follows the rows. Dashed lines
are f = ±1.
"""

import matplotlib.pyplot as plt
import numpy as np

from separatrix import SVC, separability
from separatrix.plots import DecisionBoundaryDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(120, 2))
X = X[np.abs(X).min(axis=1) > 0.1]
y = (X[:, 0] * X[:, 1] > 0).astype(int)
print(
    "in the plane:",
    separability(X, y).verdict,
    "- with the product:",
    separability(np.c_[X, X.prod(axis=1)], y).verdict,
)
machines = {
    "linear": SVC(kernel="linear"),
    "polynomial of degree 2": SVC(kernel="poly", degree=2, coef0=1.0, gamma=1.0, C=10.0),
    "Gaussian": SVC(kernel="rbf", gamma=2.0, C=10.0),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), sharey=True, layout="constrained")
for ax, (name, machine) in zip(axes, machines.items(), strict=True):
    DecisionBoundaryDisplay.from_estimator(machine.fit(X, y), X, y, ax=ax)
    ax.set_title(f"{name}: {machine.score(X, y):.0%}, {len(machine.support_)} vectors", fontsize="medium")
    ax.get_legend().set_visible(ax is axes[-1])
    ax.get_legend().set_in_layout(ax is axes[-1])
plt.show()
