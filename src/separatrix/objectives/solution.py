"""What a solver returns, and what a model publishes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from separatrix.data.block import Float
from separatrix.result import Certificate, Status


@dataclass(frozen=True)
class Solution:
    """θ with the reason it is the answer, the proof, and what it took."""

    theta: Float
    status: Status
    certificate: Certificate
    iterations: int
    trace: list[dict[str, Any]] = field(default_factory=list, repr=False)
    total: float = 0.0
    """Total weight of the rows."""
    steepest: float = 0.0
    """max |score| over the rows: large values are a sign of separation."""
    loss_gradient: Float | None = None
    """∇ of the loss alone at θ: a problem with another penalty starts from there."""
    solver: str = ""
    """The method that found it."""
    nearly: bool = False
    """Whether the method estimates that it is within the tolerance and leaves the proof to another."""
    path: list[tuple[Float, float]] = field(default_factory=list, repr=False)
    """Every point on the way with F there (NaN where it was not evaluated), if the way was recorded."""
    residual: float = 0.0
    """Σ s‖∇ℓ‖² at θ."""
    last: Any = field(default=None, repr=False)
    """Where the method stood, if rounding ended it: it may go on with sums of higher precision."""


class Published(NamedTuple):
    """Coefficients (m, d) and intercepts (m,) in the units of the data, with the status and the certificate of just these."""

    coef: Float
    intercept: Float
    status: Status
    certificate: Certificate
