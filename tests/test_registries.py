"""Every method × loss × penalty × source, and a solver and a loss that are registered here and held to the same.

truth = F(θ) − the least F that any method has found;   0 ≤ truth ≤ certificate.gap,   and CONVERGED means gap ≤ tol · max(1, F)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from separatrix import LinearClassifier, LogisticRegression, Status, as_source
from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.losses import Loss, Softmax
from separatrix.objectives.margin_losses import MARGIN_LOSSES, Margin
from separatrix.result import Fit
from separatrix.solvers.bounds import Bound, dual_gap, least_bound, strong_convexity
from separatrix.solvers.method import Budget, Method, Start, State
from separatrix.solvers.registry import METHODS, method_names, minimise, pick

N, D, TOL = 60, 3, 1e-6
PENALTIES: dict[str, dict[str, Any]] = {
    "l2": {"C": 0.5},
    "l1": {"C": 0.5, "l1_ratio": 1.0},
    "elastic net": {"C": 0.5, "l1_ratio": 0.5},
    "prior": {"prior": (np.full(D, 0.2), np.diag([1.0, 2.0, 0.5]) + 0.2)},
    "bounds": {"C": 0.5, "bounds": (np.full(D, -0.1), np.full(D, 0.3))},
    "no intercept": {"C": 2.0, "fit_intercept": False},
}
# The optimum of the perceptron loss is w = 0: nobody asks a solver for it.
CONVEX: dict[str, Loss] = {name: loss for name, loss in MARGIN_LOSSES.items() if loss.convex and name != "perceptron"}
LOSSES: dict[str, Loss] = {**CONVEX, "softmax": Softmax(3), "reference": Softmax(3, 1)}


def rows(loss: Loss, kind: str) -> Source:
    """Overlapping classes with weights, some of them 0."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, D)) * [1.0, 3.0, 0.3]
    X[:, 2] = np.where(rng.random(N) < 0.6, 0.0, X[:, 2])
    classes = 3 if isinstance(loss, Softmax) else 2
    codes = np.digitize(X[:, 0] + rng.standard_normal(N), [0.0, 0.8][: classes - 1])
    weights = rng.choice([0.0, 1.0, 2.0], N)
    stored: Any = {
        "dense": X,
        "fortran": np.asfortranarray(X),
        "sparse": sp.csr_array(X),
        "single": X.astype(np.float32),
    }
    return as_source(stored[kind], codes, weights).labelled()


def check(problem: LinearProblem, name: str, best: float) -> None:
    """The certificate of a method on a problem, whose optimum is at most `best`."""
    found = minimise(problem, name, tol=TOL, max_iter=1000)
    truth, gap = found.certificate.objective - best, found.certificate.gap
    assert truth <= gap + 1e-9 * max(1.0, abs(best)), (truth, gap)
    assert found.status in (Status.CONVERGED, Status.UNPROVEN), found.status
    if found.status is Status.CONVERGED:
        assert gap <= problem.target(TOL, found.certificate.objective)
        assert truth <= problem.target(TOL, best) + 1e-9
    published = problem.publish(found, TOL)
    assert published.certificate.gap >= problem.units * truth - 1e-9
    assert len(found.trace) >= 1 and found.solver in METHODS


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_every_method_on_every_problem(kind: str, loss: str, penalty: str) -> None:
    """Methods that a problem does not offer enough for give way to another; the proofs hold either way."""
    problem = LinearProblem.of(rows(LOSSES[loss], kind), LOSSES[loss], **PENALTIES[penalty])
    names = [name for name, method in METHODS.items() if "dual" not in method.needs or "dual" in problem.offers]
    best = min(
        minimise(problem, name, tol=1e-11, max_iter=2000).certificate.objective for name in ("auto", "prox_newton")
    )
    for name in names:
        check(problem, name, best)


@pytest.mark.parametrize("kind", ["fortran", "single"])
@pytest.mark.parametrize("name", METHODS)
def test_rows_may_be_stored_in_any_way(kind: str, name: str) -> None:
    loss = MARGIN_LOSSES["logistic"]
    problem = LinearProblem.of(rows(loss, kind), loss, C=0.5)
    check(problem, name, minimise(problem, tol=1e-12, max_iter=100).certificate.objective)


def test_names_are_unique_and_unknown_ones_are_refused() -> None:
    aliases = [alias for method in METHODS.values() for alias in method.aliases]
    assert len({*METHODS, *aliases}) == len(METHODS) + len(aliases) and {*METHODS, *aliases} < method_names()
    problem = LinearProblem.of(rows(MARGIN_LOSSES["logistic"], "dense"))
    assert pick(problem, "newton-cholesky") is METHODS["newton"] and pick(problem, "saga") is pick(problem)
    with pytest.raises(ValueError, match="solver='simplex' is not known"):
        pick(problem, "simplex")


# -- a solver in one file and one line: gradient descent with a fixed rate ------------------------------------------------


def _toy_init(problem: LinearProblem, start: Start, budget: Budget) -> State:
    return State(start.theta, problem.evaluate(start.theta))


def _toy_step(problem: LinearProblem, state: State, budget: Budget) -> State:
    squares = sum(float(np.square(block.dense()).sum()) for block in problem.source.blocks()) * 2.0
    rate = 1.0 / (problem.objective.loss.steepest * squares + float(problem.objective.penalty.quadratic.max()))
    theta = state.theta - rate * state.evaluation.gradient
    return State(theta, problem.evaluate(theta))


