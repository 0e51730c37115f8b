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
    from separatrix.geometry.separability import Separability, canonical, geometric_margin, separability
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
    "Separability",
    "SeparationWarning",
    "Source",
    "Status",
    "Surface",
    "as_source",
    "canonical",
    "condition_gaussian",
    "config",
    "geometric_margin",
    "logistic_path",
    "ridge_path",
    "scan_csv",
    "scan_parquet",
    "separability",
]

_HOMES = {
    "models.bernoulli_nb": ["BernoulliNB"],
    "models.categorical_nb": ["CategoricalNB"],
    "models.feature_map": ["FeatureMap"],
    "models.fisher": ["FisherDiscriminant"],
    "models.gaussian_nb": ["GaussianNB"],
    "models.linear_discriminant": ["LinearDiscriminantAnalysis"],
    "models.logistic": ["LogisticRegression", "SeparationWarning"],
    "models.logistic_cv": ["LogisticRegressionCV"],
    "models.logistic_path": ["LogisticPath", "logistic_path"],
    "models.mixed_nb": ["MixedNB"],
    "models.multinomial_nb": ["ComplementNB", "MultinomialNB"],
    "models.quadratic_discriminant": ["QuadraticDiscriminantAnalysis"],
    "models.regularized_discriminant": ["RegularizedDiscriminantAnalysis"],
    "models.ridge": ["LinearRegression", "Ridge", "ridge_path"],
    "models.ridge_classifier": ["RidgeClassifier"],
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
