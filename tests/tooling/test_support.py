"""The test fixtures themselves: what they start answers, and what they miss would show."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support import leaks, processes
from tests.support.homes import FIRST_PORT, PORTS, new_home, wanted_port
from tests.support.nvim import Nvim
from tests.support.rpc import RpcError

Spawn = Callable[..., Awaitable[Nvim]]


@pytest.mark.every_nvim
async def test_spawned_neovim_is_the_one_asked_for(spawn_nvim: Spawn, nvim_version: str) -> None:
    """A spawned Neovim has the version of this run and the checkout on its runtimepath."""
    nvim = await spawn_nvim(init_lua="vim.g.seen = 'init'")
    minor = await nvim.lua("local v = vim.version() return ('%d.%d'):format(v.major, v.minor)")
    assert minor == nvim_version
    assert await nvim.lua("return vim.g.seen") == "init"
    assert await nvim.lua("return #vim.api.nvim_get_runtime_file('tests/lua/run.lua', false)") == 1


async def test_folders_are_private(spawn_nvim: Spawn, tmp_path: Path) -> None:
    """Every folder that Neovim writes to lies in the test's home."""
    nvim = await spawn_nvim(cwd=tmp_path)
    places = await nvim.lua(
        "return vim.tbl_map(vim.fn.stdpath, {'config', 'data', 'state', 'cache', 'run', 'log'})"
    )
    assert all(place.startswith(str(nvim.home.path)) for place in places)
    assert await nvim.lua("return vim.fn.getcwd()") == str(tmp_path)


@pytest.mark.parametrize("worker", range(3))
def test_homes_want_different_ports(worker: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process has its share, in which nobody listens."""
    monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{worker}")
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    for _ in range(5):
        with new_home() as home:
            place = wanted_port(home.path.resolve() / "cwd") - FIRST_PORT
            assert worker * PORTS // 3 <= place < (worker + 1) * PORTS // 3
        assert not home.path.exists()


async def test_errors_and_notifications_arrive(spawn_nvim: Spawn) -> None:
    """A Lua error raises, a notification is queued, and the connection goes on."""
    nvim = await spawn_nvim()
    with pytest.raises(RpcError, match="boom"):
        await nvim.lua("error('boom')")
    await nvim.lua("vim.rpcnotify(select(1, ...), 'hello', 1)", (await nvim.request("nvim_get_api_info"))[0])
    assert await asyncio.wait_for(nvim.notifications.get(), 2) == ("hello", [1])
    assert await nvim.lua("return select(1, ...)", "caf\udcff") == "caf\udcff"


async def test_ui_enter_needs_a_ui(spawn_nvim: Spawn) -> None:
    """UIEnter comes when the test attaches a screen, not before."""
    nvim = await spawn_nvim(init_lua="vim.api.nvim_create_autocmd('UIEnter', { command = 'let g:ui = 1' })")
    assert not await nvim.lua("return vim.g.ui")
    await nvim.attach_ui()
    assert await nvim.wait_for("return vim.g.ui") == 1


async def test_broken_init_is_reported(spawn_nvim: Spawn) -> None:
    """A Neovim that ends at once fails the test with what it said."""
    with pytest.raises(AssertionError, match="exit code 3"):
        await spawn_nvim(init_lua="os.exit(3)")


async def test_killed_neovim_is_gone(spawn_nvim: Spawn) -> None:
    """A request to a Neovim that was killed fails instead of waiting."""
    nvim = await spawn_nvim()
    await nvim.kill()
    with pytest.raises(RpcError, match="gone"):
        await nvim.lua("return 1")


def test_leaked_process_is_seen() -> None:
    """A process that is left running is found, and no longer once it has ended."""
    before = set(leaks.descendants())
    with processes.begin([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert set(leaks.left_over(before, patience=0)) == {process.pid}
    assert not leaks.left_over(before)


@pytest.mark.skipif(sys.platform != "linux", reason="orphans can be told by their environment on Linux only")
def test_leaked_orphan_is_seen() -> None:
    """A process whose parent has ended is found too."""
    before = set(leaks.descendants())
    command = ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"]
    orphan = int(processes.run(command, check=True).stdout)
    try:
        assert leaks.left_over(before, patience=0) == {orphan: "sleep 60"}
    finally:
        os.kill(orphan, signal.SIGKILL)
    assert not leaks.left_over(before)


def test_free_ports_differ(free_port: Callable[[], int]) -> None:
    """Two free ports are not the same one."""
    assert free_port() != free_port()
