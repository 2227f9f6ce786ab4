"""Scopes: a client selects its tools by URL and headers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mcp_tools_nvim.http.scope import MAX_NAMES_CHARS
from mcp_tools_nvim.values import Settings
from tests.support.served import INITIALIZED, Served, events, next_event, served

UNKNOWN = "unknown_tool"


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served() as running:
        prepare(running)
        yield running


def prepare(bridge: Served) -> None:
    reads = {"annotations": {"readOnlyHint": True}}
    bridge.editor.add_tool("lsp_hover", lambda ctx, arguments: "hover", **reads)
    bridge.editor.add_tool("lsp_rename", lambda ctx, arguments: "rename")
    bridge.editor.add_tool("dap_status", lambda ctx, arguments: "status", **reads)


async def initialize(bridge: Served, query: str = "", name: str = "test", **headers: str) -> Any:
    """The id of a session opened with this URL, or status and message of the refusal."""
    message, path = bridge.initialize_message(client=name), path_of(query)
    async with await bridge.post(message, path=path, **headers) as response:
        if response.status != 200:
            return response.status, (await response.json())["error"]["message"]
        session = response.headers["Mcp-Session-Id"]
    assert (await bridge.answer(INITIALIZED, session))[0] == 202
    return session


def path_of(query: str) -> str:
    return query if query.startswith("/") else "/mcp" + query


async def names(bridge: Served, session: str) -> list[str]:
    listed = (await bridge.ask(session, "tools/list"))["result"]["tools"]
    return [tool["name"].removeprefix("nvim_") for tool in listed]


ALL = ["dap_status", "lsp_hover", "lsp_rename"]
SCOPES = [
    ("", {}, ALL),
    ("?tools=lsp", {}, ["lsp_hover", "lsp_rename"]),
    ("?tools=lsp,%20dap_status", {}, ALL),
    ("?tools=lsp_rename&tools=dap", {}, ["dap_status", "lsp_rename"]),
    ("?tools=lsp&readonly", {}, ["lsp_hover"]),
    ("?readonly=1", {}, ["dap_status", "lsp_hover"]),
    ("?readonly=false", {}, ALL),
    ("?tools=all", {}, ALL),
    ("?tools=nothing", {}, []),
    ("/?tools=dap", {}, ["dap_status"]),
    ("?other=1", {"X_MCP_Other": "1"}, ALL),
    ("", {"X_MCP_Toolsets": "lsp"}, ["lsp_hover", "lsp_rename"]),
    ("", {"x_mcp_tools": "lsp_hover,dap_status"}, ["dap_status", "lsp_hover"]),
    ("", {"X_MCP_Toolsets": "dap", "X_MCP_Tools": "lsp_rename"}, ["dap_status", "lsp_rename"]),
    ("", {"X_MCP_Toolsets": "lsp", "X_MCP_Readonly": "true"}, ["lsp_hover"]),
    ("?tools=dap", {"X_MCP_Readonly": "TRUE"}, ["dap_status"]),
]


@pytest.mark.parametrize(("query", "headers", "expected"), SCOPES, ids=[f"{q} {h}" for q, h, _ in SCOPES])
async def test_a_client_sees_and_calls_the_tools_of_its_scope_only(
    bridge: Served, query: str, headers: dict[str, str], expected: list[str]
) -> None:
    """In a session and in a stateless request. A call of another tool is a call of an unknown one."""
    session, path = await initialize(bridge, query, **headers), path_of(query)
    assert await names(bridge, session) == expected
    _, answer = await bridge.answer_stateless("tools/list", path=path, **headers)
    assert [tool["name"].removeprefix("nvim_") for tool in answer["result"]["tools"]] == expected
    for tool in ALL:
        params = {"name": f"nvim_{tool}", "arguments": {}}
        for _, answer in (
            await bridge.answer(bridge.call_message(tool), session),
            await bridge.answer_stateless("tools/call", params, path=path, **headers),
        ):
            assert ("result" in answer) == (tool in expected)
            if tool not in expected:
                error = answer["error"]
                assert (error["code"], error["data"]["code"]) == (-32602, UNKNOWN)
                assert error["message"] == f"Unknown tool: nvim_{tool}"


MALFORMED = [
    ("?Tools=lsp", {}, "'Tools'"),
    ("?tool=lsp", {}, "'tool'"),
    ("?tools=lsp&read-only", {}, "'read-only'"),
    ("", {"X_MCP_Read_Only": "true"}, "'x-mcp-read-only'"),
    ("", {"X_MCP_Exclude_Tools": "lsp_rename"}, "'x-mcp-exclude-tools'"),
    ("?tools=", {}, "tools must be a comma-separated"),
    ("?tools=lsp,,dap", {}, "tools must be a comma-separated"),
    ("?tools=l%00sp", {}, "tools contains invalid"),
    ("?tools=" + "n" * (MAX_NAMES_CHARS + 1), {}, f"tools: more than {MAX_NAMES_CHARS}"),
    ("?readonly=maybe", {}, "readonly must be true or false"),
    ("?catalogue=serach", {}, "catalogue must be direct or search"),
    ("?catalogue=direct&catalogue=search", {}, "catalogue must be direct or search"),
    ("", {"X_MCP_Toolsets": ""}, "X-MCP-Toolsets must be a comma-separated"),
    ("", {"X_MCP_Readonly": ""}, "X-MCP-Readonly must be true or false"),
]


@pytest.mark.parametrize(
    ("query", "headers", "text"), MALFORMED, ids=[f"{q[:20]} {h}" for q, h, _ in MALFORMED]
)
async def test_a_malformed_scope_is_refused_by_name_over_every_transport(
    bridge: Served, query: str, headers: dict[str, str], text: str
) -> None:
    status, message = await initialize(bridge, query, **headers)
    assert status == 400
    assert text in message
    status, answer = await bridge.answer_stateless("tools/list", path="/mcp" + query, **headers)
    assert status == 400
    assert text in answer["error"]["message"]
    head = {name.replace("_", "-"): value for name, value in headers.items()}
    head["Accept"] = "text/event-stream"
    async with bridge.http.get(bridge.url + "/sse" + query, headers=head) as response:
        assert response.status == 400
        assert text in (await response.json())["error"]["message"]


async def test_the_longest_scope_fits_in_a_session_id(bridge: Served) -> None:
    query = "?tools=" + ",".join(f"{n:07x}" for n in range(7**7, 7**7 + MAX_NAMES_CHARS // 7))
    assert isinstance(await initialize(bridge, query, name="n" * 200), str)


async def test_the_url_that_opens_an_sse_stream_sets_its_scope(bridge: Served) -> None:
    head = {"Accept": "text/event-stream"}
    async with bridge.http.get(bridge.url + "/sse?tools=dap&readonly", headers=head) as response:
        stream = events(response)
        path = (await next_event(stream))[2]
        for message in (bridge.initialize_message("2024-11-05"), INITIALIZED, bridge.message("tools/list")):
            assert (await bridge.answer(message, path=path))[0] == 202
        await next_event(stream)
        listed = (await next_event(stream))[2]["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["nvim_dap_status"]


async def test_a_session_keeps_its_scope_after_a_restart(tmp_path: Path) -> None:
    settings = Settings(state_dir=str(tmp_path))
    async with served(settings, boot="first") as bridge:
        prepare(bridge)
        session = await initialize(bridge, "?tools=lsp&readonly")
        whole = await initialize(bridge)
        wider = {"path": "/mcp?tools=all", "X_MCP_Tools": "dap_status"}
        _, answer = await bridge.answer(bridge.message("tools/list"), session, **wider)
        assert len(answer["result"]["tools"]) == 1
    async with served(settings, boot="second") as bridge:
        prepare(bridge)
        _, answer = await bridge.answer(bridge.call_message("lsp_rename"), session)
        assert answer["error"]["data"]["code"] == UNKNOWN
        assert await names(bridge, session) == ["lsp_hover"]
        assert await names(bridge, whole) == ["dap_status", "lsp_hover", "lsp_rename"]


async def test_a_change_is_announced_only_to_sessions_whose_list_has_changed(bridge: Served) -> None:
    lsp, whole, unread = [await initialize(bridge, query) for query in ("?tools=lsp", "", "?tools=dap")]
    for session in (lsp, whole):
        await names(bridge, session)
    async with (
        bridge.listening(lsp) as of_lsp,
        bridge.listening(whole) as of_whole,
        bridge.listening(unread) as of_unread,
    ):
        for tool, streams in (("dap_step", (of_whole, of_unread)), ("lsp_format", (of_lsp, of_whole))):
            bridge.editor.add_tool(tool, lambda ctx, arguments: "")
            for stream in streams:
                assert (await next_event(stream))[2]["method"] == "notifications/tools/list_changed"
        assert await names(bridge, lsp) == ["lsp_format", "lsp_hover", "lsp_rename"]
        with pytest.raises(TimeoutError):
            await next_event(of_lsp, 0.2)


async def test_more_scopes_than_are_cached_are_served(bridge: Served) -> None:
    for n in [*range(20), 0]:
        _, answer = await bridge.answer_stateless("tools/list", path=f"/mcp?tools=lsp,x{n}")
        assert len(answer["result"]["tools"]) == 2


async def test_parameter_headers_reveal_no_tool_outside_the_scope(bridge: Served) -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    bridge.editor.add_tool("dap_deploy", lambda ctx, arguments: "done", inputSchema=schema)
    texts = []
    for name in ("nvim_dap_deploy", "nvim_dap_nothing"):
        params = {"name": name, "arguments": {"region": "eu"}}
        status, answer = await bridge.answer_stateless("tools/call", params, path="/mcp?tools=lsp")
        texts.append((status, answer["error"]["message"].replace(name, "")))
    assert texts[0] == texts[1]
    params["name"] = "nvim_dap_deploy"
    assert (await bridge.answer_stateless("tools/call", params, path="/mcp?tools=dap"))[0] == 400
