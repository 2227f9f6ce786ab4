"""Imports the mount modules and the SDK when the first mount is configured; queues earlier events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .. import sdk
from . import mount
from .outcomes import error_outcome

if TYPE_CHECKING:
    from .servers import MountedServers

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""Seconds until a failed import is retried."""


class MountEditor(Protocol):
    """What mounts need of Neovim; `NvimEditor` implements it."""

    def on_remote(self, callback: Callable[[str, Sequence[Any]], None]) -> None:
        """Adds a callback `(event, args)` for mounts and their calls."""

    def provide(
        self, provider: str, kind: str, definitions: str, *, first: bool, last: bool
    ) -> Awaitable[list[str]]:
        """Registers a part of a list of definitions (JSON text); returns why some were refused.

        The last part removes earlier definitions that are in none of the parts.
        """

    def withdraw(self, provider: str) -> None:
        """Removes all definitions of a provider."""

    def remote(self, verb: str, *args: Any) -> None:
        """Reports an event of a running call (`remote_result`, `remote_progress`, …)."""

    def report(self, kind: str, data: dict[str, Any]) -> None:
        """Reports a state of the bridge."""


class Mounts:
    """All mounts; imports their modules when needed.

    Args:
        editor: names the mounts.
        hide: receives each secret, which must not be logged.
    """

    def __init__(self, editor: MountEditor, hide: Callable[[str], None]) -> None:
        self._editor = editor
        self._hide = hide
        self._hidden: set[str] = set()
        self._wanted: tuple[mount.Mount, ...] = ()
        self._servers: MountedServers | None = None
        self._loading: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None
        self._closed = False
        self._error = ""
        self._early: list[tuple[str, Sequence[Any]]] = []
        editor.on_remote(self._on_event)

    def end(self, within: float) -> None:
        """Starts to end all mounts; they have `within` seconds."""
        self._closed = True
        if self._retry is not None:
            self._retry.cancel()
        if self._servers is not None and self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._servers.close(within))

    def kill(self) -> None:
        """Kills the processes of mounted servers."""
        if self._servers is not None:
            self._servers.kill()

    async def ended(self) -> None:
        """Waits until all mounts have ended."""
        if self._ending is not None:
            await self._ending

    def _on_event(self, event: str, args: Sequence[Any]) -> None:
        if event == "mounts":
            self._want(mount.parse_mounts(args[0]))
        elif self._servers is not None:
            self._servers.on_event(event, args)
        elif self._retry is not None and event == "remote_call":
            self._refuse(args[0])
        else:
            self._early.append((event, args))

    def _want(self, mounts: tuple[mount.Mount, ...]) -> None:
        for each in mounts:
            for secret in {*each.secrets} - self._hidden:
                self._hidden.add(secret)
                self._hide(secret)
        self._wanted = mounts
        if self._servers is not None:
            self._servers.want(mounts)
        elif mounts:
            self._load()

    def _load(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._servers is None and self._loading is None and not self._closed:
            self._loading = asyncio.get_running_loop().create_task(self._import())

    async def _import(self) -> None:
        try:
            await sdk.import_sdk(f"{__package__}.servers")
            from .servers import MountedServers

            if not self._closed:
                self._servers = MountedServers(self._editor)
                self._servers.want(self._wanted)
                for event, args in self._early:
                    self._servers.on_event(event, args)
        except Exception as fault:
            logger.exception("cannot load mounts; retrying in %g s", RETRY_SECONDS)
            self._error = str(fault)
            self._retry = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._load)
            waiting = {"state": "waiting", "error": self._error, "next_ms": round(RETRY_SECONDS * 1000)}
            for each in self._wanted:
                self._editor.report("mount", {"name": each.name, **waiting})
            for event, args in self._early:
                if event == "remote_call":
                    self._refuse(args[0])
        finally:
            self._early.clear()
            self._loading = None

    def _refuse(self, call_id: str) -> None:
        text = f"cannot load mounts ({self._error}); retrying in {RETRY_SECONDS:.0f} s"
        self._editor.remote("remote_result", call_id, error_outcome("busy", text))
