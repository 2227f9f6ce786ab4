"""Sessions in memory: limits, idle time, and restoring from files."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_tools_nvim import jsonrpc
from mcp_tools_nvim.sessions.registry import MAX_ENDED_BYTES, FullError, Sessions
from mcp_tools_nvim.sessions.store import MAX_AGE_SECONDS, SessionStore
from mcp_tools_nvim.sessions.streams import EventIds
from mcp_tools_nvim.values import MAX_CLIENT_NAME, Limits, Settings
from tests.support.memory import ToolContext, reporting
from tests.support.served import LEGACY, Served, events, eventually, next_event, served


class Table:
    """Sessions without HTTP, on a clock that the test sets."""

    def __init__(self, bridge: Served, kernel: Any, limits: Limits, idle: float) -> None:
        self.kernel = kernel
        self.now = time.time()
        self.reports: list[list[str]] = []
        self.sessions = Sessions(
            bridge.parts.calls,
            SessionStore("token", Path(bridge.parts.settings.state_dir), self.clock),
            EventIds("boot"),
            limits,
            lambda infos: self.reports.append([info.name for info in infos]),
            idle,
        )

    def clock(self) -> float:
        return self.now

    async def open(self, name: str = "client") -> str:
        session = self.sessions.create(self.kernel, "http")
        info = {"name": name, "version": "1"}
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}
        dispatch = self.kernel.dispatch(1, params)
        await session.peer.request(dispatch, jsonrpc.Request(1, "initialize", params))
        return self.sessions.save(session)


@asynccontextmanager
async def table(limits: Limits | None = None, idle: float = 1800.0) -> AsyncIterator[Table]:
    async with served() as bridge:
        made = Table(bridge, await bridge.app.handlers.loader.load(), limits or Limits(), idle)
        yield made
        await made.sessions.close("shutdown")


async def test_a_session_is_restored_after_a_restart_and_gets_list_changes(tmp_path: Path) -> None:
    """Its level and scope are kept, and a deleted session is not restored."""
    settings = Settings(state_dir=str(tmp_path))
    async with served(settings, boot="first") as bridge:
        bridge.editor.add_tool("echo", lambda ctx, arguments: "before")
        session = await bridge.initialize()
        deleted = await bridge.initialize()
        await bridge.ask(session, "logging/setLevel", {"level": "error"})
        assert await bridge.delete(deleted) == 200
    async with served(settings, boot="second") as bridge:
        bridge.editor.add_tool("echo", lambda ctx, arguments: ctx.request.sender.client.name)
        assert (await bridge.answer(bridge.call_message("echo"), deleted))[0] == 404
        async with bridge.listening(session, Last_Event_ID="first-1") as stream:
            assert (await next_event(stream))[2]["method"] == "notifications/tools/list_changed"
        assert (await bridge.call(session, "echo"))["content"][0]["text"] == "test"
        assert bridge.reported[-1][0].name == "test"
        assert [await bridge.delete(session) for _ in range(2)] == [200, 404]


async def test_ended_streams_do_not_delay_the_next_results() -> None:
    """A client that reads all of its large streams gets each of them at once."""
    async with served() as bridge:
        bridge.editor.add_tool("large", reporting(("error", "begin"), result="x" * 9_000_000))
        session = await bridge.initialize()
        for _ in range(7):
            async with (
                asyncio.timeout(10),
                await bridge.post(bridge.call_message("large"), session) as response,
            ):
                await response.read()


async def test_the_name_of_a_client_is_cut() -> None:
    async with served() as bridge:
        bridge.editor.add_tool("echo", lambda ctx, arguments: ctx.request.sender.client.name)
        session = await bridge.initialize(client="n" * 1_000_000)
        name = (await bridge.call(session, "echo"))["content"][0]["text"]
        assert (name, bridge.reported[-1][0].name) == ("n" * MAX_CLIENT_NAME,) * 2


async def test_a_session_that_is_not_in_memory_can_be_deleted(tmp_path: Path) -> None:
    settings = Settings(state_dir=str(tmp_path))
    async with served(settings) as bridge:
        session = await bridge.initialize()
    async with served(settings) as bridge:
        assert [await bridge.delete(session) for _ in range(2)] == [200, 404]


async def test_a_tool_gets_the_same_session_key_after_a_restart(tmp_path: Path) -> None:
    """The key is not the id that the client sends."""
    seen: list[str | None] = []
    id_ = ""
    for _ in range(2):
        async with served(Settings(state_dir=str(tmp_path))) as bridge:
            bridge.editor.add_tool("echo", lambda ctx, arguments: seen.append(ctx.request.sender.session))
            id_ = id_ or await bridge.initialize()
            await bridge.call(id_, "echo")
    assert seen[0] == seen[1]
    assert seen[0]
    assert seen[0] not in id_


@pytest.mark.slow
async def test_a_silent_client_is_shown_again_when_it_sends_something() -> None:
    async with table() as made:
        session = made.sessions.find(made.kernel, await made.open("quiet"))
        await made.open("other")
        assert made.reports[-1] == ["quiet", "other"]
        session.last_heard -= 50
        await asyncio.sleep(1.2)
        assert made.reports[-1] == ["quiet", "other"], "it may be busy"
        session.last_heard -= 10
        await eventually(lambda: made.reports[-1] == ["other"])
        assert len(made.sessions) == 2
        session.last_heard += 60
        await eventually(lambda: made.reports[-1] == ["quiet", "other"])


@pytest.mark.slow
async def test_a_client_that_closes_its_stream_is_reported_as_gone() -> None:
    async with served() as bridge:
        session = await bridge.initialize(client="listener")
        stream = await bridge.get(session)
        stream.close()
        await eventually(lambda: bridge.reported[-1] == [], seconds=10)
        again = await bridge.get(session)
        await eventually(lambda: [info.name for info in bridge.reported[-1]] == ["listener"])
        again.close()


async def test_beyond_the_limit_the_session_that_was_idle_longest_is_closed() -> None:
    """Its id restores it."""
    async with served(Settings(limits=Limits(sessions=3))) as bridge:
        bridge.editor.add_tool("echo", lambda ctx, arguments: "ok")
        ids = [await bridge.initialize(client=f"c{n}") for n in range(3)]
        await bridge.call(ids[0], "echo")
        assert len(bridge.reported[-1]) == 3
        await bridge.initialize(client="c3")
        assert {info.name for info in bridge.reported[-1]} == {"c0", "c2", "c3"}
        await bridge.call(ids[1], "echo")
        assert {info.name for info in bridge.reported[-1]} == {"c0", "c3", "c1"}


async def test_sessions_in_use_are_not_closed_and_a_new_one_gets_503() -> None:
    async with served(Settings(limits=Limits(sessions=2))) as bridge:
        opened, running = bridge.add_gate()
        with_stream, with_call = await bridge.initialize(), await bridge.initialize()
        stream = await bridge.get(with_stream)
        asking = asyncio.create_task(bridge.post(bridge.call_message("wait"), with_call))
        await running()
        async with await bridge.post(bridge.initialize_message()) as response:
            assert response.status == 503
            assert int(response.headers["Retry-After"]) > 0
            assert "Mcp-Session-Id" not in response.headers
        opened.set()
        (await asking).close()
        await bridge.initialize()
        stream.close()


async def test_an_idle_session_is_closed_and_restored_by_its_id() -> None:
    async with table(idle=0.2) as made:
        id_ = await made.open()
        await eventually(lambda: len(made.sessions) == 0)
        assert made.reports[-1] == []
        session = made.sessions.find(made.kernel, id_)
        assert session.peer.identity[0] == {"name": "client", "version": "1"}
        assert made.sessions.find(made.kernel, id_) is session


async def test_a_session_expires_after_seven_days() -> None:
    async with table() as made:
        id_ = await made.open()
        made.now += MAX_AGE_SECONDS - 1
        assert made.sessions.find(made.kernel, id_) is not None
        made.now += 2
        assert made.sessions.find(made.kernel, id_) is None
        assert len(made.sessions) == 0


async def test_a_session_is_not_restored_while_all_others_are_in_use() -> None:
    async with table(Limits(sessions=1)) as made:
        id_ = await made.open()
        sse = made.sessions.create(made.kernel, "sse")
        assert len(made.sessions) == 1
        sse._in_flight[1] = None  # type: ignore[assignment]
        with pytest.raises(FullError):
            made.sessions.find(made.kernel, id_)
        sse._in_flight.clear()
        assert made.sessions.find(made.kernel, id_) is not None


async def test_capabilities_that_are_too_large_are_refused() -> None:
    async with served() as bridge:
        noise = {f"x{n}": secrets.token_hex(32) for n in range(5000)}
        capabilities = {"extensions": {"ai.nimblebrain/host-resources": noise}}
        async with await bridge.post(bridge.initialize_message(capabilities=capabilities)) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (400, -32602)
            assert "Mcp-Session-Id" not in response.headers
        assert (await bridge.health())["sessions"]["count"] == 0


@pytest.mark.slow
async def test_results_kept_for_resumption_share_one_limit_over_all_sessions() -> None:
    size, count = 9 * 1024 * 1024, 9
    async with served() as bridge:
        bridge.editor.add_tool("large", reporting((1, 2), result="x" * size, seconds=0.3))
        for _ in range(count):
            session = await bridge.initialize()
            async with await bridge.post(bridge.call_message("large", progressToken=1), session) as response:
                await next_event(events(response))

        def kept() -> int:
            return sum(one.streams.ended_bytes for one in bridge.app.handlers.sessions._by_id.values())

        await eventually(lambda: kept() > 0)
        await asyncio.sleep(2.5)
        assert size < kept() <= MAX_ENDED_BYTES


@pytest.mark.slow
async def test_unwritten_events_of_an_ended_stream_count_towards_the_limit() -> None:
    size, count = 1024 * 1024, 20
    async with served() as bridge:

        async def talk(ctx: ToolContext, arguments: dict[str, Any]) -> str:
            ctx.progress(1, 2)
            await asyncio.sleep(1)
            for _ in range(count):
                ctx.log("info", "x" * size)
            return "done"

        bridge.editor.add_tool("talk", talk)
        session = await bridge.initialize()
        async with await bridge.post(bridge.call_message("talk", progressToken=1), session) as response:
            await next_event(events(response))
        (known,) = bridge.app.handlers.sessions._by_id.values()
        await eventually(lambda: known.streams.ended_bytes > 0)
        assert known.streams.ended_bytes > count * size
