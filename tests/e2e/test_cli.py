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
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support import processes
from tests.support.bridge import ROOT_TOOLS, Bridge
from tests.support.nvim import ROOT, Home
from tests.support.results import text_of

Start = Callable[..., Awaitable[Bridge]]

PROGRAM = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim")]


class Shell:
    """A shell in the project of an editor, outside of that editor."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.folder = bridge.nvim.home.make("cwd")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("NVIM", "MCP_"))}
        self.env = kept | bridge.nvim.home.environment()

    async def run(
        self, *words: str, stdin: bytes | None = None, folder: Path | None = None, **env: str
    ) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        process = await processes.start(
            *PROGRAM,
            *words,
            cwd=folder or self.folder,
            env=self.env | env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(20):
            out, err = await process.communicate(stdin or b"")
        assert "Traceback" not in err.decode()
        assert self.bridge.token not in out.decode() + err.decode()
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    async def json(self, *words: str, **more: Any) -> Any:
        """What it prints for programs."""
        code, out, err = await self.run(*words, "--json", **more)
        assert code == 0, err
        return json.loads(out)

    async def relay(self, stdout: int = asyncio.subprocess.PIPE) -> asyncio.subprocess.Process:
        """`mcp-tools stdio`, to which the test writes itself."""
        pipe = asyncio.subprocess.PIPE
        return await processes.start(
            *PROGRAM, "stdio", cwd=self.folder, env=self.env, stdin=pipe, stdout=stdout
        )

    def stdio(self, *words: str) -> StdioServerParameters:
        """As an AI client starts it."""
        return StdioServerParameters(
            command=PROGRAM[0], args=[*PROGRAM[1:], "stdio", *words], env=self.env, cwd=self.folder
        )


@pytest.fixture
async def shell(start_bridge: Start) -> Shell:
    return Shell(await start_bridge(init=ROOT_TOOLS))


async def test_what_there_is(shell: Shell) -> None:
    """Editors, tools, resources and prompts, for people and for programs."""
    (one,) = await shell.json("list")
    assert one["chosen"]
    assert one["root"] == str(shell.folder)
    code, out, _ = await shell.run("list")
    assert (code, "*" in out) == (0, True)
    names = [tool["name"] for tool in await shell.json("tools")]
    assert "nvim_echo" in names
    code, out, _ = await shell.run("tools", "echo")
    assert (code, out.splitlines()[0]) == (0, "nvim_echo")
    assert "resourceTemplates" in await shell.json("resources")
    assert isinstance(await shell.json("prompts"), list)
    code, out, _ = await shell.run("resources")
    assert code == 0
    assert "nvim://buffers" in out
    code, out, _ = await shell.run("resources", "nvim://buffers")
    assert code == 0


async def test_calls(shell: Shell) -> None:
    """A result is printed, a failure is an exit code."""
    assert (await shell.run("call", "nvim_echo", '{"value": "hello"}'))[:2] == (0, "hello\n")
    assert (await shell.run("call", "nvim_echo", "-", stdin=b'{"value": "in"}'))[:2] == (0, "in\n")
    result = await shell.json("call", "nvim_echo", '{"value": "x"}')
    assert result["content"][0]["text"] == "x"
    code, _, err = await shell.run("call", "nvim_echo", "-", stdin=b'{"value": "%s"}' % (b"x" * 20_000_000))
    assert (code, "bytes" in err) == (1, True), err
    code, out, err = await shell.run("call", "nvim_ech")
    said = "Unknown tool: nvim_ech; did you mean nvim_echo? (unknown_tool, -32602); `mcp-tools tools` lists"
    assert (code, out, err) == (1, "", f"mcp-tools call: {said} the tools\n"), "told once"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["call", "nvim_echo", "{"], "not valid JSON"),
        (["call", "nvim_echo", "[1]"], "JSON object"),
        (["call"], "tool"),
        (["nowhere"], "nowhere"),
        ([], "COMMAND"),
        (["serve", "--port", "70000"], "--nvim"),
    ],
)
async def test_wrong_arguments(shell: Shell, words: list[str], said: str) -> None:
    """Exit code 2, and what is wrong."""
    code, _, err = await shell.run(*words)
    assert code == 2
    assert said in err


@pytest.mark.slow
async def test_which_editor(shell: Shell, start_bridge: Start, tmp_path: Path) -> None:
    """By $NVIM, by the folder, by name; else it is refused with what there is."""
    pid = (await shell.json("list"))[0]["pid"]
    elsewhere = {"folder": tmp_path}
    code, _, err = await shell.run("tools", **elsewhere)
    assert code == 3
    assert str(shell.folder) in err
    for words in (["--instance", str(pid)], ["--instance", str(shell.folder)], ["--root", str(shell.folder)]):
        assert (await shell.run("tools", *words, **elsewhere))[0] == 0
    assert (await shell.run("tools", **elsewhere, NVIM=str(shell.bridge.nvim.socket)))[0] == 0
    code, _, err = await shell.run("tools", **elsewhere, NVIM="/nowhere")
    assert (code, "$NVIM" in err) == (3, True)
    code, _, err = await shell.run("tools", "--instance", "nowhere")
    assert (code, str(pid) in err) == (3, True)


async def test_doctor(shell: Shell, tmp_path: Path) -> None:
    """It sees the editor and its clients; and says what to do when there is none."""
    findings = await shell.json("doctor")
    assert not [each for each in findings if each["level"] == "error"]
    assert any(str(shell.folder) in each["text"] for each in findings)
    assert any(", Neovim 0." in each["text"] for each in findings)
    code, out, _ = await shell.run("doctor", XDG_STATE_HOME=str(tmp_path), XDG_RUNTIME_DIR="")
    assert code == 0
    assert "WARNING" in out
    assert "->" in out


async def test_a_stranger_on_the_port(shell: Shell) -> None:
    """The token goes to nobody who cannot prove that it is the bridge."""
    heard = b""

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        heard += await reader.read(65536)
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"proof": "a"} ')
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pid = (await shell.json("list"))[0]["pid"]
    (note,) = shell.bridge.nvim.home.path.rglob(f"{pid}.json")
    text = note.read_text()
    note.write_text(text.replace(str(shell.bridge.port), str(port)))
    code, _, err = await shell.run("tools")
    note.write_text(text)
    server.close()
    assert code == 3
    assert "does not answer" in err
    assert b"GET /health" in heard
    assert shell.bridge.token.encode() not in heard


@pytest.mark.slow
async def test_interrupted_on_a_terminal(shell: Shell) -> None:
    """Progress is a bar there; Ctrl-C cancels the tool."""
    await shell.bridge.nvim.lua(
        "mcp_tools.register({ name = 'forever', description = 'd', needs_approval = false,"
        " execute = function(ctx) _G.begun = true ctx:on_cancel(function(r) _G.cancelled = r end)"
        " ctx:progress(1, 2, 'half of it') end })"
    )
    main, terminal = pty.openpty()
    process = await processes.start(
        *PROGRAM,
        "call",
        "nvim_forever",
        cwd=shell.folder,
        env=shell.env,
        stderr=terminal,
        stdin=terminal,
        stdout=asyncio.subprocess.PIPE,
    )
    shown = b""
    async with asyncio.timeout(10):
        while b"half of it" not in shown:
            shown += await asyncio.to_thread(os.read, main, 1024)
        assert b"50%" in shown
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
    await shell.bridge.nvim.wait_for("return _G.cancelled")
    os.close(main)
    os.close(terminal)
    for number in (signal.SIGTERM, signal.SIGHUP):  # `timeout` sends one, a terminal that is closed the other
        await shell.bridge.nvim.lua("_G.cancelled, _G.begun = nil, nil")
        process = await processes.start(*PROGRAM, "call", "nvim_forever", cwd=shell.folder, env=shell.env)
        await shell.bridge.nvim.wait_for("return _G.begun", timeout=10_000)
        process.send_signal(number)
        async with asyncio.timeout(10):
            assert await process.wait() == 130
        await shell.bridge.nvim.wait_for("return _G.cancelled")


@pytest.mark.slow
async def test_manifest(shell: Shell, tmp_path: Path) -> None:
    """All tools with their level, as data and as a skill."""
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
    assert (await shell.run("manifest", "--skill", str(tmp_path)))[0] == 0
    assert (await shell.json("manifest", "--skill", str(tmp_path)))["path"] == str(path)
    assert (await shell.run("manifest", "--skill", "~nobody-of-that-name/x"))[0] == 0  # a folder of that name
    path.write_text("mine")
    code, _, err = await shell.run("manifest", "--skill", str(tmp_path))
    assert (code, str(path) in err, path.read_text()) == (1, True, "mine")


async def test_completion(shell: Shell) -> None:
    """What it prints is a script of that shell."""
    code, out, _ = await shell.run("completion", "bash")
    assert code == 0
    process = await processes.start("bash", "-n", stdin=asyncio.subprocess.PIPE)
    await process.communicate(out.encode())
    assert process.returncode == 0
    ask = "\nCOMP_WORDS=(mcp-tools $1 $2) COMP_CWORD=2; _mcp_tools; echo ${COMPREPLY[@]}"
    for words, offered in (
        (("connect", "cu"), "cursor"),
        (("completion", "z"), "zsh"),
        (("config", "--j"), "--json"),
    ):
        asked = await processes.start("bash", "-c", out + ask, "bash", *words, stdout=asyncio.subprocess.PIPE)
        answer, _ = await asked.communicate()
        assert answer.decode().strip() == offered, words
    code, out, _ = await shell.run("completion", "fish")
    assert code == 0
    assert not re.search(r"(?<!\\)\$(?![A-Za-z_(])", out), "no $ for fish, in double quotes"
    code, out, _ = await shell.run("--help")
    assert code == 0
    assert re.search(r"^ +completion +print completions for bash", out, re.M)
    assert re.search(r"^ +resources +list resources", out, re.M)


async def lines_of(process: asyncio.subprocess.Process, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """One answer a message."""
    assert process.stdin is not None
    assert process.stdout is not None
    found = []
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        if "id" in message:
            while True:
                async with asyncio.timeout(15):
                    answer = json.loads(await process.stdout.readline())
                if answer.get("id") == message["id"]:
                    break
            found.append(answer)
    return found


INITIALIZE = {
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
INITIALIZED = {"method": "notifications/initialized"}


def call(id_: int, value: Any = "x") -> dict[str, Any]:
    return {"id": id_, "method": "tools/call", "params": {"name": "nvim_echo", "arguments": {"value": value}}}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_agent_that_starts_before_neovim_gets_its_tools_later(
    home: Home, start_bridge: Start, mode: Any
) -> None:
    """It connects, can ask why there is no editor, and is notified when there is one, and when it goes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NVIM", "MCP_"))}
    server = StdioServerParameters(
        command=PROGRAM[0], args=[*PROGRAM[1:], "stdio"], env=kept | home.environment(), cwd=home.make("cwd")
    )
    changed = asyncio.Event()

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            changed.set()

    async def tools_after_a_change() -> set[str]:
        async with asyncio.timeout(30):
            await changed.wait()
        changed.clear()
        return {tool.name for tool in (await client.list_tools()).tools}

    async with Client(stdio_client(server), mode=mode, message_handler=hear) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["nvim_connection_status"]
        status = await client.call_tool("nvim_connection_status", {})
        assert "no Neovim" in text_of(status)
        bridge = await start_bridge(init=ROOT_TOOLS)
        assert "nvim_echo" in await tools_after_a_change()
        assert text_of(await client.call_tool("nvim_echo", {"value": 1})) == "1"
        changed.clear()
        await bridge.nvim.stop()
        assert await tools_after_a_change() == {"nvim_connection_status"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_stdio_answers_invalid_messages_and_ends_with_a_signal(shell: Shell, number: int) -> None:
    """Nothing but the signal ends it, and the bridge is notified, also when a terminal is closed."""
    process = await shell.relay()
    assert process.stdin is not None
    assert process.stdout is not None
    (early,) = await lines_of(process, call(1))
    assert "initialize" in early["error"]["message"]
    for line in (b"{", b"[" * 100_000, b'"\xff"'):
        process.stdin.write(line + b"\n")
        async with asyncio.timeout(5):
            assert json.loads(await process.stdout.readline())["error"]["code"] == -32700
    process.stdin.write(b"\n\n")
    assert len(await lines_of(process, INITIALIZE, INITIALIZED, call(2))) == 2
    process.send_signal(number)
    async with asyncio.timeout(5):
        assert await process.wait() == 0
    (editor,) = [each for each in await shell.json("doctor") if str(shell.bridge.port) in each["text"]]
    assert "no client" in editor["text"]


@pytest.mark.slow
async def test_stdio_of_a_client_that_is_gone(shell: Shell) -> None:
    """Its call is called off at once, and the process ends."""
    await shell.bridge.nvim.lua(
        "mcp_tools.register({ name = 'forever', description = 'd', needs_approval = false,"
        " execute = function(ctx) _G.begun = true ctx:on_cancel(function(r) _G.cancelled = r end) end })"
    )
    read, write = os.pipe()
    process = await shell.relay(write)
    os.close(write)
    assert process.stdin is not None
    calling = {"id": 1, "method": "tools/call", "params": {"name": "nvim_forever"}}
    for message in (INITIALIZE, INITIALIZED, calling):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    await shell.bridge.nvim.wait_for("return _G.begun", timeout=15_000)
    os.close(read)
    process.stdin.close()
    await shell.bridge.nvim.wait_for("return _G.cancelled", timeout=15_000)
    async with asyncio.timeout(10):
        assert await process.wait() == 0


@pytest.mark.slow
async def test_stdio_piped(shell: Shell) -> None:
    """The end of stdin leaves time for what was asked."""
    messages = [INITIALIZE, INITIALIZED, call(1)]
    stdin = b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in messages)
    code, out, _ = await shell.run("stdio", stdin=stdin)
    assert code == 0
    answers = [json.loads(line) for line in out.splitlines()]
    assert {answer["id"] for answer in answers if "id" in answer} == {0, 1}


