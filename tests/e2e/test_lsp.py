"""`mcp-tools lsp`: the language servers of a real editor, for LSP clients of agents."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from mcp_tools_nvim.instances.proof import lsp_token
from tests.support import bridge as support
from tests.support import lsp
from tests.support.bridge import Bridge
from tests.support.lsp import Client, FailedError, position
from tests.support.nvim import Nvim, Spawn
from tests.support.rpc import GoneError
from tests.support.shared import memory_of
from tests.unit.agents.agents import Agent, call, request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SHELF = '''class Shelf:
    """Holds things."""

    def put(self, thing: str) -> "Shelf":
        self.thing = thing
        return self


class Tall(Shelf):
    pass
'''
USER = """from shelf import Shelf


def fill(shelf: Shelf) -> Shelf:
    return shelf.put("ä€𝄞") or shelf.put("b")
"""
WRONG = "def wrong() -> int:\n    return 'text'\n"


@dataclass
class Stage:
    """An editor with a language server, in a project that is not open in it."""

    bridge: Bridge
    project: Path

    @property
    def nvim(self) -> Nvim:
        return self.bridge.nvim

    def client(self, *words: str, **env: str) -> AbstractAsyncContextManager[Client]:
        return lsp.running(self.nvim.home, self.project, *words, **env)

    @contextlib.asynccontextmanager
    async def opened(self, name: str = "user.py") -> AsyncIterator[tuple[Client, dict[str, Any]]]:
        """An initialized client that has opened a file, and the parameters that name the file."""
        async with self.client() as client:
            await client.initialize()
            yield client, client.open(self.project / name)

    async def edit(self, name: str, code: str) -> None:
        """The user edits a file with Lua, and does not save it."""
        await self.nvim.lua(f"vim.api.nvim_set_current_buf(vim.fn.bufadd(...)); {code}", name)


@pytest.fixture
async def stage(spawn_nvim: Spawn) -> AsyncIterator[Stage]:
    bridge = await support.start(spawn_nvim, init=lsp.ATTACH)
    project = bridge.nvim.home.make("cwd")
    (project / ".git").mkdir(exist_ok=True)
    for name, text in {"shelf.py": SHELF, "user.py": USER, "wrong.py": WRONG}.items():
        (project / name).write_text(text)
    yield Stage(bridge, project)
    with contextlib.suppress(GoneError):
        await bridge.nvim.lua(lsp.STOP)


PUT = position(4, 18)
"""Where user.py calls `put`."""


def lines(found: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """File and line of locations."""
    return sorted((Path(one["uri"]).name, one["range"]["start"]["line"]) for one in found)


async def test_requests_about_closed_files_are_answered_by_the_editors_server(stage: Stage) -> None:
    user = stage.project / "user.py"
    async with stage.client() as client:
        assert (await client.initialize())["capabilities"]["positionEncoding"] == "utf-16"
        it = client.open(user)
        assert lines(await client.ask("textDocument/definition", **it, **PUT)) == [("shelf.py", 3)]
        # The second call is after a character that has two units.
        second = position(4, len(USER.splitlines()[4].encode("utf-16-le")) // 2 - 5)
        assert lines(await client.ask("textDocument/definition", **it, **second)) == [("shelf.py", 3)]
        assert "put" in (await client.ask("textDocument/hover", **it, **PUT))["contents"]["value"]
        uses = await client.ask("textDocument/references", **it, **PUT, context={"includeDeclaration": True})
        assert lines(uses) == [("shelf.py", 3), ("user.py", 4), ("user.py", 4)]
        last = max(uses, key=lambda one: int(one["range"]["start"]["character"]))
        assert last["range"]["start"]["character"] == second["position"]["character"] - 3
        assert [one["name"] for one in await client.ask("textDocument/documentSymbol", **it)] == ["fill"]
        assert [one["name"] for one in await client.ask("workspace/symbol", query="Tall")] == ["Tall"]
        assert await client.published(user, 1) == []
    assert await stage.nvim.lua("return #vim.fn.getbufinfo({ buflisted = 1 })") == 1


async def test_call_hierarchy_items_lead_back_to_their_server(stage: Stage) -> None:
    async with stage.opened("shelf.py") as (client, it):
        items = await client.ask("textDocument/prepareCallHierarchy", **it, **position(3, 9))
        assert [(one["name"], one["data"]["server"]) for one in items] == [("put", "basedpyright")]
        calls = await client.ask("callHierarchy/incomingCalls", item=items[0])
        starts = {one["start"]["character"] for one in calls[0]["fromRanges"]}
        assert (calls[0]["from"]["name"], len(starts)) == ("fill", 2)
        del items[0]["data"]  # as some agents do
        assert await client.ask("callHierarchy/incomingCalls", item=items[0]) == calls
        made = await client.ask("callHierarchy/outgoingCalls", item=calls[0]["from"])
        assert {one["to"]["name"] for one in made} == {"put"}
        items[0]["data"] = {"server": "another"}
        with pytest.raises(FailedError, match="another has stopped"):
            await client.ask("callHierarchy/incomingCalls", item=items[0])


async def test_positions_count_lines_on_disk_while_unsaved_text_is_analyzed(stage: Stage) -> None:
    await stage.edit("user.py", "vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# one', '# two' })")
    await stage.edit("shelf.py", "vim.api.nvim_buf_set_lines(0, 3, 3, false, { '    colour = 3', '' })")
    await stage.edit("shelf.py", "vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# first' })")
    async with stage.opened() as (client, it):
        assert lines(await client.ask("textDocument/definition", **it, **PUT)) == [("shelf.py", 3)]
        uses = await client.ask("textDocument/references", **it, **PUT, context={"includeDeclaration": True})
        assert lines(uses) == [("shelf.py", 3), ("user.py", 4), ("user.py", 4)]
        it = client.open(stage.project / "shelf.py")
        children = (await client.ask("textDocument/documentSymbol", **it))[0]["children"]
        assert "colour" in {one["name"] for one in children}
        await stage.edit("user.py", "vim.api.nvim_buf_set_lines(0, 5, 7, false, {})")
        it = client.open(stage.project / "user.py")
        with pytest.raises(FailedError, match=r"line 5 of user\.py was deleted in the editor"):
            await client.ask("textDocument/hover", **it, **PUT)


async def test_diagnostics_are_published_and_pulled(stage: Stage) -> None:
    wrong = stage.project / "wrong.py"
    async with stage.opened("wrong.py") as (client, it):
        first = await client.published(wrong, 1)
        assert [(one["severity"], one["range"]["start"]["line"]) for one in first] == [(1, 1)]
        report = await client.ask("textDocument/diagnostic", **it)
        assert report == {"kind": "full", "items": first}
        wrong.write_text(WRONG.replace("'text'", "1"))
        document = {"uri": wrong.as_uri(), "version": 2}
        client.notify("textDocument/didChange", textDocument=document, contentChanges=[{"text": "ignored"}])
        assert await client.published(wrong, 2) == []
        wrong.write_text(WRONG)  # asked at once, as Claude Code does after an edit
        assert len((await client.ask("textDocument/diagnostic", **it))["items"]) == 1


async def test_requests_are_answered_although_the_document_is_closed(stage: Stage) -> None:
    # Copilot CLI closes it a millisecond after its request.
    user = stage.project / "user.py"
    async with stage.client() as client:
        await client.initialize(None)
        for _ in range(3):
            it = client.open(user)
            _, answer = client.begin("textDocument/definition", **it, **PUT)
            client.notify("textDocument/didClose", **it)
            assert lines(await answer) == [("shelf.py", 3)]
        client.open(user)
        _, answer = client.begin("workspace/symbol", query="Tall")
        client.notify("textDocument/didClose", **it)
        assert [one["name"] for one in await answer] == ["Tall"]


REFUSED = {
    "textDocument/rename": "nvim_symbol_rename",
    "workspace/executeCommand": "nvim_code_actions",
    "workspace/applyEdit": "nvim_file_edit",
}


async def test_nothing_is_changed_and_no_foreign_or_sensitive_file_is_named(stage: Stage) -> None:
    (stage.project / ".env").write_text("TOKEN=1\n")
    (stage.project / "link.py").symlink_to("/etc/passwd")
    async with stage.opened() as (client, it):
        await client.published(stage.project / "user.py", 1)
        for method, tool in REFUSED.items():
            with pytest.raises(FailedError, match=tool):
                await client.ask(method, **it, **PUT, newName="x")
        at = PUT["position"]  # Copilot CLI renames only what this answers
        assert await client.ask("textDocument/prepareRename", **it, **PUT) == {"start": at, "end": at}
        with pytest.raises(FailedError, match="not supported") as raised:
            await client.ask("textDocument/completion", **it, **PUT)
        assert raised.value.code == -32601
        for uri in ("file:///etc/passwd", *((stage.project / one).as_uri() for one in ("link.py", ".env"))):
            with pytest.raises(FailedError, match=r"outside the project|sensitive"):
                await client.ask("textDocument/hover", textDocument={"uri": uri}, **position(0, 0))
        for bad in ({"uri": "untitled:1"}, {"uri": 7}, {}):
            with pytest.raises(FailedError, match="must"):
                await client.ask("textDocument/hover", textDocument=bad, **position(0, 0))
        with pytest.raises(FailedError, match="position"):
            await client.ask("textDocument/hover", **it, position={"line": "0"})
        it = client.open(stage.project / "shelf.py")
        with pytest.raises(FailedError, match="outside the project"):  # `str`, in a stub of the server
            await client.ask("textDocument/definition", **it, **position(3, 25))
    log = "local path = probe.audit.path(); return vim.fn.filereadable(path) == 1 and vim.fn.readfile(path)"
    entries = [json.loads(line) for line in await stage.nvim.wait_for(log)]
    assert {("lsp_request", "deny"), ("lsp_request", "allow")} <= {
        (e["tool"], e["decision"]) for e in entries
    }
    assert {one["client"] for one in entries} == {"tester"}


async def test_requests_fail_without_an_editor(stage: Stage, home: Any, tmp_path: Path) -> None:
    async with lsp.running(home, tmp_path) as client:
        with pytest.raises(FailedError) as raised:
            await client.ask("textDocument/hover")
        assert raised.value.code == -32002
        await client.initialize()
        path = tmp_path / "a.py"
        path.write_text("x = 1\n")
        it = client.open(path)
        with pytest.raises(FailedError, match="no Neovim with a running bridge"):
            await client.ask("textDocument/hover", **it, **position(0, 0))
        assert await client.ask("shutdown") is None
        with pytest.raises(FailedError, match="shut down"):
            await client.ask("textDocument/hover", **it, **position(0, 0))
        assert {one["method"] for one in client.notifications} == {"window/logMessage"}
        client.notify("exit")
        assert await client.process.wait() == 0


async def test_it_ends_after_shutdown_or_exit_alone(home: Any, tmp_path: Path) -> None:
    async with lsp.running(home, tmp_path) as client:
        await client.initialize()
        await client.ask("shutdown")
        begun = time.monotonic()
        assert await client.process.wait() == 0
        assert time.monotonic() - begun > 1, "`exit` may still come"
    async with lsp.running(home, tmp_path) as client:
        await client.initialize()
        client.notify("exit")
        assert await client.process.wait() == 1


SLOW = """
vim.lsp.start({ name = 'slow', root_dir = vim.uv.cwd(), cmd = function(dispatchers)
  local closing = false
  return {
    request = function(method, _, callback)
      if method == 'initialize' then
        callback(nil, { capabilities = { hoverProvider = true } })
      elseif method == 'textDocument/hover' then
        _G.asked = (_G.asked or 0) + 1
      end
      return true, 1
    end,
    notify = function(method)
      _G.cancelled = _G.cancelled or method == '$/cancelRequest'
      return true
    end,
    is_closing = function() return closing end,
    terminate = function() closing = true; dispatchers.on_exit(0, 0) end,
  }
end })
"""
"""A server in the editor that never answers."""


async def test_a_cancelled_request_is_answered_and_cancelled_at_the_server(stage: Stage) -> None:
    (stage.project / "a.txt").write_text("one\n")
    await stage.edit("a.txt", SLOW)
    async with stage.client() as client:
        await client.initialize()
        it = {"textDocument": {"uri": (stage.project / "a.txt").as_uri()}}
        id_, answer = client.begin("textDocument/hover", **it, **position(0, 0))
        await stage.nvim.wait_for("return asked", timeout=20_000)
        client.notify("$/cancelRequest", id=id_)
        async with asyncio.timeout(10):
            with pytest.raises(FailedError) as raised:
                await answer
        assert raised.value.code == -32800
        await stage.nvim.wait_for("return cancelled")
        await stage.nvim.wait_for("return probe.executor().active == 0")


async def test_each_of_a_thousand_requests_gets_its_own_result(stage: Stage) -> None:
    async with stage.opened() as (client, it):
        await client.ask("textDocument/hover", **it, **PUT)
        answers = [
            client.begin("textDocument/definition", **it, **(PUT if n % 2 else position(3, 5)))[1]
            for n in range(1000)
        ]
        async with asyncio.timeout(60):
            found = await asyncio.gather(*answers)
        assert {tuple(lines(one)) for one in found[1::2]} == {(("shelf.py", 3),)}
        assert {tuple(lines(one)) for one in found[::2]} == {(("user.py", 3),)}


async def test_it_continues_after_restarts_and_crashes(stage: Stage, spawn_nvim: Spawn) -> None:
    async with stage.opened() as (client, it):

        async def works() -> None:
            assert lines(await client.ask("textDocument/definition", **it, **PUT)) == [("shelf.py", 3)]

        await works()
        await stage.nvim.request("nvim_command", "McpTools restart")
        await works()
        os.kill(await stage.bridge.pid(), signal.SIGKILL)
        await works()
        await stage.nvim.lua(lsp.STOP)
        await stage.nvim.stop()
        with pytest.raises(FailedError, match="Neovim"):
            await works()
        again = await support.start(spawn_nvim, init=lsp.ATTACH, cwd=stage.project)
        await works()
        await again.nvim.lua(lsp.STOP)


async def test_a_request_is_repeated_while_the_editor_is_blocked(stage: Stage) -> None:
    async with stage.opened() as (client, it):
        await client.ask("textDocument/hover", **it, **PUT)
        blocking = asyncio.create_task(stage.nvim.lua("vim.uv.sleep(5000)"))
        await asyncio.sleep(0.1)
        assert lines(await client.ask("textDocument/definition", **it, **PUT)) == [("shelf.py", 3)]
        await blocking


async def test_three_agents_share_one_server_and_need_little_memory(stage: Stage) -> None:
    async with contextlib.AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(stage.opened()) for _ in range(3)]
        for client, it in opened:
            for _ in range(100):
                await client.ask("textDocument/hover", **it, **PUT)
        assert max(memory_of(client.process.pid) for client, _ in opened) < 30_000  # kB
        assert await stage.nvim.lua("return #vim.lsp.get_clients()") == 1


async def test_a_client_that_checks_every_message_accepts_them(stage: Stage) -> None:
    client = LanguageClient("pygls", "1")
    published: asyncio.Future[types.PublishDiagnosticsParams] = asyncio.get_running_loop().create_future()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def publish(params: types.PublishDiagnosticsParams) -> None:
        published.set_result(params)

    await client.start_io(*lsp.PROGRAM, cwd=stage.project, env=stage.nvim.home.environment())
    try:
        await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
        client.initialized(types.InitializedParams())
        path = stage.project / "wrong.py"
        item = types.TextDocumentItem(path.as_uri(), "python", 1, path.read_text())
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        document, at = types.TextDocumentIdentifier(path.as_uri()), types.Position(0, 5)
        async with asyncio.timeout(30):
            hover = await client.text_document_hover_async(types.HoverParams(document, at))
            assert hover is not None
            found = await client.text_document_definition_async(types.DefinitionParams(document, at))
            assert isinstance(found, list)
            assert [one.range.start.line for one in found] == [0]
            symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
            assert [one.name for one in symbols or ()] == ["wrong"]
            report = await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(document))
            assert report.items == (await published).diagnostics
            assert len(report.items) == 1
        await client.shutdown_async(None)
        client.exit(None)
    finally:
        await client.stop()


async def test_its_token_opens_nothing_else_and_no_other_token_opens_it(stage: Stage) -> None:
    bridge = stage.bridge
    async with aiohttp.ClientSession() as http:
        agent = Agent(http, bridge.url, f"Bearer {lsp_token(bridge.token)}")
        await agent.initialize()
        listed = await agent.ask(request("tools/list"))
        assert {tool["name"] for tool in listed["result"]["tools"]} <= {"lsp_request"}
        assert "unknown" in json.dumps(await agent.ask(call("nvim_editor_eval_lua", code="return 1"))).lower()
        async with await agent.post(request("resources/list")) as response:
            assert "error" in await response.json()
        main = Agent(http, bridge.url, f"Bearer {bridge.token}")
        await main.initialize()
        wrong = call("lsp_request", method="textDocument/hover", params={})
        assert "unknown" in json.dumps(await main.ask(wrong)).lower()
        revoked = Agent(http, bridge.url, f"Bearer {lsp_token('f' * 64)}")
        async with await revoked.post(request("tools/list")) as response:
            assert response.status == 401


async def test_a_running_agent_gets_a_new_token_and_the_old_one_is_refused(stage: Stage) -> None:
    async with stage.opened() as (client, it), aiohttp.ClientSession() as http:
        await client.ask("textDocument/hover", **it, **PUT)
        await stage.nvim.lua(
            "local current = probe.current; assert(probe.identity.renew_token(current.launch.identity, 1))"
        )
        await stage.nvim.request("nvim_command", "McpTools restart")
        await stage.nvim.wait_for(
            "local one = mcp_tools.endpoint(); return one and one.token ~= ...", stage.bridge.token
        )
        await client.ask("textDocument/hover", **it, **PUT)
        bridge = await support.ready(stage.nvim)
        old = Agent(http, bridge.url, f"Bearer {lsp_token(stage.bridge.token)}")
        async with await old.post(request("tools/list")) as response:
            assert response.status == 401


async def test_a_foreign_process_at_the_port_gets_no_token_or_request(stage: Stage) -> None:
    received = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.read(65536))
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"status": "ok"} ')
        await writer.drain()
        received.extend(await reader.read(65536))
        writer.close()

    async with stage.opened() as (client, it):
        await client.ask("textDocument/hover", **it, **PUT)
        [file] = (stage.nvim.home.runtime / "mcp-tools").glob("*.json")
        content = file.read_text()
        await stage.nvim.request("nvim_command", "McpTools stop")
        await stage.nvim.wait_for("return require('mcp-tools').status().state == 'stopped'")
        async with await asyncio.start_server(serve, "127.0.0.1", stage.bridge.port):
            file.write_text(content)
            file.chmod(0o600)
            with pytest.raises(FailedError, match="does not answer"):
                await client.ask("textDocument/hover", **it, **PUT)
        file.unlink()
    assert b"/health?nonce=" in received
    assert b"uthorization" not in received
    assert b"hover" not in received


async def test_the_user_can_deny_it_by_configuration(spawn_nvim: Spawn) -> None:
    bridge = await support.start(spawn_nvim, setup="{ approval = { tools = { lsp_request = 'deny' } } }")
    project = bridge.nvim.home.make("cwd")
    (project / "a.py").write_text("x = 1\n")
    async with lsp.running(bridge.nvim.home, project) as client:
        await client.initialize()
        it = client.open(project / "a.py")
        with pytest.raises(FailedError, match="the user's configuration denies it"):
            await client.ask("textDocument/hover", **it, **position(0, 0))
    assert not await bridge.nvim.lua("return vim.fn.execute('messages'):find('lsp_request')"), (
        "it is reported"
    )
