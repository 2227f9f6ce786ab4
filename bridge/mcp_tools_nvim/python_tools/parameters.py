"""The parameters of a tool's function, and values made ready for them."""

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
        name: as the function has it.
        hint: its type; Any without one.
        default: its default; `inspect.Parameter.empty` when it must be given.
    """

    name: str
    hint: Any
    default: Any

    @property
    def required(self) -> bool:
        """Must it be given?"""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameters:
    """All of them, and the name of the one that gets the context."""

    arguments: tuple[Parameter, ...]
    context: str | None
    returns: Any


def is_context(name: str, hint: Any) -> bool:
    """Does the parameter want the context?"""
    return (isinstance(hint, type) and issubclass(hint, (Context, AsyncContext))) or (
        name == "ctx" and hint is Any
    )


def of(function: Callable[..., Any]) -> Parameters:
    """The parameters of a function; raises TypeError or NameError when its hints cannot be read."""
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
    """Is a value as it comes from JSON what the hint promises? `above` are the typed dicts around it."""
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
    """Is the hint that type, whatever stands around it?"""
    origin = get_origin(hint)
    if origin is Annotated or origin in UNIONS:
        return any(is_one_of(part, wanted) for part in get_args(hint) if part is not type(None))
    return hint is wanted or origin is wanted


def converter(parameter: Parameter) -> Callable[[Any], Any]:
    """What makes a JSON value fit the hint; raises ToolError for one that does not."""
    if is_plain(parameter.hint):
        wants_float = is_one_of(parameter.hint, float) and not is_one_of(parameter.hint, int)
        wants_dict = is_one_of(parameter.hint, dict) and not is_one_of(parameter.hint, list)

        # pydantic does not take the value of an enum for its member in a literal.
        members = {member.value: member for member in get_args(parameter.hint) if isinstance(member, Enum)}

        def plain(value: Any) -> Any:
            if members and isinstance(value, (str, int)):
                return members.get(value, value)
            if wants_float and type(value) is int:
                return float(value)
            # An empty Lua table does not say which of the two it is.
            return {} if wants_dict and value == [] else value

        return plain
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(parameter.hint)

    def validate(value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            faults = [
                {
                    "field": ".".join(map(str, (parameter.name, *fault["loc"]))),
                    "message": fault["msg"],
                }
                for fault in error.errors(include_url=False, include_context=False, include_input=False)
            ]
            said = "; ".join(f"{fault['field']}: {fault['message']}" for fault in faults[:5])
            raise ToolError(f"Invalid arguments: {said}", Code.VALIDATION_ERROR, faults) from None

    return validate
