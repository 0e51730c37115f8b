"""What differs from scikit-learn's classes on purpose: classes, kind, names, and the decision."""

from __future__ import annotations

_AUTO = "The default finds the cheapest way by itself; scikit-learn's names are accepted and mean the same optimum."
_TOMORROW = "Defaults that scikit-learn has deprecated, or is about to change, are already what they will be."
_CALLBACKS = (
    "scikit-learn's callbacks are told of every step of its L-BFGS, with a model of that step's coefficients; ours takes other "
    "steps, or none. Under the swap a fit with callbacks is handed back."
)
_DOUBLE = (
    "Whatever the precision of the rows, what is fitted is found, certified and kept in double precision (under the swap it "
    "is shown in that of the rows)."
)
_SINGLE = "Answers for rows of float32 are float32 throughout, for two classes as for three."
_STEPS = "The closed form counts its steps too: none. Under the swap it is None, as in scikit-learn."
_MATRIX = (
    "Coefficients of two classes are a matrix of one row, as those of every other classifier (under the swap a vector)."
)
_DEPRECATED = "Deprecated in scikit-learn 1.9: `calibration` and `CalibratedClassifierCV` make probabilities."
_DENSE = "Planes of a kernel machine are few and dense; under the swap they are sparse where the rows are."
_TIES = "Rows that lie exactly on the margin may have a multiplier or none: the same machine, another list of rows."
_ROWS = "Support vectors are rows of X as they were given, in their precision."
_INTERCEPT = "None: the intercept is not penalised. A number means LIBLINEAR's column of that value, as under the swap."

DECISIONS: list[tuple[str, str, str, str]] = [
    ("LogisticRegression LogisticRegressionCV", "default", "solver", _AUTO),
    (
        *("LogisticRegression LogisticRegressionCV", "default"),
        *("penalty l1_ratios scoring use_legacy_attributes", _TOMORROW),
    ),
    ("LogisticRegression LogisticRegressionCV", "method", "set_callbacks", _CALLBACKS),
    (
        *("LogisticRegression Perceptron SGDClassifier PassiveAggressiveClassifier", "attribute"),
        *("coef_ intercept_", _DOUBLE),
    ),
    ("LinearRegression", "attribute", "singular_", _DOUBLE),
    ("LinearDiscriminantAnalysis", "attribute", "covariance_ priors_", _DOUBLE),
    ("QuadraticDiscriminantAnalysis", "attribute", "covariance_ means_ rotations_ scalings_", _DOUBLE),
    ("GaussianNB", "attribute", "class_count_ class_prior_ theta_ var_", _DOUBLE),
    ("Perceptron SGDClassifier PassiveAggressiveClassifier", "answer", "decision_function", _SINGLE),
    ("SGDClassifier", "answer", "predict_proba predict_log_proba", _SINGLE),
    ("Ridge RidgeClassifier", "attribute", "n_iter_", _STEPS),
    ("RidgeClassifier RidgeClassifierCV", "attribute", "coef_", _MATRIX),
    ("SVC NuSVC", "attribute", "probA_ probB_", _DEPRECATED),
    ("SVC NuSVC", "attribute", "coef_", _DENSE),
    ("SVC", "attribute", "support_vectors_", _ROWS),
    ("NuSVC", "attribute", "dual_coef_ support_ support_vectors_", _TIES),
    ("LinearSVC", "default", "intercept_scaling", _INTERCEPT),
]

# Of most classes, so that they are not repeated for each.
ADDITIONS = (
    *("fit_", "boundary()", "linear_form()", "signed_distance()", "transform()", "score_form()"),
    *("partial_fit()", "merge()", "fit_statistic()", "reads_statistic()", "statistic_of()"),
)
