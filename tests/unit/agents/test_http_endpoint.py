"""An endpoint of an agent at the port, over streamable HTTP."""

from __future__ import annotations

import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from mcp_tools_nvim.agents.router import Endpoints
from tests.support.served import INITIALIZED, TOKEN, Served, events, eventually, next_event, served

from .agents import HTTP, INITIALIZE, SOCKET, Agent, add_tools, agent_at_port, call, request


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served(endpoints=(HTTP, SOCKET)) as running:
        add_tools(running, HTTP.name)
        yield running


@pytest.fixture
async def agent(bridge: Served) -> AsyncIterator[Agent]:
    async with agent_at_port(bridge) as one:
        yield one


async def test_an_endpoint_has_its_own_server_and_tools_only(bridge: Served, agent: Agent) -> None:
    """No other tools, resources or prompts; other clients do not get its tools."""
    result = await agent.initialize()
    assert result["serverInfo"] == {"name": "made-up-editor", "version": "7", "title": "Made up"}
    assert list(result["capabilities"]) == ["tools"]
    assert "instructions" not in result
    listed = await agent.ask(request("tools/list"))
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["place"]
    assert len(await agent.session_key()) == 32
    for name in ("echo", "nvim_echo"):
        assert (await agent.ask(call(name)))["error"]["code"] == -32602
    for method in ("resources/list", "resources/read", "resources/subscribe", "prompts/list", "prompts/get"):
        answer = await agent.ask(request(method, {"uri": "nvim://thing", "name": "p"}))
        assert answer["error"]["code"] == -32601, method
    ours = await bridge.initialize()
    assert [t["name"] for t in (await bridge.ask(ours, "tools/list"))["result"]["tools"]] == ["nvim_echo"]
    assert (await bridge.ask(ours, "tools/call", {"name": "place"}))["error"]["code"] == -32602


async def test_a_session_is_unknown_at_another_endpoint(bridge: Served, agent: Agent) -> None:
    ours = await bridge.initialize()
    await agent.initialize()
    theirs = str(agent.session)
    assert (await bridge.answer(request("tools/list"), theirs))[0] == 404
    assert await bridge.delete(theirs) == 404
    agent.session = ours
    assert await agent.status(request("tools/list")) == 404
    assert await agent.delete() == 404
    assert "result" in await bridge.ask(ours, "tools/list")
    agent.session = theirs
    assert "result" in await agent.ask(request("tools/list"))
    assert await agent.delete() == 200
    assert await agent.status(request("tools/list")) == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        *(({"Authorization": f"Bearer {token}"}, 401) for token in (HTTP.token + "x", SOCKET.token)),
        *(({"Authorization": text}, 401) for text in (f"Nonce {HTTP.token}", HTTP.token)),
        ({"X-Made-Up": SOCKET.token, "Authorization": ""}, 426),
        ({"Host": "attacker.example"}, 403),
        *(({"Origin": each}, 403) for each in ("http://attacker.example", "null", "http://127.0.0.1")),
        ({"Host": "host.docker.internal:1234"}, 200),
        ({"Content-Length": "104857600"}, 413),
    ],
)
async def test_wrong_or_large_requests_are_refused(
    agent: Agent, headers: dict[str, str], status: int
) -> None:
    async with await agent.post(request("initialize"), **headers) as response:
        assert response.status == status or (status == 200 and response.status != 403), await response.text()


@pytest.mark.parametrize(
    "path", ["/sse", "/messages", "/health", "/mcp/../health", "//mcp", "/mcp/x", "/%6dcp/"]
)
async def test_the_token_of_an_endpoint_is_valid_for_its_path_only(agent: Agent, path: str) -> None:
    async with agent.http.get(agent.url + path, headers=agent.head()) as response:
        assert response.status == 404


async def test_the_token_of_an_endpoint_does_not_show_the_state_of_the_bridge(agent: Agent) -> None:
    async with agent.http.get(agent.url + "/health") as response:
        assert await response.json() == {"status": "ok"}


async def test_a_probe_for_a_later_protocol_version_is_answered_and_changes_nothing(agent: Agent) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    answer = await agent.ask(request("server/discover", meta, 0), Mcp_Protocol_Version="2026-07-28")
    assert (answer["id"], answer["error"]["code"]) == (0, -32601)
    await agent.initialize()
    placed = await agent.ask(request("tools/call", {"name": "place", "arguments": {}, **meta}))
    assert "result" in placed


async def test_the_editor_is_notified_of_streams_notifications_and_ends(bridge: Served, agent: Agent) -> None:
    """Losing the stream for a moment is not reported."""
    await agent.initialize()
    assert bridge.editor.agent_events == []
    stream = await agent.get()
    await eventually(lambda: bridge.editor.agent_events)
    session = await agent.session_key()
    about = {"agent": "web", "session": session}
    assert bridge.editor.agent_events == [("opened", about | {"client": "agent", "version": "3"})]
    params = {"pid": 4, "deep": {"x": [1]}}
    connected = {"jsonrpc": "2.0", "method": "ide_connected", "params": params}
    assert await agent.status(connected) == 202
    event, data = bridge.editor.agent_events[-1]
    assert (event, data["method"], json.loads(data["params"])) == ("notified", "ide_connected", params)
    assert await agent.status(connected | {"params": {"text": "x" * 70_000}}) == 202
    assert len(bridge.editor.agent_events) == 2
    stream.close()
    async with agent.listening() as again:
        bridge.editor.emit("push", "web", session, "moved", '{"line":2}', True)
        assert await next_event(again) == {"jsonrpc": "2.0", "method": "moved", "params": {"line": 2}}
    assert await agent.delete() == 200
    await eventually(lambda: bridge.editor.agent_events[-1] == ("left", about))
    assert [name for name, _ in bridge.editor.agent_events] == ["opened", "notified", "left"]


