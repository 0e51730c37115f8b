"""Peak extra memory of one fit, in a process of its own (Linux).

    peak extra = VmHWM after the fit − VmRSS before it

VmHWM, the high-water mark of resident memory, is reset before the fit by writing 5 to /proc/self/clear_refs. A fit on a
few rows comes first, so that imported code and compiled kernels are not counted as memory of the fit.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from pathlib import Path
from typing import Any

from benchmarks.workload import FitWorkload, load

WARM_UP_ROWS = 300_000


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def _reset_peak() -> int:
    """Give freed memory back to the system, reset the high-water mark; the resident bytes now."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def in_child(module: str, index: int, rung: float | None, scale: float) -> dict[str, Any]:
    """Peak extra bytes of the fit of contender number `index`; None where the system cannot say."""
    workload: FitWorkload = load(module)
    contender = workload.contenders[index]
    data = workload.data(scale)
    contender.build(rung).fit(data.X[:WARM_UP_ROWS], data.y[:WARM_UP_ROWS])
    model = contender.build(rung)
    peak_extra: int | None
    try:
        before = _reset_peak()
    except OSError:
        peak_extra = None
    else:
        model.fit(data.X, data.y)
        peak_extra = max(0, _status("VmHWM") - before)
    return {"peak_extra": peak_extra, "data": data.description, "x_bytes": data.x_bytes}
