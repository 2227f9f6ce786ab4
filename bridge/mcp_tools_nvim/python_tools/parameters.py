"""Parameters of a tool's function, and converters for their values."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ..errors import Code
from .context import AsyncContext, Context
from .errors import ToolError

PLAIN = (str, int, float, bool, type(None), list, dict, Any, object)
UNIONS = (Union, types.UnionType)
FIELDS = (typing.Required, typing.NotRequired)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool.

    Attributes:
        name: name of the parameter.
        hint: its type; Any without one.
        default: its default; `inspect.Parameter.empty` if it is required.
    """

    name: str
    hint: Any
    default: Any

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameters:
    """All arguments, and the name of the parameter that gets the context."""

    arguments: tuple[Parameter, ...]
    context: str | None
    returns: Any


def is_context(name: str, hint: Any) -> bool:
    """Whether the parameter gets the context."""
    return (isinstance(hint, type) and issubclass(hint, (Context, AsyncContext))) or (
        name == "ctx" and hint is Any
    )


def of(function: Callable[..., Any]) -> Parameters:
    """Returns the parameters of a function; raises TypeError or NameError for invalid hints."""
    hints = typing.get_type_hints(function, include_extras=True)
    arguments: list[Parameter] = []
    context = None
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, Any)
        if is_context(name, hint):
            context = name
        else:
            arguments.append(Parameter(name, hint, parameter.default))
    return Parameters(tuple(arguments), context, hints.get("return", Any))


def is_plain(hint: Any, above: tuple[Any, ...] = ()) -> bool:
    """Whether JSON values fit the hint without conversion; `above`: the enclosing typed dicts."""
    origin = get_origin(hint)
    if origin is Annotated:  # anything but a description may be a validator that changes the value
        hint, *notes = get_args(hint)
        return all(isinstance(note, str) for note in notes) and is_plain(hint, above)
    if origin in FIELDS:
        return is_plain(get_args(hint)[0], above)
    if origin is dict and get_args(hint)[0] not in (str, Any):
        return False
    if (
        origin is None and getattr(hint, "__total__", None) is not None
    ):  # a typed dict, which JSON gives as it is
        parts = typing.get_type_hints(hint, include_extras=True).values()
        return hint not in above and all(is_plain(part, (*above, hint)) for part in parts)
    if origin is Literal or origin is None:
        return origin is Literal or any(hint is known for known in PLAIN)
    return origin in (list, dict, *UNIONS) and all(is_plain(part, above) for part in get_args(hint))


def is_one_of(hint: Any, wanted: type) -> bool:
    """Whether the hint is that type, also in a union or annotation."""
    origin = get_origin(hint)
    if origin is Annotated or origin in UNIONS:
        return any(is_one_of(part, wanted) for part in get_args(hint) if part is not type(None))
    return hint is wanted or origin is wanted


def converter(parameter: Parameter) -> Callable[[Any], Any]:
    """Returns a function that converts a JSON value to the hint; it raises ToolError for an invalid one."""
    if is_plain(parameter.hint):
        wants_float = is_one_of(parameter.hint, float) and not is_one_of(parameter.hint, int)
        wants_dict = is_one_of(parameter.hint, dict) and not is_one_of(parameter.hint, list)

        # In a `Literal` of enum members, pydantic does not accept the value of a member.
        members = {member.value: member for member in get_args(parameter.hint) if isinstance(member, Enum)}

        def plain(value: Any) -> Any:
            if members and isinstance(value, (str, int)):
                return members.get(value, value)
            if wants_float and type(value) is int:
                return float(value)
            # An empty Lua table is encoded as a list.
            return {} if wants_dict and value == [] else value

        return plain
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(parameter.hint)

    def validate(value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            faults = [
                {"field": ".".join(map(str, (parameter.name, *fault["loc"]))), "message": fault["msg"]}
                for fault in error.errors(include_url=False, include_context=False, include_input=False)
            ]
            summary = "; ".join(f"{fault['field']}: {fault['message']}" for fault in faults[:5])
            raise ToolError(f"Invalid arguments: {summary}", Code.VALIDATION_ERROR, faults) from None

    return validate
