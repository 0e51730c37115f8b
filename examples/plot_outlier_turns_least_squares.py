"""
Rows that are right, and far away, turn least squares
=====================================================

Least squares minimises Σ (yᵢ − wᵀxᵢ − b)², which charges a row for being *too* right; log(1 + e^−m) and max(0, 1 − m)
charge it (nearly) nothing. Eight rows of one class are added far out on their own side (right): the boundary of least
squares turns by more than forty degrees, those of logistic regression and of the support vector machine stay. Bishop,
figure 4.4.
"""

import matplotlib.pyplot as plt
import numpy as np

from separatrix import LinearSVC, LogisticRegression, RidgeClassifier

rng = np.random.default_rng(3)
y = np.repeat([0, 1], 40)
X = rng.normal(scale=0.7, size=(80, 2)) + np.where(y[:, None] == 1, [1.8, -1.2], [-0.8, 1.4])
far, kind = rng.normal([5.0, -7.0], 0.5, size=(8, 2)), np.ones(8, dtype=int)
data = {"as they are": (X, y), "eight rows more": (np.vstack([X, far]), np.append(y, kind))}
models = {"least squares": RidgeClassifier(0.0), "logistic": LogisticRegression(C=10.0), "SVM": LinearSVC(C=10.0)}

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharex=True, sharey=True, layout="constrained")
angles: dict[str, list[float]] = {name: [] for name in models}
for ax, (title, (rows, labels)) in zip(axes, data.items(), strict=True):
    for k in (0, 1):
        ax.scatter(*rows[labels == k].T, s=16, marker="os"[k], color=f"C{k}")
    for (name, model), look in zip(models.items(), ("-", "--", ":"), strict=True):
        w, b = model.fit(rows, labels).coef_[0], model.intercept_[0]
        angles[name].append(np.degrees(np.arctan2(w[1], w[0])))
        ax.axline(-b * w / (w @ w), slope=-w[0] / w[1], color="grey", linestyle=look, linewidth=2, label=name)
    ax.set(title=title, xlim=(-4, 9), ylim=(-10, 4), aspect="equal")
axes[0].legend()
print({name: f"turned by {abs(after - before):.0f}°" for name, (before, after) in angles.items()})
plt.show()
