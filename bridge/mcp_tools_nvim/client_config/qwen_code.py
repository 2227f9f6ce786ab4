"""Qwen Code: `settings.json`, of the user or a project."""

from __future__ import annotations

from .client import Client
from .gemini_cli import entry

CLIENT = Client(
    title="Qwen Code",
    files={"user": "${QWEN_HOME:-~/.qwen}/settings.json", "project": ".qwen/settings.json"},
    skills={"user": "${QWEN_HOME:-~/.qwen}/skills", "project": ".qwen/skills"},
    format="jsonc",
    path=("mcpServers",),
    entry=entry,
    programs=("qwen",),
    folders=("${QWEN_HOME:-~/.qwen}",),
    reference="$%s",
    advice="`qwen mcp list` says whether it is connected; of a project's file `qwen mcp approve nvim-tools`.",
)
