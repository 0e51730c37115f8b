"""
Averages over a posterior: Laplace, probit, quadrature
======================================================

p(1 | x) = ∫ σ(a) N(a | μ(x), s²(x)) da. Laplace's Gaussian gives μ = ŵᵀx and s² = xᵀH⁻¹x; the probit approximation is
σ(μ/√(1 + πs²/8)), quadrature is exact. Left: contours of the average (solid) bend away from those at the mode (dashed).
Right: along a line the two ways to average agree within 0.02; the plain σ(μ) is too sure on both ends.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from separatrix import BayesianLogisticRegression
from separatrix.plots import PredictiveContourDisplay

X, y = make_blobs(14, centers=[[-1, -1], [1, 1]], cluster_std=1.2, random_state=4)
exact = BayesianLogisticRegression(0.2, posterior="laplace", predictive="quadrature").fit(X, y)
probit = BayesianLogisticRegression(0.2, posterior="laplace", predictive="probit").fit(X, y)
line = np.linspace(-6, 6, 200)[:, None] * np.ones((1, 2))
mode = 1.0 / (1.0 + np.exp(-(line @ exact.coef_[0] + exact.intercept_[0])))

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
PredictiveContourDisplay.from_estimator(exact, X, y, eps=4.0, ax=left)
left.legend(loc="lower right", fontsize="small", framealpha=0.8)
curves = {"σ(μ), at the mode": mode, "probit": probit.predict_proba(line)[:, 1]}
curves["quadrature"] = exact.predict_proba(line)[:, 1]
for (name, values), look in zip(curves.items(), ("--", "-.", "-"), strict=True):
    right.plot(line[:, 0], values, look, label=name)
right.set(xlabel="x0 = x1", ylabel="p(1 | x)")
right.legend()
assert np.abs(curves["probit"] - curves["quadrature"]).max() < 0.02
plt.show()
