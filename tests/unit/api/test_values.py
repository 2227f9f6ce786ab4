"""Invalid calls raise before an editor is searched for."""

from __future__ import annotations

import pydoc
import sys
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest

import mcp_tools_nvim.api
from mcp_tools_nvim.api import AsyncClient, Client, call_tool, call_tool_async
from mcp_tools_nvim.api.values import argument_error, json_copy
from tests.support import processes
from tests.support.nvim import ROOT


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        *(({"arguments": wrong}, TypeError) for wrong in ({"x": {1, 2}}, {"x": b"bytes"}, {1: 2}, [1])),
        ({"arguments": {"x": "\udcff"}}, ValueError),
        *(({"name": None}, TypeError), ({"timeout": "5"}, TypeError), ({"timeout": True}, TypeError)),
        *(({"timeout": -1}, ValueError), ({"socket": ""}, ValueError), ({"socket": 7}, TypeError)),
        *(({"on_elicit": {"answer": 1}}, TypeError), ({"on_progress": "print"}, TypeError)),
        ({"arguments": {"value": 1}, "value": 2}, TypeError),
    ],
)
async def test_an_invalid_call_raises(arguments: dict[str, Any], error: type[Exception]) -> None:
    given = {"name": "echo", "arguments": None, "socket": "/nowhere"} | arguments
    positional = (given.pop("name"), given.pop("arguments"))
    with pytest.raises(error):
        call_tool(*positional, **given)
    with pytest.raises(error):
        await call_tool_async(*positional, **given)


def test_without_msgpack_the_error_says_how_to_install_it() -> None:
    bridge = str(ROOT / "bridge")
    program = f"import sys; sys.path.append({bridge!r}); import pydoc, mcp_tools_nvim.api as client\n"
    for code, expected in (
        ("client.call_tool('echo')", 1),
        ("import asyncio; asyncio.run(client.call_tool_async('echo'))", 1),
        ("print(pydoc.plain(pydoc.render_doc(client)))", 0),
    ):
        done = processes.run([sys.executable, "-I", "-S", "-c", program + code], timeout=20)
        assert done.returncode == expected, done.stderr
        if expected:
            last = done.stderr.splitlines()[-1]
            assert "pip install msgpack" in last
            assert last.startswith("ImportError: ")
            assert "During handling" not in done.stderr


def test_the_docstrings_describe_every_option_once() -> None:
    for function in (call_tool, call_tool_async, Client.call_tool, AsyncClient.call_tool):
        shown = pydoc.plain(pydoc.render_doc(function))
        for option in ("arguments", "timeout", "on_progress", "on_log", "on_elicit"):
            assert f"{option}: " in shown.partition("\n\n")[2], function
    for function in (call_tool, call_tool_async):
        assert "socket: " in pydoc.plain(pydoc.render_doc(function)).partition("\n\n")[2]
    assert pydoc.plain(pydoc.render_doc(mcp_tools_nvim.api)).count("timeout: maximum ms") == 1


def test_recursive_arguments_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested"):
        call_tool("echo", value=endless, socket="/nowhere")


def test_values_are_converted_to_json_and_inexact_numbers_refused() -> None:
    given = MappingProxyType({"a": (1, 2.5), "b": MappingProxyType({"c": None}), "d": True})
    assert json_copy(given) == {"a": [1, 2.5], "b": {"c": None}, "d": True}

    class Colour(str, Enum):  # noqa: UP042 - older than StrEnum
        RED = "red"

    assert json_copy({"a": Colour.RED, Colour.RED: 1}) == {"a": "red", "red": 1}
    assert argument_error({"a": [2**53, -(2**53)]}) is None
    for wrong in (2**53 + 1, float("nan"), float("inf")):
        error = argument_error({"a": [wrong]})
        assert (error.code, error.errors[0].field) == ("validation_error", "a[0]")
