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
    from separatrix.comparison.comparison import Comparison, compare
    from separatrix.comparison.table_model import TableModel
    from separatrix.decide.bayes_risk import GaussianClasses, bayes_risk
    from separatrix.decide.bayes_rule import BayesRule
    from separatrix.decide.calibration import Reliability, expected_calibration_error, reliability_diagram
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
    from separatrix.export.json_form import to_json
    from separatrix.export.model_file import inspect_model, load_model, save_model
    from separatrix.export.onnx_graph import to_onnx
    from separatrix.export.sql import to_sql
    from separatrix.geometry.counterfactual import Counterfactual, counterfactual
    from separatrix.geometry.regions import Adjacency, adjacency
    from separatrix.geometry.separability import Separability, canonical, geometric_margin, separability
    from separatrix.models.bayesian.bayesian_logistic import BayesianLogisticRegression
    from separatrix.models.discriminant.fisher import FisherDiscriminant
    from separatrix.models.discriminant.linear_discriminant import LinearDiscriminantAnalysis
    from separatrix.models.discriminant.quadratic_discriminant import QuadraticDiscriminantAnalysis
    from separatrix.models.discriminant.regularized_discriminant import RegularizedDiscriminantAnalysis
    from separatrix.models.feature_map import FeatureMap
    from separatrix.models.least_squares.ridge import LinearRegression, Ridge, ridge_path
    from separatrix.models.least_squares.ridge_classifier import RidgeClassifier
    from separatrix.models.logistic.cross_validation import LogisticRegressionCV
    from separatrix.models.logistic.logistic_regression import LogisticRegression, SeparationWarning
    from separatrix.models.logistic.path import LogisticPath, logistic_path
    from separatrix.models.margin.linear_classifier import LinearClassifier
    from separatrix.models.multiclass.one_vs_one import OneVsOneClassifier
    from separatrix.models.multiclass.one_vs_rest import OneVsRestClassifier
    from separatrix.models.naive_bayes.bernoulli_nb import BernoulliNB
    from separatrix.models.naive_bayes.categorical_nb import CategoricalNB
    from separatrix.models.naive_bayes.gaussian_nb import GaussianNB
    from separatrix.models.naive_bayes.mixed_nb import MixedNB
    from separatrix.models.naive_bayes.multinomial_nb import ComplementNB, MultinomialNB
    from separatrix.models.perceptron.perceptron import Perceptron
    from separatrix.models.svm.linear_svc import LinearSVC
    from separatrix.models.svm.svc import SVC
    from separatrix.plots import (
        CalibrationDisplay,
        CoefficientDisplay,
        CoefficientPathDisplay,
        DecisionBoundaryDisplay,
        DiscriminantCoordinatesDisplay,
        MarginLossDisplay,
        PosteriorPredictiveDisplay,
        RiskCoverageDisplay,
        ScoreDistributionDisplay,
    )
    from separatrix.report.page import write_report
    from separatrix.tables.reading import read_table, table_batches
    from separatrix.tables.schema import TableSchema

__version__ = "0.1.0"

__all__ = [
    "SVC",
    "Adjacency",
    "BayesRule",
    "BayesianLogisticRegression",
    "BernoulliNB",
    "CalibrationDisplay",
    "CategoricalNB",
    "Certificate",
    "ClassMoments",
    "CoefficientDisplay",
    "CoefficientPathDisplay",
    "Comparison",
    "ComplementNB",
    "CostCurve",
    "Counterfactual",
    "DecisionBoundaryDisplay",
    "DiscriminantCoordinatesDisplay",
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
    "PosteriorPredictiveDisplay",
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
    "RiskCoverageDisplay",
    "ScoreDistributionDisplay",
    "Separability",
    "SeparationWarning",
    "SigmoidKernel",
    "Source",
    "Status",
    "Surface",
    "TableModel",
    "TableSchema",
    "adjacency",
    "as_source",
    "bayes_risk",
    "canonical",
    "compare",
    "condition_gaussian",
    "config",
    "cost_curve",
    "counterfactual",
    "estimate_priors",
    "expected_calibration_error",
    "geometric_margin",
    "inspect_model",
    "load_model",
    "logistic_path",
    "posterior_summary",
    "read_table",
    "reliability_diagram",
    "ridge_path",
    "risk",
    "risk_coverage_curve",
    "save_model",
    "scan_csv",
    "scan_parquet",
    "separability",
    "shift_priors",
    "table_batches",
    "threshold_for",
    "to_json",
    "to_onnx",
    "to_sql",
    "write_report",
]

