"""Whether columns and classes are associated at all: one test for all columns, of the alternative that ridge is made for.

    T = Σ_jk (Σ_i w_i z_ij (y_ik − π_k))²        z: encoded columns, centred; y: indicators of the classes, π their shares

Σ_i z_ij (y_ik − π_k) is the slope of the likelihood of softmax regression at weights of 0. If their prior is N(0, τ²I), T has
the most power for small τ. Without association T is about n Σ_j Σ_k λ_j μ_k χ²₁ with the eigenvalues λ of ZᵀWZ/n and μ of
YᵀWY/(n − 1), and its tail that of the gamma distribution of the same two moments (Satterthwaite).

Folds are a weak judge of that: the error of a difference over five folds is as large as most gains. AIC takes one parameter
more where 2 log-likelihood gains more than 2, which for chance has the probability P(χ²₁ > 2) = 0.157: a gain that folds are
unsure of is believed at that level.
Reference: Goeman, van de Geer, van Houwelingen, J. R. Statist. Soc. B 68, 2006.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, gamma

from separatrix.data.block import Codes, Float

LEVEL = float(chi2.sf(2.0, 1))
_MOST_WORK = 1e10  # products of numbers; beyond, folds have rows enough


def association(X: Float, codes: Codes, weights: Float | None = None) -> float | None:
    """The probability of so much association by chance; None where it would take long. A row of weight 2 counts as two.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.stages.association import association
    >>> x = np.arange(12.0)[:, None]
    >>> association(x, np.repeat([0, 1], 6)) < 0.01 < association(x, np.tile([0, 1], 6))
    True
    """
    n_rows, d = X.shape
    if n_rows * d * min(n_rows, d) > _MOST_WORK:
        return None
    w = np.ones(n_rows) if weights is None else weights
    n, roots = float(w.sum()), np.sqrt(w)[:, None]
    Y = np.eye(int(codes.max()) + 1)[codes]
    Z, Y = (roots * (A - w @ A / n) for A in (X, Y))
    products, classes = (Z.T @ Z if d <= n_rows else Z @ Z.T) / n, Y.T @ Y / (n - 1.0)
    mean = n * float(np.trace(products) * np.trace(classes))
    variance = 2.0 * n * n * float(np.square(products).sum() * np.square(classes).sum())
    if mean <= 0.0:
        return 1.0
    return float(gamma.sf(np.square(Z.T @ Y).sum(), mean * mean / variance, scale=variance / mean))
