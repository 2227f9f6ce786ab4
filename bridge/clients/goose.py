"""Goose: `config.yaml` of the user."""

from __future__ import annotations

from typing import Any

from .client import NAME, Client, Server, Stdio


def _entry(server: Server, client: Client) -> dict[str, Any]:
    known = {"name": NAME, "enabled": True, "timeout": 300}
    if isinstance(server, Stdio):
        return {**known, "type": "stdio", "cmd": server.command, "args": list(server.args), "envs": {}}
    return {
        **known,
        "type": "streamable_http",
        "uri": server.url,
        "headers": server.headers(client.reference),
    }


CLIENT = Client(
    title="Goose",
    files={"user": "~/.config/goose/config.yaml"},
    skills={"user": "~/.config/goose/skills", "project": ".goose/skills"},
    format="yaml",
    path=("extensions",),
    entry=_entry,
    programs=("goose",),
    folders=("~/.config/goose",),
    moved=("~/.config", "XDG_CONFIG_HOME"),
    advice="`goose configure` shows it among the extensions.",
)
