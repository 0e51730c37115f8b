"""The logistic and the softmax loss, averaged over Gaussian scores: value, gradient and Hessian, row by row.

Two classes, a ~ N(μ, v): log(1 + e^a) is the ramp max(a, 0) smoothed by the logistic density σ', so that

    E log(1 + e^a) = ∫ σ'(t) R(μ − t) dt,    E σ(a) = ∫ σ'(t) Φ((μ − t)/s) dt,    E σ'(a) = ∫ σ'(t) N(t | μ, v) dt
    R(d) = d Φ(d/s) + s φ(d/s)                                                   v = s² ≥ 1: trapezoidal rule in t
    E f(a) = Σ_j h φ(jh) f(μ + s jh)                                             v < 1: trapezoidal rule in the Gaussian

Both rules are exact to 1e-10: the poles ±iπ of σ' and the Gaussian are far from the real line on the scale of the step.

More classes, a ~ N(μ, S): the average over given points z of a_k − a_1 = μ_k − μ_1 + (Lz)_k, LLᵀ the covariance of these
contrasts. The gradient is exactly that of the average; the Hessian is the average of diag(p) − ppᵀ.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from separatrix.kernels import compiled

_NEAR, _REACH = 0.5, 8.0  # step and reach in standard deviations of a
_STEP, _FAR = 0.5, 32.0  # step and reach in t
_ROOT = math.sqrt(2.0 * math.pi)


@compiled()
def expected_logistic(mean: Any, variance: Any, value: Any, slope: Any, bend: Any) -> None:
    """E log(1 + e^a), E σ(a) and E σ'(a) into value, slope and bend, (n,) each."""
    for i in range(len(mean)):
        mu, v = mean[i], max(variance[i], 0.0)
        s, f, g, h = math.sqrt(v), 0.0, 0.0, 0.0
        if v < 1.0:
            for j in range(int(-_REACH / _NEAR), int(_REACH / _NEAR) + 1):
                z = _NEAR * j
                weight, a = _NEAR / _ROOT * math.exp(-0.5 * z * z), mu + s * z
                small = math.exp(-abs(a))
                own = 1.0 / (1.0 + small)
                f += weight * (max(a, 0.0) + math.log1p(small))
                g += weight * (own if a >= 0.0 else small * own)
                h += weight * small * own * own
        else:
            for j in range(int(-_FAR / _STEP), int(_FAR / _STEP) + 1):
                t = _STEP * j
                small = math.exp(-abs(t))
                weight, d = _STEP * small / ((1.0 + small) * (1.0 + small)), (mu - t) / s
                below, density = 0.5 * math.erfc(-d / math.sqrt(2.0)), math.exp(-0.5 * d * d) / _ROOT
                f += weight * s * (d * below + density)
                g += weight * below
                h += weight * density / s
        value[i], slope[i], bend[i] = f, g, h


@compiled()
def expected_softmax(mean: Any, S: Any, points: Any, value: Any, slope: Any, bend: Any) -> None:
    """E log Σ e^a (n,), E p (n, K) and E diag(p) − ppᵀ (n, K, K) over points (N, K − 1)."""
    n, K = mean.shape
    N = len(points)
    L, a, p = np.zeros((K - 1, K - 1)), np.zeros(K), np.zeros(K)
    for i in range(n):
        for k in range(K - 1):  # Cholesky; a direction without variance has a column of zeros
            for l in range(k + 1):  # noqa: E741  # name of the formula
                own = S[i, k + 1, l + 1] - S[i, k + 1, 0] - S[i, 0, l + 1] + S[i, 0, 0]
                for j in range(l):
                    own -= L[k, j] * L[l, j]
                if k == l:
                    L[k, k] = math.sqrt(max(own, 0.0))
                else:
                    L[k, l] = own / L[l, l] if L[l, l] > 1e-10 else 0.0
        total = 0.0
        for k in range(K):
            slope[i, k] = 0.0
            for l in range(k + 1):  # noqa: E741  # name of the formula
                bend[i, k, l] = 0.0
        for t in range(N):
            top = 0.0
            for k in range(1, K):
                own = mean[i, k] - mean[i, 0]
                for j in range(k):
                    own += L[k - 1, j] * points[t, j]
                a[k] = own
                top = max(top, own)
            sums = 0.0
            for k in range(K):
                p[k] = math.exp(a[k] - top)
                sums += p[k]
            total += top + math.log(sums)
            for k in range(K):
                p[k] /= sums
                slope[i, k] += p[k]
                for l in range(k + 1):  # noqa: E741  # name of the formula
                    bend[i, k, l] -= p[k] * p[l]
        value[i] = mean[i, 0] + total / N
        for k in range(K):
            slope[i, k] /= N
            for l in range(k + 1):  # noqa: E741  # name of the formula
                own = bend[i, k, l] / N + (slope[i, k] if k == l else 0.0)
                bend[i, k, l], bend[i, l, k] = own, own
