"""Definitions of tools from type hints and docstrings.

Imports pydantic, so only the scanner imports this.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError

from .. import parameters
from ..decorator import MARK, Mark
from ..errors import ToolError
from ..parameters import Parameter
from ..results import Block, Result, to_json

SECTION = re.compile(r"(\w[\w ]*):\s*$")
ARGUMENTS = ("args", "arguments", "parameters")
SECTIONS = {
    *ARGUMENTS,
    "attributes",
    "example",
    "examples",
    "keyword args",
    "note",
    "notes",
    "raises",
    "returns",
    "see also",
    "todo",
    "warning",
    "warnings",
    "yields",
}
ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
REF = "#/$defs/"
MAX_INLINED = 500
"""Maximum values in a definition that is inlined."""
NO_DATA = (inspect.Parameter.empty, Any, None, type(None), Block, Result)
DATA = ("default", "enum", "const", "examples")
"""Keywords whose values are data, not schemas."""


class Schemas(GenerateJsonSchema):
    """pydantic's schemas without titles derived from names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Returns False: the name of the property is enough."""
        return False


def inlined(schema: Any, small: dict[str, Any]) -> Any:
    """Returns a schema without titles, and with `small` definitions in place of references to them."""
    if isinstance(schema, list):
        return [inlined(item, small) for item in schema]
    if not isinstance(schema, dict):
        return schema
    name = str(schema.get("$ref", "")).removeprefix(REF)
    if name in small:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return inlined(small[name] | beside, small)
    found = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
    for key, value in found.items():
        if key == "properties" and isinstance(value, dict):  # their names may be those of keywords
            found[key] = {each: inlined(of, small) for each, of in value.items()}
        elif key not in DATA:
            found[key] = inlined(value, small)
    return found


def references(schema: Any) -> set[str]:
    """Returns the names of all definitions that a schema refers to directly."""
    if isinstance(schema, list):
        return set().union(*map(references, schema))
    if not isinstance(schema, dict):
        return set()
    found = set().union(*map(references, schema.values()))
    ref = schema.get("$ref")
    return found | {ref.removeprefix(REF)} if isinstance(ref, str) else found


def reachable(names: set[str], definitions: dict[str, Any]) -> set[str]:
    """Returns these names and all that their definitions refer to."""
    found: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name in definitions and name not in found:
            found.add(name)
            queue.extend(references(definitions[name]))
    return found


def small_ones(definitions: dict[str, Any]) -> dict[str, Any]:
    """Returns definitions that are not recursive, and small enough to inline: nested duplication would grow
    exponentially.
    """
    sizes: dict[str, int] = {}

    def size_of(schema: Any) -> int:
        if isinstance(schema, list):
            return 1 + sum(map(size_of, schema))
        if not isinstance(schema, dict):
            return 1
        name = str(schema.get("$ref", "")).removeprefix(REF)
        return 1 + sum(map(size_of, schema.values())) + (size_named(name) if is_small(name) else 0)

    def size_named(name: str) -> int:
        if name not in sizes:
            sizes[name] = size_of(definitions[name])
        return sizes[name]

    def is_small(name: str) -> bool:
        within_itself = name not in definitions or name in reachable(
            references(definitions[name]), definitions
        )
        return not within_itself and size_named(name) <= MAX_INLINED

    return {name: schema for name, schema in definitions.items() if is_small(name)}


