"""One seed, one problem: the estimator, the shape, the columns, the labels and the strength of the penalty.

Sizes are log-uniform; a shape whose slowest sensible contender would need more than some seconds is drawn again. Nothing is
drawn that the estimator has no answer for (QDA with fewer rows than columns), and nothing is left out because it is hard.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

Columns = Literal["random", "correlated", "smooth", "text", "counts", "categories"]
ROWS = (50, 300_000)
FEATURES = (2, 50_000)
CLASSES = (2, 100)
ENTRIES = 3e7  # stored values of X


@dataclass(frozen=True)
class Problem:
    """All that defines a problem; the rows follow from it (`rows.py`)."""

    seed: int
    estimator: str
    n: int
    d: int
    classes: int
    columns: Columns
    nonzeros: int  # stored per row; d where X is dense
    scales: float  # columns are multiplied by 10^±scales
    noise: float  # standard deviation of the scores behind the labels; larger is easier
    strength: float  # C, or alpha
    intercept: bool
    dtype: Literal["float32", "float64"]
    order: Literal["C", "F"]
    variant: str = ""  # the kernel; whether the intercept is penalised; which epochs

    @property
    def sparse(self) -> bool:
        return self.columns in ("text", "counts") and self.nonzeros < self.d

    @property
    def entries(self) -> float:
        return float(self.n) * self.nonzeros

    @property
    def shape(self) -> str:
        size = f"{self.n:,} × {self.d:,}".replace(",", " ")
        return f"{size}, {self.classes} classes" if self.classes > 2 else size

    @property
    def kind(self) -> str:
        """What the rows are, in a few words."""
        parts = [self.columns, f"CSR {self.nonzeros} per row" if self.sparse else f"dense {self.order}", self.dtype]
        parts += [f"scales 10^±{self.scales:g}"] if self.scales else []
        parts += [self.variant] if self.variant else []
        parts += ["intercept" if self.intercept else "no intercept"]
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _cheap(problem: Problem) -> float:
    return problem.entries * 5 + problem.d * problem.classes * 10


def _iterative(problem: Problem) -> float:
    """About 150 passes, and the work per value grows with the classes."""
    return 150 * problem.entries * (1 + (problem.classes if problem.classes > 2 else 0) / 4)


def _one_against_rest(problem: Problem) -> float:
    return 150 * problem.entries * (problem.classes if problem.classes > 2 else 1)


def _gram(problem: Problem) -> float:
    side = min(problem.n, problem.d)
    if problem.sparse:
        return 300 * problem.entries
    return problem.entries * side * 0.5 + side**3 / 2 + 10 * problem.entries


def _scatter(problem: Problem) -> float:
    return problem.entries * min(problem.n, problem.d) * 2.0


def _kernel(problem: Problem) -> float:
    """The matrix a few times over, and more iterations the dearer slack is."""
    return float(problem.n) ** 2 * (problem.nonzeros + 20) * (1 + math.sqrt(problem.strength))


@dataclass(frozen=True)
class Family:
    """How often an estimator is drawn, which columns it is given, what its slowest sensible fit costs (multiplications)."""

    share: float
    columns: tuple[Columns, ...]
    work: Callable[[Problem], float]
    binary: float = 0.5  # share of problems of two classes
    most: int = CLASSES[1]
    variants: tuple[str, ...] = ("",)
    tall: float = 0.0  # at least so many rows per column and class
    strengths: tuple[float, float] = (-3.0, 3.0)  # log10


DENSE: tuple[Columns, ...] = ("random", "correlated", "smooth")
ANY: tuple[Columns, ...] = (*DENSE, "text")
FAMILIES: dict[str, Family] = {
    "logistic": Family(3, ANY, _iterative, binary=1.0),
    "softmax": Family(3, ANY, _iterative, binary=0.0),
    "logistic L1": Family(2, ANY, _iterative, binary=0.8, most=20, strengths=(0.1, 3.5)),
    "hinge": Family(1.5, ANY, _one_against_rest, variants=("penalised", "free")),
    "squared hinge": Family(1.5, ANY, _one_against_rest, variants=("penalised", "free")),
    "SVC": Family(3, ANY, _kernel, most=30, variants=("linear", "rbf", "rbf", "poly")),
    "RidgeClassifier": Family(1.5, ANY, _gram, strengths=(-4.0, 4.0)),
    "Ridge": Family(1, ANY, _gram, binary=1.0, strengths=(-4.0, 4.0)),
    "LinearRegression": Family(0.5, DENSE, _gram, binary=1.0),
    "LDA": Family(1.5, DENSE, _scatter),
    "QDA": Family(1, DENSE, _scatter, most=50, tall=2.0),
    "GaussianNB": Family(1, DENSE, _cheap),
    "MultinomialNB": Family(0.7, ("counts",), _cheap),
    "ComplementNB": Family(0.3, ("counts",), _cheap),
    "BernoulliNB": Family(0.5, ("counts",), _cheap),
    "CategoricalNB": Family(0.7, ("categories",), _cheap),
    "Perceptron": Family(1, ANY, _one_against_rest, variants=("10 epochs", "default")),
}
BUDGET = 2.5e9


def draw(seed: int, estimator: str | None = None) -> Problem:
    """The problem of this seed; the same on every machine."""
    generator = np.random.default_rng(seed)
    names = list(FAMILIES)
    shares = np.array([family.share for family in FAMILIES.values()])
    drawn = names[int(generator.choice(len(names), p=shares / shares.sum()))]
    name = estimator or drawn
    family = FAMILIES[name]
    while True:
        problem = _candidate(generator, seed, name, family)
        if problem.entries <= ENTRIES and family.work(problem) <= BUDGET and _sensible(problem, family):
            return problem


def _log_uniform(generator: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(generator.uniform(np.log(low), np.log(high))))


def _candidate(generator: np.random.Generator, seed: int, name: str, family: Family) -> Problem:
    n, d = round(_log_uniform(generator, *ROWS)), round(_log_uniform(generator, *FEATURES))
    two = generator.random() < family.binary
    classes = 2 if two else round(_log_uniform(generator, 3, family.most))
    columns = family.columns[int(generator.integers(len(family.columns)))]
    nonzeros = d
    if columns in ("text", "counts"):
        stored = round(_log_uniform(generator, 5, 300))
        nonzeros = stored if stored <= d / 4 else d
    if columns == "text" and nonzeros == d:
        columns = "random"  # few columns: not a text
    return Problem(
        seed=seed,
        estimator=name,
        n=n,
        d=d,
        classes=classes,
        columns=columns,
        nonzeros=nonzeros,
        scales=float(generator.choice([0.0, 0.0, 0.0, 2.0, 3.0])),
        noise=float(generator.choice([0.5, 2.0, 8.0])),
        strength=float(10 ** generator.uniform(*family.strengths)),
        intercept=bool(generator.random() < 0.75),
        dtype="float32" if generator.random() < 0.25 else "float64",
        order="F" if generator.random() < 0.25 else "C",
        variant=family.variants[int(generator.integers(len(family.variants)))],
    )


def _sensible(problem: Problem, family: Family) -> bool:
    return (
        problem.n >= 8 * problem.classes
        and problem.n >= family.tall * problem.d * problem.classes
        and (not family.tall or problem.d * problem.classes < 10_000)
        and not (problem.columns == "categories" and problem.d > 500)
        and not (problem.columns == "smooth" and problem.d < 16)
        and not (problem.estimator == "SVC" and problem.scales)  # a kernel on such columns sees one of them
        and not (problem.estimator == "LDA" and min(problem.n, problem.d) > 2_000)
        and (problem.d * problem.classes <= 1_000_000)
    )
