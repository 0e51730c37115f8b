"""
Are the probabilities frequencies?
==================================

Among the rows with p ≈ 0.8, 80 % should be positive. Naive Bayes counts dependent columns several times and is far too
sure: its curve is flat in the middle (left). A sigmoid fitted to held-out scores, σ(A log-odds + B), repairs most of it.
Right: what that is worth. The risk of the rows kept, when the least certain are rejected, under a loss where a miss costs
five.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from separatrix import GaussianNB, LogisticRegression
from separatrix.plots import CalibrationDisplay, RiskCoverageDisplay

X, y = make_classification(4000, 20, n_informative=4, n_redundant=12, class_sep=0.6, random_state=2)
train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
models = {
    "naive Bayes": GaussianNB(),
    "… calibrated": CalibratedClassifierCV(GaussianNB(), method="sigmoid"),
    "logistic": LogisticRegression(),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for name, model in models.items():
    model.fit(train, y_train)
    shown = CalibrationDisplay.from_estimator(model, test, y_test, name=name, ax=left)
    RiskCoverageDisplay.from_estimator(model, test, y_test, loss=[[0, 1], [5, 0]], name=name, ax=right)
    print(f"{name}: expected calibration error {shown.reliability.error:.3f}")
plt.show()
