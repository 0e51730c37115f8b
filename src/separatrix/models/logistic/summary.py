"""Standard errors, tests and intervals of a fitted logistic regression: the methods; the arithmetic is in inference/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data import Source
from separatrix.data.affine import Intercept
from separatrix.data.block import Float
from separatrix.data.checks import real_numbers
from separatrix.data.views import Regrouped
from separatrix.inference.estimates import Inference
from separatrix.inference.firth import gather_firth, summarise_firth
from separatrix.inference.maximum_likelihood import gather, summarise
from separatrix.inference.summary import Summary
from separatrix.models.counted_classes import check_two_classes
from separatrix.models.linear_rule import LinearRule
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.settings import threads_of


class Summarised(LinearRule):
    """`summary` and `profile_intervals`, mixed into `LogisticRegression`."""

    _inference: Inference
    if TYPE_CHECKING:  # parameters and methods of the estimator
        penalty: Any
        class_weight: Any
        fit_intercept: Any
        max_iter: int
        n_jobs: int | None
        _problem: Any
        _scores_of: Any
        _weighted: Any

    def _gathered(self, theta: Float, problem: LinearProblem, source: Source, **options: Any) -> Inference:
        """Estimates with their covariance, or why there is none."""
        note = ""
        if self.class_weight is not None:
            note = "class_weight multiplies the weights, which count as repetitions of rows in these standard errors."
        if self.penalty == "firth":
            start = np.append(self.coef_, self.intercept_) if self.fit_intercept else self.coef_[0]
            rows, offset = self._design(source), problem.objective.offset
            return gather_firth(rows, start, offset, self.fit_, int(self.max_iter), note)
        return gather(problem, theta, source, fit=self.fit_, note=note, **options)

    def _design(self, source: Source) -> Source:
        """The rows, with a column of ones if there is an intercept."""
        return Intercept(source) if self.fit_intercept else source

    def _split(self, theta: Float) -> tuple[Float, Float]:
        """Coefficients (1, d) and intercept (1,) of a vector that ends in the intercept if there is one."""
        d = len(theta) - bool(self.fit_intercept)
        return theta[None, :d], theta[d:] if self.fit_intercept else np.zeros(1)

    def summary(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        level: float = 0.95,
        interval: Literal["wald", "profile"] = "wald",
        covariance: Literal["model", "robust", "HC0", "HC1"] = "model",
    ) -> Summary:
        """Standard errors, tests and intervals of a fit by maximum likelihood or with Firth's penalty.

        For more than two classes the coefficients are contrasts against the baseline class, or the first one. Firth's
        standard errors come from the information without the penalty; beside its profile intervals stand likelihood-ratio
        tests of the penalised likelihood, as in R's logistf.

        Parameters
        ----------
        X, y, sample_weight, offset : as in `fit`, optional
            The rows that were fitted; needed only for profile intervals, robust errors, and very many coefficients.
        level : float, default=0.95
            Of the intervals.
        interval : {"wald", "profile"}, default="wald"
            Symmetric about the estimate, or where the profile likelihood has fallen by as much as the level allows.
        covariance : {"model", "robust", "HC0", "HC1"}, default="model"
            The inverse information, or the sandwich ("robust" is "HC0"), which also holds when the model does not.

        Returns
        -------
        Summary
            A table: `str()` and notebooks show it, `rows` and `to_frame()` give its numbers.

        Raises
        ------
        ValueError
            When there are no valid standard errors: after a penalty, under bounds, for separable classes or linearly
            dependent columns. The message is the reason.

        Examples
        --------
        >>> import numpy as np
        >>> from separatrix import LogisticRegression
        >>> X, y, repeated = [[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1], [30, 10, 10, 30]
        >>> model = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y, repeated)
        >>> print(model.summary())
        Logistic regression, maximum likelihood
        <BLANKLINE>
        Log-odds of 1 against 0
                     Estimate  Std. error       z  P(>|z|)    2.5 %    97.5 %  Odds ratio    2.5 %   97.5 %
        x0             2.1972     0.51640   4.255  2.1e-05   1.1851    3.2093      9.0000   3.2710   24.763
        (intercept)   -1.0986     0.36515  -3.009   0.0026  -1.8143  -0.38293     0.33333  0.16295  0.68186
        <BLANKLINE>
        Observations           80
        Log-likelihood         -44.98681157
        Deviance               89.97362314 on 78 df
        Null deviance          110.9035489 on 79 df
        AIC                    93.97362314
        BIC                    98.73767641
        McFadden's R²          0.188722
        Likelihood-ratio test  χ² = 20.9299 on 1 df, p = 4.8e-06
        <BLANKLINE>
        Standard errors from the information matrix; Wald intervals at level 0.95.
        """
        self._check_ready()
        check_two_classes(self._counted)
        known, problem, rows = self._inference, None, None
        with threads_of(self.n_jobs):
            if X is not None:
                problem, source = self._again(X, y, sample_weight, offset)
                rows = self._design(source)
                if known.refusal:  # there may only have been too many coefficients to ask after every fit
                    theta = problem.start(*self._scores_of(*self._counted_rule()))
                    known = self._gathered(theta, problem, source, largest=None)
            if self.penalty == "firth":
                shift = None if problem is None else problem.objective.offset
                limits: dict[str, Any] = {"offset": shift, "max_iter": int(self.max_iter)}
                return summarise_firth(
                    known, level=level, interval=interval, covariance=covariance, rows=rows, **limits
                )
            return summarise(known, level=level, interval=interval, covariance=covariance, data=problem)

    def _again(
        self, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None, offset: Any
    ) -> tuple[LinearProblem, Source]:
        """The problem of the fit, built anew from its rows."""
        source = self._read(X, y, sample_weight, reset=False).labelled(self.classes_)
        source = self._weighted(source if self._places is None else Regrouped.only(source, self._places))
        shift = None if offset is None else real_numbers(offset, "offset")
        return self._problem(source, shift, np.inf if self.penalty == "firth" else None), source

    def profile_intervals(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        level: float = 0.95,
    ) -> Float:
        """Limits where the profile likelihood, for Firth's penalty the penalised one, has fallen as far as `level` allows.

        Parameters
        ----------
        X, y, sample_weight, offset : as in `fit`
            The rows that were fitted.
        level : float, default=0.95

        Returns
        -------
        ndarray of shape (n_features + 1, 2), or (n_features, 2) without an intercept
            Lower and upper limits in the order of the columns, the intercept last; for more than two classes the
            contrasts of `summary`, one after another.

        Examples
        --------
        >>> from separatrix import LogisticRegression
        >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]  # separable: the likelihood has no maximum
        >>> model = LogisticRegression(penalty="firth", tol=1e-8).fit(X, y)
        >>> model.profile_intervals(X, y)[0].round(2).tolist()
        [-0.35, 6.7]
        """
        self._check_ready()
        table = self.summary(X, y, sample_weight, offset, level=level, interval="profile")
        return np.array([[row.lower, row.upper] for row in table.rows])
