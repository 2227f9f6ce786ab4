"""A real headless Neovim for one test."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket as sockets
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import processes
from .results import eventually
from .rpc import GoneError, Rpc, RpcError

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim")]
"""The command `mcp-tools`."""
PROBE = f"_G.probe = dofile([[{ROOT / 'tests' / 'support' / 'probe.lua'}]])"
"""Lua that gives tests access to modules of the plugin."""
CALL = """
local name, args = ...
Called, Reported = nil, {}
require('mcp-tools').call(name, next(args) and args or vim.empty_dict(), {
  on_progress = function(at) table.insert(Reported, at.message) end,
}, function(result, err) Called = { err or result } end)
"""
START_TIMEOUT = 10_000  # ms
STOP_TIMEOUT = 5_000
GONE_TIMEOUT = 1_000
# Variables of an outer Neovim or bridge, and those that mean that no user is at the terminal.
INHERITED = ("VIM", "VIMRUNTIME", "NVIM", "NVIM_APPNAME", "NVIM_LISTEN_ADDRESS", "NVIM_LOG_FILE")
INHERITED += ("CI", "CONTINUOUS_INTEGRATION", "BUILD_NUMBER", "GITHUB_ACTIONS", "GITLAB_CI")
# Variables of `make test` for nested runs of make.
INHERITED += ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")


@dataclass(frozen=True)
class Home:
    """The directories of one editor, which writes nowhere else."""

    path: Path

    @property
    def runtime(self) -> Path:
        """Sockets and instance files; empty after a clean end."""
        return self.path / "run"

    def environment(self) -> dict[str, str]:
        """The environment of a process with these directories."""
        kept = {k: v for k, v in os.environ.items() if k not in INHERITED and not k.startswith("MCP_")}
        for name in ("config", "data", "state", "cache"):
            kept[f"XDG_{name.upper()}_HOME"] = str(self.make(name))
        kept["XDG_RUNTIME_DIR"] = str(self.make("run"))
        kept["HOME"] = str(self.make("home"))
        if not (self.make("state") / "nvim").exists():
            self.mark_welcomed()
        kept["TMPDIR"] = str(self.make("tmp"))
        kept["NODE_DISABLE_COMPILE_CACHE"] = "1"  # would be written while the directory is removed
        return kept

    def mark_welcomed(self) -> Path:
        """Writes the file that hides the one-time hint for new users."""
        note = self.make("state/nvim/mcp-tools") / "welcomed.json"
        note.write_text('{"at": 0}\n')
        note.chmod(0o600)
        return note

    def make(self, name: str) -> Path:
        """Creates one of the directories."""
        directory = self.path
        for part in name.split("/"):
            directory /= part
            directory.mkdir(mode=0o700, exist_ok=True)
        return directory


FIRST_PORT, PORTS = 20_000, 12_000
"""As in lua/mcp-tools/instances/identity.lua."""


def wanted_port(root: Path) -> int:
    """The port that lua/mcp-tools/instances/identity.lua computes."""
    return FIRST_PORT + int(hashlib.sha256(str(root).encode()).hexdigest()[:8], 16) % PORTS


@contextlib.contextmanager
def new_home() -> Iterator[Home]:
    """Empty directories for one editor, with a short path: that of a unix socket has at most 108 bytes."""
    while True:
        directory = tempfile.TemporaryDirectory(prefix="mcpt-")
        port = wanted_port(Path(directory.name).resolve() / "cwd")
        if _is_of_this_worker(port) and _is_free(port) and _is_free(port + 1):
            break
        directory.cleanup()
    with directory as path:
        yield Home(Path(path))


def _is_of_this_worker(port: int) -> bool:
    """Each worker of a run has its own ports, so that none is taken between check and start."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return (port - FIRST_PORT) * workers // PORTS == worker


def _is_free(port: int) -> bool:
    """Whether the port has no listener."""
    with sockets.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


