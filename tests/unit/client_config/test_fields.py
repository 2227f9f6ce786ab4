"""Entries have only documented fields: a client may reject the whole file for an unknown one.

The clients that tests cannot run; tests/clients/test_connected.py runs the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcp_tools_nvim.client_config import change
from mcp_tools_nvim.client_config.client import NAME, Http, Stdio
from mcp_tools_nvim.client_config.known import CLIENTS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
SECONDS: Schema = {"type": "integer", "minimum": 1}
TEXTS: Schema = {"type": "array", "items": TEXT}
TABLE: Schema = {"type": "object", "additionalProperties": TEXT}
URL: Schema = {"type": "string", "pattern": "^http://127[.]0[.]0[.]1:"}


def fields(required: str, **known: Schema) -> Schema:
    """An object with these fields only; `required` has names separated by spaces."""
    names = required.split()
    return {"type": "object", "properties": known, "required": names, "additionalProperties": False}


def one(*names: str) -> Schema:
    return {"enum": list(names)}


COMMAND: dict[str, Schema] = {"command": TEXT, "args": TEXTS, "env": TABLE}
REMOTE: dict[str, Schema] = {"url": URL, "headers": TABLE}
STDIO, TYPED = COMMAND | {"type": one("stdio")}, REMOTE | {"type": one("http", "sse")}
GOOSE: dict[str, Schema] = {"name": one(NAME), "description": TEXT, "timeout": SECONDS, "envs": TABLE}
GOOSE |= {"enabled": FLAG, "bundled": FLAG, "available_tools": TEXTS, "env_keys": TEXTS}
GOOSE_NEEDS = "type name description enabled "
CRUSH: dict[str, Schema] = {"disabled": FLAG, "timeout": SECONDS, "enabled_tools": TEXTS}
ZED: dict[str, Schema] = {"enabled": FLAG, "timeout": SECONDS}

DOCUMENTED: dict[str, tuple[str, Schema, Schema]] = {
    "amp": ("amp.mcpServers", fields("command", **COMMAND), fields("url", **REMOTE)),
    "codex": (
        "mcp_servers",
        fields("command", **COMMAND, env_vars=TEXTS, cwd=TEXT, startup_timeout_sec=SECONDS),
        fields("url", url=URL, bearer_token_env_var=TEXT, http_headers=TABLE, env_http_headers=TABLE),
    ),
    "continue-dev": ("mcpServers", fields("command", **STDIO), fields("url type", **TYPED)),
    "crush": ("mcp", fields("type command", **STDIO, **CRUSH), fields("type url", **TYPED, **CRUSH)),
    "cursor": ("mcpServers", fields("command", **STDIO, envFile=TEXT), fields("url", **REMOTE)),
    "goose": (
        "extensions",
        fields(GOOSE_NEEDS + "cmd args", **GOOSE, type=one("stdio"), cmd=TEXT, args=TEXTS),
        fields(GOOSE_NEEDS + "uri", **GOOSE, type=one("streamable_http"), uri=URL, headers=TABLE),
    ),
    "vscode": (
        "servers",
        fields("type command", **STDIO, cwd=TEXT, envFile=TEXT),
        fields("type url", **TYPED),
    ),
    "windsurf": (
        "mcpServers",
        fields("command", **COMMAND),
        fields("serverUrl", serverUrl=URL, headers=TABLE),
    ),
    "zed": ("context_servers", fields("command args", **COMMAND, **ZED), fields("url", **REMOTE, **ZED)),
}
"""For each client: the key of its table, and the schema of an entry for a program and of one for a URL."""

RUN = {"claude-code", "copilot-cli", "gemini-cli", "opencode", "qwen-code"}

PROGRAM = Stdio("python3", ("mcp_tools_nvim", "stdio"))
HTTP = Http("http://127.0.0.1:1234/mcp", "0123456789abcdef")
NAMED = Http(HTTP.url, HTTP.token, "NVIM_TOKEN")


@pytest.mark.parametrize("name", DOCUMENTED)
@pytest.mark.parametrize("server", [PROGRAM, HTTP, NAMED], ids=["stdio", "http", "variable"])
def test_entries_have_only_documented_fields(name: str, server: Stdio | Http, tmp_path: Path) -> None:
    client, (table, *schemas) = CLIENTS[name], DOCUMENTED[name]
    for scope in client.files:
        made = change.add_entry(client, server, scope, tmp_path)
        values = change.format_of(client).read(made.after or "")
        jsonschema.validate(values[table][NAME], schemas[isinstance(server, Http)])


def test_the_entry_of_goose_names_the_variable(tmp_path: Path) -> None:
    client = CLIENTS["goose"]
    text = change.add_entry(client, NAMED, "user", tmp_path).after or ""
    entry = change.format_of(client).read(text)["extensions"][NAME]
    assert entry["env_keys"] == ["NVIM_TOKEN"]
    assert entry["headers"] == {"Authorization": "Bearer ${NVIM_TOKEN}"}
    assert NAMED.token not in text


def test_every_client_is_checked_here_or_run() -> None:
    assert DOCUMENTED.keys() | RUN == CLIENTS.keys()
