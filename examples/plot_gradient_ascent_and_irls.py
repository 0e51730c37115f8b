"""
Gradient ascent against iteratively reweighted least squares
============================================================

w ← w + ρ Σ (yᵢ − pᵢ)xᵢ with a fixed rate ρ, over all rows or one row at a time, against w ← (XᵀSX)⁻¹XᵀSz with S = p(1 − p)
and z = Xw + S⁻¹(y − p). In the valley of the negative log-likelihood the gradient zigzags, single rows wander, and IRLS is
there after a few steps: it has the curvature.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from separatrix import LogisticRegression
from separatrix.plots import TrajectoryDisplay

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2)) * [1.0, 3.0]
y = (rng.logistic(size=200) < X @ [1.5, 0.4]).astype(int)
ways = {
    "gradient, ρ = 0.0095": {"solver": "gradient", "eta0": 0.0095, "max_iter": 60},
    "one row at a time, ρ = 0.02": {"solver": "sgd", "eta0": 0.02, "max_iter": 2},
    "IRLS": {"solver": "irls"},
}
figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
for ax, (name, options) in zip(axes, ways.items(), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the number of steps is limited
        model = LogisticRegression(C=np.inf, fit_intercept=False, record=True, **options).fit(X, y)
    TrajectoryDisplay.from_estimator(model, X, y, ax=ax)
    ax.set_title(f"{name}: {model.fit_.history.objective[-1]:.3f}")
plt.show()
