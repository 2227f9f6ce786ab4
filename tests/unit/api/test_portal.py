"""The waiting thread and the event loop that works for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from mcp_tools_nvim.api.portal import Portal, Post, call_back


@pytest.fixture
def portal() -> Iterator[Portal]:
    opened = Portal()
    yield opened
    opened.close()


@pytest.mark.parametrize("raises", [False, True])
def test_a_question_withdrawn_while_it_is_answered_is_ignored(portal: Portal, raises: bool) -> None:
    asked, withdrawn = threading.Event(), threading.Event()

    def answer() -> str:
        asked.set()
        assert withdrawn.wait(5)
        if raises:
            raise LookupError("too late")
        return "too late"

    async def work(post: Post) -> str:
        question = asyncio.ensure_future(call_back(post, answer)())
        await asyncio.to_thread(asked.wait, 5)
        question.cancel()
        await asyncio.wait({question})
        withdrawn.set()
        return "ended otherwise"

    assert portal.run(work) == "ended otherwise"


def test_a_question_withdrawn_before_it_is_asked_is_not_asked(portal: Portal) -> None:
    asked: list[str] = []
    withdrawn = threading.Event()

    async def work(post: Post) -> str:
        post(lambda: withdrawn.wait(5) and None)  # keeps the waiting thread busy
        question = asyncio.ensure_future(call_back(post, lambda: asked.append("?"))())
        await asyncio.sleep(0)
        question.cancel()
        await asyncio.wait({question})
        withdrawn.set()
        return "ended otherwise"

    assert portal.run(work) == "ended otherwise"
    assert asked == []


def test_a_call_during_the_close_is_refused() -> None:
    portal = Portal()
    begun = threading.Event()
    refused: list[str] = []

    async def last() -> None:
        await asyncio.sleep(60)

    def late() -> None:
        try:
            portal.run(lambda _: last())
        except RuntimeError as fault:
            refused.append(str(fault))

    async def first() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            thread.start()
            await asyncio.sleep(0.1)

    def early() -> None:
        with pytest.raises(RuntimeError, match="this client is closed"):
            portal.run(lambda _: first())

    thread, other = threading.Thread(target=late, daemon=True), threading.Thread(target=early, daemon=True)
    other.start()
    assert begun.wait(5)
    portal.close()
    for each in (thread, other):
        each.join(5)
        assert not each.is_alive()
    assert refused == ["this client is closed"]
