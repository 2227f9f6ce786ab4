"""The session era over streamable HTTP."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.memory import ToolContext
from tests.support.served import LEGACY, Served, events, next_event, served


@pytest.fixture
async def bridge() -> AsyncIterator[Served]:
    async with served() as running:
        running.editor.add_tool("echo", lambda ctx, arguments: arguments.get("text", "nothing"))
        yield running


async def test_initialize_opens_a_session(bridge: Served) -> None:
    """The answer names server, capabilities and a session id; the tools are those of the editor."""
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    async with await bridge.post(bridge.message("initialize", params)) as response:
        result = (await response.json())["result"]
        session = response.headers["Mcp-Session-Id"]
    assert result["serverInfo"]["name"] == "mcp-tools.nvim"
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
    }
    assert result["protocolVersion"] == "2025-06-18"
    listed = await bridge.ask(session, "tools/list")
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["nvim_echo"]
    assert (await bridge.call(session, "echo", {"text": "hi"}))["content"] == [{"type": "text", "text": "hi"}]
    assert (await bridge.call(session, "echo"))["content"] == [{"type": "text", "text": "nothing"}]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_handshake_version(bridge: Served, version: str) -> None:
    """Each is negotiated as asked, and calls work, with or without the header that names it."""
    session = await bridge.initialize(version)
    for headers in ({}, {"MCP_Protocol_Version": version}):
        async with await bridge.post(
            bridge.call_message("echo", {"text": "x"}), session, **headers
        ) as response:
            assert (await response.json())["result"]["content"][0]["text"] == "x"


async def test_unknown_versions_are_negotiated(bridge: Served) -> None:
    """A client from the future gets the newest version with a handshake, whatever its header says."""
    params = {
        "protocolVersion": "2099-01-01",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    for headers in ({}, {"MCP_Protocol_Version": "2099-01-01"}, {"MCP_Protocol_Version": LEGACY}):
        async with await bridge.post(bridge.message("initialize", params), **headers) as response:
            assert (await response.json())["result"]["protocolVersion"] == LEGACY


async def test_a_bad_initialize_leaves_no_session(bridge: Served) -> None:
    """Its answer is an error without a session id."""
    async with await bridge.post(bridge.message("initialize", {"protocolVersion": 5})) as response:
        assert (await response.json())["error"]["code"] == -32602
        assert "Mcp-Session-Id" not in response.headers
    async with bridge.http.get(bridge.url + "/health") as response:
        assert (await response.json())["sessions"]["count"] == 0


async def test_the_root_path_is_the_same_endpoint(bridge: Served) -> None:
    """Clients configured for `/` share the sessions of `/mcp`."""
    session = await bridge.initialize()
    async with await bridge.post(bridge.call_message("echo"), session, path="/") as response:
        assert response.status == 200


async def test_a_request_before_initialized(bridge: Served) -> None:
    """A ping is answered in every state, and notifications get 202."""
    session = await bridge.initialize()
    assert (await bridge.ask(session, "ping"))["result"] == {}
    for body in (
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"jsonrpc": "2.0", "method": "no/such"},
        {"jsonrpc": "2.0", "id": 12345, "result": {}},
    ):
        async with await bridge.post(body, session) as response:
            assert (response.status, await response.read()) == (202, b"")


async def test_plain_json_until_something_is_streamed(bridge: Served) -> None:
    """A call without progress is plain JSON; the first progress makes the answer an event stream."""
    session = await bridge.initialize()

    async def work(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        for step in range(1, 4):
            ctx.progress(step, 3, f"step {step}")
            await asyncio.sleep(0)
        return "done"

    bridge.editor.add_tool("work", work)
    async with await bridge.post(bridge.call_message("work"), session) as response:
        assert response.content_type == "application/json"
    async with await bridge.post(bridge.call_message("work", progressToken="t"), session) as response:
        assert response.content_type == "text/event-stream"
        seen = [event async for event in events(response)]
    assert seen[0][2] == ""
    progress = [data["params"] for _, _, data in seen[1:-1]]
    assert all(params["progressToken"] == "t" for params in progress)
    done = [params["progress"] for params in progress]
    assert done == sorted(set(done))
    assert progress[-1]["total"] == 3
    assert seen[-1][2]["result"]["content"][0]["text"] == "done"
    ids = [id_ for id_, _, _ in seen]
    assert len(set(ids)) == len(ids)
    assert all(id_.startswith("boot-") for id_ in ids)


async def test_older_clients_get_no_empty_event(bridge: Served) -> None:
    """The event that primes a stream came with 2025-11-25; before, the first event is a message."""
    session = await bridge.initialize("2025-06-18")

    async def work(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        ctx.log("info", {"x": 1})
        await asyncio.sleep(0)
        return "done"

    bridge.editor.add_tool("work", work)
    async with await bridge.post(bridge.call_message("work"), session) as response:
        text = await response.text()
    assert text.startswith("retry: 1500\nid: boot-")
    assert '"notifications/message"' in text
    assert '"logger":"nvim_work"' in text


async def test_log_levels_of_a_session(bridge: Served) -> None:
    """`info` at first, then what the client sets; unknown levels of tools count as `info`."""

    async def work(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        for level in ("debug", "info", "warn", "error", "odd"):
            ctx.log(level, level)
        await asyncio.sleep(0)
        return "done"

    bridge.editor.add_tool("work", work)
    session = await bridge.initialize()

    async def logged() -> list[tuple[str, str]]:
        async with await bridge.post(bridge.call_message("work"), session) as response:
            if response.content_type == "application/json":
                return []
            messages = [data for _, _, data in [event async for event in events(response)] if data]
            return [(m["params"]["level"], m["params"]["data"]) for m in messages if "method" in m]

    assert await logged() == [("info", "info"), ("warning", "warn"), ("error", "error"), ("info", "odd")]
    assert (await bridge.ask(session, "logging/setLevel", {"level": "error"}))["result"] == {}
    assert await logged() == [("error", "error")]
    assert (await bridge.ask(session, "logging/setLevel", {"level": "emergency"}))["result"] == {}
    assert await logged() == []
    assert (await bridge.ask(session, "logging/setLevel", {"level": "loud"}))["error"]["code"] == -32602


async def test_the_answers_of_a_batch_are_bounded_together(bridge: Served) -> None:
    """Beyond the bound a member hears that its answer is too large; the others are answered."""
    bridge.editor.add_tool("large", lambda ctx, arguments: "x" * (9 * 1024 * 1024))
    bridge.editor.add_tool("small", lambda ctx, arguments: "y")
    session = await bridge.initialize("2025-03-26")
    batch = [bridge.call_message(name) for name in ("large", "large", "small")]
    async with await bridge.post(batch, session) as response:
        first, second, third = await response.json()
    assert len(first["result"]["content"][0]["text"]) == 9 * 1024 * 1024
    assert second["error"]["code"] == -32005
    assert third["result"]["content"][0]["text"] == "y"


async def test_a_batch_may_stream(bridge: Served) -> None:
    """Progress of its members comes before the answers, which come together."""

    async def work(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        ctx.progress(1)
        await asyncio.sleep(0)
        return "done"

    bridge.editor.add_tool("work", work)
    session = await bridge.initialize("2025-03-26")
    batch = [bridge.call_message("work", progressToken=token) for token in ("a", "b")]
    async with await bridge.post(batch, session) as response:
        seen = [data async for _, _, data in events(response)]
    assert {data["params"]["progressToken"] for data in seen[:-1]} == {"a", "b"}
    assert len(seen[-1]) == 2


async def test_list_changed_reaches_the_stream(bridge: Served) -> None:
    """One announcement for a burst of registrations, on the open stream or on the next one."""
    session = await bridge.initialize()
    async with await bridge.get(session) as response:
        stream = events(response)
        assert (await next_event(stream))[2] == ""
        for n in range(5):
            bridge.editor.add_tool(f"tool{n}", lambda ctx, arguments: None)
        assert (await next_event(stream))[2] == {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
        }
    bridge.editor.remove("tools", "tool0")
    await asyncio.sleep(0.1)
    bridge.editor.remove("tools", "tool1")
    await asyncio.sleep(0.1)
    async with await bridge.get(session) as response:
        stream = events(response)
        assert (await next_event(stream))[2] == ""
        assert (await next_event(stream))[2]["method"] == "notifications/tools/list_changed"
        with pytest.raises(TimeoutError):
            await next_event(stream, 0.2)
    listed = await bridge.ask(session, "tools/list")
    assert len(listed["result"]["tools"]) == 4


async def test_one_stream_per_session(bridge: Served) -> None:
    """A second GET is 409 while the first stands, and takes its place when that is dead."""
    session = await bridge.initialize()
    first = await bridge.get(session)
    async with await bridge.get(session) as response:
        assert response.status == 409
    first.close()
    async with asyncio.timeout(3):
        while True:
            async with await bridge.get(session) as response:
                if response.status == 200:
                    break
            await asyncio.sleep(0.01)


async def test_resuming_a_call_in_progress(bridge: Served) -> None:
    """A client that lost its response gets the rest with Last-Event-ID, the result included."""
    release = asyncio.Event()

    async def work(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        ctx.progress(1)
        await release.wait()
        ctx.progress(2)
        await asyncio.sleep(0)
        return "done"

    bridge.editor.add_tool("work", work)
    session = await bridge.initialize()
    message = bridge.call_message("work", progressToken="t")
    response = await bridge.post(message, session)
    stream = events(response)
    await next_event(stream)
    last, _, data = await next_event(stream)
    assert data["params"]["progress"] == 1
    response.close()
    async with await bridge.get(session, Last_Event_ID=last) as response:
        release.set()
        async with asyncio.timeout(5):
            seen = [data async for _, _, data in events(response)]
    assert [data["params"]["progress"] for data in seen[:-1]] == [2]
    assert seen[-1]["id"] == message["id"]
    assert seen[-1]["result"]["content"][0]["text"] == "done"
    async with await bridge.get(session, Last_Event_ID=last) as response:
        async with asyncio.timeout(5):
            again = [data async for _, _, data in events(response)]
    assert again == seen, "an ended stream can be read again"


async def test_a_response_that_a_restart_lost_ends_with_an_error(bridge: Served) -> None:
    """A client that resumes it must not wait on a stream that never has the answer."""

    async def work(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        ctx.progress(1)
        await asyncio.Event().wait()
        return "never"

    bridge.editor.add_tool("work", work)
    message = bridge.call_message("work", progressToken="t") | {"id": "é/1"}
    async with await bridge.post(message, await bridge.initialize()) as response:
        stream = events(response)
        await next_event(stream)
        last, _, _ = await next_event(stream)
    async with (
        served(boot="restarted") as again,
        await again.get(await again.initialize(), Last_Event_ID=last) as response,
    ):
        async with asyncio.timeout(5):
            (lost,) = [data async for _, _, data in events(response)]
    assert (lost["id"], "may have been carried out" in lost["error"]["message"]) == ("é/1", True)


@pytest.mark.parametrize("last", ["other-1", "boot-999999", "boot-x", "nonsense", "boot-"])
async def test_an_unknown_event_id_opens_a_fresh_stream(bridge: Served, last: str) -> None:
    """Ids of another life of the bridge, and anything else, are no error."""
    session = await bridge.initialize()
    async with await bridge.get(session, Last_Event_ID=last) as response:
        assert response.status == 200
        stream = events(response)
        id_, _, data = await next_event(stream)
        assert data == ""
        bridge.editor.add_tool("more", lambda ctx, arguments: None)
        assert (await next_event(stream))[2]["method"] == "notifications/tools/list_changed"
    async with await bridge.get(session, Last_Event_ID=id_) as response:
        assert (await next_event(events(response)))[2]["method"] == "notifications/tools/list_changed"


async def test_a_slow_reader_does_not_grow_memory(bridge: Served) -> None:
    """Progress and logs beyond the bound make room; the result still comes."""

    async def flood(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        for _ in range(2000):
            ctx.log("error", "x" * 1000)
        await asyncio.sleep(0)
        return "done"

    bridge.editor.add_tool("flood", flood)
    session = await bridge.initialize()
    async with await bridge.post(bridge.call_message("flood"), session) as response:
        seen = [data async for _, _, data in events(response)]
    assert len(seen) < 200
    assert seen[-1]["result"]["content"][0]["text"] == "done"


async def test_large_results(bridge: Served) -> None:
    """A result of 10 MiB arrives whole."""
    bridge.editor.add_tool("large", lambda ctx, arguments: "ä" * (5 * 1024 * 1024))
    session = await bridge.initialize()
    assert len((await bridge.call(session, "large"))["content"][0]["text"]) == 5 * 1024 * 1024


async def test_a_refused_request_is_named() -> None:
    """What is refused for want of a session carries the id of the request, as far as it is known."""
    async with served() as bridge:
        for session, status in ((None, 400), ("forged", 404)):
            async with await bridge.post(bridge.message("tools/list", id=17), session) as response:
                assert response.status == status
                assert (await response.json())["id"] == 17


async def test_event_ids_that_nobody_made(bridge: Served) -> None:
    """A Last-Event-ID of any length opens a fresh stream."""
    session = await bridge.initialize()
    foreign = [base64.b64encode(text).decode() for text in (b"{}", b"[[1]]", b"[true]", b"[", b"[" * 300)]
    made_up = ["boot-" + "9" * 5000, "boot--1", "boot-", "x", "boot-" + "9" * 19, "x-1.*", "x-1." + "W" * 999]
    for id_ in [*made_up, *(f"x-1.{each}" for each in foreign)]:
        async with await bridge.get(session, Last_Event_ID=id_) as response:
            assert response.status == 200, id_
