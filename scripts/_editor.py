"""A Neovim in directories of its own, for programs that show something."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any


class Unexpected(Exception):
    """Something did not do what it should; the text says what came instead."""


COLUMNS, ROWS = 80, 24
_SCREEN = """lua
vim.o.columns, vim.o.lines, vim.o.cmdheight, vim.o.laststatus = {columns}, {lines}, 1, 0
job = vim.fn.termopen(vim.json.decode(vim.env.MCP_TOOLS_COMMAND))
function screen() return vim.api.nvim_buf_get_lines(0, -{rows} - 1, -1, false) end
"""


class Editor:
    """A Neovim with the plugin, asked through its own `--remote-expr`.

    Args:
        program: the Neovim.
        home: an empty directory for all files of this editor.
        init: the configuration.
        variables: of its environment, besides our own.
        screen: "none": it is headless; "own": it uses this terminal; "drawn": it runs in the `:terminal` of a
            headless Neovim, for `lines` and `type`.
    """

    def __init__(
        self, program: str, home: Path, init: Path, variables: Mapping[str, str], screen: str = "none"
    ) -> None:
        self.program, self.socket, self._outer = program, str(home / "nvim.sock"), str(home / "screen.sock")
        env = {k: v for k, v in os.environ.items() if k not in ("VIM", "VIMRUNTIME", "NVIM")}
        for kind in ("CONFIG", "DATA", "STATE", "CACHE", "RUNTIME"):
            directory = home / kind.lower()
            directory.mkdir(mode=0o700)
            env[f"XDG_{kind}_{'DIR' if kind == 'RUNTIME' else 'HOME'}"] = str(directory)
        self.env = env = env | dict(variables)
        plain = [program, "-i", "NONE", "-n", "-u"]
        command = [*plain, str(init), "--listen", self.socket]
        # A project of its own: what a tool declares does not count when the project has brought it.
        project = home / "project"
        project.mkdir()
        quiet = subprocess.DEVNULL
        if screen == "own":
            self.process = subprocess.Popen(command, env=env, cwd=project)
            return
        if screen == "drawn":
            env["MCP_TOOLS_COMMAND"] = json.dumps(command)
            lua = _SCREEN.format(columns=COLUMNS, lines=ROWS + 1, rows=ROWS).replace("\n", " ")
            command = [*plain, "NONE", "--listen", self._outer, "-c", lua]
        command.insert(1, "--headless")
        self.process = subprocess.Popen(command, env=env, cwd=project, stdin=quiet, stderr=quiet)

    def lines(self) -> list[str]:
        """Returns the lines of the drawn screen."""
        text = self.remote("--remote-expr", "luaeval('vim.json.encode(screen())')", server=self._outer)
        lines: list[str] = json.loads(text)
        return lines

    def type(self, keys: str) -> None:
        """Types into the drawn screen."""
        self.remote("--remote-expr", f"chansend(luaeval('job'), {json.dumps(keys)})", server=self._outer)

    def ask(self, lua: str) -> Any:
        """The value of a Lua expression."""
        quoted = lua.replace("'", "''")
        answer = self.remote("--remote-expr", f"luaeval('vim.json.encode({quoted})')")
        try:
            return json.loads(answer)
        except ValueError:
            raise Unexpected(f"{lua}: {answer.strip() or 'no answer'}") from None

    def remote(self, *arguments: str, server: str = "") -> str:
        """Lets another Neovim talk to this one; without a terminal, to which it would write."""
        done = subprocess.run(
            [self.program, "--headless", "--server", server or self.socket, *arguments],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
        )
        return done.stdout or done.stderr

    def ask_until(self, lua: str, seconds: float = 60.0) -> Any:
        """The value of an expression, asked again until there is one."""
        why, end = "no value", time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if os.path.exists(self.socket) and (value := self.ask(lua)):
                    return value
            except Unexpected as error:  # it listens before it has read demo.lua
                why = str(error)
            time.sleep(0.2)  # every question starts a Neovim
        raise Unexpected(f"{lua}: {why} within {seconds:.0f} s")

    def close(self) -> None:
        """End it and wait for it."""
        self.process.terminate()
        self.process.wait(5)


@contextlib.asynccontextmanager
async def connected(endpoint: Mapping[str, Any], name: str) -> AsyncIterator[Any]:
    """Connects an MCP client with a name to a bridge, in a session."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import Implementation

    headers = {"Authorization": f"Bearer {endpoint['token']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(
            streamable_http_client(endpoint["url"], http_client=http),
            mode="legacy",
            client_info=Implementation(name=name, version="1"),
        ) as client,
    ):
        yield client
