"""Mounted servers: connected, kept, connected again, ended.

What a server exposes stays registered while it is gone: a call says why, and when it is tried again.
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
from .calls import Calls
from .child_process import Child
from .definitions import Definitions, Found
from .http import Remote
from .loader import MountEditor
from .mount import Mount
from .outcomes import failed
from .session import LISTS, Session, is_closed

logger = logging.getLogger(__name__)

BACKOFF = (0.25, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 60.0)
"""Seconds until it is tried again, after so many failures in a row."""
STEADY = 30.0
"""Seconds after which an end is no sign that the next run ends, too."""
SETTLE = 0.05
"""Seconds in which changes of a list become one look at it."""
REST = 10
"""A look at lists is followed by so many times its time without one: the editor reads them."""
MAX_FRESH = 100
"""Resources that have changed within `SETTLE`."""
MAX_REST = 10.0
"""Seconds of that."""
SOON = 1.5
"""Seconds until the next try that a call waits for."""
MAX_WHY = 300
"""Characters of a cause that are told."""
EDITOR_RETRY = 2.0
"""Seconds until definitions are given again to an editor that did not answer."""
EDITOR_SILENT = "Neovim does not answer; its definitions are registered once it does"
AGAIN = 2.0
"""Seconds until a stream of changes that was lost is opened again."""

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
"""What tells of a change, in either era → the lists that it is one of."""


class MountedServer:
    """One mounted server: connected, kept, connected again."""

    def __init__(self, mount: Mount, editor: MountEditor) -> None:
        self.mount = mount
        self.calls = Calls(mount, editor, self)
        self._editor = editor
        self._definitions = Definitions(mount, editor)
        self._loop = asyncio.get_running_loop()
        self._session: Session | None = None
        self._arrived: asyncio.Future[None] = self._loop.create_future()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._transport: Child | Remote | None = None
        self._state = "connecting"
        self._error = ""
        self._runs = 0
        self._next = 0.0
        self._dirty, self._watched, self._fresh = set[str](), set[str](), set[str]()
        self._looking: asyncio.Task[None] | None = None
        self._look_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._task = self._loop.create_task(self._run())

    async def session(self) -> Session | None:
        """For its calls."""
        wait = self._next - self._loop.time()
        if self._state == "waiting" and wait < SOON:
            await asyncio.sleep(wait + SETTLE)
        if self._state == "connecting":
            await asyncio.wait({self._arrived})
        return self._session

    def absence(self) -> str:
        """For its calls."""
        wait = max(0.0, self._next - self._loop.time())
        return (
            f"mount '{self.mount.name}' is not connected ({self._error}); it is tried again in {wait:.0f} s. "
            "The person sees more with :McpTools mounts, and tries at once with :McpTools mounts retry"
        )

    def watch(self, uri: str, wanted: bool) -> None:
        """Somebody wants to hear of changes of a resource, or nobody any more."""
        (self._watched.add if wanted else self._watched.discard)(uri)
        if self._session is not None:
            self._spawn(self._subscribe(self._session, uri, wanted))

    def end(self) -> asyncio.Task[None]:
        """Ends its calls now, and itself soon; gives what ends then."""
        self._definitions.closed = True
        self.calls.settle_all(f"mount '{self.mount.name}' was taken away while the tool ran")
        self._task.cancel()
        return self._task

    def terminate(self) -> None:
        """Tells its process to end, without waiting until it does so by itself."""
        if isinstance(self._transport, Child):
            self._transport.terminate()

    def kill(self) -> None:
        """Ends its process at once."""
        if isinstance(self._transport, Child):
            self._transport.kill()

    async def _run(self) -> None:
        failures = 0
        while True:
            began, self._runs = self._loop.time(), self._runs + 1
            self._lost = self._loop.create_future()
            make = Child if self.mount.command else Remote
            transport = self._transport = make(self.mount, self._lose)
            self._become("connecting")
            fault: Exception | None = None
            try:
                await self._live(transport)
            except Exception as why:  # noqa: BLE001 - boundary: whatever a server does, the next try follows
                fault = why
            lived = self._state == "ready" and self._loop.time() - began > STEADY
            failures = 1 if lived else failures + 1
            self._error = self.mount.clean(_why(fault, transport))
            delay = BACKOFF[min(failures, len(BACKOFF)) - 1]
            self._next = self._loop.time() + delay
            logger.warning("mount %s: %s; tried again in %g s", self.mount.name, self._error, delay)
            text = f"mount '{self.mount.name}' was lost while the tool ran: {self._error}"
            self.calls.settle_all(text, sent=True)
            self._become("waiting")
            await asyncio.sleep(delay)

    async def _live(self, transport: Child | Remote) -> None:
        """One connection, from its beginning to its end."""
        patience = self.mount.start_timeout
        self._dirty.clear()
        start = asyncio.timeout(patience)
        try:
            async with (
                start,
                transport.run() as streams,
                Session(streams, patience, self.mount.allow, self.calls.ask, self._told) as session,
            ):
                found = await self._definitions.read(session)
                start.reschedule(None)
                while not await self._give(found):  # noqa: ASYNC110 - there is no event to wait for
                    await asyncio.sleep(EDITOR_RETRY)
                self._session = session
                self._become("ready")
                self._changed(())  # what has changed while it was looked at
                for uri in self._watched:
                    self._spawn(self._subscribe(session, uri, True))
                logger.info("mount %s: connected to %s", self.mount.name, session.server or "it")
                watch = self._loop.create_task(self._watch(session)) if session.is_modern else None
                try:
                    await asyncio.wait({self._lost})
                finally:
                    self._session = None
                    for task in (watch, self._looking):
                        if task is not None:
                            task.cancel()
        finally:
            if start.expired():
                transport.reason = f"it did not say what it offers within {patience:g} s"

    def _lose(self) -> None:
        """The connection is at its end."""
        if not self._lost.done():
            self._lost.set_result(None)

    def _become(self, state: str) -> None:
        self._state = state
        if state == "connecting" and self._arrived.done():
            self._arrived = self._loop.create_future()
        elif state != "connecting" and not self._arrived.done():
            self._arrived.set_result(None)
        self._report()

    def _report(self) -> None:
        if self._definitions.closed:
            return  # another may have its name
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

    async def _subscribe(self, session: Session, uri: str, wanted: bool) -> None:
        try:
            await session.subscribe(self.mount.own_uri(uri), wanted)
        except Exception as fault:  # noqa: BLE001 - boundary: nobody waits for it
            logger.warning("mount %s: %s: %s", self.mount.name, uri, _why(fault))

    # Changes of what it offers

    def _told(self, notification: Any) -> None:
        if isinstance(notification, types.LoggingMessageNotification):
            self.calls.log(notification.params.level, notification.params.data)
        elif isinstance(notification, types.ResourceUpdatedNotification):
            self._updated(self.mount.public_uri(notification.params.uri))
        else:
            self._changed(_CHANGES.get(type(notification).__name__, ()))

    def _updated(self, uri: str) -> None:
        """Changes of a resource become one as well."""
        if not self._fresh:
            self._loop.call_later(SETTLE, self._tell_fresh)
        if len(self._fresh) < MAX_FRESH:
            self._fresh.add(uri)

    def _tell_fresh(self) -> None:
        while self._fresh:
            self._editor.remote("remote_updated", self._fresh.pop())

    def _changed(self, lists: tuple[str, ...]) -> None:
        self._dirty.update(lists)
        idle = self._looking is None or self._looking.done()
        if self._dirty and idle and self._session is not None:
            self._looking = self._loop.create_task(self._look_again(self._session))

    async def _look_again(self, session: Session) -> None:
        while self._dirty:
            await asyncio.sleep(max(SETTLE, self._look_at - self._loop.time()))
            lists, self._dirty = self._dirty, set()
            began = self._loop.time()
            try:
                if not await self._give(await self._definitions.read(session, lists)):
                    self._dirty |= lists
                    self._look_at = self._loop.time() + EDITOR_RETRY
                    continue
            except Exception as fault:  # noqa: BLE001 - boundary: changes after this one are still looked at
                logger.warning("mount %s: %s: %s", self.mount.name, ", ".join(sorted(lists)), _why(fault))
            took = self._loop.time() - began
            self._look_at = began + took + min(MAX_REST, REST * took)
            self._report()

    async def _give(self, found: Found) -> bool:
        """Registers what the server offers with the editor.

        Returns:
            False when the editor does not answer: it is to be given again.
        """
        try:
            await self._definitions.give(found)
        except NoAnswerError:
            if self._error != EDITOR_SILENT:
                logger.warning("mount %s: %s", self.mount.name, EDITOR_SILENT)
            self._error = EDITOR_SILENT
            self._report()
            return False
        except LuaError as fault:
            self._error = f"Neovim could not register its definitions: {fault}"[:MAX_WHY]
            logger.warning("mount %s: %s", self.mount.name, self._error)
        else:
            self._error = ""
        return True

    async def _watch(self, session: Session) -> None:
        """Hears of changes where servers tell only those who listen."""
        wanted = {f"{kind}_list_changed": True for kind in ("tools", "resources", "prompts")}
        while True:
            try:
                async with listen(session.inner, **wanted) as events:  # type: ignore[arg-type]
                    async for event in events:
                        self._changed(_CHANGES.get(type(event).__name__, ()))
            except MCPError as refusal:
                if refusal.error.code == types.METHOD_NOT_FOUND:
                    return
                logger.debug("mount %s: the stream of changes: %s", self.mount.name, _why(refusal))
            except Exception as fault:  # noqa: BLE001 - boundary: whatever ends the stream, it is opened again
                logger.debug("mount %s: the stream of changes: %s", self.mount.name, _why(fault))
            await asyncio.sleep(AGAIN)
            self._changed(tuple(LISTS))


class MountedServers:
    """All mounted servers of an editor: started, replaced and ended as it wishes; each gets its own calls."""

    def __init__(self, editor: MountEditor) -> None:
        self._editor = editor
        self._servers: dict[str, MountedServer] = {}
        self._owners: dict[str, MountedServer] = {}
        self._alive: set[MountedServer] = set()
        self._ending: set[asyncio.Task[None]] = set()
        # They tell of each bad message of a peer, with a traceback: what comes of it is told by us.
        for library in ("mcp.client", "mcp.shared", "httpx2"):
            logging.getLogger(library).setLevel(logging.CRITICAL)

    def want(self, mounts: Sequence[Mount]) -> None:
        """Makes these the mounts; one that is as it was goes on."""
        wanted = {mount.name: mount for mount in mounts}
        for name, server in list(self._servers.items()):
            if server.mount != wanted.get(name):
                del self._servers[name]
                self._end(server, withdraw=name not in wanted)
        for name, mount in wanted.items():
            if name not in self._servers:
                server = self._servers[name] = MountedServer(mount, self._editor)
                self._alive.add(server)

    def hear(self, event: str, args: Sequence[Any]) -> None:
        """An event of a call."""
        if event in ("remote_watch", "remote_unwatch"):
            if server := self._servers.get(args[0]):
                server.watch(args[1], event == "remote_watch")
            return
        call_id = args[0]
        if event == "remote_call":
            _, target, arguments, info = args
            server = self._servers.get(target["provider"])
            if server is None:
                text = f"there is no mount '{target['provider']}' any more"
                self._editor.remote("remote_result", call_id, failed("execution_error", text))
                return
            self._owners[call_id] = server
            server.calls.begin(call_id, target, arguments, info, self._forget)
        elif owner := self._owners.get(call_id):
            if event == "remote_cancel":
                owner.calls.cancel(call_id)
            elif event == "remote_answer":
                owner.calls.answer(call_id, *args[1:])

    async def close(self, within: float) -> None:
        """Ends all of them; what has not ended in `within` seconds is killed."""
        for server in self._servers.values():
            server.terminate()
        self.want(())
        if self._ending:
            await asyncio.wait(self._ending, timeout=within)
        self.kill()

    def kill(self) -> None:
        """Ends the processes of all servers at once."""
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


def _why(fault: BaseException | None, transport: Child | Remote | None = None) -> str:
    """The first cause, in a line: that the server refused, else what the transport says of its end.

    Of a refusal over HTTP the transport knows more: the status and what to do.
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
    return (text.strip() or type(fault).__name__).splitlines()[0][:MAX_WHY]
