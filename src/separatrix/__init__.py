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
    from separatrix.models.bernoulli_nb import BernoulliNB
    from separatrix.models.categorical_nb import CategoricalNB
    from separatrix.models.feature_map import FeatureMap
    from separatrix.models.fisher import FisherDiscriminant
    from separatrix.models.gaussian_nb import GaussianNB
    from separatrix.models.linear_discriminant import LinearDiscriminantAnalysis
    from separatrix.models.logistic import LogisticRegression, SeparationWarning
    from separatrix.models.logistic_cv import LogisticRegressionCV
    from separatrix.models.logistic_path import LogisticPath, logistic_path
    from separatrix.models.mixed_nb import MixedNB
    from separatrix.models.multinomial_nb import ComplementNB, MultinomialNB
    from separatrix.models.quadratic_discriminant import QuadraticDiscriminantAnalysis
    from separatrix.models.regularized_discriminant import RegularizedDiscriminantAnalysis
    from separatrix.models.ridge import LinearRegression, Ridge, ridge_path
    from separatrix.models.ridge_classifier import RidgeClassifier

__version__ = "0.1.0"

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "Certificate",
    "ClassMoments",
    "ComplementNB",
    "FeatureMap",
    "FisherDiscriminant",
    "Fit",
    "GaussianNB",
    "Gram",
    "Hyperplane",
    "LinearDiscriminantAnalysis",
    "LinearRegression",
    "LogisticPath",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MixedNB",
    "MultinomialNB",
    "QuadraticDiscriminantAnalysis",
    "Quadric",
    "RegularizedDiscriminantAnalysis",
    "Ridge",
    "RidgeClassifier",
    "SeparationWarning",
    "Source",
    "Status",
    "Surface",
    "as_source",
    "condition_gaussian",
    "config",
    "logistic_path",
    "ridge_path",
    "scan_csv",
    "scan_parquet",
]

_HOMES = {
    "bernoulli_nb": ["BernoulliNB"],
    "categorical_nb": ["CategoricalNB"],
    "feature_map": ["FeatureMap"],
    "fisher": ["FisherDiscriminant"],
    "gaussian_nb": ["GaussianNB"],
    "linear_discriminant": ["LinearDiscriminantAnalysis"],
    "logistic": ["LogisticRegression", "SeparationWarning"],
    "logistic_cv": ["LogisticRegressionCV"],
    "logistic_path": ["LogisticPath", "logistic_path"],
    "mixed_nb": ["MixedNB"],
    "multinomial_nb": ["ComplementNB", "MultinomialNB"],
    "quadratic_discriminant": ["QuadraticDiscriminantAnalysis"],
    "regularized_discriminant": ["RegularizedDiscriminantAnalysis"],
    "ridge": ["LinearRegression", "Ridge", "ridge_path"],
    "ridge_classifier": ["RidgeClassifier"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'separatrix' has no attribute {name!r}")
    value = getattr(import_module(f"separatrix.models.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
