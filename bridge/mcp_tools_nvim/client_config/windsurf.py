"""Windsurf: `mcp_config.json` of the user."""

from __future__ import annotations

from typing import Any

from .client import Client, Server, Stdio


def _entry(server: Server, client: Client) -> dict[str, Any]:
    if isinstance(server, Stdio):
        return {"command": server.command, "args": list(server.args)}
    return {"serverUrl": server.url, "headers": server.headers(client.reference)}


CLIENT = Client(
    title="Windsurf",
    files={"user": "~/.codeium/windsurf/mcp_config.json"},
    skills={"user": "~/.codeium/windsurf/skills", "project": ".windsurf/skills"},
    format="jsonc",
    path=("mcpServers",),
    entry=_entry,
    programs=("windsurf",),
    folders=("~/.codeium/windsurf",),
    reference="${env:%s}",
    advice="Reload the servers in Cascade's MCP panel.",
)
