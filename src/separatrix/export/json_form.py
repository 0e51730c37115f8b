"""A classifier as a JSON document: its numbers, and the formulas that turn them into probabilities, in words.

Numbers have the digits that give the same double back. Whoever reads it needs arithmetic, exp, log and sqrt.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import numpy as np

from separatrix.comparison.table_model import TableModel
from separatrix.dual.points import Points
from separatrix.export.form import ExportForm, InputColumn, every_part, export_form
from separatrix.export.model_file import library_version
from separatrix.export.pipelines import Feature
from separatrix.export.sql_dialects import WHITESPACE
from separatrix.geometry.additive_form import Additive
from separatrix.geometry.combined_forms import PairVote
from separatrix.geometry.score_form import KernelExpansion, Linear, ScoreForm

_COLUMNS = (
    "columns: a 'number' is read as a double. A 'flag' is 1 if its text, in small letters, is among 'true', and 0 if it is "
    "among 'false'. A 'text' that has codes for 'missing' is missing where it is one of them. Flags and such texts lose "
    "the white space at their ends first: " + ", ".join(f"U+{code:04X}" for code in WHITESPACE) + ". What is absent or "
    "NaN is missing as well."
)
_FEATURES = (
    "features: z_j = (v - centre)/scale. For 'value' v is the number in the column, or fill where it is missing (without a "
    "fill nothing may be missing). For 'missing' v is 1 where the column is missing, else 0. For 'level' v is 1 where the "
    "column, or fill where it is missing and there is one, is that level, else 0. For 'target' v is what values has for the "
    "text in the column, 0 for a text that it does not have and where the column is missing."
)
_WORDS = (
    "For 'text' the words of the column are the runs of two or more word characters of the text in small letters (regular "
    "expression \\b\\w\\w+\\b of Unicode), and the pairs of neighbours with a blank between them. The bucket of a word is "
    "abs(h) mod 262144, h the signed 32 bit MurmurHash3 (x86, seed 0) of its UTF-8. words lists [bucket, idf, weight]; other "
    "buckets are not known. x_b = (1 + log n_b) * idf_b for a known bucket that occurs n_b times, v is the sum of weight_b * "
    "x_b over the square root of the sum of x_b^2; 0 where no bucket is known or the column is missing."
)
_PRODUCTS = "products: from here on z_i is the product of the features at the places products[i]; of none it is 1."
_RULES = {
    "linear": "scores: s_k = constants[k] + sum over j of weights[k][j] * (z_j - centre[j]).",
    "above": "Before that every z_j is replaced by 1 where it is greater than above, else by 0.",
    "spread": "Then s is divided by sqrt(1 + pi*v/8), v = sum over i of (g[i] + sum over j of G[j][i] * (z_j - centre[j]))^2.",
    "quadratic": "scores: s_k = constants[k] - 1/2 * sum over i of (sum over j of factors[k][j][i] * (z_j - means[k][j]))^2.",
    "additive": "scores: s_k = constants[k] + the sum of the terms; a term of a missing column is 0.",
    "cumulative": (
        "scores: a = sum over j of weights[j] * z_j; s_k = log(F(thresholds[r] - a) - F(thresholds[r - 1] - a)), r = ranks[k], "
        "F(t) = 1/(1 + exp(-t)), F of the threshold before the first 0 and after the last 1."
    ),
    "kernelexpansion": "scores: s_m = constants[m] + sum over i of coefficients[i][m] * k(z, points[i]).",
    "pairvote": (
        "scores: 'pairs' gives one score f for every pair of classes (0, 1), (0, 2), ..., (1, 2), ...; f >= 0 is a vote for "
        "the first, else for the second. c_k is the sum of f where k is the first of the pair less that where it is the "
        "second; s_k = votes_k + c_k / (3 * (abs(c_k) + 1))."
    ),
}
_KERNELS = {
    "RBF": "RBF kernel: k(x, z) = exp(-gamma * sum over j of (x_j - z_j)^2).",
    "Laplacian": "Laplacian kernel: k(x, z) = exp(-gamma * sum over j of abs(x_j - z_j)).",
    "Polynomial": "Polynomial kernel: k(x, z) = (gamma * sum over j of x_j * z_j + coef0)^degree.",
    "Sigmoid": "Sigmoid kernel: k(x, z) = tanh(gamma * sum over j of x_j * z_j + coef0).",
    "Linear": "Linear kernel: k(x, z) = sum over j of x_j * z_j.",
    "Sum": "Sum kernel: the sum of its parts.",
    "Product": "Product kernel: the product of its parts.",
    "Multiple": "Multiple kernel: factor times the kernel.",
}
_TERMS = {
    "gaussian": "gaussian term: constants[k] - 1/2 * ((x - means[k])/scales[k])^2.",
    "table": "table term: logs[i][k] for the i-th of values, other[k] for a value that is not among them.",
    "rate": "rate term: x * log(rates[k]) - rates[k].",
    "group": "group term: sum over its observed columns j of x_j * log(shares[k][j] / S_k), S_k the sum of their shares[k].",
}
_SINGLE = "There is one score s for two classes."
_LINKS = {
    "softmax": "probabilities: p_k = exp(s_k - m) / sum over l of exp(s_l - m), m the largest score.",
    "single": "probabilities: that of the second class is 1/(1 + exp(-s)), that of the first 1/(1 + exp(s)).",
    "shares": "probabilities: q_k = 1/(1 + exp(-s_k)); p_k = q_k / sum of q.",
    "platt": (
        "probabilities: that of the second class is p = 1/(1 + exp(slope * s + constant)); if s > 0 at least, else at most, "
        "the double next to 1/2; within [1e-7, 1 - 1e-7]. That of the first is 1 - p."
    ),
    "coupled": (
        "probabilities: r_kl = 1/(1 + exp(slopes[i] * f_i + constants[i])) for the i-th pair (k, l); if f_i > 0 at least, else "
        "at most, the double next to 1/2; within [1e-7, 1 - 1e-7]; r_lk = 1 - r_kl. p and a number m solve the equations p_k * "
        "(sum over l of r_lk^2) - sum over l of r_kl * r_lk * p_l + m = 0 for every k, l other than k, and sum of p = 1; then "
        "every p_k is at least 1e-7, and divided by their sum. If the largest is not that of WINNER, this one and the largest "
        "others, added one by one as long as the next is above the mean of those so far, all get their mean."
    ),
    "none": "The model has no probabilities.",
}
_ARGMAX = "prediction: the class with the largest score, the first of those that tie."
_VOTES = "prediction: the class with most votes, the first of those that tie."
_SIGN = "prediction: the second class where s > 0, else the first."
_ACTION = (
    "prediction: the action a with the least sum over k of p_k * loss[k][a]; reject_action where that sum exceeds reject_cost, "
    "or where no p_k reaches reject_below (null: never)."
)


def to_json(model: Any) -> str:
    """A JSON document from which the model can be written again in any language.

    Parameters
    ----------
    model : TableModel or classifier of separatrix
        With scores that are sums over columns, as for `to_sql`.

    Returns
    -------
    str
        An object with ``classes``, ``columns``, ``features``, ``rule``, ``link``, ``decision`` and ``formula``: sentences that
        on what to compute.

    Examples
    --------
    >>> import json
    >>> import numpy as np
    >>> import separatrix as sx
    >>> model = sx.LogisticRegression().fit(np.array([[0.0], [1.0], [2.0], [3.0]]), ["no", "yes", "no", "yes"])
    >>> document = json.loads(sx.to_json(model))
    >>> document["rule"]["weights"] == model.coef_.tolist()
    True
    >>> print(document["formula"][-1])
    prediction: the second class where s > 0, else the first.
    """
    form = export_form(model, "JSON")
    rule = _plain(form.rule)
    if isinstance(form.rule, Linear):
        spread = rule.pop("spread")
        rule = {**rule, "G": None, "g": None} if spread is None else {**rule, "G": spread[0], "g": spread[1]}
    if isinstance(form.rule, PairVote) and isinstance(form.rule.pairs, Linear):
        rule["pairs"] = {name: rule["pairs"][name] for name in ("kind", "weights", "constants", "centre")}
    link: dict[str, Any] = {"kind": form.link}
    if form.link == "platt":
        link |= dict(zip(("slope", "constant"), form.curves[0], strict=True))
    if form.link == "coupled":
        link |= dict(zip(("slopes", "constants"), (list(one) for one in zip(*form.curves, strict=True)), strict=True))
    document = {
        "format": "separatrix scores",
        "version": 1,
        "library_version": library_version(),
        "family": model.family if isinstance(model, TableModel) else type(model).__name__,
        "formula": _formula(form),
        "classes": form.classes,
        "columns": [_column(column) for column in form.columns],
        "features": [_feature(feature) for feature in form.features],
        "products": [list(product) for product in form.products],
        "rule": rule,
        "link": link,
        "decision": None if form.decision is None else _plain(form.decision),
    }
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)


def _kind(part: Any) -> str:
    name = type(part).__name__
    own = name.removesuffix("Kernel") if hasattr(part, "positive") else name.removesuffix("Term").lower()
    return "Linear" if own == "CentredLinear" else own


def _plain(part: Any) -> Any:
    """Arrays as lists, and the parts of a rule as objects with their kind."""
    if isinstance(part, np.ndarray):
        return part.tolist()
    if isinstance(part, Points):
        return np.asarray(part.X.toarray() if part.sparse else part.X, dtype=np.float64).tolist()
    if isinstance(part, list | tuple):
        return [_plain(item) for item in part]
    if is_dataclass(part):
        return {"kind": _kind(part), **{name: _plain(getattr(part, name)) for name in _fields(part)}}
    return part


def _fields(part: Any) -> list[str]:
    """The names of the numbers of a part; of a rule without its link and columns, which the document has elsewhere."""
    names = [field.name for field in fields(part)]
    elsewhere = ("link", "columns", "second", "confidences")
    return [name for name in names if not (isinstance(part, ScoreForm) and name in elsewhere)]


def _feature(feature: Feature) -> dict[str, Any]:
    """A feature; only one that is looked up has values, and only one of free text words."""
    own = {"target": "values", "text": "words"}
    left = {"values", "words"} - {own.get(feature.what, "")}
    return {name: value for name, value in asdict(feature).items() if name not in left}


def _column(column: InputColumn) -> dict[str, Any]:
    """A column; how text is turned into numbers is left to whoever reads the document."""
    return {name: value for name, value in asdict(column).items() if name not in ("decimal", "absent")}


def _formula(form: ExportForm) -> list[str]:
    rule, machines = form.rule, form.rule.pairs if isinstance(form.rule, PairVote) else form.rule
    single = isinstance(rule, Linear | KernelExpansion) and len(rule.constants) == 1
    sentences = [
        _COLUMNS,
        *([] if isinstance(rule, Additive) else [_FEATURES]),
        *([_WORDS] if any(feature.what == "text" for feature in form.features) else []),
        *([_PRODUCTS] if form.products else []),
    ]
    sentences.append(_RULES[_kind(rule)])
    if isinstance(rule, Linear):
        sentences += [_RULES["above"]] * (rule.above is not None) + [_RULES["spread"]] * (rule.spread is not None)
    if isinstance(rule, Additive):
        sentences += [_TERMS[kind] for kind in dict.fromkeys(map(_kind, rule.terms))]
    if isinstance(rule, PairVote):
        sentences.append(_RULES[_kind(machines)].replace("scores", "pairs").replace("s_", "f_"))
    if isinstance(machines, KernelExpansion):
        sentences += [_KERNELS[kind] for kind in dict.fromkeys(map(_kind, every_part(machines.kernel)))]
    if single:
        sentences.append(_SINGLE)
    winner = (
        "the class with most votes, the first of those that tie"
        if form.votes_only
        else "the class with the largest s_k"
    )
    sentences.append(_LINKS["single" if single and form.link == "softmax" else form.link].replace("WINNER", winner))
    sentences.append(
        _ACTION if form.decision is not None else _SIGN if single else _VOTES if form.votes_only else _ARGMAX
    )
    return sentences
