"""Zed: `settings.json`, of the user or a project."""

from __future__ import annotations

import sys
from typing import Any

from .client import Client, Server, Stdio

_USER = "~/.config/zed" if sys.platform == "darwin" else "${XDG_CONFIG_HOME:-~/.config}/zed"


def _entry(server: Server, client: Client) -> dict[str, Any]:
    if isinstance(server, Stdio):
        return {"command": server.command, "args": list(server.args), "env": {}}
    return {"url": server.url, "headers": server.headers(client.reference)}


CLIENT = Client(
    title="Zed",
    files={"user": f"{_USER}/settings.json", "project": ".zed/settings.json"},
    skills={"user": "~/.agents/skills", "project": ".agents/skills"},
    format="jsonc",
    path=("context_servers",),
    entry=_entry,
    programs=("zed", "zeditor"),
    folders=(_USER,),
    advice="The agent panel's settings show whether it runs.",
)
