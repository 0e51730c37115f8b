"""B21: softmax regression where it is hard: smooth images, a text of twenty classes, a hundred classes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from benchmarks.atlas.named import problem, workload
from benchmarks.atlas.rows import make
from benchmarks.data import Data

IMAGES = problem("softmax", 60_000, 576, 10, columns="smooth", strength=0.01, dtype="float64")
TEXT = problem("softmax", 20_000, 40_000, 20, columns="text", nonzeros=80, noise=4.0)
MANY = problem("softmax", 40_000, 64, 100, columns="correlated", noise=2.0)


def images(scale: float) -> Data:
    """White noise smoothed by a kernel of two pixels, on a square; ten classes of mean images, smoothed likewise."""
    generator = np.random.default_rng(0)
    n, side = max(600, round(IMAGES.n * scale)), math.isqrt(IMAGES.d)
    at = np.arange(side)
    blur = np.exp(-0.5 * np.square(np.subtract.outer(at, at) / 2.0))
    blur /= np.linalg.norm(blur, axis=1)[:, None]
    means = blur @ generator.standard_normal((IMAGES.classes, side, side)) @ blur.T
    y = generator.integers(IMAGES.classes, size=n)
    X = np.empty((n, IMAGES.d))
    for start in range(0, n, 2_000):
        block = slice(start, min(start + 2_000, n))
        noise = blur @ generator.standard_normal((block.stop - start, side, side)) @ blur.T
        X[block] = (0.3 * means[y[block]] + noise).reshape(-1, IMAGES.d)
    return Data(X, y, f"{n} × {IMAGES.d} float64 smooth images, 10 classes, seed 0")


def text(scale: float) -> Data:
    return make(replace(TEXT, n=max(600, round(TEXT.n * scale))))


def many(scale: float) -> Data:
    return make(replace(MANY, n=max(1_000, round(MANY.n * scale))))


CASES = {
    "images": workload(
        f"{__name__}:images",
        "B21",
        "softmax, 60 000 × 576 smooth images, C=0.01",
        5,
        IMAGES,
        images,
        "newton-cholesky",
        "scikit-learn lbfgs",  # two and a half times as long as newton-cg
        "sag",
    ),
    "text": workload(f"{__name__}:text", "B21", "softmax, text of 20 classes, 20 000 × 40 000", 2, TEXT, text, "sag"),
    "many": workload(
        f"{__name__}:many",
        "B21",
        "softmax, 100 classes, 40 000 × 64",
        5,
        MANY,
        many,
        "newton-cholesky",
    ),
}
