"""Formulas: "y ~ x + C(group) + x:z" and a table become targets and columns, through formulaic.

The right-hand side says which columns a model has, and whether it has an intercept (it does unless "- 1" or "0 +" is written).
What was learnt from the table (levels of categories, centres, knots) is kept, so that other tables become the same columns.
formulaic is imported when a formula is first read.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from separatrix.data.frames import is_frame

_INTERCEPT = "Intercept"


@dataclass(frozen=True)
class FormulaDesign:
    """A formula with what it learnt from a table.

    Parameters
    ----------
    text : str
        The formula as it was written.
    spec : object
        formulaic's record of the right-hand side.
    columns : tuple of str
        The columns that it makes, without the intercept.
    """

    text: str
    spec: Any
    columns: tuple[str, ...]

    def reads(self, table: Any) -> bool:
        """Whether a table is one the formula is to be applied to: not one of the columns that it makes."""
        if not is_frame(table):
            return False
        names = set(_column_names(table))
        return not (set(self.columns) <= names and not set(map(str, self.spec.required_variables)) <= names)

    def of(self, table: Any) -> Any:
        """The columns of another table, as a data frame."""
        with _worded(self.text):
            return _without_intercept(self.spec.get_model_matrix(table, context={}, na_action="raise"), len(table))


def read_formula(text: str, table: Any, *, labels: bool) -> tuple[FormulaDesign, Any, Any, bool]:
    """The design, its columns as a data frame, the targets, and whether there is an intercept.

    With `labels` the left-hand side is the name of a column of class labels; else it may be any expression of numbers, and
    several of them ("a + b ~ x") are several targets.

    Examples
    --------
    >>> import pandas as pd
    >>> from separatrix.tables.formulas import read_formula
    >>> table = pd.DataFrame({"y": [1.0, 2.0, 4.0], "x": [0.0, 1.0, 2.0], "g": ["a", "b", "a"]})
    >>> design, X, y, intercept = read_formula("y ~ x * g", table, labels=False)
    >>> list(X.columns), y.tolist(), intercept
    (['x', 'g[T.b]', 'x:g[T.b]'], [1.0, 2.0, 4.0], True)
    """
    if not isinstance(text, str) or text.count("~") != 1:
        raise ValueError(f"The formula is {text!r}; write the target, ~ and the columns, as in 'y ~ x + C(group)'.")
    if not is_frame(table):
        raise ValueError(
            f"A formula needs a pandas, polars or pyarrow table in memory, not {type(table).__name__}; for files use "
            "scan_csv or scan_parquet, which encode their columns themselves."
        )
    left, right = (side.strip() for side in text.split("~"))
    formulaic = _formulaic()
    with _worded(text):
        matrix = formulaic.Formula(right).get_model_matrix(table, context={}, na_action="raise", output="pandas")
    intercept, spec = _INTERCEPT in matrix.columns, matrix.model_spec
    X = _without_intercept(matrix, len(table))
    if not X.shape[1]:
        raise ValueError(f"The formula {text!r} has no columns on its right-hand side; name at least one.")
    return FormulaDesign(text, spec, tuple(map(str, X.columns))), X, _targets(left, text, table, labels), intercept


def _targets(left: str, text: str, table: Any, labels: bool) -> Any:
    names = _column_names(table)
    if left.strip("`") in names:
        return np.asarray(table[left.strip("`")])
    if labels:
        raise ValueError(
            f"The left-hand side of {text!r} is {left!r}, which is not a column of the table; name the column that has the "
            "class labels."
        )
    with _worded(text):
        values = (
            _formulaic().Formula(f"{left} - 1").get_model_matrix(table, context={}, na_action="raise", output="pandas")
        )
    numbers = values.to_numpy(dtype=np.float64)
    return numbers[:, 0] if numbers.shape[1] == 1 else numbers


def _without_intercept(matrix: Any, n_rows: int) -> Any:
    """The columns as a plain data frame; as many rows as the table has, even where there are no columns."""
    pandas: Any = import_module("pandas")
    names = [name for name in matrix.columns if name != _INTERCEPT]
    return pandas.DataFrame({name: np.asarray(matrix[name], dtype=np.float64) for name in names}, index=range(n_rows))


def _column_names(table: Any) -> list[str]:
    return list(getattr(table, "column_names", None) or table.columns)


def _formulaic() -> Any:
    try:
        return import_module("formulaic")
    except ImportError:
        raise ImportError("Formulas need formulaic: install separatrix[formula].") from None


@contextmanager
def _worded(text: str) -> Iterator[None]:
    """formulaic's errors as sentences about the formula; a category that the fit has not seen is one."""
    errors: Any = import_module("formulaic.errors")
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.DataMismatchWarning)
        try:
            yield
        except errors.DataMismatchWarning as reason:
            unseen = str(reason).partition(": {")[2].partition("}")[0]
            raise ValueError(
                f"The formula {text!r} met categories that the fit has not seen: {unseen}. Leave these rows out, or fit with "
                "them."
            ) from None
        except (errors.FormulaicError, ValueError) as reason:
            raise ValueError(f"The formula {text!r} cannot be read: {reason}") from None
