"""Arguments that mean the same in every method: described here once, and added to the docstrings that leave them out."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc, signature
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

_ARGUMENTS = {
    "X": "X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)",
    "y": "y : array-like of shape (n_samples,), or (n_samples, n_targets) for a model of several targets\n"
    "    Class labels (strings, integers or booleans); numbers for a regression. A Source carries its own, and its weights.",
    "classes": "classes : array-like, optional\n    All labels that will ever come.",
    "sample_weight": "sample_weight : array-like of shape (n_samples,), optional\n"
    "    A weight of 2 means the same as the row standing twice, 0 the same as its not being there.",
    "offset": "offset : array-like of shape (n_samples,) or (n_samples, n_classes), optional\n"
    "    Added to the scores of the rows while fitting; predictions are made without it.",
    "checkpoint": "checkpoint : str or path, optional\n"
    "    For rows in files: a folder, made if it is not there, to which the result of every pass is written. A fit that was\n"
    "    killed, begun again with the same folder, goes on from there to the same answer.",
    "k": "k, l : labels, optional\n"
    "    Two of ``classes_``. May be left out when there are only two: the positive side is then ``classes_[1]``.",
}
_HEAD = "\nParameters\n----------\n"


def described(method: Method) -> Method:
    """The method; its docstring, where that has Returns, with those of the arguments above that it does not describe."""
    text = cleandoc(method.__doc__ or "")
    before, returns, answer = text.partition("\nReturns\n")
    summary, _, own = before.partition(_HEAD)
    known = {name for line in own.splitlines() if line[:1] != " " for name in line.split(" : ")[0].split(", ")}
    added = [_ARGUMENTS[name] for name in signature(method).parameters if name in _ARGUMENTS and name not in known]
    if returns and added:
        lines = "\n".join([*added, own.strip("\n")]).rstrip()
        method.__doc__ = f"{summary}{_HEAD}{lines}\n{returns}{answer}"
    return method
