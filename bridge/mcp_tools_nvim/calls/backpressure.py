"""Back pressure: large results are taken from the editor one after the other, while there is room for them.

What counts is what is held, not what was granted: nothing has to be given back, so nothing can be forgotten.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable

from ..values import Outcome

ROOM_BYTES = 48 * 1024 * 1024
"""What all results and answers on their way to clients may hold before a further large result is taken."""

SMALL, RESERVE = 1024 * 1024, 16 * 1024 * 1024
"""Results up to the first size have turns of their own and so much more room: a few that are far larger,
which nobody reads, must not hold up those of everybody else."""

LOOK_SECONDS = 1.0
"""After so long without word it is looked whether there is room: what has waited for a client for long enough
may be taken away, and no holder tells when that is."""


class Backpressure:
    """See the head of this file.

    Args:
        limit: see `ROOM_BYTES`.
        look_seconds: see `LOOK_SECONDS`.
    """

    def __init__(self, limit: int = ROOM_BYTES, look_seconds: float = LOOK_SECONDS) -> None:
        self.limit = limit
        self._look_seconds = look_seconds
        self._lanes = asyncio.Lock(), asyncio.Lock()
        self._holders: list[tuple[Callable[[], int], Callable[[int], None]]] = []
        self._noted: dict[int, tuple[weakref.ref[Outcome], int]] = {}
        self._word = asyncio.Event()

    def watch(self, held: Callable[[], int], ease: Callable[[int], None]) -> None:
        """Counts what somebody holds for clients.

        Args:
            held: how many bytes.
            ease: asked to let go of so many, as far as it may.
        """
        self._holders.append((held, ease))

    def note(self, outcome: Outcome, size: int) -> None:
        """A result has arrived; it counts as long as anybody has it."""
        key = id(outcome)

        def gone(_: weakref.ref[Outcome]) -> None:
            del self._noted[key]
            self.let_go()

        self._noted[key] = weakref.ref(outcome, gone), size

    def let_go(self) -> None:
        """A holder has less than before: who waits for room looks whether that is enough."""
        self._word.set()

    @property
    def held(self) -> int:
        """Bytes of all results and answers on their way."""
        return sum(size for _, size in self._noted.values()) + sum(held() for held, _ in self._holders)

    async def turn(self, size: int, take: Callable[[], Awaitable[None]]) -> None:
        """Waits for room for a result of `size` bytes, and takes it; the next one waits until that is done.

        One that is larger than all room is taken when nothing else is held.
        """
        small = size <= SMALL
        limit = self.limit + (RESERVE if small else 0)
        async with self._lanes[small]:
            while (held := self.held) and held + size > limit:
                self._word.clear()
                for _, ease in self._holders:
                    ease(held + size - limit)
                if self.held == held:
                    await self._hear()
            await take()

    async def _hear(self) -> None:
        """Waits for word of a holder, for so long."""
        try:
            async with asyncio.timeout(self._look_seconds):
                await self._word.wait()
        except TimeoutError:
            pass
