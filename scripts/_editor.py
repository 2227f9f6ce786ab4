"""A headless Neovim in folders of its own, for programs that show something."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any


class Unexpected(Exception):
    """Something did not do what it should; the text says what came instead."""


class Editor:
    """A headless Neovim with the plugin, asked through its own `--remote-expr`.

    Args:
        program: the Neovim.
        home: an empty folder; everything of this editor lies in it.
        init: the configuration.
        variables: of its environment, besides our own.
    """

    def __init__(self, program: str, home: Path, init: Path, variables: Mapping[str, str]) -> None:
        self.program, self.socket = program, str(home / "nvim.sock")
        env = {k: v for k, v in os.environ.items() if k not in ("VIM", "VIMRUNTIME", "NVIM")}
        for kind in ("CONFIG", "DATA", "STATE", "CACHE", "RUNTIME"):
            folder = home / kind.lower()
            folder.mkdir(mode=0o700)
            env[f"XDG_{kind}_{'DIR' if kind == 'RUNTIME' else 'HOME'}"] = str(folder)
        self.env = env = env | dict(variables)
        command = [program, "--headless", "-i", "NONE", "-n", "-u", str(init), "--listen", self.socket]
        # A project of its own: what a tool says of itself does not count when the project has brought it.
        project = home / "project"
        project.mkdir()
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, env=env, cwd=project, stdin=quiet, stderr=quiet)

    def ask(self, lua: str) -> Any:
        """The value of a Lua expression."""
        answer = self.remote("--remote-expr", f"luaeval('vim.json.encode({lua})')")
        try:
            return json.loads(answer)
        except ValueError:
            raise Unexpected(f"{lua}: {answer.strip() or 'no answer'}") from None

    def remote(self, *arguments: str) -> str:
        """Let another Neovim talk to this one; without a terminal, to which it would write."""
        done = subprocess.run(
            [self.program, "--headless", "--server", self.socket, *arguments],
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

    def quit(self, port: int) -> float:
        """Quit as a person would; how many seconds later nobody listens on the bridge's port any more."""
        self.remote("--remote-send", ":qall!<CR>")
        self.process.wait(5)
        begun = time.monotonic()
        while time.monotonic() < begun + 3:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                return time.monotonic() - begun
            time.sleep(0.005)
        raise Unexpected(f"the bridge still listens on port {port}")


@contextlib.asynccontextmanager
async def connected(endpoint: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Connects an MCP client to a bridge, in a session."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {endpoint['token']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(endpoint["url"], http_client=http), mode="legacy") as client,
    ):
        yield client
