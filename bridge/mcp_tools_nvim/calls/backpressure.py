"""Back pressure: fetches large results from Neovim one at a time, while the total size is below a limit.

The total is computed from what is in memory, so nothing has to be released explicitly.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable

from ..values import Outcome

MAX_HELD_BYTES = 48 * 1024 * 1024
"""Maximum bytes of results and unsent answers before another large result is fetched."""

SMALL, RESERVE = 1024 * 1024, 16 * 1024 * 1024
"""Results up to the first size have their own queue and additional bytes, so that a few larger ones that
are not read do not delay those of other clients."""

CHECK_SECONDS = 1.0
"""Interval of checks for room without a notification, since holders may drop data after a time."""


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
        self._holders: list[tuple[Callable[[], int], Callable[[int], None]]] = []
        self._noted: dict[int, tuple[weakref.ref[Outcome], int]] = {}
        self._freed = asyncio.Event()

    def watch(self, held: Callable[[], int], ease: Callable[[int], None]) -> None:
        """Adds a holder of data for clients.

        Args:
            held: returns its bytes.
            ease: drops at least a number of bytes if it can; nothing if that is not positive.
        """
        self._holders.append((held, ease))

    def note(self, outcome: Outcome, size: int) -> None:
        """Counts a fetched result as long as it is referenced."""
        key = id(outcome)

        def gone(_: weakref.ref[Outcome]) -> None:
            del self._noted[key]
            self.notify_freed()

        self._noted[key] = weakref.ref(outcome, gone), size

    def notify_freed(self) -> None:
        """Notifies waiting calls that a holder has fewer bytes."""
        self._freed.set()

    @property
    def held(self) -> int:
        """Bytes of all results and answers."""
        return sum(size for _, size in self._noted.values()) + sum(held() for held, _ in self._holders)

    async def turn(self, size: int, take: Callable[[], Awaitable[None]]) -> None:
        """Waits for room for a result of `size` bytes, then awaits `take`; one at a time.

        A result above the limit is fetched when nothing else is held.
        """
        small = size <= SMALL
        limit = self.limit + (RESERVE if small else 0)
        async with self._lanes[small]:
            while (held := self.held) and held + size > limit:
                self._freed.clear()
                left = held
                for _, ease in self._holders:
                    ease(left + size - limit)
                    left = self.held
                if left == held:
                    await self._wait_for_change()
            await take()

    async def _wait_for_change(self) -> None:
        """Waits for a notification of a holder, at most `check_seconds`."""
        try:
            async with asyncio.timeout(self._check_seconds):
                await self._freed.wait()
        except TimeoutError:
            pass
