"""The perceptron's path: its vectors after every mistake, and the perceptron criterion at each of them.

    J(u) = Σ_{t f(x) ≤ 0} −s t f(x) = Σ s max(0, −t f(x))          whose gradient for one row is what a mistake adds to u

Rows are visited one at a time by the same compiled rule, so that the path leads to the same vector to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from separatrix.data.block import Block, Codes, Float
from separatrix.data.source import Source
from separatrix.online.machine import BinaryPerceptron, Rule
from separatrix.online.visits import Visits
from separatrix.result import History

# Numbers of scores that are held at once.
_SCORES = 1 << 20


@dataclass
class MistakePath:
    """What `train` records when it is given one: all machines' vectors, at the start and after every mistake of any."""

    coefs: list[Float] = field(default_factory=list)
    intercepts: list[Float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def mark(self, machines: list[BinaryPerceptron], row: int = -1) -> None:
        """Keep the vectors as they are."""
        running = [machine.running for machine in machines]
        self.coefs.append(np.stack([w for w, _ in running]))
        self.intercepts.append(np.array([b for _, b in running]))
        self.rows.append(row)

    def visit(
        self, machines: list[BinaryPerceptron], active: list[BinaryPerceptron], rows: Visits, order: Codes, rule: Rule
    ) -> None:
        """Visit rows in order, one at a time."""
        for at in range(len(order)):
            before = [machine.get("mistakes") for machine in active]
            for machine in active:
                machine.visit(rows, order[at : at + 1], rule)
            if any(machine.get("mistakes") > count for machine, count in zip(active, before, strict=True)):
                self.mark(machines, int(rows.rows[order[at]]))

    def history(self, source: Source, machines: list[BinaryPerceptron]) -> History:
        """The path with the criterion at every point, summed over the machines."""
        coef, intercept = np.stack(self.coefs), np.stack(self.intercepts)
        block = source.one_block()
        numbers = None
        if block is not None:  # rows of weight zero are not visited, and not counted by the machines
            kept = np.arange(block.n) if block.weights is None else np.flatnonzero(block.weights)
            numbers = np.array([-1 if row < 0 else int(kept[row]) for row in self.rows])
        return History(criterion(source, machines, coef, intercept), coef, intercept, rows=numbers)


def criterion(source: Source, machines: list[BinaryPerceptron], coef: Float, intercept: Float) -> Float:
    """(n,) J at n vectors of every machine, (n, machines, d) with intercepts (n, machines), some of them in every pass."""
    at_once = max(1, _SCORES // (max(1, source.n_rows or 1) * len(machines)))
    cuts = [slice(start, start + at_once) for start in range(0, len(coef), at_once)]
    return np.concatenate([_criterion(source, machines, coef[cut], intercept[cut]) for cut in cuts])


def _criterion(source: Source, machines: list[BinaryPerceptron], coef: Float, intercept: Float) -> Float:
    n, m, d = coef.shape

    def of_block(block: Block) -> Float:
        rows = block.counted()
        scores = rows.matvec(coef.reshape(n * m, d).T).reshape(rows.n, n, m) + intercept
        positive = np.stack([rows.codes == machine.code for machine in machines], axis=1)
        steps = np.stack([machine.factors for machine in machines])
        weights = np.where(positive, steps[:, 1], steps[:, 0])
        if rows.weights is not None:
            weights = weights * rows.weights[:, None]
        signs = np.where(positive, 1.0, -1.0)
        return np.asarray(np.einsum("im,inm->n", weights, np.maximum(-signs[:, None] * scores, 0.0)))

    return np.asarray(source.reduce(of_block, np.add))
