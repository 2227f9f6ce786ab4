"""Gemini CLI: `settings.json`, of the user or a project."""

from __future__ import annotations

from typing import Any

from .client import Client, Server, Stdio


def entry(server: Server, client: Client) -> dict[str, Any]:
    """Also that of programs that come from it."""
    if isinstance(server, Stdio):
        return {"command": server.command, "args": list(server.args)}
    return {"httpUrl": server.url, "headers": server.headers(client.reference)}


CLIENT = Client(
    title="Gemini CLI",
    files={"user": "${GEMINI_CLI_HOME:-~}/.gemini/settings.json", "project": ".gemini/settings.json"},
    skills={"user": "${GEMINI_CLI_HOME:-~}/.gemini/skills", "project": ".gemini/skills"},
    format="jsonc",
    path=("mcpServers",),
    entry=entry,
    programs=("gemini",),
    folders=("${GEMINI_CLI_HOME:-~}/.gemini",),
    reference="$%s",
    advice="`gemini mcp list` says whether it is connected; the folder has to be trusted.",
)
