"""Tool calls from an official client to Lua and back, over every transport."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
from mcp import Client, MCPError

from tests.support.bridge import TRANSPORTS, Bridge, Transport, connect
from tests.support.results import error_of, text_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Transport:
    """All of them, in `make test-quick` as well."""
    chosen: Transport = request.param
    return chosen


alike = pytest.mark.parametrize(
    "transport",
    ["sessions", *(pytest.param(other, marks=pytest.mark.slow) for other in ("stateless", "sse"))],
    indirect=True,
)
"""What is tested lies behind the transports, so one of them is enough for `make test-quick`."""


async def value(client: Client, kind: str, later: bool = False) -> Any:
    return await client.call_tool("nvim_value", {"kind": kind, "later": later})


async def test_lists_and_calls(common_tools: Bridge, transport: Transport) -> None:
    """A tool registered in Lua is listed with its schema and called by its published name."""
    async with connect(common_tools, transport) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        result = await client.call_tool("nvim_test_echo", {"text": "hällo"})

        assert tools["nvim_test_echo"].input_schema == {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "Text to return"}},
            "required": ["text"],
        }
        assert list(tools) == sorted(tools)
        annotations = tools["nvim_test_echo"].annotations
        assert annotations is not None
        assert annotations.read_only_hint is True
        assert (text_of(result), result.is_error, result.structured_content) == ("hällo", False, None)


async def test_instructions_name_the_project(common_tools: Bridge, transport: Transport) -> None:
    """They are the same at every start, or agents would miss their prompt caches."""
    async with connect(common_tools, transport) as client:
        root = await common_tools.nvim.lua("return vim.uv.fs_realpath(vim.uv.cwd())")

        assert client.server_info.name == "mcp-tools.nvim"
        assert (client.instructions or "").startswith("Neovim: ")
        assert root in (client.instructions or "")


@alike
@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
async def test_results_of_every_kind(common_tools: Bridge, transport: Transport, later: bool) -> None:
    """What Lua gives arrives as it was, whether at once or later."""
    expected: dict[str, Any] = {
        "nul": "a\0b",
        "sparse": [1, None, 3],
        "mixed": {"1": "x", "a": "y"},
        "empty": [],
        "empty_dict": {},
        "null": None,
        "false": False,
        "numbers": [3.141592653589793, 2**53 + 2, 1763769600123456, 0.1 + 0.2],
    }
    async with connect(common_tools, transport) as client:
        for kind, wanted in expected.items():
            result = await value(client, kind, later)
            text = text_of(result)
            assert not result.is_error, (kind, text)
            assert (text if isinstance(wanted, str) else json.loads(text)) == wanted
        assert (await value(client, "nil", later)).content == []
        content = (await value(client, "content", later)).content
        assert [block.type for block in content] == ["text", "image", "audio", "resource", "resource_link"]
        assert base64.b64decode(content[1].data) == b"\0\1"
        failed = await value(client, "result", later)
        assert failed.is_error
        assert failed.meta is not None
        assert failed.meta["x/y"] == 1


@alike
@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
async def test_results_that_cannot_be_sent(common_tools: Bridge, transport: Transport, later: bool) -> None:
    """What cannot be sent is an error that names the place, and the next call works."""
    expected = {
        "function": "result.a[1]",
        "userdata": "result: userdata",
        "cycle": "result.t",
        "nan": "result.x",
        "inf": "result: not a finite number",
        "bytes": "result.lines[2]",
        "bytes_text": "result: bytes",
    }
    async with connect(common_tools, transport) as client:
        for kind, place in expected.items():
            error = error_of(await value(client, kind, later))
            assert error["code"] == "not_serializable", kind
            assert place in error["message"], kind
        assert error_of(await value(client, "bytes_error", later))["code"] in (
            "tool_error",
            "not_serializable",
        )
        assert text_of(await client.call_tool("nvim_echo", {"value": "fine"})) == "fine"


@alike
async def test_failures(common_tools: Bridge, transport: Transport) -> None:
    """A tool's own failure, a throw, an object thrown, two answers, a throw after the answer."""
    async with connect(common_tools, transport) as client:

        async def fail(how: str) -> Any:
            return await client.call_tool("nvim_fail", {"how": how})

        assert error_of(await fail("no luck")) == {"code": "tool_error", "message": "no luck"}
        assert error_of(await fail("throw")) == {
            "code": "execution_error",
            "message": "Tool execution error: thrown",
        }
        assert error_of(await fail("object")) == {"code": "stale", "message": "it changed"}
        assert text_of(await fail("twice")) == "first"
        assert text_of(await fail("after")) == "kept"


