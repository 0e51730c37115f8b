"""Two classes on Fisher's direction: histograms, the normal curves that fit them, and the threshold between them.

    z = wᵀ(x − x̄),  w ∝ S_W⁻¹(μ₁ − μ₀)            threshold t = (m₀ + m₁)/2 − s² log(π₁/π₀)/(m₁ − m₀)

m_k are the class means of z, s² its variance within the classes, π_k the shares of the classes: at t the two normal curves,
each times its share, are equal. With equal shares t is half-way. Reference: Bishop (2006), section 4.1.4 and figure 4.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data.block import Float
from separatrix.data.labels import encode
from separatrix.plots import style
from separatrix.plots.display import Display


@dataclass(eq=False, repr=False)
class FisherProjectionDisplay(Display):
    """Histograms of two classes along Fisher's direction, and the threshold.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
    counts : ndarray of shape (2, n_bins)
        Share of all rows per unit of z, by class.
    classes : list
    means : ndarray of shape (2,)
        Class means of z; the second is the larger.
    spread : float
        Standard deviation of z within the classes.
    shares : ndarray of shape (2,)
        Of the classes among the rows.
    threshold : float
    errors : int
        Rows on the wrong side of the threshold.

    Examples
    --------
    >>> from separatrix import FisherDiscriminant
    >>> from separatrix.plots import FisherProjectionDisplay
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 3.0], [3.0, 2.0], [2.0, 2.0]], [0, 0, 0, 1, 1, 1]
    >>> display = FisherProjectionDisplay.from_estimator(FisherDiscriminant().fit(X, y), X, y)
    >>> round(abs(display.threshold), 6), display.errors
    (0.0, 0)
    """

    edges: Float
    counts: Float
    classes: list[Any]
    means: Float
    spread: float
    shares: Float
    threshold: float
    errors: int

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, bins: int | ArrayLike = 30, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Project the rows of two classes, and plot.

        Parameters
        ----------
        estimator : fitted FisherDiscriminant or LinearDiscriminantAnalysis of two classes, or a pipeline
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        bins : int or array-like, default=30
            Number of bins, or their edges.
        ax, **kwargs
            The matplotlib Axes, a new figure when left out. For the histograms: `Axes.stairs`.

        Returns
        -------
        FisherProjectionDisplay
        """
        known = np.asarray(getattr(estimator, "classes_", getattr(style.final_step(estimator), "classes_", ())))
        if not hasattr(estimator, "transform") or len(known) != 2:
            raise ValueError(
                f"{type(style.final_step(estimator)).__name__} with {len(known)} classes has no one direction between two; "
                "fit a FisherDiscriminant to two classes."
            )
        z = np.asarray(estimator.transform(X), dtype=np.float64)[:, 0]
        _, codes = encode(np.asarray(y), known, None)
        if len(np.unique(codes)) < 2:
            raise ValueError("There are rows of one class only; give rows of both.")
        means = np.array([z[codes == k].mean() for k in (0, 1)])
        if means[0] > means[1]:
            z, means = -z, -means
        spread = float(np.sqrt(np.mean((z - means[codes]) ** 2)))
        shares = np.bincount(codes, minlength=2) / len(codes)
        gap = means[1] - means[0]
        threshold = float(means.mean() - (spread**2 * np.log(shares[1] / shares[0]) / gap if gap > 0 else 0.0))
        edges = np.histogram_bin_edges(z, np.asarray(bins) if np.ndim(bins) else bins)
        counts = np.stack([np.histogram(z[codes == k], edges)[0] for k in (0, 1)]) / (len(z) * np.diff(edges))
        errors = int(((z > threshold) != (codes == 1)).sum())
        return cls(edges, counts, known.tolist(), means, spread, shares, threshold, errors).plot(ax, **kwargs)

    def _draw(self, ax: Any, **kwargs: Any) -> tuple[str, str]:
        z = np.linspace(self.edges[0], self.edges[-1], 400)
        for k, name in enumerate(self.classes):
            look = {"fill": True, "color": style.colour(k), "alpha": 0.35, "label": style.label(name)}
            ax.stairs(self.counts[k], self.edges, **style.with_defaults("StepPatch", kwargs, **look))
            normal = np.exp(-0.5 * ((z - self.means[k]) / self.spread) ** 2) / (self.spread * np.sqrt(2.0 * np.pi))
            ax.plot(z, self.shares[k] * normal, **style.line(k))
        told = 0.0 if abs(self.threshold) < 1e-9 * self.spread else self.threshold
        ax.axvline(self.threshold, color=style.INK, linestyle=":", label=f"threshold {told:.3g}")
        ax.set_ylim(bottom=0.0)
        return "projection on Fisher's direction", "share of the rows per unit"
