"""Copilot CLI: `mcp-config.json` of the user, or a project's `.github/mcp.json`."""

from __future__ import annotations

from typing import Any

from .client import Client, Server, Stdio


def _entry(server: Server, client: Client) -> dict[str, Any]:
    known = {"tools": ["*"]}
    if isinstance(server, Stdio):
        return {"type": "local", "command": server.command, "args": list(server.args), **known}
    return {"type": "http", "url": server.url, "headers": server.headers(client.reference), **known}


CLIENT = Client(
    title="Copilot CLI",
    files={"user": "${COPILOT_HOME:-~/.copilot}/mcp-config.json", "project": ".github/mcp.json"},
    skills={"user": "${COPILOT_HOME:-~/.copilot}/skills", "project": ".github/skills"},
    format="jsonc",
    path=("mcpServers",),
    entry=_entry,
    programs=("copilot",),
    folders=("${COPILOT_HOME:-~/.copilot}",),
    advice="`copilot mcp list` shows it.",
)
