"""Continue: a file of its own among `.continue/mcpServers/`, of the user or a project."""

from __future__ import annotations

from typing import Any

from .client import NAME, Client, Server, Stdio


def _entry(server: Server, client: Client) -> dict[str, Any]:
    if isinstance(server, Stdio):
        return {"type": "stdio", "command": server.command, "args": list(server.args)}
    headers = server.headers(client.reference)
    return {"type": "streamable-http", "url": server.url, "requestOptions": {"headers": headers}}


_FILE = f".continue/mcpServers/{NAME}.json"

CLIENT = Client(
    title="Continue",
    files={"user": f"~/{_FILE}", "project": _FILE},
    skills={"user": "~/.continue/skills", "project": ".continue/skills"},
    format="jsonc",
    path=("mcpServers",),
    entry=_entry,
    programs=("cn",),
    folders=("~/.continue",),
    reference="${{ secrets.%s }}",
    advice="Tools are used in agent mode only.",
)
