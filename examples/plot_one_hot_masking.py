"""
Least squares on one-hot targets masks the class in the middle
==============================================================

Regress each column of the indicator matrix Y on x and take the largest: f_k(x) = β_k0 + β_k x. The three lines sum to one
(left). With three classes in a row the line of the middle one is nearly flat and hardly ever the largest, so its region is
a sliver at best; LDA and squared columns (right) find it. ESL, section 4.2, figures 4.2 and 4.3.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import PolynomialFeatures

from separatrix import LinearDiscriminantAnalysis, LinearRegression

rng = np.random.default_rng(0)
y = np.repeat([0, 1, 2], 100)
x = 3.0 * y + rng.normal(scale=0.6, size=300)
line = np.linspace(x.min(), x.max(), 200)
lda = LinearDiscriminantAnalysis().fit(x[:, None], y)

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, degree in zip(axes, (1, 2), strict=True):
    phi = PolynomialFeatures(degree, include_bias=False)
    fitted = LinearRegression().fit(phi.fit_transform(x[:, None]), np.eye(3)[y])
    scores = fitted.predict(phi.transform(line[:, None]))
    assert np.allclose(scores.sum(axis=1), 1.0)
    right = np.mean(fitted.predict(phi.transform(x[:, None])).argmax(axis=1) == y)
    for k, style in enumerate(("-", "--", "-.")):
        ax.plot(line, scores[:, k], style, color=f"C{k}", label=f"fitted indicator of class {k}")
        ax.plot(x[y == k], np.full(100, -0.45 - 0.06 * k), "|", color=f"C{k}")
    ax.set(title=f"degree {degree}: {right:.0%} right (LDA: {lda.score(x[:, None], y):.0%})", xlabel="x")
axes[0].legend(loc="upper center")
plt.show()
