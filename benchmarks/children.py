"""Run a function in a fresh Python process: nothing measured leaks from one measurement into the next.

The answer travels in a file, not on standard output, which belongs to the libraries under test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Byte code is written as for every user: without it each process would compile our files, and nobody else's, afresh.
KEEP_BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": ""}


class ChildFailed(RuntimeError):
    """The child process died; the message is the last line it wrote."""


def call(
    function: str, /, environment: Mapping[str, str] | None = None, limit: float | None = None, **arguments: Any
) -> Any:
    """`function` ("module:name") called with `arguments` in a child process; both ways through JSON; for `limit` seconds."""
    with TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        try:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.children", function, json.dumps(arguments), str(answer)],
                cwd=ROOT,
                env={**os.environ, **KEEP_BYTE_CODE, **(environment or {})},
                capture_output=True,
                text=True,
                check=False,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            raise ChildFailed(f"{function} was not done after {limit} s") from None
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise ChildFailed(lines[-1] if lines else f"{function} ended with exit status {done.returncode}")
        return json.loads(answer.read_text())


def main() -> None:
    """The child's side of `call`."""
    function, arguments, answer = sys.argv[1:]
    module, _, name = function.partition(":")
    returned = getattr(import_module(module), name)(**json.loads(arguments))
    Path(answer).write_text(json.dumps(returned))


if __name__ == "__main__":
    main()
