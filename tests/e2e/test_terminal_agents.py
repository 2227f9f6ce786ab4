"""Terminal agents, end to end: a fake agent finds a real editor by its file, and connects."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType

from tests.support import bridge as support
from tests.support.bridge import Bridge, Start
from tests.support.nvim import ROOT, Home, Spawn
from tests.support.results import eventually
from tests.support.served import events, next_event
from tests.unit.agents.agents import INITIALIZE, INITIALIZED, Agent, call, request

FIXTURES = ROOT / "tests" / "lua" / "fixtures" / "agents"
NAMES = ("made_up_http", "made_up_websocket", "made_up_unix")
INIT = "vim.opt.runtimepath:append([[{}]]) vim.env.MADE_UP_FOLDER = [[{}]]"
SETUP = "{{ agents = {{ '{}' }} }}"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "agent"
    path.mkdir(mode=0o700)
    return path


async def start(start_bridge: Start, directory: Path, name: str, **options: Any) -> Bridge:
    """A bridge whose editor knows one agent."""
    return await start_bridge(init=INIT.format(FIXTURES, directory), setup=SETUP.format(name), **options)


async def found(directory: Path) -> dict[str, Any]:
    """The discovery file, as soon as there is one."""
    files = await eventually(lambda: list((directory / "ide").glob("*.lock")))
    return json.loads(files[0].read_text())


async def recorded(bridge: Bridge, name: str, what: str) -> list[Any]:
    """The events of this kind that the agent's Lua side has recorded, once there is one."""
    code = "return vim.tbl_filter(function(e) return e[1] == '{}' end, probe.agent('{}').told)"
    await bridge.nvim.wait_for(f"return next((function() {code.format(what, name)} end)()) ~= nil")
    return await bridge.nvim.lua(code.format(what, name))


def agent_for(http: aiohttp.ClientSession, endpoint: dict[str, Any]) -> Agent:
    return Agent(http, f"http://127.0.0.1:{endpoint['port']}", f"Bearer {endpoint['token']}")


async def messages(response: aiohttp.ClientResponse) -> Any:
    async for _, _, message in events(response):
        if message:
            yield message


CONTEXT = "context/changed"
"""Sent whenever the user does something."""


async def next_streamed(received: Any) -> Any:
    """The next message of a stream that is not about context."""
    while (message := await next_event(received))["method"] == CONTEXT:
        pass
    return message


async def next_sent(ws: aiohttp.ClientWebSocketResponse) -> Any:
    """The same of a WebSocket."""
    while (message := await ws.receive_json(timeout=5)).get("method") == CONTEXT:
        pass
    return message


async def test_an_agent_over_http_gets_events_and_proposes_changes(
    start_bridge: Start, directory: Path
) -> None:
    bridge = await start(start_bridge, directory, "made_up_http")
    endpoint = await found(directory)
    async with aiohttp.ClientSession() as http:
        agent = agent_for(http, endpoint)
        assert (await agent.initialize())["serverInfo"] == {"name": "made-up-editor", "version": "7"}
        async with await agent.get() as stream:
            received = messages(stream)
            assert (await next_streamed(received))["method"] == "hello"
            proposal = asyncio.ensure_future(agent.ask(call("openDiff", 5, text="new", path="/elsewhere/a")))
            await recorded(bridge, "made_up_http", "open")
            assert (await agent.ask(call("answerDiff", 6, verdict="FILE_SAVED")))["result"] == {"content": []}
            answer = await proposal
            assert [part["text"] for part in answer["result"]["content"]] == ["FILE_SAVED", "new"]
            ended = {"jsonrpc": "2.0", "method": "proposal/ended", "params": {"verdict": "FILE_SAVED"}}
            assert await next_streamed(received) == ended
            pending = asyncio.ensure_future(agent.ask(call("openDiff", 7, text="x")))
            await asyncio.sleep(0)
            await bridge.nvim.wait_for("return #probe.executor():pending() == 1")
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
            async with await agent.post(cancel) as response:
                assert response.status == 202
            assert (await recorded(bridge, "made_up_http", "cancelled"))[0][1] == "client"
            assert "error" in await pending
        assert await agent.delete() == 200
        await recorded(bridge, "made_up_http", "left")


@pytest.mark.slow
async def test_agent_and_main_token_open_only_their_own_endpoint(
    start_bridge: Start, directory: Path
) -> None:
    bridge = await start(start_bridge, directory, "made_up_http")
    endpoint = await found(directory)
    assert endpoint["token"] != bridge.token
    async with aiohttp.ClientSession() as http:
        agent, ours = agent_for(http, endpoint), Agent(http, bridge.url, f"Bearer {bridge.token}")
        await agent.initialize()
        await ours.initialize()
        theirs = [tool["name"] for tool in (await agent.ask(request("tools/list")))["result"]["tools"]]
        assert theirs == ["answerDiff", "getPlace", "openDiff"]
        assert "error" in await ours.ask(call("getPlace"))
        assert "error" in await ours.ask(call("nvim_getPlace"))
        agent.headers = {"Authorization": f"Bearer {endpoint['token'][:-1]}0x"}
        async with await agent.post(INITIALIZE) as response:
            assert response.status == 401


