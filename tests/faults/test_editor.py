"""The editor dies, stops or is held up while a call is under way: exact outcomes, and nothing runs late."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable

import pytest

from tests.support.bridge import Bridge
from tests.support.leaks import descendants
from tests.support.raw import Raw, begun, code_of, text_of, within

shares = pytest.mark.asyncio(loop_scope="session")
"""Uses the bridge of others, on its loop."""


async def test_killed_mid_call(bridge: Bridge, raw: Raw) -> None:
    """The call in flight is answered `editor_gone`, the bridge ends by itself within a second."""
    pid = await bridge.pid()
    call = asyncio.create_task(raw.call("hold"))
    await begun(bridge)
    killed = time.monotonic()
    await bridge.nvim.kill()

    assert code_of(await within(3, call)) == "editor_gone"
    while pid in descendants():
        assert time.monotonic() - killed < 2, "the bridge outlives its editor"
        await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_killed_with_an_open_stream(bridge: Bridge, raw: Raw) -> None:
    """An open event stream ends with the editor."""
    async with raw.http.get(f"{bridge.url}/mcp", headers=raw.headers()) as stream:
        assert stream.status == 200
        await bridge.nvim.kill()
        await within(3, stream.content.read())


@shares
@pytest.mark.slow
async def test_stopped_and_continued_mid_call(held: Bridge, held_client: Raw) -> None:
    """A call that has started waits through a silent editor and gets its result."""
    call = asyncio.create_task(held_client.call("later", {"ms": 300, "value": "there"}))
    await held.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 1")
    held.nvim.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(2.5)
    assert not call.done()
    held.nvim.process.send_signal(signal.SIGCONT)

    assert text_of(await within(3, call)) == "there"


@shares
@pytest.mark.slow
async def test_stopped_before_a_call(held: Bridge, held_client: Raw) -> None:
    """A call to a stopped editor is `editor_blocked` in time, and does not run when the editor goes on."""
    held.nvim.process.send_signal(signal.SIGSTOP)
    try:
        begin = time.monotonic()
        result = await within(3, held_client.call("mark"))
        assert code_of(result) == "editor_blocked"
        assert time.monotonic() - begin >= 1.9
    finally:
        held.nvim.process.send_signal(signal.SIGCONT)
    await runs_nothing_late(held, held_client)


async def runs_nothing_late(bridge: Bridge, raw: Raw) -> None:
    """The refused call did not run; the next one does."""
    await asyncio.sleep(0.3)
    assert await bridge.nvim.lua("return Seen.late") == 0
    assert text_of(await raw.call("mark")) == "ran"
    assert await bridge.nvim.lua("return Seen.late") == 1


async def hit_enter(bridge: Bridge) -> None:
    """A message that waits for a key."""
    await bridge.nvim.lua("vim.schedule(function() vim.cmd([[echoerr 'one' | echoerr 'two']]) end)")


async def pending_key(bridge: Bridge) -> None:
    """Half of a normal-mode command."""
    await bridge.nvim.request("nvim_input", "g")


async def register_key(bridge: Bridge) -> None:
    """A register that waits for its name."""
    await bridge.nvim.request("nvim_input", '"')


HELD: dict[str, tuple[Callable[[Bridge], Awaitable[None]], str]] = {
    "hit-enter": (hit_enter, "Enter"),
    "pending key": (pending_key, "Esc"),
    "register": (register_key, "Esc"),
}


@shares
@pytest.mark.every_nvim
@pytest.mark.parametrize(
    "how", [how if how == "pending key" else pytest.param(how, marks=pytest.mark.slow) for how in HELD]
)
async def test_waits_for_a_key(held: Bridge, held_client: Raw, how: str) -> None:
    """An editor that waits for a key: `editor_blocked` names what to press, and nothing runs late."""
    hold, key = HELD[how]
    await hold(held)
    await asyncio.sleep(0.1)
    mode = await held.nvim.request("nvim_get_mode")
    if not mode["blocking"]:
        pytest.skip(f"this Neovim does not block there (mode {mode['mode']})")

    result = await within(3, held_client.call("mark"))

    assert code_of(result) == "editor_blocked"
    assert key in text_of(result)
    await held.nvim.request("nvim_input", "<Esc><CR>")
    await runs_nothing_late(held, held_client)


@shares
@pytest.mark.every_nvim
async def test_is_freed_in_time(held: Bridge, held_client: Raw) -> None:
    """A person who presses the key within two seconds loses nothing: the call runs."""
    await pending_key(held)
    call = asyncio.create_task(held_client.call("mark"))
    await asyncio.sleep(0.5)
    await held.nvim.request("nvim_input", "<Esc>")

    assert text_of(await within(3, call)) == "ran"


@shares
@pytest.mark.nvim("0.10")
async def test_confirm(held: Bridge, held_client: Raw) -> None:
    """`confirm()` holds Neovim 0.10: the call is refused and does not run late."""
    await held.nvim.lua("vim.schedule(function() vim.fn.confirm('sure?', '&yes\\n&no') end)")
    await asyncio.sleep(0.2)

    assert code_of(await within(3, held_client.call("mark"))) == "editor_blocked"
    await held.nvim.request("nvim_input", "y")
    await runs_nothing_late(held, held_client)


@shares
@pytest.mark.slow
async def test_busy_in_a_system_call(held: Bridge, held_client: Raw) -> None:
    """An editor that is silent for 5 s: `editor_blocked` says so, and the call does not run afterwards."""
    await held.nvim.lua("vim.schedule(function() vim.fn.system('sleep 5') end)")
    await asyncio.sleep(0.1)

    result = await within(3, held_client.call("mark"))

    assert code_of(result) == "editor_blocked"
    assert "busy" in text_of(result)
    await held.nvim.lua("return 1", timeout=8000)
    await runs_nothing_late(held, held_client)


@shares
@pytest.mark.slow
@pytest.mark.parametrize("tool", ["slowly_judged", "slowly_made"])
async def test_held_up_before_the_tool_begins(held: Bridge, held_client: Raw, tool: str) -> None:
    """A call whose judging, or the making of its state, takes longer than the start limit does not run."""
    result = await within(4, held_client.call(tool, {"ms": 2600}))

    assert code_of(result) == "editor_blocked"
    await runs_nothing_late(held, held_client)


@shares
@pytest.mark.slow
async def test_a_tool_that_blocks_the_editor(held: Bridge, held_client: Raw) -> None:
    """A tool that holds up the editor longer than the start limit still gets its result through."""
    result = await within(6, held_client.call("block", {"seconds": 3}))

    assert text_of(result) == "awake"


@shares
@pytest.mark.slow
async def test_a_call_inside_the_wait_of_another_tool(held: Bridge, held_client: Raw) -> None:
    """A tool that waits in `vim.wait` is not reported as "did not run" because another call ran meanwhile."""
    waiting = asyncio.create_task(held_client.call("wait", {"seconds": 3.5}))
    await asyncio.sleep(0.5)
    inner = await within(2, held_client.call("mark"))

    assert text_of(inner) == "ran"
    assert text_of(await within(6, waiting)) == "waited"
    await held.nvim.lua("Seen.late = 0")


@pytest.mark.slow
async def test_quit_while_a_call_runs(bridge: Bridge, raw: Raw) -> None:
    """`:qall!` with a call in flight: the client hears it, the bridge is gone, no instance file is left."""
    pid = await bridge.pid()
    call = asyncio.create_task(raw.call("hold"))
    await begun(bridge)
    await bridge.nvim.stop()

    assert code_of(await within(3, call)) in ("editor_gone", "cancelled")
    end = time.monotonic() + 3
    while pid in descendants():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    assert list(bridge.nvim.home.runtime.rglob("*.json")) == []