@pytest.mark.slow
async def test_connecting_a_client(shell: Shell) -> None:
    """Shown first, written with leave alone, usable as written, undone to the byte."""
    path = shell.bridge.nvim.home.make("home") / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{ // mine\n  "mcpServers": {}\n}\n')
    code, out, err = await shell.run("connect", "cursor")
    assert code == 2
    assert "+" in out
    assert "--yes" in err
    assert "nvim-tools" not in path.read_text()
    shown = await shell.json("connect", "cursor", "--dry-run")
    assert (shown["path"], shown["written"]) == (str(path), False)
    assert shown["files"] == "~/.cursor/mcp.json"
    digest = hashlib.sha256(shown["diff"].encode()).hexdigest()
    mine = path.read_text()
    path.write_text(mine.replace("{}", '{"other": {"url": "http://[::1]/"}}'))
    late = await shell.json("connect", "cursor", "--yes", "--shown", digest)
    assert (late["written"], late["needed"]) == (False, True)
    assert "nvim-tools" not in path.read_text()
    path.write_text(mine)
    code, out, _ = await shell.run("connect", "cursor", "--yes", "--shown", digest)
    assert code == 0
    text = path.read_text()
    assert "// mine" in text
    entry = json.loads(text.replace("// mine", ""))["mcpServers"]["nvim-tools"]
    parameters = StdioServerParameters(
        command=entry["command"], args=entry["args"], env=shell.env, cwd=shell.folder
    )
    async with Client(stdio_client(parameters), mode="legacy") as client:
        assert text_of(await client.call_tool("nvim_echo", {"value": 1})) == "1"
    assert "already" in (await shell.run("connect", "cursor", "--yes"))[1]
    assert (await shell.run("disconnect", "cursor", "--yes"))[0] == 0
    assert path.read_text() == '{ // mine\n  "mcpServers": {}\n}\n'


@pytest.mark.slow
async def test_a_skill_for_a_client(shell: Shell) -> None:
    """Shown with the entry, written with it, and gone with it; what it tells an agent to run does run."""
    home = shell.bridge.nvim.home.make("home")
    path = home / ".claude" / "skills" / "nvim-tools" / "SKILL.md"
    shown = await shell.json("connect", "claude-code", "--skill", "--dry-run")
    assert (shown["skill"], shown["needed"]) == (str(path), True)
    assert "+name: nvim-tools" in shown["diff"]
    assert '"nvim-tools"' in shown["diff"]
    assert not path.exists()
    assert (await shell.run("connect", "claude-code", "--skill", "--yes"))[0] == 0
    assert "already" in (await shell.run("connect", "claude-code", "--skill", "--yes"))[1]
    text = path.read_text()
    assert "## Tools" not in text  # it holds for every project
    (command,) = re.findall(r"(?m)^    (.+)$", text)
    process = await processes.start(
        *shlex.split(command),
        *("call", "nvim_echo", '{"value": "as told"}'),
        cwd=shell.folder,
        env=shell.env,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(20):
        assert (await process.communicate())[0] == b"as told\n"
    assert (await shell.run("connect", "claude-code", "--project", "--skill", "--yes"))[0] == 0
    project = shell.folder / ".claude" / "skills" / "nvim-tools" / "SKILL.md"
    assert "- `nvim_echo(" in project.read_text()
    for words in (["--project"], []):
        assert (await shell.run("disconnect", "claude-code", *words, "--yes"))[0] == 0
    assert not project.parent.exists()
    assert not path.parent.exists()
    assert not (home / ".claude.json").exists()


@pytest.mark.slow
async def test_permissions_for_a_client(shell: Shell) -> None:
    path = shell.bridge.nvim.home.make("home") / ".claude" / "settings.json"
    connect = ("connect", "claude-code", "--permissions")
    await shell.bridge.nvim.lua(
        "require('mcp-tools').setup({ tools = { 'file_read', 'file_write', 'git_log', 'editor_registers' },"
        " approval = { default = 'allow', tools = { git_log = 'ask' } } })"
    )
    code, _, err = await shell.run(*connect, "--yes")
    assert (code, 'approval.default is "allow"' in err) == (1, True)
    code, _, err = await shell.run(*connect, "--yes", "--root", "/")
    assert (code, "--permissions: no Neovim" in err) == (3, True)
    assert not path.exists()
    await shell.bridge.nvim.lua(
        "require('mcp-tools').setup({ tools = { 'file_read', 'file_write', 'git_log', 'editor_registers' },"
        " approval = { default = 'ask', tools = { git_log = 'ask' } } })"
    )
    shown = await shell.json(*connect, "--dry-run")
    assert shown["permissions"] == str(path)
    assert "any server named nvim-tools, also to one that a project defines" in shown["diff"]
    (shell.folder / ".mcp.json").write_text('{"mcpServers": {"nvim-tools": {"command": "x"}}}')
    shown = await shell.json(*connect, "--dry-run")
    assert shown["diff"].startswith("WARNING: this project defines a server named nvim-tools in .mcp.json")
    digest = hashlib.sha256(shown["diff"].encode()).hexdigest()
    assert (await shell.json(*connect, "--yes", "--shown", digest))["written"]
    # neither a tool of the user nor one that writes or for which Neovim asks
    assert json.loads(path.read_text()) == {"permissions": {"allow": ["mcp__nvim-tools__nvim_file_read"]}}
    code, out, _ = await shell.run("disconnect", "claude-code", "--permissions", "--yes")
    assert (code, "asks for all tools again" in out) == (0, True)
    assert not path.exists()
    assert "already" in (await shell.run("connect", "claude-code", "--yes"))[1]
    assert (await shell.run(*connect, "--yes"))[0] == 0
    assert (await shell.run("disconnect", "claude-code", "--yes"))[0] == 0
    assert not path.exists()


@pytest.mark.slow
async def test_tokens_and_git(shell: Shell) -> None:
    """A token is not shown, and gets into a repository by an explicit word alone."""
    for words in (["init", "-q"], ["config", "user.email", "a@b"], ["config", "user.name", "a"]):
        await (await processes.start("git", *words, cwd=shell.folder)).wait()
    path = shell.folder / ".mcp.json"
    path.write_text("{}")
    await (await processes.start("git", "add", ".mcp.json", cwd=shell.folder)).wait()
    words = ["connect", "claude-code", "--project", "--http", "--yes"]
    code, _, err = await shell.run(*words)
    assert code == 1
    assert "git" in err
    assert path.read_text() == "{}"
    assert "Bearer …" in (await shell.json("connect", "cursor", "--http", "--dry-run"))["diff"]
    code, out, _ = await shell.run(*words, "--env", "NVIM_TOKEN")
    assert (code, "reads the token in $NVIM_TOKEN" in out) == (0, True)
    assert "${NVIM_TOKEN}" in path.read_text()
    assert (await shell.run(*words, "--token-into-git"))[0] == 0
    assert shell.bridge.token in path.read_text()


READ = """
vim.cmd.redraw()
while probe.scratch.reveal() do
  vim.cmd.redraw()
end
"""
"""Nobody agrees to what was not on a screen: all of it is looked at."""


@pytest.mark.slow
async def test_connecting_from_the_editor(shell: Shell) -> None:
    """The same by a command: the change is shown, `y` writes it; a wrong name gets the nearest."""
    nvim = shell.bridge.nvim
    path = nvim.home.make("home") / ".cursor" / "mcp.json"
    shown = (
        "local b = vim.fn.bufnr('mcp-tools://' .. ...)"
        " return b ~= -1 and vim.api.nvim_buf_get_lines(b, 0, -1, false)"
    )
    assert "cursor" in await nvim.lua("return vim.fn.getcompletion('McpTools connect ', 'cmdline')")
    await nvim.request("nvim_command", "McpTools connect cursr")
    assert "cursor" in await nvim.lua("return vim.fn.execute('messages')")
    for verb, there in (("connect", True), ("disconnect", False)):
        await nvim.request("nvim_command", f"McpTools {verb} cursor{' skill' if there else ''}")
        lines = await nvim.wait_for(shown, f"{verb} cursor", timeout=10_000)
        assert any('"nvim-tools"' in line for line in lines)
        assert any("name: nvim-tools" in line for line in lines)
        assert path.exists() != there
        if there:  # what somebody writes between the diff and the `y` was not in what was agreed to
            path.parent.mkdir(exist_ok=True)
            path.write_text('{"mcpServers": {"other": {"url": "http://[::1]/"}}}')
            await nvim.lua(READ)
            await nvim.request("nvim_feedkeys", "y", "xt", False)
            again = await nvim.wait_for(
                f"{shown[: shown.index(' return')]} local l = b ~= -1"
                " and vim.api.nvim_buf_get_lines(b, 0, -1, false) return l and"
                " table.concat(l):find('other', 1, true) and l",
                f"{verb} cursor",
                timeout=10_000,
            )
            assert any('"nvim-tools"' in line for line in again)
            assert "nothing was written" in await nvim.lua("return vim.fn.execute('messages')")
            assert "nvim-tools" not in path.read_text()
        await nvim.lua(READ)
        await nvim.request("nvim_feedkeys", "y", "xt", False)
        state = "configured" if there else "disconnected"
        done = f"return vim.fn.execute('messages'):find('cursor is {state} (~/.cursor/mcp.json', 1, true)"
        await nvim.wait_for(done, timeout=10_000)
        assert ("nvim-tools" in path.read_text(), "other" in path.read_text()) == (there, True)
    await nvim.lua(
        "vim.ui.select = function(items, opts, cb)"
        " _G.offered = vim.tbl_map(opts.format_item, items) cb(nil) end"
    )
    await nvim.request("nvim_command", "McpTools disconnect")
    await nvim.wait_for(
        "return vim.fn.execute('messages'):find('no client is connected', 1, true)", timeout=10_000
    )
    assert not await nvim.lua("return _G.offered ~= nil")
    await nvim.request("nvim_command", "McpTools connect")
    offered = await nvim.wait_for("return _G.offered", timeout=10_000)
    assert len(offered) == 14


@pytest.mark.slow
async def test_steps_after_connecting_from_the_editor(shell: Shell) -> None:
    """The window names all files before, and what the user has to do after the change."""
    nvim = shell.bridge.nvim
    await nvim.request("nvim_command", "McpTools connect codex hooks")
    text = "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), ' '):find(..., 1, true)"
    await nvim.wait_for(text, "hooks.json", timeout=10_000)
    bar = await nvim.lua("return vim.wo.winbar")
    assert "~/.codex/config.toml, ~/.codex/hooks.json" in bar
    await nvim.lua(READ)
    await nvim.request("nvim_feedkeys", "y", "xt", False)
    await nvim.wait_for(text, "choose 'Trust all'", timeout=10_000)
    messages = await nvim.lua("return vim.fn.execute('messages')")
    assert "codex is configured (~/.codex/config.toml)" in messages
