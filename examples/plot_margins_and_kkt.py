"""
Hard and soft margin; the KKT conditions, read off a fit
========================================================

min ½‖w‖² + C Σ ξᵢ with tᵢf(xᵢ) ≥ 1 − ξᵢ. At the optimum αᵢ = 0 where tᵢf > 1, αᵢ = C where tᵢf < 1, and 0 < αᵢ < C only on
the margin (lower row): complementary slackness. Left: a huge C allows no slack on separable rows, and few vectors carry the
plane. Right: C = 0.1 buys a wider margin, 2/‖w‖, for the slacks drawn from it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from separatrix import SVC
from separatrix.plots import SupportVectorDisplay

X, y = make_blobs(60, centers=[[0, 0], [3.4, 2.4]], cluster_std=0.85, random_state=6)
figure, axes = plt.subplots(2, 2, figsize=(9, 7.5), height_ratios=[3, 2], layout="constrained")
for (above, below), C in zip(axes.T, (1e4, 0.1), strict=True):
    model = SVC(kernel="linear", C=C, tol=1e-8).fit(X, y)
    display = SupportVectorDisplay.from_estimator(model, X, y, ax=above)
    alpha = np.zeros(len(X))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    margin = (2 * y - 1) * model.decision_function(X)
    assert (alpha[margin > 1 + 1e-5] == 0).all() and np.allclose(alpha[margin < 1 - 1e-5], C)
    above.get_legend().remove()
    above.set_title(f"C = {C:g}: width {2 / np.linalg.norm(model.coef_):.2f}, Σξ = {display.slacks.sum():.2f}")
    below.plot(margin, alpha, "o", markersize=4)
    below.axvline(1.0, color="grey", linestyle="--")
    below.set(xlabel="tᵢ f(xᵢ)", ylabel="αᵢ")
figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
plt.show()