def with_definitions(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema with the definitions that are not inlined."""
    small = small_ones(definitions)
    schema = inlined(schema, small)
    whole = {name: inlined(each, small) for name, each in definitions.items() if name not in small}
    needed = reachable(references(schema), whole)
    if needed:
        schema["$defs"] = {name: whole[name] for name in sorted(needed)}
    return schema


def note_of(hint: Any) -> str | None:
    """Returns the text in `Annotated[…, "text"]`."""
    if get_origin(hint) is not Annotated:
        return None
    return next((note for note in get_args(hint)[1:] if isinstance(note, str)), None)


def set_default(schema: dict[str, Any], parameter: Parameter, adapter: TypeAdapter[Any]) -> None:
    """Adds a default that JSON supports; Python fills in any other."""
    if parameter.required or parameter.default is None:
        return
    try:
        default = adapter.dump_python(parameter.default, mode="json", warnings="error")
        to_json(default)
    except (PydanticSerializationError, ValueError, TypeError, ToolError):
        schema.pop("default", None)
    else:
        if default is not None:  # pydantic's value for NaN as well
            schema["default"] = default


def input_schema(function: Callable[..., Any], notes: dict[str, str]) -> dict[str, Any]:
    """Returns the schema of a function's arguments."""
    arguments = parameters.of(function).arguments
    adapters = {argument.name: TypeAdapter(argument.hint) for argument in arguments}
    inputs = [(name, "validation", adapter) for name, adapter in adapters.items()]
    schemas, shared = TypeAdapter.json_schemas(inputs, schema_generator=Schemas)  # type: ignore[arg-type]
    properties: dict[str, Any] = {}
    for argument in arguments:
        schema = dict(schemas[(argument.name, "validation")])
        note = note_of(argument.hint) or notes.get(argument.name)
        if note:
            schema["description"] = note
        set_default(schema, argument, adapters[argument.name])
        properties[argument.name] = schema
    whole: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        # The function would raise a TypeError for other names.
        "additionalProperties": False,
    }
    required = [argument.name for argument in arguments if argument.required]
    if required:
        whole["required"] = required
    return with_definitions(whole, shared.get("$defs", {}))


def output_schema(function: Callable[..., Any]) -> dict[str, Any] | None:
    """Returns the schema of the result if the hint describes an object; else None."""
    hint = parameters.of(function).returns
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if any(hint is known for known in NO_DATA):
        return None
    try:
        schema = TypeAdapter(hint).json_schema(schema_generator=Schemas, mode="serialization")
    except PydanticUserError:
        return None
    schema = with_definitions(
        {key: value for key, value in schema.items() if key != "$defs"}, schema.get("$defs", {})
    )
    promise = set(schema) - {"type", "description"}
    if schema.get("additionalProperties") is True:
        promise.discard("additionalProperties")
    return schema if schema.get("type") == "object" and promise else None


def definition(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the definition of a marked function.

    Raises:
        TypeError: the hints have no schema, or there is no description.
    """
    mark: Mark = getattr(function, MARK)
    text, notes = parse_docstring(function.__doc__)
    description = mark.description or text
    if not description:
        raise TypeError(f"tool '{mark.name}': add a docstring or description=")
    try:
        arguments, result = input_schema(function, notes), output_schema(function)
    except PydanticUserError as error:
        raise TypeError(f"tool '{mark.name}': {error.message.splitlines()[0]}") from error
    made: dict[str, Any] = {
        "name": mark.name,
        "title": mark.title,
        "description": description,
        "input_schema": arguments,
        "output_schema": result,
        "annotations": mark.annotations,
        "needs_approval": mark.approval,
        "timeout": mark.timeout,
    }
    return {key: value for key, value in made.items() if value is not None}


def parse_docstring(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Split a docstring into the description and the descriptions of the arguments."""
    text: list[str] = []
    arguments: dict[str, str] = {}
    section = ""
    name: str | None = None
    indent: int | None = None
    for line in inspect.cleandoc(docstring or "").splitlines():
        heading = SECTION.match(line)
        if heading and heading[1].lower() in SECTIONS:
            section, name, indent = heading[1].lower(), None, None
        elif not section:
            text.append(line)
        elif line.strip() and not line.startswith(" "):
            section = ""  # no indentation: the section has ended
            text.append(line)
        elif section in ARGUMENTS and line.strip():
            depth = len(line) - len(line.lstrip())
            indent = depth if indent is None else indent
            entry = ENTRY.match(line.strip()) if depth <= indent else None
            if entry:
                name = entry[1]
                arguments[name] = entry[2]
            elif name:
                arguments[name] = f"{arguments[name]} {line.strip()}".strip()
    return "\n".join(text).strip(), arguments
