"""The families that the explorer offers: how each is built from its controls, and what is shown of it.

A family is one line here; what is special about it (ellipses, margins, draws) is in `extras` under the names it lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.pipeline import Pipeline, make_pipeline

from separatrix.data.block import Float
from separatrix.explore.controls import Control
from separatrix.explore.protocol import BadRequest
from separatrix.models import (
    SVC,
    BayesianLogisticRegression,
    FisherDiscriminant,
    GaussianNB,
    LinearClassifier,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    NearestCentroid,
    NuSVC,
    OneVsOneClassifier,
    OneVsRestClassifier,
    PassiveAggressiveClassifier,
    Perceptron,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    RidgeClassifier,
)


@dataclass(frozen=True)
class ExplorerFamily:
    """One kind of classifier.

    Parameters
    ----------
    name, title, group : str
        In messages; on the page; and the heading under which the page lists it.
    about : str
        What it does, in a sentence.
    build : callable
        The estimator, from checked parameters.
    controls : tuple of Control
    extras : tuple of str
        What is shown of it beside regions and measures, by the names of `separatrix.explore.extras`.
    film : str
        Which steps can be shown one after the other; empty if there are none.
    scores : callable, optional
        One score per class from a fitted model and rows, where its predictions are not the largest of `decision_function`.
    votes : bool
        Whether the rule for more than two classes is a vote, so that it is not the largest of continuous scores.
    """

    name: str
    title: str
    group: str
    about: str
    build: Callable[..., Any]
    controls: tuple[Control, ...] = ()
    extras: tuple[str, ...] = ()
    film: str = ""
    scores: Callable[[Any, Float], Float] | None = None
    votes: bool = False

    def parameters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters: those given, checked, and the defaults of the others."""
        known = {control.name: control for control in self.controls}
        unknown = [name for name in given if name not in known]
        if unknown:
            raise BadRequest(f"{self.title} has no control {unknown[0]!r}.")
        return {name: control.check(given.get(name, control.default)) for name, control in known.items()}

    def described(self) -> dict[str, Any]:
        """For the page."""
        return {
            **{name: getattr(self, name) for name in ("name", "title", "group", "about", "film")},
            "controls": [control.described() for control in self.controls],
        }


def _fisher(n_components: int | None, shrinkage: float) -> Any:
    return make_pipeline(FisherDiscriminant(n_components=n_components, shrinkage=shrinkage), NearestCentroid())


def _nearness(model: Any, X: Float) -> Float:
    """−‖x − c_k‖² to every centroid: with equal priors that decides, while `decision_function` measures in deviations."""
    last, rows = (model[-1], model[:-1].transform(X)) if isinstance(model, Pipeline) else (model, X)
    if last.priors == "uniform":
        return -cdist(rows, last.centroids_, "sqeuclidean")
    scores = np.asarray(last.decision_function(rows))
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def _logistic(C: float, penalty: str, solver: str) -> Any:
    chosen: dict[str, dict[str, Any]] = {"l2": {"l1_ratio": 0.0}, "half": {"l1_ratio": 0.5}, "l1": {"l1_ratio": 1.0}}
    if penalty == "firth":
        return LogisticRegression(penalty="firth")
    # The gradient method creeps along narrow valleys: its limit is what a film of it can show, not more.
    limit: dict[str, Any] = {"max_iter": 300} if solver == "gradient" else {}
    return LogisticRegression(C=C, solver=solver, **chosen[penalty], **limit)


def _bayesian(posterior: Any, precision: float, chosen: bool, predictive: Any) -> Any:
    draws: dict[str, Any] = (
        {"n_chains": 2, "n_draws": 300, "n_warmup": 100, "random_state": 0} if posterior == "gibbs" else {}
    )
    prior = "evidence" if chosen and posterior != "gibbs" else precision
    return BayesianLogisticRegression(prior, posterior=posterior, predictive=predictive, **draws)


_RULES: dict[str, Callable[[], Any]] = {
    "least squares": lambda: RidgeClassifier(alpha=1e-6),
    "logistic": LogisticRegression,
    "perceptron": lambda: Perceptron(variant="averaged"),
    "svm": lambda: SVC(kernel="linear"),
    "lda": LinearDiscriminantAnalysis,
}


# One score per pair of classes, which are drawn; a fit of points on a screen that takes more steps than this is stopped.
_PAIRS: dict[str, Any] = {"decision_function_shape": "ovo", "max_iter": 20_000}


def _multi(scheme: str, rule: str) -> Any:
    if scheme == "softmax":
        return LogisticRegression()
    return (OneVsRestClassifier if scheme == "rest" else OneVsOneClassifier)(_RULES[rule]())


