"""The classes that a model file may hold, by the name they have in it.

A file has "LinearDiscriminantAnalysis", and this table has the class of that name. A name that is not here is refused: nothing
is ever imported because a file names it. Names stay when code moves; two classes of one name differ by a prefix.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

_OURS = {
    "bayes.gibbs": ["Draws"],
    "bayes.posterior": ["BlockPosterior", "DiagonalPosterior", "FullPosterior", "LowRankPosterior"],
    "comparison.why.curved": ["CurvedFeatures"],
    "comparison.table_model": ["TableModel"],
    "decide.bayes_rule": ["BayesRule"],
    "decide.calibrated": ["AllClasses"],
    "models.multiclass.one_vs_one": ["OneVsOneClassifier"],
    "models.multiclass.one_vs_rest": ["OneVsRestClassifier"],
    "dual.given_kernels": ["Columns", "Multiple", "Precomputed", "Product", "Sum"],
    "dual.kernels": [
        *("CentredLinear", "LaplacianKernel", "LinearKernel", "PolynomialKernel", "RBFKernel", "SigmoidKernel"),
    ],
    "dual.machine": ["SupportVectorMachine"],
    "dual.many_machines": ["KernelDuals", "Splits", "SupportVectorMachines"],
    "dual.points": ["Points"],
    "geometry.separation": ["Separability"],
    "inference.estimates": ["Inference"],
    "inference.ordered": ["OrderedInference"],
    "models.bayesian.bayesian_logistic": ["BayesianLogisticRegression"],
    "models.naive_bayes.bernoulli_nb": ["BernoulliNB"],
    "models.naive_bayes.categorical_nb": ["CategoricalNB"],
    "models.naive_bayes.families": [
        *("BernoulliReader", "CategoricalReader", "GaussianReader", "MultinomialReader", "PoissonReader"),
    ],
    "models.feature_map": ["FeatureMap"],
    "models.discriminant.fisher": ["FisherDiscriminant"],
    "models.naive_bayes.gaussian_nb": ["GaussianNB"],
    "models.margin.linear_classifier": ["LinearClassifier"],
    "models.discriminant.canonical": ["CanonicalAxes"],
    "models.discriminant.linear_discriminant": ["LinearDiscriminantAnalysis"],
    "models.svm.linear_svc": ["LinearSVC"],
    "models.logistic.logistic_regression": ["LogisticRegression"],
    "models.logistic.cross_validation": ["LogisticRegressionCV"],
    "models.naive_bayes.mixed_nb": ["MixedNB"],
    "models.naive_bayes.multinomial_nb": ["ComplementNB", "MultinomialNB"],
    "models.discriminant.nearest_centroid": ["NearestCentroid"],
    "models.ordered.ordered_logistic": ["OrderedLogisticRegression"],
    "models.perceptron.passive_aggressive": ["PassiveAggressiveClassifier"],
    "models.perceptron.perceptron": ["Perceptron"],
    "models.perceptron.sgd_classifier": ["SGDClassifier"],
    "online.stochastic": ["StochasticMachine"],
    "models.discriminant.quadratic_discriminant": ["QuadraticDiscriminantAnalysis"],
    "models.discriminant.regularized_discriminant": ["RegularizedDiscriminantAnalysis"],
    "models.least_squares.ridge": ["LinearRegression", "Ridge"],
    "models.least_squares.ridge_classifier": ["RidgeClassifier"],
    "models.least_squares.ridge_classifier_cv": ["RidgeClassifierCV"],
    "models.least_squares.ridge_cv": ["RidgeCV"],
    "models.svm.score_calibration": ["Isotonic", "Platt"],
    "models.svm.nu_svc": ["NuSVC"],
    "models.svm.svc": ["SVC"],
    "online.machine": ["BinaryPerceptron"],
    "result": ["Certificate", "Fit", "History", "Status"],
    "statistics.columns": ["ColumnMoments", "MixedCounts", "ValueCounts"],
    "statistics.counts": ["CategoryCounts", "ClassCounts"],
    "statistics.gram": ["Gram"],
    "statistics.metric": ["DenseMetric", "ThinMetric"],
    "statistics.moments": ["ClassMoments"],
    "statistics.scatter": ["Scatter"],
    "statistics.triangular": ["Triangular"],
    "tables.columns": ["ColumnSchema"],
    "tables.encoding.text_scores": ["TextScores"],
    "tables.encoder": ["EncodedFeature", "TableEncoder"],
    "tables.schema": ["TableSchema"],
    "tables.table_scan": ["TableEncoding"],
}
# Plain holders of numbers that our own models may be built with.
_SCIKIT_LEARN = {
    "calibration": ["CalibratedClassifierCV", "_CalibratedClassifier", "_SigmoidCalibration"],
    "compose": ["ColumnTransformer", "make_column_selector"],
    "dummy": ["DummyClassifier"],
    "feature_selection": ["VarianceThreshold"],
    "frozen": ["FrozenEstimator"],
    "impute": ["MissingIndicator", "SimpleImputer"],
    "model_selection": ["KFold", "StratifiedKFold"],
    "pipeline": ["Pipeline"],
    "preprocessing": [
        *("FunctionTransformer", "MaxAbsScaler", "MinMaxScaler", "OneHotEncoder", "PolynomialFeatures", "RobustScaler"),
        "StandardScaler",
    ],
}
_HOMES = {
    name: f"{package}.{home}"
    for package, homes in (("separatrix", _OURS), ("sklearn", _SCIKIT_LEARN))
    for home, names in homes.items()
    for name in names
}
_CLASSES = {name.rpartition(".")[2] for name in _HOMES}


@cache
def class_named(name: str) -> Any:
    """The class of a name in a file; a ValueError for one that is not in the table."""
    if name not in _HOMES:
        raise ValueError(f"The file holds an object of the unknown class {name[:100]!r}, which is refused.")
    return getattr(import_module(_HOMES[name]), name.rpartition(".")[2])


def name_of(kind: type[Any]) -> str | None:
    """The name a class has in files, or None for a class that files cannot hold."""
    if kind.__name__ not in _CLASSES:
        return None
    room = kind.__module__.removeprefix("separatrix.").partition(".")[0]
    for name in (kind.__name__, f"{room}.{kind.__name__}"):
        if name in _HOMES and _home_matches(name, kind):
            return name
    return None


def _home_matches(name: str, kind: type[Any]) -> bool:
    home = _HOMES[name]
    # A subclass of the same name elsewhere is another class; scikit-learn's homes are the public ones of private modules.
    return kind.__module__.startswith(home) and class_named(name) is kind
