"""
Separable classes: maximum likelihood diverges, priors keep it finite
=====================================================================

If a plane separates the classes, Σ log σ(tᵢ(wx + b)) rises without bound along it; the fit names the column. A ridge
prior, Firth's ½ log|I(w)| and a Bayesian average give finite answers. Left: the likelihood along the direction that was
found. Right: the probabilities; the average over the posterior is the most cautious, far from the rows and between them.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from separatrix import BayesianLogisticRegression, LogisticRegression, SeparationWarning, separability

X, y = np.array([[-2.5], [-2.0], [-1.2], [-0.5], [0.6], [1.1], [1.9], [2.6]]), np.repeat([0, 1], 4)
verdict = separability(X, y)
print(verdict)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", SeparationWarning)  # which is what this page is about
    mle = LogisticRegression(C=np.inf).fit(X, y)
models = {"L2, C = 1": LogisticRegression(C=1.0), "Firth": LogisticRegression(penalty="firth")}
models["Bayes, N(0, 10²)"] = BayesianLogisticRegression(0.01, predictive="quadrature")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
scale, (w, b) = np.linspace(0.0, 12.0, 100), verdict.direction
margins = (2 * y - 1) * (X @ w[0] + b[0])
left.plot(scale, -np.logaddexp(0.0, -np.outer(scale, margins)).sum(axis=1))
left.set(xlabel="length along the separating direction", ylabel="log-likelihood", title=f"MLE: {mle.fit_.status.name}")
line = np.linspace(-4, 4, 200)[:, None]
right.step([-4, 0, 4], [0, 1, 1], where="post", color="grey", linestyle=":", label="MLE, in the limit")
for (name, model), look in zip(models.items(), ("-", "--", "-."), strict=True):
    right.plot(line, model.fit(X, y).predict_proba(line)[:, 1], look, label=name)
right.plot(X[:, 0], y, "|", color="grey", markersize=12)
right.set(xlabel="x", ylabel="p(1 | x)")
right.legend()
plt.show()
