"""The import name: makes this folder the package `mcp_tools_nvim`, wherever it lies, and runs a part of it.

    python bridge/start.py python_tools.scan.main ARGUMENT…

Receives: a module of the package and arguments for its `main`; or nothing, by `runpy.run_path`.
Sends: the package under its name, and as `bridge`, its name of before, unless the person has one so called.
Does not know about: what it runs. Nothing is put on `sys.path`: a checkout lends tools no other module.

A process that `multiprocessing` starts runs this file once more, and so has the name as well.
"""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__" and sys.argv[1:2] == ["cli.main"]:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while the rest is imported, Ctrl-C prints no trace

import importlib
import importlib.util
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

NAME = "mcp_tools_nvim"
BEFORE = "bridge"
"""What the package is called in a checkout, and was before it had a name for others."""


class Alias(MetaPathFinder, Loader):
    """Finds the modules of one package under the name of another: the same objects, whoever imports them.

    Args:
        alias: the other name.
        name: the package's own.
    """

    def __init__(self, alias: str, name: str) -> None:
        self._alias = alias
        self._name = name
        self._own: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """For the alias, and for what lies below it when it is ours."""
        top = fullname == self._alias
        below = (
            fullname.startswith(f"{self._alias}.") and sys.modules.get(self._alias) is sys.modules[self._name]
        )
        return ModuleSpec(fullname, self) if top or below else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of the package."""
        module = importlib.import_module(self._name + spec.name.removeprefix(self._alias))
        self._own[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run; the import has put a spec of the alias on it, and relative imports go by the spec."""
        assert module.__spec__ is not None  # noqa: S101 (that is what it has just got)
        module.__spec__ = self._own.pop(module.__spec__.name)


class Below(MetaPathFinder):
    """Finds what lies below an alias, and leaves the alias itself to others."""

    def __init__(self, alias: Alias) -> None:
        self._alias = alias

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """For names with a dot."""
        return self._alias.find_spec(fullname, path, target) if "." in fullname else None


def provide() -> None:
    """Make the name; a second time does nothing. It holds although another version is installed."""
    if NAME in sys.modules:
        return
    here = Path(__file__).resolve().parent
    folder = str(here)
    spec = importlib.util.spec_from_file_location(
        NAME, here / "__init__.py", submodule_search_locations=[folder]
    )
    assert spec is not None  # noqa: S101 (the file lies beside this one)
    assert spec.loader is not None  # noqa: S101
    module = sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    alias = Alias(BEFORE, NAME)
    # Last: whatever else is called so comes first. Below it first: the files would be found and run twice.
    sys.meta_path.append(alias)
    sys.meta_path.insert(0, Below(alias))


provide()

if __name__ == "__main__":
    # Python has put this folder on it, where `http` and others would hide those of the standard library.
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != Path(__file__).resolve().parent]
    importlib.import_module(f"{NAME}.{sys.argv[1]}").main(*sys.argv[2:])
