"""The typed verbs against a real Neovim with a small wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from mcp_tools_nvim.calls.runner import Calls
from mcp_tools_nvim.errors import Code, StartError
from mcp_tools_nvim.neovim.clock import WINDOW
from mcp_tools_nvim.neovim.nvim import NvimEditor
from mcp_tools_nvim.values import (
    AgentEndpoint,
    CallRequest,
    ClientInfo,
    FieldError,
    HelloInfo,
    Limits,
    Sender,
    ServerInfo,
    Settings,
)
from tests.support.memory import Seen
from tests.support.nvim import Nvim, Spawn

WIRE = Path(__file__).resolve().parents[2] / "support" / "wire.lua"
INFO = HelloInfo(1, 2, 3, "none", {"bridge": "b"})
SENDER = Sender(ClientInfo("test", "1"), "session", {"x": 1})
LAST = "return vim.iter(probe.wire.seen):filter(function(e) return e[1] == 'execute' end):last()"


class Setup:
    def __init__(self, nvim: Nvim, editor: NvimEditor) -> None:
        self.nvim, self.editor = nvim, editor
        self.calls = Calls(editor, Settings(tool_timeout=5000), "boot")
        self.seen = Seen()

    async def run(self, name: str, **arguments: Any) -> Any:
        return await self.calls.run(CallRequest(name, arguments, SENDER), self.seen)

    async def noted(self, verb: str) -> list[Any]:
        entries = await self.nvim.lua("return probe.wire.seen")
        return [entry[1:] for entry in entries if entry[0] == verb]


@pytest.fixture
async def nvim(spawn_nvim: Spawn) -> Nvim:
    return await spawn_nvim(init_lua=f"dofile([[{WIRE}]])")


@pytest.fixture
async def editor(nvim: Nvim) -> AsyncIterator[NvimEditor]:
    opened = await NvimEditor.open(str(nvim.socket))
    yield opened
    opened.close()
    await opened.closed


@pytest.fixture
async def setup(nvim: Nvim, editor: NvimEditor) -> Setup:
    await editor.hello(INFO)
    return Setup(nvim, editor)


async def test_hello_reads_known_settings(nvim: Nvim, editor: NvimEditor) -> None:
    await nvim.lua("""probe.wire.settings = { tool_timeout = 7, allowed_hosts = { 'a' },
      instructions = 'i', limits = { calls = 5, new_one = 1 }, new_one = true, allowed_origins = {} }""")
    hello = await editor.hello(INFO)
    known = Settings(tool_timeout=7, allowed_hosts=("a",), instructions="i", limits=Limits(calls=5))
    assert hello.settings == known
    assert (hello.boot, hello.revisions, hello.token) == ("boot-of-the-editor", {"tools": 3}, None)
    again = await editor.hello(HelloInfo(1, 2, 3, "foreign", INFO.versions))
    assert again.token == "new-token"
    numbers = {"protocol": 1, "pid": 1, "port": 2, "wanted_port": 3}
    texts = {"port_holder": "none", "role": "bridge", "launch": "", "versions": {"bridge": "b"}}
    assert await nvim.lua("return probe.wire.seen[1][2]") == numbers | texts


async def test_an_unchanged_list_is_not_sent_again(setup: Setup) -> None:
    listing = await setup.editor.list("tools", None)
    assert listing.revision == 3
    assert json.loads(listing.json or "") == [{"name": "nvim_echo", "kind": "tools"}]
    assert (await setup.editor.list("tools", 3)).json is None


async def test_results_and_options_of_calls_pass_the_wire(setup: Setup) -> None:
    assert (await setup.run("echo", text="hé")).text == "hé"
    value = await setup.run("value")
    assert (value.kind, value.text, value.structured) == ("json", '{"n":1}', True)
    failed = await setup.run("fail")
    assert (failed.error.code, failed.schema_bound) == (Code.STALE, True)
    assert failed.error.errors == (FieldError("n", "caf\ufffd"),)
    for size in (10, 65_536, 65_537, 3 << 20):
        assert len((await setup.run("later", ms=5, size=size)).text) == size
    name, options = (await setup.noted("execute"))[1]
    assert name == "value"
    assert options["client"] == {"name": "test", "version": "1"}
    assert (options["session"], options["capabilities"]) == ("session", {"x": 1})
    assert options["timeout"] == 5000


async def test_an_error_in_lua_is_logged_and_not_sent(setup: Setup, caplog: pytest.LogCaptureFixture) -> None:
    outcome = await setup.run("throw")
    assert outcome.error.code is Code.EXECUTION_ERROR
    assert "secret" not in outcome.error.message
    assert any("secret path" in text for text in caplog.messages)


async def test_asking_for_the_mode_renews_an_old_clock_sample(setup: Setup) -> None:
    clock = setup.editor._clock
    clock._seen = monotonic() - WINDOW - 1
    mode = await setup.editor.mode()
    assert mode
    assert not mode.blocking
    assert not clock.stale(monotonic())
    true = await setup.nvim.lua("return vim.uv.hrtime()")
    assert -50_000_000 < clock.to_editor(monotonic()) - true < 50_000_000


class ShiftedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock is not `time.monotonic`, like uvloop on a Mac after an hour of sleep."""

    turns = 0

    def time(self) -> float:
        return super().time() + 3600

    def _run_once(self) -> None:
        self.turns += 1
        super()._run_once()  # type: ignore[misc]


