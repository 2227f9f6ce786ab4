"""The thread that waits, and the loop that works for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from bridge.client.portal import Portal, Post, call_back


@pytest.fixture
def portal() -> Iterator[Portal]:
    opened = Portal()
    yield opened
    opened.close()


@pytest.mark.parametrize("raises", [False, True])
def test_a_question_withdrawn_while_it_is_answered(portal: Portal, raises: bool) -> None:
    """Nobody wants the answer any more, whatever it is; the call goes on to its own end."""
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


def test_a_question_withdrawn_before_it_is_asked(portal: Portal) -> None:
    """It is not asked at all."""
    asked: list[str] = []
    withdrawn = threading.Event()

    async def work(post: Post) -> str:
        post(lambda: withdrawn.wait(5) and None)  # what the thread that waits is busy with
        question = asyncio.ensure_future(call_back(post, lambda: asked.append("?"))())
        await asyncio.sleep(0)
        question.cancel()
        await asyncio.wait({question})
        withdrawn.set()
        return "ended otherwise"

    assert portal.run(work) == "ended otherwise"
    assert asked == []
