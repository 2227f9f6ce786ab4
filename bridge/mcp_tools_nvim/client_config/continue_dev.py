"""Continue: a file of its own among `.continue/mcpServers/`, of the user or a project."""

from __future__ import annotations

from typing import Any

from .client import NAME, Client, Server, Stdio


def _entry(server: Server, client: Client) -> dict[str, Any]:
    if isinstance(server, Stdio):
        return {"type": "stdio", "command": server.command, "args": list(server.args)}
    return {"type": "http", "url": server.url, "headers": server.headers(client.reference)}


_FILE = f"mcpServers/{NAME}.json"
_HOME = "${CONTINUE_GLOBAL_DIR:-~/.continue}"

CLIENT = Client(
    title="Continue",
    files={"user": f"{_HOME}/{_FILE}", "project": f".continue/{_FILE}"},
    skills={"user": f"{_HOME}/skills", "project": ".continue/skills"},
    format="jsonc",
    path=("mcpServers",),
    entry=_entry,
    programs=("cn",),
    folders=(_HOME,),
    advice="Tools are used in agent mode only. Its command `cn` reads config.yaml alone.",
)
