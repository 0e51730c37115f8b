"""
Losses of the margin, and what they make of one outlier
=======================================================

All are functions of m = t f(x): [m < 0], max(0, 1 − m), log(1 + e^−m), (1 − m)², e^−m, and 1/(1 + e^m), which is not
convex. Their slope far left is the pull of a row that is hopelessly wrong (middle): bounded for hinge and logistic, growing
for the square and the exponential, none for the sigmoid. Right: what one such row does to the boundary on the line; without
it, it is at 0.
"""

import matplotlib.pyplot as plt
import numpy as np

from separatrix import LinearClassifier
from separatrix.plots import MarginLossDisplay

names = ["hinge", "logistic", "squared", "exponential", "sigmoid"]
x = np.append(np.concatenate([np.linspace(-2.0, -0.5, 20), np.linspace(0.5, 2.0, 20)]), 0.0)
y = np.append(np.repeat([0, 1], 20), 0)
places = np.linspace(0.0, 10.0, 21)
figure, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
MarginLossDisplay.from_losses(names).plot(axes[0])
MarginLossDisplay.from_losses(names, derivative=1).plot(axes[1], legend=False)
for k, name in enumerate(names):
    boundaries = []
    for place in places:
        x[-1] = place
        model = LinearClassifier(name, C=1.0).fit(x[:, None], y)
        boundaries.append(-model.intercept_[0] / model.coef_[0, 0])
    axes[2].plot(
        places, boundaries, label=name, color=axes[1].get_lines()[k].get_color(), marker="os^Dv"[k], markersize=3
    )
axes[2].set(xlabel="where the row of the wrong class is", ylabel="boundary", ylim=(-0.1, 1))
plt.show()
