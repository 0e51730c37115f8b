"""
Generative against discriminative, as the rows become more
==========================================================

Naive Bayes models p(x | k) and is near its own limit after O(log d) rows; logistic regression models p(k | x) and needs
O(d), but its limit is the better one where columns depend on each other (Ng and Jordan 2002). The curves cross: with few
rows the wrong model that has less to learn wins; logistic regression is worst where the rows just stop being separable.
Error on other rows, mean of 12 draws with its standard error; dotted, the least that any rule can have.
"""

import matplotlib.pyplot as plt
import numpy as np

from separatrix import GaussianClasses, GaussianNB, LogisticRegression, bayes_risk

d = 30
pairs = np.kron(np.eye(d // 2), [[1.0, 0.5], [0.5, 1.0]])  # columns depend on each other in pairs
means = np.vstack([np.zeros(d), np.tile([0.5, 0.15], d // 2)])
truth = GaussianClasses(means, pairs)
sizes = [10, 20, 40, 80, 160, 400, 1000]
models = {"naive Bayes": GaussianNB(shared_variance=True), "logistic": LogisticRegression(C=1e4)}
test, y_test = truth.sample(4000, random_state=99)
errors = {name: np.zeros((12, len(sizes))) for name in models}
for draw in range(12):
    X, y = truth.sample(2000, random_state=draw)
    for j, n in enumerate(sizes):
        rows = np.concatenate([np.flatnonzero(y == k)[: n // 2] for k in (0, 1)])
        for name, model in models.items():
            errors[name][draw, j] = 1.0 - model.fit(X[rows], y[rows]).score(test, y_test)

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for (name, values), look in zip(errors.items(), ("o-", "s--"), strict=True):
    ax.errorbar(sizes, values.mean(axis=0), values.std(axis=0) / np.sqrt(12), fmt=look, capsize=2, label=name)
ax.axhline(bayes_risk(truth).estimate, color="grey", linestyle=":", label="Bayes risk")
ax.set(xscale="log", xlabel="rows to learn from", ylabel="share of other rows that are wrong", ylim=(0, None))
ax.legend()
plt.show()
