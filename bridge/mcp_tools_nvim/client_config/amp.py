"""Amp: `settings.json`, of the user or a project."""

from __future__ import annotations

from typing import Any

from .client import Client, Server, Stdio


def _entry(server: Server, client: Client) -> dict[str, Any]:
    if isinstance(server, Stdio):
        return {"command": server.command, "args": list(server.args)}
    return {"url": server.url, "headers": server.headers(client.reference)}


CLIENT = Client(
    title="Amp",
    files={"user": "${XDG_CONFIG_HOME:-~/.config}/amp/settings.json", "project": ".amp/settings.json"},
    skills={"user": "~/.config/agents/skills", "project": ".agents/skills"},
    format="jsonc",
    path=("amp.mcpServers",),
    entry=_entry,
    programs=("amp",),
    folders=("${XDG_CONFIG_HOME:-~/.config}/amp",),
    reference="${%s}",
    advice="`amp mcp list` shows it.",
)
