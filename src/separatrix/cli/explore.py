"""`separatrix explore`: the explorer in the browser, until Ctrl-C."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path

from separatrix.cli.errors import Stopped
from separatrix.explore.plane_table import PlaneTable
from separatrix.explore.server import serve


def run(data: Path | None, target: str | None, port: int, token: str | None, browser: bool) -> None:
    """Serve the page, on a table if one is given, and open it."""
    if (data is None) != (target is None):
        raise ValueError("Give a table and the column to predict (--target) together, or neither.")
    if token is not None and (len(token) < 16 or not token.replace("-", "").replace("_", "").isalnum()):
        raise ValueError("A token must have at least 16 letters, digits, - or _: others must not be able to guess it.")
    table = None if data is None or target is None else PlaneTable.of_table(data, target)

    def announce(address: str) -> None:
        print(f"The explorer is at {address}\nOnly this machine can reach it. Ctrl-C ends it.", flush=True)
        if browser:
            webbrowser.open(address)

    with suppress(Stopped, KeyboardInterrupt):  # the way in which it ends
        serve(table, port=port, token=token, ready=announce)
    print("The explorer has ended.")