async def test_a_broken_stream_is_not_an_error_for_the_agent(bridge: Served, agent: Agent) -> None:
    """Gemini CLI and Qwen Code treat a chunked body without its last chunk as the end of the connection."""
    await agent.initialize()
    async with await agent.get() as stream:
        assert "Transfer-Encoding" not in stream.headers
        assert stream.headers["Connection"] == "close"
        await eventually(lambda: bridge.editor.agent_events)
        bridge.editor.emit("push", "web", None, "moved", '{"line":2}', False)
        received = events(stream)
        assert (await next_event(received))[2] == ""
        assert (await next_event(received))[2]["params"] == {"line": 2}
        for connection in list(bridge.runner._deadlines.open):  # as when the bridge is killed
            if connection.transport is not None:
                connection.transport.close()
        assert await stream.content.read() == b""
    async with await agent.get() as again:
        assert again.status == 200


async def test_an_agent_with_the_name_of_its_sdk_is_named_by_its_endpoint(bridge: Served) -> None:
    for label, name, shown in (
        ("Gemini CLI", "streamable-http-client", "Gemini CLI"),
        ("Gemini CLI", "agent", "agent"),
        (None, "streamable-http-client", "streamable-http-client"),
    ):
        endpoint = replace(HTTP, label=label)
        bridge.editor.emit("endpoints", (endpoint,))
        await eventually(lambda endpoint=endpoint: endpoint in list(bridge.agents.endpoints))
        bridge.editor.agent_events.clear()
        async with agent_at_port(bridge, endpoint) as agent:
            params = INITIALIZE["params"] | {"clientInfo": {"name": name, "version": "1"}}
            async with await agent.post(INITIALIZE | {"params": params}) as response:
                agent.session = response.headers["Mcp-Session-Id"]
            await agent.status(INITIALIZED)
            async with await agent.get():
                await eventually(lambda: bridge.editor.agent_events)
        assert bridge.editor.agent_events[0][1]["client"] == shown
        assert bridge.reported[-1][-1].name == shown


async def test_a_push_reaches_one_session_or_all_sessions_of_an_agent(bridge: Served, agent: Agent) -> None:
    await agent.initialize()
    ours = await bridge.initialize()
    async with agent_at_port(bridge) as other, agent.listening() as one, bridge.listening(ours) as third:
        await other.initialize()
        async with other.listening() as two:
            key = await agent.session_key()
            bridge.editor.emit("push", "web", key, "one", "{}", False)
            bridge.editor.emit("push", "web", None, "all", '{"text":"é"}', False)
            bridge.editor.emit("push", "socket", None, "none", "{}", False)
            assert (await next_event(one))["method"] == "one"
            assert (await next_event(one))["params"] == {"text": "é"}
            assert (await next_event(two))["method"] == "all"
            bridge.editor.add_tool("late", lambda ctx, arguments: "")
            assert (await next_event(third))[2]["method"] == "notifications/tools/list_changed"
            bridge.editor.emit("push", "web", None, "after", "{}", False)
            # Changed lists are not announced to agents.
            assert (await next_event(two))["method"] == "after"


async def test_a_session_survives_a_restart_and_is_reported_again(bridge: Served, agent: Agent) -> None:
    await agent.initialize()
    key = await agent.session_key()
    async with served(bridge.parts.settings, endpoints=(HTTP,), boot="again") as later:
        add_tools(later, HTTP.name)
        agent.url = later.url
        async with await agent.get():
            await eventually(lambda: later.editor.agent_events)
            assert later.editor.agent_events[0][1]["session"] == key
            assert await agent.session_key() == key


async def test_a_removed_endpoint_or_token_closes_its_sessions(bridge: Served, agent: Agent) -> None:
    await agent.initialize()
    async with agent.listening() as received:
        await eventually(lambda: bridge.editor.agent_events)
        renewed = replace(HTTP, token="another-" + "t" * 40)
        bridge.editor.emit("endpoints", (renewed, SOCKET))
        await eventually(lambda: bridge.editor.agent_events[-1][0] == "left")
        assert [message async for message in received] == []
    assert await agent.status(request("tools/list")) == 401
    agent.headers = {"Authorization": f"Bearer {renewed.token}"}
    await agent.initialize()
    bridge.editor.emit("endpoints", ())
    await eventually(lambda: bridge.editor.reports[-1] == ("endpoints", {"open": [], "failed": {}}))
    assert await agent.status(request("tools/list")) == 401
    assert "result" in await bridge.ask(await bridge.initialize(), "tools/list")


def test_every_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def compare(given: bytes, wanted: bytes) -> bool:
        compared.append(wanted)
        return given == wanted

    monkeypatch.setattr(hmac, "compare_digest", compare)
    endpoints = Endpoints()
    endpoints.set((HTTP, replace(HTTP, name="b", token="t2"), replace(HTTP, name="c", token="t3")))
    for token, name in ((HTTP.token, "web"), ("t3", "c"), (TOKEN, None), ("", None)):
        compared.clear()
        endpoint = endpoints.find_by_token(lambda header, token=token: [f"Bearer {token}"])  # type: ignore[misc]
        assert (endpoint and endpoint.name) == name
        assert len(compared) == 3
    assert endpoints.find_by_token(lambda header: [f"Bearer {HTTP.token}"] * 2) is None


def test_the_repr_of_an_endpoint_has_no_token() -> None:
    assert HTTP.token not in repr(HTTP)
