"""
A loss matrix, a price for asking, and other priors
===================================================

Take the action with the least Σ_k L[k, a] p(k | x); where that exceeds the price of a rejection, ask. The same
probabilities give three rules: the likeliest class; the same where only one row in twenty is malignant, which moves the
line up; and a miss ten times as costly as a false alarm, with a second opinion for 0.5 where p is between 0.05 and 0.5
(hatched).
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from separatrix import BayesRule, LogisticRegression
from separatrix.plots import DecisionBoundaryDisplay

data = load_breast_cancer(as_frame=True)
X, y = data.data[["mean texture", "mean concave points"]], data.target.map({0: "malignant", 1: "benign"})
loss = {"benign": {"benign": 0, "malignant": 1}, "malignant": {"benign": 10, "malignant": 0}}
plain = BayesRule(LogisticRegression(C=1e4)).fit(X, y)
rules = {
    "the likeliest class": plain,
    "5 % malignant": plain.with_priors([0.95, 0.05]),
    "a miss costs 10, asking 0.5": BayesRule(LogisticRegression(C=1e4), loss, reject_cost=0.5).fit(X, y),
}
figure, axes = plt.subplots(1, 3, figsize=(13, 4), sharey=True, layout="constrained")
for ax, (name, rule) in zip(axes, rules.items(), strict=True):
    DecisionBoundaryDisplay.from_estimator(rule, X, y, ax=ax)
    ax.set_title(name)
    if ax is not axes[2]:
        ax.get_legend().remove()
print({name: rule.decision_regions().breakpoints.round(3) for name, rule in rules.items()})
plt.show()
