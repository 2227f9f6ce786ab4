"""Mounted servers that end, hang, or send invalid data: only their own tools are affected."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support import mounts
from tests.support.bridge import Bridge, connect
from tests.support.mounts import Journal
from tests.support.results import error_of, eventually, text_of
from tests.support.shared import Keep

from .test_mounts import CALL, call

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

SHOWN = """
vim.cmd(...)
local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
vim.cmd.bwipe()
return table.concat(lines, '\\n')
"""
SECRET = "s3cr3t-value-of-the-token"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bridge(nvim_version: str, keep: Keep) -> AsyncIterator[Bridge]:
    """A bridge that allows every call, without mounts."""
    bridge = await keep(nvim_version, setup="{ approval = { default = 'allow' } }")
    yield bridge
    await bridge.nvim.lua("mcp_tools.setup({ mounts = {} })")


async def shown(bridge: Bridge, command: str) -> str:
    return await bridge.nvim.lua(SHOWN, command)


@pytest.mark.slow
async def test_a_killed_server_is_restarted(bridge: Bridge, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    async with mounts.mounted(bridge, "py", mounts.python(journal.path)) as first:
        async with connect(bridge, "sessions") as client:
            lost = error_of(await client.call_tool("py__die"))
            assert text_of(await client.call_tool("py__echo", {"text": "again"})) == "again"
            assert "nvim_hold" in {tool.name for tool in (await client.list_tools()).tools}
        second = await mounts.status(bridge, "py", "ready")
        await bridge.nvim.lua("vim.cmd('McpTools mounts retry py')")
        await eventually(lambda: len(journal.of("started")) == 3)
    assert (lost["code"], "signal 9" in lost["message"]) == ("execution_error", True)
    assert (second["restarts"], second.get("error")) == (1, None)
    assert second["pid"] != first["pid"]
    assert [entry[0] for entry in journal.of("started")][:2] == [first["pid"], second["pid"]]


@pytest.mark.slow
async def test_a_server_that_cannot_start_is_retried_and_its_error_shown(bridge: Bridge) -> None:
    async with mounts.mounted(bridge, "bad", mounts.raw("broken"), "waiting"):
        await bridge.nvim.wait_for("return mcp_tools.status().mounts[1].restarts >= 2")
        waiting = await mounts.status(bridge, "bad", "waiting")
        assert waiting["error"].endswith("exited with code 3: no license was found")
        unknown = (await call(bridge, "bad__tool"))["err"]
        assert "exited with code 3" in unknown["message"]
        health = await shown(bridge, "checkhealth mcp-tools")
        assert "no license was found" in health
        assert "bad  waiting" in await shown(bridge, "McpTools status")


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"command": ["/no/such/program"]}, "command not found: /no/such/program"),
        (mounts.raw("refusing"), "the licence has run out"),
        (mounts.raw("silent", start_timeout=300), "the server did not list its tools within 0.3 s"),
    ],
    ids=["no such program", "refusing", "silent"],
)
async def test_a_failed_start_is_reported_in_time(bridge: Bridge, spec: dict[str, Any], error: str) -> None:
    async with mounts.mounted(bridge, "bad", spec, "waiting") as status:
        assert status["error"] == error
        text = "return vim.fn.execute('messages'):find(..., 1, true)"
        await bridge.nvim.wait_for(text, f"'bad' cannot start: {error}")


class _Slow(BaseHTTPRequestHandler):
    """Each answer comes in time, but all of them together do not."""

    pause, bomb = 0.6, False

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(self.pause)
        about = {"name": "slow", "version": "0"}
        result: dict[str, Any] = {"tools": [], "nextCursor": "more"}
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()
        self.send_response(200 if "id" in message else 202)
        if self.bomb:
            body = gzip.compress(body + b" " * 50_000_000, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", "Application/JSON")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class _Bomb(_Slow):
    """Its compressed answers are large in memory."""

    pause, bomb = 0.0, True


@contextlib.contextmanager
def served(handler: type[_Slow]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()


async def test_compressed_answers_are_not_unpacked(bridge: Bridge) -> None:
    with served(_Bomb) as url:
        async with mounts.mounted(bridge, "bomb", {"url": url}, "waiting") as status:
            assert "compressed" in status["error"]


@pytest.mark.slow
async def test_the_start_timeout_covers_all_answers_of_a_server_at_a_url(bridge: Bridge) -> None:
    with served(_Slow) as url:
        async with mounts.mounted(bridge, "slow", {"url": url, "start_timeout": 1500}, "waiting") as status:
            assert status["error"] == "the server did not list its tools within 1.5 s"


async def test_tools_that_change_while_they_are_listed_are_listed_again(bridge: Bridge) -> None:
    async with mounts.mounted(bridge, "raw", mounts.raw("hasty")):
        await bridge.nvim.wait_for("return mcp_tools.list_tools().raw__late ~= nil")


async def test_a_replaced_server_leaves_no_prompts_or_resources(bridge: Bridge, tmp_path: Path) -> None:
    prompts = "return vim.tbl_count(probe.registry():list('prompts'))"
    before = await bridge.nvim.lua(prompts)
    async with mounts.mounted(bridge, "one", mounts.raw("malformed")):
        assert await bridge.nvim.lua(prompts) == before + 1
        await bridge.nvim.lua("mcp_tools.mount(...)", "one", mounts.raw("tools"))
        await bridge.nvim.wait_for(f"return (function() {prompts} end)() == ...", before)


async def test_invalid_definitions_are_reported_and_valid_ones_exposed(bridge: Bridge) -> None:
    async with mounts.mounted(bridge, "raw", mounts.raw("malformed")) as status:
        async with connect(bridge, "sessions") as client:
            tools = {tool.name for tool in (await client.list_tools()).tools if tool.name.startswith("raw__")}
            resources = {each.uri for each in (await client.list_resources()).resources}
            wrong = error_of(await client.call_tool("raw__good"))
        status = await mounts.status(bridge, "raw", "ready")
        reported = await shown(bridge, "McpTools mounts")
    assert "raw  ready, raw 0, 7 items not exposed" in reported, reported
    assert "not exposed: tools/list: no_schema: inputSchema" in reported
    assert tools == {"raw__good", "raw__remote"}
    assert "raw+ok://x" in resources
    faults = "\n".join(status["faults"])
    for part in ("no_schema: inputSchema", "7: name", "raw__good: duplicate", "Not A URI"):
        assert part in faults, faults
    assert wrong["code"] == "invalid_output"


@pytest.mark.slow
async def test_a_stubborn_server_is_killed_with_all_its_children(bridge: Bridge) -> None:
    async with mounts.mounted(bridge, "stubborn", mounts.raw("stubborn")) as status:
        assert len(mounts.group(status["pid"])) == 2
    await eventually(lambda: not mounts.group(status["pid"]))


@pytest.mark.slow
async def test_secrets_reach_only_the_servers_environment(bridge: Bridge, tmp_path: Path) -> None:
    await bridge.nvim.lua("vim.env.MCPT_SECRET = ...", SECRET)
    spec = mounts.python(
        tmp_path / "journal", env={"SECRET_TOKEN": "${env:MCPT_SECRET}"}, secrets=["MCPT_SECRET"]
    )
    async with (
        mounts.mounted(bridge, "safe", spec) as status,
        mounts.mounted(bridge, "other", mounts.python(tmp_path / "other")),
        connect(bridge, "sessions") as client,
    ):
        whispered = error_of(await client.call_tool("safe__whisper"))
        own = json.loads(text_of(await client.call_tool("safe__environment")))
        others = json.loads(text_of(await client.call_tool("other__environment")))
        assert SECRET not in Path(f"/proc/{status['pid']}/cmdline").read_text()
        bridge_pid = await bridge.pid()
        assert SECRET not in Path(f"/proc/{bridge_pid}/environ").read_text()
        assert SECRET not in Path(f"/proc/{bridge_pid}/cmdline").read_text()
        reported = json.dumps(await bridge.nvim.lua("return mcp_tools.status()"))
    log = await bridge.nvim.lua("return table.concat(probe.log.lines(), '\\n')")
    file = await bridge.nvim.lua("return probe.log.path()")
    assert own["SECRET_TOKEN"] == SECRET
    assert SECRET not in json.dumps(others)
    assert {"NVIM", "MCP_AUTH_TOKEN", "MCPT_SECRET"}.isdisjoint(own)
    assert whispered["message"] == "wrong token …"
    assert SECRET not in reported + log + Path(file).read_text()
    await eventually(lambda: "the secret is …" in Path(file).read_text())


async def test_a_variable_that_is_not_listed_is_not_read(bridge: Bridge, tmp_path: Path) -> None:
    await bridge.nvim.lua("vim.env.MCPT_SECRET = ...", SECRET)
    unlisted = mounts.python(tmp_path / "j", env={"A": "${env:MCPT_SECRET}"})
    in_command = {"command": ["echo", "${env:MCPT_SECRET}"], "secrets": ["MCPT_SECRET"]}
    unset = mounts.python(tmp_path / "j", env={"A": "${env:MCPT_NONE}"}, secrets=["MCPT_NONE"])
    for spec, why in (
        (unlisted, "which is not listed: secrets = { 'MCPT_SECRET' }"),
        (in_command, "not allowed in command or args, which other users can read"),
        (unset, "which is not set"),
    ):
        async with mounts.mounted(bridge, "wrong", spec, "wrong") as status:
            assert why in status["error"]
            assert SECRET not in status["error"]


@pytest.mark.slow
async def test_a_project_file_is_used_only_while_it_is_trusted(bridge: Bridge, tmp_path: Path) -> None:
    """After a change nothing of it is mounted; an invalid server in it does not affect others."""
    file, journal = tmp_path / ".mcp.json", tmp_path / "journal"
    good = {"command": sys.executable, "args": [mounts.PYTHON, str(journal)], "env": {"A": "${MCPT_SECRET}"}}
    servers: dict[str, Any] = {"good": good, "bad": {"command": 7}, "off": {"command": "x", "disabled": True}}
    file.write_text(json.dumps({"mcpServers": servers}))
    lua = bridge.nvim.lua
    root = "probe.project.fix(...)"
    before = await lua("return probe.project.root()")
    await lua("vim.env.MCPT_SECRET = ...", SECRET)
    await lua(root, str(tmp_path))
    try:
        await lua("mcp_tools.setup({ mounts = { { file = '.mcp.json', secrets = { 'MCPT_SECRET' } } } })")
        refused = await mounts.status(bridge, ".mcp.json", "wrong")
        assert "is not trusted" in refused["error"]
        assert not journal.exists()
        await lua(
            "vim.cmd.edit(...) vim.secure.trust({ action = 'allow', bufnr = 0 }) vim.cmd.bwipe()"
            " vim.cmd('McpTools mounts retry')",
            str(file),
        )
        await mounts.status(bridge, "good", "ready")
        wrong = await mounts.status(bridge, "bad", "wrong")
        environment = json.loads((await call(bridge, "good__environment"))["result"])
        names = [each["name"] for each in await lua("return mcp_tools.status().mounts")]
        servers["good"]["args"].append("other")
        file.write_text(json.dumps({"mcpServers": servers}))
        await lua("vim.cmd('McpTools mounts retry')")
        changed = await mounts.status(bridge, ".mcp.json", "wrong")
        left = [each["name"] for each in await lua("return mcp_tools.status().mounts")]
    finally:
        await lua(root, before)
        await lua("mcp_tools.unmount('good')")
        await lua("probe.config.get().mounts[1] = nil probe.mounts.sync()")
    assert "command must" in wrong["error"]
    assert environment["A"] == SECRET
    assert sorted(names) == ["bad", "good"]
    assert "is not trusted" in changed["error"]
    assert left == [".mcp.json"]


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="function")
async def test_no_server_outlives_the_bridge(start_bridge: Any, tmp_path: Path) -> None:
    setup = "{ approval = { default = 'allow' } }"
    own = await start_bridge(setup=setup)
    first = await mounts.mount(own, "py", mounts.python(tmp_path / "journal"))
    stubborn = await mounts.mount(own, "stubborn", mounts.raw("stubborn"))
    await own.nvim.lua(CALL, "py__hold", {})
    os.kill(await own.pid(), signal.SIGKILL)
    outcome = await own.nvim.wait_for("return _G.Outcome")
    assert outcome["err"]["code"] == "execution_error"
    await eventually(lambda: not mounts.group(first["pid"]) and not mounts.group(stubborn["pid"]))
    again = await mounts.status(own, "py", "ready", 15_000)
    assert again["pid"] != first["pid"]
    last = await mounts.status(own, "stubborn", "ready", 15_000)
    await own.nvim.lua("mcp_tools.stop()")
    await eventually(lambda: not mounts.group(again["pid"]) and not mounts.group(last["pid"]))
