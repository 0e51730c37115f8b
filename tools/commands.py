"""Write docs/commands.md: every command with its arguments and options, from the command line itself.

`python tools/commands.py` writes; tests/test_docs.py fails when the page is not what this would write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.main import get_command

from separatrix.cli.main import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
BAR = r"\|"  # within a table
HEAD = """# Commands and options

Written by `tools/commands.py` from the commands themselves; `separatrix COMMAND --help` shows the same. What they are for, with
examples: [the command line](command-line.md). `separatrix --install-completion` completes names on Tab in your shell.

```console
separatrix compare examples/data/penguins.csv --target sex --families lda,logistic --out penguins
```
"""


def _words(option: Any) -> str:
    """How an option is written."""
    flags = [", ".join(option.opts), *([", ".join(option.secondary_opts)] if option.secondary_opts else [])]
    return " / ".join(flags) + ("" if option.is_flag else f" {option.metavar}")


def _default(option: Any) -> str:
    shown = option.default
    plain = isinstance(shown, str | int | float | Path) and not isinstance(shown, bool)
    return "required" if option.required else str(shown) if plain else ""


def _options(command: Any) -> list[str]:
    rows = [
        f"| `{_words(option).replace('|', BAR)}` | {option.help} | {_default(option)} |"
        for option in command.params
        if option.param_type_name == "option" and not option.hidden and option.help
    ]
    return ["| option | | default |", "|---|---|---|", *rows, ""] if rows else []


def page() -> str:
    """The whole page."""
    group: Any = get_command(app)
    lines = [HEAD]
    for name, command in group.commands.items():
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        usage = " ".join([each.metavar or each.name.upper() for each in arguments])
        lines += [f"## separatrix {name}", "", f"`separatrix {name} {usage} [OPTIONS]`", "", command.help or "", ""]
        lines += [f"- `{each.metavar}`: {each.help}" for each in arguments] + [""]
        lines += _options(command)
    lines += ["## For all of them", "", *_options(group)]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
