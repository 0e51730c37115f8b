"""
The L1 path: columns enter one by one
=====================================

Minimise C Σ log(1 + e^{−tᵢf(xᵢ)}) + ‖w‖₁. A coefficient is exactly 0 while the slope of its column is less than 1/C; as C
grows (to the right), columns enter one after another and some leave again. The dashed line is the C that five-fold
cross-validation takes. Every point of the path has its certificate: no other w is better by more than the gap printed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from separatrix import LogisticRegressionCV, logistic_path
from separatrix.plots import CoefficientPathDisplay

data = load_breast_cancer(as_frame=True)
X, y = (data.data - data.data.mean()) / data.data.std(), data.target
Cs = np.logspace(-2.5, 0.5, 25)
path = logistic_path(X, y, Cs=Cs, l1_ratio=1.0)
chosen = LogisticRegressionCV(Cs=Cs, l1_ratios=[1.0], cv=5, scoring="neg_log_loss").fit(X, y)
print("columns that are in:", (path.coefs[:, 0] != 0).sum(axis=1))
print("largest gap:", max(certificate.gap for certificate in path.certificates))

figure, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
CoefficientPathDisplay.from_path(path, feature_names=list(X), ax=ax)
ax.axvline(chosen.C_, color="grey", linestyle="--")
ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
ax.set_title(f"cross-validation: C = {chosen.C_:.2g}, {np.count_nonzero(chosen.coef_)} of {X.shape[1]} columns")
plt.show()
