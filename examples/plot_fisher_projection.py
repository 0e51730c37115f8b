"""
Fisher's direction, and the one between the means
=================================================

The direction w ∝ S_W⁻¹(μ₁ − μ₀) makes (wᵀ(μ₁ − μ₀))²/wᵀS_W w largest. On the difference of the means alone the histograms
of two long clouds overlap (left); on Fisher's direction they part, and the threshold is where the two normal curves meet
(right). Bishop, figure 4.6.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import FunctionTransformer

from separatrix import FisherDiscriminant
from separatrix.plots import FisherProjectionDisplay

rng = np.random.default_rng(0)
y = np.repeat([0, 1], 200)
X = rng.multivariate_normal([0, 0], [[2.0, 1.7], [1.7, 2.0]], 400) + y[:, None] * [2.0, 0.3]
fisher = FisherDiscriminant().fit(X, y)
means = fisher.means_[1] - fisher.means_[0]
along_means = FunctionTransformer(lambda rows: rows @ means[:, None]).fit(X)
along_means.classes_ = fisher.classes_

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, model, name in zip(axes, (along_means, fisher), ("the line of the means", "Fisher's direction"), strict=True):
    display = FisherProjectionDisplay.from_estimator(model, X, y, ax=ax)
    ax.set(
        ylim=(0, 1.45 * display.counts.max()),
        title=f"{name}: {display.errors} of {len(y)} rows wrong",
        xlabel=f"projection on {name}",
    )
plt.show()
