"""The server that the relay provides while no Neovim can be reached: one tool, which reports why."""

from __future__ import annotations

from typing import Any

from .. import __version__

STATUS_TOOL = "nvim_connection_status"

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol versions that the bridge negotiates; the last one for a client that asks for another."""

STATELESS_VERSION = "2026-07-28"
"""Version of the era without `initialize`."""

CAPABILITIES: dict[str, Any] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}
"""Capabilities of the bridge, since a client that starts without Neovim keeps them when one appears."""

ADVICE = "ask the user to restart this agent or to start a new conversation"
"""What to do if the agent ignores notifications of changed lists, as Codex does."""

INSTRUCTIONS = (
    "Tools of the user's Neovim. No Neovim could be reached yet. If its tools are not listed once one is"
    f" connected, {ADVICE}. {STATUS_TOOL} reports why there is none."
)

_TOOL = {
    "name": STATUS_TOOL,
    "title": "Neovim connection status",
    "description": (
        "Report whether this server is connected to a running Neovim; if not, why, and what the user can do."
        " Use it when the editor's tools are missing."
    ),
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
_SERVER = {"name": "mcp-tools.nvim", "version": __version__}
_RESULTS: dict[str, dict[str, Any]] = {
    "ping": {},
    "server/discover": {
        "supportedVersions": [STATELESS_VERSION],
        "capabilities": {**CAPABILITIES, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        "instructions": INSTRUCTIONS,
        "_meta": {"io.modelcontextprotocol/serverInfo": _SERVER},
    },
    "tools/list": {"tools": [_TOOL]},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {"prompts": []},
}


def initialize(params: Any) -> dict[str, Any]:
    """Returns the result of `initialize`."""
    version = params.get("protocolVersion") if isinstance(params, dict) else None
    return {
        "protocolVersion": version if version in VERSIONS else VERSIONS[-1],
        "capabilities": CAPABILITIES,
        "serverInfo": _SERVER,
        "instructions": INSTRUCTIONS,
    }


def offline_result(method: Any) -> dict[str, Any] | None:
    """Returns the result of a request that needs no editor; None for any other."""
    return _RESULTS.get(method) if isinstance(method, str) else None


def is_status_call(message: Any) -> bool:
    """Returns whether a message calls the status tool."""
    if not isinstance(message, dict) or message.get("method") != "tools/call":
        return False
    params = message.get("params")
    return isinstance(params, dict) and params.get("name") == STATUS_TOOL


def status(reason: str | None) -> dict[str, Any]:
    """Returns the result of the status tool.

    Args:
        reason: why Neovim cannot be reached; None = it can.
    """
    if reason is None:
        text = f"Neovim is connected. If its tools are not listed, {ADVICE}."
    else:
        text = (
            f"Neovim is not connected: {reason}\nIf its tools are not listed once it is connected, {ADVICE}."
        )
    return {"content": [{"type": "text", "text": text}], "isError": False}
