"""The estimators users import, a folder per family.

- discriminant: `LinearDiscriminantAnalysis`, `QuadraticDiscriminantAnalysis`, `RegularizedDiscriminantAnalysis`,
  `FisherDiscriminant`, `NearestCentroid`
- naive_bayes: `GaussianNB`, `MultinomialNB`, `ComplementNB`, `BernoulliNB`, `CategoricalNB`, `MixedNB`
- least_squares: `LinearRegression`, `Ridge`, `RidgeCV`, `RidgeClassifier`, `RidgeClassifierCV`; the path: `ridge_path`,
  `RidgePath`
- logistic: `LogisticRegression`, `LogisticRegressionCV`, `SeparationWarning`; the path: `logistic_path`, `LogisticPath`
- ordered: `OrderedLogisticRegression`
- bayesian: `BayesianLogisticRegression`
- svm: `SVC`, `NuSVC`, `LinearSVC`
- margin: `LinearClassifier`
- perceptron: `Perceptron`, `SGDClassifier`, `PassiveAggressiveClassifier`
- multiclass: `OneVsRestClassifier`, `OneVsOneClassifier`
- any of them after a transformation: `FeatureMap`
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.models.bayesian.bayesian_logistic import BayesianLogisticRegression
    from separatrix.models.discriminant.fisher import FisherDiscriminant
    from separatrix.models.discriminant.linear_discriminant import LinearDiscriminantAnalysis
    from separatrix.models.discriminant.nearest_centroid import NearestCentroid
    from separatrix.models.discriminant.quadratic_discriminant import QuadraticDiscriminantAnalysis
    from separatrix.models.discriminant.regularized_discriminant import RegularizedDiscriminantAnalysis
    from separatrix.models.feature_map import FeatureMap
    from separatrix.models.least_squares.path import RidgePath, ridge_path
    from separatrix.models.least_squares.ridge import LinearRegression, Ridge
    from separatrix.models.least_squares.ridge_classifier import RidgeClassifier
    from separatrix.models.least_squares.ridge_classifier_cv import RidgeClassifierCV
    from separatrix.models.least_squares.ridge_cv import RidgeCV
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
    from separatrix.models.ordered.ordered_logistic import OrderedLogisticRegression
    from separatrix.models.perceptron.passive_aggressive import PassiveAggressiveClassifier
    from separatrix.models.perceptron.perceptron import Perceptron
    from separatrix.models.perceptron.sgd_classifier import SGDClassifier
    from separatrix.models.svm.linear_svc import LinearSVC
    from separatrix.models.svm.nu_svc import NuSVC
    from separatrix.models.svm.svc import SVC
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "FisherDiscriminant",
    "LinearDiscriminantAnalysis",
    "NearestCentroid",
    "QuadraticDiscriminantAnalysis",
    "RegularizedDiscriminantAnalysis",
]
__all__ += ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MixedNB", "MultinomialNB"]
__all__ += ["LinearRegression", "Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV", "RidgePath", "ridge_path"]
__all__ += ["LogisticPath", "LogisticRegression", "LogisticRegressionCV", "SeparationWarning", "logistic_path"]
__all__ += ["BayesianLogisticRegression", "OrderedLogisticRegression"]
__all__ += ["SVC", "LinearSVC", "NuSVC"]
__all__ += ["LinearClassifier"]
__all__ += ["PassiveAggressiveClassifier", "Perceptron", "SGDClassifier"]
__all__ += ["OneVsOneClassifier", "OneVsRestClassifier"]
__all__ += ["FeatureMap"]