async def test_an_agent_over_a_websocket_gets_events_and_answers(
    start_bridge: Start, directory: Path
) -> None:
    bridge = await start(start_bridge, directory, "made_up_websocket")
    endpoint = await found(directory)
    head = {"x-made-up-authorization": endpoint["token"]}
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"ws://127.0.0.1:{endpoint['port']}/", headers=head, protocols=("mcp",)) as ws,
    ):
        assert ws.protocol == "mcp"
        await ws.send_json(INITIALIZE)
        assert (await next_sent(ws))["result"]["serverInfo"]["name"] == "made-up-editor"
        await ws.send_json(INITIALIZED)
        await ws.send_json({"jsonrpc": "2.0", "method": "ide_connected", "params": {"pid": 4}})
        assert (await next_sent(ws))["method"] == "hello"
        assert (await next_sent(ws))["params"] == {"method": "ide_connected"}
        assert (await recorded(bridge, "made_up_websocket", "notified"))[0][1:] == [
            "ide_connected",
            {"pid": 4},
        ]
        await ws.send_json(call("openDiff", 3, text="x"))
        await recorded(bridge, "made_up_websocket", "open")
        await ws.close()
        assert (await recorded(bridge, "made_up_websocket", "cancelled"))[0][1]
        await recorded(bridge, "made_up_websocket", "left")
        origin = {"Origin": "https://attacker.example"}
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(f"ws://127.0.0.1:{endpoint['port']}/", headers=head | origin)
        assert refused.value.status == 403


