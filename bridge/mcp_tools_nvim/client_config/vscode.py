"""VS Code: `.vscode/mcp.json` of a project, or the user's `mcp.json`."""

from __future__ import annotations

import sys
from typing import Any

from .client import Client, Server, Stdio

_USER = "${XDG_CONFIG_HOME:-~/.config}/Code/User"
if sys.platform == "darwin":
    _USER = "~/Library/Application Support/Code/User"


def _entry(server: Server, client: Client) -> dict[str, Any]:
    if isinstance(server, Stdio):
        return {"type": "stdio", "command": server.command, "args": list(server.args)}
    return {"type": "http", "url": server.url, "headers": server.headers(client.reference)}


CLIENT = Client(
    title="VS Code",
    files={"user": f"{_USER}/mcp.json", "project": ".vscode/mcp.json"},
    skills={"user": "~/.copilot/skills", "project": ".github/skills"},
    format="jsonc",
    path=("servers",),
    entry=_entry,
    programs=("code",),
    folders=(_USER,),
    reference="${env:%s}",
    advice="It asks once whether the server is trusted; `MCP: List Servers` starts it.",
)