def _svc(kernel: Any, C: float, gamma: float, degree: int) -> Any:
    more: dict[str, Any] = {"degree": degree, "coef0": 1.0} if kernel == "poly" else {}
    return SVC(kernel=kernel, C=C, gamma=gamma, **_PAIRS, **more)


def _nu(kernel: Any, nu: float, gamma: float) -> Any:
    return NuSVC(kernel=kernel, nu=nu, gamma=gamma, **_PAIRS)


def _menu(name: str, title: str, options: dict[Any, str], default: Any = None, help: str = "") -> Control:
    first = next(iter(options)) if default is None else default
    return Control(name, title, "choice", first, options=tuple(options.items()), help=help)


_C = Control("C", "C", "log", 1.0, 1e-3, 1e3, help="Large C follows the points, small C keeps the rule simple.")
_GAMMA = Control("gamma", "γ, width of the kernel", "log", 0.5, 1e-2, 1e2, help="Large: each point reaches less far.")
_SHRINKAGE = Control("shrinkage", "shrinkage", "range", 0.0, help="Of the covariance towards a sphere.")
_SOLVERS = {"auto": "automatic", "newton": "Newton (IRLS)", "gradient": "gradient", "lbfgs": "L-BFGS"}
_KERNELS = {"rbf": "Gaussian (RBF)", "poly": "polynomial", "linear": "linear", "sigmoid": "sigmoid"}

