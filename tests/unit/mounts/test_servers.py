"""A mounted server keeps its connection while the editor does not answer."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from mcp_tools_nvim.errors import NoAnswerError
from mcp_tools_nvim.mounts import servers as module
from mcp_tools_nvim.mounts.mount import Mount
from mcp_tools_nvim.mounts.servers import MountedServer
from tests.support.mounts import RAW
from tests.support.served import eventually

pytestmark = pytest.mark.asyncio


class Editor:
    """Takes definitions while it answers, and keeps what is reported."""

    def __init__(self) -> None:
        self.answers = True
        self.asked = 0
        self.tools: list[str] = []
        self.reports: list[dict[str, Any]] = []

    async def provide(
        self, provider: str, kind: str, definitions: str, *, first: bool, last: bool
    ) -> list[str]:
        self.asked += 1
        if not self.answers:
            raise NoAnswerError("no answer")
        if kind == "tools":
            self.tools = [each["name"] for each in json.loads(definitions)]
        return []

    def report(self, kind: str, data: dict[str, Any]) -> None:
        self.reports.append(data)

    def remote(self, verb: str, *args: Any) -> None:
        pass


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
    await eventually(lambda: editor.asked > 3, 10)
    assert {report["state"] for report in editor.reports} == {"connecting"}
    assert "Neovim does not answer" in editor.reports[-1]["error"]
    editor.answers = True
    await eventually(lambda: editor.reports[-1]["state"] == "ready")
    assert "m__good" in editor.tools
    assert (editor.reports[-1]["restarts"], editor.reports[-1]["error"]) == (0, "")


async def test_a_changed_list_is_registered_once_the_editor_answers(editor: Editor, start: Any) -> None:
    running = start("tools")
    await eventually(lambda: editor.reports and editor.reports[-1]["state"] == "ready", 10)
    editor.answers, before = False, editor.asked
    running._definitions._registered.clear()  # as if all of them had changed
    running._changed(("tools/list",))
    await eventually(lambda: editor.asked > before + 2, 10)
    assert "Neovim does not answer" in editor.reports[-1]["error"]
    editor.answers, editor.tools = True, []
    await eventually(lambda: "m__good" in editor.tools)
    await eventually(lambda: editor.reports[-1]["error"] == "")
    assert editor.reports[-1]["restarts"] == 0
