"""The whole family of linear classifiers in one place: fast, certified, at any size, drop-in for scikit-learn.

Here are the estimators and what most work needs; the rest is in the modules

- `separatrix.models`: the estimators by family, and the paths of penalties
- `separatrix.comparison`: tables in, rankings out
- `separatrix.decide`: losses, risk, calibration, thresholds, changed priors
- `separatrix.geometry`: boundaries, score forms, margins, separability, counterfactuals
- `separatrix.plots`: displays
- `separatrix.algebra`: softmax and its derivatives, log-odds, Laplace's approximation of any density
- `separatrix.inference`: tables of coefficients with their tests and intervals
- `separatrix.export`: model files, SQL, ONNX, JSON
- `separatrix.drop_in`: scikit-learn's classes become ours
- `separatrix.tables`, `separatrix.data`: columns of mixed kinds; rows from arrays, frames and files
- `separatrix.statistics`, `separatrix.objectives`, `separatrix.solvers`, `separatrix.dual`: what the models are made of

Names are imported when they are first used, so that importing the package costs little however many there are.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.comparison import Comparison, TableModel, compare
    from separatrix.data import Source, as_source
    from separatrix.decide import (
        BayesRule,
        GaussianClasses,
        bayes_risk,
        cost_curve,
        estimate_priors,
        posterior_summary,
        risk,
        risk_coverage_curve,
        shift_priors,
        threshold_for,
    )
    from separatrix.drop_in import accelerate, accelerated, restore
    from separatrix.drop_in.notebook import load_ipython_extension as load_ipython_extension
    from separatrix.drop_in.notebook import unload_ipython_extension as unload_ipython_extension
    from separatrix.dual import Kernel, LaplacianKernel, LinearKernel, PolynomialKernel, RBFKernel, SigmoidKernel
    from separatrix.export import inspect_model, load_model, save_model, to_json, to_onnx, to_sql
    from separatrix.geometry import counterfactual, separability
    from separatrix.models import (
        SVC,
        BayesianLogisticRegression,
        BernoulliNB,
        CategoricalNB,
        ComplementNB,
        FeatureMap,
        FisherDiscriminant,
        GaussianNB,
        LinearClassifier,
        LinearDiscriminantAnalysis,
        LinearRegression,
        LinearSVC,
        LogisticRegression,
        LogisticRegressionCV,
        MixedNB,
        MultinomialNB,
        NearestCentroid,
        NuSVC,
        OneVsOneClassifier,
        OneVsRestClassifier,
        OrderedLogisticRegression,
        PassiveAggressiveClassifier,
        Perceptron,
        QuadraticDiscriminantAnalysis,
        RegularizedDiscriminantAnalysis,
        Ridge,
        RidgeClassifier,
        RidgeClassifierCV,
        RidgeCV,
        SeparationWarning,
        SGDClassifier,
        logistic_path,
        ridge_path,
    )
    from separatrix.plots import DecisionBoundaryDisplay
    from separatrix.report.page import write_report
    from separatrix.result import Certificate, Fit, Status
    from separatrix.settings import config
    from separatrix.statistics import condition_gaussian
    from separatrix.tables import read_table, scan_csv, scan_parquet, scan_spark
else:
    _MODULES = [
        "algebra",
        "comparison",
        "data",
        "decide",
        "drop_in",
        "export",
        "geometry",
        "inference",
        "models",
        "plots",
        "tables",
    ]
    _MODULES += ["dual", "objectives", "solvers", "statistics"]  # what the models are made of
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__version__ = "0.1.0"

__all__ = [
    "FisherDiscriminant",
    "LinearDiscriminantAnalysis",
    "NearestCentroid",
    "QuadraticDiscriminantAnalysis",
    "RegularizedDiscriminantAnalysis",
]
__all__ += ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MixedNB", "MultinomialNB"]
__all__ += ["LinearRegression", "Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV", "ridge_path"]
__all__ += [
    "BayesianLogisticRegression",
    "LogisticRegression",
    "LogisticRegressionCV",
    "OrderedLogisticRegression",
    "SeparationWarning",
    "logistic_path",
]
__all__ += [
    "SVC",
    "LinearClassifier",
    "LinearSVC",
    "NuSVC",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "SGDClassifier",
]
__all__ += ["Kernel", "LaplacianKernel", "LinearKernel", "PolynomialKernel", "RBFKernel", "SigmoidKernel"]
__all__ += ["BayesRule", "FeatureMap", "OneVsOneClassifier", "OneVsRestClassifier", "TableModel"]
__all__ += ["Source", "as_source", "read_table", "scan_csv", "scan_parquet", "scan_spark"]
__all__ += ["Certificate", "Fit", "Status", "config"]
__all__ += ["accelerate", "accelerated", "restore"]
__all__ += ["Comparison", "compare", "write_report"]
__all__ += ["inspect_model", "load_model", "save_model", "to_json", "to_onnx", "to_sql"]
__all__ += ["GaussianClasses", "bayes_risk", "cost_curve", "risk", "risk_coverage_curve", "threshold_for"]
__all__ += ["estimate_priors", "posterior_summary", "shift_priors"]
__all__ += ["DecisionBoundaryDisplay", "condition_gaussian", "counterfactual", "separability"]
