"""Models written as formulas: `from_formula("y ~ x + C(group)", table)`.

The model is fitted to the columns that the formula makes, whose names its summary shows, and remembers the formula: `predict`
and the other methods take tables with the columns that the formula names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike
from sklearn.base import is_classifier

if TYPE_CHECKING:
    from separatrix.tables.formulas import FormulaDesign


class FromFormula:
    """`from_formula`, mixed into estimators before the class that reads rows."""

    formula_: str
    _design_of_formula: FormulaDesign | None = None

    @classmethod
    def from_formula(cls, formula: str, table: Any, sample_weight: ArrayLike | None = None, **parameters: Any) -> Self:
        """A model fitted to a table as a formula says; needs the extra ``formula`` (formulaic).

        Parameters
        ----------
        formula : str
            "y ~ x + C(group) + x:z" in formulaic's grammar: terms by +, interactions by :, both by *, categories by C(),
            functions of columns such as log(x), poly(x, 2) or bs(x, df=5). "- 1" leaves out the intercept.
        table : pandas, polars or pyarrow table
            With the columns that the formula names; missing values are refused.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as the row standing twice.
        **parameters
            Of the estimator, but for `fit_intercept`, which the formula decides.

        Returns
        -------
        fitted estimator
            Its `formula_` is the formula. `predict` and the other methods take tables; fitting it again to X and y forgets the
            formula.

        Examples
        --------
        >>> import pandas as pd
        >>> from separatrix import LinearRegression
        >>> table = pd.DataFrame({"y": [1.0, 2.0, 4.0, 3.0], "x": [0.0, 1.0, 2.0, 3.0], "g": ["a", "b", "a", "b"]})
        >>> model = LinearRegression.from_formula("y ~ x + C(g)", table)
        >>> list(model.feature_names_in_), model.predict(table).round(2).tolist()
        (['x', 'C(g)[T.b]'], [1.5, 1.5, 3.5, 3.5])
        """
        from separatrix.tables.formulas import read_formula  # with formulaic, when a formula is used

        if "fit_intercept" in parameters:
            raise TypeError(
                "The formula decides about the intercept: write '- 1' in it instead of giving fit_intercept."
            )
        model: Any = cls(**parameters)
        design, X, y, intercept = read_formula(formula, table, labels=is_classifier(model))
        if "fit_intercept" in model.get_params():
            model.set_params(fit_intercept=intercept)
        elif not intercept:
            raise ValueError(f"{cls.__name__} always has intercepts; leave '- 1' out of the formula.")
        model.fit(X, y, sample_weight)
        model.formula_, model._design_of_formula = formula, design
        return model

    def _fit(self, *given: Any, **options: Any) -> Self:
        model: Any = super()
        model._fit(*given, **options)
        self.__dict__.pop("formula_", None)
        self.__dict__.pop("_design_of_formula", None)
        return self

    def _read(self, X: Any, *given: Any, reset: bool, **options: Any) -> Any:
        design = None if reset else self._design_of_formula
        model: Any = super()
        return model._read(X if design is None or not design.reads(X) else design.of(X), *given, reset=reset, **options)
