"""Calls of a mounted server: each ends once, and questions reach the right client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from mcp import MCPError

from mcp_tools_nvim.mounts.calls import AMBIGUOUS, MountCalls
from mcp_tools_nvim.mounts.mount import Mount

from .editor import Editor

TARGET = {"kind": "tool", "name": "m__t"}


class Connection:
    """A connection that fails once `failed` is set."""

    def __init__(self) -> None:
        self.failed = asyncio.Event()

    async def session(self) -> None:
        await self.failed.wait()

    def unavailable_reason(self) -> str:
        return "there is none"


@pytest.fixture
def ended() -> list[str]:
    return []


async def made() -> tuple[Editor, Connection, MountCalls]:
    editor, connection = Editor(), Connection()
    return editor, connection, MountCalls(Mount("m"), editor, connection)  # type: ignore[arg-type]


async def settled() -> None:
    """Runs what is scheduled."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_call_cancelled_before_it_began_ends_once(ended: list[str]) -> None:
    editor, _, calls = await made()
    calls.begin("1", TARGET, {}, {"session": "a"}, ended.append)
    calls.cancel("1")
    await settled()
    assert ended == ["1"]
    assert [(verb, id_) for verb, id_, *_ in editor.messages] == [("remote_result", "1")]
    calls.end_all("unused")
    assert len(editor.messages) == 1


async def test_a_call_that_waits_for_a_lost_connection_did_not_run(ended: list[str]) -> None:
    editor, connection, calls = await made()
    calls.begin("1", TARGET, {}, {}, ended.append)
    await settled()
    calls.end_all("lost while the tool ran", sent=True)
    connection.failed.set()
    await settled()
    ((_, _, outcome),) = editor.messages
    assert (outcome["code"], outcome["message"]) == ("busy", "there is none")
    assert ended == ["1"]


async def test_removing_a_mount_ends_its_calls(ended: list[str]) -> None:
    editor, _, calls = await made()
    for id_ in ("1", "2"):
        calls.begin(id_, TARGET, {}, {}, ended.append)
    await settled()
    calls.end_all("removed")
    assert [outcome["message"] for _, _, outcome in editor.messages] == ["removed"] * 2
    await settled()
    assert sorted(ended) == ["1", "2"]
    assert len(editor.messages) == 2


async def asked(sessions: Sequence[str | None]) -> str:
    """Returns the call that is asked while calls of these sessions run."""
    editor, _, calls = await made()
    for i, session in enumerate(sessions):
        calls.begin(str(i), {"name": "x"}, {}, {"session": session} if session else {}, lambda _: None)
    question = asyncio.create_task(calls.ask("elicitation/create", {}))
    await settled()
    if question.done():
        await question
    question.cancel()
    calls.end_all("over")
    return next(call for verb, call, *_ in editor.messages if verb == "remote_ask")


@pytest.mark.parametrize("sessions", [["a"], [None], ["a", "a"]])
async def test_a_question_reaches_the_last_call_of_the_only_session(sessions: Sequence[str | None]) -> None:
    assert await asked(sessions) == str(len(sessions) - 1)


@pytest.mark.parametrize("sessions", [["a", "b"], ["a", None], [None, None], []])
async def test_with_several_sessions_no_client_is_asked(sessions: Sequence[str | None]) -> None:
    with pytest.raises(MCPError, match=AMBIGUOUS):
        await asked(sessions)
