"""The floor: the language server alone, with a minimal client over stdio."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from peers import sample
from peers.mcp_client import language_server
from tests.support import processes

CLEAR = {"workspace": {"workspaceFolders": True, "configuration": True}, "window": {"workDoneProgress": True}}
OF_TEXT = {
    "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
    "hover": {"contentFormat": ["plaintext"]},
    "diagnostic": {},
}


class LanguageServer:
    """A server's process and its messages."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        assert process.stdin
        assert process.stdout
        self._process, self._in, self._out = process, process.stdin, process.stdout
        self._folder = folder
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._versions: dict[str, int] = {}
        self._last = 0

    async def read(self) -> None:
        """Reads messages until the server ends."""
        while header := await self._out.readuntil(b"\r\n\r\n"):
            length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            message = json.loads(await self._out.readexactly(length))
            if "method" not in message:
                future = self._pending.pop(message["id"])
                if not future.cancelled():
                    future.set_result(message)
            elif "id" in message:
                asked = message["method"] == "workspace/configuration"
                result = [None] * len(message["params"]["items"]) if asked else None
                self._send({"id": message["id"], "result": result})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: Any) -> None:
        """Sends a notification."""
        self._send({"method": method, "params": params})

    async def request(self, method: str, params: Any) -> Any:
        """Sends a request."""
        self._last += 1
        future = self._pending[self._last] = asyncio.get_running_loop().create_future()
        self._send({"id": self._last, "method": method, "params": params})
        message = await future
        if "error" in message:
            raise AssertionError(f"{method}: {message['error']}")
        return message["result"]

    async def initialize(self) -> None:
        """Initializes the server like an editor."""
        root = self._folder.as_uri()
        folders = [{"uri": root, "name": self._folder.name}]
        capabilities = {**CLEAR, "textDocument": OF_TEXT}
        params = {"processId": None, "rootUri": root, "workspaceFolders": folders}
        await self.request("initialize", {**params, "capabilities": capabilities})
        self.notify("initialized", {})

    def uri(self, path: str) -> str:
        """The URI of a file of the project."""
        return (self._folder / path).as_uri()

    def sync(self, *paths: str) -> None:
        """Notifies the server of the text on disk; edited files are open."""
        changes = [{"uri": self.uri(path), "type": 2} for path in paths]
        for path in paths:
            text, version = (self._folder / path).read_text(), self._versions.get(path, 0) + 1
            if version > 1:
                document = {"uri": self.uri(path), "version": version}
                changed = {"textDocument": document, "contentChanges": [{"text": text}]}
                self.notify("textDocument/didChange", changed)
                self._versions[path] = version
        self.notify("workspace/didChangeWatchedFiles", {"changes": changes})

    def open(self, path: str) -> None:
        """Open a file."""
        self._versions[path] = 1
        document = {"uri": self.uri(path), "languageId": "python", "version": 1}
        text = (self._folder / path).read_text()
        self.notify("textDocument/didOpen", {"textDocument": {**document, "text": text}})

    def apply(self, edit: dict[str, Any]) -> list[str]:
        """Writes the edits of a rename; the project is ASCII."""
        changed = []
        for change in edit["documentChanges"] if "documentChanges" in edit else _of(edit["changes"]):
            path = str(Path(change["textDocument"]["uri"].removeprefix("file://")).relative_to(self._folder))
            lines = (self._folder / path).read_text().split("\n")
            for one in sorted(change["edits"], key=lambda e: e["range"]["start"]["character"], reverse=True):
                start, end = one["range"]["start"], one["range"]["end"]
                line = lines[start["line"]]
                lines[start["line"]] = line[: start["character"]] + one["newText"] + line[end["character"] :]
            (self._folder / path).write_text("\n".join(lines))
            changed.append(path)
        return changed

    async def end(self) -> None:
        """Shuts the server down."""
        with contextlib.suppress(TimeoutError, AssertionError):
            await asyncio.wait_for(self.request("shutdown", None), 5)
            self.notify("exit", None)
            await asyncio.wait_for(self._process.wait(), 5)
        if self._process.returncode is None:
            processes.end(self._process.pid)
            await self._process.wait()


def _of(changes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"textDocument": {"uri": uri}, "edits": edits} for uri, edits in changes.items()]


class Floor:
    """Answers of the server itself."""

    name = "floor"

    def __init__(self, server: LanguageServer) -> None:
        self._server = server

    def _place(self, place: sample.Place, column: int) -> dict[str, Any]:
        position = {"line": place.line - 1, "character": column - 1}
        return {"textDocument": {"uri": self._server.uri(place.path)}, "position": position}

    async def overview(self) -> str:
        """The text of the ledger's file."""
        document = {"textDocument": {"uri": self._server.uri(sample.LEDGER)}}
        return json.dumps(await self._server.request("textDocument/documentSymbol", document))

    async def find(self) -> str:
        """The location of the method and its text: two requests and the file."""
        found = await self._server.request("workspace/symbol", {"query": sample.NAME})
        uri = next(one["location"]["uri"] for one in found if one.get("containerName") == "Ledger")
        outline = await self._server.request("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
        members = next(one for one in outline if one["name"] == "Ledger")["children"]
        span = next(one for one in members if one["name"] == sample.NAME)["range"]
        lines = Path(uri.removeprefix("file://")).read_text().splitlines()
        body = "\n".join(lines[span["start"]["line"] : span["end"]["line"] + 1])
        return json.dumps(found) + json.dumps(outline) + body

    async def references(self) -> str:
        """The uses of the method."""
        params = self._place(sample.definition(), sample.column())
        params["context"] = {"includeDeclaration": False}
        return json.dumps(await self._server.request("textDocument/references", params))

    async def rename(self, old: str, new: str) -> str:
        """Renames the method in every file."""
        params = self._place(sample.definition(), sample.column())
        edit = await self._server.request("textDocument/rename", {**params, "newName": new})
        self._server.sync(*self._server.apply(edit))
        return json.dumps(edit)

    async def diagnostics(self) -> str:
        """The diagnostics of the file that was changed on disk."""
        self._server.sync(sample.EDITED)
        document = {"textDocument": {"uri": self._server.uri(sample.EDITED)}}
        return json.dumps(await self._server.request("textDocument/diagnostic", document))

    async def hover(self) -> str:
        """The hover text at a use of the method."""
        return json.dumps(
            await self._server.request("textDocument/hover", self._place(sample.use(), sample.use_column()))
        )

    def present(self, text: str) -> str:
        """The diagnostics in an answer."""
        return text

    async def unsaved(self) -> dict[str, str]:
        """Everything is on disk."""
        return {}

    def places(self, text: str) -> set[sample.Place]:
        """The locations in an answer."""
        return {
            sample.Place("shop/" + one["uri"].rpartition("/")[2], one["range"]["start"]["line"] + 1)
            for one in json.loads(text)
        }


@contextlib.asynccontextmanager
async def running(folder: Path, place: Path) -> AsyncIterator[Floor]:
    """A separate server for a project, which logs to `place`."""
    with (place / "floor.log").open("wb") as log:
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "stderr": log}
        process = await processes.start(*language_server(), cwd=folder, **pipes)
    server = LanguageServer(process, folder)
    reading = asyncio.create_task(server.read())
    try:
        await server.initialize()
        server.open(sample.LEDGER)
        server.open(sample.EDITED)
        yield Floor(server)
    finally:
        await server.end()
        reading.cancel()
        await asyncio.wait([reading])
