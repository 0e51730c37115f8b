"""
Naive Bayes by hand: smoothing, columns of two kinds, missing values
====================================================================

log p(k | x) = log π_k + Σ_j log p(x_j | k) + const: every column adds its own term, a missing value adds none. A category has
probability (n_kv + α)/(n_k + αV): α = 0 forbids for ever what was never seen, a large α makes all alike (left). Right: what
each column says for each species of one penguin whose bill was not measured; the bars and the priors add up to the model's
score.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from separatrix import MixedNB

data = next(folder for folder in (Path("data"), Path("examples/data")) if folder.exists())
table = pd.read_csv(data / "penguins.csv")[["species", "island", "bill_length_mm", "body_mass_g"]]
X, y = table.drop(columns="species"), table["species"]
model = MixedNB(alpha=1.0).fit(X, y)
gentoo = X["island"][y == "Gentoo"]  # none of them was seen on Dream or Torgersen
alphas = np.logspace(-3, 3, 50)
on_dream = [((gentoo == "Dream").sum() + a) / (len(gentoo) + 3 * a) for a in alphas]
one = pd.DataFrame({"island": ["Dream"], "bill_length_mm": [np.nan], "body_mass_g": [5000.0]})
terms = model.feature_log_odds(one)[0]
assert np.isclose(terms[0, 2], np.log((0 + 1) / (len(gentoo) + 3))) and not terms[1].any()
assert np.allclose(terms.sum(axis=0) + model.class_log_prior_, model.predict_joint_log_proba(one))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.loglog(alphas, on_dream)
left.axhline(1 / 3, color="grey", linestyle=":")
left.set(xlabel="α", ylabel="p(Dream | Gentoo)", title="an event that was not seen")
for k, name in enumerate(model.classes_):
    right.bar(np.arange(3) + 0.27 * (k - 1), terms[:, k], 0.25, color=f"C{k}", hatch=("", "//", "..")[k], label=name)
right.set(xticks=range(3), xticklabels=["Dream", "bill: not measured", "5000 g"], ylabel="log p(value | species)")
right.set_title(f"together: {model.predict(one)[0]} ({model.predict_proba(one).max():.0%})")
right.legend()
plt.show()
