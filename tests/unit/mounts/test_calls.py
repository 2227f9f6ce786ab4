"""Calls of a mounted server: each ends once, and each question is put to the right client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from mcp import MCPError

from mcp_tools_nvim.mounts.calls import AMBIGUOUS, MountCalls
from mcp_tools_nvim.mounts.mount import Mount

TARGET = {"kind": "tool", "name": "m__t"}


class Editor:
    """Hears of calls."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, Any]] = []

    def remote(self, verb: str, call_id: str, *args: Any) -> None:
        self.told.append((verb, call_id, *args))


class Connection:
    """One that is being made, until it `came`: to nothing."""

    def __init__(self) -> None:
        self.came = asyncio.Event()

    async def session(self) -> None:
        await self.came.wait()

    def unavailable_reason(self) -> str:
        return "there is none"


@pytest.fixture
def forgotten() -> list[str]:
    return []


async def made() -> tuple[Editor, Connection, MountCalls]:
    editor, connection = Editor(), Connection()
    return editor, connection, MountCalls(Mount("m"), editor, connection)  # type: ignore[arg-type]


async def settled() -> None:
    """All that was due has run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_cancelled_before_it_began(forgotten: list[str]) -> None:
    """In the same breath in which it came."""
    editor, _, calls = await made()
    calls.begin("1", TARGET, {}, {"session": "a"}, forgotten.append)
    calls.cancel("1")
    await settled()
    assert forgotten == ["1"]
    assert [(verb, id_) for verb, id_, *_ in editor.told] == [("remote_result", "1")]
    calls.end_all("never mind")
    assert len(editor.told) == 1


async def test_a_connection_that_is_lost(forgotten: list[str]) -> None:
    """A call that waited for it did not run, and is not told that it did."""
    editor, connection, calls = await made()
    calls.begin("1", TARGET, {}, {}, forgotten.append)
    await settled()
    calls.end_all("lost while the tool ran", sent=True)
    connection.came.set()
    await settled()
    ((_, _, outcome),) = editor.told
    assert (outcome["code"], outcome["message"]) == ("busy", "there is none")
    assert forgotten == ["1"]


async def test_a_mount_that_is_taken_away(forgotten: list[str]) -> None:
    """All of its calls end at once."""
    editor, _, calls = await made()
    for id_ in ("1", "2"):
        calls.begin(id_, TARGET, {}, {}, forgotten.append)
    await settled()
    calls.end_all("taken away")
    assert [outcome["message"] for _, _, outcome in editor.told] == ["taken away", "taken away"]
    await settled()
    assert sorted(forgotten) == ["1", "2"]
    assert len(editor.told) == 2


async def asked(sessions: Sequence[str | None]) -> str:
    """The call that gets a question while calls of these sessions run."""
    editor, _, calls = await made()
    for i, session in enumerate(sessions):
        calls.begin(str(i), {"name": "x"}, {}, {"session": session} if session else {}, lambda _: None)
    question = asyncio.create_task(calls.ask("elicitation/create", {}))
    await settled()
    if question.done():
        await question
    question.cancel()
    calls.end_all("over")
    return next(call for verb, call, *_ in editor.told if verb == "remote_ask")


@pytest.mark.parametrize("sessions", [["a"], [None], ["a", "a"]])
async def test_one_client_is_asked(sessions: Sequence[str | None]) -> None:
    """By its last call."""
    assert await asked(sessions) == str(len(sessions) - 1)


@pytest.mark.parametrize("sessions", [["a", "b"], ["a", None], [None, None], []])
async def test_nobody_is_asked_for_another(sessions: Sequence[str | None]) -> None:
    """Two without a session may be two."""
    with pytest.raises(MCPError, match=AMBIGUOUS):
        await asked(sessions)
