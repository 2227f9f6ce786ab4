"""Sessions over streamable HTTP."""

from __future__ import annotations

import asyncio
import base64

import pytest

from tests.support.memory import reporting
from tests.support.served import LEGACY, Served, events, eventually, next_event, served

CHANGED = "notifications/tools/list_changed"


async def test_initialize_opens_a_session(bridge: Served) -> None:
    async with await bridge.post(bridge.initialize_message("2025-06-18")) as response:
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
async def test_every_handshake_version_is_negotiated(bridge: Served, version: str) -> None:
    session = await bridge.initialize(version)
    for headers in ({}, {"MCP_Protocol_Version": version}):
        _, answer = await bridge.answer(bridge.call_message("echo", {"text": "x"}), session, **headers)
        assert answer["result"]["content"][0]["text"] == "x"


async def test_an_unknown_version_is_negotiated_to_the_newest(bridge: Served) -> None:
    for headers in ({}, {"MCP_Protocol_Version": "2099-01-01"}, {"MCP_Protocol_Version": LEGACY}):
        _, answer = await bridge.answer(bridge.initialize_message("2099-01-01"), **headers)
        assert answer["result"]["protocolVersion"] == LEGACY


async def test_a_bad_initialize_leaves_no_session(bridge: Served) -> None:
    async with await bridge.post(bridge.message("initialize", {"protocolVersion": 5})) as response:
        assert (await response.json())["error"]["code"] == -32602
        assert "Mcp-Session-Id" not in response.headers
    assert (await bridge.health())["sessions"]["count"] == 0


async def test_the_root_path_is_the_same_endpoint(bridge: Served) -> None:
    session = await bridge.initialize()
    assert (await bridge.answer(bridge.call_message("echo"), session, path="/"))[0] == 200


async def test_the_answer_is_a_stream_only_if_there_is_progress(bridge: Served) -> None:
    session = await bridge.initialize()
    steps = [(step, 3, f"step {step}") for step in range(1, 4)]
    bridge.editor.add_tool("work", reporting(*steps))
    async with await bridge.post(bridge.call_message("work"), session) as response:
        assert response.content_type == "application/json"
    seen = await bridge.stream(bridge.call_message("work", progressToken="t"), session)
    assert seen[0][2] == ""
    progress = [data["params"] for _, _, data in seen[1:-1]]
    assert {params["progressToken"] for params in progress} == {"t"}
    done = [params["progress"] for params in progress]
    assert done == sorted(set(done))
    assert progress[-1]["total"] == 3
    assert seen[-1][2]["result"]["content"][0]["text"] == "done"
    ids = {id_ for id_, _, _ in seen}
    assert len(ids) == len(seen)
    assert all(id_.startswith("boot-") for id_ in ids)


async def test_only_clients_since_2025_11_25_get_an_empty_first_event(bridge: Served) -> None:
    bridge.editor.add_tool("work", reporting(("info", {"x": 1})))
    session = await bridge.initialize("2025-06-18")
    async with await bridge.post(bridge.call_message("work"), session) as response:
        text = await response.text()
    assert text.startswith("retry: 1500\nid: boot-")
    assert '"notifications/message"' in text
    assert '"logger":"nvim_work"' in text


async def test_a_session_sets_its_log_level(bridge: Served) -> None:
    """It is `info` at first; unknown levels of tools become `info`."""
    levels = ("debug", "info", "warn", "error", "odd")
    bridge.editor.add_tool("work", reporting(*((level, level) for level in levels)))
    session = await bridge.initialize()

    async def logged() -> list[tuple[str, str]]:
        async with await bridge.post(bridge.call_message("work"), session) as response:
            if response.content_type == "application/json":
                return []
            params = [data.get("params") async for _, _, data in events(response) if data]
            return [(each["level"], each["data"]) for each in params if each]

    assert await logged() == [("info", "info"), ("warning", "warn"), ("error", "error"), ("info", "odd")]
    for level, expected in (("error", [("error", "error")]), ("emergency", [])):
        assert (await bridge.ask(session, "logging/setLevel", {"level": level}))["result"] == {}
        assert await logged() == expected
    assert (await bridge.ask(session, "logging/setLevel", {"level": "loud"}))["error"]["code"] == -32602


async def test_the_answers_of_a_batch_share_one_limit(bridge: Served) -> None:
    bridge.editor.add_tool("large", lambda ctx, arguments: "x" * (9 << 20))
    bridge.editor.add_tool("small", lambda ctx, arguments: "y")
    session = await bridge.initialize("2025-03-26")
    batch = [bridge.call_message(name) for name in ("large", "large", "small")]
    _, (first, second, third) = await bridge.answer(batch, session)
    assert len(first["result"]["content"][0]["text"]) == 9 << 20
    assert second["error"]["code"] == -32005
    assert third["result"]["content"][0]["text"] == "y"


