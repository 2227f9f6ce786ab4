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
from mcp_tools_nvim.client_config.formats import jsonc, toml, yaml
from mcp_tools_nvim.client_config.known import CLIENTS

Schema = dict[str, Any]

FORMS = {"jsonc": jsonc, "toml": toml, "yaml": yaml}
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
GOOSE: dict[str, Schema] = {
    "name": one(NAME),
    "description": TEXT,
    "enabled": FLAG,
    "timeout": SECONDS,
    "bundled": FLAG,
    "available_tools": TEXTS,
    "envs": TABLE,
    "env_keys": TEXTS,
}
CRUSH: dict[str, Schema] = {"disabled": FLAG, "timeout": SECONDS, "enabled_tools": TEXTS}

DOCUMENTED: dict[str, tuple[Schema, Schema]] = {
    "amp": (fields("command", **COMMAND), fields("url", **REMOTE)),
    "codex": (
        fields("command", **COMMAND, env_vars=TEXTS, cwd=TEXT, startup_timeout_sec=SECONDS),
        fields("url", url=URL, bearer_token_env_var=TEXT, http_headers=TABLE, env_http_headers=TABLE),
    ),
    "continue-dev": (
        fields("command", **COMMAND, type=one("stdio")),
        fields("url type", **REMOTE, type=one("http", "sse")),
    ),
    "crush": (
        fields("type command", **COMMAND, **CRUSH, type=one("stdio")),
        fields("type url", **REMOTE, **CRUSH, type=one("http", "sse")),
    ),
    "cursor": (fields("command", **COMMAND, type=one("stdio"), envFile=TEXT), fields("url", **REMOTE)),
    "goose": (
        fields("type name description enabled cmd args", **GOOSE, type=one("stdio"), cmd=TEXT, args=TEXTS),
        fields(
            "type name description enabled uri", **GOOSE, type=one("streamable_http"), uri=URL, headers=TABLE
        ),
    ),
    "vscode": (
        fields("type command", **COMMAND, type=one("stdio"), cwd=TEXT, envFile=TEXT),
        fields("type url", **REMOTE, type=one("http", "sse")),
    ),
    "windsurf": (fields("command", **COMMAND), fields("serverUrl", serverUrl=URL, headers=TABLE)),
    "zed": (
        fields("command args", **COMMAND, enabled=FLAG, timeout=SECONDS),
        fields("url", **REMOTE, enabled=FLAG, timeout=SECONDS),
    ),
}
"""For each client: the schema of an entry for a program, and of one for a URL."""

WHERE = {
    "amp": ("amp.mcpServers",),
    "codex": ("mcp_servers",),
    "continue-dev": ("mcpServers",),
    "crush": ("mcp",),
    "cursor": ("mcpServers",),
    "goose": ("extensions",),
    "vscode": ("servers",),
    "windsurf": ("mcpServers",),
    "zed": ("context_servers",),
}
RUN = {"claude-code", "copilot-cli", "gemini-cli", "opencode", "qwen-code"}

STDIO = Stdio("python3", ("mcp_tools_nvim", "stdio"))
HTTP = Http("http://127.0.0.1:1234/mcp", "0123456789abcdef")
NAMED = Http(HTTP.url, HTTP.token, "NVIM_TOKEN")


@pytest.mark.parametrize("name", DOCUMENTED)
@pytest.mark.parametrize("server", [STDIO, HTTP, NAMED], ids=["stdio", "http", "variable"])
def test_entries_have_only_documented_fields(name: str, server: Stdio | Http, tmp_path: Path) -> None:
    client = CLIENTS[name]
    for scope in client.files:
        made = change.add_entry(client, server, scope, tmp_path)
        values = FORMS[client.format].read(made.after or "")
        for key in WHERE[name]:
            values = values[key]
        jsonschema.validate(values[NAME], DOCUMENTED[name][isinstance(server, Http)])


def test_the_entry_of_goose_names_the_variable(tmp_path: Path) -> None:
    client = CLIENTS["goose"]
    text = change.add_entry(client, NAMED, "user", tmp_path).after or ""
    entry = FORMS[client.format].read(text)["extensions"][NAME]
    assert entry["env_keys"] == ["NVIM_TOKEN"]
    assert entry["headers"] == {"Authorization": "Bearer ${NVIM_TOKEN}"}
    assert NAMED.token not in text


def test_every_client_is_checked_here_or_run() -> None:
    assert DOCUMENTED.keys() | RUN == CLIENTS.keys()
    assert DOCUMENTED.keys() == WHERE.keys()
