"""Modules that are not loaded yet: something to be done as soon as one of them is.

A script needs few of scikit-learn's modules, and loading the others only to swap names in them would take longer than most
fits. So a finder stands first among Python's; it finds nothing by itself, and has the loader of a watched module call back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class ImportWatch(MetaPathFinder):
    """Calls `loaded` with the name of each watched module after it was loaded, and before whoever imports it goes on."""

    def __init__(self, loaded: Callable[[str], None]) -> None:
        self.loaded = loaded
        self.names: set[str] = set()

    def watch(self, names: set[str]) -> None:
        """Watch these names, and no others."""
        self.names = set(names)
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if names:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the finders after this one find, with a loader that calls back."""
        if fullname not in self.names:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _CallingLoader(spec.loader, self)
                return spec
        return None


class _CallingLoader(Loader):
    """A loader that calls back once; the module keeps the loader that it would have had."""

    def __init__(self, plain: Loader, watch: ImportWatch) -> None:
        self.plain, self._watch = plain, watch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.plain.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.plain
        self.plain.exec_module(module)
        if module.__name__ in self._watch.names:
            self._watch.loaded(module.__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)
