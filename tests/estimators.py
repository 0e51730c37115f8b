"""One registry of the estimators that the tests cross with data, storages, weights, exports and checks.

A variant is here when it takes another way through the code: a solver, a loss, a penalty, a kernel, a kind of shrinkage.
Facts about an entry are read from the estimator where scikit-learn's tags and attributes have them, and declared where
they do not. Tests select entries by their facts (`having`), or a few by name (`named`), and get fresh copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import sklearn.naive_bayes
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

import separatrix as sx


@dataclass(frozen=True)
class Entry:
    """An estimator and what a test has to know to choose it."""

    name: str
    estimator: Any
    basic: bool = False  # one of the few that are crossed with many other things: every estimator, every way to learn
    checked: bool = False  # scikit-learn's check_estimator passes with nothing excused, and is run
    tight: float = 0.0  # tolerance at which two fits of one problem agree; 0 for closed forms and for counted mistakes
    rough: bool = False  # no tolerance makes two fits of one problem agree: sampled, stopped early, not unique
    folds: bool = False  # draws folds or a validation part
    several_rows: bool = False  # refuses classes of one row
    only_for: str = ""  # data that its parameters are written for: "three classes", "four columns", …

    @property
    def family(self) -> str:
        """Folder of its model: discriminant, naive_bayes, least_squares, logistic, …"""
        _, room, folder, *_ = type(self.estimator).__module__.split(".")
        return folder if room == "models" else room

    @property
    def classifier(self) -> bool:
        return is_classifier(self.estimator)

    @property
    def regressor(self) -> bool:
        return is_regressor(self.estimator)

    @property
    def transformer(self) -> bool:
        return hasattr(self.estimator, "transform")

    @property
    def counts(self) -> bool:
        """Takes no negative values."""
        return get_tags(self.estimator).input_tags.positive_only

    @property
    def missing(self) -> bool:
        """Takes missing values."""
        return get_tags(self.estimator).input_tags.allow_nan

    @property
    def two_classes(self) -> bool:
        return self.classifier and not get_tags(self.estimator).classifier_tags.multi_class

    @property
    def sparse(self) -> bool:
        return get_tags(self.estimator).input_tags.sparse

    @property
    def weights(self) -> bool:
        return has_fit_parameter(self.estimator, "sample_weight")

    @property
    def class_weight(self) -> bool:
        return "class_weight" in self.estimator.get_params()

    @property
    def probabilities(self) -> bool:
        return hasattr(self.estimator, "predict_proba")

    @property
    def parts(self) -> bool:
        """Fitted part by part, and models of parts merge."""
        return hasattr(self.estimator, "partial_fit") and hasattr(self.estimator, "merge")

    @property
    def linear_form(self) -> bool:
        return hasattr(self.estimator, "linear_form")

    @property
    def score_form(self) -> bool:
        """None for a calibration by scikit-learn."""
        return hasattr(self.estimator, "score_form") and not (self.family == "decide" and self.estimator.calibration)

    @property
    def sparsify(self) -> bool:
        return hasattr(self.estimator, "sparsify")


class Doubled:
    """A loss function whose name is the same in every process, so that the tests are too."""

    def __call__(self, truth: object, action: object) -> float:
        return 2.0 * float(truth != action)

    def __repr__(self) -> str:
        return "doubled"


GRID: dict[str, Any] = {"alphas": [0.0, 0.4, 0.9], "gammas": [0.2, 0.8]}
FAMILIES = ["gaussian", "poisson", "multinomial", "multinomial"]
PRIORS = [0.2, 0.3, 0.5]
LOSS = [[0, 1, 4], [1, 0, 1], [4, 1, 0]]
LETTERS = {"a": 0.1, "b": 0.2, "c": 0.7}
COMBINED = 0.5 * sx.RBFKernel(0.1) * sx.LaplacianKernel(0.2) + sx.LinearKernel()
SQUARES = PolynomialFeatures(2, include_bias=False)

LDA, QDA, RDA = (
    sx.LinearDiscriminantAnalysis,
    sx.QuadraticDiscriminantAnalysis,
    sx.RegularizedDiscriminantAnalysis,
)

DISCRIMINANT = [
    Entry("lda", LDA(), basic=True, checked=True),
    Entry("lda lsqr", LDA(solver="lsqr")),
    Entry("lda eigen", LDA(solver="eigen")),
    Entry("lda unbiased", LDA(covariance="unbiased"), several_rows=True),
    Entry("lda lsqr, shrunk", LDA(solver="lsqr", shrinkage=0.3)),
    Entry("lda lsqr, ledoit-wolf", LDA(solver="lsqr", shrinkage="auto"), basic=True),
    Entry("lda eigen, shrunk", LDA(solver="eigen", shrinkage=0.3), checked=True),
    Entry("lda eigen, ledoit-wolf", LDA(solver="eigen", shrinkage="auto")),
    Entry("lda eigen, oas", LDA(solver="eigen", shrinkage="oas")),
    Entry(
        "lda eigen, ledoit-wolf, unbiased",
        LDA(solver="eigen", shrinkage="auto", covariance="unbiased"),
        checked=True,
        several_rows=True,
    ),
    Entry("lda lsqr, priors", LDA(solver="lsqr", priors=PRIORS), only_for="three classes"),
    Entry("qda", QDA(), several_rows=True),  # refuses the singular classes of four of scikit-learn's checks
    Entry("qda pseudo-inverse", QDA(singular="pseudo"), checked=True, several_rows=True),
    Entry("qda, shrunk", QDA(reg_param=0.1), basic=True, checked=True, several_rows=True),
    Entry("qda, shrunk little", QDA(reg_param=0.01), several_rows=True),
    Entry("qda eigen, ledoit-wolf", QDA(solver="eigen", shrinkage="auto"), several_rows=True),
    Entry("qda unbiased", QDA(covariance="unbiased"), several_rows=True),
    Entry("qda, covariances kept", QDA(reg_param=0.1, store_covariance=True), several_rows=True),
    Entry("qda, priors", QDA(priors=PRIORS), several_rows=True, only_for="three classes"),
    Entry("rda", RDA(), basic=True, checked=True, several_rows=True),
    Entry("rda of one covariance", RDA(0.0, 0.9), several_rows=True),
    Entry("rda as lda", RDA(0.0, 1.0), several_rows=True),
    Entry("rda as qda", RDA(1.0, 1.0), several_rows=True),
    Entry("rda between", RDA(0.5, 1.0), several_rows=True),
    Entry("rda, ledoit-wolf", RDA(0.5, "ledoit_wolf"), several_rows=True),
    Entry("rda, oas", RDA(0.5, "oas"), checked=True, several_rows=True),
    Entry("rda, leave one out", RDA("loo", "loo"), checked=True, several_rows=True),
    Entry("rda, leave one out of a grid", RDA("loo", "loo", **GRID), several_rows=True),
    Entry("rda, folds", RDA("cv", "cv", cv=3, **GRID), folds=True, several_rows=True),
    Entry(
        "rda, folds by error",
        RDA("cv", 0.5, cv=4, scoring="error", alphas=GRID["alphas"]),
        folds=True,
        several_rows=True,
    ),
    Entry("fisher", sx.FisherDiscriminant(), basic=True, checked=True),
    Entry("fisher unbiased", sx.FisherDiscriminant(covariance="unbiased")),
    Entry("nearest centroid", sx.NearestCentroid(), basic=True, checked=True),
    Entry("nearest centroid, shrunken", sx.NearestCentroid(shrink_threshold=0.2, priors="empirical"), checked=True),
    Entry("nearest centroid of medians", sx.NearestCentroid("manhattan"), checked=True),
]

NAIVE_BAYES = [
    Entry("gaussian", sx.GaussianNB(), basic=True, checked=True),
    Entry("gaussian, not smoothed", sx.GaussianNB(var_smoothing=0.0), several_rows=True),
    Entry("gaussian shared", sx.GaussianNB(shared_variance=True), checked=True),
    Entry("gaussian shared, priors", sx.GaussianNB(shared_variance=True, priors=PRIORS), only_for="three classes"),
    Entry("multinomial", sx.MultinomialNB(), basic=True, checked=True),
    Entry("multinomial, not smoothed", sx.MultinomialNB(alpha=0.0), checked=True, several_rows=True),
    Entry(
        "multinomial, not smoothed, priors",
        sx.MultinomialNB(alpha=0.0, class_prior=PRIORS),
        several_rows=True,
        only_for="three classes",
    ),
    Entry("complement", sx.ComplementNB(), basic=True, checked=True),
    Entry("bernoulli", sx.BernoulliNB(), basic=True, checked=True),
    Entry("bernoulli above 2", sx.BernoulliNB(binarize=2.0)),
    Entry("bernoulli above 6", sx.BernoulliNB(binarize=6.0)),
    Entry(
        "bernoulli above 2, not smoothed", sx.BernoulliNB(binarize=2.0, alpha=0.0, fit_prior=False), several_rows=True
    ),
    Entry("bernoulli above 6, not smoothed", sx.BernoulliNB(binarize=6.0, alpha=0.0), several_rows=True),
    Entry("categorical", sx.CategoricalNB(), basic=True, checked=True),
    Entry("categorical, not smoothed", sx.CategoricalNB(alpha=0.0), several_rows=True),
    Entry("mixed", sx.MixedNB(), basic=True, checked=True),
    Entry("mixed, four families", sx.MixedNB(FAMILIES), only_for="four columns"),
    Entry(
        "mixed, not smoothed",
        sx.MixedNB(["categorical", *FAMILIES[1:]], alpha=0.0),
        several_rows=True,
        only_for="four columns",
    ),
]

LEAST_SQUARES = [
    Entry("least squares", sx.LinearRegression(), basic=True, checked=True),
    Entry("least squares without intercept", sx.LinearRegression(fit_intercept=False)),
    Entry("least squares, positive", sx.LinearRegression(positive=True), checked=True),
    Entry("ridge", sx.Ridge(), basic=True, checked=True),
    Entry("ridge by cg", sx.Ridge(solver="cg"), basic=True, checked=True, tight=1e-10),
    Entry("ridge, positive", sx.Ridge(0.7, positive=True)),
    Entry("ridge, leave one out", sx.Ridge("loo")),
    Entry("ridge, leave one out of three", sx.Ridge("loo", alphas=[0.1, 1.0, 10.0])),
    Entry("ridge, evidence", sx.Ridge("evidence")),
    Entry("ridge, intercept penalised", sx.Ridge(penalize_intercept=True), checked=True),
    Entry("ridge of each target", sx.Ridge([0.1, 5.0]), only_for="two targets"),
    Entry("ridge cv", sx.RidgeCV(), basic=True, checked=True),
    Entry("ridge cv by folds", sx.RidgeCV([0.1, 1.0, 10.0], cv=3), checked=True, folds=True),
    Entry("ridge cv by absolute errors", sx.RidgeCV(scoring="neg_mean_absolute_error", store_cv_results=True)),
    Entry("ridge classifier cv", sx.RidgeClassifierCV(), basic=True, checked=True),
    Entry("ridge classifier cv, balanced", sx.RidgeClassifierCV(class_weight="balanced")),
    Entry("ridge classifier cv by accuracy", sx.RidgeClassifierCV([0.01, 1.0, 100.0], scoring="accuracy")),
    Entry("ridge classifier cv by folds", sx.RidgeClassifierCV(cv=3), checked=True, folds=True),
    Entry("ridge classifier", sx.RidgeClassifier(), basic=True, checked=True),
    Entry("ridge classifier without penalty", sx.RidgeClassifier(alpha=0.0)),
    Entry("ridge classifier without intercept", sx.RidgeClassifier(fit_intercept=False)),
    Entry("ridge classifier without either", sx.RidgeClassifier(alpha=0.0, fit_intercept=False)),
    Entry("ridge classifier, balanced", sx.RidgeClassifier(class_weight="balanced")),
    Entry("ridge classifier, ash three times", sx.RidgeClassifier(class_weight={"ash": 3.0}), only_for="label ash"),
    Entry("ridge classifier, small norm", sx.RidgeClassifier(max_norm=0.3), checked=True),
    Entry("ridge classifier, positive", sx.RidgeClassifier(positive=True)),
    Entry("ridge classifier by cg", sx.RidgeClassifier(solver="cg"), basic=True, tight=1e-9),
    Entry(
        "ridge classifier by cg, balanced",
        sx.RidgeClassifier(class_weight="balanced", solver="cg"),
        checked=True,
        tight=1e-9,
    ),
]

LOGISTIC = [
    Entry("logistic", sx.LogisticRegression(), basic=True, checked=True, tight=1e-10),
    *(
        Entry(f"logistic by {solver}", sx.LogisticRegression(solver=solver), checked=True, tight=1e-10)
        for solver in ("newton", "lbfgs", "newton-cg", "prox_newton")
    ),
    Entry("logistic by gradient", sx.LogisticRegression(solver="gradient"), checked=True, rough=True),
    Entry("logistic by sgd", sx.LogisticRegression(solver="sgd"), checked=True, rough=True),
    Entry("logistic, weak penalty", sx.LogisticRegression(C=100.0), tight=1e-10),
    Entry("logistic, intercept penalised", sx.LogisticRegression(penalize_intercept=True), checked=True, tight=1e-10),
    Entry("logistic elastic net", sx.LogisticRegression(l1_ratio=0.5), checked=True, tight=1e-10),
    Entry("logistic l1", sx.LogisticRegression(l1_ratio=1.0), tight=1e-10),
    Entry("logistic l1, sparse", sx.LogisticRegression(C=0.1, l1_ratio=1.0), tight=1e-10),
    Entry("logistic reference", sx.LogisticRegression(multi_class="reference"), tight=1e-10),
    Entry(
        "logistic reference, balanced",
        sx.LogisticRegression(multi_class="reference", class_weight="balanced"),
        tight=1e-10,
    ),
    Entry("maximum likelihood", sx.LogisticRegression(C=np.inf, solver="newton-cg"), rough=True),
    Entry("logistic firth", sx.LogisticRegression(penalty="firth"), rough=True, only_for="two classes"),
    Entry("logistic cv", sx.LogisticRegressionCV(Cs=[0.01, 1.0, 30.0], cv=3, tol=1e-10), folds=True),
    Entry("logistic cv of a grid", sx.LogisticRegressionCV(Cs=3, cv=3), basic=True, checked=True, tight=1e-10),
    Entry("logistic cv, alo of a grid", sx.LogisticRegressionCV(Cs=3, cv="alo"), checked=True, tight=1e-10),
    Entry("logistic cv, alo", sx.LogisticRegressionCV(Cs=[0.01, 1.0, 30.0], cv="alo", tol=1e-10), folds=True),
    Entry(
        "logistic cv by log-loss",
        sx.LogisticRegressionCV(Cs=[0.01, 1.0, 30.0], cv=4, tol=1e-10, scoring="neg_log_loss"),
        folds=True,
    ),
    Entry(
        "logistic cv averaged",
        sx.LogisticRegressionCV(Cs=[0.1, 3.0], cv=3, tol=1e-10, refit=False, class_weight="balanced"),
        folds=True,
    ),
    Entry(
        "logistic cv elastic net",
        sx.LogisticRegressionCV(Cs=[0.1, 3.0], l1_ratios=[0.5], cv=3, tol=1e-10, scoring="neg_log_loss"),
        folds=True,
    ),
]

ORDERED = [
    Entry("ordered", sx.OrderedLogisticRegression(), basic=True, checked=True, tight=1e-10),
    Entry("ordered, balanced", sx.OrderedLogisticRegression(0.3, class_weight="balanced"), tight=1e-10),
]

BAYESIAN = [
    Entry("bayesian", sx.BayesianLogisticRegression(), checked=True, rough=True),
    Entry("bayesian, given prior", sx.BayesianLogisticRegression(1.0), basic=True, tight=1e-6),
    Entry("bayesian quadrature", sx.BayesianLogisticRegression(1.0, predictive="quadrature"), checked=True, tight=1e-6),
    Entry(
        "bayesian diagonal, samples",
        sx.BayesianLogisticRegression(1.0, covariance="diagonal", predictive="samples", random_state=0),
        checked=True,
        rough=True,
    ),
    Entry(
        "bayesian low rank", sx.BayesianLogisticRegression(1.0, covariance="low_rank", rank=2), checked=True, rough=True
    ),
    Entry("bayesian diagonal", sx.BayesianLogisticRegression(covariance="diagonal"), rough=True),
    Entry(
        "bayesian diagonal without intercept",
        sx.BayesianLogisticRegression(covariance="diagonal", fit_intercept=False),
        rough=True,
    ),
]

MARGIN = [
    Entry("margin squared hinge", sx.LinearClassifier(), basic=True, checked=True, tight=1e-8),
    Entry("margin hinge", sx.LinearClassifier("hinge"), checked=True, tight=1e-8),
    Entry("margin hinge, l1", sx.LinearClassifier("hinge", "l1"), rough=True),
    Entry("margin hinge, l1, sparse", sx.LinearClassifier("hinge", "l1", C=0.1), rough=True),
    Entry("margin logistic", sx.LinearClassifier("logistic"), tight=1e-10),
    Entry("margin squared", sx.LinearClassifier("squared"), tight=1e-10),
    Entry("margin perceptron", sx.LinearClassifier("perceptron"), checked=True, rough=True),
    Entry("margin exponential", sx.LinearClassifier("exponential"), tight=1e-10),
    Entry("margin sigmoid squared", sx.LinearClassifier("sigmoid_squared", n_init=2, random_state=0), rough=True),
    Entry("margin huberised", sx.LinearClassifier("huberised", None, n_jobs=1), checked=True, rough=True),
]

SVM = [
    Entry("linear svc", sx.LinearSVC(), basic=True, checked=True, tight=1e-8),
    Entry("linear svc hinge", sx.LinearSVC(loss="hinge"), checked=True, tight=1e-8),
    Entry("linear svc l1", sx.LinearSVC(penalty="l1"), tight=1e-8),
    Entry("crammer singer", sx.LinearSVC(multi_class="crammer_singer", random_state=0), basic=True, tight=1e-6),
    Entry("svc", sx.SVC(), basic=True, checked=True, tight=1e-8),
    Entry("svc linear", sx.SVC(kernel="linear"), checked=True, tight=1e-8),
    Entry("svc against rest", sx.SVC(multi_class="ovr"), checked=True, tight=1e-8),
    Entry("svc linear against rest", sx.SVC(kernel="linear", multi_class="ovr"), tight=1e-8),
    Entry(
        "nu svc", sx.NuSVC(nu=0.24, gamma=2.0), basic=True, tight=1e-8
    ),  # a weight of 1000 makes any nu infeasible: one of scikit-learn's checks
    Entry("svc of kernels", sx.SVC(kernel=COMBINED), tight=1e-8),
    Entry("svc, platt", sx.SVC(calibration="sigmoid", tol=1e-9), folds=True, several_rows=True),
    Entry(
        "svc, scores of pairs",
        sx.SVC(calibration="sigmoid", decision_function_shape="ovo"),
        tight=1e-8,
        several_rows=True,
    ),
    Entry("svc, isotonic", sx.SVC(calibration="isotonic", tol=1e-9, random_state=3), folds=True, several_rows=True),
    Entry(
        "svc, balanced, platt",
        sx.SVC(class_weight="balanced", calibration="sigmoid", tol=1e-9),
        folds=True,
        several_rows=True,
    ),
    Entry(
        "svc poly, platt",
        sx.SVC(kernel="poly", degree=2, calibration="sigmoid", random_state=0),
        rough=True,
        several_rows=True,
    ),
    Entry(
        "svc poly, isotonic",
        sx.SVC(kernel="poly", calibration="isotonic", random_state=0),
        rough=True,
        several_rows=True,
    ),
    Entry(
        "svc linear, platt",
        sx.SVC(kernel="linear", calibration="sigmoid", random_state=0),
        rough=True,
        several_rows=True,
    ),
    Entry(
        "svc linear, isotonic",
        sx.SVC(kernel="linear", calibration="isotonic", random_state=0),
        rough=True,
        several_rows=True,
    ),
    Entry(
        "svc linear against rest, platt",
        sx.SVC(kernel="linear", multi_class="ovr", calibration="sigmoid", tol=1e-9),
        folds=True,
        several_rows=True,
    ),
    Entry(
        "svc linear against rest, isotonic",
        sx.SVC(kernel="linear", multi_class="ovr", calibration="isotonic"),
        tight=1e-8,
        several_rows=True,
    ),
    Entry(
        "svc precomputed, platt",
        sx.SVC(kernel="precomputed", calibration="sigmoid", tol=1e-9),
        folds=True,
        several_rows=True,
        only_for="kernel matrices",
    ),
]

PERCEPTRON = [
    Entry("passive aggressive", sx.PassiveAggressiveClassifier(random_state=0), basic=True, rough=True),
    Entry("sgd", sx.SGDClassifier(random_state=0), basic=True, rough=True),
    Entry("perceptron", sx.Perceptron(), basic=True, checked=True),
    Entry("perceptron averaged", sx.Perceptron(variant="averaged"), checked=True),
    Entry("perceptron averaged, balanced", sx.Perceptron(variant="averaged", class_weight="balanced")),
    Entry("perceptron pocket", sx.Perceptron(variant="pocket"), checked=True),
    Entry(
        "perceptron stopped early", sx.Perceptron(early_stopping=True, validation_fraction=0.25), folds=True, rough=True
    ),
    Entry(
        "perceptron pocket, stopped early",
        sx.Perceptron(early_stopping=True, validation_fraction=0.25, variant="pocket"),
        folds=True,
        rough=True,
    ),
]

MULTICLASS = [
    Entry("against rest of lda", sx.OneVsRestClassifier(LDA()), basic=True, checked=True),
    Entry("against rest of lda, K - 1", sx.OneVsRestClassifier(LDA(), machines="K-1")),
    Entry("against rest of logistic", sx.OneVsRestClassifier(sx.LogisticRegression()), tight=1e-10),
    Entry(
        "against rest of logistic, K - 1", sx.OneVsRestClassifier(sx.LogisticRegression(), machines="K-1"), tight=1e-10
    ),
    Entry("against rest of ridge, K - 1", sx.OneVsRestClassifier(sx.RidgeClassifier(), machines="K-1")),
    Entry(
        "against rest of ridge, K - 1, two jobs",
        sx.OneVsRestClassifier(sx.RidgeClassifier(), machines="K-1", n_jobs=2),
        checked=True,
    ),
    Entry(
        "against rest of scikit-learn's, K - 1",
        sx.OneVsRestClassifier(sklearn.naive_bayes.GaussianNB(), machines="K-1"),
        checked=True,
        only_for="models of scikit-learn",
    ),
    Entry("against rest of gaussian", sx.OneVsRestClassifier(sx.GaussianNB())),
    Entry("against rest of multinomial", sx.OneVsRestClassifier(sx.MultinomialNB())),
    Entry("against rest of bernoulli", sx.OneVsRestClassifier(sx.BernoulliNB(binarize=6.0))),
    Entry("against rest of linear svc", sx.OneVsRestClassifier(sx.LinearSVC()), tight=1e-8),
    Entry(
        "against rest of svc",
        sx.OneVsRestClassifier(sx.SVC(calibration="sigmoid", random_state=0)),
        tight=1e-8,
        several_rows=True,
    ),
    Entry("pairs of lda", sx.OneVsOneClassifier(LDA()), checked=True, several_rows=True),
    Entry("pairs of logistic", sx.OneVsOneClassifier(sx.LogisticRegression()), basic=True, tight=1e-10),
    Entry(
        "pairs of logistic, two jobs",
        sx.OneVsOneClassifier(sx.LogisticRegression(), n_jobs=2),
        checked=True,
        tight=1e-10,
    ),
    Entry(
        "pairs of scikit-learn's",
        sx.OneVsOneClassifier(sklearn.naive_bayes.GaussianNB()),
        checked=True,
        only_for="models of scikit-learn",
    ),
    Entry("pairs of ridge", sx.OneVsOneClassifier(sx.RidgeClassifier())),
    Entry("pairs of multinomial", sx.OneVsOneClassifier(sx.MultinomialNB())),
    Entry("pairs of linear svc", sx.OneVsOneClassifier(sx.LinearSVC()), tight=1e-8),
]

OTHERS = [
    Entry("mapped lda", sx.FeatureMap(PolynomialFeatures(2), LDA()), basic=True, checked=True),
    Entry("mapped ridge", sx.FeatureMap(SplineTransformer(n_knots=3), sx.Ridge()), checked=True),
    Entry("mapped logistic", sx.FeatureMap(SQUARES, sx.LogisticRegression()), tight=1e-10),
    Entry("rule", sx.BayesRule(sx.GaussianNB()), basic=True, checked=True),
    Entry("rule of lda", sx.BayesRule(LDA())),
    Entry("rule, zero-one", sx.BayesRule(sx.GaussianNB(), loss="zero-one")),
    Entry("rule, function", sx.BayesRule(sx.GaussianNB(), loss=Doubled()), checked=True, only_for="memory"),
    Entry("rule, losses", sx.BayesRule(sx.GaussianNB(), loss=LOSS), only_for="three classes"),
    Entry(
        "rule, losses or rejection",
        sx.BayesRule(sx.GaussianNB(), loss=LOSS, reject_cost=0.4),
        only_for="rejection",
    ),
    Entry("rule, rejection", sx.BayesRule(LDA(), reject_cost=0.02, reject_below=0.9), only_for="rejection"),
    Entry("rule, isotonic", sx.BayesRule(sx.GaussianNB(), calibration="isotonic", cv=3), folds=True, several_rows=True),
    Entry(
        "rule, isotonic, two folds",
        sx.BayesRule(sx.GaussianNB(), calibration="isotonic", cv=2),
        checked=True,
        several_rows=True,
    ),
    Entry("rule, sigmoid", sx.BayesRule(LDA(), calibration="sigmoid", cv=3), folds=True, several_rows=True),
    Entry(
        "rule of linear svc, sigmoid",
        sx.BayesRule(sx.LinearSVC(tol=1e-9), calibration="sigmoid", cv=2),
        folds=True,
        several_rows=True,
    ),
    Entry(
        "rule, priors", sx.BayesRule(sx.LogisticRegression(), priors=LETTERS), tight=1e-10, only_for="labels a, b, c"
    ),
    Entry(
        "rule of machines, priors",
        sx.BayesRule(sx.OneVsRestClassifier(sx.LogisticRegression()), priors=LETTERS),
        tight=1e-10,
        only_for="labels a, b, c",
    ),
    Entry(
        "rule of an integral, priors",
        sx.BayesRule(sx.BayesianLogisticRegression(), priors=LETTERS),
        tight=1e-10,
        only_for="labels a, b, c",
    ),
]

REGISTRY: dict[str, Entry] = {}
for _entry in [
    *DISCRIMINANT, *NAIVE_BAYES, *LEAST_SQUARES, *LOGISTIC, *ORDERED, *BAYESIAN, *MARGIN, *SVM, *PERCEPTRON, *MULTICLASS,
    *OTHERS,
]:  # fmt: skip
    assert _entry.name not in REGISTRY, _entry.name
    REGISTRY[_entry.name] = _entry

# One of every kind of score that SQL and ONNX graphs have.
EXPORTED = (
    "logistic, weak penalty",
    "logistic cv of a grid",
    "lda",
    "qda, shrunk little",
    "rda",
    "gaussian",
    "multinomial",
    "complement",
    "bernoulli above 6",
    "categorical",
    "mixed, four families",
    "ridge classifier",
    "linear svc",
    "perceptron",
    "against rest of logistic",
    "rule, losses",
    "rule, rejection",
    "ordered",
    "svc linear",
    "pairs of logistic",
    "pairs of lda",
    "pairs of linear svc",
)
# Those that compare rows with support vectors: for ONNX and JSON.
EXPORTED_WITH_KERNELS = ("svc", "svc against rest", "nu svc", "svc of kernels")
EXPORTED_OF_TWO_CLASSES = (
    "logistic, weak penalty",
    "lda",
    "qda, shrunk little",
    "gaussian",
    "multinomial",
    "mixed, four families",
    "ridge classifier",
    "perceptron",
    "svc linear, platt",
    "svc linear",
    "bayesian",
)


def having(**facts: Any) -> dict[str, Any]:
    """Fresh copies, by name, of the estimators with these facts; a tuple lists several values that will do.

    Estimators whose parameters are written for one kind of data are left out unless `only_for` asks for them.
    """
    facts = {"only_for": "", **facts}

    def chosen(entry: Entry) -> bool:
        return all(
            getattr(entry, fact) in value if isinstance(value, tuple) else getattr(entry, fact) == value
            for fact, value in facts.items()
        )

    return {name: clone(entry.estimator) for name, entry in REGISTRY.items() if chosen(entry)}


def named(*names: str) -> dict[str, Any]:
    """Fresh copies of the estimators of these names."""
    return {name: clone(REGISTRY[name].estimator) for name in names}


def tight(estimators: dict[str, Any]) -> dict[str, Any]:
    """Those of the estimators whose fits of one problem agree, at a tolerance at which they do."""
    chosen = {name: estimator for name, estimator in estimators.items() if not REGISTRY[name].rough}
    for name, estimator in chosen.items():
        if REGISTRY[name].tight:
            parameters = estimator.get_params()
            owner = next(
                prefix for prefix in ("tol", "estimator__tol", "estimator__estimator__tol") if prefix in parameters
            )
            estimator.set_params(**{owner: REGISTRY[name].tight})
    return chosen


def each(argument: str, estimators: dict[str, Any]) -> pytest.MarkDecorator:
    """A test for each of the estimators, under its name."""
    return pytest.mark.parametrize(argument, list(estimators.values()), ids=list(estimators))
