"""Results that have arrived: the editor is told, so that it may forget them.

Receives the ids of calls from `Calls`. Sends them with the next call, or by themselves soon after.
Does not know about: what a call came to.
"""

from __future__ import annotations

import asyncio

from ..neovim import Editor

WITHIN = 0.25
"""Seconds until an acknowledgement goes out by itself, when no call took it along."""
AT_ONCE = 64 * 1024
"""Characters of a result beyond which the editor may forget it at once."""


class Acknowledgements:
    """Those that are still to be sent to one editor."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._ids: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, call_id: str, size: int = 0) -> None:
        """A result of that many characters has arrived."""
        self._ids.append(call_id)
        if size > AT_ONCE:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WITHIN, self.flush)

    def take(self) -> list[str]:
        """Hands over what is to be sent, to whoever sends something anyway."""
        ids, self._ids = self._ids, []
        return ids

    def put_back(self, ids: list[str]) -> None:
        """Takes ids again that were handed over and could not be sent."""
        for call_id in ids:
            self.add(call_id)

    def flush(self) -> None:
        """Sends what is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._ids:
            self._editor.acknowledge(self.take())
