"""What the installed command calls: Ctrl-C is quiet from here on, also while the rest is imported."""

from __future__ import annotations

import sys

STOPPED = 130


def main() -> None:
    """Run the command line."""
    try:
        from separatrix.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(STOPPED)
