"""An event loop whose clock jumps: whenever nothing is ready, it is at once as late as the next timer.

So a test of a minute takes a millisecond, and its times are exact. For code that reads `loop.time()` only.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("deadlock: nothing is ready and no timer is set")
            self.loop.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; `now` is its clock in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` on a virtual clock."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def virtual(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Makes a coroutine a test on virtual time."""

    def wrapped() -> None:
        run(test())

    wrapped.__name__, wrapped.__doc__, wrapped.__module__ = test.__name__, test.__doc__, test.__module__
    return wrapped
