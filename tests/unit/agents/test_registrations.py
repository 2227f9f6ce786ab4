"""The bridge registers with OpenCode servers with a separate token and revokes it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from mcp_tools_nvim.agents import registrations as module
from tests.support.served import TOKEN, Served, eventually, served

from .agents import INITIALIZE, Agent, call

pytestmark = pytest.mark.asyncio


class OpenCode:
    """Its documented API: it connects to a new MCP server before it answers."""

    def __init__(self) -> None:
        self.entries: dict[str, str] = {}
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.configs: list[dict[str, Any]] = []
        self.wrong: Callable[[], web.Response] | None = None
        self.seconds = 0.0  # for a disconnect
        self.connect_seconds = 0.0
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        self.requests.append((request.method, request.path, dict(request.headers), body))
        if self.wrong is not None:
            return self.wrong()
        if request.path.endswith("/disconnect"):
            await asyncio.sleep(self.seconds)
            self.entries[request.path.split("/")[2]] = "disabled"
            return web.json_response(True)
        if request.method == "POST":
            self.configs.append(body["config"])
            self.entries[body["name"]] = "connected"
            await asyncio.sleep(self.connect_seconds)
        return web.json_response({name: {"status": status} for name, status in self.entries.items()})


@pytest_asyncio.fixture
async def opencode() -> AsyncIterator[OpenCode]:
    server = OpenCode()
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture
async def bridge(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.05)
    async with served() as running:
        running.editor.add_tool("echo", lambda ctx, arguments: arguments.get("text", "nothing"))
        yield running
        await running.agents.disconnect()


def want(bridge: Served, *urls: str, **more: Any) -> None:
    """Sends the configured servers of the editor."""
    servers = [{"url": url, **more} for url in urls]
    bridge.editor.emit("integrations", {"url": bridge.url + "/mcp", "servers": servers})


def states(bridge: Served) -> list[dict[str, str]]:
    """The last states reported to the editor."""
    found = [data["servers"] for kind, data in bridge.editor.reports if kind == "integrations"]
    return found[-1] if found else []


async def becomes(bridge: Served, state: str, fault: str = "") -> None:
    await eventually(lambda: any(e["state"] == state and fault in e["fault"] for e in states(bridge)))


async def register(bridge: Served, opencode: OpenCode, **more: Any) -> None:
    want(bridge, opencode.url, **more)
    await becomes(bridge, "connected")


@asynccontextmanager
async def agent_of(config: dict[str, Any]) -> AsyncIterator[Agent]:
    """A client with the URL and token that the server received."""
    async with aiohttp.ClientSession() as http:
        yield Agent(http, config["url"].removesuffix("/mcp"), config["headers"]["Authorization"])


async def test_a_server_gets_a_separate_token_for_the_tools(bridge: Served, opencode: OpenCode) -> None:
    await register(bridge, opencode, headers={"Authorization": "Basic x"})
    assert {headers["Authorization"] for _, _, headers, _ in opencode.requests} == {"Basic x"}
    assert TOKEN not in json.dumps(opencode.configs)
    async with agent_of(opencode.configs[0]) as agent:
        await agent.initialize()
        answer = await agent.ask(call("nvim_echo", text="hi"))
        assert answer["result"]["content"][0]["text"] == "hi"
        async with agent.http.get(bridge.url + "/sse", headers=agent.headers) as response:
            assert response.status == 404, "only /mcp"
        agent.session = await bridge.initialize()
        assert await agent.status(call("nvim_echo")) == 404, "no session of another client"


async def test_the_token_is_revoked_when_the_registration_ends(bridge: Served, opencode: OpenCode) -> None:
    await register(bridge, opencode)
    async with agent_of(opencode.configs[0]) as agent:
        await agent.initialize()
        want(bridge)
        await eventually(lambda: opencode.entries["nvim-tools"] == "disabled")
        assert await agent.status(call("nvim_echo")) == 401
        assert states(bridge) == []


async def test_a_registration_that_ends_too_early_is_removed(bridge: Served, opencode: OpenCode) -> None:
    opencode.connect_seconds = 0.5
    want(bridge, opencode.url)
    await eventually(lambda: opencode.configs)
    want(bridge)
    await eventually(lambda: opencode.entries["nvim-tools"] == "disabled")


async def test_a_process_that_takes_the_port_gets_no_valid_token(bridge: Served, opencode: OpenCode) -> None:
    await register(bridge, opencode)
    await opencode.stop()
    await becomes(bridge, "waiting", "nothing listens there")
    async with agent_of(opencode.configs[0]) as agent:
        assert await agent.status(INITIALIZE) == 401


async def test_a_restarted_server_is_registered_with_a_new_token(bridge: Served, opencode: OpenCode) -> None:
    await register(bridge, opencode)
    opencode.entries.clear()
    await eventually(lambda: len(opencode.configs) == 2)
    first, second = (config["headers"]["Authorization"] for config in opencode.configs)
    assert first != second


async def test_checks_of_an_unreachable_server_stop_until_it_is_configured_again(
    bridge: Served, opencode: OpenCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK_FOR", 0.0)
    opencode.wrong = lambda: web.Response(status=500)
    want(bridge, opencode.url)
    await becomes(bridge, "waiting", "status 500")
    (registration,) = bridge.agents._registrations._by_url.values()
    await eventually(lambda: not registration._wake.is_set())
    count = len(opencode.requests)
    opencode.wrong = None
    await register(bridge, opencode)
    assert count == 1


async def test_a_server_is_registered_again_after_its_disconnect(bridge: Served, opencode: OpenCode) -> None:
    """Its own entry is not mistaken for a foreign one."""
    await register(bridge, opencode)
    opencode.seconds = 0.5
    for _ in range(3):
        want(bridge)
        want(bridge, opencode.url)
        await asyncio.sleep(0.05)
    await eventually(lambda: len(opencode.configs) == 2 and states(bridge)[0]["state"] == "connected")
    reported = [each["state"] for kind, data in bridge.editor.reports for each in data.get("servers", ())]
    assert "others" not in reported


async def test_an_entry_of_another_program_is_kept(bridge: Served, opencode: OpenCode) -> None:
    opencode.entries["nvim-tools"] = "connected"
    want(bridge, opencode.url)
    await becomes(bridge, "others")
    want(bridge)
    await eventually(lambda: states(bridge) == [])
    assert (opencode.configs, opencode.entries) == ([], {"nvim-tools": "connected"})


async def test_an_entry_of_an_earlier_bridge_is_replaced(bridge: Served, opencode: OpenCode) -> None:
    opencode.entries["nvim-tools"] = "connected"
    await register(bridge, opencode, registered=True)
    assert len(opencode.configs) == 1


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (lambda: web.json_response({}, status=401), "password_env"),
        (lambda: web.Response(text="hi"), "not from OpenCode"),
        (lambda: web.Response(status=307, headers={"Location": "http://127.0.0.1:1/"}), "status 307"),
    ],
)
async def test_another_server_is_reported(bridge: Served, opencode: OpenCode, wrong: Any, fault: str) -> None:
    opencode.wrong = wrong
    want(bridge, opencode.url)
    await becomes(bridge, "waiting", fault)
    assert opencode.configs == []


@pytest.mark.parametrize(
    "entry", ["x", {"status": "failed", "error": "\x1b]0;x\x07\n\u202ex"}, {"error": ["x"]}, None]
)
async def test_a_failed_registration_leaves_no_token(bridge: Served, opencode: OpenCode, entry: Any) -> None:
    opencode.wrong = lambda: web.json_response({"nvim-tools": entry})
    want(bridge, opencode.url)
    await becomes(bridge, "waiting", "it could not connect")
    assert all(each["fault"].isprintable() for each in states(bridge))
    sent = [body["config"] for method, _, _, body in opencode.requests if method == "POST"]
    async with agent_of(sent[0]) as agent:
        assert await agent.status(call("nvim_echo")) == 401


async def test_a_server_of_others_gets_no_request(
    bridge: Served, opencode: OpenCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, port = tmp_path / "tcp", int(opencode.url.rpartition(":")[2])
    line = "   0: 0100007F:%04X 00000000:0000 %s 00000000:00000000 00:00000000 00000000 %5d        0 1 1\n"
    table.write_text("  sl  local_address\n" + line % (port, "0A", os.getuid() + 1))
    monkeypatch.setattr(module, "SOCKET_TABLES", (tmp_path / "none", table))
    want(bridge, opencode.url, headers={"Authorization": "Basic x"})
    await becomes(bridge, "waiting", "another user")
    assert not opencode.requests
    others = [line % (port, "01", 4711), line % (port, "0A", os.getuid()), line % (port + 1, "0A", 4711)]
    table.write_text("  sl  local_address\n" + "".join(others))
    await becomes(bridge, "connected")


async def test_only_loopback_addresses_are_accepted(bridge: Served) -> None:
    want(bridge, "http://example.org:4096", "https://127.0.0.1:1", "http://a@127.0.0.1:1")
    refused = "not an address of this machine"
    await eventually(lambda: len([each for each in states(bridge) if refused in each["fault"]]) == 3)


async def test_the_end_of_the_bridge_ends_the_registration(bridge: Served, opencode: OpenCode) -> None:
    await register(bridge, opencode)
    await bridge.agents.disconnect()
    assert opencode.entries["nvim-tools"] == "disabled"
