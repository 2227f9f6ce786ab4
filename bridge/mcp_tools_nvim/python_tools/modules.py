"""Modules with tools: found, run, and looked through."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from .decorator import MARK

numbers = itertools.count(1)

FAULTS = "__mcp_tool_faults__"
"""What kept marked functions from being made, in the names of their module."""
GUARD = f"""
try: pass
except Exception as __mcp_tool_error__: {FAULTS}.append((%r, %d, __mcp_tool_error__))
"""


class UntrustedError(Exception):
    """The file is not the one that the user trusts."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a module is: one of `path` and `module`.

    Attributes:
        path: a file outside of any package.
        module: a name that Python's import finds.
        sha256: the hash that the file must have to be run.
    """

    path: str | None = None
    module: str | None = None
    sha256: str | None = None

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Source:
        """From what the editor sent."""
        return cls(fields.get("path"), fields.get("module"), fields.get("sha256"))


def prepare_process() -> None:
    """Let tools use `typing.TypedDict` on every Python: before 3.12, pydantic knows only this one's twin."""
    if sys.version_info < (3, 12):
        import typing

        import typing_extensions

        typing.TypedDict = typing_extensions.TypedDict  # type: ignore[misc, assignment, unused-ignore]


def hash_of(data: bytes) -> str:
    """SHA-256 in hex digits."""
    import hashlib  # with all of OpenSSL; most hosts need it never

    return hashlib.sha256(data).hexdigest()


def run_file(path: str, sha256: str | None) -> ModuleType:
    """Run a file as a module of its own name, which collides with no other."""
    data = Path(path).read_bytes()
    if sha256 and hash_of(data) != sha256:
        raise UntrustedError(f"{path} has changed since it was trusted; look at it and run :trust again")
    name = f"mcp_tools_{Path(path).stem}_{next(numbers)}"
    spec = importlib.util.spec_from_loader(name, loader=None, origin=path)
    if spec is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    module.__file__ = path
    setattr(module, FAULTS, [])
    sys.modules[name] = module  # dataclasses and type hints look their module up
    try:
        tree = ast.parse(data, path)
        tree.body = [guarded(each) for each in tree.body]
        # Not with the future statements of this file: a hint is a type where an import makes it one.
        code = compile(tree, path, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 (it is what an import does)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def guarded(statement: ast.stmt) -> ast.stmt:
    """A marked function that cannot be made (its default, its hint, the mark itself) takes no other along."""
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return statement
    decorators = [each.func if isinstance(each, ast.Call) else each for each in statement.decorator_list]
    if not any(ast.unparse(each).rpartition(".")[2] == "mcp_tool" for each in decorators):
        return statement
    line = statement.decorator_list[0].lineno
    (guard,) = ast.parse(GUARD % (statement.name, line)).body
    assert isinstance(guard, ast.Try)  # noqa: S101 (that is what stands above)
    guard.body = [statement]
    return guard


def load(source: Source) -> ModuleType:
    """Import a source; whatever it raises is its own."""
    if source.path is not None:
        return run_file(source.path, source.sha256)
    return importlib.import_module(source.module or "")


def file_of(module: ModuleType) -> str | None:
    """The file of a module."""
    return getattr(module, "__file__", None)


def tools_of(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The tools of a module by name: its own functions, and those of its package that it has imported.

    What begins with an underscore is nobody's business, function or tool.
    """
    package = module.__name__.partition(".")[0]
    tools: dict[str, Callable[..., Any]] = {}
    for attribute, value in vars(module).items():
        if not isinstance(value, FunctionType) or not hasattr(value, MARK):
            continue
        name = getattr(value, MARK).name
        private = any(word.startswith("_") for word in (attribute, value.__name__, name))
        if not private and value.__module__.partition(".")[0] == package:
            tools.setdefault(name, value)
    return tools


def overlooked(module: ModuleType) -> list[str]:
    """What is wrong with marks that make no tool: on what cannot be one, on methods, below other decorators,
    with a name twice.
    """
    faults = [
        at_line(line, f"tool '{name}': {type(error).__name__}: {error}")
        for name, line, error in getattr(module, FAULTS, ())
    ]
    tools = tools_of(module)
    for attribute, value in vars(module).items():
        mine = getattr(value, "__module__", None) == module.__name__
        if attribute.startswith("_") or not mine:
            continue
        if isinstance(value, type):
            marked = [getattr(each, "__func__", each) for each in vars(value).values()]
            faults += [
                f"{each.__qualname__}: a method cannot be a tool" for each in marked if is_marked(each)
            ]
        elif is_marked(value) and not isinstance(value, FunctionType):
            kind = type(value).__name__
            faults.append(f"{attribute}: @mcp_tool must stand above what makes a {kind} of the function")
        elif is_marked(value) and tools.get(getattr(value, MARK).name, value) is not value:
            faults.append(f"tool '{getattr(value, MARK).name}': {attribute}() is not the first of that name")
    return faults


def at_line(line: int, text: str) -> str:
    """A fault with its place, in a form that the editor finds it in."""
    return f"line {line}: {text}"


def is_marked(value: object) -> bool:
    """Does it have the mark? (`hasattr` would run what some objects do for any name.)"""
    return MARK in getattr(value, "__dict__", ())
