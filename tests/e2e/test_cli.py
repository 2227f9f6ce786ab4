"""The command `mcp-tools`, as a shell and as AI clients run it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import pty
import re
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support import processes
from tests.support.bridge import ROOT_TOOLS, Bridge, Start
from tests.support.nvim import ROOT, Home
from tests.support.results import text_of

PROGRAM = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim")]


class Shell:
    """A shell in the project of an editor, outside of that editor."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.nvim = bridge.nvim
        self.home = bridge.nvim.home.make("home")
        self.directory = bridge.nvim.home.make("cwd")
        self.env = bridge.nvim.home.environment()

    async def start(self, *words: str, **options: Any) -> asyncio.subprocess.Process:
        """The running command, in the project unless `cwd` is another directory."""
        return await processes.start(*PROGRAM, *words, **{"cwd": self.directory, "env": self.env} | options)

    async def run(
        self, *words: str, stdin: bytes | None = None, cwd: Path | None = None, **env: str
    ) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
        process = await self.start(*words, cwd=cwd or self.directory, env=self.env | env, **pipes)
        async with asyncio.timeout(20):
            out, err = await process.communicate(stdin or b"")
        assert "Traceback" not in err.decode()
        assert self.bridge.token not in out.decode() + err.decode()
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    async def json(self, *words: str, **more: Any) -> Any:
        code, out, err = await self.run(*words, "--json", **more)
        assert code == 0, err
        return json.loads(out)

    async def relay(self, stdout: int = asyncio.subprocess.PIPE) -> asyncio.subprocess.Process:
        """`mcp-tools stdio`, to which the test writes itself."""
        return await self.start("stdio", stdin=asyncio.subprocess.PIPE, stdout=stdout)

    async def register_forever(self) -> None:
        """Registers a tool that reports progress, never ends, and notes when it begins and is cancelled."""
        await self.nvim.lua(
            "mcp_tools.register({ name = 'forever', description = 'd', needs_approval = false,"
            " execute = function(ctx) _G.begun = true ctx:on_cancel(function(r) _G.cancelled = r end)"
            " ctx:progress(1, 2, 'half of it') end })"
        )


@pytest.fixture
async def shell(start_bridge: Start) -> Shell:
    return Shell(await start_bridge(init=ROOT_TOOLS))


@pytest.mark.slow
async def test_it_lists_editors_tools_resources_and_prompts(shell: Shell) -> None:
    (one,) = await shell.json("list")
    assert one["chosen"]
    assert one["root"] == str(shell.directory)
    code, out, _ = await shell.run("list")
    assert (code, "*" in out) == (0, True)
    names = [tool["name"] for tool in await shell.json("tools")]
    assert "nvim_echo" in names
    code, out, _ = await shell.run("tools", "echo")
    assert (code, out.splitlines()[0]) == (0, "nvim_echo")
    assert "resourceTemplates" in await shell.json("resources")
    assert isinstance(await shell.json("prompts"), list)
    code, out, _ = await shell.run("resources")
    assert (code, "nvim://buffers" in out) == (0, True)
    assert (await shell.run("resources", "nvim://buffers"))[0] == 0


async def test_a_result_is_printed_and_a_failure_is_an_exit_code(shell: Shell) -> None:
    assert (await shell.run("call", "nvim_echo", '{"value": "hello"}'))[:2] == (0, "hello\n")
    assert (await shell.run("call", "nvim_echo", "-", stdin=b'{"value": "in"}'))[:2] == (0, "in\n")
    result = await shell.json("call", "nvim_echo", '{"value": "x"}')
    assert result["content"][0]["text"] == "x"
    code, _, err = await shell.run("call", "nvim_echo", "-", stdin=b'{"value": "%s"}' % (b"x" * 20_000_000))
    assert (code, "bytes" in err) == (1, True), err
    code, out, err = await shell.run("call", "nvim_ech")
    assert (code, out, err.count("did you mean nvim_echo?"), err.count("\n")) == (1, "", 1, 1), err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["call", "nvim_echo", "{"], "not valid JSON"),
        (["call", "nvim_echo", "[1]"], "JSON object"),
        (["call"], "tool"),
        (["nowhere"], "nowhere"),
        ([], "COMMAND"),
        (["serve", "--port", "70000"], "--nvim"),
    ],
)
async def test_invalid_words_are_exit_code_2(shell: Shell, words: list[str], message: str) -> None:
    code, _, err = await shell.run(*words)
    assert code == 2
    assert message in err


