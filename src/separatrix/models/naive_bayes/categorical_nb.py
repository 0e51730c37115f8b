"""Categorical naive Bayes: every column has its own table of probabilities in every class.

    log p(x|k) = Σ_j log θ_kj(x_j),      θ_kj(c) = (N_kjc + α_j) / (n_k + α_j C_j)

A category never seen in training gets the smoothed mass α/(n_k + αC) or, with α = 0, carries no evidence.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data import Block, Source
from separatrix.data.block import Codes, Float
from separatrix.geometry import ScoreForm
from separatrix.geometry.additive_form import Additive, TableTerm
from separatrix.models.naive_bayes.naive_bayes import SMOOTHING_CONSTRAINTS, CountFeatures, NaiveBayesClassifier
from separatrix.models.scikit_learn import Interval
from separatrix.result import Status
from separatrix.statistics.counts import CategoryCounts, NotACategory

# Up to this many looked-up rows of the table are added at once, not column by column.
_FEW_CELLS = 4096


class CategoricalNB(CountFeatures, NaiveBayesClassifier):
    """Naive Bayes for categories coded 0, 1, 2, …, from one pass over the data.

    Drop-in for scikit-learn's, with sparse input, `merge`, files and the generative extras on top. New categories may
    appear in a later `partial_fit`, and at prediction they are no error.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Smoothing, one number or one per feature; 0 is pure maximum likelihood.
    force_alpha : bool, default=True
        If False, alpha below 1e-10 is set to 1e-10.
    fit_prior : bool, default=True
        Whether priors are the shares of the classes, or all equal.
    class_prior : array-like of shape (n_classes,), optional
        Priors to use instead.
    min_categories : int or array-like of shape (n_features,), optional
        Number of categories of every column, where more exist than were seen.

    Attributes
    ----------
    category_count_ : list of ndarray of shape (n_classes, n_categories of the column)
    feature_log_prob_ : list of ndarray of the same shapes
    n_categories_ : ndarray of shape (n_features,)
    class_count_, class_log_prior_ : ndarray of shape (n_classes,)
    classes_ : ndarray
    fit_ : Fit

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import CategoricalNB
    >>> X = np.array([[0, 1], [1, 1], [2, 0], [2, 2]])
    >>> model = CategoricalNB().fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[2, 7]])
    array(['b'], dtype='<U1')
    """

    category_count_: list[Float]
    feature_log_prob_: list[Float]
    n_categories_: NDArray[np.intp]

    _parameter_constraints: dict[str, list[Any]] = {
        **SMOOTHING_CONSTRAINTS,
        "min_categories": [None, "array-like", Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
        min_categories: int | ArrayLike | None = None,
    ) -> None:
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.min_categories = min_categories

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    def statistic_of(self, source: Source, *, separable: bool = False) -> CategoryCounts:
        """Counts of the categories of every column by class."""
        try:
            return CategoryCounts.of_source(source)
        except NotACategory as bad:
            held = "a negative number" if bad.finite else "NaN or infinity"
            raise ValueError(
                source.explain_non_finite()
                or f"Negative values in data passed to CategoricalNB: {source.column_name(bad.column)} holds {held}. "
                "Categories are 0, 1, 2, …; encode them first (for example with sklearn.preprocessing.OrdinalEncoder)."
            ) from None

    def _least_categories(self) -> NDArray[np.intp]:
        if self.min_categories is None:
            return np.zeros(self.n_features_in_, dtype=np.intp)
        least = np.asarray(self.min_categories)
        if not np.issubdtype(least.dtype, np.signedinteger):
            raise ValueError(f"'min_categories' should have integral type. Got {least.dtype} instead.")
        if least.ndim > 1 or (least.ndim == 1 and len(least) != self.n_features_in_):
            raise ValueError(
                f"'min_categories' should have shape ({self.n_features_in_},) when an array-like is provided. "
                f"Got {least.shape} instead."
            )
        return np.broadcast_to(least, (self.n_features_in_,)).astype(np.intp)

    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        statistic: CategoryCounts = self._moments
        self._set_priors(statistic.counts, source is None)
        alpha = np.broadcast_to(self._smoothing(), (self.n_features_in_,))
        # All columns side by side, each as wide as it has categories: (K, Σ widths).
        held = np.array([table.shape[1] for table in statistic.tables], dtype=np.intp)
        widths = np.maximum(held, self._least_categories())
        ends = np.cumsum(widths)
        counts = np.zeros((len(statistic.counts), int(widths.sum())))
        if (held == widths).all():
            np.concatenate(statistic.tables, axis=1, out=counts)
        else:
            for table, end, width in zip(statistic.tables, ends, widths, strict=True):
                counts[:, end - width : end - width + table.shape[1]] = table
        sizes = statistic.counts[:, None] + alpha * widths
        sizes[sizes <= 0] = 1.0
        with np.errstate(divide="ignore"):  # α = 0: log 0 marks what is impossible
            logs = np.log((counts + np.repeat(alpha, widths)) / np.repeat(sizes, widths, axis=1))
            unseen = np.where(alpha == 0, 0.0, np.log(alpha / sizes))
        # A category that no class has: no evidence when there is no smoothing.
        logs[:, np.isneginf(logs).all(axis=0)] = 0.0
        cuts = list(zip((ends - widths).tolist(), ends.tolist(), strict=True))
        self.category_count_ = [counts[:, start:end].copy() for start, end in cuts]
        self.feature_log_prob_ = [logs[:, start:end].copy() for start, end in cuts]
        self._unseen = list(np.ascontiguousarray(unseen.T))
        self.n_categories_ = widths
        return Status.EXACT, ""

    def _log_likelihood(self, X: Any) -> Float:
        self._check_ready()
        # One table for all columns: the last entry of each is for categories never seen.
        pairs = zip(self.feature_log_prob_, self._unseen, strict=True)
        flat = np.concatenate([part for logs, unseen in pairs for part in (logs, unseen[:, None])], axis=1).T
        widths = self.n_categories_
        offsets = np.concatenate([[0], np.cumsum(widths + 1)])[:-1]
        # What is impossible is counted beside the finite sums: −inf has no arithmetic.
        impossible = np.isneginf(flat)
        both = np.hstack(
            [np.where(impossible, 0.0, flat), impossible.astype(np.float64)] if impossible.any() else [flat]
        )
        zeros = both[offsets]
        n_classes = flat.shape[1]

        def of_block(block: Block) -> Float:
            entries = block.stored_entries()
            values = entries.values
            with np.errstate(invalid="ignore"):  # NaN is reported below, by column
                categories = np.nan_to_num(values, nan=-1.0, posinf=-1.0, neginf=-1.0).astype(np.intp)
            known = (categories >= 0) & (categories < widths[entries.columns])
            cells = offsets[entries.columns] + np.where(known, categories, widths[entries.columns])
            if entries.implicit_zeros:
                scores = np.tile(zeros.sum(axis=0), (block.n, 1))
                np.add.at(scores, entries.rows, both[cells] - zeros[entries.columns])
                rows = entries.rows
            else:
                if cells.size <= _FEW_CELLS:
                    scores = both[cells].sum(axis=1)
                else:
                    scores = np.zeros((block.n, both.shape[1]))
                    for j in range(cells.shape[1]):
                        scores += both[cells[:, j]]
                rows = np.broadcast_to(entries.rows, cells.shape)
            if scores.shape[1] > n_classes:
                scores = np.where(scores[:, n_classes:] > 0.5, -np.inf, scores[:, :n_classes])
            scores[rows[~np.isfinite(values)] if values.dtype.kind == "f" else []] = np.nan
            if (values < 0).any():
                j = int(np.broadcast_to(entries.columns, values.shape)[values < 0][0])
                raise ValueError(
                    f"Negative values in data passed to CategoricalNB (input X): {self._column(j)} holds a negative number."
                )
            return scores

        return self._map_rows(X, of_block)

    def score_form(self) -> ScoreForm:
        self._check_ready()
        names = list(map(str, getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])))
        tables = zip(names, self.feature_log_prob_, self._unseen, strict=True)
        terms = [TableTerm(name, list(range(logs.shape[1])), logs.T, unseen) for name, logs, unseen in tables]
        return Additive(list(terms), self.class_log_prior_, dict.fromkeys(names, "number"))

    def _draw_rows(self, codes: Codes, rng: Any) -> Any:
        rows = np.empty((len(codes), self.n_features_in_))
        for j, logs in enumerate(self.feature_log_prob_):
            cumulative = np.cumsum(np.exp(logs), axis=1)
            drawn = rng.random_sample(len(codes)) * cumulative[codes, -1]
            rows[:, j] = (drawn[:, None] >= cumulative[codes]).sum(axis=1)
        return rows
