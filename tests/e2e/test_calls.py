"""Tool calls from an official client to Lua and back, over every transport."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client, MCPError

from tests.support.bridge import TRANSPORTS, Bridge, Transport, connect
from tests.support.results import error_of, text_of
from tests.support.shared import Keep

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Transport:
    """All of them, also in `make test-quick`."""
    return request.param


any_transport = pytest.mark.parametrize(
    "transport",
    ["sessions", *(pytest.param(other, marks=pytest.mark.slow) for other in ("stateless", "sse"))],
    indirect=True,
)
"""For behavior behind the transports: one of them is enough for `make test-quick`."""


async def value(client: Client, kind: str, later: bool = False) -> Any:
    return await client.call_tool("nvim_value", {"kind": kind, "later": later})


async def test_a_lua_tool_is_listed_and_called(common_tools: Bridge, transport: Transport) -> None:
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
        assert annotations.read_only_hint is True
        assert (text_of(result), result.is_error, result.structured_content) == ("hällo", False, None)


async def test_instructions_name_the_project(common_tools: Bridge, transport: Transport) -> None:
    async with connect(common_tools, transport) as client:
        root = await common_tools.nvim.lua("return vim.uv.fs_realpath(vim.uv.cwd())")
        assert client.server_info.name == "mcp-tools.nvim"
        assert (client.instructions or "").startswith("Neovim: ")
        assert root in (client.instructions or "")


@any_transport
@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
async def test_results_arrive_unchanged(common_tools: Bridge, transport: Transport, later: bool) -> None:
    expected: dict[str, Any] = {
        "nul": "a\0b",
        "sparse": [1, None, 3],
        "mixed": {"1": "x", "a": "y"},
        "numbers": [3.141592653589793, 2**53 + 2, 1763769600123456, 0.1 + 0.2],
        "empty": [],
        "empty_dict": {},
        "null": None,
        "false": False,
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
        assert failed.meta["x/y"] == 1


@any_transport
@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
async def test_invalid_results_are_errors(common_tools: Bridge, transport: Transport, later: bool) -> None:
    expected = {"function": "result.a[1]", "userdata": "result: userdata", "cycle": "result.t"}
    expected |= {"nan": "result.x", "inf": "result: not a finite number"}
    expected |= {"bytes": "result.lines[2]", "bytes_text": "result: bytes"}
    async with connect(common_tools, transport) as client:
        for kind, place in expected.items():
            error = error_of(await value(client, kind, later))
            assert error["code"] == "not_serializable", kind
            assert place in error["message"], kind
        code = error_of(await value(client, "bytes_error", later))["code"]
        assert code in ("tool_error", "not_serializable")
        assert text_of(await client.call_tool("nvim_echo", {"value": "fine"})) == "fine"


@any_transport
async def test_every_kind_of_failure_has_its_code(common_tools: Bridge, transport: Transport) -> None:
    async with connect(common_tools, transport) as client:

        async def fail(how: str) -> Any:
            return await client.call_tool("nvim_fail", {"how": how})

        assert error_of(await fail("no luck")) == {"code": "tool_error", "message": "no luck"}
        thrown = {"code": "execution_error", "message": "Tool execution error: thrown"}
        assert error_of(await fail("throw")) == thrown
        assert error_of(await fail("object")) == {"code": "stale", "message": "it changed"}
        assert text_of(await fail("twice")) == "first"
        assert text_of(await fail("after")) == "kept"


@any_transport
async def test_invalid_arguments_are_named(common_tools: Bridge, transport: Transport) -> None:
    async with connect(common_tools, transport) as client:
        error = error_of(await client.call_tool("nvim_value", {"later": "yes"}))
        assert error["code"] == "validation_error"
        assert {fault["field"] for fault in error["errors"]} == {"kind", "later"}
        for argument in (
            {"a": {}, "b": [], "c": None},
            [1.5, "é", "\0"],
            2**53,
            -(2**53),
            True,
            "x" * 100_000,
        ):
            result = await client.call_tool("nvim_echo", {"value": argument})
            text = text_of(result)
            assert (text if isinstance(argument, str) else json.loads(text)) == argument
        for value_, field in (({"list": {}}, "list"), ({"map": []}, "map")):
            error = error_of(await client.call_tool("nvim_shapes", value_))
            assert error["errors"][0]["field"] == field
        good = await client.call_tool("nvim_shapes", {"list": [], "map": {}, "added_by_client": 1})
        assert text_of(good) == "fine"
        error = error_of(await client.call_tool("nvim_echo", {"value": {"a": [1, 2**53 + 1]}}))
        assert error["code"] == "validation_error"
        assert error["errors"][0]["field"] == "value.a[1]"


async def test_an_unknown_tool_is_a_protocol_error(common_tools: Bridge, transport: Transport) -> None:
    async with connect(common_tools, transport) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nvim_nope", {})
        assert caught.value.code == -32602
        with pytest.raises(MCPError, match=r"nvim_eccho; did you mean nvim_echo\?"):
            await client.call_tool("nvim_eccho", {})


@any_transport
async def test_structured_results_match_the_output_schema(common_tools: Bridge, transport: Transport) -> None:
    async with connect(common_tools, transport) as client:
        good = await client.call_tool("nvim_promised", {})
        broken = await client.call_tool("nvim_promised", {"ok": False})
        failed = await client.call_tool("nvim_promised", {"fail": True})
        assert good.structured_content == {"n": 5}
        assert json.loads(text_of(good)) == {"n": 5}
        for result, code in ((broken, "invalid_output"), (failed, "not_found")):
            assert result.is_error
            assert result.structured_content is None
            assert result.meta["mcp-tools.nvim/error"]["code"] == code


async def test_progress_arrives_before_the_result(common_tools: Bridge, transport: Transport) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    async with connect(common_tools, transport) as client:
        result = await client.call_tool("nvim_count", {"steps": 3}, progress_callback=note)
        assert text_of(result) == "counted"
        assert seen == [(i, 3, f"step {i}") for i in (1, 2, 3)]


async def test_a_tool_is_cancelled_at_its_own_timeout(common_tools: Bridge, transport: Transport) -> None:
    async with connect(common_tools, transport) as client:
        error = error_of(await client.call_tool("nvim_short", {}))
        assert error["code"] == "timeout"
        assert "100 ms" in error["message"]
        assert await common_tools.nvim.lua("return Seen.cancelled") == ["timeout"]


async def test_a_cancelled_call_stops_the_tool(common_tools: Bridge, transport: Transport) -> None:
    async with connect(common_tools, transport) as client:
        call = asyncio.create_task(client.call_tool("nvim_hold", {}))
        await common_tools.nvim.wait_for("return Seen.running == 1")
        call.cancel()
        await common_tools.nvim.wait_for("return Seen.running == 0")
        reasons = await common_tools.nvim.lua("return Seen.cancelled")
        assert reasons == ["disconnected" if transport == "stateless" else "client"]
        assert text_of(await client.call_tool("nvim_echo", {"value": "on"})) == "on"
        assert await common_tools.nvim.lua("return require('mcp-tools.registry').pending_count()") == 0


@any_transport
async def test_without_a_user_risky_tools_are_denied(common_tools: Bridge, transport: Transport) -> None:
    async with connect(common_tools, transport) as client:
        error = error_of(await client.call_tool("nvim_risky", {}))
        assert error["code"] == "access_denied"
        assert "only a new call asks them" in error["message"]
        assert '"allow"' not in error["message"], "clients must not learn how to disable approval"
        assert await common_tools.nvim.lua("return Seen.late") == 0


@any_transport
async def test_concurrent_calls_get_their_own_results(common_tools: Bridge, transport: Transport) -> None:
    async with connect(common_tools, transport) as client:
        results = await asyncio.gather(
            *(client.call_tool("nvim_later", {"ms": 50 - i, "value": i}) for i in range(50))
        )
        assert [json.loads(text_of(result)) for result in results] == list(range(50))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def limited(nvim_version: str, keep: Keep) -> Bridge:
    """A bridge without a prefix and with small results."""
    return await keep(nvim_version, setup="{ tool_prefix = '', limits = { tool_result = 2000 } }")


@pytest.mark.slow
async def test_a_result_beyond_the_limit_is_refused(limited: Bridge, transport: Transport) -> None:
    async with connect(limited, transport) as client:
        assert len(text_of(await client.call_tool("sized", {"bytes": 2000}))) == 2000
        assert error_of(await client.call_tool("sized", {"bytes": 2001}))["code"] == "too_large"
