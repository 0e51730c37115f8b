"""Standard errors, tests and intervals of a fitted linear regression: the methods; the arithmetic is in inference/."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from separatrix.data.block import Block, Float
from separatrix.inference.estimates import check_level
from separatrix.inference.least_squares import LeastSquaresEstimates
from separatrix.inference.least_squares_summary import RegressionSummary, check_covariance
from separatrix.models.least_squares.gram_regression import LeastSquaresRegressor
from separatrix.statistics.gram import Gram

Covariance = Literal["model", "robust", "HC0", "HC1", "HC2", "HC3"]
_POSITIVE = (
    "There are no standard errors under positive=True: an estimate that lies on its bound is not normally distributed about "
    "the truth. Fit without it."
)
_NO_SUMS = "This fit read its rows several times and kept no sums of squares: give X and y."


class SummarisedRegression(LeastSquaresRegressor):
    """`summary`, `conf_int`, `vcov` and `predict_interval`, mixed into `LinearRegression`."""

    def estimates(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        covariance: Covariance = "model",
    ) -> LeastSquaresEstimates:
        """Estimates with the noise and their covariance: what `summary` and the other methods read.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`, optional
            The rows that were fitted; needed only for robust errors, and for all digits of a fit that is nearly perfect.
        covariance : {"model", "robust", "HC0", "HC1", "HC2", "HC3"}, default="model"

        Returns
        -------
        LeastSquaresEstimates
        """
        self._check_ready()
        if self.positive:
            raise ValueError(_POSITIVE)
        kind = check_covariance(covariance, X is not None)
        d, source = self.n_features_in_, None
        if X is not None:
            one_target = self._one_target
            source = self._numbers(X, y, sample_weight, reset=False)
            self._one_target = one_target  # reading y changes nothing of the fit
        if hasattr(self, "_gram"):
            equations = replace(self._equations(), total=self._gram.total)  # a triangular factor has rounded it
        elif source is not None:
            equations = Gram.of_source(source).normal_equations()
            equations = equations if self.fit_intercept else equations.without_intercept()
        else:
            raise ValueError(_NO_SUMS)
        given = getattr(self, "feature_names_in_", None)
        names = tuple(f"x{j}" for j in range(d)) if given is None else tuple(map(str, given))
        coef = np.atleast_2d(np.asarray(self.coef_, dtype=np.float64))
        known = LeastSquaresEstimates.of(equations, coef, names, getattr(self, "rank_", d), bool(self.fit_intercept))
        return known if source is None else known.from_rows(source, kind)

    def summary(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        level: float = 0.95,
        covariance: Covariance = "model",
    ) -> RegressionSummary:
        """Standard errors, t tests and intervals of the coefficients; R², F, AIC, BIC and the condition of the columns.

        Weights are repetitions: the errors are those of the data with every row written out as often as its weight says, and
        n is the total weight. Where a column is a combination of the ones before it, its row is empty and the others are those
        of a fit without it.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`, optional
            The rows that were fitted; needed only for robust errors, and for all digits of a fit that is nearly perfect.
        level : float, default=0.95
            Of the intervals.
        covariance : {"model", "robust", "HC0", "HC1", "HC2", "HC3"}, default="model"
            Noise of one variance, or errors that also hold when it differs from row to row ("robust" is "HC0"). HC2 and HC3
            correct for the leverages of the rows.

        Returns
        -------
        RegressionSummary
            A table: `str()` and notebooks show it, `rows` and `to_frame()` give its numbers.

        Raises
        ------
        ValueError
            Where there are no valid standard errors: no more rows than coefficients, or positive=True.

        Examples
        --------
        >>> from separatrix import LinearRegression
        >>> model = LinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 4.0, 8.0])
        >>> print(model.summary())
        Linear regression, least squares
        <BLANKLINE>
        Coefficients
                     Estimate  Std. error      t  P(>|t|)    2.5 %  97.5 %
        x0             2.2000     0.42426  5.185   0.0352  0.37454  4.0255
        (intercept)   0.70000     0.79373  0.882   0.4708  -2.7151  4.1151
        <BLANKLINE>
        Observations         4
        Residual std. error  0.9486832981 on 2 df
        R²                   0.9307692308
        Adjusted             0.8961538462
        F on 1 and 2 df      26.8889, p = 0.0352
        Log-likelihood       -4.07873874
        AIC                  12.15747748
        BIC                  10.9300662
        Condition            3.759
        <BLANKLINE>
        Standard errors assume noise of one variance; intervals at level 0.95.
        """
        check_level(level)
        known = self.estimates(X, y, sample_weight, covariance=covariance)
        return RegressionSummary.of(known, level, "HC0" if covariance == "robust" else covariance)

    def conf_int(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        level: float = 0.95,
        covariance: Covariance = "model",
    ) -> Float:
        """Limits of the coefficients, asked for as of `summary`.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`, optional
        level : float, default=0.95
        covariance : {"model", "robust", "HC0", "HC1", "HC2", "HC3"}, default="model"

        Returns
        -------
        ndarray of shape (n_coefficients, 2)
            In the order of the columns, the intercept last; target after target.
        """
        table = self.summary(X, y, sample_weight, level=level, covariance=covariance)
        return np.array([[row.lower, row.upper] for row in table.rows])

    def vcov(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        covariance: Covariance = "model",
    ) -> Float:
        """Covariance of the estimates, asked for as of `summary`; NaN for aliased columns.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`, optional
        covariance : {"model", "robust", "HC0", "HC1", "HC2", "HC3"}, default="model"

        Returns
        -------
        ndarray of shape (p, p), or (n_targets, p, p) for several targets
            In the order of the columns, the intercept last.
        """
        known = self.estimates(X, y, sample_weight, covariance=covariance)
        d = len(known.names)
        places = [*known.kept, d] if known.fit_intercept else list(known.kept)
        out = np.full((len(known.coef), d + known.fit_intercept, d + known.fit_intercept), np.nan)
        for target in range(len(known.coef)):
            out[target][np.ix_(places, places)] = known.covariance(target)
        return out[0] if len(out) == 1 else out

    def predict_interval(
        self, X: Any, *, kind: Literal["confidence", "prediction"] = "prediction", level: float = 0.95
    ) -> Float:
        """Limits of the mean at new rows, or of a new observation there.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
        kind : {"confidence", "prediction"}, default="prediction"
            xᵀβ ± tσ√h, which the mean lies between, or xᵀβ ± tσ√(1 + h), which a new observation does.
        level : float, default=0.95

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper limits. NaN where columns depend on each other and a row does not keep to it.

        Examples
        --------
        >>> from separatrix import LinearRegression
        >>> model = LinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 4.0, 8.0])
        >>> model.predict_interval([[1.5]], kind="confidence").round(2).tolist()
        [[1.96, 6.04]]
        """
        check_level(level)
        if kind not in ("confidence", "prediction"):
            raise ValueError(f"kind is {kind!r}; give 'confidence' or 'prediction'.")
        known = self.estimates()
        quantile, own = float(stdtrit(known.degrees, 0.5 + 0.5 * level)), float(kind == "prediction")
        coef = np.atleast_2d(np.asarray(self.coef_, dtype=np.float64))
        aliased, constant = len(known.kept) < len(known.names), np.atleast_1d(self.intercept_)

        def of_block(block: Block) -> Float:
            rows = known.centred_rows(block)
            middle = known.fitted(rows)
            width = quantile * np.sqrt(np.outer(own + known.leverages_of(rows), known.variance))
            limits = np.stack([middle - width, middle + width], axis=2)
            if aliased:  # what is estimated is the same whichever of the equivalent coefficients is taken
                apart = np.abs(block.matvec(coef.T) + constant - middle)
                limits[(apart > 1e-6 * (np.abs(middle) + np.sqrt(known.target_squares / known.total))).any(axis=1)] = (
                    np.nan
                )
            return limits

        result = self._map_rows(X, of_block)
        return result[:, 0] if self._one_target else result