def _toy_bound(problem: LinearProblem, state: State, budget: Budget) -> State:
    known = least_bound(state.trivial, strong_convexity(problem, state.evaluation.gradient))
    return replace(state, bound=least_bound(known, dual_gap(problem, state.theta, state.evaluation, budget.target)))


TOY = Method("toy", frozenset({"gradient", "smooth"}), _toy_init, _toy_step, _toy_bound)


class ToyLoss(Margin):
    """2 log(1 + e^{−m/2}): the logistic loss at twice the temperature."""

    concordance, steepest = 0.5, 0.125

    def _of(self, m: Float) -> Float:
        return 2.0 * np.logaddexp(0.0, -0.5 * m)

    def _slope(self, m: Float) -> Float:
        return -1.0 / (1.0 + np.exp(0.5 * m))

    def _bend(self, m: Float) -> Float:
        p = 1.0 / (1.0 + np.exp(-0.5 * m))
        return 0.5 * p * (1.0 - p)

    def _dual(self, a: Float) -> Float:
        return 2.0 * MARGIN_LOSSES["logistic"].conjugate(np.ones(len(a), dtype=np.intp), a[:, None])


def test_a_solver_that_is_registered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "toy", TOY)
    for penalty in PENALTIES:
        problem = LinearProblem.of(rows(MARGIN_LOSSES["logistic"], "dense"), **PENALTIES[penalty])
        best = minimise(problem, tol=1e-12, max_iter=100).certificate.objective
        found = minimise(problem, "toy", tol=1e-3, max_iter=40)
        assert found.certificate.objective - best <= found.certificate.gap + 1e-9
        assert (found.solver == "toy") == problem.objective.penalty.smooth
    X, y = np.array([[0.0], [1.0], [1.5], [3.0]]), [0, 1, 0, 1]
    calls: list[Any] = []
    with pytest.warns(ConvergenceWarning, match="limit on iterations"):
        model = LogisticRegression(solver="toy", max_iter=5).fit(X, y)
    assert model.solver_ == "toy" and model.n_iter_[0] == 5 and model.fit_.status is Status.MAX_ITER
    assert minimise(problem, "toy", tol=0.0, max_iter=3, callback=calls.append).iterations == len(calls) - 1 == 3


def test_a_loss_that_is_registered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = ToyLoss()
    monkeypatch.setitem(MARGIN_LOSSES, "toy", toy)
    m, h = np.linspace(-4, 4, 9)[:, None], 1e-6
    codes = np.ones(9, dtype=np.intp)
    slope = (toy.value(codes, m + h) - toy.value(codes, m - h)) / (2 * h)
    np.testing.assert_allclose(toy.gradient(codes, m)[:, 0], slope, atol=1e-8)
    for penalty in PENALTIES:
        problem = LinearProblem.of(rows(toy, "dense"), toy, **PENALTIES[penalty])
        best = minimise(problem, tol=1e-12, max_iter=200).certificate.objective
        for name, method in METHODS.items():
            if "dual" not in method.needs:
                check(problem, name, best)
    source = rows(toy, "dense")
    fit: Fit = LinearClassifier("toy").fit(source).fit_
    assert fit.status is Status.CONVERGED and fit.certificate is not None and fit.certificate.relative_gap <= 1e-4
    half = replace_temperature(source)
    np.testing.assert_allclose(LinearClassifier("toy", C=0.5).fit(source).coef_, half, rtol=1e-3)


def replace_temperature(source: Source) -> Float:
    """w of the toy loss from the logistic one: C Σ 2 log(1 + e^{−m/2}) + ½w² = 2(C Σ log(1 + e^{−v·x}) + v²), v = w/2."""
    model = LinearClassifier("logistic", C=0.5 / 2.0, tol=1e-10).fit(source)
    return 2.0 * model.coef_


@dataclass(frozen=True)
class _Endless(State):
    steps: int = 0


def test_the_driver_owns_limits_interrupts_and_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that neither moves nor proves ends at the limit; Ctrl-C in a step or at the start gives the point so far."""
    problem = LinearProblem.of(rows(MARGIN_LOSSES["logistic"], "dense"))

    def method(at: int) -> Method:
        def init(problem: LinearProblem, start: Start, budget: Budget) -> State:
            if at < 0 and not start.near:
                raise KeyboardInterrupt
            return _Endless(start.theta, problem.evaluate(start.theta))

        def step(problem: LinearProblem, state: Any, budget: Budget) -> State:
            if state.steps == at:
                raise KeyboardInterrupt
            return replace(state, steps=state.steps + 1)

        return Method("endless", frozenset({"gradient"}), init, step, lambda problem, state, budget: state)

    for at, status, steps in ((99, Status.MAX_ITER, 7), (4, Status.INTERRUPTED, 4), (-1, Status.INTERRUPTED, 0)):
        monkeypatch.setitem(METHODS, "endless", method(at))
        found = minimise(problem, "endless", tol=1e-6, max_iter=7)
        assert (found.status, found.iterations) == (status, steps)
        assert found.certificate.gap == found.certificate.objective  # F* ≥ 0 is all that is known
    assert Bound(1.0).kind == "proven"
