"""Editors of different projects: a client reads only the project of its session."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from mcp_tools_nvim.api import call_tool_async
from tests.support.bridge import ROOT_TOOLS, Bridge, Start, wait_restarted
from tests.support.raw import Raw, text_of


async def root_of(bridge: Bridge) -> Path:
    return Path(await bridge.nvim.lua("return probe.project.root()"))


async def read(raw: Raw, uri: str) -> dict[str, object]:
    """The answer to a read, without its id."""
    _, answer = await raw.send(raw.message("resources/read", {"uri": uri}))
    del answer["id"]
    return answer


@pytest.mark.slow
async def test_no_uri_or_session_id_reaches_another_project(start_bridge: Start, tmp_path: Path) -> None:
    bridges, roots = [], []
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "secret.txt").write_text(f"of {name}\n")
        bridge = await start_bridge(cwd=tmp_path / name)
        bridges.append(bridge)
        roots.append(await root_of(bridge))
    assert roots[0] != roots[1]
    async with Raw(bridges[0]) as one, Raw(bridges[1]) as two:
        for raw in (one, two):
            await raw.initialize()
        own = await read(one, f"file://{roots[0]}/secret.txt")
        assert own["result"]["contents"][0]["text"] == "of one\n"  # type: ignore[index]
        for uri in (
            f"file://{roots[1]}/secret.txt",
            f"file://two{roots[1]}/secret.txt",
            f"file://{roots[0]}/../two/secret.txt",
            f"nvim://buffer/{roots[1]}/secret.txt",
            f"file://{roots[0]}/none.txt",
        ):
            miss = {"code": -32002, "message": "Resource not found", "data": {"uri": uri}}
            assert await read(one, uri) == {"jsonrpc": "2.0", "error": miss}
        foreign = two.session
        assert (await one.send(one.message("ping"), Mcp_Session_Id=foreign))[0] == 404
        assert (await two.send(two.message("ping")))[0] == 200


AWAY = {"cd": "vim.cmd.cd(...)", "lcd": "vim.cmd.lcd(...)", "edit": "vim.cmd.edit((...) .. '/file')"}
AWAY["deleted"] = "vim.cmd.enew()"
KILL = "vim.uv.kill(mcp_tools.status().pid, 'sigkill')"
RESTARTS = ("vim.cmd('McpTools restart')", "mcp_tools.stop() mcp_tools.start()", KILL)


@pytest.mark.slow
@pytest.mark.parametrize("away", AWAY)
async def test_sessions_survive_restarts(start_bridge: Start, tmp_path: Path, away: str) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for directory in (here, elsewhere):
        (directory / ".git").mkdir(parents=True)
    bridge = await start_bridge(cwd=here, init=ROOT_TOOLS)
    async with Raw(bridge) as raw:
        await raw.initialize()
        await bridge.nvim.lua(AWAY[away], str(elsewhere))
        if away == "deleted":
            shutil.rmtree(here)
        for restart in RESTARTS:
            old = await bridge.pid()
            await bridge.nvim.lua(restart)
            await wait_restarted(bridge, old)
            assert text_of(await raw.call("echo", {"value": "here"})) == "here"
            assert await root_of(bridge) == here


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["$HOME", "~", "caf\udce9", "sp ace\n'\""], ids=["variable", "home", "bytes", "odd"]
)
async def test_a_project_with_an_odd_directory_name_is_served_and_found(
    start_bridge: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    directory = tmp_path / name
    (directory / ".git").mkdir(parents=True)
    (directory / "text.txt").write_text("of the project\n")
    bridge = await start_bridge(cwd=directory, init=ROOT_TOOLS)
    async with Raw(bridge) as raw:
        await raw.initialize()
        _, answer = await raw.send(raw.message("prompts/get", {"name": "verify_setup"}))
        assert "result" in answer, answer
        _, answer = await raw.send(raw.message("resources/read", {"uri": "nvim://status"}))
        assert json.loads(answer["result"]["contents"][0]["text"])["root"] == name_of(directory)
        assert text_of(await raw.call("echo", {"value": "here"})) == "here"
    for variable in ("NVIM", "NVIM_LISTEN_ADDRESS"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in bridge.nvim.home.environment().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(directory)
    assert (await call_tool_async("echo", value="found"))["ok"]
    monkeypatch.chdir(tmp_path)
    miss = (await call_tool_async("echo", value="found"))["error"]["message"]
    assert "Name one by `socket`" in miss
    miss.encode()


def name_of(directory: Path) -> str:
    """A path as clients get it."""
    return os.fsencode(directory).decode("utf-8", "replace")
