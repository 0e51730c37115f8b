"""Under which conditions a run was made: versions, CPU, threads, date, commit. No paths, no host names."""

from __future__ import annotations

import os
import pkgutil
import platform
import subprocess
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.contender import OURS, Peer

RESULTS = [f":!benchmarks/{name}" for name in ("RESULTS.md", "results.json", "ATLAS.md", "atlas.json", "atlas.svg")]
THREAD_VARIABLES = (
    "SEPARATRIX_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def _peers() -> list[Peer]:
    names = sorted(module.name for module in pkgutil.iter_modules(peers.__path__))
    return [import_module(f"{peers.__name__}.{name}").PEER for name in names]


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for distribution in (OURS.distribution, "numpy", "scipy", "numba", *(peer.distribution for peer in _peers())):
        try:
            versions[distribution] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            versions[distribution] = "not installed"
    return versions


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _threads() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    chosen = [f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if name in os.environ]
    for library in ("numpy.linalg", "scipy.linalg"):  # each may bring a BLAS of its own
        import_module(library)
    pools = import_module("threadpoolctl").threadpool_info()
    blas = {f"{p['internal_api']} {p['version']}: {p['num_threads']}" for p in pools if p["user_api"] == "blas"}
    parts = [
        f"{usable} of {os.cpu_count()} cores usable",
        f"BLAS threads {', '.join(sorted(blas)) or 'unknown'}",
        f"environment {', '.join(chosen) or 'sets none'}",
    ]
    return "; ".join(parts)


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _commit() -> str:
    commit = _git("rev-parse", "--short", "HEAD")
    if commit is None:
        return "none"
    # The results themselves change with every run; they do not make the code under test another one.
    changed = _git("status", "--porcelain", "--", ".", *RESULTS)
    return f"{commit} with uncommitted changes" if changed else commit


def collect() -> dict[str, Any]:
    """The conditions of this run, as JSON."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "cpu": _cpu(),
        "threads": _threads(),
        "versions": _versions(),
    }
