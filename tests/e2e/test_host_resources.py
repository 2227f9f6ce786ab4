"""The client's files, from Lua to an official client that declares the extension, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
import pytest_asyncio
from mcp import MCPError
from mcp.client.extension import advertise

from tests.support import host as support
from tests.support.bridge import Bridge, Transport, connect
from tests.support.host import DECLARED, EXTENSION, LIST, READ, File, Host, hosted
from tests.support.nvim import ROOT
from tests.support.raw import Raw, code_of
from tests.support.raw import text_of as text_in
from tests.support.results import error_of, text_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

REGISTER = f"dofile([[{ROOT / 'tests' / 'e2e' / 'host_resources.lua'}]])"
MIB = 1024 * 1024
in_sessions = pytest.mark.parametrize("transport", ["sessions"], indirect=True)


@pytest_asyncio.fixture(loop_scope="module")
async def bridge(tools_bridge: Bridge) -> Bridge:
    """A bridge whose editor has the tools of tests/e2e/host_resources.lua."""
    await tools_bridge.nvim.lua(REGISTER)
    return tools_bridge


def files() -> dict[str, File]:
    return {
        "files://notes": File("änderung\n", "text/markdown", ("mine", "text")),
        "files://table": File("a,b\n", "text/csv", ("mine",)),
        "files://image": File(bytes(range(256)), "image/png"),
    }


def value(result: Any) -> Any:
    assert not result.is_error, result
    return json.loads(text_of(result))


@in_sessions
@pytest.mark.parametrize("place", ["extensions", "experimental"])
async def test_tools_read_and_list_them(bridge: Bridge, transport: Transport, place: str) -> None:
    host = Host(files(), place=place)
    async with hosted(bridge, transport, host) as client:
        assert value(await client.call_tool("nvim_host_look", {})) == [True, True, True]
        for uri in host.files:
            read = value(await client.call_tool("nvim_host_read", {"uri": uri}))
            assert read == host.read(uri)
        assert value(await client.call_tool("nvim_host_size", {"uri": "files://image"})) == 256
        assert host.asked[:3] == [(READ, {"uri": uri}) for uri in host.files]
        host.asked.clear()
        mine = {"tags": ["mine"]}
        table = {"scheme": "files", **mine}
        for filter_, sent, expected in (
            (None, {}, ["notes", "table", "image"]),
            (mine, mine, ["notes", "table"]),
            (table | {"mime_type": "text/csv"}, table | {"mimeType": "text/csv"}, ["table"]),
        ):
            arguments = {} if filter_ is None else {"filter": filter_}
            listed = value(await client.call_tool("nvim_host_list", arguments))
            assert [item["name"] for item in listed["resources"]] == expected
            assert host.asked.pop() == (LIST, {"_meta": {"filter": sent}} if sent else {})


@in_sessions
async def test_resources_and_prompts_read_them(bridge: Bridge, transport: Transport) -> None:
    async with hosted(bridge, transport, Host(files())) as client:
        assert (await client.read_resource("host://first")).contents[0].text == "änderung\n"  # type: ignore[union-attr]
        prompt = await client.get_prompt("about_file", {"uri": "files://table"})
        assert prompt.messages[0].content.text == "About a,b\n"  # type: ignore[union-attr]
        with pytest.raises(MCPError) as missing:
            await client.get_prompt("about_file", {"uri": "files://none"})
        assert missing.value.error.data["code"] == "not_found"


@in_sessions
async def test_errors_of_the_client_reach_the_tool(bridge: Bridge, transport: Transport) -> None:
    errors: list[MCPError] = []

    async def refuse(method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise errors.pop()

    async with hosted(bridge, transport, Host(answer=refuse)) as client:
        for code, data, expected in (
            (support.NOT_FOUND, {"uri": "files://a"}, {"code": "not_found"}),
            (support.RATE_LIMITED, {"retryAfterMs": 120}, {"code": "rate_limited", "retry_after_ms": 120}),
            (support.TOO_LARGE, {"size": 11, "maxSize": 10}, {"code": "too_large"}),
            (-32602, None, {"code": "validation_error"}),
            (-32601, None, {"code": "capability_missing"}),
            (-32603, None, {"code": "tool_error"}),
        ):
            errors.append(MCPError(code, "in its own words", data))
            error = error_of(await client.call_tool("nvim_host_read", {"uri": "files://a"}))
            assert error["code"] == expected["code"]
            assert error["message"].endswith("in its own words")
            seen = (await bridge.nvim.lua("return table.remove(Seen.errors)")) | {"message": "", "errors": 0}
            assert seen == expected | {"message": "", "errors": 0}


@in_sessions
@pytest.mark.slow
async def test_files_may_be_large_up_to_the_limits(bridge: Bridge, transport: Transport) -> None:
    small = DECLARED | {"read": {"enabled": True, "maxSize": 1000}}
    host = Host({"files://a": File("x" * 6 * MIB), "files://b": File(b"\0" * 6 * MIB)})
    async with hosted(bridge, transport, host) as client:
        for uri in host.files:
            assert value(await client.call_tool("nvim_host_size", {"uri": uri})) == 6 * MIB
        for size in (10 * MIB + 1, 21 * MIB):
            host.files["files://a"] = File("x" * size)
            error = error_of(await client.call_tool("nvim_host_size", {"uri": "files://a"}))
            assert error["code"] == "too_large", error
    host = Host({"files://a": File("x" * 1000), "files://b": File("x" * 1001)}, small)
    async with hosted(bridge, transport, host) as client:
        assert value(await client.call_tool("nvim_host_size", {"uri": "files://a"})) == 1000
        error = error_of(await client.call_tool("nvim_host_size", {"uri": "files://b"}))
        assert (error["code"], "maxSize" in error["message"]) == ("too_large", True)


async def test_a_client_with_a_malformed_declaration_has_no_files(bridge: Bridge) -> None:
    for capabilities in (
        {"extensions": {EXTENSION: "yes"}},
        {"extensions": {EXTENSION: [DECLARED]}},
        {"extensions": [EXTENSION], "experimental": {EXTENSION: True}},
        {"extensions": {EXTENSION: {"read": True, "list": [1], "schemes": "files"}}},
    ):
        async with Raw(bridge) as raw:
            await raw.initialize(capabilities=capabilities)
            assert text_in(await raw.call("host_look")) == "[false,false,false]"
            assert code_of(await raw.call("host_read", {"uri": "files://a"})) == "capability_missing"
    async with Raw(bridge) as raw:
        both = {"extensions": {EXTENSION: 5}, "experimental": {EXTENSION: DECLARED}}
        await raw.initialize(capabilities=both)
        assert text_in(await raw.call("host_look")) == "[true,true,true]"


async def test_without_a_session_no_files_are_available(bridge: Bridge) -> None:
    async with connect(bridge, "stateless", extensions=[advertise(EXTENSION, DECLARED)]) as client:
        assert value(await client.call_tool("nvim_host_look", {})) == [False, False, False]
        for tool, arguments in (("read", {"uri": "files://a"}), ("list", {})):
            error = error_of(await client.call_tool(f"nvim_host_{tool}", arguments))
            assert error["code"] == "capability_missing"
            assert "session" in error["message"]


async def test_the_server_does_not_answer_the_extension(bridge: Bridge, transport: Transport) -> None:
    async with connect(bridge, transport) as client:
        assert EXTENSION not in (client.server_capabilities.extensions or {})
    async with Raw(bridge) as raw:
        await raw.initialize()
        for method in (READ, LIST):
            _, answer = await raw.send(raw.message(method, {"uri": "nvim://status"}))
            assert answer["error"]["code"] == -32601
