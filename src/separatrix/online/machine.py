"""One perceptron, of one class against the others: its vector, and what its variant keeps beside it.

    t f(x) ≤ 0:  u ← u + η s t φ(x)          f = uᵀφ,  φ(x) = [x, ℓ],  t = ±1,  s the weight of the row

The loops over rows are compiled: see kernels/perceptron.py for the rule in full, and kernels/perceptrons.py for several
machines that read dense rows together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float
from separatrix.online.visits import Visits

Variant = Literal["plain", "averaged", "pocket"]
_COUNTED = ("visits", "mistakes", "loss", "run")
_STATE = np.dtype(
    [
        (name, np.float64)
        for name in (
            *("scale", "intercept", "due", "visits", "mistakes", "loss"),
            *("scales", "seen", "summed_intercept"),
            *("run", "longest_run", "longest_intercept"),
        )
    ]
)


@dataclass(frozen=True)
class Rule:
    """What all machines share: the steps, the penalty and when to stop."""

    eta: float
    lift_squared: float
    alpha: float
    l1_ratio: float
    variant: Variant
    shuffle: bool
    seed: int
    max_iter: int
    tol: float | None
    patience: int
    workers: int

    @property
    def shrink(self) -> float:
        """Factor of w before every step, for the L2 part of the penalty."""
        return max(0.0, 1.0 - (1.0 - self.l1_ratio) * self.eta * self.alpha)

    @property
    def absolute(self) -> float:
        """What |w_j| is lowered by at every step, for the L1 part."""
        return self.l1_ratio * self.eta * self.alpha

    @property
    def patience_of_epochs(self) -> tuple[bool, float, int]:
        """Whether there is a tol, tol, and the epochs without getting better by it that end the training."""
        return self.tol is not None, self.tol or 0.0, self.patience

    def penalty(self, w: Float) -> float:
        """α((1−ρ)/2 ‖w‖² + ρ‖w‖₁)."""
        return self.alpha * float((1.0 - self.l1_ratio) * 0.5 * (w @ w) + self.l1_ratio * np.abs(w).sum())


class BinaryPerceptron:
    """One class against the others: the running vector and what the variant keeps beside it.

    Rows of class `code` have t = +1; `factors` multiply the weights of rows with t = −1 and t = +1. It starts from `coef` (d,)
    and `intercept`; `variant` is which vector is the answer.
    """

    def __init__(self, code: int, factors: Float, coef: Float, intercept: float, variant: Variant) -> None:
        self.code, self.factors, self._variant = code, factors, variant
        self._v, self._state = coef.copy(), np.zeros(1, dtype=_STATE)
        self._state["scale"], self._state["intercept"] = 1.0, intercept
        nothing, d = np.zeros(0), len(coef)
        self._summed = np.zeros(d) if variant == "averaged" else nothing
        self._longest = np.zeros(d) if variant == "pocket" else nothing
        self._pocket, self._pocket_intercept = coef.copy(), intercept
        self.least_step, self.greatest_step = np.inf, 0.0
        self.begin()

    def begin(self) -> None:
        """A new run over data that may be others: penalties start anew, and the pocket has not been counted."""
        self.done, self.clean, self._epoch = False, False, (0.0, 0.0, 0.0)
        self._paid, self._best, self._patience, self._pocket_mistakes = np.zeros(len(self._v)), np.inf, 0, np.inf
        self._state["due"] = 0.0

    def get(self, name: str) -> float:
        """A field of the record that the compiled loop keeps."""
        return float(self._state[name][0])

    def visit(self, rows: Visits, order: Codes, rule: Rule) -> None:
        """Visit some rows in order."""
        from separatrix.kernels.perceptron import visit

        steps = (rule.eta, rule.lift_squared, rule.shrink, rule.absolute)
        vectors = (self._v, self._paid, self._summed, self._longest)
        visit(rows.stored, order, self.code, self.factors, steps, vectors, self._state)

    def run_epochs(self, rows: Visits, salts: NDArray[np.uint64], rule: Rule) -> Float:
        """Epochs over rows that are all there until the machine is done, one per salt at most: mistakes and loss of each."""
        if self.plain(rule) and self.factors.all() and len(rows.weights) and rows.weights.min() == rows.weights.max():
            return self._plain_epochs(rows, salts, rule)
        from separatrix.kernels.perceptron import epochs

        steps = (rule.eta, rule.lift_squared, rule.shrink, rule.absolute)
        vectors = (self._v, self._paid, self._summed, self._longest)
        stop = (rule.alpha, rule.l1_ratio, *rule.patience_of_epochs, self._best, self._patience)
        trace = np.empty((len(salts), 2))
        n, self._best, self._patience = epochs(
            rows.stored, rows.orders(salts), self.code, self.factors, steps, vectors, self._state, stop, trace
        )
        self._settle(trace[n - 1, 0] == 0, rule)
        return trace[:n]

    def plain(self, rule: Rule) -> bool:
        """Whether nothing but the vector and the intercept is carried from visit to visit."""
        return self._variant == "plain" and rule.alpha == 0.0 and self.get("scale") == 1.0

    def _plain_epochs(self, rows: Visits, salts: NDArray[np.uint64], rule: Rule) -> Float:
        from separatrix.kernels.perceptron import plain_epochs

        sums, trace = np.array([self.get(name) for name in (*_COUNTED, "intercept")]), np.empty((len(salts), 2))
        stop = (*rule.patience_of_epochs, self._best, self._patience)
        n, self._best, self._patience = plain_epochs(
            rows.stored,
            rows.orders(salts),
            self.code,
            self.factors,
            (rule.eta, rule.lift_squared),
            self._v,
            sums,
            stop,
            trace,
        )
        for name, value in zip((*_COUNTED, "intercept"), sums, strict=True):
            self._state[name] = value
        self._settle(trace[n - 1, 0] == 0, rule)
        return trace[:n]

    def _settle(self, without_mistake: bool, rule: Rule) -> None:
        # Without a penalty nothing changes any more; with one the vector still shrinks.
        self.clean = without_mistake and rule.alpha == 0
        self.done = self.clean or self._patience >= rule.patience

    @staticmethod
    def run_together(
        machines: list[BinaryPerceptron], rows: Visits, salts: NDArray[np.uint64], rule: Rule
    ) -> list[Float]:
        """`run_epochs` of machines by the plain rule without a penalty: every row is read once for all."""
        from separatrix.kernels.perceptrons import epochs_together

        made = 0
        traces: dict[int, list[Float]] = {id(machine): [] for machine in machines}
        active = [machine for machine in machines if not machine.done]
        while active and made < len(salts):
            sparse = len(rows.indptr) > 0
            V = np.stack([machine._v for machine in active], axis=int(sparse))
            states = np.concatenate([machine._state for machine in active])
            b, sums = states["intercept"].copy(), np.stack([states[name] for name in _COUNTED], axis=1)
            best = np.array([machine._best for machine in active])
            waited = np.array([machine._patience for machine in active])
            trace = np.empty((len(salts) - made, len(active), 2))
            codes, factors = np.array([machine.code for machine in active]), np.stack([one.factors for one in active])
            n = epochs_together(
                rows.stored,
                rows.orders(salts[made:]),
                codes,
                factors,
                (rule.eta, rule.lift_squared),
                V,
                b,
                sums,
                (*rule.patience_of_epochs, best, waited),
                trace,
            )
            made += n
            for k, machine in enumerate(active):
                machine._v = V[:, k].copy() if sparse else V[k]
                for name, value in zip(_COUNTED, sums[k], strict=True):
                    machine._state[name] = value
                machine._state["intercept"], machine._best, machine._patience = b[k], float(best[k]), int(waited[k])
                machine._settle(trace[n - 1, k, 0] == 0, rule)
                traces[id(machine)].append(trace[:n, k])
            active = [machine for machine in active if not machine.done]
        return [np.concatenate(traces[id(machine)]) for machine in machines]

    def note_steps(self, rows: Visits) -> None:
        """The least and the greatest weight of a visit, for the bound on the mistakes."""
        used = self.factors[(rows.codes[rows.rows] == self.code).astype(np.intp)] * rows.weights
        used = used[used > 0]
        self.least_step = min(self.least_step, float(used.min(initial=np.inf)))
        self.greatest_step = max(self.greatest_step, float(used.max(initial=0.0)))

    @property
    def running(self) -> tuple[Float, float]:
        """The vector that makes the mistakes."""
        return self._v * self.get("scale"), self.get("intercept")

    @property
    def answer(self) -> tuple[Float, float]:
        """The vector of the variant."""
        if self._variant == "averaged" and self.get("seen") > 0:
            total = self._summed + self.get("scales") * self._v
            return total / self.get("seen"), self.get("summed_intercept") / self.get("seen")
        return (self._pocket, self._pocket_intercept) if np.isfinite(self._pocket_mistakes) else self.running

    def end_epoch(self, rule: Rule, score: float | None) -> dict[str, float]:
        """Decide whether to go on, by the loss of the epoch or the score on rows held out; what the epoch was like."""
        before, self._epoch = self._epoch, (self.get("visits"), self.get("mistakes"), self.get("loss"))
        visits, mistakes, loss = (now - then for now, then in zip(self._epoch, before, strict=True))
        loss = loss / max(visits, 1.0) + rule.penalty(self.running[0])
        value = loss if score is None else -score
        stuck = rule.tol is not None and (value > self._best - rule.tol)
        self._patience = self._patience + 1 if stuck else 0
        self._best = min(self._best, value)
        self._settle(mistakes == 0, rule)
        return {"mistakes": mistakes, "loss": loss}

    def candidates(self) -> list[tuple[Float, float]]:
        """What may go into the pocket: what is there, the vector with the longest run of right rows, the last one."""
        return [
            (self._pocket, self._pocket_intercept),
            (self._longest.copy(), self.get("longest_intercept")),
            self.running,
        ]

    def put_in_pocket(self, candidates: list[tuple[Float, float]], mistakes: Float) -> None:
        """Keep the candidate with the fewest mistakes; the one that is there, when several have as few."""
        self._pocket, self._pocket_intercept = candidates[int(np.argmin(mistakes))]
        self._pocket_mistakes = float(mistakes.min())
        self._state["run"] = self._state["longest_run"] = 0.0
