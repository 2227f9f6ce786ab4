"""The help says with which versions of which clients this was run; of those of the tests, what they pin."""

from __future__ import annotations

import json
import re
from importlib.metadata import version

import pytest

from tests.support.nvim import ROOT

AGENTS, LIBRARIES = ROOT / "tests" / "clients" / "npm", ROOT / "tests" / "npm"
PINNED = {
    "Claude Code": (AGENTS, "@anthropic-ai/claude-code"),
    "Copilot CLI": (AGENTS, "@github/copilot"),
    "Gemini CLI": (AGENTS, "@google/gemini-cli"),
    "Qwen Code": (AGENTS, "@qwen-code/qwen-code"),
    "opencode": (AGENTS, "opencode-linux-x64"),
    "AI SDK (@ai-sdk/mcp)": (LIBRARIES, "@ai-sdk/mcp"),
    "MCP Inspector": (LIBRARIES, "@modelcontextprotocol/inspector"),
    "TypeScript SDK, v1": (LIBRARIES, "@modelcontextprotocol/sdk"),
    "TypeScript SDK, v2": (LIBRARIES, "@modelcontextprotocol/client"),
}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """Those with a star, and their versions."""
    text = (ROOT / "doc" / "mcp-tools.txt").read_text()
    table = text.partition("*mcp-tools-clients-run*")[2].partition("\n<\n")[0]
    return dict(re.findall(r"(\S(?:[^\n ]| (?! ))*?) \* +(\d\S+)", table))


@pytest.mark.parametrize("name", PINNED)
def test_pinned(said: dict[str, str], name: str) -> None:
    folder, package = PINNED[name]
    assert said[name] == json.loads((folder / "package.json").read_text())["devDependencies"][package]


def test_no_other_has_a_star(said: dict[str, str]) -> None:
    assert said.keys() == {*PINNED, "Python SDK (mcp)"}
    assert said["Python SDK (mcp)"] == version("mcp")
