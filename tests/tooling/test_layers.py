"""The layers of the Python code: what every package may import.

Imports inside functions and under TYPE_CHECKING count as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BRIDGE = ROOT / "bridge" / "mcp_tools_nvim"

LAYERS = {
    "__main__": "cli",
    "cli": "process relay client_config instances",
    "process": "agents http sessions calls neovim instances mounts",
    "relay": "instances",
    "agents": "http sessions mcp neovim instances",
    "http": "sessions mcp calls neovim instances",
    "sessions": "mcp calls",
    "python_tools": "api",
    "mcp": "calls neovim",
    "mounts": "neovim",
    "api": "calls neovim instances",
    "client_config": "",
    "calls": "neovim",
    "neovim": "",
    "instances": "",
}
"""Package → packages it may import, from the top down."""

VOCABULARY = ("__init__", "errors", "jsonrpc", "rate_limit", "sdk", "values")
"""Modules that every package may import; they import the standard library, msgspec and each other."""

THIRD_PARTY = {
    "aiohttp": "http agents",
    "mcp": "mcp mounts",
    "mcp_types": "mcp mounts",
    "anyio": "mcp mounts",
    "httpx2": "mounts",
    "multidict": "http mcp",
    "msgpack": "neovim",
    "msgspec": "jsonrpc",
    "uvloop": "process",
    "pydantic": "mcp python_tools mounts",
    "pydantic_core": "python_tools",
    "typing_extensions": "python_tools",
    "pynvim": "python_tools",
    "ruamel": "client_config",
    "tomlkit": "client_config",
}
"""Third-party package → packages that may import it."""

CALLS = "__future__ asyncio collections dataclasses enum itertools logging math secrets time typing weakref"
"""What `calls` may import besides the project: it does no I/O."""


class Arrow(NamedTuple):
    """One import: `target` is a module of the bridge or the name of another package."""

    path: Path
    line: int
    source: str
    target: str
    own: bool

    @property
    def packages(self) -> tuple[str, str]:
        """The importing and the imported package."""
        return self.source.partition(".")[0], self.target.partition(".")[0]

    @property
    def name(self) -> str:
        return f"{self.source} → {self.target}"

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.name}"


def is_module(name: str) -> bool:
    """Whether the bridge has this module or package."""
    path = BRIDGE.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def arrows_of(path: Path) -> Iterator[Arrow]:
    """The imports of a file."""
    parts = path.relative_to(BRIDGE).with_suffix("").parts
    source = ".".join(parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Arrow(path, node.lineno, source, alias.name.partition(".")[0], own=False)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield Arrow(path, node.lineno, source, str(node.module).partition(".")[0], own=False)
        elif isinstance(node, ast.ImportFrom):
            base = [*parts[: len(parts) - node.level], *(node.module or "").split(".")]
            module = ".".join(filter(None, base))
            for alias in node.names:
                below = f"{module}.{alias.name}".lstrip(".")
                target = below if is_module(below) else module or "__init__"
                yield Arrow(path, node.lineno, source, target, own=True)


@cache
def arrows() -> list[Arrow]:
    """The imports of all files."""
    return [arrow for path in sorted(BRIDGE.rglob("*.py")) for arrow in arrows_of(path)]


def is_allowed(arrow: Arrow) -> bool:
    source, target = arrow.packages
    if not arrow.own:
        return target in sys.stdlib_module_names or source in THIRD_PARTY.get(target, "").split()
    if source in VOCABULARY:
        return target in VOCABULARY
    return target == source or target in VOCABULARY or target in LAYERS[source].split()


def test_every_import_is_allowed() -> None:
    assert [str(arrow) for arrow in arrows() if not is_allowed(arrow)] == []


def test_the_list_of_layers_has_no_cycle() -> None:
    names = list(LAYERS)
    for position, (name, below) in enumerate(LAYERS.items()):
        assert set(below.split()) <= set(names[position + 1 :]), name


def test_calls_import_nothing_that_does_io() -> None:
    foreign = [arrow for arrow in arrows() if arrow.packages[0] == "calls" and not arrow.own]
    assert [str(arrow) for arrow in foreign if arrow.target not in CALLS.split()] == []
