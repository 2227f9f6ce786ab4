"""Codex: `~/.codex/config.toml`."""

from __future__ import annotations

from typing import Any

from .client import Client, Server, Stdio

_HANDED_DOWN = ["NVIM", "NVIM_APPNAME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"]
"""By these the editor is found; of the environment a program of Codex gets little more than HOME and PATH."""


def _entry(server: Server, client: Client) -> dict[str, Any]:
    if isinstance(server, Stdio):
        return {"command": server.command, "args": list(server.args), "env_vars": _HANDED_DOWN}
    if server.variable is not None:
        return {"url": server.url, "bearer_token_env_var": server.variable}
    return {"url": server.url, "http_headers": server.headers(None)}


CLIENT = Client(
    title="Codex",
    files={"user": "${CODEX_HOME:-~/.codex}/config.toml", "project": ".codex/config.toml"},
    skills={"user": "~/.agents/skills", "project": ".agents/skills"},
    format="toml",
    path=("mcp_servers",),
    entry=_entry,
    programs=("codex",),
    folders=("${CODEX_HOME:-~/.codex}",),
    reference="%s",
    advice='Neovim asks by itself; default_tools_approval_mode = "approve" spares the second question.'
    " A project's file counts once Codex trusts the project.",
)
