"""Find phrases in docs and code that this project avoids in favor of plain English."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ("lua", "bridge", "plugin", "rplugin", "scripts", "bench", "doc")
EXCEPTIONS = (
    "lua/mcp-tools/tools",  # descriptions of bundled tools
    "scripts/words.py",
)
SUFFIXES = (".lua", ".py", ".md", ".txt", "")
PHRASES = {
    r"the person\b|\bpeople\b": "the user",
    r"(?<!there )\b(is|are) (?-i:none)\b": "is not a valid …, unknown, invalid",
    r"\bis another by now\b": "has changed",
    r"\bmends?\b|\bmended\b": "fixes, repairs",
    r"\btells? of\b|\b(is|are) told\b": "reports, notifies",
    r"\bby (itself|themselves)\b": "automatically, alone",
    r"\bso many\b": "the maximum number of",
    r"\blets? run\b": "allows",
    r"\bwho(ever)? looks\b": "the user",
    r"\b(stands?|stood) (for|in|at)\b": "represents, is in, is at",
    r"\btakes? back\b|\btaken back\b": "reverts, undoes",
    r"\bhold(s|ing)? (the editor|up)\b": "blocks the main thread",
    r"\btombstones?\b|\bstrangers?\b|\bfarewell\b": "deleted session, foreign process, shutdown",
}
"""Each phrase with a replacement."""
FOUND = re.compile("|".join(f"(?P<p{at}>{phrase})" for at, phrase in enumerate(PHRASES)), re.IGNORECASE)


def main() -> int:
    """Prints every phrase with its location; returns 1 if there is one."""
    command = ["git", "ls-files", *CHECKED]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = 0
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix not in SUFFIXES or name.startswith(EXCEPTIONS) or not path.is_file():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for match in FOUND.finditer(line):
                found += 1
                instead = list(PHRASES.values())[int((match.lastgroup or "p0")[1:])]
                print(f"{name}:{number}: '{match[0]}': write {instead}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
