"""What a fitted classifier computes, written out so that another language can say it.

columns → features → scores → probabilities → decision

value    ((x, or fill where x is missing) − centre)/scale       missing   ([x is missing] − centre)/scale
level    ([x = level] − centre)/scale

Linear      s_k = w_k·(z − c) + b_k                              z the features, or [z > t]
Quadratic   s_k = b_k − ½‖F_kᵀ(z − m_k)‖²
Additive    s_k = b_k + Σ_j t_jk(x_j)                            a missing x_j adds nothing

softmax     p_k = e^{s_k}/Σe^s;   of a single score s: 1/(1 + e^{−s}) for the second class
shares      p_k = q_k/Σq,   q_k = 1/(1 + e^{−s_k})               one machine a class
platt       p = 1/(1 + e^{As + B}), on the side of ½ that s is on, within [10⁻⁷, 1 − 10⁻⁷]
none        scores only: the largest wins, or the sign of a single one

decision    argmin_a Σ_k p_k L_ka, or the class that wins
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from separatrix.data.block import Float

# Stands for log 0, the score of a class that is never chosen: its exponential is 0 beside any other.
NEVER = -1e300


@dataclass(frozen=True)
class InputColumn:
    """A column that is read: "number", "flag" (0 and 1, from either or from its two words) or "text"."""

    name: str
    kind: Literal["number", "flag", "text"]
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Feature:
    """A number made of a column; see the head of the file. Without `fill` a missing value makes the answer missing."""

    name: str
    column: str
    what: Literal["value", "missing", "level"] = "value"
    level: str = ""
    fill: float | None = None
    centre: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class Linear:
    """w_k·(z − c) + b_k: (m, p) weights, (m,) constants, (p,) centre; with `above` the features are [z > above].

    With `spread` = (G, g), of shapes (p, q) and (q,), v = ‖Gᵀ(z − c) + g‖² is the variance of the score.
    """

    weights: Float
    constants: Float
    centre: Float
    above: float | None = None
    spread: tuple[Float, Float] | None = None


@dataclass(frozen=True)
class Quadratic:
    """b_k − ½‖F_kᵀ(z − m_k)‖²: (K, p) means, K (p, r) factors, (K,) constants."""

    means: Float
    factors: list[Float]
    constants: Float


@dataclass(frozen=True)
class GaussianTerm:
    """b_k − ½((x − m_k)/s_k)²."""

    column: str
    means: Float
    scales: Float
    constants: Float


@dataclass(frozen=True)
class TableTerm:
    """The (K,) row of `logs` of the value, or `other` for a value that is not among them."""

    column: str
    values: list[Any]
    logs: Float
    other: Float


@dataclass(frozen=True)
class RateTerm:
    """x log λ_k − λ_k."""

    column: str
    rates: Float


@dataclass(frozen=True)
class GroupTerm:
    """Σ_j x_j log(θ_kj/Σθ_k), both sums over the columns of the group that are observed: (K, m) shares."""

    columns: tuple[str, ...]
    shares: Float


Term = GaussianTerm | TableTerm | RateTerm | GroupTerm


@dataclass(frozen=True)
class Additive:
    """b_k and the terms of the columns."""

    terms: list[Term]
    constants: Float


Rule = Linear | Quadratic | Additive
LinkName = Literal["softmax", "shares", "platt", "none"]


@dataclass(frozen=True)
class Decision:
    """Actions with their (K, A) losses, and when to take none."""

    loss: Float
    actions: list[Any]
    reject_cost: float | None = None
    reject_below: float | None = None
    reject_action: Any = None


@dataclass(frozen=True)
class Form:
    """A classifier written out."""

    classes: list[Any]
    rule: Rule
    link: LinkName
    columns: tuple[InputColumn, ...] = ()
    features: tuple[Feature, ...] = ()
    platt: tuple[float, float] = (0.0, 0.0)
    decision: Decision | None = None
    of_table: bool = False


def of_one_type(labels: list[Any]) -> list[Any]:
    """Labels of one type as they are, of several as texts."""
    return labels if len({type(label) for label in labels}) == 1 else [str(label) for label in labels]
