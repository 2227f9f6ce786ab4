"""Loads modules with tools and finds the tools in them."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import itertools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from .decorator import MARK

numbers = itertools.count(1)

FAULTS = "__mcp_tool_faults__"
"""Name in a module for the exceptions raised by definitions of tools."""
GUARD = f"""
try: pass
except Exception as __mcp_tool_error__: {FAULTS}.append((%r, %d, __mcp_tool_error__))
"""


class UntrustedError(Exception):
    """The file is not the one that the user trusts."""


def prepare_process() -> None:
    """Replaces `typing.TypedDict` before Python 3.12, where pydantic requires that of typing_extensions."""
    if sys.version_info < (3, 12):
        import typing

        import typing_extensions

        typing.TypedDict = typing_extensions.TypedDict  # type: ignore[misc, assignment, unused-ignore]


def run_file(path: str, sha256: str | None) -> ModuleType:
    """Run a file as a module with a unique name."""
    data = Path(path).read_bytes()
    if sha256:
        import hashlib  # loads OpenSSL, which most workers do not need

        if hashlib.sha256(data).hexdigest() != sha256:
            raise UntrustedError(f"{path} has changed since it was trusted; review it and run :trust again")
    name = f"mcp_tools_{Path(path).stem}_{next(numbers)}"
    spec = importlib.util.spec_from_loader(name, loader=None, origin=path)
    if spec is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    module.__file__ = path
    setattr(module, FAULTS, [])
    sys.modules[name] = module  # dataclasses and type hints look up their module
    try:
        tree = ast.parse(data, path)
        tree.body = [guarded(each) for each in tree.body]
        # dont_inherit: the future statements of this file must not apply.
        code = compile(tree, path, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - as an import does
    except BaseException:
        del sys.modules[name]
        raise
    return module


def guarded(statement: ast.stmt) -> ast.stmt:
    """Wraps the definition of a tool, so that its exception does not affect the other tools."""
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return statement
    decorators = [each.func if isinstance(each, ast.Call) else each for each in statement.decorator_list]
    if not any(ast.unparse(each).rpartition(".")[2] == "mcp_tool" for each in decorators):
        return statement
    line = statement.decorator_list[0].lineno
    (guard,) = ast.parse(GUARD % (statement.name, line)).body
    assert isinstance(guard, ast.Try)  # noqa: S101 - see GUARD
    guard.body = [statement]
    return guard


def load(source: Mapping[str, Any]) -> ModuleType:
    """Import a source that Neovim sent; raises whatever its code raises.

    Args:
        source: `path` of a file outside any package, with its required `sha256`, or name of a `module`.
    """
    if path := source.get("path"):
        return run_file(path, source.get("sha256"))
    return importlib.import_module(source["module"])


def tools_of(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """Returns the tools of a module by name: its functions, and those imported from its package.

    Private names, of functions or tools, are skipped.
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


def definition_faults(module: ModuleType) -> list[str]:
    """Returns why marked objects are not tools: failed definitions, methods, wrong order of decorators,
    duplicate names.
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
            faults.append(f"{attribute}: @mcp_tool must be above the decorator that returns a {kind}")
        elif is_marked(value) and tools.get(getattr(value, MARK).name, value) is not value:
            faults.append(f"tool '{getattr(value, MARK).name}': {attribute}() is not the first of that name")
    return faults


def at_line(line: int, text: str) -> str:
    """Returns a fault with its line, in the format that Neovim parses."""
    return f"line {line}: {text}"


def is_marked(value: object) -> bool:
    """Whether an object is marked. `hasattr` would call the `__getattr__` of arbitrary objects."""
    return MARK in getattr(value, "__dict__", ())