async def test_deadlines_follow_the_clock_of_the_loop(nvim: Nvim) -> None:
    async def calls() -> None:
        time = asyncio.get_running_loop().time
        editor = await NvimEditor.open(str(nvim.socket))
        setup = Setup(nvim, editor)
        await editor.hello(INFO)
        asked = editor.list("tools", 3)
        assert (await setup.run("later", ms=200, size=1)).text == "x"
        running = asyncio.ensure_future(setup.run("forever"))
        await asyncio.sleep(0.3)
        assert not running.done()
        assert (await asked).json is None
        _, name, options = await editor._channel.request("nvim_exec_lua", (LAST, ()), time() + 5)
        assert name == "forever"
        assert 0 < options["start_by"] - editor._clock.to_editor(time()) < 2_000_000_000
        assert editor._channel.last_heard == pytest.approx(time(), abs=1)
        running.cancel()
        await asyncio.wait({running})
        editor.close()
        await editor.closed
        assert asyncio.get_running_loop().turns < 1000  # type: ignore[attr-defined]

    def run() -> None:
        with asyncio.Runner(loop_factory=ShiftedLoop) as runner:
            runner.run(calls())

    await asyncio.to_thread(run)


async def test_invalid_events_are_logged(setup: Setup, caplog: pytest.LogCaptureFixture) -> None:
    for event in ("'wake'", "'wake', 1", "'nonsense', 1", "'started', 'x', 'y'", "'log', 'x', 'info', '{'"):
        await setup.nvim.lua(f"vim.rpcnotify(probe.wire.channel, {event})")
    assert (await setup.run("echo", text="x")).text == "x"
    assert len([record for record in caplog.records if record.name.startswith("mcp_tools_nvim.")]) == 5


async def test_a_missing_editor_error_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"no Neovim at .*NVIM_LISTEN_ADDRESS"):
        await NvimEditor.open(str(tmp_path / "absent"))


async def test_endpoints_and_pushes_arrive_and_invalid_utf_8_is_replaced(setup: Setup) -> None:
    endpoint = {"name": "agent", "token": "secret", "transport": "unix", "header": "X-Token"}
    endpoint |= {"scheme": "nonce", "socket": "/s", "server": {"name": "n", "version": "1"}}
    assert (await setup.editor.hello(INFO)).endpoints == ()
    await setup.nvim.lua(f"probe.wire.endpoints = {{ vim.json.decode([[{json.dumps(endpoint)}]]) }}")
    about = {"scheme": "nonce", "socket": "/s"}
    expected = AgentEndpoint("agent", "secret", "unix", "x-token", ServerInfo("n", "1"), **about)
    assert (await setup.editor.hello(INFO)).endpoints == (expected,)
    endpoints: asyncio.Queue[tuple[AgentEndpoint, ...]] = asyncio.Queue()
    pushed: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()
    setup.editor.on("endpoints", endpoints.put_nowait)
    setup.editor.on("push", lambda *push: pushed.put_nowait(push))
    emit = "vim.rpcnotify(probe.wire.channel, {})"
    await setup.nvim.lua(emit.format(f"'endpoints', [=[{json.dumps([endpoint])}]=]"))
    await setup.nvim.lua(emit.format("'endpoints', '{}'"))
    await setup.nvim.lua(emit.format("'push', 'agent', 's1', 'moved', '{\"t\":\"caf\\233\"}', true"))
    await setup.nvim.lua(emit.format("'push', 'agent', vim.NIL, 'moved', '{}', false"))
    async with asyncio.timeout(10):
        assert [await endpoints.get(), await endpoints.get()] == [(expected,), ()]
        assert await pushed.get() == ("agent", "s1", "moved", '{"t":"caf\ufffd"}', True)
        assert await pushed.get() == ("agent", None, "moved", "{}", False)
    setup.editor.agent_event("left", {"agent": "agent", "session": "s1"})
    await setup.editor.settle(1)
    channel = await setup.nvim.lua("return probe.wire.channel")
    assert await setup.noted("agent_event") == [["left", {"agent": "agent", "session": "s1"}, channel]]