@alike
async def test_arguments(common_tools: Bridge, transport: Transport) -> None:
    """Bad arguments are named all at once; nulls, empties and big integers are what they should be."""
    async with connect(common_tools, transport) as client:
        error = error_of(await client.call_tool("nvim_value", {"later": "yes"}))
        assert error["code"] == "validation_error"
        assert {fault["field"] for fault in error["errors"]} == {"kind", "later"}
        for given in ({"a": {}, "b": [], "c": None}, [1.5, "é", "\0"], 2**53, -(2**53), True, "x" * 100_000):
            result = await client.call_tool("nvim_echo", {"value": given})
            text = text_of(result)
            got = text if isinstance(given, str) else json.loads(text)
            assert got == given
        for value_, field in (({"list": {}}, "list"), ({"map": []}, "map")):
            error = error_of(await client.call_tool("nvim_shapes", value_))
            assert error["errors"][0]["field"] == field
        good = await client.call_tool("nvim_shapes", {"list": [], "map": {}, "added_by_client": 1})
        assert text_of(good) == "fine"
        error = error_of(await client.call_tool("nvim_echo", {"value": {"a": [1, 2**53 + 1]}}))
        assert error["code"] == "validation_error"
        assert error["errors"][0]["field"] == "value.a[1]"


async def test_unknown_tool(common_tools: Bridge, transport: Transport) -> None:
    """A tool that is not there is a protocol error; one that is near is named."""
    async with connect(common_tools, transport) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nvim_nope", {})

        assert caught.value.code == -32602
        with pytest.raises(MCPError, match=r"Unknown tool: nvim_eccho; did you mean nvim_echo\?"):
            await client.call_tool("nvim_eccho", {})


@alike
async def test_promised_results(common_tools: Bridge, transport: Transport) -> None:
    """A tool with an output schema sends structured content, keeps its promise, and errors stay out of it."""
    async with connect(common_tools, transport) as client:
        good = await client.call_tool("nvim_promised", {})
        broken = await client.call_tool("nvim_promised", {"ok": False})
        failed = await client.call_tool("nvim_promised", {"fail": True})

        assert good.structured_content == {"n": 5}
        assert json.loads(text_of(good)) == {"n": 5}
        for result, code in ((broken, "invalid_output"), (failed, "not_found")):
            assert result.is_error
            assert result.structured_content is None
            assert result.meta is not None
            assert result.meta["mcp-tools.nvim/error"]["code"] == code


async def test_progress_arrives_while_the_tool_works(common_tools: Bridge, transport: Transport) -> None:
    """Progress comes in order, before the result."""
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    async with connect(common_tools, transport) as client:
        result = await client.call_tool("nvim_count", {"steps": 3}, progress_callback=note)

        assert text_of(result) == "counted"
        assert seen == [(i, 3, f"step {i}") for i in (1, 2, 3)]


async def test_timeout_reaches_the_tool(common_tools: Bridge, transport: Transport) -> None:
    """A tool that never answers is ended at its own timeout, and told."""
    async with connect(common_tools, transport) as client:
        error = error_of(await client.call_tool("nvim_short", {}))

        assert error["code"] == "timeout"
        assert "100 ms" in error["message"]
        assert await common_tools.nvim.lua("return Seen.cancelled") == ["timeout"]


async def test_cancel_reaches_the_tool(common_tools: Bridge, transport: Transport) -> None:
    """A client that gives up a call stops the tool."""
    async with connect(common_tools, transport) as client:
        call = asyncio.create_task(client.call_tool("nvim_hold", {}))
        await common_tools.nvim.wait_for("return Seen.running == 1")
        call.cancel()
        await common_tools.nvim.wait_for("return Seen.running == 0")

        reasons = await common_tools.nvim.lua("return Seen.cancelled")
        assert reasons == ["disconnected" if transport == "stateless" else "client"]
        assert text_of(await client.call_tool("nvim_echo", {"value": "on"})) == "on"
        assert await common_tools.nvim.lua("return require('mcp-tools.registry').pending_count()") == 0


@alike
async def test_approval_is_refused_without_a_person(common_tools: Bridge, transport: Transport) -> None:
    """A tool that can destroy does not run when nobody can be asked; the client hears what it can do."""
    async with connect(common_tools, transport) as client:
        error = error_of(await client.call_tool("nvim_risky", {}))

        assert error["code"] == "access_denied"
        assert "tell them, then call it again" in error["message"]
        assert '"allow"' not in error["message"], "how to take the guard away is for the person alone"
        assert await common_tools.nvim.lua("return Seen.late") == 0


@alike
async def test_many_calls_at_once(common_tools: Bridge, transport: Transport) -> None:
    """Overlapping calls each get their own answer."""
    async with connect(common_tools, transport) as client:
        results = await asyncio.gather(
            *(client.call_tool("nvim_later", {"ms": 50 - i, "value": i}) for i in range(50))
        )

        assert [json.loads(text_of(result)) for result in results] == list(range(50))
