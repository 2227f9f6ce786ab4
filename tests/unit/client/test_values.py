"""What can be no call of a tool: said at once, before any editor is looked for."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from bridge.client import call_tool, call_tool_async
from bridge.client.values import argument_error, plain


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"arguments": {"x": {1, 2}}}, TypeError),
        ({"arguments": {"x": b"bytes"}}, TypeError),
        ({"arguments": {1: 2}}, TypeError),
        ({"arguments": [1]}, TypeError),
        ({"arguments": {"x": "\udcff"}}, ValueError),
        ({"name": None}, TypeError),
        ({"timeout": "5"}, TypeError),
        ({"timeout": True}, TypeError),
        ({"timeout": -1}, ValueError),
        ({"socket": ""}, ValueError),
        ({"socket": 7}, TypeError),
        ({"arguments": {"value": 1}, "value": 2}, TypeError),
    ],
)
async def test_misuse(arguments: dict[str, Any], error: type[Exception]) -> None:
    """What can be no call raises, before any editor is looked for."""
    given = {"name": "echo", "arguments": None, "socket": "/nowhere"} | arguments
    positional = (given.pop("name"), given.pop("arguments"))
    with pytest.raises(error):
        call_tool(*positional, **given)
    with pytest.raises(error):
        await call_tool_async(*positional, **given)


def test_endless_arguments() -> None:
    """A list that holds itself is refused."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested"):
        call_tool("echo", value=endless, socket="/nowhere")


def test_plain_values() -> None:
    """Tuples and mappings become what JSON has for them; numbers that Lua would round are refused."""
    given = MappingProxyType({"a": (1, 2.5), "b": MappingProxyType({"c": None}), "d": True})
    assert plain(given) == {"a": [1, 2.5], "b": {"c": None}, "d": True}
    assert argument_error({"a": [2**53, -(2**53)]}) is None
    for wrong in (2**53 + 1, float("nan"), float("inf")):
        error = argument_error({"a": [wrong]})
        assert error is not None
        assert (error.code, error.errors[0].field) == ("validation_error", "a[0]")
