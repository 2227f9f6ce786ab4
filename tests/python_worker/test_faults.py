"""Tools without end and processes that die: each call ends once, and the next one works."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import venv
from pathlib import Path

import pytest

from tests.support.bridge import Start
from tests.support.environment import lock_hash, pretend
from tests.support.nvim import Nvim, Spawn
from tests.support.python_worker import (
    AT_WORK,
    INIT,
    Caller,
    Way,
    caller,
    is_alive,
    loaded,
    worker_status,
)
from tests.support.results import eventually

QUICK = "probe.python_worker.GRACE = 100"
"""Shortens the time, in ms, that a cancelled function has to stop."""

FAILED = "local f = probe.discovery.failures(); return #f > 0 and f"
COUNT = "return #probe.executor():pending()"
TIMEOUT = "probe.config.setup({ bridge = { tool_timeout = ... } })"
SLOW_IMPORT = """
import os, sys, time
from mcp_tools_nvim.python_tools import mcp_tool

if sys.argv[0] == "mcp-tools":  # in the worker, not in the scanner
    open("{marker}.begun", "w").close()
    while not os.path.exists("{marker}"):
        time.sleep(0.01)

@mcp_tool(annotations={{"read_only": True}})
async def slow_one():
    "Belongs to a module that takes long."
