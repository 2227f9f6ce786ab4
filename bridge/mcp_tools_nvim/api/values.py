"""Arguments and results of a call as plain Python values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..calls.arguments import refuse_arguments
from ..errors import Code
from ..values import Outcome, ToolError
from .client import CallOptions

CANCELLED = ToolError(Code.CANCELLED, "the tool that called it was cancelled")
MAX_LEVELS = 100
"""Maximum nesting of arguments, as for clients of the bridge."""


def json_copy(arguments: Any) -> dict[str, Any]:
    """Returns a copy of the arguments that consists of JSON types only.

    Raises:
        TypeError: a value cannot be represented in JSON; the text names its place.
        ValueError: nested too deep or recursive, or invalid Unicode.
    """
    if not isinstance(arguments, Mapping):
        raise TypeError(f"arguments must be a dict, not {type(arguments).__name__}")
    copy: dict[str, Any] = _plain(arguments, "", MAX_LEVELS)
    return copy


def arguments_of(name: Any, arguments: Any, more: dict[str, Any], options: CallOptions) -> dict[str, Any]:
    """Checks the parameters of a call and returns all arguments of the tool.

    Raises:
        TypeError: a value has the wrong type, or an argument is given twice.
        ValueError: a value is not valid.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a tool must be a string, not {type(name).__name__}")
    timeout: Any = options.get("timeout")
    if timeout is not None and (not isinstance(timeout, int) or isinstance(timeout, bool)):
        raise TypeError(f"timeout must be a whole number of ms, not {timeout!r}")
    if timeout is not None and not 0 <= timeout < 2**31:
        raise ValueError(f"timeout is {timeout}: it must be from 0 to {2**31 - 1} ms")
    for option in ("on_progress", "on_log", "on_elicit"):
        if (callback := options.get(option)) is not None and not callable(callback):
            raise TypeError(f"{option} must be a function, not {type(callback).__name__}")
    given = json_copy({} if arguments is None else arguments)
    if twice := given.keys() & more.keys():
        raise TypeError(f"given twice: {', '.join(sorted(twice))}")
    return {**given, **json_copy(more)}


def argument_error(arguments: dict[str, Any]) -> ToolError | None:
    """Returns why arguments cannot be sent; None when they can."""
    failure = refuse_arguments(arguments)
    return None if failure is None else failure.error


def failure(error: ToolError) -> dict[str, Any]:
    """Returns the result of a failed call."""
    return {"ok": False, "error": error.details()}


def answer_of(outcome: Outcome) -> dict[str, Any]:
    """Returns the result of a call, failed or not."""
    if outcome.error is not None:
        return failure(outcome.error)
    if outcome.kind == "content":
        return _of_content(json.loads(outcome.text))
    content = [] if outcome.kind == "empty" else [{"type": "text", "text": outcome.text}]
    data = json.loads(outcome.text) if outcome.kind == "json" else None
    return {"ok": True, "text": outcome.text, "structured": data, "content": content}


def _of_content(result: dict[str, Any]) -> dict[str, Any]:
    content = result["content"]
    text = "\n".join(block["text"] for block in content if block["type"] == "text")
    answer = {"ok": True, "text": text, "structured": result.get("structuredContent"), "content": content}
    if "_meta" in result:
        answer["_meta"] = result["_meta"]
    if result.get("isError"):
        answer["ok"] = False
        answer["error"] = {
            "code": str(Code.TOOL_ERROR),
            "message": text or "the tool failed without a message",
        }
    return answer


def _plain(value: Any, path: str, levels: int) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _text(value, path)
    if levels == 0:
        raise ValueError(f"arguments nested deeper than {MAX_LEVELS} levels, or recursive")
    if isinstance(value, Mapping):
        copy = {}
        for key, child in value.items():
            if not isinstance(key, str):
                raise TypeError(f"argument {path or '(root)'}: the key {key!r} is not a string")
            copy[_text(key, path)] = _plain(child, f"{path}.{key}" if path else key, levels - 1)
        return copy
    if isinstance(value, list | tuple):
        return [_plain(child, f"{path}[{index}]", levels - 1) for index, child in enumerate(value)]
    raise TypeError(f"argument {path}: {type(value).__name__} cannot be represented in JSON")


def _text(value: str, path: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"argument {path or '(root)'}: {value!r} is not valid text") from None
    return str.__str__(value)  # str() of an enum member would return its name
