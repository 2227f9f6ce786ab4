"""Definitions from type hints and docstrings."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional

import jsonschema
import pytest
from pydantic import Field
from typing_extensions import TypedDict

from mcp_tools_nvim.python_tools import AsyncContext, Context, Result, mcp_tool, text
from mcp_tools_nvim.python_tools.scan.schema import definition


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(TypedDict):
    x: float
    label: NotRequired[str]


@dataclass
class Box:
    """A box."""

    corner: Point
    color: Color = Color.RED
    tags: list[str] = field(default_factory=list)


@dataclass
class Tree:
    name: str
    children: list[Tree]


@dataclass
class Garden:
    tree: Tree


TEXT, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
POINT = {"type": "object", "properties": {"x": NUMBER, "label": TEXT}, "required": ["x"]}


def made(function: Any) -> dict[str, Any]:
    return definition(mcp_tool(description="d")(function))


def properties(function: Any) -> dict[str, Any]:
    return made(function)["input_schema"]["properties"]


def test_a_definition_is_made_from_the_signature_and_docstring() -> None:
    @mcp_tool(annotations={"read_only": True}, approval=False, timeout=500, title="Adds")
    def add(a: int, b: Annotated[int, "The other"] = 2, *, words: list[str] | None = None) -> int:
        """Adds two numbers.

        Slowly.

        Args:
            a: The one,
                with more to say.
            b: Not this.
            words (list): Not used.

        Returns:
            The sum.
        """
        return a + b

    assert definition(add) == {
        "name": "add",
        "title": "Adds",
        "description": "Adds two numbers.\n\nSlowly.",
        "annotations": {"read_only": True},
        "needs_approval": False,
        "timeout": 500,
        "input_schema": {
            "type": "object",
            "properties": {
                "a": INTEGER | {"description": "The one, with more to say."},
                "b": INTEGER | {"description": "The other", "default": 2},
                "words": {
                    "anyOf": [{"type": "array", "items": TEXT}, {"type": "null"}],
                    "description": "Not used.",
                },
            },
            "required": ["a"],
            "additionalProperties": False,
        },
    }


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        *((str, TEXT), (int, INTEGER), (float, NUMBER), (bool, {"type": "boolean"}), (Any, {})),
        (list[int], {"type": "array", "items": INTEGER}),
        (dict[str, float], {"type": "object", "additionalProperties": NUMBER}),
        (Literal["a", "b"], TEXT | {"enum": ["a", "b"]}),
        (Optional[str], {"anyOf": [TEXT, {"type": "null"}]}),  # noqa: UP045
        (int | str, {"anyOf": [INTEGER, TEXT]}),
        (Annotated[int, Field(ge=1, le=9)], INTEGER | {"minimum": 1, "maximum": 9}),
        (Color, TEXT | {"enum": ["red", "blue"]}),
        (Path, TEXT | {"format": "path"}),
    ],
)
def test_each_type_hint_has_a_schema(hint: Any, expected: dict[str, Any]) -> None:
    def tool(x: Any) -> None: ...

    tool.__annotations__["x"] = hint
    assert properties(tool) == {"x": expected}


def test_a_default_is_part_of_the_schema_and_a_hint_is_not_needed() -> None:
    def tool(bare, color: Color = Color.BLUE, path: Path = Path("x")) -> None: ...  # type: ignore[no-untyped-def]

    assert properties(tool) == {
        "bare": {},
        "color": TEXT | {"enum": ["red", "blue"], "default": "blue"},
        "path": TEXT | {"format": "path", "default": "x"},
    }


def test_objects_are_inlined_and_recursive_types_referenced() -> None:
    def tool(box: Box, tree: Tree | None = None, garden: Garden | None = None) -> Box: ...

    schema = made(tool)["input_schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    color = TEXT | {"enum": ["red", "blue"], "default": "red"}
    assert schema["properties"]["box"] == {
        "type": "object",
        "properties": {"corner": POINT, "color": color, "tags": {"type": "array", "items": TEXT}},
        "required": ["corner"],
        "description": "A box.",
    }
    assert list(schema["$defs"]) == ["Tree"]
    garden = schema["properties"]["garden"]["anyOf"][0]
    assert garden["properties"] == {"tree": {"$ref": "#/$defs/Tree"}}
    assert list(made(tool)["output_schema"]["properties"]) == ["corner", "color", "tags"]
    value = {"box": {"corner": {"x": 1}}, "tree": {"name": "a", "children": []}}
    jsonschema.validate(value, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value | {"tree": {"name": "a", "children": [1]}}, schema)


def test_names_of_keywords_are_names_of_parameters_too() -> None:
    def draw(default: Point, enum: list[Point], title: Point) -> None: ...

    assert "$ref" not in json.dumps(made(draw))
    assert properties(draw)["default"] == properties(draw)["title"] == POINT


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        *((each, None) for each in (str, None, list[int], dict, Result)),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (Point, POINT),
    ],
)
def test_only_an_object_has_an_output_schema(hint: Any, expected: Any) -> None:
    def tool(): ...  # type: ignore[no-untyped-def]

    tool.__annotations__["return"] = hint
    assert made(tool).get("output_schema") == expected


def test_the_context_is_not_an_argument() -> None:
    def by_name(ctx, n: int): ...  # type: ignore[no-untyped-def]
    def by_hint(n: int, call: Context) -> None: ...
    async def by_async_hint(n: int, call: AsyncContext) -> None: ...
    def text_called_ctx(ctx: str, n: int) -> None: ...

    for function in (by_name, by_hint, by_async_hint):
        assert list(properties(function)) == ["n"]
    assert list(properties(text_called_ctx)) == ["ctx", "n"]


def test_types_that_would_grow_exponentially_are_referenced() -> None:
    pair: Any = Point
    for level in range(24):
        pair = make_dataclass(f"Pair{level}", [("left", pair), ("right", pair)])

    def tool(tree: Any, point: Any) -> None: ...

    tool.__annotations__ = {"tree": pair, "point": Point}
    schema = made(tool)["input_schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert len(json.dumps(schema)) < 100_000
    assert list(schema["properties"]["point"]["properties"]) == ["x", "label"]
    deep = {"x": 1.0}
    for _ in range(3):
        deep = {"left": deep, "right": deep}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"tree": deep, "point": {"x": 1}}, schema)


def test_an_invalid_tool_is_refused_with_the_reason() -> None:
    def steps():  # type: ignore[no-untyped-def]
        yield 1

    def many(*args: int) -> None: ...
    def named(**kwargs: int) -> None: ...
    def silent() -> None: ...
    def odd(x: Context | int) -> None:
        """Odd."""

    for refused, word in ((steps, "generator"), (many, "args"), (named, "kwargs"), (int, "functions")):
        with pytest.raises(TypeError, match=word):
            mcp_tool(refused)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="tool 'silent': add a docstring"):
        definition(mcp_tool(silent))
    with pytest.raises(TypeError, match="tool 'odd'"):
        definition(mcp_tool(odd))


def test_a_decorated_function_can_be_called() -> None:
    @mcp_tool("renamed")
    def double(n: int) -> int:
        """Doubles."""
        return 2 * n

    assert double(4) == 8
    assert definition(double)["name"] == "renamed"
    assert text("x").fields == {"type": "text", "text": "x"}
