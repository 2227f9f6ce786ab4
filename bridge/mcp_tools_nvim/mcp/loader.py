"""Imports the SDK and builds the kernel for the first request that needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import sdk

if TYPE_CHECKING:
    from .kernel import Kernel


class Loader:
    """Builds the kernel once.

    Args:
        build: builds it after the import of the SDK.
    """

    def __init__(self, build: Callable[[], Kernel]) -> None:
        self._build = build
        self._loading: asyncio.Task[Kernel] | None = None
        self.kernel: Kernel | None = None

    async def load(self) -> Kernel:
        """Returns the kernel, waiting for the import, which all callers share; retries a failed one."""
        if self.kernel is None:
            return await asyncio.shield(self.begin())
        return self.kernel

    def begin(self) -> asyncio.Task[Kernel]:
        """Starts the import, unless it is running or has succeeded."""
        if self._loading is None or (self._loading.done() and self.kernel is None):
            self._loading = asyncio.get_running_loop().create_task(self._load())
        return self._loading

    def stop(self) -> None:
        """Ends the subscription streams."""
        if self.kernel is not None:
            self.kernel.stop()

    async def _load(self) -> Kernel:
        await sdk.import_sdk(f"{__package__}.server")
        self.kernel = self._build()
        return self.kernel
