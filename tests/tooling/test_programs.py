"""`make demo`, `make trace` and `make run`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.support import processes
from tests.support.nvim import ROOT, Home, Nvim, connect

ENV_FILE = ROOT / ".deps" / "run.env"


@pytest.mark.slow
def test_the_demo_prints_its_screens_and_checks_each_step(home: Home) -> None:
    demo = [sys.executable, ROOT / "scripts" / "demo"]
    done = processes.run(demo, env=home.environment(), timeout=80, stdin=subprocess.DEVNULL)

    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^✓ [\d.]+ s$", done.stdout, re.MULTILINE)) == 3
    screens = re.findall(r"^┌─{80}┐\n((?:│.{80}│\n){24})└", done.stdout, re.MULTILINE)
    assert len(screens) >= 4
    assert "Allow this call?" in done.stdout
    assert "make run" in done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_the_trace_names_each_file_of_a_call_once() -> None:
    done = processes.run([sys.executable, ROOT / "scripts" / "trace", "--plain"], timeout=50)
    assert done.returncode == 0, done.stderr
    files = re.findall(r"^((?:bridge|lua)/\S+)", done.stdout, re.MULTILINE)
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert len(files) == len(set(files))
    assert files[0].startswith("bridge/mcp_tools_nvim/http/")
    assert "lua/mcp-tools/tools/buffer/list.lua" in files


def drain(terminal: int) -> None:
    """Reads the output of a terminal until it is closed."""
    with contextlib.suppress(OSError):
        os.read(terminal, 65536)


@pytest.fixture
async def run_nvim(home: Home, nvim_program: Path) -> AsyncIterator[Nvim]:
    """Neovim as `make run` starts it: in a terminal, first on PATH, with the user's configuration."""
    program_first = os.pathsep.join([str(nvim_program.parent), os.environ["PATH"]])
    config = home.make("config") / "nvim"
    config.mkdir()
    (config / "init.lua").write_text("vim.g.configured = true\nvim.opt.runtimepath:remove(vim.fn.getcwd())\n")
    ours, theirs = pty.openpty()
    socket = home.path / "run.sock"
    process = await processes.start(
        sys.executable,
        str(ROOT / "scripts" / "run"),
        *("-i", "NONE", "-n", "--listen", str(socket)),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=home.environment() | {"PATH": program_first, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    asyncio.get_running_loop().add_reader(ours, drain, ours)
    try:
        nvim = Nvim(process, await connect(process, socket), socket, home, Path(os.devnull))
        yield nvim
        await nvim.stop()
    finally:
        asyncio.get_running_loop().remove_reader(ours)
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)


@pytest.mark.slow
async def test_make_run_shows_the_endpoint_and_writes_it_to_a_private_file(run_nvim: Nvim) -> None:
    shown = await run_nvim.wait_for(
        "local b = vim.fn.bufnr('mcp-tools://endpoint')"
        " return b > 0 and table.concat(vim.api.nvim_buf_get_lines(b, 0, -1, false), '\\n')",
        timeout=15_000,
    )
    endpoint = await run_nvim.lua("return require('mcp-tools').endpoint()")

    assert endpoint["url"] in shown
    assert await run_nvim.lua("return vim.g.configured")
    url, token = endpoint["url"], endpoint["token"]
    assert ENV_FILE.read_text() == f"export NVIM_MCP_URL={url} NVIM_MCP_TOKEN={token}\n"
    assert ENV_FILE.stat().st_mode & 0o077 == 0
    health = endpoint["url"].removesuffix("/mcp") + "/health"
    async with httpx2.AsyncClient(trust_env=False) as client:
        assert (await client.get(health)).json() == {"status": "ok"}

    await run_nvim.stop()

    assert not ENV_FILE.exists()
    async with httpx2.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(health)


def test_make_run_needs_a_terminal() -> None:
    done = processes.run([sys.executable, ROOT / "scripts" / "run"])
    assert done.returncode == 1
    assert "needs a terminal" in done.stderr


def test_the_command_works_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "mcp-tools"
    link.symlink_to(ROOT / "bin" / "mcp-tools")
    done = processes.run([str(link), "--version"], cwd=tmp_path)
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["mcp-tools"])
