"""
The risk that no rule can beat
==============================

Two Gaussian classes with one covariance and equal priors: the best rule is wrong with probability Φ(−Δ/2), where Δ² = (μ₁ −
μ₀)ᵀΣ⁻¹(μ₁ − μ₀). On a line the risk is exact for unequal variances too: there are two boundaries, and the risk is the area
under the lower curves (left). Right: what LDA fitted to n rows loses beyond the least risk falls like 1/n.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

from separatrix import GaussianClasses, LinearDiscriminantAnalysis, bayes_risk
from separatrix.plots import ClassDensityDisplay

line = GaussianClasses([[0.0], [1.5]], [[[4.0]], [[0.5]]], priors=[0.6, 0.4])
truth = GaussianClasses([[0.0] * 8, [2.0] + [0.0] * 7], np.eye(8))
least = bayes_risk(truth).estimate
assert np.isclose(least, ndtr(-2.0 / 2))
sizes = np.geomspace(20, 5000, 10).astype(int)
fits = [[LinearDiscriminantAnalysis().fit(*truth.sample(n, 97 * n + s)) for s in range(15)] for n in sizes]
excess = np.array([[truth.risk_of(model).estimate for model in row] for row in fits]) - least

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
display = ClassDensityDisplay.from_estimator(line, *line.sample(150, 0), ax=left)
assert np.allclose(display.boundaries, line.thresholds()[0])
left.set_title(f"Bayes risk {bayes_risk(line).estimate:.4f}")
right.loglog(sizes, excess, ".", color="C0")
right.loglog(sizes, excess.mean(axis=1), "-", color="C1", label="mean of 15 samples")
right.set(xlabel="rows", ylabel="risk above the least", title=f"Φ(−Δ/2) = {least:.4f}")
right.legend()
plt.show()
