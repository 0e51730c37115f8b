"""What a method of minimisation is: three functions and what they need. The loop around them is in driver.py.

    init(problem, start, budget)  → state          step(problem, state, budget)  → next state
    bound(problem, state, budget) → the same state with the least bound on F − F* that the method can give

A method never loops over its own steps, prints, measures time or catches Ctrl-C. To add one: a file with a `Method` in it, and
its name in the list of registry.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from separatrix.data.block import Float
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.solvers.bounds import Bound, nowhere_negative


@dataclass(frozen=True)
class Start:
    """Where a method begins."""

    theta: Float
    near: bool = False
    """Whether θ is near the optimum already, so that some of the rows could not improve it."""
    loss_gradient: Float | None = None
    """∇ of the loss alone at θ, where it is known."""
    last: State | None = None
    """Where the same method stood that now goes on with sums of higher precision."""


class Budget(NamedTuple):
    """What is left to reach."""

    tol: float
    target: float
    """The gap that ends the work."""
    left: int
    """Iterations that are left; 0 when only the last proof is asked for."""


@dataclass(frozen=True)
class State:
    """A point, what is known about it, and (in subclasses) what the method carries from step to step."""

    theta: Float
    evaluation: Evaluation
    bound: Bound = field(default=Bound(float("inf")), kw_only=True)
    verdict: Status | None = field(default=None, kw_only=True)
    """Why no further step makes sense, where that is so."""
    nearly: bool = field(default=False, kw_only=True)
    """Whether the method estimates that the target is reached and leaves the proof to Newton's method."""
    taken: int = field(default=0, kw_only=True)
    """The iterations that the step to this point counts for, where these are not one; those before the first step."""
    passed: tuple[tuple[float, float], ...] = field(default=(), kw_only=True)
    """F and the bound at the points that one call of several steps has left behind, for the trace."""
    visited: tuple[Float, ...] = field(default=(), kw_only=True)
    """Points between the last one and this, of a method that was asked to keep them."""

    @property
    def value(self) -> float:
        """F at the point."""
        return self.evaluation.value

    @property
    def trivial(self) -> Bound:
        """F* ≥ 0."""
        return nowhere_negative(self.evaluation.value)

    def facts(self) -> dict[str, Any]:
        """Further entries of the trace."""
        return {}


@dataclass(frozen=True)
class Method:
    """A method of minimisation.

    Parameters
    ----------
    name : str
        As users ask for it.
    needs : frozenset of str
        Out of ``"gradient"``, ``"hessian"``, ``"products"`` (with the Hessian), ``"curved"`` (a loss without kinks, whose
        curvature does not jump either), ``"smooth"`` (a penalty without absolute values and bounds),
        ``"held"`` (every coefficient but the intercept has a penalty or bounds), ``"coordinates"`` (no penalty matrix),
        ``"prox"``, ``"dual"``: what a problem offers decides whether the method can be used.
    init, step, bound : callable
        See the head of this file.
    polish : callable, optional
        (problem, state, budget) → state, once after the tolerance is reached.
    settle : callable, optional
        (problem, state) → state at the very end, of a method that works in other coordinates than those of θ: the point, its
        evaluation and its bound in these.
    aliases : tuple of str
        Other names, such as scikit-learn's.
    """

    name: str
    needs: frozenset[str]
    init: Callable[[LinearProblem, Start, Budget], Any]
    step: Callable[[LinearProblem, Any, Budget], Any]
    bound: Callable[[LinearProblem, Any, Budget], Any]
    polish: Callable[[LinearProblem, Any, Budget], Any] | None = None
    settle: Callable[[LinearProblem, Any], Any] | None = None
    aliases: tuple[str, ...] = ()
