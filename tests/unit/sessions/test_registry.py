"""Which sessions are in memory, which return, and which give way."""

from __future__ import annotations

import asyncio
import gc
import secrets
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_tools_nvim import jsonrpc
from mcp_tools_nvim.sessions.registry import MAX_ENDED_BYTES, FullError, Sessions
from mcp_tools_nvim.sessions.session import Session
from mcp_tools_nvim.sessions.store import MAX_AGE_SECONDS, SessionStore
from mcp_tools_nvim.sessions.streams import EventIds
from mcp_tools_nvim.values import MAX_CLIENT_NAME, Limits, Settings
from tests.support.memory import ToolContext
from tests.support.served import LEGACY, Served, events, eventually, next_event, served


class Table:
    """Sessions without HTTP, on a clock that a test moves."""

    def __init__(self, bridge: Served, kernel: Any, limits: Limits, idle: float) -> None:
        self.kernel = kernel
        self.now = time.time()
        self.reports: list[list[str]] = []
        self.sessions = Sessions(
            bridge.calls,
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
        front = bridge.app.handlers
        made = Table(bridge, await front.loader.load(), limits or Limits(), idle)
        yield made
        await made.sessions.close("shutdown")


async def test_revival_after_a_restart(tmp_path: Path) -> None:
    """A client that never initializes again goes on with another bridge, and hears that lists changed."""
    settings = Settings(state_dir=str(tmp_path))
    async with served(settings, boot="first") as bridge:
        bridge.editor.add_tool("echo", lambda ctx, arguments: "before")
        session = await bridge.initialize()
        deleted = await bridge.initialize()
        await bridge.ask(session, "logging/setLevel", {"level": "error"})
        async with bridge.http.delete(bridge.url + "/mcp", headers={"Mcp-Session-Id": deleted}) as response:
            assert response.status == 200
    async with served(settings, boot="second") as bridge:
        bridge.editor.add_tool("echo", lambda ctx, arguments: ctx.request.sender.client.name)
        async with await bridge.post(bridge.call_message("echo"), deleted) as response:
            assert response.status == 404
        async with await bridge.get(session, Last_Event_ID="first-1") as response:
            stream = events(response)
            await next_event(stream)
            assert (await next_event(stream))[2]["method"] == "notifications/tools/list_changed"
        assert (await bridge.call(session, "echo"))["content"][0]["text"] == "test"
        assert bridge.reported[-1][0].name == "test"
        async with bridge.http.delete(bridge.url + "/mcp", headers={"Mcp-Session-Id": session}) as response:
            assert response.status == 200


async def test_ended_streams_do_not_delay_the_next_results() -> None:
    """A client that reads all of its large streams gets each of them at once."""

    async def large(ctx: ToolContext, arguments: dict[str, Any]) -> str:
        ctx.log("error", "begin")
        await asyncio.sleep(0)
        return "x" * 9_000_000

    async with served() as bridge:
        bridge.editor.add_tool("large", large)
        session = await bridge.initialize()
        for _ in range(7):
            async with (
                asyncio.timeout(4),
                await bridge.post(bridge.call_message("large"), session) as response,
            ):
                await response.read()


async def test_the_name_of_a_client_has_a_bound() -> None:
    """The editor keeps it, whatever a client sends."""
    async with served() as bridge:
        bridge.editor.add_tool("echo", lambda ctx, arguments: ctx.request.sender.client.name)
        session = await bridge.initialize(client="n" * 1_000_000)
        name = (await bridge.call(session, "echo"))["content"][0]["text"]
        assert (name, bridge.reported[-1][0].name) == ("n" * MAX_CLIENT_NAME,) * 2


async def test_delete_of_a_session_that_is_not_in_memory(tmp_path: Path) -> None:
    """A client may delete its session although the bridge was restarted in between."""
    settings = Settings(state_dir=str(tmp_path))
    async with served(settings) as bridge:
        session = await bridge.initialize()
    async with served(settings) as bridge:
        for expected in (200, 404):
            async with bridge.http.delete(
                bridge.url + "/mcp", headers={"Mcp-Session-Id": session}
            ) as response:
                assert response.status == expected


async def test_the_session_a_tool_sees_is_the_same_after_revival(tmp_path: Path) -> None:
    """What tools keep per session survives; it is not the id that the client sends."""
    seen: list[str | None] = []
    ids: list[str] = []
    for _ in range(2):
        async with served(Settings(state_dir=str(tmp_path))) as bridge:
            bridge.editor.add_tool("echo", lambda ctx, arguments: seen.append(ctx.request.sender.session))
            if not ids:
                ids.append(await bridge.initialize())
            await bridge.call(ids[0], "echo")
    assert seen[0] == seen[1]
    assert seen[0] is not None
    assert seen[0] not in ids[0]


@pytest.mark.slow
async def test_clients_that_left_are_not_shown() -> None:
    """One that is silent for long is told as gone; its session stays, and heard again it is shown."""
    async with table() as made:
        session = made.sessions.find(made.kernel, await made.open("quiet"))
        await made.open("other")
        assert session
        assert made.reports[-1] == ["quiet", "other"]
        session.last_heard -= 50
        await asyncio.sleep(1.2)
        assert made.reports[-1] == ["quiet", "other"], "it may think"
        session.last_heard -= 10
        await eventually(lambda: made.reports[-1] == ["other"])
        assert len(made.sessions) == 2
        session.last_heard += 60
        await eventually(lambda: made.reports[-1] == ["quiet", "other"])


@pytest.mark.slow
async def test_a_client_that_closed_its_stream_is_gone() -> None:
    """It is gone within seconds: it has no stream any more, and has not come back for one."""
    async with served() as bridge:
        session = await bridge.initialize(client="listener")
        stream = await bridge.get(session)
        stream.close()
        await eventually(lambda: bridge.reported[-1] == [], seconds=10)
        again = await bridge.get(session)
        await eventually(lambda: [info.name for info in bridge.reported[-1]] == ["listener"])
        again.close()


async def test_the_oldest_idle_session_gives_way() -> None:
    """At the limit nothing happens; one more closes the one that was silent longest, whose id revives it."""
    async with served(Settings(limits=Limits(sessions=3))) as bridge:
        bridge.editor.add_tool("echo", lambda ctx, arguments: "ok")
        ids = [await bridge.initialize(client=f"c{n}") for n in range(3)]
        await bridge.call(ids[0], "echo")
        assert len(bridge.reported[-1]) == 3
        await bridge.initialize(client="c3")
        assert {info.name for info in bridge.reported[-1]} == {"c0", "c2", "c3"}
        await bridge.call(ids[1], "echo")
        assert {info.name for info in bridge.reported[-1]} == {"c0", "c3", "c1"}


async def test_sessions_in_use_do_not_give_way() -> None:
    """With an open stream or a call in flight in each, a further one is 503 and says when to come back."""
    async with served(Settings(limits=Limits(sessions=2))) as bridge:
        opened, running = bridge.add_gate()
        with_stream, with_call = await bridge.initialize(), await bridge.initialize()
        stream = await bridge.get(with_stream)
        asking = asyncio.create_task(bridge.post(bridge.call_message("wait"), with_call))
        await running()
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        async with await bridge.post(bridge.message("initialize", params)) as response:
            assert response.status == 503
            assert int(response.headers["Retry-After"]) > 0
            assert "Mcp-Session-Id" not in response.headers
        opened.set()
        (await asking).close()
        await bridge.initialize()
        stream.close()


async def test_idle_sessions_are_closed() -> None:
    """Only memory is freed; the id revives the session."""
    async with table(idle=0.2) as made:
        id_ = await made.open()
        await eventually(lambda: len(made.sessions) == 0)
        assert made.reports[-1] == []
        session = made.sessions.find(made.kernel, id_)
        assert session is not None
        assert session.peer.identity[0] == {"name": "client", "version": "1"}
        assert made.sessions.find(made.kernel, id_) is session


async def test_old_ids() -> None:
    """After seven days even a session in memory is not found any more."""
    async with table() as made:
        id_ = await made.open()
        made.now += MAX_AGE_SECONDS - 1
        assert made.sessions.find(made.kernel, id_) is not None
        made.now += 2
        assert made.sessions.find(made.kernel, id_) is None
        assert len(made.sessions) == 0


async def test_thousands_of_sessions_leave_nothing() -> None:
    """Clients that open one session per call and never delete it do not grow memory."""
    async with table(Limits(sessions=8)) as made:
        living: weakref.WeakSet[Session] = weakref.WeakSet()
        for n in range(500):
            id_ = await made.open(f"c{n}")
            session = made.sessions.find(made.kernel, id_)
            assert session is not None
            living.add(session)
            del session
        await asyncio.sleep(0.05)
        gc.collect()
        assert len(made.sessions) == 8
        assert len(living) <= 8


async def test_no_room_for_a_revival() -> None:
    """A session that could return has to wait as a new one would."""
    async with table(Limits(sessions=1)) as made:
        id_ = await made.open()
        sse = made.sessions.create(made.kernel, "sse")
        assert len(made.sessions) == 1
        sse._in_flight[1] = None  # type: ignore[assignment]
        with pytest.raises(FullError):
            made.sessions.find(made.kernel, id_)
        sse._in_flight.clear()
        assert made.sessions.find(made.kernel, id_) is not None


async def test_declarations_that_are_too_long() -> None:
    """They are refused at `initialize`, and leave no session."""
    async with served() as bridge:
        noise = {f"x{n}": secrets.token_hex(32) for n in range(5000)}
        params = {
            "protocolVersion": LEGACY,
            "capabilities": {"extensions": {"ai.nimblebrain/host-resources": noise}},
            "clientInfo": {"name": "x", "version": "1"},
        }
        async with await bridge.post(bridge.message("initialize", params)) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (400, -32602)
            assert "Mcp-Session-Id" not in response.headers
        async with bridge.http.get(bridge.url + "/health") as response:
            assert (await response.json())["sessions"]["count"] == 0


@pytest.mark.slow
async def test_what_nobody_fetches_is_bounded_over_all_sessions() -> None:
    """Results whose clients went are kept to be resumed; of all sessions together only so many bytes."""
    size, count = 9 * 1024 * 1024, 9
    async with served() as bridge:

        async def large(ctx: ToolContext, arguments: dict[str, Any]) -> str:
            ctx.progress(1, 2)
            await asyncio.sleep(0.3)
            return "x" * size

        bridge.editor.add_tool("large", large)
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
async def test_what_was_never_written_counts_too() -> None:
    """A stream whose client left holds more than the events to resume after, and all of it has a bound."""
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
