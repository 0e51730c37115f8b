"""The perceptron over the blocks of a source: visits, epochs, and when to stop.

    t f(x) ≤ 0:  u ← u + η s t φ(x)          f = uᵀφ,  φ(x) = [x, ℓ],  t = ±1,  s the weight of the row

ℓ is 0 without an intercept, 1 for dense rows and 1/10 for sparse ones, where a column of ones would outweigh the others.

    averaged   Σ s u / Σ s over all visits
    pocket     the u with the fewest weighted mistakes on all rows, among the last of each epoch and the one that had the
               longest run of right rows in it (Gallant's ratchet, once per epoch)

`visits` has the rows of an epoch and their order.

Reference: Rosenblatt (1958), Psychological Review 65; Freund and Schapire (1999), Machine Learning 37, section 2;
Gallant (1990), IEEE Transactions on Neural Networks 1.

**Complexity** O(nnz) per epoch and machine.
**Passes over the data** one per epoch, and one more for the pocket and for rows that are held out.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_random_state

from separatrix.data.block import Block, Codes, Float
from separatrix.data.folds import block_keys, held_out
from separatrix.data.source import Source
from separatrix.errors import ClassName, Message
from separatrix.online.visits import Mask, Visits, salt, turns, visited

Variant = Literal["plain", "averaged", "pocket"]
_SPARSE_LIFT_SQUARED = 0.01
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

        stored = (rows.data, rows.indices, rows.indptr, rows.rows, rows.codes, rows.weights)
        steps = (rule.eta, rule.lift_squared, rule.shrink, rule.absolute)
        vectors = (self._v, self._paid, self._summed, self._longest)
        visit(stored, order, self.code, self.factors, steps, vectors, self._state)

    def note_steps(self, rows: Visits) -> None:
        """The least and the greatest weight of a visit, for the bound on the mistakes."""
        used = self.factors[(rows.codes == self.code).astype(np.intp)] * rows.weights
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
        # Without a penalty nothing changes any more; with one the vector still shrinks.
        self.clean = mistakes == 0 and rule.alpha == 0
        self.done = self.clean or self._patience >= rule.patience
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


def start_machines(
    n_classes: int, n_features: int, factors: Float | None, coef: Any, intercept: Any, variant: Variant
) -> list[BinaryPerceptron]:
    """One machine for two classes, else one per class; from coefficients that are given, or zero."""
    codes = [1] if n_classes == 2 else list(range(n_classes))
    start = _given("coef_init", coef, (len(codes), n_features))
    constants = _given("intercept_init", intercept, (len(codes),))
    steps = np.ones((len(codes), 2))
    if factors is not None:
        # One class against the others: these keep their steps. Two classes are each other's others.
        steps[:, 1] = factors[codes]
        steps[:, 0] = factors[0] if n_classes == 2 else 1.0
    return [
        BinaryPerceptron(code, factor, w, float(b), variant)
        for code, factor, w, b in zip(codes, steps, start, constants, strict=True)
    ]


def _given(name: str, value: Any, shape: tuple[int, ...]) -> Float:
    """What to start from, in its shape; zeros when nothing is given."""
    if value is None:
        return np.zeros(shape)
    start = np.array(value, dtype=np.float64)
    if start.size != np.prod(shape) or (shape[0] > 1 and start.shape != shape):
        raise ValueError(f"{name} has shape {start.shape}; for these classes and columns it must be {shape}.")
    if not np.isfinite(start).all():
        raise ValueError(f"{name} contains NaN or infinity; give finite numbers.")
    return start.reshape(shape)


@dataclass
class Training:
    """What happened: epochs made, visits per epoch, whether Ctrl-C ended it, one entry per epoch."""

    epochs: int = 0
    rows: int = 0
    interrupted: bool = False
    trace: list[dict[str, Any]] = field(default_factory=list)

    def sentence(
        self, rule: Rule, machines: list[BinaryPerceptron], wrong: NDArray[np.int64], classes: NDArray[Any]
    ) -> Message:
        """Why the epochs ended, and how many rows each machine has on the wrong side."""
        if self.interrupted:
            why = f"Ctrl-C ended it in epoch {self.epochs + 1}."
        elif all(machine.clean for machine in machines):
            why = "An epoch passed without a mistake."
        elif all(machine.done for machine in machines):
            why = f"It did not get better by tol={rule.tol} for {rule.patience} epochs."
        else:
            why = f"It made {self.epochs} epoch{'s' if self.epochs > 1 else ''}, as many as it may."
        if not wrong.any():
            return Message.of(f"{why} Every row is on its side.")
        worst = int(np.argmax(wrong))
        label = ClassName(classes[machines[worst].code])
        several = len(wrong) > 1
        return Message.of(
            f"{why} {wrong[worst]} row{' is' if wrong[worst] == 1 else 's are'} on the wrong side",
            *(" of the machine for class ", label) * several,
            ". separability(X, y",
            *(" == ", label) * several,
            ") can prove whether any hyperplane has all of them right; if one does, the plain rule finds it with tol=None, a "
            "larger max_iter and no penalty.",
        )


def train(
    source: Source,
    machines: list[BinaryPerceptron],
    rule: Rule,
    held_out: Mask | None = None,
    callback: Callable[[dict[str, Any]], None] = lambda state: None,
) -> Training:
    """Epochs until every machine is done; rows that are held out decide when, but are not learned from."""
    learned = None if held_out is None else ~held_out
    happened = Training()
    pool = ThreadPoolExecutor(rule.workers) if rule.workers > 1 and len(machines) > 1 else None
    in_memory = source.sample(1) is not None
    kept: list[Visits] | None = None

    def noted(rows: Visits) -> Visits:
        happened.rows += len(rows.rows)
        for machine in machines:
            machine.note_steps(rows)
        return rows

    try:
        while happened.epochs < rule.max_iter and not all(machine.done for machine in machines):
            active = [machine for machine in machines if not machine.done]
            source.count_pass()
            blocks = iter(kept) if kept is not None else visited(source, learned, rule.shuffle, in_memory)
            if happened.epochs == 0:
                blocks = map(noted, blocks)
            if in_memory and kept is None:
                blocks = iter(kept := list(blocks))
            for rows, order in turns(blocks, in_memory, salt(rule.seed, happened.epochs)):
                if pool is None:
                    _visit(active, rows, order, rule)
                else:
                    shares = (active[k :: rule.workers] for k in range(min(rule.workers, len(active))))
                    list(pool.map(lambda share, rows=rows, order=order: _visit(share, rows, order, rule), shares))
            happened.epochs += 1
            happened.trace.append(_end_epoch(source, active, rule, held_out, happened.epochs))
            source.check_finite(*(machine.running[0] for machine in active))
            callback(happened.trace[-1])
    except KeyboardInterrupt:
        happened.interrupted = True
    finally:
        if pool:
            pool.shutdown()
    return happened


def _visit(machines: list[BinaryPerceptron], rows: Visits, order: Codes, rule: Rule) -> None:
    for machine in machines:
        machine.visit(rows, order, rule)


def hold_out(source: Source, share: float, random_state: Any, shuffle: bool) -> Mask:
    """Rows that decide when to stop, a share of every class.

    Where rows are visited as they are given they are scikit-learn's, else equal rows are held out together.
    """
    assert source.classes is not None, "label the source first"
    parts = [(block_keys(block), block.codes, block.weights) for block in source.blocks()]
    keys, codes = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    kept = np.flatnonzero(np.concatenate([np.ones(len(part)) if s is None else s for _, part, s in parts]))
    mask = np.zeros(len(codes), dtype=bool)
    if shuffle:
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        mask[kept] = held_out(keys[kept], codes[kept], share, seed)
    else:
        split = StratifiedShuffleSplit(test_size=share, random_state=random_state)
        mask[kept[next(split.split(np.zeros((len(kept), 1)), codes[kept]))[1]]] = True
    return mask


def squared_lift(source: Source) -> float:
    """ℓ² for the rows of a source that has an intercept."""
    sparse = any(block.stored_entries().implicit_zeros for block in islice(source.blocks(), 1))
    return _SPARSE_LIFT_SQUARED if sparse else 1.0


def largest_norm(source: Source, lift_squared: float) -> float:
    """D = max ‖φ‖; NaN, infinity and overflow are refused by column."""
    largest = source.reduce(lambda block: block.counted().largest_row(np.ones(block.shape[1])), np.maximum)
    source.check_finite(np.asarray(largest))
    return float(np.sqrt(largest + lift_squared))


def _end_epoch(
    source: Source, active: list[BinaryPerceptron], rule: Rule, held_out: Mask | None, epoch: int
) -> dict[str, Any]:
    if rule.variant == "pocket":
        candidates = [machine.candidates() for machine in active]
        repeated = [machine for machine in active for _ in range(3)]
        learned = None if held_out is None else ~held_out
        found = survey(source, repeated, [pair for three in candidates for pair in three], learned)
        for machine, three, mistakes in zip(active, candidates, found.wrong_weight.reshape(-1, 3), strict=True):
            machine.put_in_pocket(three, mistakes)
    scores: list[float | None] = [None] * len(active)
    if held_out is not None:
        seen = survey(source, active, [machine.running for machine in active], held_out, class_factors=False)
        scores = list(1.0 - seen.wrong_weight / seen.weight)
    ends = [machine.end_epoch(rule, score) for machine, score in zip(active, scores, strict=True)]
    return {
        "iteration": epoch,
        "mistakes": int(sum(end["mistakes"] for end in ends)),
        "objective": float(sum(end["loss"] for end in ends)),
    }


@dataclass(frozen=True)
class Survey:
    """Of vectors on rows: the least t f, how many rows and how much weight have t f ≤ 0, and the weight of all."""

    least: Float
    wrong: NDArray[np.int64]
    wrong_weight: Float
    weight: Float


def survey(
    source: Source,
    machines: list[BinaryPerceptron],
    vectors: list[tuple[Float, float]],
    which: Mask | None = None,
    class_factors: bool = True,
) -> Survey:
    """One pass: how each vector does as the machine next to it, on the rows that count and are in `which`."""
    coef, intercept = np.column_stack([w for w, _ in vectors]), np.array([b for _, b in vectors])
    codes = np.array([machine.code for machine in machines])
    factors = np.stack([machine.factors for machine in machines]) if class_factors else np.ones((len(machines), 2))

    def look(block: Block) -> tuple[Float, ...]:
        kept = np.arange(block.n) if block.weights is None else np.flatnonzero(block.weights)
        taken = slice(None) if which is None else np.flatnonzero(which[block.start + kept])
        block = block.counted()
        positive = block.codes[taken, None] == codes
        margins = np.where(positive, 1.0, -1.0) * (block.matvec(coef) + intercept)[taken]
        weights = np.where(positive, factors[:, 1], factors[:, 0])
        if block.weights is not None:
            weights = weights * block.weights[taken, None]
        wrong = (margins <= 0.0) & (weights > 0.0)
        least = np.where(weights > 0.0, margins, np.inf).min(axis=0, initial=np.inf)
        return least, wrong.sum(axis=0), (wrong * weights).sum(axis=0), weights.sum(axis=0)

    def merge(one: Any, two: Any) -> Any:
        return np.minimum(one[0], two[0]), *(a + b for a, b in zip(one[1:], two[1:], strict=True))

    return Survey(*source.reduce(look, merge))
