"""Results and arguments of tools."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from mcp_tools_nvim.python_tools import ToolError, image
from mcp_tools_nvim.python_tools.errors import exception_outcome as outcome_of_error
from mcp_tools_nvim.python_tools.parameters import Parameter, converter, is_plain
from mcp_tools_nvim.python_tools.results import outcome_of, to_json
from mcp_tools_nvim.python_tools.scan.schema import parse_docstring


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


@dataclass
class Point:
    x: float
    color: Color = Color.RED


class Model(BaseModel):
    day: datetime.date


class Row(TypedDict):
    name: str
    note: NotRequired[str]


def of_json(value: Any) -> Any:
    outcome = outcome_of(value)
    assert outcome["kind"] == "json"
    return json.loads(outcome["text"])


VALUES: list[tuple[Any, Any]] = [
    (Point(1), {"x": 1, "color": "red"}),
    (Model(day=datetime.date(2024, 2, 29)), {"day": "2024-02-29"}),
    (Level.LOW, 1),
    (Path("a/b"), "a/b"),
    ({1}, [1]),
    ((1, "a"), [1, "a"]),
    (datetime.datetime(2024, 1, 2, 3, 4), "2024-01-02T03:04:00"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (decimal.Decimal("1.10"), "1.10"),
    ({1: "number as key"}, {"1": "number as key"}),
]


def test_python_values_become_json() -> None:
    assert of_json([value for value, _ in VALUES]) == [expected for _, expected in VALUES]


def within_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def deep() -> Any:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (["\ud800"], "result[0]: text that is not"),
        ({(1, 2): 3}, "result: the key (1, 2)"),
        ({"loop": within_itself()}, "nested deeper"),
        (deep(), "nested deeper"),
    ],
)
def test_a_value_that_is_not_json_is_refused_with_its_path(value: Any, place: str) -> None:
    with pytest.raises(ToolError) as caught:
        outcome_of(value)

    assert caught.value.code == "not_serializable"
    assert place in caught.value.message


def test_large_integers_are_kept_in_results_and_refused_for_lua() -> None:
    value = {"pi": 3.141592653589793, "text": "12345678901234567890", "edge": 2**53, "large": [-(2**70)]}

    assert of_json(value) == value
    with pytest.raises(ToolError, match=r"large\[0\]: an integer beyond"):
        to_json(value)
    del value["large"]
    to_json(value)


def test_a_result_beyond_the_limit_is_refused() -> None:
    assert outcome_of("x" * 100, 100)["kind"] == "text"
    for value in ("x" * 101, "é" * 51, ["é" * 49], ["x" * 100], image(b"x" * 101, "image/png")):
        with pytest.raises(ToolError) as caught:
            outcome_of(value, 100)
        assert caught.value.code == "too_large"


@pytest.mark.parametrize(
    ("hint", "given", "expected"),
    [
        *((int, 3, 3), (float, 3, 3.0), (float | None, 3, 3.0), (float | int, 3, 3)),
        *((hint, [], {}) for hint in (dict[str, int], dict[str, int] | None, Annotated[dict[str, Any], "n"])),
        (list[int], [], []),
        (Literal["a", "b"], "a", "a"),
        (Row, {"name": "a"}, {"name": "a"}),
        (Color, "red", Color.RED),
        (Point, {"x": 1}, Point(1)),
        (list[Point] | None, None, None),
        (dict[str, Point], {"a": {"x": 1, "color": "red"}}, {"a": Point(1)}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Path, "a", Path("a")),
    ],
)
def test_arguments_are_converted_to_the_type_of_their_hint(hint: Any, given: Any, expected: Any) -> None:
    made = converter(Parameter("x", hint, None))(given)

    assert made == expected
    assert type(made) is type(expected)


def test_an_invalid_argument_is_refused_with_its_path() -> None:
    with pytest.raises(ToolError) as caught:
        converter(Parameter("points", list[Point], None))([{"x": 1}, {"x": "no"}])

    assert caught.value.code == "validation_error"
    assert caught.value.errors[0]["field"] == "points.1.x"


def test_plain_hints_need_no_pydantic() -> None:
    plain = (str, int, Any, list[dict[str, int | None]], Literal[1], Row, Annotated[str, "note"], None | bool)
    for hint in plain:
        assert is_plain(hint), hint
    for hint in (Point, Color, list[Path], tuple[int, int], set[str]):
        assert not is_plain(hint), hint


def test_the_description_and_arguments_of_a_docstring_are_parsed() -> None:
    described, arguments = parse_docstring(
        """Does it.

        With more: to say.

        Args:
            one: First.
            two (int, optional): Second,
                which goes on: here.
            *rest: Others.

        Returns:
            something: else.

        And so on.
        """
    )

    assert described == "Does it.\n\nWith more: to say.\n\nAnd so on."
    assert arguments == {"one": "First.", "two": "Second, which goes on: here.", "rest": "Others."}
    assert parse_docstring(None) == ("", {})


def test_an_exception_becomes_a_short_message_and_a_traceback() -> None:
    try:
        raise ValueError("one\ntwo")
    except ValueError as error:
        outcome = outcome_of_error(error)

    assert outcome["code"] == "execution_error"
    assert outcome["message"] == "Tool execution error: ValueError: one"
    assert "two" in outcome["trace"]
    assert outcome_of_error(KeyError())["message"] == "Tool execution error: KeyError"
    assert len(outcome_of_error(ValueError("x" * 10_000))["message"]) < 1100
    assert "trace" not in outcome_of_error(ToolError("no"))
    with pytest.raises(ValueError, match="nonsense"):
        ToolError("no", "nonsense")
