"""A client over `mcp-tools stdio` while the editor and the bridge are restarted and killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import processes
from .bridge import ready
from .nvim import ROOT, Nvim, Spawn
from .shared import memory_of

PROGRAM = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim"), "stdio"]
INIT = f"""
_G.mcp_tools = require('mcp-tools')
require('mcp-tools.config').change({{ tools = false }}) -- only those of the test
mcp_tools.setup({{ bridge = {{ python = [[{sys.executable}]] }} }})
mcp_tools.register({{ name = 'whose', description = 'd', needs_approval = false, execute = function(ctx)
  ctx(('%d'):format(vim.uv.os_getpid()))
end }})
mcp_tools.register({{ name = 'slow', description = 'd', needs_approval = false, run = function(ctx)
  ctx:await(function(done) vim.defer_fn(done, 1000) end)
  return 'at last'
end }})
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "m", "version": "1"}}
ANSWER_SECONDS = 60.0
"""Time without an answer after which a call is lost."""


@dataclass
class Tally:
    """Counts of the outcomes of calls.

    Attributes:
        right: valid results of the running editor.
        failed: errors by message, without numbers and paths.
        lost: calls without an answer.
        twice: calls with more than one answer.
        wrong: invalid results.
        turns: actions on editor and bridge.
        memory: MB of the command, the bridge and the editor after each turn.
    """

    right: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    twice: int = 0
    wrong: list[str] = field(default_factory=list)
    turns: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, ...]] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return self.right + sum(self.failed.values()) + self.lost + len(self.wrong)


class Client:
    """JSON-RPC over the command's stdin and stdout."""

    def __init__(self, process: asyncio.subprocess.Process, tally: Tally) -> None:
        self.process = process
        self.tally = tally
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ids = 0

    def send(self, **message: Any) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def read(self) -> None:
        """Reads answers until the command ends."""
        assert self.process.stdout
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if "id" not in message or "method" in message:
                continue
            waiting = self._waiting.pop(message["id"], None)
            if waiting is None:
                self.tally.twice += 1
            elif not waiting.done():
                waiting.set_result(message)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a request, or None."""
        self._ids += 1
        waiting = self._waiting[self._ids] = asyncio.get_running_loop().create_future()
        self.send(id=self._ids, method=method, params=params)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await waiting
        except TimeoutError:
            return None

    async def call(self, tool: str, right: Callable[[str], bool]) -> None:
        answer = await self.ask("tools/call", {"name": f"nvim_{tool}", "arguments": {}})
        if answer is None:
            self.tally.lost += 1
        elif "error" in answer:
            self.tally.failed[plain(answer["error"]["message"])] += 1
        else:
            text = answer["result"]["content"][0]["text"]
            if answer["result"].get("isError"):
                self.tally.failed[plain(text)] += 1
            elif right(text):
                self.tally.right += 1
            else:
                self.tally.wrong.append(text)


@dataclass
class Stage:
    """The running editor, and actions on it."""

    spawn: Spawn
    nvim: Nvim
    pids: set[int] = field(default_factory=set)

    async def begin(self, spawned: Nvim) -> None:
        """Starts the bridge of an editor."""
        self.nvim = spawned
        self.pids.add(spawned.process.pid)
        await spawned.lua("mcp_tools.start()")
        await ready(spawned)

    async def bridge(self) -> int:
        return int(await self.nvim.lua("return require('mcp-tools').status().pid"))

    async def restart(self) -> None:
        """Restarts the bridge by the command."""
        await self.nvim.request("nvim_command", "McpTools restart")
        await self.nvim.wait_for("return require('mcp-tools').status().state ~= 'ready'")
        await ready(self.nvim)

    async def reopen(self) -> None:
        """Quits the editor and starts another one."""
        await self.nvim.stop()
        await self.begin(await self.spawn(init_lua=INIT))

    async def kill_bridge(self) -> None:
        """Kills the bridge; the editor starts another one."""
        old = await self.bridge()
        os.kill(old, signal.SIGKILL)
        status = "local s = require('mcp-tools').status() return s.state == 'ready' and s.pid ~= ..."
        await self.nvim.wait_for(status, old, timeout=30_000)

    async def kill_editor(self) -> None:
        """Kills the editor and starts another one."""
        await self.nvim.kill()
        await self.begin(await self.spawn(init_lua=INIT))


TURNS: tuple[Callable[[Stage], Awaitable[None]], ...] = (
    Stage.restart,
    Stage.reopen,
    Stage.kill_bridge,
    Stage.kill_editor,
)


def plain(text: str) -> str:
    """An error message without numbers and paths."""
    return re.sub(r"/\S+", "PATH", re.sub(r"\d+", "N", text))


@contextlib.asynccontextmanager
async def relayed(directory: Path, env: dict[str, str], tally: Tally) -> AsyncIterator[Client]:
    """A client in a directory, whose command must end with its stdin."""
    pipe = asyncio.subprocess.PIPE
    process = await processes.start(*PROGRAM, cwd=directory, env=env, stdin=pipe, stdout=pipe)
    client = Client(process, tally)
    reading = asyncio.create_task(client.read())
    try:
        assert await client.ask("initialize", HELLO)
        client.send(method="notifications/initialized")
        yield client
        process.stdin.close()
        async with asyncio.timeout(10):
            assert await process.wait() == 0
        await reading
    finally:
        reading.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def run(
    spawn: Spawn,
    seconds: float,
    *,
    every: float,
    pause: float,
    turns: int = len(TURNS),
    report: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """Sends calls for a while; the last one must succeed.

    Args:
        spawn: starts an editor, like the fixture `spawn_nvim`.
        seconds: minimum duration.
        every: seconds between two turns.
        pause: seconds between two quick calls; a slow call always runs besides them.
        turns: number of `TURNS` in rotation.
        report: called with the tally after each turn.
    """
    tally = Tally()
    first = await spawn(init_lua=INIT)
    stage = Stage(spawn, first)
    await stage.begin(first)
    home = first.home
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NVIM", "MCP_"))}
    async with relayed(home.make("cwd"), kept | home.environment(), tally) as client:
        stopped = asyncio.Event()

        async def quick() -> None:
            while not stopped.is_set():
                await client.call("whose", lambda text: int(text) in stage.pids)
                await asyncio.sleep(pause)

        async def slow() -> None:
            while not stopped.is_set():
                await client.call("slow", lambda text: text == "at last")
                await asyncio.sleep(pause)

        calling = [asyncio.create_task(quick()), asyncio.create_task(slow())]
        deadline, turn = time.monotonic() + seconds, 0
        try:
            while turn < turns or time.monotonic() < deadline:
                await asyncio.sleep(every)
                act = TURNS[turn % turns]
                await act(stage)
                turn += 1
                tally.turns[act.__name__] += 1
                pids = (client.process.pid, await stage.bridge(), stage.nvim.process.pid)
                tally.memory.append(tuple(memory_of(pid) / 1000 for pid in pids))
                report(tally)
            await asyncio.sleep(every)
        finally:
            stopped.set()
        await asyncio.gather(*calling)
        before = tally.right
        await client.call("whose", lambda text: int(text) == stage.nvim.process.pid)
        assert tally.right == before + 1, "the last call failed"
    return tally