async def test_progress_of_a_batch_comes_before_its_answers(bridge: Served) -> None:
    bridge.editor.add_tool("work", reporting((1,)))
    session = await bridge.initialize("2025-03-26")
    batch = [bridge.call_message("work", progressToken=token) for token in ("a", "b")]
    seen = [data for _, _, data in await bridge.stream(batch, session)]
    assert {data["params"]["progressToken"] for data in seen[:-1]} == {"a", "b"}
    assert len(seen[-1]) == 2


async def test_a_burst_of_changes_is_announced_once_on_the_open_or_the_next_stream(bridge: Served) -> None:
    session = await bridge.initialize()
    async with bridge.listening(session) as stream:
        for n in range(5):
            bridge.editor.add_tool(f"tool{n}", lambda ctx, arguments: None)
        assert (await next_event(stream))[2] == {"jsonrpc": "2.0", "method": CHANGED}
    for n in range(2):
        bridge.editor.remove("tools", f"tool{n}")
        await asyncio.sleep(0.1)
    async with bridge.listening(session) as stream:
        assert (await next_event(stream))[2]["method"] == CHANGED
        with pytest.raises(TimeoutError):
            await next_event(stream, 0.2)
    assert len((await bridge.ask(session, "tools/list"))["result"]["tools"]) == 4


async def test_a_session_has_one_stream(bridge: Served) -> None:
    """A second GET is 409 until the first connection has closed."""
    session = await bridge.initialize()

    async def has_status(status: int) -> bool:
        async with await bridge.get(session) as response:
            return response.status == status

    first = await bridge.get(session)
    assert await has_status(409)
    first.close()
    await eventually(lambda: has_status(200))


async def test_resuming_a_response_lost_in_a_restart_ends_with_an_error(bridge: Served) -> None:
    bridge.editor.add_tool("work", reporting((1,), seconds=60))
    message = bridge.call_message("work", progressToken="t") | {"id": "é/1"}
    async with await bridge.post(message, await bridge.initialize()) as response:
        stream = events(response)
        await next_event(stream)
        last, _, _ = await next_event(stream)
    async with (
        served(boot="restarted") as again,
        await again.get(await again.initialize(), Last_Event_ID=last) as response,
        asyncio.timeout(10),
    ):
        (lost,) = [data async for _, _, data in events(response)]
    assert (lost["id"], "may have been carried out" in lost["error"]["message"]) == ("é/1", True)


@pytest.mark.parametrize("last", ["other-1", "boot-999999"])
async def test_an_unknown_event_id_opens_a_new_stream(bridge: Served, last: str) -> None:
    session = await bridge.initialize()
    async with await bridge.get(session, Last_Event_ID=last) as response:
        stream = events(response)
        id_, _, data = await next_event(stream)
        assert (response.status, data) == (200, "")
        bridge.editor.add_tool("more", lambda ctx, arguments: None)
        assert (await next_event(stream))[2]["method"] == CHANGED
    async with await bridge.get(session, Last_Event_ID=id_) as response:
        assert (await next_event(events(response)))[2]["method"] == CHANGED


async def test_unread_progress_and_logs_are_dropped_before_the_result(bridge: Served) -> None:
    bridge.editor.add_tool("flood", reporting(*[("error", "x" * 1000)] * 2000))
    seen = await bridge.stream(bridge.call_message("flood"), await bridge.initialize())
    assert len(seen) < 200
    assert seen[-1][2]["result"]["content"][0]["text"] == "done"


async def test_a_refused_request_keeps_its_id(bridge: Served) -> None:
    for session, expected in ((None, 400), ("forged", 404)):
        status, answer = await bridge.answer(bridge.message("tools/list", id=17), session)
        assert (status, answer["id"]) == (expected, 17)


async def test_invalid_event_ids_open_a_new_stream(bridge: Served) -> None:
    session = await bridge.initialize()
    foreign = [base64.b64encode(text).decode() for text in (b"{}", b"[[1]]", b"[true]", b"[", b"[" * 300)]
    numbers = ["9" * 5000, "-1", "", "x", "9" * 19]
    for id_ in [
        "x",
        *(f"boot-{n}" for n in numbers),
        *(f"x-1.{each}" for each in [*foreign, "*", "W" * 999]),
    ]:
        async with await bridge.get(session, Last_Event_ID=id_) as response:
            assert response.status == 200, id_


async def test_a_cancel_that_precedes_its_request_is_kept_unless_the_id_is_long(bridge: Served) -> None:
    session = await bridge.initialize()
    for id_, is_kept in (("short", True), ("x" * 201, False)):
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}}
        assert await bridge.answer(cancel, session) == (202, None)
        _, answer = await bridge.answer(bridge.message("tools/list", id=id_), session)
        assert ("error" in answer) == is_kept
