"""Tensors and what lies on both sides: values of every row on the host and on the device."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pytorch() -> Any:
    """PyTorch, which is imported only where rows are on a device."""
    return import_module("torch")


def on_device(X: Any) -> bool:
    """Whether X is a PyTorch tensor, a CuPy array or a CuPy sparse matrix; no package is imported for the question."""
    kinds = [("torch", "Tensor"), ("cupy", "ndarray"), ("cupyx.scipy.sparse", "spmatrix")]
    return any(name in sys.modules and isinstance(X, getattr(sys.modules[name], kind)) for name, kind in kinds)


def is_sparse(X: Any) -> bool:
    """Whether X, which is on a device, is a sparse tensor or a CuPy sparse matrix."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(X, torch.Tensor):
        return bool(X.layout != torch.strided)
    return hasattr(X, "tocsr")


def as_tensor(X: Any, name: str = "X") -> Any:
    """A tensor that shares the memory of X, of real numbers in floating point."""
    try:
        torch = pytorch()
    except ImportError:
        raise ImportError(
            f"{name} is a CuPy array, which is read through PyTorch; install it: pip install 'separatrix[gpu]'."
        ) from None
    tensor = X if isinstance(X, torch.Tensor) else torch.from_dlpack(X)
    if tensor.layout != torch.strided:
        raise TypeError(f"{name} is a sparse tensor; give a dense one.")
    if tensor.is_complex():
        raise ValueError(f"Complex data not supported: {name} is a tensor of {tensor.dtype}.")
    if tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.to(torch.float64)
    return tensor.detach()


def moved(X: NDArray[Any], device: str) -> Any:
    """An array on a device by its name, as floating numbers; an error that says what is missing where it cannot be there."""
    return placed(X if X.dtype in (np.float32, np.float64) else X.astype(np.float64), device)


def placed(X: NDArray[Any], device: str) -> Any:
    """An array on a device by its name, as it is."""
    try:
        torch = pytorch()
    except ImportError:
        raise ImportError(
            f"device={device!r} needs PyTorch, which is not installed: pip install 'separatrix[gpu]'."
        ) from None
    try:
        return torch.as_tensor(np.ascontiguousarray(X)).to(device)
    except torch.cuda.OutOfMemoryError as error:
        raise MemoryError(f"X does not fit into the memory of device {device!r}: {error}") from None
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device={device!r} cannot be used: {str(error).splitlines()[0]}") from None


def usable(device: str) -> Any:
    """A device by its name; an error that says what is missing where there is none."""
    moved(np.zeros(1), device)
    return pytorch().zeros(0, device=device).device


def beside(answer: Any, X: Any) -> Any:
    """Numbers of an answer on the device of X, in X's kind of array; labels that are no numbers stay on the host."""
    if not isinstance(answer, np.ndarray) or answer.dtype.kind not in "fiub":
        return answer
    tensor = pytorch().as_tensor(answer).to(there(X).device)
    return tensor if isinstance(X, pytorch().Tensor) else sys.modules["cupy"].from_dlpack(tensor)


def to_host(values: Any) -> NDArray[Any]:
    """Targets or weights, wherever they lie, as a NumPy array."""
    return there(values).cpu().numpy() if on_device(values) else np.asarray(values)


def host(tensor: Any) -> NDArray[np.float64]:
    """Numbers of double precision as a NumPy array."""
    result: NDArray[np.float64] = tensor.cpu().numpy()
    return result


def vector_or_host(values: Any) -> Any:
    """A vector on a device as it is, anything else as a NumPy array."""
    return values if on_device(values) and values.ndim == 1 else to_host(values)


def there(values: Any) -> Any:
    """Values on a device as a tensor that shares their memory; the stored ones of a CuPy sparse matrix."""
    torch = pytorch()
    values = values.data if hasattr(values, "tocsr") else values
    return values.detach() if isinstance(values, torch.Tensor) else torch.from_dlpack(values)


def code_type(codes: NDArray[Any]) -> Any:
    """The smallest type that holds the codes."""
    return np.uint8 if codes.max(initial=0) < 256 else np.int32


class Twin:
    """Values of every row, on the host or on the device, and on the other side once they are asked for there."""

    def __init__(self, values: Any) -> None:
        there = values is not None and on_device(values)
        self._host: Any = None if there else values
        self._there: Any = values if there else None

    def __bool__(self) -> bool:
        return self._host is not None or self._there is not None

    def host(self) -> Any:
        if self._host is None and self._there is not None:
            values = self._there.cpu().numpy()
            self._host = values.astype(np.intp) if values.dtype.kind in "iu" else values
        return self._host

    def there(self, device: Any, kind: Any) -> Any:
        if self._there is None and self._host is not None:
            self._there = pytorch().as_tensor(np.ascontiguousarray(self._host, dtype=kind(self._host))).to(device)
        return self._there

    def part(self, at: Any) -> Twin:
        twin = Twin(None)
        if self._there is not None:
            twin._there = self._there[at if isinstance(at, slice) else pytorch().as_tensor(at).to(self._there.device)]
        elif self._host is not None:
            twin._host = self._host[at if isinstance(at, slice) else to_host(at)]
        return twin


def powers_of_two(spreads: NDArray[Any]) -> NDArray[Any] | None:
    """Powers of two near one over the spread of each column; ``None`` where a column has none to speak of."""
    usable = (spreads > 1e-30) & (spreads < 1e30)
    return np.exp2(-np.round(np.log2(spreads))) if usable.all() else None
