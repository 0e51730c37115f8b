"""
Four ways from two classes to many
==================================

K machines "k or not", K − 1 of them (the last class is what is left), K(K−1)/2 machines for pairs that vote, and one
machine with K scores (Crammer and Singer: wᵧᵀx − w_kᵀx ≥ 1 − ξ). The first three leave parts of the plane open, hatched
here with the reason; they are given to the largest score. The direct one has no such parts. Bishop, figure 4.2.
"""

import matplotlib.pyplot as plt
import numpy as np

from separatrix import LinearSVC, OneVsOneClassifier, OneVsRestClassifier
from separatrix.plots import DecisionBoundaryDisplay

rng = np.random.default_rng(0)
y = np.repeat([0, 1, 2, 3], 40)
X = np.array([[0.0, 0.0], [4.0, 0.5], [1.0, 4.0], [5.5, 5.0]])[y] + 0.8 * rng.normal(size=(160, 2))
schemes = {
    "one against the rest": OneVsRestClassifier(LinearSVC()),
    "K − 1 machines": OneVsRestClassifier(LinearSVC(), machines="K-1"),
    "pairs": OneVsOneClassifier(LinearSVC()),
    "Crammer and Singer": LinearSVC(multi_class="crammer_singer"),
}
figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
for ax, (name, scheme) in zip(axes.flat, schemes.items(), strict=True):
    display = DecisionBoundaryDisplay.from_estimator(scheme.fit(X, y), X, y, eps=3.0, grid_resolution=300, ax=ax)
    share = sum(part.mean() for part in display.hatched.values())
    ax.set_title(f"{name}: {share:.0%} of the plane is open")
plt.show()
