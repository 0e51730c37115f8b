"""Who runs on a problem: ours, and every peer that has this model and whose cost at this shape is not hopeless.

A contender is built with a tolerance of the ladder, or with None, its default. What stops by no tolerance has one rung.
Contenders that solve another problem than ours (LIBLINEAR penalises an intercept) are held to the optimum of their own:
`aim` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.atlas.draw import Problem
from benchmarks.contender import OURS, Contender, Peer
from benchmarks.ladder import ONCE, RUNGS
from benchmarks.peers import celer, glum, intelex, liblinear, skglm
from benchmarks.peers.sklearn import PEER as SKLEARN

ROW_RUNGS: tuple[float | None, ...] = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
LIBLINEAR_RUNGS: tuple[float | None, ...] = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
MANY = 10_000
LOGISTIC = "sklearn.linear_model:LogisticRegression"


def entrant(
    peer: Peer, name: str, path: str, rungs: tuple[float | None, ...] = RUNGS, aim: str = "", **parameters: Any
) -> Contender:
    return peer.contender(name, path, parameters, rungs=rungs, aim=aim)


def field(problem: Problem) -> list[Contender]:
    """Ours first, then the peers, those likely to be fastest first."""
    return [each for each in _MAKERS[problem.estimator](problem) if each.peer.installed]


def _logistic(problem: Problem) -> Iterator[Contender]:
    p, two = problem, problem.classes == 2
    common: dict[str, Any] = {"C": p.strength, "fit_intercept": p.intercept}
    peers: dict[str, Any] = {**common, "max_iter": MANY}
    yield entrant(OURS, "", "separatrix:LogisticRegression", **common)
    if p.d * (1 if two else p.classes) <= 600 and p.n > 2 * p.d:
        yield entrant(SKLEARN, "newton-cholesky", LOGISTIC, solver="newton-cholesky", **peers)
    yield entrant(SKLEARN, "newton-cg", LOGISTIC, solver="newton-cg", **peers)
    yield entrant(SKLEARN, "lbfgs", LOGISTIC, **peers)
    if not p.sparse:
        yield entrant(intelex.PEER, "lbfgs", "benchmarks.peers.intelex:Logistic", ROW_RUNGS, **peers)
    if two and not p.intercept:
        yield entrant(SKLEARN, "liblinear dual", LOGISTIC, solver="liblinear", dual=True, **peers)
        yield entrant(SKLEARN, "liblinear", LOGISTIC, solver="liblinear", **peers)
    if two and p.sparse:
        yield _liblinear(p, "primal", 0)
    if two and p.d <= 400 and not p.sparse and p.n > p.d:
        yield _glum(p)
    if p.entries * p.classes <= 1e6:
        yield entrant(SKLEARN, "sag", LOGISTIC, solver="sag", random_state=0, **peers)


def _liblinear(problem: Problem, name: str, solver: int) -> Contender:
    """LIBLINEAR itself, which can leave an intercept free in its primal solvers."""
    intercept = "free" if problem.intercept else ""
    parameters = {"solver": solver, "C": problem.strength, "intercept": intercept}
    return liblinear.PEER.contender(name, "benchmarks.peers.liblinear:Linear", parameters, rungs=LIBLINEAR_RUNGS)


def _glum(problem: Problem) -> Contender:
    parameters = {"C": problem.strength, "fit_intercept": problem.intercept, "max_iter": 1000}
    return glum.PEER.contender(
        "binomial", "benchmarks.peers.glum:Logistic", parameters, rungs=RUNGS, tolerance="gradient_tol"
    )


def _l1(problem: Problem) -> Iterator[Contender]:
    p, two = problem, problem.classes == 2
    common: dict[str, Any] = {"C": p.strength, "fit_intercept": p.intercept, "l1_ratio": 1.0}
    peers: dict[str, Any] = {**common, "max_iter": MANY, "random_state": 0}
    yield entrant(OURS, "", "separatrix:LogisticRegression", **common)
    if two and not p.intercept:
        yield entrant(SKLEARN, "liblinear", LOGISTIC, solver="liblinear", **peers)
    if two and p.sparse:
        yield _liblinear(p, "L1", 6)
    if two:
        skglm_rungs = (1e-4, 1e-5, 1e-6, 1e-7)
        alone: dict[str, Any] = {"C": p.strength, "fit_intercept": p.intercept}
        yield entrant(skglm.PEER, "", "benchmarks.peers.skglm:LogisticL1", skglm_rungs, **alone)
        if not p.intercept and p.sparse:
            yield entrant(celer.PEER, "", "benchmarks.peers.celer:LogisticL1", skglm_rungs, C=p.strength)
    if not two or p.entries <= 5e6:
        yield entrant(SKLEARN, "saga", LOGISTIC, solver="saga", **peers)


def _linear_svc(problem: Problem) -> Iterator[Contender]:
    p = problem
    loss = "hinge" if p.estimator == "hinge" else "squared_hinge"
    common: dict[str, Any] = {"C": p.strength, "fit_intercept": p.intercept, "loss": loss}
    free = p.intercept and p.variant == "free"
    scaling: dict[str, Any] = {} if free or not p.intercept else {"intercept_scaling": 1.0}
    yield entrant(OURS, "", "separatrix:LinearSVC", aim="free" if free else "", **scaling, **common)
    peers: dict[str, Any] = {**common, "max_iter": MANY, "random_state": 0}
    path = "sklearn.svm:LinearSVC"
    yield entrant(SKLEARN, "LinearSVC dual", path, dual=True, **peers)
    if loss == "squared_hinge":
        yield entrant(SKLEARN, "LinearSVC primal", path, dual=False, **peers)
    if p.sparse and p.classes == 2:
        kinds = {"hinge": {"dual": 3}, "squared_hinge": {"dual": 1, "primal": 2}}[loss]
        own = {"C": p.strength, "intercept": "penalised" if p.intercept else ""}
        for name, solver in kinds.items():
            parameters = {**own, "solver": solver}
            adapter = "benchmarks.peers.liblinear:Linear"
            yield liblinear.PEER.contender(name, adapter, parameters, rungs=LIBLINEAR_RUNGS)


def _svc(problem: Problem) -> Iterator[Contender]:
    common: dict[str, Any] = {"C": problem.strength, "kernel": problem.variant}
    yield entrant(OURS, "", "separatrix:SVC", **common)
    yield entrant(SKLEARN, "SVC", "sklearn.svm:SVC", **common)
    yield entrant(intelex.PEER, "SVC", "sklearnex.svm:SVC", **common)


def _ridge_classifier(problem: Problem) -> Iterator[Contender]:
    common: dict[str, Any] = {"alpha": problem.strength, "fit_intercept": problem.intercept}
    path = "sklearn.linear_model:RidgeClassifier"
    yield entrant(OURS, "", "separatrix:RidgeClassifier", **common)
    yield from _ridges(problem, path, common)
    if not problem.sparse:
        yield entrant(intelex.PEER, "Ridge", "benchmarks.peers.intelex:RidgeOnLabels", ONCE, **common)


def _ridge(problem: Problem) -> Iterator[Contender]:
    common: dict[str, Any] = {"alpha": problem.strength, "fit_intercept": problem.intercept}
    yield entrant(OURS, "", "separatrix:Ridge", **common)
    yield from _ridges(problem, "sklearn.linear_model:Ridge", common)
    if not problem.sparse:
        yield entrant(intelex.PEER, "Ridge", "sklearnex.linear_model:Ridge", ONCE, **common)


def _ridges(problem: Problem, path: str, common: dict[str, Any]) -> Iterator[Contender]:
    yield entrant(SKLEARN, "auto", path, **common)
    yield entrant(SKLEARN, "lsqr", path, solver="lsqr", max_iter=MANY, **common)
    if problem.sparse:
        yield entrant(SKLEARN, "sparse_cg", path, solver="sparse_cg", max_iter=MANY, **common)


def _linear_regression(problem: Problem) -> Iterator[Contender]:
    for peer, path in (
        (OURS, "separatrix:LinearRegression"),
        (SKLEARN, "sklearn.linear_model:LinearRegression"),
        (intelex.PEER, "sklearnex.linear_model:LinearRegression"),
    ):
        yield entrant(peer, "", path, ONCE, fit_intercept=problem.intercept)


def _lda(problem: Problem) -> Iterator[Contender]:
    path = "sklearn.discriminant_analysis:LinearDiscriminantAnalysis"
    yield entrant(OURS, "", "separatrix:LinearDiscriminantAnalysis", ONCE)
    yield entrant(SKLEARN, "LDA lsqr", path, ONCE, solver="lsqr")
    yield entrant(SKLEARN, "LDA svd", path, ONCE)


def _qda(problem: Problem) -> Iterator[Contender]:
    path = "sklearn.discriminant_analysis:QuadraticDiscriminantAnalysis"
    yield entrant(OURS, "", "separatrix:QuadraticDiscriminantAnalysis", ONCE)
    yield entrant(SKLEARN, "QDA svd", path, ONCE)
    yield entrant(SKLEARN, "QDA eigen", path, ONCE, solver="eigen")


def _naive_bayes(problem: Problem) -> Iterator[Contender]:
    yield entrant(OURS, "", f"separatrix:{problem.estimator}", ONCE)
    yield entrant(SKLEARN, problem.estimator, f"sklearn.naive_bayes:{problem.estimator}", ONCE)


def _perceptron(problem: Problem) -> Iterator[Contender]:
    """Ten epochs with the order drawn, or the default: until the loss of five epochs in turn falls no more."""
    epochs: dict[str, Any] = {"max_iter": 10, "tol": None} if problem.variant == "10 epochs" else {}
    common: dict[str, Any] = {"fit_intercept": problem.intercept, **epochs}
    yield entrant(OURS, "", "separatrix:Perceptron", ONCE, **common)
    yield entrant(SKLEARN, "Perceptron", "sklearn.linear_model:Perceptron", ONCE, **common)


_MAKERS: dict[str, Callable[[Problem], Iterator[Contender]]] = {
    "logistic": _logistic,
    "softmax": _logistic,
    "logistic L1": _l1,
    "hinge": _linear_svc,
    "squared hinge": _linear_svc,
    "SVC": _svc,
    "RidgeClassifier": _ridge_classifier,
    "Ridge": _ridge,
    "LinearRegression": _linear_regression,
    "LDA": _lda,
    "QDA": _qda,
    "GaussianNB": _naive_bayes,
    "MultinomialNB": _naive_bayes,
    "ComplementNB": _naive_bayes,
    "BernoulliNB": _naive_bayes,
    "CategoricalNB": _naive_bayes,
    "Perceptron": _perceptron,
}
