"""Losses of linear models over rows on a device, by PyTorch's own operations: any device, any shape, double precision.

    η = o + b + Wx,      loss Σ s ℓ(y, η),      gradient Σ s ∇ℓ xᵀ,      curvatures σ(1 − σ), or the posteriors of a softmax

A run of rows is converted to double precision at a time; it is read twice, the second time from the cache of the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Bytes of a run of rows in double precision: large enough that the launches do not count.
_RUN = 256 << 20
# Losses of the margin ỹη.
MARGINS = ("squared_hinge", "smoothed_hinge", "hinge")


@dataclass(frozen=True)
class DeviceSums:
    """Sums over rows on a device; tensors stay there."""

    loss: float
    gradient: Any
    """(m, d) on the host, NumPy."""
    slopes: Any
    """(m,) Σ s∇ℓ, NumPy."""
    squares: float
    steepest: float
    total: float
    largest: float
    curvatures: Any
    """(n, m) tensor on the device, or None."""
    bend: Any
    """(m, m) Σ s∇²ℓ on the host, or None."""
    precision: float


def runs(n: int, d: int) -> Iterator[slice]:
    """Runs of rows of about 256 MiB in double precision."""
    rows = max(1024, _RUN // (8 * max(1, d)))
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def of_margins(kind: str, m: Any, width: float, torch: Any) -> tuple[Any, Any, Any]:
    """Losses, slopes and curvatures (n,) by the margin; `width` is that of the rounded kink."""
    z = (1.0 - m).clamp(min=0.0)
    inside, none = m < 1.0, torch.zeros_like(m)
    if kind == "squared_hinge":
        return torch.square(z), -2.0 * z, torch.where(inside, 2.0, none)
    if kind == "hinge":
        return z, torch.where(inside, -1.0, none), none
    losses = torch.where(z < width, torch.square(z) / (2.0 * width), z - 0.5 * width)
    round_ = (m <= 1.0) & (m >= 1.0 - width)
    return losses, -(z / width).clamp(max=1.0), torch.where(round_, 1.0 / width, none)


def conjugate(kind: str, a: Any, torch: Any) -> Any:
    """(n,) ℓ*(a) of the hinge and of its square at slopes of theirs, or of the rounded one, by the margin."""
    return a if kind == "hinge" else a + 0.25 * torch.square(a)


def of_scores(kind: str, eta: Any, codes: Any, torch: Any, width: float = 0.0) -> tuple[Any, Any, Any]:
    """Losses (n,), slopes (n, m), curvatures (n, m) at the scores (n, m)."""
    if kind in MARGINS:
        signs = torch.where(codes == 1, 1.0, -1.0).double()
        losses, slopes, curvatures = of_margins(kind, signs * eta[:, 0], width, torch)
        return losses, (signs * slopes)[:, None], curvatures[:, None]
    if kind == "logistic":
        signed = torch.where(codes == 1, -eta[:, 0], eta[:, 0])
        small = torch.exp(-signed.abs())
        high = 1.0 / (1.0 + small)
        wrong = torch.where(signed > 0, high, small * high)
        losses = signed.clamp(min=0.0) + torch.log1p(small)
        slopes = torch.where(codes == 1, -wrong, wrong)
        return losses, slopes[:, None], (small * high * high)[:, None]
    largest = eta.max(dim=1, keepdim=True).values
    p = torch.exp(eta - largest)
    total = p.sum(dim=1, keepdim=True)
    p = p / total
    own = codes.long()[:, None]
    losses = (largest + torch.log(total) - eta.gather(1, own))[:, 0]
    slopes = p.clone()
    # 1 − p of the row's own class as the sum of the others', which does not cancel.
    slopes.scatter_(1, own, 0.0)
    slopes.scatter_(1, own, -slopes.sum(dim=1, keepdim=True))
    return losses, slopes, p


def loss_sums(
    kind: str,
    X: Any,
    codes: Any,
    weights: Any,
    offset: Any,
    W: Any,
    b: Any,
    metric: Any,
    keep: bool,
    torch: Any,
    width: float = 0.0,
) -> DeviceSums:
    """The sums of one pass; W (m, d), b (m,), metric (d,), offset (n, m) and weights (n,) are double tensors there, or None."""
    n, d = X.shape
    gradient = torch.zeros((len(W), d), dtype=torch.float64, device=X.device)
    slopes_sum = torch.zeros(len(W), dtype=torch.float64, device=X.device)
    facts = torch.zeros(5, dtype=torch.float64, device=X.device)  # loss, squares, total, steepest, largest row
    bend = torch.zeros((len(W), len(W)), dtype=torch.float64, device=X.device)
    kept = torch.empty((n, len(W)), dtype=torch.float64, device=X.device) if keep else None
    for at in runs(n, d):
        rows = X[at].double()
        eta = rows @ W.T + b
        if offset is not None:
            eta = eta + offset[at]
        losses, slopes, curvatures = of_scores(kind, eta, codes[at], torch, width)
        s = torch.ones(len(rows), dtype=torch.float64, device=X.device) if weights is None else weights[at]
        sloped = slopes * s[:, None]
        gradient += sloped.T @ rows
        slopes_sum += sloped.sum(dim=0)
        facts[0] += s @ losses
        facts[1] += (sloped * slopes).sum()
        facts[2] += s.sum()
        none = torch.zeros_like(s)
        facts[3] = torch.maximum(facts[3], torch.where(s > 0, eta.abs().amax(dim=1), none).max())
        if metric is not None:
            facts[4] = torch.maximum(facts[4], torch.where(s > 0, torch.square(rows) @ metric, none).max())
        if kept is not None:
            kept[at] = curvatures
            weighted = curvatures * s[:, None]
            bend += weighted.sum() if len(W) == 1 else torch.diag(weighted.sum(dim=0)) - curvatures.T @ weighted
    loss, squares, total, steepest, largest = facts.tolist()
    host = gradient.cpu().numpy()
    bent = bend.cpu().numpy() if keep else None
    return DeviceSums(loss, host, slopes_sum.cpu().numpy(), squares, steepest, total, largest, kept, bent, 2.0**-52)


def judged(
    kinds: tuple[str, str], X: Any, codes: Any, weights: Any, offset: Any, w: Any, b: Any, width: float, torch: Any
) -> tuple[Any, Any, float, Any]:
    """What a dual point shows of a margin loss: slopes a of the second of `kinds`, with offsets, under the first.

    (2, 6) by class Σ s of ℓ, ℓ*(a), 1, |ℓ*(a)|, a², ℓ'²; (d + 1, 2) Σ s a[x, 1]; max |η|; (n,) a, a tensor. Double precision.
    """
    n, d = X.shape
    place = {"dtype": torch.float64, "device": X.device}
    sums, products, slopes = torch.zeros((2, 6), **place), torch.zeros((d + 1, 2), **place), torch.zeros(n, **place)
    steepest = torch.zeros((), **place)
    for at in runs(n, d):
        rows = X[at].double()
        s = torch.ones(len(rows), **place) if weights is None else weights[at]
        rows = rows if weights is None else torch.where((s > 0)[:, None], rows, 0.0)  # these may hold anything
        eta = rows @ w + b
        own = codes[at] == 1
        signs = torch.where(own, 1.0, -1.0).double()
        losses, steep, _ = of_margins(kinds[0], signs * eta, width, torch)
        shifted = eta if offset is None else eta + offset[at]
        a = of_margins(kinds[1], signs * shifted, width, torch)[1]
        dual = conjugate(kinds[0], a, torch)
        facts = torch.stack([losses, dual, torch.ones_like(a), dual.abs(), a * a, steep * steep], dim=1)
        shares = torch.stack([s * ~own, s * own], dim=1)
        sums += shares.T @ facts
        a = torch.where(s > 0, signs * a, 0.0)
        sloped = shares * a[:, None]
        products[:d] += rows.T @ sloped
        products[d] += sloped.sum(dim=0)
        slopes[at] = a
        steepest = torch.maximum(steepest, eta.abs().max())
    return sums.cpu().numpy(), products.cpu().numpy(), float(steepest), slopes


def curve(X: Any, curvatures: Any, weights: Any, V: Any, last: Any, torch: Any) -> tuple[Any, Any]:
    """(d, m) Σ s ∇²ℓ(Vx + last) xᵀ, and (m,) the same for a column of ones, on the host."""
    n, d = X.shape
    product = torch.zeros((d, len(V)), dtype=torch.float64, device=X.device)
    sums = torch.zeros(len(V), dtype=torch.float64, device=X.device)
    for at in runs(n, d):
        rows, held = X[at].double(), curvatures[at]
        moved = rows @ V.T + last
        mean = 0.0 if len(V) == 1 else (held * moved).sum(dim=1, keepdim=True)
        moved = held * (moved - mean)
        if weights is not None:
            moved = moved * weights[at][:, None]
        product += rows.T @ moved
        sums += moved.sum(dim=0)
    return product.cpu().numpy(), sums.cpu().numpy()


def weighted_gram(X: Any, weights: Any, ones: bool, torch: Any) -> Any:
    """(p, p) Σ s [x, 1][x, 1]ᵀ on the host, in double precision; the last row and column only with `ones`."""
    n, d = X.shape
    p = d + ones
    total = torch.zeros((p, p), dtype=torch.float64, device=X.device)
    for at in runs(n, d):
        rows, root = X[at].double() if weights is None else X[at], None
        if weights is not None:  # converted and scaled in one operation
            root = weights[at].sqrt()
            rows = rows * root[:, None]
        total[:d, :d] += rows.T @ rows
        if ones:
            total[d, :d] += rows.sum(dim=0) if root is None else root @ rows
            total[d, d] += float(len(rows)) if root is None else root @ root
    if ones:
        total[:d, d] = total[d, :d]
    return total.cpu().numpy()
