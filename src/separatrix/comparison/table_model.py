"""What is deployed: a table in, probabilities and decisions out.

table → schema.read → encoder.transform → estimator.predict_proba → argmax, or the action of least expected loss
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from separatrix.comparison.drift import profile
from separatrix.data.block import Codes, Float
from separatrix.data.labels import as_names
from separatrix.decide.losses import best_actions, check_proba, loss_table
from separatrix.models.logistic.path import logistic_path
from separatrix.tables.encoder import TableEncoder
from separatrix.tables.preparation import table_of_arrays
from separatrix.tables.reading import read_table
from separatrix.tables.rows import TableRows
from separatrix.tables.schema import TableSchema

# Scores of words are inputs of a model, which finds their scale itself.
_TOLERANCE, _MOST_STEPS = 1e-3, 100


def learn_encoder(
    schema: TableSchema,
    rows: TableRows,
    codes: Codes,
    standardise: bool = True,
    weights: Float | None = None,
    groups: Codes | None = None,
) -> tuple[TableEncoder, Float]:
    """An encoder learnt from rows, and these rows as a model learns from them."""
    encoder = TableEncoder(schema, standardise=standardise)
    return encoder, encoder.fit_transform(rows, codes, weights, groups, _regression_of_words)


def _regression_of_words(X: Any, codes: Codes, weights: Float, Cs: Float) -> tuple[Float, Float]:
    path = logistic_path(X, codes, weights, Cs=Cs, tol=_TOLERANCE, max_iter=_MOST_STEPS)
    return path.coefs, path.intercepts


class _FitOfBoth:
    """`fit` of the class makes a model of a table; `fit` of a model fits it again, as scikit-learn does."""

    def __init__(self, of_class: Callable[..., TableModel]) -> None:
        self._of_class = of_class
        self.__doc__ = of_class.__doc__

    def __get__(self, model: TableModel | None, kind: type[TableModel]) -> Callable[..., TableModel]:
        return MethodType(self._of_class, kind) if model is None else model.fit_again


class TableModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A fitted classifier with all it needs to read a table; a classifier of scikit-learn whose X are tables.

    Parameters
    ----------
    schema : TableSchema
        What the columns are.
    encoder : TableEncoder or None
        Fitted. None when the estimator reads tables itself, as `MixedNB` does.
    estimator : classifier
        Fitted to the codes 0…K−1 of `schema.classes`.
    family : str
        What it is called.
    loss : array-like of shape (n_classes, n_actions), optional
        What each action costs under each class. `predict` then gives the action of least expected loss.
    actions : sequence, optional
        Names of the columns of `loss`; by default the classes.
    scores : dict, optional
        How it did in a comparison, for the record.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    feature_names_in_ : ndarray of str
        The columns of a table that are read.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from separatrix import LogisticRegression
    >>> from separatrix.comparison.table_model import TableModel
    >>> ill = ["no", "no", "yes", "no", "yes", "yes"]
    >>> table = pa.table({"age": [20, 25, 33, 47, 52, 61], "sex": list("fmfmfm"), "ill": ill})
    >>> model = TableModel.fit(table, "ill", LogisticRegression(), family="logistic")
    >>> model.predict(pa.table({"sex": ["f", "m"], "age": [70, None]}))
    array(['yes', 'no'], dtype='<U3')
    >>> model.score(table)
    1.0
    """

    training: dict[str, Any] | None = None  # how the columns of the training rows were distributed, where it is known

    def __init__(
        self,
        schema: TableSchema,
        encoder: TableEncoder | None,
        estimator: Any,
        *,
        family: str,
        loss: ArrayLike | None = None,
        actions: Sequence[Any] | None = None,
        scores: dict[str, Any] | None = None,
    ) -> None:
        self.schema, self.encoder, self.estimator, self.family = schema, encoder, estimator, family
        self.scores = {} if scores is None else scores
        self.classes_ = as_names(schema.classes)
        self.loss: NDArray[np.float64] | None = None
        self.actions: NDArray[Any] | None = None
        if loss is not None:
            if not self.has_probabilities:
                raise ValueError(
                    f"A loss is weighed by probabilities, and the model {family!r} gives none; leave the loss out, or choose "
                    f"a model that does, such as 'logistic'."
                )
            self.loss, self.actions = loss_table(loss, self.classes_, actions)

    @_FitOfBoth
    def fit(
        cls: type[TableModel],  # bound by the decorator
        table: Any,
        target: str,
        estimator: Any,
        *,
        family: str,
        encode: bool = True,
        standardise: bool = True,
        loss: ArrayLike | None = None,
        actions: Sequence[Any] | None = None,
    ) -> TableModel:
        """Infer the schema of a table, learn the encoding, and fit a clone of the estimator.

        Parameters
        ----------
        table : pandas, polars or pyarrow table
        target : str
            The column that holds the class; rows without one are not used.
        estimator : classifier
        family : str
            What the model is called.
        encode : bool, default=True
            False for an estimator that reads tables with holes and categories itself.
        standardise : bool, default=True
            Whether the encoder standardises.
        loss, actions : optional
            As for the class.

        Returns
        -------
        TableModel
        """
        schema, rows, codes = TableSchema.infer_and_read(table, target)
        encoder, X = learn_encoder(schema, rows, codes, standardise) if encode else (None, schema.plain_frame(rows))
        model = cls(schema, encoder, clone(estimator), family=family, loss=loss, actions=actions)
        model.estimator.fit(X, codes)
        model.training = profile(rows, schema.prose)
        return model

    def fit_again(self, X: Any, y: Any = None) -> TableModel:
        """Fit this model to another table: to its target column, or to X and y.

        Parameters
        ----------
        X : pandas, polars or pyarrow table, or array
        y : array-like of shape (n,), optional
            By default the column of X that the target was.

        Returns
        -------
        self
        """
        table, target = (X, self.schema.target) if y is None else table_of_arrays(X, y)
        encoder = self.encoder
        options = {} if encoder is None else {"encode": True, "standardise": encoder.standardise}
        loss = {} if self.loss is None else {"loss": self.loss, "actions": self.actions}
        new = type(self).fit(
            table, target, self.estimator, family=self.family, **{"encode": encoder is not None, **options}, **loss
        )
        self.__dict__.update(new.__dict__)
        return self

    def __sklearn_clone__(self) -> TableModel:
        """A model that is not fitted, of the same kind; what the columns are is learnt when it is."""
        new = copy(self)
        new.estimator = clone(self.estimator)
        return new

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the estimator is."""
        return hasattr(self.estimator, "classes_")

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # scikit-learn's name
        return f"TableModel({self.family!r}: {self.schema.target!r} of {len(self.schema.used)} columns)"

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The columns of a table that are read."""
        return np.array(list(dict.fromkeys(c.source or c.name for c in self.schema.used)), dtype=object)

    @property
    def n_features_in_(self) -> int:
        """How many columns of a table are read."""
        return len(self.feature_names_in_)

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """The share of rows whose class is predicted.

        Parameters
        ----------
        X : pandas, polars or pyarrow table, or path of a file
        y : array-like of shape (n,), optional
            By default the target column of X; its rows without a class do not count.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        table = _read(X)
        predicted = np.asarray(self.predict(table))
        if y is None:
            codes, known = self.schema.read_target(table)
            truth = self.classes_[codes]
        else:
            truth, known = np.asarray(y), np.ones(len(predicted), dtype=bool)
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average(predicted[known] == truth[known], weights=weights))

    def summary(self) -> list[dict[str, Any]]:
        """The coefficients of a linear model by column: per standard deviation, per unit of the column, and as odds ratios.

        Returns
        -------
        list of dict
            With "class" (None for two classes), "column", "standardised", "coefficient" and "odds_ratio", the largest first.
        """
        if self.encoder is None or not hasattr(self.estimator, "coef_"):
            raise ValueError(f"The model {self.family!r} is not linear in the columns, so it has no coefficients.")
        coef, scales = np.atleast_2d(self.estimator.coef_), self.encoder.scales_
        labels = [None] if len(coef) == 1 else self.classes_[self.estimator.classes_].tolist()
        rows = [
            {
                "class": label,
                "column": name,
                "standardised": float(w) if self.encoder.standardise else float("nan"),
                "coefficient": float(w / scale),
                "odds_ratio": float(np.exp(w / scale)),
            }
            for label, own in zip(labels, coef, strict=True)
            for name, w, scale in zip(self.encoder.feature_names_, own, scales, strict=True)
        ]
        return sorted(rows, key=lambda row: -abs(coef.ravel()[rows.index(row)]))

    @property
    def has_probabilities(self) -> bool:
        """Whether the estimator gives probabilities of the classes."""
        return hasattr(self.estimator, "predict_proba")

    def encode(self, table_or_rows: Any) -> Any:
        """What the estimator sees of a table.

        Parameters
        ----------
        table_or_rows : pandas, polars or pyarrow table, path of a file, pyarrow.RecordBatch or TableRows

        Returns
        -------
        ndarray of shape (n_rows, n_features), or pyarrow.Table where there is no encoder
        """
        rows = table_or_rows if isinstance(table_or_rows, TableRows) else self.schema.read(_read(table_or_rows))
        return self.schema.plain_frame(rows) if self.encoder is None else self.encoder.transform(rows)

    def predict_proba(self, table_or_rows: Any) -> NDArray[np.float64]:
        """The probability of every class, for every row.

        Parameters
        ----------
        table_or_rows : pandas, polars or pyarrow table, path of a file, pyarrow.RecordBatch or TableRows

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            0 for a class that the estimator never saw.
        """
        if not self.has_probabilities:
            raise ValueError(
                f"The model {self.family!r} gives no probabilities; choose one that does, such as 'logistic'."
            )
        given = self.estimator.predict_proba(self.encode(table_or_rows))
        proba = np.zeros((len(given), len(self.classes_)))
        proba[:, self.estimator.classes_] = given
        return proba

    def decision_function(self, table_or_rows: Any) -> NDArray[np.float64]:
        """The scores of the estimator for a table as `encode` takes it: (n_rows,) for two classes, else (n_rows, n_classes)."""
        return self.estimator.decision_function(self.encode(table_or_rows))

    def predict(self, table_or_rows: Any) -> NDArray[Any]:
        """The class of every row; with a loss, the action of least expected loss.

        Parameters
        ----------
        table_or_rows : pandas, polars or pyarrow table, path of a file, pyarrow.RecordBatch or TableRows

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        if self.loss is None or self.actions is None:
            return self.classes_[self.estimator.predict(self.encode(table_or_rows))]
        return self.actions[best_actions(check_proba(self.predict_proba(table_or_rows)), self.loss)]


def _read(table: Any) -> Any:
    """A table, of the file where it is a path."""
    return read_table(table) if isinstance(table, str | os.PathLike) else table
