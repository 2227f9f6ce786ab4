"""Servers that tests mount."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from .bridge import Bridge

SERVERS = Path(__file__).with_name("upstreams")
PYTHON = str(SERVERS / "python_server.py")
RAW = str(SERVERS / "raw_server.py")

STATUS = """
local name, state = ...
for _, each in ipairs(mcp_tools.status().mounts or {}) do
  if each.name == name and (state == nil or each.state == state) then
    return each
  end
end
"""


class Journal:
    """The journal that a server writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> list[Any]:
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def of(self, what: str) -> list[Any]:
        """The entries of one kind."""
        return [entry[1:] for entry in self.entries() if entry[0] == what]


async def status(bridge: Bridge, name: str, state: str | None = None, timeout: int = 20_000) -> Any:
    """The status of a mount, once it is in a state."""
    return await bridge.nvim.wait_for(STATUS, name, state, timeout=timeout)


async def mount(bridge: Bridge, name: str, spec: dict[str, Any], state: str | None = "ready") -> Any:
    """Mounts a server and waits for a state."""
    await bridge.nvim.lua("mcp_tools.mount(...)", name, spec)
    return await status(bridge, name, state)


async def unmount(bridge: Bridge, name: str) -> None:
    """Unmounts a server and waits until its tools are removed."""
    await bridge.nvim.lua("mcp_tools.unmount(...)", name)
    gone = """
    for tool in pairs(mcp_tools.list_tools()) do
      if vim.startswith(tool, (...) .. '__') then
        return false
      end
    end
    return true
    """
    await bridge.nvim.wait_for(gone, name)


def python(journal: Path, **more: Any) -> dict[str, Any]:
    """The spec of the Python server."""
    return {"command": [sys.executable, PYTHON, str(journal)], **more}


def raw(how: str, **more: Any) -> dict[str, Any]:
    """The spec of the server without an SDK."""
    return {"command": sys.executable, "args": [RAW, how], **more}


@contextlib.asynccontextmanager
async def mounted(
    bridge: Bridge, name: str, spec: dict[str, Any], state: str = "ready"
) -> AsyncIterator[Any]:
    """Mounts a server for the duration of the block."""
    try:
        yield await mount(bridge, name, spec, state)
    finally:
        await unmount(bridge, name)


def alive(pid: int) -> bool:
    """Whether a process runs and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def group(pid: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if name.isdigit() and os.getpgid(int(name)) == pid and alive(int(name)):
                found.append(int(name))
    return found
