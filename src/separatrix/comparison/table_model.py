"""What is deployed: a table in, probabilities and decisions out.

table → schema.read → encoder.transform → estimator.predict_proba → argmax, or the action of least expected loss
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from separatrix.comparison.drift import profile
from separatrix.data.labels import as_names
from separatrix.decide.losses import best_actions, check_proba, loss_table
from separatrix.tables.encoder import TableEncoder
from separatrix.tables.rows import TableRows
from separatrix.tables.schema import TableSchema


class TableModel:
    """A fitted classifier with all it needs to read a table.

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

    @classmethod
    def fit(
        cls,
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
        encoder = TableEncoder(schema, standardise=standardise).fit(rows) if encode else None
        model = cls(schema, encoder, clone(estimator), family=family, loss=loss, actions=actions)
        model.estimator.fit(model.encode(rows), codes)
        model.training = profile(rows)
        return model

    @property
    def has_probabilities(self) -> bool:
        """Whether the estimator gives probabilities of the classes."""
        return hasattr(self.estimator, "predict_proba")

    def encode(self, table_or_rows: Any) -> Any:
        """What the estimator sees of a table.

        Parameters
        ----------
        table_or_rows : pandas, polars or pyarrow table, pyarrow.RecordBatch or TableRows

        Returns
        -------
        ndarray of shape (n_rows, n_features), or pyarrow.Table where there is no encoder
        """
        rows = table_or_rows if isinstance(table_or_rows, TableRows) else self.schema.read(table_or_rows)
        return rows.frame() if self.encoder is None else self.encoder.transform(rows)

    def predict_proba(self, table_or_rows: Any) -> NDArray[np.float64]:
        """The probability of every class, for every row.

        Parameters
        ----------
        table_or_rows : pandas, polars or pyarrow table, pyarrow.RecordBatch or TableRows

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
        table_or_rows : pandas, polars or pyarrow table, pyarrow.RecordBatch or TableRows

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        if self.loss is None or self.actions is None:
            return self.classes_[self.estimator.predict(self.encode(table_or_rows))]
        return self.actions[best_actions(check_proba(self.predict_proba(table_or_rows)), self.loss)]
