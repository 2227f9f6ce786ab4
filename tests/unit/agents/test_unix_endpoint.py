"""An endpoint at a unix socket."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mcp_tools_nvim.agents import unix
from mcp_tools_nvim.values import AgentEndpoint
from tests.support.served import TOKEN, Served, eventually, served

from .agents import HTTP, INITIALIZE, add_tools, agent_at_port, agent_at_socket, call, request, unix_endpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "s"
    place.mkdir(mode=0o700)
    return place


@pytest.fixture
def endpoint(folder: Path) -> AgentEndpoint:
    return unix_endpoint(folder / "a.sock")


@pytest.fixture
async def bridge(endpoint: AgentEndpoint) -> AsyncIterator[Served]:
    async with served(endpoints=(HTTP, endpoint)) as running:
        add_tools(running, endpoint.name)
        yield running


async def test_an_agent_at_the_socket(bridge: Served, endpoint: AgentEndpoint) -> None:
    """It probes, connects, takes leave and connects again, with the id that it is given each time."""
    assert bridge.editor.reports == [("endpoints", {"open": ["web", "pipe"], "failed": {}})]
    mode = os.lstat(str(endpoint.socket)).st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    async with agent_at_socket(endpoint) as agent:
        more = {"X-Copilot-Session-Id": "its-own"}
        agent.headers |= more
        assert (await agent.ask(request("server/discover", {}, 0)))["error"]["code"] == -32601
        await agent.initialize()
        first = agent.session
        assert await agent.delete() == 200
        agent.session = None
        await agent.initialize()
        assert agent.session != first
        async with await agent.get():
            await eventually(lambda: bridge.editor.agent_events)
            listed = await agent.ask(request("tools/list"))
            assert [tool["name"] for tool in listed["result"]["tools"]] == ["place"]
            assert "result" in await agent.ask(call("place"))


async def test_a_body_in_chunks(bridge: Served, endpoint: AgentEndpoint) -> None:
    """As some agents send every body."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"jsonrpc":"2.0","id":1,"method":"server/'
        yield b'discover"}'

    async with agent_at_socket(endpoint) as agent:
        async with agent.http.post("http://localhost/mcp", data=chunks(), headers=agent.head()) as response:
            assert response.status == 200
            assert (await response.json())["error"]["code"] == -32601

        async def flood() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b"x" * (1024 * 1024)

        status: Any = None
        try:
            async with agent.http.post(
                "http://localhost/mcp", data=flood(), headers=agent.head()
            ) as response:
                status = response.status
        except aiohttp.ClientError:
            status = 413  # it was refused while the rest was still on its way
        assert status == 413


@pytest.mark.parametrize(
    "credential",
    [
        "",
        "Nonce x",
        f"Bearer {TOKEN}",
        f"Nonce {HTTP.token}",
        f"Bearer {HTTP.token}",
        "Nonce endpoint-" + "u" * 39,
    ],
)
async def test_a_wrong_token(bridge: Served, endpoint: AgentEndpoint, credential: str) -> None:
    """Neither the main one nor that of another endpoint; whoever reaches the socket still needs its own."""
    async with agent_at_socket(replace(endpoint, token="")) as agent:
        agent.headers = {"Authorization": credential}
        async with await agent.post(INITIALIZE) as response:
            assert response.status == 401
        async with await agent.post(INITIALIZE, path="/health") as response:
            assert response.status == 401


async def test_its_token_is_worth_nothing_at_the_port(bridge: Served, endpoint: AgentEndpoint) -> None:
    """Nor is a page let in that reaches the socket by a proxy."""
    async with agent_at_port(bridge) as agent:
        for credential in (f"Nonce {endpoint.token}", f"Bearer {endpoint.token}"):
            agent.headers = {"Authorization": credential}
            async with await agent.post(INITIALIZE) as response:
                assert response.status == 401
    async with agent_at_socket(endpoint) as agent:
        for headers in ({"Origin": "http://localhost"}, {"Host": "attacker.example"}):
            async with await agent.post(INITIALIZE, **headers) as response:
                assert response.status == 403


