"""Two agents: one with file and shell tools, one with ours. Each counts what its model reads and writes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from peers.mcp_client import Asker

from tests.support import processes
from tests.support.nvim import Nvim

BASH_LIMIT, READ_LINES, SECONDS = 30_000, 2000, 120
TOOLS = Path(sys.executable).parent
ENV = {
    "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
    "PYTHONPATH": "src",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""The environment of both agents, with rg, basedpyright and pytest."""


class Arm:
    """Counts the calls and bytes of an agent since `begin`."""

    root: Path

    def succeeds(self, command: str) -> bool:
        """Whether a command succeeds; it is not counted."""
        return processes.run(["sh", "-c", command], cwd=self.root, env={**os.environ, **ENV}).returncode == 0

    def begin(self) -> None:
        """Resets the counters."""
        self.calls = self.read_bytes = self.written = 0
        self.log: list[str] = []

    @property
    def bytes(self) -> int:
        """Bytes in and out."""
        return self.read_bytes + self.written

    def count(self, name: str, arguments: dict[str, Any], answer: str) -> str:
        """Counts a call: name and arguments as compact JSON, and the text of the answer."""
        call = json.dumps({"name": name, "arguments": arguments}, separators=(",", ":"), ensure_ascii=False)
        self.calls += 1
        self.written += len(call.encode())
        self.read_bytes += len(answer.encode())
        self.log.append(f"→ {call}\n{answer}")
        return answer


class Skilled(Arm):
    """An agent with the tools of Claude Code: Grep, Read with line numbers, Edit after a Read, Bash."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: set[str] = set()
        self.begin()

    def _run(self, command: list[str]) -> str:
        done = processes.run(command, cwd=self.root, env={**os.environ, **ENV}, timeout=SECONDS)
        return (done.stdout + done.stderr)[:BASH_LIMIT].rstrip("\n")

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None) -> str:
        """Matching lines with their numbers."""
        arguments = {"pattern": pattern, "output_mode": "content", "-n": True}
        if path:
            arguments["path"] = path
        if glob:
            arguments["glob"] = glob
        command = ["rg", "-n", "--no-heading", "--sort", "path", "--", pattern, *([path] if path else [])]
        return self.count("Grep", arguments, self._run(command))

    def read(self, path: str, offset: int = 1, limit: int | None = None) -> str:
        """Lines of a file, numbered as `cat -n` does."""
        arguments: dict[str, Any] = {"file_path": str(self.root / path)}
        if limit:
            arguments |= {"offset": offset, "limit": limit}
        lines = (self.root / path).read_text().splitlines()[offset - 1 :][: limit or READ_LINES]
        self._known.add(path)
        return self.count(
            "Read", arguments, "\n".join(f"{n:6}\t{line}" for n, line in enumerate(lines, offset))
        )

    def edit(self, path: str, old: str, new: str) -> str:
        """Replace a text that is unique in a file that was read."""
        text = (self.root / path).read_text()
        assert path in self._known, f"{path} was not read"
        assert text.count(old) == 1, f"{old} in {path}"
        (self.root / path).write_text(text.replace(old, new))
        place = str(self.root / path)
        arguments = {"file_path": place, "old_string": old, "new_string": new}
        return self.count("Edit", arguments, f"The file {place} has been updated successfully.")

    def bash(self, command: str, description: str) -> str:
        """Run a command in the project."""
        return self.count(
            "Bash", {"command": command, "description": description}, self._run(["sh", "-c", command])
        )


class Ours(Arm):
    """An agent that calls the tools of this project."""

    def __init__(self, root: Path, asker: Asker, editor: Nvim) -> None:
        self.root, self._asker, self.editor = root, asker, editor
        self.begin()

    async def call(self, tool: str, **arguments: Any) -> str:
        """Calls a tool; an error is an answer."""
        name = f"nvim_{tool}"
        params = {"name": name, "arguments": arguments}
        result = await asyncio.wait_for(self._asker.request("tools/call", params), SECONDS)
        text = "\n".join(part["text"] for part in result["content"])
        return self.count(name, arguments, text)


def places(text: str) -> set[tuple[str, int]]:
    """The locations in an answer: rows `path:line: text`, or rows with a line number below a path."""
    found, path = set(), ""
    for row in text.splitlines():
        if full := re.match(r"\s*([\w./-]+\.py):(\d+)", row):
            found.add((full[1].removeprefix("./"), int(full[2])))
        elif number := re.match(r"\s+(\d+)\b", row):
            found.add((path, int(number[1])))
        else:
            path = row.split(":")[0].strip()
    return found
