"""Mounted servers: connects them, reconnects after a failure, refreshes their lists.

Definitions stay registered while a server is disconnected; calls then fail with the reason and the time of
the next attempt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.client.subscriptions import listen

from ..errors import LuaError, NoAnswerError
from ..neovim.nvim import NvimEditor
from .calls import MountCalls
from .child_process import Child
from .definitions import Found, MountDefinitions
from .http import Remote
from .mount import Mount
from .outcomes import error_outcome
from .session import LISTS, MountSession, is_closed

logger = logging.getLogger(__name__)

BACKOFF = (0.25, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 60.0)
"""Seconds until the next attempt, by number of consecutive failures."""
STABLE_SECONDS = 30.0
"""A connection that lasted this long resets the number of failures."""
DEBOUNCE = 0.05
"""Seconds in which changes are collected."""
PAUSE_FACTOR = 10
"""A refresh of lists is followed by a pause of its duration times this, since Neovim reads the lists."""
MAX_UPDATES = 100
"""Maximum changed resources within `DEBOUNCE`."""
MAX_PAUSE = 10.0
"""Maximum seconds of the pause."""
CALL_WAIT = 1.5
"""Maximum seconds that a call waits for the next attempt."""
MAX_REASON = 300
"""Maximum characters of a reason."""
EDITOR_RETRY = 2.0
"""Seconds until definitions are registered again after Neovim did not answer."""
EDITOR_SILENT = "Neovim does not answer; the definitions are registered once it does"
REOPEN_SECONDS = 2.0
"""Seconds until a lost stream of changes is opened again."""

_TOOLS, _PROMPTS = ("tools/list",), ("prompts/list",)
_RESOURCES = ("resources/list", "resources/templates/list")
_CHANGES: dict[str, tuple[str, ...]] = {
    "ToolListChangedNotification": _TOOLS,
    "ResourceListChangedNotification": _RESOURCES,
    "PromptListChangedNotification": _PROMPTS,
    "ToolsListChanged": _TOOLS,
    "ResourcesListChanged": _RESOURCES,
    "PromptsListChanged": _PROMPTS,
}
"""Class of a notification, in either era → the lists that have changed."""


class MountedServer:
    """One mounted server, connected again after each failure."""

    def __init__(self, mount: Mount, editor: NvimEditor) -> None:
        self.mount = mount
        self.calls = MountCalls(mount, editor, self)
        self._editor = editor
        self._definitions = MountDefinitions(mount, editor)
        self._loop = asyncio.get_running_loop()
        self._session: MountSession | None = None
        self._arrived: asyncio.Future[None] = self._loop.create_future()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._transport: Child | Remote | None = None
        self._state = "connecting"
        self._error = ""
        self._runs = 0
        self._next = 0.0
        self._dirty, self._watched, self._updated_uris = set[str](), set[str](), set[str]()
        self._refreshing: asyncio.Task[None] | None = None
        self._refresh_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._task = self._loop.create_task(self._run())

    async def session(self) -> MountSession | None:
        """Returns the live session, waiting for a connection attempt that is running or about to start."""
        wait = self._next - self._loop.time()
        if self._state == "waiting" and wait < CALL_WAIT:
            await asyncio.sleep(wait + DEBOUNCE)
        if self._state == "connecting":
            await asyncio.wait({self._arrived})
        return self._session

    def unavailable_reason(self) -> str:
        """Returns why there is no session, as the error of a call."""
        wait = max(0.0, self._next - self._loop.time())
        return (
            f"mount '{self.mount.name}' is not connected ({self._error}); next attempt in {wait:.0f} s. "
            "The user can run :McpTools mounts for details, or :McpTools mounts retry"
        )

    def watch(self, uri: str, wanted: bool) -> None:
        """Subscribes to changes of a resource, or unsubscribes."""
        (self._watched.add if wanted else self._watched.discard)(uri)
        if self._session is not None:
            self._spawn(self._subscribe(self._session, uri, wanted))

    def end(self) -> asyncio.Task[None]:
        """Ends the calls now and starts to end the connection; returns its task."""
        self._definitions.closed = True
        self.calls.end_all(f"mount '{self.mount.name}' was removed while the tool ran")
        self._task.cancel()
        return self._task

    def terminate(self) -> None:
        """Sends TERM to the process."""
        if isinstance(self._transport, Child):
            self._transport.terminate()

    def kill(self) -> None:
        """Kills the process."""
        if isinstance(self._transport, Child):
            self._transport.kill()

    async def _run(self) -> None:
        failures = 0
        while True:
            began, self._runs = self._loop.time(), self._runs + 1
            self._lost = self._loop.create_future()
            make = Child if self.mount.command else Remote
            transport = self._transport = make(self.mount, self._on_lost)
            self._set_state("connecting")
            fault: Exception | None = None
            try:
                await self._live(transport)
            except Exception as error:  # noqa: BLE001 - boundary: another attempt follows any failure
                fault = error
            lived = self._state == "ready" and self._loop.time() - began > STABLE_SECONDS
            failures = 1 if lived else failures + 1
            self._error = self.mount.clean(_reason(fault, transport))
            delay = BACKOFF[min(failures, len(BACKOFF)) - 1]
            self._next = self._loop.time() + delay
            logger.warning("mount %s: %s; next attempt in %g s", self.mount.name, self._error, delay)
            text = f"mount '{self.mount.name}' was lost while the tool ran: {self._error}"
            self.calls.end_all(text, sent=True)
            self._set_state("waiting")
            await asyncio.sleep(delay)

    async def _live(self, transport: Child | Remote) -> None:
        """Connects, and stays until the connection is lost."""
        patience = self.mount.start_timeout
        self._dirty.clear()
        start = asyncio.timeout(patience)
        try:
            async with (
                start,
                transport.run() as streams,
                MountSession(
                    streams, patience, self.mount.allow, self.calls.ask, self._on_notification
                ) as session,
            ):
                found = await self._definitions.read(session)
                start.reschedule(None)
                while not await self._register(found):  # noqa: ASYNC110 - there is no event to wait for
                    await asyncio.sleep(EDITOR_RETRY)
                self._session = session
                self._set_state("ready")
                self._changed(())  # changes that came while the lists were read
                for uri in self._watched:
                    self._spawn(self._subscribe(session, uri, True))
                logger.info("mount %s: connected to %s", self.mount.name, session.server or "a server")
                watch = self._loop.create_task(self._watch(session)) if session.is_modern else None
                try:
                    await asyncio.wait({self._lost})
                finally:
                    self._session = None
                    for task in (watch, self._refreshing):
                        if task is not None:
                            task.cancel()
        finally:
            if start.expired():
                transport.reason = f"the server did not list its tools within {patience:g} s"

    def _on_lost(self) -> None:
        """Ends the connection."""
        if not self._lost.done():
            self._lost.set_result(None)

    def _set_state(self, state: str) -> None:
        self._state = state
        if state == "connecting" and self._arrived.done():
            self._arrived = self._loop.create_future()
        elif state != "connecting" and not self._arrived.done():
            self._arrived.set_result(None)
        self._report()

    def _report(self) -> None:
        if self._definitions.closed:
            return  # another mount may have the name now
        session, transport = self._session, self._transport
        left = round((self._next - self._loop.time()) * 1000) if self._state == "waiting" else None
        self._editor.report(
            "mount",
            {
                "name": self.mount.name,
                "state": self._state,
                "error": self._error,
                "restarts": self._runs - 1,
                "pid": transport.pid if transport is not None and session is not None else None,
                "next_ms": left,
                "server": session.server if session is not None else None,
                "faults": self._definitions.faults,
            },
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _subscribe(self, session: MountSession, uri: str, wanted: bool) -> None:
        try:
            await session.subscribe(self.mount.original_uri(uri), wanted)
        except Exception as fault:  # noqa: BLE001 - boundary: no caller waits for it
            logger.warning("mount %s: %s: %s", self.mount.name, uri, _reason(fault))

    def _on_notification(self, notification: Any) -> None:
        if isinstance(notification, types.LoggingMessageNotification):
            self.calls.log(notification.params.level, notification.params.data)
        elif isinstance(notification, types.ResourceUpdatedNotification):
            self._updated(self.mount.public_uri(notification.params.uri))
        else:
            self._changed(_CHANGES.get(type(notification).__name__, ()))

    def _updated(self, uri: str) -> None:
        """Reports changes of resources, collected for `DEBOUNCE`."""
        if not self._updated_uris:
            self._loop.call_later(DEBOUNCE, self._report_updates)
        if len(self._updated_uris) < MAX_UPDATES:
            self._updated_uris.add(uri)

    def _report_updates(self) -> None:
        while self._updated_uris:
            self._editor.remote("remote_updated", self._updated_uris.pop())

    def _changed(self, lists: tuple[str, ...]) -> None:
        self._dirty.update(lists)
        idle = self._refreshing is None or self._refreshing.done()
        if self._dirty and idle and self._session is not None:
            self._refreshing = self._loop.create_task(self._refresh_lists(self._session))

    async def _refresh_lists(self, session: MountSession) -> None:
        while self._dirty:
            await asyncio.sleep(max(DEBOUNCE, self._refresh_at - self._loop.time()))
            lists, self._dirty = self._dirty, set()
            began = self._loop.time()
            try:
                if not await self._register(await self._definitions.read(session, lists)):
                    self._dirty |= lists
                    self._refresh_at = self._loop.time() + EDITOR_RETRY
                    continue
            except Exception as fault:  # noqa: BLE001 - boundary: later changes are still read
                logger.warning("mount %s: %s: %s", self.mount.name, ", ".join(sorted(lists)), _reason(fault))
            took = self._loop.time() - began
            self._refresh_at = began + took + min(MAX_PAUSE, PAUSE_FACTOR * took)
            self._report()

    async def _register(self, found: Found) -> bool:
        """Registers definitions with Neovim.

        Returns:
            False when Neovim does not answer and they must be registered again.
        """
        try:
            await self._definitions.register(found)
        except NoAnswerError:
            if self._error != EDITOR_SILENT:
                logger.warning("mount %s: %s", self.mount.name, EDITOR_SILENT)
            self._error = EDITOR_SILENT
            self._report()
            return False
        except LuaError as fault:
            self._error = f"Neovim could not register its definitions: {fault}"[:MAX_REASON]
            logger.warning("mount %s: %s", self.mount.name, self._error)
        else:
            self._error = ""
        return True

    async def _watch(self, session: MountSession) -> None:
        """Listens for changes of lists, which modern servers report on request only."""
        wanted = {f"{kind}_list_changed": True for kind in ("tools", "resources", "prompts")}
        while True:
            try:
                async with listen(session.sdk_session, **wanted) as events:  # type: ignore[arg-type]
                    async for event in events:
                        self._changed(_CHANGES.get(type(event).__name__, ()))
            except Exception as fault:  # noqa: BLE001 - boundary: the stream is opened again after any error
                if isinstance(fault, MCPError) and fault.error.code == types.METHOD_NOT_FOUND:
                    return
                logger.debug("mount %s: the stream of changes: %s", self.mount.name, _reason(fault))
            await asyncio.sleep(REOPEN_SECONDS)
            self._changed(tuple(LISTS))


class MountedServers:
    """All mounted servers: starts, replaces and ends them as configured, and routes calls to them."""

    def __init__(self, editor: NvimEditor) -> None:
        self._editor = editor
        self._servers: dict[str, MountedServer] = {}
        self._owners: dict[str, MountedServer] = {}
        self._alive: set[MountedServer] = set()
        self._ending: set[asyncio.Task[None]] = set()
        # They log each invalid message with a traceback; we report the consequences.
        for library in ("mcp.client", "mcp.shared", "httpx2"):
            logging.getLogger(library).setLevel(logging.CRITICAL)

    def want(self, mounts: Sequence[Mount]) -> None:
        """Sets the mounts; unchanged ones continue."""
        wanted = {mount.name: mount for mount in mounts}
        for name, server in list(self._servers.items()):
            if server.mount != wanted.get(name):
                del self._servers[name]
                self._end(server, withdraw=name not in wanted)
        for name, mount in wanted.items():
            if name not in self._servers:
                server = self._servers[name] = MountedServer(mount, self._editor)
                self._alive.add(server)

    def on_event(self, event: str, args: Sequence[Any]) -> None:
        """Handles an event of a call or subscription."""
        if event in ("remote_watch", "remote_unwatch"):
            if server := self._servers.get(args[0]):
                server.watch(args[1], event == "remote_watch")
            return
        call_id = args[0]
        if event == "remote_call":
            _, target, arguments, info = args
            server = self._servers.get(target["provider"])
            if server is None:
                text = f"mount '{target['provider']}' was removed"
                self._editor.remote("remote_result", call_id, error_outcome("execution_error", text))
                return
            self._owners[call_id] = server
            server.calls.begin(call_id, target, arguments, info, self._forget)
        elif owner := self._owners.get(call_id):
            if event == "remote_cancel":
                owner.calls.cancel(call_id)
            elif event == "remote_answer":
                owner.calls.answer(call_id, *args[1:])

    async def close(self, within: float) -> None:
        """Ends all servers; kills those that have not ended `within` seconds."""
        for server in self._servers.values():
            server.terminate()
        self.want(())
        if self._ending:
            await asyncio.wait(self._ending, timeout=within)
        self.kill()

    def kill(self) -> None:
        """Kills the processes of all servers."""
        for server in self._alive:
            server.kill()

    def _forget(self, call_id: str) -> None:
        self._owners.pop(call_id, None)

    def _end(self, server: MountedServer, *, withdraw: bool) -> None:
        task = server.end()
        if withdraw:
            self._editor.withdraw(server.mount.name)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        task.add_done_callback(lambda _: self._alive.discard(server))


def _reason(fault: BaseException | None, transport: Child | Remote | None = None) -> str:
    """Returns why a connection ended, in one line: the server's refusal, else the transport's reason.

    For a refusal over HTTP the transport's reason is better: it has the status and the fix.
    """
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    is_own = (
        isinstance(fault, MCPError) and not is_closed(fault) and fault.error.code != types.REQUEST_TIMEOUT
    )
    reason = "" if transport is None or (is_own and isinstance(transport, Child)) else transport.reason
    if reason:
        return reason
    if fault is None:
        return "the connection ended"
    text = fault.error.message if isinstance(fault, MCPError) else str(fault)
    return (text.strip() or type(fault).__name__).splitlines()[0][:MAX_REASON]
