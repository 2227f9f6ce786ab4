"""Find phrases that this project avoids, in the directories of CONVERTED.

Add a directory when its language was revised; in the end there is one entry, the root.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONVERTED: tuple[str, ...] = (
    "lua/mcp-tools/approval",
    "lua/mcp-tools/calls",
    "lua/mcp-tools/config",
    "lua/mcp-tools/loading",
    "lua/mcp-tools/registry",
    "lua/mcp-tools/rpc",
    "lua/mcp-tools/schema",
    "lua/mcp-tools/scope",
    "lua/mcp-tools/agents",
    "lua/mcp-tools/bridge",
    "lua/mcp-tools/callers",
    "lua/mcp-tools/command",
    "lua/mcp-tools/health",
    "lua/mcp-tools/instances",
    "lua/mcp-tools/mounts",
    "lua/mcp-tools/prompts",
    "lua/mcp-tools/python_worker",
    "lua/mcp-tools/ui",
    "plugin",
    "rplugin",
    "lua/mcp-tools/editor/dap",
    "lua/mcp-tools/editor/diagnostics",
    "lua/mcp-tools/editor/git",
    "lua/mcp-tools/editor/lsp",
    "lua/mcp-tools/editor/search",
    "lua/mcp-tools/editor/symbol",
    "lua/mcp-tools/editor/treesitter",
    "lua/mcp-tools/editor/agents",
    "lua/mcp-tools/editor/background.lua",
    "lua/mcp-tools/editor/buffer",
    "lua/mcp-tools/editor/context",
    "lua/mcp-tools/editor/edit",
    "lua/mcp-tools/editor/execute.lua",
    "lua/mcp-tools/editor/plugins",
    "lua/mcp-tools/editor/position.lua",
    "lua/mcp-tools/editor/process",
    "lua/mcp-tools/editor/quickfix",
    "lua/mcp-tools/editor/result",
    "lua/mcp-tools/editor/review",
    "lua/mcp-tools/editor/shell",
    "lua/mcp-tools/editor/text",
    "lua/mcp-tools/editor/user",
    "lua/mcp-tools/editor/watch.lua",
    "lua/mcp-tools/files",
    "lua/mcp-tools/privacy",
    "lua/mcp-tools/util",
)
"""Paths relative to the root, such as `lua/mcp-tools/registry`; `.` is everything."""
SUFFIXES = (".lua", ".py", ".md", ".txt")
PHRASES = {
    r"the person\b|\bpeople\b": "the user",
    r"(?<!there )\b(is|are) none\b": "is not a valid …, unknown, invalid",
    r"\bis another by now\b": "has changed",
    r"\bmends?\b|\bmended\b": "fixes, repairs",
    r"\btells? of\b|\bis told\b|\bare told\b": "reports, notifies",
    r"\bby (itself|themselves)\b": "automatically, alone",
    r"\bso many\b": "the maximum number of",
    r"\blets? run\b": "allows",
    r"\bwho(ever)? looks\b": "the user",
    r"\b(stands?|stood) (for|in|at)\b": "represents, is in, is at",
    r"\btakes? back\b|\btaken back\b": "reverts, undoes",
    r"\bhold(s|ing)? (the editor|up)\b": "blocks the main thread",
}
"""Each with what to write instead."""
FOUND = re.compile("|".join(f"(?P<p{at}>{phrase})" for at, phrase in enumerate(PHRASES)), re.IGNORECASE)


def main() -> int:
    """Print every phrase with its place; 1 when there is one."""
    if not CONVERTED:
        return 0
    command = ["git", "ls-files", *CONVERTED]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = 0
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix not in SUFFIXES or path == Path(__file__) or not path.is_file():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for match in FOUND.finditer(line):
                found += 1
                instead = list(PHRASES.values())[int((match.lastgroup or "p0")[1:])]
                print(f"{name}:{number}: '{match[0]}': write {instead}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