_HOMES = {
    "comparison.comparison": ["Comparison", "compare"],
    "comparison.table_model": ["TableModel"],
    "decide.bayes_risk": ["GaussianClasses", "bayes_risk"],
    "decide.bayes_rule": ["BayesRule"],
    "decide.calibration": ["Reliability", "expected_calibration_error", "reliability_diagram"],
    "models.multiclass.one_vs_one": ["OneVsOneClassifier"],
    "models.multiclass.one_vs_rest": ["OneVsRestClassifier"],
    "decide.prior_shift": ["PriorEstimate", "estimate_priors", "shift_priors"],
    "decide.regions": ["PlaneRegions", "PosteriorRegions"],
    "decide.risk": ["Risk", "RiskCoverage", "risk", "risk_coverage_curve"],
    "decide.summaries": ["posterior_summary"],
    "decide.thresholds": ["CostCurve", "cost_curve", "threshold_for"],
    "export.json_form": ["to_json"],
    "export.model_file": ["inspect_model", "load_model", "save_model"],
    "export.onnx_graph": ["to_onnx"],
    "export.sql": ["to_sql"],
    "models.bayesian.bayesian_logistic": ["BayesianLogisticRegression"],
    "models.naive_bayes.bernoulli_nb": ["BernoulliNB"],
    "models.naive_bayes.categorical_nb": ["CategoricalNB"],
    "models.feature_map": ["FeatureMap"],
    "models.discriminant.fisher": ["FisherDiscriminant"],
    "models.naive_bayes.gaussian_nb": ["GaussianNB"],
    "models.margin.linear_classifier": ["LinearClassifier"],
    "models.discriminant.linear_discriminant": ["LinearDiscriminantAnalysis"],
    "models.logistic.logistic_regression": ["LogisticRegression", "SeparationWarning"],
    "models.logistic.cross_validation": ["LogisticRegressionCV"],
    "models.logistic.path": ["LogisticPath", "logistic_path"],
    "models.naive_bayes.mixed_nb": ["MixedNB"],
    "models.naive_bayes.multinomial_nb": ["ComplementNB", "MultinomialNB"],
    "models.perceptron.perceptron": ["Perceptron"],
    "models.discriminant.quadratic_discriminant": ["QuadraticDiscriminantAnalysis"],
    "models.discriminant.regularized_discriminant": ["RegularizedDiscriminantAnalysis"],
    "models.least_squares.ridge": ["LinearRegression", "Ridge", "ridge_path"],
    "models.least_squares.ridge_classifier": ["RidgeClassifier"],
    "geometry.counterfactual": ["Counterfactual", "counterfactual"],
    "geometry.regions": ["Adjacency", "adjacency"],
    "models.svm.linear_svc": ["LinearSVC"],
    "models.svm.svc": ["SVC"],
    "dual.kernels": ["Kernel", "LaplacianKernel", "LinearKernel", "PolynomialKernel", "RBFKernel", "SigmoidKernel"],
    "plots": [
        "CalibrationDisplay",
        "CoefficientDisplay",
        "CoefficientPathDisplay",
        "DecisionBoundaryDisplay",
        "DiscriminantCoordinatesDisplay",
        "MarginLossDisplay",
        "PosteriorPredictiveDisplay",
        "RiskCoverageDisplay",
        "ScoreDistributionDisplay",
    ],
    "report.page": ["write_report"],
    "geometry.separability": ["Separability", "canonical", "geometric_margin", "separability"],
    "tables.reading": ["read_table", "table_batches"],
    "tables.schema": ["TableSchema"],
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
