"""Cursor: `mcp.json`, of the user or a project."""

from __future__ import annotations

from typing import Any

from .client import Client, Server, Stdio


def _entry(server: Server, client: Client) -> dict[str, Any]:
    if isinstance(server, Stdio):
        return {"command": server.command, "args": list(server.args)}
    return {"url": server.url, "headers": server.headers(client.reference)}


CLIENT = Client(
    title="Cursor",
    files={"user": "~/.cursor/mcp.json", "project": ".cursor/mcp.json"},
    skills={"user": "~/.cursor/skills", "project": ".cursor/skills"},
    format="jsonc",
    path=("mcpServers",),
    entry=_entry,
    programs=("cursor", "cursor-agent"),
    folders=("~/.cursor",),
    reference="${env:%s}",
    advice="Turn it on under Settings, MCP.",
)
