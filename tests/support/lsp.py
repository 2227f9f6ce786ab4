"""A client of a language server, and an editor with one for Python."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from . import processes
from .nvim import ROOT, Home

PROGRAM = [sys.executable, str(ROOT / "bridge" / "mcp_tools_nvim"), "lsp"]
PYRIGHT = Path(sys.executable).with_name("basedpyright-langserver")
Json = dict[str, Any]

ATTACH = f"""
vim.cmd('filetype on')
vim.api.nvim_create_autocmd('FileType', {{
  pattern = 'python',
  callback = function(args)
    vim.lsp.start({{ name = 'basedpyright', cmd = {{ [[{PYRIGHT}]], '--stdio' }}, root_dir = vim.uv.cwd() }},
      {{ bufnr = args.buf }})
  end,
}})
"""
"""Lua of an editor that attaches a language server to every Python file."""

STOP = "for _, client in ipairs(vim.lsp.get_clients()) do client:stop(true) end"


class FailedError(Exception):
    """The server answered a request with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code = int(error["code"])


class Client:
    """A client of one server; `notifications` are those that it received."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.notifications: list[Json] = []
        self._count = 0
        self._open: dict[Any, asyncio.Future[Any]] = {}
        self._news = asyncio.Condition()
        self.reading = asyncio.create_task(self._read())

    def send(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def notify(self, method: str, **params: Any) -> None:
        self.send({"method": method, "params": params})

    def begin(self, method: str, **params: Any) -> tuple[int, asyncio.Future[Any]]:
        """Sends a request; returns its id and the future of its answer."""
        self._count += 1
        answer = self._open[self._count] = asyncio.get_running_loop().create_future()
        self.send({"id": self._count, "method": method, "params": params})
        return self._count, answer

    async def ask(self, method: str, seconds: float = 40, **params: Any) -> Any:
        """Returns the result of a request.

        Raises:
            FailedError: the server answered with an error.
        """
        async with asyncio.timeout(seconds):
            return await self.begin(method, **params)[1]

    async def initialize(self, name: str | None = "tester") -> Json:
        more = {} if name is None else {"clientInfo": {"name": name, "version": "1"}}
        result: Json = await self.ask("initialize", processId=None, rootUri=None, capabilities={}, **more)
        self.notify("initialized")
        return result

    def open(self, path: Path, version: int = 1) -> Json:
        """Opens a document with its text on disk; returns the parameter that identifies it."""
        identifier = {"uri": path.as_uri()}
        document = identifier | {"languageId": "python", "version": version, "text": path.read_text()}
        self.notify("textDocument/didOpen", textDocument=document)
        return {"textDocument": identifier}

    async def published(self, path: Path, version: int, seconds: float = 40) -> list[Json]:
        """Returns the diagnostics that the server has published for a version of a document."""

        def find() -> list[list[Json]]:
            return [
                each["params"]["diagnostics"]
                for each in self.notifications
                if each["method"] == "textDocument/publishDiagnostics"
                and (each["params"]["uri"], each["params"]["version"]) == (path.as_uri(), version)
            ]

        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(find)
        return find()[-1]

    async def _read(self) -> None:
        stream = self.process.stdout
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = await stream.readuntil(b"\r\n\r\n")
                body = await stream.readexactly(int(head.partition(b":")[2]))
                await self._handle(json.loads(body))

    async def _handle(self, message: Json) -> None:
        if "method" in message:
            self.notifications.append(message)
            async with self._news:
                self._news.notify_all()
            return
        answer = self._open.pop(message["id"])
        if "error" in message:
            answer.set_exception(FailedError(message["error"]))
        else:
            answer.set_result(message["result"])


@contextlib.asynccontextmanager
async def running(home: Home, cwd: Path, *words: str, **env: str) -> AsyncIterator[Client]:
    """A client of `mcp-tools lsp`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NVIM", "MCP_"))}
    pipe = asyncio.subprocess.PIPE
    process = await processes.start(
        *PROGRAM, *words, cwd=cwd, env=kept | home.environment() | env, stdin=pipe, stdout=pipe, limit=2**26
    )
    client = Client(process)
    try:
        yield client
    finally:
        if process.returncode is None:
            process.stdin.close()
        async with asyncio.timeout(10):
            await process.wait()
            await client.reading


def position(line: int, character: int) -> Json:
    return {"position": {"line": line, "character": character}}