@pytest.mark.slow
async def test_how_an_editor_is_chosen(shell: Shell, start_bridge: Start, tmp_path: Path) -> None:
    pid = (await shell.json("list"))[0]["pid"]
    elsewhere = {"cwd": tmp_path}
    code, _, err = await shell.run("tools", **elsewhere)
    assert (code, str(shell.directory) in err) == (3, True)
    for words in (
        ["--instance", str(pid)],
        ["--instance", str(shell.directory)],
        ["--root", str(shell.directory)],
    ):
        assert (await shell.run("tools", *words, **elsewhere))[0] == 0
    assert (await shell.run("tools", **elsewhere, NVIM=str(shell.nvim.socket)))[0] == 0
    code, _, err = await shell.run("tools", **elsewhere, NVIM="/nowhere")
    assert (code, "$NVIM" in err) == (3, False)
    code, _, err = await shell.run("tools", "--instance", "nowhere")
    assert (code, str(pid) in err) == (3, True)


async def test_doctor_checks_the_editor_and_says_what_to_do_without_one(shell: Shell, tmp_path: Path) -> None:
    findings = await shell.json("doctor")
    assert not [each for each in findings if each["level"] == "error"]
    for part in (str(shell.directory), ", Neovim 0."):
        assert any(part in each["text"] for each in findings)
    code, out, _ = await shell.run("doctor", XDG_STATE_HOME=str(tmp_path), XDG_RUNTIME_DIR="")
    assert (code, "WARNING" in out, "->" in out) == (0, True, True)


async def test_a_foreign_process_at_the_port_gets_no_token(shell: Shell) -> None:
    received = b""

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        received += await reader.read(65536)
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"proof": "a"} ')
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pid = (await shell.json("list"))[0]["pid"]
    (file,) = shell.nvim.home.path.rglob(f"{pid}.json")
    text = file.read_text()
    file.write_text(text.replace(str(shell.bridge.port), str(port)))
    code, _, err = await shell.run("tools")
    file.write_text(text)
    server.close()
    assert (code, "does not answer" in err) == (3, True)
    assert b"GET /health" in received
    assert shell.bridge.token.encode() not in received


@pytest.mark.slow
async def test_progress_is_a_bar_and_a_signal_cancels_the_tool(shell: Shell) -> None:
    await shell.register_forever()
    main, terminal = pty.openpty()
    streams = {"stderr": terminal, "stdin": terminal, "stdout": asyncio.subprocess.PIPE}
    process = await shell.start("call", "nvim_forever", **streams)
    shown = b""
    async with asyncio.timeout(10):
        while b"half of it" not in shown:
            shown += await asyncio.to_thread(os.read, main, 1024)
        assert b"50%" in shown
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
    await shell.nvim.wait_for("return _G.cancelled")
    os.close(main)
    os.close(terminal)
    for number in (signal.SIGTERM, signal.SIGHUP):  # from `timeout`, and from a terminal that is closed
        await shell.nvim.lua("_G.cancelled, _G.begun = nil, nil")
        process = await shell.start("call", "nvim_forever")
        await shell.nvim.wait_for("return _G.begun", timeout=10_000)
        process.send_signal(number)
        async with asyncio.timeout(10):
            assert await process.wait() == 130
        await shell.nvim.wait_for("return _G.cancelled")


@pytest.mark.slow
async def test_the_manifest_has_levels_and_becomes_a_skill(shell: Shell, tmp_path: Path) -> None:
    found = await shell.json("manifest")
    levels = {tool["name"]: tool["level"] for tool in found["tools"]}
    assert set(levels.values()) <= {"read", "write", "destructive"}
    assert "nvim_echo" in levels
    code, out, _ = await shell.run("manifest", "--skill", str(tmp_path))
    assert code == 0
    path = Path(out.strip())
    text = path.read_text()
    assert text.startswith("---\nname: nvim-tools\n")
    assert "`nvim_echo(" in text
    assert (await shell.json("manifest", "--skill", str(tmp_path)))["path"] == str(path)
    assert (await shell.run("manifest", "--skill", "~no-such-user/x"))[0] == 0  # an ordinary directory
    path.write_text("mine")
    code, _, err = await shell.run("manifest", "--skill", str(tmp_path))
    assert (code, str(path) in err, path.read_text()) == (1, True, "mine")


