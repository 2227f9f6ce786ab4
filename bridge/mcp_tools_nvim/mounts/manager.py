"""All mounts of an editor: started, replaced and ended as it wishes, and the way of each call to its own.

Receives: the wanted mounts; calls of their tools. Sends: each to its `Upstream`.
Does not know about: how a server is reached, what its answers hold.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from .door import MountEditor
from .outcomes import failed
from .spec import Mount
from .upstream import Upstream

logger = logging.getLogger(__name__)


class Manager:
    """See the head of this file."""

    def __init__(self, editor: MountEditor) -> None:
        self._editor = editor
        self._upstreams: dict[str, Upstream] = {}
        self._owners: dict[str, Upstream] = {}
        self._ending: set[asyncio.Task[None]] = set()
        # They tell of each bad message of a peer, with a traceback: what comes of it is told by us.
        for library in ("mcp.client", "mcp.shared", "httpx2"):
            logging.getLogger(library).setLevel(logging.CRITICAL)

    def want(self, mounts: Sequence[Mount]) -> None:
        """Makes these the mounts; one that is as it was goes on."""
        wanted = {mount.name: mount for mount in mounts}
        for name, upstream in list(self._upstreams.items()):
            if upstream.mount != wanted.get(name):
                del self._upstreams[name]
                self._end(upstream, withdraw=name not in wanted)
        for name, mount in wanted.items():
            if name not in self._upstreams:
                self._upstreams[name] = Upstream(mount, self._editor)

    def hear(self, event: str, args: Sequence[Any]) -> None:
        """An event of a call."""
        if event in ("remote_watch", "remote_unwatch"):
            if upstream := self._upstreams.get(args[0]):
                upstream.watch(args[1], event == "remote_watch")
            return
        call_id = args[0]
        if event == "remote_call":
            _, target, arguments, info = args
            upstream = self._upstreams.get(target["provider"])
            if upstream is None:
                text = f"there is no mount '{target['provider']}' any more"
                self._editor.remote("remote_result", call_id, failed("execution_error", text))
                return
            self._owners[call_id] = upstream
            upstream.calls.begin(call_id, target, arguments, info, self._forget)
        elif owner := self._owners.get(call_id):
            if event == "remote_cancel":
                owner.calls.cancel(call_id)
            elif event == "remote_answer":
                owner.calls.answer(call_id, *args[1:])

    async def close(self, within: float) -> None:
        """Ends all of them; what has not ended in `within` seconds is killed."""
        for upstream in self._upstreams.values():
            upstream.terminate()
        self.want(())
        if self._ending:
            await asyncio.wait(self._ending, timeout=within)
        self.kill()

    def kill(self) -> None:
        """Ends the processes of all servers at once."""
        for upstream in Upstream.alive:
            upstream.kill()

    def _forget(self, call_id: str) -> None:
        self._owners.pop(call_id, None)

    def _end(self, upstream: Upstream, *, withdraw: bool) -> None:
        task = upstream.end()
        if withdraw:
            self._editor.withdraw(upstream.mount.name)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
