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
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_random_state

from separatrix.data.block import Block, Float
from separatrix.data.folds import block_keys, held_out
from separatrix.data.source import Source
from separatrix.errors import ClassName, Message
from separatrix.online.machine import BinaryPerceptron, Rule, Variant
from separatrix.online.mistakes import MistakePath
from separatrix.online.visits import Mask, Visits, salts, turns, visited

_SPARSE_LIFT_SQUARED = 0.01
_SHARED = 1e5  # entries visited in an epoch that are worth a second thread
_SIDE_BY_SIDE = 4  # machines from which sparse rows are read once for all
_AT_ONCE = 2e7  # entries of rows visited between two looks at the clock: some hundredths of a second


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
    path: MistakePath | None = None,
) -> Training:
    """Epochs until every machine is done; rows that are held out decide when, but are not learned from.

    A `path` gets the vectors after every mistake.
    """
    learned = None if held_out is None else ~held_out
    happened = Training()
    pool = ThreadPoolExecutor(rule.workers) if rule.workers > 1 and len(machines) > 1 else None

    def each(work: Callable[[BinaryPerceptron], Any], active: list[BinaryPerceptron]) -> list[Any]:
        return list((pool.map if pool else map)(work, active))

    # The first costs next to nothing; rows of an engine or of files come here anew for every epoch.
    in_memory = source.one_block() is not None or (source.place == "memory" and source.sample(1) is not None)

    def noted(rows: Visits) -> Visits:
        happened.rows += len(rows.rows)
        for machine in machines:
            machine.note_steps(rows)
        return rows

    if path is not None:
        path.mark(machines)
    try:
        kept = list(map(noted, visited(source, learned, rule.shuffle))) if in_memory else None
        while happened.epochs < rule.max_iter and not all(machine.done for machine in machines):
            active = [machine for machine in machines if not machine.done]
            if kept is not None and len(kept) == 1 and held_out is None and rule.variant != "pocket" and path is None:
                _run_epochs(source, kept[0], active, rule, happened, callback, pool)
                continue
            source.count_pass()
            blocks = iter(kept) if kept is not None else visited(source, learned, rule.shuffle)
            if kept is None and happened.epochs == 0:
                blocks = map(noted, blocks)
            (now,) = salts(rule.seed, happened.epochs, happened.epochs + 1)
            for rows, order in turns(blocks, in_memory, now):
                if path is not None:
                    path.visit(machines, active, rows, order, rule)
                    continue
                each(partial(BinaryPerceptron.visit, rows=rows, order=order, rule=rule), active)
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


def _run_epochs(
    source: Source,
    rows: Visits,
    active: list[BinaryPerceptron],
    rule: Rule,
    happened: Training,
    callback: Callable[[dict[str, Any]], None],
    pool: ThreadPoolExecutor | None,
) -> None:
    """Epochs over one block in memory, as many at once as are done before anybody waits."""
    entries = len(rows.data) / max(1, len(rows.codes)) * len(rows.rows) + len(rows.rows)
    # A vector alone stays in the nearest cache; beside many others an entry that is read serves them all.
    enough = len(active) >= (_SIDE_BY_SIDE if len(rows.indptr) else 2)
    together = enough and all(machine.plain(rule) for machine in active)
    most = min(rule.max_iter - happened.epochs, max(1, int(_AT_ONCE / (entries * len(active)))))
    now = salts(rule.seed, happened.epochs, happened.epochs + most)
    workers = min(rule.workers, len(active)) if pool and entries * len(active) > _SHARED else 1
    groups = [active[g::workers] for g in range(workers)]

    def run(group: list[BinaryPerceptron]) -> list[Float]:
        if together:
            return BinaryPerceptron.run_together(group, rows, now, rule)
        return [machine.run_epochs(rows, now, rule) for machine in group]

    runs = (pool.map if pool and workers > 1 else map)(run, groups)
    traces = [trace for group in runs for trace in group]
    source.check_finite(*(machine.running[0] for machine in active))
    total = np.zeros((max(map(len, traces)), 2))
    for trace in traces:
        total[: len(trace)] += trace[:, :2]
    for mistakes, loss in total.tolist():
        source.count_pass()
        happened.epochs += 1
        happened.trace.append({"iteration": happened.epochs, "mistakes": int(mistakes), "objective": loss})
        callback(happened.trace[-1])


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
