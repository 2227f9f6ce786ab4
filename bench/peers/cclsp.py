"""cclsp, over stdio, with the common language server."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import _npm

from peers import install, sample
from peers.mcp_client import Asker, FailedError, language_server, over_stdio

PLACE = re.compile(r"/(shop/\w+\.py):(\d+):\d+")


class Cclsp:
    """Plain text answers, without an overview and without the text of results."""

    name = "cclsp"

    def __init__(self, asker: Asker) -> None:
        self._ask = asker.ask
        self._method = {"file_path": sample.LEDGER, "symbol_kind": "method"}

    async def overview(self) -> str:
        """Not supported."""
        raise FailedError("no tool")

    async def find(self) -> str:
        """The location of the method."""
        return await self._ask("find_definition", **self._method, symbol_name=sample.NAME)

    async def references(self) -> str:
        """The uses of the method."""
        return await self._ask("find_references", **self._method, symbol_name=sample.NAME)

    async def rename(self, old: str, new: str) -> str:
        """Renames the method in every file."""
        return await self._ask("rename_symbol", **self._method, symbol_name=old, new_name=new)

    async def diagnostics(self) -> str:
        """The diagnostics of the file that was changed on disk."""
        return await self._ask("get_diagnostics", seconds=5, file_path=sample.EDITED)

    async def hover(self) -> str:
        """The hover text at a use of the method."""
        place = {"line": sample.use().line, "character": sample.use_column()}
        return await self._ask("get_hover", seconds=5, file_path=sample.EDITED, **place)

    def present(self, text: str) -> str:
        """The diagnostics in an answer."""
        return text

    async def unsaved(self) -> dict[str, str]:
        """Everything is on disk."""
        return {}

    def places(self, text: str) -> set[sample.Place]:
        """The locations in an answer."""
        return {sample.Place(found[1], int(found[2])) for found in PLACE.finditer(text)}


@contextlib.asynccontextmanager
async def running(folder: Path, place: Path) -> AsyncIterator[Cclsp]:
    """A separate server for a project, which logs to `place`."""
    config = place / "cclsp.json"
    server = {"extensions": ["py"], "command": language_server(), "rootDir": str(folder)}
    config.write_text(json.dumps({"servers": [server]}))
    program = install.NPM / "node_modules" / "cclsp" / "dist" / "index.js"
    command = [str(_npm.WHEEL / "bin" / "node"), str(program)]
    env = {**os.environ, "CCLSP_CONFIG_PATH": str(config)}
    async with over_stdio(command, env, folder, place / "cclsp.log") as asker:
        yield Cclsp(asker)
