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
    """Hints for clients; the first two also count for approval."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    title: str


@dataclass(frozen=True, slots=True)
class Mark:
    """What was said of a tool.

    Attributes:
        name: its name, published with the prefix of the editor.
        title: for users.
        description: for the model; else it comes from the docstring.
        annotations: hints.
        approval: False = runs unasked, True or a reason = asks each time, None = the hints decide.
        timeout: ms; 0 = none, None = that of the option `bridge.tool_timeout`.
    """

    name: str
    title: str | None
    description: str | None
    annotations: Annotations | None
    approval: bool | str | None
    timeout: int | None


FIELDS = tuple(Mark.__dataclass_fields__)
LISTED = f"there are {', '.join(FIELDS)}"


def refuse(function: Callable[..., Any]) -> None:
    """Raise TypeError for what cannot be a tool."""
    if not inspect.isfunction(function):
        raise TypeError(f"mcp_tool marks functions; {function!r} is not a function")
    name = function.__name__
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{name}: a generator cannot be a tool; return a value, tell steps by ctx.progress()")
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{name}: {parameter} cannot be given by name; a tool's arguments have names")


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
    """Mark a function as a tool; with or without parentheses. The function itself stays as it is.

    The schema of the arguments comes from the type hints, their descriptions from `Annotated[…, "text"]` or
    the docstring's `Args:`. A parameter named `ctx` (or annotated `Context`, `AsyncContext`) gets the
    context of the call.

    Args:
        name: of the tool; default: the function's.
        title: for users.
        description: what a model reads to choose it; default: the docstring up to its sections.
        annotations: hints, such as `{"read_only": True}`.
        approval: False = runs unasked, True or a reason = the user is asked each time; default: the hints
            decide.
        timeout: ms that a call may take; 0 = no limit; default: the option `bridge.tool_timeout`.
        unknown: refused, with the name that was meant.

    Raises:
        TypeError: a name that there is not, or what cannot be a tool.
    """
    for other in unknown:
        near = difflib.get_close_matches(other.removeprefix("needs_"), FIELDS, 1, 0.5)
        raise TypeError(f"mcp_tool has no {other}; {f'did you mean {near[0]}?' if near else LISTED}")

    def mark(function: F) -> F:
        refuse(function)
        own = name if isinstance(name, str) else function.__name__
        setattr(function, MARK, Mark(own, title, description, annotations, approval, timeout))
        return function

    return mark(name) if callable(name) else mark
