"""opencode: `opencode.json` of a project, or the user's."""

from __future__ import annotations

from typing import Any

from .client import Client, Server, Stdio


def _entry(server: Server, client: Client) -> dict[str, Any]:
    if isinstance(server, Stdio):
        return {"type": "local", "command": [server.command, *server.args], "enabled": True}
    headers = server.headers(client.reference)
    return {"type": "remote", "url": server.url, "enabled": True, "oauth": False, "headers": headers}


CLIENT = Client(
    title="OpenCode",
    files={"user": "${XDG_CONFIG_HOME:-~/.config}/opencode/opencode.json", "project": "opencode.json"},
    skills={"user": "${XDG_CONFIG_HOME:-~/.config}/opencode/skills", "project": ".opencode/skills"},
    format="jsonc",
    path=("mcp",),
    entry=_entry,
    programs=("opencode",),
    folders=("${XDG_CONFIG_HOME:-~/.config}/opencode",),
    reference="{env:%s}",
    advice="`opencode mcp list` says whether it is connected.",
)