_LISTED = [
    ExplorerFamily(
        "least-squares",
        "Least squares",
        "Least squares and discriminants",
        "A linear regression on ±1, or on one indicator per class: with three classes in a line the middle one is masked.",
        RidgeClassifier,
        (Control("alpha", "ridge penalty α", "log", 1e-3, 1e-3, 1e3),),
        ("masking", "margin_loss"),
    ),
    ExplorerFamily(
        "fisher",
        "Fisher's discriminant",
        "Least squares and discriminants",
        "The direction in which the class means differ most against the spread within; a point goes to the nearest mean there.",
        _fisher,
        (_menu("n_components", "coordinates", {1: "the first", None: "all"}), _SHRINKAGE),
        ("projection",),
        scores=_nearness,
    ),
    ExplorerFamily(
        "centroid",
        "Nearest centroid",
        "Least squares and discriminants",
        "A point belongs to the class whose mean is nearest.",
        NearestCentroid,
        (_menu("priors", "priors", {"uniform": "equal", "empirical": "as in the data"}),),
        scores=_nearness,
    ),
    ExplorerFamily(
        "lda",
        "Linear discriminant analysis",
        "Least squares and discriminants",
        "Gaussians with one covariance: linear boundaries.",
        lambda shrinkage: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage or None),
        (_SHRINKAGE,),
        ("ellipses",),
    ),
    ExplorerFamily(
        "qda",
        "Quadratic discriminant analysis",
        "Least squares and discriminants",
        "Gaussians with a covariance each: boundaries are conics.",
        QuadraticDiscriminantAnalysis,
        (Control("reg_param", "regularisation", "range", 0.0),),
        ("ellipses",),
    ),
    ExplorerFamily(
        "rda",
        "Regularised discriminant analysis",
        "Least squares and discriminants",
        "Between LDA, QDA and nearest means: α mixes in the pooled covariance, γ a sphere.",
        RegularizedDiscriminantAnalysis,
        (
            Control("alpha", "α, own against pooled covariance", "range", 0.5, pad="gamma"),
            Control("gamma", "γ, covariance against sphere", "range", 0.9),
        ),
        ("ellipses",),
    ),
    ExplorerFamily(
        "naive-bayes",
        "Gaussian naive Bayes",
        "Naive Bayes",
        "Columns are independent within a class: axis-parallel Gaussians.",
        GaussianNB,
        (
            Control("shared_variance", "one variance for all classes", "switch", False),
            Control("var_smoothing", "smoothing of variances", "log", 1e-9, 1e-9, 1.0),
        ),
        ("densities",),
    ),
    ExplorerFamily(
        "logistic",
        "Logistic regression",
        "Logistic regression",
        "Log-odds that are linear, fitted by (penalised) maximum likelihood.",
        _logistic,
        (
            Control("C", "C", "log", 1.0, 1e-3, 1e3, unlimited=True, help="At the right end: maximum likelihood."),
            _menu("penalty", "penalty", {"l2": "L2", "half": "L1 and L2", "l1": "L1", "firth": "Firth"}),
            _menu(
                "solver",
                "solver",
                {"auto": "automatic", "newton": "Newton (IRLS)", "gradient": "gradient", "lbfgs": "L-BFGS"},
            ),
        ),
        ("coefficients", "separation", "trace", "margin_loss"),
        film="iterations",
    ),
    ExplorerFamily(
        "bayesian",
        "Bayesian logistic regression",
        "Logistic regression",
        "A distribution over boundaries: probabilities are less certain away from the points.",
        _bayesian,
        (
            _menu(
                "posterior",
                "posterior",
                {"laplace": "Laplace", "variational": "variational", "gibbs": "Gibbs sampling"},
            ),
            _menu("predictive", "predictive", {"probit": "probit", "quadrature": "quadrature"}),
            Control("chosen", "precision by the evidence", "switch", True),
            Control("precision", "prior precision", "log", 1.0, 1e-4, 1e3),
        ),
        ("posterior", "coefficient_posterior"),
    ),
    ExplorerFamily(
        "perceptron",
        "Perceptron",
        "Online",
        "Turns towards every point it gets wrong; it stops if the classes can be separated.",
        lambda variant, max_iter, shuffle: Perceptron(variant=variant, max_iter=max_iter, shuffle=shuffle, tol=None),
        (
            _menu(
                "variant", "which vector", {"plain": "the last", "averaged": "the average", "pocket": "the best so far"}
            ),
            Control("max_iter", "epochs at most", "whole", 100, 1, 1000),
            Control("shuffle", "shuffle every epoch", "switch", True),
        ),
        ("mistakes", "margin_loss"),
        film="mistakes",
    ),
    ExplorerFamily(
        "passive-aggressive",
        "Passive-aggressive",
        "Online",
        "The least change of the rule that gives the present point a margin of one.",
        lambda C, loss: PassiveAggressiveClassifier(C=C, loss=loss, random_state=0),
        (_C, _menu("loss", "step", {"hinge": "PA-I", "squared_hinge": "PA-II"})),
        ("margin_loss",),
    ),
    ExplorerFamily(
        "svm",
        "Support vector machine",
        "Margins",
        "The widest margin, in the space of a kernel; only the support vectors count.",
        _svc,
        (
            _menu("kernel", "kernel", _KERNELS),
            _C,
            _GAMMA,
            Control("degree", "degree of the polynomial", "whole", 3, 2, 6),
        ),
        ("margin", "margin_loss"),
        votes=True,
    ),
    ExplorerFamily(
        "linear-svm",
        "Linear support vector machine",
        "Margins",
        "The widest margin between the classes, with slack for points on the wrong side.",
        lambda C: SVC(kernel="linear", C=C, **_PAIRS),
        (_C,),
        ("margin", "margin_loss"),
        votes=True,
    ),
    ExplorerFamily(
        "nu-svm",
        "ν-support vector machine",
        "Margins",
        "ν bounds the share of points inside the margin from above, that of support vectors from below.",
        _nu,
        (
            _menu("kernel", "kernel", {"rbf": "Gaussian (RBF)", "linear": "linear"}),
            Control("nu", "ν", "range", 0.3, 0.02, 0.9),
            _GAMMA,
        ),
        ("margin",),
        votes=True,
    ),
    ExplorerFamily(
        "margin-losses",
        "Linear rule, any loss",
        "Margins",
        "One linear rule, and the loss of the margin that it minimises.",
        LinearClassifier,
        (
            _menu(
                "loss",
                "loss",
                {
                    "squared_hinge": "squared hinge",
                    "hinge": "hinge",
                    "logistic": "logistic",
                    "squared": "squared",
                    "huberised": "huberised hinge",
                    "sigmoid": "sigmoid",
                    "perceptron": "perceptron",
                },
            ),
            _C,
        ),
        ("margin_loss",),
    ),
    ExplorerFamily(
        "many-classes",
        "Pairs or one against the rest",
        "Many classes",
        "K classes from machines of two; where they disagree a region is ambiguous. Softmax is one model for all.",
        _multi,
        (
            _menu(
                "scheme", "scheme", {"rest": "one against the rest", "pairs": "one against one", "softmax": "softmax"}
            ),
            _menu("rule", "rule", {name: name for name in ("logistic", "least squares", "lda", "perceptron", "svm")}),
        ),
        ("ambiguity",),
        votes=True,
    ),
]
FAMILIES: dict[str, ExplorerFamily] = {family.name: family for family in _LISTED}
"""The families by name, in the order of the page."""


def family_of(name: str) -> ExplorerFamily:
    """The family of this name."""
    if name not in FAMILIES:
        raise BadRequest(f"There is no family {name!r}; the families are {', '.join(FAMILIES)}.")
    return FAMILIES[name]
