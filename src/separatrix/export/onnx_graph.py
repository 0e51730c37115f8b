"""A classifier as an ONNX graph, all of it in doubles.

    inputs    one per column of the table, (N, 1): numbers as doubles, NaN where one is missing; texts as strings, "" where one
              is missing. Of an estimator fitted on an array the matrix X, (N, d)
    outputs   probabilities (N, K), or scores for a model without them, and label (N,)

The operators are those of opset 13 of 2020, and LabelEncoder (ai.onnx.ml 2), which numbers the texts. A text column then is a
table that is looked up by number: its features, or its log probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.export.form import Decision, ExportForm, InputColumn, export_form, of_one_type
from separatrix.export.onnx_nodes import OnnxNodes
from separatrix.export.onnx_rules import cumulative_scores, kernel_scores, pair_scores
from separatrix.export.pipelines import Feature
from separatrix.geometry.additive_form import Additive, GaussianTerm, GroupTerm, RateTerm, TableTerm, Term
from separatrix.geometry.combined_forms import PairVote
from separatrix.geometry.cumulative_form import Cumulative
from separatrix.geometry.score_form import KernelExpansion, Linear, Quadratic, ScoreForm

_OPSET, _ML_OPSET, _IR = 13, 2, 7
_OUTPUTS = ("probabilities", "scores", "label")
_TINY = float(np.finfo(np.float64).tiny)


def to_onnx(model: Any) -> Any:
    """An ONNX model that gives the probabilities and the label of every row.

    Parameters
    ----------
    model : TableModel or classifier of separatrix
        With scores that are sums over columns, as for `to_sql`. Needs the package ``onnx``.

    Returns
    -------
    onnx.ModelProto
        A table model has one input per column, of shape (N, 1): double, NaN where a value is missing, or string, empty where
        one is. An estimator fitted on an array has the input ``X``. Outputs are ``probabilities`` (``scores`` for a model
        without them) and ``label``: the class, or the action where the model has losses.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import separatrix as sx
    >>> graph = sx.to_onnx(sx.LinearDiscriminantAnalysis().fit(*load_iris(return_X_y=True))).graph
    >>> [value.name for value in graph.input], [value.name for value in graph.output]
    (['X'], ['probabilities', 'label'])
    """
    try:
        import onnx
    except ImportError:
        raise ImportError("to_onnx needs the package onnx: pip install 'separatrix[onnx]'.") from None
    form = export_form(model, "ONNX")
    made = onnx.helper.make_model(
        _Graph(form, onnx).write(),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET), onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET)],
        ir_version=_IR,
        producer_name="separatrix",
    )
    onnx.checker.check_model(made, full_check=True)
    return made


class _Graph(OnnxNodes):
    def __init__(self, form: ExportForm, onnx: Any) -> None:
        super().__init__(onnx)
        self.form = form
        self.kinds = {column.name: column for column in form.columns}
        self.names = _input_names(list(self.kinds))
        self.matrix = not form.of_table and all(column.kind != "text" for column in form.columns)

    def write(self) -> Any:
        """The whole graph."""
        inputs = self.inputs()
        scores = self.scores()
        probabilities = self.probabilities(scores)
        first, name = (scores, "scores") if probabilities is None else (probabilities, "probabilities")
        labels, at = self.decide(scores, probabilities)
        self.nodes.append(self.onnx.helper.make_node("Identity", [first], [name]))
        self.nodes.append(
            self.onnx.helper.make_node("Gather", [self.constant(labels, labels.dtype), at], ["label"], axis=0)
        )
        describe, kinds = self.onnx.helper.make_tensor_value_info, self.onnx.TensorProto
        width = self.width if probabilities is None else len(self.form.classes)
        outputs = [
            describe(name, kinds.DOUBLE, ["N", width]),
            describe("label", self.onnx.helper.np_dtype_to_tensor_dtype(labels.dtype), ["N"]),
        ]
        return self.onnx.helper.make_graph(self.nodes, "separatrix", inputs, outputs, self.constants)

    # -- inputs -----------------------------------------------------------------------------------------------------

    def inputs(self) -> list[Any]:
        describe, kinds, columns = self.onnx.helper.make_tensor_value_info, self.onnx.TensorProto, self.form.columns
        if self.matrix:
            return [describe("X", kinds.DOUBLE, ["N", len(columns)])]
        types = [kinds.STRING if column.kind == "text" else kinds.DOUBLE for column in columns]
        return [describe(self.names[column.name], kind, ["N", 1]) for column, kind in zip(columns, types, strict=True)]

    def column(self, name: str) -> str:
        """(N, 1) a column of the table, or of the matrix."""
        if not self.matrix:
            return self.names[name]
        return self.add("Gather", "X", self.constant([list(self.kinds).index(name)], np.int64), axis=1)

    def numbered(self, column: InputColumn, texts: list[str]) -> str:
        """(N,) the place of every text: those given, then any that stands for a missing value, then any other."""
        missing = list(dict.fromkeys(("", *column.missing)))
        keys = [*texts, *(text for text in missing if text not in texts)]
        places = [min(at, len(texts)) for at in range(len(keys))]
        encoded = self.add(
            *("LabelEncoder", self.column(column.name)),
            domain="ai.onnx.ml",
            keys_strings=keys,
            values_int64s=places,
            default_int64=len(texts) + 1,
        )
        return self.add("Reshape", encoded, self.constant([-1], np.int64))

    # -- features ---------------------------------------------------------------------------------------------------

    def features(self) -> str:
        """(N, p) in the order of the form; products of them where the rule is one of these."""
        features, products = self.single_features(), self.form.products
        if not products:
            return features
        # A column of ones behind the others stands for the factors that shorter products do not have.
        one = self.add("Exp", self.add("Mul", self.row_sums(features), self.constant([[0.0]])))
        padded = self.add("Concat", features, one, axis=1)
        last, most = len(self.form.features), max(map(len, products))
        factors = [[product[i] if i < len(product) else last for product in products] for i in range(max(most, 1))]
        result = ""
        for places in factors:
            part = self.add("Gather", padded, self.constant(places, np.int64), axis=1)
            result = self.add("Mul", result, part) if result else part
        return result

    def single_features(self) -> str:
        if self.matrix and all(feature.what == "value" for feature in self.form.features):
            return self.affine(self.form.features)
        parts = []
        for name, group in groupby(self.form.features, key=lambda feature: feature.column):
            features = list(group)
            parts.append(
                self.looked_up(self.kinds[name], features)
                if self.kinds[name].kind == "text"
                else self.side_by_side([self.measured(feature) for feature in features])
            )
        return self.side_by_side(parts)

    def affine(self, features: Sequence[Feature]) -> str:
        """Columns of the matrix, filled, centred and scaled at once."""
        names = list(self.kinds)
        x, places = "X", [names.index(feature.column) for feature in features]
        if places != list(range(len(names))):
            x = self.add("Gather", x, self.constant(places, np.int64), axis=1)
        if any(feature.fill is not None for feature in features):
            x = self.where_missing(x, self.constant([np.nan if f.fill is None else f.fill for f in features]), x)
        if any(feature.centre != 0.0 for feature in features):
            x = self.minus(x, np.array([feature.centre for feature in features]))
        scales = np.array([feature.scale for feature in features])
        return self.scaled("Div", x, scales) if (scales != 1.0).any() else x

    def measured(self, feature: Feature) -> str:
        x = self.column(feature.column)
        if feature.fill is not None:
            x = self.where_missing(x, self.constant(feature.fill), x)
        if feature.what == "missing":
            x = self.as_double(self.add("IsNaN", self.column(feature.column)))
        elif feature.what == "level":
            x = self.as_double(self.add("Equal", x, self.constant(float(feature.level))))
        if feature.centre != 0.0:
            x = self.minus(x, feature.centre)
        return self.scaled("Div", x, feature.scale) if feature.scale != 1.0 else x

    def looked_up(self, column: InputColumn, features: list[Feature]) -> str:
        """The features of a text: one row for every level, one for a missing text, one for any other."""
        named = [[feature.level] if feature.what == "level" else feature.values for feature in features]
        levels = list(dict.fromkeys(level for group in named for level in group))
        table = np.zeros((len(levels) + 2, len(features)))
        for j, feature in enumerate(features):
            if feature.what == "target":
                table[: len(levels), j] = [feature.values.get(level, 0.0) for level in levels]
                continue
            table[len(levels) if feature.what == "missing" else levels.index(feature.level), j] = 1.0
            if feature.what == "level" and feature.fill == feature.level:
                table[len(levels), j] = 1.0
        table = (table - [feature.centre for feature in features]) / [feature.scale for feature in features]
        return self.add("Gather", self.constant(table), self.numbered(column, levels), axis=0)

    # -- scores -----------------------------------------------------------------------------------------------------

    def scores(self) -> str:
        rule = self.form.rule
        if isinstance(rule, Additive):
            self.width = len(rule.constants)
            return self.add("Add", self.sum_of([self.term(term) for term in rule.terms]), self.constant(rule.constants))
        features = self.features()
        if isinstance(rule, PairVote):
            self.width = rule.n_classes
            return pair_scores(self, self.of_features(features, rule.pairs), rule.n_classes)
        if isinstance(rule, Cumulative):
            self.width = len(rule.ranks)
            return cumulative_scores(self, features, rule)
        self.width = len(rule.constants)
        return self.of_features(features, rule)

    def of_features(self, features: str, rule: ScoreForm) -> str:
        """Scores that are a linear, a quadratic or a kernel form of the features."""
        if isinstance(rule, KernelExpansion):
            return kernel_scores(self, features, rule)
        if isinstance(rule, Quadratic):
            squares = [
                self.distance(features, mean, factor) for mean, factor in zip(rule.means, rule.factors, strict=True)
            ]
            halved = self.add("Mul", self.side_by_side(squares), self.constant(-0.5))
            return self.add("Add", halved, self.constant(rule.constants))
        assert isinstance(rule, Linear)
        if rule.above is not None:
            features = self.as_double(self.add("Greater", features, self.constant(rule.above)))
        if rule.centre.any():
            features = self.minus(features, rule.centre)
        scores = self.product(features, rule.weights.T)
        scores = self.add("Add", scores, self.constant(rule.constants))
        if rule.spread is None:
            return scores
        slopes, constants = rule.spread
        white = self.add("Add", self.product(features, slopes), self.constant(constants))
        variance = self.add("Mul", self.row_sums(self.add("Mul", white, white)), self.constant(math.pi / 8.0))
        return self.add("Div", scores, self.add("Sqrt", self.add("Add", variance, self.constant(1.0))))

    def distance(self, features: str, mean: Float, factor: Float) -> str:
        white = self.product(self.minus(features, mean), factor)
        return self.row_sums(self.add("Mul", white, white))

    def term(self, term: Term) -> str:
        """(N, K) what a column adds; nothing where it is missing."""
        if isinstance(term, GroupTerm):
            return self.group(term)
        if isinstance(term, TableTerm) and self.kinds[term.column].kind == "text":
            table = np.vstack([term.logs, np.zeros(len(term.other)), term.other])
            return self.add("Gather", self.constant(table), self.numbered(self.kinds[term.column], term.values), axis=0)
        x = self.column(term.column)
        if isinstance(term, GaussianTerm):
            standard = self.add("Div", self.add("Sub", x, self.constant(term.means)), self.constant(term.scales))
            halved = self.add("Mul", self.add("Mul", standard, standard), self.constant(-0.5))
            value = self.add("Add", halved, self.constant(term.constants))
        elif isinstance(term, RateTerm):
            value = self.add("Mul", x, self.constant(np.log(term.rates)))
            value = self.add("Sub", value, self.constant(term.rates))
        else:
            # log p of the value as a difference from that of any other: a value that is not there has none.
            found = self.as_double(self.add("Equal", x, self.constant(np.array(term.values, dtype=np.float64))))
            value = self.add("MatMul", found, self.constant(term.logs - term.other))
            value = self.add("Add", value, self.constant(term.other))
        return self.where_missing(x, self.constant(0.0), value)

    def group(self, term: GroupTerm) -> str:
        x = self.side_by_side([self.column(column) for column in term.columns])
        observed = self.as_double(self.add("Not", self.add("IsNaN", x)))
        counts = self.where_missing(x, self.constant(0.0), x)
        left = self.add("MatMul", observed, self.constant(term.shares.T))
        left = self.add("Log", self.add("Max", left, self.constant(_TINY)))  # nothing observed: all counts are 0
        product = self.add("MatMul", counts, self.constant(np.log(term.shares.T)))
        return self.add("Sub", product, self.add("Mul", self.row_sums(counts), left))

    # -- probabilities ----------------------------------------------------------------------------------------------

    def probabilities(self, scores: str) -> str | None:
        link = self.form.link
        if link == "none":
            return None
        if link == "platt":
            return self.platt(scores)
        if link == "shares":
            each = self.add("Sigmoid", scores)
            return self.add("Div", each, self.row_sums(each))
        return self.softmax(self.against_zero(scores) if self.width == 1 else scores)

    def against_zero(self, score: str) -> str:
        """(N, 2) the score of the first class, 0, and of the second."""
        return self.add("Mul", score, self.constant([0.0, 1.0]))

    def softmax(self, scores: str) -> str:
        powers = self.add("Exp", self.add("Sub", scores, self.add("ReduceMax", scores, axes=[1], keepdims=1)))
        return self.add("Div", powers, self.row_sums(powers))

    def platt(self, score: str) -> str:
        A, B = self.form.curves[0]
        curve = self.add("Sub", self.scaled("Mul", score, -A), self.constant(B))
        p = self.add("Gather", self.softmax(self.against_zero(curve)), self.constant([1], np.int64), axis=1)
        up = self.add("Max", p, self.constant(math.nextafter(0.5, 1.0)))
        down = self.add("Min", p, self.constant(math.nextafter(0.5, 0.0)))
        p = self.add("Where", self.add("Greater", score, self.constant(0.0)), up, down)
        p = self.add("Clip", p, self.constant(1e-7), self.constant(1.0 - 1e-7))
        return self.side_by_side([self.add("Sub", self.constant(1.0), p), p])

    # -- decision ---------------------------------------------------------------------------------------------------

    def decide(self, scores: str, probabilities: str | None) -> tuple[NDArray[Any], str]:
        """The names of what can be decided, and (N,) the place of the decision among them."""
        decision = self.form.decision
        if decision is None or probabilities is None:
            compared = self.against_zero(scores) if self.width == 1 else scores
            compared = self.add("Round", compared) if self.form.votes_only else compared
            return _names(self.form.classes), self.add("ArgMax", compared, axis=1, keepdims=0)
        relative = decision.loss - decision.loss.max(axis=1, keepdims=True)
        gains = self.add("MatMul", probabilities, self.constant(-relative))
        best = self.add("ArgMax", gains, axis=1, keepdims=0)
        rejected = self.rejected(decision, probabilities)
        if rejected is None:
            return _names(decision.actions), best
        last = self.constant(len(decision.actions), np.int64)
        return _names([*decision.actions, decision.reject_action]), self.add("Where", rejected, last, best)

    def rejected(self, decision: Decision, probabilities: str) -> str | None:
        tests = []
        if decision.reject_cost is not None:
            risks = self.add("MatMul", probabilities, self.constant(decision.loss))
            least = self.add("Neg", self.add("ReduceMax", self.add("Neg", risks), axes=[1], keepdims=0))
            tests.append(self.add("Greater", least, self.constant(decision.reject_cost)))
        if decision.reject_below is not None:
            top = self.add("ReduceMax", probabilities, axes=[1], keepdims=0)
            tests.append(self.add("Less", top, self.constant(decision.reject_below)))
        return None if not tests else tests[0] if len(tests) == 1 else self.add("Or", *tests)


def _input_names(columns: Sequence[str]) -> dict[str, str]:
    """The names of the columns; one that an output or a node has, or that is empty, has "column" before it."""
    names: dict[str, str] = {}
    for column in columns:
        own = column
        while not own or own in _OUTPUTS or own.startswith("separatrix/") or (own != column and own in columns):
            own = f"column {own}"
        names[column] = own
    return names


def _names(labels: list[Any]) -> NDArray[Any]:
    named = of_one_type(labels)
    dtype = {bool: np.bool_, int: np.int64, float: np.float64}.get(type(named[0]), object)
    return np.array(named, dtype=dtype)
