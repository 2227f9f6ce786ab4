"""cclsp, over stdio, with everybody's language server."""

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
    """Answers in plain text; it has no overview, and no text of what it finds."""

    name = "cclsp"

    def __init__(self, asker: Asker) -> None:
        self._ask = asker.ask
        self._method = {"file_path": sample.LEDGER, "symbol_kind": "method"}

    async def overview(self) -> str:
        """There is no tool for it."""
        raise FailedError("no tool")

    async def find(self) -> str:
        """The method's place."""
        return await self._ask("find_definition", **self._method, symbol_name=sample.NAME)

    async def references(self) -> str:
        """Where the method is used."""
        return await self._ask("find_references", **self._method, symbol_name=sample.NAME)

    async def rename(self, old: str, new: str) -> str:
        """Call the method something else, in every file."""
        return await self._ask("rename_symbol", **self._method, symbol_name=old, new_name=new)

    async def diagnostics(self) -> str:
        """What is wrong in the file that was changed on the disk."""
        return await self._ask("get_diagnostics", seconds=5, file_path=sample.EDITED)

    async def hover(self) -> str:
        """What is known of the method where it is used."""
        place = {"line": sample.use().line, "character": sample.use_column()}
        return await self._ask("get_hover", seconds=5, file_path=sample.EDITED, **place)

    def present(self, text: str) -> str:
        """What an answer says is wrong now: all of it."""
        return text

    async def unsaved(self) -> dict[str, str]:
        """Everything is on the disk."""
        return {}

    def places(self, text: str) -> set[sample.Place]:
        """The places that an answer names."""
        return {sample.Place(found[1], int(found[2])) for found in PLACE.finditer(text)}


@contextlib.asynccontextmanager
async def running(folder: Path, place: Path) -> AsyncIterator[Cclsp]:
    """One of its own for a project; what it logs goes to `place`."""
    config = place / "cclsp.json"
    server = {"extensions": ["py"], "command": language_server(), "rootDir": str(folder)}
    config.write_text(json.dumps({"servers": [server]}))
    program = install.NPM / "node_modules" / "cclsp" / "dist" / "index.js"
    command = [str(_npm.WHEEL / "bin" / "node"), str(program)]
    env = {**os.environ, "CCLSP_CONFIG_PATH": str(config)}
    async with over_stdio(command, env, folder, place / "cclsp.log") as asker:
        yield Cclsp(asker)
