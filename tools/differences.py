"""docs/differences.md: what our classes have otherwise than scikit-learn's of the same names, and why.

Both classes are read and fitted to the same small sets of rows; every parameter, method, fitted attribute and answer that
scikit-learn's has is looked for in ours. A difference is an entry of differences_decisions.py or an error.

    python tools/differences.py            write the page
    python tools/differences.py --check    only say whether it is current

The installed scikit-learn is the one that is compared with.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from differences_decisions import ADDITIONS, DECISIONS
from sklearn.base import is_classifier
from sklearn.datasets import load_iris

from separatrix.drop_in.swaps import SWAPS, Swap

PAGE = Path(__file__).parent.parent / "docs" / "differences.md"
ANSWERS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "transform")
# Parameters that keep the fits of both classes short, or quiet.
SETTINGS: dict[str, dict[str, Any]] = {
    "LogisticRegressionCV": {
        "Cs": 2,
        "l1_ratios": (0.0,),
        "use_legacy_attributes": False,
        "scoring": "accuracy",
        "cv": 2,
    },
    "RidgeCV": {"store_cv_results": True},
    "RidgeClassifierCV": {"store_cv_results": True},
    "NuSVC": {"kernel": "linear", "nu": 0.3},
    "SVC": {"kernel": "linear"},
    "SGDClassifier": {"loss": "log_loss", "random_state": 0},
    "LinearDiscriminantAnalysis": {"store_covariance": True},
    "QuadraticDiscriminantAnalysis": {"store_covariance": True},
}


@dataclass(frozen=True)
class Difference:
    """Something of scikit-learn's class that ours has otherwise."""

    owner: str
    kind: str
    name: str
    theirs: str
    ours: str


def cases(swap: Swap) -> Iterator[tuple[str, Any, Any]]:
    """Rows of every kind that scikit-learn's class takes: their name, X and y."""
    X, y = load_iris(return_X_y=True)
    kind = swap.original
    X = np.round(X) if kind.__name__ == "CategoricalNB" else X
    if is_classifier(kind()):
        targets = {"three classes": y, "two classes": y > 0}
    else:
        targets = {"one target": y + 0.0, "two targets": np.column_stack([y, X[:, 0]])}
    for name, target in targets.items():
        yield name, X, target
        yield f"{name}, float32", X.astype(np.float32), target
        if kind().__sklearn_tags__().input_tags.sparse:
            yield f"{name}, sparse", sp.csr_array(X), target


def look(value: Any) -> str:
    """What a value is: its type, shape and kind of numbers."""
    if sp.issparse(value):
        return f"sparse {value.shape} {value.dtype}"
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {'text' if value.dtype.kind in 'OU' else value.dtype}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}: {look(value[0])}" if len(value) else "list of 0"
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, np.integer)):
        return "int"
    if isinstance(value, (float, np.floating)):
        return "float"
    if isinstance(value, dict):
        return f"dict of {len(value)}"
    return type(value).__name__


def public_methods(kind: type[Any]) -> dict[str, Any]:
    """The methods that are documented."""
    return {
        name: getattr(kind, name)
        for name in dir(kind)
        if not name.startswith("_") and callable(getattr(kind, name, None))
    }


def fitted_names(model: Any) -> set[str]:
    """The public attributes that a fit has set, or that are computed when asked for."""
    names = {name for name in (*vars(model), *dir(type(model))) if name.endswith("_") and not name.startswith("_")}
    return {name for name in names if _read(model, name) is not _ABSENT}


_ABSENT = object()


def _read(model: Any, name: str) -> Any:
    try:
        return getattr(model, name)
    except AttributeError:
        return _ABSENT


def of_signatures(swap: Swap) -> Iterator[Difference]:
    """Parameters of the constructor and methods with their arguments."""
    theirs, ours = signature(swap.original).parameters, signature(swap.ours).parameters
    for name, parameter in theirs.items():
        if name not in ours:
            yield Difference(swap.name, "parameter", name, repr(parameter.default), "none")
        elif repr(ours[name].default) != repr(parameter.default):
            yield Difference(swap.name, "default", name, repr(parameter.default), repr(ours[name].default))
    methods = public_methods(swap.ours)
    for name, method in public_methods(swap.original).items():
        if name not in methods:
            yield Difference(swap.name, "method", name, "", "none")
            continue
        mine = signature(methods[name]).parameters
        if any(p.kind is Parameter.VAR_KEYWORD for p in mine.values()):
            continue
        for argument, parameter in signature(method).parameters.items():
            if parameter.kind is not Parameter.VAR_KEYWORD and argument not in mine:
                yield Difference(swap.name, "argument", f"{name}({argument})", "", "none")


