"""One client of the session era: what it is, and what it has asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .. import jsonrpc
from ..mcp.exchange import Exchange
from ..values import MAX_CLIENT_NAME, Scope, View
from .questions import Questions
from .streams import Response, Streams

if TYPE_CHECKING:
    from ..calls.runner import Calls
    from ..mcp.kernel import Kernel
    from .outbox import EventIds

RECONNECT_SECONDS = 5.0
"""A client that had a stream of its own and has none has left, unless it comes back within that."""

SILENCE_SECONDS = 60.0
"""One that never had any may be idle for long; nobody can tell whether it is."""

BATCH_BYTES = 16 * 1024 * 1024
"""All answers of a batch together: one of the largest size, and many small ones."""

Transport = Literal["http", "sse", "websocket"]

ENDS_WITH_STREAM: frozenset[Transport] = frozenset({"sse", "websocket"})
"""Transports whose sessions are their one connection."""

MAX_NOTICE = 64 * 1024
"""Bytes of a notification that MCP does not know; the editor is not told of a longer one."""

_MCP_NOTIFICATIONS = "notifications/"


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One connected client, as the dashboard shows it."""

    name: str
    version: str
    transport: str


class Watcher(Protocol):
    """Hears of the agents of companions; every method returns at once."""

    def opened(self, session: Session) -> None:
        """It is initialized, and can be told things."""

    def notified(self, session: Session, method: str, params: Mapping[str, Any] | None) -> None:
        """It says something that MCP does not know."""

    def left(self, session: Session) -> None:
        """It was there, and is gone."""


