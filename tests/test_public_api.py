"""The public names, the parameters of all that can be called, and how names are found.

`public_api.txt` is what they were when it was written last. After a change that is meant, rewrite it and look at its diff:

    python tests/test_public_api.py
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from difflib import unified_diff
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import separatrix

SNAPSHOT = Path(__file__).parent / "public_api.txt"
MODULES = [
    *(
        "algebra",
        "comparison",
        "data",
        "decide",
        "drop_in",
        "dual",
        "export",
        "geometry",
        "inference",
        "models",
        "objectives",
        "plots",
    ),
    *("solvers", "statistics", "tables"),
]
PACKAGES = ["separatrix", *(f"separatrix.{name}" for name in MODULES)]


def parameters(function: Any) -> str:
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name not in ("self", "cls")]
    shown = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    return re.sub(r"<function (\w+) at 0x\w+>", r"\1", shown)


@cache
def public_classes() -> list[type[Any]]:
    values = [getattr(import_module(package), name) for package in PACKAGES for name in import_module(package).__all__]
    return [value for value in values if inspect.isclass(value)]


def members(kind: type[Any]) -> Iterator[str]:
    """The public methods and properties that this library defines, less those of another public class."""
    bases = [base for base in kind.__mro__[1:] if any(base is value for value in public_classes())]
    for name in sorted(name for name in dir(kind) if not name.startswith("_")):
        member = inspect.getattr_static(kind, name)
        if any(inspect.getattr_static(base, name, None) is member for base in bases):
            continue
        function = getattr(member, "fn", getattr(member, "__func__", getattr(member, "fget", member)))
        if isinstance(member, kind):  # a member of an enumeration
            yield f"    {name}"
        elif inspect.isfunction(function) and str(function.__module__).startswith("separatrix"):
            yield f"    {name}" if isinstance(member, property) else f"    {name}{parameters(function)}"


def described(value: Any) -> list[str]:
    if inspect.isclass(value):
        ours = not issubclass(value, Enum | Exception)  # whose constructors are Python's own
        return [f"class{parameters(value) if ours else ''}", *members(value)]
    return [parameters(value)] if callable(value) else [f": {type(value).__name__}"]


def snapshot() -> str:
    """Names by package; each is described where it is first found among the modules, and only named at the top."""
    lines = []
    for package in PACKAGES:
        lines += ["", package, "-" * len(package)]
        for name in sorted(import_module(package).__all__):
            value = getattr(import_module(package), name)
            elsewhere = any(name in import_module(f"separatrix.{module}").__all__ for module in MODULES)
            if package == "separatrix" and elsewhere:
                lines.append(name)
            else:
                first, *rest = described(value)
                lines += [f"{name} {first}" if first.startswith("class") else f"{name}{first}", *rest]
    return "\n".join(lines[1:]) + "\n"


def test_the_public_api_is_the_one_on_record():
    was, now = SNAPSHOT.read_text(encoding="utf-8").splitlines(), snapshot().splitlines()
    changes = "\n".join(unified_diff(was, now, "on record", "now", lineterm="", n=0))
    assert was == now, f"The public API has changed. If so meant, run python tests/test_public_api.py.\n{changes}"


def test_the_top_is_small():
    assert len(separatrix.__all__) <= 78  # every estimator is here, under scikit-learn's name where it has one


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_listed_found_and_explained(package):
    module = import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        value = getattr(module, name)
        assert value.__doc__, name
        assert not inspect.ismodule(value), name
        if package not in ("separatrix", "separatrix.data"):
            assert f"`{name}`" in module.__doc__, f"{package} does not list {name}"
    assert module.__doc__


def test_a_name_at_the_top_is_the_one_in_its_module():
    for name in separatrix.__all__:
        for module in MODULES:
            if name in import_module(f"separatrix.{module}").__all__:
                assert getattr(separatrix, name) is getattr(import_module(f"separatrix.{module}"), name)


def test_an_error_names_the_module_that_has_the_name():
    with pytest.raises(AttributeError, match=r"no attribute 'Hyperplane'; it is in separatrix\.geometry$"):
        _ = separatrix.Hyperplane
    with pytest.raises(AttributeError, match=r"no attribute 'ClassMoments'; it is in separatrix\.statistics$"):
        _ = separatrix.ClassMoments
    with pytest.raises(AttributeError, match=r"module 'separatrix' has no attribute 'nonsense'$"):
        _ = separatrix.nonsense
    with pytest.raises(AttributeError, match=r"module 'separatrix\.decide' has no attribute 'nonsense'$"):
        _ = separatrix.decide.nonsense
    with pytest.raises(ImportError, match="Hyperplane"):
        from separatrix import Hyperplane  # noqa: F401  # this is what fails


def test_modules_are_attributes_and_names_stay_after_their_files_are_imported():
    code = (
        "import separatrix, separatrix.decide.empirical_risk, separatrix.geometry.separation\n"
        "assert callable(separatrix.decide.risk) and callable(separatrix.geometry.separability)\n"
        "assert separatrix.plots.CalibrationDisplay and 'plots' in dir(separatrix)\n"
        "from separatrix import *\n"
        "assert LogisticRegression is separatrix.models.LogisticRegression"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_all_packages_leaves_the_heavy_ones_alone():
    code = (
        f"import sys, sklearn.base; before = set(sys.modules); import {', '.join(PACKAGES)}\n"
        "print(*{'numba', 'matplotlib', 'pyarrow', 'onnx', 'typer'} & (set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


if __name__ == "__main__":
    SNAPSHOT.write_text(snapshot(), encoding="utf-8")
