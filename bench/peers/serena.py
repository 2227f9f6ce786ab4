"""Serena: its classic tools over stdio, with the common language server.

Its usage data and update check are disabled, and a proxy that does not exist blocks the network.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

from peers import install, sample
from peers.mcp_client import Asker, language_server, over_stdio

SERVER = "python_basedpyright"
QUIET = {"SERENA_USAGE_REPORTING": "false"} | dict.fromkeys(
    ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"
)
LINE = re.compile(r"^  > +(\d+):", re.MULTILINE)


class Serena:
    """Answers by name, not by location."""

    name = "Serena"

    def __init__(self, asker: Asker) -> None:
        self._ask = asker.ask

    async def overview(self) -> str:
        """The text of the ledger's file."""
        return await self._ask("get_symbols_overview", relative_path=sample.LEDGER, depth=1)

    async def find(self) -> str:
        """The method with its text."""
        return await self._ask("find_symbol", name_path_pattern=f"Ledger/{sample.NAME}", include_body=True)

    async def references(self) -> str:
        """The uses of the method."""
        where = {"name_path": f"Ledger/{sample.NAME}", "relative_path": sample.LEDGER}
        return await self._ask("find_referencing_symbols", **where)

    async def rename(self, old: str, new: str) -> str:
        """Renames the method in every file."""
        where = {"name_path": f"Ledger/{old}", "relative_path": sample.LEDGER}
        return await self._ask("rename_symbol", **where, new_name=new)

    async def diagnostics(self) -> str:
        """The diagnostics of the file that was changed on disk."""
        return await self._ask("get_diagnostics_for_file", seconds=5, relative_path=sample.EDITED)

    async def hover(self) -> str:
        """Signature and documentation of the method."""
        where = {"name_path_pattern": f"Ledger/{sample.NAME}", "relative_path": sample.LEDGER}
        return await self._ask("find_symbol", **where, include_info=True)

    def present(self, text: str) -> str:
        """The diagnostics in an answer."""
        return text

    async def unsaved(self) -> dict[str, str]:
        """Everything is on disk."""
        return {}

    def places(self, text: str) -> set[sample.Place]:
        """The locations in an answer, whose lines are 0-based."""
        return {
            sample.Place(path, int(found[1]) + 1)
            for path, kinds in json.loads(text).items()
            for uses in kinds.values()
            for use in uses
            for found in LINE.finditer(use["content_around_reference"])
        }


@contextlib.asynccontextmanager
async def running(folder: Path, place: Path) -> AsyncIterator[Serena]:
    """A separate Serena for a project, with `place` as its home."""
    home = place / "serena"
    home.mkdir()
    settings = {
        "language_backend": "LSP",
        "agent_interface": "tools",
        "web_dashboard": False,
        "web_dashboard_open_on_launch": False,
        "gui_log_window": False,
        "ls_specific_settings": {SERVER: {"ls_path": language_server()[0]}},
        "included_optional_tools": ["get_diagnostics_for_file"],
        "projects": [],
    }
    (home / "serena_config.yml").write_text(json.dumps(settings))
    (folder / ".serena").mkdir()
    project = {"project_name": "sample", "language_servers": [SERVER]}
    (folder / ".serena" / "project.yml").write_text(json.dumps(project))
    env = {**os.environ, **QUIET, "SERENA_HOME": str(home), "HOME": str(home)}
    command = [str(install.SERENA / "bin" / "serena"), "start-mcp-server", "--project", str(folder)]
    command += ["--context", "claude-code", "--agent-interface", "tools", "--enable-web-dashboard", "false"]
    async with over_stdio(command, env, folder, place / "serena.log") as asker:
        yield Serena(asker)