class Session:
    """See the head of this file.

    Args:
        kernel: serves its requests.
        calls: told why a request was cancelled.
        key: names the session to tools; not the id that the client sends.
        transport: streamable HTTP, whose streams are resumable; or the one connection that it is.
        ids: of events.
        scope: what it asked to be shown of the tools when it began.
        watcher: of a companion's session.
    """

    def __init__(
        self,
        kernel: Kernel,
        calls: Calls,
        key: str,
        transport: Transport,
        ids: EventIds | None,
        scope: Scope | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.key = key
        self.scope = scope
        self._watcher = watcher
        self._told = False
        self.transport: Transport = transport
        self.id = key  # until it is sealed
        self.sealed_at: int | None = None
        self.info: SessionInfo | None = None
        self.closed = False
        self.last_heard = time.monotonic()
        self.streams = Streams(ids)
        self.standalone = self.streams.standalone
        self.questions = Questions()
        self.peer = kernel.connect(
            key, self.standalone.push, partial(self.questions.ask, self.standalone.push), self.companion
        )
        self._kernel = kernel
        self._calls = calls
        self._in_flight: dict[jsonrpc.RequestId, Exchange] = {}
        self._about_to_run: set[jsonrpc.RequestId] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def companion(self) -> str | None:
        """To whose endpoint it came; None for every other client."""
        return None if self.scope is None else self.scope.companion

    @property
    def calls(self) -> int:
        """Requests in flight."""
        return len(self._in_flight)

    @property
    def view(self) -> View:
        """By what its list of tools may differ from that of others."""
        return View("" if self.info is None else self.info.name[:MAX_CLIENT_NAME], self.scope)

    @property
    def connected(self) -> bool:
        """Whether any connection of the client is known to stand."""
        return self.streams.alive or any(exchange.connected() for exchange in self._in_flight.values())

    def is_there(self, now: float) -> bool:
        """Whether its client is taken to be there; `now` in monotonic seconds."""
        silence = RECONNECT_SECONDS if self.standalone.was_read else SILENCE_SECONDS
        return self.connected or now - self.last_heard < silence

    @property
    def disposable(self) -> bool:
        """Whether it may give way to another session."""
        return not self._in_flight and not self.streams.any_open and not self.connected

    def tasks(self) -> set[asyncio.Task[Any]]:
        """The tasks of the requests in flight."""
        return {exchange.task for exchange in self._in_flight.values()}

    # What the client sends

    def is_duplicate(self, request: jsonrpc.Request) -> bool:
        """Whether the id is that of a request in flight."""
        return request.id in self._in_flight or request.id in self._about_to_run

    async def answer(
        self, connected: Callable[[], bool], request: jsonrpc.Request, response: Response | None = None
    ) -> bytes:
        """Serves a request in the caller's task.

        Args:
            connected: does the connection that it came by still stand?
            request: what to serve.
            response: takes what is sent before the answer; without it that goes over the standalone stream.
        """
        self.last_heard = time.monotonic()
        self._about_to_run.discard(request.id)
        exchange = self._in_flight[request.id] = Exchange(self._calls, connected, request)
        try:
            push = self.standalone.push if response is None else response.push
            hang_up = None if response is None else response.hang_up
            ask = partial(self.questions.ask, push)
            dispatch = self._kernel.dispatch(
                request.id, request.params, push, ask, hang_up, within=self.scope
            )
            return await exchange.run(self._kernel, dispatch, self.peer.request(dispatch, request))
        finally:
            del self._in_flight[request.id]
            self.last_heard = time.monotonic()

    async def answer_batch(self, requests: list[jsonrpc.Request], response: Response) -> bytes:
        """Serves the requests of a batch, side by side."""
        self._about_to_run.update(request.id for request in requests)
        total = 0

        async def bounded(request: jsonrpc.Request) -> bytes:
            nonlocal total
            answer = await self.answer(response.connected, request, response)
            if total + len(answer) > BATCH_BYTES:
                text = f"The answers of this batch have more than {BATCH_BYTES} bytes; send it in parts"
                return jsonrpc.dumps(jsonrpc.error(request.id, jsonrpc.TOO_LARGE, text))
            total += len(answer)
            return answer

        answers = await asyncio.gather(*(bounded(request) for request in requests))
        return b"[" + b",".join(answers) + b"]"

    def lose(self, response: Response, requests: Iterable[jsonrpc.Request]) -> None:
        """The connection of a response is gone. One that has not become a stream cannot be resumed."""
        if response.outbox is None:
            for request in requests:
                if (exchange := self._in_flight.get(request.id)) is not None:
                    exchange.lose()

    def answer_later(
        self, connected: Callable[[], bool], request: jsonrpc.Request, done: Callable[[Session], None]
    ) -> None:
        """Serves a request in a task of its own; answers over the standalone stream, then tells `done`."""
        self._about_to_run.add(request.id)
        task = asyncio.get_running_loop().create_task(self._answer_later(connected, request, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def receive(self, message: jsonrpc.Notification | jsonrpc.Answer) -> None:
        """Takes what needs no answer. Cancels and answers that come too late are normal and ignored."""
        self.last_heard = time.monotonic()
        if isinstance(message, jsonrpc.Answer):
            self.questions.answered(message)
            return
        if message.method == "notifications/cancelled":
            id_ = (message.params or {}).get("requestId")
            # True is equal to 1, but is no id.
            valid = isinstance(id_, int | str) and not isinstance(id_, bool)
            exchange = self._in_flight.get(id_) if valid else None  # type: ignore[arg-type]
            if exchange is not None and exchange.request.method != "initialize":
                exchange.cancel("client")
        if self.companion is not None and not message.method.startswith(_MCP_NOTIFICATIONS):
            if self._watcher is not None:
                self._watcher.notified(self, message.method, message.params)
            return
        await self.peer.notified(message)
        self.look()

    def look(self) -> None:
        """Tells the watcher once it is initialized and its stream stands, and once it is gone for good."""
        if self._watcher is None or self.companion is None:
            return
        if not self._told and not self.closed and self.peer.initialized and self.standalone.alive:
            self._told = True
            self._watcher.opened(self)
        elif self._told and (self.closed or not self.is_there(time.monotonic())):
            self._told = False
            self._watcher.left(self)

    # What is sent to the client

    def notify(self, method: str) -> None:
        """A notification without parameters; while it still waits to be read, a second one is superfluous."""
        if self.peer.initialized:
            self.standalone.push(jsonrpc.dumps(jsonrpc.notification(method)), key=method)

    def tell(self, method: str, params: bytes, *, latest: bool) -> None:
        """A notification with parameters as JSON text; `latest`: in place of those that wait to be read."""
        if self.peer.initialized:
            head = jsonrpc.dumps({"jsonrpc": "2.0", "method": method})
            data = head[:-1] + b',"params":' + params + b"}"
            self.standalone.push(data, key=method if latest else None, latest=latest)

    # Its end

    def cancel_all(self, reason: str) -> None:
        """Cancels the requests in flight; they are answered."""
        for exchange in list(self._in_flight.values()):
            exchange.cancel(reason)

    async def close(self, reason: str = "session_closed") -> None:
        """Ends everything that belongs to the session."""
        if self.closed:
            return
        self.closed = True
        self.look()
        self.cancel_all(reason)
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=1.0)
        self.standalone.end()
        self.questions.cancel()
        await self.peer.close()

    async def _answer_later(
        self, connected: Callable[[], bool], request: jsonrpc.Request, done: Callable[[Session], None]
    ) -> None:
        self.standalone.push(await self.answer(connected, request))
        done(self)