def of_fits(swap: Swap) -> Iterator[Difference]:
    """Fitted attributes and answers, on every kind of rows."""
    for case, X, y in cases(swap):
        settings = SETTINGS.get(swap.name, {})
        theirs, ours = swap.original(**settings).fit(X, y), swap.ours(**settings).fit(X, y)
        for name in sorted(fitted_names(theirs)):
            expected, found = getattr(theirs, name), _read(ours, name)
            if found is _ABSENT:
                yield Difference(swap.name, "attribute", name, look(expected), "none")
            elif look(found) != look(expected):
                yield Difference(swap.name, "attribute", name, f"{look(expected)} ({case})", look(found))
        for name in ANSWERS:
            if hasattr(theirs, name):
                expected, found = getattr(theirs, name)(X), getattr(ours, name)(X)
                if look(found) != look(expected):
                    yield Difference(swap.name, "answer", name, f"{look(expected)} ({case})", look(found))


def differences() -> list[Difference]:
    """All of them, once each: of the cases that show one the first."""
    found: dict[tuple[str, str, str], Difference] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for swap in SWAPS.values():
            sources: list[Callable[[Swap], Iterator[Difference]]] = [of_signatures, of_fits]
            for of in sources:
                for one in of(swap):
                    found.setdefault((one.owner, one.kind, one.name), one)
    return list(found.values())


def decision_for(one: Difference) -> str | None:
    """Why it is so, if that was decided."""
    for owners, kind, names, why in DECISIONS:
        if one.owner in owners.split() and kind == one.kind and one.name in names.split():
            return why
    return None


def undecided_of(found: list[Difference]) -> list[Difference]:
    """Those without a decision."""
    return [one for one in found if decision_for(one) is None]


def superfluous(found: list[Difference]) -> list[str]:
    """Entries of the table that nothing differs by any more."""
    return [
        f"{owners} {kind} {name}"
        for owners, kind, names, _ in DECISIONS
        for name in names.split()
        if not any(o.kind == kind and o.name == name and o.owner in owners.split() for o in found)
    ]


def additions(swap: Swap) -> str:
    """Parameters and methods that scikit-learn's class has not."""
    more = [name for name in signature(swap.ours).parameters if name not in signature(swap.original).parameters]
    theirs = public_methods(swap.original)
    methods = [f"{name}()" for name in public_methods(swap.ours) if name not in theirs and "_request" not in name]
    return ", ".join(f"`{name}`" for name in (*more, *methods) if name not in ADDITIONS)


def page(found: list[Difference]) -> str:
    """docs/differences.md."""
    lines = [
        "# How our classes differ from scikit-learn's",
        "",
        f"Written by `tools/differences.py` from the classes themselves, ours and those of scikit-learn {sklearn.__version__},",
        "which are read, and fitted to dense and sparse rows in both precisions. Whatever is not listed (parameters and their",
        "defaults, methods and their arguments, fitted attributes with their shapes and types, answers) is the same.",
        "Each entry is a decision. Under [the swap](accelerate.md) scikit-learn's class is in front, so that most of these",
        "cannot be seen there; [conformance.md](conformance.md) lists what can.",
        "",
    ]
    by_decision: dict[str, list[Difference]] = {}
    for one in found:
        by_decision.setdefault(decision_for(one) or "To be decided.", []).append(one)
    for why, ones in by_decision.items():
        lines += ["", f"**{why}**", "", "| class | what | scikit-learn's | ours |", "|---|---|---|---|"]
        rows: dict[tuple[str, str, str, str], list[str]] = {}
        for one in ones:
            rows.setdefault((one.kind, one.name, one.theirs, one.ours), []).append(one.owner)
        for (kind, name, theirs, ours), owners in rows.items():
            lines.append(f"| {', '.join(owners)} | {kind} `{name}` | {theirs} | {ours} |")
    shared = ", ".join(f"`{name}`" for name in ADDITIONS)
    lines += ["", "## What ours have in addition", "", f"Most: {shared}; `fit` takes sources and `checkpoint`.", ""]
    lines += [f"- {swap.name}: {additions(swap)}" for swap in SWAPS.values() if additions(swap)]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write the page, or say whether it is current; 1 where something is undecided or the page is not."""
    found = differences()
    undecided = undecided_of(found)
    for one in undecided:
        print(f"no decision: {one}")
    for entry in superfluous(found):
        print(f"no longer a difference: {entry}")
    text = page(found)
    if arguments != ["--check"]:
        PAGE.write_text(text, encoding="utf-8")
    return int(bool(undecided or superfluous(found)) or PAGE.read_text(encoding="utf-8") != text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