@pytest.mark.slow
async def test_an_agent_at_a_private_unix_socket(start_bridge: Start, directory: Path) -> None:
    bridge = await start(start_bridge, directory, "made_up_unix")
    endpoint = await found(directory)
    socket = Path(endpoint["socket"])
    assert socket.is_socket()
    assert (socket.stat().st_mode & 0o777, socket.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as http:
        agent = Agent(http, "http://localhost", f"Nonce {endpoint['token']}")
        await agent.initialize()
        async with await agent.get() as stream:
            assert (await next_event(messages(stream)))["method"] == "hello"
            place = json.loads((await agent.ask(call("getPlace")))["result"]["content"][0]["text"])
            assert (await recorded(bridge, "made_up_unix", "opened"))[0][1:] == ["agent", "3"]
            live = "return probe.sessions.session(...).client"
            assert await bridge.nvim.lua(live, place["session"]) == "agent"
    await bridge.nvim.stop()
    assert not socket.exists()
    assert list((directory / "ide").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["restart", "kill"])
async def test_an_agent_reconnects(start_bridge: Start, directory: Path, way: str) -> None:
    bridge = await start(start_bridge, directory, "made_up_http")
    endpoint = await found(directory)
    async with aiohttp.ClientSession() as http:
        agent = agent_for(http, endpoint)
        await agent.initialize()
        async with await agent.get() as stream:
            assert (await next_event(messages(stream)))["method"] == "hello"
            if way == "kill":
                os.kill(await bridge.pid(), signal.SIGKILL)
            else:
                await bridge.nvim.lua("probe.bridge.restart()")
            await recorded(bridge, "made_up_http", "left")
        restarted = "return (mcp_tools.status().pid or ...) ~= ... and mcp_tools.endpoint()"
        await bridge.nvim.wait_for(restarted, endpoint["bridge_pid"], timeout=15_000)
        async with await agent.get() as stream:
            assert (await next_event(messages(stream)))["method"] == "hello"
        opened = await recorded(bridge, "made_up_http", "opened")
        assert len(opened) == 2
        again = await found(directory)
        assert (again["port"], again["token"]) == (endpoint["port"], endpoint["token"])


@pytest.mark.slow
async def test_a_bridge_that_ends_accepts_no_connection(start_bridge: Start, directory: Path) -> None:
    """Some agents reconnect at once, and do not notice when that connection ends as well."""
    bridge = await start(start_bridge, directory, "made_up_websocket")
    endpoint = await found(directory)
    head, url = {"x-made-up-authorization": endpoint["token"]}, f"http://127.0.0.1:{endpoint['port']}/"
    async with aiohttp.ClientSession() as http:
        ws = await http.ws_connect(url, headers=head)
        await ws.send_json(INITIALIZE)
        await next_sent(ws)
        # What is in flight keeps the bridge for a moment.
        await ws.send_json(call("openDiff", 2, text="new", path="/elsewhere/a"))
        await recorded(bridge, "made_up_websocket", "open")
        await bridge.nvim.lua("probe.bridge.restart()")
        while (await ws.receive(timeout=5)).type is WSMsgType.TEXT:
            pass
        async with asyncio.timeout(15):
            while True:
                try:
                    ws = await http.ws_connect(url, headers=head)
                    break
                except (aiohttp.ClientError, OSError):
                    await asyncio.sleep(0)
        await ws.send_json(INITIALIZE)
        assert "result" in await next_sent(ws)
        assert (await found(directory))["bridge_pid"] != endpoint["bridge_pid"]
        await ws.send_json(call("openDiff", 3, text="new", path="/elsewhere/a"))
        await recorded(bridge, "made_up_websocket", "open")
        await ws.close()


@pytest.mark.slow
async def test_projects_have_their_own_endpoint(start_bridge: Start, directory: Path, tmp_path: Path) -> None:
    bridge = await start(start_bridge, directory, "made_up_http")
    before = await found(directory)
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    await bridge.nvim.lua("probe.bridge.restart({ root = ... })", str(other))
    await bridge.nvim.wait_for(
        "local file = probe.agents.status()[1].files[1] return file and not file:find(...)",
        f"{before['port']}.lock",
        timeout=15_000,
    )
    after = await found(directory)
    assert len(list((directory / "ide").iterdir())) == 1
    assert (after["roots"][0], after["token"] != before["token"]) == (str(other.resolve()), True)
    async with aiohttp.ClientSession() as http:
        agent = agent_for(http, after | {"token": before["token"]})
        async with await agent.post(INITIALIZE) as response:
            assert response.status == 401
        agent = agent_for(http, after)
        await agent.initialize()


@pytest.mark.slow
async def test_endpoints_follow_the_option_without_a_restart(start_bridge: Start, directory: Path) -> None:
    bridge = await start(start_bridge, directory, "made_up_websocket")
    endpoint = await found(directory)
    async with aiohttp.ClientSession() as http:
        url = f"ws://127.0.0.1:{endpoint['port']}/"
        head = {"x-made-up-authorization": endpoint["token"]}
        ws = await http.ws_connect(url, headers=head)
        await ws.send_json(INITIALIZE)
        await ws.receive_json(timeout=5)
        await bridge.nvim.lua("mcp_tools.setup({ agents = { 'made_up_unix' } })")
        assert (await ws.receive(timeout=5)).type in (WSMsgType.CLOSE, WSMsgType.CLOSED)
        await ws.close()
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await http.ws_connect(url, headers=head)
        await bridge.nvim.wait_for("return probe.agents.status()[1].files[1]")
        assert Path((await found(directory))["socket"]).is_socket()
        await bridge.nvim.lua("mcp_tools.setup({ agents = {} })")
        await eventually(lambda: not list((directory / "ide").iterdir()))


@pytest.mark.slow
async def test_a_dead_editors_file_is_replaced(spawn_nvim: Spawn, home: Home, directory: Path) -> None:
    async def life(name: str) -> Bridge:
        return await support.start(
            spawn_nvim, init=INIT.format(FIXTURES, directory), setup=SETUP.format(name), home=home
        )

    bridge = await life("made_up_unix")
    endpoint = await found(directory)
    await bridge.nvim.kill()
    others = directory / "ide" / "1.lock"
    others.write_text("foreign")
    second = await life("made_up_http")
    await second.nvim.wait_for("return probe.agents.status()[1].files[1]")
    assert others.read_text() == "foreign"
    others.unlink()
    assert (await found(directory))["pid"] != endpoint["pid"]
    assert len(list((directory / "ide").iterdir())) == 1


@pytest.mark.slow
async def test_the_end_of_neovim_rejects_open_proposals(start_bridge: Start, tmp_path: Path) -> None:
    """Gemini CLI would wait forever. Until it is connected, the status says what to type in it."""
    bridge = await start_bridge(setup="{ agents = { 'gemini' } }")
    await bridge.nvim.wait_for("return probe.agents.status()[1].state == 'on'")
    shown = (
        "vim.cmd('McpTools status') return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), '\\n')"
    )
    text = await bridge.nvim.lua(shown)
    assert "/ide enable" in text
    token = await bridge.nvim.lua(
        "local token = probe.current.launch.identity.token return probe.agents.token(token, 'gemini')"
    )
    async with aiohttp.ClientSession() as http:
        agent = Agent(http, bridge.url.removesuffix("/mcp"), f"Bearer {token}")
        await agent.initialize()
        async with await agent.get() as stream:
            received = messages(stream)
            await bridge.nvim.wait_for("return #probe.sessions.sessions('gemini') > 0")
            path = str(tmp_path / "new.txt")
            await agent.ask(call("openDiff", filePath=path, newContent="x"))
            await bridge.nvim.wait_for("return probe.review.count() == 1")
            assert "/ide enable" not in await bridge.nvim.lua(shown)
            ending = asyncio.create_task(bridge.nvim.stop())
            async with asyncio.timeout(10):
                async for message in received:
                    if message["method"] == "ide/diffRejected":
                        break
            assert message["params"] == {"filePath": path}
        await ending
