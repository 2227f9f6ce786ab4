"""Claude Code: `.mcp.json` of a project, or the user's `~/.claude.json`."""

from __future__ import annotations

from .client import Client, common

CLIENT = Client(
    title="Claude Code",
    files={"user": "${CLAUDE_CONFIG_DIR:-~}/.claude.json", "project": ".mcp.json"},
    skills={"user": "${CLAUDE_CONFIG_DIR:-~/.claude}/skills", "project": ".claude/skills"},
    format="jsonc",
    path=("mcpServers",),
    entry=common,
    programs=("claude",),
    folders=("${CLAUDE_CONFIG_DIR:-~/.claude}",),
    reference="${%s}",
    advice="`claude mcp list` connects and says whether it worked; of a project's file it asks once.",
)