async def test_the_socket_goes_with_its_endpoint_and_with_the_bridge(folder: Path) -> None:
    """One that somebody else has put there by then stays."""
    first, second = unix_endpoint(folder / "a.sock"), replace(unix_endpoint(folder / "b.sock"), name="b")
    async with served(endpoints=(first, second)) as bridge:
        assert sorted(os.listdir(folder)) == ["a.sock", "b.sock"]
        bridge.editor.emit("endpoints", (second,))
        await eventually(lambda: os.listdir(folder) == ["b.sock"])
        os.unlink(folder / "b.sock")
        (folder / "b.sock").write_text("somebody else's")
    assert os.listdir(folder) == ["b.sock"]


async def test_nothing_is_opened_at_the_end_of_the_bridge(folder: Path) -> None:
    """What the editor says then comes too late."""
    first, second = unix_endpoint(folder / "a.sock"), replace(unix_endpoint(folder / "b.sock"), name="b")
    async with served(endpoints=(first,)) as bridge:
        await bridge.agents.disconnect()
        said = len(bridge.editor.reports)
        bridge.editor.emit("endpoints", (first, second))
        for _ in range(50):
            await asyncio.sleep(0)
        assert (os.listdir(folder), len(bridge.editor.reports)) == (["a.sock"], said)


async def test_what_an_earlier_bridge_left_gives_way(endpoint: AgentEndpoint) -> None:
    """A socket of ours does; what is none is not touched."""
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(endpoint.socket))
    left.close()
    async with served(endpoints=(endpoint,)) as bridge:
        assert bridge.editor.reports[-1] == ("endpoints", {"open": ["pipe"], "failed": {}})
    Path(str(endpoint.socket)).write_text("mine")
    async with served(endpoints=(endpoint,)) as bridge:
        ((_, said),) = bridge.editor.reports
        assert (said["open"], list(said["failed"])) == ([], ["pipe"])
    assert Path(str(endpoint.socket)).read_text() == "mine"


async def test_folders_that_are_not_ours_alone(tmp_path: Path, folder: Path) -> None:
    """Of another user, open to others, a link to one, no folder, none at all; a path that is too long."""
    shared, linked, file = tmp_path / "shared", tmp_path / "linked", tmp_path / "file"
    shared.mkdir()
    shared.chmod(0o755)
    linked.symlink_to(folder)
    file.write_text("")
    places = [shared, linked, file, tmp_path / "none", folder / ("x" * 100)]
    if os.getuid() == 0:
        foreign = tmp_path / "foreign"
        foreign.mkdir(mode=0o700)
        os.chown(foreign, 12345, 12345)
        places.append(foreign)
    for place in places:
        async with served(endpoints=(unix_endpoint(place / "a.sock"), HTTP)) as bridge:
            ((_, said),) = bridge.editor.reports
            assert (said["open"], list(said["failed"])) == (["web"], ["pipe"]), place
    assert [place.exists() for place in (shared / "a.sock", folder / "a.sock")] == [False, False]


async def test_opened_twice_at_a_time(endpoint: AgentEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is bound once, and nobody listens when it is closed."""
    bound: list[socket.socket] = []
    bind = unix._bind

    def note(path: str) -> socket.socket:
        bound.append(bind(path))
        return bound[-1]

    monkeypatch.setattr(unix, "_bind", note)
    sockets = unix.UnixSockets(lambda *_: None, 1000)
    await asyncio.gather(sockets.open(endpoint), sockets.open(endpoint))
    assert len(bound) == 1
    await asyncio.gather(sockets.close(), sockets.open(endpoint), sockets.keep(set()))
    assert [each.fileno() for each in bound] == [-1] * len(bound)
    assert not Path(str(endpoint.socket)).exists()
