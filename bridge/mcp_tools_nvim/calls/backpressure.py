"""Back pressure: fetches large results from Neovim one at a time, and only while there is room in memory.

The bytes in use are computed from existing objects, so nothing has to be released explicitly.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable

from ..values import Outcome

MAX_HELD_BYTES = 48 * 1024 * 1024
"""Maximum bytes of results and unsent answers before another large result is fetched."""

SMALL, RESERVE = 1024 * 1024, 16 * 1024 * 1024
"""Results up to SMALL have their own queue and RESERVE additional bytes. So clients that do not read their
large results do not delay the small results of others."""

CHECK_SECONDS = 1.0
"""Interval of the checks for room, since buffers may drop expired data without a notification."""


class Backpressure:
    """Limits the memory of results and answers.

    Args:
        limit: see `MAX_HELD_BYTES`.
        check_seconds: see `CHECK_SECONDS`.
    """

    def __init__(self, limit: int = MAX_HELD_BYTES, check_seconds: float = CHECK_SECONDS) -> None:
        self.limit = limit
        self._check_seconds = check_seconds
        self._lanes = asyncio.Lock(), asyncio.Lock()
        self._buffers: list[tuple[Callable[[], int], Callable[[int], None]]] = []
        self._noted: dict[int, tuple[weakref.ref[Outcome], int]] = {}
        self._freed = asyncio.Event()

    def watch(self, held: Callable[[], int], free: Callable[[int], None]) -> None:
        """Adds a buffer of data for clients.

        Args:
            held: returns its bytes.
            free: drops the given number of bytes if it can; nothing if the number is not positive.
        """
        self._buffers.append((held, free))

    def note(self, outcome: Outcome, size: int) -> None:
        """Counts a fetched result as long as it is referenced."""
        key = id(outcome)

        def gone(_: weakref.ref[Outcome]) -> None:
            del self._noted[key]
            self.notify_freed()

        self._noted[key] = weakref.ref(outcome, gone), size

    def notify_freed(self) -> None:
        """Notifies waiting calls that a buffer has fewer bytes."""
        self._freed.set()

    @property
    def held(self) -> int:
        """Bytes of all results and answers."""
        return sum(size for _, size in self._noted.values()) + sum(held() for held, _ in self._buffers)

    async def run_when_room(self, size: int, take: Callable[[], Awaitable[None]]) -> None:
        """Waits for room for a result of `size` bytes, then awaits `take`; one at a time.

        A result above the limit has room when nothing else is held.
        """
        small = size <= SMALL
        limit = self.limit + (RESERVE if small else 0)
        async with self._lanes[small]:
            while (held := self.held) and held + size > limit:
                self._freed.clear()
                left = held
                for _, free in self._buffers:
                    free(left + size - limit)
                    left = self.held
                if left == held:
                    await self._wait_for_change()
            await take()

    async def _wait_for_change(self) -> None:
        """Waits for `notify_freed`, at most `check_seconds`."""
        try:
            async with asyncio.timeout(self._check_seconds):
                await self._freed.wait()
        except TimeoutError:
            pass
