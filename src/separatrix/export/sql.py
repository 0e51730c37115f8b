"""A classifier as one SELECT: read, encode, score, normalise, decide, each step a common table expression.

    p_k = e^{s_k − m}/Σ_j e^{s_j − m},  m = max s        two classes: e = e^{−|s|},  p = 1/(1 + e) on the side of s

No exponential exceeds 1, and below e⁻⁷⁰⁰ it is 0, where PostgreSQL would stop with an error. Sums are written as balanced
trees: engines limit the depth of an expression, not its length. Names and texts are quoted; numbers have all their digits and
are of type double (a plain 1.5 would be a decimal).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from separatrix.export.form import Decision, InputColumn, export_form, of_one_type
from separatrix.export.sql_dialects import DIALECTS, distinct, identifier, number_in_text, text, total
from separatrix.export.sql_scores import SqlScores

Dialect = Literal["duckdb", "postgresql", "sqlite"]
ROW_NUMBER = "row_number"


def to_sql(
    model: Any,
    *,
    dialect: Dialect = "duckdb",
    table: str | Sequence[str] = "data",
    keep: Sequence[str] = (),
    row_number: bool = False,
) -> str:
    """A SELECT that gives the probability of every class and the prediction, for every row of a table.

    Parameters
    ----------
    model : TableModel or classifier of separatrix
        With scores that are sums over columns: logistic regressions, discriminants, naive Bayes, linear machines; kernel
        machines of at most 1000 support vectors; and a `BayesRule` on one of them. The columns are those of the model's table;
        of an estimator fitted on an array x0, x1, ….
    dialect : {"duckdb", "postgresql", "sqlite"}, default="duckdb"
        A text in a column of numbers is refused by all of them, unless it is a number; SQLite, which has no message of its own
        for that, stops with "integer overflow".
    table : str or sequence of str, default="data"
        The table that is read; several names are a schema and a table in it.
    keep : sequence of str, optional
        Columns of the table that come along, such as a key. Databases with several threads give rows in any order: keep a key,
        or ask for numbers.
    row_number : bool, default=False
        Number the rows in a column ``row_number``, from 1, in the order in which the database reads them.

    Returns
    -------
    str
        The columns of its result are those kept, ``probability_<class>`` for every class (``score`` or ``score_<class>`` for
        a model without probabilities), and ``prediction``: the class, or the action where the model has losses. Classes that
        differ in capitals only have a number behind the second name; where the actions and the one of a rejection are of
        different types, all are texts.

    Examples
    --------
    >>> import numpy as np
    >>> import separatrix as sx
    >>> model = sx.LogisticRegression(C=1e3).fit(np.array([[0.0], [1.0], [2.0], [3.0]]), ["no", "yes", "no", "yes"])
    >>> print(sx.to_sql(model, table="visits", keep=["id"]).splitlines()[-1])
    SELECT k0 AS "id", p0 AS "probability_no", p1 AS "probability_yes", decided AS "prediction" FROM separatrix_decision
    """
    if dialect not in DIALECTS:
        raise ValueError(f"dialect is {dialect!r}; give {', '.join(map(repr, DIALECTS))}.")
    if isinstance(keep, str):
        raise ValueError(f"keep is the text {keep!r}; give a list of column names.")
    return _Query(export_form(model, "SQL"), DIALECTS[dialect]).write(table, list(keep), row_number)


class _Query(SqlScores):
    def literal(self, value: Any) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return self.dialect.booleans[value]
        if isinstance(value, int):
            return str(value)
        return self.number(value) if isinstance(value, float) else text(str(value))

    def write(self, table: str | Sequence[str], keep: list[str], numbered: bool) -> str:
        """The whole statement."""
        form = self.form
        self.step("input", [f"{self.read(column)} AS {self.place[column.name]}" for column in form.columns])
        if any(column.kind != "number" for column in form.columns):
            self.step("values", [f"{self.understood(column)} AS {self.place[column.name]}" for column in form.columns])
        scores = self.scores()
        self.step("scores", [f"{score} AS s{k}" for k, score in enumerate(scores)])
        outputs = self.probabilities(len(scores))
        self.decide(outputs, len(scores))
        results = distinct([name for _, name in outputs])
        numbers = [ROW_NUMBER] if numbered else []
        lower = [name.lower() for name in [*keep, *numbers, *results, "prediction"]]
        for name in keep:
            if lower.count(name.lower()) > 1:
                raise ValueError(f"keep names {name!r}, and the result would have two columns of that name; rename it.")
        names = [identifier(name) for name in [*keep, *numbers]]
        kept = [f"k{j}" for j in range(len(names))]
        source = ".".join(map(identifier, [table] if isinstance(table, str) else table))
        prefix = "separatrix"
        while isinstance(table, str) and table.lower().startswith(f"{prefix}_"):
            prefix += "_"  # a step of that name would hide the table
        lines: list[str] = []
        before = f"{source} AS t"
        for name, expressions in self.steps:
            read = [*(f"t.{own}" for own in names[: len(keep)]), *(["ROW_NUMBER() OVER ()"] if numbered else [])]
            carried = [f"{own} AS {alias}" for own, alias in zip(read, kept, strict=True)] if not lines else kept
            selected = ",\n    ".join([*carried, *expressions])
            head, tail = self.dialect.fence
            lines.append(f"{prefix}_{name} AS{head} (\n  SELECT {selected}\n  FROM {before}{tail}\n)")
            before = f"{prefix}_{name}"
        aliases = [*kept, *(alias for alias, _ in outputs), "decided"]
        called = [*names, *map(identifier, [*results, "prediction"])]
        columns = ", ".join(f"{alias} AS {own}" for alias, own in zip(aliases, called, strict=True))
        steps = ",\n".join(lines)
        return f"WITH {steps}\nSELECT {columns} FROM {before}"

    # -- columns and features -------------------------------------------------------------------------------------

    def read(self, column: InputColumn) -> str:
        """A column as a double, NULL where it is missing, or as a text."""
        # The alias makes a column that is missing an error in SQLite, which reads an unknown "name" as a text.
        own, dialect = f"t.{identifier(column.name)}", self.dialect
        if column.kind == "number" and column.decimal and dialect.read_text:
            return number_in_text(own, column.decimal, column.absent, dialect)
        if column.kind == "number":
            number = (dialect.read if self.form.of_table else dialect.read_any).format(own)
            return f"NULLIF({number}, CAST('NaN' AS {dialect.double}))" if dialect.nan else number
        characters = f"CAST({own} AS {dialect.string})"
        stripped = column.kind == "flag" or column.missing
        return dialect.stripped.format(characters) if stripped else characters

    def understood(self, column: InputColumn) -> str:
        """The double of a flag, and a text; NULL where it is missing."""
        own = self.place[column.name]
        if column.kind == "flag":
            # As text a flag may be a boolean, a number or one of its own two words.
            true, false = (", ".join(map(text, dict.fromkeys(group))) for group in (column.true, column.false))
            one, zero = self.number(1), self.number(0)
            return f"CASE WHEN LOWER({own}) IN ({true}) THEN {one} WHEN LOWER({own}) IN ({false}) THEN {zero} END"
        if not column.missing:
            return own
        return f"CASE WHEN {own} NOT IN ({', '.join(map(text, column.missing))}) THEN {own} END"

    # -- probabilities --------------------------------------------------------------------------------------------

    def probabilities(self, n_scores: int) -> list[tuple[str, str]]:
        """Adds the steps from scores to probabilities; the result's columns as pairs of alias and name."""
        classes, s = self.form.classes, [f"s{k}" for k in range(n_scores)]
        if self.form.link == "none":
            names = ["score"] if n_scores == 1 else [f"score_{label}" for label in classes]
            return list(zip(s, names, strict=True))
        p = [f"p{k}" for k in range(len(classes))]
        one = self.number(1)
        if self.form.link == "platt":
            A, B = self.form.curves[0]
            self.step("curve", [*s, f"{self.number(-A)} * s0 - {self.number(B)} AS h0"])
            self.step("exponentials", [*s, "h0", f"{self.exponential('-ABS(h0)')} AS e0"])
            self.step("sides", [*s, f"{self.side('h0', 'e0')} AS q0"])
            low, high = self.number(math.nextafter(0.5, 0.0)), self.number(math.nextafter(0.5, 1.0))
            up, down = f"{self.dialect.greatest}(q0, {high})", f"{self.dialect.least}(q0, {low})"
            self.step("agreeing", [*s, f"CASE WHEN s0 > 0 THEN {up} WHEN s0 <= 0 THEN {down} END AS q0"])
            inside = self.clipped("q0", 1e-7, 1.0 - 1e-7)
            self.step("probabilities", [*s, f"{one} - {inside} AS p0", f"{inside} AS p1"])
        elif n_scores == 1:
            self.step("exponentials", [*s, f"{self.exponential('-ABS(s0)')} AS e0"])
            self.step("probabilities", [*s, f"{self.side('-s0', 'e0')} AS p0", f"{self.side('s0', 'e0')} AS p1"])
        else:
            if self.form.link == "shares":
                powers = [self.exponential(f"-ABS({own})") for own in s]
                self.step("exponentials", [*s, *(f"{power} AS e{k}" for k, power in enumerate(powers))])
                weights = [self.side(own, f"e{k}") for k, own in enumerate(s)]
            else:
                self.step("largest", [*s, f"{self.largest(s)} AS m"])
                weights = [self.exponential(f"{own} - m") for own in s]
            weights = [f"{weight} AS q{k}" for k, weight in enumerate(weights)]
            self.step("weights", [*s, *weights])
            weight = total([f"q{k}" for k in range(n_scores)])
            self.step("sum", [*s, *(f"q{k}" for k in range(n_scores)), f"{weight} AS z"])
            self.step("probabilities", [*s, *(f"q{k} / z AS p{k}" for k in range(n_scores))])
        return list(zip(p, [f"probability_{label}" for label in classes], strict=True))

    def side(self, score: str, exponential: str) -> str:
        """1/(1 + e^{−s}), given e^{−|s|}."""
        one = self.number(1)
        return (
            f"CASE WHEN {score} >= 0 THEN {one} / ({one} + {exponential}) "
            f"WHEN {score} < 0 THEN {exponential} / ({one} + {exponential}) END"
        )

    def largest(self, names: list[str]) -> str:
        """The largest of several values; NULL where one is, which GREATEST would pass over."""
        return f"CASE WHEN {total(names)} IS NOT NULL THEN {self.dialect.greatest}({', '.join(names)}) END"

    def clipped(self, value: str, low: float, high: float) -> str:
        # GREATEST passes over NULL, and what is missing must stay so.
        inside = f"{self.dialect.greatest}({self.dialect.least}({value}, {self.number(high)}), {self.number(low)})"
        return f"CASE WHEN {value} IS NOT NULL THEN {inside} END"

    # -- decision -------------------------------------------------------------------------------------------------

    def decide(self, outputs: list[tuple[str, str]], n_scores: int) -> None:
        carried = [alias for alias, _ in outputs]
        if self.form.decision is not None:
            self.act(self.form.decision, carried)
            return
        labels = [self.literal(label) for label in self.form.classes]
        if n_scores == 1:
            decided = f"CASE WHEN s0 > 0 THEN {labels[1]} WHEN s0 <= 0 THEN {labels[0]} END"
            self.step("decision", [*carried, f"{decided} AS decided"])
            return
        s = [f"s{k}" for k in range(n_scores)]
        if self.form.votes_only:
            votes = [f"r{k}" for k in range(n_scores)]
            self.step("rounded", [*dict.fromkeys([*carried, *s]), *(f"ROUND({a}) AS r{k}" for k, a in enumerate(s))])
            s = votes
        self.step("winner", [*dict.fromkeys([*carried, *s]), f"{self.largest(s)} AS m"])
        cases = " ".join(f"WHEN {a} = m THEN {label}" for a, label in zip(s, labels, strict=True))
        self.step("decision", [*carried, f"CASE {cases} END AS decided"])

    def act(self, decision: Decision, p: list[str]) -> None:
        """The action of least expected loss, or none."""
        loss = decision.loss
        relative = loss - loss.max(
            axis=1, keepdims=True
        )  # as BayesRule compares: a constant of a class decides nothing
        n_actions = loss.shape[1]
        risks = []
        for name, table in (("r", relative), ("l", loss)):
            for at, column in enumerate(table.T.tolist()):
                parts = [f"{self.number(value)} * {own}" for own, value in zip(p, column, strict=True)]
                risks.append(f"{total(parts)} AS {name}{at}")
        self.step("risks", [*p, *risks])
        r, least = [f"r{a}" for a in range(n_actions)], [f"l{a}" for a in range(n_actions)]
        smallest = [f"{_fewest(self.dialect.least, r)} AS r", f"{_fewest(self.dialect.least, least)} AS l"]
        self.step("least", [*p, *r, *smallest, f"{_fewest(self.dialect.greatest, p)} AS top"])
        rejects = decision.reject_cost is not None or decision.reject_below is not None
        # A column has one type: beside integers "reject" makes texts of them. NULL is of any type.
        reject = [decision.reject_action] if rejects and decision.reject_action is not None else []
        names = [self.literal(name) for name in of_one_type([*decision.actions, *reject])] + ["NULL"]
        cases = [f"WHEN {a} = r THEN {name}" for a, name in zip(r, names, strict=False)]
        rejected = names[n_actions]
        if decision.reject_cost is not None:
            cases.insert(0, f"WHEN l > {self.number(decision.reject_cost)} THEN {rejected}")
        if decision.reject_below is not None:
            cases.insert(0, f"WHEN top < {self.number(decision.reject_below)} THEN {rejected}")
        self.step("decision", [*p, f"CASE {' '.join(cases)} END AS decided"])


def _fewest(function: str, names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{function}({', '.join(names)})"
