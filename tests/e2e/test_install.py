"""The plugin's own Python environment: built by `make install` or `:McpTools install`, missing, outdated."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from tests.support import bridge as support
from tests.support import environment, processes, terminal
from tests.support.bridge import connect
from tests.support.nvim import Home, Nvim, Spawn
from tests.support.results import text_of

BRIDGE = f"{sys.executable} -m mcp_tools_nvim process.main"

# Notifications, as a plugin for them gets them.
INIT = """
_G.notified = {}
vim.notify = function(text) table.insert(notified, text) end
_G.mcp_tools = require('mcp-tools')
mcp_tools.setup({ tools = { 'test' } })
"""
HEALTH = """
vim.cmd('checkhealth mcp-tools')
return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')
"""
STATE = "return mcp_tools.status().state == ... and mcp_tools.status()"

OLD_PYTHON = """#!/bin/sh
# A Python that claims to be 3.9.
if [ "$2" = -c ]; then
  echo '[[3, 9, 2], "'"$0"'", true]'
else
  shift
  exec {python} -c 'import runpy, sys; sys.executable = sys.argv[1]; sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")' "$0" "$@"
fi
"""
SPY = '#!/bin/sh\necho "$0 $*" >>{log}\nexit 1\n'


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


async def echoes(nvim: Nvim) -> None:
    """The bridge of this editor answers a real client."""
    async with connect(await support.ready(nvim), "sessions") as client:
        assert text_of(await client.call_tool("nvim_test_echo", {"text": "hi"})) == "hi"


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize("uv", [True, False], ids=["uv", "pip"])
def test_make_install_builds_a_stamped_environment_once(tmp_path: Path, uv: bool) -> None:
    data, path = tmp_path / "data", environment.path_with(tmp_path / "path", uv=uv)
    first = environment.make_install(data, path)
    built = environment.directory(data)
    again = environment.make_install(data, path)
    assert first.returncode == 0, first.stdout + first.stderr
    assert ("uv on" if uv else "venv and pip on") in first.stdout
    assert (built / environment.STAMP).read_text().strip() == environment.lock_hash()
    assert again.stdout.startswith(f"up to date: {built}\n")
    imports = [built / "bin" / "python", "-c", "import mcp_tools_nvim.http.app, mcp_tools_nvim.mcp.kernel"]
    done = processes.run(imports, cwd=environment.ROOT / "bridge")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@terminal.needed
async def test_install_command(nvim_program: Path, home: Home, tmp_path: Path) -> None:
    """It shows its progress, never blocks the editor, and then starts the bridge."""
    env = environment.variables(environment.path_with(tmp_path / "path", uv=True))
    init = "_G.mcp_tools = require('mcp-tools')\nmcp_tools.setup({ tools = { 'test' } })\n"
    async with terminal.opened(nvim_program, home, init_lua=init, env=env) as screen:
        nvim = screen.nvim
        await screen.shows("[mcp-tools] Python is not set up. Run :McpTools welcome")
        assert not environment.directory(home.make("data")).exists()
        await screen.command("McpTools install")
        await screen.shows("[mcp-tools] install: ")
        longest, installing = 0.0, True
        while installing:
            asked = time.monotonic()
            installing = await nvim.lua("return probe.install.is_running()")
            longest = max(longest, time.monotonic() - asked)
            await asyncio.sleep(0.005)
        assert longest < 0.5, "the editor was blocked"
        await screen.shows("[mcp-tools] ready: http://127.0.0.1:", timeout=10_000)
        assert (await nvim.wait_for(STATE, "ready"))["source"] == "environment"
        assert "ERROR" not in await nvim.lua(HEALTH)
        await echoes(nvim)


@pytest.mark.slow
async def test_it_starts_once_others_have_built_it(spawn_nvim: Spawn, home: Home) -> None:
    nvim = await spawn_nvim(init_lua=INIT)
    await nvim.attach_ui()
    await nvim.wait_for(STATE, "failed")
    environment.pretend(home, environment.lock_hash())
    assert (await nvim.wait_for(STATE, "ready"))["source"] == "environment"
    assert (await nvim.lua("return notified"))[-1].startswith("[mcp-tools] ready: ")


@pytest.mark.slow
async def test_a_damaged_environment_is_repaired(spawn_nvim: Spawn, home: Home, tmp_path: Path) -> None:
    place = environment.pretend(home, environment.lock_hash(), flags="-S")  # no site-packages
    env = environment.variables(environment.path_with(tmp_path / "path", uv=True))
    nvim = await spawn_nvim(init_lua=INIT, env=env)
    await nvim.attach_ui()
    status = await nvim.wait_for(STATE, "failed", timeout=30_000)
    report = await nvim.lua(HEALTH)
    assert "No module named" in status["last_error"]
    assert status["fault"]["advice"] == "Run :McpTools install"
    assert ":McpTools install!` rebuilds" in " ".join(report.split())
    await nvim.request("nvim_command", "McpTools install")
    assert (await nvim.wait_for(STATE, "ready", timeout=60_000))["source"] == "environment"
    assert (await nvim.lua("return notified"))[-1].startswith("[mcp-tools] ready: ")
    assert (place / "pyvenv.cfg").exists()
    await echoes(nvim)


@pytest.mark.slow
async def test_another_version_is_only_reported(spawn_nvim: Spawn, home: Home, tmp_path: Path) -> None:
    place = environment.pretend(home, "0" * 64)
    log = tmp_path / "spied"
    spies = tmp_path / "path"
    spies.mkdir()
    for name in ("python3", "python", "uv", "pip", "pip3", "make", "curl"):
        program(spies / name, SPY.format(log=log))
    program(place / "bin" / "python", SPY.format(log=log))
    nvim = await spawn_nvim(init_lua=INIT, env={"PATH": str(spies)})
    await nvim.attach_ui()
    status = await nvim.wait_for(STATE, "failed")
    report = await nvim.lua(HEALTH)
    assert "another version of the plugin" in status["last_error"]
    notified = await nvim.wait_for("return #notified > 0 and notified")
    assert len(notified) == 1
    assert notified[0].endswith("Run :McpTools welcome")
    assert "ERROR Python is set up for another version" in report
    assert "Run :McpTools install" in report
    assert not log.exists()
    assert (place / environment.STAMP).read_text().strip() == "0" * 64


@pytest.mark.parametrize("has", ["none", "old", "ancient"])
async def test_no_suitable_python(spawn_nvim: Spawn, home: Home, tmp_path: Path, has: str) -> None:
    path = tmp_path / "path"
    path.mkdir()
    if has == "old":
        program(path / "python3", OLD_PYTHON.format(python=sys.executable))
    elif has == "ancient":
        program(path / "python3", "#!/bin/sh\necho 'SyntaxError: invalid syntax' >&2\nexit 1\n")
    nvim = await spawn_nvim(init_lua=INIT, env={"PATH": str(path)})
    await nvim.request("nvim_command", "McpTools install")
    await nvim.wait_for("return probe.install.last_error()")
    said = await nvim.wait_for("return notified[1]")
    report = " ".join((await nvim.lua(HEALTH)).split())
    expected = {
        "none": "install: no Python on PATH; install Python 3.11 or newer",
        "old": f"install: Python 3.11 or newer is needed, here: {path}/python3 (Python 3.9.2). Install ",
        "ancient": f"no Python on PATH can be used (found {path}/python3)",
    }
    assert expected[has] in said
    assert expected[has].removeprefix("install: ") in report
    assert "then run :McpTools install" in report
    assert not environment.directory(home.make("data")).exists()


async def test_packages_of_the_user_are_installed(spawn_nvim: Spawn, home: Home, tmp_path: Path) -> None:
    environment.pretend(home, environment.lock_hash())
    file, log, path = tmp_path / "tools.txt", tmp_path / "log", tmp_path / "path"
    file.write_text("mcpt-nowhere\n")
    path.mkdir()
    program(path / "python3", f'#!/bin/sh\necho "$*" >>{log}\n')
    setup = f"mcp_tools.setup({{ python = {{ packages = [[{file}]] }}, bridge = {{ autostart = false }} }})"
    nvim = await spawn_nvim(init_lua=INIT + setup, env={"PATH": str(path)})
    report = " ".join((await nvim.lua(HEALTH)).split())
    assert f"WARNING the packages of {file} are not installed" in report
    await nvim.request("nvim_command", "McpTools install")
    await nvim.wait_for("return not probe.install.is_running()")
    assert log.read_text().splitlines()[-1].endswith(f" --packages {file}")
