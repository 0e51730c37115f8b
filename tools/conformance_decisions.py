"""Tests of scikit-learn that our classes fail on purpose: a pattern of the test's name, and the decision."""

from __future__ import annotations

import re

_INTERCEPT = (
    "LIBLINEAR penalises the intercept of a logistic regression; ours is never penalised, whatever the solver's name."
)
_ACCEPTED = "What a solver of scikit-learn's cannot do and ours can is fitted, not refused."
_STEPS = "Other steps lead to the same optimum: counts of them, and points that a limit cuts off, are ours."
_CHANCE = "Nothing is drawn at random where the optimum does not depend on it."
_PRIVATE = (
    "Private attributes, and those that scikit-learn has deprecated, are not kept up: `_gamma`, `_n_support`, `probA_`."
)
_CALLBACKS = (
    "A fit that is watched by callbacks is handed back; one that is not, and is compared with it, has other steps."
)
_INPUTS = "An input is never overwritten, whatever `copy_X` says."
_ROUNDING = "Two fits of one problem, in other storage or another process, agree to the tolerance, not to the last bit."
_OPTIMUM = "Figures of a solver that stopped short of the optimum are not reproduced: ours goes there."
_REFUSED = "A refused fit leaves the model as it was, its classes too."
_SEPARABLE = "Where the classes are separable and nothing is penalised there is no optimum, and the fit says so."

DECISIONS: list[tuple[str, str]] = [
    (r"test_liblinear_dual_random_state", _CHANCE),
    (r"test_l1_min_c\[fit-intercept-log", _INTERCEPT),
    (r"test_dtype_match\[.*-True-liblinear", _INTERCEPT),
    (r"test_raises_value_error_if_positive_and_sparse", _ACCEPTED),
    (r"test_large_sparse_matrix", _ACCEPTED),
    (r"test_liblinear_with_large_values", _ACCEPTED),
    (r"test_ridge_fit_intercept_sparse_(error|sag)", _ACCEPTED),
    (r"test_qda_regularization", _ACCEPTED),
    (r"test_bad_input\[", _ACCEPTED),
    (r"test_inplace_data_preprocessing", _INPUTS),
    (r"test_newton_cholesky_fallback_to_lbfgs", _SEPARABLE),
    (r"test_logistic_regression_callback", _CALLBACKS),
    (r"test_logistic_cv_multinomial_score\[neg_log_loss", _OPTIMUM),
    (r"test_sag_(classifier|multiclass)_computed_correctly|test_binary_classifier_class_weight", _OPTIMUM),
    (r"test_step_size_alpha_error", _ACCEPTED),
    (r"test_discretenb_provide_prior\[", _REFUSED),
    (r"test_multiclass_multioutput_estimator_predict_proba", _OPTIMUM),
    (r"test_n_iter$", _STEPS),
    (r"test_lbfgs_solver_error", _STEPS),
    (r"test_libsvm_convergence_warnings", _STEPS),
    (r"test_linear_svm_convergence_warnings", _STEPS),
    (r"test_timeout\[", _STEPS),
    (r"test_max_iter\[", _STEPS),
    (
        r"test_tweak_params|test_gamma_scale|test_svc_raises_error_internal|test_svc_nusvc_probA|test_hasattr_predict",
        _PRIVATE,
    ),
    (r"test_sparse_realdata|test_rfe_cv_n_jobs", _ROUNDING),
    (r"test_validation_mask_correctly_subsets", _PRIVATE),
]


def decision_for(test: str) -> str | None:
    """The sentence for a test, if there is one."""
    return next((sentence for pattern, sentence in DECISIONS if re.match(pattern, test)), None)
