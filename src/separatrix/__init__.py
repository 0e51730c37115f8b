"""The whole family of linear classifiers in one place: fast, certified, at any size, drop-in for scikit-learn.

The estimators are loaded when they are first used, so that importing the package costs little however many there are.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import separatrix.models.generative  # noqa: F401  # what most estimators share, and with it SciPy and scikit-learn
from separatrix.data import Source, as_source, scan_csv, scan_parquet
from separatrix.geometry import Hyperplane, Quadric, Surface
from separatrix.result import Certificate, Fit, Status
from separatrix.settings import config
from separatrix.statistics import ClassMoments, Gram, condition_gaussian

if TYPE_CHECKING:
    from separatrix.decide.bayes_risk import GaussianClasses, bayes_risk
    from separatrix.decide.bayes_rule import BayesRule
    from separatrix.decide.calibration import Reliability, expected_calibration_error, reliability_diagram
    from separatrix.decide.one_vs_one import OneVsOneClassifier
    from separatrix.decide.one_vs_rest import OneVsRestClassifier
    from separatrix.decide.prior_shift import PriorEstimate, estimate_priors, shift_priors
    from separatrix.decide.regions import PlaneRegions, PosteriorRegions
    from separatrix.decide.risk import Risk, RiskCoverage, risk, risk_coverage_curve
    from separatrix.decide.summaries import posterior_summary
    from separatrix.decide.thresholds import CostCurve, cost_curve, threshold_for
    from separatrix.dual.kernels import (
        Kernel,
        LaplacianKernel,
        LinearKernel,
        PolynomialKernel,
        RBFKernel,
        SigmoidKernel,
    )
    from separatrix.geometry.counterfactual import Counterfactual, counterfactual
    from separatrix.geometry.regions import Adjacency, adjacency
    from separatrix.geometry.separability import Separability, canonical, geometric_margin, separability
    from separatrix.models.bernoulli_nb import BernoulliNB
    from separatrix.models.categorical_nb import CategoricalNB
    from separatrix.models.feature_map import FeatureMap
    from separatrix.models.fisher import FisherDiscriminant
    from separatrix.models.gaussian_nb import GaussianNB
    from separatrix.models.linear_classifier import LinearClassifier
    from separatrix.models.linear_discriminant import LinearDiscriminantAnalysis
    from separatrix.models.linear_svc import LinearSVC
    from separatrix.models.logistic import LogisticRegression, SeparationWarning
    from separatrix.models.logistic_cv import LogisticRegressionCV
    from separatrix.models.logistic_path import LogisticPath, logistic_path
    from separatrix.models.mixed_nb import MixedNB
    from separatrix.models.multinomial_nb import ComplementNB, MultinomialNB
    from separatrix.models.perceptron import Perceptron
    from separatrix.models.quadratic_discriminant import QuadraticDiscriminantAnalysis
    from separatrix.models.regularized_discriminant import RegularizedDiscriminantAnalysis
    from separatrix.models.ridge import LinearRegression, Ridge, ridge_path
    from separatrix.models.ridge_classifier import RidgeClassifier
    from separatrix.models.svc import SVC
    from separatrix.report.margin_losses import MarginLossDisplay

__version__ = "0.1.0"

__all__ = [
    "SVC",
    "Adjacency",
    "BayesRule",
    "BernoulliNB",
    "CategoricalNB",
    "Certificate",
    "ClassMoments",
    "ComplementNB",
    "CostCurve",
    "Counterfactual",
    "FeatureMap",
    "FisherDiscriminant",
    "Fit",
    "GaussianClasses",
    "GaussianNB",
    "Gram",
    "Hyperplane",
    "Kernel",
    "LaplacianKernel",
    "LinearClassifier",
    "LinearDiscriminantAnalysis",
    "LinearKernel",
    "LinearRegression",
    "LinearSVC",
    "LogisticPath",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MarginLossDisplay",
    "MixedNB",
    "MultinomialNB",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "Perceptron",
    "PlaneRegions",
    "PolynomialKernel",
    "PosteriorRegions",
    "PriorEstimate",
    "QuadraticDiscriminantAnalysis",
    "Quadric",
    "RBFKernel",
    "RegularizedDiscriminantAnalysis",
    "Reliability",
    "Ridge",
    "RidgeClassifier",
    "Risk",
    "RiskCoverage",
    "Separability",
    "SeparationWarning",
    "SigmoidKernel",
    "Source",
    "Status",
    "Surface",
    "adjacency",
    "as_source",
    "bayes_risk",
    "canonical",
    "condition_gaussian",
    "config",
    "cost_curve",
    "counterfactual",
    "estimate_priors",
    "expected_calibration_error",
    "geometric_margin",
    "logistic_path",
    "posterior_summary",
    "reliability_diagram",
    "ridge_path",
    "risk",
    "risk_coverage_curve",
    "scan_csv",
    "scan_parquet",
    "separability",
    "shift_priors",
    "threshold_for",
]

_HOMES = {
    "decide.bayes_risk": ["GaussianClasses", "bayes_risk"],
    "decide.bayes_rule": ["BayesRule"],
    "decide.calibration": ["Reliability", "expected_calibration_error", "reliability_diagram"],
    "decide.one_vs_one": ["OneVsOneClassifier"],
    "decide.one_vs_rest": ["OneVsRestClassifier"],
    "decide.prior_shift": ["PriorEstimate", "estimate_priors", "shift_priors"],
    "decide.regions": ["PlaneRegions", "PosteriorRegions"],
    "decide.risk": ["Risk", "RiskCoverage", "risk", "risk_coverage_curve"],
    "decide.summaries": ["posterior_summary"],
    "decide.thresholds": ["CostCurve", "cost_curve", "threshold_for"],
    "models.bernoulli_nb": ["BernoulliNB"],
    "models.categorical_nb": ["CategoricalNB"],
    "models.feature_map": ["FeatureMap"],
    "models.fisher": ["FisherDiscriminant"],
    "models.gaussian_nb": ["GaussianNB"],
    "models.linear_classifier": ["LinearClassifier"],
    "models.linear_discriminant": ["LinearDiscriminantAnalysis"],
    "models.logistic": ["LogisticRegression", "SeparationWarning"],
    "models.logistic_cv": ["LogisticRegressionCV"],
    "models.logistic_path": ["LogisticPath", "logistic_path"],
    "models.mixed_nb": ["MixedNB"],
    "models.multinomial_nb": ["ComplementNB", "MultinomialNB"],
    "models.perceptron": ["Perceptron"],
    "models.quadratic_discriminant": ["QuadraticDiscriminantAnalysis"],
    "models.regularized_discriminant": ["RegularizedDiscriminantAnalysis"],
    "models.ridge": ["LinearRegression", "Ridge", "ridge_path"],
    "models.ridge_classifier": ["RidgeClassifier"],
    "geometry.counterfactual": ["Counterfactual", "counterfactual"],
    "geometry.regions": ["Adjacency", "adjacency"],
    "models.linear_svc": ["LinearSVC"],
    "models.svc": ["SVC"],
    "dual.kernels": ["Kernel", "LaplacianKernel", "LinearKernel", "PolynomialKernel", "RBFKernel", "SigmoidKernel"],
    "report.margin_losses": ["MarginLossDisplay"],
    "geometry.separability": ["Separability", "canonical", "geometric_margin", "separability"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'separatrix' has no attribute {name!r}")
    value = getattr(import_module(f"separatrix.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
