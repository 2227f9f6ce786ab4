"""Goose: `config.yaml` of the user."""

from __future__ import annotations

from typing import Any

from .client import NAME, Client, Server, Stdio

TEXT = "The tools of the running Neovim"
"""One without a description is not loaded."""


def _entry(server: Server, client: Client) -> dict[str, Any]:
    known = {"name": NAME, "description": TEXT, "enabled": True, "timeout": 300}
    if isinstance(server, Stdio):
        return {**known, "type": "stdio", "cmd": server.command, "args": list(server.args), "envs": {}}
    headers = server.headers(client.reference)
    # It knows those variables alone that it is told of, of its environment or of the person's keyring.
    variables = {"env_keys": [server.variable]} if server.variable is not None else {}
    return {**known, "type": "streamable_http", "uri": server.url, "headers": headers, **variables}


CLIENT = Client(
    title="Goose",
    files={"user": "${XDG_CONFIG_HOME:-~/.config}/goose/config.yaml"},
    skills={"user": "${XDG_CONFIG_HOME:-~/.config}/goose/skills", "project": ".goose/skills"},
    format="yaml",
    path=("extensions",),
    entry=_entry,
    programs=("goose",),
    folders=("${XDG_CONFIG_HOME:-~/.config}/goose",),
    reference="${%s}",
    advice="`goose configure` shows it among the extensions.",
)
