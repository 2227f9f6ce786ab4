"""When the SDK is imported: with the first request that needs it, in a thread, since it takes about a second.

Receives: how the kernel is built. Sends: the kernel. Does not know about: HTTP.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .kernel import Kernel


class Loader:
    """Makes the kernel once.

    Args:
        build: makes it, once the SDK is there.
    """

    def __init__(self, build: Callable[[], Kernel]) -> None:
        self._build = build
        self._loading: asyncio.Task[Kernel] | None = None
        self.kernel: Kernel | None = None

    async def load(self) -> Kernel:
        """The kernel, as soon as it is there; all who wait share one import, a failed one is tried again."""
        if self.kernel is None:
            return await asyncio.shield(self.begin())
        return self.kernel

    def begin(self) -> asyncio.Task[Kernel]:
        """Starts the import, unless it runs or has succeeded."""
        if self._loading is None or (self._loading.done() and self.kernel is None):
            self._loading = asyncio.get_running_loop().create_task(self._load())
        return self._loading

    def stop(self) -> None:
        """Ends what the server keeps open."""
        if self.kernel is not None:
            self.kernel.stop()

    async def _load(self) -> Kernel:
        await asyncio.to_thread(_import)
        self.kernel = self._build()
        return self.kernel


def _import() -> None:
    if f"{__package__}.server" in sys.modules:
        return
    from . import server  # noqa: F401 - it is the import that takes long

    # The SDK is 10^5 objects that never go away; walking them in every full collection costs 50 ms at p99.
    gc.collect()
    gc.freeze()
