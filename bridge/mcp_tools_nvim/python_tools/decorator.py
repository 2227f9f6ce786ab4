"""`@mcp_tool`: marks a function as a tool."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

MARK = "__mcp_tool__"


class Annotations(TypedDict, total=False):
    """Hints for clients; the first two also apply to approval."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    title: str


@dataclass(frozen=True, slots=True)
class Mark:
    """The arguments of `mcp_tool`.

    Attributes:
        name: name without the prefix of the plugin.
        title: name for users.
        description: text for the model; None = from the docstring.
        annotations: hints.
        approval: False = never asks, True or a reason = always asks, None = the hints decide.
        timeout: ms; 0 = no limit, None = the option `bridge.tool_timeout`.
    """

    name: str
    title: str | None
    description: str | None
    annotations: Annotations | None
    approval: bool | str | None
    timeout: int | None


FIELDS = tuple(Mark.__dataclass_fields__)
LISTED = f"valid ones are {', '.join(FIELDS)}"


def refuse(function: Callable[..., Any]) -> None:
    """Raise TypeError for a function that cannot be a tool."""
    if not inspect.isfunction(function):
        raise TypeError(f"mcp_tool decorates functions; {function!r} is not a function")
    name = function.__name__
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{name}: a generator cannot be a tool; return a value and use ctx.progress()")
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{name}: {parameter} cannot be a keyword argument, as arguments of tools are")


@overload
def mcp_tool(name: F) -> F: ...
@overload
def mcp_tool(
    name: str | None = None,
    *,
    title: str | None = None,
    description: str | None = None,
    annotations: Annotations | None = None,
    approval: bool | str | None = None,
    timeout: int | None = None,
) -> Callable[[F], F]: ...
def mcp_tool(
    name: F | str | None = None,
    *,
    title: str | None = None,
    description: str | None = None,
    annotations: Annotations | None = None,
    approval: bool | str | None = None,
    timeout: int | None = None,
    **unknown: object,
) -> F | Callable[[F], F]:
    """Mark a function as a tool; with or without parentheses. The function itself is not changed.

    The schema of the arguments comes from the type hints, their descriptions from `Annotated[…, "text"]` or
    the docstring's `Args:`. A parameter named `ctx` (or annotated `Context`, `AsyncContext`) gets the
    context of the call.

    Args:
        name: name of the tool; default: that of the function.
        title: name for users.
        description: text by which a model chooses the tool; default: the docstring up to its sections.
        annotations: hints, such as `{"read_only": True}`.
        approval: False = the user is never asked, True or a reason = always; default: the hints decide.
        timeout: maximum ms of a call; 0 = no limit; default: the option `bridge.tool_timeout`.
        unknown: refused.

    Raises:
        TypeError: an unknown argument, or the function cannot be a tool.
    """
    for other in unknown:
        near = difflib.get_close_matches(other.removeprefix("needs_"), FIELDS, 1, 0.5)
        raise TypeError(f"mcp_tool has no argument {other}; {f'did you mean {near[0]}?' if near else LISTED}")

    def mark(function: F) -> F:
        refuse(function)
        own = name if isinstance(name, str) else function.__name__
        setattr(function, MARK, Mark(own, title, description, annotations, approval, timeout))
        return function

    return mark(name) if callable(name) else mark
