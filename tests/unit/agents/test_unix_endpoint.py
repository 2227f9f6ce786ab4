"""An endpoint of an agent at a unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from mcp_tools_nvim.agents import unix
from mcp_tools_nvim.values import AgentEndpoint
from tests.support.served import TOKEN, Served, eventually, served

from .agents import (
    HTTP,
    INITIALIZE,
    PIPE,
    add_tools,
    agent_at_port,
    agent_at_socket,
    call,
    request,
    unix_endpoint,
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    private = tmp_path / "s"
    private.mkdir(mode=0o700)
    return private


@pytest.fixture
def endpoint(directory: Path) -> AgentEndpoint:
    return unix_endpoint(directory / "a.sock")


@pytest.fixture
async def bridge(endpoint: AgentEndpoint) -> AsyncIterator[Served]:
    async with served(endpoints=(HTTP, endpoint)) as running:
        add_tools(running, endpoint.name)
        yield running


async def test_an_agent_probes_connects_and_connects_again(bridge: Served, endpoint: AgentEndpoint) -> None:
    """It gets a new id each time."""
    assert bridge.editor.reports == [("endpoints", {"open": ["web", "pipe"], "failed": {}})]
    mode = os.lstat(str(endpoint.socket)).st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    async with agent_at_socket(endpoint) as agent:
        agent.headers["X-Copilot-Session-Id"] = "its-own"
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


async def test_a_chunked_body_is_read_up_to_the_limit(bridge: Served, endpoint: AgentEndpoint) -> None:
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

        with contextlib.suppress(aiohttp.ClientError):  # it was refused while the rest was on its way
            async with agent.http.post(
                "http://localhost/mcp", data=flood(), headers=agent.head()
            ) as response:
                assert response.status == 413


OTHERS = ["", "Nonce x", f"Bearer {TOKEN}", f"Nonce {HTTP.token}", f"Bearer {HTTP.token}"]


@pytest.mark.parametrize("credential", [*OTHERS, f"Nonce {PIPE.token[:-1]}"])
async def test_other_tokens_are_refused(bridge: Served, endpoint: AgentEndpoint, credential: str) -> None:
    async with agent_at_socket(replace(endpoint, token="")) as agent:
        agent.headers = {"Authorization": credential}
        assert [await agent.status(INITIALIZE, path=path) for path in ("/mcp", "/health")] == [401, 401]


async def test_the_token_of_a_socket_is_invalid_at_the_port(bridge: Served, endpoint: AgentEndpoint) -> None:
    """A web page that reaches the socket through a proxy is refused."""
    async with agent_at_port(bridge) as agent:
        for credential in (f"Nonce {endpoint.token}", f"Bearer {endpoint.token}"):
            agent.headers = {"Authorization": credential}
            assert await agent.status(INITIALIZE) == 401
    async with agent_at_socket(endpoint) as agent:
        for headers in ({"Origin": "http://localhost"}, {"Host": "attacker.example"}):
            assert await agent.status(INITIALIZE, **headers) == 403


async def test_a_socket_is_removed_with_its_endpoint_or_the_bridge(directory: Path) -> None:
    """A foreign file in its place is kept."""
    first, second = (replace(unix_endpoint(directory / f"{name}.sock"), name=name) for name in "ab")
    async with served(endpoints=(first, second)) as bridge:
        assert sorted(os.listdir(directory)) == ["a.sock", "b.sock"]
        bridge.editor.emit("endpoints", (second,))
        await eventually(lambda: os.listdir(directory) == ["b.sock"])
        os.unlink(directory / "b.sock")
        (directory / "b.sock").write_text("foreign")
    assert os.listdir(directory) == ["b.sock"]


async def test_no_endpoint_is_opened_after_the_disconnect(directory: Path) -> None:
    first, second = (replace(unix_endpoint(directory / f"{name}.sock"), name=name) for name in "ab")
    async with served(endpoints=(first,)) as bridge:
        await bridge.agents.disconnect()
        before = len(bridge.editor.reports)
        bridge.editor.emit("endpoints", (first, second))
        for _ in range(50):
            await asyncio.sleep(0)
        assert (os.listdir(directory), len(bridge.editor.reports)) == (["a.sock"], before)


async def test_an_abandoned_socket_is_replaced_but_not_another_file(endpoint: AgentEndpoint) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(endpoint.socket))
    left.close()
    async with served(endpoints=(endpoint,)) as bridge:
        assert bridge.editor.reports[-1] == ("endpoints", {"open": ["pipe"], "failed": {}})
    Path(str(endpoint.socket)).write_text("mine")
    async with served(endpoints=(endpoint,)) as bridge:
        ((_, report),) = bridge.editor.reports
        assert (report["open"], list(report["failed"])) == ([], ["pipe"])
    assert Path(str(endpoint.socket)).read_text() == "mine"


async def test_a_socket_needs_a_private_directory(tmp_path: Path, directory: Path) -> None:
    """Owned by this user, not a link, with a short enough path."""
    shared, linked, file = tmp_path / "shared", tmp_path / "linked", tmp_path / "file"
    shared.mkdir()
    shared.chmod(0o755)
    linked.symlink_to(directory)
    file.write_text("")
    directories = [shared, linked, file, tmp_path / "none", directory / ("x" * 100)]
    if os.getuid() == 0:
        foreign = tmp_path / "foreign"
        foreign.mkdir(mode=0o700)
        os.chown(foreign, 12345, 12345)
        directories.append(foreign)
    for each in directories:
        async with served(endpoints=(unix_endpoint(each / "a.sock"), HTTP)) as bridge:
            ((_, report),) = bridge.editor.reports
            assert (report["open"], list(report["failed"])) == (["web"], ["pipe"]), each
    assert [each.exists() for each in (shared / "a.sock", directory / "a.sock")] == [False, False]


async def test_a_socket_is_bound_once_when_opened_twice_at_the_same_time(
    endpoint: AgentEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
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
