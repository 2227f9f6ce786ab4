"""Admits calls while Neovim can start them; otherwise they wait, or are refused.

Requesting the mode before every call would cost 16 % of the throughput, so it is requested only after a
silence. While Neovim is blocked, one task polls the mode for all waiting calls.
"""

from __future__ import annotations

import asyncio
import math
import time

from ..errors import Code
from ..neovim.modes import blocked_text
from ..neovim.nvim import NvimEditor
from ..values import Mode, Outcome, ToolError
from .call import Call

SILENCE = 0.05
"""Seconds without a message from Neovim after which its mode is requested before a call."""
MODE_EVERY = 0.1
"""Seconds between requests of a blocked Neovim's mode."""
MODE_WITHIN = 2.0
"""Seconds to wait for the mode; without an answer, Neovim is busy."""
MODE_FOR_ERROR = 0.25
"""Seconds to wait for the mode, to name it in the error of a call that did not start."""
REPORT_EVERY = 1.0
"""Minimum seconds between notices to the user about a blocked Neovim."""


class Admission:
    """Admits calls to one Neovim."""

    def __init__(self, editor: NvimEditor) -> None:
        self._editor = editor
        self._time = asyncio.get_running_loop().time
        self._watcher: asyncio.Task[None] | None = None
        self._held: set[Call] = set()
        self._mode: Mode | None = None
        self._in_doubt = False  # the mode is being requested, or is known to block
        self._reported = -math.inf

    def is_open(self, now: float) -> bool:
        """Whether a call may be sent without requesting the mode."""
        editor = self._editor
        return now - editor.last_heard < SILENCE and not self._in_doubt and not editor.congested

    async def admit(self, call: Call, start_by: float) -> Outcome | None:
        """Waits until Neovim can start a call, at most until `start_by`; returns the refusal, if any."""
        editor = self._editor
        if editor.congested and not await editor.drain(start_by):
            return self.refuse(None)
        if not self._in_doubt and not call.ended:
            await self._ask(call, start_by)
        while self._in_doubt and not call.ended and self._time() < start_by:
            await self._hold(call, start_by)
        if call.ended or editor.closed.done():
            return call.outcome
        if self._in_doubt or self._mode is None or self._mode.blocking:
            return self.refuse(self._mode)
        return None

    async def refuse_silent(self) -> Outcome:
        """Returns the refusal of a call that was sent but not started before its `start_by`."""
        mode = await self._editor.mode(MODE_FOR_ERROR)
        return self.refuse(mode if mode is not None and mode.blocking else None)

    def refuse(self, mode: Mode | None) -> Outcome:
        """Returns the refusal, and sends Neovim a report for the user."""
        now = self._time()
        if now - self._reported >= REPORT_EVERY:
            self._reported = now
            self._editor.report("blocked", {"mode": mode.name if mode else "", "at": int(time.time())})
        return Outcome("failed", error=ToolError(Code.EDITOR_BLOCKED, blocked_text(mode)))

    async def _ask(self, call: Call, start_by: float) -> None:
        """Requests the mode for this call and later ones; starts the watcher if Neovim is blocked."""
        self._in_doubt = True
        try:
            asked = call.wait = self._editor.mode(max(0.001, start_by - self._time()))
            self._learn(await asked)
        finally:
            if self._in_doubt and self._watcher is None:
                self._watcher = asyncio.get_running_loop().create_task(self._watch())

    async def _hold(self, call: Call, start_by: float) -> None:
        loop = asyncio.get_running_loop()
        call.wait = loop.create_future()
        timer = loop.call_at(start_by, call.end_wait)
        self._held.add(call)
        try:
            await call.wait
        finally:
            timer.cancel()
            self._held.discard(call)

    async def _watch(self) -> None:
        try:
            await asyncio.sleep(MODE_EVERY)
            while self._held and not self._editor.closed.done():
                self._learn(await self._editor.mode(MODE_WITHIN))
                if not self._in_doubt:
                    break
                await asyncio.sleep(MODE_EVERY)
        finally:
            self._watcher = None
            self._free()

    def _learn(self, mode: Mode | None) -> None:
        self._mode = mode
        if mode is not None and not mode.blocking:
            self._free()

    def _free(self) -> None:
        self._in_doubt = False
        for call in self._held:
            call.end_wait()
