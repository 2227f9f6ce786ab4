"""An editor in memory, the calls on it, and one observer."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp_tools_nvim.calls.runner import Calls
from mcp_tools_nvim.errors import Code
from mcp_tools_nvim.values import CallRequest, ClientInfo, Outcome, Sender, Settings
from tests.support.memory import MemoryEditor, Seen

SENDER = Sender(ClientInfo("test", "1"))


class Bench:
    """Calls from one client."""

    def __init__(self, **settings: Any) -> None:
        self.use(MemoryEditor(Settings(**settings)))
        self.seen = Seen()
        self.loop = asyncio.get_running_loop()

    def use(self, editor: MemoryEditor) -> None:
        """Sends the calls to this editor."""
        self.editor = editor
        self.calls = Calls(editor, editor.settings, "boot")

    async def run(self, name: str, callback: Any = None, /, **arguments: Any) -> Outcome:
        """The outcome of a call; `callback` answers its questions."""
        return await self.calls.run(CallRequest(name, arguments, SENDER), self.seen, callback)

    def start(self, name: str, callback: Any = None, /, **arguments: Any) -> asyncio.Task[Outcome]:
        return asyncio.ensure_future(self.run(name, callback, **arguments))


def code(outcome: Any) -> Code | None:
    assert isinstance(outcome, Outcome)
    return outcome.error and outcome.error.code
