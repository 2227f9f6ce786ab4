"""The whole chain for one test: a Neovim with the plugin and, as its child, a real bridge that is ready.

Receives: a Neovim to run, options for `setup()`, Lua to run after it.
Sends: a `Served` with the editor and the endpoint as the plugin's own API tells it.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .nvim import Home, Nvim, running

READY_TIMEOUT = 15_000  # ms; Python and its packages may have to come from a cold disk


@dataclass(frozen=True)
class Served:
    """An editor whose bridge answers."""

    nvim: Nvim
    url: str
    token: str
    port: int

    @property
    def base(self) -> str:
        """The bridge's address without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """What lets a client in."""
        return {"Authorization": f"Bearer {self.token}"}


@contextlib.asynccontextmanager
async def served(
    program: Path,
    home: Home,
    *,
    setup: Mapping[str, Any] | None = None,
    fixture: Path | None = None,
) -> AsyncIterator[Served]:
    """Run the plugin with this checkout's own Python and wait until its bridge is ready.

    Args:
        program: the Neovim to run.
        home: its folders.
        setup: options; `bridge.python` is this Python, autostart is off.
        fixture: a Lua file to run after `setup()`.
    """
    options = dict(setup or {})
    options["bridge"] = {"python": sys.executable, "autostart": False, **options.get("bridge", {})}
    lines = [f"require('mcp-tools').setup(vim.json.decode([==[{json.dumps(options)}]==]))"]
    if fixture:
        lines.append(f"dofile([[{fixture}]])")
    async with running(program, home, init_lua="\n".join(lines)) as nvim:
        await nvim.lua("require('mcp-tools').start()")
        endpoint = await nvim.wait_for(
            """
            local status = require('mcp-tools').status()
            if status.state == 'failed' then
              error(('the bridge did not start: %s'):format(status.last_error))
            end
            return require('mcp-tools').endpoint()
            """,
            timeout=READY_TIMEOUT,
        )
        yield Served(nvim, endpoint["url"], endpoint["token"], endpoint["port"])
