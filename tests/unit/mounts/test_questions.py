"""Whose a question of a server is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from mcp import MCPError

from mcp_tools_nvim.mounts.calls import AMBIGUOUS, MountCalls
from mcp_tools_nvim.mounts.mount import Mount
from mcp_tools_nvim.mounts.session import MountSession


class Editor:
    """Hears of what is passed on."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()

    def remote(self, verb: str, *args: Any) -> None:
        """Something of a call."""
        self.told.put_nowait((verb, *args))


class Away:
    """A server that never comes."""

    async def session(self) -> MountSession | None:
        """None yet."""
        return await asyncio.get_running_loop().create_future()

    def unavailable_reason(self) -> str:
        """Nobody asks."""
        return ""


async def asked(sessions: Sequence[str | None]) -> str:
    """The call that is told of a question while calls of these sessions run."""
    editor = Editor()
    calls = MountCalls(Mount("m"), editor, Away())  # type: ignore[arg-type] # of an editor it needs no more
    for i, session in enumerate(sessions):
        calls.begin(str(i), {"name": "x"}, {}, {"session": session} if session else {}, lambda _: None)
    question = asyncio.create_task(calls.ask("elicitation/create", {}))
    told = asyncio.create_task(editor.told.get())
    await asyncio.wait({question, told}, return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if question.done():
        await question
    question.cancel()
    calls.end_all("over")
    _, call, *_ = told.result()
    return str(call)


@pytest.mark.parametrize("sessions", [["a"], [None], ["a", "a"]])
async def test_one_client_is_asked(sessions: Sequence[str | None]) -> None:
    """By its last call."""
    assert await asked(sessions) == str(len(sessions) - 1)


@pytest.mark.parametrize("sessions", [["a", "b"], ["a", None], [None, None], []])
async def test_nobody_is_asked_for_another(sessions: Sequence[str | None]) -> None:
    """Two without a session may be two."""
    with pytest.raises(MCPError, match=AMBIGUOUS):
        await asked(sessions)
