"""log E softmax(a) under a ~ N(μ, S) by moment matching, row by row; the formulas are in bayes/predictive_softmax.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.posterior.logistic_normal import log_mean

_PROBIT = math.pi / 8.0


@compiled()
def matched_log_probabilities(mu: Any, S: Any, step: float, heights: Any, nodes: Any, weights: Any, p: Any) -> None:
    """Logarithms into p (n, K), for means (n, K) and covariances (n, K, K); the rest are the rules of `logistic_normal`."""
    n, K = mu.shape
    kappa, contrast, grown = np.empty((K, K)), np.empty((K, K)), np.empty((K, K))
    tops, sums, r, shared = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    for i in range(n):
        m, C = mu[i], S[i]
        for l in range(K):  # noqa: E741  # name of the formula
            tops[l] = -np.inf
            for j in range(K):
                kappa[l, j] = 1.0 / math.sqrt(1.0 + _PROBIT * max(C[l, l] + C[j, j] - 2.0 * C[l, j], 0.0))
                contrast[l, j] = kappa[l, j] * (m[j] - m[l])
                tops[l] = max(tops[l], contrast[l, j])
            sums[l] = 0.0
            for j in range(K):
                grown[l, j] = math.exp(contrast[l, j] - tops[l])
                sums[l] += grown[l, j]
        for k in range(K):
            # r_l ∝ 1 / Σ_{j≠k} exp(contrast): the whole sum less one term, unless that term is most of it.
            largest = -np.inf
            for l in range(K):  # noqa: E741  # name of the formula
                if l == k:
                    continue
                if grown[l, k] < 0.5 * sums[l]:
                    r[l] = -(tops[l] + math.log(sums[l] - grown[l, k]))
                else:
                    top, total = -np.inf, 0.0
                    for j in range(K):
                        if j != k:
                            top = max(top, contrast[l, j])
                    for j in range(K):
                        if j != k:
                            total += math.exp(contrast[l, j] - top)
                    r[l] = -(top + math.log(total))
                largest = max(largest, r[l])
            total = 0.0
            for l in range(K):  # noqa: E741  # name of the formula
                r[l] = 0.0 if l == k else math.exp(r[l] - largest)
                total += r[l]
            mean, entropy = 0.0, 0.0
            for l in range(K):  # noqa: E741  # name of the formula
                r[l] /= total
                mean += r[l] * m[l]
                if r[l] > 0.0:
                    entropy -= r[l] * math.log(r[l])
            pairs, scaled, linear = 0.0, 0.0, 0.0
            for l in range(K):  # noqa: E741  # name of the formula
                shared[l] = 0.0
                for j in range(K):
                    shared[l] += C[l, j] * r[j]
                    if j != l:
                        pairs += r[l] * r[j]
                        scaled += r[l] * r[j] / kappa[l, j]
                linear += r[l] * shared[l]
            # Without a second class that counts there is no scale, and what it multiplies is 0.
            scale = scaled / pairs if pairs > 0.0 else 1.0
            bent = 0.0
            for l in range(K):  # noqa: E741  # name of the formula
                for j in range(K):
                    T = (C[l, j] - shared[l] - shared[j] + linear) / scale
                    bent += r[l] * r[j] * T * T
            v = max(C[k, k] + linear + 0.5 * bent - 2.0 * shared[k], 0.0)
            x = m[k] - mean - scale * entropy
            average = log_mean(x, v, step, heights, nodes, weights)
            x /= math.sqrt(1.0 + _PROBIT * v)
            p[i, k] = average + min(1.0, 2.0 * pairs) * (min(x, 0.0) - math.log1p(math.exp(-abs(x))) - average)
        top, total = -np.inf, 0.0
        for k in range(K):
            top = max(top, p[i, k])
        for k in range(K):
            total += math.exp(p[i, k] - top)
        for k in range(K):
            p[i, k] -= top + math.log(total)
