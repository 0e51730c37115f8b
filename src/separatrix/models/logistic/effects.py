"""More inference of a fitted logistic regression: covariance, intervals, marginal effects, influence of single rows.

The methods; the arithmetic is in inference/ (delta.py, marginal_effects.py, influence.py).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Block, Float
from separatrix.inference.delta import probability_limits
from separatrix.inference.estimates import Inference, check_level
from separatrix.inference.expansion import Expansion, against_baseline
from separatrix.inference.influence import InfluenceMeasures, influence_of_block, measures
from separatrix.inference.marginal_effects import MarginalEffects, marginal_effects
from separatrix.inference.summary import check_options
from separatrix.models.counted_classes import check_two_classes
from separatrix.models.logistic.summary import Summarised
from separatrix.settings import threads_of

_FIRTH = (
    "The influence of a row is that on a fit by maximum likelihood; Firth's penalty depends on all rows together. Fit with "
    "C=np.inf."
)


class WithEffects(Summarised):
    """`conf_int`, `vcov`, `predict_proba_interval`, `marginal_effects` and `influence`, mixed into `LogisticRegression`."""

    def _known(self) -> Inference:
        """The estimates of the fit, or the reason why there are none."""
        self._check_ready()
        check_two_classes(self._counted)
        check_options(self._inference, 0.95, "wald", "model", False)
        return self._inference

    def conf_int(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        level: float = 0.95,
        interval: Literal["wald", "profile"] = "wald",
        covariance: Literal["model", "robust", "HC0", "HC1"] = "model",
    ) -> Float:
        """Limits of the coefficients, asked for as of `summary`.

        Parameters
        ----------
        X, y, sample_weight, offset : as in `fit`, optional
            The rows that were fitted; needed only for profile intervals, robust errors, and very many coefficients.
        level : float, default=0.95
        interval : {"wald", "profile"}, default="wald"
        covariance : {"model", "robust", "HC0", "HC1"}, default="model"

        Returns
        -------
        ndarray of shape (n_coefficients, 2)
            In the order of `summary`: the columns, the intercept last; for more than two classes one contrast after another.
        """
        table = self.summary(X, y, sample_weight, offset, level=level, interval=interval, covariance=covariance)
        return np.array([[row.lower, row.upper] for row in table.rows])

    def vcov(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        covariance: Literal["model", "robust", "HC0", "HC1"] = "model",
    ) -> Float:
        """Covariance of the estimates, asked for as of `summary`.

        Parameters
        ----------
        X, y, sample_weight, offset : as in `fit`, optional
        covariance : {"model", "robust", "HC0", "HC1"}, default="model"

        Returns
        -------
        ndarray of shape (n_coefficients, n_coefficients)
            In the order of `summary`: the columns, the intercept last; for more than two classes one contrast after another.
        """
        return self.summary(X, y, sample_weight, offset, covariance=covariance).inference.covariance

    def predict_proba_interval(
        self, X: Any, *, level: float = 0.95, scale: Literal["probability", "log-odds"] = "probability"
    ) -> Float:
        """Limits of the probabilities, by the delta method.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
        level : float, default=0.95
        scale : {"probability", "log-odds"}, default="probability"
            Symmetric about the probability (and cut at 0 and 1), or about its log-odds, where the interval never reaches them.

        Returns
        -------
        ndarray of shape (n_samples, n_classes, 2)
            Lower and upper limits for each of ``classes_``.

        Examples
        --------
        >>> import numpy as np
        >>> from separatrix import LogisticRegression
        >>> X, y, repeated = [[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1], [30, 10, 10, 30]
        >>> model = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y, repeated)
        >>> model.predict_proba_interval([[1.0]]).round(3).tolist()  # 3/4 ± 1.96 √(3/16/40)
        [[[0.116, 0.384], [0.616, 0.884]]]
        """
        check_level(level)
        if scale not in ("probability", "log-odds"):
            raise ValueError(f"scale is {scale!r}; give 'probability' or 'log-odds'.")
        known, labels = self._known(), self.classes_.tolist()
        places = [labels.index(label) for label in (known.baseline, *known.score_labels)]

        def of_block(block: Block) -> Float:
            limits = np.zeros((block.n, len(labels), 2))  # a class without weight has no probability
            limits[:, places] = probability_limits(known, block, level, scale)
            return limits

        return self._map_rows(X, of_block)

    def marginal_effects(
        self,
        X: Any,
        sample_weight: ArrayLike | None = None,
        *,
        at: Literal["average", "mean"] = "average",
        discrete: bool = False,
        level: float = 0.95,
    ) -> MarginalEffects:
        """By how much the probabilities change when a column grows by 1, with errors by the delta method.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
            The rows that the effects are averaged over: those of the fit, or any others.
        sample_weight : array-like of shape (n_samples,), optional
        at : {"average", "mean"}, default="average"
            The average of the effects at all rows, or the effect at the mean row.
        discrete : bool, default=False
            Whether the effect of a column that holds zeros and ones alone is that of a step from 0 to 1.
        level : float, default=0.95

        Returns
        -------
        MarginalEffects
            A table: `str()` and notebooks show it, `rows` and `to_frame()` give its numbers. Of two classes it has the second.

        Examples
        --------
        >>> import numpy as np
        >>> from separatrix import LogisticRegression
        >>> X, y, repeated = [[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1], [30, 10, 10, 30]
        >>> model = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y, repeated)
        >>> round(model.marginal_effects(X, repeated, discrete=True).rows[0].effect, 6)  # 3/4 − 1/4
        0.5
        """
        check_level(level)
        if at not in ("average", "mean"):
            raise ValueError(f"at is {at!r}; give 'average' or 'mean'.")
        known = self._known()
        with threads_of(self.n_jobs):
            return marginal_effects(known, self._read(X, None, sample_weight, reset=False), at, bool(discrete), level)

    def influence(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> InfluenceMeasures:
        """What each row does to the fit: its leverage, Cook's distance, and the change of the coefficients without it.

        Parameters
        ----------
        X, y, sample_weight, offset : as in `fit`
            The rows that were fitted.

        Returns
        -------
        InfluenceMeasures
            With `leverage`, `cooks_distance`, `dfbeta` and `dfbetas`, one entry per row.

        Examples
        --------
        >>> import numpy as np
        >>> from separatrix import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [1, 0, 0, 1, 1, 1]
        >>> model = LogisticRegression(C=np.inf).fit(X, y)
        >>> found = model.influence(X, y)
        >>> round(float(found.leverage.sum()), 6), int(found.cooks_distance.argmax())
        (2.0, 0)
        """
        known = self._known()
        if self.penalty == "firth":
            raise ValueError(_FIRTH)
        with threads_of(self.n_jobs):
            problem, source = self._again(X, y, sample_weight, offset)
            contrasts, _ = against_baseline(problem, problem.start())
            found = Expansion.at(contrasts, contrasts.start(known.coef, known.intercept)).evaluation
            known.check_rows(found.total, -found.loss)
            assert source.classes is not None
            labels, shift = source.classes.tolist(), contrasts.objective.offset
            order = [labels.index(label) for label in (known.baseline, *known.score_labels)]
            number = np.argsort(order)

            def of_block(block: Block) -> Float:
                own = None if shift is None else shift[block.start : block.start + block.n]
                return influence_of_block(known, block, number[block.codes], own)

            return measures(known, np.concatenate(source.map(of_block)))
