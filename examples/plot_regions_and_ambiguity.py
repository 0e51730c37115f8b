"""
Regions, and where machines for two classes contradict each other
=================================================================

A rule argmax f_k(x) gives every point one class, and its regions are convex where f is linear (right). One machine for each
class, "f_k(x) > 0: it is k", leaves points that several claim, and points that none does (left, hatched). The data are
three clouds in a triangle; every row is right in both pictures, so only the picture tells them apart.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from separatrix import LogisticRegression, OneVsRestClassifier
from separatrix.plots import DecisionBoundaryDisplay

X, y = make_blobs(150, centers=[[0, 0], [4, 0], [2, 3.5]], cluster_std=0.6, random_state=0)
rules = {
    "one against the rest": OneVsRestClassifier(LogisticRegression()).fit(X, y),
    "one softmax": LogisticRegression().fit(X, y),
}
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (name, rule) in zip(axes, rules.items(), strict=True):
    DecisionBoundaryDisplay.from_estimator(rule, X, y, eps=2.0, ax=ax)
    ax.set_title(f"{name}: {rule.score(X, y):.0%} right")
print(rules["one against the rest"].indeterminate(X))
plt.show()
