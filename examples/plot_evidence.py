"""
The evidence chooses the prior
==============================

log p(D | α) ≈ log p(D | ŵ) + log p(ŵ | α) + ½M log 2π − ½ log|H|: fit, surprise of the prior, and Occam's factor. A small
precision α fits best and is punished by log|H|, a large one cannot fit; the evidence has its maximum between them (left),
near where rows that were held out are predicted best (right). One fit with prior_precision="evidence" goes there by itself.
"""

import matplotlib.pyplot as plt
import numpy as np

from separatrix import BayesianLogisticRegression

rng = np.random.default_rng(3)
X, w = rng.normal(size=(3000, 20)), rng.normal(scale=0.5, size=20)  # weights of precision 1/0.5² = 4
y = (X @ w > rng.logistic(size=3000)).astype(int)
train, test = np.arange(120), np.arange(120, 3000)
alphas = np.logspace(-3, 3, 19)
fits = [BayesianLogisticRegression(a, posterior="laplace").fit(X[train], y[train]) for a in alphas]
found = BayesianLogisticRegression(posterior="laplace").fit(X[train], y[train])
evidence = [model.log_evidence_ for model in fits]
held_out = [np.mean(np.log(model.predict_proba(X[test])[np.arange(len(test)), y[test]])) for model in fits]

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
titles = {"log evidence of the rows": evidence, "mean log-probability of other rows": held_out}
for ax, (title, values) in zip(axes, titles.items(), strict=True):
    ax.semilogx(alphas, values, "o-", markersize=4)
    ax.axvline(found.prior_precision_, color="grey", linestyle="--", label=f"found: α = {found.prior_precision_:.2g}")
    ax.set(xlabel="prior precision α", title=title)
axes[0].legend()
assert found.log_evidence_ >= max(evidence) - 1e-3
plt.show()
