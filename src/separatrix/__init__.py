"""The whole family of linear classifiers in one place: fast, certified, at any size, drop-in for scikit-learn."""

from separatrix.data import Source, as_source, scan_csv, scan_parquet
from separatrix.geometry import Hyperplane, Quadric, Surface
from separatrix.models.bernoulli_nb import BernoulliNB
from separatrix.models.categorical_nb import CategoricalNB
from separatrix.models.feature_map import FeatureMap
from separatrix.models.fisher import FisherDiscriminant
from separatrix.models.gaussian_nb import GaussianNB
from separatrix.models.linear_discriminant import LinearDiscriminantAnalysis
from separatrix.models.mixed_nb import MixedNB
from separatrix.models.multinomial_nb import ComplementNB, MultinomialNB
from separatrix.models.quadratic_discriminant import QuadraticDiscriminantAnalysis
from separatrix.models.regularized_discriminant import RegularizedDiscriminantAnalysis
from separatrix.models.ridge import LinearRegression, Ridge, ridge_path
from separatrix.models.ridge_classifier import RidgeClassifier
from separatrix.result import Certificate, Fit, Status
from separatrix.settings import config
from separatrix.statistics import ClassMoments, Gram, condition_gaussian

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
    "MixedNB",
    "MultinomialNB",
    "QuadraticDiscriminantAnalysis",
    "Quadric",
    "RegularizedDiscriminantAnalysis",
    "Ridge",
    "RidgeClassifier",
    "Source",
    "Status",
    "Surface",
    "as_source",
    "condition_gaussian",
    "config",
    "ridge_path",
    "scan_csv",
    "scan_parquet",
]
