"""Crush: `crush.json`, of the user or a project."""

from __future__ import annotations

from typing import Any

from .client import Client, Server, Stdio


def _entry(server: Server, client: Client) -> dict[str, Any]:
    if isinstance(server, Stdio):
        return {"type": "stdio", "command": server.command, "args": list(server.args)}
    return {"type": "http", "url": server.url, "headers": server.headers(client.reference)}


CLIENT = Client(
    title="Crush",
    files={"user": "${XDG_CONFIG_HOME:-~/.config}/crush/crush.json", "project": "crush.json"},
    skills={"user": "${XDG_CONFIG_HOME:-~/.config}/crush/skills", "project": ".crush/skills"},
    format="jsonc",
    path=("mcp",),
    entry=_entry,
    programs=("crush",),
    folders=("${XDG_CONFIG_HOME:-~/.config}/crush",),
    reference="$%s",
)
