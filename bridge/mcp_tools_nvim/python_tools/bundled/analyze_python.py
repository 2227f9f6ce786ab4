"""The bundled tool `analyze_python`: contents and complexity of a Python file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .. import ToolError, mcp_tool

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler)
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes below a node, except those in nested functions and classes."""
    queue = list(ast.iter_child_nodes(node))
    while queue:
        child = queue.pop()
        yield child
        if not isinstance(child, SCOPES):
            queue.extend(ast.iter_child_nodes(child))


def complexity(function: Function) -> int:
    """Returns the cyclomatic complexity (McCabe): 1 + the number of decisions."""
    count = 1
    for node in inside(function):
        if isinstance(node, BRANCHES):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        elif isinstance(node, ast.match_case):
            wildcard = isinstance(node.pattern, ast.MatchAs) and node.pattern.pattern is None
            count += 0 if wildcard and node.guard is None else 1
    return count


def nesting(node: ast.AST) -> int:
    """Returns the maximum nesting of blocks; an `elif` is on the level of its `if`."""
    deepest = 0
    queue = [(child, 0) for child in ast.iter_child_nodes(node)]
    while queue:
        child, depth = queue.pop()
        if isinstance(child, SCOPES):
            continue
        depth += isinstance(child, BLOCKS)
        deepest = max(deepest, depth)
        chained = child.orelse if isinstance(child, ast.If) and len(child.orelse) == 1 else []
        queue.extend(
            (below, depth - 1 if below in chained and isinstance(below, ast.If) else depth)
            for below in ast.iter_child_nodes(child)
        )
    return deepest


def arguments(function: Function) -> list[str]:
    """Returns the names of the arguments, with their stars."""
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    names += [f"*{given.vararg.arg}"] if given.vararg else []
    names += [argument.arg for argument in given.kwonlyargs]
    return names + ([f"**{given.kwarg.arg}"] if given.kwarg else [])


def is_annotated(function: Function) -> bool:
    """Whether the result and all arguments but `self` and `cls` have hints."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    bare = [each for each in every if each and each.annotation is None and each.arg not in ("self", "cls")]
    return not bare and (function.returns is not None or function.name == "__init__")


@dataclass
class Findings:
    """The contents of a module."""

    imports: list[dict[str, Any]] = field(default_factory=list)
    classes: list[dict[str, Any]] = field(default_factory=list)
    functions: list[dict[str, Any]] = field(default_factory=list)
    public: int = 1
    documented: int = 0


def note_import(node: ast.Import | ast.ImportFrom, found: Findings) -> None:
    """Adds an import."""
    if isinstance(node, ast.Import):
        found.imports += [{"module": alias.name, "line": node.lineno} for alias in node.names]
    else:
        module = "." * node.level + (node.module or "")
        names = [alias.name for alias in node.names]
        found.imports.append({"module": module, "names": names, "line": node.lineno})


def note_docstring(node: Function | ast.ClassDef, path: list[str], found: Findings) -> bool:
    """Counts a docstring if the name is public; returns whether there is one."""
    has = ast.get_docstring(node) is not None
    if not any(name.startswith("_") for name in (*path, node.name)):
        found.public += 1
        found.documented += has
    return has


def note_class(node: ast.ClassDef, path: list[str], found: Findings) -> None:
    """Adds a class."""
    methods = [child for child in node.body if isinstance(child, FUNCTIONS)]
    found.classes.append(
        {
            "name": ".".join((*path, node.name)),
            "line": node.lineno,
            "end_line": node.end_lineno,
            "bases": [ast.unparse(base) for base in node.bases],
            "decorators": [ast.unparse(decorator) for decorator in node.decorator_list],
            "methods": len(methods),
            "docstring": note_docstring(node, path, found),
        }
    )


def note_function(node: Function, path: list[str], found: Findings) -> None:
    """Adds a function."""
    end = node.end_lineno or node.lineno
    found.functions.append(
        {
            "name": ".".join((*path, node.name)),
            "line": node.lineno,
            "end_line": end,
            "lines": end - node.lineno + 1,
            "arguments": arguments(node),
            "async": isinstance(node, ast.AsyncFunctionDef),
            "decorators": [ast.unparse(decorator) for decorator in node.decorator_list],
            "complexity": complexity(node),
            "nesting": nesting(node),
            "annotated": is_annotated(node),
            "docstring": note_docstring(node, path, found),
        }
    )


def walk(node: ast.AST, path: list[str], found: Findings) -> None:
    """Adds everything below a node, in the order of the text."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            note_import(child, found)
        elif isinstance(child, ast.ClassDef):
            note_class(child, path, found)
            walk(child, [*path, child.name], found)
        elif isinstance(child, FUNCTIONS):
            note_function(child, path, found)
            walk(child, [*path, child.name], found)
        else:
            walk(child, path, found)


def lines_of(source: str) -> dict[str, int]:
    """Returns the numbers of lines by kind."""
    lines = [line.strip() for line in source.splitlines()]
    blank, comments = lines.count(""), sum(line.startswith("#") for line in lines)
    return {"total": len(lines), "code": len(lines) - blank - comments, "blank": blank, "comments": comments}


def summary(found: Findings) -> dict[str, Any]:
    """Returns the figures of the module."""
    ways = [function["complexity"] for function in found.functions]
    return {
        "classes": len(found.classes),
        "functions": len(found.functions),
        "complexity_mean": round(sum(ways) / len(ways), 1) if ways else 0,
        "complexity_max": max(ways, default=0),
        "annotated_functions": sum(function["annotated"] for function in found.functions),
        "docstring_coverage": round(found.documented / found.public, 2),
    }


@mcp_tool(annotations={"read_only": True})
def analyze_python(source: str, name: str, min_complexity: int, offset: int, limit: int) -> dict[str, Any]:
    """Analyses Python source.

    Args:
        source: the text.
        name: its name in messages.
        min_complexity: skip functions with a lower complexity.
        offset: number of functions to skip.
        limit: maximum number of functions and classes.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ToolError(f"{name}:{error.lineno or 1}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ToolError(f"{name}: cannot be parsed: {error}") from None
    found = Findings(documented=int(ast.get_docstring(tree) is not None))
    try:
        walk(tree, [], found)
    except RecursionError:
        raise ToolError(f"{name}: is nested too deep") from None
    chosen = [function for function in found.functions if function["complexity"] >= min_complexity]
    answer = {
        "path": name,
        "lines": lines_of(source),
        "summary": summary(found),
        "docstring": ast.get_docstring(tree) is not None,
        "imports": found.imports[:limit],
        "classes": found.classes[:limit],
        "functions": chosen[offset : offset + limit],
        "matching_functions": len(chosen),
    }
    if offset + limit < len(chosen):
        answer["next_offset"] = offset + limit
    cut = [key for key in ("imports", "classes") if len(getattr(found, key)) > limit]
    return answer | ({"cut": cut} if cut else {})