async def test_completion_prints_scripts_for_shells(shell: Shell) -> None:
    out = (await shell.run("completion", "bash"))[1]
    process = await processes.start("bash", "-n", stdin=asyncio.subprocess.PIPE)
    await process.communicate(out.encode())
    assert process.returncode == 0
    ask = "\nCOMP_WORDS=(mcp-tools $1 $2) COMP_CWORD=2; _mcp_tools; echo ${COMPREPLY[@]}"
    for words, completed in (
        (("connect", "cu"), "cursor"),
        (("completion", "z"), "zsh"),
        (("config", "--j"), "--json"),
    ):
        asked = await processes.start("bash", "-c", out + ask, "bash", *words, stdout=asyncio.subprocess.PIPE)
        answer, _ = await asked.communicate()
        assert answer.decode().strip() == completed, words
    code, out, _ = await shell.run("completion", "fish")
    assert code == 0
    assert not re.search(r"(?<!\\)\$(?![A-Za-z_(])", out), "no $ for fish, in double quotes"
    code, out, _ = await shell.run("--help")
    assert (code, len(re.findall(r"^ +(?:completion|resources) +\w", out, re.M))) == (0, 2)


def line_of(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


async def lines_of(process: asyncio.subprocess.Process, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Sends messages; returns the answers to those with an id."""
    assert process.stdin is not None
    assert process.stdout is not None
    answers: list[dict[str, Any]] = []
    for message in messages:
        process.stdin.write(line_of(message))
        while "id" in message and (not answers or answers[-1].get("id") != message["id"]):
            async with asyncio.timeout(15):
                answer = json.loads(await process.stdout.readline())
            answers += [answer] if "id" in answer else []
    return answers


CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
INITIALIZE = {"id": 0, "method": "initialize", "params": CLIENT}
INITIALIZED = {"method": "notifications/initialized"}


def call(id_: int, value: Any = "x") -> dict[str, Any]:
    return {"id": id_, "method": "tools/call", "params": {"name": "nvim_echo", "arguments": {"value": value}}}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_agent_may_start_before_neovim(home: Home, start_bridge: Start, mode: Any) -> None:
    server = StdioServerParameters(
        command=PROGRAM[0], args=[*PROGRAM[1:], "stdio"], env=home.environment(), cwd=home.make("cwd")
    )
    changed = asyncio.Event()

    async def receive(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            changed.set()

    async def tools_after_a_change() -> set[str]:
        async with asyncio.timeout(30):
            await changed.wait()
        changed.clear()
        return {tool.name for tool in (await client.list_tools()).tools}

    async with Client(stdio_client(server), mode=mode, message_handler=receive) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["nvim_connection_status"]
        status = await client.call_tool("nvim_connection_status", {})
        assert "no Neovim" in text_of(status)
        assert "ask the user to restart this agent" in text_of(status)
        bridge = await start_bridge(init=ROOT_TOOLS)
        assert "nvim_echo" in await tools_after_a_change()
        assert text_of(await client.call_tool("nvim_echo", {"value": 1})) == "1"
        changed.clear()
        await bridge.nvim.stop()
        assert await tools_after_a_change() == {"nvim_connection_status"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_stdio_answers_invalid_messages_and_ends_with_a_signal(shell: Shell, number: int) -> None:
    process = await shell.relay()
    assert process.stdout is not None
    (early,) = await lines_of(process, call(1))
    assert "initialize" in early["error"]["message"]
    for line in (b"{", b"[" * 100_000, b'"\xff"'):
        process.stdin.write(line + b"\n")
        async with asyncio.timeout(10):
            assert json.loads(await process.stdout.readline())["error"]["code"] == -32700
    process.stdin.write(b"\n\n")
    assert len(await lines_of(process, INITIALIZE, INITIALIZED, call(2))) == 2
    process.send_signal(number)
    async with asyncio.timeout(10):
        assert await process.wait() == 0
    # The bridge knows that the client is gone.
    (editor,) = [each for each in await shell.json("doctor") if str(shell.bridge.port) in each["text"]]
    assert "no client" in editor["text"]


@pytest.mark.slow
async def test_the_call_of_a_client_that_is_gone_is_cancelled(shell: Shell) -> None:
    await shell.register_forever()
    read, write = os.pipe()
    process = await shell.relay(write)
    os.close(write)
    calling = {"id": 1, "method": "tools/call", "params": {"name": "nvim_forever"}}
    for message in (INITIALIZE, INITIALIZED, calling):
        process.stdin.write(line_of(message))
    await shell.nvim.wait_for("return _G.begun", timeout=15_000)
    os.close(read)
    process.stdin.close()
    await shell.nvim.wait_for("return _G.cancelled", timeout=15_000)
    async with asyncio.timeout(10):
        assert await process.wait() == 0


@pytest.mark.slow
async def test_requests_before_the_end_of_stdin_are_answered(shell: Shell) -> None:
    stdin = b"".join(map(line_of, (INITIALIZE, INITIALIZED, call(1))))
    code, out, _ = await shell.run("stdio", stdin=stdin)
    assert code == 0
    answers = [json.loads(line) for line in out.splitlines()]
    assert {answer["id"] for answer in answers if "id" in answer} == {0, 1}


@pytest.mark.slow
async def test_connect_shows_a_change_writes_it_and_can_undo_it(shell: Shell) -> None:
    path = shell.home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    mine = '{ // mine\n  "mcpServers": {"x": {"url": "http://[::1]/"}}\n}\n'
    path.write_text(mine)
    code, out, err = await shell.run("connect", "cursor")
    assert (code, "+" in out, "--yes" in err, path.read_text()) == (2, True, True, mine)
    shown = await shell.json("connect", "cursor", "--dry-run")
    assert (shown["path"], shown["written"]) == (str(path), False)
    assert shown["files"] == "~/.cursor/mcp.json"
    digest = hashlib.sha256(shown["diff"].encode()).hexdigest()
    path.write_text(mine.replace('"x"', '"other"'))
    late = await shell.json("connect", "cursor", "--yes", "--shown", digest)
    assert (late["written"], late["needed"]) == (False, True)
    assert "nvim-tools" not in path.read_text()
    path.write_text(mine)
    assert (await shell.run("connect", "cursor", "--yes", "--shown", digest))[0] == 0
    text = path.read_text()
    assert "// mine" in text
    entry = json.loads(text.replace("// mine", ""))["mcpServers"]["nvim-tools"]
    parameters = StdioServerParameters(
        command=entry["command"], args=entry["args"], env=shell.env, cwd=shell.directory
    )
    async with Client(stdio_client(parameters), mode="legacy") as client:
        assert text_of(await client.call_tool("nvim_echo", {"value": 1})) == "1"
    assert "already" in (await shell.run("connect", "cursor", "--yes"))[1]
    assert (await shell.run("disconnect", "cursor", "--yes"))[0] == 0
    assert path.read_text() == mine


@pytest.mark.slow
async def test_a_skill_is_written_and_removed_with_the_entry(shell: Shell) -> None:
    path = shell.home / ".claude" / "skills" / "nvim-tools" / "SKILL.md"
    shown = await shell.json("connect", "claude-code", "--skill", "--dry-run")
    assert (shown["skill"], shown["needed"]) == (str(path), True)
    assert all(part in shown["diff"] for part in ("+name: nvim-tools", '"nvim-tools"'))
    assert not path.exists()
    assert (await shell.run("connect", "claude-code", "--skill", "--yes"))[0] == 0
    assert "already" in (await shell.run("connect", "claude-code", "--skill", "--yes"))[1]
    text = path.read_text()
    assert "## Tools" not in text  # it holds for every project
    (command,) = re.findall(r"(?m)^    (.+)$", text)
    # The command in the skill works.
    words = (*shlex.split(command), "call", "nvim_echo", '{"value": "hello"}')
    options = {"cwd": shell.directory, "env": shell.env, "stdout": asyncio.subprocess.PIPE}
    process = await processes.start(*words, **options)
    async with asyncio.timeout(20):
        assert (await process.communicate())[0] == b"hello\n"
    assert (await shell.run("connect", "claude-code", "--project", "--skill", "--yes"))[0] == 0
    project = shell.directory / ".claude" / "skills" / "nvim-tools" / "SKILL.md"
    assert "- `nvim_echo(" in project.read_text()
    for words in (["--project"], []):
        assert (await shell.run("disconnect", "claude-code", *words, "--yes"))[0] == 0
    assert not any(left.exists() for left in (project.parent, path.parent, shell.home / ".claude.json"))


@pytest.mark.slow
async def test_permissions_allow_only_tools_that_read_and_never_ask(shell: Shell) -> None:
    path = shell.home / ".claude" / "settings.json"
    connect = ("connect", "claude-code", "--permissions")
    setup = (
        "mcp_tools.setup({ tools = { 'file_read', 'file_write', 'git_log', 'editor_registers' },"
        " approval = { default = ..., tools = { git_log = 'ask' } } })"
    )
    await shell.nvim.lua(setup, "allow")
    code, _, err = await shell.run(*connect, "--yes")
    assert (code, 'approval.default is "allow"' in err) == (1, True)
    code, _, err = await shell.run(*connect, "--yes", "--root", "/")
    assert (code, "--permissions: no Neovim" in err) == (3, True)
    assert not path.exists()
    await shell.nvim.lua(setup, "ask")
    shown = await shell.json(*connect, "--dry-run")
    assert shown["permissions"] == str(path)
    assert "any server named nvim-tools, also to one that a project defines" in shown["diff"]
    (shell.directory / ".mcp.json").write_text('{"mcpServers": {"nvim-tools": {"command": "x"}}}')
    shown = await shell.json(*connect, "--dry-run")
    assert shown["diff"].startswith(f"WARNING: {shell.directory / '.mcp.json'} defines a server")
    digest = hashlib.sha256(shown["diff"].encode()).hexdigest()
    assert (await shell.json(*connect, "--yes", "--shown", digest))["written"]
    # Not the user's own tools, those that write, or those for which Neovim asks.
    assert json.loads(path.read_text()) == {"permissions": {"allow": ["mcp__nvim-tools__nvim_file_read"]}}
    code, out, _ = await shell.run("disconnect", "claude-code", "--permissions", "--yes")
    assert (code, "asks for all tools again" in out) == (0, True)
    assert not path.exists()
    assert "already" in (await shell.run("connect", "claude-code", "--yes"))[1]
    assert (await shell.run(*connect, "--yes"))[0] == 0
    assert (await shell.run("disconnect", "claude-code", "--yes"))[0] == 0
    assert not path.exists()


@pytest.mark.slow
async def test_a_token_gets_into_a_repository_only_when_told_to(shell: Shell) -> None:
    path = shell.directory / ".mcp.json"
    path.write_text("{}")
    for git in (["init", "-q"], ["add", ".mcp.json"]):
        await (await processes.start("git", *git, cwd=shell.directory)).wait()
    words = ["connect", "claude-code", "--project", "--http", "--yes"]
    code, _, err = await shell.run(*words)
    assert (code, "git" in err, path.read_text()) == (1, True, "{}")
    assert "Bearer …" in (await shell.json("connect", "cursor", "--http", "--dry-run"))["diff"]
    code, out, _ = await shell.run(*words, "--env", "NVIM_TOKEN")
    assert (code, "reads the token in $NVIM_TOKEN" in out) == (0, True)
    assert "${NVIM_TOKEN}" in path.read_text()
    assert (await shell.run(*words, "--token-into-git"))[0] == 0
    assert shell.bridge.token in path.read_text()


READ = "vim.wait(600) vim.cmd('normal! G') vim.cmd.redraw()"
"""Shows all of a change, as keys do not accept the rest, after the time in which keys are ignored."""


@pytest.mark.slow
async def test_the_editor_command_connects_and_disconnects_clients(shell: Shell) -> None:
    nvim = shell.nvim
    path = shell.home / ".cursor" / "mcp.json"
    shown = (
        "local name, part = ... local b = vim.fn.bufnr('mcp-tools://' .. name)"
        " local lines = b ~= -1 and vim.api.nvim_buf_get_lines(b, 0, -1, false)"
        " return lines and table.concat(lines):find(part, 1, true) and lines"
    )
    messages = "return vim.fn.execute('messages')"
    found = f"{messages}:find(..., 1, true)"
    assert "cursor" in await nvim.lua("return vim.fn.getcompletion('McpTools connect ', 'cmdline')")
    await nvim.request("nvim_command", "McpTools connect cursr")
    assert "cursor" in await nvim.lua(messages)
    await nvim.request("nvim_command", "McpTools connect cursor permissions")
    await nvim.wait_for(found, "no settings for single tools are known; omit permissions", timeout=10_000)
    for verb, connects in (("connect", True), ("disconnect", False)):
        await nvim.request("nvim_command", f"McpTools {verb} cursor{' skill' if connects else ''}")
        lines = "\n".join(await nvim.wait_for(shown, f"{verb} cursor", "", timeout=10_000))
        assert '"nvim-tools"' in lines
        assert "name: nvim-tools" in lines
        assert path.exists() != connects
        if connects:  # a file that changes after the diff was shown has to be confirmed again
            path.parent.mkdir(exist_ok=True)
            path.write_text('{"mcpServers": {"other": {"url": "http://[::1]/"}}}')
            await nvim.lua(READ)
            await nvim.request("nvim_feedkeys", "y", "xt", False)
            again = await nvim.wait_for(shown, f"{verb} cursor", "other", timeout=10_000)
            assert '"nvim-tools"' in "".join(again)
            assert "nothing was written" in await nvim.lua(messages)
            assert "nvim-tools" not in path.read_text()
        await nvim.lua(READ)
        await nvim.request("nvim_feedkeys", "y", "xt", False)
        outcome = "configured (2 files)" if connects else "disconnected. Restart Cursor if it is running."
        await nvim.wait_for(found, f"cursor is {outcome}", timeout=10_000)
        assert ("nvim-tools" in path.read_text(), "other" in path.read_text()) == (connects, True)
    await nvim.lua(
        "vim.ui.select = function(items, _, cb) _G.choices = vim.tbl_map(function(each)"
        " return each.name end, items) cb(nil) end"
    )
    await nvim.request("nvim_command", "McpTools disconnect")
    await nvim.wait_for(found, "no client is connected", timeout=10_000)
    assert await nvim.lua("return _G.choices") is None
    await nvim.request("nvim_command", "McpTools connect")
    assert await nvim.wait_for("return _G.choices", timeout=10_000) == [
        "cursor"
    ]  # the others are not installed


@pytest.mark.slow
async def test_the_window_names_all_files_and_the_next_steps(shell: Shell) -> None:
    nvim = shell.nvim
    text = "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"
    is_shown = f"{text}:find(..., 1, true)"

    async def connect(words: str, part: str, next_step: str) -> str:
        """Returns the title of the diff."""
        await nvim.request("nvim_command", f"McpTools connect {words}")
        await nvim.wait_for(is_shown, part, timeout=10_000)
        bar: str = await nvim.lua("return vim.wo.winbar")
        await nvim.lua(READ)
        await nvim.request("nvim_feedkeys", "y", "xt", False)
        await nvim.wait_for(is_shown, next_step, timeout=10_000)
        return bar

    bar = await connect("codex hooks", "hooks.json", "choose 'Trust all'")
    assert "~/.codex/config.toml, ~/.codex/hooks.json" in bar
    assert "default_tools_approval_mode" in await nvim.lua(text)
    (shell.home / ".codex" / "hooks.json").unlink()
    await nvim.request("nvim_command", "close")
    await connect("codex hooks", "hooks.json", "choose 'Trust all'")
    lines = (await nvim.lua(text)).split("\n")
    assert lines[0] == "Restart Codex if it is running."
    assert lines[1].startswith("At its next start, Codex asks whether to trust the hooks")
    assert not any("default_tools_approval_mode" in line for line in lines)
    messages = await nvim.lua("return vim.fn.execute('messages')")
    assert "codex is configured (2 files)" in messages
    assert "codex is configured (~/.codex/hooks.json)" in messages
