"""An event loop in its own thread, for synchronous callers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

Post = Callable[[Callable[[], None]], None]
"""Runs a function in the waiting thread."""

CHECK_EVERY = 0.1
"""Seconds between checks of a threading event, which cannot wake an event loop."""
CANCEL_WITHIN = 1.0
"""Maximum seconds for a cancelled call to notify Neovim."""


class Portal:
    """Runs coroutines for any number of waiting threads."""

    def __init__(self) -> None:
        self._closed = False
        self._opening = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mcp-tools client", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[Post], Coroutine[Any, Any, T]]) -> T:
        """Runs `work` and waits for its end. An exception in the waiting thread (Ctrl-C) cancels it.

        Raises:
            RuntimeError: the portal is closed, or was closed meanwhile.
        """
        with self._opening:
            if self._closed:
                raise _closed()
            run = self._begin(work)
        try:
            return run()
        except asyncio.CancelledError:
            if self._closed:
                raise _closed() from None
            raise

    def _begin(self, work: Callable[[Post], Coroutine[Any, Any, T]]) -> Callable[[], T]:
        """Starts `work`; returns a function that waits for its end."""
        inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            task = self._loop.create_task(work(inbox.put))
            task.add_done_callback(lambda _: inbox.put(None))
            tasks.append(task)

        def cancel() -> None:
            for task in tasks:
                task.cancel()

        def run() -> T:
            try:
                while (job := inbox.get()) is not None:
                    job()
            except BaseException:
                self._loop.call_soon_threadsafe(cancel)
                _await_end(inbox)  # so that Neovim is notified
                raise
            return tasks[0].result()

        self._loop.call_soon_threadsafe(begin)
        return run

    def close(self) -> None:
        """Ends running work, the loop and its thread."""
        with self._opening:  # later work is refused, since nothing would end it
            self._closed = True
            run = self._begin(lambda _: _cancel_the_others())
        run()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _closed() -> RuntimeError:
    return RuntimeError("this client is closed")


async def _cancel_the_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others)


def call_back(post: Post, callback: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Returns a coroutine function that runs `callback` in the waiting thread."""

    async def ask(*values: Any) -> Any:
        answer: Future[Any] = Future()

        def job() -> None:
            if not answer.set_running_or_notify_cancel():
                return  # cancelled
            try:
                answer.set_result(callback(*values))
            except Exception as fault:  # noqa: BLE001 - boundary: raised in the coroutine
                answer.set_exception(fault)

        post(job)
        return await asyncio.wrap_future(answer)

    return ask


async def unless(event: threading.Event, work: Coroutine[Any, Any, T], otherwise: T) -> T:
    """Returns the result of `work`; when the event is set first, cancels it and returns `otherwise`."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        while not task.done() and not event.is_set():
            await asyncio.wait({task}, timeout=CHECK_EVERY)
        if task.done():
            return task.result()
    finally:
        task.cancel()
    await asyncio.wait({task})
    return otherwise


def is_in_a_loop() -> bool:
    """Whether an event loop is running in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _await_end(inbox: SimpleQueue[Callable[[], None] | None]) -> None:
    end = time.monotonic() + CANCEL_WITHIN
    with contextlib.suppress(Empty):
        while inbox.get(timeout=max(0.0, end - time.monotonic())) is not None:
            pass
