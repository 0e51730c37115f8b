"""
With equal covariances QDA is LDA
=================================

δ_k(x) = −½ log|Σ_k| − ½(x−μ_k)ᵀΣ_k⁻¹(x−μ_k) + log π_k. If all Σ_k = Σ, the terms −½ log|Σ| − ½ xᵀΣ⁻¹x are common to all
classes and what decides is linear in x. Left: three clouds of the same shape, where both boundaries nearly coincide. Right:
one cloud is stretched, and the quadratic boundary bends around the others. The lines of LDA are dashed.
"""

import matplotlib.pyplot as plt
import numpy as np

from separatrix import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from separatrix.plots import DecisionBoundaryDisplay

rng = np.random.default_rng(0)
y, means, shape = np.repeat([0, 1, 2], 300), np.array([[0, 0], [4, 0], [2, 3]]), np.array([[1.0, 0.4], [0.4, 0.8]])
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, stretch in zip(axes, (1.0, 4.0), strict=True):
    covariances = [shape * stretch, shape, shape]
    X = np.vstack([rng.multivariate_normal(m, c, 300) for m, c in zip(means, covariances, strict=True)])
    lda, qda = LinearDiscriminantAnalysis().fit(X, y), QuadraticDiscriminantAnalysis().fit(X, y)
    DecisionBoundaryDisplay.from_estimator(qda, X, y, ax=ax)
    DecisionBoundaryDisplay.from_estimator(lda, X, plot_method="contour", linestyles="dashed", linewidths=2, ax=ax)
    agree = np.mean(lda.predict(X) == qda.predict(X))
    ax.set_title(f"class 0 stretched × {stretch:g}: the same for {agree:.1%}")
plt.show()
