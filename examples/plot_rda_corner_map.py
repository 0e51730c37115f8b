"""
The corner map of regularised discriminants
===========================================

Σ_k(α, γ) = γ[αΣ_k + (1 − α)Σ] + (1 − γ)(tr(·)/d) I. The corners of the square are classifiers with names: QDA, LDA, the
nearest mean, and one with a sphere for each class. One fit gives the leave-one-out error of all points, from moments alone.
With 60 wines of 13 columns the best point (star) has the common covariance, shrunk a little: QDA has too many numbers to
estimate, the nearest mean too few.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from separatrix import RegularizedDiscriminantAnalysis

X, y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
rows = np.random.default_rng(0).choice(len(y), 60, replace=False)
grid = np.linspace(0.0, 1.0, 21)
model = RegularizedDiscriminantAnalysis("loo", "loo", alphas=grid, gammas=grid).fit(X[rows], y[rows])
loss = np.asarray(model.selection_["log_loss"]).T

figure, ax = plt.subplots(figsize=(6, 4.6), layout="constrained")
shown = ax.pcolormesh(grid, grid, np.minimum(loss, 1.0), cmap="cividis", shading="gouraud")
figure.colorbar(shown, label="leave-one-out log-loss, at most 1")
ax.plot(model.alpha_, model.gamma_, "*", color="white", markeredgecolor="black", markersize=18, clip_on=False, zorder=5)
ax.set(xlabel="α: share of the class's own covariance", ylabel="γ: share of the covariance kept")
for x, y_, name, side in [(0, 1, "LDA", "left"), (1, 1, "QDA", "right"), (0, 0, "nearest mean", "left")]:
    ax.annotate(
        name, (x, y_), (6 if side == "left" else -6, 6 - 20 * y_), textcoords="offset points", ha=side, color="wk"[x]
    )
ax.set_title(f"best at α = {model.alpha_:.2g}, γ = {model.gamma_:.2g}: log-loss {loss.min():.3f}")
plt.show()
