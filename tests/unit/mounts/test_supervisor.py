"""Connections to mounted servers: Neovim that does not answer, timeouts, servers that do not read."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from mcp import MCPError

from mcp_tools_nvim.mounts import supervisor as module
from mcp_tools_nvim.mounts.http import UNUSED_ANSWER_TIMEOUT, _set_timeout
from mcp_tools_nvim.mounts.mount import Mount
from mcp_tools_nvim.mounts.session import MAX_UNREAD, Dispatcher
from mcp_tools_nvim.mounts.supervisor import MountedServer
from tests.support.mounts import RAW
from tests.support.served import eventually

from .editor import Editor


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EDITOR_RETRY", 0.02)


@pytest_asyncio.fixture
async def editor() -> Editor:
    return Editor()


@pytest_asyncio.fixture
async def start(editor: Editor) -> AsyncIterator[Any]:
    started: list[MountedServer] = []

    def run(how: str) -> MountedServer:
        mount = Mount("m", command=(sys.executable, RAW, how), start_timeout=10.0)
        started.append(MountedServer(mount, editor))  # type: ignore[arg-type]
        return started[-1]

    yield run
    for each in started:
        task = each.end()
        each.kill()
        await eventually(task.done)


async def test_an_editor_that_does_not_answer_ends_no_connection(editor: Editor, start: Any) -> None:
    editor.answers = False
    start("tools")
    await eventually(lambda: len(editor.sizes) > 3, 10)
    assert {report["state"] for report in editor.reports} == {"connecting"}
    assert "Neovim does not answer" in editor.reports[-1]["error"]
    editor.answers = True
    await eventually(lambda: editor.reports[-1]["state"] == "ready")
    assert "m__good" in editor.tools[-1]
    assert (editor.reports[-1]["restarts"], editor.reports[-1]["error"]) == (0, "")


async def test_a_changed_list_is_registered_once_the_editor_answers(editor: Editor, start: Any) -> None:
    running = start("tools")
    await eventually(lambda: editor.reports and editor.reports[-1]["state"] == "ready", 10)
    editor.answers, before = False, len(editor.sizes)
    running._definitions._registered.clear()  # as if all of them had changed
    running._changed(("tools/list",))
    await eventually(lambda: len(editor.sizes) > before + 2, 10)
    assert "Neovim does not answer" in editor.reports[-1]["error"]
    editor.answers = True
    editor.tools.clear()
    await eventually(lambda: editor.tools and "m__good" in editor.tools[-1])
    await eventually(lambda: editor.reports[-1]["error"] == "")
    assert editor.reports[-1]["restarts"] == 0


NAMED = {"arguments": {"method": "notifications/custom"}}


@pytest.mark.parametrize(
    ("method", "message", "bounded"),
    [
        ("POST", {"method": "notifications/cancelled", "params": {"requestId": 1}}, True),
        ("POST", {"id": 1, "method": "tools/call", "params": {"name": "x"}}, False),
        ("POST", {"id": 1, "method": "tools/call", "params": NAMED}, False),
        ("POST", {"id": 1, "result": NAMED}, False),
        ("DELETE", None, True),
    ],
)
async def test_only_an_unused_answer_has_a_read_timeout(method: str, message: Any, bounded: bool) -> None:
    content = b"" if message is None else json.dumps({"jsonrpc": "2.0", **message}).encode()
    request = httpx2.Request(method, "http://localhost/mcp", content=content)
    await _set_timeout(request)
    assert request.extensions.get("timeout") == ({"read": UNUSED_ANSWER_TIMEOUT} if bounded else None)


class FullStream:
    """A stream with too much unread data."""

    unread = MAX_UNREAD + 1

    async def send(self, item: Any) -> None:
        """Must not be called."""
        raise AssertionError(item)


async def test_a_request_to_a_server_that_does_not_read_is_refused() -> None:
    with pytest.raises(MCPError, match="does not read"):
        await Dispatcher((None, FullStream()), 1.0).send_raw_request("tools/call", {"name": "x"})
