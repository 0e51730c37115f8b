"""
The risk that no rule can beat
==============================

Two Gaussian classes with one covariance and equal priors: the best rule is wrong with probability Φ(−Δ/2), Δ² = (μ₁ −
μ₀)ᵀΣ⁻¹(μ₁ − μ₀). Left: the densities; the risk is what lies under the lower curve. Right: the risk of LDA fitted to n rows,
exact for each fitted rule by the normal distribution function, falls to it like 1/n.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

from separatrix import GaussianClasses, LinearDiscriminantAnalysis, bayes_risk
from separatrix.plots import ClassDensityDisplay

d, delta = 8, 2.0
truth = GaussianClasses(np.eye(2, d)[::-1] * np.array([[delta / np.sqrt(2)]] * 2), np.eye(d))
least = bayes_risk(truth).estimate
assert np.isclose(least, ndtr(-delta / 2))


def true_risk(model):
    w, b = model.coef_[0], model.intercept_[0]
    sides = (np.asarray(truth.means) @ w + b) / np.linalg.norm(w)
    return 0.5 * ndtr(sides[0]) + 0.5 * ndtr(-sides[1])


sizes = np.geomspace(20, 5000, 10).astype(int)
risks = [[true_risk(LinearDiscriminantAnalysis().fit(*truth.sample(n, 97 * n + s))) for s in range(15)] for n in sizes]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
line = GaussianClasses([[-delta / 2], [delta / 2]], [[1.0]]).sample(400, 0)
ClassDensityDisplay.from_estimator(LinearDiscriminantAnalysis().fit(*line), *line, ax=left)
right.loglog(sizes, np.array(risks) - least, ".", color="C0")
right.loglog(sizes, np.mean(risks, axis=1) - least, "-", color="C1", label="mean of 15 samples")
right.set(xlabel="rows", ylabel="risk above the least", title=f"Φ(−Δ/2) = {least:.4f}")
right.legend()
plt.show()
