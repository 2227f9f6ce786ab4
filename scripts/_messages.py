"""Texts of errors in the Python sources that a person may meet, found in their syntax.

Receives: the checkout. Sends: every such text with its file, `…` for what is filled in.
Does not know about: what is said of an error in the documentation (errors.toml), Lua (_messages.lua).
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

KINDS = (
    *("ConfigurationError", "StartError", "CommandError", "ChangeError", "InstallError"),
    *("Missing", "UnreachableError", "BrokenError"),
)
"""Exceptions and values whose text a person reads, in the editor, a shell or the log of a client."""
REFUSAL = "refusal"
"""What makes an answer over HTTP that refuses: its text stands behind the status."""

GAP = "…"


def find(root: Path) -> list[dict[str, str]]:
    """Every text, with the file that it stands in."""
    found: dict[tuple[str, str], None] = {}
    for path in [*sorted((root / "bridge").rglob("*.py")), root / "scripts" / "install-env"]:
        name = path.relative_to(root).as_posix()
        tree = ast.parse(path.read_text())
        for scope in ast.walk(tree):
            if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
                found |= {(name, text): None for text in _of(scope)}
    return [{"file": file, "text": text} for file, text in found]


def _of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    texts = []
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
            continue
        first, text = node.args[0], ""
        if node.func.id in KINDS:
            text = _text(first, function)
        elif node.func.id == REFUSAL and isinstance(first, ast.Constant) and isinstance(first.value, int):
            text = f"{first.value} {_text(node.args[1], function)}"
        if re.search(r"[A-Za-z]{2}", text):
            texts.append(re.sub(r"\s+", " ", text))
    return texts


def _text(node: ast.expr, function: ast.AST) -> str:
    """An expression as a text."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, function) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left, function) + _text(node.right, function)
    if isinstance(node, ast.Name):
        for each in ast.walk(function):
            if isinstance(each, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == node.id for target in each.targets
            ):
                return _text(each.value, function)
    return GAP