"""


async def gone(pid: int) -> None:
    await eventually(lambda: not is_alive(pid))


async def messages(nvim: Nvim) -> str:
    return str(await nvim.lua("return vim.fn.execute('messages')"))


@pytest.mark.slow
async def test_a_killed_worker_fails_its_calls_and_is_replaced_by_the_next(start: Start, way: Way) -> None:
    bridge = await start()
    async with caller(bridge, way) as tools:
        pid = (await tools.call("py_pid")).value
        calls = [tools.start("py_never"), tools.start("py_await_forever", marker="x")]
        await bridge.nvim.wait_for(f"{COUNT} == 2")
        os.kill(pid, signal.SIGKILL)
        for call in calls:
            error = (await call.task).fault
            assert error["code"] == "execution_error"
            assert "signal 9" in error["message"]

        assert (await tools.call("py_pid")).value != pid
        error = (await tools.call("py_die")).fault
        assert "signal 9" in error["message"]
    assert await messages(bridge.nvim) == ""


@pytest.mark.slow
async def test_processes_started_by_a_tool_end_with_the_worker(start: Start) -> None:
    bridge = await start()
    async with caller(bridge, "lua") as tools:
        program = (await tools.call("py_starts_a_program")).value
        assert is_alive(program)
        assert (await tools.call("py_die")).error is not None
        await gone(program)


async def test_a_function_cancelled_during_its_import_ends(start: Start, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    (tmp_path / "mcp_tools").mkdir()
    (tmp_path / "mcp_tools" / "slow.py").write_text(SLOW_IMPORT.format(marker=marker))
    bridge = await start(init=f"vim.opt.runtimepath:append([[{tmp_path}]])")
    async with caller(bridge, "lua") as tools:
        call = tools.start("slow_one")
        await eventually(Path(f"{marker}.begun").exists)
        call.cancel()
        assert (await call.task).fault["code"] == "cancelled"
        marker.touch()
        await bridge.nvim.wait_for(
            "return table.concat(probe.log.lines(200), '\\n'):find(..., 1, true)",
            "had ended when its function ended",
        )


@pytest.mark.slow
async def test_after_repeated_crashes_calls_are_busy_until_a_restart(start: Start, way: Way) -> None:
    bridge = await start()
    async with caller(bridge, way) as tools:
        codes = [(await tools.call("py_die")).fault["code"] for _ in range(3)]
        assert codes == ["execution_error", "execution_error", "busy"]
        await bridge.nvim.lua("probe.python_worker.restart()")
        assert (await tools.call("py_add", a=1)).value["sum"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["py_never", "py_hold_loop"])
async def test_a_cancelled_function_that_does_not_stop_is_killed(start: Start, way: Way, name: str) -> None:
    """A thread, or an async function that blocks the loop. Other calls go to a new process."""
    bridge = await start(init=QUICK)
    async with caller(bridge, way) as tools:
        pid = (await tools.call("py_pid")).value
        never = tools.start(name)
        await bridge.nvim.wait_for(AT_WORK)
        never.cancel()
        if name == "py_never":
            assert (await tools.call("py_add", a=1)).value["sum"] == 3
        await gone(pid)

        assert (await tools.call("py_pid")).value != pid
        assert (await worker_status(bridge.nvim))["crashes"] == 0
    assert await messages(bridge.nvim) == ""


@pytest.mark.slow
async def test_a_function_that_computes_too_long_times_out(start: Start) -> None:
    """Other calls in its process may finish."""
    bridge = await start(init=QUICK)
    marker = bridge.nvim.home.path / "marker"
    async with caller(bridge, "lua") as tools:
        pid = (await tools.call("py_pid")).value
        waits = tools.start("py_block", marker=str(marker))
        await bridge.nvim.wait_for(AT_WORK)
        await bridge.nvim.lua(TIMEOUT, 300)
        assert (await tools.call("py_cpu", seconds=600)).fault["code"] == "timeout"
        await bridge.nvim.wait_for("return probe.python_worker.status().state == 'none'")
        await bridge.nvim.lua(TIMEOUT, 60_000)

        assert (await tools.call("py_pid")).value != pid
        assert is_alive(pid)
        marker.touch()
        assert (await waits.task).value == "the file is there"
        await gone(pid)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["quit", "kill"])
async def test_the_worker_ends_with_the_editor(start: Start, end: str) -> None:
    for names in (["py_never", "py_cpu"], ["py_hold_loop"]):
        bridge = await start()
        async with caller(bridge, "lua") as tools:
            pid = (await tools.call("py_pid")).value
            program = (await tools.call("py_starts_a_program")).value
            calls = [tools.start(name) for name in names]
            await bridge.nvim.wait_for(f"{COUNT} == {len(names)}")
            await bridge.nvim.wait_for(AT_WORK)
            await (bridge.nvim.stop() if end == "quit" else bridge.nvim.kill())
            for call in calls:
                call.task.cancel()
            await asyncio.gather(*(call.task for call in calls), return_exceptions=True)
        await gone(pid)
        await gone(program)


@pytest.mark.slow
async def test_the_restart_command_restarts_the_worker(start: Start) -> None:
    bridge = await start()
    async with caller(bridge, "lua") as tools:
        pid = (await tools.call("py_pid")).value
        never = tools.start("py_never")
        await bridge.nvim.wait_for(AT_WORK)
        await bridge.nvim.lua("vim.cmd('McpTools restart')")
        error = (await never.task).fault
        assert error["code"] == "execution_error"
        assert "restarted" in error["message"]
        await gone(pid)

        assert (await tools.call("py_pid")).value != pid


@pytest.mark.slow
async def test_functions_that_block_are_limited(start: Start) -> None:
    bridge = await start(setup="{ bridge = { tool_timeout = 0 } }")
    marker = bridge.nvim.home.path / "marker"
    async with caller(bridge, "lua") as tools:
        assert (await tools.call("py_steps")).value == "3 steps"
        calls = [tools.start("py_block", marker=str(marker)) for _ in range(64)]
        await bridge.nvim.wait_for(f"{COUNT} == 64")
        assert (await tools.call("py_pid")).fault["code"] == "busy"
        assert (await tools.call("py_steps")).value == "3 steps"
        marker.touch()
        for call in calls:
            assert (await call.task).value == "the file is there"
        assert (await tools.call("py_add", a=1)).value["sum"] == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "provider",
    [
        "python3_host_prog = '/nonsense/python'",
        "loaded_python3_provider = 0",
        "python3_host_prog = '/bin/false'",
    ],
)
async def test_a_broken_python3_provider_of_the_user_is_ignored(start: Start, provider: str) -> None:
    bridge = await start(init=f"vim.g.{provider}")
    async with caller(bridge, "lua") as tools:
        assert (await tools.call("py_add", a=1)).value["sum"] == 3
        assert await bridge.nvim.lua("return vim.fn.exists('*McpToolsHost')") == 0
    assert await messages(bridge.nvim) == ""


@pytest.mark.slow
async def test_a_python_without_the_packages_is_reported(spawn_nvim: Spawn, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    bare = tmp_path / "bare" / "bin" / "python"
    options = f"{{ tools = {{ 'analyze_python' }}, bridge = {{ python = [[{bare}]] }} }}"
    init = f"{INIT}\nrequire('mcp-tools').setup({options})"
    nvim = await spawn_nvim(init_lua=init)
    await nvim.lua("probe.core.get()")
    failures = await nvim.wait_for(FAILED, timeout=20_000)
    assert failures[0]["source"] == "Python tools"
    assert "No module named" in failures[0]["error"]

    (nvim.home.path / "cwd" / "a.py").write_text("pass\n")
    error = (await Caller(nvim, None).call("analyze_python", path="a.py")).fault
    assert error["code"] == "execution_error"
    assert "No module named 'pynvim'" in error["message"]
    report = await nvim.lua(
        "vim.cmd('silent checkhealth mcp-tools');"
        " return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"
    )
    assert "-m pip install" in report
    assert await messages(nvim) == ""


@pytest.mark.slow
async def test_without_an_environment_the_error_names_the_command(spawn_nvim: Spawn) -> None:
    nvim = await spawn_nvim(init_lua=f"{INIT}\nrequire('mcp-tools').setup({{ tools = false }})")
    await nvim.lua("probe.core.get()")
    failures = await nvim.wait_for(FAILED)

    assert failures[0]["source"] == "Python tools"
    assert "Run :McpTools install" in failures[0]["error"]
    assert await nvim.lua("return #probe.registry():list('tools')") == 0
    assert await messages(nvim) == ""

    pretend(nvim.home, lock_hash())
    await nvim.lua("probe.bridge.install({ command = { 'true' } })")
    await loaded(nvim)
    assert (await Caller(nvim, None).call("py_add", a=1)).value["sum"] == 3


@pytest.mark.slow
async def test_reloading_the_plugin_ends_the_worker(start: Start) -> None:
    bridge = await start()
    async with caller(bridge, "lua") as tools:
        old = (await tools.call("py_pid")).value
    await bridge.nvim.lua(
        "for name in pairs(package.loaded) do"
        " if name:find('^mcp%-tools') then package.loaded[name] = nil end end"
        " assert(probe.python_worker)"
    )
    await gone(old)


EXIT_CALL = """
local path = ...
vim.api.nvim_create_autocmd('VimLeave', { callback = function()
  local answer
  require('mcp-tools').call('py_pid', {}, {}, function(result, err)
    answer = { result = result, err = err }
  end)
  vim.wait(5000, function() return answer end)
  vim.fn.writefile({ vim.json.encode(answer) }, path .. '.new')
  vim.uv.fs_rename(path .. '.new', path)
end })
vim.schedule(function() vim.cmd('qa!') end)
"""
"""Calls a tool after VimLeavePre."""


@pytest.mark.slow
async def test_no_worker_starts_while_the_editor_exits(start: Start, tmp_path: Path) -> None:
    bridge = await start()
    answer = tmp_path / "answer"
    await bridge.nvim.lua(EXIT_CALL, str(answer))
    await eventually(answer.exists)
    assert "Neovim is exiting" in json.loads(answer.read_text())["err"]["message"]
