"""Installation in each way that the README describes, up to a real client's call."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support import bridge as support
from tests.support import environment, plugins, processes
from tests.support.bridge import connect
from tests.support.nvim import ROOT, Home, Nvim, Spawn
from tests.support.results import text_of

README = (ROOT / "README.md").read_text()
SOURCE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
"""The placeholder in the README."""
ALONE = f"vim.opt.runtimepath:remove([[{ROOT}]])\n"
"""Without this checkout."""
ENDPOINT = "return require('mcp-tools').endpoint()"
NOTIFIED = "_G.notified = {}\nvim.notify = function(text) table.insert(notified, text) end\n"
PACKED = Path("nvim/site/pack/core/opt/mcp-tools.nvim")
"""Where `vim.pack` puts the plugin below XDG_DATA_HOME."""
LOADED = "return debug.getinfo(require('mcp-tools').setup, 'S').source:sub(2)"


def git(*arguments: str, cwd: Path) -> str:
    """Runs git without the user's settings."""
    settings = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return processes.run(["git", *settings, *arguments], cwd=cwd, env=env, check=True).stdout


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a repository with the current files of this checkout, committed or not."""
    try:
        listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout, or git is not installed")
    tree = tmp_path_factory.mktemp("published") / "mcp-tools.nvim"
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((ROOT / name).read_bytes())
            (tree / name).chmod((ROOT / name).stat().st_mode)
    git("init", "--quiet", cwd=tree)
    git("add", "--all", "--force", cwd=tree)
    git("commit", "--quiet", "--message", "all of it", cwd=tree)
    return f"file://{tree}"


def readme(part: str) -> str:
    """The Lua example of the README that has `part` in it."""
    blocks = re.findall(r"^```lua\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    [block] = [block for block in blocks if part in block]
    return str(block)


def building() -> dict[str, str]:
    """Environment variables with uv and its cache, for a build step."""
    path = os.pathsep.join([str(environment.UV.parent), os.environ["PATH"]])
    return environment.variables(path)


def packed(published: str) -> str:
    example = readme("vim.pack.add(")
    asks = f"vim.pack.add({{ '{SOURCE}' }})"
    assert asks in example
    return ALONE + example.replace(asks, f"vim.pack.add({{ '{published}' }}, {{ confirm = false }})")


async def works(nvim: Nvim, place: Path) -> None:
    """With a UI the bridge of the copy in `place` starts automatically and answers a client."""
    if not await nvim.lua("return #vim.api.nvim_list_uis() > 0"):
        await nvim.attach_ui()
    endpoint = await nvim.wait_for(ENDPOINT, timeout=30_000)
    bridge = support.Bridge(nvim, endpoint["port"], endpoint["token"])
    async with connect(bridge, "sessions") as client:
        listed = await client.list_tools()
        assert {"nvim_editor_state", "nvim_file_read"} <= {tool.name for tool in listed.tools}
        assert text_of(await client.call_tool("nvim_editor_state", {}))
    assert Path(await nvim.lua(LOADED)).is_relative_to(place)
    assert await nvim.lua("return vim.fn.exists(':McpTools')") == 2


@pytest.mark.slow
async def test_the_commands_for_a_clone_work_as_printed(
    spawn_nvim: Spawn, home: Home, published: str, nvim_program: Path
) -> None:
    data = home.make("home") / ".local" / "share"
    data.mkdir(parents=True)
    (home.path / "data").symlink_to(data)
    environment.pretend(home, environment.lock_hash())
    [commands] = re.findall(r"^```sh\n(git clone .*?)^```$", README, re.MULTILINE | re.DOTALL)
    redirect = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{published}.insteadOf",
        "GIT_CONFIG_VALUE_0": SOURCE,
    }
    env = home.environment() | redirect
    env["PATH"] = f"{nvim_program.parent}{os.pathsep}{env['PATH']}"
    processes.run(["sh", "-ec", commands], env=env, check=True, timeout=60)

    start = home.path / "data" / "nvim" / "site" / "pack" / "plugins" / "start"
    nvim = await spawn_nvim(init_lua=ALONE + "require('mcp-tools').setup({ tools = 'recommended' })")
    await works(nvim, start / "mcp-tools.nvim")
    await nvim.request("nvim_command", "help mcp-tools-install")
    shown = Path(await nvim.lua("return vim.api.nvim_buf_get_name(0)"))
    assert shown.samefile(start / "mcp-tools.nvim" / "doc" / "mcp-tools.txt")


@pytest.mark.nightly
@pytest.mark.nvim("0.12")
async def test_vim_pack_installs_builds_and_starts(spawn_nvim: Spawn, home: Home, published: str) -> None:
    nvim = await spawn_nvim(init_lua=NOTIFIED + packed(published), env=building())
    await works(nvim, home.make("data") / PACKED)
    assert (environment.directory(home.make("data")) / environment.STAMP).exists()
    assert "Run :McpTools install" not in "".join(await nvim.lua("return notified"))


@pytest.mark.nightly
@pytest.mark.nvim("0.12")
async def test_a_build_continues_after_the_editor_has_quit(
    spawn_nvim: Spawn, home: Home, published: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    uv = tmp_path / "path" / "uv"
    uv.parent.mkdir()
    uv.write_text(f'#!/bin/sh\nwhile [ ! -e {gate} ]; do sleep 0.1; done\nexec {environment.UV} "$@"\n')
    uv.chmod(0o755)
    env = environment.variables(os.pathsep.join([str(uv.parent), os.environ["PATH"]]))
    init = NOTIFIED + packed(published)
    first = await spawn_nvim(init_lua=init, env=env)
    built = environment.directory(home.make("data"))
    await first.wait_for(f"return vim.uv.fs_stat([[{built}.lock]]) ~= nil", timeout=20_000)
    await first.stop()
    second = await spawn_nvim(init_lua=init, env=env)
    await second.attach_ui()
    [notified] = await second.wait_for("return #notified > 0 and notified")
    assert "is being installed; the bridge starts automatically" in notified
    gate.touch()
    await works(second, home.make("data") / PACKED)
    assert (built / environment.STAMP).exists()


@pytest.mark.nightly
async def test_lazy_installs_and_builds(
    spawn_nvim: Spawn, nvim_program: Path, home: Home, tmp_path: Path, published: str
) -> None:
    spec = readme("build = 'make install'").replace(
        f"'{SOURCE.removeprefix('https://github.com/')}'", f"url = '{published}'"
    )
    init = (
        f"{ALONE}vim.opt.runtimepath:prepend([[{plugins.path('lazy.nvim')}]])\n"
        f"local spec = (function()\n{spec}\nend)()\n"
        "require('lazy').setup({ spec }, { rocks = { enabled = false } })\n"
    )
    (tmp_path / "init.lua").write_text(init)
    installing = processes.run(
        [nvim_program, "--headless", "-u", tmp_path / "init.lua", "-i", "NONE", "-n", "+qall"],
        env=home.environment() | building(),
        timeout=50,
    )
    built = environment.directory(home.make("data"))
    assert (built / environment.STAMP).exists(), installing.stderr
    nvim = await spawn_nvim(init_lua=init)
    await works(nvim, home.make("data") / "nvim" / "lazy" / "mcp-tools.nvim")
