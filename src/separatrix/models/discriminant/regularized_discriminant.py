"""Regularised discriminant analysis: everything between LDA, QDA and naive Bayes.

    Σ_k(α, γ) = γ Σ_k(α) + (1−γ) T_k,      Σ_k(α) = αΣ_k + (1−α)Σ      (statistics/mixing.py has all forms)

δ_k as in QDA. Reference: Friedman (1989), Regularized discriminant analysis, JASA 84.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data import Source
from separatrix.data.block import Codes, Float
from separatrix.data.folds import block_keys, dealt_folds, number_of_folds, splits
from separatrix.data.views import Mapped, Regrouped
from separatrix.errors import ClassName, Message
from separatrix.geometry import Hyperplane
from separatrix.models.class_priors import class_priors
from separatrix.models.counted_classes import Undetermined
from separatrix.models.discriminant.quadratic_discriminant import QuadraticRule, SingularCovariance
from separatrix.models.linear_rule import Boundary, SignedDistance
from separatrix.models.scikit_learn import Interval, StrOptions
from separatrix.result import Status
from separatrix.statistics.fold_grid import fold_losses
from separatrix.statistics.loo_grid import Grid, loo_losses
from separatrix.statistics.metric import Metric, metric_of
from separatrix.statistics.mixing import mixed_covariance, regularised
from separatrix.statistics.moments import ClassMoments, Form
from separatrix.statistics.shrinkage import fourth_moments, ledoit_wolf_intensity, oas_intensity

_DEFAULT_GRID = np.linspace(0.0, 1.0, 11)


class RegularizedDiscriminantAnalysis(SignedDistance, QuadraticRule):
    """Gaussian classes whose covariances are pulled towards the common one and towards a simple shape.

    Parameters
    ----------
    alpha : float in [0, 1], "loo" or "cv", default=0.5
        Share of the class's own covariance: 1 is QDA, 0 is LDA. "loo" and "cv" choose it from `alphas`.
    gamma : float in [0, 1], "loo", "cv", "ledoit_wolf" or "oas", default=0.9
        Share of the covariance that is kept: γΣ + (1−γ)T. "loo" and "cv" choose it from `gammas`; "ledoit_wolf" and "oas"
        estimate it (for the trace target; for 0 < α < 1 the class's and the pooled intensities are mixed by α).
    target : {"trace", "identity", "diagonal"}, default="trace"
        T: (tr Σ/d) I, I, or diag Σ. With "diagonal", γ=0 and α=1 it is Gaussian naive Bayes.
    mix : {"covariance", "scatter"}, default="covariance"
        αΣ_k + (1−α)Σ, or Friedman's 1989 mix of scatter matrices and their divisors; they agree at α = 0 and 1.
    priors : array-like of shape (n_classes,), optional
        Class probabilities; by default their shares in the data.
    covariance : {"mle", "unbiased"}, default="mle"
        Divide scatters by n_k and n, or by n_k − 1 and n − K.
    alphas, gammas : array-like, optional
        Grids for "loo" and "cv"; 0, 0.1, …, 1 by default.
    cv : int or splitter, default=5
        Folds for "cv". A number of folds is drawn by the contents of the rows: equal rows share a fold, so that a weight of 2
        is the row twice. A splitter or a list of splits, which must test every row once, sees the rows as they are given;
        rows of weight zero are left out in any case.
    scoring : {"log_loss", "error"}, default="log_loss"
        What "loo" and "cv" minimise. Ties go to the smaller α, then the smaller γ: the simpler model.
    tol : float, default=1e-4
        A covariance is singular when some direction has standard deviation ≤ tol in standardised columns.

    Attributes
    ----------
    alpha_, gamma_ : float
        The parameters used (``gamma_`` one per class when it was estimated).
    selection_ : dict
        With "loo" or "cv": ``alphas``, ``gammas`` and the ``log_loss`` and ``error`` of every pair.
    means_ : ndarray of shape (n_classes, n_features)
    priors_ : ndarray of shape (n_classes,)
    covariance_ : list of ndarray
        Formed when first asked for.
    classes_ : ndarray
    fit_ : Fit

    Notes
    -----
    "loo" is exact: every row is scored by the model fitted without it, obtained from the moments by rank-one downdates, for
    the whole grid in one more pass. With "diagonal" the downdate is not of rank one and costs one factorisation per row.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from separatrix import RegularizedDiscriminantAnalysis
    >>> X, y = load_wine(return_X_y=True)
    >>> rda = RegularizedDiscriminantAnalysis(alpha="loo", gamma="loo", target="diagonal").fit(X, y)
    >>> round(rda.alpha_, 1), round(rda.gamma_, 1)
    (0.7, 1.0)
    """

    alpha_: float
    gamma_: Any
    selection_: dict[str, Float]

    _parameter_constraints: dict[str, list[Any]] = {
        "alpha": [Interval(Real, 0, 1, closed="both"), StrOptions({"loo", "cv"})],
        "gamma": [Interval(Real, 0, 1, closed="both"), StrOptions({"loo", "cv", "ledoit_wolf", "oas"})],
        "target": [StrOptions({"trace", "identity", "diagonal"})],
        "mix": [StrOptions({"covariance", "scatter"})],
        "priors": ["array-like", None],
        "covariance": [StrOptions({"mle", "unbiased"})],
        "alphas": ["array-like", None],
        "gammas": ["array-like", None],
        "cv": ["cv_object"],
        "scoring": [StrOptions({"log_loss", "error"})],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        alpha: float | Literal["loo", "cv"] = 0.5,
        gamma: float | Literal["loo", "cv", "ledoit_wolf", "oas"] = 0.9,
        *,
        target: Literal["trace", "identity", "diagonal"] = "trace",
        mix: Literal["covariance", "scatter"] = "covariance",
        priors: ArrayLike | None = None,
        covariance: Literal["mle", "unbiased"] = "mle",
        alphas: ArrayLike | None = None,
        gammas: ArrayLike | None = None,
        cv: Any = 5,
        scoring: Literal["log_loss", "error"] = "log_loss",
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.target = target
        self.mix = mix
        self.priors = priors
        self.covariance = covariance
        self.alphas = alphas
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.tol = tol

    def _form(self) -> Form:
        if "loo" in (self.alpha, self.gamma) and "cv" in (self.alpha, self.gamma):
            raise ValueError("alpha and gamma must be chosen by the same method: both 'loo' or both 'cv'.")
        if isinstance(self.gamma, str) and self.gamma in ("ledoit_wolf", "oas"):
            if self.target != "trace":
                raise ValueError(f"gamma={self.gamma!r} is the intensity for target='trace', not {self.target!r}.")
            if isinstance(self.alpha, str):
                raise ValueError(f"gamma={self.gamma!r} is estimated for a given alpha; set alpha to a number.")
        return "per_class"

    def _second_pass_parameter(self) -> str:
        for name in ("alpha", "gamma"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "oas":
                return f"{name}={value!r}"
        return ""

    def _unpack(self, source: Source | None) -> tuple[Status, str]:
        moments = self._moments
        self.priors_ = class_priors(self.priors, moments.counts, self.classes_, source is None)
        if moments.pooled_divisor(self.covariance) <= 0:
            raise Undetermined("The number of samples must be more than the number of classes.")
        method = next((value for value in (self.alpha, self.gamma) if value in ("loo", "cv")), None)
        if method is None:
            self.alpha_ = float(self.alpha)
            self.gamma_ = self._estimated_gamma(source) if isinstance(self.gamma, str) else float(self.gamma)
        else:
            assert source is not None
            self._select(str(method), source)
        self._set_metrics()
        return Status.EXACT, ""

    def _set_metrics(self) -> None:
        moments = self._moments
        pooled = moments.pooled()
        gammas = np.broadcast_to(np.asarray(self.gamma_, dtype=np.float64), (len(self.classes_),))
        self._covariances, self._metrics = [], []
        shared: Metric | None = None
        for k, gamma in enumerate(gammas):
            mixed = mixed_covariance(moments, pooled, k, self.alpha_, self.mix, self.covariance)
            parts = regularised(mixed, float(gamma), self.target)
            self._covariances.append(parts)
            if shared is None or self.alpha_ > 0.0 or np.ptp(gammas) > 0.0:
                shared = metric_of(*parts, tol=self.tol)
            if shared.singular and moments.counts[k] > 0:
                raise SingularCovariance(
                    Message.of(
                        "The covariance matrix of class ",
                        ClassName(self.classes_[k], plain=True),
                        f" is not full rank at alpha={self.alpha_:g}, gamma={gamma:g}: it has {shared.rank} of "
                        f"{self.n_features_in_} directions. Lower gamma to shrink it.",
                    )
                )
            self._metrics.append(shared)
        self.means_ = moments.means

    def _estimated_gamma(self, source: Source | None) -> Any:
        """One minus the Ledoit–Wolf or OAS intensity, of the pooled covariance and of each class's, mixed by α."""
        moments = self._moments
        scatters = [moments.pooled(), *(moments.of_class(k) for k in range(moments.n_classes))]
        sizes = [moments.total, *moments.counts]
        if self.gamma == "oas":
            found = [oas_intensity(part, n) if n > 0 else 1.0 for part, n in zip(scatters, sizes, strict=True)]
        else:
            assert source is not None
            fourth = fourth_moments(source, moments.means, np.ones_like(moments.means))
            parts = zip(scatters, sizes, [fourth.sum(), *fourth], strict=True)
            found = [ledoit_wolf_intensity(part, n, float(f)) if n > 0 else 1.0 for part, n, f in parts]
        return 1.0 - self.alpha_ * np.array(found[1:]) - (1.0 - self.alpha_) * found[0]

    def _grid(self, value: Any, given: ArrayLike | None, name: str) -> Float:
        if not isinstance(value, str):
            return np.array([float(value)])
        grid = _DEFAULT_GRID if given is None else np.sort(np.asarray(given, dtype=np.float64))
        if grid.ndim != 1 or not len(grid) or not ((grid >= 0) & (grid <= 1)).all():
            raise ValueError(f"{name} must be a list of numbers between 0 and 1, at least one.")
        return grid

    def _select(self, method: str, source: Source) -> None:
        moments, counted = self._moments, np.flatnonzero(self._moments.counts > 0)
        if len(counted) < len(self.classes_):  # as if the rows of the others were not there
            source = Regrouped.only(source, counted)
            moments = ClassMoments.of_source(source, "per_class")
        grid = Grid(
            self._grid(self.alpha, self.alphas, "alphas"),
            self._grid(self.gamma, self.gammas, "gammas"),
            self.target,
            self.mix,
            self.covariance,
            None if self.priors is None else self.priors_[counted],
        )
        if method == "loo":
            log_loss, error = self._leave_one_out(source, moments, grid)
        else:
            log_loss, error = fold_losses(source, self._folds(source), len(counted), grid, self.tol)
        self.selection_ = {"alphas": grid.alphas, "gammas": grid.gammas, "log_loss": log_loss, "error": error}
        score = log_loss if self.scoring == "log_loss" else error
        if not np.isfinite(score).any():
            raise SingularCovariance(
                "No pair of the grid has covariances with an inverse when rows are left out; add gammas below 1."
            )
        a, g = np.unravel_index(int(np.argmin(score)), score.shape)
        self.alpha_, self.gamma_ = float(grid.alphas[a]), float(grid.gammas[g])

    def _leave_one_out(self, source: Source, moments: ClassMoments, grid: Grid) -> tuple[Float, Float]:
        assert source.classes is not None
        lonely = np.flatnonzero(moments.counts < 2)
        if len(lonely):
            few = f" has {moments.counts[lonely[0]]:g} rows; leaving one out needs at least two per class."
            raise Undetermined(Message.of("Class ", ClassName(source.classes[lonely[0]]), few))
        if not any(moments.of_class(k).thin for k in range(moments.n_classes)) or self.target == "diagonal":
            return loo_losses(source, moments, grid)
        scatter = moments.total_scatter()
        if not scatter.thin:
            return loo_losses(source, moments, grid)
        # More columns than rows: the same problem in the span of the rows, where the other columns are all alike.
        values, vectors = np.linalg.eigh(scatter.rows @ scatter.rows.T)
        kept = values > np.finfo(np.float64).eps * scatter.n_features * values[-1]
        basis = (scatter.rows.T @ vectors[:, kept]) / np.sqrt(values[kept])
        centre = moments.mean()
        rank = int(kept.sum())
        inside = Mapped(source, lambda rows: (rows - centre) @ basis, rank)
        spanned = Grid(**{**grid.__dict__, "outside": self.n_features_in_ - rank})
        return loo_losses(inside, ClassMoments.of_source(inside, "per_class"), spanned)

    def _folds(self, source: Source) -> Codes:
        """(n,) the fold that leaves out each row; that of a row of weight zero does not matter."""
        keys, codes, counted = [], [], []
        for block in source.blocks():
            keys.append(block_keys(block))
            codes.append(block.codes)
            counted.append(np.ones(block.n, dtype=bool) if block.weights is None else block.weights > 0)
        kept, rows = np.flatnonzero(np.concatenate(counted)), np.concatenate(codes)
        folds = np.full(len(rows), -1, dtype=np.intp)
        number = number_of_folds(self.cv)
        if number is not None:
            folds[kept] = dealt_folds(np.concatenate(keys)[kept], rows[kept], number)
            return np.maximum(folds, 0)
        places = np.zeros((len(kept), 1))
        for number, (_, test) in enumerate(splits(self.cv, places, rows[kept], kept, len(rows))):
            if (folds[kept[test]] >= 0).any():
                raise ValueError("cv tests some row twice; 'cv' needs folds that test every row exactly once.")
            folds[kept[test]] = number
        if (folds[kept] < 0).any():
            raise ValueError("cv leaves some row untested; 'cv' needs folds that test every row exactly once.")
        return np.maximum(folds, 0)

    def linear_form(self) -> tuple[Float, Float]:
        self._check_ready()
        if self.alpha_ > 0.0 or np.ndim(self.gamma_):
            raise ValueError(f"The rule is quadratic at alpha={self.alpha_:g}; it is linear at alpha=0 only.")
        centre = self.priors_ @ self.means_
        W = self._metrics[0].solve(self.means_ - centre)
        with np.errstate(divide="ignore"):  # a class of prior 0 gets −inf: it is never chosen
            b = -0.5 * np.einsum("ij,ij->i", W, self.means_ - centre) - W @ centre + np.log(self.priors_)
        return (W[1:] - W[:1], b[1:] - b[:1]) if len(b) == 2 else (W, b)

    def _between(self, first: int, second: int) -> Boundary:
        if self.alpha_ > 0.0 or np.ndim(self.gamma_):
            return super()._between(first, second)
        return Hyperplane.between(*self.linear_form(), first, second)