class Nvim:
    """A running Neovim and a connection to it."""

    def __init__(
        self, process: asyncio.subprocess.Process, rpc: Rpc, socket: Path, home: Home, output: Path
    ) -> None:
        self.output = output
        self.process = process
        self.rpc = rpc
        self.socket = socket
        self.home = home

    @property
    def notifications(self) -> asyncio.Queue[tuple[str, list[Any]]]:
        """The notifications sent by `rpcnotify`."""
        return self.rpc.notifications

    async def lua(self, code: str, *args: Any, timeout: int = 10_000) -> Any:
        """The result of Lua code with `args` as `...`; `timeout` in ms."""
        return await self.request("nvim_exec_lua", code, list(args), timeout=timeout)

    async def request(self, method: str, *args: Any, timeout: int = 10_000) -> Any:
        """The result of an API function; `timeout` in ms."""
        try:
            return await self.rpc.request(method, *args, timeout=timeout)
        except GoneError as error:
            raise GoneError(f"{error}: {await self.how_it_ended()}") from None

    async def how_it_ended(self) -> str:
        """The exit code (negative: signal) and the end of the output."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), GONE_TIMEOUT / 1000)
        output = self.output.read_text(errors="replace")[-2000:]
        return f"exit code {self.process.returncode}; output: {output!r}"

    async def wait_for(self, code: str, *args: Any, timeout: int = 5_000) -> Any:
        """Polls Lua code until its result is true, and returns that; `timeout` in ms."""
        try:
            return await eventually(lambda: self.lua(code, *args), timeout / 1000)
        except TimeoutError:
            raise AssertionError(f"not within {timeout} ms: {code}") from None

    async def call_tool(self, name: str, /, **arguments: Any) -> Any:
        """The result or error of a tool called from Lua; `Reported` has the progress messages."""
        await self.lua(CALL, name, arguments)
        return (await self.wait_for("return Called"))[0]

    async def attach_ui(self, width: int = 80, height: int = 24) -> None:
        """Attaches a UI, which triggers UIEnter."""
        await self.request("nvim_ui_attach", width, height, {"rgb": True, "ext_linegrid": True})

    async def stop(self) -> None:
        """Quits; a Neovim that does not is killed, and the test fails."""
        if self.process.returncode is None:
            with contextlib.suppress(RpcError, TimeoutError):
                await self.request("nvim_command", "qall!", timeout=2_000)
        self.rpc.close()
        try:
            async with asyncio.timeout(STOP_TIMEOUT / 1000):
                await self.process.wait()
        except TimeoutError:
            await self.kill()
            raise AssertionError("Neovim did not quit") from None

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        self.rpc.close()


Spawn = Callable[..., Awaitable[Nvim]]
"""The fixture `spawn_nvim`."""


async def start(
    program: Path,
    home: Home,
    *,
    init_lua: str = "",
    args: Sequence[str] = (),
    cwd: Path | None = None,
    env: Mapping[str, str | None] | None = None,
) -> Nvim:
    """Starts Neovim with this checkout on its runtimepath.

    Args:
        program: the Neovim to run.
        home: its directories.
        init_lua: init.lua, after the runtimepath was set.
        args: more arguments, such as a file to open.
        cwd: working directory; default: an empty one in `home`.
        env: variables to set, or with None to remove.
    """
    number = sum(1 for _ in home.path.glob("init-*.lua"))
    init = home.path / f"init-{number}.lua"
    init.write_text(f"vim.opt.runtimepath:prepend([[{ROOT}]])\n{PROBE}\n{init_lua}\n")
    socket = home.path / f"nvim-{number}.sock"
    output = home.path / f"nvim-{number}.out"
    merged = home.environment() | {"NVIM_LOG_FILE": str(home.path / "nvim.log")} | dict(env or {})
    environment = {name: value for name, value in merged.items() if value is not None}
    command = (program, "--headless", "-u", init, *["-i", "NONE", "-n", "--listen"], socket, *args)
    with output.open("wb") as stream:
        process = await processes.start(
            *command, stdout=stream, stderr=stream, cwd=cwd or home.make("cwd"), env=environment
        )
    try:
        return Nvim(process, await connect(process, socket), socket, home, output)
    except (RpcError, OSError, TimeoutError) as error:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 1)
        how = f"exit code {process.returncode}" if process.returncode is not None else repr(error)
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise AssertionError(f"Neovim did not start: {how}\n{output.read_text()}") from error


async def connect(process: asyncio.subprocess.Process, socket: Path) -> Rpc:
    """Connects once Neovim listens, and waits until it has run init.lua."""
    async with asyncio.timeout(START_TIMEOUT / 1000):
        while True:
            if process.returncode is not None:
                raise RpcError("it exited")
            try:
                rpc = await Rpc.connect(socket)
                break
            except OSError:
                await asyncio.sleep(0.005)
    await eventually(lambda: rpc.lua("return vim.v.vim_did_enter == 1"), START_TIMEOUT / 1000)
    return rpc


@contextlib.asynccontextmanager
async def running(program: Path, home: Home, **options: Any) -> AsyncIterator[Nvim]:
    """`start`, with `stop` at the end of the block."""
    nvim = await start(program, home, **options)
    try:
        yield nvim
    finally:
        await nvim.stop()
