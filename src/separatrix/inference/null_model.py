"""The model of intercepts and offset alone, from what a pass over the rows leaves behind.

    L₀ = Σ_k n_k log n_k/n without an offset, −n log K without an intercept

**Passes over the data** none of its own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import xlogy

from separatrix.data import Source, as_source
from separatrix.data.block import Block, Codes, Float
from separatrix.data.views import View
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.penalties import Penalty
from separatrix.solvers.registry import minimise


class Targets(View):
    """The same rows; a pass over them leaves behind what the null model needs, so that it costs none of its own."""

    def __init__(self, source: Source, keep: bool) -> None:
        super().__init__(source)
        assert source.classes is not None
        self._labels, self._keep, self._seen = source.classes, keep, dict[int, tuple[Codes | Float, Float | None]]()

    def map_block(self, block: Block) -> Block:
        self._seen[block.start] = self._part(block)
        return block

    def _part(self, block: Block) -> tuple[Codes | Float, Float | None]:
        codes, weights = block.codes, block.weights
        return (codes, weights) if self._keep else (np.bincount(codes, weights, len(self._labels)), None)

    def _parts(self) -> list[tuple[Codes | Float, Float | None]]:
        """What the pass saw of every block; of blocks that live in other processes it is fetched now."""
        if self.engine is not None:
            return list(self.source.each(self._part))
        return [self._seen[start] for start in sorted(self._seen)]

    def counts(self) -> Float:
        """(K,) total weight of every class."""
        return np.sum([counts for counts, _ in self._parts()], axis=0, dtype=np.float64)

    def constant(self) -> Source:
        """One column of ones with the targets and weights."""
        parts = self._parts()
        codes = np.concatenate([codes for codes, _ in parts])
        weights = np.concatenate([np.ones(len(codes)) if own is None else own for codes, own in parts])
        return as_source(np.ones((len(codes), 1)), codes, weights).labelled(np.arange(len(self._labels)))


def null_log_likelihood(problem: LinearProblem, rows: Targets) -> float:
    """That of the intercepts and the offset; Σ n_k log n_k/n when there is no offset."""
    m, _ = problem.shape
    if problem.objective.offset is not None:
        objective = replace(problem.objective, penalty=Penalty.none((m, 1)), ones=problem.fit_intercept)
        constants = LinearProblem.plain(objective, rows.constant())
        if not problem.fit_intercept:
            return -constants.evaluate(np.zeros((m, 1))).loss
        return -minimise(constants, "newton", tol=1e-13, max_iter=100).certificate.objective
    counts = rows.counts()
    if not problem.fit_intercept:
        return -float(counts.sum() * np.log(len(counts)))
    return float(xlogy(counts, counts / counts.sum()).sum())
