"""The editor is killed, stopped or blocked during a call: exact outcomes, and nothing runs late."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from tests.support.bridge import Bridge, Start
from tests.support.leaks import descendants
from tests.support.raw import Raw, begun, code_of, text_of, within
from tests.support.results import eventually

shares = pytest.mark.asyncio(loop_scope="session")
"""Uses a shared bridge, on its event loop."""


@pytest.mark.parametrize("how", ["killed", pytest.param("quit", marks=pytest.mark.slow)])
async def test_call_and_bridge_end_with_the_editor(bridge: Bridge, raw: Raw, how: str) -> None:
    pid = await bridge.pid()
    call = asyncio.create_task(raw.call("hold"))
    await begun(bridge)
    await (bridge.nvim.kill() if how == "killed" else bridge.nvim.stop())
    assert code_of(await within(10, call)) in ("editor_gone", "cancelled" if how == "quit" else "")
    await eventually(lambda: pid not in descendants(), 3)
    assert how == "killed" or list(bridge.nvim.home.runtime.rglob("*.json")) == []


@pytest.mark.slow
async def test_an_open_event_stream_ends_with_the_editor(bridge: Bridge, raw: Raw) -> None:
    async with raw.http.get(f"{bridge.url}/mcp", headers=raw.headers()) as stream:
        assert stream.status == 200
        await bridge.nvim.kill()
        await within(10, stream.content.read())


@shares
@pytest.mark.slow
async def test_a_call_that_has_started_waits_for_a_stopped_editor(held: Bridge, held_client: Raw) -> None:
    call = asyncio.create_task(held_client.call("later", {"ms": 300, "value": "there"}))
    await held.nvim.wait_for("return require('mcp-tools.registry').pending_count() == 1")
    held.nvim.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(2.5)
    assert not call.done()
    held.nvim.process.send_signal(signal.SIGCONT)
    assert text_of(await within(10, call)) == "there"


@shares
@pytest.mark.slow
async def test_a_call_to_a_stopped_editor_fails_and_never_runs(held: Bridge, held_client: Raw) -> None:
    held.nvim.process.send_signal(signal.SIGSTOP)
    try:
        begin = time.monotonic()
        result = await within(10, held_client.call("mark"))
        assert code_of(result) == "editor_blocked"
        assert time.monotonic() - begin >= 1.9
    finally:
        held.nvim.process.send_signal(signal.SIGCONT)
    await runs_nothing_late(held, held_client)


async def runs_nothing_late(bridge: Bridge, raw: Raw) -> None:
    """The refused call did not run; the next one runs."""
    await asyncio.sleep(0.3)
    assert await bridge.nvim.lua("return Seen.late") == 0
    assert text_of(await raw.call("mark")) == "ran"
    assert await bridge.nvim.lua("return Seen.late") == 1


HIT_ENTER = "vim.schedule(function() vim.cmd([[echoerr 'one' | echoerr 'two']]) end)"


@shares
@pytest.mark.every_nvim
@pytest.mark.parametrize(
    ("code", "key"),
    [
        pytest.param(HIT_ENTER, "Enter", marks=pytest.mark.slow, id="hit-enter"),
        pytest.param("vim.api.nvim_input('g')", "Esc", id="pending key"),
        pytest.param("vim.api.nvim_input('\"')", "Esc", marks=pytest.mark.slow, id="register"),
    ],
)
async def test_the_error_names_the_key(held: Bridge, held_client: Raw, code: str, key: str) -> None:
    await held.nvim.lua(code)
    await asyncio.sleep(0.1)
    mode = await held.nvim.request("nvim_get_mode")
    if not mode["blocking"]:
        pytest.skip(f"this Neovim does not block there (mode {mode['mode']})")
    result = await within(10, held_client.call("mark"))
    assert code_of(result) == "editor_blocked"
    assert key in text_of(result)
    await held.nvim.request("nvim_input", "<Esc><CR>")
    await runs_nothing_late(held, held_client)


@shares
@pytest.mark.every_nvim
async def test_a_call_runs_when_the_user_presses_the_key_in_time(held: Bridge, held_client: Raw) -> None:
    await held.nvim.request("nvim_input", "g")
    call = asyncio.create_task(held_client.call("mark"))
    await asyncio.sleep(0.5)
    await held.nvim.request("nvim_input", "<Esc>")
    assert text_of(await within(10, call)) == "ran"


@shares
@pytest.mark.nvim("0.10")
async def test_confirm_blocks_neovim_0_10(held: Bridge, held_client: Raw) -> None:
    await held.nvim.lua("vim.schedule(function() vim.fn.confirm('sure?', '&yes\\n&no') end)")
    await asyncio.sleep(0.2)
    assert code_of(await within(10, held_client.call("mark"))) == "editor_blocked"
    await held.nvim.request("nvim_input", "y")
    await runs_nothing_late(held, held_client)


async def mode_is(bridge: Bridge, mode: str) -> None:
    """Wait for the editor to be in a mode, even if it blocks there."""
    async with asyncio.timeout(10):
        while (await bridge.nvim.request("nvim_get_mode"))["mode"] != mode:
            await asyncio.sleep(0.05)


@pytest.mark.every_nvim
async def test_a_changed_file_is_not_overwritten_while_neovim_asks_about_it(start_bridge: Start) -> None:
    bridge = await start_bridge("{ tools = { 'file' }, approval = { tools = { file_edit = 'allow' } } }")
    await bridge.nvim.attach_ui()
    path = bridge.nvim.home.make("cwd") / "a.txt"
    path.write_text("one\ntwo\n")
    user = "vim.cmd('edit ' .. ...) vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'user' })"
    await bridge.nvim.lua(user, str(path))
    path.write_text("ONE\ntwo\n")
    os.utime(path, (9, 9))
    await bridge.nvim.lua("vim.schedule(function() vim.cmd('checktime') end)")
    await mode_is(bridge, "r?")
    async with Raw(bridge) as raw:
        await raw.initialize()
        edit = {"path": "a.txt", "old_text": "two", "new_text": "TWO"}
        save = {"edits": [edit], "save": True}
        assert code_of(await raw.call("file_edit", save)) in ("stale", "editor_blocked")
        await bridge.nvim.request("nvim_input", "o")
        await mode_is(bridge, "n")
        assert code_of(await raw.call("file_edit", save)) == "stale"
    assert path.read_text() == "ONE\ntwo\n"


@shares
@pytest.mark.slow
async def test_a_busy_editor_refuses_a_call_and_never_runs_it(held: Bridge, held_client: Raw) -> None:
    await held.nvim.lua("vim.schedule(function() vim.fn.system('sleep 5') end)")
    await asyncio.sleep(0.1)
    result = await within(10, held_client.call("mark"))
    assert code_of(result) == "editor_blocked"
    assert "busy" in text_of(result)
    await held.nvim.lua("return 1", timeout=8000)
    await runs_nothing_late(held, held_client)


@shares
@pytest.mark.slow
@pytest.mark.parametrize("tool", ["slowly_judged", "slowly_made"])
async def test_a_slowly_prepared_call_never_runs(held: Bridge, held_client: Raw, tool: str) -> None:
    result = await within(10, held_client.call(tool, {"ms": 2600}))
    assert code_of(result) == "editor_blocked"
    await runs_nothing_late(held, held_client)


@shares
@pytest.mark.slow
async def test_a_tool_that_blocks_the_editor_gets_its_result_through(held: Bridge, held_client: Raw) -> None:
    assert text_of(await within(10, held_client.call("block", {"seconds": 3}))) == "awake"


@shares
@pytest.mark.slow
async def test_calls_run_while_another_tool_is_in_vim_wait(held: Bridge, held_client: Raw) -> None:
    waiting = asyncio.create_task(held_client.call("wait", {"seconds": 3.5}))
    await asyncio.sleep(0.5)
    assert text_of(await within(10, held_client.call("mark"))) == "ran"
    assert not waiting.done()
    assert text_of(await within(10, waiting)) == "waited"
    await held.nvim.lua("Seen.late = 0")
