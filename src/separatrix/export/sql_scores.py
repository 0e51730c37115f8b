"""The scores of a classifier in SQL, each a sum of products of the columns of the step before (kernels: sql_kernels.py).

Sums are written as balanced trees: engines limit the depth of an expression, not its length.
"""

from __future__ import annotations

import math

import numpy as np

from separatrix.data.block import Float
from separatrix.export.form import ExportForm
from separatrix.export.pipelines import Feature
from separatrix.export.sql_dialects import SqlDialect, text, total
from separatrix.export.sql_kernels import kernel_scores
from separatrix.geometry.additive_form import Additive, GaussianTerm, GroupTerm, RateTerm, TableTerm, Term
from separatrix.geometry.combined_forms import PairVote
from separatrix.geometry.cumulative_form import Cumulative
from separatrix.geometry.score_form import KernelExpansion, Linear, Quadratic
from separatrix.geometry.votes import class_pairs

_LEAST_EXPONENT = -700.0


class SqlScores:
    """The steps of a query up to the scores."""

    def __init__(self, form: ExportForm, dialect: SqlDialect) -> None:
        self.form, self.dialect = form, dialect
        self.place = {column.name: f"c{j}" for j, column in enumerate(form.columns)}
        self.steps: list[tuple[str, list[str]]] = []

    def number(self, value: float) -> str:
        if not math.isfinite(value):
            raise ValueError(
                f"The model holds the number {value}, which SQL cannot compute with; scale the columns first."
            )
        shown = self.dialect.number(value)
        return f"({shown})" if shown.startswith("-") else shown

    def constant(self, value: str | float) -> str:
        return text(value) if isinstance(value, str) else self.number(float(value))

    def step(self, name: str, expressions: list[str]) -> None:
        self.steps.append((name, expressions))

    def feature(self, feature: Feature) -> str:
        """An encoded value."""
        own, one, zero = self.place[feature.column], self.number(1), self.number(0)
        if feature.what == "value":
            value = own if feature.fill is None else f"COALESCE({own}, {self.number(feature.fill)})"
        elif feature.what == "target":
            cases = " ".join(f"WHEN {text(level)} THEN {self.number(v)}" for level, v in feature.values.items())
            value = f"CASE {own} {cases} ELSE {zero} END" if cases else zero
        else:
            # A missing level is no level: the comparison with NULL is not true.
            condition = f"{own} IS NULL"
            if feature.what == "level":
                filled = own if feature.fill is None else f"COALESCE({own}, {self.constant(feature.fill)})"
                condition = f"{filled} = {self.constant(feature.level)}"
            value = f"CASE WHEN {condition} THEN {one} ELSE {zero} END"
        if feature.centre != 0.0:
            value = f"({value} - {self.number(feature.centre)})"
        if feature.scale != 1.0:
            value = f"{value} / {self.number(feature.scale)}"
        return value

    def moved(self, value: str, centre: float, above: float | None) -> str:
        """A value, or whether it is above a limit, less the centre of the rule."""
        if above is not None:
            one, zero = self.number(1), self.number(0)
            limit = self.number(above)
            value = f"CASE WHEN {value} > {limit} THEN {one} WHEN {value} <= {limit} THEN {zero} END"
        return f"{value} - {self.number(centre)}" if centre != 0.0 else value

    def scores(self) -> list[str]:
        rule = self.form.rule
        if isinstance(rule, Additive):
            each = [self.term(term, len(rule.constants)) for term in rule.terms]
            return [total([self.number(b), *(term[k] for term in each)]) for k, b in enumerate(rule.constants.tolist())]
        if isinstance(rule, Cumulative):
            return self.ordered(rule)
        if isinstance(rule, PairVote):
            assert isinstance(rule.pairs, Linear | KernelExpansion)
            return self.votes(self.of_features(rule.pairs), rule.n_classes)
        assert isinstance(rule, Linear | Quadratic | KernelExpansion)
        return self.of_features(rule)

    def of_features(self, rule: Linear | Quadratic | KernelExpansion) -> list[str]:
        above = rule.above if isinstance(rule, Linear) else None
        values = [self.feature(feature) for feature in self.form.features]
        if self.form.products:
            self.step("single", [f"{value} AS b{j}" for j, value in enumerate(values)])
            one = self.number(1)
            values = [" * ".join(f"b{j}" for j in product) or one for product in self.form.products]
        centres = rule.centre if isinstance(rule, Linear) else np.zeros(len(values))
        features = [
            f"{self.moved(value, c, above)} AS f{j}"
            for j, (value, c) in enumerate(zip(values, centres.tolist(), strict=True))
        ]
        self.step("features", features or ["1 AS f0"])
        if isinstance(rule, Linear) and rule.spread is not None:
            return self.moderated(rule, *rule.spread)
        if isinstance(rule, Linear):
            return [
                total([self.number(b), *self.products(w)])
                for w, b in zip(rule.weights, rule.constants.tolist(), strict=True)
            ]
        return kernel_scores(self, rule) if isinstance(rule, KernelExpansion) else self.quadratic(rule)

    def products(self, weights: Float) -> list[str]:
        return [f"{self.number(w)} * f{j}" for j, w in enumerate(weights.tolist()) if w != 0.0]

    def moderated(self, rule: Linear, slopes: Float, constants: Float) -> list[str]:
        """The score over √(1 + πv/8)."""
        coordinates = [
            total([self.number(g), *self.products(G)]) for G, g in zip(slopes.T, constants.tolist(), strict=True)
        ]
        score = total([self.number(rule.constants[0]), *self.products(rule.weights[0])])
        named = [f"{expression} AS g{i}" for i, expression in enumerate(coordinates)]
        self.step("coordinates", [f"{score} AS a", *named])
        variance = total([f"g{i} * g{i}" for i in range(len(named))])
        return [f"a / SQRT({self.number(1)} + {self.number(math.pi / 8.0)} * ({variance}))"]

    def quadratic(self, rule: Quadratic) -> list[str]:
        """Every coordinate has a name of its own, so that its square is the product of two names."""
        coordinates, scores = [], []
        for k, (mean, factor, b) in enumerate(zip(rule.means, rule.factors, rule.constants.tolist(), strict=True)):
            squares = []
            for i, column in enumerate(factor.T):
                parts = [
                    f"{self.number(w)} * (f{j} - {self.number(mean[j])})"
                    for j, w in enumerate(column.tolist())
                    if w != 0.0
                ]
                coordinates.append(f"{total(parts)} AS g{k}_{i}")
                squares.append(f"g{k}_{i} * g{k}_{i}")
            scores.append(f"{self.number(b)} - {self.number(0.5)} * ({total(squares)})")
        self.step("coordinates", coordinates or ["1 AS g0"])
        return scores

    def term(self, term: Term, n_classes: int) -> list[str]:
        """What a column adds to the score of every class."""
        if isinstance(term, GroupTerm):
            return [self.group(term, shares) for shares in term.shares]
        own, zero = self.place[term.column], self.number(0)
        if isinstance(term, GaussianTerm):
            away = [
                f"(({own} - {self.number(m)}) / {self.number(s)})"
                for m, s in zip(term.means.tolist(), term.scales.tolist(), strict=True)
            ]
            logs = [
                f"{self.number(b)} - {self.number(0.5)} * {z} * {z}"
                for z, b in zip(away, term.constants.tolist(), strict=True)
            ]
        elif isinstance(term, RateTerm):
            logs = [f"{self.number(math.log(rate))} * {own} - {self.number(rate)}" for rate in term.rates.tolist()]
        else:
            logs = [self.table(term, own, k) for k in range(n_classes)]
        return [f"CASE WHEN {own} IS NULL THEN {zero} ELSE {log} END" for log in logs]

    def table(self, term: TableTerm, own: str, k: int) -> str:
        cases = [
            f"WHEN {text(value) if isinstance(value, str) else self.number(value)} THEN {self.number(log)}"
            for value, log in zip(term.values, term.logs[:, k].tolist(), strict=True)
        ]
        return f"CASE {own} {' '.join(cases)} ELSE {self.number(term.other[k])} END"

    def group(self, term: GroupTerm, shares: Float) -> str:
        own = [self.place[column] for column in term.columns]
        zero = self.number(0)
        logs = [
            f"COALESCE({name} * {self.number(math.log(share))}, {zero})"
            for name, share in zip(own, shares.tolist(), strict=True)
        ]
        counts = [f"COALESCE({name}, {zero})" for name in own]
        left = [
            f"CASE WHEN {name} IS NULL THEN {zero} ELSE {self.number(share)} END"
            for name, share in zip(own, shares.tolist(), strict=True)
        ]
        # Where nothing is observed the logarithm of 0 would be asked for.
        missing = " AND ".join(f"{name} IS NULL" for name in own)
        return f"CASE WHEN {missing} THEN {zero} ELSE {total(logs)} - ({total(counts)}) * LN({total(left)}) END"

    def exponential(self, exponent: str) -> str:
        return f"CASE WHEN {exponent} < {self.number(_LEAST_EXPONENT)} THEN {self.number(0)} ELSE EXP({exponent}) END"

    def ordered(self, rule: Cumulative) -> list[str]:
        """log P of every class: −softplus(d_k) − softplus(−d_{k−1}) + log(1 − e^{−δ}), d_k = wᵀx − θ_k."""
        (eta,) = self.of_features(Linear.of(rule.weights[None, :], np.zeros(1)))
        self.step("eta", [f"{eta} AS a"])
        n, zero, one = len(rule.thresholds), self.number(0), self.number(1)
        self.step("distances", [f"a - {self.number(b)} AS d{k}" for k, b in enumerate(rule.thresholds.tolist())])
        logs = [f"LN({one} + {self.exponential(f'-ABS(d{k})')}) AS l{k}" for k in range(n)]
        self.step("logarithms", [*(f"d{k}" for k in range(n)), *logs])
        gaps = np.log(-np.expm1(-np.diff(rule.thresholds))).tolist()
        scores = []
        for rank in rule.ranks.tolist():
            parts = [self.number(gaps[rank - 1])] if 0 < rank < n else []
            above = [f"(CASE WHEN d{rank} > 0 THEN -d{rank} ELSE {zero} END - l{rank})"] if rank < n else []
            below = [f"(CASE WHEN d{rank - 1} < 0 THEN d{rank - 1} ELSE {zero} END - l{rank - 1})"] if rank else []
            scores.append(total([*parts, *above, *below]))
        return scores

    def votes(self, pairs: list[str], n_classes: int) -> list[str]:
        """Votes of the machines between pairs, and the sums of their scores squeezed below one vote."""
        self.step("pairs", [f"{score} AS g{i}" for i, score in enumerate(pairs)])
        sums, votes = [], []
        zero, one = self.number(0), self.number(1)
        for own in range(n_classes):
            first = [f"g{i}" for i, pair in enumerate(class_pairs(n_classes)) if pair[0] == own]
            second = [f"g{i}" for i, pair in enumerate(class_pairs(n_classes)) if pair[1] == own]
            sums.append(f"{total([*first, *(f'(-{name})' for name in second)])} AS c{own}_sum")
            won = [f"CASE WHEN {name} >= 0 THEN {one} ELSE {zero} END" for name in first]
            lost = [f"CASE WHEN {name} < 0 THEN {one} ELSE {zero} END" for name in second]
            votes.append(f"{total([*won, *lost])} AS v{own}")
        self.step("votes", [*sums, *votes])
        # A missing score makes the sum missing, and the score with it.
        three = self.number(3)
        return [f"v{k} + c{k}_sum / ({three} * (ABS(c{k}_sum) + {one}))" for k in range(n_classes)]
